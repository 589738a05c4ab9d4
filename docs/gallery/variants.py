"""Environments that change what they hold: eight objects of four kinds fall, then each is another one.

`python docs/gallery/variants.py` writes docs/gallery/variants.gif, by way of a recording.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory

import warp as wp

import pluriverse as pv
from pluriverse.recording import RecordedRun
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene

HERE = Path(__file__).resolve().parent
HEIGHT = 1.0  # m
ORANGE, BLUE, GREEN, RED = (0.95, 0.6, 0.2), (0.25, 0.5, 0.85), (0.35, 0.7, 0.4), (0.85, 0.3, 0.25)


def thing(kind: str) -> pv.ModelBuilder:
    """Return a builder of one object."""
    builder = pv.ModelBuilder()
    turn = (0.19, 0.12, 0.06, 0.97)
    body = builder.add_body(xform=(0.0, 0.0, HEIGHT, *turn))
    if kind == "ball":
        builder.add_shape_sphere(body, radius=0.25, color=ORANGE)
    elif kind == "box":
        builder.add_shape_box(body, hx=0.3, hy=0.2, hz=0.15, color=BLUE)
    elif kind == "can":
        builder.add_shape_cylinder(body, radius=0.15, half_height=0.3, color=GREEN)
    else:
        for x, y in ((-0.25, 0.0), (0.25, 0.0), (0.0, 0.25)):
            builder.add_shape_capsule(
                body, xform=(x, y, 0.0, 0.0, 0.0, 0.0, 1.0), radius=0.08, half_height=0.2, color=RED
            )
        builder.add_shape_box(body, hx=0.35, hy=0.35, hz=0.05, color=RED)
    return builder


def main() -> None:
    """Let them fall, and film the recording."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--width", type=int, default=480, help="of the film [pixel]")
    parser.add_argument("--samples", type=int, default=4, help="rays per pixel")
    parser.add_argument("--fps", type=float, default=15.0, help="frames per second")
    parser.add_argument("--seconds", type=float, default=1.0, help="between two changes")
    parser.add_argument("--output", type=Path, default=HERE / "variants.gif", help="the film")
    options = parser.parse_args()
    kinds = ("ball", "box", "can", "stool")
    things = VariantEntityCfg(
        variants={kind: thing(kind) for kind in kinds},
        assignment=lambda count: [environment % len(kinds) for environment in range(count)],
    )
    scene = make_scene(SceneCfg(num_envs=8, entities={"thing": things}, reassignable=True))
    with TemporaryDirectory() as folder, scene.simulation(dt=0.005) as simulation:
        file = Path(folder) / "run.pvr"
        with simulation.record(file, fps=options.fps):
            for shift in range(3):
                chosen = [(environment + shift) % len(kinds) for environment in range(8)]
                simulation.reassign(variants={"thing": chosen})
                simulation.reset(range(8))
                simulation.step(round(options.seconds / simulation.dt))
        with RecordedRun(file) as recording:
            film = recording.film(list(range(8)))
            size = (options.width, options.width // 2)
            film.save(options.output, size=size, samples=options.samples, elevation=0.5, spacing=1.4)


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
