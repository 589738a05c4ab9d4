"""Recorded control: what is written when, where worlds begin, and what is wrong with a file."""

import json

import numpy as np
import pytest

from pluriverse.dynamics import eval_fk
from pluriverse.scene import SapSceneLoaderError, load_sap_control_sequence, load_scene

from .scene_files import write_scene

ARM = """
simulation: {dt: 0.01}
control: {source: motion.json}
ground: false
bodies:
  - {id: upper, shapes: [{type: box, hx: 0.1, hy: 0.1, hz: 0.2}]}
  - {id: lower, shapes: [{type: sphere, radius: 0.1}]}
joints:
  - {id: a, type: revolute, child: upper, axis: y, target_ke: 1e6, target_kd: 1e4}
  - {id: b, type: prismatic, parent: upper, child: lower, axis: z, target_ke: 1e6, target_kd: 1e4}
"""
BOX_AND_ARM = """
control: {source: motion.json}
ground: false
bodies:
  - {id: box, shapes: [{type: box}]}
  - {id: arm, shapes: [{type: box}]}
joints:
  - {id: hinge, type: revolute, child: arm, axis: x}
  - {id: free, type: free, child: box, parent_xform: {q: {axis_angle: {axis: [0, 0, 1], angle: pi / 2}}}}
replicate: {spacing: [3, 2, 0]}
"""
TARGETS = [[0.0, 0.0], [0.1, 0.2], [0.3, 0.1]]


def load(tmp_path, scene=ARM, *, control=None, **options):
    content = {"joint_target_pos": {"dt": 0.02, "values": TARGETS}} if control is None else control
    (tmp_path / "motion.json").write_text(json.dumps(content))
    return load_scene(write_scene(tmp_path, scene), device="cpu", **options)


def test_each_sample_holds_until_the_next_and_the_last_one_stays(tmp_path):
    """At a step of half a sample, two steps have the same targets; rounding of times loses no sample."""
    scene = load(tmp_path)
    [sequence] = scene.control_sequences
    assert (sequence.frame_count, sequence.dof_count, sequence.sample_dt, sequence.loop) == (
        3,
        2,
        0.02,
        False,
    )
    control = scene.model.control()
    for step, sample in enumerate([0, 0, 1, 1, 2, 2, 2, 2]):
        sequence.apply(control, step, 0.01)
        np.testing.assert_allclose(control.joint_target_pos.numpy(), TARGETS[sample], rtol=1e-6)
    assert [sequence.sample_at(0.02 * k) for k in range(3)] == [0, 1, 2]


def test_a_loop_begins_again(tmp_path):
    [sequence] = load(tmp_path, ARM.replace("motion.json", "motion.json, loop: true")).control_sequences
    assert [sequence.sample_at(0.02 * step) for step in range(8)] == [0, 1, 2, 0, 1, 2, 0, 1]
    content = {"loop": True, "joint_target_pos": {"dt": 0.02, "values": TARGETS}}
    assert load(tmp_path, control=content).control_sequences[0].loop
    overridden = ARM.replace("motion.json", "motion.json, loop: false")
    assert not load(tmp_path, overridden, control=content).control_sequences[0].loop


def test_samples_may_have_times_of_their_own(tmp_path):
    content = {"joint_target_pos": {"times": [0.0, 0.1, 0.4], "values": TARGETS}}
    [sequence] = load(tmp_path, control=content).control_sequences
    assert [sequence.sample_at(time) for time in (0.0, 0.09, 0.1, 0.39, 0.4, 9.0)] == [0, 0, 1, 1, 2, 2]
    [looped] = load(tmp_path, control={"loop": True, **content}).control_sequences
    # The last sample holds 0.3 s, as the one before it.
    assert [looped.sample_at(time) for time in (0.69, 0.71, 0.81, 1.11)] == [2, 0, 1, 2]


