"""Masses of a described robot: impossible ones are repaired and reported, or refused.

Negative or non-finite masses are refused. Inertias with a negative principal moment or with one that exceeds
the sum of the others are repaired, and so are joints without inertia.
"""

import numpy as np

from pluriverse.geometry import MassProperties, combine_mass_properties, transform_mass_properties
from pluriverse.geometry.inertia import least_stored_inertia
from pluriverse.importers.description import WORLD, JointDescription, LinkDescription, RobotDescription
from pluriverse.importers.errors import AssetError
from pluriverse.importers.pivots import find_joint_without_pivot
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.solids import mass_from_shapes
from pluriverse.types import JointType

# Relative rounding of authored inertias: files give five or six digits, so that a rotated or merged inertia
# can leave the set of possible ones by this much of its largest entry.
INERTIA_ROUNDING = 1e-5
# Inertia, relative to that of a ball of water of the same mass, below which it counts as rounding: a point
# mass. A real link would have to be a hundred thousand times smaller than that ball.
POINT_ROUNDING = 1e-10
# Inertia about an axis, relative to the largest principal moment, below which it is rounding. Files give
# angles to five digits, and a mass that is beside an axis by those only has the square of that.
AXIS_ROUNDING = 1e-10
# How far repaired principal moments stay inside of what is possible, relative to the largest: the rounding
# of single precision, in which models are stored.
MOMENT_MARGIN = 1e-6
# Density of solids whose mass is not given [kg/m³]: that of water.
DENSITY = 1000.0
# Mass of a link without mass or colliders that a joint moves, relative to the lightest link that has a mass:
# too small to affect the others, large enough for single precision.
MASS_SHARE = 1e-2
# Mass of such a link where no link has one [kg].
MASS_ALONE = 1.0


def repair_masses(
    robot: RobotDescription, report: ImportReport, *, armature_default: float, mesh_maxhullvert: int
) -> None:
    """Repair masses and inertias so that all are possible and every joint has an inertia to move.

    Joints without an armature use `armature_default`.

    Raises:
        AssetError: If a mass is negative, or a number is not finite.
    """
    authored = [link.mass_properties.mass for link in robot.links if link.mass_properties.mass > 0.0]
    for link in robot.links:
        _repair_link(robot, link, report, mesh_maxhullvert)
    children: list[list[int]] = [[] for _ in robot.links]
    for index, link in enumerate(robot.links):
        if link.parent != WORLD:
            children[link.parent].append(index)
    halves: list[list[MassProperties]] = [[] for _ in robot.links]  # what loop joints move of their children
    for loop in robot.loop_joints:
        parent, child = loop.links
        if parent != WORLD:
            frame = loop.joint.parent_frame @ loop.joint.motion() @ loop.joint.child_frame.inverse()
            whole = robot.links[child].mass_properties
            half = MassProperties(0.5 * whole.mass, whole.com, 0.5 * whole.inertia)
            halves[parent].append(transform_mass_properties(half, frame.position, frame.matrix))
    carried = [_as_stored(link) for link in robot.links]
    for index in reversed(range(len(robot.links))):
        link = robot.links[index]
        rest = list(halves[index])
        for child in children[index]:
            joint = robot.links[child].joint
            frame = joint.parent_frame @ joint.motion() @ joint.child_frame.inverse()
            rest.append(transform_mass_properties(carried[child], frame.position, frame.matrix))
        carried[index] = combine_mass_properties([_as_stored(link), *rest])
        if link.joint.type is JointType.FIXED or link.is_kinematic:
            continue
        if not _has_inertia(link.joint, carried[index], armature_default):
            least = MASS_SHARE * min(authored) if authored else MASS_ALONE
            _give_inertia(link, carried[index], least, report, mesh_maxhullvert)
            carried[index] = combine_mass_properties([_as_stored(link), *rest])
    armatures = [least_armature(link.joint, armature_default) for link in robot.links]
    massless = sum(not link.mass_properties.mass > 0.0 for link in robot.links)
    for _ in range(massless):  # each pass gives one link a mass
        heavier = find_joint_without_pivot(robot, halves, armatures)
        if heavier is None or robot.links[heavier].mass_properties.mass > 0.0:
            break
        _give_mass(robot.links[heavier], MASS_SHARE * carried[heavier].mass, report, mesh_maxhullvert)


