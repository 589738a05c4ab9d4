"""Calls that read a simulation (tensors, sensors, recordings, pictures, rays), and those that make shapes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pluriverse as pv
from pluriverse import Simulation, geometry
from pluriverse.recording import RecordedRun, RecordingWriter
from pluriverse.render import RayCaster
from pluriverse.sensors import CameraSensor, RaySensor, grid_pattern, lidar_pattern
from tests.campaign import values as wrong
from tests.campaign.target import Target
from tests.reliability.scenes import make_boxes

SIZE = wrong.one_of((0, 4), (-1, 4), (4,), "x", 3, (2**40, 2**40), (wrong.NAN, 4), None, wrong.Stranger)
RATE = wrong.one_of(0.0, -1.0, wrong.NAN, wrong.INF, "x", None, wrong.Stranger)
COUNT = wrong.one_of(0, -1, 1.5, wrong.NAN, "x", wrong.Stranger, -(2**70))
LENGTH = wrong.one_of(-1.0, wrong.NAN, "x", wrong.Stranger)
WORLDS = wrong.one_of([-1], [99], [2**40], [1.5], ["a"], "x", wrong.Stranger, 10**6, -1)


def reading_targets(folder: Path) -> Iterator[Target]:
    """Yield the calls that read a simulation."""
    model = make_boxes(hinge=True)
    simulation = Simulation(model, dt=0.005, threads=1)
    yield Target(
        "Simulation.tensors",
        simulation.tensors,
        {"pattern": lambda: "*"},
        {
            "pattern": wrong.one_of("nothing*", 3.5, None, [], wrong.Stranger, [30], 10**6),
            "joints": wrong.one_of("nothing", 3.5, wrong.Stranger, ["zz"]),
            "bodies": wrong.one_of("nothing", 3.5, wrong.Stranger, ["zz"]),
            "feet": wrong.one_of("nothing", 3.5, wrong.Stranger, ["zz"]),
            "worlds": WORLDS,
            "contact_threshold": LENGTH,
        },
        simulation=simulation,
    )
    picture = {"size": lambda: (8, 6), "samples": lambda: 1}
    yield Target(
        "draw",
        lambda **options: pv.draw(simulation, **options),
        picture,
        {
            "size": SIZE,
            "samples": COUNT,
            "worlds": WORLDS,
            "geometry": wrong.one_of("x", 3, wrong.Stranger, None),
            "spacing": wrong.one_of(wrong.NAN, "x", wrong.Stranger),
            "azimuth": wrong.one_of(wrong.NAN, "x", wrong.Stranger),
            "elevation": wrong.one_of(wrong.NAN, "x", wrong.Stranger),
            "camera": wrong.one_of("x", 3, wrong.Stranger),
            "style": wrong.one_of("x", 3, wrong.Stranger),
            "state": wrong.one_of("x", 3, wrong.Stranger, make_boxes(1, box_count=3).state),
            "path": wrong.one_of("/nowhere/at/all.png", 3.5, wrong.Stranger, "/", "a\0b", "picture.nothing"),
        },
        simulation=simulation,
    )
    yield Target(
        "Simulation.recorder",
        simulation.recorder,
        {},
        {"worlds": WORLDS, "fps": RATE, "speed": RATE, "geometry": wrong.one_of("x", 3, wrong.Stranger)},
        simulation=simulation,
    )

    def record(path: Any, **options: Any) -> None:
        with RecordingWriter(simulation, path, **options):
            simulation.step()

    place = folder / "run.pvr"
    yield Target(
        "RecordingWriter",
        record,
        {"path": lambda: place},
        {
            "path": wrong.one_of("/nowhere/at/all.pvr", 3.5, None, wrong.Stranger, "/", "a\0b", ""),
            "worlds": WORLDS,
            "fps": RATE,
        },
        simulation=simulation,
    )
    record(place)
    with RecordedRun(place) as run:
        frames = run.frame_count
    yield Target("RecordedRun", RecordedRun, {"path": lambda: place}, {"path": wrong.FILE})

    def show(frame: Any, name: Any) -> None:
        with RecordedRun(place) as run:
            run.show_frame(frame)
            run.array(name)

    yield Target(
        "RecordedRun.show_frame",
        show,
        {"frame": lambda: 0, "name": lambda: "body_q"},
        {
            "frame": wrong.one_of(frames, -frames - 1, 2**70, 1.5, wrong.NAN, "x", None, wrong.Stranger),
            "name": wrong.one_of("x", 3, None, wrong.Stranger, ""),
        },
    )
    caster = RayCaster(model)
    right = np.zeros((1, 3)), np.array([[0.0, 0.0, -1.0]])
    vectors = wrong.one_of(
        np.zeros((1, 2)), np.full((1, 3), wrong.NAN), "x", None, wrong.Stranger, np.zeros((7, 3, 3))
    )
    yield Target(
        "RayCaster.cast",
        caster.cast,
        {"worlds": lambda: [0], "origins": lambda: right[0], "directions": lambda: right[1]},
        {
            "worlds": wrong.one_of([-1], [99], [2**40], ["a"], "x", wrong.Stranger, [0, 1, 2, 0, 1]),
            "origins": vectors,
            "directions": wrong.either(vectors, wrong.one_of(np.zeros((1, 3)))),
            "max_distance": LENGTH,
        },
    )
    yield Target(
        "RaySensor",
        lambda rays, bodies, **options: RaySensor(model, rays, bodies=bodies, **options),
        {"rays": lambda: right, "bodies": lambda: "*"},
        {
            "rays": wrong.one_of(None, 3, "x", (right[0],), (right[0], np.zeros((1, 3))), wrong.Stranger),
            "bodies": wrong.one_of("nothing*", 3.5, None, [], wrong.Stranger, 10**6),
            "xform": wrong.POSE,
            "alignment": wrong.one_of("x", 3.5, wrong.Stranger, 99),
            "visibility": wrong.one_of("x", 3.5, wrong.Stranger, 99),
            "max_distance": wrong.one_of(-1.0, 0.0, wrong.NAN, "x", wrong.Stranger),
        },
    )
    yield Target(
        "CameraSensor",
        lambda **options: CameraSensor(model, **options),
        {"bodies": lambda: "*", "width": lambda: 8, "height": lambda: 6, "fov": lambda: 1.0},
        {
            "bodies": wrong.one_of("nothing*", 3.5, [], wrong.Stranger, 10**6),
            "width": COUNT,
            "height": COUNT,
            "fov": wrong.one_of(0.0, -1.0, 4.0, wrong.NAN, wrong.INF, "x", wrong.Stranger),
            "outputs": wrong.one_of(["x"], 3, [wrong.Stranger()], [None]),
            "near": LENGTH,
            "far": wrong.one_of(-1.0, 0.0, wrong.NAN, "x", wrong.Stranger),
            "samples": COUNT,
            "xform": wrong.POSE,
        },
    )
    yield Target(
        "grid_pattern",
        grid_pattern,
        {"size": lambda: (1.0, 1.0), "resolution": lambda: 0.5},
        {
            "size": wrong.one_of((-1.0, 1.0), (1.0,), (wrong.NAN, 1.0), "x", 3, (1e30, 1e30), wrong.Stranger),
            "resolution": wrong.one_of(0.0, -1.0, wrong.NAN, "x", 1e-30, wrong.Stranger),
            "direction": wrong.one_of((0.0, 0.0, 0.0), (wrong.NAN, 0.0, 1.0), (1.0,), "x", wrong.Stranger),
        },
    )
    angles = wrong.one_of((wrong.NAN, 1.0), (1.0,), "x", 3, wrong.Stranger)
    yield Target(
        "lidar_pattern",
        lidar_pattern,
        {"channels": lambda: 2, "columns": lambda: 4},
        {"channels": COUNT, "columns": COUNT, "vertical": angles, "horizontal": angles},
    )


def shape_targets(folder: Path) -> Iterator[Target]:
    """Yield the calls that make meshes, height fields and appearances."""
    corners = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
    yield Target(
        "Mesh",
        lambda vertices, indices, **options: pv.Mesh(vertices, indices, **options),
        {"vertices": lambda: corners, "indices": lambda: faces},
        {
            "vertices": wrong.one_of(
                np.full((4, 3), wrong.NAN), np.full((4, 3), wrong.INF), np.zeros((4, 2)), "x", None,
                np.full((4, 3), 1e300), np.zeros((0, 3)), wrong.Stranger, 3,
            ),
            "indices": wrong.one_of(
                faces + 4, faces - 1, faces + 0.5, faces + 2**32, faces[:, :2], "x", None, wrong.Stranger,
                np.zeros((0, 3), dtype=int), faces * 2**40,
            ),
            "color": wrong.one_of((1.0,), (wrong.NAN, 0.0, 0.0), (7.0, 0.0, 0.0), "x", 3, wrong.Stranger),
        },
    )  # fmt: skip
    heights = np.zeros((3, 3))
    yield Target(
        "Heightfield",
        pv.Heightfield,
        {"data": lambda: heights, "nrow": lambda: 3, "ncol": lambda: 3},
        {
            "data": wrong.one_of(
                np.full((3, 3), wrong.NAN), np.zeros(4), "x", None, wrong.Stranger, np.full((3, 3), 1e300)
            ),
            "nrow": wrong.one_of(1, 0, -3, 4, 1.5, "x", None, 2**40, wrong.Stranger),
            "ncol": wrong.one_of(1, 0, -3, 4, 1.5, "x", None, 2**40, wrong.Stranger),
            "hx": wrong.one_of(0.0, -1.0, wrong.NAN, wrong.INF, "x", None, wrong.Stranger),
            "hy": wrong.one_of(0.0, -1.0, wrong.NAN, wrong.INF, "x", None, wrong.Stranger),
        },
    )
    for name in ("stairs_terrain", "random_uniform_terrain", "sloped_terrain", "wave_terrain"):
        yield Target(
            f"geometry.{name}",
            getattr(geometry, name),
            {"size": lambda: (2.0, 2.0)},
            {
                "size": wrong.one_of(
                    (0.0, 2.0), (-1.0, 2.0), (2.0,), (wrong.NAN, 1.0), (1e30, 1e30), "x", 3, wrong.Stranger
                ),
                "resolution": wrong.one_of(0.0, -1.0, wrong.NAN, 1e-30, "x", wrong.Stranger),
            },
        )
    yield Target(
        "Texture",
        geometry.Texture,
        {"pixels": lambda: np.zeros((2, 2, 3), dtype=np.uint8)},
        {
            "pixels": wrong.one_of(
                np.zeros(4), np.zeros((2, 2, 7)), np.full((2, 2), wrong.NAN), np.full((2, 2), 300), "x", None,
                np.zeros((0, 0, 3)), np.full((2, 2), -1), wrong.Stranger,
            ),
            "mapping": wrong.one_of("x", 3, None, wrong.Stranger),
        },
    )  # fmt: skip
    share = wrong.one_of(-0.1, 1.1, wrong.NAN, wrong.INF, "x", None, wrong.Stranger)
    yield Target(
        "Appearance",
        geometry.Appearance,
        {},
        {
            "texture": wrong.one_of("x", 3, wrong.Stranger),
            "texture_repeat": wrong.one_of((1.0,), (wrong.NAN, 1.0), "x", 3, wrong.Stranger),
            "alpha": share,
            "specular": share,
            "shininess": share,
            "emission": wrong.one_of(-0.1, wrong.NAN, wrong.INF, "x", None, wrong.Stranger),
        },
    )
    yield Target(
        "load_scene",
        lambda path, **options: pv.load_scene(path, **{"device": "cpu", **options}),
        {"path": lambda: "cartpole"},
        {
            "path": wrong.one_of("no such scene", "", 3.5, None, wrong.Stranger, "/", "a\0b", str(folder)),
            "num_worlds": wrong.one_of(0, -1, 1.5, wrong.NAN, "x", wrong.Stranger, 2**62),
            "spacing": wrong.one_of((1.0,), (wrong.NAN, 0.0, 0.0), "x", 3, (1e300, 0.0, 0.0), wrong.Stranger),
            "device": wrong.one_of("x", 3.5, wrong.Stranger, "cuda:99"),
            "asset_roots": wrong.one_of(3, [3.5], [wrong.Stranger()]),
        },
    )
