"""Loops: three linkages that draw curves, each closed by joints, driven by one crank.

A four-bar linkage, whose coupler draws a closed curve; a slider-crank; and the straight-line linkage of
Peaucellier and Lipkin, whose pen draws a straight line by hinges alone. A first simulation finds the curves,
a second one is filmed in front of them. `python docs/gallery/loops.py` writes docs/gallery/loops.gif.
"""

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import pluriverse as pv
from pluriverse.recording.moment import rotated

HERE = Path(__file__).resolve().parent
DT = 0.005  # s
PERIOD = 3.0  # s
WIDTH, THICKNESS = 0.022, 0.012  # m, half of a bar across and along the hinges
LAYER = 0.03  # m between bars that pass each other
SPACING = (0.0, 0.95, 2.3)  # m, where the three stand
ORANGE, BLUE, GRAY, GREEN, DARK = (
    (0.95, 0.55, 0.15),
    (0.2, 0.45, 0.8),
    (0.7, 0.72, 0.75),
    (0.3, 0.65, 0.4),
    (0.2, 0.2, 0.25),
)
PEN_COLOR = (0.85, 0.2, 0.2)


class Linkage:
    """Bars between points of the xy plane, each with its frame at its first point, unturned, at the start."""

    def __init__(self) -> None:
        self.builder = pv.ModelBuilder(gravity=(0.0, -9.81, 0.0))
        self.start: dict[int, np.ndarray] = {}
        self.tree: list[int] = []

    def bar(self, start: np.ndarray, end: np.ndarray, layer: int, color: tuple[float, float, float]) -> int:
        """Add a bar between two points [m] and return its body, with its frame at the start."""
        body = self.builder.add_link(xform=(*start, 0.0, 0.0, 0.0, 0.0, 1.0))
        self.start[body] = start
        self.strut(body, np.zeros(2), end - start, layer, color)
        return body

    def strut(
        self, body: int, start: np.ndarray, end: np.ndarray, layer: int, color: tuple[float, float, float]
    ) -> None:
        """Add a straight piece to a bar, between two points of its frame [m]."""
        along = end - start
        angle = np.arctan2(along[1], along[0])
        middle = 0.5 * (start + end)
        turn = (0.0, 0.0, np.sin(0.5 * angle), np.cos(0.5 * angle))
        free = pv.ShapeConfig(has_shape_collision=False, density=2700.0)
        half = 0.5 * float(np.linalg.norm(along))
        size = {"hx": half, "hy": WIDTH, "hz": THICKNESS}
        self.builder.add_shape_box(body, xform=(*middle, layer * LAYER, *turn), cfg=free, color=color, **size)
        for point in (start, end):
            place = (*point, layer * LAYER, 0.0, 0.0, 0.0, 1.0)
            self.builder.add_shape_cylinder(
                body, xform=place, radius=WIDTH, half_height=THICKNESS, cfg=free, color=color
            )
            self.builder.add_shape_cylinder(
                body, xform=place, radius=0.4 * WIDTH, half_height=2.2 * THICKNESS, cfg=free, color=DARK
            )

    def hinge(self, parent: int, child: int, point: np.ndarray, **options: Any) -> None:
        """Hinge two bars at a point [m]; the first hinge of a bar makes the tree, others close loops."""
        is_tree = not any(child == self.builder.joint_child[joint] for joint in self.tree)
        frames = [
            (*(point - self.start.get(body, np.zeros(2))), 0.0, 0.0, 0.0, 0.0, 1.0)
            for body in (parent, child)
        ]
        joint = self.builder.add_joint_revolute(
            parent, child, axis="z", parent_xform=frames[0], child_xform=frames[1], **options
        )
        if is_tree:
            self.tree.append(joint)

    def finish(self) -> pv.ModelBuilder:
        """Return the world, with the tree as an articulation."""
        self.builder.add_articulation(self.tree)
        return self.builder


def meeting(a: np.ndarray, b: np.ndarray, from_a: float, from_b: float, side: float) -> np.ndarray:
    """Return the point at two distances from two others [m], left of the way from a to b if side > 0."""
    way = b - a
    distance = float(np.linalg.norm(way))
    along = (from_a**2 - from_b**2 + distance**2) / (2.0 * distance)
    across = np.sqrt(from_a**2 - along**2)
    unit = way / distance
    return a + along * unit + side * across * np.array([-unit[1], unit[0]])


