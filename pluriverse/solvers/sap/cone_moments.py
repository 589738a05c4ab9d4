"""Impulse of a contact that also resists turning: projection onto an elliptic cone in the norm of R.

Besides the force (t1, t2, n) the contact transmits a moment (r1, r2, s) about the same axes: rolling and
torsional friction. The impulses lie in the cone

    sqrt((gamma_t / mu)^2 + (tau_r / mu_r)^2 + (tau_s / mu_s)^2) <= gamma_n,

as the limit surface of a contact patch ([Howe1996]): a ball that slides turns more easily. As without moments
([Castro2022] section IV.B) the impulse is the point of the cone that is closest to y = R^-1 (v_hat - v_c) in
the norm of R = diag(R_t, R_t, R_n, R_a, R_a, R_a), and the derivative of its cost 1/2 gamma^T R gamma is
-gamma.

On the surface gamma_i = y_i m_i / (m_i + nu), with m_i = mu_i^2 R_i and nu = R_n (1 - y_n / gamma_n) the root
of N / p(nu) - nu + R_n, where N = -R_n y_n and p(nu)^2 = sum (mu_i R_i y_i / (m_i + nu))^2. 1 / p is concave
and lies below (M + nu) / B, with M the largest m_i and B^2 = sum (mu_i R_i y_i)^2, so Newton's method from
where that line meets the other approaches the root from one side. Where all m_i are equal it starts there.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import mat33_type, vec3_type
from pluriverse.solvers.sap.cone import FRICTIONLESS

# Newton iterations for nu; it converges quadratically from a bound that is right to a factor of some tens.
ROOT_ITERATIONS = wp.constant(30)
# Relative change of nu at which they end: rounding, of double precision where the caller has that.
ROOT_TOLERANCE = wp.constant(1e-14)


@made_once
def cone_moment_functions(real: Any) -> SimpleNamespace:
    """Return `project`, `moment_cost`, `stiffness_force`, `..._cross`, `..._moment` for scalars `real`."""
    vec3, mat33 = vec3_type(real), mat33_type(real)

    @wp.func
    def ratio(a: real, b: real) -> real:
        """Return a / b, 0 where b is no friction."""
        if b <= real(FRICTIONLESS):
            return real(0.0)
        return a / b

    @wp.func
    def surface_root(
        y: vec3, z: vec3, mu: real, mu_moment: vec3, bound: real, rt: real, ra: real, rn: real
    ) -> real:
        """Return nu >= 0 where the impulse lies on the cone; -1 where it is y, -2 where it is zero."""
        zero = real(0.0)
        mr, ms = mu_moment[0], mu_moment[2]
        inside = wp.length_sq(vec3(ratio(y[0], mu), ratio(y[1], mu), ratio(z[2], ms)))
        inside += ratio(z[0], mr) * ratio(z[0], mr) + ratio(z[1], mr) * ratio(z[1], mr)
        if bound >= zero:
            if inside <= bound * bound:
                return real(-1.0)
            if bound == zero:
                return real(-2.0)
        elif y[2] >= zero and inside <= y[2] * y[2]:
            return real(-1.0)
        # Squares of mu_i R_i y_i by kind: slip, roll, spin.
        slip = mu * mu * rt * rt * (y[0] * y[0] + y[1] * y[1])
        roll = mr * mr * ra * ra * (z[0] * z[0] + z[1] * z[1])
        spin = ms * ms * ra * ra * z[2] * z[2]
        size = wp.sqrt(slip + roll + spin)
        load = -rn * y[2]
        if bound < zero and size <= load:
            return real(-2.0)
        m_slip, m_roll, m_spin = mu * mu * rt, mr * mr * ra, ms * ms * ra
        largest = wp.max(m_slip, wp.max(m_roll, m_spin))
        nu = wp.max(size / bound - largest, zero)
        if bound < zero:
            nu = wp.max((rn * size + largest * load) / (size - load), zero)
        for _iteration in range(ROOT_ITERATIONS):
            # With no friction of a kind, its share is zero, also where nu is.
            share_slip, share_roll, share_spin = zero, zero, zero
            if slip > zero:
                share_slip = slip / ((m_slip + nu) * (m_slip + nu))
            if roll > zero:
                share_roll = roll / ((m_roll + nu) * (m_roll + nu))
            if spin > zero:
                share_spin = spin / ((m_spin + nu) * (m_spin + nu))
            p2 = share_slip + share_roll + share_spin
            # d(1 / p) / d nu = sum share_i / (m_i + nu) / p^3
            rate = zero
            if slip > zero:
                rate += share_slip / (m_slip + nu)
            if roll > zero:
                rate += share_roll / (m_roll + nu)
            if spin > zero:
                rate += share_spin / (m_spin + nu)
            p = wp.sqrt(p2)
            step = (p - bound) * p2 / (bound * rate)
            if bound < zero:
                residual = load / p - nu + rn
                step = residual / (real(1.0) - load * rate / (p2 * p))
            nu = wp.max(nu + step, zero)
            if wp.abs(step) <= real(ROOT_TOLERANCE) * (nu + rn):
                break
        return nu

    @wp.func
    def impulse_at(nu: real, y: vec3, z: vec3, mu: real, mu_moment: vec3, bound: real, rt: real, ra: real):
        """Return the impulses [N·s] and [N·m·s] for the unprojected force y and moment z, and their nu."""
        gamma, tau = vec3(), vec3()
        if nu > real(-1.5):
            a, r, s = real(1.0), real(1.0), real(1.0)
            normal = y[2]
            if nu >= real(0.0):
                a = mu * mu * rt / (mu * mu * rt + nu)
                r = mu_moment[0] * mu_moment[0] * ra / (mu_moment[0] * mu_moment[0] * ra + nu)
                s = mu_moment[2] * mu_moment[2] * ra / (mu_moment[2] * mu_moment[2] * ra + nu)
            if mu <= real(FRICTIONLESS):
                a = real(0.0)
            if mu_moment[0] <= real(FRICTIONLESS):
                r = real(0.0)
            if mu_moment[2] <= real(FRICTIONLESS):
                s = real(0.0)
            gamma = vec3(a * y[0], a * y[1], normal)
            tau = vec3(r * z[0], r * z[1], s * z[2])
            if nu >= real(0.0):
                square = wp.length_sq(
                    vec3(ratio(gamma[0], mu), ratio(gamma[1], mu), ratio(tau[2], mu_moment[2]))
                )
                first, second = ratio(tau[0], mu_moment[0]), ratio(tau[1], mu_moment[0])
                gamma[2] = wp.sqrt(square + first * first + second * second)
        if bound >= real(0.0):
            gamma[2] = wp.max(y[2], real(0.0))
        return gamma, tau

    @wp.func
    def project(y: vec3, z: vec3, mu: real, mu_moment: vec3, bound: real, rt: real, ra: real, rn: real):
        """Return the impulses [N·s] and [N·m·s] for the unprojected force y and moment z."""
        nu = surface_root(y, z, mu, mu_moment, bound, rt, ra, rn)
        gamma, tau = impulse_at(nu, y, z, mu, mu_moment, bound, rt, ra)
        return gamma, tau

    @wp.func
    def cost(y: vec3, z: vec3, gamma: vec3, tau: vec3, bound: real, rt: real, ra: real, rn: real) -> real:
        """Return gamma^T R (y - gamma / 2) [J], the cost of whatever convex set y is projected on."""
        half = real(0.5)
        if bound < real(0.0):  # y - gamma is normal to the cone
            slip = gamma[0] * gamma[0] + gamma[1] * gamma[1]
            return half * (rt * slip + rn * gamma[2] * gamma[2]) + half * ra * wp.dot(tau, tau)
        slip = gamma[0] * (y[0] - half * gamma[0]) + gamma[1] * (y[1] - half * gamma[1])
        return rt * slip + rn * gamma[2] * (y[2] - half * gamma[2]) + ra * wp.dot(tau, z - half * tau)

    @wp.func
    def stiffness(y: vec3, z: vec3, mu: real, mu_moment: vec3, bound: real, rt: real, ra: real, rn: real):
        """Return the blocks force by velocity, force by spin and moment by spin of G = -d gamma / d v.

        Eliminating gamma_n = p(gamma), the tangential block is the inverse of diag(d) + c q q^T with
        d_i = R_i + nu / mu_i^2, c = R_n - nu and q the gradient of p (Sherman and Morrison).
        """
        zero, one = real(0.0), real(1.0)
        force, cross, moment = mat33(), mat33(), mat33()
        nu = surface_root(y, z, mu, mu_moment, bound, rt, ra, rn)
        if nu > real(-1.5):
            # 1 / d_i, zero without friction of that kind.
            di_slip, di_roll, di_spin = zero, zero, zero
            on_cone = wp.max(nu, zero)
            if mu > real(FRICTIONLESS):
                di_slip = one / (rt + on_cone / (mu * mu))
            if mu_moment[0] > real(FRICTIONLESS):
                di_roll = one / (ra + on_cone / (mu_moment[0] * mu_moment[0]))
            if mu_moment[2] > real(FRICTIONLESS):
                di_spin = one / (ra + on_cone / (mu_moment[2] * mu_moment[2]))
            force[0, 0] = di_slip
            force[1, 1] = di_slip
            force[2, 2] = one / rn
            moment[0, 0] = di_roll
            moment[1, 1] = di_roll
            moment[2, 2] = di_spin
            if nu >= zero:
                gamma, tau = impulse_at(nu, y, z, mu, mu_moment, bound, rt, ra)
                p = gamma[2]
                if bound >= zero:
                    p = bound
                q_force = vec3(ratio(ratio(gamma[0], mu), mu), ratio(ratio(gamma[1], mu), mu), zero) / p
                q_moment = (
                    vec3(
                        ratio(ratio(tau[0], mu_moment[0]), mu_moment[0]),
                        ratio(ratio(tau[1], mu_moment[0]), mu_moment[0]),
                        ratio(ratio(tau[2], mu_moment[2]), mu_moment[2]),
                    )
                    / p
                )
                b_force = vec3(di_slip * q_force[0], di_slip * q_force[1], zero)
                b_moment = vec3(di_roll * q_moment[0], di_roll * q_moment[1], di_spin * q_moment[2])
                qb = wp.dot(q_force, b_force) + wp.dot(q_moment, b_moment)
                c = rn - nu
                s = one / (one + c * qb)
                share = c * s
                if bound >= zero:
                    share = one / qb  # c is infinite: p does not change
                force = force - share * wp.outer(b_force, b_force)
                cross = -share * wp.outer(b_force, b_moment)
                moment = moment - share * wp.outer(b_moment, b_moment)
                if bound < zero:
                    force[0, 2] = b_force[0] * s
                    force[1, 2] = b_force[1] * s
                    force[2, 0] = force[0, 2]
                    force[2, 1] = force[1, 2]
                    force[2, 2] = qb * s
                    for k in range(3):
                        cross[2, k] = b_moment[k] * s
        if bound >= zero:
            force[2, 2] = zero
            if y[2] > zero:
                force[2, 2] = one / rn
        return force, cross, moment

    return SimpleNamespace(project=project, cost=cost, stiffness=stiffness)
