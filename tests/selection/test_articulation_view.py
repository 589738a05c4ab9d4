"""Views of articulations: boxes, ragged and padded arrays, reads and writes of selected rows."""

import re

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import Entity
from pluriverse.selection import ArticulationView
from pluriverse.selection.patterns import match_labels

from .robots import different_worlds, equal_worlds, fill_with_numbers, make_model, make_robot


def owned_entries(model: pv.Model, articulation: int, frequency: Entity) -> list[int]:
    """Return the entries of an articulation, found one by one."""
    joints = [joint for joint, owner in enumerate(model.joint_articulation.numpy()) if owner == articulation]
    bodies = sorted(int(model.joint_child.numpy()[joint]) for joint in joints)
    if frequency is Entity.JOINT:
        return joints
    if frequency is Entity.BODY:
        return bodies
    if frequency is Entity.SHAPE:
        return [shape for shape, body in enumerate(model.shape_body.numpy()) if body in bodies]
    start = (model.joint_q_start if frequency is Entity.JOINT_COORD else model.joint_qd_start).numpy()
    return [entry for joint in joints for entry in range(start[joint], start[joint + 1])]


ATTRIBUTES = [
    ("joint_q", "state", Entity.JOINT_COORD),
    ("joint_qd", "state", Entity.JOINT_DOF),
    ("body_q", "state", Entity.BODY),
    ("body_f", "state", Entity.BODY),
    ("joint_f", "control", Entity.JOINT_DOF),
    ("joint_X_p", "model", Entity.JOINT),
    ("body_inertia", "model", Entity.BODY),
    ("shape_material_mu", "model", Entity.SHAPE),
]


def sources(model: pv.Model) -> dict[str, object]:
    return {"model": model, "state": model.state(), "control": model.control()}


@pytest.mark.parametrize(("name", "source", "frequency"), ATTRIBUTES)
def test_equal_robots_are_a_box_over_worlds_robots_and_entries(name, source, frequency):
    """[world, robot, entry] holds what belongs to each robot, in the memory of the array itself."""
    model = equal_worlds()
    container = sources(model)[source]
    numbers = fill_with_numbers(getattr(container, name))
    view = ArticulationView(model, "walker")
    assert (view.world_count, view.count_per_world, view.count) == (3, 2, 6)
    values = view.get_attribute(name, container)
    expected = [
        [numbers[owned_entries(model, 3 * world + place, frequency)] for place in (0, 2)]
        for world in range(3)
    ]
    np.testing.assert_array_equal(values.numpy(), expected)
    begin = getattr(container, name).ptr
    assert begin <= values.ptr < begin + getattr(container, name).capacity


@pytest.mark.parametrize(("name", "source", "frequency"), ATTRIBUTES)
def test_different_robots_are_ragged_or_padded(name, source, frequency):
    """Row after row as the offsets say; padded, with the rest filled and marked."""
    model = different_worlds()
    container = sources(model)[source]
    numbers = fill_with_numbers(getattr(container, name))
    view = ArticulationView(model, ["walker", "arm"], homogeneous=False)
    rows = [a for a, label in enumerate(model.articulation_label) if label in ("walker", "arm")]
    assert view.row_ids.tolist() == rows
    assert view.count_per_world is None
    expected = [numbers[owned_entries(model, row, frequency)] for row in rows]

    with pytest.raises(ValueError, match=rf"{name} of the \d+ rows .* irregular .* Pass copy=True"):
        view.get_attribute(name, container)  # a write to a copy would be lost in silence
    ragged = view.get_attribute(name, container, copy=True).numpy()
    padded = view.get_attribute_padded(name, container, fill=-5.0).numpy()
    mask = view.padding_mask(frequency).numpy()
    offsets = view.offsets(frequency)
    for row, values in enumerate(expected):
        np.testing.assert_array_equal(ragged[offsets[row] : offsets[row + 1]], values)
        np.testing.assert_array_equal(padded[row, : len(values)], values)
        assert (padded[row, len(values) :] == -5.0).all()
        assert mask[row].tolist() == [place < len(values) for place in range(padded.shape[1])]

    getattr(container, name).fill_(0.0)
    view.set_attribute(name, container, wp.array(padded, dtype=getattr(container, name).dtype, device="cpu"))
    written = np.zeros_like(numbers)
    for row, values in zip(rows, expected, strict=True):
        written[owned_entries(model, row, frequency)] = values
    np.testing.assert_array_equal(getattr(container, name).numpy(), written)
    getattr(container, name).fill_(0.0)
    view.set_attribute(name, container, ragged)
    np.testing.assert_array_equal(getattr(container, name).numpy(), written)


