"""Values: vectors, rotations, poses and states as small objects, with NumPy types of the same layout.

An object owns its parts: to assign one copies it, and `copy.copy` shares nothing. Numbers are rounded to
float32, the type of the arrays that they are written to.
"""

import math
from typing import Any, ClassVar, Self

import numpy as np

Number = float | int | np.floating | np.integer


def _f32(value: Any) -> float:
    return float(np.float32(value))


class _Record:
    """Base of values: fields in order, with conversion on assignment."""

    dtype: ClassVar[np.dtype]
    _fields: ClassVar[dict[str, Any]] = {}

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._fields.get(name)
        if kind is None:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {name!r}; it has {', '.join(self._fields)}."
            )
        object.__setattr__(self, name, kind(value))

    @classmethod
    def _of_parts(cls, *parts: Any) -> Self:
        """Return the value of parts that are of the right kind already, and of no one else."""
        result = object.__new__(cls)
        result.__dict__.update(zip(cls._fields, parts, strict=True))
        return result

    @classmethod
    def from_buffer(cls, record: Any) -> Self:
        """Return the value of one element of a structured array, or of as many numbers."""
        return cls._of(record)

    @classmethod
    def _of(cls, value: Any) -> Self:
        """Return a copy of a value, or the value of a record or of a sequence of numbers or parts."""
        if isinstance(value, cls):
            return value.__copy__()
        if isinstance(value, np.ndarray) and value.dtype.names and value.shape == (1,):
            value = value[0]
        names = getattr(getattr(value, "dtype", None), "names", None)
        try:
            if names:
                return cls(*(value[name] for name in cls._fields))
            parts = list(value)
        except (TypeError, ValueError, KeyError):
            parts = []
        if len(parts) == len(cls._fields):
            return cls(*parts)
        raise TypeError(
            f"a {cls.__name__} was expected, but {value!r} was given. Pass a {cls.__name__}, an element of a "
            f"structured array, or {len(cls._fields)} values ({', '.join(cls._fields)})."
        )

    def __copy__(self) -> Self:
        parts = (getattr(self, name) for name in self._fields)
        return self._of_parts(*(part.__copy__() if isinstance(part, _Record) else part for part in parts))

    def __deepcopy__(self, memo: Any) -> Self:
        return self.__copy__()

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._fields)

    __hash__ = None  # type: ignore[assignment]

    def _numbers(self) -> list[float]:
        """Return all numbers in order."""
        result: list[float] = []
        for name in self._fields:
            part = getattr(self, name)
            result += part._numbers() if isinstance(part, _Record) else [part]
        return result

    def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
        return np.array(self._numbers(), dtype=np.float32 if dtype is None else dtype)

    def __reduce__(self) -> Any:
        return type(self), tuple(getattr(self, name) for name in self._fields)

    def __repr__(self) -> str:
        inside = ", ".join(
            f"{value!r}" if isinstance(value, _Record) else f"{value:f}"
            for value in (getattr(self, name) for name in self._fields)
        )
        return f"{type(self).__name__}({inside})"


class Vec3(_Record):
    """Three numbers x, y, z."""

    dtype = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4")])
    _fields: ClassVar[dict[str, Any]] = {"x": _f32, "y": _f32, "z": _f32}
    x: float
    y: float
    z: float

    def __init__(self, x: Number = 0.0, y: Number = 0.0, z: Number = 0.0):
        self.x, self.y, self.z = x, y, z  # type: ignore[assignment]

    def __add__(self, other: "Vec3") -> "Vec3":
        return Vec3(self.x + other.x, self.y + other.y, self.z + other.z)

    def __sub__(self, other: "Vec3") -> "Vec3":
        return Vec3(self.x - other.x, self.y - other.y, self.z - other.z)

    def __neg__(self) -> "Vec3":
        return Vec3(-self.x, -self.y, -self.z)

    def __mul__(self, factor: Number) -> "Vec3":
        return Vec3(self.x * float(factor), self.y * float(factor), self.z * float(factor))

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> "Vec3":
        return Vec3(self.x / float(divisor), self.y / float(divisor), self.z / float(divisor))

    def __iter__(self) -> Any:
        return iter((self.x, self.y, self.z))

    def dot(self, other: "Vec3") -> float:
        """Return the scalar product."""
        return self.x * other.x + self.y * other.y + self.z * other.z

    def cross(self, other: "Vec3") -> "Vec3":
        """Return the vector product."""
        return Vec3(
            self.y * other.z - self.z * other.y,
            self.z * other.x - self.x * other.z,
            self.x * other.y - self.y * other.x,
        )

    def length_sq(self) -> float:
        """Return the square of the length."""
        return self.dot(self)

    def length(self) -> float:
        """Return the length."""
        return math.sqrt(self.dot(self))

    def normalize(self) -> "Vec3":
        """Return the vector of length 1 along this one; zero for zero."""
        length = self.length()
        return Vec3() if length == 0.0 else self / length


