"""Structures: parameters and properties that scripts fill in. The API copies them when they are passed."""

import copy
import dataclasses
import math
import types
from typing import Any, Self

import numpy as np

from pluriverse.gymapi.enums import (
    AttractorAxes,
    ContactCollection,
    DofDriveMode,
    MeshNormalMode,
    RigidBodyFlags,
    UpAxis,
)
from pluriverse.gymapi.values import Mat33, Transform, Vec3

DEFAULT_VIEWER_WIDTH = 1600
"""Width of a viewer [pixels]."""
DEFAULT_VIEWER_HEIGHT = 900
"""Height of a viewer [pixels]."""

_COERCED = {Vec3: Vec3._of, Transform: Transform._of, Mat33: Mat33._of}


def _single(value: Any, what: str) -> Any:
    """Return the number in an array or tensor of one entry, of any number of axes."""
    if math.prod(value.shape) != 1:
        raise TypeError(f"{what}: an array of shape {tuple(value.shape)} was given, but it is one number.")
    return value.item()


class _Structure:
    """Base of structures: values are copied in, and a misspelt attribute is an error."""

    def __setattr__(self, name: str, value: Any) -> None:
        field = type(self).__dataclass_fields__.get(name)  # type: ignore[attr-defined]
        if field is None:
            known = ", ".join(type(self).__dataclass_fields__)  # type: ignore[attr-defined]
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}; it has {known}.")
        convert = _COERCED.get(field.type)
        if convert is not None:
            value = convert(value)
        elif hasattr(value, "shape"):  # an array or tensor
            value = _single(value, f"{type(self).__name__}.{name}")
        object.__setattr__(self, name, value)

    @classmethod
    def _of_parts(cls, **parts: Any) -> Self:
        """Return a structure of all its parts, which are of the right kind and of no one else."""
        result = object.__new__(cls)
        result.__dict__.update(parts)
        return result

    def copy(self) -> Self:
        """Return an independent copy."""
        return copy.deepcopy(self)


@dataclasses.dataclass
class PhysXParams(_Structure):
    """Parameters of the rigid-body backend. What the solvers here have no use for is stored and ignored."""

    use_gpu: bool = False
    """Ignored: physics runs where the tensors are, see `SimParams.use_gpu_pipeline`."""
    num_threads: int = 4
    """CPU threads; 0 for all cores. Results do not depend on it."""
    num_subscenes: int = 0
    """Ignored."""
    solver_type: int = 1
    """Ignored: see `SimParams.solver`."""
    num_position_iterations: int = 4
    """Ignored: solvers here iterate until they have converged."""
    num_velocity_iterations: int = 1
    """Ignored, as above."""
    contact_offset: float = 0.02
    """Distance at which a shape begins to make contacts [m]; those of both shapes add up."""
    rest_offset: float = 0.001
    """Distance that a shape keeps at rest [m]; those of both shapes add up."""
    bounce_threshold_velocity: float = 0.2
    """Approach below which contacts do not bounce [m/s]."""
    max_depenetration_velocity: float = 100.0
    """Ignored: overlap is resolved over the dissipation time of the contact."""
    friction_offset_threshold: float = 0.04
    """Ignored."""
    friction_correlation_distance: float = 0.025
    """Ignored."""
    contact_collection: ContactCollection | int = ContactCollection.CC_ALL_SUBSTEPS
    """Which substeps contact forces are taken from."""
    max_gpu_contact_pairs: int = 1024 * 1024
    """Ignored: each world has slots of its own, see `SimParams.max_contacts`."""
    default_buffer_size_multiplier: float = 5.0
    """Ignored."""
    always_use_articulations: bool = False
    """Ignored: every actor is an articulation."""


@dataclasses.dataclass
class FlexParams(_Structure):
    """Parameters of the soft-body backend, stored for scripts that set them. None has an effect."""

    solver_type: int = 5
    num_outer_iterations: int = 4
    num_inner_iterations: int = 20
    relaxation: float = 0.75
    warm_start: float = 0.4
    shape_collision_distance: float = 0.0
    shape_collision_margin: float = 0.0
    contact_regularization: float = 1e-6
    deterministic_mode: bool = False
    friction_mode: int = 2
    dynamic_friction: float = 0.5
    static_friction: float = 0.5
    particle_friction: float = 0.0
    geometric_stiffness: float = 0.0
    max_rigid_contacts: int = 0
    max_soft_contacts: int = 0
    return_contacts: bool = True


