"""Garbage collection: paused while kernels are declared, and as the user had it afterwards."""

import gc
import os
import sys
import threading
import weakref

import pytest

from pluriverse import ModelBuilder, Simulation, precompilation
from pluriverse.garbage_collection import MANY_OBJECTS, paused_collection
from pluriverse.simulation import step_loop


@pytest.fixture(autouse=True)
def as_before():
    """Begin without frozen objects, and leave them frozen and the collection on, as other tests find it.

    No other thread pauses the collection, as the one does that compiles beside a test with an empty cache.
    """
    if precompilation._thread is not None:
        precompilation.go_on_precompiling()
        precompilation._thread.join()
    gc.unfreeze()
    yield
    gc.freeze()
    gc.enable()


def test_it_is_off_meanwhile_and_on_again_afterwards_also_after_an_error():
    """Pauses within pauses end with the outermost."""
    with paused_collection():
        with paused_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), paused_collection():
        raise KeyError
    assert gc.isenabled()


def test_a_user_who_switched_it_off_or_froze_objects_finds_that_unchanged():
    """What is the user's is not resumed, and not thawed."""
    gc.disable()
    with paused_collection():
        pass
    assert not gc.isenabled()
    gc.enable()
    # One object stands for all: others that are frozen may be freed by another thread meanwhile.
    kept = [[]]
    gc.freeze()
    with paused_collection():
        pass
    assert gc.get_freeze_count() > 0
    assert not any(each is kept for each in gc.get_objects())
    gc.unfreeze()
    assert any(each is kept for each in gc.get_objects())


def test_objects_made_meanwhile_are_collected_later():
    """They count as old ones: a cycle among them is found by the next full collection."""

    class Node:
        pass

    with paused_collection():
        node = Node()
        node.itself = node
        kept = [[] for _ in range(MANY_OBJECTS)]
    assert any(each is node for each in gc.get_objects(generation=2))
    del node, kept
    gc.collect()
    assert not any(type(each) is Node for each in gc.get_objects())


def test_what_is_new_stays_new_where_kernels_are_known():
    """A search makes simulation after simulation: the garbage of the last one is found like any other."""

    class Learner:
        pass

    builder = ModelBuilder()
    builder.add_shape_box(builder.add_body(), hx=0.1, hy=0.1, hz=0.1)
    for _ in range(2):  # kernels are declared by the first
        learner = Learner()
        learner.itself = learner
        learner_is_there = weakref.ref(learner)
        with Simulation(builder.finalize(device="cpu"), dt=0.005) as simulation:
            simulation.step()
    del learner
    gc.collect(1)
    assert learner_is_there() is None


def test_of_threads_that_pause_it_the_last_one_resumes():
    """A pause that ends while another thread has one changes nothing."""
    begun, end = threading.Event(), threading.Event()

    def pause():
        with paused_collection():
            begun.set()
            end.wait()

    thread = threading.Thread(target=pause)
    with paused_collection():
        thread.start()
        begun.wait()
    assert not gc.isenabled()
    end.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(
    not hasattr(os, "fork") or sys.platform == "darwin", reason="processes are not forked here"
)
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_process_that_is_forked_meanwhile_collects():
    """It has no thread that would resume."""
    with paused_collection():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.isenabled() else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert not gc.isenabled()


def test_it_is_paused_while_a_step_is_prepared_and_on_while_it_is_made(monkeypatch):
    """The kernels of a simulation are declared without collections."""
    seen = []
    load = step_loop.load_kernels

    def noted_load(*positional, **named):
        seen.append(gc.isenabled())
        return load(*positional, **named)

    monkeypatch.setattr(step_loop, "load_kernels", noted_load)
    builder = ModelBuilder()
    builder.add_shape_box(builder.add_body(), hx=0.1, hy=0.1, hz=0.1)
    with Simulation(builder.finalize(device="cpu"), dt=0.005) as simulation:
        simulation.step()
        assert gc.isenabled()
    assert seen == [False]
