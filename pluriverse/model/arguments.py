"""Arguments of a step: whether a state, a control and contacts are those of a model; seeds of random numbers.

A kernel trusts the length of its arrays. Objects of another model are refused, unless that model has the same
structure; replaced arrays are refused if shape, type or device differ. All checks run when a step is launched
from Python, and cost nothing in a recorded step.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model.contacts import Contacts
from pluriverse.model.control import Control
from pluriverse.model.indices import IndexKind, count_wrong_indices
from pluriverse.model.model import Model
from pluriverse.model.state import State
from pluriverse.model.structure import have_same_structure

_STATE: tuple[tuple[str, str, Any], ...] = (
    ("joint_q", "joint_coord_count", wp.float32),
    ("joint_qd", "joint_dof_count", wp.float32),
    ("body_q", "body_count", wp.transformf),
    ("body_qd", "body_count", wp.spatial_vectorf),
    ("body_f", "body_count", wp.spatial_vectorf),
)
_CONTROL: tuple[tuple[str, str | None, Any], ...] = (
    ("joint_f", "joint_dof_count", wp.float32),
    ("joint_target_pos", "joint_dof_count", wp.float32),
    ("joint_target_q", None, wp.float32),
    ("joint_target_vel", "joint_dof_count", wp.float32),
    ("joint_act", "joint_dof_count", wp.float32),
)
_CONTACT_SLOTS = (
    ("rigid_contact_shape0", wp.int32),
    ("rigid_contact_shape1", wp.int32),
    ("rigid_contact_point0", wp.vec3f),
    ("rigid_contact_point1", wp.vec3f),
    ("rigid_contact_normal", wp.vec3f),
    ("rigid_contact_margin0", wp.float32),
    ("rigid_contact_margin1", wp.float32),
    ("rigid_contact_force", wp.vec3f),
)


def check_model(model: Any, what: str) -> None:
    """Raise if the first argument of a function is not a model.

    Raises:
        TypeError: If it is not.
    """
    if not isinstance(model, Model):
        raise TypeError(
            f"{what}: model is a {type(model).__name__}, but must be a Model, which comes first; then the "
            "state."
        )


def check_array(model: Model, array: Any, shape: Sequence[int], dtype: Any, what: str) -> None:
    """Raise if something is not an array of a shape and type on the device of a model.

    Raises:
        TypeError: If it is no Warp array, or holds another type.
        ValueError: If it has another shape, or is on another device.
    """
    if not isinstance(array, wp.array):
        raise TypeError(f"{what} is a {type(array).__name__}, but must be a Warp array of {dtype.__name__}.")
    if array.dtype is not dtype:
        raise TypeError(f"{what} holds {array.dtype.__name__}, but must hold {dtype.__name__}.")
    if array.shape != tuple(shape):
        raise ValueError(
            f"{what} has shape {array.shape}, but the model needs {tuple(shape)}. Use the arrays that the "
            "model made, and write into them."
        )
    if array.device != model.device:
        raise ValueError(f"{what} is on {array.device}, but the model is on {model.device}.")


def check_indices(model: Model, indices: Any, what: str) -> None:
    """Raise if something is not a list of indices of articulations on the device of a model.

    Indices that name no articulation are counted on the device, and reported by `SolverBase.report`.

    Raises:
        TypeError: If it is no Warp array of 32-bit integers.
        ValueError: If it has not one axis, or is on another device.
    """
    if not isinstance(indices, wp.array) or indices.dtype is not wp.int32:
        raise TypeError(f"{what} is a {type(indices).__name__}, but must be a Warp array of int32.")
    check_array(model, indices, (indices.size,), wp.int32, what)
    count_wrong_indices(indices, model.articulation_count, IndexKind.ARTICULATION, model.index_errors)


def check_owner(model: Model, instance: Any, what: str, remedy: str) -> None:
    """Raise if something was made by a model of another structure.

    Raises:
        ValueError: If it was.
    """
    owner = getattr(instance, "_model", None)
    if owner is not None and owner is not model and not have_same_structure(owner, model):
        raise ValueError(
            f"{what} belongs to another model ({owner.world_count} worlds, {owner.body_count} bodies, "
            f"{owner.shape_count} shapes), which is built differently. {remedy}"
        )


def check_state(model: Model, state: Any, what: str) -> None:
    """Raise if something is not a state of a model. The model itself counts as one: its initial state.

    Raises:
        TypeError: If it is not a state.
        ValueError: If it belongs to another model, or an array of it has another shape.
    """
    if not isinstance(state, State | Model):
        raise TypeError(
            f"{what} is a {type(state).__name__}, but must be a State. Make one with model.state()."
        )
    own = _STATE
    if isinstance(state, State):
        check_owner(model, state, what, "Make one with model.state() of this model.")
    elif state is not model:
        raise ValueError(f"{what} is another model. Pass a state made by model.state() of this one.")
    else:
        own = _STATE[:-1]
    for name, count, dtype in own:
        check_array(model, getattr(state, name), (getattr(model, count),), dtype, f"{what}.{name}")


def check_control(model: Model, control: Any, what: str) -> None:
    """Raise if something is not a control of a model.

    Raises:
        TypeError: If it is not a control.
        ValueError: If it belongs to another model, or an array of it has another shape.
    """
    if not isinstance(control, Control):
        raise TypeError(
            f"{what} is a {type(control).__name__}, but must be a Control or None. Make one with "
            "model.control()."
        )
    check_owner(model, control, what, "Make one with model.control() of this model.")
    for name, count, dtype in _CONTROL:
        size = model.joint_target_q.size if count is None else getattr(model, count)
        check_array(model, getattr(control, name), (size,), dtype, f"{what}.{name}")


def check_contacts(model: Model, contacts: Any, what: str) -> None:
    """Raise if something is not a contact buffer for a model.

    Raises:
        TypeError: If it is not a contact buffer.
        ValueError: If it belongs to another model, or an array of it has another shape.
    """
    if not isinstance(contacts, Contacts):
        raise TypeError(
            f"{what} is a {type(contacts).__name__}, but must be Contacts. Make them with contacts() of the "
            "CollisionPipeline or solver."
        )
    check_owner(model, contacts, what, "Make them with the CollisionPipeline of this model.")
    for name in ("rigid_contact_count", "rigid_contact_found"):
        check_array(model, getattr(contacts, name), (model.world_count,), wp.int32, f"{what}.{name}")
    slots = (contacts.slot_count,)
    for name, dtype in _CONTACT_SLOTS:
        check_array(model, getattr(contacts, name), slots, dtype, f"{what}.{name}")
    if contacts.rigid_contact_stiffness is not None:
        name = "rigid_contact_stiffness"
        check_array(model, contacts.rigid_contact_stiffness, slots, wp.float32, f"{what}.{name}")


def check_seeding(model: Model, seed: Any, identities: Any, what: str) -> tuple[int, np.ndarray]:
    """Return a seed of random numbers, and the identities of worlds, on which their numbers depend.

    Args:
        model: Model of the worlds.
        seed: The seed.
        identities: Identity of each world, shape [world]; its index if None.
        what: Who asks, for messages.

    Raises:
        ValueError: If a number is out of range, or there is not one identity per world.
    """
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or not 0 <= seed < 2**31:
        raise ValueError(f"{what}: seed is {seed!r}, but it must be a whole number, 0 to 2**31 - 1.")
    found = np.arange(model.world_count) if identities is None else np.asarray(identities)
    is_sound = found.shape == (model.world_count,) and found.dtype.kind in "iu"
    if not is_sound or (found < 0).any() or (found >= 2**31).any():
        raise ValueError(
            f"{what}: identities must be {model.world_count} whole numbers, 0 to 2**31 - 1, one per world."
        )
    return int(seed), found.astype(np.int32)
