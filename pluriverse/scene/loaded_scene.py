"""The result of loading a scene."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluriverse.model import Control, Model, State
    from pluriverse.model_builder import ModelBuilder
    from pluriverse.randomization import Randomizer
    from pluriverse.scene.control_sequence import ControlSequence
    from pluriverse.scene.randomize import RandomizeSection
    from pluriverse.simulation import Simulation
    from pluriverse.solvers.sap import SolverSAP
    from pluriverse.variants import VariantScene


@dataclass(frozen=True)
class SceneSettings:
    """How a scene wants to be run."""

    dt: float
    """Time step [s]."""
    solver_options: dict[str, Any] = field(default_factory=dict)
    """Keyword arguments of `SolverSAP`."""
    max_rigid_contact: int | tuple[int, ...] | None = None
    """Contacts that fit, per world: one number for all, one per world, or chosen by the pipeline (None)."""


@dataclass(frozen=True)
class LoadedScene:
    """A scene that was loaded, ready to be stepped."""

    name: str
    """Name of the scene."""
    source_path: Path
    """The file it was read from."""
    builder: "ModelBuilder"
    """The builder with all worlds."""
    model: "Model"
    """The model of all worlds."""
    state: "State"
    """The initial state, after forward kinematics."""
    control: "Control"
    """The initial control."""
    settings: SceneSettings
    """How the scene wants to be run."""
    unsupported_features: tuple[str, ...]
    """Unsupported features that were ignored, one text each with its place in the file."""
    kind_names: tuple[str, ...]
    """Names of the kinds of world."""
    kind_of_world: tuple[int, ...]
    """Index into `kind_names` of each world."""
    control_sequences: tuple["ControlSequence", ...] = ()
    """Recorded control, one sequence per kind of world that has it."""
    randomize: "RandomizeSection | None" = None
    """Terms of `randomizer`."""
    variant_scene: "VariantScene | None" = None
    """The scene of its variants, if it has any."""
    first_world: int = 0
    """Index of world 0 in the whole scene, where only a part of its worlds was built."""
    is_part: bool = False
    """Whether only a part of the worlds of the whole scene was built."""

    @property
    def body_labels(self) -> list[str]:
        """Labels of all bodies."""
        return list(self.model.body_label)

    @property
    def shape_labels(self) -> list[str]:
        """Labels of all shapes."""
        return list(self.model.shape_label)

    @property
    def shape_colors(self) -> list[tuple[float, float, float]]:
        """Colours of all shapes, as red, green and blue from 0 to 1."""
        return [(float(r), float(g), float(b)) for r, g, b in self.model.shape_color.numpy()]

    # The format's first implementation kept two models of one scene; both names mean the one here.

    @property
    def sap_model(self) -> "Model":
        """`model`."""
        return self.model

    @property
    def sap_state(self) -> "State":
        """`state`."""
        return self.state

    @property
    def sap_control(self) -> "Control":
        """`control`."""
        return self.control

    @property
    def collision_model(self) -> "Model":
        """`model`."""
        return self.model

    @property
    def collision_state(self) -> "State":
        """`state`."""
        return self.state

    def solver(self, **options: Any) -> "SolverSAP":
        """Return a `SolverSAP` with the options of the scene; `options` override them."""
        from pluriverse.solvers.sap import SolverSAP

        return SolverSAP(self.model, **(self.settings.solver_options | options))

    def simulation(self, **options: Any) -> "Simulation":
        """Return a `Simulation` of the scene; `options` are passed on and override those of the scene.

        That of a scene with variants is a `VariantSimulation`.
        """
        from pluriverse.simulation import Simulation

        arguments: dict[str, Any] = {
            "dt": self.settings.dt,
            "rigid_contact_max": self.settings.max_rigid_contact,
        }
        solver = options.pop("solver", None) or self.solver()
        if self.variant_scene is not None:
            return self.variant_scene.simulation(solver=solver, **(arguments | options))
        return Simulation(self.model, solver, **(arguments | options))

    def randomizer(self, simulation: Any, *, identities: Any = None) -> "Randomizer":
        """Return a `Randomizer` with the scene's `randomize` block, for a simulation of it.

        Args:
            simulation: The simulation.
            identities: Identities of the environments (`Randomizer`); its index in the whole
                scene if None.

        Raises:
            ValueError: If the scene has no block `randomize`.
        """
        if self.randomize is None:
            raise ValueError(
                f"scene '{self.name}' has no block 'randomize', so there is nothing to draw. Add one, or "
                "make a pluriverse.randomization.Randomizer."
            )
        if identities is None:
            count = getattr(simulation, "environment_count", self.model.world_count)
            identities = range(self.first_world, self.first_world + count)
        return self.randomize.randomizer(simulation, identities=identities, is_part=self.is_part)

    def play(self, simulation: Any, count: int) -> None:
        """Make `count` steps of a simulation of this scene, with the recorded control of each time.

        Without recorded control this is `simulation.step(count)`.
        """
        if not self.control_sequences:
            simulation.step(count)
            return
        done = 0
        while done < count:
            start = simulation.step_count
            steady = count - done
            for sequence in self.control_sequences:
                sequence.apply(simulation.control, start, simulation.dt)
                steady = min(steady, self._steady_steps(sequence, simulation, steady))
            simulation.step(steady)
            done += steady

    @staticmethod
    def _steady_steps(sequence: "ControlSequence", simulation: Any, limit: int) -> int:
        """Return the number of steps, 1 to `limit`, for which the sample of the next step holds."""
        start, dt, decimation = simulation.step_count, simulation.dt, simulation.decimation
        sample = sequence.sample_at(start * dt)
        steps = 1
        while steps < limit and sequence.sample_at((start + steps * decimation) * dt) == sample:
            steps += 1
        return steps
