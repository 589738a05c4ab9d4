"""Inputs of the contact stage: its constants, and what its kernel reads of contacts, model and options."""

import math

import warp as wp

BODY_INERTIA = wp.constant(0)
DIAG_DELASSUS = wp.constant(1)
DELASSUS = wp.constant(2)
WITNESS_POINT = wp.constant(0)
CONTACT_MIDPOINT = wp.constant(1)
HARMONIC_MEAN = wp.constant(0)
ARITHMETIC_MEAN = wp.constant(1)
MINIMUM = wp.constant(2)
MAXIMUM = wp.constant(3)

# Floor of the contact weight w and of R [1/kg]: guards of divisions only.
WEIGHT_MIN = wp.constant(1e-12)
REGULARIZATION_MIN = wp.constant(1e-30)
# Stiffness of a shape that has none [N/m]. No load is so large that it counts beside the near-rigid term, and
# it is finite, so that two of them have a sum and a ratio.
RIGID_STIFFNESS = 1e30
# The norm of the tangential impulse is rounded at 1e-7 N·s, as in Drake, but never above this fraction of the
# impulse that carries the weight of the contact's effective mass for one step: small parts must be able to
# stick, too.
SOFT_NORM = wp.constant(1e-7)
SOFT_NORM_RELATIVE = wp.constant(1e-6 * 9.81)
NEAR_RIGID = wp.constant(1.0 / (4.0 * math.pi**2))
# Value of contact_rn that marks a contact that takes no part: between bodies that cannot move against each
# other, or beyond `max_rigid_contact`.
LEFT_OUT = wp.constant(-1.0)


@wp.struct
class ContactInputs:
    """Arrays of contacts and model that the stage reads; see `Contacts` and `Model` for units and shapes."""

    slot_start: wp.array[int]
    contact_count: wp.array[int]
    shape0: wp.array[int]
    shape1: wp.array[int]
    point0: wp.array[wp.vec3]
    point1: wp.array[wp.vec3]
    normal: wp.array[wp.vec3]
    margin0: wp.array[float]
    margin1: wp.array[float]
    stiffness: wp.array[float]
    has_stiffness: bool
    shape_body: wp.array[int]
    shape_ke: wp.array[float]
    shape_ke_per_mass: wp.array[float]
    shape_tau: wp.array[float]
    shape_mu: wp.array[float]
    body_mass: wp.array[float]
    body_inertia: wp.array[wp.mat33]
    world_frozen: wp.array[int]
    chain_capacity: int  # degrees of freedom of a chain of joints at most
    shares_chains: int  # whether all worlds of a launch use the scratch of the first


@wp.struct
class ContactOptions:
    """Scalars of the regularization; negative fallbacks mean "none given"."""

    beta: wp.float64
    sigma: wp.float64
    fallback_stiffness: wp.float64
    fallback_tau: wp.float64
    fallback_mu: wp.float64
    friction_mode: int
    weight_mode: int
    point_mode: int
    capacity: int
    approach_damping: int
    recovery_limited: int
    moves_by_chords: int  # contacts stick and slide at the velocity of the chord (`contact_chord.py`)
    dt: wp.float64
