"""Worlds of different kinds in one batch, put together with the builder.

Pendulums of one to four links and stacks of boxes are stepped together. No world depends on the others.
"""

import argparse

import warp as wp

import pluriverse as pv

DT = 0.005  # s
STIFFNESS = 1.0e5  # N/m, of each surface
LENGTH = 0.5  # m
UPRIGHT = (0.0, 0.0, 0.0, 1.0)


def pendulum(link_count: int) -> pv.ModelBuilder:
    """Return a chain of rods that hangs from the world and starts horizontally."""
    builder = pv.ModelBuilder()
    parent, joints = -1, []
    for link in range(link_count):
        rod = builder.add_link(label=f"rod_{link}")
        builder.add_shape_capsule(
            rod,
            xform=((0.5 * LENGTH, 0.0, 0.0), (0.0, 0.7071068, 0.0, 0.7071068)),
            radius=0.02,
            half_height=0.5 * LENGTH,
        )
        anchor = (LENGTH, 0.0, 0.0) if link else (0.0, 0.0, 3.0)
        joints.append(builder.add_joint_revolute(parent, rod, parent_xform=(anchor, UPRIGHT), axis="y"))
        parent = rod
    builder.add_articulation(joints)
    return builder


def stack(box_count: int) -> pv.ModelBuilder:
    """Return boxes that fall onto each other."""
    builder = pv.ModelBuilder()
    builder.default_shape_cfg.ke = STIFFNESS
    for box in range(box_count):
        body = builder.add_body(xform=((0.0, 0.0, 0.11 + 0.22 * box), UPRIGHT), label=f"box_{box}")
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    return builder


def main() -> None:
    """Step all worlds and print a line about each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=400, help="number of steps")
    frames = parser.parse_args().frames

    builder = pv.ModelBuilder()
    builder.default_shape_cfg.ke = STIFFNESS  # of the ground
    for count in (1, 2, 3, 4):
        builder.add_world(pendulum(count))
    for count in (1, 3, 5):
        builder.add_world(stack(count))
    builder.add_ground_plane()
    model = builder.finalize()

    simulation = pv.Simulation(model, dt=DT)
    simulation.step(frames)

    start = model.body_world_start.numpy()
    heights = simulation.state.body_q.numpy()[:, 2]
    for world in range(model.world_count):
        bodies = slice(start[world], start[world + 1])
        labels = [label.split("_")[0] for label in model.body_label[bodies]]
        z = " ".join(f"{height:.3f}" for height in heights[bodies])
        print(f"world {world}: {len(labels)} x {labels[0]}, z = {z} m")
    report = simulation.report()
    print(f"{report.world_steps_per_second:,.0f} world-steps per second")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
