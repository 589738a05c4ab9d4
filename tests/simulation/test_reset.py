"""Reset of some worlds, and snapshots in files."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.simulation import SimulationSnapshot
from pluriverse.warnings import FrozenWorldWarning

from .worlds import DT, assert_same_bits, make_model, world_bits

KINDS = ["pile", "flyer", "arm", "pile"]

CHOICES = {
    "index list": lambda: [1, 3],
    "mask on the host": lambda: np.array([False, True, False, True]),
    "mask on the device": lambda: wp.array([False, True, False, True], dtype=bool, device="cpu"),
    "indices on the device": lambda: wp.array([3, -1, 1, 4], dtype=int, device="cpu"),
}


def all_bits(simulation: pv.Simulation) -> list[dict[str, np.ndarray]]:
    model = simulation.model
    return [world_bits(model, simulation.state, world) for world in range(model.world_count)]


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("step_count", [7, 8])
def test_chosen_worlds_begin_again_and_the_others_go_on(choice, step_count):
    """What is reset runs as from the beginning, the others as if nothing had happened; all bits."""
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, threads=2) as simulation:
        simulation.step(5)
        early = all_bits(simulation)
        simulation.step(step_count - 5)
        simulation.state.body_f.fill_(wp.spatial_vector(0.0, 0.0, 0.0, 0.0, 0.0, 1.0e-3))
        simulation.reset(CHOICES[choice]())
        force = simulation.state.body_f.numpy()[:, 5]
        assert (force != 0.0).tolist() == [world in (0, 2) for world in model.body_world.numpy()]
        simulation.state.clear_forces()
        simulation.step(5)
        after = all_bits(simulation)
    with pv.Simulation(model, dt=DT, threads=1) as undisturbed:
        undisturbed.step(step_count + 5)
        late = all_bits(undisturbed)
    for world in range(4):
        assert_same_bits(after[world], (early if world in (1, 3) else late)[world], f"world {world}")


def test_recorded_reset_follows_its_mask_while_steps_go_on():
    """One recording serves after odd and even numbers of steps."""
    model = make_model(KINDS)
    mask = wp.zeros(4, dtype=bool, device="cpu")
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        start = all_bits(simulation)
        simulation.reset(mask)
        with wp.ScopedCapture(device="cpu") as capture:
            simulation.reset(mask)
        for count, world in ((3, 0), (4, 2), (5, 3)):
            simulation.step(count)
            before = all_bits(simulation)
            mask.assign(np.arange(4) == world)
            wp.capture_launch(capture.graph)
            for other, bits in enumerate(all_bits(simulation)):
                assert_same_bits(bits, (start if other == world else before)[other], f"world {other}")


def test_frozen_worlds_unfreeze_with_a_mask_on_the_device():
    """The mask of frozen worlds itself is the usual choice; a world that fails again is named again."""
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        for _ in range(2):
            velocity = simulation.state.joint_qd.numpy()
            velocity[model.joint_dof_world_start.numpy()[2]] = np.nan
            simulation.state.joint_qd.assign(velocity)
            with pytest.warns(FrozenWorldWarning, match="world 2"):
                simulation.step()
            frozen = simulation.solver.world_frozen.numpy() != 0
            assert frozen.tolist() == [False, False, True, False]
            simulation.reset(wp.array(frozen, dtype=bool, device="cpu"))
            simulation.step()
            assert simulation.report().frozen_worlds == ()


def test_reset_to_a_state_or_a_snapshot():
    """Worlds take their part of what is given, with its external forces."""
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        simulation.step(9)
        given = model.state()
        given.assign(simulation.state)
        given.body_f.fill_(wp.spatial_vector(0.0, 0.0, 2.0, 0.0, 0.0, 0.0))
        nine = all_bits(simulation)
        snapshot = simulation.save()
        simulation.step(4)
        simulation.reset([0], state=given)
        assert_same_bits(world_bits(model, simulation.state, 0), nine[0], "world 0")
        begin, end = model.body_world_start.numpy()[:2]
        assert (simulation.state.body_f.numpy()[begin:end, 2] == 2.0).all()
        simulation.reset(state=snapshot)
        for world, bits in enumerate(all_bits(simulation)):
            assert_same_bits(bits, nine[world], f"world {world}")
        assert simulation.step_count == 13
        with pytest.raises(ValueError, match=r"Simulation.reset: state belongs to another model"):
            simulation.reset([0], state=make_model(["flyer"]).state())


def test_snapshot_in_a_file_continues_with_the_same_bits(tmp_path):
    """State, control, edited model and frozen worlds come back in a new simulation of a model built anew."""
    path = tmp_path / "run.npz"
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, threads=2) as simulation:
        rng = np.random.default_rng(0)
        model.body_mass.assign(
            (model.body_mass.numpy() * rng.uniform(0.8, 1.2, model.body_count)).astype("f4")
        )
        model.set_gravity(-3.7, world=3)
        simulation.control.joint_target_pos.assign(rng.uniform(-0.3, 0.3, model.joint_dof_count).astype("f4"))
        simulation.step(6)
        simulation.solver.world_frozen.assign(np.int32([0, 1, 0, 0]))
        simulation.save(path)
        with pytest.warns(FrozenWorldWarning, match="world 1"):
            simulation.step(20)
        expected = all_bits(simulation)
    other = make_model(KINDS)
    with pv.Simulation(other, dt=DT, threads=1) as simulation:
        simulation.restore(path)
        assert simulation.step_count == 6
        assert other.gravity.numpy()[3, 2] == np.float32(-3.7)
        with pytest.warns(FrozenWorldWarning, match="world 1"):
            simulation.step(20)
        for world, bits in enumerate(all_bits(simulation)):
            assert_same_bits(bits, expected[world], f"world {world}")


def test_files_that_are_no_snapshots_are_refused(tmp_path):
    """Nothing is unpickled, and what is wrong is named."""
    model = make_model(["flyer"])
    path = tmp_path / "run.npz"
    with pv.Simulation(model, dt=DT, threads=1) as simulation:
        simulation.save(path)
        whole = path.read_bytes()
        for part in (whole[: len(whole) // 2], b"", b"not an archive", np.random.default_rng(0).bytes(999)):
            path.write_bytes(part)
            with pytest.raises(ValueError, match="is not a snapshot"):
                simulation.restore(path)
        np.savez(path, version=np.array([object()], dtype=object))
        with pytest.raises(ValueError, match="is not a snapshot"):
            simulation.restore(path)
        path.write_bytes(whole)
        arrays = dict(np.load(path))
        np.savez(path, **{name: value for name, value in arrays.items() if name != "state/body_q"})
        with pytest.raises(ValueError, match="no array 'state/body_q'"):
            simulation.restore(path)
        np.savez(path, **{**arrays, "state/joint_q": arrays["state/joint_q"][:-1]})
        with pytest.raises(ValueError, match=r"state/joint_q has shape \(6,\)"):
            simulation.restore(path)
        np.savez(path, **{**arrays, "version": np.array(99)})
        with pytest.raises(ValueError, match="version 99"):
            simulation.restore(path)
        with pytest.raises(FileNotFoundError):
            simulation.restore(tmp_path / "missing.npz")
        path.write_bytes(whole)
        with pytest.raises(ValueError, match="another structure"):
            SimulationSnapshot.read(path, make_model(["pile"]))


BAD_CHOICES = [
    ([4], IndexError, "world 4 does not exist; the model has worlds 0 to 3"),
    ([-1], IndexError, "world -1 does not exist"),
    ([0.5], TypeError, r"worlds are \[0.5\]"),
    (np.zeros(3, dtype=bool), ValueError, r"shape \(3,\), but the model has 4 worlds"),
    (wp.zeros(3, dtype=bool, device="cpu"), ValueError, "4 truth values"),
    (wp.zeros(4, dtype=float, device="cpu"), TypeError, "float32.*indices of 32 or 64 bits"),
]


@pytest.mark.parametrize(("worlds", "kind", "message"), BAD_CHOICES)
def test_bad_choices_of_worlds_are_refused(worlds, kind, message):
    simulation = pv.Simulation(make_model(KINDS), dt=DT, threads=1)
    with pytest.raises(kind, match=message):
        simulation.reset(worlds)
