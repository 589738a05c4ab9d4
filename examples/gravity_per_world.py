"""One scene, another gravity in every world.

A box is thrown up on the Earth, on Mars, on the Moon and in free space.
"""

import argparse

import warp as wp

import pluriverse as pv

DT = 0.001  # s
SPEED = 2.0  # m/s, upwards
PLACES = {"Earth": -9.81, "Mars": -3.73, "Moon": -1.62, "free space": 0.0}  # m/s²


def main() -> None:
    """Throw the box everywhere and print how high it is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=300, help="number of steps")
    frames = parser.parse_args().frames

    box = pv.ModelBuilder()
    body = box.add_body(xform=((0.0, 0.0, 1.0), (0.0, 0.0, 0.0, 1.0)))
    box.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    box.joint_qd[2] = SPEED

    builder = pv.ModelBuilder()
    for place, gravity in PLACES.items():
        builder.begin_world(place, gravity=gravity)
        builder.add_builder(box)
        builder.end_world()
    builder.add_ground_plane()
    model = builder.finalize()

    simulation = pv.Simulation(model, dt=DT)
    simulation.step(frames)

    time = simulation.time
    for world, (place, gravity) in enumerate(PLACES.items()):
        height = simulation.state.body_q.numpy()[world, 2]
        exact = 1.0 + SPEED * time + 0.5 * gravity * time**2
        print(f"{place:>10}: z = {height:.4f} m after {time:.2f} s (in the air: {exact:.4f} m)")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
