"""Joints of variants: actuators and tensors follow the gains and limits of the variant that they drive."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.actuators import JointActuators
from pluriverse.randomization import Randomizer, Uniform, drive_gains
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene

# Stiffness, damping, effort limit, upper limit and initial position of each variant.
ARMS = {"soft": (10.0, 1.0, 15.0, 1.0, 0.1), "hard": (100.0, 2.0, 105.0, 2.0, -0.2)}
DRIVES = ("joint_target_ke", "joint_target_kd", "joint_effort_limit")


def make_arm(kind: str) -> pv.ModelBuilder:
    stiffness, damping, effort, upper, start = ARMS[kind]
    builder = pv.ModelBuilder()
    link = builder.add_link(label="arm/link")
    builder.add_shape_capsule(link, radius=0.03, half_height=0.1)
    joint = builder.add_joint_revolute(
        -1, link, axis=(0.0, 1.0, 0.0), label="arm/hinge", limit_lower=-upper, limit_upper=upper,
        target_ke=stiffness, target_kd=damping, effort_limit=effort,
    )  # fmt: skip
    builder.joint_q[0] = start
    builder.add_articulation([joint], label="arm")
    return builder


def make(assignment, **options):
    entity = VariantEntityCfg(
        variants={kind: lambda kind=kind: make_arm(kind) for kind in ARMS},
        assignment=lambda count: assignment[:count],
    )
    config = SceneCfg(num_envs=len(assignment), entities={"arm": entity}, reassignable=True, **options)
    return make_scene(config, device="cpu").simulation(dt=0.001)


def column(assignment, index):
    return np.float32([list(ARMS.values())[kind][index] for kind in assignment])


def drives(simulation):
    return np.array([getattr(simulation.model, name).numpy() for name in DRIVES])


def parameters(actuators):
    return np.array(
        [each.numpy() for each in (actuators.stiffness, actuators.damping, actuators.effort_limit)]
    )


def swing(simulation):
    simulation.control.joint_target_pos.fill_(0.5)
    simulation.step(50)
    return simulation.state.joint_q.numpy()


def test_actuators_follow_a_variant():
    """What an actuator has from the model is that of the new variant; what was given to it stays."""
    before, after = [0, 1, 0, 1], [1, 1, 0, 0]
    expected, simulation = make(after), make(before)
    whole = JointActuators(expected, damping=3.0)
    actuators = JointActuators(simulation, damping=3.0)
    with pytest.raises(KeyError, match="leg"):
        simulation.reassign(variants={"leg": np.int32(after)})
    np.testing.assert_array_equal(drives(simulation), 0.0)
    simulation.reassign([0, 3], variants={"arm": np.int32([1, 0, 0, 0])})
    simulation.reassign([3], variants={"arm": np.int32([0, 0, 0, 0])})
    np.testing.assert_array_equal(drives(simulation), 0.0)
    np.testing.assert_array_equal(parameters(actuators), parameters(whole))
    np.testing.assert_array_equal(actuators.stiffness.numpy(), column(after, 0))
    snapshot = simulation.save()
    expected.reset()
    np.testing.assert_array_equal(swing(simulation), swing(expected))

    simulation.reassign(variants={"arm": np.int32(before)})
    np.testing.assert_array_equal(actuators.stiffness.numpy(), column(before, 0))
    simulation.restore(snapshot)
    np.testing.assert_array_equal(parameters(actuators), parameters(whole))
    actuators.remove()
    np.testing.assert_array_equal(drives(simulation), [column(after, index) for index in range(3)])


def test_gains_are_drawn_about_those_of_the_variant():
    """A randomizer scales the gains of the actuator as those of the variant's own drive."""
    plain, simulation = make([0, 0, 1, 1]), make([0, 0, 1, 1])
    actuators = JointActuators(simulation)
    terms = drive_gains(Uniform(0.5, 2.0), Uniform(0.5, 2.0))
    randomizers = [Randomizer(each, terms, seed=3) for each in (plain, simulation)]
    for variants in ([0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 1, 0]):
        for each, randomizer in zip((plain, simulation), randomizers, strict=True):
            each.reassign(variants={"arm": np.int32(variants)})
            randomizer.apply()
        np.testing.assert_array_equal(parameters(actuators), drives(plain))
        assert not np.isin(actuators.stiffness.numpy(), [10.0, 100.0]).any()
        np.testing.assert_array_equal(drives(simulation), 0.0)


@pytest.mark.parametrize("share_layouts", [True, False], ids=["tables", "worlds"])
@pytest.mark.parametrize("driven", [False, True], ids=["drives", "actuators"])
def test_tensors_show_the_limits_of_a_variant(share_layouts, driven):
    """Limits and initial positions, which rewards and actions use, follow a change of the variant."""
    simulation = make([0, 1, 0, 1], share_layouts=share_layouts)
    tensors = simulation.tensors("*arm*")
    if driven:
        JointActuators(simulation)
    simulation.reassign(variants={"arm": np.int32([1, 1, 0, 0])})
    rows = [int(np.flatnonzero(tensors.worlds == world)[0]) for world in simulation.environment_world.numpy()]
    held = [1, 1, 0, 0]
    for values, index in (
        (tensors.joint_effort_limits, 2),
        (tensors.joint_upper, 3),
        (tensors.default_joint_positions, 4),
        (tensors.joint_positions, 4),
    ):
        np.testing.assert_array_equal(values.numpy()[rows, 0], column(held, index))


def test_tensors_show_limits_that_were_changed_at_a_reset():
    """Limits that are written to the model, as random ones are, show after the reset of their world."""
    simulation = make([0, 0, 0])
    tensors = simulation.tensors("*arm*")
    simulation.model.joint_limit_upper.assign(np.float32([0.3, 0.4, 0.5]))
    simulation.notify_model_changed(pv.ModelFlags.JOINT_DOF_PROPERTIES)
    simulation.reset([1])
    np.testing.assert_array_equal(tensors.joint_upper.numpy()[:, 0], np.float32([1.0, 0.4, 1.0]))
