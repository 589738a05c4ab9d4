"""Source: the simulation or recording that a viewer shows."""

from typing import Any, Protocol

import numpy as np

from pluriverse.model import Model
from pluriverse.recording import RecordedRun
from pluriverse.recording.moment import ContactPoints, Moment, contacts_of, moment_of
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.layout import grid_offsets


class Source(Protocol):
    """A source of moments. Environments are worlds, or slots whose worlds may change (variants)."""

    @property
    def model(self) -> Model:
        """The model that the worlds belong to."""
        ...

    @property
    def environments(self) -> np.ndarray:
        """All environments that may be shown."""
        ...

    def worlds_of(self, environments: np.ndarray) -> np.ndarray:
        """Return the world that each environment is in now."""
        ...

    def moment(self) -> Moment:
        """Return a copy of the current moment."""
        ...

    def contacts(self, worlds: np.ndarray) -> ContactPoints:
        """Return the current contacts of worlds."""
        ...

    @property
    def geometries(self) -> tuple[SeenGeometry, ...]:
        """Text that describes the available environments."""
        return tuple(SeenGeometry)

    @property
    def up(self) -> tuple[float, float, float]:
        """The axis that points up."""
        return self.model.up_axis.vector

    def drawn(self, geometry: SeenGeometry) -> Model:
        """Return the model whose shapes are drawn; the bodies that carry them are those of `model`."""
        return self.model

    def offsets(self, body_q: np.ndarray, worlds: np.ndarray) -> np.ndarray:
        """Return the drawing offsets of worlds [m], shape [world, 3].

        Args:
            body_q: Poses of all bodies [m, xyzw], shape [body, 7].
            worlds: The worlds.
        """
        return grid_offsets(self.model, body_q, worlds)[0]


class LiveSource(Source):
    """A running simulation.

    Args:
        simulation: The simulation.
    """

    def __init__(self, simulation: Any) -> None:
        self._simulation = simulation
        count = getattr(simulation, "environment_count", simulation.model.world_count)
        self._environments = np.arange(count)

    @property
    def environments(self) -> np.ndarray:
        """All environments."""
        return self._environments

    @property
    def model(self) -> Model:
        """The model that is simulated."""
        model: Model = self._simulation.model
        return model

    def worlds_of(self, environments: np.ndarray) -> np.ndarray:
        """Return the world that each environment is in now."""
        if hasattr(self._simulation, "environment_world"):
            worlds: np.ndarray = self._simulation.environment_world.numpy()[environments].astype(np.int64)
            return worlds
        return environments

    def moment(self) -> Moment:
        """Return a copy of the current moment of the simulation."""
        return moment_of(self._simulation)

    def contacts(self, worlds: np.ndarray) -> ContactPoints:
        """Return the contacts of worlds in the last step."""
        return contacts_of(self._simulation, worlds)


class RecordedSource(Source):
    """A frame of a recording.

    Args:
        recording: The recording.
    """

    def __init__(self, recording: RecordedRun) -> None:
        self._recording = recording
        self.frame = 0
        """The frame that is shown."""
        self._prepared = -1

    @property
    def environments(self) -> np.ndarray:
        """All environments that were recorded."""
        return self._recording.environments

    @property
    def model(self) -> Model:
        """The recorded part of the model."""
        return self._recording.model

    def worlds_of(self, environments: np.ndarray) -> np.ndarray:
        """Return the world of each environment in the frame."""
        positions = self._recording.recorded_positions(environments, "viewer")
        return self._recording.worlds_of(self.frame)[positions]

    def moment(self) -> Moment:
        """Return the moment of the frame, and restore how the model looked then."""
        frame = self.frame
        if self._prepared != frame:
            self._recording.show_frame(frame)
            self._prepared = frame
        return self._recording.moment(frame)

    def contacts(self, worlds: np.ndarray) -> ContactPoints:
        """Return the contacts of worlds in the frame."""
        contacts = self._recording.contacts(self.frame)
        shown = np.isin(contacts.world, worlds)
        return ContactPoints(contacts.point[shown], contacts.force[shown], contacts.world[shown])
