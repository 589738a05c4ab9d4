"""Enumerations of the actor API. Every member is a name of `pluriverse.gymapi` as well."""

import enum


class SimType(enum.IntEnum):
    """Backend that a script asks for. Both name the same physics here."""

    SIM_PHYSX = 0
    """Rigid bodies."""
    SIM_FLEX = 1
    """Accepted for scripts that name no other; there are no soft bodies."""


class UpAxis(enum.IntEnum):
    """Axis that points up: rows of envs advance along the other horizontal axis."""

    UP_AXIS_Y = 0
    UP_AXIS_Z = 1


class DofDriveMode(enum.IntEnum):
    """What moves a degree of freedom."""

    DOF_MODE_NONE = 0
    """Nothing but its gains, if any, as a passive spring and damper."""
    DOF_MODE_POS = 1
    """The position target."""
    DOF_MODE_VEL = 2
    """The velocity target."""
    DOF_MODE_EFFORT = 3
    """The effort applied."""


class DofType(enum.IntEnum):
    """How a degree of freedom moves."""

    DOF_INVALID = 0
    DOF_ROTATION = 1
    """It rotates: rad, N·m."""
    DOF_TRANSLATION = 2
    """It slides: m, N."""


class JointType(enum.IntEnum):
    """What a joint lets its child body do."""

    JOINT_INVALID = 0
    JOINT_FIXED = 1
    JOINT_REVOLUTE = 2
    JOINT_PRISMATIC = 3
    JOINT_BALL = 4
    JOINT_PLANAR = 5
    JOINT_FLOATING = 6


class IndexDomain(enum.IntEnum):
    """What an index counts in."""

    DOMAIN_ACTOR = 0
    DOMAIN_ENV = 1
    DOMAIN_SIM = 2


class CoordinateSpace(enum.IntEnum):
    """Axes and origin of a force and of the point it acts at."""

    ENV_SPACE = 0
    """The frame of the env."""
    LOCAL_SPACE = 1
    """The frame of the body."""
    GLOBAL_SPACE = 2
    """The frame of the sim."""


class ContactCollection(enum.IntEnum):
    """Which substeps contact forces are taken from."""

    CC_NEVER = 0
    """None: contact forces read zero."""
    CC_LAST_SUBSTEP = 1
    """The last one."""
    CC_ALL_SUBSTEPS = 2
    """Their mean over all substeps."""


class TensorDataType(enum.IntEnum):
    """Type of the entries of a tensor."""

    DTYPE_FLOAT32 = 0
    DTYPE_UINT32 = 1
    DTYPE_UINT64 = 2
    DTYPE_UINT8 = 3
    DTYPE_INT16 = 4


class TendonType(enum.IntEnum):
    """Kind of a tendon."""

    TENDON_FIXED = 0
    TENDON_SPATIAL = 1


class MeshType(enum.IntEnum):
    """Which meshes of a body a colour concerns."""

    MESH_NONE = 0
    MESH_COLLISION = 1
    MESH_VISUAL = 2
    MESH_VISUAL_AND_COLLISION = 3


class ImageType(enum.IntEnum):
    """Kinds of images of cameras."""

    IMAGE_COLOR = 0
    """Red, green, blue and alpha."""
    IMAGE_DEPTH = 1
    """Negative distance along the axis of the camera [m], -inf for nothing."""
    IMAGE_SEGMENTATION = 2
    """Segmentation ids, 0 for nothing."""
    IMAGE_OPTICAL_FLOW = 3
    """Motion since the last image, to the right and down, in 32768ths of its width and height."""


class CameraFollowMode(enum.IntEnum):
    """How a camera follows the body that carries it."""

    FOLLOW_POSITION = 0
    """It keeps its axes, at a fixed offset in the env."""
    FOLLOW_TRANSFORM = 1
    """It turns with the body."""


class MeshNormalMode(enum.IntEnum):
    """Where normals of visual meshes come from. Without effect on physics."""

    FROM_ASSET = 0
    COMPUTE_PER_VERTEX = 1
    COMPUTE_PER_FACE = 2


class SoftMaterialType(enum.IntEnum):
    """Kinds of soft materials. There are no soft bodies."""

    MAT_COROTATIONAL = 0
    MAT_NEOHOOKEAN = 1


