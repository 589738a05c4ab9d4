"""From a model and a state to the dense problem of one world, with textbook rigid-body mechanics.

Every body gets its own Jacobian about its own centre of mass; the mass matrix is sum J^T diag(I, m) J and
the bias sum J^T (I alpha + w x I w, m a) with accelerations from differentiating the kinematics. No spatial
algebra, no recursion over composite bodies, no packed storage: nothing in common with the package.

Degrees of freedom are in the model's public order within the world, except that a free joint's six are
[omega, velocity of the body origin], as inside the solver.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.oracles.sap_dense import (
    BETA_JOINT,
    ContactLaw,
    DenseProblem,
    DriveLaw,
    EffortLaw,
    FrictionLaw,
    LimitLaw,
    SpeedLaw,
    contact_frame,
    near_rigid_regularization,
    weight_diag_delassus,
    weights_delassus,
)

PRISMATIC, REVOLUTE, BALL, FIXED, FREE, DISTANCE, D6 = range(7)
POSITION, VELOCITY, POSITION_VELOCITY, EFFORT = 1, 2, 3, 4


def rotation_matrix(quaternion: np.ndarray) -> np.ndarray:
    """Rotation of a quaternion xyzw of any length."""
    x, y, z, w = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def _axis_rotation(axis: np.ndarray, angle: float) -> np.ndarray:
    return rotation_matrix(
        np.array([*(np.sin(0.5 * angle) * axis / np.linalg.norm(axis)), np.cos(0.5 * angle)])
    )


@dataclass
class BodyMotion:
    """Pose, velocity, velocity-product acceleration and Jacobian of one body, world axes."""

    rotation: np.ndarray
    position: np.ndarray
    """Body origin [m]."""
    omega: np.ndarray
    velocity: np.ndarray
    """Velocity of the body origin [m/s]."""
    alpha: np.ndarray
    acceleration: np.ndarray
    """Accelerations at zero generalized acceleration, without gravity."""
    jacobian: np.ndarray
    """[omega; velocity of the body origin] by generalized velocity, shape [6, dof]."""

    def point_jacobian(self, point: np.ndarray) -> np.ndarray:
        """Velocity of the body's point at `point` (world) by generalized velocity, shape [3, dof]."""
        arm = point - self.position
        return self.jacobian[3:] + np.cross(self.jacobian[:3].T, arm).T


