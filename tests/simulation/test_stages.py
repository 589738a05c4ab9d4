"""Stages of a user's own run inside the recorded step, as often as the step says."""

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.simulation import StepStage

from .worlds import DT, make_model

KINDS = ["arm", "pile", "flyer"]


@wp.kernel(enable_backward=False, module="tests.simulation.stages")
def count_world(worlds: wp.array[int], place: int, counts: wp.array2d[int]):
    """Count one call for one world."""
    world = worlds[wp.tid()]
    if world >= 0:
        counts[world, place] = counts[world, place] + 1


@wp.kernel(enable_backward=False, module="tests.simulation.stages")
def lift_world(
    worlds: wp.array[int],
    body_world_start: wp.array[int],
    body_q: wp.array[wp.transform],
    top: wp.array[float],
):
    """Note the height of the first body of one world."""
    world = worlds[wp.tid()]
    if world >= 0:
        top[world] = wp.transform_get_translation(body_q[body_world_start[world]])[2]


class Counter(StepStage):
    """Counts calls per world, and notes heights after steps."""

    def __init__(self, model: pv.Model):
        self.model = model
        self.counts = wp.zeros((model.world_count, 5), dtype=int, device=model.device)
        self.heights = wp.zeros(model.world_count, dtype=float, device=model.device)

    def _count(self, place, worlds):
        wp.launch(
            count_world, worlds.size, inputs=[worlds, place], outputs=[self.counts], device=self.model.device
        )

    def before_step(self, worlds, state):
        self._count(0, worlds)

    def before_substep(self, worlds, state):
        self._count(1, worlds)

    def after_substep(self, worlds, before, after):
        self._count(2, worlds)

    def after_step(self, worlds, state):
        self._count(3, worlds)
        wp.launch(
            lift_world,
            worlds.size,
            inputs=[worlds, self.model.body_world_start, state.body_q],
            outputs=[self.heights],
            device=self.model.device,
        )

    def after_reset(self, worlds, mask, state):
        self._count(4, worlds)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("record", [True, False], ids=["recorded", "launched"])
@pytest.mark.parametrize("decimation", [1, 3])
def test_a_stage_runs_once_per_step_and_per_solver_step_in_every_world(record, decimation, threads):
    """Many steps in one call are as many calls; the state given is the one that the step ends with."""
    model = make_model(KINDS)
    with pv.Simulation(model, dt=DT, decimation=decimation, record=record, threads=threads) as simulation:
        simulation.step()  # without the stage
        stage = Counter(model)
        simulation.add_stage(stage)
        for count in (1, 2, 20):
            simulation.step(count)
            first = model.body_world_start.numpy()[: model.world_count]
            heights = simulation.state.body_q.numpy()[first, 2]
            np.testing.assert_array_equal(stage.heights.numpy(), heights)
        simulation.reset([1])
        counts = np.tile([23, 23 * decimation, 23 * decimation, 23, 0], (model.world_count, 1))
        counts[1, 4] = 1
        np.testing.assert_array_equal(stage.counts.numpy(), counts)
        simulation.remove_stage(stage)
        simulation.step()
        np.testing.assert_array_equal(stage.counts.numpy(), counts)


def test_something_that_is_no_stage_is_refused():
    """The message says what a stage is."""
    with (
        pv.Simulation(make_model(KINDS), dt=DT) as simulation,
        pytest.raises(TypeError, match="got a function, but a stage derives from"),
    ):
        simulation.add_stage(lambda: None)
