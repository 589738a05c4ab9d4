"""The loop by hand: find contacts, solve, swap the states.

`Simulation` does the same, recorded and on all cores. By hand, every part is open to change: here a wind
pushes a ball that rolls over the ground.
"""

import argparse

import numpy as np
import warp as wp

import pluriverse as pv

DT = 0.005  # s
WIND = 0.5  # N, along +x


def build_model() -> pv.Model:
    """Return a model of a ball on the ground."""
    builder = pv.ModelBuilder()
    builder.default_shape_cfg.mu = 0.8
    builder.default_shape_cfg.ke = 1.0e5
    ball = builder.add_body(xform=((0.0, 0.0, 0.1), (0.0, 0.0, 0.0, 1.0)), label="ball")
    builder.add_shape_sphere(ball, radius=0.1)
    builder.add_ground_plane()
    return builder.finalize()


def main() -> None:
    """Step the model and print where the ball is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=400, help="number of steps")
    frames = parser.parse_args().frames

    model = build_model()
    pipeline = pv.CollisionPipeline(model)
    solver = pv.SolverSAP(model)
    contacts = pipeline.contacts()
    control = model.control()
    state, next_state = model.state(), model.state()
    wind = np.array([[WIND, 0.0, 0.0, 0.0, 0.0, 0.0]], dtype=np.float32)  # force, torque

    for _ in range(frames):
        state.body_f.assign(wind)
        pipeline.collide(state, contacts)
        solver.step(state, next_state, control, contacts, DT)
        state, next_state = next_state, state

    # Rolling without slipping, 2/5 of the mass resists as well: a = F / (7/5 m).
    time = frames * DT
    acceleration = WIND / (1.4 * float(model.body_mass.numpy()[0]))
    exact = 0.5 * acceleration * time**2
    print(f"ball at x = {state.joint_q.numpy()[0]:.4f} m, pure rolling gives {exact:.4f} m")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
