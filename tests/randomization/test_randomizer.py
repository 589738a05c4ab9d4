"""The randomizer: every property from its own default, each world by itself, within what is allowed."""

import numpy as np
import pytest
import warp as wp
from scipy import stats

import pluriverse as pv
from pluriverse.geometry.shape_bounds import compute_shape_bounds
from pluriverse.randomization import (
    Choice,
    Constant,
    Gaussian,
    InitialState,
    LogUniform,
    Operation,
    Property,
    PseudoInertia,
    Randomizer,
    Rotation,
    Uniform,
    body_mass,
    centre_of_mass,
    drive_gains,
    friction,
    geometry_size,
    gravity,
    joint_armature,
    joint_limits,
)
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene
from pluriverse.warnings import MissingEntityWarning
from tests.variants.objects import arm_builder, ball_builder, box_builder, mesh_spec, pile_builder

DT = 0.005
ROUNDING = 2.0**-23


def make_model(count=8):
    """Return a model of arms and boxes, in worlds of two kinds."""
    builder = pv.ModelBuilder()
    for links in (2, 3):
        world = arm_builder(links, stiffness=20.0)
        world.joint_limit_lower[:] = -1.0
        world.joint_limit_upper[:] = 2.0
        world.joint_armature[:] = 0.1
        world.add_builder(box_builder())
        builder.replicate(world, count)
    builder.add_ground_plane()
    return builder.finalize("cpu")


def by_world(model, name, kind):
    """Return the rows of an array by world, the worlds of both kinds one after the other."""
    start = getattr(model, f"{kind}_world_start").numpy()
    values = getattr(model, name).numpy()
    return [values[start[world] : start[world + 1]] for world in range(model.world_count)]


@pytest.mark.parametrize("operation", list(Operation))
def test_operations_begin_from_the_default(operation):
    """Absolute values, factors and offsets lie where their distribution puts them, again and again."""
    model = make_model()
    default = model.joint_target_ke.numpy().copy()
    randomizer = Randomizer(
        model, [Property("joint_target_ke", Uniform(0.5, 1.5), operation, entities="joint_*")]
    )
    for _ in range(5):
        randomizer.apply()
    value = model.joint_target_ke.numpy()
    arm = default > 0.0
    number = {
        Operation.ABSOLUTE: value,
        Operation.SCALE: value / np.where(arm, default, 1.0),
        Operation.OFFSET: value - default,
    }[operation][arm]
    assert (number >= 0.5 - 20.0 * ROUNDING).all()
    assert (number <= 1.5 + 20.0 * ROUNDING).all()
    assert len(np.unique(number)) == arm.sum()
    np.testing.assert_array_equal(value[~arm], default[~arm])
    randomizer.restore()
    np.testing.assert_array_equal(model.joint_target_ke.numpy(), default)


def test_drawn_properties_have_their_distribution():
    """Over 400 worlds, gravity, masses and gains follow what was asked for (Kolmogorov and Smirnov)."""
    builder = pv.ModelBuilder()
    builder.replicate(box_builder(mass=2.0), 400)
    model = builder.finalize("cpu")
    with pytest.warns(UserWarning, match="without the inertia tensors"):
        mass = body_mass(LogUniform(0.5, 2.0))
    terms = [
        mass,
        gravity(Gaussian((0.0, 0.0, 0.0), (0.1, 0.1, 0.5))),
        friction(Uniform(0.2, 1.0)),
        centre_of_mass(Uniform(-0.01, 0.01)),
    ]
    Randomizer(model, terms, seed=3).apply()
    limit = 1e-6
    assert stats.kstest(model.body_mass.numpy() / 2.0, stats.loguniform(0.5, 2.0).cdf).pvalue > limit
    assert stats.kstest(model.gravity.numpy()[:, 2] + 9.81, stats.norm(0.0, 0.5).cdf).pvalue > limit
    assert stats.kstest(model.gravity.numpy()[:, 0], stats.norm(0.0, 0.1).cdf).pvalue > limit
    assert stats.kstest(model.shape_material_mu.numpy(), stats.uniform(0.2, 0.8).cdf).pvalue > limit
    for axis in range(3):
        offset = model.body_com.numpy()[:, axis]
        assert stats.kstest(offset, stats.uniform(-0.01, 0.02).cdf).pvalue > limit


