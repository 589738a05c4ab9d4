"""Selection of the engine of a `SolverMuJoCo`; an engine is imported when it is selected."""

import warnings
from typing import Any

from pluriverse.solvers.base import SolverBase, check_single_precision
from pluriverse.solvers.mujoco.engine import Engine, EngineOptions
from pluriverse.warnings import PluriverseWarning


def make_engine(solver: SolverBase, options: EngineOptions) -> Engine:
    """Return the engine for the device of a model.

    Raises:
        ValueError: If the engine does not run on the device.
    """
    model, groups = solver.model, solver.groups  # type: ignore[attr-defined]
    arguments: dict[str, Any] = {
        "use_mujoco_contacts": options.use_mujoco_contacts,
        "update_data_interval": options.update_data_interval,
        "enforce_velocity_limit": options.enforce_velocity_limit,
    }
    if options.use_mujoco_cpu:
        if not model.device.is_cpu:
            raise ValueError(
                f"SolverMuJoCo: use_mujoco_cpu is True, but the model is on {model.device}. Call "
                "finalize(device='cpu'), or leave use_mujoco_cpu out to step in MuJoCo Warp."
            )
        return _make_host_engine(solver, groups, memory=options.memory, **arguments)
    check_single_precision(
        model, "SolverMuJoCo", "Step it in MuJoCo's C engine (use_mujoco_cpu=True), or give it an armature."
    )
    from pluriverse.solvers.mujoco.warp.engine import WarpEngine

    return WarpEngine(
        solver,
        groups,
        nconmax=options.nconmax,
        njmax=options.njmax,
        graph_conditional=options.graph_conditional,
        **arguments,
    )


def _make_host_engine(solver: SolverBase, groups: Any, **arguments: Any) -> Engine:
    """Return the engine in `cpu`, or the plain one if this version of MuJoCo fails the checks."""
    from pluriverse.solvers.mujoco.cpu.library import find_misfit

    misfit = find_misfit()
    if not misfit:
        from pluriverse.solvers.mujoco.cpu.engine import CpuEngine

        return CpuEngine(solver, groups, **arguments)
    from pluriverse.solvers.mujoco.plain_engine import PlainEngine

    warnings.warn(
        PluriverseWarning(
            f"SolverMuJoCo: {misfit} Worlds are stepped through MuJoCo's Python package instead, one after "
            "the other, several times slower. Install a version of mujoco that the requirements of "
            "pluriverse admit."
        ),
        stacklevel=4,
    )
    return PlainEngine(solver, groups, **arguments)
