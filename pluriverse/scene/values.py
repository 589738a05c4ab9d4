"""The kinds of value that fields of a scene hold: numbers, vectors, poses, axes, colours."""

import math
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from pluriverse.scene.errors import FieldError
from pluriverse.scene.expression import evaluate_expression

Vector3 = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]

# The direction of a shorter vector is lost in the rounding of its components.
DIRECTION_LENGTH_MIN = 1e-9

# A quaternion this close to length 1 [relative] was rounded when it was written, to two digits or more, and
# is normalized. One further off is another thing, such as an axis with an angle.
QUATERNION_LENGTH_TOLERANCE = 0.02

# Counts and indices are 32-bit integers.
COUNT_MAX = 2**31 - 1

# Sizes of shapes [m]: of larger ones, single precision holds neither mass nor inertia.
SIZE_MAX = 1_000_000

IDENTITY_ROTATION: Quaternion = (0.0, 0.0, 0.0, 1.0)

_JSON_NUMBER: dict[str, Any] = {
    "anyOf": [
        {"type": "number"},
        {"type": "string", "description": "arithmetic with pi, + - * / ( )"},
    ]
}
_JSON_VECTOR = {"type": "array", "items": _JSON_NUMBER, "minItems": 3, "maxItems": 3}
_JSON_ROTATION = {
    "anyOf": [
        {"type": "null"},
        {"const": "identity"},
        {"type": "array", "items": _JSON_NUMBER, "minItems": 4, "maxItems": 4, "description": "xyzw"},
        {
            "type": "object",
            "properties": {
                "axis_angle": {
                    "type": "object",
                    "properties": {"axis": _JSON_VECTOR, "angle": _JSON_NUMBER},
                    "required": ["axis", "angle"],
                    "additionalProperties": False,
                }
            },
            "required": ["axis_angle"],
            "additionalProperties": False,
        },
    ]
}


def shown(value: Any) -> str:
    """Return a value as an error message shows it, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def reported(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Report the `FieldError` of a check through Pydantic, with the path to the value."""

    def wrapper(value: Any) -> Any:
        try:
            return check(value)
        except FieldError as error:
            context = {"path": error.path, "message": str(error)}
            raise PydanticCustomError("scene_value", "{message}", context) from error

    return wrapper


# Largest number of single precision, as which models keep what a scene says.
NUMBER_MAX = 3.4028234663852886e38


def parse_number(value: Any, *path: str | int) -> float:
    """Return a number given as such or as an expression.

    Raises:
        FieldError: It is neither, or not finite.
    """
    if isinstance(value, str):
        try:
            value = evaluate_expression(value)
        except ValueError as error:
            raise FieldError(str(error), *path) from error
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise FieldError(f"{shown(value)} is not a number (or an expression such as 'pi * 0.5')", *path)
    try:
        number = float(value)
    except OverflowError as error:
        raise FieldError(f"{shown(value)} is too large for a floating-point number", *path) from error
    if not math.isfinite(number):
        raise FieldError(f"{number} is not a finite number", *path)
    if abs(number) > NUMBER_MAX:
        raise FieldError(
            f"{number} is out of range; it must be at most {NUMBER_MAX:.2g}, the largest of single precision",
            *path,
        )
    return number


def _parse_limit(value: Any) -> float:
    """Return a joint limit; an infinite one means that there is none."""
    if isinstance(value, float) and math.isinf(value):
        return value
    return parse_number(value)


def parse_vector(value: Any, *path: str | int, length: int = 3) -> tuple[float, ...]:
    """Return a list of `length` numbers."""
    if not isinstance(value, list | tuple) or len(value) != length:
        raise FieldError(f"{shown(value)} is not a list of {length} numbers", *path)
    return tuple(parse_number(number, *path, index) for index, number in enumerate(value))


def _parse_direction(value: Any, *path: str | int) -> Vector3:
    vector = parse_vector(value, *path)
    length = math.sqrt(sum(number * number for number in vector))
    if length < DIRECTION_LENGTH_MIN:
        raise FieldError(f"{shown(value)} has no direction; give a vector longer than zero", *path)
    return (vector[0] / length, vector[1] / length, vector[2] / length)


_AXES: dict[str, Vector3] = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}


