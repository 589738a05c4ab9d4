"""Report of the elements of an MJCF document that are not imported."""

import numpy as np

from pluriverse.importers.mjcf_rows import report_rows
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.mjcf_switches import disabled_flags
from pluriverse.importers.mjcf_tendon_levers import is_fixed_tendon, passes_rotation
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport


def report_unsupported(source: MjcfSource, options: MjcfSettings, report: ImportReport) -> None:
    """Report the elements and options of the document that have no counterpart."""
    spec, model = source.spec, source.model
    is_asked = options["custom"].namespace.is_asked
    report_rows(source, options, report)
    for kind, elements, consequence in (
        ("flex", spec.flexes, "it is left out"),
        ("plugin", spec.plugins, "it does not run"),
    ):
        for number, element in enumerate(elements):
            report.add(kind, element.name or f"{kind} {number}", consequence)
    for number in range(0 if is_asked else model.ntendon):
        name = model.tendon(number).name or f"tendon {number}"
        if not is_fixed_tendon(model, number):
            report.add("spatial tendon", name, "it exerts nothing")
        elif options["scale"] != 1.0:
            continue  # it is left out, as `report_rows` says
        elif passes_rotation(model, number):
            options["custom"].namespace.keeps("fixed tendon over a ball or free joint", name)
            report.add("fixed tendon over a ball or free joint", name, "it exerts nothing")
        elif model.tendon_frictionloss[number] != 0.0 or model.tendon_armature[number] != 0.0:
            options["custom"].namespace.keeps("frictionloss, armature of a tendon", name)
            report.add("frictionloss, armature of a tendon", name, "it has none")
    option = model.opt
    if "actuation" in disabled_flags(source) and not (
        is_asked and options["custom"].namespace.keeps("flag actuation", "option")
    ):
        report.add("option flag actuation=disable", "option", "drives act")
    if is_asked:
        return
    for name in ("option density, viscosity", "option wind"):
        options["custom"].namespace.keeps(name, "option")
    if option.density != 0.0 or option.viscosity != 0.0:
        report.add("option density, viscosity", "option", "there is no fluid around the bodies")
    if np.any(option.wind != 0.0):
        report.add("option wind", "option", "there is no wind")
