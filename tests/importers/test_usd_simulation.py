"""The USD examples move as the mechanics of their files say."""

import numpy as np
import pytest

from pluriverse.geometry import quat_to_matrix
from pluriverse.model_builder import ModelBuilder
from pluriverse.simulation import Simulation

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
pytestmark = pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")


def simulate(builder, dt=0.004):
    """Return the model and its state after a second."""
    model = builder.finalize("cpu")
    simulation = Simulation(model, dt=dt)
    simulation.step(round(1.0 / dt))
    return model, simulation.state


def lowest_point(model, state):
    """Return the height of the lowest point of spheres and capsules [m]."""
    poses, bodies = state.body_q.numpy(), model.shape_body.numpy()
    heights = []
    for shape, local in enumerate(model.shape_transform.numpy()):
        if bodies[shape] >= 0:
            radius, half, _ = model.shape_scale.numpy()[shape]
            body = poses[bodies[shape]]
            turn = quat_to_matrix(body[3:])
            axis = turn @ quat_to_matrix(local[3:])[:, 2]
            heights.append((body[:3] + turn @ local[:3])[2] - half * abs(axis[2]) - radius)
    return min(heights)


def load(robot_assets, name, **options):
    builder = ModelBuilder()
    builder.default_shape_cfg.ke = 1e5  # N/m: a humanoid on two feet sinks in by about a millimetre
    builder.add_usd(robot_assets / "newton_examples" / name, **options)
    return builder


def test_falling_poles_leave_the_centre_of_mass_above_its_place(robot_assets):
    """No force acts along the rail; what the time step leaves of that shrinks with it (first order)."""
    shifts = []
    for dt in (0.004, 0.001):
        builder = load(robot_assets, "cartpole.usda")
        builder.joint_q[1] = 0.2
        model, state = simulate(builder, dt)
        assert state.joint_q.numpy()[1] > 1.0
        mass = model.body_mass.numpy()[1:]
        moved = (state.body_q.numpy() - model.body_q.numpy())[1:, :3]
        shifts.append(mass @ moved / mass.sum())
    assert shifts[1][2] < -0.05
    assert abs(shifts[0][1]) < 0.02
    assert shifts[1][1] == pytest.approx(0.25 * shifts[0][1], rel=0.2)


@pytest.mark.parametrize("name", ["ant.usda", "humanoid.usda"])
def test_robots_fall_to_the_ground_and_stay_whole(robot_assets, name):
    """After a second of fall and contact they are on the ground, not in it, and move slowly."""
    builder = load(robot_assets, name, xform=(0.0, 0.0, 1.4 if name == "humanoid.usda" else 0.0, 0, 0, 0, 1))
    builder.add_ground_plane()
    model, state = simulate(builder)
    assert np.isfinite(state.joint_q.numpy()).all()
    assert -0.01 < lowest_point(model, state) < 0.05  # it has landed
    assert np.abs(state.body_qd.numpy()).max() < 10.0
    lower, upper = model.joint_limit_lower.numpy()[6:], model.joint_limit_upper.numpy()[6:]
    over = np.maximum(lower - state.joint_q.numpy()[7:], state.joint_q.numpy()[7:] - upper)
    assert over.max() < 0.2  # limits give way a little under an impact


def test_four_bar_linkage_stays_closed(robot_assets):
    """The joint that closes the loop holds its two frames together to a small part of a bar."""
    builder = load(robot_assets, "boxes_fourbar.usda")
    builder.joint_qd[6:9] = [2.0, -2.0, 2.0]  # the linkage shears as a parallelogram
    model, state = simulate(builder)
    assert model.equality_constraint_count == 1
    start = model.joint_qd.numpy()
    assert abs(start[9] + 2.0) < 1e-3, "the hinge that closes it has limits, and turns with the others"
    poses = dict(zip((label[-1] for label in model.body_label), state.body_q.numpy(), strict=True))

    def point(body, local):
        return poses[body][:3] + quat_to_matrix(poses[body][3:]) @ np.array(local)

    gap = point("4", (0.0, 0.0, -0.056)) - point("1", (-0.056, 0.0, 0.0))
    bar = 0.1
    assert np.linalg.norm(gap) < 0.01 * bar
    corners = [point(body, (0.0, 0.0, 0.0)) for body in "1234"]
    assert np.linalg.norm(corners[0] - corners[2]) > 0.2 * bar  # open, not folded
    assert corners[0][2] > -0.002  # it rests on the plate of the stage
