"""A boom lifted by a hydraulic cylinder, whose slide closes a loop and has the drive.

Barrel and rod of the cylinder turn about pins on ground and boom. The slide between them is the joint that
closes the loop, and keeps its coordinate, the length of the cylinder, which its drive brings to a target.
"""

import argparse

import numpy as np
import warp as wp

import pluriverse as pv

DT = 0.005  # s
BOOM = 2.0  # m
PIN = 0.9  # m, along the boom
FOOT = np.array([0.3, -0.5])  # m, x and z of the pin of the barrel; the boom turns about the origin
IDENTITY = (0.0, 0.0, 0.0, 1.0)


def elevation(length: float) -> float:
    """Return the angle [rad] of the boom above the ground by the cosine theorem."""
    base = np.hypot(*FOOT)
    return np.arccos((PIN**2 + base**2 - length**2) / (2.0 * PIN * base)) + np.arctan2(FOOT[1], FOOT[0])


def excavator(angle: float, target: float) -> pv.ModelBuilder:
    """Return a boom at an angle [rad], and a cylinder that is to be as long as `target` [m]."""
    builder = pv.ModelBuilder()
    inertia = np.diag([1.0, 30.0, 30.0])
    boom = builder.add_link(mass=100.0, com=(0.5 * BOOM, 0.0, 0.0), inertia=inertia, label="boom")
    barrel = builder.add_link(mass=10.0, com=(0.2, 0.0, 0.0), inertia=0.2 * np.eye(3), label="barrel")
    rod = builder.add_link(mass=5.0, com=(-0.2, 0.0, 0.0), inertia=0.1 * np.eye(3), label="rod")
    on_boom, on_ground = ((PIN, 0.0, 0.0), IDENTITY), ((FOOT[0], 0.0, FOOT[1]), IDENTITY)
    pins = [
        builder.add_joint_revolute(-1, boom, axis="y", label="foot"),
        builder.add_joint_revolute(boom, rod, axis="y", parent_xform=on_boom),
        builder.add_joint_revolute(-1, barrel, axis="y", parent_xform=on_ground),
    ]
    builder.add_articulation(pins)
    drive = {"target_pos": target, "target_ke": 2e5, "target_kd": 4e4, "effort_limit": 1e4, "armature": 50.0}
    builder.add_joint_prismatic(barrel, rod, axis="x", **drive, label="cylinder")  # in no articulation
    along = PIN * np.array([np.cos(angle), np.sin(angle)]) - FOOT
    lean = np.arctan2(along[1], along[0])
    builder.joint_q[:3] = [-angle, angle - lean, -lean]
    return builder


def main() -> None:
    """Lift the boom by each solver; print how high its tip is, and how high the cylinder should bring it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=400, help="number of steps")
    frames = parser.parse_args().frames

    model = excavator(angle=0.2, target=1.25).finalize()
    cylinder = int(model.joint_q_start.numpy()[model.joint_label.index("cylinder")])
    for solver in (pv.SolverSAP(model), pv.SolverMuJoCo(model)):
        simulation = pv.Simulation(model, solver, dt=DT)
        simulation.step(frames)
        q = simulation.state.joint_q.numpy()
        height = -BOOM * np.sin(q[0])
        exact = BOOM * np.sin(elevation(q[cylinder]))
        print(f"{type(solver).__name__}: length {q[cylinder]:.3f}, the tip is {height:.4f} m high", end="")
        print(f" (exact: {exact:.4f} m)")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
