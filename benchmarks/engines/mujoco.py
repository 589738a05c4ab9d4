"""MuJoCo's C engine: `mj_step` on one thread, `mujoco.rollout` on several."""

import mujoco
import numpy as np
from mujoco import rollout

from benchmarks.measure import measure, parse_arguments

# Steps in one call of `rollout`, whose result is the trajectory of all of them, whether wanted or not.
TRAJECTORY_STEP_COUNT = 50


def main() -> None:
    """Measure one scene."""
    arguments = parse_arguments("mujoco")
    model = mujoco.MjModel.from_xml_path(str(arguments.model))
    full = mujoco.mjtState.mjSTATE_FULLPHYSICS
    datas = [
        mujoco.MjData(model) for _ in range(arguments.worlds if arguments.threads == 1 else arguments.threads)
    ]
    for data in datas:
        mujoco.mj_resetDataKeyframe(model, data, 0)
    if arguments.threads == 1:

        def step(count: int) -> None:
            for data in datas:
                mujoco.mj_step(model, data, count)

        def largest_speed() -> float:
            return max(float(np.abs(data.qvel).max()) for data in datas)

        measure(arguments, step, largest_speed, mujoco.__version__)
        return

    start = np.empty(mujoco.mj_stateSize(model, full))
    mujoco.mj_getState(model, datas[0], start, full)
    states = np.repeat(start[None], arguments.worlds, axis=0)
    control = np.tile(datas[0].ctrl, (arguments.worlds, TRAJECTORY_STEP_COUNT, 1))
    with rollout.Rollout(nthread=arguments.threads) as pool:

        def step(count: int) -> None:
            nonlocal states
            while count > 0:
                part = min(count, TRAJECTORY_STEP_COUNT)
                trajectory, _ = pool.rollout(model, datas, states, control=control[:, :part], nstep=part)
                states = trajectory[:, -1]
                count -= part

        def largest_speed() -> float:
            velocities = states[:, 1 + model.nq : 1 + model.nq + model.nv]  # after time and positions
            return float(np.abs(velocities).max())

        measure(arguments, step, largest_speed, mujoco.__version__)


if __name__ == "__main__":
    main()
