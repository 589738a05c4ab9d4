"""NaN in any array that a user may write to: it changes nothing, or its world is frozen and named."""

import warnings

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.simulation.snapshot import editable_arrays
from pluriverse.warnings import FrozenWorldWarning

from .worlds import FIRM, assert_same_bits, world_bits

SOLVERS = {
    "sap": lambda model: pv.SolverSAP(model, enforce_velocity_limit=True),
    "mujoco": lambda model: pv.SolverMuJoCo(model, enforce_velocity_limit=True),
    "mujoco, fed contacts": lambda model: pv.SolverMuJoCo(
        model, use_mujoco_contacts=False, enforce_velocity_limit=True
    ),
}
# NaN means that nobody gave a value, which then follows from the rest.
NOT_GIVEN = ("joint_limit_ke", "joint_limit_kd", "shape_material_")


def make_kind() -> pv.ModelBuilder:
    """An arm of several joints at its limits, boxes and balls that touch, constraints, a kinematic body."""
    builder = pv.ModelBuilder()
    links = [builder.add_link() for _ in range(4)]
    for link in links:
        builder.add_shape_capsule(link, radius=0.03, half_height=0.05, cfg=FIRM)
    gains = {"target_ke": 20.0, "target_kd": 1.0, "effort_limit": 5.0, "friction": 0.05, "armature": 0.01}
    joints = [
        builder.add_joint_revolute(
            -1, links[0], axis=(0, 1, 0), parent_xform=((0, 0, 0.5), (0, 0, 0, 1)),
            target_pos=0.5, limit_lower=-0.01, limit_upper=0.01, velocity_limit=2.0, **gains,
        ),
        builder.add_joint_prismatic(
            links[0], links[1], axis=(0, 0, 1), parent_xform=((0, 0, -0.2), (0, 0, 0, 1)),
            target_pos=0.02, limit_lower=-0.05, limit_upper=0.05, **gains,
        ),
        builder.add_joint_ball(links[1], links[2], parent_xform=((0, 0, -0.15), (0, 0, 0, 1))),
        builder.add_joint_revolute(
            links[2], links[3], axis=(1, 0, 0), parent_xform=((0, 0, -0.15), (0, 0, 0, 1)), **gains
        ),
    ]  # fmt: skip
    builder.add_articulation(joints)
    builder.add_equality_constraint_joint(joints[3], joints[0], polycoef=(0.0, 1.0, 0.0, 0.0, 0.0))
    box = builder.add_body(xform=((1, 0, 0.095), (0, 0, 0, 1)))
    builder.add_shape_box(box, hx=0.1, hy=0.1, hz=0.1, cfg=FIRM)
    ball = builder.add_body(xform=((1, 0, 0.29), (0, 0, 0, 1)))
    builder.add_shape_sphere(ball, radius=0.1, cfg=FIRM)
    hung = builder.add_body(xform=((2, 0, 0.5), (0, 0, 0, 1)))
    builder.add_shape_sphere(hung, radius=0.1, cfg=FIRM)
    builder.add_equality_constraint_connect(-1, hung, anchor=(2.0, 0.0, 0.55))
    held = builder.add_body(xform=((3, 0, 0.5), (0, 0, 0, 1)))
    builder.add_shape_sphere(held, radius=0.1, cfg=FIRM)
    builder.add_equality_constraint_weld(-1, held, relpose=((3, 0, 0.5), (0, 0, 0, 1)))
    return builder


def make_simulation(solver: str) -> pv.Simulation:
    builder, kind = pv.ModelBuilder(), make_kind()
    builder.add_ground_plane(cfg=FIRM)
    for _ in range(3):
        builder.add_world(kind)
    model = builder.finalize("cpu")
    return pv.Simulation(model, SOLVERS[solver](model), dt=0.004, threads=1)


def entries_of_world(model: pv.Model, name: str, size: int) -> range:
    """Return the entries that an array has for world 1."""
    for kind in ("shape", "body", "equality_constraint", "joint"):
        start, count = getattr(model, f"{kind}_world_start").numpy(), getattr(model, f"{kind}_count")
        if name.startswith(kind) and size == count:
            return range(*start[1:3])
    for start in (model.joint_dof_world_start.numpy(), model.joint_coord_world_start.numpy()):
        if start[-1] == size:
            return range(*start[1:3])
    assert size == model.world_count, name
    return range(1, 2)


