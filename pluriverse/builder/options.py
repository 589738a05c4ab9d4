"""Options that several methods of a builder share, each declared once with its meaning.

A method takes them as `**options: Unpack[JointOptions]`, which type checkers and editors follow.
`with_options` gives it the full signature and documentation, and refuses other names. The importers declare
theirs in the same way (`importers/options.py`).
"""

import ast
import difflib
import functools
import inspect
import itertools
import re
import sys
import textwrap
from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, TypedDict, TypeVar, get_args, get_origin, get_type_hints

from pluriverse.builder.inputs import AxisLike, Transform, Vector
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.builder.shape_config import ShapeConfig
from pluriverse.types import JointTargetMode

Method = TypeVar("Method", bound=Callable[..., Any])


class LinkOptions(TypedDict, total=False):
    """Options of `add_link` and `add_body`."""

    xform: Transform | None
    """Pose in the world. A free joint starts there; the pose of bodies behind other joints follows from
    `joint_q`."""
    com: Vector | None
    """Centre of mass of `mass` [m], body frame; the origin if None."""
    inertia: Any | None
    """Rotational inertia of `mass` about `com` [kg·m²], body axes, 3x3."""
    mass: Annotated[float, 0.0]
    """Mass [kg]."""
    label: str | None
    """Name; `body_INDEX` if None."""
    lock_inertia: Annotated[bool, False]
    """Whether shapes add nothing to mass, com and inertia."""
    is_kinematic: Annotated[bool, False]
    """Whether the body moves as its state and targets say, whatever acts on it. Its joint must hang on the
    world; what hangs on the body stays dynamic."""
    custom_attributes: Mapping[str, Any] | None
    """Custom attributes of the body, by key."""


class JointOptions(TypedDict, total=False):
    """Options of every joint."""

    parent_xform: Transform | None
    """Joint frame in the parent body."""
    child_xform: Transform | None
    """Joint frame in the child body."""
    label: str | None
    """Name; `joint_INDEX` if None."""
    collision_filter_parent: Annotated[bool, True]
    """Whether the shapes of parent and child do not collide."""
    enabled: Annotated[bool, True]
    """Whether it acts. If not, the child moves freely, and the joint is a constraint that is off (see
    `add_articulation`)."""
    custom_attributes: Mapping[str, Any] | None
    """Custom attributes by key: those of the joint, and those of its degrees of freedom, coordinates and
    constraints (one value for all, one for each, or some by place)."""


class AxisOptions(TypedDict, total=False):
    """Options of the axis of a hinge or slider; None takes `default_joint_cfg`. See `JointDofConfig`."""

    axis: AxisLike | JointDofConfig | None
    """Axis in the joint frame, or the whole configuration as a `JointDofConfig`."""
    target_pos: float | None
    """Position that the drive pulls to [m or rad]."""
    target_vel: float | None
    """Velocity that the drive pulls to [m/s or rad/s]."""
    target_q: float | None
    """Another name of `target_pos`."""
    target_qd: float | None
    """Another name of `target_vel`."""
    target_ke: float | None
    """Stiffness of the drive [N/m or N·m/rad]."""
    target_kd: float | None
    """Damping of the drive [N·s/m or N·m·s/rad]."""
    limit_lower: float | None
    """Lower limit [m or rad]."""
    limit_upper: float | None
    """Upper limit [m or rad]."""
    limit_ke: float | None
    """Stiffness of the limits [N/m or N·m/rad]; left to the solver where nobody gives any."""
    limit_kd: float | None
    """Damping of the limits [N·s/m or N·m·s/rad]; the same."""
    armature: float | None
    """Inertia of the rotor [kg or kg·m²]."""
    damping: float | None
    """Viscous damping [N·s/m or N·m·s/rad]."""
    friction: float | None
    """Dry friction [N or N·m]."""
    effort_limit: float | None
    """Largest force of the drive [N or N·m]."""
    velocity_limit: float | None
    """Rated speed [m/s or rad/s]."""
    actuator_mode: JointTargetMode | int | None
    """What the drive follows."""


