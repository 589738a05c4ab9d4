"""Stage: the shown worlds of a simulation in a Viser scene, with what is drawn over them."""

from typing import Any

import numpy as np

from pluriverse.recording.moment import Moment, contacts_of
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.layout import grid_offsets
from pluriverse.viewer.overlays import Overlay, Overlays
from pluriverse.viewer.scene_view import SceneView


class Stage:
    """Draws chosen worlds of a simulation and follows them.

    Args:
        scene: `viser.SceneApi` to draw into.
        simulation: The simulation.
        environments: What is shown: worlds, or the environments of a simulation with variants.
    """

    def __init__(self, scene: Any, simulation: Any, environments: np.ndarray) -> None:
        self._scene = scene
        self._simulation = simulation
        self.environments = environments
        """Worlds, or environments of a simulation with variants, that are shown."""
        self.geometry = SeenGeometry.VISUAL
        """Which of their shapes are drawn."""
        self._shown: frozenset[Overlay] = frozenset()
        self._build()

    @property
    def offsets(self) -> np.ndarray:
        """Where each shown world is drawn relative to where it is [m], shape [world, 3]."""
        return self._offsets

    def place_of(self, world: int) -> int:
        """Return the place of a world among those shown, -1 if it is not."""
        found = np.flatnonzero(self.worlds == world)
        return int(found[0]) if len(found) else -1

    def show(self, overlay: Overlay, is_shown: bool) -> None:
        """Begin or stop to draw an overlay."""
        self.overlays.show(overlay, is_shown)
        self._shown = self.overlays.shown

    def set_geometry(self, geometry: SeenGeometry) -> None:
        """Draw other shapes."""
        self.geometry = geometry
        self.view.set_geometry(geometry)

    def choose(self, environments: np.ndarray) -> None:
        """Show other worlds."""
        self.remove()
        self.environments = environments
        self._build()

    def remove(self) -> None:
        """Take everything out of the scene."""
        self.view.remove()
        self.overlays.remove()

    def refresh(self) -> bool:
        """Draw anew if environments hold other things than before. Return whether they did."""
        if not np.array_equal(self._current_worlds(), self.worlds):
            self.remove()
            self._build()
            return True
        return self.view.refresh()

    def update(self, moment: Moment) -> None:
        """Draw everything as it is at a moment."""
        self.view.update(moment.body_q, moment.frozen)
        if self._shown:
            contacts = None
            if Overlay.CONTACTS in self._shown:
                contacts = contacts_of(self._simulation, self.worlds)
            self.overlays.update(moment, contacts)

    def _current_worlds(self) -> np.ndarray:
        if hasattr(self._simulation, "environment_world"):
            return self._simulation.environment_world.numpy()[self.environments].astype(np.int64)
        return self.environments

    def _build(self) -> None:
        model = self._simulation.model
        self.worlds: np.ndarray = self._current_worlds()
        """Worlds of the model that are drawn."""
        body_q = self._simulation.state.body_q.numpy()
        self._offsets, self.spacing = grid_offsets(model, body_q, self.worlds)
        self.view = SceneView(self._scene, model, self.worlds, self._offsets, geometry=self.geometry)
        self.overlays = Overlays(self._scene, model, self.worlds, self._offsets)
        for overlay in self._shown:
            self.overlays.show(overlay, is_shown=True)
