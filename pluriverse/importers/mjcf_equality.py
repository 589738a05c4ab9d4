"""MJCF equality constraints: connect and weld as loops, joint as couplings.

MuJoCo's constraints hold at the configuration `qpos0`, the authored pose of the bodies; a keyframe does not
change that.
"""

from typing import Any

import numpy as np
from numpy.polynomial import Polynomial

from pluriverse.importers.description import (
    WORLD,
    CouplingDescription,
    LoopDescription,
    RobotDescription,
)
from pluriverse.importers.frames import make_frame, quat_from_wxyz
from pluriverse.importers.mechanics import find_rigid_groups
from pluriverse.importers.mjcf_enums import MjEq, MjJoint
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.mujoco_attributes.choices import DEFAULT_SOLREF
from pluriverse.types import EqType


def add_equalities(
    robot: RobotDescription,
    source: MjcfSource,
    link_of_joint: dict[int, int],
    link_of_body: dict[int, int],
    options: MjcfSettings,
    report: ImportReport,
) -> None:
    """Add the equality constraints of the document to `robot`; report unsupported ones."""
    import mujoco

    model = source.model
    groups = [*find_rigid_groups(robot), WORLD]  # -1 addresses the last one, that of the world
    for index in range(model.neq):
        name = model.equality(index).name or f"equality_{index}"
        label = f"{robot.label}/{name}"
        kind, enabled = int(model.eq_type[index]), bool(model.eq_active0[index])
        if kind in (MjEq.CONNECT, MjEq.WELD):
            loop = _loop(model, index, label, link_of_body, options, mujoco.mjtObj.mjOBJ_SITE)
            if groups[loop.links[0]] == groups[loop.links[1]]:
                report.add(
                    "equality between bodies that cannot move against each other",
                    name,
                    "it is left out, as nothing could change",
                    ImportSeverity.NOTE,
                )
                continue
            loop.enabled = enabled
            loop.custom, loop.origin = options["custom"].of_equality(index), ("equality", index)
            robot.loops.append(loop)
        elif kind == MjEq.JOINT:
            coupling = _coupling(model, index, label, link_of_joint, options, enabled=enabled)
            coupling.custom, coupling.origin = options["custom"].of_equality(index), ("equality", index)
            robot.couplings.append(coupling)
        elif kind == MjEq.TENDON and options["custom"].namespace.keeps("tendon equality", name):
            continue
        else:
            report.add(
                "tendon equality" if kind == MjEq.TENDON else "equality", name, "the constraint does not act"
            )
            continue
        if np.allclose(model.eq_solref[index], DEFAULT_SOLREF):
            continue
        if not options["custom"].namespace.keeps("solref of an equality", name):
            report.add(
                "solref of an equality",
                name,
                "it is held as stiffly as the time step can resolve",
                ImportSeverity.NOTE,
            )


def _loop(
    model: Any, index: int, label: str, link_of_body: dict[int, int], options: MjcfSettings, site: int
) -> LoopDescription:
    """Return a connect or weld constraint from the two frames that must coincide."""
    ends = [int(model.eq_obj1id[index]), int(model.eq_obj2id[index])]
    data = np.asarray(model.eq_data[index], dtype=np.float64)
    kind = EqType.WELD if model.eq_type[index] == MjEq.WELD else EqType.CONNECT
    if model.eq_objtype[index] == site:
        frames = [make_frame(model.site_pos[end], quat_from_wxyz(model.site_quat[end])) for end in ends]
        ends = [int(model.site_bodyid[end]) for end in ends]
    elif kind is EqType.CONNECT:
        frames = [make_frame(data[0:3]), make_frame(data[3:6])]
    else:
        frames = [make_frame(data[3:6], quat_from_wxyz(data[6:10])), make_frame(data[0:3])]
    first, second = (frame.scaled(options["scale"]) for frame in frames)
    links = (link_of_body[ends[0]], link_of_body[ends[1]])
    loop = LoopDescription(label, kind, links, (first, second))
    if kind is EqType.WELD:
        loop.torquescale = float(data[10])
    return loop


def _coupling(
    model: Any,
    index: int,
    label: str,
    link_of_joint: dict[int, int],
    options: MjcfSettings,
    *,
    enabled: bool,
) -> CouplingDescription:
    """Return a joint constraint: y - y0 = p(x - x0) with the coordinates x0, y0 of `qpos0`."""
    joints = [int(joint) for joint in (model.eq_obj1id[index], model.eq_obj2id[index]) if joint >= 0]
    scales = [options["scale"] if model.jnt_type[joint] == MjJoint.SLIDE else 1.0 for joint in joints]
    origins = [float(model.qpos0[model.jnt_qposadr[joint]]) for joint in joints]
    polynomial = Polynomial(np.asarray(model.eq_data[index][:5], dtype=np.float64))
    if len(joints) == 2:
        polynomial = polynomial(Polynomial([-origins[1], 1.0 / scales[1]]))
    else:
        polynomial = Polynomial([polynomial.coef[0]])
    polynomial = scales[0] * (polynomial + origins[0])
    coefficients = np.zeros(5)
    coefficients[: len(polynomial.coef)] = polynomial.coef
    links = [link_of_joint[joint] for joint in joints]
    leader = links[1] if len(links) == 2 else None
    return CouplingDescription(label, links[0], leader, coefficients, enabled=enabled)
