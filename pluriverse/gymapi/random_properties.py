"""Random properties: how scripts draw masses, materials, gains and parameters of the sim.

An attribute is drawn by a dictionary:

* `distribution`: `uniform` or `loguniform` between the two numbers of `range`, or `gaussian` with that mean
  and standard deviation;
* `operation`: `additive` adds what is drawn to the original value, `scaling` multiplies by it;
* `schedule`, `schedule_steps`: with `linear` the range grows from no change to its full width over so many
  steps, with `constant` nothing changes before that step;
* `num_buckets`: how many values a property may take, at equal distances over the range.

Numbers come from NumPy's global generator, which scripts seed.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from pluriverse.gymapi.structures import SimParams

# Scripts seed the global generator (np.random.seed) to get the same properties again.
# ruff: noqa: NPY002

MATERIALS_MAX = 64000
"""Number of materials that scripts for the original keep to."""

_KINDS = (
    ("dof_properties", "actor_dof_properties"),
    ("tendon_properties", "actor_tendon_properties"),
    ("rigid_body_properties", "actor_rigid_body_properties"),
    ("rigid_shape_properties", "actor_rigid_shape_properties"),
    ("sim_params", "sim_params"),
)
_NEUTRAL = {"additive": 0.0, "scaling": 1.0}


def get_property_setter_map(gym: Any) -> dict[str, Callable[..., Any]]:
    """Return the call that sets each kind of property, by the name that randomization files use."""
    return {kind: getattr(gym, f"set_{call}") for kind, call in _KINDS}


def get_property_getter_map(gym: Any) -> dict[str, Callable[..., Any]]:
    """Return the call that reads each kind of property, by the name that randomization files use."""
    return {kind: getattr(gym, f"get_{call}") for kind, call in _KINDS}


def get_default_setter_args(gym: Any) -> dict[str, list[Any]]:
    """Return further arguments of these setters: inertias follow masses."""
    return {kind: [True] if kind == "rigid_body_properties" else [] for kind, _ in _KINDS}


def generate_random_samples(
    attr_randomization_params: Mapping[str, Any],
    shape: Any,
    curr_gym_step_count: int,
    extern_sample: Any = None,
) -> Any:
    """Return random changes of an attribute: summands or factors, depending on its operation.

    Args:
        attr_randomization_params: How it is drawn; see this module.
        shape: Shape of the result.
        curr_gym_step_count: Steps made so far, for the schedule.
        extern_sample: Drawn elsewhere: only the schedule acts on it.

    Raises:
        ValueError: If distribution, operation or schedule are none of those known.
    """
    neutral = _choose(attr_randomization_params, "operation", _NEUTRAL)
    share = _share(attr_randomization_params, curr_gym_step_count)
    if extern_sample is not None:
        return neutral + share * (extern_sample - neutral)
    first, second = (float(bound) for bound in attr_randomization_params["range"])
    draw = _choose(
        attr_randomization_params,
        "distribution",
        {
            "uniform": np.random.uniform,
            "loguniform": lambda low, high, size: np.exp(np.random.uniform(np.log(low), np.log(high), size)),
            "gaussian": np.random.normal,
        },
    )
    is_gaussian = attr_randomization_params["distribution"] == "gaussian"
    first = neutral + share * (first - neutral)
    second = share * second if is_gaussian else neutral + share * (second - neutral)
    return draw(first, second, shape)


def get_bucketed_val(new_prop_val: Any, attr_randomization_params: Mapping[str, Any]) -> Any:
    """Return the next lower value of a bucketed property, or its lowest value."""
    first, second = (float(bound) for bound in attr_randomization_params["range"])
    low, high = first, second
    if attr_randomization_params["distribution"] == "gaussian":
        low, high = first - 2.0 * second, first + 2.0 * second
    count = int(attr_randomization_params["num_buckets"])
    width = (high - low) / count
    if width == 0.0:
        return np.zeros_like(new_prop_val) + low
    bucket = np.floor((np.asarray(new_prop_val) - low) / width)
    return low + width * np.clip(bucket, 0, count - 1)


def apply_random_samples(
    prop: Any,
    og_prop: Any,
    attr: str,
    attr_randomization_params: Mapping[str, Any],
    curr_gym_step_count: int,
    extern_sample: Any = None,
    bucketing_randomization_params: Mapping[str, Any] | None = None,
) -> None:
    """Give an attribute of properties a random value, made of the original one.

    Args:
        prop: Properties to change: a structure, a structured array of degrees of freedom, or `SimParams`.
        og_prop: The same as they were, as a dictionary or a structured array.
        attr: Name of the attribute.
        attr_randomization_params: How it is drawn; see this module.
        curr_gym_step_count: Steps made so far, for the schedule.
        extern_sample: Drawn elsewhere.
        bucketing_randomization_params: Range and number of buckets, where they are not those of the draw.
    """
    owner, name, original = prop, attr, None
    if isinstance(prop, SimParams) and attr not in SimParams.__dataclass_fields__:
        owner = prop.physx  # randomization files list rest_offset with gravity
    original = _original(og_prop, attr, owner)
    is_vector = hasattr(original, "x")
    values = np.array(list(original)) if is_vector else np.asarray(original, dtype=np.float64)
    sample = generate_random_samples(
        attr_randomization_params, values.shape, curr_gym_step_count, extern_sample
    )
    scaling = attr_randomization_params["operation"] == "scaling"
    changed = values * sample if scaling else values + sample
    if attr_randomization_params.get("num_buckets", 0) > 0:
        changed = get_bucketed_val(changed, bucketing_randomization_params or attr_randomization_params)
    if isinstance(prop, np.ndarray):
        prop[name] = changed
    elif is_vector:
        setattr(owner, name, type(original)(*np.ravel(changed).tolist()))
    else:
        setattr(owner, name, float(np.ravel(changed)[0]))


def check_buckets(gym: Any, envs: list[Any], dr_params: Mapping[str, Any]) -> None:
    """Check that randomized materials are not more than `MATERIALS_MAX`, as scripts for the original do.

    The limit is the original's: here every shape may have a material of its own.

    Raises:
        AssertionError: If they are.
    """
    total = 0
    randomized = {}
    for actor, properties in dr_params["actor_params"].items():
        shapes = properties.get("rigid_shape_properties")
        if shapes is None:
            continue
        counts = [
            shapes[name].get("num_buckets", 0) for name in ("friction", "restitution") if name in shapes
        ]
        given = [count for count in counts if count > 0]
        total += int(np.prod(given)) if given else 0
        randomized[actor] = True
    if total > MATERIALS_MAX:
        raise AssertionError(
            f"check_buckets: num_buckets give {total} materials, but at most {MATERIALS_MAX} are wanted."
        )
    if total > 0:
        return
    shape_count = sum(
        gym.get_actor_rigid_shape_count(env, gym.get_actor_handle(env, index))
        for env in envs
        for index in range(gym.get_actor_count(env))
        if gym.get_actor_name(env, gym.get_actor_handle(env, index)) in randomized
    )
    if shape_count > MATERIALS_MAX:
        raise AssertionError(
            f"check_buckets: {shape_count} shapes have materials of their own, but at most {MATERIALS_MAX} "
            "are wanted. Give num_buckets to friction or restitution."
        )


def _original(og_prop: Any, attr: str, owner: Any) -> Any:
    """Return the original value of an attribute."""
    if isinstance(og_prop, np.ndarray):
        return og_prop[attr]
    if isinstance(og_prop, Mapping):
        if attr in og_prop:
            return og_prop[attr]
        nested = og_prop.get("physx")
        if nested is not None:
            return nested[attr] if isinstance(nested, Mapping) else getattr(nested, attr)
        raise KeyError(f"apply_random_samples: the original properties have no '{attr}'.")
    return getattr(og_prop, attr, getattr(owner, attr))


def _choose(params: Mapping[str, Any], key: str, choices: Mapping[str, Any]) -> Any:
    value: Any = params.get(key)
    if value not in choices:
        raise ValueError(
            f"generate_random_samples: {key} is {value!r}, but must be one of {', '.join(choices)}."
        )
    return choices[value]


def _share(params: Mapping[str, Any], step: int) -> float:
    """Return the share of the full range that the schedule gives, 0 to 1."""
    kind = params.get("schedule")
    if kind is None:
        return 1.0
    length = params.get("schedule_steps", 0)
    if kind == "linear":
        return min(step / length, 1.0) if length > 0 else 1.0
    if kind == "constant":
        return float(step >= length)
    raise ValueError(f"generate_random_samples: schedule is {kind!r}, but must be linear or constant.")
