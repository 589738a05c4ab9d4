"""Recorded resets of chosen worlds: the bits of launched ones, whatever names the worlds."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse import launch
from pluriverse.sensors import SensorType
from pluriverse.simulation import StepStage, world_reset
from pluriverse.warnings import DeviceIndexWarning, FrozenWorldWarning

from .worlds import DT, KINDS, make_model

SOLVERS = {"sap": pv.SolverSAP, "mujoco": pv.SolverMuJoCo}
WORLDS = ["pile", "flyer", "arm", "pile", "round things", "arm", "flyer", "pile", "arm", "flyer"]
CHOSEN = [1, 2, 5]
MASK = np.isin(np.arange(len(WORLDS)), CHOSEN)


def torch_tensor(values):
    return pytest.importorskip("torch").as_tensor(values)


FORMS = {
    "list": lambda: [5, 1, 2, 1],
    "no world": lambda: [],
    "all worlds": lambda: range(len(WORLDS)),
    "indices of NumPy": lambda: np.array(CHOSEN, dtype=np.uint8),
    "mask of NumPy": lambda: MASK,
    "list of truth values": lambda: MASK.tolist(),
    "indices of Warp": lambda: wp.array(CHOSEN, dtype=wp.int64, device="cpu"),
    "indices with wrong ones": lambda: wp.array([5, -1, 1, 99, 2], dtype=wp.int32, device="cpu"),
    "indices twice": lambda: wp.array([5, 1, 5, 2], dtype=wp.int32, device="cpu"),
    "every other index": lambda: wp.array([5, 0, 1, 0, 2, 0], dtype=wp.int32, device="cpu")[::2],
    "mask of Warp": lambda: wp.array(MASK, dtype=wp.bool, device="cpu"),
    "mask of bytes": lambda: wp.array(3 * MASK.astype(np.uint8), dtype=wp.uint8, device="cpu"),
    "indices of PyTorch": lambda: torch_tensor(CHOSEN),
    "mask of PyTorch": lambda: torch_tensor(MASK),
}


class Counter(StepStage):
    """Counts resets of each world."""

    def __init__(self, model: pv.Model):
        self.counts = wp.zeros(model.world_count, dtype=int, device=model.device)
        self.is_recorded = True
        self.call_count = 0

    def after_reset(self, worlds, mask, state):
        self.call_count += 1
        launch.launch_kernel(
            count_reset, dim=worlds.size, inputs=[worlds, mask], outputs=[self.counts], device="cpu"
        )


@wp.kernel(enable_backward=False, module="tests.simulation.world_reset")
def count_reset(worlds: wp.array[int], mask: wp.array[bool], counts: wp.array[int]):
    """Count the reset of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= counts.shape[0]:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    counts[world] = counts[world] + 1


def make_sensing_model() -> pv.Model:
    """Return worlds that differ, with a sensor in each."""
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    for kind in WORLDS:
        world = KINDS[kind]()
        world.add_sensor(SensorType.GYRO, body=0, label="gyro")
        builder.add_world(world)
    return builder.finalize("cpu")


@contextlib.contextmanager
def pair(model_of=lambda: make_model(WORLDS), solver: str = "sap") -> Iterator[tuple[pv.Simulation, ...]]:
    """Give a simulation whose resets are launched, and one whose resets are recorded."""
    made = [
        pv.Simulation(model, SOLVERS[solver](model), dt=DT, threads=1, record=record)
        for model, record in ((model_of(), False), (model_of(), True))
    ]
    with made[0] as launched, made[1] as recorded:
        for simulation in made:
            simulation.step()
        yield launched, recorded


def arrays_of(simulation: pv.Simulation) -> dict[str, np.ndarray]:
    found = {name: array.numpy() for name, array in simulation.state.arrays().items()}
    found |= {f"sound {name}": array.numpy() for name, array in simulation._loop.last_sound.arrays().items()}
    return found | {"frozen": simulation.solver.world_frozen.numpy()}


def assert_equal(launched: pv.Simulation, recorded: pv.Simulation) -> None:
    expected = arrays_of(launched)
    for name, values in arrays_of(recorded).items():
        assert values.tobytes() == expected[name].tobytes(), name


