"""The same worlds by two solvers, with another friction in every world.

A box slides over the ground until friction stops it, in MuJoCo and in SolverSAP. The worlds have one
structure, so one MuJoCo model serves them all, with a friction of each world's own.
"""

import argparse

import warp as wp

import pluriverse as pv

DT = 0.002  # s
SPEED = 1.0  # m/s
FRICTION = (0.2, 0.4, 0.8)
GRAVITY = 9.81  # m/s²
HALF = 0.1  # m


def build_worlds() -> pv.Model:
    """Return a world with a sliding box for each friction."""
    builder = pv.ModelBuilder(gravity=-GRAVITY)
    for mu in FRICTION:
        builder.begin_world(f"mu = {mu}")
        # The solvers mix the friction of two shapes in different ways, which agree where both have the same.
        surface = pv.ShapeConfig(mu=mu)
        builder.add_ground_plane(cfg=surface)
        box = builder.add_body(xform=((0.0, 0.0, 0.5 * HALF), (0.0, 0.0, 0.0, 1.0)))
        builder.add_shape_box(box, hx=HALF, hy=HALF, hz=0.5 * HALF, cfg=surface)
        builder.joint_qd[-6] = SPEED
        builder.end_world()
    return builder.finalize()


def main() -> None:
    """Let the boxes slide and print how far they come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300, help="number of steps")
    frames = parser.parse_args().frames

    model = build_worlds()
    mujoco = pv.SolverMuJoCo(model)
    print(f"{model.world_count} worlds, {len(mujoco.groups)} group, own to each world: ", end="")
    print(", ".join(sorted(mujoco.groups[0].fields)))
    distances = []
    for solver in (mujoco, pv.SolverSAP(model)):
        simulation = pv.Simulation(model, solver, dt=DT)
        simulation.step(frames)
        distances.append(simulation.state.body_q.numpy()[:, 0])
    for world, mu in enumerate(FRICTION):
        exact = SPEED**2 / (2.0 * mu * GRAVITY)
        by_mujoco, by_sap = (float(distance[world]) for distance in distances)
        print(
            f"{model.world_label[world]}: MuJoCo {by_mujoco:.4f} m, SAP {by_sap:.4f} m (exact: {exact:.4f} m)"
        )


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
