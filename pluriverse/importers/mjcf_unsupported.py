"""Report of the elements of an MJCF document that are not imported."""

from typing import Any

import numpy as np

from pluriverse.builder.inputs import as_gravity
from pluriverse.importers.frames import Frame
from pluriverse.importers.mjcf_rows import report_rows
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport

# Difference of two gravities that is worth a word [m/s²]: files say 9.8, 9.81 or 9.80665 and mean the same.
GRAVITY_TOLERANCE = 0.02


def report_unsupported(
    source: MjcfSource, builder: Any, options: MjcfSettings, report: ImportReport, upright: Frame
) -> None:
    """Report the elements and options of the document that have no counterpart.

    `upright` is the rotation from the axes of the file to those of the builder.
    """
    import mujoco

    spec, model = source.spec, source.model
    is_asked = options["custom"].namespace.is_asked
    report_rows(source, options, report)
    for kind, elements, consequence in (
        ("tendon", spec.tendons, "it exerts nothing"),
        ("contact pair", spec.pairs, "its geoms collide with the materials of their own"),
        ("flex", spec.flexes, "it is left out"),
        ("plugin", spec.plugins, "it does not run"),
    ):
        for number, element in enumerate(elements):
            if is_asked and kind in ("tendon", "contact pair"):
                continue
            report.add(kind, element.name or f"{kind} {number}", consequence)
    option = model.opt
    gravity = as_gravity(builder.gravity, builder.up_axis)
    authored = (
        np.zeros(3) if option.disableflags & mujoco.mjtDisableBit.mjDSBL_GRAVITY else np.array(option.gravity)
    )
    # Files with another axis up often leave gravity alone, which is along z then.
    if min(np.linalg.norm(way - gravity) for way in (authored, upright.apply(authored))) > GRAVITY_TOLERANCE:
        report.add(
            "option gravity",
            str(authored.tolist()),
            f"the builder's gravity {gravity.tolist()} m/s² acts; set builder.gravity to change it",
        )
    for flag, name, consequence in (
        (mujoco.mjtDisableBit.mjDSBL_CONTACT, "contact", "contacts act"),
        (mujoco.mjtDisableBit.mjDSBL_LIMIT, "limit", "joint limits act"),
        (mujoco.mjtDisableBit.mjDSBL_FRICTIONLOSS, "frictionloss", "dry joint friction acts"),
        (mujoco.mjtDisableBit.mjDSBL_ACTUATION, "actuation", "drives act"),
        (mujoco.mjtDisableBit.mjDSBL_SPRING, "spring", "joint springs act"),
        (mujoco.mjtDisableBit.mjDSBL_DAMPER, "damper", "joint damping acts"),
    ):
        if not option.disableflags & flag:
            continue
        if not (is_asked and options["custom"].namespace.keeps(f"flag {name}", "option")):
            report.add(f"option flag {name}=disable", "option", consequence)
    if is_asked:
        return
    for name in ("option density, viscosity", "option wind"):
        options["custom"].namespace.keeps(name, "option")
    if option.density != 0.0 or option.viscosity != 0.0:
        report.add("option density, viscosity", "option", "there is no fluid around the bodies")
    if np.any(option.wind != 0.0):
        report.add("option wind", "option", "there is no wind")
