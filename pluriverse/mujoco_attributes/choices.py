"""Constants and enumerations of the namespace `mujoco`, such as the sources of controls of actuators."""

import enum
from typing import Any

NAMESPACE = "mujoco"
"""Namespace of the MuJoCo-specific custom attributes."""
DEFAULT_SOLREF = (0.02, 1.0)
"""MuJoCo's own (timeconst [s], dampratio)."""
DEFAULT_SOLIMP = (0.9, 0.95, 0.001, 0.5, 2.0)
"""MuJoCo's own impedance: at no violation, at full violation, width [m or rad], midpoint, power."""
NO_LENGTH = -1.0
"""Rest length of a tendon that is not given; other negative lengths are those of fixed tendons."""
FIXED, SPATIAL = range(2)
"""Values of `tendon_type`."""
GAIN_FIXED, GAIN_AFFINE = range(2)
BIAS_NONE, BIAS_AFFINE = range(2)
"""Values of `actuator_gaintype` and `actuator_biastype` (`mujoco.mjtGain` and `mjtBias`)."""

# Switches that an asset may set (`<flag>`), as custom attributes `flag_<name>`: on and off by default.
FLAGS_ON = (
    *("constraint", "equality", "frictionloss", "limit", "contact", "spring", "damper", "clampctrl"),
    *("warmstart", "actuation", "refsafe", "sensor", "eulerdamp", "nativeccd", "island", "multiccd"),
)
FLAGS_OFF = ("energy", "invdiscrete")


class SolrefMode(enum.IntEnum):
    """Source of the `solref` of a joint limit or a shape."""

    FORCE_SPACE = 0
    """Stiffness and damping of the model, in force space; MuJoCo's default where they are not given (NaN)."""
    RAW = 1
    """The authored `solref`, unchanged."""
    MJCF_DEFAULT = 2
    """What the document says, of which a limit keeps an authored `solref`, else MuJoCo's default; unless
    stiffness or damping of the model are given. Those of a limit are in force space, those of a shape apply
    to a mass of 1 kg."""


class TrnType(enum.IntEnum):
    """Transmission of an actuator. The values agree with Newton's, not with `mujoco.mjtTrn`."""

    JOINT = 0
    JOINT_IN_PARENT = 1
    TENDON = 2
    SITE = 3
    BODY = 4
    SLIDERCRANK = 5


class CtrlSource(enum.IntEnum):
    """Who commands an actuator."""

    JOINT_TARGET = 0
    """The targets of its degree of freedom (`Control.joint_target_pos` and so on): it is that drive."""
    CTRL_DIRECT = 1
    """`control.mujoco.ctrl`."""
    CTRL_FURTHER = 2
    """`control.mujoco.ctrl`: a further control of the actuator in the row before."""


class CtrlType(enum.IntEnum):
    """Meaning of the control of an actuator."""

    POSITION = 0
    VELOCITY = 1
    GENERAL = 2


class WrapType(enum.IntEnum):
    """Element that a spatial tendon passes."""

    SITE = 0
    GEOM = 1
    PULLEY = 2


class TargetKind(enum.Enum):
    """Kinds of entities that actuators act on."""

    JOINT_DOF = "joint_dof"
    TENDON = "mujoco:tendon"
    SHAPE = "shape"
    BODY = "body"


NAMES: dict[str, tuple[str, ...]] = {
    "integrator": ("euler", "rk4", "implicit", "implicitfast", "discrete"),
    "solver": ("pgs", "cg", "newton"),
    "cone": ("pyramidal", "elliptic"),
    "jacobian": ("dense", "sparse", "auto"),
    "actuator_trntype": ("joint", "jointinparent", "tendon", "site", "body", "slidercrank"),
    "sleep_policy": ("auto", "auto_never", "auto_allowed", "never", "allowed", "init"),
}
"""Names of the choices, by number."""

_ENUMS = {"actuator_dyntype": "Dyn", "actuator_gaintype": "Gain", "actuator_biastype": "Bias"}
"""Choices whose numbers are those of MuJoCo (`mjtDyn`), which differ between its versions."""


def as_number(name: str, value: Any) -> int:
    """Return the number of a choice given by name or number.

    Raises:
        ValueError: If there is no such choice.
    """
    numbers = {text: number for number, text in enumerate(NAMES.get(name, ()))}
    if name in _ENUMS:
        import mujoco

        prefix = f"mj{_ENUMS[name].upper()}_"
        members = getattr(mujoco, f"mjt{_ENUMS[name]}").__members__
        numbers = {member.removeprefix(prefix).lower(): int(number) for member, number in members.items()}
    text = str(value).strip().lower()
    if text in numbers:
        return numbers[text]
    if text.isdigit() and int(text) in numbers.values():
        return int(text)
    raise ValueError(f"mujoco:{name} is {value!r}, but it must be one of {', '.join(map(repr, numbers))}.")
