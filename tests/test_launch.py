"""Launches: all kernels go through one function, in blocks of one size."""

import gc
import threading
from pathlib import Path

import numpy as np
import pytest
import warp as wp

import pluriverse
from pluriverse import Contacts, ModelBuilder, Simulation
from pluriverse import launch as launch_module
from pluriverse.launch import BLOCK_DIM, launch_kernel, launch_while, record

SOURCES = Path(pluriverse.__file__).parent


def test_nothing_launches_by_itself():
    """No module but one calls Warp's launch, whose blocks would have another size."""
    callers = [path.name for path in SOURCES.rglob("*.py") if "wp.launch(" in path.read_text()]
    assert callers == ["launch.py"]


@pytest.fixture
def falling_box():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_box(builder.add_body(), hx=0.1, hy=0.1, hz=0.1)
    return builder.finalize(device="cpu")


def test_steps_are_launched_and_loaded_in_blocks_of_one_size(falling_box, monkeypatch):
    """Collision, solver and statistics ask for the size that their modules were compiled for."""
    launch, load = wp.launch, wp.force_load
    sizes = {"launch": set(), "load": set()}

    def noted_launch(*positional, **named):
        sizes["launch"].add(named.get("block_dim"))
        return launch(*positional, **named)

    def noted_load(*positional, **named):
        sizes["load"].add(named.get("block_dim"))
        return load(*positional, **named)

    monkeypatch.setattr(wp, "launch", noted_launch)
    monkeypatch.setattr(wp, "force_load", noted_load)
    Simulation(falling_box, dt=0.005, record=False).step(2)
    assert sizes == {"launch": {BLOCK_DIM}, "load": {BLOCK_DIM}}


def test_modules_for_later_are_left_out_until_something_of_them_was_launched(falling_box, monkeypatch):
    """Whoever names modules loads them; what was launched, be it for no worlds, is needed at once."""
    loaded = []
    monkeypatch.setattr(wp, "force_load", lambda **named: loaded.append({m.name for m in named["modules"]}))
    Simulation(falling_box, dt=0.005, record=False).step(1)
    loaded.clear()
    late, launched = "pluriverse.dynamics.loops", "pluriverse.collision.broad_phase"
    monkeypatch.setattr(launch_module, "_launched", {launched})
    launch_module.load_kernels(wp.get_device("cpu"), max_workers=1, later=[late, launched])
    launch_module.load_kernels(wp.get_device("cpu"), max_workers=1)
    assert loaded[1] - loaded[0] == {late}
    assert launched in loaded[0]


@wp.kernel(enable_backward=False)
def scale_and_add(values: wp.array[float], factor: float, summand: wp.vec2):
    """Replace x by factor x + summand.x + summand.y: launches in another order give other numbers."""
    values[wp.tid()] = factor * values[wp.tid()] + summand[0] + summand[1]


@wp.kernel(enable_backward=False)
def count_down(left: wp.array[int]):
    """Take one off."""
    left[0] = left[0] - 1


@pytest.fixture(params=["list", "warp"])
def recorder(request, monkeypatch):
    """Both ways to record: a list, and Warp's own, which unknown versions of Warp get."""
    if request.param == "warp":
        monkeypatch.setattr(launch_module, "is_supported", lambda device: False)
    return record


def affine(values, factor, summand, dim=None):
    count = values.size if dim is None else dim
    launch_kernel(scale_and_add, dim=count, inputs=[values, factor, wp.vec2(summand, 0.5)], device="cpu")


def test_recorded_launches_are_made_in_order_at_each_replay(recorder):
    """Each replay turns x into 3 (2 x + 1.5) + 1, and nothing happens while it is recorded."""
    values = wp.array([1.0, 2.0], dtype=float, device="cpu")
    affine(values, 1.0, -0.5, dim=0)  # loads the kernel

    def launch():
        affine(values, 2.0, 1.0)
        affine(values, 5.0, 5.0, dim=0)  # of no threads: no effect
        affine(values, 3.0, 0.5)

    graph = recorder(wp.get_device("cpu"), launch)
    assert values.numpy().tolist() == [1.0, 2.0]
    gc.collect()  # a graph keeps what its launches take
    for _ in range(2):
        before = values.numpy().copy()
        wp.capture_launch(graph)
        np.testing.assert_array_equal(values.numpy(), 3.0 * (2.0 * before + 1.5) + 1.0)


