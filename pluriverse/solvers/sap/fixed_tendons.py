"""Fixed tendons of the namespace `mujoco`, and the actuators on them, as springs of `SolverSAP`.

Reads   tendons and actuators of the model, `control.mujoco.ctrl`, joint_q and joint_qd of the old state
Writes  the numbers of a `TendonTable`: a spring for each tendon that acts by itself, and for each actuator

The length of such a tendon is L = sum c_i q_i, and each of its joints feels c_i times its force. With the
excess x of the length over its rest and the rate s = dL/dt, the tendon pulls by (k_0 + k_1 x + k_2 x^2) x
and (d_0 + d_1 |s| + d_2 s^2) s. An actuator of gear r exerts r (a ctrl + b_0 + b_1 r L + b_2 r s), a linear
spring unless b_1 or b_2 push away. Where that exceeds its limits at the start of a step, or all actuators of
a tendon together exceed that of the tendon, they exert the limit throughout.
"""

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.math.bounds import bounded
from pluriverse.model import Control, Model, State
from pluriverse.model.attributes import find_attribute
from pluriverse.mujoco_attributes.choices import BIAS_NONE, NO_LENGTH
from pluriverse.mujoco_attributes.registration import AUTO, VEC6, VEC10
from pluriverse.solvers.sap.tendon_rows import (
    acting_rows,
    check_rows,
    host_column,
    joint_rows,
    world_of_dofs,
)
from pluriverse.solvers.springs import TENDON_NUMBERS, TendonTable

# Stiffness of limits [N/m]: steps soften it to what they resolve.
LIMIT_STIFFNESS = wp.constant(1e8)
_AUTO, _NONE, _NO_LENGTH = wp.constant(AUTO), wp.constant(BIAS_NONE), wp.constant(NO_LENGTH)


@wp.struct
class TendonSource:
    """Rows of springs by world, and the arrays of the model that say how they act."""

    row_start: wp.array[int]  # [world + 1]
    tendon: wp.array[int]  # [row]
    actuator: wp.array[int]  # [row] -1: the tendon by itself
    stiffness: wp.array[float]  # [tendon] N/m
    stiffnesspoly: wp.array[wp.vec2]  # [tendon] N/m^2, N/m^3
    damping: wp.array[float]  # [tendon] N s/m
    dampingpoly: wp.array[wp.vec2]  # [tendon] N s^2/m^2, N s^3/m^3
    springlength: wp.array[wp.vec2]  # [tendon] m
    limited: wp.array[int]  # [tendon]
    range: wp.array[wp.vec2]  # [tendon] m
    margin: wp.array[float]  # [tendon] m
    actuator_force_limited: wp.array[int]  # [tendon]
    actuator_force_range: wp.array[wp.vec2]  # [tendon] N
    gear: wp.array(dtype=VEC6)  # [actuator]
    gainprm: wp.array(dtype=VEC10)  # [actuator]
    biasprm: wp.array(dtype=VEC10)  # [actuator]
    biastype: wp.array[int]  # [actuator]
    ctrllimited: wp.array[int]  # [actuator]
    ctrlrange: wp.array[wp.vec2]  # [actuator]
    forcelimited: wp.array[int]  # [actuator]
    forcerange: wp.array[wp.vec2]  # [actuator] N


@wp.func
def has_bounds(limited: int, bounds: wp.vec2) -> bool:
    """Return whether bounds act."""
    return limited == 1 or (limited == _AUTO and bounds[0] < bounds[1])


@wp.func
def within(value: float, limited: int, bounds: wp.vec2) -> float:
    """Return a value within its bounds, if it has any."""
    if has_bounds(limited, bounds):
        return bounded(value, bounds[0], bounds[1])
    return value


@wp.func
def actuator_terms(source: TendonSource, ctrl: wp.array[float], actuator: int) -> wp.vec3:
    """Return the force of an actuator before its gear: constant, per length and per speed of its tendon."""
    given = within(ctrl[actuator], source.ctrllimited[actuator], source.ctrlrange[actuator])
    constant = source.gainprm[actuator][0] * given
    by_length, by_speed = float(0.0), float(0.0)
    if source.biastype[actuator] != _NONE:
        bias = source.biasprm[actuator]
        constant += bias[0]
        by_length, by_speed = bias[1] * source.gear[actuator][0], bias[2] * source.gear[actuator][0]
    return wp.vec3(constant, by_length, by_speed)


