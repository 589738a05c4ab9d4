"""Shared worlds: environments take free worlds of a pool, with the same results as in their own."""

import numpy as np
import pytest
import warp as wp

from pluriverse.randomization import PseudoInertia, Randomizer, Uniform, friction
from pluriverse.solvers import SolverSAP
from pluriverse.solvers.mujoco import SolverMuJoCo
from pluriverse.variants import PreparedWorlds, SceneCfg, VariantEntityCfg, make_scene
from pluriverse.variants.pool import MISS_PROBABILITY, shared_counts
from pluriverse.warnings import SimulationError
from tests.variants.environment_state import environment_state
from tests.variants.objects import arm_builder, ball_builder, box_builder, pile_builder

DT = 0.005
SOLVERS = pytest.mark.parametrize("solver", [SolverSAP, SolverMuJoCo])
VARIANTS = {
    "box": box_builder(),
    "ball": ball_builder(0.08),
    "pile": pile_builder(2),
    "tower": pile_builder(3),
    "arm": arm_builder(2, stiffness=20.0),
}


def make(prepared, count=6, *, solver=SolverSAP, assignment=None, strict=False):
    entity = VariantEntityCfg(variants=VARIANTS, assignment=assignment)
    config = SceneCfg(
        num_envs=count, entities={"object": entity}, reassignable=True, prepared_worlds=prepared, seed=2
    )
    scene = make_scene(config, device="cpu")
    return scene.simulation(dt=DT, solver=solver(scene.model), strict=strict)


def assert_pool_is_sound(simulation):
    """Every world is held by one environment or free, and environments are in worlds of their kind."""
    pool, kinds = simulation._switching.pool, len(simulation.scene.tuples)
    first, free = pool.first.numpy(), pool.free_count.numpy()
    held = simulation.environment_world.numpy()
    waiting = [pool.free_world.numpy()[first[kind] : first[kind] + free[kind]] for kind in range(kinds)]
    everything = np.concatenate([held, *waiting])
    assert np.array_equal(np.sort(everything), np.arange(simulation.model.world_count))
    kind_of_world = np.searchsorted(first, held, side="right") - 1
    np.testing.assert_array_equal(kind_of_world, simulation._switching.environment_tuple.numpy())
    for place, (name, entity) in enumerate(simulation.scene.entities.items()):
        layouts = entity.layout_of[simulation.world_to_variant[name].numpy()]
        expected = [simulation.scene.tuples[kind][place] for kind in kind_of_world]
        np.testing.assert_array_equal(layouts, expected)


@SOLVERS
def test_shared_worlds_give_the_bits_of_own_worlds(solver):
    """In a recorded loop, with draws of properties, every environment is as with worlds for itself.

    What was drawn for the environment that had a world before is gone.
    """
    own, shared = make(PreparedWorlds.OWN, solver=solver), make(PreparedWorlds.SHARED, solver=solver)
    terms = [friction(Uniform(0.2, 1.0)), PseudoInertia(alpha=Uniform(-0.3, 0.3))]
    randomizers = [Randomizer(each, terms, seed=5) for each in (own, shared)]
    mask = wp.zeros(6, dtype=wp.bool, device="cpu")
    for each in (own, shared):
        each.reassign(mask)
        each.step(1)
    graphs = []
    for each, randomizer in zip((own, shared), randomizers, strict=True):
        with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
            randomizer.restore(mask)
            each.reassign(mask)
        graphs.append(capture.graph)
    rng = np.random.default_rng(0)
    for episode in range(30):
        mask.assign(rng.random(6) < 0.6)
        for each, randomizer, graph in zip((own, shared), randomizers, graphs, strict=True):
            wp.capture_launch(graph)
            if episode % 3 == 0:
                randomizer.apply(mask)
            each.step(3)
        np.testing.assert_array_equal(*(each.world_to_variant["object"].numpy() for each in (own, shared)))
        for environment in range(6):
            np.testing.assert_array_equal(
                environment_state(own, environment), environment_state(shared, environment)
            )
        assert_pool_is_sound(shared)
    assert not shared.fallback_count.numpy().any()
    assert shared.report().frozen_worlds == ()


