"""Viewer picture: what the window of a viewer would show, with all envs at their pixels."""

from typing import Any

import numpy as np

from pluriverse.gymapi.camera_records import up_axis_of, up_direction
from pluriverse.gymapi.drawn_shapes import DrawnShapes
from pluriverse.gymapi.lighting import make_light
from pluriverse.gymapi.scene import Sim
from pluriverse.render import Camera, PictureRenderer, PictureStyle, WorldLayout

# Worlds that are drawn at most, those next to what is looked at: each ray asks all of them.
WORLD_COUNT_MAX = 64
# Rays per pixel.
SAMPLES = 4
# Distance from the eye at which lines end that come towards it [m].
LINE_NEAR = 1.0e-3


class ViewerRenderer(PictureRenderer):
    """Renders the envs of a sim at their pixels.

    Args:
        sim: The sim.
        shapes: What is shown of it.
    """

    def __init__(self, sim: Sim, shapes: DrawnShapes):
        super().__init__(shapes.model, caster=shapes.caster, appearance=shapes.appearance)
        self._sim, self._shapes = sim, shapes

    def _light(self, style: Any, camera: Camera, corners: np.ndarray, layout: WorldLayout) -> Any:
        distance = float(np.linalg.norm(np.subtract(camera.target, camera.position)))
        up_axis, sky_distance = up_axis_of(self._sim), 10.0 * distance
        return make_light(
            self._sim.lights, up_axis=up_axis, extent=layout.extent, distance=sky_distance, shadows=True
        )

    def picture(
        self, position: np.ndarray, target: np.ndarray, size: tuple[int, int], fov: float, lines: Any
    ) -> np.ndarray:
        """Return a picture, shape [row, column, 3], uint8.

        Args:
            position: Where the camera is in the sim [m].
            target: What it looks at [m].
            size: Width and height [pixel].
            fov: Vertical field of view [rad].
            lines: Ends of lines in the sim [m], shape [line, 2, 3], and their colours, shape [line, 3].
        """
        self._shapes.to_device()
        self.appearance = self._shapes.appearance
        origins = world_origins(self._sim)
        distance = np.linalg.norm(origins - target, axis=1)
        worlds = np.sort(np.argsort(distance, kind="stable")[:WORLD_COUNT_MAX])
        camera = Camera(tuple(position.tolist()), tuple(target.tolist()), up=up_direction(self._sim), fov=fov)
        pixels = self.render(
            self._sim.prepared.simulation.state,
            worlds=worlds.tolist(),
            camera=camera,
            size=size,
            samples=SAMPLES,
            style=PictureStyle(),
            layout=WorldLayout(origins[worlds], None, 2.0),
        )
        return draw_lines(pixels, camera, *lines)


def world_origins(sim: Sim) -> np.ndarray:
    """Return where each world of a prepared sim stands [m], shape [world, 3]."""
    origins = np.zeros((sim.prepared.model.world_count, 3))
    for env in sim.envs:
        origins[env.world] = env.origin - env.offset
    return origins


def draw_lines(pixels: np.ndarray, camera: Camera, ends: np.ndarray, colors: np.ndarray) -> np.ndarray:
    """Return a picture with lines over it, whatever is before them.

    Args:
        pixels: The picture, shape [row, column, 3].
        camera: Where it was taken from.
        ends: Ends of the lines [m], shape [line, 2, 3].
        colors: Red, green and blue from 0 to 1, shape [line, 3].
    """
    if not len(ends):
        return pixels
    from PIL import Image, ImageDraw

    height, width = pixels.shape[:2]
    local = (np.asarray(ends, dtype=np.float64) - np.array(camera.position)) @ camera.rotation
    first, second = local[:, 0], local[:, 1]
    depth = -local[:, :, 2]
    visible = (depth > LINE_NEAR).any(axis=1) & np.isfinite(local).all(axis=(1, 2))
    # What is behind the eye is cut off.
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.clip((LINE_NEAR - depth[:, 0]) / (depth[:, 1] - depth[:, 0]), 0.0, 1.0)[:, None]
    cut = first + share * (second - first)
    first = np.where(depth[:, :1] > LINE_NEAR, first, cut)
    second = np.where(depth[:, 1:] > LINE_NEAR, second, cut)
    scale = 0.5 * height / np.tan(0.5 * camera.fov)
    image = Image.fromarray(pixels)
    canvas = ImageDraw.Draw(image)
    shades = np.clip(255.0 * np.asarray(colors), 0.0, 255.0).astype(int)
    for line in np.flatnonzero(visible).tolist():
        line_pixels = []
        for point in (first[line], second[line]):
            line_pixels.append(0.5 * width + scale * point[0] / -point[2])
            line_pixels.append(0.5 * height - scale * point[1] / -point[2])
        if np.abs(line_pixels).max() < 1.0e6:
            canvas.line(line_pixels, fill=tuple(shades[line].tolist()), width=max(1, height // 400))
    return np.asarray(image)
