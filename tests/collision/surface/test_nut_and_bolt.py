"""A nut on a bolt: threads that touch in hundreds of places hold, and guide each other."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.geometry import bolt_mesh, nut_mesh

DIAMETER, PITCH, CLEARANCE = 0.02, 0.0035, 1.5e-4
# Way along the axis that the clearance leaves between flanks of 30 degrees [m].
PLAY = 2.0 * CLEARANCE * np.tan(np.pi / 6.0)
START_TURNS = 4.5
TIME_STEP = 1.0 / 240.0
WANTED_SPEED = -4.0 * np.pi  # rad/s, clockwise seen from above
TORQUE = 2.0e-3  # N·m at standstill


def make_world(friction: float) -> pv.ModelBuilder:
    """Return a nut on an upright bolt, in the middle of its play."""
    material = pv.ShapeConfig(density=7800.0, mu=friction, ke=1e6, tau=0.002, gap=2e-4)
    world = pv.ModelBuilder()
    bolt = bolt_mesh(DIAMETER, PITCH, 0.03, head_diameter=0.03, head_height=0.008)
    world.add_shape_mesh(-1, mesh=bolt, cfg=material)
    body = world.add_body(xform=(0.0, 0.0, START_TURNS * PITCH, 0.0, 0.0, 1.0, 0.0))
    nut = nut_mesh(DIAMETER, PITCH, 0.01, clearance=CLEARANCE)
    world.add_shape_mesh(body, mesh=nut, cfg=material)
    return world


def simulate(
    friction: list[float], *, seconds: float, is_turned: list[bool], **options: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the heights [m] and the angles turned [rad], shape [step, world]."""
    builder = pv.ModelBuilder()
    for value in friction:
        builder.add_world(make_world(value))
    model = builder.finalize("cpu")
    states, control = [model.state(), model.state()], model.control()
    pipeline, solver = pv.CollisionPipeline(model), pv.SolverSAP(model, **options)
    contacts = pipeline.contacts()
    heights, yaws = [], []
    force = np.zeros((len(friction), 6), dtype=np.float32)
    for _ in range(round(seconds / TIME_STEP)):
        pose, speed = states[0].body_q.numpy(), states[0].body_qd.numpy()[:, 5]
        heights.append(pose[:, 2].copy())
        yaws.append(2.0 * np.arctan2(pose[:, 5], pose[:, 6]))
        force[:, 5] = np.where(is_turned, -TORQUE * (1.0 - speed / WANTED_SPEED), 0.0)
        states[0].body_f.assign(force)
        pipeline.collide(states[0], contacts)
        solver.step(states[0], states[1], control, contacts, TIME_STEP)
        states.reverse()
    tilt = np.hypot(states[0].body_q.numpy()[:, 3], states[0].body_q.numpy()[:, 4])
    assert tilt.max() < 0.01
    return np.array(heights), np.unwrap(np.array(yaws), axis=0)


def test_nut_is_held_by_its_thread_and_screws_down_by_a_pitch_a_turn():
    """Friction holds the nut; turned, it goes down a pitch a turn; without friction its weight turns it."""
    heights, angles = simulate([0.3, 0.01, 0.1, 0.0], seconds=1.0, is_turned=[False, True, True, False])
    settled = len(heights) // 10
    # Friction above the tangent of the lead, 0.056, by the cosine of the flank, 0.87, holds the nut.
    assert np.ptp(heights[settled:, 0]) < 0.01 * PITCH
    assert np.ptp(angles[settled:, 0]) < 0.01
    for world in (1, 2, 3):
        turns = (angles[settled, world] - angles[-1, world]) / (2.0 * np.pi)
        advance = heights[settled, world] - heights[-1, world]
        assert turns > 0.4
        # Where it is within its play may differ between start and end.
        assert advance == pytest.approx(turns * PITCH, abs=PLAY, rel=0.02)
        # And in between: the thread never lets it jump.
        along = (angles[:, world] - angles[0, world]) / (2.0 * np.pi) * PITCH
        assert np.abs(heights[:, world] - heights[0, world] - along).max() < PLAY + 0.02 * PITCH


def test_frictionless_nut_falls_as_its_helix_lets_it():
    """The weight drives mass and turning inertia by the lead: a = g / (1 + I (2 pi / P)² / m)."""
    # Contacts that give way ride over the facets; near rigid ones lose a quarter of the acceleration there.
    heights, _ = simulate([0.0], seconds=0.4, is_turned=[False], contact_preset_variant="approx32")
    nut = nut_mesh(DIAMETER, PITCH, 0.01, clearance=CLEARANCE)
    properties = nut.mass_properties(7800.0)
    inertia = properties.inertia[2, 2]
    expected = 9.81 / (1.0 + inertia * (2.0 * np.pi / PITCH) ** 2 / properties.mass)
    time = TIME_STEP * np.arange(len(heights))
    settled = len(heights) // 8
    acceleration = -2.0 * np.polyfit(time[settled:], heights[settled:, 0], 2)[0]
    # Facets of 10 degrees make the way bumpy, which costs energy.
    assert acceleration == pytest.approx(expected, rel=0.2)
