"""Names: everything that scripts refer to exists, with its default, and the documentation lists it."""

import ast
import importlib
import inspect
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from pluriverse import gymapi
from pluriverse.gymapi import structures
from pluriverse.gymapi.gym_absent import _REFUSED as ABSENT
from tests.gymapi.reference_names import CALLS, MEMBERS, MODULES, VALUES
from tests.gymapi.scenes import add_env, at, make_sim

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
    "CameraCalls": "Cameras",
    "AppearanceCalls": "Colours, textures, lights",
    "ViewerCalls": "Viewer",
    "AbsentCalls": "Soft bodies, USD export",
}
NO_EFFECT = "accepted, without effect"
RAISES = "not supported: raises"
STATUS = {
    "attach_sim": RAISES,
    "load_sim": RAISES,
    "load_opensim": RAISES,
    "create_box": "yes; a size of 0 becomes a thousandth of the largest one, with a warning",
    "destroy_env": "the env takes no calls; its actors stay",
    **dict.fromkeys(
        ("begin_aggregate", "end_aggregate", "create_aggregate"),
        "checked; changes no result, as in the original",
    ),
    "set_rigid_body_state_tensor": "yes, beyond the original: poses that the joints allow",
    "create_viewer": "yes: without a window, closed after a number of frames, or in a browser",
    **dict.fromkeys(
        ("draw_viewer", "sync_frame_time", "subscribe_viewer_keyboard_event"), "yes, in a window"
    ),
    "subscribe_viewer_mouse_event": "clicks of the left button in a window; others never happen",
    "get_viewer_mouse_position": "where the window was clicked last",
    **dict.fromkeys(
        (
            "query_viewer_has_closed",
            "query_viewer_action_events",
            "destroy_viewer",
            "viewer_camera_look_at",
            "get_viewer_camera_transform",
            "add_lines",
            "clear_lines",
        ),
        "yes",
    ),
    "write_viewer_image_to_file": "yes: what a window would show",
    "get_viewer_size": "yes: of the browser, or as created",
}


IGNORED = re.compile(r"(Ignored|Stored|Accepted|Without effect|There are no|None has an effect)")
"""How the docstring of a field begins that no solver reads."""
NOT_OURS = {
    "FlexParams": "stored: there are no soft bodies",
    "SoftMaterial": "stored: there are no soft bodies",
    "SoftMaterialType": "there are no soft bodies",
    "UsdExportOptions": "stored: nothing is exported",
    "UsdMaterialMode": "nothing is exported",
    "MeshNormalMode": "stored: visual only",
    "SimType": "either names the same physics",
}
"""Names of which some or all has no effect, and why."""


def status_of(name, group):
    """Return what a call does, in the words of the table."""
    if name in ABSENT:
        return f"no, raises: {ABSENT[name].rstrip('.').split('. ')[0]}"
    if group == "AbsentCalls":
        return "yes: there are none"
    return STATUS.get(name, NO_EFFECT if group == "ViewerCalls" else "yes")


def fields_of_structures():
    """Return the fields of each structure, and whether they act: by the docstrings under them."""
    tree = ast.parse(inspect.getsource(structures))
    result = {}
    for kind in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        fields = {}
        for node, after in zip(kind.body, [*kind.body[1:], None], strict=True):
            if isinstance(node, ast.AnnAssign):
                text = after.value.value if isinstance(after, ast.Expr) else ""
                fields[node.target.id] = not IGNORED.match(text)
        result[kind.name] = fields
    for name in ("PlaneParams", "HeightFieldParams", "TriangleMeshParams"):
        result[name] = result["_GroundParams"] | result[name]
    return result


def render():
    """Return the tables of all names."""
    lines = []
    for kind in gymapi.Gym.__mro__:
        if kind.__name__ not in TITLES:
            continue
        lines += [f"### {TITLES[kind.__name__]}", "", "| call | status |", "|---|---|"]
        for name in [name for name in vars(kind) if not name.startswith("_")]:
            status = status_of(name, kind.__name__)
            if name not in CALLS:
                status += "; not in the original"
            lines.append(f"| `{name}` | {status} |")
        lines.append("")
    fields = fields_of_structures()
    lines += ["### Values, structures, enumerations", "", "| name | status |", "|---|---|"]
    for name in VALUES:
        status = NOT_OURS.get(name, "yes")
        idle = [f"`{field}`" for field, acts in fields.get(name, {}).items() if not acts]
        if idle and name not in NOT_OURS:
            status = f"yes; without effect: {', '.join(idle)}"
        lines.append(f"| `{name}` | {status} |")
    lines += ["", "Their members are names of the module too.", "", "### Helper modules", ""]
    lines += ["| module | names |", "|---|---|"]
    for module, names in MODULES.items():
        lines.append(f"| `{module}` | {', '.join(f'`{name}`' for name in names)} |")
    return "\n".join([*lines, "", ""])


def test_every_name_exists():
    missing = [name for name in CALLS if not callable(getattr(gymapi.Gym, name, None))]
    missing += [name for name in (*VALUES, *MEMBERS) if not hasattr(gymapi, name)]
    assert missing == []
    assert len(CALLS) > 290


@pytest.mark.parametrize("module", MODULES)
def test_every_name_of_the_helper_modules_exists(module):
    if module in ("torch_utils", "gymtorch"):
        pytest.importorskip("torch", reason="PyTorch is not installed: pip install pluriverse[torch]")
    found = importlib.import_module(f"pluriverse.{module}")
    assert [name for name in MODULES[module] if not hasattr(found, name)] == []
    public = {name for name in MODULES[module] if not name.startswith("_")}
    assert public | {"np", "torch"} >= set(found.__all__) >= public


def test_calls_of_what_there_is_none_of_say_so(gym):
    """Counts are zero and lists empty; what would make some raises with a remedy."""
    sim = make_sim()
    env = add_env(sim)
    asset = gym.create_sphere(sim, 0.1)
    actor = gym.create_actor(env, asset, at(), "ball", 0, 0)
    assert gym.get_asset_soft_body_count(asset) == gym.get_actor_soft_body_count(env, actor) == 0
    assert gym.get_sim_triangle_count(sim) == gym.get_sim_tetrahedra_count(sim) == 0
    assert (
        gym.get_sim_triangles(sim) == gym.get_soft_contacts(sim) == gym.get_asset_soft_materials(asset) == []
    )
    assert gym.get_sim_tetrahedra(sim) == ([], [])
    for ranged in (gym.get_actor_tetrahedra_range, gym.get_actor_triangle_range):
        assert ranged(env, actor, 0).count == 0
    assert gym.set_actor_soft_materials(env, actor, gym.get_actor_soft_materials(env, actor))
    with pytest.raises(NotImplementedError, match=r"set_actor_soft_materials: soft bodies"):
        gym.set_actor_soft_materials(env, actor, [gymapi.SoftMaterial(youngs=1e5)])
    assert gym.reset_actor_particles_to_rest(env, actor)
    for name, reason in ABSENT.items():
        with pytest.raises(NotImplementedError, match=re.escape(f"{name}: {reason}")):
            getattr(gym, name)(sim, env, gymapi.UsdExportOptions(export_physics=False))


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