def test_a_draw_does_not_depend_on_the_batch():
    """World 3 draws the same among 8 and 16 worlds, of other neighbours, alone or together, in any order."""
    small, large = make_model(4), make_model(8)  # worlds 0 to 3 are alike in both
    terms = [
        Property("joint_armature", Uniform(0.5, 2.0), Operation.SCALE, "joint_*"),
        friction(Uniform(0.2, 1.0)),
    ]
    first, second = Randomizer(small, terms, seed=5), Randomizer(large, terms, seed=5)
    first.apply([0, 1])
    first.apply([3])
    second.apply()
    second.apply([7])
    for name, kind in (("joint_armature", "joint_dof"), ("shape_material_mu", "shape")):
        np.testing.assert_array_equal(by_world(small, name, kind)[3], by_world(large, name, kind)[3])
    assert first.episode.numpy().tolist() == [1, 1, 0, 1, 0, 0, 0, 0]


def test_entities_share_a_draw_with_same_for_entities():
    model = make_model()
    terms = [
        friction(Uniform(0.2, 1.0)),
        Property("shape_gap", Uniform(0.01, 0.02), same_for_entities=False),
        Property("body_com", Uniform(-0.1, 0.1), Operation.OFFSET, components=[2]),
        geometry_size(Uniform(0.5, 2.0)),
    ]
    com, scale = model.body_com.numpy().copy(), model.shape_scale.numpy().copy()
    Randomizer(model, terms).apply()
    for mu in by_world(model, "shape_material_mu", "shape"):
        assert len(np.unique(mu)) == 1
    for gap in by_world(model, "shape_gap", "shape"):
        assert len(np.unique(gap)) == len(gap)
    changed = (model.body_com.numpy() != com).any(axis=0)
    assert changed.tolist() == [False, False, True]
    inside = model.shape_world.numpy() >= 0
    factor = model.shape_scale.numpy()[inside] / np.where(scale[inside] > 0.0, scale[inside], 1.0)
    for row, given in zip(factor, scale[inside] > 0.0, strict=True):
        np.testing.assert_allclose(row[given], row[0], rtol=2 * ROUNDING)


def test_a_recorded_call_draws_as_one_made_from_python():
    """With a mask on the device, replays of a graph equal calls one by one; worlds not meant keep theirs."""
    recorded, called = make_model(), make_model()
    terms = [
        friction(Uniform(0.2, 1.0)),
        gravity(Uniform(-1.0, 1.0)),
        InitialState(joint_position=Uniform(-1, 1)),
    ]
    first, second = Randomizer(recorded, terms), Randomizer(called, terms)
    mask = wp.zeros(recorded.world_count, dtype=wp.bool, device="cpu")
    first.apply(mask)
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        first.apply(mask)
    rng = np.random.default_rng(1)
    for _ in range(5):
        chosen = rng.random(recorded.world_count) < 0.4
        before = recorded.gravity.numpy().copy()
        mask.assign(chosen)
        wp.capture_launch(capture.graph)
        second.apply(chosen)
        for name in ("shape_material_mu", "gravity", "joint_q", "body_q"):
            np.testing.assert_array_equal(getattr(recorded, name).numpy(), getattr(called, name).numpy())
        np.testing.assert_array_equal(recorded.gravity.numpy()[~chosen], before[~chosen])


def test_bounds_follow_the_size_of_shapes():
    """Boxes are those of a new model; spheres hold the shape and are exact unless it is a mesh."""
    world = pv.ModelBuilder()
    world.add_builder(ball_builder())
    world.add_builder(box_builder())
    world.add_mjcf(mesh_spec(1, 2))
    arm = arm_builder(1)
    world.add_builder(arm)
    builder = pv.ModelBuilder()
    builder.replicate(world, 6)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    randomizer = Randomizer(model, [geometry_size(Uniform(0.5, 2.0), same_for_components=False)])
    randomizer.apply()
    lower, upper, radius = compute_shape_bounds(
        model.shape_type.numpy(),
        model.shape_scale.numpy().astype(np.float64),
        model.shape_source_index.numpy(),
        model.meshes,
    )
    inside = model.shape_world.numpy() >= 0
    primitive = inside & (model.shape_source_index.numpy() < 0)
    np.testing.assert_allclose(model.shape_aabb_lower.numpy()[inside], lower[inside], rtol=4 * ROUNDING)
    np.testing.assert_allclose(model.shape_aabb_upper.numpy()[inside], upper[inside], rtol=4 * ROUNDING)
    mine = model.shape_collision_radius.numpy()
    np.testing.assert_allclose(mine[primitive], radius[primitive], rtol=4 * ROUNDING)
    assert (mine[inside] >= radius[inside] * (1.0 - 4 * ROUNDING)).all()


