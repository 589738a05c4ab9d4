"""The numbers that the reader of MJCF compares with are those of the installed MuJoCo."""

import mujoco
import pytest

from pluriverse.importers import mjcf_enums

PREFIXES = {
    "MjJoint": ("mjtJoint", "mjJNT_"),
    "MjGeom": ("mjtGeom", "mjGEOM_"),
    "MjEq": ("mjtEq", "mjEQ_"),
    "MjWrap": ("mjtWrap", "mjWRAP_"),
    "MjTrn": ("mjtTrn", "mjTRN_"),
    "MjObj": ("mjtObj", "mjOBJ_"),
}
OTHER_NAMES = {"ROTATION": "SO3", "JOINT_IN_PARENT": "JOINTINPARENT", "SLIDER_CRANK": "SLIDERCRANK"}


@pytest.mark.parametrize("name", PREFIXES)
def test_numbers_are_those_of_mujoco(name):
    original, prefix = PREFIXES[name]
    members = getattr(mujoco, original).__members__
    for member in getattr(mjcf_enums, name):
        # Before MuJoCo named rotations, no file could have them.
        known = members.get(prefix + OTHER_NAMES.get(member.name, member.name))
        assert int(known) == member if known is not None else member.name == "ROTATION"
