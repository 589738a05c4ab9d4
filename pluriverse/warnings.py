"""Warnings of the package, and errors of a running simulation: what a step counted per world."""

from collections.abc import Sequence


class PluriverseWarning(UserWarning):
    """Something that a user should know about, and did not ask for."""


class AssetWarning(UserWarning):
    """Parts of an asset were not imported as authored."""


class StructureEditWarning(PluriverseWarning):
    """An array of the model was written to that only acts when a model is made."""


class UndrivenJointWarning(PluriverseWarning):
    """A joint without a drive was given a target, which nothing follows."""


class MissingEntityWarning(PluriverseWarning):
    """A pattern finds nothing in the worlds of a part of a batch; it may in another part."""


class RepeatedGroundWarning(PluriverseWarning):
    """A world has the same ground plane more than once."""


class TimeStepWarning(PluriverseWarning):
    """A time step is longer than anything that a robot does."""


class SensorWarning(PluriverseWarning):
    """A sensor does not know everything that it would measure."""


class LoopWarning(PluriverseWarning):
    """The model has constraints between bodies, which inverse kinematics does not keep."""


class MeshApproximationWarning(PluriverseWarning):
    """A mesh was approximated by another method than asked for, or its approximation could not be kept."""


class SimulationWarning(PluriverseWarning):
    """Some worlds of a simulation are in trouble, and the others are not touched by it."""

    def __init__(self, message: str, worlds: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.worlds = tuple(worlds)
        """The worlds concerned."""


class ContactTruncationWarning(SimulationWarning):
    """A world found more contacts than it has room for, and solved without the rest."""


class ConvergenceWarning(SimulationWarning):
    """A solve ended at its limit of iterations, before its residual was small enough."""


class DeepContactWarning(SimulationWarning):
    """Shapes rest deep in each other: their contact is too soft for the load that it carries."""


class FrozenWorldWarning(SimulationWarning):
    """The state of a world became NaN or infinite; it keeps its last good state and no longer moves."""


class DeviceIndexWarning(SimulationWarning):
    """Indices on the device named worlds, environments, rows or articulations that do not exist."""


class SimulationError(RuntimeError):
    """Some worlds of a simulation in strict mode are in trouble."""

    def __init__(self, message: str, worlds: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.worlds = tuple(worlds)
        """The worlds concerned."""


class ContactTruncationError(SimulationError):
    """A world found more contacts than it has room for."""


class ConvergenceError(SimulationError):
    """A solve ended at its limit of iterations, before its residual was small enough."""


class DeepContactError(SimulationError):
    """Shapes rest deep in each other: their contact is too soft for the load that it carries."""


class FrozenWorldError(SimulationError):
    """The state of a world became NaN or infinite."""


class DeviceIndexError(SimulationError):
    """A list of worlds on the device named worlds that do not exist."""