def _parse_axis(value: Any) -> Vector3:
    """Return the unit vector of `x`, `-y`, `AXIS.Z`, 0, 1, 2 or `[x, y, z]`."""
    if isinstance(value, list | tuple):
        return _parse_direction(value)
    text = str(value).strip().lower().removeprefix("axis.")
    if isinstance(value, str | int) and not isinstance(value, bool):
        if text in ("0", "1", "2"):
            return _AXES["xyz"[int(text)]]
        if text in _AXES:
            return _AXES[text]
        if text[:1] in "+-" and text[1:] in _AXES:
            x, y, z = _AXES[text[1:]]
            return (-x, -y, -z) if text[0] == "-" else (x, y, z)
    raise FieldError(f"{shown(value)} is not an axis; write x, y, z, a vector [x, y, z] or an index 0, 1, 2")


def _parse_rotation(value: Any, *path: str | int) -> Quaternion:
    if value is None or value == "identity":
        return IDENTITY_ROTATION
    if isinstance(value, dict):
        _only_keys(value, ("axis_angle",), *path)
        axis_angle = value["axis_angle"]
        if not isinstance(axis_angle, dict):
            raise FieldError(f"{shown(axis_angle)} is not a mapping with axis and angle", *path, "axis_angle")
        _only_keys(axis_angle, ("axis", "angle"), *path, "axis_angle")
        for key in ("axis", "angle"):
            if key not in axis_angle:
                raise FieldError(f"the required key '{key}' is missing", *path, "axis_angle")
        x, y, z = _parse_direction(axis_angle["axis"], *path, "axis_angle", "axis")
        half = 0.5 * parse_number(axis_angle["angle"], *path, "axis_angle", "angle")
        sine = math.sin(half)
        return (x * sine, y * sine, z * sine, math.cos(half))
    if not isinstance(value, list | tuple):
        raise FieldError(
            f"{shown(value)} is not a rotation; write identity, a quaternion [x, y, z, w] or "
            "{axis_angle: {axis: [x, y, z], angle: radians}}",
            *path,
        )
    quaternion = parse_vector(value, *path, length=4)
    norm = math.sqrt(sum(number * number for number in quaternion))
    if abs(norm - 1.0) > QUATERNION_LENGTH_TOLERANCE:
        raise FieldError(
            f"the quaternion {shown(value)} has length {norm:.4g}, but a rotation has length 1; the order is "
            "x, y, z, w and identity is [0, 0, 0, 1]",
            *path,
        )
    x, y, z, w = (number / norm for number in quaternion)
    return (x, y, z, w)


def _only_keys(value: dict[str, Any], allowed: tuple[str, ...], *path: str | int) -> None:
    if not value:
        raise FieldError(f"the mapping is empty; it may hold {', '.join(allowed)}", *path)
    for key in value:
        if key not in allowed:
            raise FieldError(f"unknown key '{key}'; allowed here: {', '.join(allowed)}", *path, key)


class Pose(tuple[Vector3, Quaternion]):
    """A position [m] and a unit quaternion (xyzw)."""

    __slots__ = ()

    @property
    def position(self) -> Vector3:
        """Position [m]."""
        return self[0]

    @property
    def rotation(self) -> Quaternion:
        """Unit quaternion xyzw."""
        return self[1]

    def as_list(self) -> list[float]:
        """Return position and quaternion behind each other."""
        return [*self[0], *self[1]]


IDENTITY = Pose(((0.0, 0.0, 0.0), IDENTITY_ROTATION))


def parse_pose(value: Any) -> Pose:
    """Return the pose of null, `identity` or `{p: [x, y, z], q: ...}`."""
    if isinstance(value, Pose):
        return value
    if value is None or value == "identity":
        return IDENTITY
    if not isinstance(value, dict):
        raise FieldError(
            f"{shown(value)} is not a transform; write identity or {{p: [x, y, z], q: identity}}"
        )
    _only_keys(value, ("p", "q"))
    position = parse_vector(value["p"], "p") if value.get("p") is not None else IDENTITY.position
    return Pose(((position[0], position[1], position[2]), _parse_rotation(value.get("q"), "q")))


