"""Drive targets: two names, two layouts, one target."""

import dataclasses

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.warnings import FrozenWorldWarning

DT = 0.005


def legged(gravity: float = 0.0) -> pv.ModelBuilder:
    """A free body with a ball joint and two driven hinges: coordinates and freedoms are numbered apart."""
    builder = pv.ModelBuilder(gravity=gravity)
    inertia = np.eye(3) * 0.1
    base, tail, thigh, shank = (builder.add_link(mass=1.0, inertia=inertia, label=f"l{i}") for i in range(4))
    joints = [builder.add_joint_free(base), builder.add_joint_ball(base, tail)]
    for parent, child, target in ((base, thigh, 0.1), (thigh, shank, -0.2)):
        hinge = builder.add_joint_revolute(
            parent, child, axis=(0, 1, 0), target_q=target, target_ke=50.0, target_kd=5.0
        )
        joints.append(hinge)
    builder.add_articulation(joints, label="robot")
    return builder


def arm() -> pv.ModelBuilder:
    """Two driven hinges to the world: both layouts are the same."""
    builder = pv.ModelBuilder(gravity=0.0)
    for target in (0.3, 0.4):
        link = builder.add_link(mass=1.0, inertia=np.eye(3) * 0.1)
        joint = builder.add_joint_revolute(-1, link, target_pos=target, target_ke=50.0, target_kd=5.0)
        builder.add_articulation([joint])
    return builder


def scene(*robots: pv.ModelBuilder) -> pv.Model:
    builder = pv.ModelBuilder()
    for robot in robots:
        builder.add_world(robot)
    return builder.finalize("cpu")


# Coordinates: pose 0:7, quaternion 7:11, hinges 11:13; freedoms: 0:6, 6:9, hinges 9:11.
COORDS, DOFS = slice(11, 13), slice(9, 11)


def test_both_layouts_begin_with_the_targets_of_the_builder():
    model = scene(legged())
    for source in (model, model.control()):
        np.testing.assert_array_equal(source.joint_target_q.numpy()[COORDS], np.float32([0.1, -0.2]))
        np.testing.assert_array_equal(source.joint_target_pos.numpy()[DOFS], np.float32([0.1, -0.2]))
        assert source.joint_target_qd is source.joint_target_vel


def test_without_quaternions_both_are_one_array():
    model = scene(arm(), arm())
    control = model.control()
    assert control.joint_target_q is control.joint_target_pos
    assert model.joint_target_q is model.joint_target_pos


@pytest.mark.parametrize("name", ["joint_target_q", "joint_target_pos"])
@pytest.mark.parametrize("worlds", [(legged,), (arm, legged, legged)])
def test_a_target_written_under_either_name_drives_the_joint(name, worlds):
    """Steps driven by one name have the same bits as those driven by the other, and both names agree."""
    results = []
    for chosen in (name, "joint_target_pos"):
        model = scene(*(make() for make in worlds))
        with pv.Simulation(model, dt=DT) as simulation:
            by_coord = chosen == "joint_target_q"
            last = slice(-2, None)  # the hinges of the last world are last in both layouts
            targets = simulation.control.joint_target_q if by_coord else simulation.control.joint_target_pos
            for target in (0.4, -0.1):  # also after the step was recorded
                values = targets.numpy().copy()
                values[last] = target
                targets.assign(values)
                simulation.step(200)
            control = simulation.control
            np.testing.assert_array_equal(control.joint_target_q.numpy()[last], np.float32([-0.1, -0.1]))
            np.testing.assert_array_equal(control.joint_target_pos.numpy()[last], np.float32([-0.1, -0.1]))
            results.append(simulation.state.joint_q.numpy().copy())
    np.testing.assert_array_equal(*results)
    # Without gravity nothing else pulls: the slower eigenvalue of the drive is about -9 per second.
    np.testing.assert_allclose(results[0][-2:], -0.1, atol=1e-3)


def test_the_last_writer_holds():
    model = scene(legged())
    control = model.control()

    def write(array: wp.array, places: slice, value: float) -> None:
        values = array.numpy().copy()
        values[places] = value
        array.assign(values)

    for value, (array, places) in enumerate(
        [
            (control.joint_target_q, COORDS),
            (control.joint_target_pos, DOFS),
            (control.joint_target_pos, DOFS),
            (control.joint_target_q, COORDS),
        ],
        start=1,
    ):
        write(array, places, float(value))
        control.unify_targets()
        assert set(control.joint_target_q.numpy()[COORDS]) == {value}
        assert set(control.joint_target_pos.numpy()[DOFS]) == {value}
    write(control.joint_target_q, COORDS, 7.0)
    control.clear()
    control.unify_targets()
    assert not control.joint_target_pos.numpy().any()
    assert not control.joint_target_q.numpy()[COORDS].any()


