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
# Robots taller or flatter than this do not go well with others [m].
SIZES = (0.12, 2.6)


def robot_files() -> list[Path]:
    """Return the URDF files of the package, one of each robot and its variants."""
    files = importlib.metadata.files("example-robot-data") or []
    return sorted(Path(str(file.locate())).resolve() for file in files if file.suffix == ".urdf")


def load(path: Path) -> pv.ModelBuilder | None:
    """Return a builder of one robot, None where it has nothing to show or is of another size."""
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
    size = np.ptp(poses[:, :3], axis=0).max()
    return builder if SIZES[0] < size < SIZES[1] else None


def main(count: int, path: Path, width: int, height: int, samples: int) -> None:
    """Draw up to `count` robots."""
    warnings.simplefilter("ignore")
    scene = pv.ModelBuilder()
    for file in robot_files():
        if scene.world_count < count and (robot := load(file)) is not None:
            scene.add_world(robot)
    model = scene.finalize()
    print(model)
    worlds = np.random.default_rng(7).permutation(model.world_count).tolist()
    pv.draw(
        model, worlds=worlds, path=path, size=(width, height), samples=samples, spacing=1.7, elevation=0.5
    )


if __name__ == "__main__":
    numbers = [int(argument) for argument in sys.argv[1:]] or [100, 1600, 900, 8]
    main(numbers[0], HERE / "robots.jpg", *numbers[1:])