@wp.func
def exerted_force(source: TendonSource, terms: wp.vec3, actuator: int, length: float, speed: float) -> float:
    """Return the force of an actuator before its gear, within its limits [N]."""
    now = terms[0] + terms[1] * length + terms[2] * speed
    return within(now, source.forcelimited[actuator], source.forcerange[actuator])


@wp.func
def shared_force(
    source: TendonSource,
    ctrl: wp.array[float],
    exerted: float,
    tendon: int,
    rows: wp.vec2i,
    length: float,
    speed: float,
) -> float:
    """Return what remains of a force where the actuators of a tendon exceed its limit: all shrink alike."""
    total = float(0.0)
    for row in range(rows[0], rows[1]):
        actuator = source.actuator[row]
        if source.tendon[row] == tendon and actuator >= 0:
            total += exerted_force(source, actuator_terms(source, ctrl, actuator), actuator, length, speed)
    allowed = within(total, source.actuator_force_limited[tendon], source.actuator_force_range[tendon])
    if allowed == total or total == 0.0:
        return exerted
    return exerted * (allowed / total)


@wp.kernel(enable_backward=False, module="pluriverse.solvers.sap.fixed_tendons")
def set_tendon_springs(
    worlds: wp.array[int],
    source: TendonSource,
    ctrl: wp.array[float],  # [actuator]
    joint_q: wp.array[float],  # [coord]
    joint_qd: wp.array[float],  # [dof]
    table: TendonTable,
):
    """Write the springs of the tendons of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    for row in range(source.row_start[world], source.row_start[world + 1]):
        length, speed = float(0.0), float(0.0)
        for entry in range(table.entry_start[row], table.entry_start[row + 1]):
            length += table.coefficient[entry] * joint_q[table.entry_coord[entry]]
            speed += table.coefficient[entry] * joint_qd[table.first_dof[row] + table.entry_dof[entry]]
        stiffness, damping, rest, force = float(0.0), float(0.0), float(0.0), float(0.0)
        actuator, tendon = source.actuator[row], source.tendon[row]
        if actuator < 0:
            rate, drag = wp.abs(speed), source.dampingpoly[tendon]
            damping = source.damping[tendon] + rate * (drag[0] + rate * drag[1])
            slack = source.springlength[tendon]
            if slack[1] == _NO_LENGTH:
                slack = wp.vec2(slack[0], slack[0])
            if slack[0] == _NO_LENGTH and slack[1] == _NO_LENGTH:  # where all coordinates are 0
                slack = wp.vec2()
            if length < slack[0] or length > slack[1]:
                rest = wp.clamp(length, slack[0], slack[1])
                excess, further = length - rest, source.stiffnesspoly[tendon]
                secant = source.stiffness[tendon] + excess * (further[0] + excess * further[1])
                # The tangent, unless it pushes away: the rest acts as it is now.
                tangent = source.stiffness[tendon] + excess * (2.0 * further[0] + 3.0 * excess * further[1])
                stiffness = wp.max(tangent, 0.0)
                force = (stiffness - secant) * excess
            bounds, margin = source.range[tendon], source.margin[tendon]
            is_limited = has_bounds(source.limited[tendon], bounds)
            # A limit pushes from its margin on; wide margins balance in the middle.
            middle = 0.5 * (bounds[0] + bounds[1])
            table.lower[row] = wp.where(is_limited, wp.min(bounds[0] + margin, middle), -wp.inf)
            table.upper[row] = wp.where(is_limited, wp.max(bounds[1] - margin, middle), wp.inf)
            table.limit_stiffness[row] = wp.where(is_limited, LIMIT_STIFFNESS, 0.0)
        else:
            gear = source.gear[actuator][0]
            terms = actuator_terms(source, ctrl, actuator)
            constant, by_length, by_speed = terms[0], terms[1], terms[2]
            now = constant + by_length * length + by_speed * speed
            exerted = exerted_force(source, terms, actuator, length, speed)
            if has_bounds(source.actuator_force_limited[tendon], source.actuator_force_range[tendon]):
                rows = wp.vec2i(source.row_start[world], source.row_start[world + 1])
                exerted = shared_force(source, ctrl, exerted, tendon, rows, length, speed)
            if exerted != now:
                constant, by_length, by_speed = exerted, float(0.0), float(0.0)
            # What pushes away is no spring: it acts as it is now.
            constant += wp.max(by_length, 0.0) * length + wp.max(by_speed, 0.0) * speed
            stiffness = -gear * wp.min(by_length, 0.0)
            damping = -gear * wp.min(by_speed, 0.0)
            force = gear * constant
        table.stiffness[row] = stiffness
        table.damping[row] = damping
        table.rest[row] = rest
        table.force[row] = force


class FixedTendons:
    """The fixed tendons of a model that act when it is made, and the actuators on them.

    Args:
        model: The model.

    Raises:
        ValueError: If the rows of a tendon or an actuator name no joints or tendons of one world.
    """

    def __init__(self, model: Model):
        self._model = model
        check_rows(model)
        tendon, actuator = acting_rows(model)
        self.count = len(tendon)
        """Number of springs."""
        if not self.count:
            return
        start, entries = joint_rows(model, tendon)
        joint, dof = host_column(model, "joint")[entries], host_column(model, "joint_dof")[entries]
        first = model.joint_qd_start.numpy()[joint]
        dof = np.where(dof >= 0, dof, first)
        coord = model.joint_q_start.numpy()[joint] + dof - first
        base = np.minimum.reduceat(dof, start[:-1])
        world = world_of_dofs(model, base)
        device = model.device

        def integers(values: np.ndarray) -> wp.array:
            return wp.array(np.asarray(values, dtype=np.int32), device=device)

        table = self.table = TendonTable()
        """The springs, as `set_springs` takes them."""
        table.articulation, table.first_dof = integers(np.zeros(self.count)), integers(base)
        table.dof_count = integers(np.maximum.reduceat(dof, start[:-1]) - base + 1)
        table.tendon_start = integers(np.arange(self.count + 1))
        table.entry_start, table.entry_coord = integers(start), integers(coord)
        table.entry_dof = integers(dof - np.repeat(base, np.diff(start)))
        table.coefficient = wp.array(host_column(model, "coef")[entries].astype(np.float32), device=device)
        for name in TENDON_NUMBERS:
            setattr(table, name, wp.zeros(self.count, dtype=float, device=device))
        table.lower.fill_(-np.inf)
        table.upper.fill_(np.inf)
        source = self._source = TendonSource()
        source.row_start = integers(np.searchsorted(world, np.arange(model.world_count + 1)))
        source.tendon, source.actuator = integers(tendon), integers(actuator)
        for name in (
            *("stiffness", "stiffnesspoly", "damping", "dampingpoly", "springlength", "limited", "range"),
            *("margin", "actuator_force_limited", "actuator_force_range"),
        ):
            setattr(source, name, find_attribute(model, f"mujoco:tendon_{name}"))
        for name in ("gear", "gainprm", "biasprm", "biastype"):
            setattr(source, name, find_attribute(model, f"mujoco:actuator_{name}"))
        for name in ("ctrllimited", "ctrlrange", "forcelimited", "forcerange"):
            setattr(source, name, find_attribute(model, f"mujoco:actuator_{name}"))

    def set_springs(self, worlds: wp.array, state: State, control: Control) -> None:
        """Write the springs of `worlds` at a state, for what `control.mujoco.ctrl` asks. Only launches."""
        launch_kernel(
            set_tendon_springs,
            dim=worlds.size,
            inputs=[
                worlds,
                self._source,
                find_attribute(control, "mujoco:ctrl"),
                state.joint_q,
                state.joint_qd,
            ],
            outputs=[self.table],
            device=self._model.device,
        )
