"""Variants and randomization in MuJoCo: the same environments, stepped by the other solver."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.randomization import Randomizer, Uniform, gravity, pseudo_inertia
from pluriverse.solvers.mujoco import SolverMuJoCo
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene
from tests.variants.objects import arm_builder, ball_builder, box_builder, mesh_spec, pile_builder

DT = 0.005
VARIANTS = {
    "box": box_builder(),
    "ball": ball_builder(0.08),
    "pile": pile_builder(2),
    "arm": arm_builder(2, stiffness=20.0),
    "meshes": mesh_spec(0, 2),
}


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


def test_reassigned_environments_move_as_their_variant_does_alone():
    """After some changes, MuJoCo gives each environment the bits of its variant in a world alone."""
    entity = VariantEntityCfg(variants=VARIANTS)
    scene = make_scene(
        SceneCfg(num_envs=6, entities={"object": entity}, reassignable=True, share_layouts=False),
        device="cpu",
    )
    simulation = scene.simulation(dt=DT, solver=SolverMuJoCo(scene.model))
    simulation.step(10)
    for _ in range(3):
        simulation.reassign([0, 2, 3, 5])
        simulation.step(40)
    start = scene.model.joint_coord_world_start.numpy()
    references = {}
    for environment in (0, 2, 3, 5):
        variant = list(VARIANTS)[int(simulation.world_to_variant["object"].numpy()[environment])]
        if variant not in references:
            model = alone(VARIANTS[variant])
            references[variant] = pv.Simulation(model, SolverMuJoCo(model), dt=DT)
            references[variant].step(40)
        world = int(simulation.environment_world.numpy()[environment])
        np.testing.assert_array_equal(
            simulation.state.joint_q.numpy()[start[world] : start[world + 1]],
            references[variant].state.joint_q.numpy(),
        )
    assert len(references) > 1


def test_shared_layouts_are_refused():
    """MuJoCo compiles shapes in: that a slot is off or has another mesh would be lost, so it is an error."""
    entity = VariantEntityCfg(variants={"box": box_builder(), "ball": ball_builder()})
    scene = make_scene(SceneCfg(num_envs=2, entities={"object": entity}), device="cpu")
    with pytest.raises(ValueError, match=r"SceneCfg\(share_layouts=False\)"):
        scene.simulation(dt=DT, solver=SolverMuJoCo(scene.model))


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
    capture = wp.ScopedCapture(device="cpu", force_module_load=False)
    with capture, pytest.raises(RuntimeError, match="cannot be recorded"):
        randomizer.apply()
