"""Springs: tables of springs on sums of joint coordinates and on bodies, which a solver may couple."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import Model


@wp.struct
class TendonTable:
    """Articulations with tendons, their tendons, and the joints of these."""

    articulation: wp.array[int]
    """The articulations, in a list of their own."""
    first_dof: wp.array[int]
    """Its first degree of freedom in the model."""
    dof_count: wp.array[int]
    """Its degrees of freedom."""
    tendon_start: wp.array[int]
    """First tendon of each entry of the list, shape [entry + 1]."""
    entry_start: wp.array[int]
    """First joint of each tendon, shape [tendon + 1]."""
    entry_dof: wp.array[int]
    """Degree of freedom in the articulation, of each joint of a tendon."""
    entry_coord: wp.array[int]
    """Its coordinate in the model."""
    coefficient: wp.array[float]
    """Length per unit of position [m/m or m/rad], of each joint of a tendon."""
    offset: wp.array[float]
    """Offset of the length of each tendon [m]."""
    rest: wp.array[float]
    """Rest length of each tendon [m]."""
    force: wp.array[float]
    """Constant force of each tendon [N]; a positive one lengthens it."""
    stiffness: wp.array[float]
    """Stiffness of each tendon [N/m]."""
    damping: wp.array[float]
    """Damping of each tendon [N·s/m]."""
    lower: wp.array[float]
    """Smallest length of each tendon [m]."""
    upper: wp.array[float]
    """Largest length of each tendon [m]."""
    limit_stiffness: wp.array[float]
    """Stiffness of the limits of each tendon [N/m], 0 for none."""


def no_tendons(device: wp.Device) -> TendonTable:
    """Return a table of no tendons, which leaves out those of a model."""
    table = TendonTable()
    for name in ("articulation", "first_dof", "dof_count", "entry_dof", "entry_coord"):
        setattr(table, name, wp.zeros(0, dtype=int, device=device))
    for name in ("tendon_start", "entry_start"):
        setattr(table, name, wp.zeros(1, dtype=int, device=device))
    for name in ("coefficient", *TENDON_NUMBERS):
        setattr(table, name, wp.zeros(0, dtype=float, device=device))
    return table


@wp.struct
class BodySpringTable:
    """Springs that pull bodies to poses: one entry for each."""

    body: wp.array[int]
    """Body of the model."""
    articulation: wp.array[int]
    """Its articulation."""
    link: wp.array[int]
    """Number of the joint of the body in the articulation."""
    dof_count: wp.array[int]
    """Degrees of freedom of the articulation."""
    axes: wp.array[int]
    """Which axes of the target it acts along and about: bits 0 to 2 for x, y and z, 3 to 5 for
    rotations."""
    stiffness: wp.array[float]
    """N/m and N·m/rad."""
    damping: wp.array[float]
    """N·s/m and N·m·s/rad."""
    first_dof: wp.array[int]
    """First degree of freedom of the articulation in the model."""
    offset: wp.array[wp.transform]
    """Where it acts: a pose in the body [m, xyzw]."""
    target: wp.array[wp.transform]
    """Pose that it is pulled to, in the world [m, xyzw]."""


# The numbers of a spring, which may be written to later, and those that cannot be negative.
TENDON_NUMBERS = ("offset", "rest", "force", "stiffness", "damping", "lower", "upper", "limit_stiffness")
_NOT_NEGATIVE = ("stiffness", "damping", "limit_stiffness")


def check_tendons(model: Model, table: TendonTable) -> None:
    """Check a table of tendons on the host.

    Raises:
        ValueError: If its arrays do not fit each other or the model, or a number is out of range.
    """
    what = "TendonTable"
    owners = len(_host(table, what, "articulation"))
    for name in ("first_dof", "dof_count"):
        _check_size(table, what, name, owners, "articulation")
    tendons = _check_starts(table, what, "tendon_start", owners, "articulation")
    entries = _check_starts(table, what, "entry_start", tendons, "tendon")
    for name in ("entry_dof", "entry_coord", "coefficient"):
        _check_size(table, what, name, entries, "joint of a tendon")
    for name in TENDON_NUMBERS:
        _check_size(table, what, name, tendons, "tendon")
    _check_range(table, what, "articulation", model.articulation_count)
    first, counts = _host(table, what, "first_dof"), _host(table, what, "dof_count")
    _check_range(table, what, "first_dof", model.joint_dof_count)
    outside = np.flatnonzero((counts < 1) | (first + counts > model.joint_dof_count))
    if outside.size:
        at = int(outside[0])
        raise ValueError(
            f"{what}: dof_count[{at}] is {counts[at]} from degree of freedom {first[at]}, but the model has "
            f"{model.joint_dof_count}. Give those of the articulation."
        )
    owner = np.repeat(np.arange(owners), np.diff(_host(table, what, "tendon_start")))
    owner = np.repeat(owner, np.diff(_host(table, what, "entry_start")))
    _check_range(table, what, "entry_dof", counts[owner])
    _check_range(table, what, "entry_coord", model.joint_coord_count)
    _check_numbers(table, what, ("coefficient", *TENDON_NUMBERS))


def check_body_springs(model: Model, table: BodySpringTable) -> None:
    """Check a table of springs on bodies on the host.

    Raises:
        ValueError: If its arrays do not fit each other or the model, or a number is out of range.
    """
    what = "BodySpringTable"
    count = len(_host(table, what, "body"))
    for name in ("axes", "stiffness", "damping", "offset", "target"):
        _check_size(table, what, name, count, "spring")
    _check_range(table, what, "body", model.body_count)
    _check_range(table, what, "axes", 1 << 6)
    _check_numbers(table, what, ("stiffness", "damping", "offset", "target"))


def _host(table: Any, what: str, name: str) -> np.ndarray:
    array = getattr(table, name)
    if array is None or array.ndim != 1:
        raise ValueError(f"{what}: {name} must be an array with one axis. See its documentation.")
    return np.asarray(array.numpy())


def _check_size(table: Any, what: str, name: str, count: int, each: str) -> None:
    size = len(_host(table, what, name))
    if size != count:
        raise ValueError(f"{what}: {name} has {size} entries, but must have {count}: one for each {each}.")


def _check_starts(table: Any, what: str, name: str, count: int, each: str) -> int:
    """Check where the parts of each of `count` entities begin; return the number of all parts."""
    _check_size(table, what, name, count + 1, f"{each}, and the end")
    start = _host(table, what, name)
    if start[0] != 0 or (np.diff(start) < 0).any():
        raise ValueError(f"{what}: {name} is {start.tolist()}, but must begin at 0 and never decrease.")
    return int(start[-1])


def _check_range(table: Any, what: str, name: str, end: Any) -> None:
    values = _host(table, what, name)
    outside = np.flatnonzero((values < 0) | (values >= end))
    if outside.size:
        at = int(outside[0])
        last = int(np.broadcast_to(end, values.shape)[at]) - 1
        raise ValueError(f"{what}: {name}[{at}] is {values[at]}, but must be in 0..{last}.")


def _check_numbers(table: Any, what: str, names: tuple[str, ...]) -> None:
    for name in names:
        values = _host(table, what, name)
        if not len(values):
            continue
        values = values.reshape(len(values), -1)
        wrong = np.isnan(values).any(axis=1)
        if name not in ("lower", "upper"):
            wrong |= np.isinf(values).any(axis=1)
        if name in _NOT_NEGATIVE:
            wrong |= (values < 0.0).any(axis=1)
        if wrong.any():
            at = int(np.argmax(wrong))
            rule = "finite and >= 0" if name in _NOT_NEGATIVE else "a number"
            raise ValueError(f"{what}: {name}[{at}] is {values[at].squeeze().tolist()}, but must be {rule}.")
