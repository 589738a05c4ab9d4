"""Trees of bodies described once, built both as a model and as a MuJoCo model, and the maps between their states."""

from dataclasses import dataclass, field

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from pluriverse.types import JointType

COORD_COUNT = {kind: kind.coord_count for kind in JointType}
DOF_COUNT = {kind: kind.dof_count for kind in JointType}


@dataclass
class TreeJoint:
    """A joint with the body that it moves. Numbers are rounded to float32, as the model keeps them."""

    kind: JointType
    parent: int  # entry in the list of joints, -1 for the world
    parent_frame: np.ndarray  # p, xyzw
    child_frame: np.ndarray
    axis: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    armature: float = 0.0
    damping: float = 0.0


@dataclass
class Tree:
    """Joints in topological order, and the order in which a builder is told about bodies and joints."""

    joints: list[TreeJoint]
    gravity: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))
    body_order: list[int] = field(default_factory=list)
    joint_order: list[int] = field(default_factory=list)

    def __post_init__(self):
        self.body_order = self.body_order or list(range(len(self.joints)))
        self.joint_order = self.joint_order or list(range(len(self.joints)))


def _single(value):
    return np.asarray(value, dtype=np.float32).astype(np.float64)


def random_frame(rng: np.random.Generator) -> np.ndarray:
    """Return a random rigid transform."""
    return _single(np.concatenate([rng.uniform(-0.3, 0.3, 3), Rotation.random(rng=rng).as_quat()]))


def random_inertia(rng: np.random.Generator, mass: float) -> np.ndarray:
    """Return the inertia of a random cloud of points, so that it is one that a body can have."""
    points = rng.normal(size=(6, 3)) * 0.2
    points -= points.mean(axis=0)
    second = mass / 6 * points.T @ points
    inertia = np.trace(second) * np.eye(3) - second
    return _single(0.5 * (inertia + inertia.T))


def random_tree(
    rng: np.random.Generator,
    joint_count: int,
    *,
    root: JointType | None = None,
    shuffled: bool = True,
    armature: bool = True,
    damping: bool = True,
    gravity=None,
) -> Tree:
    """Return a random tree with joints of all kinds; free joints only at roots."""
    inner = [JointType.PRISMATIC, JointType.REVOLUTE, JointType.REVOLUTE, JointType.BALL, JointType.FIXED]
    joints = []
    for entry in range(joint_count):
        parent = (
            -1 if entry == 0 else int(rng.integers(-1 if rng.random() < 0.15 else max(0, entry - 4), entry))
        )
        if parent < 0:
            kind = (
                root if entry == 0 and root is not None else JointType(rng.choice([JointType.FREE, *inner]))
            )
        else:
            kind = JointType(rng.choice(inner))
        axis = rng.normal(size=3)
        mass = float(_single(rng.uniform(0.2, 3.0)))
        joints.append(
            TreeJoint(
                kind=kind,
                parent=parent,
                parent_frame=random_frame(rng),
                child_frame=random_frame(rng),
                axis=_single(axis / np.linalg.norm(axis)),
                mass=mass,
                com=_single(rng.uniform(-0.2, 0.2, 3)),
                inertia=random_inertia(rng, mass),
                armature=float(_single(rng.uniform(0.0, 0.2)))
                if armature and kind != JointType.FREE
                else 0.0,
                damping=float(_single(rng.uniform(0.0, 2.0))) if damping and kind != JointType.FREE else 0.0,
            )
        )
    orders = [
        rng.permutation(joint_count).tolist() if shuffled else list(range(joint_count)) for _ in range(2)
    ]
    gravity = rng.normal(size=3) * 5.0 if gravity is None else gravity
    return Tree(joints, _single(gravity), *orders)


def _pose(frame):
    return Rotation.from_quat(frame[3:]), frame[:3]


def _compose(a, b):
    return a[0] * b[0], a[1] + a[0].apply(b[1])


def _inverse(a):
    return a[0].inv(), -a[0].inv().apply(a[1])


def _text(values):
    return " ".join(repr(float(value)) for value in np.ravel(values))


def _wxyz(rotation: Rotation) -> str:
    x, y, z, w = rotation.as_quat()
    return _text([w, x, y, z])


MUJOCO_JOINT = {
    JointType.PRISMATIC: "slide",
    JointType.REVOLUTE: "hinge",
    JointType.BALL: "ball",
    JointType.FREE: "free",
}


