"""Names: everything that scripts refer to exists, with its default, and the documentation lists it."""

import sys
from pathlib import Path

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.reference_names import CALLS, MEMBERS, VALUES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "gymapi.md"
BEGIN, END = "<!-- calls: begin -->\n", "<!-- calls: end -->\n"

TITLES = {
    "SimulationCalls": "Sims, grounds",
    "AssetCalls": "Assets",
    "EnvCalls": "Envs, actors, aggregates",
    "ComponentCalls": "Components",
    "PropertyCalls": "Properties, scale",
    "ControlCalls": "Controls and forces",
    "StateCalls": "States",
    "TensorCalls": "Tensors",
    "SensorCalls": "Contacts, sensors, attractors",
    "ViewerCalls": "Viewer",
}
NO_EFFECT = "accepted, without effect"
RAISES = "not supported: raises"
STATUS = {
    "attach_sim": RAISES,
    "load_sim": RAISES,
    "load_opensim": RAISES,
    "destroy_env": "the env takes no calls; its actors stay",
    **dict.fromkeys(
        ("begin_aggregate", "end_aggregate", "create_aggregate"),
        "checked; changes no result, as in the original",
    ),
    "set_rigid_body_state_tensor": "yes, beyond the original: poses that the joints allow",
    "create_viewer": "a viewer without a window, closed after a number of frames",
    "query_viewer_has_closed": "yes",
    "set_rigid_body_color": "stored",
    "get_rigid_body_color": "stored",
    "set_rigid_body_segmentation_id": "stored",
    "get_rigid_body_segmentation_id": "stored",
    "get_actor_segmentation_id": "stored",
}


def render():
    """Return the table of all calls, by group."""
    lines = []
    for kind in gymapi.Gym.__mro__:
        if kind.__name__ not in TITLES:
            continue
        lines += [f"### {TITLES[kind.__name__]}", "", "| call | status |", "|---|---|"]
        for name in [name for name in vars(kind) if not name.startswith("_")]:
            status = STATUS.get(name, NO_EFFECT if kind.__name__ == "ViewerCalls" else "yes")
            if name not in CALLS:
                status += "; not in the original"
            lines.append(f"| `{name}` | {status} |")
        lines.append("")
    return "\n".join(lines)


def test_every_name_exists():
    missing = [name for name in CALLS if not callable(getattr(gymapi.Gym, name, None))]
    missing += [name for name in (*VALUES, *MEMBERS) if not hasattr(gymapi, name)]
    assert missing == []
    assert len(CALLS) > 240


def test_documentation_lists_every_call():
    """The table is generated: `python -m tests.gymapi.test_names` writes it anew."""
    text = PAGE.read_text()
    assert text[text.index(BEGIN) + len(BEGIN) : text.index(END)] == render()


def test_numbers_of_members_are_those_that_scripts_store():
    assert [int(mode) for mode in gymapi.DofDriveMode] == [0, 1, 2, 3]
    assert [int(part) for part in gymapi.ContactCollection] == [0, 1, 2]
    assert (gymapi.STATE_POS | gymapi.STATE_VEL) == gymapi.STATE_ALL == 3
    assert (gymapi.AXIS_TRANSLATION, gymapi.AXIS_ROTATION, gymapi.AXIS_ALL) == (7, 56, 63)


DEFAULTS = {
    gymapi.SimParams: {"substeps": 2, "up_axis": gymapi.UP_AXIS_Y, "use_gpu_pipeline": False},
    gymapi.PhysXParams: {
        "num_threads": 4,
        "solver_type": 1,
        "num_position_iterations": 4,
        "num_velocity_iterations": 1,
        "contact_offset": 0.02,
        "bounce_threshold_velocity": 0.2,
        "max_depenetration_velocity": 100.0,
        "contact_collection": gymapi.CC_ALL_SUBSTEPS,
    },
    gymapi.PlaneParams: {"normal": gymapi.Vec3(0, 1, 0), "static_friction": 1.0, "restitution": 0.0},
    gymapi.AssetOptions: {
        "fix_base_link": False,
        "default_dof_drive_mode": gymapi.DOF_MODE_NONE,
        "density": 1000.0,
        "armature": 0.0,
        "use_physx_armature": True,
        "linear_damping": 0.0,
        "angular_damping": 0.5,
        "max_linear_velocity": 1000.0,
        "max_angular_velocity": 64.0,
        "thickness": 0.02,
        "slices_per_cylinder": 20,
        "tendon_limit_stiffness": 1.0,
    },
    gymapi.VhacdParams: {"resolution": 100000, "max_convex_hulls": 64, "alpha": 0.05},
    gymapi.ForceSensorProperties: {
        "enable_forward_dynamics_forces": True,
        "enable_constraint_solver_forces": True,
        "use_world_frame": False,
    },
}


@pytest.mark.parametrize("kind", DEFAULTS, ids=lambda kind: kind.__name__)
def test_defaults_are_those_of_the_original(kind):
    for name, value in DEFAULTS[kind].items():
        assert getattr(kind(), name) == value, name


def test_layouts_of_arrays():
    """Structured types have the fields and sizes that scripts index by."""
    assert gymapi.RigidBodyState.dtype.itemsize == 52
    assert gymapi.Transform.dtype.itemsize == 28
    assert gymapi.DofState.dtype.names == ("pos", "vel")
    assert gymapi.RigidContact.dtype.names[:5] == ("env0", "env1", "body0", "body1", "normal")
    states = np.zeros(3, gymapi.RigidBodyState.dtype)
    states["pose"]["p"].fill((1.0, 2.0, 3.0))
    assert states["pose"]["p"]["y"].tolist() == [2.0, 2.0, 2.0]


if __name__ == "__main__":
    page = PAGE.read_text()
    PAGE.write_text(page[: page.index(BEGIN) + len(BEGIN)] + render() + page[page.index(END) :])
    sys.exit(0)
