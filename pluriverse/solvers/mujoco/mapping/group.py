"""MujocoGroup: the worlds of one structure in MuJoCo, with the indices of all their entities.

This is the interface between the conversion, which fills groups, and the engines, which step them. Indices of
Pluriverse entities are world-local: entity k of world `worlds[row]` has the flat index `first_body[row] + k`
(`first_joint`, `first_coord`, ...). Indices of MuJoCo are those of `model`. "None" is -1 throughout.

An engine writes the following before a step:

- Coordinates. For every joint, by `joint_kind`:
  `SCALAR`: `qpos[joint_qpos + i] = joint_q[joint_coord + i]`, likewise `qvel` and `joint_qd`.
  `BALL`: `qpos = c * q * c^-1` with `c = joint_rotation[row, joint]`, all as quaternions, MuJoCo's being
  wxyz. `qvel = rotate(c * q^-1, qd)`: public velocities are in the joint frame of the parent, MuJoCo's in
  the body.
  `FREE`: with `X = joint_X_p[flat] * q * joint_X_c[flat]^-1`, `qpos = (X.p, X.q as wxyz)`; with the public
  `qd = (v, w)`, in world axes and `v` at the centre of mass c, `qvel = (v - w x (R c), R^T w)`.
  `FLOAT` follows from the poses of both bodies (`exchange.floating`).
  `NONE` (fixed) has no coordinates; those fixed to the world are in `mocap_joint` instead.
- Mocap bodies. `mocap_pos, mocap_quat` of mocap body m is `joint_X_p * joint_X_c^-1` of `mocap_joint[m]`
  (`mocap_pose` gives all of them). They change only by `notify_model_changed(JOINT_PROPERTIES)`.
- Controls. `ctrl[position_ctrl[dof]] = joint_target_pos + joint_act / target_ke`,
  `ctrl[velocity_ctrl[dof]] = joint_target_vel`, `ctrl[effort_ctrl[dof]] = joint_act`; where there is a
  velocity control and no position control, it takes `joint_target_vel + joint_act / target_kd`. What the
  effort limit bounds, the actuator or its joint, `drives` says. Where the gain is 0,
  `joint_act` belongs into `qfrc_applied`. Those of general actuators are copied unchanged:
  `ctrl[direct_ctrl] = control.mujoco.ctrl[direct_row]`.
- Applied forces. `joint_f` of `SCALAR` goes to `qfrc_applied` unchanged. That of `BALL` is a torque in the
  parent's joint frame, rotated like velocities. That of `FREE` is (force, torque about the centre of mass) in
  world axes, as `xfrc_applied` of the body, to which `body_f` is added. Forces on kinematic bodies
  (`model.body_flags`, which may change) and their joints are left out.
- Equality. `eq_active` is `fields["eq_active0"]` or `model.eq_active0`; `mjData` has its own copy, which is
updated when it changes.

After a step the same maps lead back. Joints of kinematic bodies get their prescribed state
(`exchange.prescribed`).

MuJoCo's body frames are ours, so `xpos, xquat` of `body_mj[body]` is `body_q`. A body without mass and shapes
between two joints has no MuJoCo body (`body_mj` is -1): its joints are joints of the next body.

The functions around it: `conversion.convert_model(model, options)` returns all groups of a model, and
`refresh.refresh_groups(model, options, groups, flags)` brings them up to date after an edit of the model and
returns, per group, the names of the fields it wrote (in `fields` or in `model`). `SolverMuJoCo` keeps the
groups as `groups` and hands the names to its engine, `engine.fields_changed(group_index, names)`.
"""

import enum
from dataclasses import dataclass, field
from typing import Any

import numpy as np


class JointKind(enum.IntEnum):
    """Conversion between the coordinates of a joint and those of MuJoCo."""

    NONE = 0
    """Fixed: there are none."""
    SCALAR = 1
    """One number each, the same in both."""
    BALL = 2
    """A quaternion, about other axes."""
    FREE = 3
    """A pose."""
    FLOAT = 4
    """A pose relative to a body, whereas MuJoCo's is relative to the world."""


