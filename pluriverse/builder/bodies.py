"""Bodies: rigid links and their mass."""

from typing import Unpack

import numpy as np

from pluriverse.builder.custom_attributes import check_custom_values, put_custom_values
from pluriverse.builder.inputs import as_matrix, as_transform, as_vector
from pluriverse.builder.options import LinkOptions
from pluriverse.builder.tables import BuilderTables
from pluriverse.geometry import MassProperties, combine_mass_properties
from pluriverse.options import with_options
from pluriverse.types import BodyFlags, Entity

# Tolerated asymmetry of a user's inertia, relative to its largest entry: single precision and asset files
# with six digits stay well below.
INERTIA_SYMMETRY_TOLERANCE = 1.0e-4


@with_options(LinkOptions)
def add_link(builder: BuilderTables, **options: Unpack[LinkOptions]) -> int:
    """Add a body without a joint, for `add_joint_*` to connect.

    Its mass is the given one plus that of its shapes. `mass` without `inertia` is a point mass at `com`.

    Returns:
        Index of the body.

    Raises:
        ValueError: If a value is out of range.
    """
    label, mass = options.get("label"), options.get("mass", 0.0)
    inertia, com = options.get("inertia"), options.get("com")
    body = builder.body_count
    label = f"body_{body}" if label is None else label
    name = f"body '{label}' (index {body})"
    if not 0.0 <= mass < np.inf:
        raise ValueError(f"{name}: mass is {mass} kg, but it must be finite and >= 0.")
    matrix = np.zeros((3, 3)) if inertia is None else as_matrix(inertia, f"{name}: inertia")
    if np.abs(matrix - matrix.T).max() > INERTIA_SYMMETRY_TOLERANCE * np.abs(matrix).max():
        raise ValueError(f"{name}: inertia {matrix.tolist()} is not symmetric. Pass the full 3x3 matrix.")
    matrix = 0.5 * (matrix + matrix.T) + builder.default_body_armature * np.eye(3)
    custom = check_custom_values(builder, options.get("custom_attributes"), {Entity.BODY: 1}, name)
    builder.tables[Entity.BODY].append(
        body_q=as_transform(options.get("xform"), f"{name}: xform"),
        body_mass=mass,
        body_inertia=matrix,
        body_com=np.zeros(3) if com is None else as_vector(com, f"{name}: com"),
        body_flags=int(BodyFlags.KINEMATIC if options.get("is_kinematic") else BodyFlags.DYNAMIC),
        body_lock_inertia=options.get("lock_inertia", False),
        body_world=builder.current_world,
    )
    builder.body_label.append(label)
    put_custom_values(builder, custom, {Entity.BODY: body})
    return body


def add_body_mass(builder: BuilderTables, body: int, part: MassProperties) -> None:
    """Add the mass properties of a rigid part, given in the body frame, to a body."""
    if body < 0 or builder.body_lock_inertia[body] or part.mass == 0.0:
        return
    so_far = MassProperties(
        float(builder.body_mass[body]), builder.body_com[body], builder.body_inertia[body]
    )
    total = combine_mass_properties([so_far, part])
    builder.body_mass[body] = total.mass
    builder.body_com[body] = total.com
    builder.body_inertia[body] = total.inertia
