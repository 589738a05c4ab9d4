"""Tensor set: the buffers of a prepared sim, which keep their memory as long as it lives."""

import warp as wp

from pluriverse.gymapi import state_tensors
from pluriverse.gymapi.runtime import Runtime


class TensorSet:
    """Buffers and how they are filled.

    Args:
        runtime: The prepared sim.
    """

    def __init__(self, runtime: Runtime):
        self.runtime = runtime
        sim, device = runtime.sim, runtime.device
        self.root = wp.zeros((sim.actor_count, 13), dtype=float, device=device)
        """Root states, shape [actor, 13]."""
        self.body = wp.zeros((sim.body_count, 13), dtype=float, device=device)
        """Body states, shape [body, 13]."""
        self.dof = wp.zeros((sim.dof_count, 2), dtype=float, device=device)
        """States of degrees of freedom, shape [dof, 2]."""

    def refresh_root(self) -> None:
        """Fill the root states."""
        runtime = self.runtime
        runtime.place_bodies()
        state = runtime.simulation.state
        wp.launch(
            state_tensors.read_root_state,
            dim=runtime.sim.actor_count,
            inputs=[runtime.actors, state.joint_q, state.joint_qd, state.body_q, state.body_qd],
            outputs=[self.root],
            device=runtime.device,
        )

    def refresh_body(self) -> None:
        """Fill the body states."""
        runtime = self.runtime
        runtime.place_bodies()
        state = runtime.simulation.state
        wp.launch(
            state_tensors.read_body_state,
            dim=runtime.sim.body_count,
            inputs=[runtime.bodies, state.body_q, state.body_qd],
            outputs=[self.body],
            device=runtime.device,
        )

    def refresh_dof(self) -> None:
        """Fill the states of the degrees of freedom."""
        runtime = self.runtime
        state = runtime.simulation.state
        wp.launch(
            state_tensors.read_dof_state,
            dim=runtime.sim.dof_count,
            inputs=[runtime.dofs, state.joint_q, state.joint_qd],
            outputs=[self.dof],
            device=runtime.device,
        )

    def write_root(self, indices: wp.array, slots: int, rows: wp.array) -> None:
        """Put roots where rows say: those of the actors listed, or of all if there is no list."""
        runtime = self.runtime
        model, state = runtime.model, runtime.simulation.state
        if runtime.has_jointed_root:
            runtime.place_bodies()
        wp.launch(
            state_tensors.write_root_state,
            dim=slots,
            inputs=[indices, runtime.actors, model.joint_X_c, state.body_q, rows],
            outputs=[
                model.joint_X_p,
                state.joint_q,
                state.joint_qd,
                runtime.moved,
                runtime.simulation.solver.world_frozen,
            ],
            device=runtime.device,
        )
        runtime.any_moved = True

    def write_dof(self, indices: wp.array, slots: int, rows: wp.array) -> None:
        """Put joints where rows say: those of the actors listed, or of all if there is no list."""
        runtime = self.runtime
        state = runtime.simulation.state
        wp.launch(
            state_tensors.write_dof_state,
            dim=slots,
            inputs=[indices, runtime.actors, runtime.dofs, rows],
            outputs=[state.joint_q, state.joint_qd, runtime.moved, runtime.simulation.solver.world_frozen],
            device=runtime.device,
        )
        runtime.any_moved = True

    def write_control(
        self, indices: wp.array, slots: int, mode: int, values: wp.array, control: wp.array
    ) -> None:
        """Write targets or efforts to the degrees of freedom of a mode."""
        runtime = self.runtime
        wp.launch(
            state_tensors.write_control,
            dim=slots,
            inputs=[indices, runtime.actors, runtime.dofs, mode, values],
            outputs=[control],
            device=runtime.device,
        )
