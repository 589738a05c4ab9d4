"""Episodes in a recording: new variants and new properties at every reset, ten thousand times."""

import resource
from pathlib import Path

import numpy as np
import pytest
import warp as wp

from pluriverse.randomization import (
    InitialState,
    PseudoInertia,
    Randomizer,
    Uniform,
    drive_gains,
    friction,
    gravity,
    joint_armature,
    joint_limits,
)
from pluriverse.solvers import SolverSAP
from pluriverse.solvers.mujoco import SolverMuJoCo
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene
from tests.variants.objects import arm_builder, ball_builder, box_builder, mesh_spec, pile_builder

DT = 0.005
EPISODE_COUNT = 10_000
ENVIRONMENT_COUNT = 4
# The first episodes are repeated by calls, and some in between are looked at.
CALLED_COUNT = 20
LOOKED_AT = 250
# Memory [kB] that may be taken for the first time after the first hundreds of episodes: by lists of Python.
MEMORY_GROWTH = 4096
# Two layouts of boxes, balls and meshes, and one of arms, so that worlds and rows of tables both change.
VARIANTS = {
    "box": box_builder(),
    "ball": ball_builder(0.08),
    "mesh": mesh_spec(1, 1, 0.1),
    "pile": pile_builder(2),
    "arm": arm_builder(2, stiffness=20.0),
    "soft_arm": arm_builder(2, stiffness=10.0),
}
SOLVERS = pytest.mark.parametrize("solver", [SolverSAP, SolverMuJoCo])


class Loop:
    """A simulation whose environments get other variants and other properties in each episode."""

    def __init__(self, solver, *, count=ENVIRONMENT_COUNT, terms=None):
        config = SceneCfg(
            num_envs=count, entities={"object": VariantEntityCfg(variants=VARIANTS)}, reassignable=True
        )
        self.scene = make_scene(config, device="cpu")
        self.simulation = self.scene.simulation(dt=DT, solver=solver(self.scene.model), threads=1)
        self.randomizer = Randomizer(self.simulation, terms or terms_of_all_kinds(), seed=3)

    def begin_episode(self):
        self.simulation.reassign()
        self.randomizer.apply()
        self.simulation.reset(self.all)

    @property
    def all(self):
        return wp.array(np.arange(self.simulation.environment_count), dtype=wp.int32, device="cpu")

    def environment(self, index, name="joint_q"):
        """Return the state of an environment, whichever world it is in."""
        kind = "joint_coord" if name == "joint_q" else "joint_dof"
        start = getattr(self.scene.model, f"{kind}_world_start").numpy()
        world = int(self.simulation.environment_world.numpy()[index])
        return getattr(self.simulation.state, name).numpy()[start[world] : start[world + 1]].copy()

    def properties(self, index):
        """Return what a step reads of an environment: arrays of the model and fields of MuJoCo."""
        world = int(self.simulation.environment_world.numpy()[index])
        result = {}
        for name, kind in (("body_mass", "body"), ("body_inertia", "body"), ("shape_material_mu", "shape")):
            start = getattr(self.scene.model, f"{kind}_world_start").numpy()
            result[name] = getattr(self.scene.model, name).numpy()[start[world] : start[world + 1]]
        solver = self.simulation.solver
        if isinstance(solver, SolverMuJoCo):
            group, row = solver.groups[solver.world_group[world]], int(solver.world_row[world])
            result |= {f"MuJoCo {name}": rows[row] for name, rows in group.fields.items()}
        return result


def resident_memory():
    """Return the memory of this process [kB]; where the system does not tell, the most that it had."""
    table = Path("/proc/self/statm")
    if table.exists():
        return int(table.read_text().split()[1]) * resource.getpagesize() // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def terms_of_all_kinds():
    return [
        friction(Uniform(0.4, 0.9)),
        PseudoInertia(alpha=Uniform(-0.2, 0.2), d=Uniform(-0.1, 0.1), t=Uniform(-0.01, 0.01)),
        gravity(Uniform(-0.5, 0.5)),
        drive_gains(Uniform(0.8, 1.2), Uniform(0.8, 1.2), entities="joint_*"),
        joint_armature(Uniform(0.5, 2.0), entities="joint_*"),
        joint_limits(Uniform(-0.1, 0.0), Uniform(0.0, 0.1), entities="joint_*"),
        InitialState(root_position=Uniform((-0.1, -0.1, 0.0), (0.1, 0.1, 0.1))),
    ]


