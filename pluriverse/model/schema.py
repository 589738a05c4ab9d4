"""Schema: every array of a model, a state and a control, declared once.

A declaration gives the entity of an array's entries, whether it belongs to the structure, which values it may
hold, and the flag that announces its changes. Its docstring gives meaning, unit, frame and shape. Everything
else derives from it: views, checks, randomization, variants, snapshots, scene files, the actor API and the
table in the documentation. A new property is declared here, used in a stage, and tested.
"""

import ast
import dataclasses
import inspect
import itertools
import math
import re
from typing import Any

import numpy as np
import warp as wp

from pluriverse.types import BodyFlags, Entity, JointTargetMode, ModelFlags

_FLAG_OF_ENTITY = {
    Entity.WORLD: ModelFlags.MODEL_PROPERTIES,
    Entity.BODY: ModelFlags.BODY_PROPERTIES,
    Entity.JOINT: ModelFlags.JOINT_PROPERTIES,
    Entity.JOINT_DOF: ModelFlags.JOINT_DOF_PROPERTIES,
    Entity.JOINT_COORD: ModelFlags.JOINT_PROPERTIES,
    Entity.SHAPE: ModelFlags.SHAPE_PROPERTIES,
    Entity.EQUALITY_CONSTRAINT: ModelFlags.CONSTRAINT_PROPERTIES,
}
_IDENTITY = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
_OF_CONTROL = "it only says where a new Control begins. Write to Simulation.control"
_OF_SIZE = "it follows from the size. Use geometry_size"


