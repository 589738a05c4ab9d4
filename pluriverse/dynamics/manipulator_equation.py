"""The separate terms of the manipulator equation, tau = M(q) dv/dt + C(q, v) v + g(q).

Reads   joint_q, joint_qd; the results of inverse dynamics at rest and in motion
Writes  gravity_force, coriolis_force; joint_f

External forces and joint damping are not included. All quantities are public: those of a free joint are at
the centre of mass, in world axes.
"""

import weakref
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.articulation_mass_matrix import eval_mass_matrix
from pluriverse.dynamics.articulation_query import articulation_query, check_mask, output_array
from pluriverse.dynamics.inverse_dynamics import eval_inverse_dynamics
from pluriverse.launch import kept_for, launch_kernel, made_once, uninterrupted
from pluriverse.math.precision import kernel_module
from pluriverse.model import Model, State
from pluriverse.model.arguments import check_model

_TYPES = (wp.float32, wp.float64)


class _Scratch:
    """Arrays kept per model: a recorded call stays valid, and later calls allocate nothing."""

    def __init__(self, model: Model) -> None:
        # Called so, it refers to the model as weakly as `kept_for` does; `model.state()` would not.
        self.state = Model.state(model)
        self.no_acceleration = wp.zeros(model.joint_dof_count, dtype=wp.float64, device=model.device)
        self.at_rest = wp.zeros_like(self.no_acceleration)
        self.moving = wp.zeros_like(self.no_acceleration)


_scratches: weakref.WeakKeyDictionary[Model, _Scratch] = weakref.WeakKeyDictionary()


@made_once
def _kernels(mass_real: Any, real: Any) -> SimpleNamespace:
    module = kernel_module("pluriverse.dynamics.manipulator_equation", mass_real, real)

    @wp.func
    def is_selected(mask: wp.array[bool], articulation: int) -> bool:
        """Return whether an articulation is selected."""
        if mask.shape[0] == 0:
            return True
        return mask[articulation]

    @wp.kernel(enable_backward=False, module=module)
    def split_force(
        # model
        joint_articulation: wp.array[int],  # [joint]
        joint_qd_start: wp.array[int],  # [joint + 1]
        joint_damping: wp.array[float],  # [dof] N s/m or N m s/rad
        mask: wp.array[bool],  # [articulation] empty: all
        # state in
        joint_qd: wp.array[float],  # [dof] m/s or rad/s
        at_rest: wp.array[wp.float64],  # [dof] N or N m, g
        moving: wp.array[wp.float64],  # [dof] N or N m, C v + g + D v
        part: int,  # 0: g, 1: C v
        force: wp.array[real],  # [dof] N or N m
    ):
        """Write one part of the force on one joint."""
        joint, _ = wp.tid()
        selected = is_selected(mask, joint_articulation[joint])
        for dof in range(joint_qd_start[joint], joint_qd_start[joint + 1]):
            value = at_rest[dof]
            if part == 1:
                damping = wp.float64(joint_damping[dof]) * wp.float64(joint_qd[dof])
                value = moving[dof] - at_rest[dof] - damping
            if not selected:
                value = wp.float64(0.0)
            force[dof] = real(value)

    @wp.kernel(enable_backward=False, module=module)
    def sum_force(
        # model
        joint_articulation: wp.array[int],  # [joint]
        joint_qd_start: wp.array[int],  # [joint + 1]
        articulation_start: wp.array[int],  # [articulation + 1]
        articulation_joint: wp.array[int],  # [joint]
        dof_index: wp.array[int],  # [dof]
        mask: wp.array[bool],  # [articulation] empty: all
        # the terms
        mass_matrix: wp.array3d[mass_real],  # [articulation, dof, dof]
        joint_qdd: wp.array[real],  # [dof] m/s^2 or rad/s^2
        coriolis_force: wp.array[real],  # [dof] N or N m
        gravity_force: wp.array[real],  # [dof] N or N m
        joint_f: wp.array[real],  # [dof] N or N m
    ):
        """Write the force on one joint."""
        joint, _ = wp.tid()
        articulation = joint_articulation[joint]
        selected = is_selected(mask, articulation)
        for dof in range(joint_qd_start[joint], joint_qd_start[joint + 1]):
            total = wp.float64(0.0)
            if selected:
                total = wp.float64(coriolis_force[dof]) + wp.float64(gravity_force[dof])
                for entry in range(articulation_start[articulation], articulation_start[articulation + 1]):
                    other = articulation_joint[entry]
                    for column in range(joint_qd_start[other], joint_qd_start[other + 1]):
                        mass = mass_matrix[articulation, dof_index[dof], dof_index[column]]
                        total += wp.float64(mass) * wp.float64(joint_qdd[column])
            joint_f[dof] = real(total)

    return SimpleNamespace(split_force=split_force, sum_force=sum_force)


