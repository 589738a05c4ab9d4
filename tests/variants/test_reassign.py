"""Reassignment: environments change what they hold, on the device, each by its own draws."""

import numpy as np
import pytest
import warp as wp

from pluriverse.randomization import Randomizer, Uniform, friction
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene
from tests.variants.objects import arm_builder, ball_builder, box_builder, mesh_spec, pile_builder

DT = 0.005


def make(variants, count, *, assignment=None, **options):
    entity = VariantEntityCfg(variants=variants, assignment=assignment)
    scene = make_scene(
        SceneCfg(num_envs=count, entities={"object": entity}, reassignable=True, **options), device="cpu"
    )
    return scene.simulation(dt=DT)


def environment_state(simulation, name="joint_q"):
    """Return the state of every environment, whichever world it is in."""
    kind = "joint_coord" if name == "joint_q" else "joint_dof"
    start = getattr(simulation.model, f"{kind}_world_start").numpy()
    values = getattr(simulation.state, name).numpy()
    return [values[start[world] : start[world + 1]] for world in simulation.environment_world.numpy()]


OBJECTS = {
    "box": box_builder(),
    "ball": ball_builder(0.08),
    "meshes": mesh_spec(0, 2),
    "mesh": mesh_spec(1, 1, 0.1),
}


def test_tables_and_prepared_worlds_give_the_same_bits():
    """An environment is the same whether numbers were copied into its world or it went to another world."""
    tables, worlds = make(OBJECTS, 12), make(OBJECTS, 12, share_layouts=False)
    assert tables.model.world_count == 12
    assert worlds.model.world_count == 48
    for _ in range(4):
        for simulation in (tables, worlds):
            simulation.reassign([1, 3, 4, 10])
            simulation.step(25)
        mine, theirs = (simulation.world_to_variant["object"].numpy() for simulation in (tables, worlds))
        np.testing.assert_array_equal(mine, theirs)
        for name in ("joint_q", "joint_qd"):
            np.testing.assert_array_equal(
                np.concatenate(environment_state(tables, name)),
                np.concatenate(environment_state(worlds, name)),
            )


def test_a_draw_depends_on_nothing_but_seed_environment_and_episode():
    """Environment 5 draws the same in batches of 8 and 64, alone or with others; another seed differs."""
    small, large = make(OBJECTS, 8), make(OBJECTS, 64)
    other = make(OBJECTS, 64, seed=1)
    history = {}
    for name, simulation, chosen in (("small", small, [5]), ("large", large, None), ("other", other, None)):
        drawn = []
        for _ in range(12):
            simulation.reassign(chosen)
            drawn.append(simulation.world_to_variant["object"].numpy().copy())
        history[name] = np.array(drawn)
    np.testing.assert_array_equal(history["small"][:, 5], history["large"][:, 5])
    np.testing.assert_array_equal(history["small"][:, 4], history["small"][0, 4])
    assert (history["large"] != history["other"]).mean() > 0.5
    assert small.episode.numpy().tolist() == [0, 0, 0, 0, 0, 12, 0, 0]


def test_draws_follow_the_weights():
    """Of 64 x 200 draws, each variant gets its share, within four standard deviations of a binomial."""
    simulation = make(OBJECTS, 64, assignment={"ball": 3.0, "mesh": 0.0})
    counts = np.zeros(4)
    for _ in range(200):
        simulation.reassign()
        counts += np.bincount(simulation.world_to_variant["object"].numpy(), minlength=4)
    total = counts.sum()
    share = np.array([0.2, 0.6, 0.2, 0.0])
    assert (np.abs(counts - share * total) <= 4.0 * np.sqrt(share * (1.0 - share) * total)).all()