class DenseWorld:
    """Kinematics and dynamics of one world of `model` at `state`, in float64."""

    def __init__(self, model, state, control, world: int, dt: float):
        self.model, self.world, self.dt = model, world, dt
        self.bodies = self._entities("body")
        self.joints = self._entities("joint")
        self.dof_start, self.dof_count = self._dof_range()
        self.q = state.joint_q.numpy().astype(float)
        self.qd = state.joint_qd.numpy().astype(float)
        self.motion: dict[int, BodyMotion] = {-1: self._fixed_world()}
        self.v0 = np.zeros(self.dof_count)
        self._compute_body_poses()
        self._assemble(state, control)

    def _entities(self, kind: str) -> list[int]:
        worlds = getattr(self.model, f"{kind}_world").numpy()
        return [i for i, w in enumerate(worlds) if w == self.world or (w == -1 and self._is_implicit_world())]

    def _is_implicit_world(self) -> bool:
        """Whether no world was authored, so that everything is global and simulates as world 0."""
        return not np.any(self.model.joint_world.numpy() >= 0)

    def _dof_range(self) -> tuple[int, int]:
        start = self.model.joint_qd_start.numpy()
        first, last = self.joints[0], self.joints[-1]
        assert self.joints == list(range(first, last + 1))
        return int(start[first]), int(start[last + 1] - start[first])

    def _fixed_world(self) -> BodyMotion:
        zero = np.zeros(3)
        return BodyMotion(np.eye(3), zero, zero, zero, zero, zero, np.zeros((6, self.dof_count)))

    def _compute_body_poses(self) -> None:
        children = self.model.joint_child.numpy()
        parents = self.model.joint_parent.numpy()
        waiting = list(self.joints)
        while waiting:
            joint = next(j for j in waiting if parents[j] in self.motion)
            waiting.remove(joint)
            self.motion[int(children[joint])] = self._move(joint, self.motion[int(parents[joint])])

    def _move(self, joint: int, parent: BodyMotion) -> BodyMotion:
        """Motion of the child of `joint`."""
        model = self.model
        kind = int(model.joint_type.numpy()[joint])
        x_p = model.joint_X_p.numpy()[joint].astype(float)
        x_c = model.joint_X_c.numpy()[joint].astype(float)
        coord = int(model.joint_q_start.numpy()[joint])
        public = int(model.joint_qd_start.numpy()[joint])
        dof = public - self.dof_start
        frame = parent.rotation @ rotation_matrix(x_p[3:])
        anchor_arm = parent.rotation @ x_p[:3]
        anchor = parent.position + anchor_arm
        omega, alpha = parent.omega.copy(), parent.alpha.copy()
        # Motion of the joint's frame origin on the child.
        origin = anchor
        velocity = parent.velocity + np.cross(omega, anchor_arm)
        acceleration = parent.acceleration + np.cross(alpha, anchor_arm)
        acceleration += np.cross(omega, np.cross(omega, anchor_arm))
        joint_rotation = np.eye(3)
        angular, linear = np.zeros((3, self.dof_count)), np.zeros((3, self.dof_count))
        if kind == REVOLUTE:
            axis = self._axis(public)
            joint_rotation = _axis_rotation(axis, self.q[coord])
            rate = frame @ axis * self.qd[public]
            alpha = alpha + np.cross(omega, rate)
            omega = omega + rate
            angular[:, dof] = frame @ axis
            self.v0[dof] = self.qd[public]
        elif kind == PRISMATIC:
            axis = frame @ self._axis(public)
            arm, rate = axis * self.q[coord], axis * self.qd[public]
            origin = anchor + arm
            velocity = velocity + np.cross(omega, arm) + rate
            acceleration = acceleration + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
            acceleration += 2.0 * np.cross(omega, rate)
            linear[:, dof] = axis
            self.v0[dof] = self.qd[public]
        elif kind == BALL:
            joint_rotation = rotation_matrix(self.q[coord : coord + 4])
            rate = frame @ self.qd[public : public + 3]
            alpha = alpha + np.cross(omega, rate)
            omega = omega + rate
            angular[:, dof : dof + 3] = frame
            self.v0[dof : dof + 3] = self.qd[public : public + 3]
        elif kind == D6:
            slide_count, turn_count = model.joint_dof_dim.numpy()[joint]
            axes = [frame @ self._axis(public + place) for place in range(slide_count)]
            span = slice(dof, dof + slide_count)
            self.v0[dof : dof + slide_count + turn_count] = self.qd[public:][: slide_count + turn_count]
            linear[:, span] = np.reshape(axes, (slide_count, 3)).T
            arm = linear[:, span] @ self.q[coord : coord + slide_count]
            rate = linear[:, span] @ self.v0[span]
            origin = anchor + arm
            velocity = velocity + np.cross(omega, arm) + rate
            acceleration = acceleration + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
            acceleration += 2.0 * np.cross(omega, rate)
            # The turns one after the other, as if by massless links between hinges.
            for place in range(slide_count, slide_count + turn_count):
                axis = self._axis(public + place)
                angular[:, dof + place] = frame @ joint_rotation @ axis
                joint_rotation = joint_rotation @ _axis_rotation(axis, self.q[coord + place])
                rate = angular[:, dof + place] * self.qd[public + place]
                alpha = alpha + np.cross(omega, rate)
                omega = omega + rate
        elif kind in (FREE, DISTANCE):
            origin = anchor + frame @ self.q[coord : coord + 3]
            joint_rotation = rotation_matrix(self.q[coord + 3 : coord + 7])
        elif kind != FIXED:
            raise NotImplementedError(f"joint type {kind}")
        rotation = frame @ joint_rotation @ rotation_matrix(x_c[3:]).T
        arm = -rotation @ x_c[:3]
        if kind in (FREE, DISTANCE) and model.joint_parent.numpy()[joint] >= 0:
            return self._move_free(joint, parent, frame, rotation, origin + arm)
        if kind in (FREE, DISTANCE):
            com = rotation @ self._body("body_com", joint)
            omega = self.qd[public + 3 : public + 6]
            velocity = self.qd[public : public + 3] - np.cross(omega, com)
            self.v0[dof : dof + 6] = [*omega, *velocity]
            jacobian = np.zeros((6, self.dof_count))
            jacobian[:, dof : dof + 6] = np.eye(6)
            zero = np.zeros(3)
            return BodyMotion(rotation, origin + arm, omega, velocity, zero, zero, jacobian)
        velocity = velocity + np.cross(omega, arm)
        acceleration = acceleration + np.cross(alpha, arm) + np.cross(omega, np.cross(omega, arm))
        position = origin + arm
        # Parent's Jacobian carried to the new origin, plus the joint's own columns.
        linear += np.cross(angular.T, position - origin).T
        jacobian = np.vstack([parent.jacobian[:3] + angular, parent.point_jacobian(position) + linear])
        return BodyMotion(rotation, position, omega, velocity, alpha, acceleration, jacobian)

    def _move_free(
        self, joint: int, parent: BodyMotion, frame: np.ndarray, rotation: np.ndarray, position: np.ndarray
    ) -> BodyMotion:
        """Motion of a body that a free joint moves against its parent, by that of its centre of mass."""
        public = int(self.model.joint_qd_start.numpy()[joint])
        dof = public - self.dof_start
        shift, turn = slice(dof, dof + 3), slice(dof + 3, dof + 6)
        self.v0[dof : dof + 6] = self.qd[public : public + 6]
        com = rotation @ self._body("body_com", joint)
        arm = position + com - parent.position
        rate, spin = frame @ self.v0[shift], frame @ self.v0[turn]
        omega, alpha = parent.omega + spin, parent.alpha + np.cross(parent.omega, spin)
        # Of the centre of mass, seen from the parent that carries it, and then of the body's origin.
        velocity = parent.velocity + np.cross(parent.omega, arm) + rate - np.cross(omega, com)
        acceleration = parent.acceleration + np.cross(parent.alpha, arm)
        acceleration += np.cross(parent.omega, np.cross(parent.omega, arm)) + 2.0 * np.cross(
            parent.omega, rate
        )
        acceleration -= np.cross(alpha, com) + np.cross(omega, np.cross(omega, com))
        jacobian = np.vstack([parent.jacobian[:3], parent.point_jacobian(position)])
        jacobian[3:, shift] += frame
        jacobian[:3, turn] += frame
        jacobian[3:, turn] += np.cross(frame.T, -com).T
        return BodyMotion(rotation, position, omega, velocity, alpha, acceleration, jacobian)

    def _axis(self, public: int) -> np.ndarray:
        """Joint axis, of unit length also beyond single precision."""
        axis = self.model.joint_axis.numpy()[public].astype(float)
        return axis / np.linalg.norm(axis)

    def _body(self, name: str, joint: int) -> np.ndarray:
        return getattr(self.model, name).numpy()[self.model.joint_child.numpy()[joint]].astype(float)

    def _assemble(self, state, control) -> None:
        """Mass matrix, generalized force and velocity without constraints."""
        model, span = self.model, slice(self.dof_start, self.dof_start + self.dof_count)
        gravity = model.gravity.numpy()[self.world].astype(float)
        body_f = state.body_f.numpy().astype(float)
        mass_matrix = np.zeros((self.dof_count, self.dof_count))
        force = control.joint_f.numpy()[span].astype(float)
        for joint in self.joints:
            if model.joint_type.numpy()[joint] in (FREE, DISTANCE) and model.joint_parent.numpy()[joint] < 0:
                # Public (force, torque about com) to the dual of [omega, velocity of the origin].
                dof = int(model.joint_qd_start.numpy()[joint]) - self.dof_start
                body = int(model.joint_child.numpy()[joint])
                arm = self.motion[body].rotation @ self._body("body_com", joint)
                f, torque = force[dof : dof + 3].copy(), force[dof + 3 : dof + 6].copy()
                force[dof : dof + 6] = [*(torque + np.cross(arm, f)), *f]
        for body in self.bodies:
            motion = self.motion[body]
            mass = float(model.body_mass.numpy()[body])
            local = model.body_inertia.numpy()[body].astype(float)
            inertia = motion.rotation @ local @ motion.rotation.T
            arm = motion.rotation @ model.body_com.numpy()[body].astype(float)
            angular, linear = motion.jacobian[:3], motion.point_jacobian(motion.position + arm)
            acceleration = motion.acceleration + np.cross(motion.alpha, arm)
            acceleration = acceleration + np.cross(motion.omega, np.cross(motion.omega, arm))
            mass_matrix += angular.T @ inertia @ angular + mass * linear.T @ linear
            gyroscopic = inertia @ motion.alpha + np.cross(motion.omega, inertia @ motion.omega)
            force += linear.T @ (body_f[body, :3] + mass * (gravity - acceleration))
            force += angular.T @ (body_f[body, 3:] - gyroscopic)
        damping = model.joint_damping.numpy()[span].astype(float)
        armature = model.joint_armature.numpy()[span].astype(float)
        self.mass_matrix = mass_matrix
        self.a = mass_matrix + np.diag(armature + self.dt * damping)
        self.v_star = self.v0 + self.dt * np.linalg.solve(self.a, force - damping * self.v0)