@dataclasses.dataclass
class SimParams(_Structure):
    """Parameters of a simulation. The last four are not known elsewhere."""

    dt: float = 1.0 / 60.0
    """Time per `simulate` [s]."""
    substeps: int = 2
    """Solver steps per `simulate`."""
    up_axis: UpAxis | int = UpAxis.UP_AXIS_Y
    """Axis that points up. Only lays out the grid of envs: set `gravity` and the normal of the ground too."""
    gravity: Vec3 = dataclasses.field(default_factory=lambda: Vec3(0.0, -9.81, 0.0))
    """Gravity [m/s²]."""
    use_gpu_pipeline: bool = False
    """Whether physics and tensors are on the GPU."""
    num_client_threads: int = 0
    """Ignored."""
    enable_actor_creation_warning: bool = True
    """Ignored: creating actors too late is an error."""
    stress_visualization: bool = False
    """Ignored."""
    stress_visualization_min: float = 0.0
    """Ignored."""
    stress_visualization_max: float = 1e5
    """Ignored."""
    physx: PhysXParams = dataclasses.field(default_factory=PhysXParams)
    """Parameters of the rigid-body backend."""
    flex: FlexParams = dataclasses.field(default_factory=FlexParams)
    """Parameters of the soft-body backend."""
    solver: str = "sap"
    """Solver of contact and joints: "sap" or "mujoco"."""
    solver_options: dict[str, Any] = dataclasses.field(default_factory=dict)
    """Keyword options of the solver's class."""
    max_contacts: int | None = None
    """Contact slots per world; None to estimate them."""
    isolate_envs: bool | None = None
    """Whether actors of different envs never collide, whatever their groups, so that each env is a world.

    With None so many envs that share a group are worlds of their own as long as each stays in its cell, the
    one that `create_env` was given; a body that leaves it is warned of.
    """


@dataclasses.dataclass(kw_only=True)
class _GroundParams(_Structure):
    """What all grounds have."""

    static_friction: float = 1.0
    """Coefficient of friction."""
    dynamic_friction: float = 1.0
    """Ignored: friction has one coefficient."""
    restitution: float = 0.0
    """Coefficient of restitution, 0 to 1."""
    segmentation_id: int = 0
    """Label in segmentation images."""


@dataclasses.dataclass
class PlaneParams(_GroundParams):
    """Ground plane."""

    normal: Vec3 = dataclasses.field(default_factory=lambda: Vec3(0.0, 1.0, 0.0))
    """Normal, up."""
    distance: float = 0.0
    """How far the plane lies below the origin, against the normal [m]."""


@dataclasses.dataclass
class HeightFieldParams(_GroundParams):
    """Ground given by heights on a grid."""

    nbRows: int = 0  # noqa: N815 (the name of the API)
    """Number of samples along local x."""
    nbColumns: int = 0  # noqa: N815 (the name of the API)
    """Number of samples along the other horizontal axis."""
    row_scale: float = 1.0
    """Distance of neighbouring samples along x [m]."""
    column_scale: float = 1.0
    """Distance of neighbouring samples along the other horizontal axis [m]."""
    vertical_scale: float = 1.0
    """Height of one unit of a sample [m]."""
    transform: Transform = dataclasses.field(default_factory=Transform)
    """Pose of the centre of the grid."""


@dataclasses.dataclass
class TriangleMeshParams(_GroundParams):
    """Ground given by triangles."""

    nb_vertices: int = 0
    """Number of vertices."""
    nb_triangles: int = 0
    """Number of triangles."""
    transform: Transform = dataclasses.field(default_factory=Transform)
    """Pose of the mesh."""


@dataclasses.dataclass
class VhacdParams(_Structure):
    """Parameters of convex decomposition."""

    resolution: int = 100000
    """Number of voxels that the mesh is seen as."""
    max_convex_hulls: int = 64
    """Greatest number of pieces."""
    max_num_vertices_per_ch: int = 64
    """Greatest number of vertices of a piece."""
    concavity: float = 0.0
    """Volume by which a piece may exceed the part that it replaces, relative; 0 for 0.01."""
    alpha: float = 0.05
    """Ignored: of another version of the method."""
    beta: float = 0.05
    """Ignored: of another version of the method."""
    plane_downsampling: int = 4
    """Ignored: of another version of the method."""
    convex_hull_downsampling: int = 4
    """Ignored: of another version of the method."""
    pca: int = 0
    """Ignored: of another version of the method."""
    mode: int = 0
    """Ignored: of another version of the method."""
    min_volume_per_ch: float = 1e-4
    """Ignored: of another version of the method."""
    convex_hull_approximation: int = 1
    """Ignored: of another version of the method."""
    ocl_acceleration: int = 1
    """Ignored: of another version of the method."""
    project_hull_vertices: bool = True
    """Ignored: of another version of the method."""


