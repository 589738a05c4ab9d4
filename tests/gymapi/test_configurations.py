"""Configurations: parameters, command lines and random properties as scripts write them in files."""

from xml.etree import ElementTree

import numpy as np
import pytest

from pluriverse import gymapi, gymutil
from tests.gymapi.scenes import add_env, at, make_sim, undamped

# Scripts seed NumPy's global generator.
# ruff: noqa: NPY002


def test_parameters_come_from_dictionaries():
    """Numbers may be text (YAML reads 1e-3 so), the axis a letter, gravity a list; parts are dictionaries."""
    params = gymapi.SimParams()
    gymutil.parse_sim_config(
        {
            "dt": "5e-3",
            "substeps": 1.0,
            "up_axis": "z",
            "gravity": [0, 0, "-9.81"],
            "use_gpu_pipeline": "False",
            "physx": {"rest_offset": 0, "contact_collection": 1, "num_threads": "8", "use_gpu": 0},
            "flex": {"deterministic_mode": "yes", "shape_collision_margin": 0.1},
        },
        params,
    )
    assert (params.dt, params.substeps, params.up_axis) == (0.005, 1, gymapi.UP_AXIS_Z)
    assert list(params.gravity) == pytest.approx([0.0, 0.0, -9.81])
    assert params.use_gpu_pipeline is False
    physx = params.physx
    assert (physx.rest_offset, physx.num_threads, physx.use_gpu) == (0.0, 8, False)
    assert physx.contact_collection is gymapi.CC_LAST_SUBSTEP
    assert params.flex.deterministic_mode is True
    gymutil.parse_sim_config({"up_axis": 0}, params)
    assert params.up_axis is gymapi.UP_AXIS_Y


def test_parameters_that_do_not_exist_are_named():
    params = gymapi.SimParams()
    with pytest.warns(gymapi.GymWarning, match=r"PhysXParams .* 'num_thread' \(did you mean 'num_threads'"):
        gymutil.parse_physx_config({"num_thread": 3, "num_velocity_iterations": 0}, params.physx)
    assert params.physx.num_velocity_iterations == 0
    for entries, message in (
        ({"dt": "fast"}, "dt is 'fast'"),
        ({"substeps": 1.5}, "substeps is 1.5: write a whole number"),
        ({"gravity": [1.0]}, "gravity is .*three numbers"),
        ({"up_axis": "x"}, 'up_axis is .*write "y", "z"'),
        ({"use_gpu_pipeline": "maybe"}, "use_gpu_pipeline is 'maybe'"),
        ({"physx": {"contact_collection": 7}}, "parse_physx_config: contact_collection is 7"),
    ):
        with pytest.raises(ValueError, match=message):
            gymutil.parse_sim_config(entries, params)
    with pytest.raises(TypeError, match="must be a dictionary"):
        gymutil.parse_sim_config([1], params)
    with pytest.raises(TypeError, match=r"must be a gymapi\.SimParams"):
        gymutil.parse_sim_config({}, {})


def test_options_of_scripts_may_be_of_any_kind():
    """With const and no action an option may stand alone; options of the script take the place of ours."""
    custom = [
        {"name": "--mass", "type": float, "default": 1.0, "const": 5.0, "help": "mass"},
        {"name": "--flat", "action": "store_true", "default": False, "type": bool, "help": "flat ground"},
        {"name": "--noise", "type": bool, "default": True},
        {"name": "--kind", "type": str, "choices": ["a", "b"], "default": "a"},
        {"name": "--num_threads", "type": int, "default": 3, "help": "threads"},
        {"name": "--device", "type": str, "default": "own"},
        {"name": "--headless", "action": "store_true"},
    ]
    args = gymutil.parse_arguments("test", headless=True, custom_parameters=custom, args=["--mass", "--flat"])
    assert (args.mass, args.flat, args.noise, args.kind) == (5.0, True, True, "a")
    assert (args.num_threads, args.device, args.headless) == (3, "own", False)
    args = gymutil.parse_arguments(custom_parameters=custom, args=["--mass", "2", "--noise", "False"])
    assert (args.mass, args.noise) == (2.0, False)
    plain = gymutil.parse_arguments(args=["--sim_device", "cpu"])
    assert plain.device == "cpu"


