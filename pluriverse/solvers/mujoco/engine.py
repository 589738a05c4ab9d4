"""Engines: the interface of what steps the worlds of `SolverMuJoCo`. `engine_choice` selects one."""

import abc
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import warp as wp

from pluriverse.model import Contacts, Control, State
from pluriverse.model.world_selection import WorldSelection
from pluriverse.solvers.base import SolverBase
from pluriverse.solvers.mujoco.exchange.state import StateExchange
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup

# Sweeps over the speed-limited joints of a world. Each sweep reduces the mutual disturbance of the limits, by
# more than half for neighbours in a chain.
SPEED_SWEEPS = 20


@dataclass(frozen=True, kw_only=True)
class EngineOptions:
    """The keyword arguments of `SolverMuJoCo` that concern its engine."""

    use_mujoco_cpu: bool = True
    """Whether worlds are stepped in MuJoCo's C engine; otherwise in MuJoCo Warp, which on a CPU is an
    emulation, 20 to 200 times slower, for tests of what will run on a GPU."""
    use_mujoco_contacts: bool = True
    """Whether MuJoCo finds the contacts; otherwise those handed to `step` are solved."""
    update_data_interval: int = 1
    """Number of steps between readings of the joint state from `state_in`; 0: only in the first step after a
    reset. In other steps worlds continue from MuJoCo's own state, whatever was written into the state."""
    memory: int | None = None
    """Initial memory of a thread of the C engine for contacts, constraints and the solver of a world [B];
    None for 64 MB, or MuJoCo's estimate if that is more. Unused memory costs address space only."""
    nconmax: int | None = None
    """Contact capacity per world of MuJoCo Warp; None for an estimate. The C engine needs no bound."""
    njmax: int | None = None
    """Capacity of constraint rows per world of MuJoCo Warp; None for an estimate."""
    graph_conditional: bool = True
    """Whether MuJoCo Warp ends its iterations on the GPU once all worlds of a group have converged. Switched
    off, every step makes all iterations, and groups run side by side."""
    enforce_velocity_limit: bool = False
    """Whether joints obey `joint_velocity_limit`: an impulse on a joint that is faster after a step brings it
    back to the limit."""

    def __post_init__(self) -> None:
        if not (isinstance(self.update_data_interval, int) and self.update_data_interval >= 0):
            raise ValueError(
                f"SolverMuJoCo: update_data_interval is {self.update_data_interval!r}, but must be a whole "
                "number >= 0: 1 to read the state in every step."
            )
        for name in ("memory", "nconmax", "njmax"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and value > 0):
                raise ValueError(
                    f"SolverMuJoCo: {name} is {value!r}, but must be a whole number > 0. Leave it out for an "
                    "estimate."
                )


class Engine(abc.ABC):
    """Steps the worlds of a `SolverMuJoCo`.

    Args:
        solver: Solver that the engine steps for; its status arrays are written.
        groups: Its groups.
        real: Type of the numbers in fields and rows on the device.
        update_data_interval: See `EngineOptions`.
    """

    is_thread_safe = True
    """Whether threads may step different worlds at the same time."""
    is_recordable = True
    """Whether a step only launches kernels, so that it can be recorded into a graph."""
    follows_step = False
    """Whether steps that are launched now begin with the state and control that the step before left."""
    lists_contacts = True
    """Whether steps that are launched now list contacts; otherwise they may just count them."""
    graph_version = 0
    """Number that changes whenever earlier recorded steps are out of date."""
    warp_groups: Sequence[Any] = ()
    """Models and data of MuJoCo Warp, of each group; none where the C engine steps."""
    on_rebuild: Callable[[], None] | None = None
    """Called after fields on the device were rebuilt from those of the groups, without the tracked values."""

    def __init__(
        self, solver: SolverBase, groups: Sequence[MujocoGroup], real: Any, update_data_interval: int
    ):
        # The solver owns the engine: with a proxy both are freed at once, with the memory of all workers.
        self.solver: SolverBase = weakref.proxy(solver)
        self.groups = groups
        self.real = real
        self.model = solver.model
        self.exchange = StateExchange(self.model, groups, real, update_data_interval)
        self.unlisted_step_count: Any = solver.failure_counts("unlisted")
        """Steps so far with more contacts than the contact buffer has slots for a world, shape [world]."""

    @property
    def runtime_arrays(self) -> Mapping[str, wp.array]:
        """Arrays that worlds carry from step to step besides their State, by name."""
        return self.exchange.runtime_arrays

    @property
    def joint_rotation(self) -> wp.array[wp.quat]:
        """Rotation of the frame of each joint in MuJoCo's body, shape [joint]."""
        return self.exchange.maps.joint_rotation

    @abc.abstractmethod
    def prepare(self, contacts: Contacts) -> None:
        """Allocate what a step needs for a contact buffer."""

    @abc.abstractmethod
    def step(
        self,
        state_in: State,
        state_out: State,
        control: Control,
        contacts: Contacts,
        dt: float,
        worlds: wp.array,
    ) -> None:
        """Write the state after `dt` [s] into `state_out`, and contacts with their forces into `contacts`."""

    @abc.abstractmethod
    def fields_changed(self, group_index: int, names: set[str]) -> None:
        """Take over what was written to a group; names are those of its fields, or of its `model`."""

    def knows_field(self, name: str) -> bool:
        """Return whether a field of `mjModel` may differ between worlds on the device."""
        return True

    @abc.abstractmethod
    def tracked_memory(self, group_index: int) -> dict[str, wp.array]:
        """Return the memory of the tracked fields of a group, flat; and of what goes with them.

        With them go the rows `mocap_pos`, `mocap_quat` and `eq_active` of the group, and, for external
        contacts, the gains `external_ke` and `external_kd` of the geoms of all worlds.
        """

    @abc.abstractmethod
    def derive_fields(self, group_index: int, selected: wp.array[int]) -> None:
        """Compute the derived fields of worlds with MuJoCo. Only launches.

        Args:
            group_index: Group of the worlds.
            selected: 1 for the selected worlds, shape [world].
        """

    def reset(self, selection: WorldSelection) -> None:
        """Restart worlds from their State. Only launches."""
        self.exchange.reset(selection)

    @abc.abstractmethod
    def take_overflow(self) -> list["Overflow"]:
        """Return where memory was too small since the last call, and make it larger where possible."""

    def fill_step_status(self, status: Any) -> Any:
        """Return the struct through which kernels write the status of each world, with the shared arrays."""
        solver = self.solver
        status.frozen = solver.world_frozen
        status.known, status.stepped = self.exchange.known, self.exchange.stepped
        status.full = solver.truncated_step_count
        status.full_now = solver.last_truncated_contact_count
        status.iterations = solver.last_solve_iterations
        status.converged = solver.last_converged
        status.unconverged = solver.unconverged_step_count
        status.contact_count = solver.last_contact_count
        status.needed_count = solver.needed_contact_count
        status.unlisted = self.unlisted_step_count
        return status


@dataclass(frozen=True)
class Overflow:
    """Worlds for whose contacts or constraints memory was too small."""

    worlds: list[int]
    """The worlds."""
    what: str
    """The overflow and the present capacities, as a text."""
    remedy: str
    """The remedy, as a text."""