def _body_inertia_weight(model, motion: dict[int, BodyMotion], body: int, point: np.ndarray, axes) -> float:
    """Sum over the contact axes of the free body's mobility at `point`, diagonal inertia only."""
    mass = float(model.body_mass.numpy()[body])
    inertia = np.diag(model.body_inertia.numpy()[body].astype(float))
    rotation, position = motion[body].rotation, motion[body].position
    arm = point - position - rotation @ model.body_com.numpy()[body].astype(float)
    total = 0.0
    for axis in axes.T:
        turn = rotation.T @ np.cross(arm, axis)
        total += 1.0 / mass + float(np.sum(turn**2 / inertia))
    return total


def _add_contacts(
    problem, dense: DenseWorld, contacts, *, weight_mode, point_mode, softening, **law_options
) -> None:
    model, world = dense.model, dense.world
    first = int(contacts.rigid_contact_start.numpy()[world])
    count = int(contacts.rigid_contact_count.numpy()[world])
    stiffness, tau = (
        model.shape_material_ke.numpy().astype(float),
        model.shape_material_tau.numpy().astype(float),
    )
    friction = model.shape_material_mu.numpy().astype(float)
    for slot in range(first, first + count):
        shapes = [int(getattr(contacts, f"rigid_contact_shape{side}").numpy()[slot]) for side in (0, 1)]
        bodies = [int(model.shape_body.numpy()[shape]) for shape in shapes]
        points = []
        for side, body in enumerate(bodies):
            local = getattr(contacts, f"rigid_contact_point{side}").numpy()[slot].astype(float)
            motion = dense.motion[body]
            points.append(motion.position + motion.rotation @ local)
        normal = contacts.rigid_contact_normal.numpy()[slot].astype(float)
        normal /= np.linalg.norm(normal)  # single precision is not quite of unit length
        margins = sum(
            float(getattr(contacts, f"rigid_contact_margin{side}").numpy()[slot]) for side in (0, 1)
        )
        phi0 = float(normal @ (points[1] - points[0])) - margins
        k0, k1 = stiffness[shapes]
        if point_mode == "contact_midpoint":
            points = [(k0 * points[0] + k1 * points[1]) / (k0 + k1)] * 2
        frame = contact_frame(normal)
        jacobian = frame.T @ (
            dense.motion[bodies[1]].point_jacobian(points[1])
            - dense.motion[bodies[0]].point_jacobian(points[0])
        )
        weight_t = None
        if weight_mode == "delassus":
            weight_t, weight = weights_delassus(jacobian, problem.a)
        elif weight_mode == "diag_delassus":
            weight = weight_diag_delassus(jacobian, np.diag(problem.a))
        else:
            # Bodies that nothing can move count as the world does: fixed ones, and kinematic ones.
            free = np.diag(problem.a) < 1e29
            weight = sum(
                _body_inertia_weight(model, dense.motion, body, point, frame) / 3.0
                for body, point in zip(bodies, points, strict=True)
                if body >= 0 and dense.motion[body].jacobian[:, free].any()
            )
        mu_sum = friction[shapes].sum()
        mu = 2.0 * friction[shapes].prod() / mu_sum if mu_sum > 1e-12 else 0.0
        law = ContactLaw(phi0, k0 * k1 / (k0 + k1), tau[shapes].sum(), mu, weight, dense.dt, **law_options)
        if weight_t is not None:
            law.weight_t = weight_t
            law.__post_init__()
        if softening is not None:
            law.softening = softening(law)
        problem.jacobians.append(jacobian)
        problem.contacts.append(law)