def reset_both(simulations: tuple[pv.Simulation, ...], form: str = "list", count: int = 3) -> None:
    """Move and reset both simulations some times, and compare all bits after each call."""
    for _ in range(count):
        for simulation in simulations:
            simulation.state.body_f.fill_(wp.spatial_vector(0.0, 0.0, 0.0, 0.0, 0.0, 1.0e-3))
            simulation.step(3)
            simulation.reset(FORMS[form]())
        assert_equal(*simulations)


@contextlib.contextmanager
def counted_launches(monkeypatch) -> Iterator[list[str]]:
    """Give the names of the kernels that are launched from Python meanwhile."""
    names: list[str] = []
    with monkeypatch.context() as patch:
        original = wp.launch

        def count(kernel, *arguments, **options):
            names.append(kernel.key)
            return original(kernel, *arguments, **options)

        patch.setattr(wp, "launch", count)
        yield names


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("form", FORMS)
def test_a_recorded_reset_gives_the_bits_of_a_launched_one(form, solver):
    """First use, recording and replay; another form in between does not matter."""
    with pair(solver=solver) as simulations:
        reset_both(simulations, form, 4)
        reset_both(simulations, "mask of NumPy")
        reset_both(simulations, form)


@pytest.mark.parametrize("form", sorted(FORMS.keys() - {"indices with wrong ones", "indices twice"}))
def test_the_third_reset_launches_nothing_from_python(form, monkeypatch):
    """Also while the number of worlds varies, up to the size of a list."""
    with pv.Simulation(make_model(WORLDS), dt=DT, threads=1) as simulation:
        simulation.step()
        for _ in range(2):
            simulation.reset(FORMS[form]())
        with counted_launches(monkeypatch) as names:
            simulation.reset(FORMS[form]())
            if form == "list":
                simulation.reset([7])
                simulation.reset([0, 1, 2, 3, 4, 5, 6, 7])
        assert names == []
        with counted_launches(monkeypatch) as names:
            simulation.reset(FORMS[form](), state=simulation.model.state())
        assert len(names) >= 3


def test_without_recording_each_reset_is_launched(monkeypatch):
    with pv.Simulation(make_model(WORLDS), dt=DT, threads=1, record=False) as simulation:
        simulation.step()
        for _ in range(3):
            with counted_launches(monkeypatch) as names:
                simulation.reset([1])
            assert len(names) >= 3


def test_more_worlds_than_the_longest_list_holds_are_launched(monkeypatch):
    monkeypatch.setattr(world_reset, "LIST_SIZE_MAX", 8)
    with pair() as simulations:
        for form in ("all worlds", "list", "all worlds", "mask of Warp"):
            reset_both(simulations, form)
        for _ in range(3):
            with counted_launches(monkeypatch) as names:
                simulations[1].reset(range(9))
            assert len(names) >= 3


def test_sensors_that_are_touched_later_are_measured_and_take_their_noise():
    """Also if noise is set between resets, with and without steps after it."""
    with pair(make_sensing_model) as simulations:
        reset_both(simulations)
        for simulation in simulations:
            simulation.sensors  # noqa: B018  the first use adds them

        def compare(form):
            reset_both(simulations, form)
            for _ in range(3):
                for simulation in simulations:
                    simulation.reset(FORMS[form]())
                found = [simulation.sensors["gyro"].numpy() for simulation in simulations]
                assert found[0].tobytes() == found[1].tobytes()
            return found[0].copy()

        plain = compare("list")
        for simulation in simulations:
            simulation.sensors.set_noise("gyro", std=0.1, bias=0.2, delay=(0.0, 3.0 * DT))
            simulation.reset(CHOSEN)
        noisy = [simulation.sensors["gyro"].numpy() for simulation in simulations]
        assert noisy[0].tobytes() == noisy[1].tobytes()
        assert (noisy[0][CHOSEN] != plain[CHOSEN]).any()
        compare("mask of Warp")
        for simulation in simulations:
            simulation.sensors.set_seed(7)
        compare("list")


