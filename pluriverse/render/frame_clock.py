"""Frame clock: decides when the next frame is due, however many steps a call of `step` makes."""

import abc
from typing import Any, Self

import numpy as np


class FrameClock(abc.ABC):
    """Takes frames of a simulation at regular intervals, as an observer of its steps.

    Args:
        simulation: The simulation.
        fps: Frames per second.
        speed: Simulated time per second of frames.
        what: The caller, for messages.

    Raises:
        ValueError: If `fps` or `speed` are not positive.
    """

    def __init__(self, simulation: Any, *, fps: float, speed: float, what: str):
        for name, value in (("fps", fps), ("speed", speed)):
            if not 0.0 < value < np.inf:
                raise ValueError(f"{what}: {name} is {value}, but it must be a finite number > 0.")
        self._simulation = simulation
        self.fps = float(fps)
        """Frames per second."""
        self._interval = float(speed) / float(fps)
        self._begin = 0.0
        self._last_time = -np.inf

    @property
    @abc.abstractmethod
    def frame_count(self) -> int:
        """Number of frames so far."""

    @abc.abstractmethod
    def capture(self) -> None:
        """Take a frame now."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start recording: one frame at once, then one whenever it is due in `step`."""
        self._begin = self._simulation.time - self.frame_count * self._interval
        self.capture()
        self._last_time = self._simulation.time
        self._simulation.add_observer(self)

    def stop(self) -> None:
        """Record no more."""
        self._simulation.remove_observer(self)

    def steps_to_next(self) -> int:
        """Return the number of `step(1)` calls until the next frame is due, for the simulation."""
        self._follow_reset()
        step_time = self._simulation.dt * self._simulation.decimation
        due = self._begin + self.frame_count * self._interval - self._simulation.time
        return max(1, int(np.ceil(due / step_time - 1.0e-6)))

    def observe(self) -> None:
        """Take the frames that are due; the simulation calls this."""
        self._follow_reset()
        time, step_time = self._simulation.time, self._simulation.dt * self._simulation.decimation
        self._last_time = time
        while self._begin + self.frame_count * self._interval <= time + 1.0e-6 * step_time:
            self.capture()

    def _follow_reset(self) -> None:
        """Adjust the clock after time has gone back, as after `Simulation.reset`."""
        time = self._simulation.time
        if time < self._last_time:
            self._begin -= self._last_time - time
            self._last_time = time
