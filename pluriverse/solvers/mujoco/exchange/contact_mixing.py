"""Contact mixing: combine the properties of two geoms by MuJoCo's rules, for external contacts.

Both engines use it: the C engine in double precision, MuJoCo Warp in single precision.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import vec3_type
from pluriverse.mujoco_attributes.choices import DEFAULT_SOLREF
from pluriverse.solvers.mujoco.mapping.solref import (
    DAMPING_BOUND,
    DEFAULT_STIFFNESS,
    RIGID_SOLREF,
)


@made_once
def mixing_functions(real: Any) -> SimpleNamespace:
    """Return the functions below, as `wp.func`s for numbers of type `real`."""
    vec3 = vec3_type(real)
    vec2 = wp.types.vector(length=2, dtype=real)
    time_constant, damping_ratio = (wp.constant(real(number)) for number in DEFAULT_SOLREF)
    rigid_time = wp.constant(real(RIGID_SOLREF[0]))
    damping_bound = wp.constant(real(DAMPING_BOUND))
    stiffness_default = wp.constant(real(DEFAULT_STIFFNESS))

    @wp.func
    def mix_weight(mix0: real, mix1: real) -> real:
        """Return the weight of the first geom for two values of `solmix`."""
        least = real(1e-15)  # `mjMINVAL`
        weight = real(0.5)
        if mix0 >= least and mix1 >= least:
            weight = mix0 / (mix0 + mix1)
        elif mix0 >= least:
            weight = real(1.0)
        elif mix1 >= least:
            weight = real(0.0)
        return weight

    @wp.func
    def solref_of_gains(ke: real, kd: real, factor: real) -> vec2:
        """Return (timeconst, dampratio) of gains times a factor, NaN where not given; see `solref`."""
        zero = real(0.0)
        k = ke * factor
        if wp.isnan(ke):
            k = stiffness_default
        b = kd * factor
        if wp.isnan(kd):
            b = real(2.0) * wp.sqrt(wp.max(k, zero))
        if not (k > zero and b > zero and factor > zero):
            return vec2(time_constant, damping_ratio)
        if wp.isinf(k):
            return vec2(rigid_time, damping_ratio)
        b = wp.min(b, wp.max(real(2.0) * wp.sqrt(k), damping_bound))
        return vec2(real(2.0) / b, real(0.5) * b / wp.sqrt(k))

    @wp.func
    def damped(gains: vec2, factor: real) -> vec2:
        """Return gains, critically damped where the damping is not given."""
        if wp.isnan(gains[1]) and factor > real(0.0):
            return vec2(gains[0], real(2.0) * wp.sqrt(wp.max(gains[0], real(0.0)) / factor))
        return gains

    @wp.func
    def mix_solref(
        weight: real,
        factor: real,
        is_force0: bool,
        is_force1: bool,
        gains0: vec2,
        gains1: vec2,
        solref0: vec2,
        solref1: vec2,
    ) -> vec2:
        """Return the reference of a contact.

        Args:
            weight: Weight of the first geom.
            factor: Sum of the inverse weights of both bodies, times 1 - dmax.
            is_force0: Whether the gains of the first geom are in force space, and replace its `solref` where
                its stiffness is given.
            is_force1: The same for the second.
            gains0: Stiffness and damping of the first geom.
            gains1: Those of the second.
            solref0: `solref` of the first geom.
            solref1: That of the second.
        """
        other = real(1.0) - weight
        first, second = solref0, solref1
        acts0 = is_force0 and not wp.isnan(gains0[0])
        acts1 = is_force1 and not wp.isnan(gains1[0])
        if acts0 and acts1:
            gains = weight * damped(gains0, factor) + other * damped(gains1, factor)
            first = solref_of_gains(gains[0], gains[1], factor)
            second = first
        elif acts0:
            first = solref_of_gains(gains0[0], gains0[1], factor)
        elif acts1:
            second = solref_of_gains(gains1[0], gains1[1], factor)
        if first[0] > real(0.0) and second[0] > real(0.0):
            return weight * first + other * second
        return vec2(wp.min(first[0], second[0]), wp.min(first[1], second[1]))

    @wp.func
    def patch_solref(
        stiffness: real, factor: real, is_force0: bool, is_force1: bool, gains0: vec2, gains1: vec2
    ) -> vec2:
        """Return the reference of a contact with its own stiffness [N/m].

        The dissipation times of both materials add up; if neither is given the damping is critical.
        """
        tau = real(0.0)
        if is_force0 and gains0[0] > real(0.0) and gains0[1] > real(0.0):
            tau += gains0[1] / gains0[0]
        if is_force1 and gains1[0] > real(0.0) and gains1[1] > real(0.0):
            tau += gains1[1] / gains1[0]
        damping = tau * stiffness
        if not damping > real(0.0):
            damping = real(2.0) * wp.sqrt(stiffness / wp.max(factor, real(1e-15)))
        return solref_of_gains(stiffness, damping, factor)

    @wp.func
    def second_axis(normal: vec3) -> vec3:
        """Return the second axis of the frame of a contact, chosen as MuJoCo does: it tilts a pyramid."""
        across = vec3(real(0.0), real(0.0), real(1.0))
        if wp.abs(normal[1]) < real(0.5):
            across = vec3(real(0.0), real(1.0), real(0.0))
        return wp.normalize(across - wp.dot(across, normal) * normal)

    return SimpleNamespace(
        solref_of_gains=solref_of_gains,
        mix_weight=mix_weight,
        mix_solref=mix_solref,
        patch_solref=patch_solref,
        second_axis=second_axis,
    )