MASKS = {
    "rows on the host": ({"mask": np.array([[1, 0], [0, 0], [0, 1]], dtype=bool)}, [0, 5]),
    "worlds on the host": ({"mask": np.array([False, True, False])}, [2, 3]),
    "rows on the device": ({"mask": wp.array([[1, 0], [0, 0], [0, 1]], dtype=bool, device="cpu")}, [0, 5]),
    "worlds on the device": ({"mask": wp.array([False, True, False], dtype=bool, device="cpu")}, [2, 3]),
    "index list": ({"indices": [5, 0]}, [0, 5]),
    "indices on the device": ({"indices": wp.array([3, 99, 2], dtype=int, device="cpu")}, [2, 3]),
}


@pytest.mark.parametrize("choice", MASKS)
def test_only_chosen_rows_are_written(choice):
    """All others keep their bits, whichever way rows are chosen."""
    model = equal_worlds()
    view = ArticulationView(model, "walker")
    state = model.state()
    before = fill_with_numbers(state.joint_qd)
    values = np.random.default_rng(0).normal(size=(3, 2, view.joint_dof_count)).astype(np.float32)
    arguments, chosen = MASKS[choice]
    view.set_dof_velocities(state, wp.array(values, dtype=float, device="cpu"), **arguments)
    expected = before.copy()
    for row in chosen:
        expected[owned_entries(model, int(view.row_ids[row]), Entity.JOINT_DOF)] = values.reshape(6, -1)[row]
    np.testing.assert_array_equal(state.joint_qd.numpy(), expected)


def test_a_recorded_write_follows_its_values_and_its_mask():
    """A graph reads both anew in each replay."""
    model = equal_worlds()
    view, state = ArticulationView(model, "walker"), model.state()
    values = wp.zeros((3, 2, view.joint_coord_count), dtype=float, device="cpu")
    mask = wp.zeros(3, dtype=bool, device="cpu")
    view.set_dof_positions(state, values, mask)
    view.eval_fk(state, mask)
    with wp.ScopedCapture(device="cpu") as capture:
        view.set_dof_positions(state, values, mask)
        view.eval_fk(state, mask)
    before = view.get_dof_positions(state).numpy().copy(), state.body_q.numpy().copy()
    wanted = np.random.default_rng(1).normal(size=values.shape).astype(np.float32)
    values.assign(wanted)
    mask.assign(np.array([False, True, True]))
    wp.capture_launch(capture.graph)
    after = view.get_dof_positions(state).numpy()
    np.testing.assert_array_equal(after[0], before[0][0])
    np.testing.assert_array_equal(after[1:], wanted[1:])
    direct = model.state()
    direct.joint_q.assign(state.joint_q)
    pv.eval_fk(model, direct.joint_q, direct.joint_qd, direct)
    for world, body in zip(model.body_world.numpy(), range(model.body_count), strict=True):
        expected = direct.body_q if world > 0 else before[1]
        expected = expected if isinstance(expected, np.ndarray) else expected.numpy()
        np.testing.assert_array_equal(state.body_q.numpy()[body], expected[body])


