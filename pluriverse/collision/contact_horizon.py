"""Contact horizon: which contacts a solver can do without, since they cannot act in its step.

A contact at the distance phi whose points part at v_n > -phi / T has no force in a step, where T is the step
and, if the solver damps an approach before there is contact, the dissipation times of both surfaces. A
solver whose friction cone is convex also lets a contact act that slides at v_t and parts by less than mu
|v_t| ([Castro2022] section IV.B). One that corrects this does so to the larger of a share c of mu |v_t| and a
speed v_c; with a convex cone c = 1 and v_c = 0. So a contact can act only if

    phi < T (max(c mu |v_t|, v_c) - v_n)    and thus only if    phi < T (sqrt(1 + (c mu)^2) |v| + v_c) .

The velocity v of the end of the step is known only after the solve. Collision takes that of the beginning,
and assumes for each shape by how much it may change. The solver compares this with what it found. Where it
did not hold, the solver has more contacts found: see `pluriverse.solvers.sap.candidates`.
"""

from dataclasses import dataclass

import warp as wp


@dataclass(frozen=True)
class ContactHorizon:
    """Which contacts a solver can do without. Made by `SolverBase.contact_horizon`."""

    dt: float
    """Time step [s]. Zero: only shapes that overlap now matter."""
    shape_tau: wp.array | None = None
    """Dissipation time of shapes that damp an approach [s], shape [shape]; None if nothing acts ahead."""
    fallback_tau: float = 0.0
    """The same for shapes whose own is missing [s]."""
    shape_mu: wp.array | None = None
    """Coefficient of friction, shape [shape]; None if sliding makes no contact act ahead."""
    fallback_mu: float = 0.0
    """The same for shapes whose own is missing."""
    shape_mu_torsional: wp.array | None = None
    """Coefficient of torsional friction [m], shape [shape]; None without moments at contacts."""
    shape_mu_rolling: wp.array | None = None
    """Coefficient of rolling friction [m], shape [shape]; None without moments at contacts."""
    sliding_share: float = 1.0
    """Share of mu |v_t| by which a contact that slides may part and act: all of it if friction is convex."""
    sliding_speed: float = 0.0
    """Speed [m/s] by which a contact may part and act, if that is more."""
    is_midway: bool = False
    """Whether contacts act at a point between both surfaces, and not at a point of each."""
    world_complete: wp.array | None = None
    """1 for each world of which no contact within the gaps is left out, shape [world]; None for no world."""


@wp.struct
class HorizonData:
    """`ContactHorizon` for kernels, and the velocities of bodies."""

    is_limited: int
    """Whether contacts that cannot act are left out; else all within the gaps are wanted."""
    is_repeated: int
    """Whether `ShapeState.change` has changes of velocity that are known to occur."""
    dt: float
    """Time step [s]."""
    has_tau: int
    """Whether approaches are damped ahead of contact."""
    fallback_tau: float
    """Dissipation time of shapes without [s]."""
    has_mu: int
    """Whether sliding makes contacts act ahead."""
    fallback_mu: float
    """Friction of shapes without."""
    sliding_share: float
    """Share of mu |v_t| by which a contact may part and act."""
    sliding_speed: float
    """Speed by which a contact may part and act, if that is more [m/s]."""
    is_midway: int
    """Whether contacts act between both surfaces."""
    has_moments: int
    """Whether contacts have moments."""
    shape_tau: wp.array[float]
    """Dissipation time [s], shape [shape]."""
    shape_mu: wp.array[float]
    """Coefficient of friction, shape [shape]."""
    shape_mu_torsional: wp.array[float]
    """Coefficient of torsional friction [m], shape [shape]."""
    shape_mu_rolling: wp.array[float]
    """Coefficient of rolling friction [m], shape [shape]."""
    has_complete: int
    """Whether there are worlds of which no contact is left out."""
    world_complete: wp.array[int]
    """1 for each of these, shape [world]."""
    body_qd: wp.array[wp.spatial_vector]
    """Velocity of the centre of mass and spin [m/s, rad/s], world axes, shape [body]."""
    body_com: wp.array[wp.vec3]
    """Centre of mass [m], body frame, shape [body]."""


def make_horizon_data(
    horizon: ContactHorizon | None, body_qd: wp.array, body_com: wp.array, *, is_repeated: bool = False
) -> HorizonData:
    """Return what kernels read; without a horizon all contacts within the gaps are wanted."""
    data = HorizonData()
    data.body_qd = body_qd
    data.body_com = body_com
    if horizon is None:
        return data
    data.is_limited = 1
    data.is_repeated = int(is_repeated)
    data.dt = horizon.dt
    data.is_midway = int(horizon.is_midway)
    data.fallback_tau, data.fallback_mu = horizon.fallback_tau, horizon.fallback_mu
    data.sliding_share, data.sliding_speed = horizon.sliding_share, horizon.sliding_speed
    if horizon.world_complete is not None:
        data.has_complete = 1
        data.world_complete = horizon.world_complete
    if horizon.shape_tau is not None:
        data.has_tau = 1
        data.shape_tau = horizon.shape_tau
    if horizon.shape_mu is not None:
        data.has_mu = 1
        data.shape_mu = horizon.shape_mu
    if horizon.shape_mu_torsional is not None and horizon.shape_mu_rolling is not None:
        data.has_moments = 1
        data.shape_mu_torsional = horizon.shape_mu_torsional
        data.shape_mu_rolling = horizon.shape_mu_rolling
    return data
