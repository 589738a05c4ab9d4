"""Newton: `SolverMuJoCo` on the CPU, recorded in a Warp graph, which is its best case there."""

from pathlib import Path
from xml.etree import ElementTree

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

    start, control_start = _keyframe(arguments.model)
    starts = np.tile(start, (arguments.worlds, 1))
    model.joint_q.assign(start_of(arguments.model, starts, model))
    states = [model.state(), model.state()]
    newton.eval_fk(model, model.joint_q, model.joint_qd, states[0])
    control = model.control()
    if control_start.size:
        controls_of(control).assign(np.tile(control_start, arguments.worlds))
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


def controls_of(control: newton.Control) -> wp.array:
    """Return the inputs of the file's actuators, which Newton keeps as such."""
    controls = getattr(getattr(control, "mujoco", None), "ctrl", None)
    if controls is None:
        raise AttributeError("this version of Newton has no array of MuJoCo's controls")
    return controls


def start_of(path: Path, qpos: np.ndarray, model: newton.Model) -> np.ndarray:
    """Return the coordinates of all worlds in Newton's order, quaternions as xyzw, shape [coord].

    Args:
        path: MJCF file.
        qpos: Coordinates in the order of the file, shape [world, coord].
        model: Worlds of that file.
    """
    world_count = len(qpos)
    joint_count = model.joint_count // world_count
    labels = model.joint_label[:joint_count]
    places = model.joint_q_start.numpy()
    start = np.zeros((world_count, model.joint_coord_count // world_count), dtype=np.float32)
    root = ElementTree.parse(path).getroot()
    address = 0
    for body in root.iterfind("worldbody//body"):  # as MuJoCo orders them: depth first
        for item in body:
            if item.tag not in ("joint", "freejoint"):
                continue
            is_free = item.tag == "freejoint" or item.get("type") == "free"
            place = places[_joint_of(labels, item.get("name"), body.get("name", ""))]
            width = 7 if is_free else 1
            values = qpos[:, address : address + width]
            if is_free:
                values = values[:, [0, 1, 2, 4, 5, 6, 3]]
            start[:, place : place + width] = values
            address += width
    return start.reshape(-1)


def _joint_of(labels: list[str], name: str | None, body: str) -> int:
    """Return the row of a joint by its name, or by its body where it has none.

    Raises:
        LookupError: If there is not just one.
    """
    paths = [label.split("/") for label in labels]
    if name:
        rows = [row for row, path in enumerate(paths) if path[-1] == name]
    else:
        rows = [row for row, path in enumerate(paths) if body in path[-2:-1]]
    if len(rows) != 1:
        raise LookupError(f"joint {name!r} of body '{body}' is {len(rows)} of Newton's joints {labels}")
    return rows[0]


def _keyframe(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates and the controls of the first keyframe, as the file orders them."""
    key = ElementTree.parse(path).find("keyframe/key")
    assert key is not None
    qpos, ctrl = (np.array(key.get(name, "").split(), dtype=np.float32) for name in ("qpos", "ctrl"))
    return qpos, ctrl


if __name__ == "__main__":
    main()
