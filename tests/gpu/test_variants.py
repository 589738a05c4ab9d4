"""Variants and randomization on a GPU: the draws of the CPU, recorded, world by world."""

import numpy as np
import pytest
import warp as wp

from pluriverse.randomization import (
    InitialState,
    Operation,
    PseudoInertia,
    Randomizer,
    Uniform,
    friction,
    gravity,
    joint_armature,
)
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene
from tests.variants.objects import arm_builder, ball_builder, box_builder, mesh_spec

pytestmark = pytest.mark.gpu

DT = 0.005
OBJECTS = {
    "box": box_builder(),
    "ball": ball_builder(0.08),
    "mesh": mesh_spec(1, 1, 0.1),
    "arm": arm_builder(2),
}
ENVIRONMENT_COUNT = 32


def make_simulation(device: str):
    entity = VariantEntityCfg(variants=OBJECTS)
    config = SceneCfg(num_envs=ENVIRONMENT_COUNT, entities={"object": entity}, reassignable=True)
    return make_scene(config, device=device).simulation(dt=DT)


def test_environments_draw_what_they_draw_on_the_cpu(device: str):
    """A recorded reassignment gives every environment the variant of its seed and episode, ready to move."""
    simulations = []
    for place in ("cpu", device):
        simulation = make_simulation(place)
        mask = wp.zeros(ENVIRONMENT_COUNT, dtype=wp.bool, device=place)
        simulation.reassign(mask)
        simulation.step(2)
        with wp.ScopedCapture(device=place, force_module_load=False) as capture:
            simulation.reassign(mask)
        for episode in range(6):
            mask.assign(np.arange(ENVIRONMENT_COUNT) % (episode + 1) == 0)
            wp.capture_launch(capture.graph)
            simulation.step(8)
        simulations.append(simulation)
    cpu, gpu = simulations
    np.testing.assert_array_equal(gpu.episode.numpy(), cpu.episode.numpy())
    np.testing.assert_array_equal(
        gpu.world_to_variant["object"].numpy(), cpu.world_to_variant["object"].numpy()
    )
    assert len(np.unique(cpu.world_to_variant["object"].numpy())) == len(OBJECTS)
    np.testing.assert_array_equal(gpu.environment_world.numpy(), cpu.environment_world.numpy())
    # Forty steps, fused products and the first contacts apart.
    np.testing.assert_allclose(gpu.state.joint_q.numpy(), cpu.state.joint_q.numpy(), rtol=0, atol=2e-4)


def test_drawn_properties_are_those_of_the_cpu(device: str):
    """Masses, friction, armatures, gravity and initial states: equal draws, up to float32 functions."""
    terms = [
        PseudoInertia(alpha=Uniform(-0.2, 0.2), d=Uniform(-0.1, 0.1)),
        friction(Uniform(0.3, 1.2)),
        joint_armature(Uniform(0.5, 2.0), operation=Operation.SCALE),
        gravity(Uniform(-0.5, 0.5)),
        InitialState(joint_position=Uniform(-0.1, 0.1)),
    ]
    models = []
    for place in ("cpu", device):
        simulation = make_simulation(place)
        randomizer = Randomizer(simulation.model, terms, seed=3)
        for _ in range(3):
            randomizer.apply()
        models.append(simulation.model)
    names = (
        "body_mass",
        "body_inertia",
        "body_com",
        "shape_material_mu",
        "joint_armature",
        "gravity",
        "joint_q",
    )
    for name in names:
        cpu, gpu = (getattr(model, name).numpy() for model in models)
        np.testing.assert_allclose(gpu, cpu, rtol=1e-5, atol=1e-6, err_msg=name)
