"""Properties: scale, masses, flags and materials, at any time."""

import re
import warnings

import numpy as np
import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import BRANCHED, add_env, at, make_sim, position_of, undamped

SCALE = 1.3


def scaled_urdf(scale):
    """Return the text of the branched robot with lengths, masses and inertias of another size."""

    def numbers(match, power):
        values = [f"{scale**power * float(value):.9g}" for value in match.group(2).split()]
        return f'{match.group(1)}="{" ".join(values)}"'

    text = re.sub(
        r'(xyz)="([^"]*)"(?=/><(?:mass|parent|child)|/>\s*<parent)', lambda m: numbers(m, 1), BRANCHED
    )
    text = re.sub(r'(<mass value)="([^"]*)"', lambda m: numbers(m, 3), text)
    text = re.sub(r'(i[xyz][xyz])="([^"]*)"', lambda m: numbers(m, 5), text)
    text = re.sub(r'(radius)="([^"]*)"', lambda m: numbers(m, 1), text)
    return text


def drive(gym, env, actor, scale):
    """Give the robot drives; gains of another size by the powers of the documentation."""
    properties = gym.get_actor_dof_properties(env, actor)
    slide = np.array([True, False, False, False, False])
    inertia = np.where(slide, scale**3, scale**5)
    properties["driveMode"].fill(gymapi.DOF_MODE_POS)
    properties["stiffness"] = 20.0 * inertia
    properties["damping"] = 1.0 * inertia
    properties["effort"] = np.where(slide, 50.0 * scale**4, 50.0 * scale**5)
    properties["lower"], properties["upper"] = (
        np.where(slide, -0.1 * scale, -1.0),
        np.where(slide, 0.2 * scale, 1.0),
    )
    gym.set_actor_dof_properties(env, actor, properties)
    targets = np.array([0.15 * scale, 0.3, -0.2, 0.5, 0.8])
    gym.set_actor_dof_position_targets(env, actor, targets)


@pytest.mark.parametrize(("fixed", "solver"), [(True, "sap"), (False, "sap"), (True, "mujoco")])
def test_scaled_robot_moves_like_one_built_at_that_size(gym, assets, tmp_path, fixed, solver):
    """Scaled mid-run, together with a teleport, a robot does what one with the scaled file does."""
    (tmp_path / "large.urdf").write_text(scaled_urdf(SCALE))
    options = undamped(fix_base_link=fixed)
    height = 1.0 if fixed else 0.3
    sim = make_sim(ground=True)
    sim.params.solver = solver
    small = gym.load_asset(sim, assets, "branched.urdf", options)
    large = gym.load_asset(sim, str(tmp_path), "large.urdf", options)
    first = add_env(sim)
    scaled = gym.create_actor(first, small, at(z=height), "robot", 0, 1)
    second = add_env(sim)
    built = gym.create_actor(second, large, at(z=height), "robot", 1, 1)
    drive(gym, first, scaled, 1.0)
    drive(gym, second, built, SCALE)
    for _ in range(10):
        gym.simulate(sim)
    gym.set_actor_scale(first, scaled, np.array([SCALE]))
    assert gym.get_actor_scale(first, scaled) == SCALE
    states = gym.get_actor_dof_states(first, scaled, gymapi.STATE_ALL)
    states["pos"], states["vel"] = (0.02, 0.1, 0.0, 0.0, 0.0), 0.0
    root = gym.get_actor_root_state(second, built)
    root["pose"]["p"] = (0.0, 0.0, height)
    for env, actor in ((first, scaled), (second, built)):
        gym.set_actor_dof_states(env, actor, states, gymapi.STATE_ALL)
        gym.set_actor_root_state(env, actor, root, gymapi.STATE_ALL)
    for _ in range(60):
        gym.simulate(sim)
    mine = gym.get_actor_rigid_body_states(first, scaled, gymapi.STATE_ALL).view(np.float32).reshape(-1, 13)
    theirs = gym.get_actor_rigid_body_states(second, built, gymapi.STATE_ALL).view(np.float32).reshape(-1, 13)
    # Products of float32 powers in place of numbers read from a file: some roundings, over 120 steps.
    np.testing.assert_allclose(mine[:, :7], theirs[:, :7], atol=1e-4)
    np.testing.assert_allclose(mine[:, 7:], theirs[:, 7:], atol=2e-3)
    for name in ("stiffness", "damping", "effort", "lower", "upper"):
        np.testing.assert_allclose(
            gym.get_actor_dof_properties(first, scaled)[name],
            gym.get_actor_dof_properties(second, built)[name],
            rtol=1e-5,
        )