class Quat(_Record):
    """Rotation as a quaternion x, y, z, w."""

    dtype = np.dtype([("x", "f4"), ("y", "f4"), ("z", "f4"), ("w", "f4")])
    _fields: ClassVar[dict[str, Any]] = {"x": _f32, "y": _f32, "z": _f32, "w": _f32}
    x: float
    y: float
    z: float
    w: float

    def __init__(self, x: Number = 0.0, y: Number = 0.0, z: Number = 0.0, w: Number = 1.0):
        self.x, self.y, self.z, self.w = x, y, z, w  # type: ignore[assignment]

    @staticmethod
    def from_axis_angle(axis: Vec3, angle: Number) -> "Quat":
        """Return the rotation by an angle [rad] about an axis."""
        unit = Vec3._of(axis).normalize() * math.sin(0.5 * float(angle))
        return Quat(unit.x, unit.y, unit.z, math.cos(0.5 * float(angle)))

    @staticmethod
    def from_euler_zyx(roll: Number, pitch: Number, yaw: Number) -> "Quat":
        """Return the rotation by `roll` about x, `pitch` about y, `yaw` about z [rad], in this order."""
        turns = [
            Quat.from_axis_angle(axis, angle) for axis, angle in zip(_AXES, (roll, pitch, yaw), strict=True)
        ]
        return turns[2] * turns[1] * turns[0]

    def to_euler_zyx(self) -> tuple[float, float, float]:
        """Return (roll, pitch, yaw) [rad], the inverse of `from_euler_zyx`."""
        x, y, z, w = self.x, self.y, self.z, self.w
        roll = math.atan2(2.0 * (w * x + y * z), 1.0 - 2.0 * (x * x + y * y))
        pitch = math.asin(max(-1.0, min(1.0, 2.0 * (w * y - z * x))))
        yaw = math.atan2(2.0 * (w * z + x * y), 1.0 - 2.0 * (y * y + z * z))
        return roll, pitch, yaw

    def __mul__(self, other: "Quat") -> "Quat":
        return Quat(
            self.w * other.x + self.x * other.w + self.y * other.z - self.z * other.y,
            self.w * other.y - self.x * other.z + self.y * other.w + self.z * other.x,
            self.w * other.z + self.x * other.y - self.y * other.x + self.z * other.w,
            self.w * other.w - self.x * other.x - self.y * other.y - self.z * other.z,
        )

    def __iter__(self) -> Any:
        return iter((self.x, self.y, self.z, self.w))

    def rotate(self, vector: Vec3) -> Vec3:
        """Return the rotated vector."""
        axis = Vec3(self.x, self.y, self.z)
        twice_cross = axis.cross(vector) * 2.0
        return vector + twice_cross * self.w + axis.cross(twice_cross)

    def inverse(self) -> "Quat":
        """Return the opposite rotation."""
        return Quat(-self.x, -self.y, -self.z, self.w)

    def normalize(self) -> "Quat":
        """Return the quaternion of length 1; no rotation for zero."""
        length = math.sqrt(self.x**2 + self.y**2 + self.z**2 + self.w**2)
        if length == 0.0:
            return Quat()
        return Quat(self.x / length, self.y / length, self.z / length, self.w / length)