def test_other_libraries_share_the_memory():
    """An array handed on by DLPack, strided as it is, shows the state itself, and comes back uncopied."""
    model = equal_worlds()
    view, state = ArticulationView(model, "walker", include_joints="knee*"), model.state()
    seen = np.from_dlpack(view.get_dof_velocities(state))
    assert seen.shape == (3, 2, 2)
    fill_with_numbers(state.joint_qd)
    np.testing.assert_array_equal(seen, view.get_dof_velocities(state).numpy())

    class Tensor:
        """Values that only speak DLPack."""

        def __init__(self, values):
            self.values = values

        def __dlpack__(self, **options):
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

    wanted = np.random.default_rng(2).normal(size=seen.shape).astype(np.float32)
    view.set_dof_velocities(state, Tensor(wanted))
    np.testing.assert_array_equal(seen, wanted)


def test_root_states_of_floating_and_fixed_bases():
    """A free joint has its root in its coordinates, others have it in the frame of the model."""
    model = different_worlds()
    view, state = ArticulationView(model, ["walker", "arm"], homogeneous=False), model.state()
    assert view.is_floating_base is None
    floating = [label == "walker" for label in view.articulation_labels]
    poses = np.random.default_rng(3).normal(size=(view.count, 7)).astype(np.float32)
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    view.set_root_transforms(state, poses)
    view.eval_fk(state)
    np.testing.assert_array_equal(view.get_root_transforms(state, copy=True).numpy(), poses)
    for getter in (view.get_root_transforms, view.get_root_velocities):
        with pytest.raises(ValueError, match=r"of roots of the \d+ rows .* irregular .* Pass copy=True"):
            getter(state)
    base = state.body_q.numpy()[view.layout(Entity.BODY).index[view.offsets(Entity.BODY)[:-1]]]
    # float32 rounding of unit quaternions and of positions of a few metres
    np.testing.assert_allclose(base, poses, rtol=0.0, atol=1e-6)
    found = view.get_root_velocities(state, copy=True).numpy()
    np.testing.assert_array_equal(found, np.zeros((view.count, 6)))
    with pytest.raises(ValueError, match=r"row \d of the view has a fixed base.*REVOLUTE"):
        view.set_root_velocities(state, 1.0)

    walkers = ArticulationView(model, "walker", homogeneous=False)
    assert walkers.is_floating_base
    velocities = np.random.default_rng(4).normal(size=(walkers.count, 6)).astype(np.float32)
    velocities = velocities.reshape(*walkers.row_shape, 6)
    walkers.set_root_velocities(state, velocities)
    walkers.eval_fk(state)
    np.testing.assert_array_equal(walkers.get_root_velocities(state, copy=True).numpy(), velocities)
    first_link = walkers.layout(Entity.BODY).index[walkers.offsets(Entity.BODY)[:-1]]
    np.testing.assert_allclose(
        state.body_qd.numpy()[first_link].reshape(velocities.shape), velocities, rtol=0.0, atol=1e-6
    )
    assert sum(floating) == walkers.count


def test_root_on_a_distance_joint_floats():
    """What hangs on a rope is placed and thrown as a free body, in the frames of the joint."""
    hung = pv.ModelBuilder()
    weight = hung.add_link(mass=2.0, inertia=0.01 * np.eye(3), label="weight")
    hook = ((0.0, 0.0, 3.0), (0.0, 0.0, 0.0, 1.0))
    joint = hung.add_joint_distance(-1, weight, parent_xform=hook, max_distance=2.0)
    hung.add_articulation([joint], label="lamp")
    scene = pv.ModelBuilder()
    scene.replicate(hung, 2)
    model = scene.finalize("cpu")
    view, state = ArticulationView(model, "lamp"), model.state()
    assert view.is_floating_base
    assert not view.is_fixed_base
    view.set_root_transforms(
        state, np.array([[0.5, 0, -1, 0, 0, 0, 1], [0, 0, -2, 0, 0, 0, 1]]).reshape(2, 1, 7)
    )
    view.set_root_velocities(state, np.array([[1.0, 0, 0, 0, 0, 2], [0, 3, 0, 0, 0, 0]]).reshape(2, 1, 6))
    view.eval_fk(state)
    np.testing.assert_allclose(state.body_q.numpy()[:, :3], [[0.5, 0, 2], [0, 0, 1]], atol=1e-6)
    np.testing.assert_allclose(state.body_qd.numpy(), [[1, 0, 0, 0, 0, 2], [0, 3, 0, 0, 0, 0]], atol=1e-6)


