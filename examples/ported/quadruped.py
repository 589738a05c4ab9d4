"""A quadruped from an MJCF file stands on its drives, written in Newton's interface.

The same program runs on Newton 1.8 after a change of the lines that import:

    import newton
    from newton.solvers import SolverMuJoCo as Solver

Newton keeps the positions that drives hold like coordinates (`joint_target_q`), Pluriverse like velocities
(`joint_target_pos`), so that `hold` below knows both.
"""

import argparse
from pathlib import Path

import numpy as np
import warp as wp

import pluriverse as newton
from pluriverse import SolverSAP as Solver

DT = 0.002  # s
ROBOT = Path(newton.__file__).parent / "scenes" / "robots" / "puli.xml"
LEG = (0.0, 0.8, -1.6)  # rad: abduction, hip, knee
START_HEIGHT = 0.31  # m, of the trunk


def build_model(robot: Path) -> newton.Model:
    """Return a model of the robot above the ground, its legs bent."""
    builder = newton.ModelBuilder()
    builder.default_shape_cfg.ke = 1.0e5
    builder.default_shape_cfg.gap = 0.005
    builder.add_mjcf(str(robot))
    builder.joint_q[:7] = [0.0, 0.0, START_HEIGHT, 0.0, 0.0, 0.0, 1.0]
    builder.joint_q[7:] = [*LEG] * 4
    builder.add_ground_plane()
    return builder.finalize("cpu")


def hold(control: newton.Control, model: newton.Model) -> None:
    """Let the drives hold the legs where they are at the start."""
    if hasattr(control, "joint_target_q"):
        control.joint_target_q.assign(model.joint_q)  # [coord]
    else:
        control.joint_target_pos.assign(np.r_[np.zeros(6), model.joint_q.numpy()[7:]])  # [dof]


def simulate(steps: int, robot: Path = ROBOT) -> tuple[float, float, set[str]]:
    """Return height of the trunk [m], cosine of its tilt, and the names of the shapes on the ground."""
    model = build_model(robot)
    solver = Solver(model)
    pipeline = newton.CollisionPipeline(model)
    contacts = pipeline.contacts()
    state, next_state, control = model.state(), model.state(), model.control()
    newton.eval_fk(model, model.joint_q, model.joint_qd, state)
    hold(control, model)

    for _ in range(steps):
        state.clear_forces()
        pipeline.collide(state, contacts)
        solver.step(state, next_state, control, contacts, DT)
        state, next_state = next_state, state

    count = int(contacts.rigid_contact_count.numpy()[0])
    pairs = (contacts.rigid_contact_shape0.numpy()[:count], contacts.rigid_contact_shape1.numpy()[:count])
    touching = {model.shape_label[shape].split("/")[-1] for shape in np.concatenate(pairs)}
    trunk = wp.transform(*state.body_q.numpy()[0])
    up = wp.quat_rotate(trunk.q, wp.vec3(0.0, 0.0, 1.0))
    return float(trunk.p[2]), float(wp.dot(up, wp.vec3(0.0, 0.0, 1.0))), touching


def main() -> None:
    """Step the robot and print how it stands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1000, help="number of steps")
    parser.add_argument("--robot", type=Path, default=ROBOT, help="MJCF file")
    arguments = parser.parse_args()
    height, upright, touching = simulate(arguments.frames, arguments.robot)
    print(f"trunk at {height:.4f} m, cosine of its tilt {upright:.5f}")
    print("in contact:", ", ".join(sorted(touching)))


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