DRIVE = {"label": "drive", "target_ke": 5.0e3, "target_kd": 2.0e2, "effort_limit": 1.0e5}


def four_bar() -> tuple[pv.ModelBuilder, int, np.ndarray]:
    """Return a crank-rocker, the body of its coupler and the pen in its frame [m]."""
    linkage = Linkage()
    ground, other = np.array([0.0, 0.0]), np.array([0.42, 0.0])
    elbow = np.array([0.0, 0.16])
    joint = meeting(elbow, other, 0.42, 0.36, 1.0)
    crank = linkage.bar(ground, elbow, 0, ORANGE)
    coupler = linkage.bar(elbow, joint, 1, BLUE)
    rocker = linkage.bar(other, joint, 0, GRAY)
    way = joint - elbow
    pen = 0.5 * way + 0.6 * np.array([-way[1], way[0]])
    for point in (np.zeros(2), way):
        linkage.strut(coupler, point, pen, 1, BLUE)
    linkage.hinge(-1, crank, ground, **DRIVE)
    linkage.hinge(crank, coupler, elbow)
    linkage.hinge(-1, rocker, other)
    linkage.hinge(coupler, rocker, joint)
    return linkage.finish(), coupler, pen


def slider_crank() -> tuple[pv.ModelBuilder, int, np.ndarray]:
    """Return a crank, a rod and a piston; the middle of the rod draws an oval."""
    linkage = Linkage()
    axis, elbow, pin = np.zeros(2), np.array([0.0, 0.16]), np.array([np.sqrt(0.5**2 - 0.16**2), 0.0])
    crank = linkage.bar(axis, elbow, 0, ORANGE)
    rod = linkage.bar(elbow, pin, 1, BLUE)
    piston = linkage.builder.add_link(xform=(*pin, 0.0, 0.0, 0.0, 0.0, 1.0))
    linkage.start[piston] = pin
    solid = pv.ShapeConfig(has_shape_collision=False, density=2700.0)
    linkage.builder.add_shape_box(piston, hx=0.07, hy=0.05, hz=THICKNESS, cfg=solid, color=GREEN)
    rail = pv.ShapeConfig(has_shape_collision=False)
    for y in (-0.065, 0.065):
        place = (pin[0], y, 0.0, 0.0, 0.0, 0.0, 1.0)
        linkage.builder.add_shape_box(-1, xform=place, hx=0.3, hy=0.012, hz=THICKNESS, cfg=rail, color=DARK)
    linkage.hinge(-1, crank, axis, **DRIVE)
    linkage.hinge(crank, rod, elbow)
    linkage.hinge(rod, piston, pin)
    builder = linkage.finish()
    builder.add_joint_prismatic(-1, piston, axis="x", parent_xform=(*pin, 0.0, 0.0, 0.0, 0.0, 1.0))
    return builder, rod, 0.5 * (pin - elbow)


def straight_line() -> tuple[pv.ModelBuilder, int, np.ndarray]:
    """Return the linkage of Peaucellier and Lipkin: a rhombus on two equal arms, a corner on a circle.

    The far corner is the inverse of the near one in a circle about the pivot of the arms, and the near one
    runs on a circle through that pivot, so the far one runs on a straight line.
    """
    linkage = Linkage()
    arm, side, radius = 0.56, 0.26, 0.2
    pivot, axis = np.zeros(2), np.array([radius, 0.0])
    near = axis + np.array([radius, 0.0])
    upper, lower = (meeting(pivot, near, arm, side, sign) for sign in (1.0, -1.0))
    far = upper + lower - near
    crank = linkage.bar(axis, near, 0, ORANGE)
    arms = [linkage.bar(pivot, corner, 2, GRAY) for corner in (upper, lower)]
    sides = [linkage.bar(near, corner, 1, BLUE) for corner in (upper, lower)]
    outer = [linkage.bar(corner, far, layer, GREEN) for corner, layer in ((upper, 0), (lower, 1))]
    linkage.hinge(-1, crank, axis, **DRIVE)
    for body in arms:
        linkage.hinge(-1, body, pivot)
    for body, corner, end in zip(arms, (upper, lower), outer, strict=True):
        linkage.hinge(body, end, corner)
    for body in sides:
        linkage.hinge(crank, body, near)
    # What closes the three loops.
    for body, corner, end in zip(arms, (upper, lower), sides, strict=True):
        linkage.hinge(body, end, corner)
    linkage.hinge(outer[0], outer[1], far)
    return linkage.finish(), outer[0], far - upper


