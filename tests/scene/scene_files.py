"""Scene files for tests."""

from pathlib import Path
from textwrap import dedent

from pluriverse.scene import LoadedScene, load_scene

BOX = """
bodies:
  - id: box
    transform: {p: [0, 0, 1], q: identity}
    shapes: [{type: box, hx: 0.5, hy: 0.5, hz: 0.5}]
joints:
  - {id: box_free, type: free, child: box}
"""

CHAIN = """
bodies:
  - {id: upper, shapes: [{type: box, hx: 0.1, hy: 0.1, hz: 0.2}]}
  - {id: lower, shapes: [{type: sphere, radius: 0.1}]}
  - {id: tool, shapes: [{type: capsule, radius: 0.05, half_height: 0.1}]}
joints:
  - {id: shoulder, type: revolute, parent: world, child: upper, axis: y, label: arm/shoulder}
  - {id: slide, type: prismatic, parent: upper, child: lower, axis: z, label: arm/slide}
  - {id: wrist, type: revolute, parent: lower, child: tool, axis: x, label: arm/left/wrist}
"""


def write_scene(folder: Path, text: str, name: str = "scene.yaml") -> Path:
    """Write a scene file and return its path."""
    path = folder / name
    path.write_text(dedent(text), encoding="utf-8")
    return path


def load_text(folder: Path, text: str, **options: object) -> LoadedScene:
    """Write a scene and load it on the CPU."""
    return load_scene(write_scene(folder, text), device="cpu", **options)
