"""What the original's documents leave open: the decisions of the documentation, each shown."""

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, dof_state, make_sim, undamped

DT = 1.0 / 60.0


@pytest.fixture
def cart(gym, assets):
    """Return a sim without gravity, an env and a cart with its pole."""
    sim = make_sim(gravity=0.0)
    asset = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(z=1.0), "cartpole", 0, 1)
    return sim, env, actor


def set_drives(gym, env, actor, **values):
    properties = gym.get_actor_dof_properties(env, actor)
    for name, value in values.items():
        properties[name] = value
    gym.set_actor_dof_properties(env, actor, properties)


def test_getters_return_copies_and_leave_out_what_flags_do(gym, cart):
    """Editing an array changes nothing; positions or velocities that were not asked for are zero."""
    _, env, actor = cart
    states = dof_state(gym, env, actor)
    states["pos"], states["vel"] = (0.3, 0.2), (0.1, -0.4)
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    states["pos"] = 9.0
    np.testing.assert_allclose(dof_state(gym, env, actor)["pos"], [0.3, 0.2], rtol=1e-6)
    for flags, names in ((gymapi.STATE_POS, ("vel",)), (gymapi.STATE_VEL, ("pos",)), (0, ("pos", "vel"))):
        found = gym.get_actor_dof_states(env, actor, flags)
        assert all(not found[name].any() for name in names)
        bodies = gym.get_actor_rigid_body_states(env, actor, flags)
        if "vel" in names:
            assert not bodies["vel"]["linear"]["y"].any()
        if "pos" in names:
            assert not bodies["pose"]["p"]["z"].any()
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_VEL)
    np.testing.assert_allclose(dof_state(gym, env, actor)["pos"], [0.3, 0.2], rtol=1e-6)


def test_gains_without_a_drive_are_a_spring_to_the_target(gym, cart):
    """In modes NONE and EFFORT the cart swings about its position target as a mass on a spring."""
    sim, env, actor = cart
    set_drives(gym, env, actor, driveMode=gymapi.DOF_MODE_NONE, stiffness=(8.0, 0.0), damping=0.0)
    gym.set_actor_dof_position_targets(env, actor, np.array([0.2, 0.0]))  # not in position mode: ignored
    states = dof_state(gym, env, actor)
    states["pos"] = (0.4, 0.0)
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    mass = 1.0 + 0.5 * (1.0 - 0.125 / 0.175)  # the upright pole gives way
    period = 2.0 * np.pi * np.sqrt(mass / 8.0)
    for _ in range(round(0.5 * period / DT)):
        gym.simulate(sim)
    # The target stays zero; half a period later the cart is on the other side, less what implicit steps damp.
    assert -0.4 < dof_state(gym, env, actor)["pos"][0] < -0.33


def test_last_actuation_tensor_of_a_frame_counts(gym, cart):
    """A second set replaces the first, where efforts on the host add up; both last for one frame."""
    sim, env, actor = cart
    set_drives(gym, env, actor, driveMode=gymapi.DOF_MODE_EFFORT, stiffness=0.0, damping=0.0)
    gym.prepare_sim(sim)
    mass = 1.0 + 0.5 * (1.0 - 0.125 / 0.175)
    for force in (6.0, 2.0):
        gym.set_dof_actuation_force_tensor(sim, np.array([force, 0.0], dtype=np.float32))
    gym.simulate(sim)
    first = dof_state(gym, env, actor)["vel"][0]
    np.testing.assert_allclose(first, 2.0 * DT / mass, rtol=1e-3)
    gym.simulate(sim)
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"][0], first, rtol=1e-3)


def test_targets_beyond_limits_are_kept(gym, cart):
    """The target reads as it was set, and the limit holds the joint."""
    sim, env, actor = cart
    set_drives(
        gym, env, actor, driveMode=gymapi.DOF_MODE_POS, stiffness=100.0, damping=30.0, upper=(0.3, 0.0)
    )
    gym.set_actor_dof_position_targets(env, actor, np.array([2.0, 0.0]))
    for _ in range(90):
        gym.simulate(sim)
    assert gym.get_actor_dof_position_targets(env, actor)[0] == 2.0
    # Near rigid, it gives way by millimetres to the 170 N of the drive.
    np.testing.assert_allclose(dof_state(gym, env, actor)["pos"][0], 0.3, atol=5e-3)


def test_friction_of_a_joint_is_a_force(gym, cart):
    """Dry friction of 1.5 N slows the cart by 1.5 / m, whatever the drive pushes, and then holds it."""
    sim, env, actor = cart
    set_drives(
        gym, env, actor, driveMode=gymapi.DOF_MODE_EFFORT, stiffness=0.0, damping=0.0, friction=(1.5, 0.0)
    )
    states = dof_state(gym, env, actor)
    states["vel"] = (0.5, 0.0)
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    mass = 1.0 + 0.5 * (1.0 - 0.125 / 0.175)
    for _ in range(6):
        gym.simulate(sim)
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"][0], 0.5 - 1.5 / mass * 0.1, rtol=0.02)
    gym.set_actor_dof_states(env, actor, np.zeros_like(states), gymapi.STATE_ALL)
    for _ in range(30):
        gym.apply_actor_dof_efforts(env, actor, np.array([1.4, 0.0]))
        gym.simulate(sim)
    assert abs(dof_state(gym, env, actor)["vel"][0]) < 1e-3


def test_moving_bodies_without_mass_weigh_a_gram(gym, tmp_path):
    """A link between two slides without inertial or geometry gets a floor of mass, and the robot steps."""
    (tmp_path / "gantry.urdf").write_text(
        """<robot name="gantry"><link name="frame"/><link name="bridge"/><link name="tool"><inertial>
        <mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""
        + "".join(
            f"""<joint name="{child}" type="prismatic"><parent link="{parent}"/><child link="{child}"/>
            <axis xyz="{axis}"/><limit lower="-9" upper="9" effort="9" velocity="9"/></joint>"""
            for parent, child, axis in (("frame", "bridge", "1 0 0"), ("bridge", "tool", "0 1 0"))
        )
        + "</robot>"
    )
    sim = make_sim(gravity=0.0)
    asset = gym.load_asset(sim, str(tmp_path), "gantry.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(), "gantry", 0, 1)
    assert gym.get_actor_rigid_body_properties(env, actor)[1].mass == pytest.approx(1e-3)
    set_drives(gym, env, actor, driveMode=gymapi.DOF_MODE_EFFORT, stiffness=0.0, damping=0.0)
    gym.apply_actor_dof_efforts(env, actor, np.array([2.0, 2.0]))
    gym.simulate(sim)
    np.testing.assert_allclose(dof_state(gym, env, actor)["vel"], [2.0 * DT / 1.001, 2.0 * DT], rtol=1e-3)


def test_rest_offsets_and_contact_offsets_add_up(gym):
    """A box and the ground at the default of 1 mm each keep 2 mm between them."""
    sim = make_sim(ground=True)
    env = add_env(sim)
    gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2, undamped()), at(z=0.11), "box", 0, 0)
    for _ in range(60):
        gym.simulate(sim)
    np.testing.assert_allclose(gym.get_rigid_transform(env, 0).p.z, 0.102, atol=3e-4)
