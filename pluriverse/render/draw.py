"""Draw: a picture of a simulation, a model or a scene in one call."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from pluriverse.model import Model, State
from pluriverse.model.arguments import check_state
from pluriverse.options import with_options
from pluriverse.render.camera import Camera
from pluriverse.render.picture import PictureOptions, renderer_of, shown_worlds, write_picture
from pluriverse.render.visual import SeenGeometry


@with_options(PictureOptions)
def draw(
    simulation: Any,
    *,
    worlds: Sequence[int] | int | None = None,
    camera: Any = None,
    path: str | Path | None = None,
    samples: int = 12,
    geometry: SeenGeometry | str = SeenGeometry.VISUAL,
    state: State | None = None,
    **options: Unpack[PictureOptions],
) -> np.ndarray:
    """Return a picture, and write it to a file if `path` is given. Needs no display and no graphics driver.

    Several worlds stand side by side: in place if they do not overlap, else on a grid. Worlds without a floor
    share one.

    Args:
        simulation: A `Simulation`, or anything with a `model` and a `state`; or a `Model`, which is drawn in
            its initial state.
        worlds: The worlds to draw; the first if None.
        camera: A `Camera`; its position and target as two points; the label of a camera of the model
            (`add_camera`) in the first of the worlds; or None for a camera that sees them all.
        path: File to write (.png, .jpg, .webp), or None.
        samples: Rays per pixel: 1 is quick, 12 is smooth, 64 is for print.
        geometry: Which shapes are drawn: "visual", "collision" or "all".
        state: State to draw, if not that of the simulation.

    Returns:
        Red, green and blue, top row first, shape [row, column, 3], uint8.

    Raises:
        IndexError: If there is no such world.
        KeyError: If there is no such camera.
        TypeError: If `simulation` or `camera` is something else, or a world is not a whole number.
        ValueError: If the size, the samples, the spacing or the camera are out of range, `state` belongs to
            another model, or the name of the file is that of no format of pictures.
    """
    model, now = model_and_state(simulation, "draw")
    if state is not None:
        check_state(model, state, "draw: state")
        now = state
    shown = shown_worlds(model, worlds, "draw")
    picture = renderer_of(model, SeenGeometry(geometry)).render(
        now, worlds=shown, camera=as_camera(camera, model, now, shown[0]), samples=samples, **options
    )
    if path is not None:
        write_picture(path, picture)
    return picture


def model_and_state(simulation: Any, what: str) -> tuple[Model, State]:
    """Return the model and the state to draw.

    Raises:
        TypeError: If there is nothing of the kind.
    """
    if isinstance(simulation, Model):
        return simulation, simulation.state()
    model = getattr(simulation, "model", None)
    if not isinstance(model, Model):
        hint = " Call finalize() first." if hasattr(simulation, "finalize") else ""
        raise TypeError(
            f"{what}: {simulation!r} is no simulation; pass a Simulation, or a Model for its initial "
            f"state.{hint}"
        )
    state = getattr(simulation, "state", None)
    return model, state if isinstance(state, State) else model.state()


def as_camera(camera: Any, model: Model, state: State, world: int) -> Camera | None:
    """Return the camera that an argument of `draw` stands for.

    Raises:
        KeyError: If there is no camera of that label.
        TypeError: If it is something else.
        ValueError: If it is out of range.
    """
    if camera is None or isinstance(camera, Camera):
        return camera
    if isinstance(camera, str):
        from pluriverse.render.model_camera import camera_of_label

        return camera_of_label(model, state, camera, world)
    points = np.asarray(camera, dtype=object)
    if points.shape != (2, 3):
        raise TypeError(
            f"draw: camera is {camera!r}, but it must be a Camera, two points (position and target), the "
            "label of a camera of the model, or None."
        )
    return Camera(tuple(camera[0]), tuple(camera[1]))