def test_as_many_worlds_are_prepared_as_draws_need():
    """The count of each kind is a quantile of the binomial distribution, far from one per environment."""
    simulation = make(PreparedWorlds.SHARED, 300, assignment={"tower": 0.1, "arm": 0.0})
    counts = np.diff(simulation.scene.tuple_first)
    chance = np.array([2.0, 1.0, 0.1]) / 3.1
    spread = np.sqrt(300 * chance * (1.0 - chance))
    assert (counts > 300 * chance + 6.0 * spread).all()
    assert (counts < 300 * chance + 9.0 * spread + 15.0).all()
    for _ in range(50):
        simulation.reassign()
    assert_pool_is_sound(simulation)
    assert not simulation.fallback_count.numpy().any()
    assert shared_counts(np.array([1e-15, 1.0]), 10, np.array([0, 3])).tolist() == [1, 10]
    assert MISS_PROBABILITY < 1e-9


def test_where_no_world_is_free_the_environment_gets_another_kind():
    """More environments ask for towers than worlds were prepared: it is counted, and warned of once."""
    simulation = make(PreparedWorlds.SHARED, 300, assignment={"tower": 0.01})
    prepared = int(np.diff(simulation.scene.tuple_first)[2])
    simulation.reassign(variants={"object": [3] * 300})
    held = simulation.world_to_variant["object"].numpy()
    assert (held == 3).sum() == prepared < 300
    assert (held[:prepared] == 3).all()  # the first to come
    np.testing.assert_array_equal(simulation.fallback_count.numpy(), held != 3)
    assert_pool_is_sound(simulation)
    simulation.step(2)
    with pytest.warns(UserWarning, match=rf"{300 - prepared} time\(s\) an environment got another variant"):
        simulation.report()
    strict = make(PreparedWorlds.SHARED, 300, assignment={"tower": 0.01}, strict=True)
    strict.reassign(variants={"object": [3] * 300})
    with pytest.raises(SimulationError, match="all prepared worlds of its layouts were taken"):
        strict.report()
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        simulation.reassign(variants={"object": wp.zeros(300, dtype=int, device="cpu")})
    wp.capture_launch(capture.graph)
    assert (simulation.world_to_variant["object"].numpy() == 0).sum() > 100
    assert_pool_is_sound(simulation)


def test_several_entities_make_kinds_together():
    """Worlds are prepared for combinations of layouts, as often as these are drawn."""
    entities = {
        "object": VariantEntityCfg(variants=VARIANTS, assignment={"tower": 0.2}),
        "tool": VariantEntityCfg(variants={"box": box_builder(label="tool"), "arm": arm_builder(1)}),
    }
    config = SceneCfg(
        num_envs=200, entities=entities, reassignable=True, prepared_worlds=PreparedWorlds.SHARED
    )
    simulation = make_scene(config, device="cpu").simulation(dt=DT)
    assert len(simulation.scene.tuples) == 8
    assert simulation.model.world_count < 4 * 200
    for _ in range(20):
        simulation.reassign(np.arange(0, 200, 3))
        assert_pool_is_sound(simulation)
    assert not simulation.fallback_count.numpy().any()
    simulation.reassign([7], variants={"tool": [1] * 200})
    assert_pool_is_sound(simulation)


def test_an_environment_named_twice_takes_one_world():
    simulation = make(PreparedWorlds.SHARED)
    for _ in range(5):
        simulation.reassign(wp.array([1, 4, 1, 1, -1, 9], dtype=int, device="cpu"))
        assert_pool_is_sound(simulation)


@SOLVERS
def test_a_snapshot_holds_which_worlds_are_free(tmp_path, solver):
    """After a restore, from memory or a file, environments take the same worlds and have the same bits."""
    simulation = make(PreparedWorlds.SHARED, solver=solver)
    simulation.reassign()
    simulation.step(3)
    snapshot = simulation.save(tmp_path / "snapshot.npz")

    def go_on(one):
        for _ in range(3):
            one.reassign([0, 2, 5])
            one.step(2)
        return [environment_state(one, environment).copy() for environment in range(6)]

    first, other = go_on(simulation), make(PreparedWorlds.SHARED, solver=solver)
    for one, source in ((simulation, snapshot), (other, tmp_path / "snapshot.npz")):
        one.restore(source)
        assert_pool_is_sound(one)
        for mine, before in zip(go_on(one), first, strict=True):
            np.testing.assert_array_equal(mine, before)
