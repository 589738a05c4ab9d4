"""Matrices: Jacobians and mass matrices of actors by name, in the layout of the API.

Reads   the Jacobian and mass matrix of all articulations
Writes  tensors of the actors of a name
"""

import numpy as np
import warp as wp

from pluriverse.dynamics import eval_jacobian, eval_mass_matrix
from pluriverse.gymapi.errors import GymError
from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.tables import integers
from pluriverse.launch import launch_kernel

_MODULE = "pluriverse.gymapi.matrices"


@wp.kernel(enable_backward=False, module=_MODULE)
def copy_jacobian(
    articulations: wp.array[int],  # [slot]
    links: wp.array[int],  # [link] place of its joint in the articulation
    columns: wp.array[int],  # [column] place of its degree of freedom in the articulation
    source: wp.array3d[float],  # [articulation, 6 link, dof]
    target: wp.array4d[float],  # [slot, link, 6, column]
):
    """Write the rows of one link of one actor."""
    slot, link = wp.tid()
    articulation = articulations[slot]
    row = 6 * links[link]
    for k in range(6):
        for column in range(columns.shape[0]):
            target[slot, link, k, column] = source[articulation, row + k, columns[column]]


@wp.kernel(enable_backward=False, module=_MODULE)
def copy_mass_matrix(
    articulations: wp.array[int],  # [slot]
    columns: wp.array[int],  # [column] place of its degree of freedom in the articulation
    source: wp.array3d[float],  # [articulation, dof, dof]
    target: wp.array3d[float],  # [slot, column, column]
):
    """Write one row of the matrix of one actor."""
    slot, row = wp.tid()
    for column in range(columns.shape[0]):
        target[slot, row, column] = source[articulations[slot], columns[row], columns[column]]


class _Selection:
    """The actors of a name."""

    def __init__(self, sim: Sim, name: str, call: str):
        actors = [actor for actor in sim.actors if actor.name == name]
        if not actors:
            names = ", ".join(sorted({f"'{actor.name}'" for actor in sim.actors})[:8])
            raise GymError(f"{call}: there is no actor '{name}'. The names are {names}.")
        asset = actors[0].asset
        for actor in actors:
            if actor.asset is not asset:
                raise GymError(
                    f"{call}: actors of the name '{name}' differ: {actors[0]} is of {asset}, {actor} of "
                    f"{actor.asset}. Give actors of different assets different names."
                )
        self.count = len(actors)
        device = sim.device
        self.articulations = integers([actor.starts["articulation"] for actor in actors], device)
        builder = asset.builder
        # An asset is one articulation, so the index of a joint in it is the index in the builder.
        bodies = [body for body in range(builder.body_count) if asset.is_free or body != asset.root_body]
        self.links = integers(asset.joint_of_body[bodies], device)
        self.dofs = integers(asset.dof_index, device)
        root = np.zeros(0, dtype=np.int64)
        if asset.is_free:
            root = int(builder.joint_qd_start[asset.root_joint]) + np.arange(6)
        self.columns = integers(np.concatenate([root, asset.dof_index]), device)


class ArticulationMatrices:
    """The Jacobians and mass matrices that were acquired.

    Args:
        sim: The prepared sim.
    """

    def __init__(self, sim: Sim):
        self._sim = sim
        self._runtime = sim.prepared
        self._selections: dict[str, _Selection] = {}
        self._jacobians: dict[str, wp.array] = {}
        self._mass_matrices: dict[str, wp.array] = {}
        self._all_jacobians: wp.array | None = None
        self._all_mass_matrices: wp.array | None = None

    def jacobian(self, name: str) -> wp.array:
        """Return the tensor of the Jacobians of the actors of a name, filled."""
        if name not in self._jacobians:
            selection = self._selection(name, "acquire_jacobian_tensor")
            shape = (selection.count, selection.links.size, 6, selection.columns.size)
            self._jacobians[name] = wp.zeros(shape, dtype=float, device=self._runtime.device)
        self.refresh_jacobians()
        return self._jacobians[name]

    def mass_matrix(self, name: str) -> wp.array:
        """Return the tensor of the mass matrices of the actors of a name, filled."""
        if name not in self._mass_matrices:
            selection = self._selection(name, "acquire_mass_matrix_tensor")
            shape = (selection.count, selection.dofs.size, selection.dofs.size)
            self._mass_matrices[name] = wp.zeros(shape, dtype=float, device=self._runtime.device)
        self.refresh_mass_matrices()
        return self._mass_matrices[name]

    def refresh_jacobians(self) -> None:
        """Fill the Jacobians."""
        runtime = self._runtime
        if not self._jacobians:
            return
        self._all_jacobians = eval_jacobian(runtime.model, runtime.simulation.state, self._all_jacobians)
        for name, target in self._jacobians.items():
            selection = self._selections[name]
            launch_kernel(
                copy_jacobian,
                dim=(selection.count, selection.links.size),
                inputs=[selection.articulations, selection.links, selection.columns, self._all_jacobians],
                outputs=[target],
                device=runtime.device,
            )

    def refresh_mass_matrices(self) -> None:
        """Fill the mass matrices."""
        runtime = self._runtime
        if not self._mass_matrices:
            return
        self._all_mass_matrices = eval_mass_matrix(
            runtime.model, runtime.simulation.state, self._all_mass_matrices
        )
        for name, target in self._mass_matrices.items():
            selection = self._selections[name]
            launch_kernel(
                copy_mass_matrix,
                dim=(selection.count, selection.dofs.size),
                inputs=[selection.articulations, selection.dofs, self._all_mass_matrices],
                outputs=[target],
                device=runtime.device,
            )

    def _selection(self, name: str, call: str) -> _Selection:
        if name not in self._selections:
            self._selections[name] = _Selection(self._sim, name, call)
        return self._selections[name]