@pytest.mark.parametrize("solver", SOLVERS)
def test_nan_in_any_array_freezes_its_world_or_changes_nothing(solver):
    """World 1 is frozen and finite, or has the bits of a run without; other worlds have them anyway."""
    with make_simulation(solver) as plain, make_simulation(solver) as simulation:
        model, state = simulation.model, simulation.state
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plain.step(3)
            snapshot = simulation.save()
            expected = [world_bits(model, plain.state, world) for world in range(3)]
            arrays = {
                **{f"model.{name}": getattr(model, name) for name in editable_arrays(model)},
                **{f"state.{name}": array for name, array in state.arrays().items()},
                **{f"control.{name}": array for name, array in simulation.control.arrays().items()},
            }
            frozen_arrays = set()
            for what, array in arrays.items():
                name = what.partition(".")[2]
                scalar = getattr(array.dtype, "_wp_scalar_type_", array.dtype)
                if scalar is not wp.float32 or array.size == 0 or name.startswith(NOT_GIVEN):
                    continue
                for entry in entries_of_world(model, name, array.shape[0]):
                    simulation.restore(snapshot)
                    values = array.numpy().copy()
                    values[entry] = np.nan
                    array.assign(values)
                    simulation.step(3)
                    frozen = simulation.solver.world_frozen.numpy()
                    assert frozen[[0, 2]].tolist() == [0, 0], (what, entry)
                    for world in range(3):
                        found = world_bits(model, state, world)
                        if world == 1 and frozen[1]:
                            frozen_arrays.add(what)
                            for part, numbers in found.items():
                                assert np.isfinite(numbers).all(), (what, entry, part)
                        else:
                            assert_same_bits(found, expected[world], f"{what}[{entry}], world {world}")
        always = {"model.joint_X_p", "model.joint_X_c", "model.joint_axis", "model.body_com"}
        always |= {"state.joint_q", "state.joint_qd", "state.body_f", "control.joint_f"}
        if solver.startswith(
            "sap"
        ):  # MuJoCo has copies of the rest, which are checked when they are announced
            always |= {"model.shape_transform", "model.shape_scale", "model.joint_target_ke", "model.gravity"}
            always |= {"model.body_mass", "model.body_inertia", "model.joint_limit_upper", "state.body_q"}
            always |= {
                "model.joint_friction",
                "model.joint_effort_limit",
                "model.equality_constraint_relpose",
            }
        assert always <= frozen_arrays


@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
def test_a_joint_frame_that_is_nan_names_its_world(record):
    """The body on that frame flies freely, so its coordinates stay finite and only its pose does not."""
    with make_simulation("sap") as simulation:
        model = simulation.model
        frames = model.joint_X_p.numpy().copy()
        frames[model.joint_world_start.numpy()[2] + 6] = np.nan
        model.joint_X_p = frames
        with pytest.warns(FrozenWorldWarning, match="world 2: the state was no longer finite"):
            simulation.step(2)
        assert np.isfinite(simulation.state.body_q.numpy()).all()


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
@pytest.mark.parametrize(
    ("holder", "name", "entity"),
    [
        ("control", "joint_f", "joint"),
        ("state", "body_f", "body"),
        ("model", "joint_X_p", "joint"),
        ("model", "body_com", "body"),
    ],
)
def test_what_froze_a_world_is_named(solver, holder, name, entity):
    """The array, the entity and the value, with the world that it belongs to, and nothing that is sound."""
    with make_simulation(solver) as simulation:
        model = simulation.model
        array = getattr(model if holder == "model" else getattr(simulation, holder), name)
        entry = entries_of_world(model, name, array.shape[0])[0]
        values = array.numpy().copy()
        values[entry] = np.nan
        array.assign(values)
        with pytest.warns(FrozenWorldWarning) as caught:
            simulation.step(3)
    (text,) = (str(one.message) for one in caught if one.category is FrozenWorldWarning)
    label = getattr(model, f"{entity}_label")[getattr(model, f"{entity}_world_start").numpy()[1]]
    assert f"In world 1, {holder}.{name} of {entity} '{label}' (index " in text
    assert " is nan. Write" in text


def test_ground_without_a_place_freezes_all_worlds_that_need_it():
    """A ground plane with NaN in its pose holds nobody, so nobody may go on as if there were none."""
    with make_simulation("sap") as simulation:
        poses = simulation.model.shape_transform.numpy().copy()
        poses[simulation.model.shape_world.numpy() < 0] = np.nan
        simulation.model.shape_transform = poses
        with pytest.warns(FrozenWorldWarning, match=r"worlds 0, 1, 2: .*model\.shape_transform of shape"):
            simulation.step()


def test_a_shape_that_is_switched_off_may_have_any_pose():
    """Other contacts of its world stay."""
    with make_simulation("sap") as simulation:
        model = simulation.model
        shape = model.shape_world_start.numpy()[1]
        poses, enabled = model.shape_transform.numpy().copy(), model.shape_enabled.numpy().copy()
        poses[shape], enabled[shape] = np.nan, False
        model.shape_transform, model.shape_enabled = poses, enabled
        simulation.step()
        counts = simulation.contacts.rigid_contact_count.numpy()
        assert counts[1] > 0
        assert simulation.report().frozen_worlds == ()
