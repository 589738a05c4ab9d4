"""Steps in MuJoCo's C engine: MuJoCo's bits, world by world, whatever else is in the batch."""

import copy

import mujoco
import numpy as np
import pytest
import warp as wp

from pluriverse import ModelBuilder, ModelFlags, Simulation
from pluriverse.model import Contacts
from pluriverse.solvers.mujoco.solver import SolverMuJoCo
from tests.solvers.mujoco.worlds import BOX_HALF, BOX_MASS, NO_TURN, boxes, build, world_slice

DT = 0.004
MIX = ["robot", "boxes", "pendulum", "robot", "boxes"]
FLOAT32_ROUNDING = 2.0**-23


def rows_of(solver: SolverMuJoCo, name: str, world: int) -> np.ndarray:
    """Return what a world has of an array of MuJoCo's data."""
    group = solver.world_group[world]
    return solver.engine.exchange.rows.of_group(solver.groups, group, name).numpy()[solver.world_row[world]]


def run(kinds: list[str], step_count: int = 30, **arguments) -> Simulation:
    model = build(kinds)
    simulation = Simulation(model, SolverMuJoCo(model), dt=DT, **arguments)
    simulation.step(step_count)
    return simulation


def joint_state(simulation: Simulation, world: int) -> np.ndarray:
    model, state = simulation.model, simulation.state
    return np.concatenate(
        [
            world_slice(model, state.joint_q.numpy(), "joint_coord", world),
            world_slice(model, state.joint_qd.numpy(), "joint_dof", world),
            world_slice(model, state.body_q.numpy(), "body", world).reshape(-1),
        ]
    )


def test_steps_are_those_of_mujoco():
    """A world follows `mj_step` on its MuJoCo model bit for bit, with contacts, drives and warm start.

    That holds with islands too, which the engine does without for a single robot.
    """
    model = build(MIX)
    solver = SolverMuJoCo(model)
    state_in, state_out, control = model.state(), model.state(), model.control()
    solver.step(state_in, state_out, control, None, DT)
    datas = []
    for world in range(model.world_count):
        mujoco_model = copy.copy(solver.groups[solver.world_group[world]].model)
        mujoco_model.opt.timestep = DT
        mujoco_model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_ISLAND)
        data = mujoco.MjData(mujoco_model)
        for name in ("qpos", "qvel", "qacc_warmstart", "ctrl"):
            getattr(data, name)[:] = rows_of(solver, name, world)
        data.time = rows_of(solver, "time", world)[0]
        datas.append((mujoco_model, data))
    for _ in range(60):
        state_in, state_out = state_out, state_in
        solver.step(state_in, state_out, control, None, DT)
        for world, (mujoco_model, data) in enumerate(datas):
            mujoco.mj_step(mujoco_model, data)
            for name in ("qpos", "qvel", "qacc_warmstart"):
                np.testing.assert_array_equal(rows_of(solver, name, world), getattr(data, name))
            assert solver.last_contact_count.numpy()[world] == data.ncon
    assert datas[0][1].nisland == 1
    assert solver.last_contact_count.numpy()[1] > 0  # the boxes have landed


