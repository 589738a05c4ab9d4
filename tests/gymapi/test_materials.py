"""Materials: bouncing, rolling and spinning of shapes, with either solver where it has them."""

import numpy as np
import pytest

from pluriverse import gymapi
from pluriverse.solvers.mujoco.caveats import MujocoCaveatWarning
from tests.gymapi.scenes import add_env, at, make_sim, position_of, undamped

GRAVITY = 9.81


def ball_sim(gym, *, solver="sap", ground_restitution=0.0, height=0.0, **material):
    """Return a sim with one ball over the ground, and its env; `material` is that of the ball."""
    sim = make_sim(substeps=4)
    sim.params.solver = solver
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0, 0, 1)
    plane.restitution = ground_restitution
    gym.add_ground(sim, plane)
    env = add_env(sim)
    ball = gym.create_sphere(sim, 0.1, undamped(density=1000.0))
    actor = gym.create_actor(env, ball, at(z=0.102 + height), "ball", 0, 0)
    set_material(gym, env, actor, **material)
    return sim, env


def set_material(gym, env, actor, **material):
    shapes = gym.get_actor_rigid_shape_properties(env, actor)
    for name, value in material.items():
        setattr(shapes[0], name, value)
    gym.set_actor_rigid_shape_properties(env, actor, shapes)


def highest_after_impact(gym, sim, env, frames=75):
    """Return how high over its rest a ball comes after it has struck for the first time."""
    heights = []
    for _ in range(frames):
        gym.simulate(sim)
        heights.append(position_of(env, 0)[2] - 0.102)
    assert min(heights) < 0.1, "it strikes"
    rises = np.flatnonzero(np.diff(heights) > 1e-3)
    return max(heights[rises[0] :]) if len(rises) else heights[-1]


def test_ball_bounces_with_the_mean_of_both_restitutions(gym):
    """From 1 m, 0.9 on ground of 0.5 comes back to 0.7^2; nothing does below the threshold or without any."""
    sim, env = ball_sim(gym, ground_restitution=0.5, height=1.0, restitution=0.9)
    np.testing.assert_allclose(highest_after_impact(gym, sim, env), 0.49, atol=0.015)
    sim, env = ball_sim(gym, ground_restitution=0.0, height=1.0)
    assert highest_after_impact(gym, sim, env) < 1e-3
    sim, env = ball_sim(gym, ground_restitution=1.0, height=1.0, restitution=1.0)
    params = gym.get_sim_params(sim)
    params.physx.bounce_threshold_velocity = 5.0
    gym.set_sim_params(sim, params)
    assert highest_after_impact(gym, sim, env) < 1e-3


