"""Mass properties: masses, centres of mass and inertias that a script gives the bodies of an actor."""

import warnings
from collections.abc import Sequence

import numpy as np

from pluriverse.builder.mass_validation import TRIANGLE_TOLERANCE
from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.asset_files import shape_mass_properties
from pluriverse.gymapi.enums import RigidBodyFlags
from pluriverse.gymapi.errors import GymWarning
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.store import first_rows, read
from pluriverse.gymapi.structures import RigidBodyProperties, matrix_of
from pluriverse.model.end_inertias import find_unresisting
from pluriverse.solvers.model_change import SYMMETRY_ERROR
from pluriverse.types import BodyFlags, JointType

_CALL = "set_actor_rigid_body_properties"


def mass_properties(
    actor: Actor, properties: Sequence[RigidBodyProperties], flags: np.ndarray, *, recompute_inertia: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return mass [kg], centre of mass [m] and inertia [kg·m²] of each body, once they are checked.

    Args:
        actor: The actor that shall have them.
        properties: One for each body.
        flags: `RigidBodyFlags` that the bodies shall have.
        recompute_inertia: Whether inertias follow from the masses.

    Raises:
        ValueError: If a value is not allowed.
    """
    com: np.ndarray
    inertia: np.ndarray
    with np.errstate(over="ignore"):  # what single precision does not hold is infinite, and refused
        mass = np.array([part.mass for part in properties], dtype=np.float64).astype(np.float32)
        com = np.array([list(part.com) for part in properties], dtype=np.float64).astype(np.float32)
        inertia = np.array([matrix_of(part.inertia) for part in properties]).astype(np.float32)
    _check(actor, (mass >= 0.0) & (mass < np.inf), "mass", mass, "kg, but must be finite and >= 0.")
    _check(actor, np.isfinite(com).all(axis=1), "com", com, "m, but must be finite.")
    before = read(actor, "body_inertia").reshape(-1, 3, 3)
    if recompute_inertia:
        inertia = _scaled_inertia(actor, mass, read(actor, "body_mass"), before)
    _check_inertia(actor, inertia, before)
    _check_movable(actor, mass, com, inertia, flags)
    return mass, com, inertia


def _check_inertia(actor: Actor, inertia: np.ndarray, before: np.ndarray) -> None:
    """Check inertias each by itself; warn of new ones that no body has."""
    unit = "kg·m², but must be"
    _check(actor, np.isfinite(inertia).all(axis=(1, 2)), "inertia", inertia, f"{unit} finite.")
    size = np.abs(inertia).max(axis=(1, 2))
    skew = np.abs(inertia - inertia.transpose(0, 2, 1)).max(axis=(1, 2))
    _check(actor, skew <= SYMMETRY_ERROR * size, "inertia", inertia, f"{unit} symmetric.")
    principal = np.linalg.eigvalsh(inertia.astype(np.float64))
    definite = principal[:, 0] >= -SYMMETRY_ERROR * size
    _check(actor, definite, "inertia", inertia, f"{unit} >= 0 about every axis.")
    # Scripts that scale masses pass on the inertias of a file, of which a warning was given when it was read.
    excess = principal[:, 2] - principal[:, 0] - principal[:, 1]
    odd = (excess > TRIANGLE_TOLERANCE * principal[:, 2]) & (inertia != before).any(axis=(1, 2))
    if odd.any():
        body = int(np.argmax(odd))
        warnings.warn(
            f"{_CALL}: the principal inertias of body '{actor.asset.body_names[body]}' of {actor} are "
            f"{principal[body].tolist()} kg·m², which no body has, since the largest exceeds the sum of the "
            "other two; they are used as given. Give inertias about the centre of mass, and change all in "
            "proportion.",
            GymWarning,
            stacklevel=4,
        )


def _check_movable(
    actor: Actor, mass: np.ndarray, com: np.ndarray, inertia: np.ndarray, flags: np.ndarray
) -> None:
    """Check that what joints move has mass, and at the ends of the actor inertia."""
    asset = actor.asset
    live = ("joint_X_p", "joint_X_c", "joint_armature")  # what the scale and the joints of the actor change

    def column(name: str) -> np.ndarray:
        if name == "body_flags":
            return _motion_flags(asset, flags)
        if name in given:
            return given[name]
        return read(actor, name) if name in live else first_rows(asset, name)

    given = {"body_mass": mass, "body_com": com, "body_inertia": inertia}
    if not mass.all():
        moved = np.zeros(len(mass), dtype=bool)
        moved[first_rows(asset, "joint_child")[first_rows(asset, "joint_type") != JointType.FIXED]] = True
        moved &= column("body_flags") != BodyFlags.KINEMATIC
        _check(
            actor,
            (mass > 0.0) | ~moved,
            "mass",
            mass,
            "kg, but must be > 0, since a joint moves the body. To hold it still, load its asset with "
            "fix_base_link=True or set RIGID_BODY_DISABLE_SIMULATION.",
        )
    _check(
        actor,
        ~find_unresisting(column)[1],
        "inertia",
        inertia,
        "kg·m², but must be > 0 about every axis that its joint turns it about. Change inertias in "
        "proportion to the masses, as recomputeInertia=True does.",
    )


def _motion_flags(asset: Asset, flags: np.ndarray) -> np.ndarray:
    """Return the `BodyFlags` that follow from `RigidBodyFlags`."""
    result = first_rows(asset, "body_flags").copy()
    if asset.is_free:
        still = flags[asset.root_body] & int(RigidBodyFlags.RIGID_BODY_DISABLE_SIMULATION)
        result[asset.root_body] = int(BodyFlags.KINEMATIC if still else BodyFlags.DYNAMIC)
    return result


def _check(actor: Actor, sound: np.ndarray, name: str, values: np.ndarray, remedy: str) -> None:
    """Raise for the first body whose value is not sound."""
    if sound.all():
        return
    body = int(np.argmin(sound))
    value, body_name = values[body].tolist(), actor.asset.body_names[body]
    raise ValueError(f"{_CALL}: {name} of body '{body_name}' of {actor} is {value} {remedy}")


def _scaled_inertia(
    actor: Actor, mass: np.ndarray, old_mass: np.ndarray, old_inertia: np.ndarray
) -> np.ndarray:
    """Return inertias in proportion to the masses; of bodies without a mass so far, that of their shapes."""
    inertia = old_inertia.astype(np.float64)
    for body in range(len(mass)):
        if old_mass[body] > 0.0:
            inertia[body] *= mass[body] / float(old_mass[body])
        elif mass[body] > 0.0:
            shape_mass, _, shape_inertia = shape_mass_properties(actor.asset.builder, body)
            if shape_mass > 0.0:
                inertia[body] = shape_inertia * (mass[body] / shape_mass) * actor.scale**2
    return inertia
