"""Pull: a spring between a body and a handle that the mouse drags, as an external force."""

from typing import Any

import numpy as np

from pluriverse.recording.moment import rotated

# The spring lets the mass of its world swing at so many turns a second [1/s], critically damped: quick to
# follow, slow against any time step.
PULL_FREQUENCY = 1.5


class Pull:
    """Pulls one body of a simulation towards a point.

    Args:
        simulation: The simulation.
        body: The body.
    """

    def __init__(self, simulation: Any, body: int) -> None:
        self._simulation = simulation
        self.body = body
        """The body that is pulled."""
        model = simulation.model
        world = int(model.body_world.numpy()[body])
        mass = model.body_mass.numpy()
        self._mass = float(mass[model.body_world.numpy() == world].sum())
        self.target: np.ndarray | None = None
        """Where it is pulled to [m]; None while nobody pulls."""

    @property
    def position(self) -> np.ndarray:
        """Centre of mass of the body now [m], shape [3]."""
        pose = self._simulation.state.body_q.numpy().reshape(-1, 7)[self.body].astype(np.float64)
        com = self._simulation.model.body_com.numpy()[self.body].astype(np.float64)
        return pose[:3] + rotated(pose[None, 3:], com[None])[0]

    def apply(self) -> None:
        """Write the force of the spring into the state, in place of the one before."""
        force = np.zeros(6, dtype=np.float32)
        if self.target is not None:
            rate = 2.0 * np.pi * PULL_FREQUENCY
            velocity = self._simulation.state.body_qd.numpy().reshape(-1, 6)[self.body, :3].astype(np.float64)
            push = self._mass * (rate**2 * (self.target - self.position) - 2.0 * rate * velocity)
            if np.isfinite(push).all():
                force[:3] = push
        body_f = self._simulation.state.body_f
        row = body_f[self.body : self.body + 1]
        row.assign(force.reshape(1, 6))

    def release(self) -> None:
        """End the pull."""
        self.target = None
        self.apply()
