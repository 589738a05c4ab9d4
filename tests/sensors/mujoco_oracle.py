"""What MuJoCo's sensors read in a state of ours, with the accelerations and contact forces of ours."""

import mujoco
import numpy as np

import pluriverse as pv

FREE, BALL = 0, 1  # mujoco.mjtJoint


def turn(quat: np.ndarray) -> np.ndarray:
    """Return the matrix of a quaternion xyzw."""
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.roll(quat, 1))
    return matrix.reshape(3, 3)


def add_all_sensors(spec: mujoco.MjSpec, rng: np.random.Generator, *, body_count: int = 3) -> None:
    """Add a sensor of every type that has a frame to some bodies, and of every joint type to some joints."""
    kinds, objects = mujoco.mjtSensor, mujoco.mjtObj
    for sensor in list(spec.sensors):
        spec.delete(sensor)
    # MuJoCo reads 0 for accelerations and forces of bodies that are fixed to the world.
    fixed = [body.name for body in spec.worldbody.bodies if not body.joints]
    bodies = [body for body in spec.bodies if body.name and body.name not in ("world", *fixed)]
    picked = [bodies[0], *rng.choice(bodies[1:], min(body_count, len(bodies) - 1), replace=False)]
    names = []
    for number, body in enumerate(picked):
        name = f"spot{number}"
        quat = rng.normal(size=4)
        body.add_site(name=name, pos=0.1 * rng.normal(size=3), quat=quat / np.linalg.norm(quat))
        names.append((name, body.name))

    def add(kind: str, obj: mujoco.mjtObj, obj_name: str, ref: tuple | None = None, **extra: float) -> None:
        word = kind.lower()
        sensor = spec.add_sensor(name=f"{word}_{len(spec.sensors)}", type=getattr(kinds, f"mjSENS_{kind}"))
        sensor.objtype, sensor.objname = obj, obj_name
        if ref is not None:
            sensor.reftype, sensor.refname = ref
        for key, value in extra.items():
            setattr(sensor, key, value)

    for site, body in names:
        for kind in ("ACCELEROMETER", "VELOCIMETER", "GYRO", "FORCE", "TORQUE", "MAGNETOMETER"):
            add(kind, objects.mjOBJ_SITE, site)
        add("RANGEFINDER", objects.mjOBJ_SITE, site, intprm=[1, 0, 0])
        add("GYRO", objects.mjOBJ_SITE, site, cutoff=0.3)
        for kind in ("SUBTREECOM", "SUBTREELINVEL", "SUBTREEANGMOM"):
            add(kind, objects.mjOBJ_BODY, body)
        for kind in ("POS", "QUAT", "XAXIS", "YAXIS", "ZAXIS", "LINVEL", "ANGVEL"):
            add(f"FRAME{kind}", objects.mjOBJ_BODY, body)
            add(f"FRAME{kind}", objects.mjOBJ_SITE, site, (objects.mjOBJ_XBODY, names[0][1]))
        for kind in ("LINACC", "ANGACC"):
            add(f"FRAME{kind}", objects.mjOBJ_XBODY, body)
    for joint in spec.joints:
        if joint.name and joint.type in (mujoco.mjtJoint.mjJNT_HINGE, mujoco.mjtJoint.mjJNT_SLIDE):
            add("JOINTPOS", objects.mjOBJ_JOINT, joint.name)
            add("JOINTVEL", objects.mjOBJ_JOINT, joint.name, cutoff=0.5)
    for kind in ("CLOCK", "E_POTENTIAL", "E_KINETIC"):
        add(kind, objects.mjOBJ_UNKNOWN, "")


def to_qpos(model: mujoco.MjModel, joint_q: np.ndarray) -> np.ndarray:
    """Return coordinates of ours, of a robot whose joints are in MuJoCo's order, as MuJoCo has them."""
    qpos = joint_q.astype(np.float64).copy()
    for joint in range(model.njnt):
        first = int(model.jnt_qposadr[joint]) + (3 if model.jnt_type[joint] == FREE else 0)
        if model.jnt_type[joint] in (FREE, BALL):
            qpos[first : first + 4] = np.roll(qpos[first : first + 4], 1)
    return qpos


