"""Newton on moving robots: `SolverMuJoCo` on the CPU, a control step recorded in a Warp graph."""

import newton
import numpy as np
import warp as wp
from newton.solvers import SolverMuJoCo

from benchmarks.engines.moving import serve
from benchmarks.engines.newton import controls_of, start_of
from benchmarks.motion_scenes import DECIMATION, DT, MovingScene

# Room for the contacts of a world, and for the rows of their friction pyramids and of limits.
CONTACT_COUNT_MAX, ROW_COUNT_MAX = 256, 512


class NewtonWorlds:
    """Worlds of a scene in Newton."""

    version = f"newton {newton.__version__}"

    def __init__(self, scene: MovingScene, world_count: int):
        wp.config.log_level = wp.LOG_WARNING
        robot = newton.ModelBuilder()
        SolverMuJoCo.register_custom_attributes(robot)
        robot.add_mjcf(str(scene.path))
        builder = newton.ModelBuilder()
        builder.replicate(robot, world_count=world_count)
        self._model = model = builder.finalize("cpu")
        self._start = start_of(scene.path, scene.qpos, model)
        self._states = [model.state(), model.state()]
        self._control = model.control()
        # On a CPU, what `numpy` returns is the array itself.
        self._ctrl = None
        if scene.targets.size:
            self._ctrl = controls_of(self._control).numpy().reshape(world_count, -1)
        self._solver = SolverMuJoCo(model, njmax=ROW_COUNT_MAX, nconmax=CONTACT_COUNT_MAX)
        self._world_count = world_count
        self.clear()
        self.restart()
        self._launch()  # compiles
        with wp.ScopedCapture(device="cpu") as capture:
            self._launch()
        self._graph = capture.graph
        self.restart()

    def _launch(self) -> None:
        """Make the steps of a control step."""
        first, second = self._states
        for _ in range(DECIMATION // 2):
            self._solver.step(first, second, self._control, None, DT)
            self._solver.step(second, first, self._control, None, DT)

    def restart(self) -> None:
        """Put all worlds back to their starts."""
        state = self._states[0]
        state.joint_q.assign(self._start)
        state.joint_qd.zero_()
        newton.eval_fk(self._model, state.joint_q, state.joint_qd, state)

    def advance(self, targets: np.ndarray) -> None:
        """Make a control step with the targets of all worlds, shape [world, actuator]."""
        if self._ctrl is not None:
            self._ctrl[:] = targets
        wp.capture_launch(self._graph)

    def clear(self) -> None:
        """Let the figures begin anew."""
        self._contacts: list[int] = []
        self._iterations: list[np.ndarray] = []
        self._deepest = 0.0
        self._is_full = False

    def observe(self) -> None:
        """Take figures of the last step."""
        data = self._solver.mjw_data
        count = int(data.nacon.numpy()[0])
        self._contacts.append(int((data.contact.efc_address.numpy()[:count] >= 0).any(axis=1).sum()))
        self._iterations.append(data.solver_niter.numpy().copy())
        distances = data.contact.dist.numpy()[:count]
        self._deepest = max(self._deepest, -float(distances.min(initial=0.0)))
        self._is_full |= count >= CONTACT_COUNT_MAX * self._world_count
        self._is_full |= int(data.nefc.numpy().max()) >= ROW_COUNT_MAX

    def quality(self) -> dict[str, str]:
        """Return how it goes, as cells of the table."""
        speeds = self._states[0].joint_qd.numpy().reshape(self._world_count, -1)
        contacts = f"{np.mean(self._contacts) / self._world_count:.0f}"
        return {
            "contacts": f"{contacts} (full)" if self._is_full else contacts,
            "iterations": f"{np.mean(self._iterations):.1f}",
            "most": f"{np.max(self._iterations)}",
            "frozen": f"{np.count_nonzero(~np.isfinite(speeds).all(axis=1))}",
            "deepest, mm": f"{1e3 * self._deepest:.2f}",
        }


if __name__ == "__main__":
    serve(NewtonWorlds)
