"""Direction of an iteration from the exact impulses of few contacts.

Reads   contact and joint terms at the velocity v of the iteration, their curvature
Writes  hessian_row (factors), direction, contact_slope; impulses of contacts to `space_impulse`

Newton's method linearizes the cost of joints and contacts. Here only joints are: with H = A + diag(h), the
objective about v is the quadratic of a robot without contacts, plus the cost of the contacts. The minimum of
the quadratic is where H (v' - v*) = g + h (v - v*), with the impulses g of joints at v and their velocities
v* of free motion. That of the whole is found in the space of impulses p of the contacts alone,

    u(p) = u0 + W p,   W = J H^-1 J^T,   p = gamma(u(p)),

where u0 are the contact velocities at the minimum without contacts and gamma is the projection of `cone`.
That is again a Newton iteration with a line search, but one of it takes a small dense system
(`math.contact_mobility`) where the other takes sweeps over the tree and a factorization. The step from v
to this minimum is a direction of descent of the objective, since what is minimized is convex and has its
gradient at v. Where joints stay in the same piece of their costs it leads to the solution at once.

The search begins without impulses. At u0 contacts that will carry are pressed together much faster than
their regularization resolves, so that they are told from those that will not. At v, where contacts rest,
the positions' rounding in single precision decides which of them stick, slip or are open.

Collision lists what could touch within a step, of which little does: a G1 that lies on the ground may have
thirty contacts of which few carry force. With Coulomb's law those are solved that approach at v, then with
them those that would at the minimum that was found without them, until there are none. Only what acts takes
part and decides whether there is room, so that a world does not notice what else is near. Contacts that close
soon in free motion are solved with the first ones: an arm and a cube at rest took two solves in every step,
since half of their contacts had opened by micrometers. Where these are too many together, none are solved:
a hand with random targets found the impulses of 14 of its 25 contacts for nothing in four steps of ten.

Constraints are eliminated from W first (`constraint_rows`).

With convex friction it pays for few contacts, with no more components than there are degrees of freedom:
what it costs grows with their number cubed.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.body_contacts import body_contact_functions
from pluriverse.math.contact_mobility import contact_mobility_functions
from pluriverse.math.dense import packed_rows
from pluriverse.math.number_rows import number_functions
from pluriverse.math.precision import vec3_type
from pluriverse.math.stage_inlining import stages_inline
from pluriverse.model import Topology
from pluriverse.solvers.sap.active_trees import active_dofs_function
from pluriverse.solvers.sap.cone import cone_functions
from pluriverse.solvers.sap.constraint_rows import constraint_row_functions
from pluriverse.solvers.sap.contact_list import contact_list_functions
from pluriverse.solvers.sap.coulomb import coulomb_functions
from pluriverse.solvers.sap.friction_bound import friction_bound_functions
from pluriverse.solvers.sap.joint_settling import SETTLING_SOLVES_MAX, joint_settling_functions
from pluriverse.solvers.sap.tree_factors import tree_factor_functions
from pluriverse.solvers.sap.workspace import SPACE_CONTACTS_MAX, SPACE_HELD_CONTACTS_MAX, sap_struct
from pluriverse.solvers.sap.world_motion import world_motion_functions

CONTACTS_MAX = wp.constant(SPACE_CONTACTS_MAX)
HELD_CONTACTS_MAX = wp.constant(SPACE_HELD_CONTACTS_MAX)
# Iterations and trials of a line search, after which the world is left to Newton's method with all joints.
ITERATIONS_MAX = wp.constant(30)
TRIALS_MAX = wp.constant(20)
# Impulses may differ from the answer to their velocities by so much of their norm: a hundredth of the default
# `optimality_rel_tol` in double precision.
TOLERANCE_DOUBLE, TOLERANCE_SINGLE = 1e-8, 1e-5
# Rounding of a slope, of the product of its impulses and velocities: a contact's stiffness amplifies that of
# its velocity by some thousands. Among slopes below it the full step is as good as any.
ROUNDING_DOUBLE, ROUNDING_SINGLE = 1e-12, 1e-4
# A step is long enough where the slope has fallen to this fraction.
SLOPE_FRACTION = wp.constant(0.3)
# Times that Coulomb's law is searched from convex friction, with bounds that are held from the second time
# on, where it is not found at once. More than twelve contacts are worth it where there are constraints,
# as in a gripper. With sixteen, a hand with random targets approximated friction in 405 in place of 599 of
# 3,840 steps, but took 1.2 times as long.
ROUNDS_MAX = wp.constant(20)
# Contacts that close after this share of what free motion changes in the velocity are solved with those
# that are closed, as long as all fit in a vector. With a tenth in place of a fifth, robots with random
# targets take 1 to 13 % more solves; from three tenths on, a gripped cube takes 1.4 times the iterations
# over all joints.
FALLING_SHARE = wp.constant(0.2)
FALLING_CONTACTS_MAX = wp.constant(8)


@made_once
def contact_space_functions(
    real: Any, linear: Any, dynamics_real: Any, equality: bool = False
) -> SimpleNamespace:
    """Return `find_direction` for contacts without moments, with or without constraints."""
    vec3 = vec3_type(real)
    DynamicsData, SapData = workspace_struct(dynamics_real), sap_struct(real, linear)
    cone = cone_functions(real)
    unprojected, project, stiffness = cone.unprojected, cone.project, cone.stiffness
    trees = tree_factor_functions(real, linear, dynamics_real)
    factorize_joints = trees.factorize_joints
    solve_tree_up, solve_tree_down = trees.solve_tree_up, trees.solve_tree_down
    settling = joint_settling_functions(real, linear, dynamics_real, equality)
    begin_settling, settle_tree = settling.begin_settling, settling.settle_tree
    settle_joints = settling.settle_joints
    numbers_clear = packed_rows(real).numbers_clear
    numbers = number_functions(real)
    numbers_add, numbers_linear = numbers.numbers_add, numbers.numbers_linear
    numbers_subtract = numbers.numbers_subtract
    active_dofs = active_dofs_function(real, linear)
    mobility = contact_mobility_functions(linear, real)
    contact_mobility, spread_impulse = mobility.contact_mobility, mobility.spread_impulse
    add_velocities = mobility.add_velocities
    add_point_columns = body_contact_functions(linear, real, dynamics_real).add_point_columns
    add_impulses, contact_step = mobility.add_impulses, mobility.contact_step
    constraints = constraint_row_functions(real, linear, dynamics_real)
    count_rows, list_rows = constraints.count_rows, constraints.list_rows
    measure_rows, work_of_rows = constraints.measure_rows, constraints.work_of_rows
    eliminate_rows, restore_rows = constraints.eliminate_rows, constraints.restore_rows
    approach_bounds = friction_bound_functions(real, linear).approach_bounds
    find_coulomb_impulses = coulomb_functions(real, linear).find_coulomb_impulses
    contact_list = contact_list_functions(real, linear)
    list_carrying, has_room = contact_list.list_carrying, contact_list.has_room
    tolerance = real(TOLERANCE_DOUBLE if real is wp.float64 else TOLERANCE_SINGLE)
    measure_slopes = world_motion_functions(real, linear, dynamics_real).measure_slopes
    rounding = real(ROUNDING_DOUBLE if real is wp.float64 else ROUNDING_SINGLE)

    @wp.func(inline=True)
    def answer(sap: wp.ref[SapData], slot: int, velocity: vec3) -> vec3:
        """Return the impulse of a contact at a velocity."""
        rt = sap.contact_rt[slot]
        rn = sap.contact_rn[slot]
        y = unprojected(velocity, sap.contact_bias[slot], rt, rn)
        bound = sap.contact_bound[slot]
        return project(y, sap.contact_mu[slot], bound, rt, rn, sap.contact_soft[slot])

    @wp.func(inline=True)
    def slope_at(sap: wp.ref[SapData], region: int, count: int, alpha: real) -> real:
        """Return the slope of the cost at step `alpha` of the present iteration."""
        slope = real(0.0)
        for c in range(region, region + count):
            rate = sap.space_velocity_step[c]
            impulse = sap.space_impulse[c] + alpha * sap.space_impulse_step[c]
            gamma = answer(sap, sap.space_slot[c], sap.space_velocity[c] + alpha * rate)
            slope += wp.dot(impulse - gamma, rate)
        return slope

    @wp.func(inline=True)
    def find_impulses(sap: wp.ref[SapData], region: int, count: int, w: int, work: int) -> int:
        """Write the impulses for `space_velocity` to `space_impulse`; return 1 on success."""
        found = int(0)
        searching = int(1)
        iteration = int(0)
        while searching != 0:
            error, norm = real(0.0), real(0.0)
            for c in range(region, region + count):
                slot = sap.space_slot[c]
                bound = sap.contact_bound[slot]
                rt = sap.contact_rt[slot]
                rn = sap.contact_rn[slot]
                mu = sap.contact_mu[slot]
                soft = sap.contact_soft[slot]
                y = unprojected(sap.space_velocity[c], sap.contact_bias[slot], rt, rn)
                gamma = project(y, mu, bound, rt, rn, soft)
                residual = gamma - sap.space_impulse[c]
                error += wp.dot(residual, residual)
                norm += wp.dot(gamma, gamma)
                sap.space_residual[c] = residual
                sap.space_stiffness[c] = stiffness(y, mu, bound, rt, rn, soft)
            if error <= tolerance * tolerance * norm:
                found = 1
                searching = 0
            elif iteration >= ITERATIONS_MAX or not error < real(wp.inf):
                searching = 0
            else:
                iteration += 1
                contact_step(
                    sap.space_mobility,
                    w,
                    3 * count,
                    sap.space_stiffness,
                    sap.space_residual,
                    False,
                    region,
                    sap.space_work,
                    work,
                    sap.space_impulse_step,
                    sap.space_velocity_step,
                )
                start, speed = real(0.0), real(0.0)
                for c in range(region, region + count):
                    rate = sap.space_velocity_step[c]
                    start -= wp.dot(sap.space_residual[c], rate)
                    speed += wp.dot(rate, rate)
                if not start < real(0.0):
                    searching = 0
                enough = rounding * wp.sqrt(norm * speed) - real(SLOPE_FRACTION) * start
                low, high, alpha = real(0.0), real(1.0), real(1.0)
                slope_low, slope_high = real(start), real(0.0)
                trial = int(0)
                while searching != 0 and trial < TRIALS_MAX:
                    slope = slope_at(sap, region, count, alpha)
                    if slope <= enough and (slope >= -enough or trial == 0):
                        trial = TRIALS_MAX
                    else:
                        # The secant of a bracket, and its middle where an end has stayed for long.
                        if slope > real(0.0):
                            high = alpha
                            slope_high = slope
                        else:
                            low = alpha
                            slope_low = slope
                        alpha = low - slope_low * (high - low) / (slope_high - slope_low)
                        if trial % 3 == 2:
                            alpha = real(0.5) * (low + high)
                        trial += 1
                for c in range(region, region + count):
                    sap.space_impulse[c] = sap.space_impulse[c] + alpha * sap.space_impulse_step[c]
                    sap.space_velocity[c] = sap.space_velocity[c] + alpha * sap.space_velocity_step[c]
        return found

    @wp.func(inline=stages_inline())
    def solve_contacts(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        region: int,
        dof_capacity: int,
        contact_capacity: int,
        work_size: int,
        count: int,
        known: int,
        optimality: real,
        friction_follows: int,
    ) -> int:
        """Find the impulses of the `count` listed contacts and add their effect to `direction`, L^-T g.

        `direction_momentum` holds v* - v. The first `known` contacts have impulses that were found without
        the others. Writes their part of 1/2 (v' - v*)^T A (v' - v*) to `cost`. Return 1 on success.
        """
        first = topology.template_dof[topology.world_template[world]]
        first_dof, end_dof = sap.part_dof[world], sap.part_dof_end[world]
        dof_count = end_dof - first_dof
        dof0 = topology.world_dof[world]
        contact0 = region * contact_capacity
        padded = (3 * contact_capacity + 7) / 8 * 8
        basis = region * dof_capacity * padded
        mobility0 = region * 3 * contact_capacity * padded
        work = region * work_size
        row_count = int(0)
        if wp.static(equality):
            row_count = count_rows(sap, world)
        m = 3 * count + row_count
        stride = (m + 7) / 8 * 8
        numbers_clear(sap.space_basis, basis, dof_count * stride)
        rows = basis - first_dof * stride  # where that of the first degree of freedom of the world would be
        for c in range(count):
            slot = sap.space_slot[contact0 + c]
            sap.space_velocity[contact0 + c] = sap.contact_velocity[slot]
            if c >= known:
                sap.space_impulse[contact0 + c] = vec3()
            entry = rows + 3 * c
            for side in range(2):
                last = wp.where(side == 0, sap.contact_dof0[slot], sap.contact_dof1[slot])
                arm = wp.where(side == 0, sap.contact_arm0[slot], sap.contact_arm1[slot])
                sign = real(2 * side - 1)
                add_point_columns(
                    dynamics.dof_motion,
                    dof0,
                    topology.dof_parent,
                    first,
                    last,
                    sap.contact_frame[slot],
                    arm,
                    sign,
                    sap.space_basis,
                    entry,
                    stride,
                )
        if wp.static(equality):
            list_rows(topology, dynamics, sap, world, contact0, count, rows, stride)
        add_velocities(
            sap.space_basis,
            basis,
            dof_count,
            m,
            sap.direction_momentum,
            dof0 + first_dof,
            sap.space_velocity,
            contact0,
        )
        for c in range(contact0, contact0 + count):
            slot = sap.space_slot[c]
            sap.contact_slope[slot] = sap.space_velocity[c] - sap.contact_velocity[slot]
        if wp.static(equality):
            measure_rows(sap, world, contact0, count)
        contact_mobility(
            sap.hessian_row,
            topology.world_row[world],
            topology.dof_parent,
            topology.dof_depth,
            topology.dof_row,
            first,
            first_dof,
            end_dof,
            sap.space_basis,
            rows,
            m,
            sap.direction,
            dof0,
            sap.space_mobility,
            mobility0,
            sap.space_velocity,
            contact0,
        )
        if wp.static(equality):
            if row_count > 0:
                if eliminate_rows(sap, contact0, count, row_count, mobility0) == 0:
                    return 0
        for c in range(contact0, contact0 + count):
            sap.space_free[c] = sap.space_velocity[c]
        if known > 0:
            add_impulses(
                sap.space_mobility, mobility0, 3 * count, sap.space_impulse, contact0, sap.space_velocity
            )
        rounds_max = wp.where(count > HELD_CONTACTS_MAX and row_count == 0, 0, ROUNDS_MAX)
        searching = int(1)
        round = int(0)
        relaxation = real(0.0)
        while searching != 0:
            if friction_follows == 0 or round > 0:
                if find_impulses(sap, contact0, count, mobility0, work) == 0:
                    return 0
            if friction_follows == 0:
                searching = 0
            else:
                if round > 0:
                    for c in range(contact0, contact0 + count):
                        slot = sap.space_slot[c]
                        sap.contact_impulse[slot] = sap.space_impulse[c]
                    relaxation = approach_bounds(sap, world, relaxation)
                    if round == 1:
                        relaxation = real(0.0)
                is_start = int(round == 0 and known == 0)
                searching = 1 - find_coulomb_impulses(
                    sap, contact0, count, mobility0, work, optimality, is_start, int(round > 0)
                )
                round += 1
                for c in range(contact0, contact0 + count):
                    slot = sap.space_slot[c]
                    if searching == 0:
                        sap.contact_bound[slot] = sap.space_impulse[c][2]
                    else:
                        sap.space_velocity[c] = sap.space_free[c]
                        if round == 1:
                            sap.contact_bound[slot] = real(-1.0)
                            sap.space_impulse[c] = vec3()
                        else:  # the solution for bounds that were little else
                            sap.space_impulse[c] = sap.contact_impulse[slot]
                if searching != 0 and round > 1:
                    add_impulses(
                        sap.space_mobility,
                        mobility0,
                        3 * count,
                        sap.space_impulse,
                        contact0,
                        sap.space_velocity,
                    )
                if searching != 0 and round > rounds_max:
                    return 0
        if wp.static(equality):
            if row_count > 0:
                restore_rows(sap, contact0, count, row_count, mobility0)
        spread_impulse(
            sap.space_basis,
            basis,
            dof_count,
            m,
            sap.space_impulse,
            contact0,
            sap.direction,
            dof0 + first_dof,
        )
        energy = real(0.0)
        for c in range(contact0, contact0 + count):
            slot = sap.space_slot[c]
            gained = sap.space_velocity[c] - sap.contact_velocity[slot] - sap.contact_slope[slot]
            energy += wp.dot(sap.space_impulse[c], gained)
        if wp.static(equality):
            energy += work_of_rows(sap, world, contact0, count)
            measure_rows(sap, world, contact0, count)
        sap.cost[world] = real(0.5) * energy
        return 1

    @wp.func(inline=True)
    def find_direction(
        topology: wp.ref[Topology],
        dynamics: wp.ref[DynamicsData],
        sap: wp.ref[SapData],
        world: int,
        region: int,  # scratch
        dof_capacity: int,  # of a region
        contact_capacity: int,
        work_size: int,
        diag_shift: real,
        optimality: real,  # tolerance of the gradient [relative]
        friction_follows: int,  # 1: Coulomb's law, 0: convex friction
        is_first: int,  # 1: `velocity` is that before the step
        resumes: int,  # 1: `contact_impulse` holds what contacts had at the end of a whole step to `velocity`
        may_settle: int,  # 1: a whole step is made, with pieces of joints that its start need not have
        dt: real,  # s
    ) -> int:
        """Write the direction and its contact velocities; return 1 on success, 2 if joints were settled.

        Writes the part of contacts of 1/2 (v' - v*)^T A (v' - v*) at its end to `cost`, too. Where it did not
        with Coulomb's law, bounds of friction may have changed.
        """
        dof_count = sap.part_dof_end[world] - sap.part_dof[world]
        if dof_count > dof_capacity:
            return 0  # before anything is written: where no world is small enough there is no scratch
        dof0 = topology.world_dof[world] + sap.part_dof[world]
        first_part, end_part = sap.part_tree[world], sap.part_tree_end[world]
        start = sap.contact_start[world]
        contact0 = region * contact_capacity
        total = int(0)
        for slot in range(start, start + sap.contact_count[world]):
            if sap.contact_rn[slot] > real(0.0):
                total += 1
        solved = int(0)
        row_count = int(0)
        if wp.static(equality):
            row_count = count_rows(sap, world)
        count = list_carrying(sap, world, contact0, contact_capacity, 0, friction_follows, real(0.0), resumes)
        if friction_follows != 0 and count > FALLING_CONTACTS_MAX:
            if has_room(sap, world, contact0, count, contact_capacity) == 0:
                return 0  # nor with those that close soon
        if is_first != 0 and friction_follows != 0 and count < total and count <= contact_capacity:
            # What lies still may be just off what carries it: such a contact closes as soon as all fall.
            numbers_subtract(sap.velocity_free, sap.velocity, dof0, dof_count, sap.direction_momentum)
            measure_slopes(topology, dynamics, sap, world, sap.direction_momentum)
            falling = list_carrying(
                sap, world, contact0, contact_capacity, count, friction_follows, real(FALLING_SHARE), 0
            )
            if falling > CONTACTS_MAX:
                # Those of the list would be solved first, only to find that the others close with them.
                return 0
            if falling <= wp.min(FALLING_CONTACTS_MAX, contact_capacity):
                if has_room(sap, world, contact0, falling, contact_capacity) != 0:
                    count = falling
        listed, known, settles, solves = int(-1), int(0), int(0), int(0)
        if resumes != 0:
            known = count
            for c in range(contact0, contact0 + wp.min(count, contact_capacity)):
                sap.space_impulse[c] = sap.contact_impulse[sap.space_slot[c]]
        searching = int(1)
        while searching != 0:
            if friction_follows != 0:
                if has_room(sap, world, contact0, count, contact_capacity) == 0:
                    return 0
            elif count > wp.min(contact_capacity, HELD_CONTACTS_MAX) or 3 * count > dof_count:
                # The dense system has to be smaller than that of the joints: a Go1 that lies on twelve
                # contacts would take 38 µs here, and 9 with sweeps.
                return 0
            if listed < 0:
                if factorize_joints(topology, dynamics, sap, world, diag_shift) == 0:
                    return 0
                if may_settle != 0:
                    settles = begin_settling(topology, sap, world, contact0, count, dt)
            numbers_clear(sap.direction, dof0, dof_count)
            numbers_subtract(sap.velocity_free, sap.velocity, dof0, dof_count, sap.direction_momentum)
            for tree in range(first_part, end_part):
                begin, size = active_dofs(topology, sap, world, tree)
                if size > 0:
                    numbers_linear(
                        sap.dof_impulse,
                        sap.dof_curvature,
                        diag_shift,
                        sap.direction_momentum,
                        begin,
                        size,
                        sap.direction,
                    )
                    solve_tree_up(topology, sap, world, tree)
                    if listed < 0 and settles != 0:
                        is_definite = settle_tree(
                            topology, dynamics, sap, world, tree, contact0, count, diag_shift, dt
                        )
                        if is_definite == 0:
                            return 0
            solved = int(1)
            sap.cost[world] = real(0.0)
            if count + row_count > 0:
                solved = solve_contacts(
                    topology,
                    dynamics,
                    sap,
                    world,
                    region,
                    dof_capacity,
                    contact_capacity,
                    work_size,
                    count,
                    known,
                    optimality,
                    friction_follows,
                )
            if solved == 0:
                return 0
            for tree in range(first_part, end_part):
                begin, size = active_dofs(topology, sap, world, tree)
                if size > 0:
                    solve_tree_down(topology, sap, world, tree)
                    numbers_add(sap.direction_momentum, begin, size, real(1.0), sap.direction)
            listed = count
            known = count
            solves += 1
            if count < total:
                # Contacts that were left out may close.
                measure_slopes(topology, dynamics, sap, world, sap.direction)
                count = list_carrying(
                    sap, world, contact0, contact_capacity, count, friction_follows, real(1.0), 0
                )
            searching = int(listed < count)
            if searching == 0 and settles != 0 and solves < SETTLING_SOLVES_MAX:
                if settle_joints(topology, sap, world, dt) != 0:
                    if factorize_joints(topology, dynamics, sap, world, diag_shift) == 0:
                        return 0
                    searching = 1
        for slot in range(start, start + sap.contact_count[world]):
            if sap.contact_rn[slot] <= real(0.0):
                sap.contact_slope[slot] = vec3()
        for c in range(contact0, contact0 + count):
            slot = sap.space_slot[c]
            sap.contact_slope[slot] = sap.space_velocity[c] - sap.contact_velocity[slot]
        return 1 + settles

    return SimpleNamespace(find_direction=find_direction)
