"""Pull: a spring between a body and a handle that the mouse drags, as an external force."""

import threading
from typing import Any

import numpy as np

from pluriverse.recording.moment import rotated
from pluriverse.render.raycast.caster import body_roots

# Frequency of the critically damped spring with everything that is attached to the body [1/s]: quick to
# follow the mouse, slow against any time step.
PULL_FREQUENCY = 1.5
# Bounds of the spring for bodies that are light compared with their neighbours. An explicit oscillator is
# stable to 4 and 2; a hundredth and a fifth of that leave the pulled point critically damped.
STIFFNESS_SHARE, DAMPING_SHARE = 0.04, 0.4
# Largest velocity change of the pulled point in a step [m/s], so that it rotates little in one step.
SPEED_GAIN = 0.5


class Pull:
    """Pulls one body of a simulation towards a point.

    The force is constant during a step, so it must not reverse the velocity of the pulled point within one.
    Let m be the effective mass at the point of the body alone; attached bodies increase it. The stiffness k
    and the damping c keep k dt² <= m STIFFNESS_SHARE and c dt <= m DAMPING_SHARE, and no step changes the
    velocity of the point by more than SPEED_GAIN.

    Args:
        simulation: The simulation.
        body: The body.
        point: Pulled point [m], body frame; the centre of mass if None.
    """

    def __init__(self, simulation: Any, body: int, point: np.ndarray | None = None) -> None:
        self._simulation = simulation
        self.body = body
        """The body that is pulled."""
        model = simulation.model
        mass = model.body_mass.numpy().astype(np.float64)
        com = model.body_com.numpy()[body].astype(np.float64)
        self._point = com if point is None else np.asarray(point, dtype=np.float64)
        self._arm = self._point - com
        root = body_roots(model)
        tree_mass = float(mass[root == root[body]].sum())
        inertia = np.linalg.eigvalsh(model.body_inertia.numpy()[body].astype(np.float64))[0]
        lightness = 1.0 / mass[body] if mass[body] > 0.0 else 0.0
        lightness += float(self._arm @ self._arm) / max(inertia, 1e-12)
        own = 1.0 / lightness if lightness > 0.0 else tree_mass
        period, rate = simulation.dt * simulation.decimation, 2.0 * np.pi * PULL_FREQUENCY
        self._stiffness = min(tree_mass * rate**2, STIFFNESS_SHARE * own / period**2)
        self._damping = min(2.0 * tree_mass * rate, DAMPING_SHARE * own / period)
        self._force_max = SPEED_GAIN * own / period
        self.target: np.ndarray | None = None
        """Target of the pull [m]; None without one."""
        # The loop that steps applies the force, and the browser's thread ends it: a force that was computed
        # before the end and written after it would act for good.
        self._lock = threading.Lock()

    @property
    def position(self) -> np.ndarray:
        """The pulled point now [m], shape [3]."""
        pose = self._pose()
        return pose[:3] + rotated(pose[None, 3:], self._point[None])[0]

    def apply(self) -> None:
        """Write the spring force into the state, replacing the previous one."""
        with self._lock:
            self._exert(self._force())

    def release(self) -> None:
        """End the pull."""
        with self._lock:
            self.target = None
            self._exert(self._force())

    def _force(self) -> np.ndarray:
        """Return the force [N] and the torque about the centre of mass [N·m] of the spring, world axes."""
        force = np.zeros(6, dtype=np.float32)
        target = self.target
        if target is not None:
            arm = rotated(self._pose()[None, 3:], self._arm[None])[0]
            twist = self._simulation.state.body_qd.numpy().reshape(-1, 6)[self.body].astype(np.float64)
            velocity = twist[:3] + np.cross(twist[3:], arm)
            push = self._stiffness * (target - self.position) - self._damping * velocity
            size = float(np.linalg.norm(push))
            if np.isfinite(size):
                push *= min(1.0, self._force_max / max(size, 1e-9))
                force[:3], force[3:] = push, np.cross(arm, push)
        return force

    def _exert(self, force: np.ndarray) -> None:
        """Apply a force [N] and a torque about the centre of mass [N·m] to the body, world axes."""
        row = self._simulation.state.body_f[self.body : self.body + 1]
        row.assign(force.reshape(1, 6))

    def _pose(self) -> np.ndarray:
        poses: np.ndarray = self._simulation.state.body_q.numpy().reshape(-1, 7)
        return poses[self.body].astype(np.float64)