def test_contacts_follow_the_size_of_shapes():
    """A ball that grows touches the ground where it did not; the step needs no notice."""
    builder = pv.ModelBuilder()
    ball = pv.ModelBuilder()
    ball.add_shape_sphere(ball.add_body(xform=((0.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0))), radius=0.2)
    builder.replicate(ball, 2)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    Randomizer(model, [geometry_size(Constant(3.0))]).apply([1])
    simulation = pv.Simulation(model, dt=DT)
    simulation.step()
    assert simulation.contacts.rigid_contact_count.numpy().tolist() == [0, 1]


def test_initial_states_are_drawn_around_the_default():
    """Roots shift and turn, joints stay within their limits, and reset puts worlds there."""
    model = make_model(50)
    simulation = pv.Simulation(model, dt=DT)
    simulation.step(3)
    term = InitialState(
        root_position=Uniform((-1.0, -1.0, 0.0), (1.0, 1.0, 0.5)),
        root_rotation=Uniform((0.0, 0.0, -3.0), (0.0, 0.0, 3.0)),
        root_velocity=Gaussian(0.0, 1.0),
        joint_position=Uniform(-4.0, 4.0),
        joint_velocity=Constant(0.5),
    )
    default = model.joint_q.numpy().copy()
    Randomizer(simulation, [term]).apply()
    simulation.reset()
    state = simulation.state
    np.testing.assert_array_equal(state.joint_q.numpy(), model.joint_q.numpy())
    angles = np.concatenate([q[:-7] for q in by_world(model, "joint_q", "joint_coord")])
    assert angles.min() == -1.0  # clamped to the limits
    assert angles.max() == 2.0
    roots = np.array([q[-7:] for q in by_world(model, "joint_q", "joint_coord")])
    moved = roots[:, :3] - default[2:5]
    assert (np.abs(moved[:, :2]) <= 1.0).all()
    assert (moved[:, 2] >= 0.0).all()
    np.testing.assert_allclose(np.linalg.norm(roots[:, 3:], axis=1), 1.0, rtol=4 * ROUNDING)
    turn = 2.0 * np.arctan2(roots[:, 5], roots[:, 6])
    assert stats.kstest(turn, stats.uniform(-3.0, 6.0).cdf).pvalue > 1e-6
    np.testing.assert_array_equal(roots[:, 3:5], 0.0)
    speeds = by_world(model, "joint_qd", "joint_dof")
    assert all((qd[:-6] == 0.5).all() for qd in speeds)
    fresh = pv.Simulation(model, dt=DT)
    np.testing.assert_array_equal(fresh.state.body_q.numpy(), state.body_q.numpy())
    pv.eval_fk(model, model.joint_q, model.joint_qd, fresh.state)
    np.testing.assert_array_equal(fresh.state.body_q.numpy(), state.body_q.numpy())
    np.testing.assert_array_equal(fresh.state.body_qd.numpy(), state.body_qd.numpy())


def test_each_variant_is_scaled_from_its_own_mass():
    """10 % of the mass of a light and of a heavy variant are a tenth of each, also after it was changed."""
    light, heavy = box_builder(mass=0.1), box_builder(0.2, mass=1.0)
    entity = VariantEntityCfg(variants={"light": light, "heavy": heavy, "pile": pile_builder(2)})
    scene = make_scene(SceneCfg(num_envs=12, entities={"object": entity}, reassignable=True), device="cpu")
    simulation = scene.simulation(dt=DT)
    with pytest.warns(UserWarning, match="point masses"):
        terms = [body_mass(Uniform(0.9, 1.1))]
    randomizer = Randomizer(simulation, terms)
    start = scene.model.body_world_start.numpy()
    own = {0: [0.1], 1: [1.0], 2: alone_masses(pile_builder(2))}
    for _ in range(3):
        randomizer.apply()
        masses = scene.model.body_mass.numpy()
        for environment, world in enumerate(simulation.environment_world.numpy()):
            variant = int(simulation.world_to_variant["object"].numpy()[environment])
            ratio = masses[start[world] : start[world + 1]] / own[variant]
            assert (np.abs(ratio - 1.0) <= 0.1 + ROUNDING).all()
            assert (ratio != 1.0).all()
        simulation.reassign()


