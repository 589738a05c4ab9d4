"""Contacts: where shapes touch, in separate slots per world so that no world can displace another's."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pluriverse.copying import Uncopied
from pluriverse.launch import outside_recordings, same_memory
from pluriverse.model.attributes import AttributeAssignment, set_array
from pluriverse.newton_names import explain_missing

# What is kept of each contact, in this order: 64 bytes, as many as a processor loads at once.
_RECORD = {
    "rigid_contact_shape0": wp.int32,
    "rigid_contact_shape1": wp.int32,
    "rigid_contact_point0": wp.vec3,
    "rigid_contact_point1": wp.vec3,
    "rigid_contact_normal": wp.vec3,
    "rigid_contact_margin0": wp.float32,
    "rigid_contact_margin1": wp.float32,
    "rigid_contact_force": wp.vec3,
}
_RECORD_SIZE = 64


@wp.func
def stored_contact_count(start: wp.array[int], count: wp.array[int], world: int) -> int:
    """Return how many contacts a world has stored: never more than its slots, whatever was written there."""
    return wp.clamp(count[world], 0, start[world + 1] - start[world])


class Contacts(Uncopied):
    """Contact points of all worlds. World w owns the slots from `rigid_contact_start[w]` to `[w + 1]`.

    Only the first `rigid_contact_count[w]` slots of a world hold contacts; the others hold stale values. The
    arrays by slot are interleaved, so they are not contiguous.

    Args:
        model: Model whose shapes touch.
        capacity: Number of slots, the same for all worlds or one number per world.

    Raises:
        ValueError: If a capacity is negative or there is not one per world.
    """

    copy_remedy = "Copy the arrays that are needed, as rigid_contact_point0.numpy().copy()."
    pickle_remedy = "Pass the arrays that are needed, as rigid_contact_point0.numpy()."
    rigid_contact_max: int
    """Number of slots of all worlds together."""
    rigid_contact_start: wp.array[int]
    """First slot of each world and, at the end, the number of slots, shape [world + 1]."""
    rigid_contact_count: wp.array[int]
    """Number of contacts stored, shape [world]."""
    rigid_contact_found: wp.array[int]
    """Number of contacts found, shape [world]; any surplus over the world's capacity was not stored. -1 if a
    body or shape has no finite pose or size, so that none could be found; a solver freezes such a world."""
    rigid_contact_shape0: wp.array[int]
    """First shape, shape [slot]. Its type has the lower `GeoType` of the two."""
    rigid_contact_shape1: wp.array[int]
    """Second shape, shape [slot]."""
    rigid_contact_point0: wp.array[wp.vec3]
    """Point on the true surface of shape 0 [m], in the frame of its body (of the world without one), shape
    [slot]."""
    rigid_contact_point1: wp.array[wp.vec3]
    """Point on the true surface of shape 1 [m], in the frame of its body (of the world without one), shape
    [slot]."""
    rigid_contact_normal: wp.array[wp.vec3]
    """Unit normal from shape 0 to shape 1, world axes, shape [slot]."""
    rigid_contact_margin0: wp.array[float]
    """Margin of shape 0 [m], shape [slot]."""
    rigid_contact_margin1: wp.array[float]
    """Margin of shape 1 [m], shape [slot]."""
    rigid_contact_stiffness: wp.array[float] | None
    """Stiffness of the contact [N/m], 0 where it follows from the materials, shape [slot]; None for a model
    without hydroelastic shapes, whose contacts all follow from the materials."""
    rigid_contact_force: wp.array[wp.vec3]
    """Force on the body of shape 1 [N], world axes, shape [slot]; on that of shape 0 acts the opposite.
    Written by the solver."""
    pipeline: Any
    """The `CollisionPipeline` that found them, or is to find them; None for those of other engines. They hold
    it, so that it exists as long as they do, and a recording of `collide` stays valid."""
    culling: Any
    """The stage that left out contacts that cannot act in a step (see `CollisionPipeline.collide`), for the
    solver to request more; None if all contacts within the gaps are here."""
    custom_arrays: dict[str, Any]
    """The custom attributes of contacts, by their keys."""

    def __init__(self, model: Any, capacity: int | Sequence[int] | np.ndarray):
        if isinstance(model, int | np.integer):
            raise TypeError(
                f"Contacts: model is {model}, a number, but contacts belong to the worlds of a model. Take "
                "solver.contacts() or model.contacts(), which have room for all."
            )
        capacities = np.asarray(capacity)
        if capacities.dtype.kind not in "iu":
            raise ValueError(
                f"Contacts: the capacity is {capacity!r}, but it must be a whole number, or one per world."
            )
        capacities = capacities.astype(np.int64)
        if capacities.ndim == 0:
            capacities = np.full(model.world_count, capacities)
        if capacities.shape != (model.world_count,):
            raise ValueError(
                f"Contacts: {capacities.size} capacities for {model.world_count} worlds. "
                "Pass one number, or one number per world."
            )
        if (capacities < 0).any():
            world = int(np.argmax(capacities < 0))
            raise ValueError(
                f"Contacts: the capacity of world {world} is {capacities[world]}, but it must be >= 0."
            )
        start = np.concatenate([[0], np.cumsum(capacities)])
        if start[-1] > np.iinfo(np.int32).max:
            raise ValueError(
                f"Contacts: {start[-1]} slots in all, more than 32-bit indices can address. "
                "Lower the capacity per world."
            )
        device, slot_count = model.device, int(start[-1])
        self._model = model
        self.rigid_contact_max = slot_count
        self.rigid_contact_start = wp.array(start.astype(np.int32), dtype=wp.int32, device=device)
        # Kernels read this copy, so that a write to the public array cannot make them access foreign memory.
        self._start = wp.clone(self.rigid_contact_start)
        self._slot_count = slot_count
        self.rigid_contact_count = wp.zeros(model.world_count, dtype=wp.int32, device=device)
        self.rigid_contact_found = wp.zeros(model.world_count, dtype=wp.int32, device=device)
        for name, array in _interleaved(slot_count, device).items():
            setattr(self, name, array)
        with outside_recordings(device):  # Warp records no writes to arrays with gaps, and refuses them
            self.rigid_contact_shape0.fill_(-1)
            self.rigid_contact_shape1.fill_(-1)
        self.rigid_contact_stiffness = None
        if model.has_hydroelastic_shapes:
            self.rigid_contact_stiffness = wp.zeros(slot_count, dtype=wp.float32, device=device)
        self.pipeline = None
        self.culling = None
        self.custom_arrays = {}
        model.attach_custom_arrays(self, AttributeAssignment.CONTACT)

    def __setattr__(self, name: str, value: Any) -> None:
        set_array(self, name, value, owner="Contacts")

    if not TYPE_CHECKING:
        __getattr__ = explain_missing("Contacts")

    @property
    def requires_grad(self) -> bool:
        """False: contacts are not differentiable."""
        return False

    @property
    def slot_start(self) -> wp.array[int]:
        """`rigid_contact_start` as it was made, for kernels; not to be written to."""
        return self._start

    @property
    def slot_count(self) -> int:
        """`rigid_contact_max` as it was made."""
        return self._slot_count

    def clear(self) -> None:
        """Forget all contacts."""
        self.rigid_contact_count.zero_()
        self.rigid_contact_found.zero_()


def _interleaved(slot_count: int, device: wp.Device) -> dict[str, wp.array]:
    """Allocate the arrays of contacts so that the data of one contact are in one cache line.

    A world has slots for all contacts that it could have, of which few are in use. In arrays by themselves,
    the first slots of every world would be on pages of their own, one for each array: 1024 robots, of which
    each makes one step in a call, took 2 to 5 % longer.
    """
    numbers = wp.zeros((slot_count + 1) * (_RECORD_SIZE // 4), dtype=wp.int32, device=device)
    first = _RECORD_SIZE * -(-numbers.ptr // _RECORD_SIZE) - numbers.ptr
    arrays, offset = {}, first
    for name, dtype in _RECORD.items():
        arrays[name] = same_memory(numbers, dtype, (slot_count,), strides=(_RECORD_SIZE,), byte_offset=offset)
        offset += wp.types.type_size_in_bytes(dtype)
    return arrays
