"""Variants and randomization in MuJoCo: the same environments, stepped by the other solver."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.randomization import PseudoInertia, Randomizer, Uniform, gravity
from pluriverse.solvers.mujoco import SolverMuJoCo
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene
from tests.variants.environment_state import environment_state
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
# Positions [m] are rounded to single precision after each step, and forty steps hardly spread that.
SHARED_ROUNDING = 5e-6


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


def test_fixed_scenes_share_layouts_too():
    """Without changes at reset nothing is followed, and each world has the numbers of its variant."""
    entity = VariantEntityCfg(variants=VARIANTS)
    scene = make_scene(SceneCfg(num_envs=len(VARIANTS), entities={"object": entity}), device="cpu")
    simulation = scene.simulation(dt=DT, solver=SolverMuJoCo(scene.model))
    assert len(simulation.solver.groups) == 3
    simulation.step(40)
    for environment, asset in enumerate(VARIANTS.values()):
        model = alone(asset)
        reference = pv.Simulation(model, SolverMuJoCo(model), dt=DT)
        reference.step(40)
        np.testing.assert_allclose(
            environment_state(simulation, environment),
            reference.state.joint_q.numpy(),
            rtol=0.0,
            atol=SHARED_ROUNDING,
        )


def test_contacts_of_the_pipeline_and_of_mujoco_warp_know_who_holds_what():
    """Other ways to find contacts, and to step, agree with the C engine after variants were changed."""
    pytest.importorskip("mujoco_warp")
    few = {name: VARIANTS[name] for name in ("box", "large_box", "ball")}
    scenes = []
    for _ in range(3):
        config = SceneCfg(num_envs=3, entities={"object": VariantEntityCfg(variants=few)}, reassignable=True)
        scenes.append(make_scene(config, device="cpu"))
    options = ({}, {"use_mujoco_contacts": False}, {"use_mujoco_cpu": False})
    height = []
    for scene, option in zip(scenes, options, strict=True):
        simulation = scene.simulation(dt=DT, solver=SolverMuJoCo(scene.model, **option))
        simulation.reassign(variants={"object": [1, 2, 0]})
        # It stands on the ground by then.
        simulation.step(80)
        assert simulation.report().contact_count_mean > 0.0
        height.append([environment_state(simulation, environment)[2] for environment in range(3)])
    # One contact more or less of a box, found by another rule, tilts it by less than this.
    np.testing.assert_allclose(height[1:], [height[0]] * 2, atol=1e-3)
    assert len({round(float(value), 2) for value in height[0]}) == 3


def test_what_is_drawn_acts_in_mujoco():
    """Boxes in free fall follow the gravity of their world, whatever they weigh: z = g dt² n (n + 1) / 2."""
    builder = pv.ModelBuilder()
    box = pv.ModelBuilder()
    box.add_shape_box(box.add_body(label="box"), hx=0.1, hy=0.2, hz=0.3)
    builder.replicate(box, 8)
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, SolverMuJoCo(model), dt=DT)
    terms = [gravity(Uniform(-3.0, 3.0)), PseudoInertia(alpha=Uniform(-0.5, 0.5), d=Uniform(-0.2, 0.2))]
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