@pytest.mark.parametrize("name", ["joint_target_q", "joint_target_pos"])
def test_a_target_that_was_nan_can_be_written_anew(name):
    """One bad command of a policy ends an episode, not the environment: after a reset it is as if new."""
    model = scene(arm(), legged())
    with pv.Simulation(model, dt=DT) as simulation, pv.Simulation(model, dt=DT) as untouched:
        targets = getattr(simulation.control, name)
        sound = targets.numpy().copy()
        targets.assign(np.full_like(sound, np.nan))
        with pytest.warns(FrozenWorldWarning, match=r"control\.joint_target_pos of joint '.*' .* is nan"):
            simulation.step(2)
        for value in (0.2, 0.3):
            for loop in (simulation, untouched):
                loop.reset()
                values = sound.copy()
                values[-2:] = value
                getattr(loop.control, name).assign(values)
                loop.step(20)
            np.testing.assert_array_equal(simulation.state.joint_q.numpy(), untouched.state.joint_q.numpy())
        assert simulation.report().frozen_worlds == ()


def test_targets_survive_copies_and_files(tmp_path):
    """What was written under one name and not stepped yet is in copies, snapshots and their files."""
    model = scene(legged(), arm())
    with pv.Simulation(model, dt=DT) as simulation:
        values = simulation.control.joint_target_q.numpy().copy()
        values[-2:] = 0.8  # the arm
        values[COORDS] = 0.9
        simulation.control.joint_target_q = values  # assigning copies into the array
        snapshot = simulation.save(tmp_path / "snapshot.npz")
        other = model.control()
        other.assign(simulation.control)
        simulation.step(100)
        expected = simulation.state.joint_q.numpy().copy()
        for source in (snapshot, tmp_path / "snapshot.npz"):
            simulation.control.clear()
            simulation.restore(source)
            np.testing.assert_array_equal(simulation.control.joint_target_q.numpy()[COORDS], np.float32(0.9))
            simulation.step(100)
            np.testing.assert_array_equal(simulation.state.joint_q.numpy(), expected)
        np.testing.assert_array_equal(other.joint_target_pos.numpy()[-2:], np.float32(0.8))


def test_the_builder_takes_targets_by_coordinate():
    """Slices of `joint_q` and `joint_target_q` name the same joints, as in scripts for Newton."""
    builder = legged()
    builder.joint_target_q[COORDS] = [0.5, 0.6]
    builder.joint_target_qd[DOFS] = 0.25
    world = pv.ModelBuilder()
    world.replicate(builder, 2)
    model = world.finalize("cpu")
    np.testing.assert_array_equal(
        model.joint_target_pos.numpy().reshape(2, -1)[:, DOFS], np.float32([[0.5, 0.6]] * 2)
    )
    np.testing.assert_array_equal(model.joint_target_vel.numpy().reshape(2, -1)[:, DOFS], np.float32(0.25))
    np.testing.assert_array_equal(
        model.joint_target_q.numpy().reshape(2, -1)[:, COORDS], np.float32([[0.5, 0.6]] * 2)
    )


def test_contradicting_targets_are_refused():
    builder = legged()
    builder.joint_target_q[COORDS] = 0.5
    builder.joint_target_pos[DOFS] = 0.6
    with pytest.raises(
        ValueError, match=r"joint 'joint_2' .*joint_target_pos is 0.6 and joint_target_q is 0.5"
    ):
        builder.finalize("cpu")
    with pytest.raises(ValueError, match="both target_pos and target_q are given"):
        builder.add_joint_revolute(-1, 0, target_pos=0.1, target_q=0.1)


def test_configurations_know_both_names():
    config = pv.JointDofConfig(target_q=0.5, target_qd=0.1)
    assert (config.target_pos, config.target_vel, config.target_q) == (0.5, 0.1, 0.5)
    config.target_q = 0.7
    assert config.merged(target_ke=2.0).target_pos == 0.7
    assert dataclasses.replace(config, target_pos=0.9).target_q == 0.9


def test_an_array_of_another_size_is_refused():
    """Recorded steps know the arrays of a control: others cannot take their place, values can."""
    control = scene(legged()).control()
    before = control.joint_f
    control.joint_f = np.ones(11)
    assert control.joint_f is before
    assert (before.numpy() == 1.0).all()
    with pytest.raises(ValueError, match=r"Control\.joint_f has shape"):
        control.joint_f = np.ones(3)