def test_xml_is_laid_out_in_lines():
    root = ElementTree.fromstring("<robot><link><mass/></link><link/></robot>")
    gymutil._indent_xml(root)
    assert ElementTree.tostring(root, encoding="unicode").splitlines() == [
        "<robot>",
        "  <link>",
        "    <mass />",
        "  </link>",
        "  <link />",
        "</robot>",
    ]


RANGES = {
    "uniform": ("uniform", [0.5, 1.5], 1.0, (0.5, 1.5)),
    "loguniform": ("loguniform", [0.5, 2.0], 1.0, (0.5, 2.0)),
    "gaussian": ("gaussian", [2.0, 0.1], 2.0, (1.0, 3.0)),
}


@pytest.mark.parametrize("kind", RANGES)
def test_samples_have_the_range_of_their_schedule(kind):
    """At the end of the schedule they have the full range, at its beginning they change nothing."""
    distribution, ends, middle, bounds = RANGES[kind]
    np.random.seed(5)
    entry = {"distribution": distribution, "range": ends, "operation": "scaling"}
    drawn = gymutil.generate_random_samples(entry, 4000, 0)
    assert bounds[0] <= drawn.min() < drawn.max() <= bounds[1]
    assert np.median(drawn) == pytest.approx(middle, abs=0.05)
    for schedule, step, share in (("linear", 0, 0.0), ("linear", 25, 0.25), ("constant", 99, 0.0)):
        entry |= {"schedule": schedule, "schedule_steps": 100}
        part = gymutil.generate_random_samples(entry, 4000, step)
        assert 1.0 + share * (bounds[0] - 1.0) <= part.min()
        assert part.max() <= 1.0 + share * (bounds[1] - 1.0)
    assert gymutil.generate_random_samples(entry, 1, 100, extern_sample=0.25) == 0.25
    entry["schedule"] = "sudden"
    with pytest.raises(ValueError, match="schedule is 'sudden', but must be linear or constant"):
        gymutil.generate_random_samples(entry, 1, 0)
    with pytest.raises(ValueError, match="operation is 'divide'"):
        gymutil.generate_random_samples(entry | {"operation": "divide"}, 1, 0)


def test_buckets_are_few_values_within_the_range():
    entry = {"distribution": "uniform", "range": [0.7, 1.3], "num_buckets": 3}
    values = gymutil.get_bucketed_val(np.array([0.0, 0.7, 0.95, 1.29, 5.0]), entry)
    np.testing.assert_allclose(values, [0.7, 0.7, 0.9, 1.1, 1.1])


RANDOMIZATION = {
    "box": {
        "rigid_body_properties": {
            "mass": {"range": [0.5, 1.5], "operation": "scaling", "distribution": "uniform"}
        },
        "rigid_shape_properties": {
            "friction": {
                "range": [0.7, 1.3],
                "operation": "scaling",
                "distribution": "uniform",
                "num_buckets": 250,
            }
        },
    },
    "cartpole": {
        "dof_properties": {
            "damping": {"range": [0.1, 0.2], "operation": "additive", "distribution": "uniform"},
            "upper": {"range": [0, 0.01], "operation": "additive", "distribution": "gaussian"},
        }
    },
}


def as_dict(properties):
    """Return the values of a structure, as scripts keep the original ones."""
    return {name: getattr(properties, name) for name in dir(properties) if not name.startswith("_")}