_AXES = (Vec3(1, 0, 0), Vec3(0, 1, 0), Vec3(0, 0, 1))


class Transform(_Record):
    """Pose: position p and rotation r."""

    dtype = np.dtype([("p", Vec3.dtype), ("r", Quat.dtype)])
    _fields: ClassVar[dict[str, Any]] = {"p": Vec3._of, "r": Quat._of}
    p: Vec3
    r: Quat

    def __init__(self, p: Any = None, r: Any = None):
        self.p = Vec3() if p is None else p
        self.r = Quat() if r is None else r

    def __mul__(self, other: "Transform") -> "Transform":
        return Transform(self.transform_point(other.p), self.r * other.r)

    def inverse(self) -> "Transform":
        """Return the inverse pose."""
        rotation = self.r.inverse()
        return Transform(rotation.rotate(-self.p), rotation)

    def transform_point(self, point: Vec3) -> Vec3:
        """Return a point given in this frame, in the outer one."""
        return self.r.rotate(point) + self.p

    def transform_vector(self, vector: Vec3) -> Vec3:
        """Return a direction given in this frame, in the outer one."""
        return self.r.rotate(vector)

    def transform_points(self, points: Any) -> np.ndarray:
        """Return points (structured `Vec3` array) given in this frame, in the outer one."""
        rows = self._rotated(points) + np.array(self.p._numbers())
        return _vectors(rows)

    def transform_vectors(self, vectors: Any) -> np.ndarray:
        """Return directions (structured `Vec3` array) given in this frame, in the outer one."""
        return _vectors(self._rotated(vectors))

    def _rotated(self, vectors: Any) -> np.ndarray:
        rows = np.asarray(vectors)
        if rows.dtype.names:
            rows = np.stack([rows[name] for name in ("x", "y", "z")], axis=-1)
        rows = rows.astype(np.float64).reshape(-1, 3)
        axis = np.array([self.r.x, self.r.y, self.r.z])
        twice_cross = 2.0 * np.cross(axis, rows)
        return rows + self.r.w * twice_cross + np.cross(axis, twice_cross)


def _vectors(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows, dtype=np.float32).view(Vec3.dtype).reshape(-1)


class Velocity(_Record):
    """Linear velocity [m/s] of the centre of mass and angular velocity [rad/s]."""

    dtype = np.dtype([("linear", Vec3.dtype), ("angular", Vec3.dtype)])
    _fields: ClassVar[dict[str, Any]] = {"linear": Vec3._of, "angular": Vec3._of}
    linear: Vec3
    angular: Vec3

    def __init__(self, linear: Any = None, angular: Any = None):
        self.linear = Vec3() if linear is None else linear
        self.angular = Vec3() if angular is None else angular


class RigidBodyState(_Record):
    """Pose and velocity of a body."""

    dtype = np.dtype([("pose", Transform.dtype), ("vel", Velocity.dtype)])
    _fields: ClassVar[dict[str, Any]] = {"pose": Transform._of, "vel": Velocity._of}
    pose: Transform
    vel: Velocity

    def __init__(self, pose: Any = None, vel: Any = None):
        self.pose = Transform() if pose is None else pose
        self.vel = Velocity() if vel is None else vel


class DofState(_Record):
    """Position [m or rad] and velocity of a degree of freedom."""

    dtype = np.dtype([("pos", "f4"), ("vel", "f4")])
    _fields: ClassVar[dict[str, Any]] = {"pos": _f32, "vel": _f32}
    pos: float
    vel: float

    def __init__(self, pos: Number = 0.0, vel: Number = 0.0):
        self.pos, self.vel = pos, vel  # type: ignore[assignment]


class DofFrame(_Record):
    """A point on the axis of a degree of freedom, and the unit axis."""

    dtype = np.dtype([("origin", Vec3.dtype), ("axis", Vec3.dtype)])
    _fields: ClassVar[dict[str, Any]] = {"origin": Vec3._of, "axis": Vec3._of}
    origin: Vec3
    axis: Vec3

    def __init__(self, origin: Any = None, axis: Any = None):
        self.origin = Vec3() if origin is None else origin
        self.axis = Vec3() if axis is None else axis