def test_scale_is_absolute_and_gains_can_stay(gym, assets):
    """Scaling twice is scaling once, and back to 1 gives what there was; gains are left alone on request."""
    sim = make_sim()
    asset = gym.load_asset(sim, assets, "branched.urdf", undamped())
    env = add_env(sim)
    actor = gym.create_actor(env, asset, at(), "robot", 0, 1)
    drive(gym, env, actor, 1.0)
    before = gym.get_actor_dof_properties(env, actor)
    masses = [part.mass for part in gym.get_actor_rigid_body_properties(env, actor)]
    gym.set_actor_scale(env, actor, 3.0, scale_gains=False)
    np.testing.assert_array_equal(gym.get_actor_dof_properties(env, actor)["stiffness"], before["stiffness"])
    gym.set_actor_scale(env, actor, 2.0, scale_gains=False)
    gym.prepare_sim(sim)
    scaled = gym.get_actor_rigid_body_properties(env, actor)
    np.testing.assert_allclose([part.mass for part in scaled], 8.0 * np.array(masses), rtol=1e-5)
    np.testing.assert_allclose(list(scaled[1].com), [0.1, 0.04, 0.0], rtol=1e-5)
    gym.set_actor_scale(env, actor, 1.0, scale_gains=False)
    after = gym.get_actor_rigid_body_properties(env, actor)
    np.testing.assert_allclose([part.mass for part in after], masses, rtol=1e-5)


def test_body_properties_change_between_steps(gym):
    """A heavier body accelerates less, and clearing a flag brings gravity back."""
    sim = make_sim()
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped(disable_gravity=True))
    env = add_env(sim)
    actor = gym.create_actor(env, box, at(z=5.0), "box", 0, 0)
    for _ in range(10):
        gym.simulate(sim)
    np.testing.assert_allclose(position_of(env, actor), [0, 0, 5], atol=1e-6)
    properties = gym.get_actor_rigid_body_properties(env, actor)
    assert properties[0].flags == gymapi.RIGID_BODY_DISABLE_GRAVITY
    inertia = properties[0].inertia.x.x
    properties[0].mass *= 4.0
    gym.set_actor_rigid_body_properties(env, actor, properties, True)
    assert gym.get_actor_rigid_body_properties(env, actor)[0].inertia.x.x == pytest.approx(4.0 * inertia)
    gym.apply_body_forces(env, 0, gymapi.Vec3(32.0, 0, 0))
    gym.simulate(sim)
    np.testing.assert_allclose(gym.get_rigid_linear_velocity(env, 0).x, 32.0 / 32.0 / 60.0, rtol=1e-5)
    properties = gym.get_actor_rigid_body_properties(env, actor)
    properties[0].flags = gymapi.RIGID_BODY_NONE
    gym.set_actor_rigid_body_properties(env, actor, properties)
    gym.simulate(sim)
    np.testing.assert_allclose(gym.get_rigid_linear_velocity(env, 0).z, -9.81 / 60.0, rtol=1e-4)


def crate(gym, *, prepared):
    """Return a crate in the second of two envs, with its env."""
    sim = make_sim()
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    add_env(sim)
    env = add_env(sim)
    actor = gym.create_actor(env, box, at(z=2.0), "crate", 0, 0)
    if prepared:
        gym.prepare_sim(sim)
    return env, actor


@pytest.fixture(scope="module")
def crates(gym):
    """Return crates before and after prepare_sim()."""
    return {prepared: crate(gym, prepared=prepared) for prepared in (False, True)}