def tree_mjcf(tree: Tree) -> str:
    """Return the tree as MJCF. MuJoCo's joint frame is the body's, so the frames go into body poses and joint axes."""

    def body_xml(entry: int) -> str:
        joint = tree.joints[entry]
        child = _pose(joint.child_frame)
        rotation, position = _compose(_pose(joint.parent_frame), _inverse(child))
        inertia = joint.inertia
        full = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
        xml = f'<body name="b{entry}" pos="{_text(position)}" quat="{_wxyz(rotation)}">'
        xml += f'<inertial pos="{_text(joint.com)}" mass="{joint.mass!r}" fullinertia="{_text(full)}"/>'
        if joint.kind == JointType.FREE:
            xml += f'<joint name="j{entry}" type="free" armature="0" damping="0"/>'
        elif joint.kind != JointType.FIXED:
            place = "" if joint.kind == JointType.PRISMATIC else f'pos="{_text(child[1])}"'
            axis = "" if joint.kind == JointType.BALL else f'axis="{_text(child[0].apply(joint.axis))}"'
            xml += (
                f'<joint name="j{entry}" type="{MUJOCO_JOINT[joint.kind]}" {place} {axis} '
                f'armature="{joint.armature!r}" damping="{joint.damping!r}"/>'
            )
        xml += "".join(body_xml(k) for k, other in enumerate(tree.joints) if other.parent == entry)
        return xml + "</body>"

    bodies = "".join(body_xml(k) for k, joint in enumerate(tree.joints) if joint.parent < 0)
    return (
        '<mujoco><compiler angle="radian" balanceinertia="false" boundmass="0" boundinertia="0"/>'
        f'<option gravity="{_text(tree.gravity)}"><flag contact="disable"/></option>'
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )


def random_joint_state(rng: np.random.Generator, tree: Tree) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return coordinates and public velocities per joint, rounded to float32."""
    q, qd = [], []
    for joint in tree.joints:
        q_joint = rng.normal(size=COORD_COUNT[joint.kind])
        if joint.kind in (JointType.BALL, JointType.FREE):
            q_joint[-4:] /= np.linalg.norm(q_joint[-4:])
        q.append(_single(q_joint))
        qd.append(_single(rng.normal(size=DOF_COUNT[joint.kind])))
    return q, qd


class MujocoTree:
    """A tree in MuJoCo, at a state given in our conventions, with results in our conventions.

    Per joint, `map` takes our internal velocity ([omega, v_origin] for a free joint) to MuJoCo's; it is orthogonal,
    and its rate times the velocity vanishes, so forces map with its transpose.
    """

    def __init__(self, tree: Tree, q: list[np.ndarray], qd: list[np.ndarray]):
        self.tree = tree
        self.model = mujoco.MjModel.from_xml_string(tree_mjcf(tree))
        self.data = mujoco.MjData(self.model)
        size = self.model.nv
        self.map = np.zeros((size, size))  # rows: MuJoCo's dofs, columns: ours, tree order
        self.dof_of_joint, column = {}, 0
        velocities = np.zeros(size)
        for entry, joint in enumerate(tree.joints):
            count = DOF_COUNT[joint.kind]
            self.dof_of_joint[entry] = list(range(column, column + count))
            if count == 0:
                continue
            identifier = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, f"j{entry}")
            address, row = self.model.jnt_qposadr[identifier], self.model.jnt_dofadr[identifier]
            child = _pose(joint.child_frame)
            if joint.kind == JointType.FREE:
                joint_pose = _pose(np.concatenate([q[entry][:3], q[entry][3:]]))
                rotation, position = _compose(
                    _compose(_pose(joint.parent_frame), joint_pose), _inverse(child)
                )
                self.data.qpos[address : address + 3] = position
                self.data.qpos[address + 3 : address + 7] = np.roll(rotation.as_quat(), 1)
                self.map[row : row + 3, column + 3 : column + 6] = np.eye(3)
                self.map[row + 3 : row + 6, column : column + 3] = rotation.as_matrix().T
                omega = qd[entry][3:]
                velocities[column : column + 3] = omega
                velocities[column + 3 : column + 6] = qd[entry][:3] - np.cross(
                    omega, rotation.apply(joint.com)
                )
            elif joint.kind == JointType.BALL:
                turn = Rotation.from_quat(q[entry])
                quat = (child[0] * turn * child[0].inv()).as_quat()
                self.data.qpos[address : address + 4] = np.roll(quat, 1)
                self.map[row : row + 3, column : column + 3] = (child[0] * turn.inv()).as_matrix()
                velocities[column : column + 3] = qd[entry]
            else:
                self.data.qpos[address] = q[entry][0]
                self.map[row, column] = 1.0
                velocities[column] = qd[entry][0]
            column += count
        self.velocity = velocities
        self.data.qvel[:] = self.map @ velocities
        mujoco.mj_forward(self.model, self.data)

    def body(self, entry: int) -> int:
        """Return MuJoCo's index of a body."""
        return mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, f"b{entry}")

    def mass_matrix(self) -> np.ndarray:
        """Return M with armature on our internal velocities, tree order."""
        full = np.zeros((self.model.nv, self.model.nv))
        if hasattr(mujoco, "mj_fullM"):
            try:
                mujoco.mj_fullM(self.model, full, self.data.qM)
            except (TypeError, AttributeError):
                mujoco.mj_fullM(self.model, self.data, full)
        return self.map.T @ full @ self.map

    def bias(self) -> np.ndarray:
        """Return the velocity-product forces minus gravity, c - J^T m g."""
        return self.map.T @ self.data.qfrc_bias

    def body_velocity(self, entry: int) -> np.ndarray:
        """Return (v_com, omega) of a body, world axes."""
        result = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_BODY, self.body(entry), result, 0)
        # mjOBJ_BODY is the inertial frame: centre of mass; order is angular, linear.
        return np.concatenate([result[3:], result[:3]])
