"""Boxes that spin on a floor, in contact points and in pressure patches.

Two boxes of equal weight and friction, one half as wide as the other, are set spinning. In patches friction
acts over the whole face; in points it acts at the four corners, with a longer arm, and stops them sooner.
"""

import argparse

import numpy as np

import pluriverse as pv

DT = 0.002  # s
SPIN = 6.0  # rad/s
FRICTION = 0.2
GRAVITY = 9.81  # m/s²
# Mean distance of the points of a unit square from its middle, relative to the side: the arm of friction.
SQUARE_ARM = (np.sqrt(2.0) + np.log(1.0 + np.sqrt(2.0))) / 6.0


def spinning_box(half_width: float, *, is_hydroelastic: bool) -> pv.ModelBuilder:
    """Return a floor and a flat box of 8 kg on it."""
    config = pv.ShapeConfig(
        is_hydroelastic=is_hydroelastic,
        kh=1e7,
        ke=2e4,
        mu=FRICTION,
        gap=0.002,
        density=0.08 / half_width**2 * 1e3,
    )
    builder = pv.ModelBuilder()
    builder.add_ground_plane(cfg=config)
    body = builder.add_body(xform=(0.0, 0.0, 0.025, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_box(body, hx=half_width, hy=half_width, hz=0.025, cfg=config)
    return builder


def main() -> None:
    """Spin the boxes and print how fast they slow down."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=60, help="number of steps")
    arguments = parser.parse_args()

    half_widths = (0.1, 0.1, 0.2, 0.2)
    builder = pv.ModelBuilder()
    for index, half_width in enumerate(half_widths):
        builder.add_world(spinning_box(half_width, is_hydroelastic=index % 2 == 1))
    simulation = pv.Simulation(builder.finalize("cpu"), dt=DT)
    simulation.step(200)  # settle

    velocity = np.zeros((len(half_widths), 6), dtype=np.float32)
    velocity[:, 5] = SPIN
    simulation.state.joint_qd.assign(velocity.reshape(-1))
    simulation.step(arguments.frames)
    slowed = (SPIN - simulation.state.body_qd.numpy()[:, 5]) / (arguments.frames * DT)

    print("half width   contact   slows by     arm of friction / half width")
    for index, (half_width, rate) in enumerate(zip(half_widths, slowed, strict=True)):
        # Friction mu m g at an arm turns the inertia m (2 a)^2 / 6 of a square of half width a.
        arm = rate * (2.0 * half_width) ** 2 / 6.0 / (FRICTION * GRAVITY)
        kind = "patch " if index % 2 == 1 else "points"
        print(f"{half_width:6.1f} m     {kind}    {rate:5.2f} rad/s²  {arm / half_width:.2f}")
    print(f"expected: {2.0 * SQUARE_ARM:.2f} over the face, {np.sqrt(2.0):.2f} at the corners")


if __name__ == "__main__":
    main()
