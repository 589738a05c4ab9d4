"""The dense oracle solves the same problem as Drake: one step from states along Drake's trajectories.

Mass matrix, bias, contact pairs and Jacobians are Drake's; regularization, potentials and the minimizer
are the oracle's. So this pins the contact weight, the near-rigid rules and the window of joint limits.
"""

import numpy as np
import pytest

pytest.importorskip("pydrake", reason="Drake is not installed")

from pydrake.geometry import QueryObject
from pydrake.multibody.tree import JacobianWrtVariable
from pydrake.systems.analysis import Simulator

from tests.drake import scenes
from tests.drake.description import Scene
from tests.drake.drake_engine import build
from tests.oracles.sap_dense import (
    ContactLaw,
    DenseProblem,
    DriveLaw,
    LimitLaw,
    contact_frame,
    weight_diag_delassus,
)

DT = 0.005
LIMIT_STIFFNESS = 1e12
"""What Drake uses for every joint limit, with a dissipation time of one step."""

VELOCITY_TOLERANCE = 1e-5
"""Drake stops at a relative optimality of 1e-6; velocities here are of order 1 m/s and 10 rad/s."""


def dense_problem(scene: Scene, plant, context) -> DenseProblem:
    """The convex problem of the step that starts in `context`."""
    damping = np.zeros(plant.num_velocities())
    for joint in scene.joints:
        if joint.kind != "fixed":
            start = plant.GetJointByName(joint.name).velocity_start()
            damping[start : start + np.size(joint.q)] = joint.damping
    v0 = plant.GetVelocities(context)
    a = plant.CalcMassMatrix(context) + DT * np.diag(damping)
    force = plant.CalcGravityGeneralizedForces(context) - plant.CalcBiasTerm(context) - damping * v0
    problem = DenseProblem(a=a, v_star=v0 + DT * np.linalg.solve(a, force), v0=v0)
    _add_contacts(problem, plant, context)
    for joint in scene.joints:
        if joint.kind == "fixed":
            continue
        dof = plant.GetJointByName(joint.name).velocity_start()
        q0 = plant.GetPositions(context)[plant.GetJointByName(joint.name).position_start()]
        if joint.drive is not None:
            law = DriveLaw(*joint.drive, *joint.target, 0.0, joint.effort_limit, q0, a[dof, dof], DT)
            problem.joint_terms.append((dof, law))
        if joint.limit is not None:
            window = 2.0 * DT * max(abs(v0[dof]), abs(problem.v_star[dof]))
            for gap, sign in ((q0 - joint.limit[0], 1.0), (joint.limit[1] - q0, -1.0)):
                if gap <= window:
                    problem.joint_terms.append(
                        (dof, LimitLaw(gap, sign, LIMIT_STIFFNESS, DT, a[dof, dof], DT))
                    )
    return problem


def _add_contacts(problem: DenseProblem, plant, context) -> None:
    query: QueryObject = plant.get_geometry_query_input_port().Eval(context)
    inspector = query.inspector()
    world = plant.world_frame()
    for pair in query.ComputePointPairPenetration():
        materials, bodies = [], []
        for geometry in (pair.id_A, pair.id_B):
            properties = inspector.GetProximityProperties(geometry)
            materials.append(
                (
                    properties.GetProperty("material", "point_contact_stiffness"),
                    properties.GetProperty("material", "relaxation_time"),
                    properties.GetProperty("material", "coulomb_friction").dynamic_friction(),
                )
            )
            bodies.append(plant.GetBodyFromFrameId(inspector.GetFrameId(geometry)))
        (k_a, tau_a, mu_a), (k_b, tau_b, mu_b) = materials
        point = (k_a * pair.p_WCa + k_b * pair.p_WCb) / (k_a + k_b)
        jacobian_a, jacobian_b = (
            plant.CalcJacobianTranslationalVelocity(
                context,
                JacobianWrtVariable.kV,
                body.body_frame(),
                body.EvalPoseInWorld(context).inverse() @ point,
                world,
                world,
            )
            for body in bodies
        )
        jacobian = contact_frame(-pair.nhat_BA_W).T @ (jacobian_b - jacobian_a)
        problem.jacobians.append(jacobian)
        problem.contacts.append(
            ContactLaw(
                phi0=-pair.depth,
                stiffness=k_a * k_b / (k_a + k_b),
                tau=tau_a + tau_b,
                mu=2.0 * mu_a * mu_b / (mu_a + mu_b),
                weight=weight_diag_delassus(jacobian, np.diag(problem.a)),
                dt=DT,
            )
        )


@pytest.mark.parametrize(
    "scene",
    [
        scenes.tumbling_box(),
        scenes.rigid_box(),
        scenes.box_stack(),
        scenes.saturated_drive(),
        scenes.gripper(),
        scenes.quadruped(),
        scenes.limit_impact(),
    ],
    ids=lambda scene: scene.name,
)
def test_oracle_takes_the_same_steps_as_drake(scene):
    diagram, plant, root = build(scene, DT)
    context = plant.GetMyMutableContextFromRoot(root)
    simulator = Simulator(diagram, root)
    simulator.Initialize()
    contact_count = joint_term_count = 0
    for step in range(round(scene.duration / DT)):
        compared = step % 5 == 0
        if compared:
            problem = dense_problem(scene, plant, context)
            contact_count += len(problem.contacts)
            joint_term_count += len(problem.joint_terms)
        simulator.AdvanceTo((step + 0.5) * DT)
        if compared:
            np.testing.assert_allclose(
                plant.GetVelocities(context), problem.minimize(), atol=VELOCITY_TOLERANCE
            )
    assert contact_count + joint_term_count > 0
