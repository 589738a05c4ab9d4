"""Drive targets: position targets under two names, by degree of freedom and by coordinate.

Reads and writes  joint_target_pos, joint_target_q and the latter's previous values

`joint_target_pos` is numbered like velocities, `joint_target_q` like `joint_q`. Where all joints have as many
coordinates as degrees of freedom, both are one array. Otherwise (free and ball joints have a quaternion) the
last write under either name wins: an entry of `joint_target_q` that changed is copied to `joint_target_pos`,
any other is copied from there.
"""

from typing import Self

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model.topology import Topology


@wp.kernel(enable_backward=False, module="pluriverse.model.drive_targets")
def unify_target(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    topology: Topology,
    # control, read and written
    joint_target_pos: wp.array[float],  # [dof] m, rad
    joint_target_q: wp.array[float],  # [coord] m, rad
    joint_target_q_before: wp.array[float],  # [coord] m, rad, `joint_target_q` after the last call
):
    """Make both names of the targets of one world agree."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    template = topology.world_template[world]
    first_dof = topology.template_dof[template]
    dof_base = topology.world_dof[world]
    coord_base = topology.world_coord[world]
    for local in range(topology.template_dof[template + 1] - first_dof):
        if topology.dof_coord[first_dof + local] >= 0:
            coord = coord_base + topology.dof_coord[first_dof + local]
            dof = dof_base + topology.dof_public[first_dof + local]
            target = joint_target_q[coord]
            before = joint_target_q_before[coord]
            # NaN that is still there is no change: else it would win over every target written after it.
            if target == before or (target != target and before != before):
                target = joint_target_pos[dof]
                joint_target_q[coord] = target
            else:
                joint_target_pos[dof] = target
            joint_target_q_before[coord] = target


class DriveTargets:
    """Position targets of all drives under both names.

    Args:
        topology: Structure of the worlds.
        worlds: All worlds.
        joint_target_pos: Targets [m or rad], shape [dof]; kept, not copied.
        joint_target_q: Values for coordinates without a drive [quaternion, m], shape [coord]; copied.
    """

    by_dof: wp.array[float]
    """`joint_target_pos`."""
    by_coord: wp.array[float]
    """`joint_target_q`."""

    def __init__(
        self,
        topology: Topology,
        worlds: wp.array[int],
        joint_target_pos: wp.array[float],
        joint_target_q: wp.array[float],
    ) -> None:
        self._topology = topology
        self._worlds = worlds
        self.by_dof = self.by_coord = joint_target_pos
        self._previous: wp.array[float] | None = None
        if joint_target_pos.size != joint_target_q.size:  # no joint has fewer coordinates than freedoms
            self.by_coord = wp.clone(joint_target_q)
            self._previous = wp.clone(joint_target_q)
            self.unify()

    def unify(self, worlds: wp.array[int] | None = None) -> None:
        """Make the last write under either name win, in some worlds or all. Only launches."""
        if self._previous is None:
            return
        worlds = self._worlds if worlds is None else worlds
        launch_kernel(
            unify_target,
            dim=worlds.size,
            inputs=[worlds, self._topology, self.by_dof, self.by_coord, self._previous],
            device=self.by_dof.device,
        )

    def prefer_dofs(self) -> None:
        """Make `joint_target_pos` win, whatever was written to `joint_target_q`."""
        if self._previous is not None:
            wp.copy(self._previous, self.by_coord)

    def clone(self) -> Self:
        """Return a copy, unified."""
        self.unify()
        return type(self)(self._topology, self._worlds, wp.clone(self.by_dof), self.by_coord)

    def assign(self, other: "DriveTargets") -> None:
        """Copy the targets of another control of the same model."""
        other.unify()
        wp.copy(self.by_dof, other.by_dof)
        if self._previous is not None:
            wp.copy(self.by_coord, other.by_coord)
            wp.copy(self._previous, self.by_coord)
