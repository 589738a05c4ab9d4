"""Which contacts are solved in their own space, and whether there is room for them.

Reads   contact velocities, terms and bounds of friction, direction of the iteration
Writes  space_slot; contact_bound and contact_impulse of contacts that take no part
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.solvers.sap.workspace import SPACE_CONTACTS_MAX, sap_struct

# Contacts that were slower along the surface stick [m/s]. With convex friction they open by mu times that,
# too little to count as approximated. With 3e-4 an arm that closes its fingers took 1.3 times as long.
STICKING_SPEED = 1e-3

_AT = """
    auto at = [](const auto& array, int index) {
        return (decltype(array.data))((char*)array.data + (long long)array.strides[0] * index);
    };
    int* list = sap.space_slot.data + first;
"""

_LIST = (
    _AT
    + """
    const int begin = sap.contact_start.data[world], end = begin + sap.contact_count.data[world];
    int listed = count;
    for (int slot = begin; slot < end; ++slot) {
        if (!(*at(sap.contact_rn, slot) > V(0))) continue;
        bool is_new = true;
        if (friction_follows != 0 || *at(sap.contact_bound, slot) == V(0)) {
            V speed = at(sap.contact_velocity, slot)->c[2];
            if (moved > V(0)) {
                const V change = moved * at(sap.contact_slope, slot)->c[2];
                speed += change;
            }
            is_new = speed < *at(sap.contact_bias, slot);
            // What is asked for less still carries, but no longer approaches.
            is_new |= resumes != 0 && at(sap.contact_impulse, slot)->c[2] > V(0);
        }
        if (is_new) {
            int is_listed = 0;
            for (int c = 0; c < count; ++c) is_listed |= list[c] == slot;
            if (is_listed) continue;
            if (listed < capacity) list[listed] = slot;
            ++listed;
        } else if (friction_follows != 0 && count == 0) {
            *at(sap.contact_bound, slot) = V(0);
            V* impulse = at(sap.contact_impulse, slot)->c;
            impulse[0] = impulse[1] = impulse[2] = V(0);
        }
    }
    return listed;
"""
)

_ROOM = (
    _AT
    + """
    if (count > capacity || count > CONTACTS) return 0;
    int size = count;
    if (sap.equality_start.data[world] != sap.equality_end.data[world]) {
        for (int c = 0; c < count; ++c) {
            const int slot = list[c];
            size += *at(sap.contact_dof0, slot) >= 0 && *at(sap.contact_dof1, slot) >= 0;
            const V* velocity = at(sap.contact_velocity, slot)->c;
            const V across = velocity[0] * velocity[0], along = velocity[1] * velocity[1];
            if (across + along > V(STICKING * STICKING)) return 1;
        }
    }
    return size <= CONTACTS;
"""
)


@made_once
def contact_list_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return `list_carrying` and `has_room` for the given precisions.

    - `list_carrying(sap, world, first, capacity, count, friction_follows, moved, resumes)`: append the
      contacts that take part to the `count` listed ones from `space_slot[first]` on; return the new count. A
      contact is looked at after `moved` of the step `contact_slope`, or takes part if `resumes` is not 0 and
      it has an impulse. With Coulomb's law, one that opens acts on nothing.
      With convex friction it may, if it slides, and so may friction with a held bound.
    - `has_room(sap, world, first, count, capacity)`: return whether the listed contacts are few enough to
      solve Coulomb's law quickly. Where there are constraints, those between two bodies that move count
      twice if all have been sticking: what a gripper holds by many of them goes on to stick, for which convex
      friction is exact and takes half of the time. An arm with a cube between its fingers, sixteen contacts,
      took 22 µs with Coulomb's law, and 11 as a convex problem.
    """
    SapData = sap_struct(real, linear)
    head = f"using V = {CTYPE[real]}; constexpr int CONTACTS = {SPACE_CONTACTS_MAX};"
    head += f"constexpr double STICKING = {STICKING_SPEED};"

    @wp.func_native(head + _LIST)
    def list_carrying(
        sap: wp.ref[SapData],
        world: int,
        first: int,
        capacity: int,
        count: int,
        friction_follows: int,
        moved: real,
        resumes: int,
    ) -> int: ...

    @wp.func_native(head + _ROOM)
    def has_room(sap: wp.ref[SapData], world: int, first: int, count: int, capacity: int) -> int: ...

    return SimpleNamespace(list_carrying=list_carrying, has_room=has_room)