@dataclasses.dataclass(eq=False)
class ArraySpec:
    """Declaration of one array. As a class attribute it stands for the array until an instance makes it."""

    entity: Entity | None
    """Kind of entity that the array has one entry per; None for arrays of ranges, which have another
    length."""
    flag: ModelFlags
    """Flag of `notify_model_changed` that announces writes to it."""
    structural: bool
    """Whether it was evaluated when the model was made, so that writes to it change nothing."""
    low: float | None
    """Least number that it may hold; None for any."""
    keeps_positive: bool
    """Whether a number above zero must stay above zero: the mass of a body, the size of a shape."""
    may_be_unset: bool
    """Whether NaN stands for "not given", which leaves the choice to the solver."""
    may_be_infinite: bool
    """Whether infinity stands for "no limit"."""
    is_pose: bool
    """Whether it holds poses, whose positions and orientations are drawn separately."""
    places_bodies: bool
    """Whether body poses depend on it (as on joint coordinates)."""
    draw_instead: str | None
    """Why it cannot be drawn directly, and what can be drawn instead; None if it can."""
    default: Any
    """Default value of an entry; None for the one that type and `may_be_unset` imply."""
    width: int
    """Number of columns of an array of two dimensions."""
    on_request: bool
    """Whether states hold it only on request (`Model.request_state_attributes`), else None in its place. A
    step writes it and does not read it."""
    name: str = ""
    """Name of the array."""
    dtype: Any = None
    """Type of an entry, as Warp knows it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        self.dtype = owner.__annotations__[name].dtype
        if self.default is None:
            self.default = _IDENTITY if self.dtype is wp.transform else math.nan if self.may_be_unset else 0

    def __get__(self, instance: Any, owner: type | None = None) -> "ArraySpec":
        if instance is None:
            return self
        raise AttributeError(f"{type(instance).__name__}.{self.name} has not been made yet.")

    def are_unsound(self, values: np.ndarray) -> np.ndarray:
        """Return which numbers the array must not hold; `low` bounds plain numbers, not parts of vectors."""
        bad = np.isnan(values) & (not self.may_be_unset) | np.isinf(values) & (not self.may_be_infinite)
        if self.low is not None and self.dtype is wp.float32:
            bad |= values < self.low
        return bad

    @property
    def can_be_drawn(self) -> bool:
        """Whether a randomizer may draw it."""
        return self.entity is not None and not self.structural and self.draw_instead is None


def declare(
    entity: Entity | None,
    *,
    flag: ModelFlags | None = None,
    structural: bool = False,
    low: float | None = None,
    keeps_positive: bool = False,
    may_be_unset: bool = False,
    may_be_infinite: bool = False,
    is_pose: bool = False,
    places_bodies: bool = False,
    draw_instead: str | None = None,
    default: Any = None,
    width: int = 0,
    on_request: bool = False,
) -> Any:
    """Declare an array; see `ArraySpec` for the arguments. Without a flag it has that of its entity."""
    if flag is None:
        flag = ModelFlags(0) if entity is None else _FLAG_OF_ENTITY.get(entity, ModelFlags(0))
    return ArraySpec(
        entity,
        flag,
        structural,
        low,
        keeps_positive,
        may_be_unset,
        may_be_infinite,
        is_pose,
        places_bodies,
        draw_instead,
        default,
        width,
        on_request,
    )


class ModelArrays:
    """The arrays of a `Model`."""

    # worlds
    gravity: wp.array[wp.vec3] = declare(Entity.WORLD)
    """Acceleration of gravity [m/s²], world axes, shape [world]."""
    body_world_start: wp.array[int] = declare(None, structural=True)
    """First body of each world, shape [world + 2]."""
    shape_world_start: wp.array[int] = declare(None, structural=True)
    """First shape of each world, shape [world + 2]."""
    joint_world_start: wp.array[int] = declare(None, structural=True)
    """First joint of each world, shape [world + 2]."""
    articulation_world_start: wp.array[int] = declare(None, structural=True)
    """First articulation of each world, shape [world + 2]."""
    joint_dof_world_start: wp.array[int] = declare(None, structural=True)
    """First joint degree of freedom of each world, shape [world + 2]."""
    joint_coord_world_start: wp.array[int] = declare(None, structural=True)
    """First joint coordinate of each world, shape [world + 2]."""
    joint_constraint_world_start: wp.array[int] = declare(None, structural=True)
    """First joint constraint of each world, shape [world + 2]."""
    equality_constraint_world_start: wp.array[int] = declare(None, structural=True)
    """First equality constraint of each world, shape [world + 2]."""
    particle_world_start: wp.array[int] = declare(None, structural=True)
    """First particle of each world, shape [world + 2]."""

    # bodies
    body_q: wp.array[wp.transform] = declare(
        Entity.BODY, draw_instead="it follows from joint coordinates. Use InitialState"
    )
    """Initial pose of the body origin in the world [m, xyzw], shape [body]."""
    body_qd: wp.array[wp.spatial_vectorf] = declare(
        Entity.BODY, draw_instead="it follows from joint velocities. Use InitialState"
    )
    """Initial velocity of the centre of mass [m/s], then angular velocity [rad/s], world axes, shape
    [body]."""
    body_mass: wp.array[float] = declare(
        Entity.BODY, flag=ModelFlags.BODY_INERTIAL_PROPERTIES, low=0.0, keeps_positive=True
    )
    """Mass [kg], shape [body]."""
    body_inertia: wp.array[wp.mat33] = declare(Entity.BODY, flag=ModelFlags.BODY_INERTIAL_PROPERTIES, low=0.0)
    """Rotational inertia about the centre of mass [kg·m²], body axes, shape [body]."""
    body_com: wp.array[wp.vec3] = declare(
        Entity.BODY, flag=ModelFlags.BODY_INERTIAL_PROPERTIES, places_bodies=True
    )
    """Centre of mass [m], body frame, shape [body]."""
    body_flags: wp.array[int] = declare(Entity.BODY, structural=True, default=int(BodyFlags.DYNAMIC))
    """`BodyFlags`, shape [body]."""
    body_world: wp.array[int] = declare(Entity.BODY, structural=True, default=-1)
    """World, shape [body]."""

    # joints
    joint_type: wp.array[int] = declare(Entity.JOINT, structural=True)
    """`JointType`, shape [joint]."""
    joint_parent: wp.array[int] = declare(Entity.JOINT, structural=True)
    """Parent body, -1 for the world, shape [joint]."""
    joint_child: wp.array[int] = declare(Entity.JOINT, structural=True)
    """Child body, the one that the joint moves, shape [joint]."""
    joint_X_p: wp.array[wp.transform] = declare(Entity.JOINT, is_pose=True, places_bodies=True)  # noqa: N815
    """Joint frame in the parent body [m, xyzw], shape [joint]."""
    joint_X_c: wp.array[wp.transform] = declare(Entity.JOINT, is_pose=True, places_bodies=True)  # noqa: N815
    """Joint frame in the child body [m, xyzw], shape [joint]."""
    joint_articulation: wp.array[int] = declare(Entity.JOINT, structural=True, default=-1)
    """Articulation, shape [joint]."""
    joint_enabled: wp.array[bool] = declare(Entity.JOINT, structural=True, default=True)
    """Whether the joint acts; always true, as disabled joints are not supported yet, shape [joint]."""
    joint_world: wp.array[int] = declare(Entity.JOINT, structural=True, default=-1)
    """World, shape [joint]."""
    joint_q_start: wp.array[int] = declare(None, structural=True)
    """First coordinate in `joint_q`, and at the end their number, shape [joint + 1]."""
    joint_qd_start: wp.array[int] = declare(None, structural=True)
    """First degree of freedom in `joint_qd`, and at the end their number, shape [joint + 1]."""
    joint_dof_dim: wp.array2d[int] = declare(Entity.JOINT, structural=True, width=2)
    """Number of linear and of angular degrees of freedom, shape [joint, 2]."""
    joint_q: wp.array[float] = declare(Entity.JOINT_COORD)
    """Initial coordinates [m, rad or quaternion xyzw] as in `State.joint_q`, shape [coord]."""

    # degrees of freedom
    joint_qd: wp.array[float] = declare(Entity.JOINT_DOF, flag=ModelFlags.JOINT_PROPERTIES)
    """Initial velocities [m/s or rad/s] as in `State.joint_qd`, shape [dof]."""
    joint_f: wp.array[float] = declare(Entity.JOINT_DOF, draw_instead=_OF_CONTROL)
    """Initial generalized force [N or N·m] of `Control.joint_f`, shape [dof]."""
    joint_act: wp.array[float] = declare(Entity.JOINT_DOF, draw_instead=_OF_CONTROL)
    """Initial force of the drive [N or N·m] of `Control.joint_act`, shape [dof]."""
    joint_axis: wp.array[wp.vec3] = declare(
        Entity.JOINT_DOF,
        places_bodies=True,
        draw_instead="axes must keep the length 1. Rotate the frame of the joint: Rotation('joint_X_p', ...)",
    )
    """Unit axis, joint frame, shape [dof]."""
    joint_armature: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0)
    """Inertia added to the diagonal of the mass matrix [kg or kg·m²], shape [dof]."""
    joint_damping: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0)
    """Viscous damping [N·s/m or N·m·s/rad], shape [dof]."""
    joint_friction: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0)
    """Dry friction: largest force that holds the joint still [N or N·m], shape [dof]."""
    joint_target_mode: wp.array[int] = declare(Entity.JOINT_DOF, default=int(JointTargetMode.NONE))
    """`JointTargetMode` of the drive, shape [dof]."""
    joint_target_ke: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0)
    """Stiffness of the drive [N/m or N·m/rad], shape [dof]."""
    joint_target_kd: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0)
    """Damping of the drive [N·s/m or N·m·s/rad], shape [dof]."""
    joint_target_pos: wp.array[float] = declare(Entity.JOINT_DOF, draw_instead=_OF_CONTROL)
    """Initial position target [m or rad] of `Control.joint_target_pos`, shape [dof]."""
    joint_target_q: wp.array[float] = declare(Entity.JOINT_COORD, draw_instead=_OF_CONTROL)
    """The same, numbered like `joint_q`, as `Control.joint_target_q`, shape [coord]."""
    joint_target_vel: wp.array[float] = declare(Entity.JOINT_DOF, draw_instead=_OF_CONTROL)
    """Initial velocity target [m/s or rad/s] of `Control.joint_target_vel`, shape [dof]."""
    joint_target_lower: wp.array[float] = declare(Entity.JOINT_DOF, may_be_infinite=True, default=-math.inf)
    """Least target of the drive [m or rad, in mode `VELOCITY` m/s or rad/s]; lower ones are clamped, shape
    [dof]."""
    joint_target_upper: wp.array[float] = declare(Entity.JOINT_DOF, may_be_infinite=True, default=math.inf)
    """Largest target of the drive, likewise, shape [dof]."""
    joint_limit_lower: wp.array[float] = declare(Entity.JOINT_DOF, may_be_infinite=True)
    """Lower limit of the position [m or rad], shape [dof]."""
    joint_limit_upper: wp.array[float] = declare(Entity.JOINT_DOF, may_be_infinite=True)
    """Upper limit of the position [m or rad], shape [dof]."""
    joint_limit_ke: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0, may_be_unset=True)
    """Stiffness of the limits [N/m or N·m/rad]; NaN: not given, left to the solver, shape [dof]."""
    joint_limit_kd: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0, may_be_unset=True)
    """Damping of the limits [N·s/m or N·m·s/rad]; NaN: not given, left to the solver, shape [dof]."""
    joint_effort_limit: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0, may_be_infinite=True)
    """Largest force of the drive [N or N·m]; 0 allows no force, infinity any, shape [dof]."""
    joint_velocity_limit: wp.array[float] = declare(Entity.JOINT_DOF, low=0.0, may_be_infinite=True)
    """Rated speed [m/s or rad/s]; `SolverSAP` enforces it on request, shape [dof]."""

    # articulations
    articulation_start: wp.array[int] = declare(None, structural=True)
    """First entry in `articulation_joint`, and at the end their number, shape [articulation + 1]."""
    articulation_joint: wp.array[int] = declare(None, structural=True)
    """Joints sorted by articulation, shape [joint]. Entry k is joint k wherever the joints of each
    articulation were added one after the other, articulation by articulation."""
    articulation_world: wp.array[int] = declare(Entity.ARTICULATION, structural=True, default=-1)
    """World, shape [articulation]."""

    # shapes
    shape_body: wp.array[int] = declare(Entity.SHAPE, structural=True, default=-1)
    """Body that carries the shape, -1 for the world, shape [shape]."""
    shape_type: wp.array[int] = declare(Entity.SHAPE, structural=True)
    """`GeoType`, shape [shape]."""
    shape_transform: wp.array[wp.transform] = declare(Entity.SHAPE, is_pose=True)
    """Pose in the frame of the body (of the world without one) [m, xyzw], shape [shape]."""
    shape_scale: wp.array[wp.vec3] = declare(Entity.SHAPE, low=0.0, keeps_positive=True)
    """Size [m], or factors of a mesh, as `GeoType` says, shape [shape]."""
    shape_flags: wp.array[int] = declare(Entity.SHAPE, structural=True)
    """`ShapeFlags`, shape [shape]."""
    shape_world: wp.array[int] = declare(Entity.SHAPE, structural=True, default=-1)
    """World, -1 for a shape that all worlds share, shape [shape]."""
    shape_collision_group: wp.array[int] = declare(Entity.SHAPE, structural=True)
    """Collision group, shape [shape]."""
    shape_source_index: wp.array[int] = declare(Entity.SHAPE, structural=True, default=-1)
    """Index into `meshes`, -1 for none, shape [shape]."""
    shape_margin: wp.array[float] = declare(Entity.SHAPE, low=0.0)
    """Distance by which the surface that makes contact lies outside the shape [m], shape [shape]."""
    shape_gap: wp.array[float] = declare(Entity.SHAPE, low=0.0)
    """Distance beyond the margin from which contacts are created [m], shape [shape]."""
    shape_material_ke: wp.array[float] = declare(
        Entity.SHAPE, low=0.0, may_be_unset=True, may_be_infinite=True
    )
    """Contact stiffness [N/m], NaN where it is not given (see `ShapeConfig.ke`), shape [shape]."""
    shape_material_ke_per_mass: wp.array[float] = declare(Entity.SHAPE, low=0.0, may_be_unset=True)
    """Contact stiffness per effective mass of the contact [1/s²], NaN where it is not given; used by shapes
    without `shape_material_ke`, shape [shape]."""
    shape_material_tau: wp.array[float] = declare(Entity.SHAPE, low=0.0, may_be_unset=True)
    """Contact dissipation time [s], NaN where it is not given, shape [shape]."""
    shape_material_mu: wp.array[float] = declare(Entity.SHAPE, low=0.0)
    """Coefficient of friction, shape [shape]."""
    shape_material_restitution: wp.array[float] = declare(Entity.SHAPE, low=0.0)
    """Coefficient of restitution, 0 to 1; not used by `SolverMuJoCo`, shape [shape]."""
    shape_material_mu_torsional: wp.array[float] = declare(Entity.SHAPE, low=0.0)
    """Coefficient of torsional friction [m]; `SolverSAP` asks for `torsional_friction`, shape [shape]."""
    shape_material_mu_rolling: wp.array[float] = declare(Entity.SHAPE, low=0.0)
    """Coefficient of rolling friction [m]; `SolverSAP` asks for `torsional_friction`, shape [shape]."""
    shape_material_kh: wp.array[float] = declare(Entity.SHAPE, low=0.0)
    """Pressure per depth of hydroelastic shapes [N/m³], shape [shape]."""
    shape_is_solid: wp.array[bool] = declare(Entity.SHAPE, default=True)
    """Whether the shape is solid (or a shell), shape [shape]."""
    shape_collision_radius: wp.array[float] = declare(Entity.SHAPE, draw_instead=_OF_SIZE)
    """Radius of the bounding sphere about the centre of the bounding box, without margin [m], shape
    [shape]."""
    shape_aabb_lower: wp.array[wp.vec3] = declare(Entity.SHAPE, draw_instead=_OF_SIZE)
    """Lower corner of the bounding box without margin [m], shape frame, shape [shape]."""
    shape_aabb_upper: wp.array[wp.vec3] = declare(Entity.SHAPE, draw_instead=_OF_SIZE)
    """Upper corner of the bounding box without margin [m], shape frame, shape [shape]."""
    shape_enabled: wp.array[bool] = declare(Entity.SHAPE)
    """Whether the shape takes part in collisions; may be changed between steps, shape [shape]."""
    shape_color: wp.array[wp.vec3] = declare(Entity.SHAPE, low=0.0)
    """Red, green and blue from 0 to 1, shape [shape]."""
    shape_appearance: wp.array[int] = declare(Entity.SHAPE, default=-1)
    """Index into `appearances`, -1 for none; may be changed between steps, shape [shape]."""

    # equality constraints
    equality_constraint_type: wp.array[int] = declare(Entity.EQUALITY_CONSTRAINT, structural=True)
    """`EqType`, shape [equality constraint]."""
    equality_constraint_body1: wp.array[int] = declare(
        Entity.EQUALITY_CONSTRAINT, structural=True, default=-1
    )
    """First body, -1 for the world, shape [equality constraint]."""
    equality_constraint_body2: wp.array[int] = declare(
        Entity.EQUALITY_CONSTRAINT, structural=True, default=-1
    )
    """Second body, -1 for the world, shape [equality constraint]."""
    equality_constraint_anchor: wp.array[wp.vec3] = declare(Entity.EQUALITY_CONSTRAINT)
    """Constrained point [m], in the first body (second of a weld), shape [equality constraint]."""
    equality_constraint_axis: wp.array[wp.vec3] = declare(
        Entity.EQUALITY_CONSTRAINT,
        draw_instead="axes must keep the length 1. Rotate equality_constraint_relpose with Rotation",
        default=(0.0, 0.0, 1.0),
    )
    """Unit axis of a hinge, in the first body, shape [equality constraint]."""
    equality_constraint_torquescale: wp.array[float] = declare(
        Entity.EQUALITY_CONSTRAINT, low=0.0, default=1.0
    )
    """Stiffness of the rotational part of a weld or hinge, relative to near rigid, shape [equality
    constraint]."""
    equality_constraint_relpose: wp.array[wp.transform] = declare(
        Entity.EQUALITY_CONSTRAINT, is_pose=True, default=math.nan
    )
    """Constrained pose of the second body in the first [m, xyzw], shape [equality constraint]."""
    equality_constraint_joint1: wp.array[int] = declare(
        Entity.EQUALITY_CONSTRAINT, structural=True, default=-1
    )
    """Joint that follows, for a weld the loop joint that it closes, -1 for none, shape [equality
    constraint]."""
    equality_constraint_joint2: wp.array[int] = declare(
        Entity.EQUALITY_CONSTRAINT, structural=True, default=-1
    )
    """Joint that leads, -1 for none, shape [equality constraint]."""
    equality_constraint_joint1_axis: wp.array[int] = declare(Entity.EQUALITY_CONSTRAINT, structural=True)
    """Axis of `joint1` that follows, by its index among the axes of the joint, shape [equality
    constraint]."""
    equality_constraint_joint2_axis: wp.array[int] = declare(Entity.EQUALITY_CONSTRAINT, structural=True)
    """Axis of `joint2` that leads, by its index among the axes of the joint, shape [equality constraint]."""
    equality_constraint_polycoef: wp.array2d[float] = declare(Entity.EQUALITY_CONSTRAINT, width=5)
    """Coefficients of the polynomial, constant first, shape [equality constraint, 5]."""
    equality_constraint_enabled: wp.array[bool] = declare(Entity.EQUALITY_CONSTRAINT, default=True)
    """Whether the constraint acts; may be changed between steps, shape [equality constraint]."""
    equality_constraint_world: wp.array[int] = declare(
        Entity.EQUALITY_CONSTRAINT, structural=True, default=-1
    )
    """World, shape [equality constraint]."""
    worlds: wp.array[int] = declare(None, structural=True)
    """All worlds, to launch over, shape [world]."""


class StateArrays:
    """The arrays of a `State`."""

    joint_q: wp.array[float] = declare(Entity.JOINT_COORD)
    """Joint coordinates [m, rad or quaternion xyzw], shape [coord]. A free joint has the pose of the child's
    joint frame in the parent's: without frames and parent, that of the body in the world."""
    joint_qd: wp.array[float] = declare(Entity.JOINT_DOF)
    """Joint velocities [m/s or rad/s], shape [dof]. A free joint has the velocity of the centre of mass, then
    the angular velocity, both in world axes, or below a body relative to it in the axes of the parent's joint
    frame; a ball joint the angular velocity in its parent frame."""
    body_q: wp.array[wp.transform] = declare(Entity.BODY)
    """Pose of the body origin in the world [m, xyzw], shape [body]."""
    body_qd: wp.array[wp.spatial_vectorf] = declare(Entity.BODY)
    """Velocity of the centre of mass [m/s], then angular velocity [rad/s], world axes, shape [body]."""
    body_f: wp.array[wp.spatial_vectorf] = declare(Entity.BODY)
    """External force [N], then torque about the centre of mass [N·m], world axes, shape [body]. Stays until
    it is changed; `clear_forces` zeroes it."""
    body_qdd: wp.array[wp.spatial_vectorf] = declare(Entity.BODY, on_request=True)
    """Mean acceleration of the centre of mass [m/s²], then angular acceleration [rad/s²], world axes, over
    the last step, shape [body]. Zero before the first step, after a reset, and in frozen worlds. None unless
    `Model.request_state_attributes("body_qdd")` came before."""


