"""Worlds of five kinds in one batch: the scene `mixed` after 1.2 s, a world of each kind side by side.

`python docs/gallery/mixed.py` writes docs/gallery/mixed.jpg.
"""

from pathlib import Path

import pluriverse as pv

scene = pv.load_scene("mixed", num_worlds=5)
simulation = scene.simulation()
scene.play(simulation, round(1.2 / (simulation.dt * simulation.decimation)))
first = [scene.kind_of_world.index(kind) for kind in range(len(scene.kind_names))]
pv.draw(
    simulation,
    worlds=first,
    path=Path(__file__).resolve().parent / "mixed.jpg",
    size=(900, 500),
    samples=6,
    azimuth=-1.2,
)