def alone_masses(builder):
    return builder.body_mass.astype(np.float32)


def test_a_draw_follows_the_environment_into_another_world():
    """The same seed draws the same for an environment whether variants share layouts or have worlds."""
    variants = {"box": box_builder(), "ball": ball_builder()}
    drawn = []
    for share in (True, False):
        scene = make_scene(
            SceneCfg(
                num_envs=6,
                entities={"object": VariantEntityCfg(variants=variants)},
                reassignable=True,
                share_layouts=share,
            ),
            device="cpu",
        )
        simulation = scene.simulation(dt=DT)
        randomizer = Randomizer(simulation, [gravity(Uniform(-1.0, 1.0))])
        simulation.reassign()
        randomizer.apply()
        drawn.append(scene.model.gravity.numpy()[simulation.environment_world.numpy()])
    np.testing.assert_array_equal(drawn[0], drawn[1])


def test_variants_that_nobody_holds_yet_are_checked_too():
    """An offset that a heavy variant bears and a light one does not is an error before it is drawn."""
    variants = {"heavy": box_builder(mass=5.0), "light": box_builder(mass=0.5)}
    entity = VariantEntityCfg(variants=variants, assignment=lambda n: [0] * n)
    scene = make_scene(SceneCfg(num_envs=3, entities={"object": entity}, reassignable=True), device="cpu")
    term = Property("body_mass", Uniform(-1.0, 1.0), Operation.OFFSET)
    with pytest.raises(ValueError, match=r"has the default 0\.5, from which offset"):
        Randomizer(scene.simulation(dt=DT), [term])


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        (
            [Property("body_mass", Gaussian(1.0, 0.3), Operation.SCALE)],
            "body 'arm/link_0' .*may lead to -inf",
        ),
        ([Property("body_mass", Constant(0.0))], "may lead to 0, which is not allowed"),
        ([Property("shape_material_mu", Uniform(-0.1, 1.0))], "shape .*may lead to -0.1"),
        (
            [Property("joint_limit_ke", Uniform(0.9, 1.1), Operation.SCALE)],
            r"joint 'arm/joint_0' .* none of its own .*nothing to scale .*builder.joint_limit_ke",
        ),
        (
            [*joint_limits(lower=Uniform(0.0, 4.0))],
            "joint 'arm/joint_0' .*could get 3, beyond its joint_limit_upper of 2",
        ),
        ([*joint_limits(upper=Uniform(-4.0, 0.0))], "beyond its joint_limit_lower of -1"),
        (
            [joint_limits(Uniform(0.0, 2.0), Uniform(-2.0, 0.0))],
            "could get 0, beyond its joint_limit_lower of 1",
        ),
        ([Property("joint_axis", Constant(1.0))], "axes must keep the length 1"),
        ([Property("joint_type", Constant(1.0))], "part of the structure"),
        ([Property("body_masses", Constant(1.0))], "no such property"),
        ([Property("shape_enabled", Constant(1.0))], "does not hold numbers"),
        ([Property("body_q", Constant(1.0))], "Use InitialState"),
        ([Property("joint_target_pos", Constant(1.0))], "Write to Simulation.control"),
        ([Property("joint_q", Constant(1.0))], "coordinates that belong together"),
        ([Property("body_inertia", Uniform(0.5, 2.0), Operation.SCALE)], "Use PseudoInertia"),
        ([Property("joint_X_p", Constant(0.0), components=[4])], "the position of a pose"),
        ([Property("body_com", Uniform((0.0, 0.0), (1.0, 1.0)))], "has 2 components, but 3 are drawn"),
        ([gravity(Constant(0.0)), gravity(Constant(1.0))], "terms 0 and 1 both draw gravity"),
        ([InitialState(), InitialState(entities="joint_0")], "both draw joint_q"),
        ([InitialState(root_position=Constant((0.0, 1.0)))], "it must have 3, or one"),
        ([Rotation("body_com", Constant(0.0))], "no orientations there; poses are joint_X_p"),
        ([Rotation("shape_transform", Constant((0.0, 1.0)))], "it must have 3, or one"),
    ],
)
def test_what_cannot_be_drawn_is_named(terms, message):
    with pytest.raises(ValueError, match=message):
        Randomizer(make_model(1), terms)