@dataclass
class MujocoGroup:
    """Worlds of one structure, with the MuJoCo model that they share."""

    worlds: np.ndarray
    """Worlds of the group, ascending, shape [row]."""
    spec: Any
    """Editable description (`mujoco.MjSpec`) that `model` was compiled from: that of the first world."""
    model: Any
    """Compiled model (`mujoco.MjModel`) of the first world. Its `opt.timestep` is set by the engine."""
    fields: dict[str, np.ndarray] = field(default_factory=dict)
    """Arrays of `mjModel` that differ between the worlds, by name, shape [row, ...] with the rest as in
    `model`. Names with a dot are fields of `opt` (`opt.gravity`). For other fields all worlds have the values
    of `model`. A name once listed stays listed, and its array keeps its memory."""
    revision: int = 0
    """Incremented whenever `model` itself, in contrast to `fields`, was written to or recompiled."""

    # first entity of each world in the flat arrays of the model, shape [row]
    first_body: np.ndarray = field(default_factory=lambda: _no_index())
    first_joint: np.ndarray = field(default_factory=lambda: _no_index())
    first_coord: np.ndarray = field(default_factory=lambda: _no_index())
    first_dof: np.ndarray = field(default_factory=lambda: _no_index())
    first_shape: np.ndarray = field(default_factory=lambda: _no_index())
    first_equality: np.ndarray = field(default_factory=lambda: _no_index())

    # joints, shape [joint]
    joint_kind: np.ndarray = field(default_factory=lambda: _no_index())
    """`JointKind`."""
    joint_child: np.ndarray = field(default_factory=lambda: _no_index())
    """Body that the joint moves."""
    joint_parent: np.ndarray = field(default_factory=lambda: _no_index())
    """Parent body of the joint, -1 for the world."""
    joint_coord: np.ndarray = field(default_factory=lambda: _no_index())
    """First public coordinate."""
    joint_dof: np.ndarray = field(default_factory=lambda: _no_index())
    """First public degree of freedom."""
    joint_coord_count: np.ndarray = field(default_factory=lambda: _no_index())
    joint_dof_count: np.ndarray = field(default_factory=lambda: _no_index())
    joint_qpos: np.ndarray = field(default_factory=lambda: _no_index())
    """First entry of `qpos`."""
    joint_qvel: np.ndarray = field(default_factory=lambda: _no_index())
    """First entry of `qvel`."""
    joint_rotation: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 4)))
    """Rotation xyzw of the joint's frame in MuJoCo's body, used for `BALL`, shape [row, joint, 4]."""

    # degrees of freedom, shape [dof]
    dof_qvel: np.ndarray = field(default_factory=lambda: _no_index())
    """Entry of `qvel` of the same axis of the same joint."""
    dof_joint: np.ndarray = field(default_factory=lambda: _no_index())
    """MuJoCo's joint."""
    position_ctrl: np.ndarray = field(default_factory=lambda: _no_index())
    """Entry of `ctrl` that takes the position target."""
    velocity_ctrl: np.ndarray = field(default_factory=lambda: _no_index())
    """Entry of `ctrl` that takes the velocity target."""
    effort_ctrl: np.ndarray = field(default_factory=lambda: _no_index())
    """Entry of `ctrl` that takes the effort."""

    # general actuators, after those of the drives
    direct_ctrl: np.ndarray = field(default_factory=lambda: _no_index())
    """Entry of `ctrl` of each, shape [actuator]."""
    direct_row: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    """Its entry in `control.mujoco.ctrl`, shape [row, actuator]."""
    start_act: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """`act` of a world that starts anew, shape [row, na]."""

    # bodies
    body_mj: np.ndarray = field(default_factory=lambda: _no_index())
    """MuJoCo's body, shape [body]."""
    mj_body: np.ndarray = field(default_factory=lambda: _no_index())
    """Body of each of MuJoCo's, -1 for the world and helpers, shape [nbody]."""
    mocap_joint: np.ndarray = field(default_factory=lambda: _no_index())
    """Joint that fixes the body to the world, in the order of MuJoCo's mocap bodies, shape [nmocap]."""
    mocap_pose: np.ndarray = field(default_factory=lambda: np.zeros((0, 0, 7)))
    """Pose (position, quaternion wxyz as in `mjData`) of mocap bodies, shape [row, nmocap, 7]."""

    # shapes
    shape_geom: np.ndarray = field(default_factory=lambda: _no_index())
    """MuJoCo's geom, shape [shape]; -1 for sites and shapes that never collide."""
    shape_site: np.ndarray = field(default_factory=lambda: _no_index())
    """MuJoCo's site, shape [shape]."""
    geom_shape: np.ndarray = field(default_factory=lambda: _no_index())
    """Shape of each geom: world-local where >= 0, else the flat global shape `-1 - value`, shape [ngeom]."""
    site_shape: np.ndarray = field(default_factory=lambda: _no_index())
    """Shape of each site, as `geom_shape` codes it; `NO_SHAPE` for sites of constraints, shape [nsite]."""
    geom_force_space: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    """Whether stiffness and damping of a geom are forces (`SOLREF_MODE_FORCE_SPACE`), for external contacts,
    shape [row, ngeom]."""
    geom_ke: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """Contact stiffness [N/m], shape [row, ngeom]."""
    geom_kd: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    """Contact damping [N·s/m], shape [row, ngeom]."""

    # equality constraints
    equality_eq: np.ndarray = field(default_factory=lambda: np.zeros((0, 2), dtype=np.int64))
    """MuJoCo's constraints (a hinge is two), shape [equality constraint, 2]."""
    notes: list[str] = field(default_factory=list)
    """Texts on what the conversion changed about the worlds."""
    plan: Any = None
    """Plan of the conversion (`group_plan.GroupPlan`), for later updates."""
    compiled: np.ndarray | None = None
    """Compiled-in values of the first world (`grouping.compiled_numbers`)."""
    switched: bool = False
    """Whether geoms were ever switched off (`shape_enabled`)."""
    pair_off: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=bool))
    """Whether each explicit contact pair has a geom that is switched off, shape [row, npair]."""
    tracked: frozenset[str] = frozenset()
    """Names of the fields that kernels keep up to date (`field_sync`). For the C engine they are written
    directly into `fields`; for MuJoCo Warp they are on the device only."""
    kernels: Any = None
    """The kernels that compute the fields (`group_kernels.GroupKernels`) for `model`."""
    general_bodies: frozenset[int] = frozenset()
    """MuJoCo's bodies that were compiled without the shortcuts for special inertial frames."""

    @property
    def world_count(self) -> int:
        """Number of worlds."""
        return len(self.worlds)

    def value(self, name: str) -> np.ndarray:
        """Return a field for all worlds, shape [row, ...], whether it differs between them or not."""
        if name in self.fields:
            return self.fields[name]
        shared = self.shared(name)
        return np.broadcast_to(shared, (self.world_count, *shared.shape))

    def has_field(self, name: str) -> bool:
        """Return whether the model has a field, with entries, in this version of MuJoCo."""
        if name == "stat.meaninertia" and self.model.nv == 0:
            return False  # nothing moves
        try:
            return self.shared(name).size > 0
        except AttributeError:
            return False

    def shared(self, name: str) -> np.ndarray:
        """Return a field of `model`; `opt.gravity` is one of its options."""
        owner = self.model
        for part in name.split(".")[:-1]:
            owner = getattr(owner, part)
        return np.asarray(getattr(owner, name.split(".")[-1]))


NO_SHAPE = np.iinfo(np.int32).min
"""Entry of `site_shape` where a site belongs to no shape."""


def _no_index() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)
