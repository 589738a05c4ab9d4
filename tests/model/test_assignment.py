"""Assigning to arrays as scripts do: by names that do not exist, and in shapes that do not fit."""

import numpy as np
import pytest

import pluriverse as pv


def make_model() -> pv.Model:
    robot, builder = pv.ModelBuilder(), pv.ModelBuilder()
    link = robot.add_link(mass=1.0, inertia=np.eye(3))
    robot.add_articulation([robot.add_joint_revolute(-1, link, target_ke=1.0)])
    builder.replicate(robot, 4)
    return builder.finalize("cpu")


@pytest.mark.parametrize(
    ("holder", "name", "meant"),
    [
        ("control", "joint_target_position", "joint_target_pos"),
        ("control", "joint_target", "joint_target_pos"),
        ("state", "joint_qdd", "joint_qd"),
        ("model", "joint_target_kp", "joint_target_ke"),
        ("model", "shape_material_friction", "shape_material_"),
    ],
)
def test_an_array_of_a_misspelt_name_is_refused(holder, name, meant):
    """Nothing would read what is assigned, so a robot would stand still without a word."""
    model = make_model()
    target = model if holder == "model" else getattr(model, holder)()
    with pytest.raises(AttributeError, match=rf"has no array '{name}'.*Did you mean .*'{meant}"):
        setattr(target, name, np.zeros(4))


def test_an_array_of_another_simulator_is_refused():
    """A name and a size like those of arrays of joints: drives would stay as they are, without a word."""
    model = make_model()
    message = r"Model has no array 'joint_stiffness'.*joint_target_ke.*'my_joint_stiffness'"
    with pytest.raises(AttributeError, match=message):
        model.joint_stiffness = np.full(4, 100.0)
    model.my_joint_stiffness = np.full(4, 100.0)
    model.joint_names = ["a", "b", "c", "d"]  # no numbers


def test_attributes_of_a_script_stay_its_own():
    model = make_model()
    for target in (model, model.state(), model.control()):
        target.episode = 3
        target.my_targets = np.ones(2)
        assert target.episode == 3
        assert target.my_targets.sum() == 2.0
    state = model.state()
    for name in ("joint_q0", "joint_q_2", "my_joint_q", "old_joint_qd"):
        setattr(state, name, np.ones(1))
        assert getattr(state, name).sum() == 1.0


@pytest.mark.parametrize(
    ("values", "remedy"),
    [
        (0.5, r"fill_\(\) writes one number"),
        (np.zeros((4, 1)), r"assign values\.reshape\(\(4,\)\)"),
        (np.zeros(3), "fixed by finalize"),
    ],
)
def test_values_of_another_shape_say_how_to_assign_them(values, remedy):
    control = make_model().control()
    with pytest.raises(ValueError, match=rf"Control\.joint_target_pos has shape \(4,\).*{remedy}"):
        control.joint_target_pos = values
