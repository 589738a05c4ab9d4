"""Build scenes as worlds of one Pluriverse model and step them all at once with the preset `drake`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from pluriverse import (
    CollisionPipeline,
    JointDofConfig,
    JointTargetMode,
    Model,
    ModelBuilder,
    ShapeConfig,
    SolverSAP,
    State,
    eval_fk,
)
from tests.drake.description import WORLD, Engine, Joint, Scene, Shape
from tests.oracles.multibody_dense import rotation_matrix

LIMIT_STIFFNESS = 1e12
"""Drake's joint limits are rigid: this stiffness, and a dissipation time of one step."""


def _shape_config(shape: Shape) -> ShapeConfig:
    material = shape.material
    # Drake sees penetrating pairs only, so no gap. Masses are given with the bodies.
    return ShapeConfig(
        density=0.0, ke=material.stiffness, tau=material.tau, mu=material.mu, margin=0.0, gap=0.0
    )


def _add_shape(builder: ModelBuilder, body: int, shape: Shape) -> None:
    common = {"xform": wp.transform(shape.position, shape.rotation), "cfg": _shape_config(shape)}
    match shape.kind:
        case "sphere":
            builder.add_shape_sphere(body, radius=shape.size[0], **common)
        case "capsule":
            builder.add_shape_capsule(body, radius=shape.size[0], half_height=shape.size[1], **common)
        case "box":
            builder.add_shape_box(body, hx=shape.size[0], hy=shape.size[1], hz=shape.size[2], **common)
        case "half_space":
            builder.add_shape_plane(body=body, width=0.0, length=0.0, **common)
        case _:
            raise ValueError(shape.kind)


def _add_joint(builder: ModelBuilder, joint: Joint, index_of: dict[str, int], dt: float) -> int:
    parent, child = index_of[joint.parent], index_of[joint.child]
    common = {"parent_xform": wp.transform(joint.position, (0.0, 0.0, 0.0, 1.0)), "label": joint.name}
    if joint.kind == "fixed":
        return builder.add_joint_fixed(parent, child, **common)
    if joint.kind in ("planar", "universal"):
        free = JointDofConfig(limit_ke=0.0, damping=joint.damping)
        linear, angular = ("xy", "z") if joint.kind == "planar" else ("", "xy")
        return builder.add_joint_d6(
            parent,
            child,
            linear_axes=[free.merged(axis=axis) for axis in linear],
            angular_axes=[free.merged(axis=axis) for axis in angular],
            **common,
        )
    add = builder.add_joint_revolute if joint.kind == "revolute" else builder.add_joint_prismatic
    limits = {}
    if joint.limit is not None:
        limits = {
            "limit_lower": joint.limit[0],
            "limit_upper": joint.limit[1],
            "limit_ke": LIMIT_STIFFNESS,
            "limit_kd": LIMIT_STIFFNESS * dt,
        }
    drive = {}
    if joint.drive is not None:
        drive = {
            "target_ke": joint.drive[0],
            "target_kd": joint.drive[1],
            "target_pos": joint.target[0],
            "target_vel": joint.target[1],
            "effort_limit": joint.effort_limit,
            "actuator_mode": JointTargetMode.POSITION_VELOCITY,
        }
    return add(
        parent,
        child,
        axis=joint.axis,
        damping=joint.damping,
        armature=joint.armature,
        **limits,
        **drive,
        **common,
    )


def _build_world(scene: Scene, dt: float) -> ModelBuilder:
    builder = ModelBuilder()
    index_of = {WORLD: -1}
    jointed = {joint.child for joint in scene.joints}
    for body in scene.bodies:
        index_of[body.name] = builder.add_link(
            xform=wp.transform(body.position, body.rotation),
            mass=body.mass,
            com=body.com,
            inertia=np.diag(body.inertia),
            label=body.name,
        )
    joint_of = {joint.name: _add_joint(builder, joint, index_of, dt) for joint in scene.joints}
    for body in scene.free_bodies:
        joint_of[body.name] = builder.add_joint_free(index_of[body.name], label=body.name)
    builder.add_articulation(sorted(joint_of.values()))
    for shape in scene.shapes:
        if shape.engine is not Engine.DRAKE:
            _add_shape(builder, index_of[shape.body], shape)
    assert jointed | {body.name for body in scene.free_bodies} == {body.name for body in scene.bodies}
    return builder


def _set_initial_state(model: Model, state: State, scenes: Sequence[Scene]) -> None:
    """Write the initial joint coordinates and velocities of all scenes."""
    q, qd = state.joint_q.numpy(), state.joint_qd.numpy()
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    joint_start = model.joint_world_start.numpy()
    for world, scene in enumerate(scenes):
        index_of = {
            label: joint_start[world] + offset
            for offset, label in enumerate(model.joint_label[joint_start[world] : joint_start[world + 1]])
        }
        for joint in scene.joints:
            if joint.kind != "fixed":
                coord, dof = q_start[index_of[joint.name]], qd_start[index_of[joint.name]]
                q[coord : coord + np.size(joint.q)] = joint.q
                qd[dof : dof + np.size(joint.qd)] = joint.qd
        for body in scene.free_bodies:
            coord, dof = q_start[index_of[body.name]], qd_start[index_of[body.name]]
            q[coord : coord + 7] = [*body.position, *body.rotation]
            com = rotation_matrix(np.asarray(body.rotation)) @ np.asarray(body.com)
            qd[dof : dof + 6] = [*(np.asarray(body.velocity) + np.cross(body.omega, com)), *body.omega]
    state.joint_q.assign(q)
    state.joint_qd.assign(qd)


class Worlds:
    """All scenes in one model, ready to step."""

    def __init__(self, scenes: Sequence[Scene], dt: float, **options):
        self.scenes, self.dt = scenes, dt
        builder = ModelBuilder()
        for scene in scenes:
            builder.add_world(_build_world(scene, dt))
        self.model = builder.finalize("cpu")
        self.model.set_gravity([scene.gravity for scene in scenes])
        self.pipeline = CollisionPipeline(self.model)
        self.contacts = self.pipeline.contacts()
        self.control = self.model.control()
        self.state, self._next = self.model.state(), self.model.state()
        _set_initial_state(self.model, self.state, scenes)
        eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)
        # Drake's minimizer is found to 1e-6 of the momenta or better; ours must not stop earlier.
        options = {"contact_preset_variant": "drake", "line_search_variant": "exact_root"} | options
        self.solver = SolverSAP(self.model, **options)

    def step(self) -> None:
        """Advance all worlds by one step."""
        self.pipeline.collide(self.state, self.contacts)
        self.solver.step(self.state, self._next, self.control, self.contacts, self.dt)
        self.state, self._next = self._next, self.state

    def simulate(self, duration: float) -> list[np.ndarray]:
        """Body poses of each world after every step, each of shape [step, body, 7]."""
        poses = []
        for _ in range(round(duration / self.dt)):
            self.step()
            poses.append(self.state.body_q.numpy().copy())
        start = self.model.body_world_start.numpy()
        stacked = np.array(poses, dtype=float)
        return [stacked[:, start[world] : start[world + 1]] for world in range(len(self.scenes))]
