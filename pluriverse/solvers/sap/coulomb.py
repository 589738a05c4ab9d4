"""Coulomb's law for a few contacts: Newton's method for their impulses.

Reads   mobility W and velocities u0 without impulses, of `contact_space`; contact terms
Writes  space_impulse, space_velocity

A contact with the impulse p and the velocity u = u0 + W p is open, sticks or slides, as decided by

    z_n = p_n - r_n (u_n - v_hat + R_n p_n),    z_t = p_t - r_t (u_t + R_t p_t),

open where z_n <= 0, and sticking where |z_t| <= mu z_n ([Alart1991]). Each of these states is a linear law
of p and u, but for the direction in which a contact slides, which is linearized. So each iteration solves
a small system for the impulses of contacts in their last states ([Curnier1988]), and the method ends when
no state changes. The choice of positive r_n and r_t does not change the solution. With the inverse
mobility of each contact the states are found within a few iterations from no impulses at all, whether
contacts are near rigid or not.

Where states recur, a contact sticks and opens in turns, say, half of a step is made, from the middle of which
the contact slides. Otherwise a limp ANYmal took bounds of friction in one step of ten: 39 instead of 14 µs.

Most contacts keep to their states after the first iteration or two, while the others find the directions in
which they slide. So those that stick are held in the system of all contacts (`contact_balance`), where one
that begins or ends to stick costs three columns, and each iteration solves for those that slide only.

Without impulses z says which contacts close, but not how they slide: where a robot keeps sliding, most begin
by sticking, and alternate for six iterations. So the first iteration takes the states at the start of the
step: contacts that slide then slide in that direction, the others stick. One that sticks creeps, at R_t times
its friction, and so does all that lies on the ground. How hard it is pressed tells it from one that slides:
by z or by the law at the velocities before the step, whichever is more. A limp Go1, of whose eight contacts
two slide three times as fast as they may creep, took seven iterations where all were to stick first.

Where that does not end, the method goes on from there and searches: steps are halved, up to three times,
while the error does not fall. Where that does not end either, it searches from a solution of a convex
problem. The error is measured as p minus the projection of z, with the mobilities that z is made with as
weights, so that its square is work. The last trial is taken in any
case, as it leads out of places that no small step leaves. Of 62 problems of an arm with a cube in its hand
and of a hand, which whole and half steps solve neither without impulses nor from convex friction, up to 30 of
such iterations solve two thirds. Nearly all of the others are solved from bounds of friction
(`friction_bound`).
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.contact_balance import BALANCE, CONTACTS_MAX, EXCHANGE
from pluriverse.math.dense import CTYPE
from pluriverse.math.numbers_at_once import numbers_at_once, unweave_text
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.solvers.sap.options import OPTIMALITY_DEFAULT
from pluriverse.solvers.sap.workspace import SPACE_CONTACTS_MAX, sap_struct

assert SPACE_CONTACTS_MAX <= CONTACTS_MAX

# Iterations with whole and half steps, and of a search; where states recur in spite of it, more do not help.
# Of 659 problems of an arm 94 are left by the first, of which 44 are solved by searching on. Ten in place of
# twenty left 152, of which 96 were solved by searching on, but took as long all in all.
UNSEARCHED_ITERATIONS, ITERATIONS_MAX = 20, 20
# Times that a step of a search is halved: with one, 5 of 659 problems of an arm are not solved in the end,
# with two 2, with three 1.
HALVINGS_MAX = 3
# States recur where, after so many iterations, the squared error is more than this share of what it was two
# iterations ago, and more than this much of the impulses. Then so much of the step is made.
RECURRING_ITERATIONS = 4
RECURRING_SHARE, RECURRING_ERROR = 0.25, 1e-6
RECURRING_STEP = 0.5
# How far impulses may be from what their states say [relative].
TOLERANCE_DOUBLE, TOLERANCE_SINGLE = 1e-9, 1e-5
# Factor by which the square of a small error has to fall to be worth a further iteration.
PROGRESS = 0.1
# A contact begins as one that slides where its speed is this many times the largest at which it may creep.
# From 1 to 2, problems of Go1, G1, ANYmal, arm and hand take as many iterations; with 10 those of a limp Go1
# take seven in place of one.
SLIDING_CREEPS = 1.5
# Up to so many contacts are solved in one vector of as many, whose number the compiler then knows.
FEW_CONTACTS = (4, 8)
# Share of a turning contact below which its friction is a force of a given direction.
TURNING_MIN = 1e-9

_CONSTANTS = "".join(
    f"constexpr V {name} = V({value});\n"
    for name, value in (
        ("RECURRING_SHARE", RECURRING_SHARE),
        ("RECURRING_ERROR", RECURRING_ERROR),
        ("RECURRING_STEP", RECURRING_STEP),
        ("PROGRESS", PROGRESS),
        ("SLIDING_CREEPS", SLIDING_CREEPS),
        ("TURNING_MIN", TURNING_MIN),
    )
) + (
    f"constexpr int CONTACTS = {SPACE_CONTACTS_MAX}, ITERATIONS_MAX = {ITERATIONS_MAX};\n"
    f"constexpr int HALVINGS_MAX = {HALVINGS_MAX}, UNSEARCHED_ITERATIONS = {UNSEARCHED_ITERATIONS};\n"
    f"constexpr int RECURRING_ITERATIONS = {RECURRING_ITERATIONS};\n"
)

_GATHER = """
    const V* W = sap.space_mobility.data + w;
    V* A = (V*)(((size_t)(sap.space_work.data + work) + 63) & ~(size_t)63);  // of whole lines of the cache
