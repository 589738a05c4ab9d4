"""Cartpoles in worlds of different gravity, written in Newton's interface.

The same program runs on Newton 1.8 after a change of the lines that import:

    import newton
    from newton.selection import ArticulationView
    from newton.solvers import SolverMuJoCo as Solver

Nothing touches and nothing is driven: the poles swing as gravity and inertia tell.
"""

import argparse

import numpy as np
import warp as wp

import pluriverse as newton
from pluriverse import SolverSAP as Solver
from pluriverse.selection import ArticulationView

DT = 0.001  # s
GRAVITY = (-9.81, -3.71, -1.62)  # m/s², of Earth, Mars and Moon
ANGLE = 0.5  # rad, of the poles at the start
HALF_LENGTH = 0.5  # m, of a pole
UPRIGHT = wp.quat_identity()


def cartpole() -> newton.ModelBuilder:
    """Return a cart on a rail with a pole on it."""
    builder = newton.ModelBuilder()
    light = newton.ModelBuilder.ShapeConfig(density=200.0, collision_group=0)
    cart = builder.add_link(label="cart")
    builder.add_shape_box(cart, hx=0.2, hy=0.1, hz=0.05, cfg=light)
    pole = builder.add_link(label="pole")
    above = wp.transform((0.0, 0.0, HALF_LENGTH), UPRIGHT)
    builder.add_shape_capsule(pole, xform=above, radius=0.03, half_height=HALF_LENGTH, cfg=light)
    rail = builder.add_joint_prismatic(
        -1,
        cart,
        parent_xform=wp.transform((0.0, 0.0, 1.0), UPRIGHT),
        axis=newton.Axis.X,
        armature=0.1,
        label="rail",
    )
    hinge = builder.add_joint_revolute(cart, pole, axis=newton.Axis.Y, label="hinge")
    builder.add_articulation([rail, hinge], label="cartpole")
    builder.joint_q[1] = ANGLE
    return builder


def simulate(steps: int, every: int = 100) -> np.ndarray:
    """Return cart positions [m] and pole angles [rad] after each `every` steps, shape [sample, world, 2]."""
    builder = newton.ModelBuilder()
    builder.replicate(cartpole(), len(GRAVITY))
    model = builder.finalize("cpu")
    for world, gravity in enumerate(GRAVITY):
        model.set_gravity((0.0, 0.0, gravity), world=world)

    solver = Solver(model)
    state, next_state, control = model.state(), model.state(), model.control()
    newton.eval_fk(model, model.joint_q, model.joint_qd, state)
    cartpoles = ArticulationView(model, "cartpole")

    samples = []
    for step in range(1, steps + 1):
        state.clear_forces()
        solver.step(state, next_state, control, None, DT)
        state, next_state = next_state, state
        if step % every == 0:
            samples.append(cartpoles.get_dof_positions(state).numpy().reshape(len(GRAVITY), 2).copy())
    return np.array(samples)


def main() -> None:
    """Step the worlds and print where carts and poles are."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=1000, help="number of steps")
    frames = parser.parse_args().frames
    for gravity, (position, angle) in zip(GRAVITY, simulate(frames, frames)[-1], strict=True):
        print(f"gravity {gravity:6.2f} m/s²: cart at {position:7.4f} m, pole at {angle:7.4f} rad")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