def test_matrices_of_chosen_rows_are_those_of_the_model():
    model = different_worlds()
    view, state = ArticulationView(model, "walker", homogeneous=False), model.state()
    chosen = view.row_ids[[1]]
    for whole, part in (
        (pv.eval_jacobian(model, state), view.eval_jacobian(state, mask=np.array([False, True, False]))),
        (pv.eval_mass_matrix(model, state), view.eval_mass_matrix(state, mask=np.array([0, 1, 0]) == 1)),
    ):
        np.testing.assert_array_equal(part.numpy()[chosen], whole.numpy()[chosen])
        assert not np.delete(part.numpy(), chosen, axis=0).any()


def test_filters_keep_and_leave_out():
    model = equal_worlds()
    view = ArticulationView(
        model,
        "walker",
        include_joints=["hip*", re.compile("knee1.*")],
        exclude_joints="hip1_joint",
        include_links=["base", "knee0"],
    )
    assert view.joint_names == ["hip0_joint", "knee1_joint"]
    assert view.joint_dof_names == view.joint_names
    assert view.link_names == ["base", "knee0"]
    assert view.shape_names == ["knee0_skin"]
    kinds = ArticulationView(model, "walker", exclude_joint_types=[pv.JointType.FREE], worlds=[0, 2])
    assert kinds.joint_coord_count == 4
    assert kinds.world_ids.numpy().tolist() == [0, 2]
    assert ArticulationView(model, "walker", include_joints=[0]).joint_names == ["root"]
    whole = ArticulationView(model, "walker")
    assert whole.joint_coord_names[6:8] == ["root:6", "hip0_joint"]
    assert whole.joint_dof_names[5:7] == ["root:5", "hip0_joint"]
    assert whole.root_joint_type == pv.JointType.FREE


def test_patterns_with_slashes_compare_last_parts_where_no_label_fits():
    """Links of robots that carry an arm have slashes in their names."""
    labels = ["dog/arm/tip", "dog/tip", "cat/arm/tip", "arm/tip"]

    def matched(pattern, labels=labels):
        rows = np.arange(len(labels))
        return match_labels(labels, rows, pattern, what="body", kind="body").tolist()

    assert matched("arm/tip") == [False, False, False, True]
    assert matched("arm/tip", labels[:3]) == [True, False, True]
    assert matched("arm/t*", labels[:3]) == [True, False, True]
    assert matched("tip") == [True, True, True, True]
    with pytest.raises(KeyError, match="leg/tip"):
        matched("leg/tip")


def test_model_without_worlds():
    """What was built without worlds is seen as the one world that it is simulated as."""
    model = make_robot(2, floating=True).finalize("cpu")
    view = ArticulationView(model, "walker")
    assert view.row_shape == (1, 1)
    assert view.get_link_transforms(model.state()).shape == (1, 1, 5)


BAD_VIEWS = [
    ({"pattern": "runner"}, KeyError, "no articulation matches 'runner'"),
    ({"pattern": "walkr"}, KeyError, "did you mean walker"),
    ({"pattern": "walker", "include_joints": ["hip*", "elbow*"]}, KeyError, r"include_joints.*'elbow\*'"),
    ({"pattern": "walker", "exclude_links": "tail"}, KeyError, "exclude_links: no link matches 'tail'"),
    ({"pattern": "walker", "worlds": [7]}, KeyError, "worlds: no world matches 7"),
    ({"pattern": ["walker", 1.5]}, TypeError, "pattern 1.5 is a float"),
    ({"pattern": ["walker", "arm"]}, ValueError, "articulations differ.*homogeneous=False"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), BAD_VIEWS)