@pytest.mark.parametrize("prepared", [False, True])
def test_actors_are_randomized_by_maps_of_getters_and_setters(gym, assets, prepared):
    """As suites do it, before the sim is prepared (masses, scales) and between steps."""
    np.random.seed(1)
    sim = make_sim(ground=True)
    box = gym.create_box(sim, 0.2, 0.2, 0.2, undamped())
    cart = gym.load_asset(sim, assets, "cartpole.urdf", undamped(fix_base_link=True))
    envs = []
    for index in range(3):
        envs.append(add_env(sim))
        gym.create_actor(envs[-1], box, at(z=0.2), "box", index, 0)
        gym.create_actor(envs[-1], cart, at(x=1.0, z=1.0), "cartpole", index, 1)
    if prepared:
        gym.prepare_sim(sim)
    gymutil.check_buckets(gym, envs, {"actor_params": RANDOMIZATION})
    getters, setters = gymutil.get_property_getter_map(gym), gymutil.get_property_setter_map(gym)
    further = gymutil.get_default_setter_args(gym)
    inertia = gym.get_actor_rigid_body_properties(envs[0], 0)[0].inertia.x.x
    for env in envs:
        for name, kinds in RANDOMIZATION.items():
            handle = gym.find_actor_handle(env, name)
            for kind, attributes in kinds.items():
                properties = getters[kind](env, handle)
                entries = [properties] if isinstance(properties, np.ndarray) else properties
                for entry in entries:
                    original = entry.copy() if isinstance(entry, np.ndarray) else as_dict(entry)
                    for attribute, how in attributes.items():
                        gymutil.apply_random_samples(entry, original, attribute, how, 0)
                setters[kind](env, handle, properties, *further[kind])
    params = gym.get_sim_params(sim)
    how = {"range": [0.0, 0.4], "operation": "additive", "distribution": "gaussian"}
    gymutil.apply_random_samples(params, as_dict(gym.get_sim_params(sim)), "gravity", how, 0)
    rest = {"range": [0.001, 0.002], "operation": "additive", "distribution": "uniform"}
    gymutil.apply_random_samples(params, as_dict(gym.get_sim_params(sim)), "rest_offset", rest, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.warn", lambda *_, **__: None)
        setters["sim_params"](sim, params)
    assert 0.002 <= gym.get_sim_params(sim).physx.rest_offset <= 0.003
    for _ in range(5):
        gym.simulate(sim)
    bodies = [gym.get_actor_rigid_body_properties(env, 0)[0] for env in envs]
    masses = np.array([body.mass for body in bodies])
    assert len(set(masses)) == 3
    assert ((masses >= 4.0) & (masses <= 12.0)).all()
    np.testing.assert_allclose([body.inertia.x.x for body in bodies], inertia * masses / 8.0, rtol=1e-5)
    frictions = np.array([gym.get_actor_rigid_shape_properties(env, 0)[0].friction for env in envs])
    np.testing.assert_allclose(np.round((frictions - 0.7) / 0.0024) * 0.0024 + 0.7, frictions, atol=1e-5)
    dofs = [gym.get_actor_dof_properties(env, 1) for env in envs]
    assert all((entry["damping"] >= 0.1).all() and (entry["damping"] <= 0.2 + 1e-6).all() for entry in dofs)
    assert np.isfinite([gym.get_rigid_transform(env, 0).p.z for env in envs]).all()


def test_too_many_materials_are_refused(gym, assets):
    sim = make_sim(ground=True)
    env = add_env(sim)
    gym.create_actor(env, gym.create_box(sim, 0.2, 0.2, 0.2), at(z=0.2), "box", 0, 0)
    many = {"box": {"rigid_shape_properties": {"friction": {"num_buckets": 64001}}}}
    with pytest.raises(AssertionError, match="64001 materials"):
        gymutil.check_buckets(gym, [env], {"actor_params": many})


def test_configurations_are_classes_too():
    """Suites of tasks write classes in classes, which inherit; what is callable is no entry."""

    class Base:
        class physx:  # noqa: N801, as such suites write it
            num_position_iterations = 8
            contact_offset = 0.01

    class Config(Base):
        dt = 0.005
        gravity = (0.0, 0.0, -1.62)

        def describe(self):
            return "moon"

    params = gymapi.SimParams()
    gymutil.parse_sim_config(Config, params)
    assert (params.dt, params.physx.contact_offset) == (0.005, 0.01)
    assert params.gravity.z == pytest.approx(-1.62)
    gymutil.parse_sim_config(vars(Config) and {"physx": Config.physx}, params)
    assert params.physx.num_position_iterations == 8