"""

_TERMS = """
    alignas(64) V rt[LANES], rn[LANES], mu[LANES], bias[LANES], soft[LANES], wt[LANES], wn[LANES];
    alignas(64) V start0[LANES], start1[LANES], start2[LANES];
    alignas(64) V p[3 * LANES], u[3 * LANES], before_p[3 * LANES], before_u[3 * LANES];
    const V* free_rate = (const V*)(sap.space_free.data + region);
    V* impulse = (V*)(sap.space_impulse.data + region);
    V* velocity = (V*)(sap.space_velocity.data + region);
    auto of = [](const auto& array, int slot) {
        return (const V*)((const char*)array.data + slot * (long long)array.strides[0]);
    };
    const int pad = (3 * count + 7) & ~7;
    begin_exchange(W, free_rate);
    for (int i = 0; i < wide; ++i) p[i] = u[i] = V(0);
    for (int c = 0; c < WIDTH * groups; ++c) {
        if (c >= count) {
            // No contact: always open.
            rt[c] = rn[c] = soft[c] = wt[c] = wn[c] = V(1);
            mu[c] = bias[c] = start0[c] = start1[c] = start2[c] = V(0);
            u[lane(c) + 2 * WIDTH] = b[lane(c) + 2 * WIDTH] = V(1);
            continue;
        }
        const int slot = sap.space_slot.data[region + c];
        rt[c] = *of(sap.contact_rt, slot);
        rn[c] = *of(sap.contact_rn, slot);
        mu[c] = *of(sap.contact_mu, slot);
        bias[c] = *of(sap.contact_bias, slot);
        soft[c] = *of(sap.contact_soft, slot);
        const V* start = of(sap.contact_velocity, slot);
        start0[c] = start[0];
        start1[c] = start[1];
        start2[c] = start[2];
        const V* diagonal = W + 3 * c * (pad + 1);
        wt[c] = V(0.5) * (diagonal[0] + diagonal[pad + 1]);
        wn[c] = diagonal[2 * (pad + 1)];
        for (int k = 0; k < 3; ++k) {
            p[lane(c) + WIDTH * k] = impulse[3 * c + k];
            u[lane(c) + WIDTH * k] = velocity[3 * c + k];
        }
    }
