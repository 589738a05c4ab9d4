"""`--picture` and `--video`: images of a run, with one world of each kind side by side."""

from pathlib import Path
from typing import Any

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from pluriverse.cli.console import errors
from pluriverse.cli.session import Session

# Largest number of worlds in one picture; more could not be distinguished.
WORLD_COUNT_MAX = 16


class Picture:
    """Draws the last state.

    Args:
        session: What is drawn.
        path: Picture to write, in the format of its suffix.
        size: Width and height [pixel].

    Raises:
        ValueError: There is no folder to write to, or no such format.
    """

    IS_ASKED_EVERY_STEP = False

    def __init__(self, session: Session, path: Path, size: tuple[int, int]):
        from PIL import Image

        if not path.absolute().parent.is_dir():
            raise ValueError(f"--picture: there is no folder '{path.parent}'; create it first")
        if path.suffix.lower() not in Image.registered_extensions():
            raise ValueError(f"--picture: '{path}' is no picture; end its name in .png, .jpg or .webp")
        self._session, self._path, self._size = session, path, size

    def observe(self) -> None:
        """Do nothing: only the end counts."""

    def finish(self) -> str:
        """Write the picture and return what to tell."""
        from pluriverse.render import draw

        worlds = shown_worlds(self._session.scene)
        draw(self._session.simulation, worlds=worlds, path=self._path, size=self._size)
        return f"picture: {self._path}"


class Video:
    """Records the run, and renders it at the end.

    Args:
        session: What is recorded.
        path: Video to write, in the format of its suffix.
        size: Width and height [pixel].

    Raises:
        ValueError: There is no folder to write to, no such format, or PyAV is missing.
    """

    IS_ASKED_EVERY_STEP = False

    def __init__(self, session: Session, path: Path, size: tuple[int, int]):
        from pluriverse.render.video import check_video_path

        try:
            check_video_path(path)
        except (ImportError, FileNotFoundError) as error:
            raise ValueError(f"--video: {error}") from error
        self._path, self._size = path, size
        self._recorder = session.simulation.recorder(worlds=shown_worlds(session.scene))
        self._recorder.start()

    def observe(self) -> None:
        """Do nothing: the simulation notifies the recorder itself."""

    def finish(self) -> str:
        """Write the video and return what to tell."""
        self._recorder.stop()
        save_film(self._recorder, self._path, size=self._size)
        return f"video: {self._path}, {self._recorder.frame_count} frames"


def save_film(film: Any, path: Path, *, size: tuple[int, int], **options: Any) -> None:
    """Render a film into a file, with a bar on the terminal, or a line where there is none.

    Args:
        film: A `pluriverse.render.film.Film`.
        path: Video to write.
        size: Width and height [pixel].
        options: Others of `Film.render`.
    """
    subject = f"rendering {film.frame_count} frames of {size[0]}x{size[1]}"
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    if not errors.is_terminal:
        errors.print(f"{subject} ...", highlight=False)
    with Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal) as bar:
        task = bar.add_task(subject, total=film.frame_count)
        film.save(path, size=size, progress=lambda count: bar.update(task, completed=count), **options)


def shown_worlds(scene: Any) -> list[int]:
    """Return the first world of each kind."""
    first: dict[int, int] = {}
    for world, kind in enumerate(scene.kind_of_world):
        first.setdefault(kind, world)
    return list(first.values())[:WORLD_COUNT_MAX]


def parse_size(text: str) -> tuple[int, int]:
    """Return width and height from a text such as 1280x720.

    Raises:
        ValueError: It is no size.
    """
    parts = text.lower().split("x")
    if len(parts) != 2 or not all(part.isdigit() and 1 <= int(part) <= 16384 for part in parts):
        raise ValueError(f"--size is '{text}', but it is width and height in pixels, for example 1280x720")
    return int(parts[0]), int(parts[1])