@pytest.mark.parametrize("decimation", [1, 3])
def test_playing_is_writing_the_targets_before_each_step(tmp_path, decimation):
    """In blocks of steps whose targets are the same, with the same bits as one step at a time."""
    scene = load(tmp_path, num_worlds=2)
    played = scene.simulation(threads=1, decimation=decimation)
    scene.play(played, 9)
    by_hand = scene.simulation(threads=1, decimation=decimation)
    for _ in range(9):
        scene.control_sequences[0].apply(by_hand.control, by_hand.step_count, by_hand.dt)
        by_hand.step()
    assert played.step_count == by_hand.step_count == 9 * decimation
    np.testing.assert_array_equal(played.state.joint_q.numpy(), by_hand.state.joint_q.numpy())
    # Stiff, damped drives follow within the time of a sample, up to what gravity bends them.
    scene.play(played, 30)
    np.testing.assert_allclose(played.state.joint_q.numpy(), TARGETS[-1] * 2, atol=1e-3)


def test_worlds_begin_where_the_recording_does_each_at_its_own_place(tmp_path):
    """Free joints are moved by the offset of the world, wherever they stand in the row and however turned."""
    row = [0.5, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 1.0]
    speed = [0.7, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
    content = {
        "joint_q": {"order": "public", "values": [row]},
        "joint_qd": {"values": [speed]},
        "joint_target_pos": {"dt": 1, "values": [[0.0] * 7]},
    }
    scene = load(tmp_path, BOX_AND_ARM, control=content, num_worlds=4)
    single = load(tmp_path, BOX_AND_ARM, control=content, num_worlds=1)
    np.testing.assert_allclose(single.state.joint_q.numpy(), row, rtol=1e-6)
    poses = scene.state.body_q.numpy().reshape(4, 2, 7)
    expected = single.state.body_q.numpy()[0]
    for world, (x, y) in enumerate([(-1.5, -1.0), (1.5, -1.0), (-1.5, 1.0), (1.5, 1.0)]):
        np.testing.assert_allclose(poses[world, 0, :3], expected[:3] + np.array([x, y, 0]), atol=1e-6)
    np.testing.assert_allclose(scene.state.joint_q.numpy().reshape(4, 8)[:, 0], 0.5)
    np.testing.assert_allclose(scene.state.joint_qd.numpy(), speed * 4, rtol=1e-6)
    # The same by hand, from any state.
    state = scene.model.state()
    state.joint_q.fill_(0.1)
    state.joint_qd.zero_()
    scene.control_sequences[0].apply_initial_state(scene.model, state)
    np.testing.assert_allclose(state.joint_q.numpy(), scene.state.joint_q.numpy(), atol=1e-6)
    np.testing.assert_allclose(state.joint_qd.numpy(), scene.state.joint_qd.numpy(), atol=1e-6)
    np.testing.assert_allclose(state.body_q.numpy(), scene.state.body_q.numpy(), atol=1e-6)


def test_a_simulation_of_the_scene_begins_and_begins_again_with_the_recording(tmp_path):
    content = {"joint_q": {"values": [[0.3, -0.1]]}, "joint_target_pos": {"dt": 1, "values": [[0.3, -0.1]]}}
    scene = load(tmp_path, control=content)
    simulation = scene.simulation(threads=1)
    np.testing.assert_allclose(simulation.control.joint_target_pos.numpy(), [0.3, -0.1])
    scene.play(simulation, 3)
    simulation.reset()
    np.testing.assert_allclose(simulation.state.joint_q.numpy(), [0.3, -0.1])


def test_kinds_of_world_have_their_own_recordings(tmp_path):
    (tmp_path / "slow.json").write_text('{"joint_target_pos": {"dt": 1, "values": [[7]]}}')
    slow = ARM.split("bodies:")[0].replace("motion", "slow") + (
        "bodies: [{id: a, shapes: [{type: box}]}]\njoints: [{id: j, type: revolute, child: a, target_ke: 9}]"
    )
    write_scene(tmp_path, slow, "slow.yaml")
    write_scene(tmp_path, ARM, "arm.yaml")
    outer = (
        "simulation: {dt: 0.01}\nground: false\n"
        "worlds: [{scene: slow.yaml, count: 2}, {scene: arm.yaml}, {scene: arm.yaml, name: other}]"
    )
    scene = load(tmp_path, outer)
    assert [sequence.worlds for sequence in scene.control_sequences] == [range(2), range(2, 3), range(3, 4)]
    simulation = scene.simulation(threads=1)
    scene.play(simulation, 3)
    np.testing.assert_allclose(
        simulation.control.joint_target_pos.numpy(), [7, 7, *TARGETS[1] * 2], rtol=1e-6
    )


def test_the_function_of_the_format_for_loops_by_hand(tmp_path):
    content = {"joint_q": {"values": [[0.3, -0.1]]}, "joint_target_pos": {"dt": 0.02, "values": TARGETS[1:]}}
    scene = load(tmp_path, control=content, num_worlds=3)
    state, control = scene.model.state(), scene.model.control()
    state.joint_q.zero_()
    control.clear()
    sequence = load_sap_control_sequence(tmp_path / "scene.yaml", scene.model, state, control, device="cpu")
    np.testing.assert_allclose(state.joint_q.numpy(), [0.3, -0.1] * 3, rtol=1e-6)
    np.testing.assert_allclose(control.joint_target_pos.numpy(), TARGETS[1] * 3, rtol=1e-6)
    expected = scene.model.state()
    eval_fk(scene.model, state.joint_q, state.joint_qd, expected)
    np.testing.assert_array_equal(state.body_q.numpy(), expected.body_q.numpy())
    assert (sequence.frame_count, sequence.dof_count) == (2, 2)
    without = write_scene(tmp_path, ARM.replace("control:", "name: x #"), "plain.yaml")
    assert load_sap_control_sequence(without, scene.model, state, control) is None


WRONG = {
    "missing file": (None, r"scene\.yaml:3: control\.source: there is no control file"),
    "no targets": ({}, r"motion\.json:1: joint_target_pos: this required key is missing"),
    "version": ({"schema_version": 2}, r"motion\.json:1: schema_version: 2 is not a version"),
    "unknown key": (
        {"joint_target_pos": {"dt": 1, "values": [[0, 0]]}, "joint_p": 1},
        r"joint_p: unknown key 'joint_p'; did you mean joint_q",
    ),
    "no clock": ({"joint_target_pos": {"values": [[0, 0]]}}, r"give either 'dt' or 'times'"),
    "two clocks": (
        {"joint_target_pos": {"dt": 1, "times": [0], "values": [[0, 0]]}},
        r"give either 'dt' or 'times'",
    ),
    "no time": (
        {"joint_target_pos": {"dt": 0, "values": [[0, 0]]}},
        r"joint_target_pos\.dt: 0 is out of range",
    ),
    "no rows": ({"joint_target_pos": {"dt": 1, "values": []}}, r"values: the list needs at least 1"),
    "uneven rows": (
        {"joint_target_pos": {"dt": 1, "values": [[0, 0], [0]]}},
        r"values\[1\]: this row has 1 numbers, and the first has 2",
    ),
    "narrow rows": (
        {"joint_target_pos": {"dt": 1, "values": [[0]]}},
        r"scene\.yaml:3: control\.source: .*joint_target_pos has 1 numbers, but a world of this scene has 2",
    ),
    "wide coordinates": (
        {"joint_q": {"values": [[0, 0, 0]]}, "joint_target_pos": {"dt": 1, "values": [[0, 0]]}},
        r"joint_q has 3 numbers, but a world of this scene has 2 coordinates",
    ),
    "text": (
        {"joint_target_pos": {"dt": 1, "values": [[0, "fast"]]}},
        r"joint_target_pos\.values\[0\]\[1\]: 'fast' is not a number",
    ),
    "not finite": ({"joint_target_pos": {"dt": 1, "values": [[0, float("inf")]]}}, r"inf is not a finite"),
    "times that go back": (
        {"joint_target_pos": {"times": [0, 1, 1], "values": TARGETS}},
        r"joint_target_pos\.times\[2\]: 1 is not later",
    ),
    "times of other rows": (
        {"joint_target_pos": {"times": [0, 1], "values": TARGETS}},
        r"2 times for 3 rows",
    ),
    "list": ([], r"motion\.json:1: a file of recorded control is a mapping"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_name_file_place_and_value(tmp_path, name):
    content, message = WRONG[name]
    if content is not None:
        (tmp_path / "motion.json").write_text(json.dumps(content))
    with pytest.raises(SapSceneLoaderError, match=message):
        load_scene(write_scene(tmp_path, ARM), device="cpu")
