"""Contacts, force sensors and attractors."""

import gc
import weakref

import numpy as np
import pytest

from pluriverse import gymapi
from pluriverse.gymapi.contact_readings import ContactReadings
from tests.gymapi.scenes import add_env, at, make_params, make_sim, position_of, undamped

G = 9.81


def test_a_tensor_of_contact_forces_outlives_its_sim(gym):
    """What a script holds stays its own memory when the sim goes."""
    sim = make_sim()
    gym.create_actor(add_env(sim), gym.create_box(sim, 0.2, 0.2, 0.2, undamped()), at(z=1.0), "box", 0, 0)
    tensor = gym.acquire_net_contact_force_tensor(sim)
    forces = weakref.ref(sim.part(ContactReadings).force)
    del sim
    gc.collect()
    assert forces().ptr == tensor.data_ptr


@pytest.mark.parametrize("collection", list(gymapi.ContactCollection))
def test_contact_forces_carry_the_weight(gym, collection):
    """At rest the net contact force on each body is what it carries; nothing is collected with CC_NEVER."""
    params = make_params()
    params.physx.contact_collection = collection
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0, 0, 1)
    gym.add_ground(sim, plane)
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped(density=500.0))
    envs = [add_env(sim) for _ in range(1)]
    lower = gym.create_actor(envs[0], box, at(z=0.102), "box", 0, 0)
    upper = gym.create_actor(envs[0], box, at(z=0.306), "box", 0, 0)
    gym.prepare_sim(sim)
    tensor = gym.acquire_net_contact_force_tensor(sim).numpy()
    for _ in range(60):
        gym.simulate(sim)
    gym.refresh_net_contact_force_tensor(sim)
    weight = 500.0 * 0.2**3 * G
    expected = 0.0 if collection == gymapi.CC_NEVER else weight
    np.testing.assert_allclose(tensor[:, 2], expected, rtol=1e-3, atol=1e-9)
    np.testing.assert_allclose(tensor[:, :2], 0.0, atol=1e-3 * weight)
    records = gym.get_env_rigid_contacts(envs[0])
    ground = records[(records["body0"] == -1) | (records["body1"] == -1)]
    between = records[(records["body0"] != -1) & (records["body1"] != -1)]
    assert len(ground) >= 3
    assert len(between) >= 3
    np.testing.assert_allclose(np.abs(ground["lambda"]).sum(), 2 * expected, rtol=1e-3)
    np.testing.assert_allclose(np.abs(between["lambda"]).sum(), expected, rtol=1e-3)
    forces = gym.get_env_rigid_contact_forces(envs[0])
    np.testing.assert_allclose(forces["z"], tensor[:, 2])
    assert (lower, upper) == (0, 1)


def test_force_sensors_measure_the_net_force(gym):
    """A body in free fall reads its weight, one at rest nothing; torque refers to each sensor's frame."""
    sim = make_sim(ground=True)
    asset = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    quarter = gymapi.Quat.from_axis_angle(gymapi.Vec3(1, 0, 0), np.pi / 2)
    away = gymapi.Transform(gymapi.Vec3(0.5, 0.0, 0.0), quarter)
    world = gymapi.ForceSensorProperties()
    world.use_world_frame = True
    contacts = gymapi.ForceSensorProperties()
    contacts.enable_forward_dynamics_forces = False
    sensors = [
        gym.create_asset_force_sensor(asset, 0, gymapi.Transform(), world),
        gym.create_asset_force_sensor(asset, 0, away),
        gym.create_asset_force_sensor(asset, 0, gymapi.Transform(), contacts),
    ]
    assert sensors == [0, 1, 2]
    assert gym.create_asset_force_sensor(asset, 7, gymapi.Transform()) == -1
    env = add_env(sim)
    falling = gym.create_actor(env, asset, at(z=3.0), "falling", 0, 0)
    resting = gym.create_actor(env, asset, at(x=2.0, z=0.102), "resting", 0, 0)
    gym.prepare_sim(sim)
    readings = gym.acquire_force_sensor_tensor(sim).numpy()
    for _ in range(30):
        gym.simulate(sim)
    weight = 1000.0 * 0.2**3 * G
    np.testing.assert_allclose(readings[0], [0, 0, -weight, 0, 0, 0], rtol=1e-4, atol=1e-4 * weight)
    # About a point half a metre ahead, in axes turned by 90 degrees: r x F = (-0.5, 0, 0) x (0, 0, -w).
    force = gym.get_actor_force_sensor(env, falling, 1).get_forces()
    np.testing.assert_allclose(list(force.force), [0, -weight, 0], rtol=1e-4, atol=1e-4 * weight)
    np.testing.assert_allclose(list(force.torque), [0, 0, 0.5 * weight], rtol=1e-4, atol=1e-4 * weight)
    at_rest = [gym.get_actor_force_sensor(env, resting, k).get_forces() for k in range(3)]
    np.testing.assert_allclose(list(at_rest[0].force), 0.0, atol=1e-2 * weight)
    np.testing.assert_allclose(list(at_rest[2].force), [0, 0, weight], rtol=1e-3, atol=1e-2 * weight)