def _limit_gains(stiffness: float, damping: float, a_ii: float, dt: float) -> tuple[float, float]:
    """Stiffness and damping over stiffness of a joint limit, NaN standing for what nobody gave."""
    if np.isnan(stiffness):
        softest = near_rigid_regularization(BETA_JOINT, 1.0 / a_ii)
        return np.inf, 0.02 if np.isnan(damping) else damping * dt**2 * softest
    return stiffness, 2.0 * np.sqrt(a_ii / stiffness) if np.isnan(damping) else max(damping, 0.0) / stiffness


def _add_joint_terms(
    problem: DenseProblem, dense: DenseWorld, control, *, speed_limits: bool, damps_approach: bool
) -> None:
    model, dt = dense.model, dense.dt
    velocity_limit = model.joint_velocity_limit.numpy().astype(float)
    arrays = {
        name: getattr(model, f"joint_{name}").numpy().astype(float)
        for name in (
            "target_ke",
            "target_kd",
            "effort_limit",
            "limit_lower",
            "limit_upper",
            "limit_ke",
            "limit_kd",
        )
    }
    mode = model.joint_target_mode.numpy()
    bounds = model.joint_target_lower.numpy(), model.joint_target_upper.numpy()
    target_pos, target_vel = control.joint_target_pos.numpy(), control.joint_target_vel.numpy()
    target_pos = np.clip(target_pos, *bounds)
    target_vel = np.where(mode == VELOCITY, np.clip(target_vel, *bounds), target_vel)
    act, friction = control.joint_act.numpy(), model.joint_friction.numpy()
    for joint in dense.joints:
        kind = int(model.joint_type.numpy()[joint])
        scalar = kind in (PRISMATIC, REVOLUTE, D6)
        start, end = model.joint_qd_start.numpy()[joint : joint + 2]
        coord = model.joint_q_start.numpy()[joint]
        for public in range(int(start), int(end)):
            dof = public - dense.dof_start
            q0 = dense.q[coord + public - start] if scalar else 0.0
            a_ii = problem.a[dof, dof]
            data = {name: float(array[public]) for name, array in arrays.items()}
            ke = data["target_ke"] if scalar and mode[public] in (POSITION, POSITION_VELOCITY) else 0.0
            kd = data["target_kd"] if mode[public] in (POSITION, VELOCITY, POSITION_VELOCITY) else 0.0
            if ke > 0.0 or kd > 0.0:
                velocity = float(target_vel[public]) if mode[public] in (VELOCITY, POSITION_VELOCITY) else 0.0
                command = (float(target_pos[public]), velocity, float(act[public]))
                drive = DriveLaw(ke, kd, *command, data["effort_limit"], q0, a_ii, dt)
                problem.joint_terms.append((dof, drive))
            elif mode[public] != 0 and act[public] != 0.0:
                limit = data["effort_limit"]
                problem.joint_terms.append((dof, EffortLaw(float(np.clip(act[public], -limit, limit)), dt)))
            if scalar and not data["limit_ke"] <= 0.0:
                window = 2.0 * dt * max(abs(problem.v0[dof]), abs(problem.v_star[dof]))
                stiffness, tau = _limit_gains(data["limit_ke"], data["limit_kd"], a_ii, dt)
                for gap, sign in ((q0 - data["limit_lower"], 1.0), (data["limit_upper"] - q0, -1.0)):
                    if gap <= window:
                        law = LimitLaw(gap, sign, stiffness, tau, a_ii, dt, damps_approach)
                        problem.joint_terms.append((dof, law))
            if friction[public] > 0.0:
                problem.joint_terms.append((dof, FrictionLaw(float(friction[public]), a_ii, dt)))
            if speed_limits and scalar and velocity_limit[public] < 1e6:
                problem.joint_terms.append((dof, SpeedLaw(velocity_limit[public], a_ii)))


