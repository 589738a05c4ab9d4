"""Tables: the data of a builder, and the attributes that expose it.

The columns are those of the arrays of a model (`pluriverse.model.schema`). Each attribute `NAME = column()`
is a NumPy array, one row per entity, to be read and written in place. An array is outdated as soon as
another entity is added; fetch it again from the builder.
"""

from typing import Any, Self

import numpy as np

from pluriverse.builder.columns import Column, Table, column, make_tables
from pluriverse.builder.custom_attribute import CustomFrequency
from pluriverse.builder.custom_attribute_table import CustomAttributeTable
from pluriverse.builder.inputs import Vector, as_gravity
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.builder.shape_config import ShapeConfig
from pluriverse.model.entity_names import labelled
from pluriverse.types import Axis, Entity

GRAVITY = -9.81
"""Default gravity along the up axis of a builder [m/s²]."""


class BuilderTables:
    """The data of a builder: a table per kind of entity, labels, meshes, custom attributes, defaults."""

    # bodies
    body_q = column(writable=False)
    """Pose given to `add_link` or `add_body` [m, xyzw], shape [body, 7]. Read-only: a free joint copied it
    into `joint_q`, from which the model starts."""
    body_mass = column()
    body_inertia = column()
    body_com = column()
    body_flags = column()
    body_lock_inertia = column(Entity.BODY, np.bool_)
    """Whether shapes add nothing to the mass of the body, shape [body]."""
    body_world = column(writable=False)
    """World, -1 outside of any, shape [body]."""

    # joints
    joint_type = column(writable=False)
    joint_parent = column(writable=False)
    joint_child = column(writable=False)
    joint_X_p = column()  # noqa: N815 (the name of the model's array)
    joint_X_c = column()  # noqa: N815 (the name of the model's array)
    joint_q_start = column(Entity.JOINT, np.int32, writable=False)
    """First coordinate in `joint_q`, shape [joint]."""
    joint_qd_start = column(Entity.JOINT, np.int32, writable=False)
    """First degree of freedom in `joint_qd`, shape [joint]."""
    joint_dof_dim = column(writable=False)
    joint_articulation = column()
    """Articulation, -1 before `add_articulation`, shape [joint]. Write -1 to make it a loop joint."""
    joint_collision_filter_parent = column(Entity.JOINT, np.bool_, (), True)
    """Whether the shapes of parent and child are filtered against each other, shape [joint]."""
    joint_enabled = column()
    """Whether the joint acts; only a loop joint may be disabled, shape [joint]."""
    joint_world = column(writable=False)
    """World, -1 outside of any, shape [joint]."""
    joint_q = column()
    """Initial coordinates [m, rad, quaternion xyzw], shape [coord]."""
    joint_target_q = column()
    """Position targets, numbered like `joint_q` [m or rad]; entries of quaternions are not used, shape
    [coord]. Values written here are copied to `joint_target_pos` in `finalize`."""
    _joint_target_q_before = column(Entity.JOINT_COORD, np.float64)
    """`joint_target_q` when the joint was added; entries that differ now were written to."""

    # degrees of freedom
    joint_qd = column()
    """Initial velocities [m/s or rad/s], shape [dof]."""
    joint_f = column()
    """Initial generalized force [N or N·m], shape [dof]."""
    joint_act = column()
    """Initial force of the drive [N or N·m], shape [dof]."""
    joint_axis = column()
    joint_armature = column()
    joint_damping = column()
    joint_friction = column()
    joint_target_mode = column()
    joint_target_ke = column()
    joint_target_kd = column()
    joint_target_pos = column()
    """Position target [m or rad], shape [dof]."""
    joint_target_vel = column()
    """Velocity target [m/s or rad/s], shape [dof]."""
    joint_target_qd = joint_target_vel
    """Another name of `joint_target_vel`."""
    joint_target_lower = column()
    joint_target_upper = column()
    joint_limit_lower = column()
    joint_limit_upper = column()
    joint_limit_ke = column()
    """Stiffness of the limits [N/m or N·m/rad], NaN where not given, shape [dof]."""
    joint_limit_kd = column()
    """Damping of the limits [N·s/m or N·m·s/rad], NaN where not given, shape [dof]."""
    joint_effort_limit = column()
    joint_velocity_limit = column()

    # articulations
    articulation_world = column(writable=False)
    """World, -1 outside of any, shape [articulation]."""

    # shapes
    shape_body = column(writable=False)
    shape_type = column()
    shape_transform = column()
    shape_scale = column()
    shape_flags = column()
    shape_collision_group = column()
    """Collision group, shape [shape]."""
    shape_collision_filter_parent = column(Entity.SHAPE, np.bool_, (), True)
    """Whether the shape is filtered against the shapes of parent and children of its body, shape [shape]."""
    shape_source_index = column()
    shape_margin = column()
    shape_gap = column()
    shape_material_ke = column()
    shape_material_ke_per_mass = column()
    shape_material_tau = column()
    shape_material_mu = column()
    shape_material_restitution = column()
    shape_material_mu_torsional = column()
    shape_material_mu_rolling = column()
    shape_material_kh = column()
    shape_is_solid = column()
    shape_color = column()
    shape_appearance = column()
    shape_world = column(writable=False)
    """World, -1 outside of any, shape [shape]."""

    # equality constraints
    equality_constraint_type = column(writable=False)
    equality_constraint_body1 = column(writable=False)
    equality_constraint_body2 = column(writable=False)
    equality_constraint_anchor = column()
    equality_constraint_axis = column()
    equality_constraint_torquescale = column()
    equality_constraint_relpose = column()
    """Constrained pose of the second body in the first [m, xyzw], NaN for that at the initial coordinates,
    shape [equality constraint, 7]."""
    equality_constraint_joint1 = column(writable=False)
    equality_constraint_joint2 = column(writable=False)
    equality_constraint_joint1_axis = column(writable=False)
    equality_constraint_joint2_axis = column(writable=False)
    equality_constraint_polycoef = column()
    equality_constraint_enabled = column()
    equality_constraint_world = column(writable=False)
    """World, -1 outside of any, shape [equality constraint]."""

    def __init__(self) -> None:
        self.tables = make_tables(BuilderTables)
        """Table of each kind of entity, with a column for each array above. Those of worlds and of filtered
        pairs of shapes have no array."""
        self.tables[Entity.WORLD] = Table({"gravity": Column(np.float64, (3,), np.nan)})  # NaN: own_gravity
        self.shape_filters = Table({"shape": Column(np.int32, (2,))})
        """Filtered pairs of shapes."""
        self.body_label: list[str] = []
        """Name, shape [body]."""
        self.joint_label: list[str] = []
        """Name, shape [joint]."""
        self.articulation_label: list[str] = []
        """Name, shape [articulation]."""
        self.shape_label: list[str] = []
        """Name, shape [shape]."""
        self.equality_constraint_label: list[str] = []
        """Name, shape [equality constraint]."""
        self.world_label: list[str] = []
        """Name, shape [world]."""
        self.own_gravity: float | np.ndarray | None = None
        """Gravity that was set [m/s²], or None."""
        self._up_axis = Axis.Z
        self._current_world = -1
        self.meshes: list[Any] = []
        """The different `Mesh`es of all shapes, only added to by `add_shape_mesh` and its like."""
        self.mesh_of_content: dict[bytes, int] = {}
        """Index of each mesh by its contents."""
        self.appearances: list[Any] = []
        """The different `Appearance`s of all shapes, only added to by `add_shape` and `set_appearance`."""
        self.appearance_of_content: dict[bytes, int] = {}
        """Index of each appearance by its contents."""
        self.custom_attributes = CustomAttributeTable()
        """The declared attributes with the values given so far, by key ("namespace:name", or "name")."""
        self.custom_frequencies: dict[str, CustomFrequency] = {}
        """The declared custom frequencies, by key."""
        self.custom_rows: dict[str, Table] = {}
        """Rows of each custom frequency, with their world."""
        self.is_for_mujoco: bool = False
        """Whether importers keep actuators, springs and options as MuJoCo has them, even if other solvers
        cannot use them; `SolverMuJoCo.register_custom_attributes` sets it."""
        self.default_body_armature: float = 0.0
        """Rotational inertia added to the diagonal of the inertia of every new body [kg·m²]."""
        self.default_joint_cfg = JointDofConfig()
        """Default configuration of joint axes."""
        self.default_shape_cfg = ShapeConfig()
        """Default configuration of shapes."""
        self.requested_state_attributes: set[str] = set()
        """Names of the arrays that `request_state_attributes` asked for."""
        self.rigid_gap: float = 0.1
        """Gap of shapes whose configuration does not set one [m]."""

    def __copy__(self) -> Self:
        """Return a builder that shares all tables; replacing a table in it does not change this one."""
        result = type(self).__new__(type(self))
        result.__dict__.update(self.__dict__)
        result.tables = dict(self.tables)
        return result

    def column(self, name: str) -> np.ndarray:
        """Return the writable array of a column, even if it is read-only as an attribute."""
        view = vars(BuilderTables)[name]
        return self.tables[view.entity].view(name)

    @property
    def body_count(self) -> int:
        """Number of bodies."""
        return len(self.tables[Entity.BODY])

    @property
    def joint_count(self) -> int:
        """Number of joints."""
        return len(self.tables[Entity.JOINT])

    @property
    def joint_coord_count(self) -> int:
        """Number of joint coordinates."""
        return len(self.tables[Entity.JOINT_COORD])

    @property
    def joint_dof_count(self) -> int:
        """Number of joint degrees of freedom."""
        return len(self.tables[Entity.JOINT_DOF])

    @property
    def articulation_count(self) -> int:
        """Number of articulations."""
        return len(self.tables[Entity.ARTICULATION])

    @property
    def shape_count(self) -> int:
        """Number of shapes."""
        return len(self.tables[Entity.SHAPE])

    @property
    def equality_constraint_count(self) -> int:
        """Number of equality constraints."""
        return len(self.tables[Entity.EQUALITY_CONSTRAINT])

    @property
    def world_count(self) -> int:
        """Number of worlds."""
        return len(self.tables[Entity.WORLD])

    @property
    def current_world(self) -> int:
        """World that new entities belong to, -1 outside of any. Changed by `begin_world` and `end_world`."""
        return self._current_world

    @property
    def up_axis(self) -> Axis:
        """Axis that points up: that of gravity given as a number, of the ground plane and of imported assets.

        Assign an axis, its name ("y") or its number before adding entities; existing ones do not change.
        """
        return self._up_axis

    @up_axis.setter
    def up_axis(self, value: Axis | str | int) -> None:
        self._up_axis = Axis.from_any(value)

    @property
    def gravity(self) -> float | np.ndarray:
        """Default gravity of worlds [m/s²], a vector or its component along `up_axis`.

        It is -9.81 if not set. `add_world` and `replicate` give the copies the gravity of the builder they
        copy, if that was set.
        """
        return GRAVITY if self.own_gravity is None else self.own_gravity

    @gravity.setter
    def gravity(self, value: float | Vector) -> None:
        vector = as_gravity(value)
        self.own_gravity = float(np.asarray(value)) if np.ndim(value) == 0 else vector

    @property
    def shape_source(self) -> list[Any]:
        """The `Mesh` of each shape, None for primitives, shape [shape].

        A copy: to change it, write to `shape_source_index`, an index into `meshes`.
        """
        return [self.meshes[index] if index >= 0 else None for index in self.shape_source_index.tolist()]

    def body_name(self, body: int) -> str:
        """Return the name of a body for messages: label, index and world."""
        return self._name(Entity.BODY, body) if body >= 0 else "the world"

    def joint_name(self, joint: int) -> str:
        """Return the name of a joint for messages: label, index and world."""
        return self._name(Entity.JOINT, joint)

    def shape_name(self, shape: int) -> str:
        """Return the name of a shape for messages: label, index and world."""
        return self._name(Entity.SHAPE, shape)

    def constraint_name(self, constraint: int) -> str:
        """Return the name of an equality constraint for messages: label, index and world."""
        return self._name(Entity.EQUALITY_CONSTRAINT, constraint)

    def _name(self, kind: Entity, index: int) -> str:
        label = getattr(self, f"{kind.key}_label")[index]
        world = int(getattr(self, f"{kind.key}_world")[index])
        return labelled(kind, label, index, world, self.world_count)
