"""Many different robots in one batch: those of the package example-robot-data, each in its own world.

`python docs/gallery/robots.py` writes docs/gallery/robots.jpg. Needs `pip install example-robot-data`.
"""

import importlib.metadata
import sys
import warnings
from pathlib import Path

import numpy as np

import pluriverse as pv
from pluriverse.render import VisualModel

HERE = Path(__file__).resolve().parent
# Smaller and larger robots do not go well with others [m].
SIZES = (0.3, 2.6)


def robot_files() -> list[Path]:
    """Return the URDF files of the package, one of each robot and its variants."""
    files = importlib.metadata.files("example-robot-data") or []
    return sorted(Path(str(file.locate())).resolve() for file in files if file.suffix == ".urdf")


def load(path: Path) -> tuple[float, pv.ModelBuilder] | None:
    """Return the height and a builder of one robot, None where it shows nothing or is of another size."""
    robots = next(folder for folder in path.parents if folder.name == "robots")
    builder = pv.ModelBuilder()
    try:
        builder.add_urdf(path, package_dirs=[robots.parent.parent, robots.parent, robots])
        model = builder.finalize("cpu")
    except ValueError as error:
        print(f"{path.name}: {str(error).splitlines()[0][:100]}", file=sys.stderr)
        return None
    visual = VisualModel(model)
    shapes = visual.shapes_of()
    if not len(shapes):
        return None
    poses = visual.poses(model.body_q.numpy(), shapes)
    size = np.ptp(poses[:, :3], axis=0)
    return (float(size[2]), builder) if SIZES[0] < size.max() < SIZES[1] else None


def main(count: int, path: Path, width: int, height: int, samples: int) -> None:
    """Draw up to `count` robots."""
    warnings.simplefilter("ignore")
    robots: list[tuple[float, pv.ModelBuilder]] = []
    for file in robot_files():
        if len(robots) < count and (robot := load(file)) is not None:
            robots.append(robot)
    scene = pv.ModelBuilder()
    for _, builder in sorted(robots, key=lambda robot: robot[0]):  # the low ones in front
        scene.add_world(builder)
    model = scene.finalize()
    print(model)
    worlds = list(range(model.world_count))
    view = {"azimuth": -1.75, "elevation": 0.36, "spacing": 1.15}
    pv.draw(model, worlds=worlds, path=path, size=(width, height), samples=samples, **view)


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]] or [100, 1200, 600, 8]
    main(numbers[0], HERE / "robots.jpg", *numbers[1:])
