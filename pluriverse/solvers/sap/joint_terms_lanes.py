"""Terms of joints in lanes: what `set_terms` of `joint_terms.py` does, for eight degrees of freedom at once.

Reads   joint_q of the old state, control, gains and limits of the model, A, v0 and v* of the dynamics
Writes  dof_terms, dof_scale and the coefficients of the terms (`SapWorkspace`)

Here a lane is a degree of freedom of one world. Every lane makes the operations of `set_terms` in their
order, with masks in place of branches, so it ends with the same bits. Coefficients of terms that are absent
stay as they are. The last block of eight may overlap the one before it. If there are fewer than eight in all,
the last one fills the block.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.lanes import lane_code
from pluriverse.model import Topology
from pluriverse.solvers.sap.joint_term_inputs import (
    EFFORT_UNLIMITED,
    INVERSE_MASS_MIN,
    LIMIT_RECOVERY_TIME,
    NEAR_RIGID,
    SPEED_UNLIMITED,
    JointTermInputs,
)
from pluriverse.solvers.sap.workspace import (
    DRIVE,
    DRY_FRICTION,
    LIMIT_LOWER,
    LIMIT_UPPER,
    SPEED_LIMIT,
    sap_struct,
)
from pluriverse.types import JointTargetMode

# Masks of eight lanes, and functions of math.h as Warp has them.
_MASKS = """
    typedef int I __attribute__((ext_vector_type(8)));
    typedef int IU __attribute__((ext_vector_type(8), aligned(sizeof(int))));
    typedef __typeof__(T(0) < T(0)) M;
    auto mask = [](I a) { return __builtin_convertvector(a, M); };
    auto any = [](M a) { return __builtin_reduce_or(a) != 0; };
    auto is_number = [](T a) { return a == a; };
    auto larger = [](T a, T b) { return (a >= b) ? a : ((b == b) ? b : a); };
    auto bounded = [](T a, T least, T most) { return a < least ? least : (a > most ? most : a); };
    auto bits = [](M a, int bit) { return __builtin_convertvector(a, I) & I(bit); };