@pytest.mark.parametrize("stiffness", [200.0, 1e6])
def test_attractor_brings_a_body_to_its_target(gym, stiffness):
    """Without gravity a damped attractor ends at its target, from any stiffness; free axes are left alone."""
    sim = make_sim(gravity=0.0)
    box = gym.create_box(sim, 0.2, 0.3, 0.4, undamped())
    env = add_env(sim)
    actor = gym.create_actor(env, box, at(0.3, -0.2, 1.0), "box", 0, 0)
    properties = gymapi.AttractorProperties()
    properties.rigid_handle = gym.get_actor_root_rigid_body_handle(env, actor)
    properties.axes = gymapi.AXIS_ALL & ~gymapi.AXIS_X
    properties.stiffness, properties.damping = stiffness, 0.4 * stiffness
    turn = gymapi.Quat.from_euler_zyx(0.4, -0.3, 1.0)
    properties.target = gymapi.Transform(gymapi.Vec3(5.0, 0.5, 1.5), turn)
    properties.target.r = gymapi.Quat()
    handle = gym.create_rigid_body_attractor(env, properties)
    properties.target.p.z = 99.0  # the attractor has a copy
    for _ in range(240):
        gym.simulate(sim)
    np.testing.assert_allclose(position_of(env, actor), [0.3, 0.5, 1.5], atol=0.01)
    target = gymapi.Transform(gymapi.Vec3(0.0, 0.0, 1.0), turn)
    changed = gym.get_attractor_properties(env, handle)
    changed.axes = gymapi.AXIS_ALL
    gym.set_attractor_properties(env, handle, changed)
    gym.set_attractor_target(env, handle, target)
    for _ in range(360):
        gym.simulate(sim)
    pose = gym.get_rigid_transform(env, properties.rigid_handle)
    np.testing.assert_allclose(list(pose.p), [0.0, 0.0, 1.0], atol=0.01)
    assert abs(np.dot(list(pose.r), list(turn))) > 0.9999


def test_attractor_holds_the_tip_of_an_arm(gym, assets):
    """A stiff attractor on a link of a robot under gravity sags by its share of the weight at most."""
    sim = make_sim()
    asset = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(z=1.0), "cartpole", 0, 1)
    properties = gymapi.AttractorProperties()
    properties.rigid_handle = gym.find_actor_rigid_body_handle(env, actor, "pole")
    properties.axes = gymapi.AXIS_TRANSLATION
    properties.stiffness, properties.damping = 5e5, 5e3
    properties.offset = at(z=1.0)
    properties.target = at(0.12, 0.6, 1.8)
    states = gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL)
    states["pos"] = (0.3, -0.3)  # not straight up, where nothing could give way to a pull down
    gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
    gym.create_rigid_body_attractor(env, properties)
    for _ in range(300):
        gym.simulate(sim)
    pole = gym.get_rigid_transform(env, properties.rigid_handle)
    tip = pole.transform_point(gymapi.Vec3(0, 0, 1))
    np.testing.assert_allclose(list(tip), [0.12, 0.6, 1.8], atol=2e-3)


