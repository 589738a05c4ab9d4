"""Line search: the step length along a Newton direction.

With v(alpha) = v + alpha dv the quadratic part of the objective is known from three scalars, and each contact
and joint term needs only its own velocity and slope, so a trial costs O(contacts) and no sweep. The value,
slope and curvature of one trial are evaluated together.

`monotone_decay` halves alpha until the cost has not grown. `armijo_decay` backtracks from alpha_max = 1 / rho
until the cost stops falling and satisfies Armijo's criterion ([Castro2022] section IV.D). `exact_root` finds
the root of the slope in [0, 1.5] by Newton's method, safeguarded by bisection. The first two take over from
it: where backtracking is exhausted, as at stiff limits, whose cost rises at once, the root is still to be
found. On a convex function a bracket with a falling lower end always holds a better point, so that a search
along a direction of descent does not fail before rounding.
"""

import functools
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.math.precision import vec3_type
from pluriverse.model import Topology
from pluriverse.solvers.sap.cone import cone_functions
from pluriverse.solvers.sap.cone_moments import cone_moment_functions
from pluriverse.solvers.sap.equality import equality_functions
from pluriverse.solvers.sap.joint_terms import joint_term_functions
from pluriverse.solvers.sap.workspace import SPEED_LIMIT, sap_struct

MONOTONE_DECAY = wp.constant(0)
ARMIJO_DECAY = wp.constant(1)
EXACT_ROOT = wp.constant(2)

# Reasons for which a search found no step; kept in `SapWorkspace.failure`.
NOT_A_DESCENT_DIRECTION = wp.constant(-1)
DECAY_EXHAUSTED = wp.constant(-2)
BAD_UPPER_DERIVATIVE = wp.constant(-3)
ROOT_ITERATIONS_EXHAUSTED = wp.constant(-5)

# How much more of the cost is rounding in directions from `contact_space` than in others. Their contact
# velocities are differences of velocities as large as those without contacts, and do not fit the direction
# better than that rounds.
SPACE_ROUNDING = wp.constant(100.0)
# Largest step of `exact_root`: beyond the full Newton step, since the objective is only piecewise quadratic.
EXACT_ALPHA_MAX = wp.constant(1.5)
# Relative tolerance of the root's slope and of alpha, as in Drake.
EXACT_TOLERANCE = wp.constant(1e-8)
# Smallest step of `monotone_decay`.
MONOTONE_ALPHA_MIN = wp.constant(1e-8)
# Growth of the cost that is rounding [relative, and J].
MONOTONE_RELATIVE_SLACK = wp.constant(1e-12)
MONOTONE_ABSOLUTE_SLACK = wp.constant(1e-14)


