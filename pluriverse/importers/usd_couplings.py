"""USD joints that follow others: `NewtonMimicAPI`, `PhysxMimicJointAPI` and `MjcEqualityJointAPI`.

The first says q = coef0 + coef1 * q of the other, the second, for an axis, q + gearing * q of the other +
offset = 0, with the offset of an angle in degrees. The third is a polynomial of fourth degree, in radians,
of the other joint, or without one fixes the joint at its constant.
"""

import numpy as np

from pluriverse.importers.description import CouplingDescription, RobotDescription
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.usd_source import UsdSource, applied_schemas, authored
from pluriverse.types import JointType

MIMIC = "NewtonMimicAPI"
PHYSX_MIMIC = "PhysxMimicJointAPI:"
MJC_EQUALITY = "MjcEqualityJointAPI"


def add_couplings(robot: RobotDescription, source: UsdSource, report: ImportReport) -> None:
    """Add the coupling of each joint that follows another one.

    Raises:
        AssetError: If a coefficient is not finite, or the relationship does not name one other joint.
    """
    scalar = {
        link.joint.label: index
        for index, link in enumerate(robot.links)
        if link.joint.type in (JointType.REVOLUTE, JointType.PRISMATIC)
    }
    for path, prim in source.prims.items():
        for schema in applied_schemas(prim):
            if schema.startswith(PHYSX_MIMIC):
                _add_physx(robot, source, path, schema.removeprefix(PHYSX_MIMIC), scalar, report)
        if MIMIC not in applied_schemas(prim):
            if MJC_EQUALITY in applied_schemas(prim):
                _add_polynomial(robot, source, path, scalar, report)
            continue
        leaders = [str(target) for target in prim.GetRelationship("newton:mimicJoint").GetTargets()]
        if len(leaders) != 1 or leaders[0] == path or not source.stage.GetPrimAtPath(leaders[0]):
            raise source.error(
                path,
                f"newton:mimicJoint is {leaders}",
                value=leaders,
                remedy="Name one other joint there.",
            )
        coefficients = np.zeros(5)
        for degree, default in enumerate((0.0, 1.0)):
            value = authored(prim, f"newton:mimicCoef{degree}")
            coefficients[degree] = source.number(
                path, f"newton:mimicCoef{degree}", default if value is None else value
            )
        link, leader = scalar.get(path), scalar.get(leaders[0])
        if link is None or leader is None or robot.links[link].joint.type != robot.links[leader].joint.type:
            report.add(MIMIC, path, "it moves on its own: the two are not both revolute or both prismatic")
            continue
        if robot.links[link].joint.type is JointType.PRISMATIC:
            coefficients[0] *= source.length
        else:
            coefficients[0] = np.radians(coefficients[0])
        robot.couplings.append(
            CouplingDescription(
                f"{path}_mimic",
                link,
                leader,
                coefficients,
                enabled=authored(prim, "newton:mimicEnabled") is not False,
            )
        )


def _add_physx(
    robot: RobotDescription,
    source: UsdSource,
    path: str,
    axis: str,
    scalar: dict[str, int],
    report: ImportReport,
) -> None:
    """Add the PhysX coupling of an axis of a joint."""
    prim, name = source.prims[path], f"physxMimicJoint:{axis}"
    leaders = [str(target) for target in prim.GetRelationship(f"{name}:referenceJoint").GetTargets()]
    if len(leaders) != 1 or leaders[0] == path or not source.stage.GetPrimAtPath(leaders[0]):
        raise source.error(
            path, f"{name}:referenceJoint is {leaders}", value=leaders, remedy="Name one other joint there."
        )
    numbers = {}
    for part, default in (("gearing", 1.0), ("offset", 0.0)):
        value = authored(prim, f"{name}:{part}")
        numbers[part] = source.number(path, f"{name}:{part}", default if value is None else value)
    link, leader = scalar.get(path), scalar.get(leaders[0])
    if link is None or leader is None or robot.links[link].joint.type != robot.links[leader].joint.type:
        report.add(
            "PhysxMimicJointAPI", path, "it moves on its own: the two are not both revolute or both prismatic"
        )
        return
    if authored(prim, f"{name}:naturalFrequency"):
        report.add(
            "naturalFrequency of a mimic joint",
            path,
            "it is held as stiffly as the time step can resolve",
            ImportSeverity.NOTE,
        )
    is_linear = robot.links[link].joint.type is JointType.PRISMATIC
    unit = source.length if is_linear else np.pi / 180.0
    polynomial = np.array([-unit * numbers["offset"], -numbers["gearing"], 0.0, 0.0, 0.0])
    robot.couplings.append(CouplingDescription(f"{path}_mimic", link, leader, polynomial))


def _add_polynomial(
    robot: RobotDescription, source: UsdSource, path: str, scalar: dict[str, int], report: ImportReport
) -> None:
    """Add the MuJoCo coupling of a joint."""
    prim = source.prims[path]
    relation = prim.GetRelationship("mjc:target")
    leaders = [str(target) for target in relation.GetTargets()] if relation else []
    if len(leaders) > 1 or path in leaders or any(not source.stage.GetPrimAtPath(name) for name in leaders):
        raise source.error(
            path,
            f"mjc:target is {leaders}",
            value=leaders,
            remedy="Name one other joint there, or none to hold this one.",
        )
    link, leader = scalar.get(path), scalar.get(leaders[0]) if leaders else None
    if link is None or (leaders and leader is None):
        report.add(MJC_EQUALITY, path, "it moves on its own: the two are not both revolute or prismatic")
        return
    polynomial = np.zeros(5)
    for degree in range(1 if leader is None else 5):
        value = authored(prim, f"mjc:coef{degree}")
        default = 1.0 if degree == 1 else 0.0
        polynomial[degree] = source.number(path, f"mjc:coef{degree}", default if value is None else value)
    units = [
        source.length if index is not None and robot.links[index].joint.type is JointType.PRISMATIC else 1.0
        for index in (link, leader)
    ]
    polynomial *= units[0] / units[1] ** np.arange(5)
    robot.couplings.append(CouplingDescription(f"{path}_mimic", link, leader, polynomial))