def from_qpos(model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """Return coordinates of MuJoCo as ours."""
    joint_q = qpos.copy()
    for joint in range(model.njnt):
        first = int(model.jnt_qposadr[joint]) + (3 if model.jnt_type[joint] == FREE else 0)
        if model.jnt_type[joint] in (FREE, BALL):
            joint_q[first : first + 4] = np.roll(joint_q[first : first + 4], -1)
    return joint_q


def to_qvel(model: mujoco.MjModel, joint_q: np.ndarray, joint_qd: np.ndarray) -> np.ndarray:
    """Return velocities of ours as MuJoCo has them: of the origin, and along the axes of the body."""
    qvel = joint_qd.astype(np.float64).copy()
    for joint in range(model.njnt):
        coord, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        if model.jnt_type[joint] == FREE:
            rotation = turn(joint_q[coord + 3 : coord + 7].astype(np.float64))
            omega = qvel[dof + 3 : dof + 6].copy()
            com = rotation @ model.body_ipos[model.jnt_bodyid[joint]]
            qvel[dof : dof + 3] -= np.cross(omega, com)
            qvel[dof + 3 : dof + 6] = rotation.T @ omega
        elif model.jnt_type[joint] == BALL:
            qvel[dof : dof + 3] = turn(joint_q[coord : coord + 4].astype(np.float64)).T @ qvel[dof : dof + 3]
    return qvel


def to_qacc(
    model: mujoco.MjModel, before: tuple, after: tuple, dt: float, *, steps_body_axes: bool
) -> np.ndarray:
    """Return the accelerations that a step made, as MuJoCo has them."""
    qvel, qvel_after = to_qvel(model, *before), to_qvel(model, *after)
    qacc = (qvel_after - qvel) / dt
    if steps_body_axes:
        return qacc
    # Velocities along the axes of the world, of the centre of mass.
    change = (after[1].astype(np.float64) - before[1]) / dt
    for joint in range(model.njnt):
        coord, dof = int(model.jnt_qposadr[joint]), int(model.jnt_dofadr[joint])
        if model.jnt_type[joint] == FREE:
            rotation = turn(before[0][coord + 3 : coord + 7].astype(np.float64))
            omega, alpha = before[1][dof + 3 : dof + 6].astype(np.float64), change[dof + 3 : dof + 6]
            com = rotation @ model.body_ipos[model.jnt_bodyid[joint]]
            qacc[dof : dof + 3] = change[dof : dof + 3] - np.cross(alpha, com)
            qacc[dof : dof + 3] -= np.cross(omega, np.cross(omega, com))
            qacc[dof + 3 : dof + 6] = rotation.T @ alpha
        elif model.jnt_type[joint] == BALL:
            rotation = turn(before[0][coord : coord + 4].astype(np.float64))
            qacc[dof : dof + 3] = rotation.T @ change[dof : dof + 3]
    return qacc


def sensordata_of_state(model: mujoco.MjModel, joint_q: np.ndarray, joint_qd: np.ndarray) -> np.ndarray:
    """Return what sensors of positions and velocities read."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = to_qpos(model, joint_q), to_qvel(model, joint_q, joint_qd)
    mujoco.mj_forward(model, data)
    return data.sensordata.copy()


def sensordata_of_step(
    model: mujoco.MjModel, before: tuple, qacc: np.ndarray, wrenches: dict[int, np.ndarray]
) -> np.ndarray:
    """Return what sensors of accelerations and forces read: given accelerations, given contact wrenches.

    Args:
        model: The robot.
        before: Coordinates and velocities of ours before the step.
        qacc: Accelerations of MuJoCo.
        wrenches: Force and torque about the centre of mass of the contacts on MuJoCo's bodies.
    """
    data = mujoco.MjData(model)
    flags = model.opt.disableflags
    model.opt.disableflags = flags | int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
    try:
        data.qpos[:], data.qvel[:] = to_qpos(model, before[0]), to_qvel(model, *before)
        mujoco.mj_forward(model, data)
        data.qacc[:] = qacc
        for body, wrench in wrenches.items():
            data.xfrc_applied[body] = wrench
        mujoco.mj_rnePostConstraint(model, data)
        mujoco.mj_sensorAcc(model, data)
        return data.sensordata.copy()
    finally:
        model.opt.disableflags = flags


def bodies_of(model: mujoco.MjModel, built: pv.Model, world: int) -> dict[int, int]:
    """Return the body of ours of each body of MuJoCo, by name."""
    first, end = built.body_world_start.numpy()[[world, world + 1]]
    labels = {built.body_label[body].rpartition("/")[2]: body for body in range(first, end)}
    return {body: labels[name] for body in range(1, model.nbody) if (name := model.body(body).name) in labels}
