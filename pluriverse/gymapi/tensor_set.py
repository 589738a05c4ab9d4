"""Tensor set: the buffers of a prepared sim, which keep their memory as long as it lives."""

import numpy as np
import warp as wp

from pluriverse.gymapi import state_tensors
from pluriverse.gymapi.runtime import Runtime
from pluriverse.launch import launch_kernel
from pluriverse.model import State

# Buffers that are refreshed.
_ROOT, _BODY, _DOF = range(3)


class TensorSet:
    """Buffers and how they are filled.

    Args:
        runtime: The prepared sim.
    """

    def __init__(self, runtime: Runtime):
        self.runtime = runtime
        device = runtime.device
        self.root = wp.zeros((runtime.actors.root_body.size, 13), dtype=float, device=device)
        """Root states, shape [actor, 13]."""
        self.body = wp.zeros((runtime.bodies.body.size, 13), dtype=float, device=device)
        """Body states, shape [body, 13]."""
        self.dof = wp.zeros((runtime.dofs.dof.size, 2), dtype=float, device=device)
        """States of degrees of freedom, shape [dof, 2]."""
        # By buffer and state. A launch from scratch takes 10 us, after a step, when no cache holds the code
        # that makes it, up to 100 us.
        self._launches: dict[tuple[int, int], tuple[State, wp.Launch]] = {}
        self._host_rows: TensorSet | None = None
        self._control_launches: dict[int, tuple[wp.array, wp.Launch]] = {}  # by mode

    def refresh_root(self) -> None:
        """Fill the root states."""
        self.runtime.update_body_poses()
        self._refresh(_ROOT)

    def refresh_body(self) -> None:
        """Fill the body states."""
        self.runtime.update_body_poses()
        self._refresh(_BODY)

    def read_body_rows(self) -> np.ndarray:
        """Return the body states; a copy. The buffers that scripts hold stay as they are."""
        if self._host_rows is None:
            self._host_rows = TensorSet(self.runtime)
        self._host_rows.refresh_body()
        return np.array(self._host_rows.body.numpy())

    def refresh_dof(self) -> None:
        """Fill the states of the degrees of freedom."""
        self._refresh(_DOF)

    def _refresh(self, which: int) -> None:
        """Fill a buffer from the present state, by a launch that is put together once per state."""
        if (self.root, self.body, self.dof)[which].size == 0:
            return
        state = self.runtime.simulation.state
        known = self._launches.get((which, id(state)))
        if known is None or known[0] is not state:
            known = self._launches[which, id(state)] = (state, self._record_refresh(which, state))
        known[1].launch()

    def _record_refresh(self, which: int, state: State) -> wp.Launch:
        runtime = self.runtime
        bodies, joints = [state.body_q, state.body_qd], [state.joint_q, state.joint_qd]
        kernel, inputs, rows = (
            (state_tensors.read_root_state, [runtime.actors, *joints, *bodies], self.root),
            (state_tensors.read_body_state, [runtime.bodies, *bodies], self.body),
            (state_tensors.read_dof_state, [runtime.dofs, *joints], self.dof),
        )[which]
        return launch_kernel(
            kernel, dim=rows.shape[0], inputs=inputs, outputs=[rows], device=runtime.device, record_cmd=True
        )

    def write_root(self, indices: wp.array, slots: int, rows: wp.array) -> None:
        """Put roots where rows say: those of the actors listed, or of all if there is no list."""
        runtime = self.runtime
        model, state = runtime.model, runtime.simulation.state
        if runtime.has_jointed_root:
            runtime.update_body_poses()
        launch_kernel(
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
        launch_kernel(
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
        if slots == 0:
            return
        runtime = self.runtime
        known = self._control_launches.get(mode)
        if known is None or known[0] is not control:
            inputs = [indices, runtime.actors, runtime.dofs, mode, values]
            launch = launch_kernel(
                state_tensors.write_control,
                dim=slots,
                inputs=inputs,
                outputs=[control],
                device=runtime.device,
                record_cmd=True,
            )
            known = self._control_launches[mode] = (control, launch)
        launch = known[1]
        launch.set_dim(slots)
        launch.set_param_at_index(0, indices)
        launch.set_param_at_index(4, values)
        launch.launch()