def test_restitution_and_threshold_change_between_steps(gym):
    """A ball at rest without restitution is given some, is dropped and bounces; a high threshold ends it."""
    sim, env = ball_sim(gym)
    for _ in range(5):
        gym.simulate(sim)
    set_material(gym, env, 0, restitution=1.0)
    for threshold, expected in ((0.2, 0.25), (5.0, 0.0)):
        params = gym.get_sim_params(sim)
        params.physx.bounce_threshold_velocity = threshold
        gym.set_sim_params(sim, params)
        root = gym.get_actor_root_state(env, 0)
        root["pose"]["p"], root["vel"]["linear"] = (0.0, 0.0, 1.102), (0.0, 0.0, 0.0)
        gym.set_actor_root_state(env, 0, root, gymapi.STATE_ALL)
        np.testing.assert_allclose(highest_after_impact(gym, sim, env), expected, atol=0.015)


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
def test_rolling_ball_slows_by_its_rolling_friction(gym, solver):
    """By 5/7 mu_rolling g / r: half that of the ball where the ground has none, all of it in MuJoCo."""
    sim, env = ball_sim(gym, solver=solver, rolling_friction=0.01)
    gym.set_rigid_linear_velocity(env, 0, gymapi.Vec3(1.0, 0, 0))
    gym.set_rigid_angular_velocity(env, 0, gymapi.Vec3(0, 10.0, 0))
    for _ in range(10):
        gym.simulate(sim)
    before = gym.get_rigid_linear_velocity(env, 0).x
    for _ in range(30):
        gym.simulate(sim)
    slowed = before - gym.get_rigid_linear_velocity(env, 0).x
    coefficient = 0.005 if solver == "sap" else 0.01
    # MuJoCo's cones are pyramids, inside the ellipsoid.
    np.testing.assert_allclose(slowed, 5.0 / 7.0 * coefficient * GRAVITY / 0.1 * 0.5, rtol=0.08)


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
def test_spinning_ball_slows_by_its_torsional_friction(gym, solver):
    """By mu_torsional m g / I. In SolverSAP it may be given between steps."""
    sim, env = ball_sim(gym, solver=solver, torsion_friction=0.01 if solver == "mujoco" else 0.0)
    gym.set_rigid_angular_velocity(env, 0, gymapi.Vec3(0, 0, 20.0))
    for _ in range(10):
        gym.simulate(sim)
    if solver == "sap":
        np.testing.assert_allclose(gym.get_rigid_angular_velocity(env, 0).z, 20.0, rtol=1e-5)
        set_material(gym, env, 0, torsion_friction=0.01)
        for _ in range(10):
            gym.simulate(sim)
    before = gym.get_rigid_angular_velocity(env, 0).z
    for _ in range(12):
        gym.simulate(sim)
    slowed = before - gym.get_rigid_angular_velocity(env, 0).z
    coefficient = 0.005 if solver == "sap" else 0.01
    np.testing.assert_allclose(slowed, coefficient * GRAVITY / (0.4 * 0.01) * 0.2, rtol=0.05)


def test_restitution_beyond_one_is_refused(gym):
    sim, env = ball_sim(gym)
    with pytest.raises(ValueError, match=r"restitution of shape 0 of actor 0 .* is 1\.5, but must be in"):
        set_material(gym, env, 0, restitution=1.5)
    plane = gymapi.PlaneParams()
    plane.restitution = -0.1
    with pytest.raises(ValueError, match=r"add_ground: restitution is -0\.1, but must be in 0 to 1"):
        gym.add_ground(sim, plane)


def test_restitution_is_warned_of_where_the_solver_has_none(gym):
    sim, _ = ball_sim(gym, solver="mujoco", restitution=0.5)
    with pytest.warns(MujocoCaveatWarning, match=r"restitution of shape '.*' is not used, since MuJoCo"):
        gym.prepare_sim(sim)


def test_tensors_stay_valid_when_the_solver_is_made_anew(gym):
    """Friction moments, a time step and a threshold change between steps: tensors go on to tell the state."""
    sim, env = ball_sim(gym, height=0.5)
    gym.prepare_sim(sim)
    roots, forces = gym.acquire_actor_root_state_tensor(sim), gym.acquire_net_contact_force_tensor(sim)
    changes = [
        lambda params: set_material(gym, env, 0, torsion_friction=0.01),
        lambda params: setattr(params, "dt", 0.01),
        lambda params: setattr(params.physx, "bounce_threshold_velocity", 1.0),
    ]
    for change in changes:
        for _ in range(3):
            gym.simulate(sim)
            gym.refresh_actor_root_state_tensor(sim)
        params = gym.get_sim_params(sim)
        change(params)
        gym.set_sim_params(sim, params)
        rows = roots.numpy().copy()
        rows[0, 2], rows[0, 7:] = 0.4, 0.0
        gym.set_actor_root_state_tensor(sim, rows)
        gym.simulate(sim)
        gym.refresh_actor_root_state_tensor(sim)
        body = gym.get_actor_rigid_body_states(env, 0, gymapi.STATE_ALL).view(np.float32)
        np.testing.assert_array_equal(roots.numpy()[0], body)
        np.testing.assert_allclose(roots.numpy()[0, 9], -GRAVITY * gym.get_sim_params(sim).dt, rtol=1e-4)
    for _ in range(100):
        gym.simulate(sim)
    gym.refresh_net_contact_force_tensor(sim)
    weight = GRAVITY * gym.get_actor_rigid_body_properties(env, 0)[0].mass
    np.testing.assert_allclose(forces.numpy()[0, 2], weight, rtol=0.02)
