"""Tensor calls: states, controls and forces of the whole sim as arrays on its device."""

from typing import Any

import warp as wp

from pluriverse.gymapi.arguments import as_int, text
from pluriverse.gymapi.body_forces import add_body_force
from pluriverse.gymapi.enums import CoordinateSpace, DofDriveMode
from pluriverse.gymapi.errors import require
from pluriverse.gymapi.matrices import ArticulationMatrices
from pluriverse.gymapi.preparation import PreparingCalls
from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.states import set_body_states
from pluriverse.gymapi.tensor import Tensor, acquired, as_array
from pluriverse.launch import launch_kernel, same_memory


class TensorCalls(PreparingCalls):
    """Tensors: acquire, refresh, set. Setters may be called in any order and as often as one likes."""

    def acquire_actor_root_state_tensor(self, sim: Any) -> Tensor:
        """Return the tensor of root states, shape [actor, 13]."""
        tensors = self._tensors(sim, "acquire_actor_root_state_tensor")
        tensors.refresh_root()
        return acquired(tensors.root)

    def refresh_actor_root_state_tensor(self, sim: Any) -> bool:
        """Fill the tensor of root states with the present ones."""
        self._tensors(sim, "refresh_actor_root_state_tensor").refresh_root()
        return True

    def set_actor_root_state_tensor(self, sim: Any, states: Any) -> bool:
        """Put the roots of all actors where a tensor of shape [actor, 13] says."""
        return self._set_root(sim, states, None, None, "set_actor_root_state_tensor")

    def set_actor_root_state_tensor_indexed(
        self, sim: Any, states: Any, indices: Any, count: int | None = None
    ) -> bool:
        """Put the roots of some actors where their rows of a full tensor say."""
        return self._set_root(sim, states, indices, count, "set_actor_root_state_tensor_indexed")

    def _set_root(self, sim: Any, states: Any, indices: Any, count: int | None, call: str) -> bool:
        tensors = self._tensors(sim, call)
        rows = self._values(sim, states, sim.actor_count, 13, call, "actor")
        selected, slots = self._indices(sim, indices, count, call)
        tensors.write_root(selected, slots, rows.reshape((sim.actor_count, 13)))
        return True

    def acquire_rigid_body_state_tensor(self, sim: Any) -> Tensor:
        """Return the tensor of body states, shape [body, 13]."""
        tensors = self._tensors(sim, "acquire_rigid_body_state_tensor")
        tensors.refresh_body()
        return acquired(tensors.body)

    def refresh_rigid_body_state_tensor(self, sim: Any) -> bool:
        """Fill the tensor of body states with the present ones."""
        self._tensors(sim, "refresh_rigid_body_state_tensor").refresh_body()
        return True

    def set_rigid_body_state_tensor(self, sim: Any, states: Any) -> bool:
        """Put all bodies where a tensor of shape [body, 13] says.

        Raises:
            ValueError: If the joints of an actor do not allow it.
        """
        call = "set_rigid_body_state_tensor"
        self._tensors(sim, call)
        rows = self._values(sim, states, sim.body_count, 13, call, "body").numpy().reshape(-1, 13)
        for actor in sim.actors:
            stop = actor.body_start + actor.asset.body_count
            set_body_states(actor, rows[actor.body_start : stop], 3, call)
        return True

    def acquire_dof_state_tensor(self, sim: Any) -> Tensor:
        """Return the tensor of states of degrees of freedom, shape [dof, 2].

        `gymtorch.wrap_tensor` makes None of it where no actor has any, as of quadcopters of fixed rotors.
        """
        tensors = self._tensors(sim, "acquire_dof_state_tensor")
        tensors.refresh_dof()
        return acquired(tensors.dof)

    def refresh_dof_state_tensor(self, sim: Any) -> bool:
        """Fill the tensor of states of degrees of freedom with the present ones."""
        self._tensors(sim, "refresh_dof_state_tensor").refresh_dof()
        return True

    def set_dof_state_tensor(self, sim: Any, states: Any) -> bool:
        """Put the joints of all actors where a tensor of shape [dof, 2] says."""
        return self._set_dof(sim, states, None, None, "set_dof_state_tensor")

    def set_dof_state_tensor_indexed(
        self, sim: Any, states: Any, indices: Any, count: int | None = None
    ) -> bool:
        """Put the joints of some actors, given by actor indices, where their rows of a full tensor say."""
        return self._set_dof(sim, states, indices, count, "set_dof_state_tensor_indexed")

    def _set_dof(self, sim: Any, states: Any, indices: Any, count: int | None, call: str) -> bool:
        tensors = self._tensors(sim, call)
        rows = self._values(sim, states, sim.dof_count, 2, call, "degree of freedom")
        selected, slots = self._indices(sim, indices, count, call)
        tensors.write_dof(selected, slots, rows.reshape((sim.dof_count, 2)))
        return True

    def set_dof_position_target_tensor(self, sim: Any, targets: Any) -> bool:
        """Set the position targets of all actors; entries of other modes than POS are ignored."""
        return self._set_control(sim, targets, None, None, "set_dof_position_target_tensor", 1)

    def set_dof_position_target_tensor_indexed(
        self, sim: Any, targets: Any, indices: Any, count: int | None = None
    ) -> bool:
        """Set the position targets of some actors from a full tensor."""
        return self._set_control(sim, targets, indices, count, "set_dof_position_target_tensor_indexed", 1)

    def set_dof_velocity_target_tensor(self, sim: Any, targets: Any) -> bool:
        """Set the velocity targets of all actors; entries of other modes than VEL are ignored."""
        return self._set_control(sim, targets, None, None, "set_dof_velocity_target_tensor", 2)

    def set_dof_velocity_target_tensor_indexed(
        self, sim: Any, targets: Any, indices: Any, count: int | None = None
    ) -> bool:
        """Set the velocity targets of some actors from a full tensor."""
        return self._set_control(sim, targets, indices, count, "set_dof_velocity_target_tensor_indexed", 2)

    def set_dof_actuation_force_tensor(self, sim: Any, forces: Any) -> bool:
        """Set the efforts of all actors for the next `simulate`; entries of other modes are ignored."""
        return self._set_control(sim, forces, None, None, "set_dof_actuation_force_tensor", 3)

    def set_dof_actuation_force_tensor_indexed(
        self, sim: Any, forces: Any, indices: Any, count: int | None = None
    ) -> bool:
        """Set the efforts of some actors for the next `simulate` from a full tensor."""
        return self._set_control(sim, forces, indices, count, "set_dof_actuation_force_tensor_indexed", 3)

    def _set_control(
        self, sim: Any, values: Any, indices: Any, count: int | None, call: str, mode: int
    ) -> bool:
        tensors = self._tensors(sim, call)
        array = self._values(sim, values, sim.dof_count, 1, call, "degree of freedom")
        selected, slots = self._indices(sim, indices, count, call)
        control = tensors.runtime.simulation.control
        name = {1: "joint_target_pos", 2: "joint_target_vel", 3: "joint_act"}[mode]
        tensors.write_control(selected, slots, mode, array, getattr(control, name))
        if mode == DofDriveMode.DOF_MODE_EFFORT:
            tensors.runtime.has_effort = True
        return True

    def apply_rigid_body_force_tensors(
        self,
        sim: Any,
        forceTensor: Any = None,
        torqueTensor: Any = None,
        space: CoordinateSpace | int = CoordinateSpace.ENV_SPACE,
    ) -> bool:
        """Add forces at centres of mass, and torques, for the next `simulate`; 3 numbers per body."""
        return self._apply(sim, forceTensor, torqueTensor, None, space, "apply_rigid_body_force_tensors")

    def apply_rigid_body_force_at_pos_tensors(
        self,
        sim: Any,
        forceTensor: Any,
        posTensor: Any = None,
        space: CoordinateSpace | int = CoordinateSpace.ENV_SPACE,
    ) -> bool:
        """Add forces at points, for the next `simulate`; 3 numbers for each body."""
        return self._apply(sim, forceTensor, None, posTensor, space, "apply_rigid_body_force_at_pos_tensors")

    def _apply(self, sim: Any, force: Any, torque: Any, point: Any, space: Any, call: str) -> bool:
        runtime = self._tensors(sim, call).runtime
        require(
            as_int(space, "space", call) in (0, 1, 2),
            call,
            f"space is {space!r}, but must be ENV_SPACE, LOCAL_SPACE or GLOBAL_SPACE.",
        )
        arrays = [
            runtime.no_vectors
            if part is None
            else same_memory(
                self._values(sim, part, sim.body_count, 3, call, "body"), wp.vec3, (sim.body_count,)
            )
            for part in (force, torque, point)
        ]
        runtime.update_body_poses()
        launch_kernel(
            add_body_force,
            dim=sim.body_count,
            inputs=[
                runtime.bodies,
                int(space),
                runtime.simulation.state.body_q,
                runtime.model.body_com,
                *arrays,
            ],
            outputs=[runtime.applied_force, runtime.applied_torque],
            device=runtime.device,
        )
        runtime.has_applied = True
        return True

    def acquire_jacobian_tensor(self, sim: Any, actor_name: str) -> Tensor:
        """Return the Jacobians of the actors of a name.

        Its shape is [actor, link, 6, dof]: for a fixed base without the root link, for a floating one with
        six columns for the root in front. Rows are the velocity of the centre of mass, then the angular
        velocity, in the axes of the env, as in the tensor of body states.
        """
        return Tensor(
            self._matrices(sim, "acquire_jacobian_tensor").jacobian(
                text(actor_name, "actor_name", "acquire_jacobian_tensor")
            )
        )

    def refresh_jacobian_tensors(self, sim: Any) -> bool:
        """Fill all Jacobians that were acquired."""
        self._matrices(sim, "refresh_jacobian_tensors").refresh_jacobians()
        return True

    def acquire_mass_matrix_tensor(self, sim: Any, actor_name: str) -> Tensor:
        """Return the mass matrices of the actors of a name, shape [actor, dof, dof]."""
        return Tensor(
            self._matrices(sim, "acquire_mass_matrix_tensor").mass_matrix(
                text(actor_name, "actor_name", "acquire_mass_matrix_tensor")
            )
        )

    def refresh_mass_matrix_tensors(self, sim: Any) -> bool:
        """Fill all mass matrices that were acquired."""
        self._matrices(sim, "refresh_mass_matrix_tensors").refresh_mass_matrices()
        return True

    def _matrices(self, sim: Any, call: str) -> ArticulationMatrices:
        self._runtime(sim, call)
        return sim.part(ArticulationMatrices) or sim.add_part(ArticulationMatrices(sim))

    def _values(self, sim: Sim, values: Any, count: int, width: int, call: str, what: str) -> wp.array:
        """Return a flat array of `count` times `width` numbers."""
        array = as_array(values, wp.float32, sim.device, call, "the tensor")
        if array.size != count * width:
            raise ValueError(
                f"{call}: the tensor has {array.size} entries, but must have {count * width}: {width} for "
                f"each {what} of the sim ({count})."
            )
        return array

    def _indices(self, sim: Sim, indices: Any, count: int | None, call: str) -> tuple[wp.array, int]:
        """Return indices of actors, and how many of them count; none and all where none are given."""
        runtime = sim.prepared
        if indices is None:
            return runtime.no_indices, sim.actor_count
        array = as_array(indices, wp.int32, sim.device, call, "the index tensor")
        slots = array.size if count is None else as_int(count, "count", call)
        if not 0 <= slots <= array.size:
            raise ValueError(f"{call}: the count is {count}, but the index tensor has {array.size} entries.")
        if slots == 0:
            return array, 0
        if sim.device.is_cpu:
            used = array.numpy()[:slots]
            if used.min() < 0 or used.max() >= sim.actor_count:
                bad = int(used[(used < 0) | (used >= sim.actor_count)][0])
                known = f"actors 0 to {sim.actor_count - 1}" if sim.actor_count else "no actors"
                raise IndexError(
                    f"{call}: index {bad} names no actor; the sim has {known}. Indices are those "
                    "of actors in DOMAIN_SIM (get_actor_index), for degrees of freedom too."
                )
        return array, slots