def test_patterns_that_find_nothing_are_named():
    with pytest.raises(KeyError, match="no shape matches 'wheel'"):
        Randomizer(make_model(1), [friction(Constant(1.0), entities="wheel")])
    with pytest.raises(KeyError, match="means only what all worlds share"):
        Randomizer(make_model(1), [friction(Constant(1.0), entities="ground_plane")])
    with pytest.raises(TypeError, match="term 0 is a float"):
        Randomizer(make_model(1), [0.5])
    with pytest.raises(ValueError, match="seed is -1"):
        Randomizer(make_model(1), [], seed=-1)


def test_a_part_of_a_batch_may_lack_what_is_drawn_elsewhere():
    """A world of an obstacle alone: a term keeps its draws where others of the list find nothing."""
    terms = [
        friction(Uniform(0.5, 1.0), entities="box"),
        friction(Uniform(0.5, 1.0), entities=["wheel", "ground_plane"]),
        body_mass(Uniform(0.5, 1.0), entities="wheel", operation=Operation.ABSOLUTE),
        PseudoInertia(alpha=Uniform(-0.1, 0.1), entities="wheel"),
        Rotation("joint_X_p", Uniform(-0.1, 0.1)),
        InitialState(joint_position=Uniform(-0.1, 0.1)),
    ]
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    builder.begin_world()
    builder.add_shape_box(-1, hx=0.1, hy=0.1, hz=0.1, label="box")
    builder.end_world()
    model = builder.finalize("cpu")
    with pytest.warns(MissingEntityWarning) as told:
        Randomizer(model, terms, is_part=True).apply()
    texts = [str(each.message) for each in told]
    assert any("no shape matches 'wheel'" in text for text in texts)
    assert any("means only what all worlds share" in text for text in texts)
    assert any("InitialState: no joint matches '*'; there are none." in text for text in texts)
    drawn = model.shape_material_mu.numpy()
    alone = builder.finalize("cpu")
    Randomizer(alone, terms[:1]).apply()
    np.testing.assert_array_equal(drawn, alone.shape_material_mu.numpy())
    with pytest.raises(KeyError, match=r"no joint matches '\*'; there are none"):
        Randomizer(model, terms[-1:])


def test_the_other_short_terms_draw_what_they_say():
    model = make_model(2)
    terms = [
        drive_gains(Uniform(0.5, 2.0), Constant(3.0), entities="joint_*"),
        joint_limits(Uniform(-0.5, 0.0), Uniform(0.0, 0.5), entities="joint_*"),
        joint_armature(Choice([2.0]), entities="joint_*"),
    ]
    before = {name: getattr(model, name).numpy().copy() for name in ("joint_target_kd", "joint_armature")}
    Randomizer(model, terms).apply()
    np.testing.assert_allclose(model.joint_target_kd.numpy(), 3.0 * before["joint_target_kd"], rtol=ROUNDING)
    arm = model.joint_target_ke.numpy() > 0.0
    np.testing.assert_allclose(model.joint_armature.numpy()[arm], 2.0 * before["joint_armature"][arm])
    assert (model.joint_limit_lower.numpy()[arm] <= -1.0).all()
    assert (model.joint_limit_upper.numpy()[arm] >= 2.0).all()


