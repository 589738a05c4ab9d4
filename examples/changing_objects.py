"""Another object at every reset.

Each environment holds a box, a ball or two boxes; when an episode ends, it draws another one, of other mass.
"""

import argparse

import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse.randomization import PseudoInertia, Randomizer, Uniform, friction
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene

DT = 0.005  # s
EPISODE = 50  # steps
ENVIRONMENTS = 6
IDENTITY = (0.0, 0.0, 0.0, 1.0)


def boxes(count: int) -> pv.ModelBuilder:
    """Return some boxes, one above the other."""
    builder = pv.ModelBuilder()
    for number in range(count):
        body = builder.add_body(xform=((0.0, 0.0, 0.15 + 0.25 * number), IDENTITY))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    return builder


def ball() -> pv.ModelBuilder:
    """Return a ball."""
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(xform=((0.0, 0.0, 0.15), IDENTITY)), radius=0.1)
    return builder


def main() -> None:
    """Run some episodes and print what the environments held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=200, help="number of steps")
    parser.add_argument("--solver", choices=("sap", "mujoco"), default="sap")
    arguments = parser.parse_args()

    variants = {"box": lambda: boxes(1), "ball": ball, "two boxes": lambda: boxes(2)}
    entity = VariantEntityCfg(variants=variants, assignment={"ball": 2.0})
    scene = make_scene(SceneCfg(num_envs=ENVIRONMENTS, entities={"object": entity}, reassignable=True))
    solver = pv.SolverSAP if arguments.solver == "sap" else pv.SolverMuJoCo
    simulation = scene.simulation(dt=DT, solver=solver(scene.model))
    randomizer = Randomizer(
        simulation, [PseudoInertia(alpha=Uniform(-0.2, 0.2)), friction(Uniform(0.4, 1.2))], seed=1
    )
    print(scene.model)

    names = scene.variant_names("object")
    # All environments end at once here; a task passes a mask, one truth value per environment.
    done = wp.array(np.ones(ENVIRONMENTS, dtype=bool), dtype=bool, device=scene.model.device)
    for episode in range(max(1, arguments.frames // EPISODE)):
        simulation.reassign(done)
        randomizer.apply(done)
        simulation.step(EPISODE)
        held = [names[variant] for variant in simulation.world_to_variant["object"].numpy()]
        print(f"episode {episode}: {', '.join(held)}")
    print(f"frozen worlds: {len(simulation.report().frozen_worlds)}")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
