"""Worlds that differ: an arm under drives beside one, two or three boxes, written in Newton's interface.

The same program runs on Newton 1.8 after a change of the lines that import:

    import newton
    from newton.solvers import SolverFeatherstone as Solver

SolverMuJoCo and the views of Newton need worlds of equal structure; so the coordinates are found by their
`*_world_start` here.
"""

import argparse

import numpy as np
import warp as wp

import pluriverse as newton
from pluriverse import SolverSAP as Solver

DT = 0.002  # s
BOX_COUNTS = (1, 2, 3)  # per world
HALF_SIZE = 0.1  # m, of a box
LENGTH = 0.4  # m, of a link
TARGETS = (0.4, -0.9)  # rad, what the drives hold
UPRIGHT = wp.quat_identity()


def arm_and_boxes(box_count: int) -> newton.ModelBuilder:
    """Return an arm of two links, and boxes in a stack in front of it."""
    builder = newton.ModelBuilder()
    builder.default_shape_cfg.ke = 1.0e5
    parent, joints = -1, []
    for place, target in enumerate(TARGETS):
        link = builder.add_link(label=f"link_{place}")
        middle = wp.transform((0.0, 0.0, 0.5 * LENGTH), UPRIGHT)
        builder.add_shape_capsule(link, xform=middle, radius=0.03, half_height=0.5 * LENGTH - 0.03)
        height = LENGTH if place else 0.5
        joints.append(
            builder.add_joint_revolute(
                parent,
                link,
                parent_xform=wp.transform((0.0, 0.0, height), UPRIGHT),
                axis=newton.Axis.Y,
                target_pos=target,
                target_ke=100.0,
                target_kd=10.0,
                armature=0.01,
                label=f"joint_{place}",
            )
        )
        parent = link
    builder.add_articulation(joints, label="arm")
    for place in range(box_count):
        pose = wp.transform((1.5, 0.0, (2 * place + 1) * (HALF_SIZE + 0.002)), UPRIGHT)
        box = builder.add_body(xform=pose, label=f"box_{place}")
        builder.add_shape_box(box, hx=HALF_SIZE, hy=HALF_SIZE, hz=HALF_SIZE)
    return builder


def simulate(steps: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return angles of the arms [rad], shape [world, joint], and heights of the boxes [m] of each world."""
    builder = newton.ModelBuilder()
    builder.default_shape_cfg.ke = 1.0e5
    builder.add_ground_plane()
    for box_count in BOX_COUNTS:
        builder.add_world(arm_and_boxes(box_count))
    model = builder.finalize("cpu")

    solver = Solver(model)
    pipeline = newton.CollisionPipeline(model)
    contacts = pipeline.contacts()
    state, next_state, control = model.state(), model.state(), model.control()
    newton.eval_fk(model, model.joint_q, model.joint_qd, state)

    for _ in range(steps):
        state.clear_forces()
        pipeline.collide(state, contacts)
        solver.step(state, next_state, control, contacts, DT)
        state, next_state = next_state, state

    first = model.joint_coord_world_start.numpy()[: len(BOX_COUNTS)]  # the arms come first in their worlds
    angles = state.joint_q.numpy()[first[:, None] + np.arange(len(TARGETS))]
    start = model.body_world_start.numpy()
    z = state.body_q.numpy()[:, 2]
    heights = [z[start[world] + len(TARGETS) : start[world + 1]] for world in range(len(BOX_COUNTS))]
    return angles, heights


def main() -> None:
    """Step the worlds and print where arms and boxes rest."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1000, help="number of steps")
    angles, heights = simulate(parser.parse_args().frames)
    for world, (angle, height) in enumerate(zip(angles, heights, strict=True)):
        boxes = " ".join(f"{value:.4f}" for value in height)
        print(f"world {world}: arm at {angle[0]:.4f} {angle[1]:.4f} rad, boxes at {boxes} m")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