"""

# A block of degrees of freedom: where its lanes find their numbers in each numbering.
_BLOCK = """
    const int kind = topology.world_template.data[world];
    const int first_dof = topology.template_dof.data[kind];
    const int dof_count = topology.template_dof.data[kind + 1] - first_dof;
    const int dof0 = topology.world_dof.data[world];
    const int coord0 = topology.world_coord.data[world];
    const int row0 = topology.world_row.data[world];
    const T dt = T(S(dt64)), zero = T(0), one = T(1);
    const I along = { 0, 1, 2, 3, 4, 5, 6, 7 };
    for (int done = 0; done < dof_count; done += 8) {
        const int local = done + 8 <= dof_count ? done : (dof_count < 8 ? 0 : dof_count - 8);
        const int used = dof_count < 8 ? dof_count : 8;
        const bool full = used == 8;
        auto column = [&](const auto& values) {
            const int* from = values.data + first_dof + local;
            I result;
            if (full) {
                result = *(const IU*)from;
            } else {
                for (int l = 0; l < 8; ++l) result[l] = from[l < used ? l : used - 1];
            }
            return result;
        };
        const I public_dof = column(topology.dof_public), coord = column(topology.dof_coord);
        const bool in_order = full && __builtin_reduce_and(public_dof == public_dof[0] + along) != 0;
        const M scalar = mask(coord >= 0);
        // Numbers of the degrees of freedom in the public order.
        auto given = [&](const auto& values) {
            typedef __typeof__(values.data[0] + 0) E;
            typedef E EV __attribute__((ext_vector_type(8), aligned(sizeof(E))));
            if (in_order) {
                return __builtin_convertvector(*(const EV*)(values.data + dof0 + public_dof[0]), T);
            }
            T result;
            for (int l = 0; l < 8; ++l) result[l] = S(values.data[dof0 + public_dof[l]]);
            return result;
        };
        // Numbers in the internal order.
        auto own = [&](const auto& values) {
            typedef __typeof__(values.data[0] + 0) E;
            typedef E EV __attribute__((ext_vector_type(8), aligned(sizeof(E))));
            const E* from = values.data + dof0 + local;
            if (full) return __builtin_convertvector(*(const EV*)from, T);
            T result;
            for (int l = 0; l < 8; ++l) result[l] = S(from[l < used ? l : used - 1]);
            return result;
        };
        // Store a number where a term is present.
        auto store = [&](auto& values, M where, T value) {
            typedef S SV __attribute__((ext_vector_type(8), aligned(sizeof(S))));
            S* to = values.data + dof0 + local;
            if (full) {
                *(SV*)to = where ? value : T(*(SV*)to);
            } else {
                for (int l = 0; l < used; ++l) if (where[l]) to[l] = value[l];
            }
        };
        I mode;
        if (in_order) {
            mode = *(const IU*)(inputs.target_mode.data + dof0 + public_dof[0]);
        } else {
            for (int l = 0; l < 8; ++l) mode[l] = inputs.target_mode.data[dof0 + public_dof[l]];
        }
        T q, diagonal;
        const I entry = column(topology.dof_row) + column(topology.dof_depth);
        for (int l = 0; l < 8; ++l) {
            q[l] = coord[l] >= 0 ? S(inputs.joint_q.data[coord0 + coord[l]]) : S(0);
            diagonal[l] = S(dynamics.mass_row.data[row0 + entry[l]]);
        }
        const T scale = one / diagonal;
        store(sap.dof_scale, ~M(0), scale);
        const T inverse_mass = larger(scale, T(INVERSE_MASS_MIN));
        const T near_rigid = T(NEAR_RIGID) * inverse_mass;
        I terms = I(0);
        const T torque = given(inputs.friction);
        M complete = is_number(torque);
"""

_DRIVE = """
        const M driven = mask(mode != 0);
        if (any(driven)) {
            const M moves = mask(mode != MODE_EFFORT);
            const M only_speed = mask(mode == MODE_VELOCITY);
            T kd = moves ? given(inputs.target_kd) : zero;
            T ke = (moves & scalar & ~only_speed) ? given(inputs.target_ke) : zero;
            const T least = given(inputs.target_lower), most = given(inputs.target_upper);
            const T speed = given(inputs.target_vel);
            T target_velocity = (moves & mask(mode != MODE_POSITION)) ? speed : zero;
            target_velocity = only_speed ? bounded(speed, least, most) : target_velocity;
            const M stiff = ((ke > zero) | (kd > zero)) & (one < near_rigid * (dt * (dt * ke + kd)));
            if (any(stiff & driven)) {
                const M rigid = dt * ke > kd;
                const T tau = kd / ke, rate = ke / kd;
                const T rigid_ke = one / (dt * (dt + tau) * near_rigid);
                const T viscous_kd = one / (dt * (one + dt * rate) * near_rigid);
                ke = stiff ? (rigid ? rigid_ke : rate * viscous_kd) : ke;
                kd = stiff ? (rigid ? tau * rigid_ke : viscous_kd) : kd;
            }
            const T most_effort = given(inputs.effort_limit);
            complete &= ~driven | (is_number(ke + kd) & is_number(most_effort));
            T offset = kd * target_velocity + given(inputs.act);
            const T target = bounded(given(inputs.target_pos), least, most);
            offset = ke > zero ? offset + ke * (target - q) : offset;
            const T gain = dt * ke + kd;
            const M present = driven & ((gain > zero) | (offset != zero));
            store(sap.drive_offset, present, offset);
            store(sap.drive_gain, present, gain);
            const T unlimited = T(EFFORT_UNLIMITED);
            store(sap.drive_limit, present, most_effort < unlimited ? most_effort : unlimited);
            terms |= bits(present, BIT_DRIVE);
        }
"""

_LIMIT = """
        const T limit_ke = given(inputs.limit_ke);
        const M limited = scalar & ~(limit_ke <= zero);
        if (any(limited)) {
            const T least = given(inputs.limit_lower), most = given(inputs.limit_upper);
            complete &= ~limited | (is_number(least) & is_number(most));
            const T speed = larger(
                __builtin_elementwise_abs(own(dynamics.dof_velocity)),
                __builtin_elementwise_abs(own(dynamics.dof_velocity_free)));
            const T window = T(2) * dt * speed;
            const T lower = q - least, upper = most - q;
            const M at_lower = limited & (lower <= window), at_upper = limited & (upper <= window);
            if (any(at_lower | at_upper)) {
                const T limit_kd = given(inputs.limit_kd);
                const T kd = larger(limit_kd, zero);
                const M soft = is_number(limit_ke);
                const T ke = soft ? limit_ke : one / (dt * dt * near_rigid);
                const T critical = T(2) * __builtin_elementwise_sqrt(diagonal / ke);
                const T tau = is_number(limit_kd) ? kd / ke : (soft ? critical : T(LIMIT_RECOVERY_TIME));
                store(sap.limit_regularization, at_lower | at_upper,
                      larger(near_rigid, one / (dt * ke * (dt + tau))));
                const M damped = M(approach_damping != 0 ? -1 : 0);
                const T lower_time = (lower > zero) & ~damped ? dt : dt + tau;
                const T upper_time = (upper > zero) & ~damped ? dt : dt + tau;
                store(sap.limit_lower_bias, at_lower, -lower / lower_time);
                store(sap.limit_upper_bias, at_upper, -upper / upper_time);
                terms |= bits(at_lower, BIT_LOWER) | bits(at_upper, BIT_UPPER);
            }
        }
"""

_FRICTION = """
        const M rubs = torque > zero;
        if (any(rubs)) {
            store(sap.friction_regularization, rubs, T(S(contact_sigma)) * inverse_mass);
            store(sap.friction_impulse, rubs, dt * torque);
            terms |= bits(rubs, BIT_FRICTION);
        }
        if (inputs.enforce_velocity_limit != 0) {
            const T speed_limit = scalar ? given(inputs.velocity_limit) : T(SPEED_UNLIMITED);
            const M present = speed_limit < T(SPEED_UNLIMITED);
            store(sap.speed_limit, present, speed_limit);
            store(sap.speed_regularization, present, near_rigid);
            terms |= bits(present, BIT_SPEED);
            complete &= is_number(speed_limit);
        }
        if (any(~complete)) {
            store(sap.drive_offset, ~complete, T(__builtin_nan("")));
            store(sap.drive_gain, ~complete, one);
            store(sap.drive_limit, ~complete, T(EFFORT_UNLIMITED));
            const I counts = __builtin_convertvector(complete, I);
            terms = (terms & counts) | (I(BIT_DRIVE) & ~counts);
        }
        for (int l = 0; l < used; ++l) sap.dof_terms.data[dof0 + local + l] = terms[l];
    }