def crank_angles(time: float) -> list[float]:
    """Return how far the three cranks have turned [rad]: two go round, the third to and fro."""
    turn = 2.0 * np.pi * time / PERIOD
    return [turn, turn, 1.1 * np.sin(turn)]


def run(
    model: pv.Model, pens: list[tuple[int, np.ndarray]], seconds: float, recorder_fps: float | None
) -> tuple:
    """Return the ways of the pens [m], shape [step, world, 3], and the film if one was asked for."""
    simulation = pv.Simulation(model, dt=DT)
    recorder = None if recorder_fps is None else simulation.recorder(worlds=range(3), fps=recorder_fps)
    drives = [joint for joint, label in enumerate(model.joint_label) if label.endswith("drive")]
    dofs = model.joint_qd_start.numpy()[drives]
    starts = model.body_world_start.numpy()
    rows = np.array([starts[world] + body for world, (body, _) in enumerate(pens)])
    local = np.array([[*pen, LAYER] for _, pen in pens])
    target = simulation.control.joint_target_pos.numpy()
    ways = []

    def play() -> None:
        for step in range(round(seconds / DT)):
            target[dofs] = crank_angles((step + 1) * DT)
            simulation.control.joint_target_pos.assign(target)
            simulation.step()
            pose = simulation.state.body_q.numpy().reshape(-1, 7)[rows].astype(float)
            ways.append(pose[:, :3] + rotated(pose[:, 3:], local))

    if recorder is None:
        play()
    else:
        with recorder:
            play()
    return np.array(ways), recorder


def scene(curves: np.ndarray | None) -> tuple[pv.Model, list[tuple[int, np.ndarray]]]:
    """Return the three worlds, with curves of dots behind the bars if given, and their pens."""
    builder, pens = pv.ModelBuilder(), []
    shown = pv.ShapeConfig(has_shape_collision=False)
    for index, (x, make) in enumerate(zip(SPACING, (four_bar, slider_crank, straight_line), strict=True)):
        world, body, pen = make()
        pens.append((body, pen))
        place = (*pen, LAYER, 0.0, 0.0, 0.0, 1.0)
        light = pv.ShapeConfig(has_shape_collision=False, density=1.0)
        world.add_shape_sphere(body, xform=place, radius=1.3 * WIDTH, cfg=light, color=PEN_COLOR)
        for point in () if curves is None else curves[:, index]:
            dot = (point[0] - x, point[1], -LAYER, 0.0, 0.0, 0.0, 1.0)
            world.add_shape_sphere(-1, xform=dot, radius=0.35 * WIDTH, cfg=shown, color=PEN_COLOR)
        builder.add_world(world, xform=(x, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0))
    return builder.finalize("cpu"), pens


def main() -> None:
    """Find the curves, then film."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--width", type=int, default=640, help="of the film [pixel]")
    parser.add_argument("--samples", type=int, default=6, help="rays per pixel")
    parser.add_argument("--fps", type=float, default=12.0, help="frames per second")
    parser.add_argument("--seconds", type=float, default=PERIOD, help="length of the film")
    parser.add_argument("--output", type=Path, default=HERE / "loops.gif", help="the film")
    options = parser.parse_args()
    ways, _ = run(*scene(None), PERIOD, None)
    line = ways[:, 2, 0]
    print(f"the straight line is straight to {1e3 * np.ptp(line):.2f} mm over {np.ptp(ways[:, 2, 1]):.2f} m")
    _, film = run(*scene(ways[::6]), options.seconds, options.fps)
    middle = (1.35, 0.06, 0.0)
    film.save(
        options.output,
        size=(options.width, round(0.36 * options.width)),
        samples=options.samples,
        spacing=0.0,
        camera=pv.render.Camera(
            (middle[0] - 0.4, middle[1] + 0.6, 5.2), middle, up=(0.0, 1.0, 0.0), fov=0.24
        ),
        style=pv.render.PictureStyle(sun_direction=(-0.4, 0.6, 1.2), floor=True),
    )


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