class AxisJointOptions(AxisOptions, JointOptions, total=False):
    """Options of hinges and sliders."""


class ShapeOptions(TypedDict, total=False):
    """Options of every shape."""

    xform: Transform | None
    """Pose in the frame of the body."""
    cfg: ShapeConfig | None
    """Material, mass and collision behaviour; `default_shape_cfg` if None."""
    color: Vector | None
    """Red, green and blue from 0 to 1; that of the mesh if None."""
    label: str | None
    """Name; `shape_INDEX` if None."""
    custom_attributes: Mapping[str, Any] | None
    """Custom attributes of the shape, by key."""


class PrimitiveOptions(ShapeOptions, total=False):
    """Options of primitives."""

    as_site: Annotated[bool, False]
    """Whether it is a mark without mass and collision."""


def with_options(options: type, *, tolerated: Collection[str] = ()) -> Callable[[Method], Method]:
    """Return a decorator that gives a method with `**options` the signature and documentation of them all.

    The method refuses other names (`TypeError`), but for those that are `tolerated`: it sees to them itself.
    """
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
        for name, (hint, default) in _declarations(options).items()
    ]
    meanings = _meanings(options)

    def decorate(method: Method) -> Method:
        signature = inspect.signature(method)
        own = [part for part in signature.parameters.values() if part.kind is not part.VAR_KEYWORD]
        names = [*(part.name for part in own), *(part.name for part in added)]

        @functools.wraps(method)
        def checked(*arguments: Any, **keywords: Any) -> Any:
            for name in keywords:
                if name not in names and name not in tolerated:
                    close = difflib.get_close_matches(name, names, n=1)
                    raise TypeError(
                        f"{method.__name__}() got an unexpected keyword argument '{name}'. "
                        + (f"Did you mean '{close[0]}'?" if close else f"There are {', '.join(names[1:])}.")
                    )
            return method(*arguments, **keywords)

        checked.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
        checked.__doc__ = _with_arguments(inspect.getdoc(method) or "", meanings)
        return checked  # type: ignore[return-value]

    return decorate


def defaults_of(options: type) -> dict[str, Any]:
    """Return the defaults of options by name."""
    return {name: default for name, (_, default) in _declarations(options).items()}


@functools.cache
def _declarations(options: type) -> dict[str, tuple[Any, Any]]:
    """Return the types and defaults of options: the default stands beside the type, None where none does."""
    hints = get_type_hints(options, include_extras=True)
    return {
        name: get_args(hint) if get_origin(hint) is Annotated else (hint, None)
        for name, hint in hints.items()
    }


@functools.cache
def _classes(module: str) -> dict[str, ast.ClassDef]:
    """Return the source of the classes of a module by name."""
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}


def _meanings(options: type) -> dict[str, str]:
    """Return what the docstrings of options say, by name."""
    pending, result = [options.__name__], {}
    sources = _classes(options.__module__)
    while pending:
        source = sources[pending.pop(0)]
        pending += [ast.unparse(base) for base in source.bases if ast.unparse(base) in sources]
        for declared, meaning in itertools.pairwise(source.body):
            if isinstance(declared, ast.AnnAssign):
                result[declared.target.id] = " ".join(meaning.value.value.split())  # type: ignore
    return {name: result[name] for name in _declarations(options)}


def _with_arguments(text: str, meanings: Mapping[str, str]) -> str:
    """Return a docstring with more arguments."""
    entries = "".join(
        textwrap.fill(f"{name}: {meaning}", 105, initial_indent="    ", subsequent_indent="        ") + "\n"
        for name, meaning in meanings.items()
    )
    end = re.search(r"^(Returns|Raises):$", text, re.MULTILINE)
    head, tail = (text, "") if end is None else (text[: end.start()], text[end.start() :])
    if "\nArgs:\n" not in head:
        head += "\nArgs:\n"
    return head.rstrip("\n") + "\n" + entries + ("\n" + tail if tail else "")