@dataclasses.dataclass
class AssetOptions(_Structure):
    """How an asset is read."""

    fix_base_link: bool = False
    """Whether the root is welded to the env."""
    collapse_fixed_joints: bool = False
    """Whether links behind fixed joints become part of their parents; bodies of MJCF never do."""
    default_dof_drive_mode: DofDriveMode | int = DofDriveMode.DOF_MODE_NONE
    """Drive mode of URDF degrees of freedom; those of MJCF have that of their actuators."""
    density: float = 1000.0
    """Density of bodies without mass in the file [kg/m³]."""
    armature: float = 0.0
    """Inertia added to each degree of freedom [kg or kg·m²], or to each link (`use_physx_armature`)."""
    use_physx_armature: bool = True
    """Whether `armature` acts on degrees of freedom, not on the rotational inertia of links."""
    linear_damping: float = 0.0
    """Rate at which linear velocity decays [1/s]."""
    angular_damping: float = 0.5
    """Rate at which angular velocity decays [1/s]."""
    max_linear_velocity: float = 1000.0
    """Linear velocity to which faster bodies are braked [m/s]; infinite for none."""
    max_angular_velocity: float = 64.0
    """Angular velocity to which bodies that spin faster are braked [rad/s]; infinite for none."""
    disable_gravity: bool = False
    """Whether gravity leaves the asset alone."""
    enable_gyroscopic_forces: bool = True
    """Whether spinning bodies precess."""
    thickness: float = 0.02
    """Stored."""
    contact_offset: float | None = None
    """Contact offset of the shapes [m]; that of the sim if None."""
    rest_offset: float | None = None
    """Rest offset of the shapes [m]; that of the sim if None."""
    override_com: bool = False
    """Whether centres of mass follow from the shapes, whatever the file says."""
    override_inertia: bool = False
    """Whether inertias follow from the shapes, whatever the file says."""
    vhacd_enabled: bool = False
    """Whether collision meshes are decomposed into convex pieces, by V-HACD; otherwise each is one hull."""
    vhacd_params: VhacdParams = dataclasses.field(default_factory=VhacdParams)
    """Parameters of the decomposition."""
    convex_decomposition_from_submeshes: bool = False
    """Whether the connected pieces of a mesh are its convex pieces; takes the place of `vhacd_enabled`."""
    replace_cylinder_with_capsule: bool = False
    """Whether cylinders become capsules."""
    slices_per_cylinder: int = 20
    """Ignored: cylinders are smooth."""
    flip_visual_attachments: bool = False
    """Ignored: meshes are shown as they lie in their files, with the axis up that these state."""
    use_mesh_materials: bool = False
    """Ignored: meshes wear their own materials where the file of the robot gives none."""
    mesh_normal_mode: MeshNormalMode | int = MeshNormalMode.FROM_ASSET
    """Ignored: normals are smooth but for edges."""
    tendon_limit_stiffness: float = 1.0
    """Stiffness of the limits of tendons."""
    min_particle_mass: float = 1e-12
    """Ignored."""


@dataclasses.dataclass
class RigidBodyProperties(_Structure):
    """Mass of a body."""

    mass: float = 0.0
    """Mass [kg]."""
    com: Vec3 = dataclasses.field(default_factory=Vec3)
    """Centre of mass [m], body frame."""
    inertia: Mat33 = dataclasses.field(default_factory=Mat33)
    """Rotational inertia about the centre of mass [kg·m²], body axes."""
    invMass: float = 0.0  # noqa: N815 (the name of the API)
    """Inverse of the mass when it was read; not written back."""
    invInertia: Mat33 = dataclasses.field(default_factory=Mat33)  # noqa: N815 (the name of the API)
    """Inverse of the inertia when it was read; not written back."""
    flags: RigidBodyFlags | int = RigidBodyFlags.RIGID_BODY_NONE
    """How the body takes part."""


@dataclasses.dataclass
class RigidShapeProperties(_Structure):
    """Material of a shape."""

    friction: float = 1.0
    """Coefficient of friction."""
    rolling_friction: float = 0.0
    """Coefficient of rolling friction [m]."""
    torsion_friction: float = 0.0
    """Coefficient of torsional friction [m]."""
    restitution: float = 0.0
    """Coefficient of restitution, 0 to 1."""
    compliance: float = 0.0
    """Inverse of the contact stiffness [m/N]; 0 for as stiff as the step resolves."""
    thickness: float = 0.0
    """Stored."""
    contact_offset: float = 0.02
    """Distance at which the shape begins to make contacts [m]."""
    rest_offset: float = 0.001
    """Distance that the shape keeps at rest [m]."""
    filter: int = 0
    """Shapes that share a bit do not collide. Fixed once the sim is prepared."""


@dataclasses.dataclass
class ForceSensorProperties(_Structure):
    """What a force sensor measures."""

    enable_forward_dynamics_forces: bool = True
    """Whether gravity, drives, applied forces and joints count."""
    enable_constraint_solver_forces: bool = True
    """Whether contacts count."""
    use_world_frame: bool = False
    """Whether readings are in world axes, not in those of the sensor."""