def test_body_forces_act_in_their_space_for_one_step(gym):
    """Forces by call and by tensor, in each space, change momentum as F dt and r x F dt."""
    sim = make_sim(gravity=0.0)
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    envs = []
    turn = gymapi.Quat.from_axis_angle(gymapi.Vec3(0, 0, 1), np.pi / 2)
    for index in range(6):
        envs.append(add_env(sim))
        pose = gymapi.Transform(gymapi.Vec3(0.1, 0.2, 1.0), turn)
        gym.create_actor(envs[-1], box, pose, "box", index, 0)
    gym.prepare_sim(sim)
    mass, inertia, dt = 8.0, 8.0 * 0.04 / 6.0, 1.0 / 60.0
    force = gymapi.Vec3(3.0, 0.0, 0.0)
    gym.apply_body_forces(envs[0], 0, force, gymapi.Vec3(0, 0, 0.2))
    gym.apply_body_forces(envs[1], 0, force, None, gymapi.LOCAL_SPACE)
    gym.apply_body_force_at_pos(envs[2], 0, force, gymapi.Vec3(0.1, 0.3, 1.0))
    gym.apply_body_force_at_pos(envs[3], 0, force, gymapi.Vec3(0.1, 0.0, 0.0), gymapi.LOCAL_SPACE)
    forces = np.zeros((6, 1, 3), dtype=np.float32)
    points = np.zeros((6, 1, 3), dtype=np.float32)
    forces[4], points[4] = (3.0, 0.0, 0.0), (0.1, 0.3, 1.0)
    gym.apply_rigid_body_force_at_pos_tensors(sim, forces, points, gymapi.ENV_SPACE)
    origin = np.array(list(gym.get_env_origin(envs[5])))
    forces[:], points[:] = 0.0, 0.0
    forces[5], points[5] = (3.0, 0.0, 0.0), origin + np.array([0.1, 0.3, 1.0])
    gym.apply_rigid_body_force_at_pos_tensors(sim, forces, points, gymapi.GLOBAL_SPACE)
    gym.simulate(sim)
    vel = gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL)["vel"]
    push, spin = 3.0 * dt / mass, 0.1 * 3.0 * dt / inertia
    linear = [[push, 0, 0], [0, push, 0], [push, 0, 0], [0, push, 0], [push, 0, 0], [push, 0, 0]]
    angular = [0.2 * dt / inertia, 0.0, -spin, 0.0, -spin, -spin]
    np.testing.assert_allclose(np.array(vel["linear"].tolist()), linear, atol=1e-3 * push)
    np.testing.assert_allclose(vel["angular"]["z"], angular, rtol=1e-3, atol=1e-3 * spin)
    gym.simulate(sim)
    np.testing.assert_allclose(
        gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL)["vel"]["linear"]["x"][0], push, rtol=1e-3
    )


def test_jacobian_and_mass_matrix_give_velocities_and_energy(gym, assets):
    """J qd is the tensor of body velocities, and qd M qd / 2 the kinetic energy, of fixed and free bases."""
    sim = make_sim(gravity=0.0)
    free = gym.load_asset(sim, assets, "branched.urdf", undamped())
    held = gym.load_asset(sim, assets, "branched.urdf", undamped(fix_base_link=True))
    for index in range(3):
        env = add_env(sim)
        gym.create_actor(env, free, at(), "free", index, 1)
        gym.create_actor(env, held, at(x=1.0), "held", index, 1)
    gym.prepare_sim(sim)
    rng = np.random.default_rng(0)
    states = rng.uniform(-0.2, 0.2, (sim.dof_count, 2)).astype(np.float32)
    roots = gym.acquire_actor_root_state_tensor(sim).numpy().copy()
    roots[0::2, 7:] = rng.normal(size=(3, 6))
    gym.set_dof_state_tensor(sim, states)
    gym.set_actor_root_state_tensor(sim, roots)
    bodies = gym.acquire_rigid_body_state_tensor(sim).numpy().reshape(3, 8, 13)
    jacobians = {name: gym.acquire_jacobian_tensor(sim, name).numpy() for name in ("free", "held")}
    matrix = gym.acquire_mass_matrix_tensor(sim, "held").numpy()
    assert jacobians["free"].shape == (3, 4, 6, 11)
    assert jacobians["held"].shape == (3, 3, 6, 5)
    gym.refresh_rigid_body_state_tensor(sim)
    gym.refresh_jacobian_tensors(sim)
    gym.refresh_mass_matrix_tensors(sim)
    speeds = states[:, 1].reshape(3, 2, 5)
    for env in range(3):
        moving = np.concatenate([roots[2 * env, 7:], speeds[env, 0]])
        np.testing.assert_allclose(jacobians["free"][env] @ moving, bodies[env, :4, 7:], atol=1e-5)
        np.testing.assert_allclose(jacobians["held"][env] @ speeds[env, 1], bodies[env, 5:, 7:], atol=1e-5)
        energy = 0.0
        parts = gym.get_actor_rigid_body_properties(gym.get_env(sim, env), 1)
        for part, row in zip(parts, bodies[env, 4:], strict=True):
            turn = gymapi.Quat(*row[3:7]).inverse()
            omega = np.array(list(turn.rotate(gymapi.Vec3(*row[10:]))))
            inertia = np.array([list(part.inertia.x), list(part.inertia.y), list(part.inertia.z)])
            energy += 0.5 * part.mass * row[7:10] @ row[7:10] + 0.5 * omega @ inertia @ omega
        np.testing.assert_allclose(0.5 * speeds[env, 1] @ matrix[env] @ speeds[env, 1], energy, rtol=1e-5)
