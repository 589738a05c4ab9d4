"""Inertia stage: draw mass, centre of mass and inertia together, through the pseudo-inertia matrix.

Reads   the defaults of body_mass, body_com, body_inertia; episode
Writes  body_mass, body_com, body_inertia

With the second moment of mass about the centre of mass, Σ = tr(I)/2 1 - I, the pseudo-inertia matrix is
J = [[Σ + m c cᵀ, m c], [m cᵀ, m]] ([Wensing2018]). Its factor U of [RuckerWensing2022] has
m = exp(2α), t = c, and the upper triangular F of Σ = m F Fᵀ with diagonal exp(d) and the shears s above it.
Of the two kernels, one draws a U that multiplies J from both sides, the other draws increments of the
parameters of J's own factor.
"""

import warp as wp

from pluriverse.randomization.sampling import Sampler, draw
from pluriverse.randomization.write import Episode, Targets, selected_environment

# Draws of one body: α; d1, d2, d3; s12, s13, s23; t1, t2, t3.
PARAMETER_COUNT = wp.constant(10)


@wp.struct
class InertiaSamplers:
    """Distributions of the parameters."""

    alpha: Sampler
    d: Sampler
    s: Sampler
    t: Sampler


@wp.kernel(enable_backward=False, module="pluriverse.randomization.inertia")
def transform_pseudo_inertia(
    episode: Episode,
    targets: Targets,
    samplers: InertiaSamplers,
    term: int,
    default_mass: wp.array[float],  # [body] kg
    default_com: wp.array[wp.vec3],  # [body] m, body frame
    default_inertia: wp.array[wp.mat33],  # [body] kg·m² about the centre of mass, body axes
    # out
    body_mass: wp.array[float],  # [body] kg
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    body_inertia: wp.array[wp.mat33],  # [body] kg·m² about the centre of mass, body axes
):
    """Draw U and multiply J from both sides, J' = U J Uᵀ, for the bodies of one world.

    With U = exp(α) [[A, t], [0, 1]] the mass at x goes to A x + t: m' = exp(2α) m, c' = A c + t and
    Σ' = exp(2α) A Σ Aᵀ.
    """
    thread, _ = wp.tid()
    environment = selected_environment(episode, thread)
    if environment < 0:
        return
    world = episode.world[environment]
    count = episode.count[environment]
    identity = episode.identity[environment]
    seed = episode.seed
    half = wp.float64(0.5)
    zero = wp.float64(0.0)
    for target in range(targets.start[world], targets.start[world + 1]):
        body = targets.entity[target]
        counter = targets.local[target] * PARAMETER_COUNT
        share = wp.exp(wp.float64(2.0) * draw(samplers.alpha, 0, identity, count, counter, term, seed))
        map = wp.mat33d(
            wp.exp(draw(samplers.d, 0, identity, count, counter + 1, term, seed)),
            draw(samplers.s, 0, identity, count, counter + 4, term, seed),
            draw(samplers.s, 1, identity, count, counter + 5, term, seed),
            zero,
            wp.exp(draw(samplers.d, 1, identity, count, counter + 2, term, seed)),
            draw(samplers.s, 2, identity, count, counter + 6, term, seed),
            zero,
            zero,
            wp.exp(draw(samplers.d, 2, identity, count, counter + 3, term, seed)),
        )
        shift = wp.vec3d(
            draw(samplers.t, 0, identity, count, counter + 7, term, seed),
            draw(samplers.t, 1, identity, count, counter + 8, term, seed),
            draw(samplers.t, 2, identity, count, counter + 9, term, seed),
        )
        inertia = wp.mat33d(default_inertia[body])
        inertia = half * (inertia + wp.transpose(inertia))
        second = half * wp.trace(inertia) * wp.identity(n=3, dtype=wp.float64) - inertia
        second = share * (map * second * wp.transpose(map))
        body_mass[body] = wp.float32(share * wp.float64(default_mass[body]))
        body_com[body] = wp.vec3(map * wp.vec3d(default_com[body]) + shift)
        s12 = half * (second[0, 1] + second[1, 0])
        s13 = half * (second[0, 2] + second[2, 0])
        s23 = half * (second[1, 2] + second[2, 1])
        body_inertia[body] = wp.mat33(
            wp.mat33d(
                second[1, 1] + second[2, 2],
                -s12,
                -s13,
                -s12,
                second[0, 0] + second[2, 2],
                -s23,
                -s13,
                -s23,
                second[0, 0] + second[1, 1],
            )
        )


