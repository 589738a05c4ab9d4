"""Lighting: the lights of a sim as those of the shader."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.shapes import GROUND_COLOR
from pluriverse.gymapi.lights import Lights
from pluriverse.render import PictureStyle
from pluriverse.render.picture import sky_light
from pluriverse.types import Axis

# Share of a light that a surface receives, averaged over all orientations that face the light.
MEAN_FACING = 0.5


def make_light(
    lights: Lights, *, up_axis: Axis, extent: float, distance: float, shadows: bool = False
) -> Any:
    """Return light and surroundings for kernels.

    The shader has one sun, the brightest of the lights. The others count as ambient light of the same average
    brightness.

    Args:
        lights: The lights that were set.
        up_axis: Axis that points up.
        extent: Size of the scene in view [m].
        distance: Distance of the scene [m].
        shadows: Whether shapes cast shadows.
    """
    style = PictureStyle(shadows=shadows, ambient_occlusion=shadows)
    result = sky_light(style, extent=extent, distance=distance, up_axis=up_axis)
    result.plain_color = wp.vec3(*GROUND_COLOR)
    given = list(lights.by_number.values())
    if not given:
        return result
    sun = max(given, key=lambda light: float(light.intensity.sum()))
    ambient = np.sum([light.ambient for light in given], axis=0)
    for light in given:
        if light is not sun:
            ambient = ambient + MEAN_FACING * light.intensity
    length = float(np.linalg.norm(sun.direction))
    if length > 0.0:
        result.sun_direction = wp.vec3(*(sun.direction / length).tolist())
    result.sun_color = wp.vec3(*sun.intensity.tolist())
    result.sky_color = result.bounce_color = wp.vec3(*ambient.tolist())
    return result