MASSES = {
    "mass of zero": (
        lambda part: setattr(part, "mass", 0.0),
        "mass .* is 0.0 kg, but must be > 0, since a joint",
    ),
    "mass beyond single precision": (lambda part: setattr(part, "mass", 1e40), "mass .* is inf kg"),
    "centre of mass": (
        lambda part: setattr(part.com, "x", np.nan),
        r"com .* is \[nan, 0.0, 0.0\] m, but must be finite",
    ),
    "no inertia": (
        lambda part: setattr(part, "inertia", gymapi.Mat33()),
        "inertia .* must be > 0 about every axis",
    ),
    "inertia of NaN": (lambda part: setattr(part.inertia.x, "x", np.nan), "inertia .* must be finite"),
    "asymmetric inertia": (lambda part: setattr(part.inertia.x, "y", 0.01), "inertia .* must be symmetric"),
    "negative inertia": (
        lambda part: setattr(part.inertia.z, "z", -0.01),
        "inertia .* must be >= 0 about every",
    ),
}


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("case", list(MASSES))
def test_mass_properties_of_no_body_are_refused_at_the_call(gym, crates, case, prepared):
    """They were taken; a later step froze the env, or raised without naming call, env or actor."""
    (env, actor), (change, message) = crates[prepared], MASSES[case]
    properties = gym.get_actor_rigid_body_properties(env, actor)
    change(properties[0])
    with pytest.raises(ValueError, match=message) as caught:
        gym.set_actor_rigid_body_properties(env, actor, properties)
    text = str(caught.value)
    assert text.startswith("set_actor_rigid_body_properties: ")
    assert " of body 'box' of actor 0 ('crate') of env 1 is " in text