class ControlArrays:
    """The arrays of a `Control`."""

    joint_f: wp.array[float] = declare(Entity.JOINT_DOF)
    """Generalized force, applied as it is [N or N·m], shape [dof]. A free joint has the force on the body,
    then the torque about its centre of mass, both in world axes, or below a body in those of the parent's
    joint frame."""
    joint_target_pos: wp.array[float] = declare(Entity.JOINT_DOF)
    """Position that the drive pulls to [m or rad], shape [dof]."""
    joint_target_q: wp.array[float] = declare(Entity.JOINT_COORD)
    """The same positions, numbered like `joint_q`; entries of quaternions are not used, shape [coord]. Write
    to either: the next step uses the last write, and makes both agree. The same array as `joint_target_pos`
    if no joint has a quaternion."""
    joint_target_vel: wp.array[float] = declare(Entity.JOINT_DOF)
    """Velocity that the drive pulls to [m/s or rad/s], shape [dof]."""
    joint_act: wp.array[float] = declare(Entity.JOINT_DOF)
    """Force added to that of the drive and limited with it by `joint_effort_limit` [N or N·m], shape
    [dof]."""


def _specs(holder: type) -> dict[str, ArraySpec]:
    return {name: spec for name, spec in vars(holder).items() if isinstance(spec, ArraySpec)}


