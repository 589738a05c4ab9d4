"""Storage: the tables of a builder and the attributes that show them.

Every attribute below is a NumPy array, one row per entity, to be read and written in place. An array is
outdated as soon as another entity is added; fetch it again from the builder.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from pluriverse.builder.columns import Column, ColumnView, Table
from pluriverse.builder.filter_pairs import FilterPairs
from pluriverse.types import BodyFlags, JointTargetMode

_POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)


def _body_table() -> Table:
    return Table(
        {
            "q": Column(np.float64, (7,), _POSE),
            "mass": Column(np.float64),
            "inertia": Column(np.float64, (3, 3)),
            "com": Column(np.float64, (3,)),
            "flags": Column(np.int32, (), int(BodyFlags.DYNAMIC)),
            "lock_inertia": Column(np.bool_),
            "world": Column(np.int32, (), -1),
        }
    )


def _joint_table() -> Table:
    return Table(
        {
            "type": Column(np.int32),
            "parent": Column(np.int32),
            "child": Column(np.int32),
            "X_p": Column(np.float64, (7,), _POSE),
            "X_c": Column(np.float64, (7,), _POSE),
            "q_start": Column(np.int32),
            "qd_start": Column(np.int32),
            "dof_dim": Column(np.int32, (2,)),
            "articulation": Column(np.int32, (), -1),
            "filter_parent": Column(np.bool_, (), True),
            "enabled": Column(np.bool_, (), True),
            "world": Column(np.int32, (), -1),
        }
    )


def _dof_table() -> Table:
    return Table(
        {
            "qd": Column(np.float64),
            "f": Column(np.float64),
            "act": Column(np.float64),
            "axis": Column(np.float64, (3,)),
            "armature": Column(np.float64),
            "damping": Column(np.float64),
            "friction": Column(np.float64),
            "target_mode": Column(np.int32, (), int(JointTargetMode.NONE)),
            "target_ke": Column(np.float64),
            "target_kd": Column(np.float64),
            "target_pos": Column(np.float64),
            "target_vel": Column(np.float64),
            "target_lower": Column(np.float64, (), -np.inf),
            "target_upper": Column(np.float64, (), np.inf),
            "limit_lower": Column(np.float64),
            "limit_upper": Column(np.float64),
            "limit_ke": Column(np.float64),
            "limit_kd": Column(np.float64),
            "effort_limit": Column(np.float64),
            "velocity_limit": Column(np.float64),
        }
    )


def _shape_table() -> Table:
    return Table(
        {
            "body": Column(np.int32, (), -1),
            "type": Column(np.int32),
            "transform": Column(np.float64, (7,), _POSE),
            "scale": Column(np.float64, (3,)),
            "flags": Column(np.int32),
            "collision_group": Column(np.int32),
            "filter_parent": Column(np.bool_, (), True),
            "mesh": Column(np.int32, (), -1),
            "margin": Column(np.float64),
            "gap": Column(np.float64),
            "ke": Column(np.float64),
            "ke_per_mass": Column(np.float64, (), np.nan),
            "tau": Column(np.float64),
            "mu": Column(np.float64),
            "restitution": Column(np.float64),
            "mu_torsional": Column(np.float64),
            "mu_rolling": Column(np.float64),
            "kh": Column(np.float64),
            "is_solid": Column(np.bool_, (), True),
            "color": Column(np.float64, (3,)),
            "appearance": Column(np.int32, (), -1),
            "world": Column(np.int32, (), -1),
        }
    )


class BuilderStorage:
    """Tables of bodies, joints, coordinates, degrees of freedom, articulations and shapes."""

    # bodies
    body_q = ColumnView("_bodies", "q", writable=False)
    """Pose given to `add_link` or `add_body` [m, xyzw], shape [body, 7]. Read-only: a free joint took it over
    into `joint_q`, which is what the model starts from."""
    body_mass = ColumnView("_bodies", "mass")
    """Mass [kg], shape [body]."""
    body_inertia = ColumnView("_bodies", "inertia")
    """Rotational inertia about the centre of mass [kg·m²], body axes, shape [body, 3, 3]."""
    body_com = ColumnView("_bodies", "com")
    """Centre of mass [m], body frame, shape [body, 3]."""
    body_flags = ColumnView("_bodies", "flags")
    """`BodyFlags`, shape [body]."""
    body_lock_inertia = ColumnView("_bodies", "lock_inertia")
    """Whether shapes add nothing to the mass of the body, shape [body]."""
    body_world = ColumnView("_bodies", "world", writable=False)
    """World, -1 outside of any, shape [body]."""

    # joints
    joint_type = ColumnView("_joints", "type", writable=False)
    """`JointType`, shape [joint]."""
    joint_parent = ColumnView("_joints", "parent", writable=False)
    """Parent body, -1 for the world, shape [joint]."""
    joint_child = ColumnView("_joints", "child", writable=False)
    """Child body, shape [joint]."""
    joint_X_p = ColumnView("_joints", "X_p")  # noqa: N815 (the name of the model's array)
    """Joint frame in the parent body [m, xyzw], shape [joint, 7]."""
    joint_X_c = ColumnView("_joints", "X_c")  # noqa: N815 (the name of the model's array)
    """Joint frame in the child body [m, xyzw], shape [joint, 7]."""
    joint_q_start = ColumnView("_joints", "q_start", writable=False)
    """First coordinate in `joint_q`, shape [joint]."""
    joint_qd_start = ColumnView("_joints", "qd_start", writable=False)
    """First degree of freedom in `joint_qd`, shape [joint]."""
    joint_dof_dim = ColumnView("_joints", "dof_dim", writable=False)
    """Number of linear and of angular degrees of freedom, shape [joint, 2]."""
    joint_articulation = ColumnView("_joints", "articulation", writable=False)
    """Articulation, -1 before `add_articulation`, shape [joint]."""
    joint_collision_filter_parent = ColumnView("_joints", "filter_parent")
    """Whether the shapes of parent and child are filtered against each other, shape [joint]."""
    joint_enabled = ColumnView("_joints", "enabled")
    """Whether the joint acts; only one that closes a loop may be off, shape [joint]."""
    joint_world = ColumnView("_joints", "world", writable=False)
    """World, -1 outside of any, shape [joint]."""
    joint_q = ColumnView("_coords", "q")
    """Initial coordinates [m, rad, quaternion xyzw], shape [coord]."""
    joint_target_q = ColumnView("_coords", "target_q")
    """Position targets, numbered like `joint_q` [m or rad]; entries of quaternions are not used, shape
    [coord]. What is written here goes to `joint_target_pos` in `finalize`."""

    # degrees of freedom
    joint_qd = ColumnView("_dofs", "qd")
    """Initial velocities [m/s or rad/s], shape [dof]."""
    joint_f = ColumnView("_dofs", "f")
    """Initial generalized force [N or N·m], shape [dof]."""
    joint_act = ColumnView("_dofs", "act")
    """Initial force of the drive [N or N·m], shape [dof]."""
    joint_axis = ColumnView("_dofs", "axis")
    """Axis in the joint frame, shape [dof, 3]."""
    joint_armature = ColumnView("_dofs", "armature")
    """Inertia added to the diagonal of the mass matrix [kg or kg·m²], shape [dof]."""
    joint_damping = ColumnView("_dofs", "damping")
    """Viscous damping [N·s/m or N·m·s/rad], shape [dof]."""
    joint_friction = ColumnView("_dofs", "friction")
    """Dry friction [N or N·m], shape [dof]."""
    joint_target_mode = ColumnView("_dofs", "target_mode")
    """`JointTargetMode` of the drive, shape [dof]."""
    joint_target_ke = ColumnView("_dofs", "target_ke")
    """Stiffness of the drive [N/m or N·m/rad], shape [dof]."""
    joint_target_kd = ColumnView("_dofs", "target_kd")
    """Damping of the drive [N·s/m or N·m·s/rad], shape [dof]."""
    joint_target_pos = ColumnView("_dofs", "target_pos")
    """Position target [m or rad], shape [dof]."""
    joint_target_vel = ColumnView("_dofs", "target_vel")
    """Velocity target [m/s or rad/s], shape [dof]."""
    joint_target_qd = ColumnView("_dofs", "target_vel")
    """Another name of `joint_target_vel`."""
    joint_target_lower = ColumnView("_dofs", "target_lower")
    """Least target that the drive follows [m or rad, in mode `VELOCITY` m/s or rad/s], shape [dof]."""
    joint_target_upper = ColumnView("_dofs", "target_upper")
    """Largest target that the drive follows, likewise, shape [dof]."""
    joint_limit_lower = ColumnView("_dofs", "limit_lower")
    """Lower limit [m or rad], shape [dof]."""
    joint_limit_upper = ColumnView("_dofs", "limit_upper")
    """Upper limit [m or rad], shape [dof]."""
    joint_limit_ke = ColumnView("_dofs", "limit_ke")
    """Stiffness of the limits [N/m or N·m/rad], NaN where not given, shape [dof]."""
    joint_limit_kd = ColumnView("_dofs", "limit_kd")
    """Damping of the limits [N·s/m or N·m·s/rad], NaN where not given, shape [dof]."""
    joint_effort_limit = ColumnView("_dofs", "effort_limit")
    """Largest force of the drive [N or N·m], shape [dof]."""
    joint_velocity_limit = ColumnView("_dofs", "velocity_limit")
    """Rated speed [m/s or rad/s], shape [dof]."""

    # articulations
    articulation_world = ColumnView("_articulations", "world", writable=False)
    """World, -1 outside of any, shape [articulation]."""

    # shapes
    shape_body = ColumnView("_shapes", "body", writable=False)
    """Body that carries the shape, -1 for the world, shape [shape]."""
    shape_type = ColumnView("_shapes", "type")
    """`GeoType`, shape [shape]."""
    shape_transform = ColumnView("_shapes", "transform")
    """Pose in the frame of the body [m, xyzw], shape [shape, 7]."""
    shape_scale = ColumnView("_shapes", "scale")
    """Size as `GeoType` says [m], shape [shape, 3]."""
    shape_flags = ColumnView("_shapes", "flags")
    """`ShapeFlags`, shape [shape]."""
    shape_collision_group = ColumnView("_shapes", "collision_group")
    """Collision group, shape [shape]."""
    shape_collision_filter_parent = ColumnView("_shapes", "filter_parent")
    """Whether the shape is filtered against the shapes of parent and children of its body, shape [shape]."""
    shape_source_index = ColumnView("_shapes", "mesh")
    """Index into `meshes`, -1 for none, shape [shape]."""
    shape_margin = ColumnView("_shapes", "margin")
    """Margin [m], shape [shape]."""
    shape_gap = ColumnView("_shapes", "gap")
    """Gap [m], shape [shape]."""
    shape_material_ke = ColumnView("_shapes", "ke")
    """Contact stiffness [N/m], NaN where it is not given, shape [shape]."""
    shape_material_ke_per_mass = ColumnView("_shapes", "ke_per_mass")
    """Contact stiffness per mass [1/s²], NaN where it is not given, shape [shape]."""
    shape_material_tau = ColumnView("_shapes", "tau")
    """Contact dissipation time [s], NaN where it is not given, shape [shape]."""
    shape_material_mu = ColumnView("_shapes", "mu")
    """Coefficient of friction, shape [shape]."""
    shape_material_restitution = ColumnView("_shapes", "restitution")
    """Coefficient of restitution, shape [shape]."""
    shape_material_mu_torsional = ColumnView("_shapes", "mu_torsional")
    """Coefficient of torsional friction [m], shape [shape]."""
    shape_material_mu_rolling = ColumnView("_shapes", "mu_rolling")
    """Coefficient of rolling friction [m], shape [shape]."""
    shape_material_kh = ColumnView("_shapes", "kh")
    """Pressure per depth of hydroelastic shapes [N/m³], shape [shape]."""
    shape_is_solid = ColumnView("_shapes", "is_solid")
    """Whether the shape is solid (or a shell), shape [shape]."""
    shape_color = ColumnView("_shapes", "color")
    """Red, green and blue from 0 to 1, shape [shape, 3]."""
    shape_appearance = ColumnView("_shapes", "appearance")
    """Index into `appearances`, -1 for none, shape [shape]."""
    shape_world = ColumnView("_shapes", "world", writable=False)
    """World, -1 outside of any, shape [shape]."""

    def __init__(self) -> None:
        self._bodies = _body_table()
        self._joints = _joint_table()
        self._coords = Table(
            {"q": Column(np.float64), "target_q": Column(np.float64), "target_q_seen": Column(np.float64)}
        )
        self._dofs = _dof_table()
        self._articulations = Table({"world": Column(np.int32, (), -1)})
        self._shapes = _shape_table()
        self._filters = Table({"shape": Column(np.int32, (2,))})
        self.body_label: list[str] = []
        """Name, shape [body]."""
        self.joint_label: list[str] = []
        """Name, shape [joint]."""
        self.articulation_label: list[str] = []
        """Name, shape [articulation]."""
        self.shape_label: list[str] = []
        """Name, shape [shape]."""
        self.meshes: list[Any] = []
        """The different `Mesh`es of all shapes, only added to by `add_shape_mesh` and its like."""
        self._mesh_of_content: dict[bytes, int] = {}
        self.appearances: list[Any] = []
        """The different `Appearance`s of all shapes, only added to by `add_shape` and `set_appearance`."""
        self._appearance_of_content: dict[bytes, int] = {}

    @property
    def body_count(self) -> int:
        """Number of bodies."""
        return len(self._bodies)

    @property
    def joint_count(self) -> int:
        """Number of joints."""
        return len(self._joints)

    @property
    def joint_coord_count(self) -> int:
        """Number of joint coordinates."""
        return len(self._coords)

    @property
    def joint_dof_count(self) -> int:
        """Number of joint degrees of freedom."""
        return len(self._dofs)

    @property
    def articulation_count(self) -> int:
        """Number of articulations."""
        return len(self._articulations)

    @property
    def shape_count(self) -> int:
        """Number of shapes."""
        return len(self._shapes)

    @property
    def shape_source(self) -> list[Any]:
        """The `Mesh` of each shape, None for primitives, shape [shape].

        A copy: to change it, write to `shape_source_index`, an index into `meshes`.
        """
        return [self.meshes[index] if index >= 0 else None for index in self.shape_source_index.tolist()]

    @property
    def shape_collision_filter_pairs(self) -> FilterPairs:
        """Pairs of shapes filtered by `add_shape_collision_filter_pair`: a list that can be written to."""
        return FilterPairs(self)

    @shape_collision_filter_pairs.setter
    def shape_collision_filter_pairs(self, pairs: Iterable[Any]) -> None:
        FilterPairs(self).replace(pairs)

    def _body_name(self, body: int) -> str:
        return f"body '{self.body_label[body]}' (index {body})" if body >= 0 else "the world"

    def _joint_name(self, joint: int) -> str:
        return f"joint '{self.joint_label[joint]}' (index {joint})"

    def _shape_name(self, shape: int) -> str:
        return f"shape '{self.shape_label[shape]}' (index {shape})"
