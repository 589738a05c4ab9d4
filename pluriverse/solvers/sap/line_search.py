"""Line search: the step length along a Newton direction.

With v(alpha) = v + alpha dv the quadratic part of the objective is known from three scalars, and each contact
and joint term needs only its own velocity and slope, so a trial costs O(contacts) and no sweep. The value,
slope and curvature of one trial are evaluated together.

- `strong_wolfe` tries the full step, then Newton's method on the slope within a bracket, until the slope has
  fallen to a fraction and the cost satisfies Armijo's criterion ([Nocedal2006] section 3.1).
- `monotone_decay` halves alpha until the cost has not grown.
- `armijo_decay` backtracks from alpha_max = 1 / rho until the cost stops falling and satisfies Armijo's
  criterion ([Castro2022] section IV.D).
- `exact_root` finds the root of the slope in [0, 1.5] by Newton's method, safeguarded by bisection.

Where one of the first three runs out of trials, as backtracking does at stiff limits, whose cost rises at
once, `exact_root` takes over. The objective is convex, so a bracket whose lower end still falls always holds
a better point: a search along a direction of descent does not fail before rounding.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import vec3_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Topology
from pluriverse.solvers.sap.contact_objective import contact_objective_functions
from pluriverse.solvers.sap.equality import equality_functions
from pluriverse.solvers.sap.joint_objective import joint_objective_functions
from pluriverse.solvers.sap.options import (
    ARMIJO_DECAY,
    EXACT_ROOT,
    MONOTONE_DECAY,
    STRONG_WOLFE,
    newton_options_struct,
)
from pluriverse.solvers.sap.spring import spring_functions
from pluriverse.solvers.sap.workspace import sap_struct

# State of a search. Negative: why it found no step, kept in `SapWorkspace.failure`.
SEARCHING, FOUND, EXHAUSTED = wp.constant(0), wp.constant(1), wp.constant(2)
NOT_A_DESCENT_DIRECTION = wp.constant(-1)
BAD_UPPER_DERIVATIVE = wp.constant(-3)
ROOT_ITERATIONS_EXHAUSTED = wp.constant(-5)

# How much more of the cost is rounding in directions from `contact_space` than in others. Their contact
# velocities are differences of velocities as large as those without contacts, and do not fit the direction
# better than that rounds.
SPACE_ROUNDING = wp.constant(100.0)
# Slope at which `strong_wolfe` stops [relative to that at alpha = 0]. Of 0.1 to 0.9, this took the fewest
# trials on robots that lie on the ground, and as many iterations as the exact minimum.
WOLFE_FRACTION = wp.constant(0.3)
# Largest step of `exact_root`: beyond the full Newton step, since the objective is only piecewise quadratic.
EXACT_ALPHA_MAX = wp.constant(1.5)
# Relative tolerance of the root's slope and of alpha, as in Drake.
EXACT_TOLERANCE = wp.constant(1e-8)
# Smallest step of `monotone_decay`.
MONOTONE_ALPHA_MIN = wp.constant(1e-8)
# Growth of the cost that is rounding [relative, and J].
MONOTONE_RELATIVE_SLACK = wp.constant(1e-12)
MONOTONE_ABSOLUTE_SLACK = wp.constant(1e-14)


@made_once
def line_struct(real: Any) -> Any:
    """Return the `wp.struct` of the objective at alpha = 0 along a direction, precision `real`."""

    @wp.struct
    class Line:
        cost: real  # [J]
        slope: real
        energy: real  # quadratic part of the cost [J]
        energy_slope: real
        energy_curvature: real

    return Line


@made_once
def search_struct(real: Any) -> Any:
    """Return the `wp.struct` of a line search that goes on, precision `real`."""

    @wp.struct
    class Search:
        method: int
        status: int  # SEARCHING and so on
        trial: int  # how many this method has made before
        alpha: real  # tried next, or found
        low: real  # bracket of the root of the slope
        high: real
        slope_low: real
        slope_high: real
        alpha_before: real  # the trial before
        value_before: real
        step_before: real  # from that trial to this one
        slop_share: real  # slope that is rounding, per cost
        slop: real  # the same at the first trial

    return Search


@made_once
def line_search_functions(
    real: Any, linear: Any, equality: bool = False, moments: bool = False
) -> SimpleNamespace:
    """Return `search_line` for the given precisions, with or without equalities and contact moments."""
    vec3 = vec3_type(real)
    SapData, Options = sap_struct(real, linear), newton_options_struct(real)
    Line, Search = line_struct(real), search_struct(real)
    probe_contacts = contact_objective_functions(real, linear, moments).probe_contacts
    probe_joints = joint_objective_functions(real, linear).probe_joints
    probe_equalities = equality_functions(real, linear).probe_equalities
    probe_springs = spring_functions(real, linear).probe_springs

    @wp.func(inline=True)
    def try_step(
        topology: wp.ref[Topology],
        sap: wp.ref[SapData],
        world: int,
        options: wp.ref[Options],
        line: Line,
        alpha: real,
    ) -> vec3:
        """Return value, slope and curvature of the objective at step alpha."""
        terms = probe_contacts(sap, world, alpha) + probe_joints(topology, sap, world, options.dt, alpha)
        if wp.static(equality):
            terms += probe_equalities(sap, world, alpha) + probe_springs(sap, world, alpha)
        return vec3(
            line.energy + alpha * (line.energy_slope + real(0.5) * alpha * line.energy_curvature) + terms[0],
            line.energy_slope + alpha * line.energy_curvature + terms[1],
            line.energy_curvature + terms[2],
        )

    @wp.func(inline=True)
    def slope_rounding(line: Line, search: Search, value: real) -> real:
        """Return the slope that is rounding, where the cost at some step is `value`."""
        return search.slop_share * wp.max(real(1.0), real(0.5) * (wp.abs(value) + wp.abs(line.cost)))

    # Each search is a function that takes the objective at the step just tried, and ends the search or says
    # which step to try next. So what is tried is compiled once, for all of them.

    @wp.func(inline=True)
    def judge_wolfe(options: wp.ref[Options], line: Line, search: Search, found: vec3) -> Search:
        """Accept a step with a lower cost and a small slope; the first one is the full step."""
        alpha, slope = real(search.alpha), real(found[1])
        slop = slope_rounding(line, search, found[0])
        is_small = wp.abs(slope) <= slop - real(WOLFE_FRACTION) * line.slope
        is_lower = found[0] <= line.cost + options.armijo_c * alpha * line.slope + slop
        if (is_small and is_lower) or (search.trial == 0 and slope <= slop):
            search.status = FOUND
        elif not slope < real(wp.inf):
            search.status = BAD_UPPER_DERIVATIVE
        elif search.trial + 1 >= options.line_search_iterations_max:
            search.status = EXHAUSTED
        else:
            if slope > real(0.0):
                search.high = alpha
                search.slope_high = slope
            else:
                search.low = alpha
                search.slope_low = slope
            width = search.high - search.low
            guess = alpha - slope / found[2]
            if not (guess > search.low and guess < search.high):
                guess = search.low - search.slope_low * width / (search.slope_high - search.slope_low)
            if search.trial % 4 == 3:
                guess = search.low + real(0.5) * width  # where an end has stayed for long
            search.alpha = guess
        return search

    @wp.func(inline=True)
    def judge_monotone(options: wp.ref[Options], line: Line, search: Search, found: vec3) -> Search:
        """Accept a step whose cost is not above that at alpha = 0; halve it otherwise."""
        slack = real(MONOTONE_ABSOLUTE_SLACK) + real(MONOTONE_RELATIVE_SLACK) * wp.abs(line.cost)
        if found[0] <= line.cost + slack:
            search.status = FOUND
        else:
            search.alpha = real(0.5) * search.alpha
            if (
                search.alpha < real(MONOTONE_ALPHA_MIN)
                or search.trial + 1 >= options.line_search_iterations_max
            ):
                search.status = EXHAUSTED
        return search

    @wp.func(inline=True)
    def judge_armijo(options: wp.ref[Options], line: Line, search: Search, found: vec3) -> Search:
        """Accept a step at which the cost is low enough and stops falling; shorten it by `rho` otherwise."""
        value = real(found[0])
        armijo = value < line.cost + options.armijo_c * search.alpha * line.slope
        if search.trial == 0:
            search.slop = slope_rounding(line, search, value)
            if found[1] < search.slop:
                search.status = FOUND
                if found[1] > real(0.0):
                    # The slope is rounding. The full Newton step is as good as any, and where a term begins
                    # or ends beyond it, a longer one would jump to and fro across that.
                    search.alpha = real(1.0)
        else:
            change = (value - search.value_before) / (search.alpha - search.alpha_before)
            if wp.abs(change) < search.slop:
                search.status = FOUND
            elif value > search.value_before and armijo:
                # The cost has started to grow again: the previous, longer step was the better one.
                search.status = FOUND
                if search.value_before < line.cost + options.armijo_c * search.alpha_before * line.slope:
                    search.alpha = search.alpha_before
        if search.status == SEARCHING:
            if search.trial + 1 < options.line_search_iterations_max:
                search.alpha_before = search.alpha
                search.value_before = value
                search.alpha = options.rho * search.alpha
            elif armijo:
                search.status = FOUND
            else:
                search.status = EXHAUSTED
        return search

    @wp.func(inline=True)
    def judge_root(options: wp.ref[Options], line: Line, search: Search, found: vec3) -> Search:
        """Accept a root of the slope, or the first step if the slope still falls there."""
        zero, half = real(0.0), real(0.5)
        alpha, value, slope, curvature = real(search.alpha), found[0], found[1], found[2]
        tolerance = -real(EXACT_TOLERANCE) * line.slope
        if search.trial == 0:
            search.high = alpha
            search.step_before = alpha
            if slope <= zero or (alpha == real(1.0) and slope < tolerance):
                search.status = FOUND
            elif -line.slope < options.cost_abs_tol + (options.cost_rel_tol + options.relative_slop) * value:
                search.status = FOUND
                search.alpha = real(1.0)  # the slope is rounding: the full step is as good as any
            elif not slope > zero:
                search.status = BAD_UPPER_DERIVATIVE
            else:
                # Minimizer of the cubic through both values and slopes.
                d1 = line.slope + slope - real(3.0) * (value - line.cost) / alpha
                root = wp.sqrt(wp.max(d1 * d1 - line.slope * slope, zero))
                guess = alpha - alpha * (slope + root - d1) / (slope - line.slope + real(2.0) * root)
                if not (guess > zero and guess <= alpha):
                    guess = wp.min(-line.slope / curvature, alpha)
                search.alpha = guess
        elif wp.abs(slope) < tolerance:
            search.status = FOUND
        else:
            if slope < zero:
                search.low = alpha
            else:
                search.high = alpha
            guess = alpha - slope / curvature
            step = guess - alpha
            if not (guess > search.low and guess < search.high) or real(2.0) * wp.abs(slope) > wp.abs(
                search.step_before * curvature
            ):
                guess = half * (search.low + search.high)
                step = guess - alpha
            search.alpha = guess
            search.step_before = step
            if wp.abs(step) < real(EXACT_TOLERANCE):
                search.status = FOUND
            elif search.trial >= options.line_search_iterations_max:
                # The slope still falls at the lower end: less than the best, but better than before.
                search.alpha = search.low
                search.status = FOUND
                if not search.low > zero:
                    search.status = ROOT_ITERATIONS_EXHAUSTED
        return search

    @wp.func(inline=stages_inline())
    def search_line(
        topology: wp.ref[Topology],
        sap: wp.ref[SapData],
        world: int,
        options: wp.ref[Options],
        line: Line,
        is_exact: int,  # 1: the direction is from `contact_space`, and its full step likely the best
        bounds_changed: int,  # 1: with bounds of friction that came with the direction
    ) -> vec3:
        """Return (alpha, number of trials after the first, failure code); alpha is 0 on failure."""
        search = Search()
        search.method = options.line_search_variant
        search.alpha = real(1.0)
        search.high = real(1.0)
        search.slope_low = line.slope
        search.slop_share = real(0.1) * options.relative_slop
        if is_exact != 0:
            search.slop_share *= real(SPACE_ROUNDING)
        if is_exact == 0 and search.method == ARMIJO_DECAY:
            search.alpha = real(1.0) / options.rho
        if is_exact == 0 and search.method == EXACT_ROOT:
            search.alpha = real(EXACT_ALPHA_MAX)
        # With a direction from `contact_space` come the bounds of friction at its end, and with them another
        # cost at alpha = 0.
        measured = int(is_exact == 0 or bounds_changed == 0)
        if measured == 0:
            search.alpha = real(0.0)
        elif not line.slope < real(0.0):
            search.status = NOT_A_DESCENT_DIRECTION
        trial_count = int(0)
        while search.status == SEARCHING:
            found = try_step(topology, sap, world, options, line, search.alpha)
            if measured == 0:
                measured = 1
                line.cost = found[0]
                line.slope = found[1]
                search.slope_low = found[1]
                search.alpha = real(1.0)
                if not found[1] < real(0.0):
                    search.status = NOT_A_DESCENT_DIRECTION
                continue
            trial_count += 1
            if search.method == STRONG_WOLFE:
                search = judge_wolfe(options, line, search, found)
            elif search.method == MONOTONE_DECAY:
                search = judge_monotone(options, line, search, found)
            elif search.method == ARMIJO_DECAY:
                search = judge_armijo(options, line, search, found)
            else:
                search = judge_root(options, line, search, found)
            search.trial += 1
            if search.status == EXHAUSTED:
                search.status = SEARCHING
                search.method = EXACT_ROOT
                search.alpha = real(EXACT_ALPHA_MAX)
                search.low = real(0.0)
                search.trial = 0
        alpha, failure = real(0.0), real(0.0)
        if search.status == FOUND:
            alpha = search.alpha
        else:
            failure = real(search.status)
        return vec3(alpha, real(wp.max(trial_count - 1, 0)), failure)

    return SimpleNamespace(search_line=search_line)