def dense_problem(
    model,
    state,
    control,
    contacts,
    dt: float,
    *,
    world: int = 0,
    weight_mode: str = "diag_delassus",
    point_mode: str = "contact_midpoint",
    softening=None,
    beta: float = 1.0,
    damps_approach: bool = True,
    prepare=None,
    speed_limits: bool = False,
) -> DenseProblem:
    """The convex problem of one world for a step of `dt` [s] from `state`.

    Args:
        model: Model, any number of worlds.
        state: State at the start of the step.
        control: Targets and feed-forward efforts.
        contacts: Contacts of `state`; only those of `world` are read. None for no contacts.
        dt: Time step [s].
        world: Which world.
        weight_mode: `delassus`, `diag_delassus` or `body_inertia`.
        point_mode: `contact_midpoint` or `witness_point`.
        softening: Function from a `ContactLaw` to the impulse [N·s] that rounds its tangential norm; None
            keeps 1e-7 N·s.
        beta: Near-rigid bound.
        damps_approach: Whether dissipation acts before surfaces touch.
        prepare: Called with the problem and its `DenseWorld` before terms are added.
        speed_limits: Whether `joint_velocity_limit` is enforced.
    """
    dense = DenseWorld(model, state, control, world, dt)
    problem = DenseProblem(a=dense.a.copy(), v_star=dense.v_star, v0=dense.v0)
    if prepare is not None:
        prepare(problem, dense)
    if contacts is not None:
        _add_contacts(
            problem,
            dense,
            contacts,
            weight_mode=weight_mode,
            point_mode=point_mode,
            softening=softening,
            beta=beta,
            damps_approach=damps_approach,
        )
    _add_joint_terms(problem, dense, control, speed_limits=speed_limits, damps_approach=damps_approach)
    return problem
