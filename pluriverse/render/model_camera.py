"""Cameras of a model: those that were added by `ModelBuilder.add_camera` or came with a file."""

from pluriverse.model import Model, State
from pluriverse.render.camera import Camera


def camera_of_label(model: Model, state: State, label: str, world: int) -> Camera:
    """Return where a camera of a world is in a state.

    Raises:
        KeyError: If there is no such camera.
    """
    raise KeyError(f"there is no camera '{label}'.")