def test_a_stage_that_is_added_or_removed_is_followed():
    """A recorded reset counts once for each world, one without the stage not at all."""
    with pv.Simulation(make_model(WORLDS), dt=DT, threads=1) as simulation:
        simulation.step()
        for _ in range(3):
            simulation.reset(CHOSEN)
        stage = Counter(simulation.model)
        simulation.add_stage(stage)
        for count in range(1, 7):
            simulation.reset(CHOSEN)
            simulation.step(count % 2)
            np.testing.assert_array_equal(stage.counts.numpy(), count * MASK)
        assert stage.call_count < 6 + 3
        simulation.remove_stage(stage)
        simulation.step()
        for _ in range(3):
            simulation.reset(CHOSEN)
        np.testing.assert_array_equal(stage.counts.numpy(), 6 * MASK)


def test_a_stage_in_python_is_called_at_each_reset():
    with pv.Simulation(make_model(WORLDS), dt=DT, threads=1) as simulation:
        stage = Counter(simulation.model)
        stage.is_recorded = False
        simulation.add_stage(stage)
        simulation.step()
        for count in range(1, 5):
            simulation.reset(CHOSEN)
            assert stage.call_count == count
            np.testing.assert_array_equal(stage.counts.numpy(), count * MASK)


def test_values_assigned_to_arrays_of_the_model_and_the_state_are_seen():
    """An assignment copies into the memory that the recording reads."""
    with pair() as simulations:
        reset_both(simulations)
        for simulation in simulations:
            model, state = simulation.model, simulation.state
            pose = model.body_q.numpy().copy()
            pose[:, 2] += 0.5
            model.body_q = wp.array(pose, dtype=wp.transform, device="cpu")
            model.joint_qd = 0.5 * np.ones(model.joint_dof_count, dtype=np.float32)
            state.joint_qd = wp.zeros(model.joint_dof_count, dtype=float, device="cpu")
            simulation.reset(CHOSEN)
        assert_equal(*simulations)
        first = simulations[1].model.joint_dof_world_start.numpy()[CHOSEN]
        assert (simulations[1].state.joint_qd.numpy()[first] == 0.5).all()
        reset_both(simulations)


def test_a_world_that_froze_moves_again_and_is_named_again():
    """Whichever way the worlds are named; worlds that freeze in turns are named each time."""
    with pv.Simulation(make_model(WORLDS), dt=DT, threads=1) as simulation:
        simulation.step()
        for choice in (CHOSEN, CHOSEN, CHOSEN, MASK, FORMS["mask of Warp"]()):
            velocity = simulation.state.joint_qd.numpy()
            velocity[simulation.model.joint_dof_world_start.numpy()[2]] = np.nan
            with pytest.warns(FrozenWorldWarning, match="world 2"):
                simulation.step()
            assert simulation.solver.world_frozen.numpy().nonzero()[0].tolist() == [2]
            simulation.reset(choice)
            assert not simulation.solver.world_frozen.numpy().any()


def test_a_reset_of_other_worlds_does_not_name_a_frozen_one_again(recwarn):
    """On the host it is known which worlds are frozen still, also while a recording is made."""
    with pv.Simulation(make_model(WORLDS), dt=DT, threads=1) as simulation:
        simulation.step()
        simulation.state.joint_qd.numpy()[simulation.model.joint_dof_world_start.numpy()[2]] = np.nan
        with pytest.warns(FrozenWorldWarning, match="world 2"):
            simulation.step()
        recwarn.clear()
        for _ in range(4):
            simulation.reset([0, 1])
            simulation.step()
        assert not [found for found in recwarn if found.category is FrozenWorldWarning]


def test_wrong_indices_on_the_device_are_counted_after_a_recording():
    with pv.Simulation(make_model(WORLDS), dt=DT, threads=1) as simulation:
        simulation.step()
        for _ in range(3):
            simulation.reset(wp.array(CHOSEN, dtype=int, device="cpu"))
        simulation.reset(wp.array([1, 99], dtype=int, device="cpu"))
        with pytest.warns(DeviceIndexWarning, match="99"):
            simulation.report()


def test_a_users_recording_takes_in_the_launches_and_not_the_recorded_list():
    """It follows its own mask, whatever is reset in between."""
    with pair() as simulations:
        mask = FORMS["mask of Warp"]()
        reset_both(simulations)
        with wp.ScopedCapture(device="cpu") as capture:
            simulations[1].reset(mask)
        for world in (0, 8, 3):
            reset_both(simulations, "list", 1)
            mask.assign(np.arange(len(WORLDS)) == world)
            simulations[0].reset([world])
            wp.capture_launch(capture.graph)
            assert_equal(*simulations)
