"""Springs: tables of springs on sums of joint coordinates and on bodies, which a solver may couple."""

import warp as wp


@wp.struct
class TendonTable:
    """Articulations with tendons, their tendons, and the joints of these."""

    articulation: wp.array[int]
    """The articulations, in a list of their own."""
    first_dof: wp.array[int]
    """Its first degree of freedom in the model."""
    dof_count: wp.array[int]
    """Its degrees of freedom."""
    tendon_start: wp.array[int]
    """First tendon of each entry of the list, shape [entry + 1]."""
    entry_start: wp.array[int]
    """First joint of each tendon, shape [tendon + 1]."""
    entry_dof: wp.array[int]
    """Degree of freedom in the articulation, of each joint of a tendon."""
    entry_coord: wp.array[int]
    """Its coordinate in the model."""
    coefficient: wp.array[float]
    """Length per unit of position, of each joint of a tendon."""
    offset: wp.array[float]
    """Offset of the length of each tendon."""
    rest: wp.array[float]
    """Rest length of each tendon."""
    stiffness: wp.array[float]
    """Stiffness of each tendon."""
    damping: wp.array[float]
    """Damping of each tendon."""
    lower: wp.array[float]
    """Smallest length of each tendon."""
    upper: wp.array[float]
    """Largest length of each tendon."""
    limit_stiffness: wp.array[float]
    """Stiffness of the limits of each tendon, 0 for none."""


@wp.struct
class BodySpringTable:
    """Of each spring."""

    body: wp.array[int]
    """Body of the model."""
    articulation: wp.array[int]
    """Its articulation."""
    link: wp.array[int]
    """Place of the joint of the body in the articulation."""
    dof_count: wp.array[int]
    """Degrees of freedom of the articulation."""
    axes: wp.array[int]
    """Which axes of the target it acts along and about: bits 0 to 2 for x, y and z, 3 to 5 for turns."""
    stiffness: wp.array[float]
    """N/m and N·m/rad."""
    damping: wp.array[float]
    """N·s/m and N·m·s/rad."""
    first_dof: wp.array[int]
    """First degree of freedom of the articulation in the model."""
    offset: wp.array[wp.transform]
    """Where it acts: a pose in the body [m, xyzw]."""
    target: wp.array[wp.transform]
    """Pose that it is pulled to, in the world [m, xyzw]."""