@pytest.mark.parametrize(
    ("kinds", "arguments"),
    [
        (MIX, {"threads": 3}),
        (MIX, {"record": False}),
        (MIX, {"threads": 2, "decimation": 3}),
        (list(reversed(MIX)), {"threads": 1}),
        (["boxes"], {}),
        (["pendulum", "boxes", "robot"] * 7, {"threads": 4}),
        (MIX, {"threads": 12}),  # more than there are workers on most machines
    ],
)
def test_a_world_does_not_depend_on_its_neighbours(kinds: list[str], arguments: dict[str, object]):
    """Bits do not depend on batch, place in it, threads, recording or steps per call."""
    reference = run(["robot", "boxes", "pendulum"], threads=1)
    expected = {kind: joint_state(reference, k) for k, kind in enumerate(["robot", "boxes", "pendulum"])}
    other = run(kinds, 30 // arguments.get("decimation", 1), **arguments)
    for world, kind in enumerate(kinds):
        np.testing.assert_array_equal(joint_state(other, world), expected[kind])


def test_bodies_follow_from_the_new_joint_state():
    """`body_q` is where MuJoCo has the bodies after its step."""
    simulation = run(MIX)
    solver, model = simulation.solver, simulation.model
    for world in range(model.world_count):
        group = solver.groups[solver.world_group[world]]
        data = mujoco.MjData(group.model)
        data.qpos[:] = rows_of(solver, "qpos", world)
        mujoco.mj_kinematics(group.model, data)
        poses = world_slice(model, simulation.state.body_q.numpy(), "body", world)
        # Joint frames and axes are single precision; a chain has up to 5 of them, within 1 m.
        np.testing.assert_allclose(poses[:, :3], data.xpos[group.body_mj], atol=20 * FLOAT32_ROUNDING)


def test_a_state_keeps_what_single_precision_cannot_hold():
    """A world whose State is handed on untouched goes on in double precision; a new State begins anew."""
    model = build(["pendulum"])
    solver = SolverMuJoCo(model)
    first, second = model.state(), model.state()
    solver.step(first, second, None, None, DT)
    precise = rows_of(solver, "qpos", 0).copy()
    assert not np.array_equal(precise, precise.astype(np.float32))
    solver.step(second, first, None, None, DT)
    data = mujoco.MjData(solver.groups[0].model)
    data.qpos[:] = precise
    moved = second.joint_q.numpy()
    moved[0] += 1e-3
    second.joint_q.assign(moved)
    solver.step(second, first, None, None, DT)
    quat = rows_of(solver, "qpos", 0)
    assert np.abs(np.abs(quat @ precise) - 1.0) > 1e-8  # it began from what was written


def test_worlds_not_listed_keep_still():
    """Only the worlds listed are stepped; the others are not even read."""
    model = build(MIX)
    solver = SolverMuJoCo(model)
    state_in, state_out = model.state(), model.state()
    for array in (state_out.joint_q, state_out.joint_qd):
        array.fill_(float("nan"))
    chosen = wp.array([1, 3], dtype=wp.int32, device="cpu")
    solver.step(state_in, state_out, None, None, DT, worlds=chosen)
    for world in range(model.world_count):
        written = np.isfinite(world_slice(model, state_out.joint_q.numpy(), "joint_coord", world))
        assert written.all() if world in (1, 3) else not written.any()


def test_a_state_written_between_intervals_is_taken_in_later():
    """With update_data_interval=3, a spin written into the State acts in the third step after the first."""
    model = build(["boxes"])
    solver = SolverMuJoCo(model, update_data_interval=3)
    states = [model.state(), model.state()]
    spins = []
    for step in range(5):
        velocity = states[0].joint_qd.numpy()
        velocity[:] = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0 if step == 0 else 2.0] * 2
        states[0].joint_qd.assign(velocity)
        solver.step(states[0], states[1], None, None, DT)
        spins.append(float(rows_of(solver, "qvel", 0)[5]))
        states.reverse()
    # The upper box may brake the lower one when they meet, which they do not in 20 ms.
    np.testing.assert_allclose(spins, [1.0, 1.0, 1.0, 2.0, 2.0], rtol=1e-6)


def test_without_an_interval_a_state_is_taken_in_after_a_reset_only():
    """With update_data_interval=0 what is written into the State waits until the world begins anew."""
    model = build(["boxes"])
    solver = SolverMuJoCo(model, update_data_interval=0)
    states, spins = [model.state(), model.state()], []
    for step in range(6):
        velocity = states[0].joint_qd.numpy()
        velocity[:] = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0 + step] * 2
        states[0].joint_qd.assign(velocity)
        if step == 4:
            solver.unfreeze()
        solver.step(*states, None, None, DT)
        spins.append(float(states[1].joint_qd.numpy()[5]))
    np.testing.assert_allclose(spins, [1.0] * 4 + [5.0] * 2, atol=1e-5)


