"""Panel: the controls beside the scene that all viewers share."""

import abc
from typing import Any

import numpy as np

from pluriverse.recording.moment import Moment
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.layout import world_of
from pluriverse.viewer.overlays import Overlay
from pluriverse.viewer.plots import Plot

# Frames between two updates of texts and curves, which cost more than moving shapes.
TEXT_INTERVAL, PLOT_INTERVAL = 6, 10
# Worlds that the panel names in its list of problems.
NAMED_WORLD_COUNT = 12
# Largest range of worlds that may be typed; a larger one is taken for a typing error.
RANGE_MAX = 10_000


class Panel(abc.ABC):
    """Controls of a viewer. Subclasses add playback and actions on the selected world.

    Args:
        viewer: The viewer.
    """

    def __init__(self, viewer: Any) -> None:
        self._viewer = viewer
        self._gui = viewer.server.gui
        self._frame = 0
        self._status = self._gui.add_markdown("")
        self._add_playback()
        with self._gui.add_folder("Trouble"):
            self._trouble = self._gui.add_markdown("None so far.")
        self._add_show()
        self._add_world()
        self._add_plot()

    @abc.abstractmethod
    def _add_playback(self) -> None:
        """Add the playback controls."""

    def _add_world_controls(self) -> None:  # noqa: B027 (not every panel has some)
        """Add the actions on the selected world."""

    def _world_selected(self) -> None:  # noqa: B027 (not every panel does)
        """React to the selection of another world."""

    @abc.abstractmethod
    def _status_text(self, moment: Moment) -> str:
        """Return the heading of the panel."""

    def _add_show(self) -> None:
        viewer = self._viewer
        with self._gui.add_folder("Show"):
            geometry = self._gui.add_dropdown(
                "Geometry",
                [each.value for each in viewer.source.geometries],
                initial_value=viewer.stage.geometry.value,
            )
            boxes = {each: self._gui.add_checkbox(each.value, initial_value=False) for each in Overlay}
            worlds = self._gui.add_text(
                "Worlds",
                initial_value=world_ranges(viewer.stage.environments),
                hint="Worlds to show, such as 0-15, 20.",
            )

        @geometry.on_update
        def _(_: Any) -> None:
            with viewer.changing() as stage:
                stage.set_geometry(SeenGeometry(geometry.value))

        for overlay, box in boxes.items():

            def toggle(_: Any, overlay: Overlay = overlay, box: Any = box) -> None:
                with viewer.changing() as stage:
                    stage.show(overlay, box.value)

            box.on_update(toggle)

        @worlds.on_update
        def _(_: Any) -> None:
            # The user may still be typing: text that is not a list of worlds changes nothing.
            try:
                selected = worlds_of_ranges(worlds.value)
                viewer.show(selected)
            except (ValueError, IndexError):
                return
            self.select_world(selected[0])

    def _add_world(self) -> None:
        viewer = self._viewer
        self._folder = self._gui.add_folder("World")
        with self._folder:
            self._world = self._gui.add_dropdown(
                "World", [str(world) for world in viewer.stage.environments.tolist()]
            )
            self._add_world_controls()

        @self._world.on_update
        def _(_: Any) -> None:
            self.select_world(int(self._world.value))

    def _add_plot(self) -> None:
        history = self._viewer.history
        history.world = int(self._viewer.stage.worlds[0])
        with self._gui.add_folder("Plot", expand_by_default=False):
            choice = self._gui.add_dropdown("Figures", [each.value for each in Plot])
            joints = self._gui.add_text(
                "Joints",
                initial_value="",
                hint="Part of the names of the joints to plot; empty for the first ones.",
            )
            self._plot = self._gui.add_uplot(
                history.columns(),
                history.series(),
                scales={"x": {"time": False}},  # seconds, not dates
                aspect=1.6,
            )

        @choice.on_update
        def _(_: Any) -> None:
            history.plot = Plot(choice.value)
            self._clear_plot()

        @joints.on_update
        def _(_: Any) -> None:
            history.joints = joints.value.strip()
            self._clear_plot()

    def update(self, moment: Moment) -> None:
        """Update the texts and curves from a moment, every few frames."""
        self._frame += 1
        if self._frame % TEXT_INTERVAL == 1:
            set_changed(self._status, "content", self._status_text(moment))
            set_changed(self._trouble, "content", trouble_text(moment))
        if self._frame % PLOT_INTERVAL == 1 and self._viewer.history.is_new:
            self._plot.data = self._viewer.history.columns()

    def select_world(self, environment: int) -> None:
        """Select one of the shown worlds."""
        viewer = self._viewer
        options = tuple(str(world) for world in viewer.stage.environments.tolist())
        if self._world.options != options:
            self._world.options = options
        if self._world.value != str(environment):
            self._world.value = str(environment)
        viewer.history.world = self._model_world()
        self._clear_plot()
        self._world_selected()

    def _clear_plot(self) -> None:
        history = self._viewer.history
        with self._viewer.changing():
            history.clear()
            self._plot.series = history.series()
            self._plot.data = history.columns()

    def _model_world(self) -> int:
        """Return the world of the model that the chosen environment is in."""
        stage = self._viewer.stage
        found = np.flatnonzero(stage.environments == int(self._world.value))
        return int(stage.worlds[found[0] if len(found) else 0])

    def _bodies(self) -> np.ndarray:
        return np.flatnonzero(world_of(self._viewer.source.model, "body") == self._model_world())


def world_ranges(worlds: np.ndarray) -> str:
    """Return a text for sorted worlds, such as "0-15, 20"."""
    ends = np.flatnonzero(np.diff(worlds) != 1)
    first, last = worlds[np.append(0, ends + 1)], worlds[np.append(ends, len(worlds) - 1)]
    return ", ".join(
        str(one) if one == other else f"{one}-{other}"
        for one, other in zip(first.tolist(), last.tolist(), strict=True)
    )


def worlds_of_ranges(text: str) -> list[int]:
    """Return the worlds that a text of `world_ranges` names.

    Raises:
        ValueError: If it names none, or is no such text.
    """
    worlds: list[int] = []
    for part in text.replace(",", " ").split():
        first, _, last = part.partition("-")
        low, high = int(first), int(last or first)
        if not 0 <= high - low < RANGE_MAX:
            raise ValueError(f"'{part}' is no range of worlds, such as 0-15.")
        worlds += range(low, high + 1)
    if not worlds:
        raise ValueError("no world is named.")
    return worlds


def set_changed(handle: Any, name: str, value: Any) -> None:
    """Set a property of a control only if it differs, which avoids needless messages."""
    if getattr(handle, name) != value:
        setattr(handle, name, value)


def trouble_text(moment: Moment) -> str:
    """Return the problems and their worlds as Markdown."""
    lines = [
        f"**{what}:** {_named(np.flatnonzero(worlds))}"
        for what, worlds in (
            ("Frozen", moment.frozen),
            ("Unconverged steps in", moment.unconverged > 0),
            ("Contacts lost in", moment.truncated > 0),
        )
        if worlds.any()
    ]
    return "\n\n".join(lines) or "None so far."


def _named(worlds: np.ndarray) -> str:
    named = ", ".join(str(world) for world in worlds[:NAMED_WORLD_COUNT].tolist())
    more = len(worlds) - NAMED_WORLD_COUNT
    return f"world{'s' if len(worlds) > 1 else ''} {named}" + (f" and {more:,} more" if more > 0 else "")
