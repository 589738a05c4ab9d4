"""A load on a rope below a trolley with a prescribed motion.

The trolley is kinematic: it follows its velocity target exactly, whatever pulls at it. While it speeds up,
the load hangs along the apparent gravity and trails behind; then the rope is cut.
"""

import argparse

import numpy as np
import warp as wp

import pluriverse as pv

DT = 0.005  # s
ACCELERATION = 2.0  # m/s²
ROPE = 1.5  # m
GRAVITY = 9.81
IDENTITY = (0.0, 0.0, 0.0, 1.0)


def crane() -> pv.ModelBuilder:
    """Return a rail, a trolley on it and a load on a rope, which leans as when the trolley speeds up."""
    builder = pv.ModelBuilder(gravity=-GRAVITY)
    trolley = builder.add_link(is_kinematic=True, label="trolley")
    lean = np.arctan2(ACCELERATION, GRAVITY)
    place = (-ROPE * np.sin(lean), 0.0, -ROPE * np.cos(lean))
    load = builder.add_link(mass=80.0, inertia=10.0 * np.eye(3), xform=(place, IDENTITY), label="load")
    rail = builder.add_joint_prismatic(-1, trolley, axis="x", actuator_mode=pv.JointTargetMode.VELOCITY)
    rope = builder.add_joint_distance(trolley, load, max_distance=ROPE, label="rope")
    builder.add_articulation([rail, rope])
    return builder


def main() -> None:
    """Run the trolley, print how far the load trails, and cut the rope."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=200, help="number of steps")
    frames = parser.parse_args().frames

    model = crane().finalize()
    simulation = pv.Simulation(model, dt=DT)
    trailing = ROPE * ACCELERATION / np.hypot(ACCELERATION, GRAVITY)
    target = simulation.control.joint_target_vel.numpy()
    for frame in range(1, frames + 1):
        target[0] = ACCELERATION * frame * DT
        simulation.control.joint_target_vel.assign(target)
        simulation.step()
        if frame % 50 == 0:
            trolley, load = simulation.state.body_q.numpy()[:, 0]
            lag = trolley - load
            print(f"{simulation.time:.2f} s: the load trails by {lag:.4f} m, exact {trailing:.4f} m")

    enabled = model.equality_constraint_enabled.numpy()
    enabled[model.equality_constraint_label.index("rope")] = False
    model.equality_constraint_enabled.assign(enabled)
    before = simulation.state.body_q.numpy()[1, 2] + DT * simulation.state.body_qd.numpy()[1, 2] * frames
    simulation.step(frames)
    fallen = before - simulation.state.body_q.numpy()[1, 2]
    # A step moves by the velocity at its end, so the fall leads g t² / 2 by g t dt / 2.
    exact = 0.5 * GRAVITY * frames * (frames + 1) * DT**2
    print(f"cut, it falls by {fallen:.4f} m, exact {exact:.4f} m")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
