"""Bodies: rigid links and their mass."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from pluriverse.builder.custom_attributes import check_custom_values, put_custom_values
from pluriverse.builder.inputs import Transform, Vector, as_matrix, as_transform, as_vector
from pluriverse.builder.tables import BuilderTables
from pluriverse.geometry import MassProperties, combine_mass_properties
from pluriverse.types import BodyFlags, Entity

# How far an inertia given by the user may be from symmetric, relative to its largest entry: single precision
# and asset files with six digits stay well below.
INERTIA_SYMMETRY_TOLERANCE = 1.0e-4


def add_link(
    builder: BuilderTables,
    *,
    xform: Transform | None = None,
    com: Vector | None = None,
    inertia: Any | None = None,
    mass: float = 0.0,
    label: str | None = None,
    lock_inertia: bool = False,
    is_kinematic: bool = False,
    custom_attributes: Mapping[str, Any] | None = None,
) -> int:
    """Add a body without a joint, for `add_joint_*` to connect.

    Its mass is that given here plus that of its shapes. `mass` alone is a point mass at `com`.

    Args:
        xform: Pose in the world. A free joint starts there; the pose of bodies behind other joints
            follows from `joint_q`.
        com: Centre of mass of `mass` [m], body frame; the origin if None.
        inertia: Rotational inertia of `mass` about `com` [kg·m²], body axes, 3x3.
        mass: Mass [kg].
        label: Name; `body_INDEX` if None.
        lock_inertia: Whether shapes add nothing to mass, com and inertia.
        is_kinematic: Whether the body moves as its state and targets say, whatever acts on it. Its joint
            must hang on the world; what hangs on the body stays dynamic.
        custom_attributes: Custom attributes of the body, by key.

    Returns:
        Index of the body.

    Raises:
        ValueError: If a value is out of range.
    """
    body = builder.body_count
    label = f"body_{body}" if label is None else label
    name = f"body '{label}' (index {body})"
    if not 0.0 <= mass < np.inf:
        raise ValueError(f"{name}: mass is {mass} kg, but it must be finite and >= 0.")
    matrix = np.zeros((3, 3)) if inertia is None else as_matrix(inertia, f"{name}: inertia")
    if np.abs(matrix - matrix.T).max() > INERTIA_SYMMETRY_TOLERANCE * np.abs(matrix).max():
        raise ValueError(f"{name}: inertia {matrix.tolist()} is not symmetric. Pass the full 3x3 matrix.")
    matrix = 0.5 * (matrix + matrix.T) + builder.default_body_armature * np.eye(3)
    custom = check_custom_values(builder, custom_attributes, {Entity.BODY: 1}, name)
    builder.tables[Entity.BODY].append(
        body_q=as_transform(xform, f"{name}: xform"),
        body_mass=mass,
        body_inertia=matrix,
        body_com=np.zeros(3) if com is None else as_vector(com, f"{name}: com"),
        body_flags=int(BodyFlags.KINEMATIC if is_kinematic else BodyFlags.DYNAMIC),
        body_lock_inertia=lock_inertia,
        body_world=builder.current_world,
    )
    builder.body_label.append(label)
    put_custom_values(builder, custom, {Entity.BODY: body})
    return body


def add_body_mass(builder: BuilderTables, body: int, part: MassProperties) -> None:
    """Add a rigid part, given in the body frame, to the mass of a body."""
    if body < 0 or builder.body_lock_inertia[body] or part.mass == 0.0:
        return
    so_far = MassProperties(
        float(builder.body_mass[body]), builder.body_com[body], builder.body_inertia[body]
    )
    total = combine_mass_properties([so_far, part])
    builder.body_mass[body] = total.mass
    builder.body_com[body] = total.com
    builder.body_inertia[body] = total.inertia
