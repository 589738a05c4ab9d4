"""`Control.joint_act`: with a drive of any mode, within its effort limit, and nothing without one."""

import warnings

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.warnings import UndrivenJointWarning

MODES = list(pv.JointTargetMode)
LIMIT, PUSH, TIME = 2.0, 5.0, 0.1


def make(mode: pv.JointTargetMode) -> pv.Model:
    """Return a world with joints of mass and inertia 1, whose drives have no gains."""
    builder = pv.ModelBuilder(gravity=0.0)
    for kind in ("slide", "ball", "free"):
        link = builder.add_link(mass=1.0, inertia=np.eye(3))
        if kind == "slide":
            joint = builder.add_joint_prismatic(-1, link, axis="x")
        elif kind == "ball":
            joint = builder.add_joint_ball(-1, link)
        else:
            joint = builder.add_joint_free(link)
        builder.add_articulation([joint])
    builder.joint_target_mode[:] = int(mode)
    builder.joint_effort_limit[:] = LIMIT
    return builder.finalize("cpu")


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
@pytest.mark.parametrize("mode", MODES, ids=[mode.name for mode in MODES])
def test_it_acts_with_a_drive_within_its_limit(solver, mode):
    model = make(mode)
    driven = mode not in (pv.JointTargetMode.NONE, pv.JointTargetMode.AUTO)
    with pv.Simulation(model, solver(model), dt=0.001) as simulation, warnings.catch_warnings():
        warnings.simplefilter("error")
        simulation.control.joint_act.fill_(-PUSH)
        if driven:
            simulation.step(round(TIME / 0.001))
        else:
            with pytest.warns(UndrivenJointWarning, match=r"joint_act is set.*JointTargetMode\.EFFORT"):
                simulation.step(round(TIME / 0.001))
        # The ball and the free joint turn about a diagonal, on which a moment of inertia is one.
        expected = np.full(model.joint_dof_count, -LIMIT * TIME if driven else 0.0)
        np.testing.assert_allclose(simulation.state.joint_qd.numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("mode", [pv.JointTargetMode.VELOCITY, pv.JointTargetMode.POSITION_VELOCITY])
@pytest.mark.parametrize("make_solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_it_shares_the_limit_of_a_ball_with_its_velocity(make_solver, mode):
    """What both ask for together is held to the limit, in modes with a position too, which a ball has not."""
    builder = pv.ModelBuilder(gravity=0.0)
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    builder.add_articulation([builder.add_joint_ball(-1, link)])
    builder.joint_target_mode[:] = int(mode)
    builder.joint_target_kd[:] = 1.0
    builder.joint_effort_limit[:] = LIMIT
    model = builder.finalize("cpu")
    with pv.Simulation(model, make_solver(model), dt=0.001) as simulation:
        model.joint_target_ke.fill_(3.0)  # which finalize() refuses for a ball, and nothing reads
        simulation.control.joint_target_vel.assign([100.0, -100.0, 0.5])
        simulation.control.joint_act.assign([PUSH, -PUSH, 0.5])
        simulation.step(round(TIME / 0.001))
        # The third axis has an effort of 1 within its limit, which its damping reduces.
        expected = [LIMIT * TIME, -LIMIT * TIME, 1.0 - np.exp(-TIME)]
        np.testing.assert_allclose(simulation.state.joint_qd.numpy(), expected, rtol=1e-2)
