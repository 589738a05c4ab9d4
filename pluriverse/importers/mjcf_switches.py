"""Switches and margins of an MJCF document that a model expresses by its values, and its gravity.

MuJoCo's `<flag>` disables contacts, limits, springs and so on of everything in a document. A model holds many
documents, so here a switch acts on what its document adds: shapes that collide with nothing, joints without
limits. In a builder for `SolverMuJoCo` alone flags are options of the whole model instead. Actuators of
disabled groups exert nothing in any builder.
"""

from typing import Any

import numpy as np

from pluriverse.builder.inputs import as_gravity
from pluriverse.importers.frames import Frame
from pluriverse.importers.mjcf_enums import MjJoint
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.mujoco_attributes.choices import BIAS_NONE, GAIN_FIXED
from pluriverse.types import Entity

# Difference of two gravities that is worth a word [m/s²]: files say 9.8, 9.81 or 9.80665 and mean the same.
GRAVITY_TOLERANCE = 0.02
# What each flag switches off: fields of `mujoco.MjModel` that become 0, and what follows.
SWITCHES = {
    "contact": (("geom_contype", "geom_conaffinity"), "its geoms collide with nothing"),
    "limit": (("jnt_limited", "tendon_limited"), "its joints have no limits"),
    "frictionloss": (("dof_frictionloss", "tendon_frictionloss"), "its joints have no dry friction"),
    "equality": (("eq_active0",), "its equality constraints are disabled"),
    "spring": (
        ("jnt_stiffness", "jnt_stiffnesspoly", "tendon_stiffness", "tendon_stiffnesspoly"),
        "its joints have no springs",
    ),
    "damper": (
        (
            *("dof_damping", "dof_dampingpoly", "tendon_damping", "tendon_dampingpoly"),
            *("actuator_damping", "actuator_dampingpoly"),
        ),
        "its joints have no damping",
    ),
    "clampctrl": (("actuator_ctrllimited",), "its controls have no range"),
}
# Switched off together by the flag `constraint`.
CONSTRAINTS = ("contact", "limit", "frictionloss", "equality")
# Highest group of actuators that `actuatorgroupdisable` can name: it is a bit of an integer.
GROUP_MAX = 30


def apply_switches(source: MjcfSource, report: ImportReport) -> None:
    """Write what the flags of a document switch off into its compiled values, and note it."""
    disabled = disabled_flags(source)
    for name in disabled & set(SWITCHES):
        fields, consequence = SWITCHES[name]
        for field in fields:
            values = getattr(source.model, field, None)  # polynomials are younger than the oldest MuJoCo
            if values is not None:
                values[:] = 0
        report.add(f"option flag {name}=disable", "option", consequence, ImportSeverity.NOTE)


def switch_off_actuators(source: MjcfSource, report: ImportReport) -> None:
    """Let actuators of the groups in `actuatorgroupdisable` exert nothing, and note it.

    Their compiled values say so from now on. They keep their places among the controls, and their armature
    and damping, as in MuJoCo.
    """
    model = source.model
    for actuator in range(int(model.nactuator)):
        if not is_switched_off(model, actuator):
            continue
        model.actuator_gainprm[actuator] = 0.0
        model.actuator_biasprm[actuator] = 0.0
        # Muscles and others exert something, or divide by 0, with parameters of 0. How many controls a PID
        # controller takes depends on its type, and it exerts nothing with gains of 0.
        if int(model.actuator_ctrlnum[actuator]) == 1:
            model.actuator_gaintype[actuator] = GAIN_FIXED
        model.actuator_biastype[actuator] = BIAS_NONE
        name = model.actuator(actuator).name or f"actuator {actuator}"
        report.add("option actuatorgroupdisable", name, "it exerts nothing", ImportSeverity.NOTE)


def is_switched_off(model: Any, actuator: int) -> bool:
    """Return whether the group of an actuator is one that the document disables."""
    group = int(model.actuator_group[actuator])
    return 0 <= group <= GROUP_MAX and bool(int(model.opt.disableactuator) >> group & 1)


def move_limits_to_margins(source: MjcfSource, report: ImportReport) -> None:
    """Narrow the ranges of slides and hinges by the margins of their limits, which become 0, and note it.

    MuJoCo's limit pushes wherever the distance to it is below the margin: it is a limit at that distance.
    """
    model = source.model
    for joint in range(int(model.njnt)):
        margin = float(model.jnt_margin[joint])
        is_scalar = int(model.jnt_type[joint]) in (MjJoint.SLIDE, MjJoint.HINGE)
        if not (margin != 0.0 and is_scalar and model.jnt_limited[joint]):
            continue
        low, high = (float(bound) for bound in model.jnt_range[joint])
        middle = 0.5 * (low + high)  # where wider margins balance
        model.jnt_range[joint] = min(low + margin, middle), max(high - margin, middle)
        model.jnt_margin[joint] = 0.0
        report.add(
            "margin of a joint limit",
            model.joint(joint).name or f"joint {joint}",
            "its range is narrower by the margin, since the limit acts there",
            ImportSeverity.NOTE,
        )


def disabled_flags(source: MjcfSource) -> set[str]:
    """Return the names of the flags that a document disables, with those that `constraint` stands for."""
    import mujoco

    bits = int(source.model.opt.disableflags)
    names = {
        member.removeprefix("mjDSBL_").lower()
        for member, bit in mujoco.mjtDisableBit.__members__.items()
        if member.startswith("mjDSBL_") and bits & int(bit)
    }
    return names | set(CONSTRAINTS) if "constraint" in names else names


def gravity_to_adopt(
    source: MjcfSource, builder: Any, upright: Frame, report: ImportReport
) -> np.ndarray | None:
    """Return the gravity that the document brings [m/s²], None if that of the builder acts.

    It does if the document says something else than the builder, no one has set the gravity of the builder or
    the open world, and there are no bodies in it yet. Otherwise a difference is reported.

    Args:
        source: The document.
        builder: Builder that it is added to.
        upright: Rotation from the axes of the document to those of the builder.
        report: Report of the import.
    """
    option = source.model.opt
    authored = np.zeros(3) if "gravity" in disabled_flags(source) else np.array(option.gravity)
    world = builder.current_world
    own = builder.own_gravity
    if world >= 0 and not np.isnan(row := builder.tables[Entity.WORLD].view("gravity")[world]).any():
        own = row
    acting = as_gravity(builder.gravity if own is None else own, builder.up_axis)
    turned = upright.apply(authored)
    # Files with another axis up often leave gravity alone, which is along z then.
    if min(np.linalg.norm(way - acting) for way in (authored, turned)) <= GRAVITY_TOLERANCE:
        return None
    is_clear = np.linalg.norm(turned - authored) <= GRAVITY_TOLERANCE
    has_bodies = np.any(builder.body_world == world) if world >= 0 else builder.body_count > 0
    if own is None and is_clear and not has_bodies:
        whose = "the builder" if world < 0 else f"world {world}"
        report.add(
            "option gravity",
            str(authored.tolist()),
            f"it is now that of {whose}, which had no bodies yet",
            ImportSeverity.NOTE,
        )
        return authored
    report.add(
        "option gravity",
        str(authored.tolist()),
        f"the builder's gravity {acting.tolist()} m/s² acts; set builder.gravity to change it",
    )
    return None


def adopt_gravity(builder: Any, gravity: np.ndarray) -> None:
    """Give the open world this gravity [m/s²], outside of worlds the builder."""
    if builder.current_world >= 0:
        builder.tables[Entity.WORLD].view("gravity")[builder.current_world] = gravity
    else:
        builder.gravity = gravity
