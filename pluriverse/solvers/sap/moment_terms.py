"""Moment stage: rolling and torsional friction of contacts, if asked for.

Reads   contacts and their bodies, friction of shapes, inertias
Writes  per contact: contact_mu_moment, contact_ra

The coefficients of a pair are combined as those of sliding. Stiction against turning is regularized as that
against sliding, by R_a = sigma w_a, with w_a the mean mobility of the two bodies for rotation.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.precision import kernel_module, mat33_type, vec3_type
from pluriverse.model import Contacts, Model
from pluriverse.solvers.sap.contact_inputs import ARITHMETIC_MEAN, MAXIMUM, MINIMUM
from pluriverse.solvers.sap.workspace import SapWorkspace, sap_struct

# Floor of R_a [1/(kg·m²)]: a guard of divisions only.
REGULARIZATION_MIN = wp.constant(1e-30)


@wp.struct
class MomentInputs:
    """Arrays of contacts and model that the stage reads; see `Contacts` and `Model`."""

    shape0: wp.array[int]
    shape1: wp.array[int]
    shape_body: wp.array[int]
    shape_mu_rolling: wp.array[float]
    shape_mu_torsional: wp.array[float]
    body_mass: wp.array[float]
    body_inertia: wp.array[wp.mat33]


@made_once
def _kernels(real: Any, linear: Any) -> SimpleNamespace:
    vec3, mat33 = vec3_type(real), mat33_type(real)
    SapData = sap_struct(real, linear)

    @wp.func
    def combined(a: real, b: real, mode: int) -> real:
        """Return the coefficient of a pair."""
        result = real(0.0)
        if mode == ARITHMETIC_MEAN:
            result = real(0.5) * (a + b)
        elif mode == MINIMUM:
            result = wp.min(a, b)
        elif mode == MAXIMUM:
            result = wp.max(a, b)
        elif a + b > real(0.0):
            result = real(2.0) * a * b / (a + b)
        return result

    @wp.func
    def turning_mobility(inputs: MomentInputs, shape: int, dof: int) -> real:
        """Return the mean of the inverse principal inertias of the body of a shape [1/(kg·m²)], if free."""
        body = inputs.shape_body[shape]
        result = real(0.0)
        if dof >= 0 and inputs.body_mass[body] > 0.0:
            result = wp.trace(wp.inverse(mat33(inputs.body_inertia[body]))) / real(3.0)
        return result

    @wp.kernel(
        enable_backward=False,
        module=kernel_module("pluriverse.solvers.sap.moment_terms", real, linear),
    )
    def set_moment_terms(
        worlds: wp.array[int],
        inputs: MomentInputs,
        friction_mode: int,
        sigma: real,
        sap: SapData,
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        start = sap.contact_start[world]
        for slot in range(start, start + sap.contact_count[world]):
            shape0, shape1 = inputs.shape0[slot], inputs.shape1[slot]
            rolling = combined(
                real(inputs.shape_mu_rolling[shape0]), real(inputs.shape_mu_rolling[shape1]), friction_mode
            )
            torsional = combined(
                real(inputs.shape_mu_torsional[shape0]),
                real(inputs.shape_mu_torsional[shape1]),
                friction_mode,
            )
            mobility = turning_mobility(inputs, shape0, sap.contact_dof0[slot])
            mobility += turning_mobility(inputs, shape1, sap.contact_dof1[slot])
            sap.contact_mu_moment[slot] = vec3(rolling, rolling, torsional)
            sap.contact_ra[slot] = wp.max(sigma * mobility, real(REGULARIZATION_MIN))
            sap.contact_moment[slot] = vec3()

    return SimpleNamespace(set_moment_terms=set_moment_terms)


def set_moment_terms(
    model: Model,
    worlds: wp.array,
    contacts: Contacts,
    sap: SapWorkspace,
    *,
    friction_mode: int,
    sigma: float,
) -> None:
    """Write the rolling and torsional friction of every contact of the worlds."""
    inputs = MomentInputs()
    inputs.shape0 = contacts.rigid_contact_shape0
    inputs.shape1 = contacts.rigid_contact_shape1
    inputs.shape_body = model.structure.shape_body
    inputs.shape_mu_rolling = model.shape_material_mu_rolling
    inputs.shape_mu_torsional = model.shape_material_mu_torsional
    inputs.body_mass = model.body_mass
    inputs.body_inertia = model.body_inertia
    launch_kernel(
        _kernels(sap.real, sap.linear).set_moment_terms,
        dim=worlds.size,
        inputs=[worlds, inputs, friction_mode, sigma, sap.data],
        device=model.device,
    )