def test_a_world_with_nan_is_frozen_alone():
    """NaN in one world stops that world in its last state; all others keep their bits."""
    model = build(MIX)
    simulation = Simulation(model, SolverMuJoCo(model), dt=DT, threads=2)
    reference = run(MIX, 20)
    velocity = simulation.state.joint_qd.numpy()
    start = model.joint_dof_world_start.numpy()
    velocity[start[1]] = np.nan
    simulation.state.joint_qd.assign(velocity)
    before = world_slice(model, simulation.state.joint_q.numpy(), "joint_coord", 1).copy()
    with pytest.warns(UserWarning, match="world 1: the state was no longer finite"):
        simulation.step(20)
    assert simulation.solver.world_frozen.numpy().tolist() == [0, 1, 0, 0, 0]
    np.testing.assert_array_equal(
        world_slice(model, simulation.state.joint_q.numpy(), "joint_coord", 1), before
    )
    for world in (0, 2, 3, 4):
        np.testing.assert_array_equal(joint_state(simulation, world), joint_state(reference, world))
    simulation.reset(worlds=[1])
    simulation.step(20)
    np.testing.assert_array_equal(joint_state(simulation, 1), joint_state(reference, 1))


def test_nan_in_a_force_freezes_the_world():
    """MuJoCo would put zero in the place of a control that is NaN; here the world is flagged."""
    model = build(["robot", "boxes"])
    solver = SolverMuJoCo(model)
    control = model.control()
    force = control.joint_f.numpy()
    force[-1] = np.inf
    control.joint_f.assign(force)
    solver.step(model.state(), model.state(), control, None, DT)
    assert solver.world_frozen.numpy().tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="world 1"):
        solver.report(strict=True)


def test_reset_forgets_the_warm_start():
    """A world put back to its beginning runs as it did, bit for bit, and others go on."""
    simulation, reference = run(MIX, 17), run(MIX, 34)
    simulation.reset(worlds=np.array([True, False, False, True, False]))
    simulation.step(17)
    fresh = run(MIX, 17)
    for world, other in enumerate([fresh, reference, reference, fresh, reference]):
        np.testing.assert_array_equal(joint_state(simulation, world), joint_state(other, world))


def test_restore_returns_to_the_same_bits(tmp_path):
    """A snapshot, in memory or in a file, holds the warm start and the double precision as well."""
    simulation = run(MIX, 15)
    snapshot = simulation.save(tmp_path / "snapshot.npz")
    simulation.step(9)
    expected = [joint_state(simulation, world) for world in range(len(MIX))]
    simulation.restore(snapshot)
    simulation.step(9)
    other = run(MIX, 4)
    other.restore(tmp_path / "snapshot.npz")
    other.step(9)
    for world in range(len(MIX)):
        np.testing.assert_array_equal(joint_state(simulation, world), expected[world])
        np.testing.assert_array_equal(joint_state(other, world), expected[world])


def test_contacts_are_listed_with_forces_that_carry_the_weight():
    """At rest the forces on the lowest box add up to the weight; points lie on both surfaces."""
    model = build(["boxes"])
    simulation = Simulation(model, SolverMuJoCo(model), dt=DT)
    simulation.step(400)
    contacts = simulation.contacts
    count = int(contacts.rigid_contact_count.numpy()[0])
    shape0, shape1 = (
        array.numpy()[:count] for array in (contacts.rigid_contact_shape0, contacts.rigid_contact_shape1)
    )
    force, normal = (
        contacts.rigid_contact_force.numpy()[:count],
        contacts.rigid_contact_normal.numpy()[:count],
    )
    ground = shape0 == 0
    assert ground.any()
    assert (~ground).any()
    gravity = 9.81
    np.testing.assert_allclose(force[ground].sum(axis=0)[2], 2 * BOX_MASS * gravity, rtol=1e-3)
    np.testing.assert_allclose(force[~ground].sum(axis=0)[2], BOX_MASS * gravity, rtol=1e-3)
    np.testing.assert_allclose(normal[:, 2], 1.0, atol=1e-3)
    point1 = contacts.rigid_contact_point1.numpy()[:count]
    np.testing.assert_allclose(point1[:, 2], -BOX_HALF, atol=1e-6)  # bottom faces, in the frame of the box
    assert set(shape1.tolist()) == {1, 2}
    copy = Contacts(model, 4)
    simulation.solver.update_contacts(copy)
    assert copy.rigid_contact_count.numpy()[0] == min(count, 4)
    assert copy.rigid_contact_found.numpy()[0] == count
    np.testing.assert_array_equal(copy.rigid_contact_force.numpy(), force[:4])


def test_a_list_too_short_is_reported_and_changes_no_motion():
    """Contacts without a slot act all the same; one warning names world and need."""
    model = build(["pendulum", "boxes"])
    simulation = Simulation(model, SolverMuJoCo(model), dt=DT, rigid_contact_max=3)
    with pytest.warns(UserWarning, match=r"world 1: more contacts than the list.*World 1 had 10"):
        simulation.step(100)
    np.testing.assert_array_equal(joint_state(simulation, 1), joint_state(run(["boxes"], 100), 0))


