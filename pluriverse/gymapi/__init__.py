"""The actor API: environments, actors, degrees of freedom and tensors, as scripts for Isaac Gym use them.

Every member of an enumeration is a name of this module as well, such as `DOMAIN_SIM` and `UP_AXIS_Z`.
"""

from typing import TYPE_CHECKING, Any

from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.checks import INVALID_HANDLE
from pluriverse.gymapi.enums import (
    ENUMERATIONS,
    AttractorAxes,
    CameraFollowMode,
    ContactCollection,
    CoordinateSpace,
    DofDriveMode,
    DofType,
    ImageType,
    IndexDomain,
    KeyboardInput,
    MeshNormalMode,
    MeshType,
    MouseInput,
    RigidBodyFlags,
    SimType,
    SoftMaterialType,
    StateFlags,
    TendonType,
    TensorDataType,
    UpAxis,
    UsdMaterialMode,
)
from pluriverse.gymapi.enums import JointType as JointType
from pluriverse.gymapi.errors import GymError, GymWarning
from pluriverse.gymapi.gym import Gym, acquire_gym
from pluriverse.gymapi.gym_viewer import ActionEvent, Viewer, ViewerPoint
from pluriverse.gymapi.scene import Env, Sim
from pluriverse.gymapi.structures import (
    DEFAULT_VIEWER_HEIGHT,
    DEFAULT_VIEWER_WIDTH,
    ActuatorProperties,
    AssetOptions,
    AttractorProperties,
    CameraProperties,
    FlexParams,
    ForceSensorProperties,
    HeightFieldParams,
    PerformanceTimers,
    PhysXParams,
    PlaneParams,
    RigidBodyProperties,
    RigidShapeProperties,
    SimParams,
    SoftMaterial,
    TendonProperties,
    TriangleMeshParams,
    UsdExportOptions,
    VhacdParams,
)
from pluriverse.gymapi.tensor import Tensor
from pluriverse.gymapi.values import (
    DofFrame,
    DofState,
    IndexRange,
    Mat33,
    Mat44,
    Quat,
    RigidBodyState,
    RigidContact,
    SpatialForce,
    Transform,
    Vec3,
    Velocity,
    Version,
)
from pluriverse.gymapi.views import ActorBodyView, ActorDofView, ActorView, actor_views

for _enumeration in ENUMERATIONS:
    globals().update(_enumeration.__members__)

if TYPE_CHECKING:  # the members of the enumerations

    def __getattr__(name: str) -> Any: ...


__all__ = [
    "DEFAULT_VIEWER_HEIGHT",
    "DEFAULT_VIEWER_WIDTH",
    "INVALID_HANDLE",
    "ActionEvent",
    "ActorBodyView",
    "ActorDofView",
    "ActorView",
    "ActuatorProperties",
    "Asset",
    "AssetOptions",
    "AttractorAxes",
    "AttractorProperties",
    "CameraFollowMode",
    "CameraProperties",
    "ContactCollection",
    "CoordinateSpace",
    "DofDriveMode",
    "DofFrame",
    "DofState",
    "DofType",
    "Env",
    "FlexParams",
    "ForceSensorProperties",
    "Gym",
    "GymError",
    "GymWarning",
    "HeightFieldParams",
    "ImageType",
    "IndexDomain",
    "IndexRange",
    "KeyboardInput",
    "Mat33",
    "Mat44",
    "MeshNormalMode",
    "MeshType",
    "MouseInput",
    "PerformanceTimers",
    "PhysXParams",
    "PlaneParams",
    "Quat",
    "RigidBodyFlags",
    "RigidBodyProperties",
    "RigidBodyState",
    "RigidContact",
    "RigidShapeProperties",
    "Sim",
    "SimParams",
    "SimType",
    "SoftMaterial",
    "SoftMaterialType",
    "SpatialForce",
    "StateFlags",
    "TendonProperties",
    "TendonType",
    "Tensor",
    "TensorDataType",
    "Transform",
    "TriangleMeshParams",
    "UpAxis",
    "UsdExportOptions",
    "UsdMaterialMode",
    "Vec3",
    "Velocity",
    "Version",
    "VhacdParams",
    "Viewer",
    "ViewerPoint",
    "acquire_gym",
    "actor_views",
]