@pytest.mark.parametrize("count", [0, 1, 5])
def test_recorded_launches_repeat_while_a_condition_holds(recorder, count):
    """The condition is read before each round, in every replay anew, and what follows comes after."""
    values = wp.array([1.0], dtype=float, device="cpu")
    left = wp.array([0], dtype=int, device="cpu")
    affine(values, 1.0, -0.5, dim=0)
    launch_kernel(count_down, dim=0, inputs=[left], device="cpu")

    def body():
        affine(values, 2.0, -0.5)
        launch_kernel(count_down, dim=1, inputs=[left], device="cpu")

    def launch():
        launch_while(left, body)
        affine(values, 1.0, 0.5)

    graph = recorder(wp.get_device("cpu"), launch)
    for replay in range(2):
        left.fill_(count)
        values.fill_(1.0)
        wp.capture_launch(graph)
        assert values.numpy()[0] == 2.0**count + 1.0, replay


def test_what_others_record_keeps_its_place_among_launches():
    """A copy between two launches is not one of ours: it is recorded, and takes place between them."""
    values = wp.array([1.0], dtype=float, device="cpu")
    copy = wp.zeros(1, dtype=float, device="cpu")
    affine(values, 1.0, -0.5, dim=0)

    def launch():
        affine(values, 2.0, -0.5)
        wp.copy(copy, values)
        affine(values, 2.0, -0.5)

    graph = record(wp.get_device("cpu"), launch)
    wp.capture_launch(graph)
    assert (copy.numpy()[0], values.numpy()[0]) == (2.0, 4.0)


def test_a_recording_that_fails_leaves_later_launches_alone():
    """After an exception in what is recorded, launches take place at once again."""
    values = wp.array([1.0], dtype=float, device="cpu")

    def launch():
        affine(values, 2.0, -0.5)
        raise KeyError("stage")

    with pytest.raises(KeyError, match="stage"):
        record(wp.get_device("cpu"), launch)
    affine(values, 2.0, 0.5)
    assert values.numpy()[0] == 3.0


def test_steps_replayed_from_a_list_have_the_bits_of_those_that_warp_replays(falling_box, monkeypatch):
    """How launches are replayed changes no result."""

    def fall():
        with Simulation(falling_box, dt=0.005) as simulation:
            simulation.step(60)
            return simulation.state.joint_q.numpy().copy()

    listed = fall()
    monkeypatch.setattr(launch_module, "is_supported", lambda device: False)
    np.testing.assert_array_equal(listed, fall())


def test_modules_without_kernels_are_not_compiled(falling_box, monkeypatch):
    """What is loaded for a step has kernels, and what takes longest comes first."""
    loaded, load = [], wp.force_load

    def noted_load(*positional, modules, **named):
        loaded.extend(modules)
        return load(*positional, modules=modules, **named)

    monkeypatch.setattr(wp, "force_load", noted_load)
    Simulation(falling_box, dt=0.005).prepare()
    assert all(module.kernels for module in loaded)
    # One comes before it whose source is written in less time, so that a compiler begins sooner.
    names = list(dict.fromkeys(module.name.rpartition(".")[0] for module in loaded))  # of all precisions
    assert names[0] == "pluriverse.dynamics.body_placing"
    assert names[1].startswith("pluriverse.solvers.sap.newton")
    assert len({module.name for module in loaded}) == len(loaded) > 10


def test_contacts_are_made_while_another_thread_records(falling_box):
    """They wait for the end of the recording, during which Warp refuses to fill arrays with gaps."""
    made, begun = [], threading.Event()

    def make() -> None:
        assert begun.wait(60.0)
        made.append(Contacts(falling_box, 4))

    thread = threading.Thread(target=make)

    def launch() -> None:
        begun.set()
        thread.join(timeout=0.2)  # of what does not wait

    thread.start()
    record(wp.get_device("cpu"), launch)
    thread.join()
    assert made
