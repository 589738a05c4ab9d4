"""USD joints that follow others: `NewtonMimicAPI`, q = coef0 + coef1 * q of the other."""

import numpy as np

from pluriverse.importers.description import CouplingDescription, RobotDescription
from pluriverse.importers.report import ImportReport
from pluriverse.importers.usd_source import UsdSource, applied_schemas, authored
from pluriverse.types import JointType

MIMIC = "NewtonMimicAPI"


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
        if MIMIC not in applied_schemas(prim):
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
        elif coefficients[0] != 0.0:
            report.add("offset of a mimic joint", path, "it is taken in radians, as the schema has no unit")
        robot.couplings.append(
            CouplingDescription(
                f"{path}_mimic",
                link,
                leader,
                coefficients,
                enabled=authored(prim, "newton:mimicEnabled") is not False,
            )
        )