@uninterrupted
def eval_inverse_dynamics_passive(
    model: Model,
    state: State,
    *,
    mass_matrix: wp.array | None = None,
    gravity_force: wp.array | None = None,
    coriolis_force: wp.array | None = None,
    mask: wp.array | None = None,
) -> None:
    """Write terms of the manipulator equation, tau = M(q) dv/dt + C(q, v) v + g(q), at a state.

    g holds the bodies at rest against what is not compensated of gravity, C v keeps the joint velocities
    constant; joint damping and `body_f` are in neither. The state's `joint_q` and `joint_qd` count, not its
    bodies.

    Args:
        model: Model of the articulations.
        state: State to evaluate at.
        mass_matrix: Receives M with armature, as `eval_mass_matrix` gives it.
        gravity_force: Receives g [N or N·m], float32 or float64, shape [dof].
        coriolis_force: Receives C v [N or N·m], float32 or float64, shape [dof].
        mask: Which articulations, truth values of shape [articulation]; all if None. Others get zeros.

    Raises:
        TypeError: If the mask is not made of truth values.
        ValueError: If nothing is asked for, an array has the wrong shape, type or device, or two are one.
    """
    check_model(model, "eval_inverse_dynamics_passive")
    what = "eval_inverse_dynamics_passive"
    if mass_matrix is None and gravity_force is None and coriolis_force is None:
        raise ValueError(f"{what}: pass an array for mass_matrix, gravity_force or coriolis_force.")
    if gravity_force is not None and gravity_force is coriolis_force:
        raise ValueError(f"{what}: gravity_force and coriolis_force are one array; pass two.")
    selected = check_mask(model, mask, what)
    shape = (model.joint_dof_count,)
    for name, array in (("gravity_force", gravity_force), ("coriolis_force", coriolis_force)):
        if array is not None:
            output_array(array, shape, model, f"{what}: {name}", types=_TYPES)
    if mass_matrix is not None:
        eval_mass_matrix(model, state, mass_matrix, mask)
    if gravity_force is None and coriolis_force is None:
        return
    scratch = kept_for(model, _scratches, _Scratch)
    wp.copy(scratch.state.joint_q, state.joint_q)
    scratch.state.joint_qd.zero_()
    eval_inverse_dynamics(model, scratch.state, scratch.no_acceleration, scratch.at_rest)
    if coriolis_force is not None:
        wp.copy(scratch.state.joint_qd, state.joint_qd)
        eval_inverse_dynamics(model, scratch.state, scratch.no_acceleration, scratch.moving)
    for part, array in enumerate((gravity_force, coriolis_force)):
        if array is not None:
            launch_kernel(
                _kernels(array.dtype, array.dtype).split_force,
                dim=model.joint_count,
                inputs=[
                    model.structure.joint_articulation,
                    model.structure.joint_qd_start,
                    model.joint_damping,
                    selected,
                    state.joint_qd,
                    scratch.at_rest,
                    scratch.moving,
                    part,
                ],
                outputs=[array],
                device=model.device,
            )


def eval_inverse_dynamics_force(
    model: Model,
    state: State,
    *,
    mass_matrix: wp.array,
    joint_qdd: wp.array,
    coriolis_force: wp.array,
    gravity_force: wp.array,
    joint_f: wp.array,
    mask: wp.array | None = None,
) -> None:
    """Write tau = M dv/dt + C v + g from its terms, as `eval_inverse_dynamics_passive` gives them.

    Args:
        model: Model of the articulations.
        state: Not read: all terms are public quantities already. It is there for scripts written for Newton.
        mass_matrix: M, float32 or float64, shape [articulation, most dofs, most dofs].
        joint_qdd: Rates of change of `joint_qd` [m/s² or rad/s²], float32 or float64, shape [dof].
        coriolis_force: C v [N or N·m], of the type of `joint_qdd`, shape [dof].
        gravity_force: g [N or N·m], of the type of `joint_qdd`, shape [dof].
        joint_f: Receives tau [N or N·m] as in `Control.joint_f`, of the type of `joint_qdd`, shape [dof].
        mask: Which articulations, truth values of shape [articulation]; all if None. Others get zeros.

    Raises:
        TypeError: If the mask is not made of truth values.
        ValueError: If an array has the wrong shape, type or device.
    """
    check_model(model, "eval_inverse_dynamics_force")
    what = "eval_inverse_dynamics_force"
    selected = check_mask(model, mask, what)
    query = articulation_query(model)
    shape = (model.joint_dof_count,)
    output_array(joint_qdd, shape, model, f"{what}: joint_qdd", types=_TYPES)
    for name, array in (
        ("coriolis_force", coriolis_force),
        ("gravity_force", gravity_force),
        ("joint_f", joint_f),
    ):
        output_array(array, shape, model, f"{what}: {name}", types=(joint_qdd.dtype,))
    square = (model.articulation_count, query.dof_count_max, query.dof_count_max)
    output_array(mass_matrix, square, model, f"{what}: mass_matrix", types=_TYPES)
    launch_kernel(
        _kernels(mass_matrix.dtype, joint_qdd.dtype).sum_force,
        dim=model.joint_count,
        inputs=[
            model.structure.joint_articulation,
            model.structure.joint_qd_start,
            model.structure.articulation_start,
            model.structure.articulation_joint,
            query.dof_index,
            selected,
            mass_matrix,
            joint_qdd,
            coriolis_force,
            gravity_force,
        ],
        outputs=[joint_f],
        device=model.device,
    )
