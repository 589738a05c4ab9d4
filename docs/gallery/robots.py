"""Many different robots in one batch, each in a world of its own, scaled to one size.

They are those of packages of PyPI that bring robots along. `python docs/gallery/robots.py` writes
docs/gallery/robots.jpg, of those packages that are installed:

    pip install example-robot-data dm_control gymnasium
    pip install --no-deps robosuite robosuite-models gymnasium-robotics mani-skill gym-aloha rtb-data \
        upkie-description reachy-mini
"""

import argparse
import importlib.metadata
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image

import pluriverse as pv
from pluriverse.types import GeoType, ShapeFlags

HERE = Path(__file__).resolve().parent
# Files whose longest side is not in between hold no robot, or a robot and its hall [m].
SIZES = (0.1, 4.5)
# Longest side of each in the picture, distance in a row on average, and free floor between rows [m].
SIZE, PITCH, GAP = 1.0, 0.85, 0.3
# Robots look along x; turned by so much [rad] they look past the camera, which shows more than a side.
YAW = -0.9
# Which files of each package hold a robot.
ROBOT_FILES = {
    "example-robot-data": r"\.urdf$",
    "dm_control": r"suite/(cheetah|dog|humanoid|humanoid_CMU)\.xml$|jaco_arm\.xml$|assets/rodent\.xml$",
    "gymnasium": r"mujoco/assets/(ant|hopper|swimmer|walker2d_v5|pusher_v5)\.xml$",
    "robosuite": r"assets/robots/\w+/robot\.xml$"
    r"|grippers/(panda|rethink|robotiq|xarm7|jaco|inspire_right|fourier_right)\w*\.xml$",
    "robosuite-models": r"assets/robots/[\w/]+\.xml$",
    "gymnasium-robotics": r"assets/(hand|fetch)/reach\.xml$|adroit_hand/adroit_relocate\.xml$",
    "mani-skill": r"assets/robots/[^.]*\.urdf$",
    "gym-aloha": r"assets/(vx300s_left|bimanual_viperx_transfer_cube)\.xml$",
    "rtb-data": r"\.urdf$",
    "upkie-description": r"\.urdf$",
    "reachy-mini": r"\.urdf$",
}
# Furniture, parts of robots, pendulums and sticks, and versions of a robot that look like another one.
LEFT_OUT = re.compile(
    r"double_pendulum|TwoDofs|stage|table|_(simple|box|simplified\w*|floating|left|fsr\w*|\w*glb)\.urdf$|"
    r"fingeredu|urdf/pro/|simple_humanoid|swimmer|irb140QT|fetch/reach"
)


@dataclass
class Robot:
    """One robot, its longest side before it was scaled, and the box around it since [m]."""

    name: str
    builder: pv.ModelBuilder
    true_size: float
    lower: np.ndarray
    upper: np.ndarray

    @property
    def size(self) -> np.ndarray:
        """Sides of that box [m]."""
        return self.upper - self.lower


def robot_files() -> Iterator[Path]:
    """Yield the files of all packages that are installed."""
    for package, pattern in ROBOT_FILES.items():
        try:
            files = importlib.metadata.files(package) or []
        except importlib.metadata.PackageNotFoundError:
            print(f"{package} is not installed", file=sys.stderr)
            continue
        names = sorted(str(file) for file in files if re.search(pattern, str(file)))
        for file in (name for name in names if not LEFT_OUT.search(name)):
            yield Path(str(importlib.metadata.distribution(package).locate_file(file))).resolve()


def package_dirs(path: Path) -> list[Path]:
    """Return the folders in which `package://name` of a file may lie."""
    return [
        folder for folder in path.parents if "site-packages" in str(folder.parent) or len(folder.parts) > 4
    ]


def hide_scenery(builder: pv.ModelBuilder) -> None:
    """Hide floors and walls that a file brings along."""
    for shape, kind in enumerate(builder.shape_type):
        scale = np.asarray(builder.shape_scale[shape], dtype=float)
        is_wide = kind == GeoType.BOX and scale.max() > 1.5
        if kind == GeoType.PLANE or (builder.shape_body[shape] < 0 and is_wide):
            builder.shape_flags[shape] &= ~int(ShapeFlags.VISIBLE)


def read(path: Path, scale: float) -> pv.ModelBuilder:
    """Return a builder of the robot of a file, all lengths times a factor."""
    builder = pv.ModelBuilder()
    if path.suffix == ".urdf":
        builder.add_urdf(path, package_dirs=package_dirs(path), scale=scale)
    else:
        builder.add_mjcf(path, scale=scale)
    hide_scenery(builder)
    return builder


