"""Steps of one call: what only a user could read or change between them is left out, and nothing else."""

import contextlib

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.collision.shape_state import POSITION_LIMIT
from pluriverse.simulation import StepStage
from pluriverse.solvers.springs import BodySpringTable
from pluriverse.warnings import FrozenWorldWarning

from .worlds import DT, FIRM

STATE = ("joint_q", "joint_qd", "body_q", "body_qd")
WORLD_COUNT = 9  # eight go in lanes, the last one by itself
# Bodies of `make_robot`: a base and a link, each with bodies fixed to it.
BASE, BARE, BARER, SHAPED, LINK, HELD, PULLED, TIP = range(8)


def make_robot(*, is_held: bool = True) -> pv.ModelBuilder:
    """A base with a link, and fixed to them: a body with a shape, one of a constraint, and bare ones."""
    builder = pv.ModelBuilder()
    bodies = [builder.add_link(mass=1.0, inertia=wp.mat33(np.diag([0.1, 0.2, 0.3]))) for _ in range(8)]
    for body in (BASE, SHAPED, LINK):
        builder.add_shape_box(bodies[body], hx=0.1, hy=0.08, hz=0.05, cfg=FIRM)
    joints = [builder.add_joint_free(bodies[BASE], parent=-1)]
    turn = wp.quat_from_axis_angle(wp.vec3(0.6, 0.0, 0.8), 0.7)
    for body, parent in ((BARE, BASE), (BARER, BARE), (SHAPED, BASE)):
        place = wp.transform((0.1 * body, 0.05, -0.1), turn)
        joints.append(builder.add_joint_fixed(bodies[parent], bodies[body], parent_xform=place))
    joints.append(
        builder.add_joint_revolute(bodies[BARER], bodies[LINK], axis=(0.0, 1.0, 0.0), armature=0.01)
    )
    for body, parent in ((HELD, LINK), (PULLED, LINK), (TIP, PULLED)):
        place = wp.transform((0.05, 0.1 * (body - 4), 0.0), turn)
        joints.append(builder.add_joint_fixed(bodies[parent], bodies[body], parent_xform=place))
    builder.add_articulation(joints)
    if is_held:
        builder.add_equality_constraint_connect(-1, bodies[HELD], anchor=(0.5, 0.0, 0.6))
    builder.joint_q[:3] = [0.0, 0.0, 0.1]
    return builder


def make(decimation: int, *, is_held: bool = True, is_pulled: bool = False) -> pv.Simulation:
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(make_robot(is_held=is_held), WORLD_COUNT)
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=DT, decimation=decimation)
    speeds = simulation.state.joint_qd.numpy()
    speeds[:] = np.random.default_rng(3).normal(0.0, 1.0, speeds.shape)
    if is_pulled:
        table = BodySpringTable()
        pulled = model.body_world_start.numpy()[:WORLD_COUNT] + PULLED
        numbers = {
            "body": pulled,
            "articulation": np.arange(WORLD_COUNT),
            "link": np.full(WORLD_COUNT, PULLED),
            "dof_count": np.full(WORLD_COUNT, 7),
            "axes": np.full(WORLD_COUNT, 0b111111),
            "first_dof": model.joint_dof_world_start.numpy()[:WORLD_COUNT],
        }
        for name, values in numbers.items():
            setattr(table, name, wp.array(values.astype(np.int32), dtype=int, device="cpu"))
        table.stiffness = wp.full(WORLD_COUNT, 200.0, dtype=float, device="cpu")
        table.damping = wp.full(WORLD_COUNT, 1.0, dtype=float, device="cpu")
        places = wp.transform((0.1, 0.2, 0.7), wp.quat_identity())
        table.offset = wp.full(WORLD_COUNT, wp.transform_identity(), dtype=wp.transform, device="cpu")
        table.target = wp.full(WORLD_COUNT, places, dtype=wp.transform, device="cpu")
        assert simulation.solver.set_springs(bodies=table)
    return simulation


def assert_same_states(many: pv.Simulation, single: pv.Simulation) -> None:
    for name in STATE:
        found, expected = (getattr(one.state, name).numpy() for one in (many, single))
        np.testing.assert_array_equal(found, expected, err_msg=name)