class UsdMaterialMode(enum.IntEnum):
    """How materials are written to USD stages. No sim is."""

    USD_MATERIAL_MDL = 0
    USD_MATERIAL_PREVIEW_SURFACE = 1
    USD_MATERIAL_DISPLAY_COLOR = 2


class StateFlags(enum.IntFlag):
    """Which part of a state is read or written."""

    STATE_NONE = 0
    STATE_POS = 1
    STATE_VEL = 2
    STATE_ALL = 3


class RigidBodyFlags(enum.IntFlag):
    """How a body takes part."""

    RIGID_BODY_NONE = 0
    RIGID_BODY_DISABLE_GRAVITY = 1
    """Gravity does not act on it."""
    RIGID_BODY_DISABLE_SIMULATION = 2
    """It stays where it is put, whatever acts on it; only roots of actors."""


class AttractorAxes(enum.IntFlag):
    """Directions in which an attractor pulls: along, and about, the axes of its target."""

    AXIS_NONE = 0
    AXIS_X = 1
    AXIS_Y = 2
    AXIS_Z = 4
    AXIS_TWIST = 8
    AXIS_SWING_1 = 16
    AXIS_SWING_2 = 32
    AXIS_TRANSLATION = 7
    AXIS_ROTATION = 56
    AXIS_ALL = 63


_KEYS = [
    *(chr(code) for code in range(ord("A"), ord("Z") + 1)),
    *(str(digit) for digit in range(10)),
    *("SPACE", "APOSTROPHE", "COMMA", "MINUS", "PERIOD", "SLASH", "SEMICOLON", "EQUAL", "LEFT_BRACKET"),
    *("BACKSLASH", "RIGHT_BRACKET", "GRAVE_ACCENT", "ESCAPE", "CAPS_LOCK", "SCROLL_LOCK", "NUM_LOCK"),
    *("PRINT_SCREEN", "PAUSE", "INSERT", "DEL", "HOME", "END", "PAGE_UP", "PAGE_DOWN", "RIGHT", "LEFT"),
    *("DOWN", "UP", "BACKSPACE", "ENTER", "TAB", "LEFT_SHIFT", "LEFT_CONTROL", "LEFT_ALT", "LEFT_SUPER"),
    *("RIGHT_SHIFT", "RIGHT_CONTROL", "RIGHT_ALT", "RIGHT_SUPER", "MENU"),
    *(f"F{number}" for number in range(1, 13)),
    *(f"NUMPAD_{digit}" for digit in range(10)),
    *("NUMPAD_ADD", "NUMPAD_SUBTRACT", "NUMPAD_MULTIPLY", "NUMPAD_DIVIDE", "NUMPAD_ENTER", "NUMPAD_PERIOD"),
]
_BUTTONS = [
    *("LEFT_BUTTON", "MIDDLE_BUTTON", "RIGHT_BUTTON", "BACK_BUTTON", "FORWARD_BUTTON"),
    *("SCROLL_RIGHT", "SCROLL_LEFT", "SCROLL_UP", "SCROLL_DOWN"),
    *("MOVE_RIGHT", "MOVE_LEFT", "MOVE_UP", "MOVE_DOWN"),
]

KeyboardInput = enum.IntEnum("KeyboardInput", [f"KEY_{name}" for name in _KEYS])  # type: ignore[misc]
KeyboardInput.__doc__ = "Keys whose events a script may ask for."
MouseInput = enum.IntEnum("MouseInput", [f"MOUSE_{name}" for name in _BUTTONS])  # type: ignore[misc]
MouseInput.__doc__ = "Mouse events that a script may ask for."

ENUMERATIONS: tuple[type[enum.Enum], ...] = (
    SimType,
    UpAxis,
    DofDriveMode,
    DofType,
    JointType,
    IndexDomain,
    CoordinateSpace,
    ContactCollection,
    TensorDataType,
    TendonType,
    MeshType,
    ImageType,
    CameraFollowMode,
    MeshNormalMode,
    SoftMaterialType,
    UsdMaterialMode,
    StateFlags,
    RigidBodyFlags,
    AttractorAxes,
    KeyboardInput,
    MouseInput,
)
"""All of them, in the order of the documentation."""
