"""Mass validation: check that every joint has inertia to accelerate.

A joint carries its child and all descendants, in the initial poses. So a massless frame fixed to a massive
body is fine, and so is a massless link between two hinges. A hinge needs inertia about its axis, a slider
mass, a ball or free joint inertia about every axis. If a joint carries only point masses and lacks inertia,
they become balls. All comparisons are relative: a body of a milligram is as good as one of a ton.
"""

import warnings

import numpy as np

from pluriverse.builder.snapshot import Snapshot
from pluriverse.geometry.inertia import AXIS_ROUNDING, least_stored_inertia
from pluriverse.model import poses
from pluriverse.model.kinematics import group_joints, world_axes
from pluriverse.types import FLOATING_JOINTS, BodyFlags, JointType

# Relative to the largest principal inertia: negative ones up to this are rounding of what was given.
INERTIA_ROUNDING = 1.0e-6
# As `AXIS_ROUNDING`, for solvers in single precision: ten roundings of it.
AXIS_ROUNDING_SINGLE = 1.0e-6
# Relative to the largest principal inertia, how far it may exceed the sum of the others, which no
# distribution of mass can: asset files list inertias with a few digits only.
TRIANGLE_TOLERANCE = 1.0e-2
# Density [kg/m³] of the ball that replaces a point mass which needs an extent: that of water.
POINT_MASS_DENSITY = 1000.0


class NothingToAccelerateError(ValueError):
    """A joint carries no inertia: the model has poses, but accelerations are undefined."""


def check_masses(source: Snapshot, body_q: np.ndarray, body_weld: np.ndarray) -> str | None:
    """Check masses and inertias, in the initial poses `body_q`; return what single precision cannot step.

    Point masses that leave a joint without inertia are given that of a ball, with a warning.

    Args:
        source: The model to be; `body_inertia` is made symmetric.
        body_q: Initial poses, shape [body, 7].
        body_weld: Body at the root of the bodies fixed together, shape [body].

    Raises:
        NothingToAccelerateError: If a joint has no inertia to accelerate, or storage leaves it none.
        ValueError: If a value is out of range.
    """
    builder = source.builder
    _check_com(source)
    bad = ~(np.isfinite(source.body_mass) & (source.body_mass >= 0.0))
    if bad.any():
        body = int(np.argmax(bad))
        raise ValueError(
            f"{builder.body_name(body)}: body_mass is {source.body_mass[body]} kg, but it must be finite "
            "and >= 0."
        )
    _check_inertias(source)
    body_joint = np.zeros(len(body_weld), dtype=np.int64)
    body_joint[source.joint_child] = np.arange(len(source.joint_child))
    moving = source.joint_type[body_joint[body_weld]] != JointType.FIXED
    # A kinematic body needs no mass: its motion is prescribed.
    moving &= source.body_flags[body_weld] != BodyFlags.KINEMATIC
    roots = np.unique(body_weld[moving])
    carried = find_descendants(source, body_joint, body_weld)
    mass = _sum_at(source.body_mass[carried[0]], carried[1], len(body_weld))
    massless = roots[~(mass[roots] > 0.0)]
    if len(massless):
        body = int(massless[0])
        raise NothingToAccelerateError(
            f"{builder.body_name(body)}: mass is {mass[body]} kg (with all bodies that hang on it), but "
            "a body that can move needs mass > 0. Pass mass= to add_link() or add_body(), give it a shape "
            "with density > 0, or fix it with add_joint_fixed()."
        )
    least, principal = _find_joint_inertias(source, roots, body_joint, carried, mass, body_q)
    slender = ~(least > AXIS_ROUNDING_SINGLE * principal[:, 2])
    if slender.any() and fill_point_masses(source, roots[slender], carried):
        least, principal = _find_joint_inertias(source, roots, body_joint, carried, mass, body_q)
        slender = ~(least > AXIS_ROUNDING_SINGLE * principal[:, 2])
    if not slender.any():
        return None
    bad = ~(least > AXIS_ROUNDING * principal[:, 2])
    row = int(np.argmax(bad if bad.any() else slender))
    joint = int(body_joint[roots[row]])
    joint_type = JointType(source.joint_type[joint])
    about = {JointType.REVOLUTE: "the axis of", JointType.D6: "each axis of"}.get(
        joint_type, "every axis through"
    )
    found = (
        f"{builder.body_name(int(roots[row]))}: the principal inertias about {builder.joint_name(joint)} are "
        f"{principal[row].tolist()} kg·m² (with all bodies that hang on it)"
    )
    if not bad.any():
        return (
            f"{found}, and about {about} the joint there is less than {AXIS_ROUNDING_SINGLE:g} of the "
            "largest, which a solver in single precision cannot tell from none."
        )
    if principal[row, 0] > AXIS_ROUNDING * principal[row, 2]:
        raise NothingToAccelerateError(
            f"{found}, but about {about} the joint single precision, in which models are stored, leaves "
            "none. Turn the frames of slender bodies so that one of their axes lies along them, or give the "
            "joint an armature."
        )
    raise NothingToAccelerateError(
        f"{found}, but there must be some about {about} the joint. Pass inertia= to add_link(), give the "
        "body a shape with density > 0, or give the joint an armature."
    )