def _as_stored(link: LinkDescription) -> MassProperties:
    """Return what storage is sure to leave of the mass properties of a link."""
    mass, com, inertia = link.mass_properties
    return MassProperties(mass, com, least_stored_inertia(inertia))


def _repair_link(
    robot: RobotDescription, link: LinkDescription, report: ImportReport, mesh_maxhullvert: int
) -> None:
    """Check the mass of a link, and remove negative principal moments of its inertia."""
    mass, com, inertia = link.mass_properties
    if not 0.0 <= mass < np.inf:
        raise AssetError(
            f"the mass is {mass} kg, but it must be finite and not negative",
            file=robot.source,
            element=link.element,
            value=mass,
            remedy="Correct the mass, or let it follow from the shapes with "
            "ignore_inertial_definitions=True.",
        )
    if not (np.isfinite(com).all() and np.isfinite(inertia).all()):
        raise AssetError(
            f"the centre of mass {com.tolist()} m or the inertia {inertia.tolist()} kg·m² is not finite",
            file=robot.source,
            element=link.element,
            value=inertia.tolist(),
            remedy="Correct the numbers, or let them follow from the shapes with "
            "ignore_inertial_definitions=True.",
        )
    moments, axes = np.linalg.eigh(inertia)
    smallest, middle, largest = moments
    # Rounding is small compared with the other moments, or with those of a ball of that mass.
    size = max(largest, float(_ball_inertia(mass)[0, 0]))
    if largest < POINT_ROUNDING * size and smallest > -INERTIA_ROUNDING * size:
        link.mass_properties = MassProperties(mass, com, np.zeros((3, 3)))
        return
    if smallest < -INERTIA_ROUNDING * size:
        link.mass_properties, instead = _possible_inertia(link, mesh_maxhullvert)
        report.add(
            "negative principal moment of inertia",
            f"{link.element}, {smallest:.3g} kg·m²",
            instead,
            ImportSeverity.REPAIR,
        )
        moments, axes = np.linalg.eigh(link.mass_properties.inertia)
    elif smallest >= 0.0 and smallest + middle >= largest * (1.0 - INERTIA_ROUNDING):
        return
    moments = np.maximum(moments, 0.0)
    smallest, middle, largest = moments
    if smallest + middle < largest * (1.0 - INERTIA_ROUNDING):
        # The least change of the second moments of mass, of which one is negative: it becomes 0.
        moments[:2] += 0.5 * (largest * (1.0 + MOMENT_MARGIN) - smallest - middle)
        report.add(
            "impossible inertia",
            link.element,
            "the largest principal moment exceeds the sum of the others, which no body has; they are raised",
            ImportSeverity.REPAIR,
        )
    inertia = axes @ np.diag(moments) @ axes.T
    link.mass_properties = MassProperties(mass, link.mass_properties.com, inertia)


def _possible_inertia(link: LinkDescription, mesh_maxhullvert: int) -> tuple[MassProperties, str]:
    """Return mass properties for a link of impossible inertia, and their description."""
    mass, com, inertia = link.mass_properties
    moments = np.diagonal(inertia)
    if (moments > 0.0).all():
        return (
            MassProperties(mass, com, np.diag(moments)),
            "the products of inertia exceed what the moments allow; they are left out",
        )
    shapes = mass_from_shapes(link, DENSITY, mesh_maxhullvert)
    if shapes.mass > 0.0:
        return (
            MassProperties(mass, com, shapes.inertia * (mass / shapes.mass)),
            "the inertia of its colliders for that mass takes its place",
        )
    return MassProperties(mass, com, _ball_inertia(mass)), "that of a ball of water takes its place"


