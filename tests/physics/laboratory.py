"""Experiments with a known outcome, all of them worlds of one batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from pluriverse import CollisionPipeline, ModelBuilder, SolverSAP, eval_fk

GRAVITY = 9.81
FLOAT32_ROUNDING = 2.0**-24


@dataclass(frozen=True)
class Experiment:
    """One world: how it is built, and how it starts where that differs from rest."""

    build: Callable[[ModelBuilder], None]
    gravity: tuple[float, float, float] = (0.0, 0.0, -GRAVITY)
    joint_q: tuple[float, ...] | None = None
    joint_qd: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Record:
    """What was seen of one world, from the initial state on."""

    time: np.ndarray
    joint_q: np.ndarray
    joint_qd: np.ndarray
    body_q: np.ndarray
    body_qd: np.ndarray


def run(
    experiments: Mapping[str, Experiment], *, dt: float, duration: float, **solver_options
) -> dict[str, Record]:
    """Simulate all experiments in one batch and return their records."""
    builder = ModelBuilder()
    for experiment in experiments.values():
        world = ModelBuilder()
        experiment.build(world)
        builder.add_world(world)
    model = builder.finalize("cpu")
    model.set_gravity([experiment.gravity for experiment in experiments.values()])
    state, following, control = model.state(), model.state(), model.control()
    coords, dofs = model.joint_coord_world_start.numpy(), model.joint_dof_world_start.numpy()
    joint_q, joint_qd = state.joint_q.numpy(), state.joint_qd.numpy()
    for world, experiment in enumerate(experiments.values()):
        if experiment.joint_q is not None:
            joint_q[coords[world] : coords[world + 1]] = experiment.joint_q
        if experiment.joint_qd is not None:
            joint_qd[dofs[world] : dofs[world + 1]] = experiment.joint_qd
    state.joint_q.assign(joint_q)
    state.joint_qd.assign(joint_qd)
    eval_fk(model, state.joint_q, state.joint_qd, state)

    pipeline = CollisionPipeline(model)
    contacts = pipeline.contacts()
    solver = SolverSAP(model, **solver_options)
    fields = ("joint_q", "joint_qd", "body_q", "body_qd")
    frames = {field: [getattr(state, field).numpy().copy()] for field in fields}
    step_count = round(duration / dt)
    for _ in range(step_count):
        pipeline.collide(state, contacts)
        solver.step(state, following, control, contacts, dt)
        state, following = following, state
        for field in fields:
            frames[field].append(getattr(state, field).numpy().copy())
    starts = {
        "joint_q": coords,
        "joint_qd": dofs,
        "body_q": model.body_world_start.numpy(),
        "body_qd": model.body_world_start.numpy(),
    }
    stacked = {field: np.array(values, dtype=float) for field, values in frames.items()}
    time = dt * np.arange(step_count + 1)
    return {
        name: Record(
            time,
            **{field: stacked[field][:, starts[field][world] : starts[field][world + 1]] for field in fields},
        )
        for world, name in enumerate(experiments)
    }