def test_bad_views_are_refused(arguments, kind, message):
    with pytest.raises(kind, match=message):
        ArticulationView(different_worlds(), **arguments)


BAD_WRITES = [
    ({"values": np.zeros((2, 5))}, ValueError, r"shape \(2, 5\), but must have \(3, 2, 10\)"),
    ({"values": wp.zeros((3, 2, 9), dtype=float, device="cpu")}, ValueError, r"shape \(3, 2, 9\)"),
    (
        {"values": wp.zeros((3, 2, 10), dtype=wp.float64, device="cpu")},
        TypeError,
        "type float64, but float32",
    ),
    ({"values": "fast"}, TypeError, "'fast' is not made of numbers"),
    ({"values": 0.0, "mask": np.zeros(4, dtype=bool)}, ValueError, r"mask has shape \(4,\).*\(3, 2\)"),
    ({"values": 0.0, "mask": np.zeros(3)}, TypeError, "mask is of type float64"),
    ({"values": 0.0, "indices": [6]}, IndexError, "no row 6; the view has 6 rows"),
    ({"values": 0.0, "indices": [0.5]}, TypeError, "indices are of type float64"),
    ({"values": 0.0, "indices": [0], "mask": np.ones(3, dtype=bool)}, ValueError, "both mask and indices"),
]


@pytest.mark.parametrize(("arguments", "kind", "message"), BAD_WRITES)
def test_bad_writes_are_refused(arguments, kind, message):
    model = equal_worlds()
    state = model.state()
    with pytest.raises(kind, match=message):
        ArticulationView(model, "walker").set_dof_velocities(state, **arguments)
    assert not state.joint_qd.numpy().any()


def test_bad_attributes_are_refused():
    model = equal_worlds()
    view = ArticulationView(model, "walker")
    with pytest.raises(AttributeError, match=r"State has no attribute 'joint_pos'.*joint_q"):
        view.get_attribute("joint_pos", model.state())
    with pytest.raises(ValueError, match="evaluated in finalize"):
        view.set_attribute("joint_type", model, 0)
    with pytest.raises(ValueError, match="belongs to the model of the view"):
        view.get_attribute("joint_q", make_model([[make_robot(1, floating=True)]]).state())
    with pytest.raises(ValueError, match="no world belongs to the articulations"):
        view.get_attribute("gravity", model)
    with pytest.raises(ValueError, match="out has shape"):
        view.get_attribute("joint_q", model.state(), out=wp.zeros(3, dtype=float, device="cpu"))


def test_views_per_kind_of_world_share_memory_where_worlds_differ():
    """Worlds of a kind that follow on each other, or alternate, have one distance; a copy is always one."""
    kinds = [make_robot(1, floating=True), make_robot(3, floating=False)]
    model = make_model([[kinds[0]], [kinds[1]], [kinds[0]], [kinds[1]]])
    state = model.state()
    everyone = ArticulationView(model, "*", homogeneous=False)
    for number, kind in enumerate(model.templates, start=1):
        view = ArticulationView(model, "*", worlds=kind.worlds.tolist())
        view.get_dof_velocities(state).fill_(float(number))
        copied = view.get_dof_velocities(state, copy=True)
        copied.zero_()
        assert (view.get_dof_velocities(state).numpy() == number).all()
    assert (state.joint_qd.numpy() > 0.0).all()
    velocities = everyone.get_dof_velocities(state)  # all entries in a row: their own memory, ragged
    velocities.zero_()
    assert (state.joint_qd.numpy() == 0.0).all()
