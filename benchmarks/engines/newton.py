"""Newton: `SolverMuJoCo` on the CPU, recorded in a Warp graph, which is its best case there."""

import xml.etree.ElementTree as ElementTree

import newton
import numpy as np
import warp as wp
from newton.solvers import SolverMuJoCo

from benchmarks.measure import measure, parse_arguments
from benchmarks.scenes import DT


def main() -> None:
    """Measure one scene."""
    arguments = parse_arguments("newton")
    wp.config.log_level = wp.LOG_WARNING
    robot = newton.ModelBuilder()
    SolverMuJoCo.register_custom_attributes(robot)
    robot.add_mjcf(str(arguments.model))
    builder = newton.ModelBuilder()
    builder.replicate(robot, world_count=arguments.worlds)
    model = builder.finalize("cpu")

    start, control_start = _start(arguments.model, model.joint_type.numpy()[: robot.joint_count])
    model.joint_q.assign(np.tile(start, arguments.worlds))
    states = [model.state(), model.state()]
    newton.eval_fk(model, model.joint_q, model.joint_qd, states[0])
    control = model.control()
    if control_start.size:
        targets = np.zeros(model.joint_dof_count // arguments.worlds, dtype=np.float32)
        targets[-control_start.size :] = control_start  # a free joint comes first, and has no drive
        _targets(control).assign(np.tile(targets, arguments.worlds))
    box_count = robot.body_count if not control_start.size else 0
    contact_count = max(64, 12 * box_count)
    solver = SolverMuJoCo(model, njmax=4 * contact_count, nconmax=contact_count)

    def launch(count: int) -> None:
        for index in range(count):
            solver.step(states[index % 2], states[1 - index % 2], control, None, DT)

    launch(2)  # compiles
    with wp.ScopedCapture(device="cpu") as capture:
        launch(2)

    def step(count: int) -> None:
        for _ in range(max(count // 2, 1)):
            wp.capture_launch(capture.graph)

    def largest_speed() -> float:
        return float(np.abs(states[0].joint_qd.numpy()).max())

    measure(arguments, step, largest_speed, newton.__version__)


def _targets(control: newton.Control) -> wp.array:
    """Return the array of drive targets, whatever this version calls it."""
    for name in ("joint_target_q", "joint_target_pos"):
        array = getattr(control, name, None)
        if array is not None:
            return array
    raise AttributeError("this version of Newton has no array of joint targets")


def _start(path: object, joint_types: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates (quaternions xyzw) and the drive targets of the first keyframe."""
    key = ElementTree.parse(str(path)).find("keyframe/key")
    assert key is not None
    values = np.array(key.get("qpos", "").split(), dtype=np.float32)
    position = 0
    for joint_type in joint_types:
        if joint_type == int(newton.JointType.FREE):
            values[position + 3 : position + 7] = np.roll(values[position + 3 : position + 7], -1)
            position += 7
        else:
            position += 1
    return values, np.array(key.get("ctrl", "").split(), dtype=np.float32)


if __name__ == "__main__":
    main()