def test_poses_are_moved_and_turned_by_terms_of_their_own():
    """A joint frame that is shifted and turned has both; bodies stand where the new frames put them."""
    model = make_model(20)
    default = model.joint_X_p.numpy().copy()
    terms = [
        Property("joint_X_p", Uniform(-0.01, 0.01), Operation.OFFSET, "joint_0"),
        Rotation("joint_X_p", Uniform((0.0, 0.0, -0.3), (0.0, 0.0, 0.3)), "joint_0"),
    ]
    randomizer = Randomizer(model, terms)
    randomizer.apply()
    frames = model.joint_X_p.numpy()
    chosen = np.array([label == "arm/joint_0" for label in model.joint_label])
    np.testing.assert_array_equal(frames[~chosen], default[~chosen])
    moved = frames[chosen, :3] - default[chosen, :3]
    assert ((np.abs(moved) <= 0.01 + ROUNDING) & (moved != 0.0)).all()
    turn = 2.0 * np.arctan2(frames[chosen, 5], frames[chosen, 6])
    assert stats.kstest(turn, stats.uniform(-0.3, 0.6).cdf).pvalue > 1e-6
    np.testing.assert_array_equal(frames[chosen, 3:5], 0.0)
    state = model.state()
    pv.eval_fk(model, model.joint_q, model.joint_qd, state)
    np.testing.assert_array_equal(state.body_q.numpy(), model.body_q.numpy())
    randomizer.restore()
    np.testing.assert_array_equal(model.joint_X_p.numpy(), default)


def test_a_model_without_worlds_is_one_world():
    """What is drawn for world 0 of a model of one world is drawn for a model that has no worlds."""
    single = arm_builder(2, stiffness=20.0)
    authored = pv.ModelBuilder()
    authored.add_world(single)
    models = [single.finalize("cpu"), authored.finalize("cpu")]
    terms = [
        Property("joint_target_ke", Uniform(0.5, 2.0), Operation.SCALE),
        gravity(Uniform(-1.0, 1.0)),
        InitialState(joint_position=Uniform(-0.1, 0.1)),
    ]
    for model in models:
        Randomizer(model, terms).apply()
    for name in ("joint_target_ke", "gravity", "joint_q", "body_q"):
        np.testing.assert_array_equal(*(getattr(model, name).numpy() for model in models))


def make_drawing_simulation():
    """Return a simulation and two randomizers of it."""
    simulation = pv.Simulation(make_model(4), dt=0.005, threads=1)
    first = Randomizer(simulation, [Property("joint_target_ke", Uniform(0.5, 2.0), Operation.SCALE)], seed=1)
    second = Randomizer(simulation, [gravity(Uniform(-1.0, 1.0))], seed=2)
    return simulation, first, second


@pytest.mark.parametrize("place", ["memory", "file", "file of another program"])
def test_draws_after_a_restore_are_those_that_followed_the_snapshot(place, tmp_path):
    """How often was drawn for each environment is in the snapshot, for each randomizer by itself."""
    simulation, first, second = make_drawing_simulation()
    model, path = simulation.model, tmp_path / "snapshot.npz"

    def draw():
        drawn = []
        for choice in ([0, 2], None):
            first.apply(choice)
            second.apply([1])
            drawn += [model.joint_target_ke.numpy().copy(), model.gravity.numpy().copy()]
        return drawn

    first.apply([3])
    first.apply()
    snapshot = simulation.save(path)
    expected = draw()
    episodes = first.episode.numpy().copy()
    if place == "file of another program":
        simulation, first, second = make_drawing_simulation()
        model = simulation.model
    simulation.restore(snapshot if place == "memory" else path)
    once = np.ones(model.world_count)
    np.testing.assert_array_equal(first.episode.numpy(), np.where(np.arange(len(once)) == 3, 2, once))
    np.testing.assert_array_equal(second.episode.numpy(), 0)
    for found, values in zip(draw(), expected, strict=True):
        np.testing.assert_array_equal(found, values)
    np.testing.assert_array_equal(first.episode.numpy(), episodes)


def test_a_snapshot_whose_added_arrays_do_not_fit_is_refused():
    """The same name with another size is not what was saved; nothing is restored then."""
    simulation, first, _ = make_drawing_simulation()
    other = pv.Simulation(make_model(4), dt=0.005, threads=1)
    other.add_snapshot_array("randomizer", wp.zeros(7, dtype=int, device="cpu"))
    first.apply()
    with pytest.raises(ValueError, match=r"'randomizer' has shape \(7,\).* shape \(8,\)"):
        other.restore(simulation.save())
