"""Targets: the entities that a term selects, and checks of the values that it may draw."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import Model
from pluriverse.model.entity_names import entity_name
from pluriverse.model.schema import MODEL_ARRAYS, OTHER_NAMES
from pluriverse.model.world_ranges import entity_count, world_ranges
from pluriverse.randomization.terms import Operation, Property
from pluriverse.randomization.write import Targets
from pluriverse.selection.patterns import match_labels, present_patterns, warn_of_missing
from pluriverse.types import Entity, JointType

# Least eigenvalue of the second moment of mass, relative to the largest, for which it is factored: a few
# roundings of the float32 inertia that it is computed from.
MOMENT_RATIO_MIN = 1e-6


_OF_LIMITS = ("joint_limit_ke", "joint_limit_kd")
# Limits [m or rad] of at least this size do not limit, as the default limits of the builder do not.
LIMIT_NONE = 1e9


def entity_of(name: str) -> Entity:
    """Return the frequency of an array of the model.

    Raises:
        ValueError: If the array cannot be randomized; the message says what to do instead.
    """
    spec = MODEL_ARRAYS.get(OTHER_NAMES.get(name, name))
    if spec is None or spec.entity is None:
        known = [known for known, each in MODEL_ARRAYS.items() if each.can_be_drawn]
        raise ValueError(
            f"Property({name!r}): the model has no such property; it has {', '.join(sorted(known))}."
        )
    if spec.structural:
        raise ValueError(
            f"Property({name!r}): it is part of the structure of a model, which was evaluated in finalize. "
            "Use variants for worlds of other structure."
        )
    if spec.draw_instead is not None:
        raise ValueError(f"Property({name!r}) cannot be drawn by itself: {spec.draw_instead}.")
    return spec.entity


def property_components(term: Property, model: Model) -> tuple[list[int], int]:
    """Return the components that a term draws, and the number of components of an entity.

    Raises:
        ValueError: If there are no such components, or the distribution has another number of them.
    """
    entity_of(term.name)
    array = getattr(model, term.name)
    if array.dtype in (wp.bool, wp.int32):
        raise ValueError(
            f"Property({term.name!r}): the array does not hold numbers that could be drawn, but "
            f"{array.dtype.__name__}. Write to it, or use variants."
        )
    words = int(np.prod(array.numpy().shape[1:], dtype=np.int64))
    allowed = list(range(3)) if MODEL_ARRAYS[term.name].is_pose else list(range(words))
    components = allowed if term.components is None else [int(component) for component in term.components]
    if term.name == "body_inertia" and (
        term.operation is not Operation.SCALE or not term.same_for_components
    ):
        raise ValueError(
            "Property('body_inertia'): an inertia tensor drawn entry by entry belongs to no body. Use "
            "PseudoInertia, or operation=Operation.SCALE with same_for_components=True."
        )
    if any(component not in allowed for component in components) or not components:
        raise ValueError(
            f"Property({term.name!r}): components are {list(components)}, but there are {allowed}"
            + (" (the position of a pose; Rotation turns it)." if MODEL_ARRAYS[term.name].is_pose else ".")
        )
    given = term.distribution.component_count()
    if given not in (None, len(components)):
        raise ValueError(
            f"Property({term.name!r}): {term.distribution} has {given} components, but {len(components)} "
            "are drawn. Give that many numbers, or one for all."
        )
    return components, words


def find_targets(
    model: Model, kind: Entity, patterns: Any, what: str, *, is_part: bool = False
) -> np.ndarray:
    """Return which entities of worlds match a pattern, as truth values. Global entities never match.

    In a part of a batch a pattern may find nothing, with a warning.

    Raises:
        KeyError: If the pattern finds nothing.
    """
    first, count = world_ranges(model, kind)
    inside = np.zeros(entity_count(model, kind), dtype=bool)
    for start, size in zip(first.tolist(), count.tolist(), strict=True):
        inside[start : start + size] = True
    if kind is Entity.WORLD:
        return inside
    labels = {
        Entity.BODY: model.body_label,
        Entity.SHAPE: model.shape_label,
        Entity.EQUALITY_CONSTRAINT: model.equality_constraint_label,
    }.get(kind, model.joint_label)
    numbers = np.arange(len(labels))
    if is_part:
        patterns = present_patterns(labels, numbers, patterns, what=what, kind=kind.key)
    found = match_labels(labels, numbers, patterns, what=what, kind=kind.key)
    if kind is Entity.BODY:
        split_from = model.body_split_from.numpy()
        found = np.isin(split_from, split_from[found])  # a body with all its parts
    if kind is Entity.JOINT_DOF:
        found = np.repeat(found, np.diff(model.joint_qd_start.numpy()))
    elif kind is Entity.JOINT_COORD:
        found = np.repeat(found, np.diff(model.joint_q_start.numpy()))
    if not (found & inside).any() and (found.any() or not is_part):
        text = f"{what}: {patterns!r} means only what all worlds share, and that has one value for all."
        if not is_part:
            raise KeyError(f"{text} Put it into the worlds to draw it for each.")
        warn_of_missing(text)
    return found & inside


def targets_to_device(
    model: Model, kind: Entity, found: np.ndarray, entry: np.ndarray | None = None
) -> Targets:
    """Return the selected entities by world, on the device.

    Args:
        model: Model of the entities.
        kind: What they are.
        found: Which of them, as truth values.
        entry: Where the value of each entity is in its array; its index if None.
    """
    first, count = world_ranges(model, kind)
    selected = np.flatnonzero(found)
    bounds = np.concatenate(
        [np.searchsorted(selected, first), np.searchsorted(selected, first[-1:] + count[-1:])]
    )
    order = np.arange(entity_count(model, kind))
    if kind is Entity.BODY:
        order = model.body_split_from.numpy()
    local = order[selected] - first[np.maximum(np.searchsorted(first, selected, side="right") - 1, 0)]
    targets = Targets()
    entities = selected if entry is None else entry[selected]
    for name, values in (("start", bounds), ("entity", entities), ("local", local)):
        array: Any = wp.array(values.astype(np.int32), dtype=wp.int32, device=model.device)
        setattr(targets, name, array)
    return targets


def check_property(
    term: Property,
    model: Model,
    selected: np.ndarray,
    values: np.ndarray,
    opposite: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Check that whatever a term draws is allowed.

    Args:
        term: The term.
        model: Model that it is drawn in.
        selected: Selected entities.
        values: Their defaults, shape [entity, component].
        opposite: How close the opposite limit of each may come, if limits of joints are drawn.

    Returns:
        The least and the largest value that may be drawn, shape [entity, component].

    Raises:
        ValueError: If it may draw a value that is not; the message names the entity and the remedy.
    """
    if term.name == "body_mass" and term.operation is not Operation.SCALE:
        split_from = model.body_split_from.numpy()
        cut = selected[np.isin(split_from[selected], split_from[split_from != np.arange(len(split_from))])]
        if len(cut):
            raise ValueError(
                f"Property('body_mass'): {_name(model, term.name, int(cut[0]))} is one of the parts of "
                "a body that a loop joint cuts, which share its mass. Use operation=Operation.SCALE, which "
                "draws one factor for all of them."
            )
    if term.operation is not Operation.ABSOLUTE:
        _check_given(term, model, selected, values)
    low, high = term.distribution.support()
    bounds = np.stack([np.broadcast_to(bound, values.shape[1]) for bound in (low, high)])
    if term.operation is Operation.ABSOLUTE:
        extremes = np.broadcast_to(bounds[:, None, :], (2, *values.shape))
    elif term.operation is Operation.SCALE:
        with np.errstate(invalid="ignore"):  # zeros stay zero whatever they are scaled by
            extremes = np.where(values == 0.0, 0.0, bounds[:, None, :] * values)
    else:
        extremes = bounds[:, None, :] + values
    least, most = extremes.min(axis=0), extremes.max(axis=0)
    spec = MODEL_ARRAYS[term.name]
    if spec.low is not None:
        # Quantities that must stay positive: the mass of a body, the size of a shape.
        bad = (least <= spec.low) & (values > spec.low) if spec.keeps_positive else least < spec.low
        if bad.any():
            row, column = np.argwhere(bad)[0]
            raise ValueError(
                f"Property({term.name!r}): {_name(model, term.name, int(selected[row]))} has the "
                f"default {values[row, column]:g}, from which {term.operation.value} by {term.distribution} "
                f"may lead to {least[row, column]:g}, which is not allowed. Choose bounds that keep it "
                "positive (low= and high= of Gaussian)."
            )
    if opposite is not None:
        is_lower = term.name == "joint_limit_lower"
        other = "joint_limit_upper" if is_lower else "joint_limit_lower"
        extreme = most[:, 0] if is_lower else least[:, 0]
        crossed = extreme > opposite if is_lower else extreme < opposite
        if crossed.any():
            row = int(np.argmax(crossed))
            raise ValueError(
                f"Property({term.name!r}): {_name(model, term.name, int(selected[row]))} could get "
                f"{extreme[row]:g}, beyond its {other} of {opposite[row]:g}. Choose bounds that keep the "
                "limits in order."
            )
    return least, most