def test_memory_too_small_is_reported_and_grows():
    """Without memory for a solve, a step is left out and reported; with the memory doubled it is made."""
    builder = boxes(6)
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model, memory=24_000)
    simulation = Simulation(model, solver, dt=DT)
    with pytest.warns(UserWarning, match=r"world 0: .*need more than the \d+ bytes.*memory=") as record:
        _step_one_by_one(simulation, 320)
    assert len(record) == 1
    lost = solver.truncated_step_count.numpy()[0] + solver.engine.failed_step_count.numpy()[0]
    simulation.step(50)
    assert solver.truncated_step_count.numpy()[0] + solver.engine.failed_step_count.numpy()[0] == lost
    assert solver.world_frozen.numpy()[0] == 0
    height = simulation.state.body_q.numpy()[:, 2]
    np.testing.assert_allclose(np.sort(height), BOX_HALF * (1 + 2 * np.arange(6)), atol=0.02)


def _step_one_by_one(simulation: Simulation, count: int) -> None:
    for _ in range(count):
        simulation.step()


def test_strict_mode_raises_where_memory_is_too_small():
    model = boxes(6).finalize(device="cpu")
    simulation = Simulation(model, SolverMuJoCo(model, memory=24_000), dt=DT, strict=True)
    with pytest.raises(RuntimeError, match=r"world 0: .*bytes of memory"):
        simulation.step(300)


def test_worlds_of_one_group_differ_in_mass_and_gravity():
    """Fields per world: each world falls by its own gravity, and its weight is its own."""
    part = boxes(1)
    builder = ModelBuilder()
    for _ in range(3):
        builder.add_world(part)
    model = builder.finalize(device="cpu")
    model.set_gravity(-1.62, world=1)
    mass, inertia = model.body_mass.numpy(), model.body_inertia.numpy()
    mass[2] *= 3.0
    inertia[2] *= 3.0
    model.body_mass.assign(mass)
    model.body_inertia.assign(inertia)
    solver = SolverMuJoCo(model)
    assert len(solver.groups) == 1
    simulation = Simulation(model, solver, dt=DT, threads=2)
    simulation.step(2)
    velocity = simulation.state.joint_qd.numpy().reshape(3, 6)[:, 2]
    np.testing.assert_allclose(velocity, -2 * DT * np.array([9.81, 1.62, 9.81]), rtol=1e-6)
    simulation.step(500)
    start, count = (
        simulation.contacts.rigid_contact_start.numpy(),
        simulation.contacts.rigid_contact_count.numpy(),
    )
    force = simulation.contacts.rigid_contact_force.numpy()
    total = [force[start[w] : start[w] + count[w], 2].sum() for w in range(3)]
    np.testing.assert_allclose(total, BOX_MASS * np.array([9.81, 1.62, 3 * 9.81]), rtol=1e-3)
    # Edits act on notice, in recorded steps too.
    model.set_gravity(-3.0, world=0)
    simulation.notify_model_changed(ModelFlags.MODEL_PROPERTIES)
    simulation.step(300)
    force = simulation.contacts.rigid_contact_force.numpy()
    np.testing.assert_allclose(force[: count[0], 2].sum(), BOX_MASS * 3.0, rtol=1e-3)


def test_worlds_of_one_group_have_the_losses_of_their_own_joints():
    """Damping and friction of a chain that differ between worlds act in each as they do in it alone."""
    losses = ((0.3, 0.0), (0.0, 0.5), (0.05, 0.1))

    def chain(damping: float, friction: float) -> ModelBuilder:
        builder = ModelBuilder()
        links = [builder.add_link(mass=1.0, com=(0.2, 0.0, 0.0), inertia=0.02 * np.eye(3)) for _ in range(2)]
        hinges = [
            builder.add_joint_revolute(-1, links[0], axis="y"),
            builder.add_joint_revolute(*links, axis="y", damping=damping, friction=friction),
        ]
        builder.add_articulation(hinges)
        return builder

    def motion(*worlds: tuple[float, float]) -> np.ndarray:
        builder = ModelBuilder()
        for world in worlds:
            builder.add_world(chain(*world))
        model = builder.finalize("cpu")
        simulation = Simulation(model, SolverMuJoCo(model), dt=DT)
        assert len(simulation.solver.groups) == 1
        simulation.step(50)
        return simulation.state.joint_q.numpy().reshape(-1, 2).copy()

    np.testing.assert_array_equal(motion(*losses), np.concatenate([motion(world) for world in losses]))