class Mat33(_Record):
    """3x3 matrix; x, y, z are its rows."""

    dtype = np.dtype([("x", Vec3.dtype), ("y", Vec3.dtype), ("z", Vec3.dtype)])
    _fields: ClassVar[dict[str, Any]] = {"x": Vec3._of, "y": Vec3._of, "z": Vec3._of}
    x: Vec3
    y: Vec3
    z: Vec3

    def __init__(self, x: Any = None, y: Any = None, z: Any = None):
        self.x = Vec3() if x is None else x
        self.y = Vec3() if y is None else y
        self.z = Vec3() if z is None else z


class Mat44(_Record):
    """4x4 matrix; x, y, z, w are its rows."""

    dtype = np.dtype([(name, Quat.dtype) for name in "xyzw"])
    _fields: ClassVar[dict[str, Any]] = dict.fromkeys("xyzw", Quat._of)
    x: Quat
    y: Quat
    z: Quat
    w: Quat

    def __init__(self, x: Any = None, y: Any = None, z: Any = None, w: Any = None):
        for name, row in zip("xyzw", (x, y, z, w), strict=True):
            setattr(self, name, Quat(0, 0, 0, 0) if row is None else row)


class SpatialForce(_Record):
    """Force [N] and torque [N·m]."""

    dtype = np.dtype([("force", Vec3.dtype), ("torque", Vec3.dtype)])
    _fields: ClassVar[dict[str, Any]] = {"force": Vec3._of, "torque": Vec3._of}
    force: Vec3
    torque: Vec3

    def __init__(self, force: Any = None, torque: Any = None):
        self.force = Vec3() if force is None else force
        self.torque = Vec3() if torque is None else torque


class IndexRange(_Record):
    """First index and number of entries."""

    dtype = np.dtype([("start", "i4"), ("count", "i4")])
    _fields: ClassVar[dict[str, Any]] = {"start": int, "count": int}
    start: int
    count: int

    def __init__(self, start: int = 0, count: int = 0):
        self.start, self.count = start, count


class Version(_Record):
    """Version of the package."""

    dtype = np.dtype([("major", "i4"), ("minor", "i4")])
    _fields: ClassVar[dict[str, Any]] = {"major": int, "minor": int}
    major: int
    minor: int

    def __init__(self, major: int = 0, minor: int = 0):
        self.major, self.minor = major, minor


class RigidContact(_Record):
    """A contact; `lambda` is the normal force [N]. See `RigidContact.dtype` for the fields of the arrays."""

    dtype = np.dtype(
        [
            ("env0", "i4"),
            ("env1", "i4"),
            ("body0", "i4"),
            ("body1", "i4"),
            ("normal", Vec3.dtype),
            ("local_pos0", Vec3.dtype),
            ("local_pos1", Vec3.dtype),
            ("offset0", Vec3.dtype),
            ("offset1", Vec3.dtype),
            ("lambda", "f4"),
            ("lambda_friction", Vec3.dtype),
            ("initial_overlap", "f4"),
            ("min_dist", "f4"),
            ("friction", "f4"),
            ("torsion_friction", "f4"),
            ("rolling_friction", "f4"),
        ]
    )
    _fields: ClassVar[dict[str, Any]] = {
        name: Vec3._of if kind[0] == Vec3.dtype else (int if kind[0].kind == "i" else _f32)
        for name, kind in dtype.fields.items()  # type: ignore[union-attr]
    }

    def __init__(self, *values: Any):
        for name, value in zip(self._fields, values, strict=False):
            setattr(self, name, value)


# Aligned, since PyTorch takes no columns whose rows are not a multiple of their numbers apart.
DOF_PROPERTIES_DTYPE = np.dtype(
    [
        ("hasLimits", "?"),
        ("lower", "f4"),
        ("upper", "f4"),
        ("driveMode", "i4"),
        ("stiffness", "f4"),
        ("damping", "f4"),
        ("velocity", "f4"),
        ("effort", "f4"),
        ("friction", "f4"),
        ("armature", "f4"),
    ],
    align=True,
)
"""Fields of the arrays of degree-of-freedom properties."""