def _check_given(term: Property, model: Model, selected: np.ndarray, values: np.ndarray) -> None:
    """Raise if there is nothing to scale or to add to: a gain that was not given is the solver's own."""
    missing = np.isnan(values).any(axis=1)
    if term.name in _OF_LIMITS:  # where there are any: what a joint without limits draws has no effect
        lower, upper = model.joint_limit_lower.numpy()[selected], model.joint_limit_upper.numpy()[selected]
        missing &= (lower > -LIMIT_NONE) | (upper < LIMIT_NONE)
    if missing.any():
        raise ValueError(
            f"Property({term.name!r}): {_name(model, term.name, int(selected[np.argmax(missing)]))} "
            "has none of its own (NaN), so that the solver chooses, and there is nothing to "
            f"{term.operation.value} by {term.distribution}. Give it one before finalize() "
            f"(builder.{term.name}), or draw the value itself with operation=Operation.ABSOLUTE."
        )


def check_inertia_factor(model: Model, selected: np.ndarray, inertia: np.ndarray) -> None:
    """Check that the inertias of bodies have parameters.

    Args:
        model: Model of the bodies.
        selected: Bodies meant.
        inertia: Their inertias, shape [body, 3, 3].

    Raises:
        ValueError: If the inertia of a body is that of no distribution of mass in space.
    """
    tensors = inertia.reshape(-1, 3, 3).astype(np.float64)
    moments = 0.5 * np.trace(tensors, axis1=1, axis2=2)[:, None, None] * np.eye(3) - tensors
    values = np.linalg.eigvalsh(moments) if len(selected) else np.zeros((0, 3))
    bad = ~(values[:, 0] > MOMENT_RATIO_MIN * values[:, 2])
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"InertiaFactor: {entity_name(model, Entity.BODY, int(selected[row]))} has the inertia "
            f"{tensors[row].tolist()} kg·m², which belongs to mass in a plane or to no body at all, so it "
            "has no log-Cholesky parameters. Give it an inertia whose principal moments satisfy the triangle "
            "inequality strictly, draw a PseudoInertia, or leave it out with entities=."
        )


def _name(model: Model, array: str, entry: int) -> str:
    """Return the name of the entity of an array's entry, for messages."""
    return entity_name(model, entity_of(array), entry)


def check_scalar_joints(term: Property, model: Model, found: np.ndarray) -> None:
    """Check that coordinates are not parts of quaternions.

    Raises:
        ValueError: If some are.
    """
    starts = model.joint_q_start if term.name == "joint_q" else model.joint_qd_start
    joints = np.unique(np.searchsorted(starts.numpy(), np.flatnonzero(found), side="right") - 1)
    rotates_freely = np.isin(model.joint_type.numpy()[joints], (JointType.FREE, JointType.BALL))
    if rotates_freely.any():
        joint = int(joints[np.argmax(rotates_freely)])
        raise ValueError(
            f"Property({term.name!r}): {entity_name(model, Entity.JOINT, joint)} has coordinates "
            "that belong together. Use InitialState, or leave it out with entities=."
        )
