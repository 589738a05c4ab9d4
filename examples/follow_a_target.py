"""An arm follows a target: in every frame inverse kinematics turns it into targets of the drives.

The hand goes around a circle and keeps its orientation. A solve begins at the targets before, so it takes
few iterations, and the drives hold the arm against gravity.
"""

import argparse
from pathlib import Path

import numpy as np
import warp as wp

import pluriverse as pv

DT = 0.005  # s
PERIOD = 4.0  # s
RADIUS = 0.08  # m
ARM = Path(pv.__file__).parent / "scenes" / "robots" / "heron.urdf"


def main() -> None:
    """Follow the circle, and print how far the hand is from its centre."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=400, help="number of steps")
    frames = parser.parse_args().frames

    builder = pv.ModelBuilder(gravity=0.0)
    arm = builder.add_urdf(ARM, floating=False)
    builder.joint_target_ke[arm.dofs] = 5000.0
    builder.joint_target_kd[arm.dofs] = 50.0
    middle = 0.5 * (builder.joint_limit_lower[arm.dofs] + builder.joint_limit_upper[arm.dofs])
    builder.joint_q[arm.coords] = middle + 0.3
    hand = builder.body_label.index("heron/hand")
    model = builder.finalize()

    simulation = pv.Simulation(model, dt=DT)
    place = simulation.state.body_q.numpy()[hand].copy()
    centre = place[:3] - [RADIUS, 0.0, 0.0]
    position = pv.ik.IKObjectivePosition(hand, (0.0, 0.0, 0.0), place[None, :3])
    rotation = pv.ik.IKObjectiveRotation(hand, (0.0, 0.0, 0.0, 1.0), place[None, 3:], weight=0.1)
    limits = pv.ik.IKObjectiveJointLimit(model.joint_limit_lower, model.joint_limit_upper)
    solver = pv.ik.IKSolver(model, 1, [position, rotation, limits])

    targets = simulation.control.joint_target_q
    for frame in range(1, frames + 1):
        # Slowly at first, so that the arm need not jump.
        angle = 2.0 * np.pi * DT / PERIOD * frame * min(1.0, frame / 100.0)
        position.set_target_position(0, centre + RADIUS * np.array([np.cos(angle), np.sin(angle), 0.0]))
        solver.step(targets, targets, iterations=10)
        simulation.step()
        if frame % 50 == 0:
            away = np.linalg.norm(simulation.state.body_q.numpy()[hand, :3] - centre)
            print(f"{simulation.time:.2f} s: the hand is {away:.4f} m from the centre, exact {RADIUS:.4f} m")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