@wp.kernel(enable_backward=False, module="pluriverse.randomization.inertia")
def write_inertia_factor(
    episode: Episode,
    targets: Targets,
    samplers: InertiaSamplers,
    term: int,
    default_mass: wp.array[float],  # [body] kg
    default_com: wp.array[wp.vec3],  # [body] m, body frame
    default_inertia: wp.array[wp.mat33],  # [body] kg·m² about the centre of mass, body axes
    # out
    body_mass: wp.array[float],  # [body] kg
    body_com: wp.array[wp.vec3],  # [body] m, body frame
    body_inertia: wp.array[wp.mat33],  # [body] kg·m² about the centre of mass, body axes
):
    """Draw increments of the parameters of the factors of the bodies of one world."""
    thread, _ = wp.tid()
    environment = selected_environment(episode, thread)
    if environment < 0:
        return
    world = episode.world[environment]
    count = episode.count[environment]
    identity = episode.identity[environment]
    seed = episode.seed
    half = wp.float64(0.5)
    two = wp.float64(2.0)
    for target in range(targets.start[world], targets.start[world + 1]):
        body = targets.entity[target]
        counter = targets.local[target] * PARAMETER_COUNT
        mass = wp.float64(default_mass[body])
        inertia = wp.mat33d(default_inertia[body])
        trace = inertia[0, 0] + inertia[1, 1] + inertia[2, 2]
        # Per unit of mass: F Fᵀ = Σ / m, factored from the last row up.
        f33 = wp.sqrt((half * trace - inertia[2, 2]) / mass)
        f23 = -half * (inertia[1, 2] + inertia[2, 1]) / (mass * f33)
        f13 = -half * (inertia[0, 2] + inertia[2, 0]) / (mass * f33)
        f22 = wp.sqrt((half * trace - inertia[1, 1]) / mass - f23 * f23)
        f12 = (-half * (inertia[0, 1] + inertia[1, 0]) / mass - f13 * f23) / f22
        f11 = wp.sqrt((half * trace - inertia[0, 0]) / mass - f12 * f12 - f13 * f13)

        mass = mass * wp.exp(two * draw(samplers.alpha, 0, identity, count, counter, term, seed))
        f11 = f11 * wp.exp(draw(samplers.d, 0, identity, count, counter + 1, term, seed))
        f22 = f22 * wp.exp(draw(samplers.d, 1, identity, count, counter + 2, term, seed))
        f33 = f33 * wp.exp(draw(samplers.d, 2, identity, count, counter + 3, term, seed))
        f12 = f12 + draw(samplers.s, 0, identity, count, counter + 4, term, seed)
        f13 = f13 + draw(samplers.s, 1, identity, count, counter + 5, term, seed)
        f23 = f23 + draw(samplers.s, 2, identity, count, counter + 6, term, seed)

        s11 = mass * (f11 * f11 + f12 * f12 + f13 * f13)
        s22 = mass * (f22 * f22 + f23 * f23)
        s33 = mass * f33 * f33
        s12 = mass * (f12 * f22 + f13 * f23)
        s13 = mass * f13 * f33
        s23 = mass * f23 * f33
        body_mass[body] = wp.float32(mass)
        com = wp.vec3d(default_com[body])
        shift = wp.vec3d(
            draw(samplers.t, 0, identity, count, counter + 7, term, seed),
            draw(samplers.t, 1, identity, count, counter + 8, term, seed),
            draw(samplers.t, 2, identity, count, counter + 9, term, seed),
        )
        body_com[body] = wp.vec3(com + shift)
        body_inertia[body] = wp.mat33(
            wp.mat33d(s22 + s33, -s12, -s13, -s12, s11 + s33, -s23, -s13, -s23, s11 + s22)
        )
