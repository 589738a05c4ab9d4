"""Description of the worlds that workers share, in a serializable form."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pluriverse.scene.loader import ReadScene, read_scene
from pluriverse.simulation import Simulation

SOLVERS = ("sap", "mujoco")
"""Solvers that a scene can be stepped by."""


@dataclass
class BuiltWorlds:
    """Worlds of a description, ready to be stepped."""

    simulation: Simulation
    """Simulation of these worlds."""
    randomizer: Any = None
    """Draws what the scene says, if it says anything."""
    step: Callable[[int], None] = field(init=False)
    """Steps the worlds, with the recorded control of the scene if it has one."""
    scene: Any = None
    """The scene, where the worlds come from one."""

    def __post_init__(self) -> None:
        scene, simulation = self.scene, self.simulation
        self.step = simulation.step if scene is None else lambda count: scene.play(simulation, count)


class Description(Protocol):
    """Worlds that can be built in parts."""

    @property
    def world_count(self) -> int:
        """Number of all worlds."""

    def build(self, worlds: range, *, device: Any, threads: int | None) -> BuiltWorlds:
        """Return some of the worlds, identical to those in the whole."""

    def costs(self) -> np.ndarray:
        """Return how much a step of each world costs in proportion to the others, shape [world]."""


@dataclass(frozen=True)
class SceneDescription:
    """The worlds of a scene file, which is read here: workers need no access to its files."""

    read: ReadScene
    """The scene, one world of each kind assembled."""
    counts: tuple[int, ...]
    """Worlds of each kind."""
    options: dict[str, Any]
    """Options of the simulation."""
    solver: str
    """One of `SOLVERS`."""
    spacing: tuple[float, float, float] | None = None
    """Distance between worlds [m], instead of the scene's."""
    solver_options: dict[str, Any] = field(default_factory=dict)
    """Options of the solver, instead of the scene's."""

    @property
    def world_count(self) -> int:
        """Number of all worlds."""
        return sum(self.counts)

    def build(
        self, worlds: range, *, device: Any, threads: int | None, identities: Sequence[int] | None = None
    ) -> BuiltWorlds:
        """Return some of the worlds; `identities` as of `Randomizer`, the indices of the worlds if None."""
        import warp as wp

        scene = self.read.build(
            wp.get_device(device), counts=self.counts, worlds=worlds, spacing=self.spacing
        )
        if self.solver == "mujoco":
            from pluriverse.solvers.mujoco import SolverMuJoCo

            solver: Any = SolverMuJoCo(scene.model, **self.solver_options)
        else:
            solver = scene.solver(**self.solver_options)
        simulation = scene.simulation(solver=solver, **({"threads": threads} | self.options))
        randomizer = None
        if scene.randomize is not None and scene.randomize.terms:
            randomizer = scene.randomizer(simulation, identities=identities)
        return BuiltWorlds(simulation, randomizer, scene)

    def costs(self) -> np.ndarray:
        """Return how much a step of each world costs, by its degrees of freedom and shapes."""
        each = [
            1.0 + kind.assembly.builder.joint_dof_count + kind.assembly.builder.shape_count
            for kind in self.read.kinds
        ]
        return np.repeat(each, self.counts)


@dataclass(frozen=True)
class FactoryDescription:
    """Worlds that a function makes."""

    factory: Callable[[range], Simulation]
    """Returns a simulation of some of the worlds, named by their indices among all."""
    world_count: int
    """Number of all worlds."""

    def build(self, worlds: range, *, device: Any, threads: int | None) -> BuiltWorlds:
        """Return some of the worlds.

        Raises:
            TypeError: If the factory does not return a simulation.
            ValueError: If it returns one of another number of worlds.
        """
        import warp as wp

        with wp.ScopedDevice(device):
            simulation = self.factory(worlds)
        if not isinstance(simulation, Simulation):
            raise TypeError(
                f"the factory returned a {type(simulation).__name__} for worlds {worlds.start} to "
                f"{worlds.stop - 1}, but must return a Simulation of them."
            )
        count = getattr(simulation, "environment_count", simulation.model.world_count)
        if count != len(worlds):
            raise ValueError(
                f"the factory returned a simulation of {count} worlds for worlds {worlds.start} to "
                f"{worlds.stop - 1}, which are {len(worlds)}."
            )
        return BuiltWorlds(simulation)

    def costs(self) -> np.ndarray:
        """Return equal costs, since the result of a function is unknown."""
        return np.ones(self.world_count)


def describe(
    scene: Any,
    *,
    worlds: int | None,
    solver: str = "sap",
    asset_roots: Sequence[str | Path] = (),
    what: str,
    **options: Any,
) -> Description:
    """Return the description of a scene file, the name of a bundled scene, or a factory.

    Args:
        scene: File, name, or a function of a `range` of worlds that returns their simulation.
        worlds: Number of all worlds; that of the scene if None.
        solver: Solver of a scene, `SOLVERS`.
        asset_roots: Further folders that a scene may read files from.
        what: The caller, for messages.
        **options: Options of the simulation of a scene; those that are None are left out.

    Raises:
        TypeError: If `scene` is something else.
        ValueError: If a number or an option does not fit.
    """
    if worlds is not None and (
        not isinstance(worlds, int | np.integer) or isinstance(worlds, bool) or worlds < 1
    ):
        raise ValueError(f"{what}: worlds is {worlds!r}, but must be a whole number of at least 1.")
    given = {name: value for name, value in options.items() if value is not None}
    if isinstance(scene, str | Path):
        if solver not in SOLVERS:
            raise ValueError(f"{what}: solver is {solver!r}, but must be one of {', '.join(SOLVERS)}.")
        read = read_scene(scene, num_worlds=worlds, asset_roots=asset_roots)
        return SceneDescription(read, tuple(read.counts), given, solver)
    if not callable(scene):
        raise TypeError(
            f"{what}: the first argument is a {type(scene).__name__}, but must be a scene file, the name of "
            "a bundled scene, or a function of a range of worlds that returns their simulation."
        )
    if given or solver != "sap":
        names = ", ".join([*given, *(["solver"] if solver != "sap" else [])])
        raise ValueError(f"{what}: {names} belong to scenes. Set them in the simulation the factory makes.")
    if worlds is None:
        raise ValueError(f"{what}: worlds is not given. A factory needs the number of all worlds.")
    return FactoryDescription(scene, int(worlds))