"""

_ITERATE = """
    const VW zero = fill(V(0)), one = fill(V(1));
    const V infinite = V(INFINITY);
    V least = infinite, last = infinite, earlier = infinite;  // squared errors, relative
    V reference = infinite;  // squared error, as work, where the step begins
    unsigned held = 0;
    int found = 0, halvings = 0;
    bool is_searched = searches;  // whether the step that was made last may be halved
    const int most = searches ? ITERATIONS_MAX : UNSEARCHED_ITERATIONS + ITERATIONS_MAX;
    for (int iteration = 0;;) {
        // The law of each contact's state, and the error of its impulse.
        unsigned sticks = 0, slides = 0, turns = 0;
        VW errors = zero, norms = zero, works = zero;
        for (int g = 0; g < groups; ++g) {
            const int j = WIDTH * g;
            const VW p0 = load(p + 3 * j), p1 = load(p + 3 * j + WIDTH), p2 = load(p + 3 * j + 2 * WIDTH);
            const VW u0 = load(u + 3 * j), u1 = load(u + 3 * j + WIDTH), u2 = load(u + 3 * j + 2 * WIDTH);
            const VW Rt = load(rt + j), Rn = load(rn + j), friction = load(mu + j), round = load(soft + j);
            const VW whole = load(wt + j) + Rt, whole_normal = load(wn + j) + Rn;
            const VW n = p2 - (u2 - load(bias + j) + Rn * p2) / whole_normal;
            const VW z0 = p0 - (u0 + Rt * p0) / whole, z1 = p1 - (u1 + Rt * p1) / whole;
            const VW size = root(z0 * z0 + z1 * z1 + round * round);
            const VW limit = friction * n, inverse = one / size;
            VW t0 = z0 * inverse, t1 = z1 * inverse, turning = limit * inverse;
            const MW closed = n > zero;
            MW slips = size > limit;
            if (is_start && iteration == 0) {
                const VW v0 = load(start0 + j), v1 = load(start1 + j);
                const VW speed = root(v0 * v0 + v1 * v1);
                const VW pressed = (load(bias + j) - load(start2 + j)) / Rn;
                slips = speed > Rt * friction * select(pressed > n, pressed, n) * SLIDING_CREEPS;
                const VW back = select(slips, -one / speed, zero);
                t0 = select(slips, back * v0, t0);
                t1 = select(slips, back * v1, t1);
                turning = select(slips, zero, turning);
            }
            const VW share = select(slips, turning, one);
            const VW d0 = select(closed, share * z0, zero) - p0, d1 = select(closed, share * z1, zero) - p1;
            const VW d2 = select(closed, n, zero) - p2;
            errors = errors + (d0 * d0 + d1 * d1 + d2 * d2);
            works = works + (whole * (d0 * d0 + d1 * d1) + whole_normal * (d2 * d2));
            norms = norms + (p0 * p0 + p1 * p1 + p2 * p2);
            // Friction follows the normal impulse along t, and turns across it.
            const MW slide = closed & slips;
            const MW turned = slide & (turning > fill(TURNING_MIN));
            slides |= bits(slide) << j;
            turns |= bits(turned) << j;
            sticks |= (bits(closed) & ~bits(slips)) << j;
            store(m0 + j, select(slide, friction * t0, zero));
            store(m1 + j, select(slide, friction * t1, zero));
            store(m2 + j, select(slide, one, zero));
            store(e0 + j, select(turned, -t1, zero));
            store(e1 + j, select(turned, t0, zero));
            store(across + j, select(turned, Rt + whole * (one - turning) / turning, zero));
        }
        V error = V(0), norm = V(0), work_of_error = V(0);
        for (int i = 0; i < WIDTH; ++i) {
            error += errors[i];
            norm += norms[i];
            work_of_error += works[i];
        }
        found = error <= tolerance * tolerance * norm;
        const bool is_best = found && (error <= wanted * wanted * norm || error >= PROGRESS * least);
        if (is_best || !(error < infinite)) break;
        if (is_searched && halvings < HALVINGS_MAX && !(work_of_error < reference)) {
            for (int i = 0; i < wide; ++i) {
                p[i] = before_p[i] + V(0.5) * (p[i] - before_p[i]);
                u[i] = before_u[i] + V(0.5) * (u[i] - before_u[i]);
            }
            ++halvings;
            continue;
        }
        if (iteration >= most) break;
        reference = work_of_error;
        halvings = 0;
        is_searched = searches || iteration >= UNSEARCHED_ITERATIONS;
        ++iteration;
        least = error < least ? error : least;
        const V relative = error / norm;
        const bool recurs = !is_searched && iteration > RECURRING_ITERATIONS
            && relative > RECURRING_SHARE * earlier && relative > RECURRING_ERROR;
        earlier = last;
        last = relative;
        if (recurs || is_searched) {
            for (int i = 0; i < wide; ++i) {
                before_p[i] = p[i];
                before_u[i] = u[i];
            }
        }
        bool goes_on = true;
        for (int c = 0; c < count && goes_on; ++c) {
            if (!((held ^ sticks) >> c & 1)) continue;
            goes_on = exchange(c, sticks >> c & 1 ? V(1) : V(-1), rt[c], rn[c], bias[c]);
        }
        held = sticks;
        if (!goes_on || !balance(slides, turns, rn, bias)) break;
        for (int g = 0; g < groups; ++g) {
            const int j = WIDTH * g;
            const VW n = load(normal + j), x = load(turn + j);
            store(p + 3 * j, load(m0 + j) * n + load(e0 + j) * x);
            store(p + 3 * j + WIDTH, load(m1 + j) * n + load(e1 + j) * x);
            store(p + 3 * j + 2 * WIDTH, n);
        }
        respond(slides, p, u);
        for (int g = 0; g < groups; ++g) {
            // Of contacts that are held, impulses were found.
            const MW is_held = zero > load(sign + WIDTH * g);
            for (int k = 0; k < 3; ++k) {
                const int j = 3 * WIDTH * g + WIDTH * k;
                const VW y = load(u + j);
                const VW law =
                    k < 2 ? -load(rt + WIDTH * g) * y : load(bias + WIDTH * g) - load(rn + WIDTH * g) * y;
                store(p + j, select(is_held, y, load(p + j)));
                store(u + j, select(is_held, law, y));
            }
        }
        if (recurs) {
            for (int i = 0; i < wide; ++i) {
                p[i] = before_p[i] + RECURRING_STEP * (p[i] - before_p[i]);
                u[i] = before_u[i] + RECURRING_STEP * (u[i] - before_u[i]);
            }
        }
    }
    for (int c = 0; c < count; ++c) {
        for (int k = 0; k < 3; ++k) {
            impulse[3 * c + k] = p[lane(c) + WIDTH * k];
            velocity[3 * c + k] = u[lane(c) + WIDTH * k];
        }
    }
    return found;