@dataclasses.dataclass
class AttractorProperties(_Structure):
    """Spring and damper that pull a body to a pose."""

    rigid_handle: int = -1
    """Handle of the body."""
    target: Transform = dataclasses.field(default_factory=Transform)
    """Pose that the attractor is pulled to, in the env."""
    offset: Transform = dataclasses.field(default_factory=Transform)
    """Pose of the attractor in the body."""
    axes: AttractorAxes | int = AttractorAxes.AXIS_NONE
    """Directions in which it pulls."""
    stiffness: float = 1e5
    """Stiffness [N/m and N·m/rad]."""
    damping: float = 1e3
    """Damping [N·s/m and N·m·s/rad]."""


@dataclasses.dataclass
class ActuatorProperties(_Structure):
    """Actuator of an MJCF file."""

    name: str = ""
    """Name."""
    joint: str = ""
    """Joint that it acts on."""
    control_limited: bool = False
    """Whether its control is limited."""
    lower_control_limit: float = -math.inf
    """Lower limit of the control."""
    upper_control_limit: float = math.inf
    """Upper limit of the control."""
    force_limited: bool = False
    """Whether its force is limited."""
    lower_force_limit: float = -math.inf
    """Lower limit of the force [N or N·m]."""
    upper_force_limit: float = math.inf
    """Upper limit of the force [N or N·m]."""
    kp: float = 0.0
    """Gain of a position actuator."""
    kv: float = 0.0
    """Gain of a velocity actuator."""
    motor_effort: float = 0.0
    """Effort of a motor at full control [N or N·m]."""
    type: str = "motor"
    """Kind: motor, position, velocity or general."""


@dataclasses.dataclass
class TendonProperties(_Structure):
    """Fixed tendon of an MJCF file: a combination of joint positions."""

    name: str = ""
    """Name."""
    type: int = 0
    """`TendonType`."""
    is_limited: bool = False
    """Whether its length is limited."""
    lower_limit: float = 0.0
    """Smallest length."""
    upper_limit: float = 0.0
    """Largest length."""
    stiffness: float = 0.0
    """Stiffness."""
    damping: float = 0.0
    """Damping."""
    fixed_spring_rest_length: float = 0.0
    """Length at which its spring is slack."""
    fixed_lower_limit: float = 0.0
    """Same as `lower_limit`."""
    fixed_upper_limit: float = 0.0
    """Same as `upper_limit`."""
    limit_stiffness: float = 1.0
    """Stiffness of the limits."""
    num_attachments: int = 0
    """Number of attachments of a spatial tendon."""
    num_joints: int = 0
    """Number of joints."""


@dataclasses.dataclass
class CameraProperties(_Structure):
    """A camera, or the size of the window of a viewer."""

    width: int = DEFAULT_VIEWER_WIDTH
    """Columns of the image."""
    height: int = DEFAULT_VIEWER_HEIGHT
    """Rows of the image; pixels are square."""
    horizontal_fov: float = 90.0
    """Angle between the left and the right edge of the image [degrees]."""
    near_plane: float = 0.0010000000474974513
    """Distance along the axis from which something is seen [m]; of depths, segmentation and optical flow."""
    far_plane: float = 2000000.0
    """Distance along the axis up to which something is seen [m], likewise."""
    supersampling_horizontal: int = 1
    """Rays per pixel along a row, of colours."""
    supersampling_vertical: int = 1
    """Rays per pixel along a column, of colours."""
    use_collision_geometry: bool = False
    """Whether collision geometry is seen instead of visual geometry."""
    enable_tensors: bool = False
    """Ignored: tensors can be had of all images."""


@dataclasses.dataclass
class PerformanceTimers(_Structure):
    """Wall-clock times [s] of the last `simulate`."""

    frame_idling: float = 0.0
    graphics_image_retrieval: float = 0.0
    graphics_sensor_rendering: float = 0.0
    graphics_viewer_rendering: float = 0.0
    physics_data_movement: float = 0.0
    physics_sim: float = 0.0
    total_time: float = 0.0


class SoftMaterial(types.SimpleNamespace):
    """Material of a soft body, with any attributes. There are no soft bodies, so it is only stored."""


class UsdExportOptions(types.SimpleNamespace):
    """Options of USD exporters, with any attributes. No sim is exported, so they are only stored."""


def matrix_of(value: Any) -> np.ndarray:
    """Return a `Mat33` as an array, shape [3, 3]."""
    return np.array([list(value.x), list(value.y), list(value.z)], dtype=np.float64)


def as_mat33(rows: np.ndarray) -> Mat33:
    """Return an array of shape [3, 3] as a `Mat33`."""
    single = np.asarray(rows, dtype=np.float32).tolist()
    return Mat33._of_parts(*(Vec3._of_parts(*row) for row in single))
