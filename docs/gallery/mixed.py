"""Worlds of five kinds in one batch: the scene `mixed` after 1.2 s, a world of each kind side by side.

`python docs/gallery/mixed.py` writes docs/gallery/mixed.jpg.
"""

import argparse
from pathlib import Path

import warp as wp

import pluriverse as pv

HERE = Path(__file__).resolve().parent


def main() -> None:
    """Simulate, then draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--width", type=int, default=1400, help="of the picture [pixel]")
    parser.add_argument("--samples", type=int, default=32, help="rays per pixel")
    parser.add_argument("--seconds", type=float, default=1.2, help="of simulation")
    parser.add_argument("--output", type=Path, default=HERE / "mixed.jpg", help="the picture")
    options = parser.parse_args()
    scene = pv.load_scene("mixed", num_worlds=5)
    simulation = scene.simulation()
    scene.play(simulation, round(options.seconds / (simulation.dt * simulation.decimation)))
    first = [scene.kind_of_world.index(kind) for kind in range(len(scene.kind_names))]
    pv.draw(
        simulation,
        worlds=first,
        path=options.output,
        size=(options.width, round(0.5 * options.width)),
        samples=options.samples,
        azimuth=-1.2,
    )


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