"""


@made_once
def joint_term_lanes(real: Any, linear: Any, dynamics_real: Any) -> SimpleNamespace:
    """Return the function that sets the terms of a world, for scalars of type `real`.

    `set_terms_in_lanes(world, topology, inputs, dynamics, sap, contact_sigma, approach_damping, dt64)` has
    the arguments of `set_terms` (`joint_terms.py`). It does nothing on a GPU.
    """
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    text = _MASKS + _BLOCK + _DRIVE + _LIMIT + _FRICTION
    for name, value in (
        ("MODE_EFFORT", int(JointTargetMode.EFFORT)),
        ("MODE_VELOCITY", int(JointTargetMode.VELOCITY)),
        ("MODE_POSITION", int(JointTargetMode.POSITION)),
        ("BIT_DRIVE", DRIVE),
        ("BIT_LOWER", LIMIT_LOWER),
        ("BIT_UPPER", LIMIT_UPPER),
        ("BIT_FRICTION", DRY_FRICTION),
        ("BIT_SPEED", SPEED_LIMIT),
        ("NEAR_RIGID", NEAR_RIGID),
        ("LIMIT_RECOVERY_TIME", LIMIT_RECOVERY_TIME),
        ("INVERSE_MASS_MIN", INVERSE_MASS_MIN),
        ("EFFORT_UNLIMITED", EFFORT_UNLIMITED),
        ("SPEED_UNLIMITED", SPEED_UNLIMITED),
    ):
        text = text.replace(name, repr(value))

    @wp.func_native(lane_code(real, text))
    def set_terms_in_lanes(
        world: int,
        topology: wp.ref[Topology],
        inputs: wp.ref[JointTermInputs],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        contact_sigma: real,
        approach_damping: int,
        dt64: wp.float64,
    ): ...

    return SimpleNamespace(set_terms_in_lanes=set_terms_in_lanes)