def _parse_color(value: Any) -> Vector3:
    """Return a colour with components 0 to 1; a component above 1 means that they run from 0 to 255."""
    r, g, b = parse_vector(value)
    scale = 255.0 if max(r, g, b) > 1.0 else 1.0
    if min(r, g, b) < 0.0 or max(r, g, b) > 255.0:
        raise FieldError(f"{shown(value)} is not a colour; write [r, g, b] with 0 to 1 or 0 to 255")
    return (r / scale, g / scale, b / scale)


def parse_scale(value: Any, *path: str | int) -> Vector3:
    """Return a scale factor per axis from one number or three."""
    is_list = isinstance(value, list | tuple)
    vector = parse_vector(value, *path) if is_list else (parse_number(value, *path),) * 3
    if not min(vector) > 0.0:
        raise FieldError(f"{shown(value)}: a scale factor must be positive", *path)
    return (vector[0], vector[1], vector[2])


def parse_gravity(value: Any, *path: str | int) -> Vector3:
    """Return gravity [m/s²] from a vector or from a number along +z (so the Earth's is negative)."""
    if isinstance(value, list | tuple):
        x, y, z = parse_vector(value, *path)
        return (x, y, z)
    return (0.0, 0.0, parse_number(value, *path))


def _parse_index(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise FieldError(f"{shown(value)} is not an integer")
    return value


def _parse_reference(value: Any) -> str | int:
    """Return a name or an index."""
    if isinstance(value, str) and not value:
        raise FieldError("this text must not be empty")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise FieldError(f"{shown(value)} is neither a name nor an index")
    return value


def _at_least(low: float, *, exclusive: bool = False) -> Callable[[float], float]:
    def check(value: float) -> float:
        if value < low or (exclusive and value == low):
            relation = "greater than" if exclusive else "at least"
            raise FieldError(f"{value:g} is out of range; it must be {relation} {low:g}")
        return value

    return reported(check)


def at_most(high: float) -> Callable[[float], float]:
    """Return a check that a number does not exceed `high`."""

    def check(value: float) -> float:
        if value > high:
            raise FieldError(f"{value:,} is out of range; it must be at most {high:,}")
        return value

    return reported(check)


Number = Annotated[float, BeforeValidator(reported(parse_number)), WithJsonSchema(_JSON_NUMBER)]
Limit = Annotated[float, BeforeValidator(reported(_parse_limit)), WithJsonSchema(_JSON_NUMBER)]
NotNegative = Annotated[Number, AfterValidator(_at_least(0.0))]
Positive = Annotated[Number, AfterValidator(_at_least(0.0, exclusive=True))]
Size = Annotated[Positive, AfterValidator(at_most(SIZE_MAX))]
Index = Annotated[int, PlainValidator(reported(_parse_index)), WithJsonSchema({"type": "integer"})]
Count = Annotated[Index, AfterValidator(_at_least(1)), AfterValidator(at_most(COUNT_MAX))]
Seed = Annotated[Index, AfterValidator(_at_least(0)), AfterValidator(at_most(COUNT_MAX))]
Vector = Annotated[Vector3, PlainValidator(reported(parse_vector)), WithJsonSchema(_JSON_VECTOR)]
Axis = Annotated[
    Vector3,
    PlainValidator(reported(_parse_axis)),
    WithJsonSchema({"anyOf": [_JSON_VECTOR, {"type": "string"}, {"enum": [0, 1, 2]}]}),
]
Transform = Annotated[
    Pose,
    PlainValidator(reported(parse_pose)),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "null"},
                {"const": "identity"},
                {
                    "type": "object",
                    "properties": {"p": _JSON_VECTOR, "q": _JSON_ROTATION},
                    "additionalProperties": False,
                },
            ]
        }
    ),
]
Color = Annotated[Vector3, PlainValidator(reported(_parse_color)), WithJsonSchema(_JSON_VECTOR)]
Scale = Annotated[
    Vector3,
    PlainValidator(reported(parse_scale)),
    WithJsonSchema({"anyOf": [_JSON_VECTOR, *_JSON_NUMBER["anyOf"]]}),
]
Gravity = Annotated[
    Vector3,
    PlainValidator(reported(parse_gravity)),
    WithJsonSchema({"anyOf": [_JSON_VECTOR, *_JSON_NUMBER["anyOf"]]}),
]
Reference = Annotated[
    str | int, PlainValidator(reported(_parse_reference)), WithJsonSchema({"type": ["string", "integer"]})
]
Name = Annotated[str, Field(min_length=1)]
