"""Tendon forces: the fixed tendons of all actors, as springs on the coordinates of their joints."""

import numpy as np
import warp as wp

from pluriverse.gymapi.scene import Actor, Sim
from pluriverse.gymapi.tables import integers
from pluriverse.gymapi.tendons import actor_tendons
from pluriverse.model import State
from pluriverse.solvers.springs import TENDON_NUMBERS, TendonTable
from pluriverse.springs.coordinates import CoordinateSprings


class TendonForces(CoordinateSprings):
    """The tendons of a prepared sim.

    Args:
        sim: The prepared sim, with at least one actor whose tendons act.
    """

    def __init__(self, sim: Sim):
        self._sim = sim
        runtime = sim.prepared
        self._actors: list[Actor] = [actor for actor in sim.actors if actor.asset.tendons]
        builders = [actor.asset.builder for actor in self._actors]
        super().__init__(
            runtime.simulation,
            self._make_table(),
            integers(sorted({actor.env.world for actor in self._actors}), runtime.device),
            dof_count_max=max(builder.joint_dof_count for builder in builders),
            tendon_count_max=max(len(actor.asset.tendons) for actor in self._actors),
        )
        self._update()
        runtime.add_springs(self)
        sim.has_tendon_forces = True

    def _make_table(self) -> TendonTable:
        """Return the table of all tendons, with no numbers yet."""
        actors, device = self._actors, self._sim.device
        table = TendonTable()
        builders = [actor.asset.builder for actor in actors]
        table.articulation = integers([actor.starts["articulation"] for actor in actors], device)
        table.first_dof = integers([actor.starts["dof"] for actor in actors], device)
        table.dof_count = integers([builder.joint_dof_count for builder in builders], device)
        counts = [len(actor.asset.tendons) for actor in actors]
        table.tendon_start = integers(np.cumsum([0, *counts]), device)
        tendons = [tendon for actor in actors for tendon in actor.asset.tendons]
        table.entry_start = integers(np.cumsum([0, *(len(tendon.dofs) for tendon in tendons)]), device)
        entries = [
            (actor, actor.asset.dofs[dof])
            for actor in actors
            for tendon in actor.asset.tendons
            for dof in tendon.dofs
        ]
        table.entry_dof = integers([dof.dof for _, dof in entries], device)
        table.entry_coord = integers([actor.starts["coord"] + dof.coord for actor, dof in entries], device)
        for name in TENDON_NUMBERS:
            setattr(table, name, wp.zeros(len(tendons), dtype=float, device=device))
        table.coefficient = wp.zeros(len(entries), dtype=float, device=device)
        return table

    def _update(self) -> None:
        """Take over the properties of all tendons."""
        self._sim.tendons_changed = False
        tendons = [tendon for actor in self._actors for tendon in actor_tendons(actor)]
        parts = [tendon.properties for tendon in tendons]
        offsets = [
            [0.0] * len(actor.asset.tendons) if actor.tendon_offsets is None else actor.tendon_offsets
            for actor in self._actors
        ]
        table = self.table

        def put(name: str, values: list[float]) -> None:
            getattr(table, name).assign(np.array(values, dtype=np.float32))

        put("coefficient", [value for tendon in tendons for value in tendon.coefficients])
        put("offset", [value for part in offsets for value in part])
        put("rest", [part.fixed_spring_rest_length for part in parts])
        put("stiffness", [part.stiffness for part in parts])
        put("damping", [part.damping for part in parts])
        put("lower", [part.lower_limit if part.is_limited else -np.inf for part in parts])
        put("upper", [part.upper_limit if part.is_limited else np.inf for part in parts])
        put("limit_stiffness", [part.limit_stiffness if part.is_limited else 0.0 for part in parts])

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Write the forces of all tendons, with the properties that they have now."""
        if self._sim.tendons_changed:
            self._update()
        super().before_substep(worlds, state)
