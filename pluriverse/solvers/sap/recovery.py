"""Recovery stage: how fast, and with how much work, contacts push overlapping shapes apart.

Reads   gap, weight, regularization and stiffness of a contact; masses of its trees; the solution
Writes  contact_bias, contact_work_max

A contact at the depth d = -phi0 asks for the velocity v_hat = d / (h + tau). With a stiffness k of its own,
the spring has stored k d^2 / 2, and the implicit step returns no more than that. A near-rigid contact has no
such store: its stiffness follows its weight w, and what v_hat takes is v_hat^2 / 2 w or more. At a singular
configuration, such as a straight chain of links pressed on end into the ground, w is next to zero, and the
energy without bound. (Contacts of a passive system may not do that: an undamped arm that is let go
0.1 m in the ground left it at 7,000 rad/s.)

So the work of such a contact is bounded by what it takes to lift all that it may carry out again, of the
mass M, at the speed at which that would fall from as high:

    v_n <= u,    gamma . v_c <= h M g u + k d^2 / 2    in a step,    u = sqrt(2 g d),

where k is there, and the bound of v_n is not, if a stiffness was given that the step resolves for M. M is
that of all trees of the world that can move, since any of them may lie on the others. The bounds hold at the
solution, also if other contacts or friction leave the trees fewer ways out than w knows of: where they do
not, the contact is asked for less, and the world is solved on from where it is. What it is asked for is
lowered by velocity, so that the force with which it carries a load at rest remains:
v_hat - v_n = R_n gamma_n. Beforehand only

    v_hat <= sqrt(2 g d w M + w k d^2)

is known, which leaves loads of up to 90 M g alone.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.dense import CTYPE
from pluriverse.solvers.sap.workspace import sap_struct

# Gravity g of the laws above [m/s²]: that of the Earth in any scene, as it only says what is fast.
RECOVERY_GRAVITY = wp.constant(9.81)
# How far work and speed may exceed their bounds [relative]: what half a percent of the velocity makes of it.
WORK_EXCESS = wp.constant(1.01)
SPEED_EXCESS = wp.constant(1.005)
# Part of the velocity of a contact below which what it is asked for is not what opens it. A sliding contact
# opens by its friction, at mu times the time step times its speed, however little it is asked for.
BIAS_SHARE_MIN = wp.constant(0.005)
# Times that contacts are asked for less. The first time it is enough for a contact on its own; what gives way
# less than its regularization takes more, and each time it is asked for four times as much less: twice as
# much took eight times, and half as many iterations again where dozens of robots overlap. Points of one foot
# that took turns used them up, and the fifth opened at any speed.
ROUNDS_MAX = wp.constant(4)


_LIMIT = """
    // Native: Warp's own loop finds each number of a contact by an index of its own.
    const int first = sap.contact_start.data[world], end = first + sap.contact_count.data[world];
    auto at = [](const auto& array, int slot) -> decltype(*array.data)& {
        return *(decltype(array.data))((char*)array.data + (long long)array.strides[0] * slot);
    };
    int limited = 0;
    // What acts comes first. Where it is asked for less, other points of its body would open it as fast the
    // next time: so those that carry nothing yet, but part too fast, are asked for less with it.
    for (int turn = 0; turn <= limited; ++turn) {
        for (int slot = first; slot < end; ++slot) {
            const V* velocity = (const V*)&at(sap.contact_velocity, slot);
            const V* impulse = (const V*)&at(sap.contact_impulse, slot);
            if ((impulse[2] > V(0)) != (turn == 0)) continue;
            const V speed = velocity[2], s = at(sap.contact_dilation, slot);
            V bias = at(sap.contact_bias, slot) + s;
            const bool asks = bias > V(BIAS_SHARE_MIN) * wp::max(speed, V(0));
            if (!(asks && at(sap.contact_rn, slot) > V(0))) continue;
            const V work = impulse[0] * velocity[0] + impulse[1] * velocity[1] + impulse[2] * velocity[2];
            const V work_max = at(sap.contact_work_max, slot), speed_max = at(sap.contact_speed_max, slot);
            V share = V(1);
            if (work > V(WORK_EXCESS) * work_max) share = sqrt(work_max / work);
            if (speed > V(SPEED_EXCESS) * speed_max) share = wp::min(share, speed_max / speed);
            if (share < V(1) && speed > V(0)) {
                limited = 1;
                const V less = V(1 << 2 * round) * (V(1) - share) * speed;
                // Never by more than it takes if nothing presses on it: asked for nothing, shapes would stay
                // in each other.
                bias = wp::max(bias - less, share * bias);
                at(sap.contact_bias, slot) = bias - s;
            }
        }
    }
    return limited;
"""


@made_once
def recovery_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return `limit_recovery`. What contacts ask for at first is in `contact_blocks.py`.

    - `limit_recovery(sap, world, round)`: lower the bias of contacts that exceed their bounds; return whether
      there are any.
    - `limit_contacts(sap, world, round)`: the same, for any number of rounds.
    """
    SapData = sap_struct(real, linear)
    limits = (
        f"using V = {CTYPE[real]}; constexpr double BIAS_SHARE_MIN = {BIAS_SHARE_MIN}, "
        f"WORK_EXCESS = {WORK_EXCESS}, SPEED_EXCESS = {SPEED_EXCESS};"
    )

    @wp.func_native(limits + _LIMIT)
    def limit_contacts(sap: wp.ref[SapData], world: int, round: int) -> int: ...

    @wp.func(inline=True)
    def limit_recovery(sap: wp.ref[SapData], world: int, round: int) -> int:
        limited = int(0)
        if round < ROUNDS_MAX:
            limited = limit_contacts(sap, world, round)
        return limited

    return SimpleNamespace(limit_recovery=limit_recovery, limit_contacts=limit_contacts)
