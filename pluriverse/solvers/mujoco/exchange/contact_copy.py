"""Contact copy stage: copy the contacts of all worlds into another buffer of any capacity.

Reads   all arrays of the source
Writes  the same of the target; contacts for which it has no slot are counted in `rigid_contact_found`
"""

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Contacts, Model
from pluriverse.model.contacts import stored_contact_count

_ARRAYS = ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1", "force")


@wp.struct
class ContactArrays:
    """Arrays of `Contacts`."""

    start: wp.array[int]
    count: wp.array[int]
    found: wp.array[int]
    shape0: wp.array[int]
    shape1: wp.array[int]
    point0: wp.array[wp.vec3]
    point1: wp.array[wp.vec3]
    normal: wp.array[wp.vec3]
    margin0: wp.array[float]
    margin1: wp.array[float]
    force: wp.array[wp.vec3]
    stiffness: wp.array[float]  # of no length where no shape is hydroelastic


@wp.kernel(enable_backward=False, module="pluriverse.solvers.mujoco.exchange.contact_copy")
def copy_world_contact(worlds: wp.array[int], source: ContactArrays, target: ContactArrays):
    """Copy the contacts of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    first = source.start[world]
    first_out = target.start[world]
    capacity = target.start[world + 1] - first_out
    count = wp.min(stored_contact_count(source.start, source.count, world), capacity)
    target.count[world] = count
    target.found[world] = source.found[world]
    for k in range(count):
        slot, out = first + k, first_out + k
        target.shape0[out] = source.shape0[slot]
        target.shape1[out] = source.shape1[slot]
        target.point0[out] = source.point0[slot]
        target.point1[out] = source.point1[slot]
        target.normal[out] = source.normal[slot]
        target.margin0[out] = source.margin0[slot]
        target.margin1[out] = source.margin1[slot]
        target.force[out] = source.force[slot]
        if source.stiffness.shape[0] > 0:
            target.stiffness[out] = source.stiffness[slot]


def contact_arrays(contacts: Contacts) -> ContactArrays:
    """Return the arrays of a contact buffer for a kernel."""
    arrays = ContactArrays()
    arrays.start = contacts.slot_start
    for name in ("count", "found", *_ARRAYS):
        setattr(arrays, name, getattr(contacts, f"rigid_contact_{name}"))
    if contacts.rigid_contact_stiffness is not None:
        arrays.stiffness = contacts.rigid_contact_stiffness
    return arrays


def copy_contacts(model: Model, worlds: wp.array, source: Contacts, target: Contacts) -> None:
    """Copy the contacts of worlds."""
    launch_kernel(
        copy_world_contact,
        dim=worlds.size,
        inputs=[worlds, contact_arrays(source)],
        outputs=[contact_arrays(target)],
        device=model.device,
    )
