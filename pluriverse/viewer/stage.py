"""Stage: the shown worlds of a source in a Viser scene, with their overlays."""

from typing import Any

import numpy as np

from pluriverse.recording.moment import Moment
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.layout import world_of
from pluriverse.viewer.overlays import Overlay, Overlays
from pluriverse.viewer.scene_view import SceneView
from pluriverse.viewer.source import Source

# Overlays inside shapes, which are drawn translucent to show them.
INNER_OVERLAYS = frozenset({Overlay.MASSES, Overlay.AXES})


class Stage:
    """Draws selected worlds of a source and keeps them up to date.

    Args:
        scene: `viser.SceneApi` to draw into.
        source: What is shown.
        environments: Which of its environments.
    """

    def __init__(self, scene: Any, source: Source, environments: np.ndarray) -> None:
        self._scene = scene
        self._source = source
        self.environments = environments
        """Worlds, or environments of a simulation with variants, that are shown."""
        self.geometry = SeenGeometry.VISUAL
        """Which of their shapes are drawn."""
        self._shown: frozenset[Overlay] = frozenset()
        self._drag: tuple[Any, str] | None = None
        self.build_count = 0
        """Number of complete redraws."""
        self._build()

    @property
    def offsets(self) -> np.ndarray:
        """Drawing offset of each shown world [m], shape [world, 3]."""
        return self._offsets

    @property
    def body_world(self) -> np.ndarray:
        """World of each body, shape [body]."""
        return world_of(self._source.model, "body")

    def set_drag(self, callback: Any, modifier: str) -> None:
        """Report shapes that are dragged with the left button and keys, as Viser's `on_drag` does."""
        self._drag = callback, modifier
        self.view.set_drag(callback, modifier)

    def place_of(self, world: int) -> int:
        """Return the index of a world among those shown, -1 if it is not shown."""
        found = np.flatnonzero(self.worlds == world)
        return int(found[0]) if len(found) else -1

    def show(self, overlay: Overlay, is_shown: bool) -> None:
        """Show or hide an overlay."""
        self.overlays.show(overlay, is_shown)
        self._shown = self.overlays.shown
        self.view.see_through(not self._shown.isdisjoint(INNER_OVERLAYS))

    def set_geometry(self, geometry: SeenGeometry) -> None:
        """Draw other shapes."""
        self.geometry = geometry
        self.view.remove()
        self._make_view()

    def choose(self, environments: np.ndarray) -> None:
        """Show other worlds."""
        self.remove()
        self.environments = environments
        self._build()

    def remove(self) -> None:
        """Remove everything from the scene."""
        self.view.remove()
        self.overlays.remove()

    def refresh(self) -> bool:
        """Redraw if the contents of environments changed. Return whether they did."""
        if not np.array_equal(self._current_worlds(), self.worlds):
            self.remove()
            self._build()
            return True
        return self.view.refresh()

    def update(self, moment: Moment) -> None:
        """Draw everything at a moment."""
        self.view.update(moment.body_q, moment.frozen)
        if self._shown:
            contacts = None
            if Overlay.CONTACTS in self._shown:
                contacts = self._source.contacts(self.worlds)
            self.overlays.update(moment, contacts)

    def _current_worlds(self) -> np.ndarray:
        return self._source.worlds_of(self.environments)

    def _build(self) -> None:
        model, body_q = self._source.model, self._source.moment().body_q
        self.worlds: np.ndarray = self._current_worlds()
        """Worlds of the model that are drawn."""
        self._offsets = self._source.offsets(body_q, self.worlds)
        self._make_view()
        self.overlays = Overlays(self._scene, model, self.worlds, self._offsets)
        for overlay in self._shown:
            self.overlays.show(overlay, is_shown=True)

    def _make_view(self) -> None:
        self.build_count += 1
        model = self._source.drawn(self.geometry)
        self.view = SceneView(self._scene, model, self.worlds, self._offsets, geometry=self.geometry)
        if self._drag is not None:
            self.view.set_drag(*self._drag)
        self.view.see_through(not self._shown.isdisjoint(INNER_OVERLAYS))