def test_forces_push_as_newton_says():
    """Forces on a free body through `body_f` and `joint_f` add up; torques turn about the centre of mass."""
    builder = ModelBuilder(gravity=0.0)
    body = builder.add_body(mass=2.0, inertia=np.diag([0.1, 0.2, 0.3]), com=(0.1, 0.0, 0.0))
    assert body == 0
    model = builder.finalize(device="cpu")
    solver = SolverMuJoCo(model)
    state_in, state_out, control = model.state(), model.state(), model.control()
    state_in.body_f.assign(np.array([[1.0, 0.0, 0.0, 0.0, 0.0, 0.03]], dtype=np.float32))
    control.joint_f.assign(np.array([0.0, 4.0, 0.0, 0.02, 0.0, 0.0], dtype=np.float32))
    solver.step(state_in, state_out, control, None, DT)
    expected = DT * np.array([1.0 / 2.0, 4.0 / 2.0, 0.0, 0.02 / 0.1, 0.0, 0.03 / 0.3])
    np.testing.assert_allclose(state_out.joint_qd.numpy(), expected, rtol=1e-5, atol=1e-9)


def test_kinematic_roots_keep_the_prescribed_state():
    """A kinematic body stays where State says, and others rest on it."""
    builder = ModelBuilder()
    table = builder.add_body(xform=((0.0, 0.0, 0.5), NO_TURN), is_kinematic=True)
    builder.add_shape_box(table, hx=0.5, hy=0.5, hz=0.05)
    box = builder.add_body(xform=((0.0, 0.0, 0.66), NO_TURN))
    builder.add_shape_box(box, hx=BOX_HALF, hy=BOX_HALF, hz=BOX_HALF)
    model = builder.finalize(device="cpu")
    simulation = Simulation(model, SolverMuJoCo(model), dt=DT)
    simulation.step(300)
    poses = simulation.state.body_q.numpy()
    np.testing.assert_array_equal(poses[0], np.array([0.0, 0.0, 0.5, *NO_TURN], dtype=np.float32))
    assert poses[1, 2] == pytest.approx(0.65, abs=0.005)


def test_boxes_rest_on_a_kinematic_platform():
    """A pile of three stands still: what is prescribed is no heavier than the solver can bear."""
    builder = ModelBuilder()
    platform = builder.add_link(is_kinematic=True)
    builder.add_articulation([builder.add_joint_free(platform)])
    builder.add_shape_box(platform, hx=1.0, hy=1.0, hz=BOX_HALF)
    for place in range(3):
        body = builder.add_body(xform=((0.0, 0.0, 2.0 * BOX_HALF * (place + 1)), NO_TURN))
        builder.add_shape_box(body, hx=BOX_HALF, hy=BOX_HALF, hz=BOX_HALF)
    model = builder.finalize("cpu")
    simulation = Simulation(model, SolverMuJoCo(model), dt=DT)
    simulation.step(200)
    speeds = []
    for _ in range(20):
        simulation.step()
        speeds.append(np.abs(simulation.state.joint_qd.numpy()).max())
    assert max(speeds) < 0.02  # rad/s; with a platform of 1e10 kg it was 5


def test_bad_arguments_are_named():
    model = build(["pendulum"])
    solver = SolverMuJoCo(model)
    state = model.state()
    with pytest.raises(ValueError, match=r"dt is 0.0 s"):
        solver.step(state, model.state(), None, None, 0.0)
    with pytest.raises(ValueError, match="the same object"):
        solver.step(state, state, None, None, DT)
    with pytest.raises(ValueError, match="update_data_interval is -1"):
        SolverMuJoCo(model, update_data_interval=-1)
    with pytest.raises(ValueError, match="memory is 0"):
        SolverMuJoCo(model, memory=0)
    with pytest.raises(RuntimeError, match="no step was made yet"):
        SolverMuJoCo(model).update_contacts(Contacts(model, 1))
