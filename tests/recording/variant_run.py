"""A recorded run of two environments, the second of which changes its variant halfway."""

from pathlib import Path

import numpy as np

import pluriverse as pv
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene


def balls(count: int) -> pv.ModelBuilder:
    """Return some balls side by side."""
    builder = pv.ModelBuilder()
    for index in range(count):
        builder.add_shape_sphere(builder.add_body(xform=(index, 0, 1, 0, 0, 0, 1)), radius=0.1)
    return builder


def record_variant_run(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Record one and two balls, then one and one.

    Returns:
        The worlds that the environments end in, and the poses of the bodies of the second one at the end.
    """
    entity = VariantEntityCfg(variants={"one": balls(1), "two": balls(2)}, assignment=lambda _: [0, 1])
    scene = make_scene(SceneCfg(num_envs=2, entities={"thing": entity}, reassignable=True))
    with scene.simulation(dt=0.01, threads=1) as simulation, simulation.record(path, fps=10):
        simulation.step(10)
        simulation.reassign(variants={"thing": [0, 0]})
        simulation.reset()
        simulation.step(10)
        worlds = simulation.environment_world.numpy()
        bodies = simulation.model.body_world.numpy() == worlds[1]
        return worlds, simulation.state.body_q.numpy()[bodies]