@functools.cache
def line_search_functions(
    real: Any, linear: Any, equality: bool = False, moments: bool = False
) -> SimpleNamespace:
    """Return `search_line` for the given precisions, with or without equalities and contact moments."""
    vec3 = vec3_type(real)
    SapData = sap_struct(real, linear)
    cone = cone_functions(real)
    unprojected, project, cone_cost, cone_stiffness = (
        cone.unprojected,
        cone.project,
        cone.cost,
        cone.stiffness,
    )
    turning = cone_moment_functions(real)
    project_moments, moment_cost, moment_stiffness = turning.project, turning.moment_cost, turning.stiffness
    dof_objective = joint_term_functions(real).dof_objective
    speed_objective = joint_term_functions(real).speed_objective
    equality_trial = equality_functions(real, linear).equality_trial

    @wp.func(inline=True)
    def trial_objective(
        topology: Topology, sap: SapData, world: int, alpha: real, dt: real, with_curvature: bool
    ) -> vec3:
        """Return value, slope and curvature, at step alpha, of all terms but the quadratic one."""
        value, slope, curvature = real(0.0), real(0.0), real(0.0)
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            rn = sap.contact_rn[slot]
            if rn > real(0.0):
                rt = sap.contact_rt[slot]
                mu = sap.contact_mu[slot]
                soft = sap.contact_soft[slot]
                rate = sap.contact_slope[slot]
                y = unprojected(sap.contact_velocity[slot] + alpha * rate, sap.contact_bias[slot], rt, rn)
                if wp.static(moments):
                    ra = sap.contact_ra[slot]
                    mu_moment = sap.contact_mu_moment[slot]
                    spin = sap.contact_spin_slope[slot]
                    z = -(sap.contact_spin[slot] + alpha * spin) / ra
                    gamma, tau = project_moments(y, z, mu, mu_moment, rt, ra, rn)
                    if gamma[2] != real(0.0):
                        value += cone_cost(gamma, rt, rn) + moment_cost(tau, ra)
                        slope -= wp.dot(gamma, rate) + wp.dot(tau, spin)
                        if with_curvature:
                            force, cross, moment = moment_stiffness(y, z, mu, mu_moment, rt, ra, rn)
                            curvature += wp.dot(rate, force * rate) + wp.dot(spin, moment * spin)
                            curvature += real(2.0) * wp.dot(rate, cross * spin)
                else:
                    gamma = project(y, mu, rt, rn, soft)
                    if gamma[2] != real(0.0):
                        value += cone_cost(gamma, rt, rn)
                        slope -= wp.dot(gamma, rate)
                        if with_curvature:
                            curvature += wp.dot(rate, cone_stiffness(y, mu, rt, rn, soft) * rate)
        template = topology.world_template[world]
        dof0 = topology.world_dof[world]
        for dof in range(dof0, dof0 + topology.template_dof[template + 1] - topology.template_dof[template]):
            terms = sap.dof_terms[dof]
            if terms != 0:
                rate_dof = sap.direction[dof]
                term = dof_objective(
                    terms,
                    sap.velocity[dof] + alpha * rate_dof,
                    dt,
                    sap.drive_offset[dof],
                    sap.drive_gain[dof],
                    sap.drive_limit[dof],
                    sap.limit_lower_bias[dof],
                    sap.limit_upper_bias[dof],
                    sap.limit_regularization[dof],
                    sap.friction_regularization[dof],
                    sap.friction_impulse[dof],
                )
                if terms & SPEED_LIMIT:
                    term += speed_objective(
                        sap.velocity[dof] + alpha * rate_dof,
                        sap.speed_limit[dof],
                        sap.speed_regularization[dof],
                    )
                value += term[0]
                slope -= term[1] * rate_dof
                curvature += term[2] * rate_dof * rate_dof
        if wp.static(equality):
            held = equality_trial(sap, world, alpha)
            value += held[0]
            slope += held[1]
            curvature += held[2]
        return vec3(value, slope, curvature)

    @wp.func(inline=True)
    def search_line(
        topology: Topology,
        sap: SapData,
        world: int,
        variant: int,
        is_exact: int,  # 1: the direction is from `contact_space`, and its full step likely the best
        dt: real,
        cost: real,  # at alpha = 0
        slope: real,  # at alpha = 0
        energy: real,  # quadratic part at alpha = 0
        energy_slope: real,
        energy_curvature: real,
        iterations_max: int,
        armijo_c: real,
        rho: real,
        relative_slop: real,
        cost_abs_tol: real,
        cost_rel_tol: real,
    ) -> vec3:
        """Return (alpha, number of trials after the first, failure code); alpha is 0 on failure."""
        zero, one, half = real(0.0), real(1.0), real(0.5)
        failure = int(0)
        iteration = int(0)
        trial_count = int(-1)
        exhausted = int(0)
        accepted = real(0.0)
        searching = int(1)
        if not slope < zero:
            failure = NOT_A_DESCENT_DIRECTION
            searching = 0

        first_alpha = one
        if variant == ARMIJO_DECAY and is_exact == 0:
            first_alpha = one / rho
        if variant == EXACT_ROOT and is_exact == 0:
            first_alpha = real(EXACT_ALPHA_MAX)
        # Declared as copies: variables that the loop changes must not share their storage with others.
        method = int(variant)
        alpha = real(first_alpha)
        alpha_previous = real(first_alpha)
        step_previous = real(first_alpha)
        high = real(first_alpha)
        low = real(0.0)
        value_previous = real(cost)
        slop = real(0.0)
        tolerance = real(EXACT_TOLERANCE)

        while searching != 0:
            trial = trial_objective(topology, sap, world, alpha, dt, method == EXACT_ROOT)
            trial_count += 1
            value = energy + alpha * (energy_slope + half * alpha * energy_curvature) + trial[0]
            derivative = energy_slope + alpha * energy_curvature + trial[1]

            if method == MONOTONE_DECAY:
                slack = real(MONOTONE_ABSOLUTE_SLACK) + real(MONOTONE_RELATIVE_SLACK) * wp.abs(cost)
                if value <= cost + slack:
                    accepted = alpha
                    searching = 0
                else:
                    alpha = half * alpha
                    iteration += 1
                    if alpha < real(MONOTONE_ALPHA_MIN) or iteration >= iterations_max:
                        exhausted = 1

            elif method == ARMIJO_DECAY:
                armijo = value < cost + armijo_c * alpha * slope
                if iteration == 0:
                    slop = real(0.1) * relative_slop * wp.max(one, half * (wp.abs(value) + wp.abs(cost)))
                    if is_exact != 0:
                        slop = real(SPACE_ROUNDING) * slop
                    if derivative < slop:
                        accepted = alpha
                        if derivative > zero:
                            # The slope is rounding. The full Newton step is as good as any, and where a term
                            # begins or ends beyond it, a longer one would jump to and fro across that.
                            accepted = one
                        searching = 0
                else:
                    change = (value - value_previous) / (alpha - alpha_previous)
                    if wp.abs(change) < slop:
                        accepted = alpha
                        searching = 0
                    elif value > value_previous and armijo:
                        # The cost has started to grow again: the previous, longer step was the better one.
                        accepted = alpha
                        if value_previous < cost + armijo_c * alpha_previous * slope:
                            accepted = alpha_previous
                        searching = 0
                if searching != 0:
                    if iteration + 1 >= iterations_max:
                        if armijo:
                            accepted = alpha
                            searching = 0
                        else:
                            exhausted = 1
                    else:
                        alpha_previous = alpha
                        value_previous = value
                        alpha = rho * alpha
                        iteration += 1

            else:
                f = derivative / -slope
                curvature = energy_curvature + trial[2]
                if iteration == 0:
                    if derivative <= zero or (is_exact != 0 and f < tolerance):
                        accepted = alpha
                        searching = 0
                    elif -slope < cost_abs_tol + (cost_rel_tol + relative_slop) * value:
                        accepted = one  # the slope is rounding: the full Newton step is as good as any
                        searching = 0
                    elif not derivative > zero:
                        failure = BAD_UPPER_DERIVATIVE
                        searching = 0
                    else:
                        # Minimizer of the cubic through both values and slopes.
                        d1 = slope + derivative - real(3.0) * (value - cost) / alpha
                        root = wp.sqrt(wp.max(d1 * d1 - slope * derivative, zero))
                        guess = alpha - alpha * (derivative + root - d1) / (
                            derivative - slope + real(2.0) * root
                        )
                        if not (guess > zero and guess <= alpha):
                            guess = wp.min(-slope / curvature, alpha)
                        step_previous = alpha
                        alpha = guess
                        iteration = 1
                else:
                    if f < zero:
                        low = alpha
                    else:
                        high = alpha
                    newton = alpha - derivative / curvature
                    step = newton - alpha
                    if wp.abs(f) < tolerance:
                        accepted = alpha
                        searching = 0
                    else:
                        if not (newton > low and newton < high) or real(2.0) * wp.abs(derivative) > wp.abs(
                            step_previous * curvature
                        ):
                            newton = half * (low + high)
                            step = newton - alpha
                        alpha = newton
                        step_previous = step
                        iteration += 1
                        if wp.abs(step) < tolerance:
                            accepted = alpha
                            searching = 0
                        elif iteration >= iterations_max:
                            # The slope still falls at the lower end: less than the best, but better than
                            # before.
                            accepted = low
                            if not low > zero:
                                failure = ROOT_ITERATIONS_EXHAUSTED
                            searching = 0

            if exhausted != 0:
                exhausted = 0
                if method == EXACT_ROOT or not derivative < real(wp.inf):
                    failure = DECAY_EXHAUSTED
                    searching = 0
                else:
                    method = EXACT_ROOT
                    alpha = real(EXACT_ALPHA_MAX)
                    step_previous = real(EXACT_ALPHA_MAX)
                    high = real(EXACT_ALPHA_MAX)
                    iteration = 0
        return vec3(accepted, real(wp.max(trial_count, 0)), real(failure))

    return SimpleNamespace(search_line=search_line)
