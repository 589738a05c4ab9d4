"""Numbers of MuJoCo's enumerations that the reader of MJCF compares with.

MuJoCo itself is imported only when a file is read, so that `import pluriverse` does not wait for it.
"""

from enum import IntEnum


class MjJoint(IntEnum):
    """Types of joints, `mujoco.mjtJoint`."""

    FREE = 0
    BALL = 1
    SLIDE = 2
    HINGE = 3


class MjGeom(IntEnum):
    """Types of geoms, `mujoco.mjtGeom`."""

    PLANE = 0
    HFIELD = 1
    SPHERE = 2
    CAPSULE = 3
    ELLIPSOID = 4
    CYLINDER = 5
    BOX = 6
    MESH = 7
    SDF = 8


class MjEq(IntEnum):
    """Types of equality constraints, `mujoco.mjtEq`."""

    CONNECT = 0
    WELD = 1
    JOINT = 2
    TENDON = 3


class MjWrap(IntEnum):
    """What a tendon passes, `mujoco.mjtWrap`."""

    JOINT = 1
    PULLEY = 2
    SITE = 3
    SPHERE = 4
    CYLINDER = 5


class MjTrn(IntEnum):
    """What an actuator acts on, `mujoco.mjtTrn`."""

    JOINT = 0
    JOINT_IN_PARENT = 1
    SLIDER_CRANK = 2
    TENDON = 3
    SITE = 4
    BODY = 5
    ROTATION = 6


class MjObj(IntEnum):
    """Kinds of objects that sensors are on, `mujoco.mjtObj`."""

    BODY = 1
    XBODY = 2
    JOINT = 3
    GEOM = 5
    SITE = 6
    CAMERA = 7
    TENDON = 18
    ACTUATOR = 19
