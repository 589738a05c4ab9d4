"""Boxes pressed flat on each other, but for a slight tilt: the fingers of a gripper on a cube."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pluriverse as pv
from tests.collision.pairs import box, collide_pairs

CUBE = 0.0225  # m, half its side
PAD = (0.01, 0.01, 0.02)  # m, half extents


def test_the_normal_stays_that_of_the_face_while_a_pad_tilts():
    """Up to 4 degrees of tilt and 1 mm of overlap, the normal is that of the face of the cube, to the bit.

    The minimum translation is often across two edges, a few degrees off, and jumps from pair to pair of them.
    """
    rng = np.random.default_rng(0)
    count = 200
    tilts = rng.normal(size=(count, 3))
    tilts *= np.radians(rng.uniform(0.0, 4.0, count) / np.linalg.norm(tilts, axis=1))[:, None]
    overlap = rng.uniform(2e-4, 1e-3, count)
    place = rng.uniform((-0.012, -0.002), (0.012, 0.022), (count, 2))
    position = np.column_stack([CUBE + PAD[0] - overlap, place])
    origin = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (count, 1))
    turned = np.column_stack([position, Rotation.from_rotvec(tilts).as_quat()])
    for contacts in collide_pairs(box(CUBE, CUBE, CUBE), box(*PAD), origin, turned, gap=0.001):
        assert contacts.count >= 3
        sign = np.where(contacts.shape0 % 2 == 0, 1.0, -1.0)[:, None]
        np.testing.assert_array_equal(sign * contacts.normal, np.tile([1.0, 0.0, 0.0], (contacts.count, 1)))
        assert contacts.distance.min() < -1e-4


def test_the_normal_stays_while_a_fingertip_sinks_in_near_the_top_of_a_cube():
    """The fingertip of a Franka hand at 12 degrees to a cube, 7 mm below its top: only normals of faces.

    Two pairs of edges, 5 and 33 degrees off, are as short a translation, by turns. Several contacts carry.
    """
    cube, tip = 0.02, (0.00875, 0.0076, 0.00925)
    r = Rotation.from_matrix([[0.91, -0.167, -0.38], [-0.211, -0.974, -0.079], [-0.357, 0.152, -0.921]])
    reach = np.abs(r.as_matrix()) @ tip
    overlap = np.linspace(1.6e-3, 7e-3, 40)  # edges touch from 1.42 mm on
    position = np.column_stack(
        [np.full(40, -0.008), -cube - reach[1] + overlap, np.full(40, 0.0133 + reach[2])]
    )
    turned = np.column_stack([position, np.tile(r.as_quat(), (40, 1))])
    origin = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (40, 1))
    for contacts in collide_pairs(box(cube, cube, cube), box(*tip), origin, turned, gap=0.001):
        sign = np.where(contacts.shape0 % 2 == 0, 1.0, -1.0)[:, None]
        normal = sign * contacts.normal
        faces = (
            np.abs(normal - [0.0, -1.0, 0.0]).max(axis=1),
            np.abs(normal - r.as_matrix()[:, 1]).max(axis=1),
        )
        assert np.minimum(*faces).max() < 1e-3
        assert contacts.count >= 2


def test_edges_that_cross_keep_their_normal():
    """Two cubes that touch at edges at right angles, each turned by 45 degrees: no face is preferred."""
    half, depth = 0.1, 0.004
    first = Rotation.from_euler("x", 45.0, degrees=True).as_quat()
    second = Rotation.from_euler("y", 45.0, degrees=True).as_quat()
    apart = 2.0 * np.sqrt(2.0) * half - depth
    poses = np.array([[0.0, 0.0, 0.0, *first]]), np.array([[0.0, 0.0, apart, *second]])
    (contacts,) = collide_pairs(box(half, half, half), box(half, half, half), *poses, gap=0.001)
    assert contacts.count == 1
    np.testing.assert_allclose(contacts.distance, -depth, atol=1e-6)
    np.testing.assert_allclose(np.abs(contacts.normal), [[0.0, 0.0, 1.0]], atol=1e-6)


def make_gripper(ke: float | None, tilt: float) -> pv.ModelBuilder:
    """Two pads on drives that push with 20 N at most, on a hand that lifts, and a cube on a table between."""
    builder = pv.ModelBuilder()
    config = pv.ShapeConfig(ke=ke, mu=1.0, density=0.0)
    drive = {"actuator_mode": pv.JointTargetMode.POSITION}
    hand = builder.add_link(mass=1.0, inertia=0.01 * np.eye(3))
    lift = builder.add_joint_prismatic(
        -1, hand, axis=(0.0, 0.0, 1.0), target_ke=1e4, target_kd=400.0, **drive
    )
    joints = [lift]
    for side in (1.0, -1.0):
        finger = builder.add_link(mass=0.1, inertia=1e-4 * np.eye(3))
        joints.append(
            builder.add_joint_prismatic(
                hand,
                finger,
                axis=(side, 0.0, 0.0),
                target_ke=1000.0,
                target_kd=100.0,
                effort_limit=20.0,
                **drive,
            )
        )
        turn = Rotation.from_euler("zyx", [side * tilt, 0.7 * tilt, 0.0]).as_quat()
        pad = ((0.035 * side, 0.0, 0.01), tuple(turn))
        builder.add_shape_box(finger, xform=pad, hx=PAD[0], hy=PAD[1], hz=PAD[2], cfg=config)
    builder.add_articulation(joints)
    cube = builder.add_body(mass=0.2, inertia=0.2 * (2.0 * CUBE) ** 2 / 6.0 * np.eye(3))
    builder.add_shape_box(cube, hx=CUBE, hy=CUBE, hz=CUBE, cfg=config)
    table = ((0.0, 0.0, -CUBE - 0.05), (0.0, 0.0, 0.0, 1.0))
    builder.add_shape_box(-1, xform=table, hx=0.2, hy=0.2, hz=0.05, cfg=config)
    return builder


@pytest.mark.parametrize("dt", [0.002, 0.005])
@pytest.mark.parametrize(
    ("solver", "ke", "slip"),
    [
        (pv.SolverSAP, None, 5e-4),
        (pv.SolverSAP, 1e4, 5e-4),
        (pv.SolverSAP, 1e5, 5e-4),
        # MuJoCo finds its own contacts, and its regularised friction creeps.
        (pv.SolverMuJoCo, 1e5, 6e-3),
    ],
)
def test_tilted_fingers_lift_a_cube_and_carry_it(solver, ke, slip, dt):
    """A cube of 45 mm comes 0.2 m up with the hand, and stays there for a second."""
    builder = pv.ModelBuilder()
    tilts = [0.5, 2.0, 4.0] if solver is pv.SolverMuJoCo else [0.5, 2.0, 4.0, 8.0, 12.0]
    for tilt in tilts:
        builder.add_world(make_gripper(ke, np.radians(tilt)))
    model = builder.finalize("cpu")
    with pv.Simulation(model, solver(model), dt=dt, threads=1) as simulation:

        def command(height: float) -> None:
            target = simulation.control.joint_target_pos.numpy().reshape(len(tilts), -1)
            target[:, :3] = [height, -0.05, -0.05]
            simulation.control.joint_target_pos.assign(target.reshape(-1))

        def heights() -> np.ndarray:
            return simulation.state.body_q.numpy().reshape(len(tilts), 4, 7)[:, :, 2]

        command(0.0)
        simulation.step(round(0.5 / dt))
        steps = round(0.5 / dt)
        for step in range(steps):
            command(0.2 * (step + 1) / steps)
            simulation.step(1)
        simulation.step(round(0.2 / dt))
        before = heights()
        simulation.step(round(1.0 / dt))
        after = heights()
    assert (after[:, 3] > 0.19).all()
    assert np.abs((after - before)[:, 3] - (after - before)[:, 0]).max() < slip
