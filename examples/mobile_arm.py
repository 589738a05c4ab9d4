"""Another joint for the base of a robot: an arm from a file drives about on a platform, and carries a lamp.

The file of the arm knows no platform. `base_joint` puts its base on one that slides along x and y and turns,
and `parent_body` mounts a second file on the hand of the first.
"""

import argparse
from pathlib import Path

import warp as wp

import pluriverse as pv

DT = 0.005  # s
SPEED = 0.3  # m/s, along x
GRIP = 4000.0  # N·s/m: how firmly the wheels hold their speed
ARM = Path(pv.__file__).parent / "scenes" / "robots" / "heron.urdf"
LAMP = """<robot name="lamp"><link name="bulb">
  <inertial><mass value="0.1"/><inertia ixx="1e-4" iyy="1e-4" izz="1e-4"/></inertial>
</link></robot>"""


def main() -> None:
    """Drive, and print how far the platform and the lamp came."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=400, help="number of steps")
    frames = parser.parse_args().frames

    wheels = pv.JointDofConfig(axis="x", target_vel=SPEED, target_kd=GRIP)
    held = [pv.JointDofConfig(axis=axis, target_kd=GRIP) for axis in "yz"]
    platform = {"joint_type": "d6", "linear_axes": [wheels, held[0]], "angular_axes": [held[1]]}
    builder = pv.ModelBuilder()
    arm = builder.add_urdf(ARM, base_joint=platform)
    builder.joint_target_ke[arm.dofs[3:]] = 2000.0
    builder.joint_target_kd[arm.dofs[3:]] = 200.0
    hand = builder.body_label.index("heron/hand")
    lamp = builder.add_urdf(LAMP, parent_body=hand, xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)))
    model = builder.finalize()

    with pv.Simulation(model, dt=DT) as simulation:
        start = simulation.state.body_q.numpy().copy()
        simulation.step(frames)
        moved = simulation.state.body_q.numpy() - start
    # Speed grows as 1 - exp(-t GRIP / m), so the platform ends up behind by what it missed at first.
    exact = SPEED * (frames * DT - float(model.body_mass.numpy().sum()) / GRIP)
    print(f"platform: {moved[arm.bodies[0], 0]:.4f} m, exact {exact:.4f} m")
    print(f"lamp:     {moved[lamp.bodies[0], 0]:.4f} m, exact {exact:.4f} m")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
