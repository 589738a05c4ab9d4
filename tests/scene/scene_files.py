"""Scene files for tests."""

from collections.abc import Iterator
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

# The smallest scene that says everything a scene usually says.
SINGLE_BOX = """
schema_version: 1
name: single_box
simulation:
  dt: 0.003
  num_worlds: 1
  max_rigid_contact: 64
  solver:
    contact_preset_variant: approx32
    line_search_variant: monotone_decay
builder:
  rigid_gap: 0.002
  defaults:
    shape: {density: 1000.0, ke: 1000000.0, tau: 0.01, mu: 0.5}
ground:
  enabled: true
  label: DEFAULT_GROUND
bodies:
  - id: box
    mass: 1.0
    transform: {p: [0.0, 0.0, 1.0], q: identity}
    shapes: [{type: box, hx: 0.5, hy: 0.5, hz: 0.5}]
joints:
  - {id: box_free, type: free, parent: world, child: box}
articulations:
  - {id: box_articulation, joints: [box_free]}
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


def places(value: object, path: tuple = ()) -> Iterator[tuple]:
    """Yield the path of every value below a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from places(below, (*path, key))