MODEL_ARRAYS = _specs(ModelArrays)
"""The arrays of `Model`, by name."""
STATE_ARRAYS = _specs(StateArrays)
"""The arrays of `State`, by name."""
CONTROL_ARRAYS = _specs(ControlArrays)
"""The arrays of `Control`, by name."""

MOTION_ARRAYS = tuple(name for name in STATE_ARRAYS if name in MODEL_ARRAYS)
"""Arrays of `State` that a step moves; those of `Model` are the initial state."""
REQUESTED_ARRAYS = tuple(name for name, spec in STATE_ARRAYS.items() if spec.on_request)
"""Arrays of `State` that exist on request."""
FRAME_ARRAYS = tuple(name for name, spec in MODEL_ARRAYS.items() if spec.places_bodies)
"""Arrays of `Model` that, with the joint coordinates, determine body poses."""

OTHER_NAMES = {"joint_target_qd": "joint_target_vel"}
"""Further names of arrays, as scripts written for Newton use them."""

STRUCTURE = tuple(sorted(name for name, spec in MODEL_ARRAYS.items() if spec.structural))
"""Arrays of `Model` that were evaluated when the model was made; writing to them would change nothing."""

ENTITY_OF_ARRAY: dict[str, Entity] = {
    name: spec.entity
    for arrays in (STATE_ARRAYS, CONTROL_ARRAYS, MODEL_ARRAYS)
    for name, spec in arrays.items()
    if spec.entity is not None
}
"""Kind of entity of each array of `Model`, `State` and `Control` with one entry per entity."""
ENTITY_OF_ARRAY |= {name: ENTITY_OF_ARRAY[known] for name, known in OTHER_NAMES.items()}


@dataclasses.dataclass(frozen=True)
class ArrayDescription:
    """Contents of the docstring of an array."""

    meaning: str
    """The whole text."""
    unit: str
    """The unit: the first text in brackets, empty for dimensionless numbers."""
    shape: str
    """Shape, as `[body]`."""


def describe_arrays(holder: type) -> dict[str, ArrayDescription]:
    """Return the contents of the docstrings of the arrays of a class such as `ModelArrays`, for tables."""
    body = ast.parse(inspect.getsource(holder)).body[0].body  # type: ignore[attr-defined]
    result = {}
    for statement, following in itertools.pairwise(body):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            text = " ".join(following.value.value.split())
            *_, shape = re.finditer(r"shape (\[[^\]]*\])", text)
            units = [found[1] for found in re.finditer(r"\[([^\]]*)\]", text) if found.end() != shape.end()]
            result[statement.target.id] = ArrayDescription(text, units[0] if units else "", shape[1])
    return result
