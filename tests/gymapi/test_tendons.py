"""Fixed tendons: two carts that a tendon couples, against closed forms, with either solver."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import add_env, at, make_sim, undamped

CARTS = """
<mujoco model="carts"><worldbody><body name="rail"><geom size="0.05" contype="0" conaffinity="0"/>
  <body name="left"><joint name="left" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body>
  <body name="right"><joint name="right" type="slide" axis="1 0 0"/>
    <inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/></body></body></worldbody>
  <tendon><fixed name="apart"><joint joint="right" coef="1"/><joint joint="left" coef="-1"/></fixed></tendon>
</mujoco>
"""
MASS, DT = 2.0, 1.0 / 60.0


@pytest.fixture(params=["sap", "mujoco"])
def carts(gym, tmp_path, request):
    """Return a sim of two carts of 2 kg on a rail, coupled by a tendon of length x_right - x_left."""
    (tmp_path / "carts.xml").write_text(CARTS)
    sim = make_sim(gravity=0.0, substeps=8)
    sim.params.solver = request.param
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the importer says that models have no tendons
        asset = gym.load_asset(sim, str(tmp_path), "carts.xml", undamped(fix_base_link=True))
    env = add_env(sim)
    gym.create_actor(env, asset, at(), "carts", 0, 1)
    return sim, env


def set_tendon(gym, env, **values):
    properties = gym.get_actor_tendon_properties(env, 0)
    for name, value in values.items():
        setattr(properties[0], name, value)
    gym.set_actor_tendon_properties(env, 0, properties)


def place(gym, env, left, right):
    states = gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)
    states["pos"], states["vel"] = (left, right), 0.0
    gym.set_actor_dof_states(env, 0, states, gymapi.STATE_ALL)


def positions(gym, env):
    return np.array(gym.get_actor_dof_states(env, 0, gymapi.STATE_ALL)["pos"])


def test_spring_and_damper_of_a_tendon(gym, carts):
    """The length follows m/2 L'' = -k (L - L0 + offset) - d L', a damped oscillation; the mean stays."""
    sim, env = carts
    k, d, rest, offset = 40.0, 1.0, 0.3, 0.1
    set_tendon(gym, env, stiffness=k, damping=d, fixed_spring_rest_length=rest)
    gym.set_actor_tendon_offset(env, 0, 0, offset)
    place(gym, env, -0.3, 0.3)
    rate = np.sqrt(2.0 * k / MASS - (d / MASS) ** 2)
    start = 0.6 - (rest - offset)
    for frame in range(1, 46):
        gym.simulate(sim)
        time = frame * DT
        wave = np.cos(rate * time) + d / MASS / rate * np.sin(rate * time)
        length = rest - offset + start * np.exp(-d / MASS * time) * wave
        left, right = positions(gym, env)
        # First order in the substep of 2 ms: it damps like h k, 8 % of d, and shifts the phase by as much.
        np.testing.assert_allclose(right - left, length, atol=0.04 * start)
        assert abs(left + right) < 1e-4


def test_rigid_tendon_couples_two_joints(gym, carts):
    """As stiff as one likes it holds its length, so that a push on one cart moves both."""
    sim, env = carts
    set_tendon(gym, env, stiffness=1e9, damping=1e6)
    drives = gym.get_actor_dof_properties(env, 0)
    drives["driveMode"] = gymapi.DOF_MODE_EFFORT
    gym.set_actor_dof_properties(env, 0, drives)
    for _ in range(30):
        gym.apply_actor_dof_efforts(env, 0, np.array([8.0, 0.0]))
        gym.simulate(sim)
    left, right = positions(gym, env)
    np.testing.assert_allclose(left, 0.5 * 8.0 / (2.0 * MASS) * 0.25, rtol=0.02)
    np.testing.assert_allclose(right, left, atol=1e-3)


def test_limits_and_coefficients_of_a_tendon(gym, carts):
    """Pulled by 6 N a limited tendon gives way by F / kl beyond its limit, in units of its coefficient."""
    sim, env = carts
    set_tendon(
        gym, env, is_limited=True, upper_limit=0.2, lower_limit=-0.2, limit_stiffness=300.0, damping=20.0
    )
    drives = gym.get_actor_dof_properties(env, 0)
    drives["driveMode"] = gymapi.DOF_MODE_EFFORT
    gym.set_actor_dof_properties(env, 0, drives)
    for coefficient in (1.0, 2.0):
        gym.set_actor_fixed_tendon_joint_coefficients(env, 0, 0, [coefficient, -coefficient])
        for _ in range(240):
            gym.apply_actor_dof_efforts(env, 0, np.array([-6.0, 6.0]))
            gym.simulate(sim)
        left, right = positions(gym, env)
        # The tendon pulls a cart by its coefficient times its force.
        expected = (0.2 + 6.0 / coefficient / 300.0) / coefficient
        np.testing.assert_allclose(right - left, expected, atol=2e-3)


def test_wrong_tendon_properties_say_what_is_wrong(gym, carts):
    _, env = carts
    with pytest.raises(
        ValueError, match=r"set_actor_tendon_properties: stiffness of tendon 0 \('apart'\) of actor 0 .* -1"
    ):
        set_tendon(gym, env, stiffness=-1.0)
    with pytest.raises(ValueError, match=r"limits of tendon 0 .* are 1\.0 and 0\.0, but the lower"):
        set_tendon(gym, env, is_limited=True, fixed_lower_limit=1.0)
    with pytest.raises(TypeError, match=r"entry 0 is 3, but must be a gymapi\.TendonProperties"):
        gym.set_actor_tendon_properties(env, 0, [3])
    set_tendon(gym, env, is_limited=True, fixed_upper_limit=0.7)
    assert gym.get_actor_tendon_properties(env, 0)[0].upper_limit == 0.7


def test_kernels_of_tendons_and_attractors_load_with_the_first_one():
    """Those that are declared are compiled with the step, so sims that have neither do without."""
    program = (
        "import sys; from pluriverse import gymapi; "
        "print([name for name in sys.modules if name.endswith(('tendon_forces', 'attractor_forces'))])"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip().endswith("[]")
