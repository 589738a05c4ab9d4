"""Attractor forces: the attractors of all envs, as springs that pull bodies."""

import numpy as np
import warp as wp

from pluriverse.gymapi.scene import Attractor, Sim
from pluriverse.gymapi.tables import integers
from pluriverse.model import State
from pluriverse.solvers.springs import BodySpringTable
from pluriverse.springs.bodies import BodySprings


class AttractorForces(BodySprings):
    """The attractors of a prepared sim.

    Args:
        sim: The prepared sim, with at least one attractor.
    """

    def __init__(self, sim: Sim):
        self._sim = sim
        self.size = -1
        super().__init__(sim.prepared.simulation)
        self.update()
        sim.prepared.has_passive_force = True  # so that the forces of the last step are cleared
        sim.prepared.add_springs(self)
        sim.has_attractor_forces = True

    def update(self) -> None:
        """Take over the properties of all attractors."""
        attractors = self._sim.attractors
        self._sim.attractors_changed = False
        if len(attractors) != self.size:
            self._allocate(attractors)
        table = self.table
        table.axes.assign(np.array([int(part.properties.axes) for part in attractors], dtype=np.int32))
        table.stiffness.assign(np.array([part.properties.stiffness for part in attractors], dtype=np.float32))
        table.damping.assign(np.array([part.properties.damping for part in attractors], dtype=np.float32))
        offset = np.array([part.properties.offset._numbers() for part in attractors], dtype=np.float32)
        target = np.array([part.properties.target._numbers() for part in attractors], dtype=np.float32)
        target[:, :3] += np.array([part.actor.env.offset for part in attractors], dtype=np.float32)
        table.offset.assign(offset)
        table.target.assign(target)

    def _allocate(self, attractors: list[Attractor]) -> None:
        self.size = count = len(attractors)
        device = self._sim.device
        table = BodySpringTable()
        joint = [_joint_of_body(part) for part in attractors]
        table.body = integers([part.actor.starts["body"] + part.body for part in attractors], device)
        table.articulation = integers([part.actor.starts["articulation"] for part in attractors], device)
        table.link = integers(joint, device)
        table.dof_count = integers([part.actor.asset.builder.joint_dof_count for part in attractors], device)
        table.first_dof = integers([part.actor.starts["dof"] for part in attractors], device)
        table.axes = wp.zeros(count, dtype=int, device=device)
        table.stiffness = wp.zeros(count, dtype=float, device=device)
        table.damping = wp.zeros(count, dtype=float, device=device)
        table.offset = wp.zeros(count, dtype=wp.transform, device=device)
        table.target = wp.zeros(count, dtype=wp.transform, device=device)
        size = max(part.actor.asset.builder.joint_dof_count for part in attractors)
        worlds = sorted({part.actor.env.world for part in attractors})
        self.set_springs(table, integers(worlds, device), size)

    def before_substep(self, worlds: wp.array[int], state: State) -> None:
        """Add the forces of all attractors, with the properties that they have now."""
        if self._sim.attractors_changed:
            self.update()
        super().before_substep(worlds, state)


def _joint_of_body(attractor: Attractor) -> int:
    """Return the joint that moves the body, in the builder of its asset: its place in the articulation."""
    return int(attractor.actor.asset.joint_of_body[attractor.body])