def find_descendants(
    source: Snapshot, body_joint: np.ndarray, body_weld: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of a body and the root of bodies fixed together that carries it, as two arrays."""
    body, root = np.arange(len(body_weld)), body_weld
    bodies, roots = [body], [root]
    while len(body):
        parent = source.joint_parent[body_joint[root]]
        body, parent = body[parent >= 0], parent[parent >= 0]
        root = body_weld[parent]
        bodies.append(body)
        roots.append(root)
    return np.concatenate(bodies), np.concatenate(roots)


def _check_com(source: Snapshot) -> None:
    finite = np.isfinite(source.body_com).all(axis=1)
    if not finite.all():
        body = int(np.argmin(finite))
        raise ValueError(
            f"{source.builder.body_name(body)}: body_com is {source.body_com[body].tolist()} m, but it "
            "must be finite. Check com= of add_link()."
        )


def _check_inertias(source: Snapshot) -> None:
    """Make the inertias symmetric and check their principal values."""
    builder, inertia = source.builder, source.body_inertia
    finite = np.isfinite(inertia).all(axis=(1, 2))
    if not finite.all():
        body = int(np.argmin(finite))
        raise ValueError(
            f"{builder.body_name(body)}: body_inertia is {inertia[body].tolist()} kg·m², but it must be "
            "finite."
        )
    transposed = inertia.transpose(0, 2, 1)
    size = np.abs(inertia).max(axis=(1, 2), initial=0.0)
    skew = np.abs(inertia - transposed).max(axis=(1, 2), initial=0.0) > TRIANGLE_TOLERANCE * size
    if skew.any():
        body = int(np.argmax(skew))
        raise ValueError(
            f"{builder.body_name(body)}: body_inertia is {inertia[body].tolist()} kg·m², which is not "
            "symmetric. Pass the full symmetric 3x3 matrix."
        )
    source.body_inertia = 0.5 * (inertia + transposed)
    principal = np.linalg.eigvalsh(source.body_inertia)
    largest = principal[:, 2]
    negative = principal[:, 0] < -INERTIA_ROUNDING * np.abs(principal).max(axis=1)
    if negative.any():
        body = int(np.argmax(negative))
        raise ValueError(
            f"{builder.body_name(body)}: the principal inertias are {principal[body].tolist()} kg·m², "
            "but none may be negative. Check inertia= of add_link()."
        )
    broken = np.flatnonzero(largest - (principal[:, 0] + principal[:, 1]) > TRIANGLE_TOLERANCE * largest)
    if len(broken):
        body = int(broken[0])
        others = f" and {len(broken) - 1} more" if len(broken) > 1 else ""
        warnings.warn(
            f"{builder.body_name(body)}{others}: the principal inertias {principal[body].tolist()} kg·m² "
            "belong to no body, since the largest exceeds the sum of the other two; they are used as given. "
            "Check inertia= of add_link() (about the centre of mass, in body axes).",
            stacklevel=5,
        )


def fill_point_masses(source: Snapshot, roots: np.ndarray, carried: tuple[np.ndarray, np.ndarray]) -> bool:
    """Give point masses on the joints of `roots` the inertia of a ball; return whether there were any."""
    body, root = carried
    bodies = np.unique(body[np.isin(root, roots)])
    is_point = (source.body_mass[bodies] > 0.0) & ~source.body_inertia[bodies].any(axis=(1, 2))
    bodies = bodies[is_point]
    if not len(bodies):
        return False
    mass = source.body_mass[bodies]
    radius = np.cbrt(mass / (4.0 / 3.0 * np.pi * POINT_MASS_DENSITY))
    source.body_inertia[bodies] = (0.4 * mass * radius**2)[:, None, None] * np.eye(3)
    first = int(bodies[0])
    others = f" and {len(bodies) - 1} more" if len(bodies) > 1 else ""
    warnings.warn(
        f"{source.builder.body_name(first)}{others}: a mass of {mass[0]:g} kg without any inertia on a "
        f"joint that rotates it; it gets the inertia of a ball of {POINT_MASS_DENSITY:g} kg/m³. Pass "
        "inertia= to add_link() or add_body(), or give the body a shape with density > 0.",
        stacklevel=5,
    )
    return True


def _find_joint_inertias(
    source: Snapshot,
    roots: np.ndarray,
    body_joint: np.ndarray,
    carried: tuple[np.ndarray, np.ndarray],
    mass: np.ndarray,
    body_q: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the least inertia of each moving joint about its axes, and the principal inertias [kg·m²].

    The inertia is that of the child and all its descendants. The least is what storage is sure to leave of
    it, and infinite for a joint that only slides.
    """
    body, root = carried
    rotation = poses.quat_to_matrix(body_q[:, 3:])
    com = body_q[:, :3] + poses.rotate(body_q[:, 3:], source.body_com)
    about_com, stored = (
        rotation @ inertia @ rotation.transpose(0, 2, 1)
        for inertia in (source.body_inertia, least_stored_inertia(source.body_inertia))
    )
    joints = body_joint[roots]
    anchor = poses.compose(body_q[roots], source.joint_X_c[joints])
    free = np.isin(source.joint_type[joints], FLOATING_JOINTS)
    pivot = np.zeros_like(com)  # point that the bodies fixed together turn about
    weighted = np.stack(
        [_sum_at((source.body_mass * com[:, axis])[body], root, len(com)) for axis in range(3)], axis=1
    )
    pivot[roots] = np.where(free[:, None], weighted[roots] / mass[roots, None], anchor[:, :3])
    arm = com[body] - pivot[root]
    square = np.sum(arm * arm, axis=1)[:, None, None] * np.eye(3) - arm[:, :, None] * arm[:, None, :]
    offset = source.body_mass[body, None, None] * square
    sums = []
    for parts in (about_com[body] + offset, stored[body] + offset):
        entries = parts.reshape(-1, 9).T
        sums.append(np.stack([_sum_at(entry, root, len(com)) for entry in entries], axis=1)[roots])
    total, sure = (entries.reshape(-1, 3, 3) for entries in sums)
    principal = np.linalg.eigvalsh(total)
    least = np.linalg.eigvalsh(sure)[:, 0]
    dof = source.joint_qd_start[joints]
    every = free | (source.joint_type == JointType.BALL)[joints]  # joints that turn about every axis
    turning = (dof + source.joint_dof_dim[joints, 0])[every, None] + np.arange(3)
    least[every] += source.joint_armature[turning].min(axis=1)
    hinge = source.joint_type[joints] == JointType.REVOLUTE
    if hinge.any():
        axis = poses.rotate(anchor[hinge, 3:], source.joint_axis[dof[hinge]])
        least[hinge] = np.einsum("ni,nij,nj->n", axis, sure[hinge], axis) + source.joint_armature[dof[hinge]]
    for group in group_joints(source, joints[source.joint_type[joints] == JointType.D6]):
        rows = np.flatnonzero(np.isin(joints, group))
        linear_count, angular_count = source.joint_dof_dim[group[0]]
        if angular_count:
            axis = world_axes(source, joints[rows], anchor[rows])[:, linear_count:]
            dofs = dof[rows][:, None] + np.arange(linear_count, linear_count + angular_count)
            about = np.einsum("nki,nij,nkj->nk", axis, sure[rows], axis) + source.joint_armature[dofs]
            least[rows] = about.min(axis=1)
    least[source.joint_dof_dim[joints, 1] == 0] = np.inf
    return least, principal


def _sum_at(values: np.ndarray, body: np.ndarray, body_count: int) -> np.ndarray:
    """Return, for each body, the sum of the values assigned to it."""
    return np.bincount(body, weights=values, minlength=body_count)
