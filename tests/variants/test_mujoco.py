"""Variants and randomization in MuJoCo: the same environments, stepped by the other solver."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.randomization import Randomizer, Uniform, friction, gravity, pseudo_inertia
from pluriverse.solvers.mujoco import SolverMuJoCo
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene
from tests.variants.objects import arm_builder, ball_builder, box_builder, mesh_spec, pile_builder

DT = 0.005
VARIANTS = {
    "box": box_builder(),
    "large_box": box_builder(0.2),
    "ball": ball_builder(0.08),
    "pile": pile_builder(2),
    "arm": arm_builder(2, stiffness=20.0),
    "soft_arm": arm_builder(2, stiffness=10.0),
    "meshes": mesh_spec(0, 2),
    "mesh": mesh_spec(1, 1, 0.1),
}
FEW_VARIANTS = {name: VARIANTS[name] for name in ("box", "ball", "pile", "mesh")}
# Positions [m] are rounded to single precision after each step, and forty steps hardly spread that.
SHARED_ROUNDING = 1e-6


def alone(asset):
    world = pv.ModelBuilder()
    if isinstance(asset, pv.ModelBuilder):
        world.add_builder(asset)
    else:
        world.add_mjcf(asset)
    builder = pv.ModelBuilder()
    builder.add_world(world)
    builder.add_ground_plane()
    return builder.finalize("cpu")


def make(share_layouts, count=6, variants=VARIANTS):
    entity = VariantEntityCfg(variants=variants)
    scene = make_scene(
        SceneCfg(num_envs=count, entities={"object": entity}, reassignable=True, share_layouts=share_layouts),
        device="cpu",
    )
    return scene.simulation(dt=DT, solver=SolverMuJoCo(scene.model))


def environment_state(simulation, environment):
    """Return the coordinates of an environment, whichever world it is in."""
    start = simulation.model.joint_coord_world_start.numpy()
    world = int(simulation.environment_world.numpy()[environment])
    return simulation.state.joint_q.numpy()[start[world] : start[world + 1]]


@pytest.mark.parametrize("share_layouts", [True, False])
def test_reassigned_environments_move_as_their_variant_does_alone(share_layouts):
    """After some changes, MuJoCo gives each environment what it gives its variant in a world alone.

    With worlds of their own, these are the same bits. In a shared layout the general formulas for poses stand
    in for shortcuts, and geoms that are off lie in between, so sums round otherwise.
    """
    simulation = make(share_layouts)
    assert simulation.model.world_count == (18 if share_layouts else 48)
    simulation.step(10)
    for _ in range(3):
        simulation.reassign([0, 2, 3, 5])
        simulation.step(40)
    references = {}
    for environment in (0, 2, 3, 5):
        variant = list(VARIANTS)[int(simulation.world_to_variant["object"].numpy()[environment])]
        if variant not in references:
            model = alone(VARIANTS[variant])
            references[variant] = pv.Simulation(model, SolverMuJoCo(model), dt=DT)
            references[variant].step(40)
        mine = environment_state(simulation, environment)
        expected = references[variant].state.joint_q.numpy()
        np.testing.assert_allclose(mine, expected, rtol=0.0, atol=SHARED_ROUNDING if share_layouts else 0.0)
    assert len(references) > 2


def test_fields_of_a_variant_are_those_of_its_own_compile():
    """Masses, inverse weights, bounds and meshes of each environment are those of its variant alone."""
    simulation = make(True)
    variants = list(VARIANTS)
    for _ in range(3):
        simulation.reassign()
        solver = simulation.solver
        for world in simulation.environment_world.numpy().tolist():
            environment = world % simulation.environment_count
            variant = variants[int(simulation.world_to_variant["object"].numpy()[environment])]
            reference = SolverMuJoCo(alone(VARIANTS[variant])).groups[0]
            group = solver.groups[solver.world_group[world]]
            row = int(solver.world_row[world])
            on = group.value("geom_contype")[row] + group.value("geom_conaffinity")[row] > 0
            for name in ("body_mass", "body_inertia", "body_invweight0", "dof_invweight0", "jnt_solref"):
                np.testing.assert_allclose(
                    group.value(name)[row], reference.value(name)[0], rtol=1e-9, atol=1e-12, err_msg=name
                )
            for name in ("geom_size", "geom_rbound", "geom_aabb", "geom_pos", "geom_friction"):
                mine, expected = group.value(name)[row][on], reference.value(name)[0]
                np.testing.assert_allclose(
                    mine.reshape(expected.shape), expected, rtol=1e-6, atol=1e-7, err_msg=name
                )


def test_recorded_episodes_go_on_without_leak_or_drift():
    """Ten thousand episodes in a recording are those of calls one by one, each from the same beginning.

    Variants change by tables and by worlds, mass and friction are drawn, and MuJoCo derives what follows.
    """
    count, replays = 10, 1000
    recorded, called = make(True, count, FEW_VARIANTS), make(True, count, FEW_VARIANTS)
    randomizers = [
        Randomizer(each, [friction(Uniform(0.4, 0.9)), pseudo_inertia(alpha=Uniform(-0.2, 0.2))], seed=3)
        for each in (recorded, called)
    ]

    def episode(simulation, randomizer):
        simulation.reassign()
        randomizer.apply()

    for simulation, randomizer in zip((recorded, called), randomizers, strict=True):
        episode(simulation, randomizer)
        simulation.step(1)
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        episode(recorded, randomizers[0])
    beginnings = {}
    for replay in range(replays):
        wp.capture_launch(capture.graph)
        held = recorded.world_to_variant["object"].numpy()
        for environment in range(count):
            state = environment_state(recorded, environment)
            beginning = beginnings.setdefault(int(held[environment]), state.copy())
            np.testing.assert_array_equal(state, beginning)
        recorded.step(1)
        if replay < 20:
            episode(called, randomizers[1])
            called.step(1)
            for environment in range(count):
                np.testing.assert_array_equal(
                    environment_state(recorded, environment), environment_state(called, environment)
                )
    assert recorded.episode.numpy().tolist() == [replays + 1] * count
    assert len(beginnings) == len(FEW_VARIANTS)
    assert recorded.report().frozen_worlds == ()
    # What is drawn last does not remember what was drawn before: the same draws on a fresh simulation.
    fresh = make(True, count, FEW_VARIANTS)
    randomizer = Randomizer(
        fresh, [friction(Uniform(0.4, 0.9)), pseudo_inertia(alpha=Uniform(-0.2, 0.2))], seed=3
    )
    fresh.episode.fill_(replays)
    randomizer.episode.fill_(replays)
    episode(fresh, randomizer)
    for environment in range(count):
        worlds = [int(each.environment_world.numpy()[environment]) for each in (recorded, fresh)]
        assert worlds[0] == worlds[1]
        mine, other = (each.solver.groups[each.solver.world_group[worlds[0]]] for each in (recorded, fresh))
        row = int(fresh.solver.world_row[worlds[0]])
        for name in mine.fields:
            np.testing.assert_array_equal(mine.value(name)[row], other.value(name)[row], err_msg=name)


def test_what_is_drawn_acts_in_mujoco():
    """Boxes in free fall follow the gravity of their world, whatever they weigh: z = g dt² n (n + 1) / 2."""
    builder = pv.ModelBuilder()
    box = pv.ModelBuilder()
    box.add_shape_box(box.add_body(label="box"), hx=0.1, hy=0.2, hz=0.3)
    builder.replicate(box, 8)
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, SolverMuJoCo(model), dt=DT)
    terms = [gravity(Uniform(-3.0, 3.0)), pseudo_inertia(alpha=Uniform(-0.5, 0.5), d=Uniform(-0.2, 0.2))]
    randomizer = Randomizer(simulation, terms)
    for _ in range(3):
        randomizer.apply()
        simulation.reset()
        simulation.step(40)
        expected = model.gravity.numpy() * DT**2 * 40 * 41 / 2
        np.testing.assert_allclose(simulation.state.body_q.numpy()[:, :3], expected, rtol=1e-5)
    assert len(np.unique(model.body_mass.numpy())) == 8
    masses = np.array([group.value("body_mass")[:, 1] for group in simulation.solver.groups]).reshape(-1)
    np.testing.assert_allclose(masses, model.body_mass.numpy(), rtol=1e-6)