@pytest.mark.parametrize("prepared", [False, True])
def test_inertias_that_no_body_has_are_warned_of_once_they_are_set(gym, crates, prepared):
    env, actor = crates[prepared]
    first = gym.get_actor_rigid_body_properties(env, actor)
    changed = gym.get_actor_rigid_body_properties(env, actor)
    changed[0].inertia.x.x = 100.0
    with pytest.warns(
        gymapi.GymWarning, match=r"principal inertias of body 'box' of actor 0 .*, 100\.0\] kg"
    ):
        gym.set_actor_rigid_body_properties(env, actor, changed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gym.set_actor_rigid_body_properties(env, actor, changed)
        gym.set_actor_rigid_body_properties(env, actor, first)


def test_held_bodies_need_no_mass(gym):
    """What no joint moves may have any mass; what is released needs one."""
    env, actor = crate(gym, prepared=False)
    properties = gym.get_actor_rigid_body_properties(env, actor)
    properties[0].mass, properties[0].inertia = 0.0, gymapi.Mat33()
    properties[0].flags = gymapi.RIGID_BODY_DISABLE_SIMULATION
    assert gym.set_actor_rigid_body_properties(env, actor, properties)
    gym.simulate(env.sim)
    np.testing.assert_array_equal(position_of(env, actor), [0.0, 0.0, 2.0])
    properties[0].flags = gymapi.RIGID_BODY_NONE
    with pytest.raises(ValueError, match=r"mass of body 'box' of actor 0 \('crate'\) of env 1 is 0.0 kg"):
        gym.set_actor_rigid_body_properties(env, actor, properties)


def test_weightless_bodies_of_a_file_stay_with_and_without_gravity(gym, tmp_path):
    """What compensates gravity already has none that could be disabled."""
    (tmp_path / "balloon.xml").write_text(
        '<mujoco><worldbody><body name="balloon" gravcomp="1"><freejoint/><geom size="0.1"/></body>'
        "</worldbody></mujoco>"
    )
    sim = make_sim()
    env = add_env(sim)
    actors = []
    for place, disable in ((-1.0, False), (1.0, True)):
        asset = gym.load_asset(sim, str(tmp_path), "balloon.xml", undamped(disable_gravity=disable))
        actors.append(gym.create_actor(env, asset, at(x=place, z=5.0), f"balloon {place}", 0, 0))
    for _ in range(30):
        gym.simulate(sim)
    for place, actor in zip((-1.0, 1.0), actors, strict=True):
        np.testing.assert_allclose(position_of(env, actor), [place, 0, 5], atol=1e-5)


def test_disabled_bodies_stay_where_they_are(gym):
    """A box without simulation carries another one in the air; enabled again, both fall."""
    sim = make_sim()
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    env = add_env(sim)
    still = gym.create_actor(env, box, at(z=2.0), "still", 0, 0)
    upper = gym.create_actor(env, box, at(z=2.202), "upper", 0, 0)
    properties = gym.get_actor_rigid_body_properties(env, still)
    properties[0].flags = gymapi.RIGID_BODY_DISABLE_SIMULATION
    gym.set_actor_rigid_body_properties(env, still, properties)
    for _ in range(30):
        gym.simulate(sim)
    np.testing.assert_array_equal(position_of(env, still), [0.0, 0.0, 2.0])
    np.testing.assert_allclose(position_of(env, upper), [0.0, 0.0, 2.202], atol=2e-3)
    properties = gym.get_actor_rigid_body_properties(env, still)
    assert properties[0].flags == gymapi.RIGID_BODY_DISABLE_SIMULATION
    properties[0].flags = gymapi.RIGID_BODY_NONE
    gym.set_actor_rigid_body_properties(env, still, properties)
    for _ in range(30):
        gym.simulate(sim)
    fallen = [2.0 - position_of(env, still)[2], 2.202 - position_of(env, upper)[2]]
    np.testing.assert_allclose(fallen, 0.5 * 9.81 * 0.25, rtol=0.05)


def test_friction_decides_what_slides(gym):
    """On a plane of friction 0, tilted by 20 degrees, boxes slide at g (sin a - mu / 2 cos a), or stay.

    The friction of a pair is the mean of both.
    """
    angle = np.deg2rad(20.0)
    sim = make_sim()
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(-np.sin(angle), 0.0, np.cos(angle))
    plane.static_friction = 0.0
    gym.add_ground(sim, plane)
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    turn = gymapi.Quat.from_axis_angle(gymapi.Vec3(0, 1, 0), -angle)
    envs = []
    frictions = np.array([1.0, 0.0, 0.8, 0.4])
    for index, friction in enumerate(frictions):  # the plane is the same one for envs anywhere in the grid
        envs.append(add_env(sim))
        x = gym.get_env_origin(envs[-1]).x
        height = x * np.tan(angle) + 0.103 / np.cos(angle)
        actor = gym.create_actor(
            envs[-1], box, gymapi.Transform(gymapi.Vec3(0, 0, height), turn), "box", index, 0
        )
        shapes = gym.get_actor_rigid_shape_properties(envs[-1], actor)
        shapes[0].friction = friction
        gym.set_actor_rigid_shape_properties(envs[-1], actor, shapes)
    for _ in range(30):
        gym.simulate(sim)
    speeds = [gym.get_rigid_linear_velocity(env, 0).length() for env in envs]
    expected = np.maximum(9.81 * (np.sin(angle) - 0.5 * frictions * np.cos(angle)), 0.0) * 0.5
    # Boxes begin a millimetre above, and the first contact acts over its dissipation time.
    np.testing.assert_allclose(speeds, expected, rtol=0.03, atol=0.02)


def test_friction_below_zero_counts_as_none(gym):
    """Suites draw coefficients from ranges that begin below 0; NaN remains an error."""
    sim = make_sim()
    asset = gym.create_box(sim, 0.2, 0.2, 0.2)
    properties = gym.get_asset_rigid_shape_properties(asset)
    properties[0].friction = -0.3
    with pytest.warns(gymapi.GymWarning, match=r"friction of shape 0 of .* is -0\.3"):
        gym.set_asset_rigid_shape_properties(asset, properties)
    assert gym.get_asset_rigid_shape_properties(asset)[0].friction == 0.0
    properties[0].friction = float("nan")
    with pytest.raises(ValueError, match="friction of shape 0"):
        gym.set_asset_rigid_shape_properties(asset, properties)


def test_velocities_decay_by_the_damping_of_the_asset(gym):
    """A spinning body slows as exp(-0.5 t) by default, and a moving one not at all."""
    sim = make_sim(gravity=0.0)
    box = gym.create_box(sim, 0.2, 0.2, 0.2)
    env = add_env(sim)
    gym.create_actor(env, box, at(), "box", 0, 0)
    gym.set_rigid_angular_velocity(env, 0, gymapi.Vec3(0, 0, 4.0))
    gym.set_rigid_linear_velocity(env, 0, gymapi.Vec3(1.0, 0, 0))
    for _ in range(60):
        gym.simulate(sim)
    # Explicit, once per frame: an error of dt c / 2 of the decay.
    np.testing.assert_allclose(gym.get_rigid_angular_velocity(env, 0).z, 4.0 * np.exp(-0.5), rtol=5e-3)
    np.testing.assert_allclose(gym.get_rigid_linear_velocity(env, 0).x, 1.0, rtol=1e-6)


def test_stack_of_mass_ratio_ten_thousand_stays_up(gym):
    """A cube of 10^4 times the mass rests on a small one."""
    sim = make_sim(ground=True)
    light = gym.create_box(sim, 0.2, 0.2, 0.2, undamped(density=100.0))
    heavy = gym.create_box(sim, 0.2, 0.2, 0.2, undamped(density=1.0e6))
    env = add_env(sim)
    gym.create_actor(env, light, at(z=0.103), "light", 0, 0)
    top = gym.create_actor(env, heavy, at(z=0.307), "heavy", 0, 0)
    for _ in range(120):
        gym.simulate(sim)
    # Contact is as stiff as the step resolves for the light box: the load sinks in by some centimetres.
    np.testing.assert_allclose(position_of(env, top), [0, 0, 0.306], atol=0.02)


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
def test_speeds_of_bodies_have_limits(gym, assets, solver):
    """Bodies that spin or fly faster are braked to their limits, also links of a robot; others are not."""
    sim = make_sim(gravity=0.0)
    sim.params.solver = solver
    options = undamped(max_linear_velocity=3.0, max_angular_velocity=10.0)
    box = gym.create_box(sim, 0.1, 0.2, 0.3, options)
    free = gym.create_box(sim, 0.1, 0.2, 0.3, undamped(max_angular_velocity=np.inf))
    robot = gym.load_asset(
        sim, assets, "cartpole.urdf", undamped(fix_base_link=True, max_angular_velocity=4.0)
    )
    env = add_env(sim)
    for place, asset in enumerate((box, free, robot)):
        gym.create_actor(env, asset, at(y=3.0 * place), "actor", 0, 0)
    for body in (0, 1):
        gym.set_rigid_linear_velocity(env, body, gymapi.Vec3(3.0, 4.0, 0.0))
        gym.set_rigid_angular_velocity(env, body, gymapi.Vec3(0.0, 0.0, 100.0))
    states = gym.get_actor_dof_states(env, 2, gymapi.STATE_ALL)
    states["vel"] = (0.0, 15.0)
    gym.set_actor_dof_states(env, 2, states, gymapi.STATE_ALL)
    for _ in range(10):
        gym.simulate(sim)
    np.testing.assert_allclose(list(gym.get_rigid_linear_velocity(env, 0)), [1.8, 2.4, 0.0], atol=1e-3)
    np.testing.assert_allclose(list(gym.get_rigid_angular_velocity(env, 0)), [0.0, 0.0, 10.0], atol=1e-2)
    np.testing.assert_allclose(list(gym.get_rigid_linear_velocity(env, 1)), [3.0, 4.0, 0.0], rtol=1e-4)
    np.testing.assert_allclose(gym.get_rigid_angular_velocity(env, 1).z, 100.0, rtol=1e-3)
    pole = gym.find_actor_rigid_body_handle(env, 2, "pole")
    assert 1.0 < abs(gym.get_rigid_angular_velocity(env, pole).x) < 4.1