def _has_inertia(joint: JointDescription, carried: MassProperties, armature_default: float) -> bool:
    """Return whether a joint carries inertia against each of its motions."""
    if not carried.mass > 0.0:
        return False  # also with armature: no solver takes a body that moves and has no mass
    if least_armature(joint, armature_default) > 0.0:
        return True
    if joint.type is JointType.PRISMATIC or (joint.dofs and joint.linear_count == len(joint.dofs)):
        return True
    offset = carried.com - joint.child_frame.position
    if joint.type in (JointType.FREE, JointType.DISTANCE):
        offset = np.zeros(3)
    about = carried.inertia + carried.mass * (offset @ offset * np.eye(3) - np.outer(offset, offset))
    moments = np.linalg.eigvalsh(about)
    least = moments[0]
    if joint.type is JointType.REVOLUTE:
        assert joint.dof is not None
        axis = joint.child_frame.matrix @ joint.dof.axis
        least = axis @ about @ axis
    elif joint.dofs:
        axes = [joint.child_frame.matrix @ dof.axis for dof in joint.dofs[joint.linear_count :]]
        least = min(axis @ about @ axis for axis in axes)
    return bool(least > AXIS_ROUNDING * moments[2])


def _give_inertia(
    link: LinkDescription,
    carried: MassProperties,
    least_mass: float,
    report: ImportReport,
    mesh_maxhullvert: int,
) -> None:
    """Give a link whose joint lacks inertia that of its colliders, or of a ball."""
    mass, com, inertia = link.mass_properties
    shapes = mass_from_shapes(link, DENSITY, mesh_maxhullvert)
    if carried.mass > 0.0:  # a point mass, or a rod, on the axis
        own = mass if mass > 0.0 else carried.mass
        extra = shapes.inertia * (own / shapes.mass) if shapes.mass > 0.0 else _ball_inertia(own)
        what = "its colliders" if shapes.mass > 0.0 else "a ball of water"
        link.mass_properties = MassProperties(mass, com, inertia + extra)
        if mass == 0.0:
            link.mass_properties = MassProperties(MASS_SHARE * own, com, extra)
        report.add(
            "no inertia against its joint",
            f"{link.element}, joint '{link.joint.label}'",
            f"it gets that of {what} of the mass that the joint carries",
            ImportSeverity.REPAIR,
        )
        return
    _give_mass(link, least_mass, report, mesh_maxhullvert)


def _give_mass(link: LinkDescription, least_mass: float, report: ImportReport, mesh_maxhullvert: int) -> None:
    """Give a link without mass that of its colliders, or make it a ball of water of `least_mass` [kg]."""
    shapes = mass_from_shapes(link, DENSITY, mesh_maxhullvert)
    if shapes.mass > 0.0:
        link.mass_properties = shapes
        what = f"it weighs what its colliders weigh at {DENSITY:g} kg/m³"
    else:
        link.mass_properties = MassProperties(least_mass, link.mass_properties.com, _ball_inertia(least_mass))
        what = f"it is a ball of water of {least_mass:.3g} kg"
    report.add(
        "no mass on a joint", f"{link.element}, joint '{link.joint.label}'", what, ImportSeverity.REPAIR
    )


def _ball_inertia(mass: float) -> np.ndarray:
    """Return the inertia of a ball of water [kg·m²]."""
    radius = (mass / (4.0 / 3.0 * np.pi * DENSITY)) ** (1.0 / 3.0)
    return 0.4 * mass * radius**2 * np.eye(3)


def least_armature(joint: JointDescription, armature_default: float) -> float:
    """Return the least armature of the degrees of freedom of a joint."""
    if joint.type is JointType.FREE:
        return 0.0
    armatures = [dof.armature for dof in joint.dofs] or [joint.dof.armature if joint.dof else joint.armature]
    return min(armature_default if armature is None else armature for armature in armatures)