def test_only_bodies_that_nobody_reads_are_left_out():
    """Those fixed to others that have neither a shape nor a constraint nor a spring."""
    for is_pulled in (False, True):
        simulation = make(1, is_pulled=is_pulled)
        (template,) = simulation.model.templates
        groups = simulation.solver.dynamics.groups
        left_out = template.node_body[groups.node_is_read.numpy() == 0]
        assert set(left_out) == {BARE, BARER, TIP} | (set() if is_pulled else {PULLED})
        assert groups.leaves_out_bodies


@pytest.mark.parametrize("is_pulled", [False, True])
@pytest.mark.parametrize("decimation", [2, 3, 4])
def test_steps_in_a_row_end_like_single_steps(decimation, is_pulled):
    """State and counts have the bits of single steps, with contacts, constraints and springs."""
    single, many = (make(count, is_pulled=is_pulled) for count in (1, decimation))
    for _ in range(10):
        for _ in range(decimation):
            single.step()
        many.step()
        assert_same_states(many, single)
    assert many.report().contact_count_mean == single.report().contact_count_mean > 0.5


def test_many_calls_at_once_end_like_single_steps():
    """Blocks of steps in one recording are in a row, too."""
    single, many = make(1), make(2)
    for _ in range(40):
        single.step()
    many.step(20)
    assert_same_states(many, single)


def test_what_is_written_between_calls_acts_in_all_steps_of_a_call():
    """Forces, states, masses and frames, of bodies that are left out too, give the bits of single steps."""
    simulations = [make(1), make(4)]
    for turn in range(6):
        for simulation in simulations:
            rng = np.random.default_rng(turn)
            model, state = simulation.model, simulation.state
            if turn % 2:
                for array in (simulation.control.joint_f, state.joint_qd, state.body_f):
                    values = array.numpy()
                    values[turn:] += rng.normal(0.0, 0.3, values[turn:].shape).astype(np.float32)
            else:
                model.body_mass.numpy()[8 * turn + TIP] *= 1.5
                model.joint_X_p.numpy()[8 * turn + BARER, :3] += 0.01
        for _ in range(4):
            simulations[0].step()
        simulations[1].step()
        assert_same_states(simulations[1], simulations[0])


@pytest.mark.parametrize("last_sound", [1, 2, 3])
def test_a_world_that_stops_has_all_its_bodies(last_sound):
    """A world too far away in any of four steps ends with the bodies of its last state before that."""
    # After so many steps it has moved by gravity times dt^2 times 1, 3, 6 or 10.
    pull = 1.2 * POSITION_LIMIT / (DT**2 * last_sound * (last_sound + 1) / 2)
    states = []
    for decimation in (1, 4):
        simulation = make(decimation, is_held=False)
        simulation.step(4 // decimation)
        gravity = simulation.model.gravity.numpy()
        gravity[[2, WORLD_COUNT - 1]] = [0.0, 0.0, pull]
        stopped = simulation.solver.world_frozen.numpy()
        for step in range(4 // decimation):
            is_due = decimation == 4 or step == last_sound
            with pytest.warns(FrozenWorldWarning) if is_due else contextlib.nullcontext():
                simulation.step()
            assert stopped.any() == (decimation == 4 or step >= last_sound)
        np.testing.assert_array_equal(np.flatnonzero(stopped), [2, WORLD_COUNT - 1])
        states.append(simulation)
        for name in STATE:
            assert np.isfinite(getattr(simulation.state, name).numpy()).all()
    assert_same_states(states[1], states[0])


def test_a_pose_that_no_step_reads_may_hold_anything():
    """NaN in the pose of a bare body is overwritten, and stops no world."""
    clean, spoiled = make(4), make(4)
    clean.step()
    spoiled.step()
    spoiled.state.body_q.numpy()[8 * 3 + BARER] = np.nan
    spoiled.state.body_qd.numpy()[8 * 3 + TIP] = np.inf
    for simulation in (clean, spoiled):
        simulation.step()
    assert not spoiled.solver.world_frozen.numpy().any()
    assert_same_states(spoiled, clean)


def test_a_stage_sees_all_bodies_after_each_solver_step():
    """With a stage that may read them, nothing is left out."""

    class Look(StepStage):
        is_recorded = False

        def __init__(self):
            self.poses = []

        def before_substep(self, worlds, state):
            self.poses.append(state.body_q.numpy().copy())

    looks = []
    for decimation in (1, 3):
        simulation, look = make(decimation), Look()
        simulation.add_stage(look)
        for _ in range(6 // decimation):
            simulation.step()
        looks.append(look.poses)
    np.testing.assert_array_equal(looks[1], looks[0])
