"""Impulse of one contact: projection onto the friction cone in the norm of the regularization.

For the unprojected impulse y = R^-1 (v_hat - v_c), R = diag(R_t, R_t, R_n), the impulse is the point of the
cone |gamma_t| <= mu gamma_n that is closest to y in the norm of R ([Castro2022] section IV.B). Its cost is
1/2 gamma^T R gamma, the derivative of the cost by the contact velocity is -gamma, and G = -d gamma / d v_c is
symmetric and positive semidefinite.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import mat33_type, vec3_type

# Friction coefficient up to which a contact is frictionless. The cone is then a ray, and the sliding
# direction 0 / 0.
FRICTIONLESS = wp.constant(1e-12)


@made_once
def cone_functions(real: Any) -> SimpleNamespace:
    """Return `unprojected`, `project`, `cost`, `stiffness` and `along` for scalars of type `real`."""
    vec3, mat33 = vec3_type(real), mat33_type(real)

    @wp.func
    def unprojected(velocity: vec3, bias: real, rt: real, rn: real) -> vec3:
        """Return y = R^-1 (v_hat - v_c), where v_hat = (0, 0, bias)."""
        return vec3(-velocity[0] / rt, -velocity[1] / rt, (bias - velocity[2]) / rn)

    @wp.func
    def project(y: vec3, mu: real, bound: real, rt: real, rn: real, soft: real) -> vec3:
        """Return the impulse [N·s] for the unprojected y; `soft` [N·s] rounds the norm of its tangent."""
        if mu <= real(FRICTIONLESS):
            return vec3(real(0.0), real(0.0), wp.max(y[2], real(0.0)))
        y_r = wp.sqrt(y[0] * y[0] + y[1] * y[1] + soft * soft)
        if bound >= real(0.0):
            share = wp.min(mu * bound / y_r, real(1.0))
            return vec3(share * y[0], share * y[1], wp.max(y[2], real(0.0)))
        if y_r <= mu * y[2]:
            return y  # stiction
        mu_hat = mu * rt / rn
        if y[2] > -mu_hat * y_r:
            normal = (y[2] + mu_hat * y_r) / (real(1.0) + mu * mu_hat)
            tangent = mu * normal / y_r
            return vec3(tangent * y[0], tangent * y[1], normal)  # sliding
        return vec3(real(0.0), real(0.0), real(0.0))

    @wp.func
    def cost(y: vec3, gamma: vec3, mu: real, bound: real, rt: real, rn: real, soft: real) -> real:
        """Return the cost [J] for the unprojected y, with the impulse gamma."""
        half = real(0.5)
        tangential = gamma[0] * gamma[0] + gamma[1] * gamma[1]
        if bound >= real(0.0) and mu > real(FRICTIONLESS):
            limit = mu * bound
            y_r = wp.sqrt(y[0] * y[0] + y[1] * y[1] + soft * soft)
            if y_r > limit:
                tangential = real(2.0) * limit * y_r - (limit * limit + soft * soft)
        return half * (rt * tangential + rn * gamma[2] * gamma[2])

    @wp.func
    def stiffness(y: vec3, mu: real, bound: real, rt: real, rn: real, soft: real) -> mat33:
        """Return G = -d gamma / d v_c [kg] at the unprojected impulse y."""
        zero = real(0.0)
        if mu <= real(FRICTIONLESS):
            g = zero
            if y[2] > zero:
                g = real(1.0) / rn
            return mat33(zero, zero, zero, zero, zero, zero, zero, zero, g)
        y_r = wp.sqrt(y[0] * y[0] + y[1] * y[1] + soft * soft)
        if bound >= zero:
            g = zero
            if y[2] > zero:
                g = real(1.0) / rn
            turning = real(1.0) / rt
            if y_r > mu * bound:
                turning = mu * bound / (rt * y_r)
                tx = y[0] / y_r
                ty = y[1] / y_r
                txx = turning * (real(1.0) - tx * tx)
                txy = -turning * tx * ty
                tyy = turning * (real(1.0) - ty * ty)
                return mat33(txx, txy, zero, txy, tyy, zero, zero, zero, g)
            return mat33(turning, zero, zero, zero, turning, zero, zero, zero, g)
        if y_r <= mu * y[2]:
            g = real(1.0) / rt
            return mat33(g, zero, zero, zero, g, zero, zero, zero, real(1.0) / rn)
        mu_hat = mu * rt / rn
        if y[2] > -mu_hat * y_r:
            f = real(1.0) / (real(1.0) + mu * mu_hat)
            tx = y[0] / y_r
            ty = y[1] / y_r
            around = mu / rt * f * (y[2] + mu_hat * y_r) / y_r
            along = mu / rt * mu_hat * f
            txx = around * (real(1.0) - tx * tx) + along * tx * tx
            txy = (along - around) * tx * ty
            tyy = around * (real(1.0) - ty * ty) + along * ty * ty
            gx = mu * f / rn * tx
            gy = mu * f / rn * ty
            return mat33(txx, txy, gx, txy, tyy, gy, gx, gy, f / rn)
        return mat33(zero, zero, zero, zero, zero, zero, zero, zero, zero)

    @wp.func
    def along(y: vec3, rate: vec3, mu: real, bound: real, rt: real, rn: real, soft: real) -> vec3:
        """Return the cost, and its slope and curvature where v_c moves at `rate`, at the unprojected y.

        The slope is -gamma . rate, the curvature rate . G rate, without forming G.
        """
        zero, half = real(0.0), real(0.5)
        if mu <= real(FRICTIONLESS):
            gamma = wp.max(y[2], zero)
            curvature = zero
            if y[2] > zero:
                curvature = rate[2] * rate[2] / rn
            return vec3(half * rn * gamma * gamma, -gamma * rate[2], curvature)
        square = y[0] * y[0] + y[1] * y[1]
        y_r = wp.sqrt(square + soft * soft)
        across = y[0] * rate[0] + y[1] * rate[1]
        rate2 = rate[0] * rate[0] + rate[1] * rate[1]
        if bound >= zero:
            value, slope, curvature = half * rt * square, -across, rate2 / rt
            if y_r > mu * bound:
                limit = mu * bound
                share = limit / y_r
                speed = across / y_r
                value = rt * (limit * y_r - half * (limit * limit + soft * soft))
                slope = -share * across
                curvature = share / rt * (rate2 - speed * speed)
            if y[2] > zero:
                value += half * rn * y[2] * y[2]
                slope -= y[2] * rate[2]
                curvature += rate[2] * rate[2] / rn
            return vec3(value, slope, curvature)
        if y_r <= mu * y[2]:
            return vec3(
                half * (rt * square + rn * y[2] * y[2]),
                -(across + y[2] * rate[2]),
                rate2 / rt + rate[2] * rate[2] / rn,
            )
        mu_hat = mu * rt / rn
        if y[2] > -mu_hat * y_r:
            f = real(1.0) / (real(1.0) + mu * mu_hat)
            normal = (y[2] + mu_hat * y_r) * f
            tangent = mu * normal / y_r
            speed = across / y_r
            turning = mu / rt * f * (y[2] + mu_hat * y_r) / y_r
            fast = mu / rt * mu_hat * f
            return vec3(
                half * (rt * tangent * tangent * square + rn * normal * normal),
                -(tangent * across + normal * rate[2]),
                turning * (rate2 - speed * speed)
                + fast * speed * speed
                + f / rn * rate[2] * (real(2.0) * mu * speed + rate[2]),
            )
        return vec3(zero, zero, zero)

    return SimpleNamespace(
        unprojected=unprojected, project=project, cost=cost, stiffness=stiffness, along=along
    )
