"""Problems of inverse kinematics per second, against Pinocchio and Newton on the same poses.

`python -m benchmarks.inverse_kinematics [--problems 1000] [--robot FILE.urdf --link NAME]` takes poses of a
link from random coordinates within limits, and looks for them from the middle of the ranges: ours in one
batch with one start and with 16, Pinocchio's Jacobians in a loop of damped least squares, one problem after
the other, and `newton.ik`, recorded, if Newton is installed. All run on one thread, in turns; printed are the
median of the processor time and how many poses were found within limits. A pose that is not found costs time
and counts nothing.
"""

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

import pluriverse as pv

ARM = Path(pv.__file__).parent / "scenes" / "robots" / "heron.urdf"
POSITION_FOUND = 1e-3  # m
ROTATION_FOUND = 1e-2  # rad
LIMIT_KEPT = 1e-3  # rad or m

Run = Callable[[], np.ndarray]
"""Solves all problems and returns coordinates in the order of the file, shape [problem, coord]."""


def poses_of(model: pv.Model, link: int, joint_q: np.ndarray) -> np.ndarray:
    """Return the poses of a link, shape [problem, 7]."""
    state, result = model.state(), []
    for row in joint_q:
        pv.eval_fk(model, wp.array(row, dtype=float, device=model.device), model.joint_qd, state)
        result.append(state.body_q.numpy()[link].copy())
    return np.array(result)


def batch_runner(ik: Any, model: Any, link: int, poses: np.ndarray, iterations: int, **options: Any) -> Run:
    """Return a solve of all problems by `pluriverse.ik` or `newton.ik`."""
    count = len(poses)
    lower, upper = model.joint_limit_lower, model.joint_limit_upper
    objectives = [
        ik.IKObjectivePosition(link, wp.vec3(), wp.array(poses[:, :3], dtype=wp.vec3, device="cpu")),
        ik.IKObjectiveRotation(link, wp.quat_identity(), wp.array(poses[:, 3:], dtype=wp.vec4, device="cpu")),
        ik.IKObjectiveJointLimit(lower, upper, weight=1.0),
    ]
    solver = ik.IKSolver(model, count, objectives, jacobian_mode=ik.IKJacobianType.ANALYTIC, **options)
    middle = np.tile(0.5 * (lower.numpy() + upper.numpy()), (count, 1))
    start = wp.array(middle, dtype=float, device="cpu")
    found = wp.zeros_like(start)
    solver.step(start, found, iterations=1)
    with wp.ScopedCapture(device="cpu") as capture:
        solver.reset()
        solver.step(start, found, iterations=iterations)

    def run() -> np.ndarray:
        wp.capture_launch(capture.graph)
        result: np.ndarray = found.numpy().copy()
        return result

    return run


def pinocchio_runner(robot: Path, frame_name: str, poses: np.ndarray, iterations: int) -> Run:
    """Return a loop of damped least squares on Pinocchio's Jacobians, with steps clamped to the limits."""
    import pinocchio

    model = pinocchio.buildModelFromUrdf(str(robot))
    data, frame = model.createData(), model.getFrameId(frame_name)
    targets = [pinocchio.XYZQUATToSE3(pose.astype(np.float64)) for pose in poses]
    middle = 0.5 * (model.lowerPositionLimit + model.upperPositionLimit)
    damping = 1e-4 * np.eye(6)

    def run() -> np.ndarray:
        result = []
        for target in targets:
            q = middle.copy()
            for _ in range(iterations):
                pinocchio.forwardKinematics(model, data, q)
                error = pinocchio.updateFramePlacement(model, data, frame).actInv(target)
                twist = pinocchio.log6(error).vector
                if twist @ twist < 1e-12:
                    break
                J = pinocchio.computeFrameJacobian(model, data, q, frame, pinocchio.LOCAL)
                q = pinocchio.integrate(model, q, J.T @ np.linalg.solve(J @ J.T + damping, twist))
                q = np.clip(q, model.lowerPositionLimit, model.upperPositionLimit)
            result.append(q)
        return np.array(result)

    return run


def newton_runner(robot: Path, label: str, poses: np.ndarray, iterations: int) -> Run:
    """Return a solve by Newton."""
    import newton
    import newton.ik

    builder = newton.ModelBuilder()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_urdf(str(robot), floating=False)
    model = builder.finalize("cpu")
    link = next(body for body, name in enumerate(model.body_label) if name.endswith(label))
    return batch_runner(newton.ik, model, link, poses, iterations)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=1000)
    parser.add_argument("--robot", type=Path, default=ARM, help="URDF file of an arm on a fixed base")
    parser.add_argument("--link", default="hand", help="link that is to reach the poses")
    parser.add_argument("--iterations", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_ERROR
    warnings.simplefilter("ignore", pv.warnings.PluriverseWarning)
    builder = pv.ModelBuilder()
    builder.add_urdf(arguments.robot, floating=False)
    model = builder.finalize("cpu")
    link = next(body for body, name in enumerate(model.body_label) if name.endswith(arguments.link))
    lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
    random = np.random.default_rng(0)
    wanted = lower + (upper - lower) * random.random((arguments.problems, model.joint_coord_count))
    poses = poses_of(model, link, wanted.astype(np.float32))
    common = (poses, arguments.iterations)
    runs: dict[str, Run] = {
        "Pluriverse, 1 start": batch_runner(pv.ik, model, link, *common),
        "Pluriverse, 16 starts": batch_runner(
            pv.ik, model, link, *common, sampler=pv.ik.IKSampler.ROBERTS, n_seeds=16
        ),
    }
    for name, make in {
        "Pinocchio, 1 start": lambda: pinocchio_runner(arguments.robot, arguments.link, *common),
        "Newton, 1 start": lambda: newton_runner(arguments.robot, arguments.link, *common),
    }.items():
        try:
            runs[name] = make()
        except ImportError as error:
            print(f"{name}: left out, {error}")
    times: dict[str, list[float]] = {name: [] for name in runs}
    results = {name: run() for name, run in runs.items()}
    for _ in range(arguments.repeats):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            times[name].append(time.process_time() - begin)
    print(f"{arguments.problems} poses of '{arguments.link}' of {arguments.robot.name}, one thread")
    for name, joint_q in results.items():
        got = poses_of(model, link, joint_q.astype(np.float32))
        turn = 2.0 * np.arccos(np.clip(np.abs((got[:, 3:] * poses[:, 3:]).sum(1)), 0.0, 1.0))
        found = np.linalg.norm(got[:, :3] - poses[:, :3], axis=1) < POSITION_FOUND
        found &= turn < ROTATION_FOUND
        found &= ((joint_q > lower - LIMIT_KEPT) & (joint_q < upper + LIMIT_KEPT)).all(1)
        seconds = statistics.median(times[name])
        print(
            f"{name:22s} {1e6 * seconds / arguments.problems:8.1f} µs a problem, {100 * found.mean():5.1f} % "
            f"found, {found.sum() / seconds:9.0f} found a second"
        )


if __name__ == "__main__":
    main()