def load(path: Path) -> Robot | None:
    """Return a robot, scaled to `SIZE`; None where it cannot be read, or shows nothing or far too much."""
    try:
        lower, upper = box_of(read(path, 1.0).finalize("cpu"))
        size = float((upper - lower).max())
        if not SIZES[0] < size < SIZES[1]:
            print(f"{path.name}: {size:.3g} m", file=sys.stderr)
            return None
        builder = read(path, SIZE / size)
    except (ValueError, OSError) as error:
        print(f"{path.name}: {str(error).splitlines()[0][:150]}", file=sys.stderr)
        return None
    name = path.stem if path.stem not in ("robot", "reach") else path.parent.name
    return Robot(name, builder, size, lower * SIZE / size, upper * SIZE / size)


def box_of(model: pv.Model) -> tuple[np.ndarray, np.ndarray]:
    """Return the corners of the box around what is seen of a model, turned by `YAW` [m]."""
    from pluriverse.render import VisualModel

    visual = VisualModel(model)
    shapes = visual.shapes_of()
    if not len(shapes):
        return np.zeros(3), np.zeros(3)
    low, high = model.shape_aabb_lower.numpy()[shapes], model.shape_aabb_upper.numpy()[shapes]
    poses = visual.poses(model.body_q.numpy(), shapes).astype(float)
    corner = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)])
    local = (low[:, None] + corner * (high - low)[:, None]).astype(float)
    axis, real = poses[:, None, 3:6], poses[:, None, 6:]
    twice = 2.0 * np.cross(axis, local)
    points = poses[:, None, :3] + local + real * twice + np.cross(axis, twice)
    cosine, sine = np.cos(YAW), np.sin(YAW)
    points = points @ np.array([[cosine, sine, 0.0], [-sine, cosine, 0.0], [0.0, 0.0, 1.0]])
    return points.min(axis=(0, 1)), points.max(axis=(0, 1))


def different(robots: list[Robot]) -> list[Robot]:
    """Return robots of which no two are of one size with as many bodies and joints."""
    chosen: dict[tuple[object, ...], Robot] = {}
    for robot in robots:
        key = (robot.builder.body_count, *np.round(robot.size * robot.true_size, 2).tolist())
        chosen.setdefault(key, robot)
    return list(chosen.values())


def places(robots: list[Robot], columns: int) -> list[np.ndarray]:
    """Return where each robot stands [m]: in full rows, each as deep as its robots are."""
    middle: list[np.ndarray] = []
    y = 0.0
    for first in range(0, len(robots), columns):
        row = robots[first : first + columns]
        depth = GAP + max(robot.size[1] for robot in row)
        widths = np.array([robot.size[0] for robot in row])
        # Narrow robots get some of the room that wide ones leave, so that rows are of one width.
        gap = (columns * PITCH - widths.sum()) / len(row)
        ends = np.cumsum(widths + gap)
        x = ends - 0.5 * (widths + gap)
        middle += [np.array([place, y + 0.5 * depth, 0.0]) for place in x]
        y += depth
    return middle


def main() -> None:
    """Draw the robots."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=1000, help="robots at most")
    parser.add_argument("--columns", type=int, default=20, help="robots in a row")
    parser.add_argument("--width", type=int, default=1600, help="of the picture [pixel]")
    parser.add_argument("--samples", type=int, default=16, help="rays per pixel")
    parser.add_argument("--output", type=Path, default=HERE / "robots.jpg", help="the picture")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    robots: list[Robot] = []
    for file in robot_files():
        if len(robots) < options.count and (robot := load(file)) is not None:
            robots = different([*robots, robot])
    if not robots:
        sys.exit("robots.py: no robots. Run: pip install example-robot-data dm_control gymnasium")
    columns = min(options.columns, len(robots))
    del robots[len(robots) // columns * columns :]  # full rows only
    robots.sort(key=lambda robot: robot.size[2])  # the low ones in front
    scene = pv.ModelBuilder()
    for robot, place in zip(robots, places(robots, columns), strict=True):
        centre = 0.5 * (robot.lower + robot.upper)
        shift = place - np.array([centre[0], centre[1], robot.lower[2]])
        turn = (0.0, 0.0, float(np.sin(0.5 * YAW)), float(np.cos(0.5 * YAW)))
        scene.add_world(robot.builder, xform=(*shift.tolist(), *turn))
    model = scene.finalize()
    print(f"{len(robots)} robots: {', '.join(robot.name for robot in robots)}")
    print(model)
    width = round(options.width / 0.86)  # the edges are empty floor
    height = round(0.5 * width)
    picture = pv.draw(
        model,
        worlds=list(range(model.world_count)),
        size=(width, height),
        samples=options.samples,
        azimuth=-0.5 * np.pi,
        elevation=0.75,
        spacing=0.0,
    )
    left = (width - options.width) // 2
    rows = slice(round(0.185 * height), round(0.765 * height))
    Image.fromarray(picture[rows, left : left + options.width]).save(options.output, quality=88)


if __name__ == "__main__":
    main()
