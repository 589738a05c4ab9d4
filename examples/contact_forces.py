"""Reading contact forces, per contact and per body.

A quadruped stands; its feet carry its weight.
"""

import argparse

import numpy as np
import warp as wp

import pluriverse as pv


def main() -> None:
    """Let the quadruped stand and print what its feet carry."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=400, help="number of steps")
    frames = parser.parse_args().frames

    scene = pv.load_scene("quadruped")
    simulation = scene.simulation()
    simulation.step(frames)
    model, contacts = scene.model, simulation.contacts

    # The slots of a world begin at rigid_contact_start; as many as rigid_contact_count are in use.
    world = 0
    first = int(contacts.rigid_contact_start.numpy()[world])
    slots = slice(first, first + int(contacts.rigid_contact_count.numpy()[world]))
    shape0, shape1 = (
        contacts.rigid_contact_shape0.numpy()[slots],
        contacts.rigid_contact_shape1.numpy()[slots],
    )
    force = contacts.rigid_contact_force.numpy()[slots]  # N, world axes, on the body of shape1
    for a, b, f in zip(shape0, shape1, force, strict=True):
        names = (model.shape_label[index].split("/")[-1] for index in (a, b))
        print(f"{' on '.join(names)}: {np.array2string(f, precision=2, suppress_small=True)} N")

    on_body = simulation.solver.body_contact_force(contacts).numpy()  # force, torque about the centre of mass
    weight = float(model.body_mass.numpy().sum()) * 9.81
    print(f"all feet together carry {on_body[:, 2].sum():.2f} N, the robot weighs {weight:.2f} N")


if __name__ == "__main__":
    wp.config.log_level = wp.LOG_ERROR
    main()