"""


def _few(count: int) -> str:
    """Return what does it for at most `count` contacts, with one vector of so many."""
    return f"""
#ifndef __CUDA_ARCH__
    if (count <= {count}) {{
        constexpr int CONTACTS = {count};
        {_text(count)}
    }}
#endif
"""


def _text(width: int) -> str:
    """Return what finds the impulses with vectors of `width` contacts."""
    return numbers_at_once(width) + unweave_text(width) + _GATHER + EXCHANGE + BALANCE + _TERMS + _ITERATE


@made_once
def coulomb_functions(real: Any, linear: Any) -> SimpleNamespace:
    """Return `find_coulomb_impulses` for the given precisions."""
    SapData = sap_struct(real, linear)
    tolerance_of = TOLERANCE_DOUBLE if real is wp.float64 else TOLERANCE_SINGLE
    code = f"using V = {CTYPE[real]}; constexpr V tolerance = V({tolerance_of});\n" + _CONSTANTS
    code += "".join(_few(width) for width in FEW_CONTACTS) + _text(8)

    @wp.func_native(code)
    def iterate(
        sap: wp.ref[SapData],
        region: int,
        count: int,
        w: int,
        work: int,
        wanted: real,
        is_start: int,
        searches: int,
    ) -> int: ...

    @wp.func(inline=stages_inline())
    def find_coulomb_impulses(
        sap: wp.ref[SapData],
        region: int,
        count: int,
        w: int,
        work: int,
        optimality: real,
        is_start: int,
        searches: int,
    ) -> int:
        """Find impulses that obey Coulomb's law, starting from the present ones; return 1 on success.

        With `searches`, steps are halved until the error falls, up to three times, from the first one on.

        Where `optimality`, the relative tolerance of the gradient, is tighter than the default, so is that of
        the impulses, if rounding permits: velocities ask for impulses that are off by (W + R) / R of it.
        With `is_start` there are none, and contacts begin as before the step.
        """
        wanted = real(tolerance_of) * wp.min(optimality / real(OPTIMALITY_DEFAULT), real(1.0))
        return iterate(sap, region, count, w, work, wanted, is_start, searches)

    return SimpleNamespace(find_coulomb_impulses=find_coulomb_impulses)