@SOLVERS
def test_ten_thousand_recorded_episodes_leave_nothing_behind(solver):
    """They are those of calls one by one; memory does not grow; the last knows nothing of those before."""
    recorded, called = Loop(solver), Loop(solver)
    for loop in (recorded, called):
        loop.begin_episode()
        loop.simulation.step(1)
    everyone = recorded.all
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        recorded.simulation.reassign()
        recorded.randomizer.apply()
        recorded.simulation.reset(everyone)
    seen, memory = set(), 0
    for episode in range(EPISODE_COUNT):
        wp.capture_launch(capture.graph)
        if episode == 2 * LOOKED_AT:
            memory = resident_memory()
        if episode < CALLED_COUNT:
            called.begin_episode()
            for index in range(ENVIRONMENT_COUNT):
                np.testing.assert_array_equal(recorded.environment(index), called.environment(index))
        if episode % LOOKED_AT == 0:
            seen |= set(recorded.simulation.world_to_variant["object"].numpy().tolist())
        recorded.simulation.step(1)
        if episode < CALLED_COUNT:
            called.simulation.step(1)
            for index in range(ENVIRONMENT_COUNT):
                np.testing.assert_array_equal(recorded.environment(index), called.environment(index))
    assert resident_memory() - memory < MEMORY_GROWTH
    assert seen == set(range(len(VARIANTS)))
    assert recorded.simulation.episode.numpy().tolist() == [EPISODE_COUNT + 1] * ENVIRONMENT_COUNT
    assert recorded.simulation.report().frozen_worlds == ()
    # A simulation that begins with the last episode has the same bits.
    fresh = Loop(solver)
    fresh.simulation.episode.fill_(EPISODE_COUNT)
    fresh.randomizer.episode.fill_(EPISODE_COUNT)
    fresh.begin_episode()
    fresh.simulation.step(1)
    for index in range(ENVIRONMENT_COUNT):
        np.testing.assert_array_equal(recorded.environment(index), fresh.environment(index))
        mine, other = recorded.properties(index), fresh.properties(index)
        for name, values in mine.items():
            np.testing.assert_array_equal(values, other[name], err_msg=name)


@SOLVERS
def test_an_episode_does_not_depend_on_the_batch(solver):
    """Environment 2 of four has the bits of environment 2 of nine, in every episode."""
    small, large = Loop(solver), Loop(solver, count=9)
    for _ in range(4):
        for loop in (small, large):
            loop.begin_episode()
            loop.simulation.step(5)
        for name in ("joint_q", "joint_qd"):
            np.testing.assert_array_equal(small.environment(2, name), large.environment(2, name))
        mine, other = small.properties(2), large.properties(2)
        for name, values in mine.items():
            np.testing.assert_array_equal(values, other[name], err_msg=name)


@SOLVERS
def test_a_step_costs_the_same_launches_for_any_number_of_variants(solver, monkeypatch):
    """Variants of one layout are numbers: a step of twenty is the same work as one of two."""
    simulations = []
    for variant_count in (2, 20):
        variants = {f"box_{number}": box_builder(0.05 + 0.001 * number) for number in range(variant_count)}
        config = SceneCfg(
            num_envs=20, entities={"object": VariantEntityCfg(variants=variants)}, reassignable=True
        )
        scene = make_scene(config, device="cpu")
        simulations.append(scene.simulation(dt=DT, solver=solver(scene.model), threads=1, record=False))
        simulations[-1].step(1)
    launched = []
    launch = wp.launch

    def noted_launch(*args, **kwargs):
        launched.append(args[0])
        return launch(*args, **kwargs)

    monkeypatch.setattr(wp, "launch", noted_launch)
    simulations[0].step(1)
    count = len(launched)
    simulations[1].step(1)
    assert len(launched) == 2 * count > 0