def test_a_recorded_reassignment_goes_on_without_leak_or_drift():
    """Masked reassignment inside a recorded loop equals calls made one by one; each begins anew."""
    variants = {"box": box_builder(), "ball": ball_builder(), "pile": pile_builder(2), "arm": arm_builder(2)}
    recorded, called = make(variants, 6), make(variants, 6)
    mask = wp.zeros(6, dtype=wp.bool, device="cpu")
    for simulation in (recorded, called):
        simulation.reassign(mask)
        simulation.step(2)
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        recorded.reassign(mask)
    rng = np.random.default_rng(0)
    beginnings = {}
    for _ in range(40):
        chosen = rng.random(6) < 0.5
        mask.assign(chosen)
        wp.capture_launch(capture.graph)
        called.reassign(chosen)
        for environment in np.flatnonzero(chosen):
            variant = int(recorded.world_to_variant["object"].numpy()[environment])
            state = environment_state(recorded)[environment]
            beginning = beginnings.setdefault(variant, state.copy())
            np.testing.assert_array_equal(state, beginning)
        for simulation in (recorded, called):
            simulation.step(4)
        for mine, theirs in zip(environment_state(recorded), environment_state(called), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert len(beginnings) == 4
    assert recorded.report().frozen_worlds == ()


def test_environments_take_the_variants_they_are_given():
    """Variants may be named instead of drawn, from the host or the device; others keep theirs."""
    simulation = make(OBJECTS, 4)
    simulation.reassign([0, 2], variants={"object": [3, 0, 1, 0]})
    assert simulation.world_to_variant["object"].numpy().tolist() == [3, 1, 1, 3]
    wanted = wp.array([9, 2, -1, 0], dtype=int, device="cpu")  # what names no variant changes nothing
    simulation.reassign(variants={"object": wanted})
    assert simulation.world_to_variant["object"].numpy().tolist() == [3, 2, 1, 0]
    with pytest.raises(ValueError, match="environment 1 is to hold variant 4 of 'object'"):
        simulation.reassign(variants={"object": [0, 4, 0, 0]})
    with pytest.raises(ValueError, match="one int32 index for each of the 4 environments"):
        simulation.reassign(variants={"object": [0, 1]})
    with pytest.raises(KeyError, match="'arm' is no entity with variants"):
        simulation.reassign(variants={"arm": [0, 0, 0, 0]})
    with pytest.raises(IndexError, match="world 4 does not exist"):
        simulation.reassign([4])


def test_a_variant_without_prepared_worlds_is_named():
    simulation = make({"box": box_builder(), "pile": pile_builder(2)}, 2, assignment={"pile": 0.0})
    with pytest.raises(ValueError, match="variant 'pile' of 'object', for which no worlds were prepared"):
        simulation.reassign(variants={"object": [0, 1]})


def test_reset_puts_environments_back_to_their_own_variant():
    """A reset environment begins again as its variant does; the others go on."""
    simulation = make({"ball": ball_builder(), "pile": pile_builder(2)}, 6)
    simulation.reassign(variants={"object": [1, 0, 1, 0, 1, 0]})
    first = [state.copy() for state in environment_state(simulation)]
    simulation.step(20)
    moved = [state.copy() for state in environment_state(simulation)]
    simulation.reset([0, 3])
    for environment, state in enumerate(environment_state(simulation)):
        np.testing.assert_array_equal(state, (first if environment in (0, 3) else moved)[environment])


def test_drives_get_the_targets_of_the_new_variant():
    """An arm with new targets does not pass them on."""
    low, high = arm_builder(2, stiffness=50.0), arm_builder(2, stiffness=50.0)
    low.joint_target_pos[:] = -0.5
    high.joint_target_pos[:] = 0.5
    simulation = make({"low": low, "high": high}, 2, assignment=lambda n: [0, 1])
    simulation.control.joint_target_pos.fill_(9.0)
    simulation.reassign([0], variants={"object": [1, 1]})
    assert simulation.control.joint_target_pos.numpy().tolist() == [0.5, 0.5, 9.0, 9.0]
    simulation.step(300)
    np.testing.assert_allclose(environment_state(simulation)[0], 0.5, atol=0.2)


def test_fixed_scenes_say_how_to_become_reassignable():
    entity = VariantEntityCfg(variants={"box": box_builder(), "ball": ball_builder()})
    simulation = make_scene(SceneCfg(num_envs=2, entities={"object": entity}), device="cpu").simulation(dt=DT)
    with pytest.raises(RuntimeError, match=r"SceneCfg\(reassignable=True\)"):
        simulation.reassign()


@pytest.mark.parametrize("share_layouts", [True, False])
def test_a_snapshot_brings_back_who_held_what(tmp_path, share_layouts):
    """After a restore, from memory or a file, the next episodes are the same bits, draws included."""
    variants = {"box": box_builder(), "ball": ball_builder(), "pile": pile_builder(2)}
    simulation = make(variants, 6, share_layouts=share_layouts)
    other = make(variants, 6, share_layouts=share_layouts)
    randomizer = Randomizer(simulation, [friction(Uniform(0.2, 1.0))])
    simulation.reassign()
    randomizer.apply()
    simulation.step(5)
    snapshot = simulation.save(tmp_path / "snapshot.npz")
    defaults = simulation.per_world_default_fields["body_mass"].numpy().copy()

    def go_on(one):
        one.step(5)
        one.reassign([0, 3])
        one.step(10)
        held = one.world_to_variant["object"].numpy().tolist()
        return held, np.concatenate(environment_state(one))

    held, state = go_on(simulation)
    for one, source in ((simulation, snapshot), (other, tmp_path / "snapshot.npz")):
        one.restore(source)
        np.testing.assert_array_equal(one.per_world_default_fields["body_mass"].numpy(), defaults)
        again = go_on(one)
        assert again[0] == held
        np.testing.assert_array_equal(again[1], state)
    alone = make({"box": box_builder()}, 6)
    with pytest.raises(ValueError, match="another structure"):
        alone.restore(snapshot)
