"""Trees of bodies described once, built as a model and as a MuJoCo model, and maps between their states."""

from dataclasses import dataclass, field

import mujoco
import numpy as np
import warp as wp
from scipy.spatial.transform import Rotation

from pluriverse import JointDofConfig, JointType, Model, ModelBuilder, State
from pluriverse.types import FLOATING_JOINTS


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
    axes: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))  # of a D6 joint, linear ones first
    linear_count: int = 0  # of the axes

    @property
    def dof_count(self) -> int:
        return len(self.axes) if self.kind == JointType.D6 else self.kind.dof_count

    @property
    def coord_count(self) -> int:
        return len(self.axes) if self.kind == JointType.D6 else self.kind.coord_count


@dataclass
class Tree:
    """Joints in topological order, and the order in which bodies and joints are added to a builder."""

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


def random_axes(rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return up to three linear and up to three angular axes, each three somewhat off right angles."""
    counts = rng.integers(0, 4, 2)
    if counts.sum() == 0:
        counts[1] = 3
    axes = [Rotation.random(rng=rng).as_matrix()[:count] for count in counts]
    skewed = np.concatenate(axes) + 0.1 * rng.normal(size=(counts.sum(), 3))
    return _single(skewed / np.linalg.norm(skewed, axis=1, keepdims=True)), int(counts[0])


def random_tree(
    rng: np.random.Generator,
    joint_count: int,
    *,
    root: JointType | None = None,
    kinds: list[JointType] | None = None,
    shuffled: bool = True,
    losses: bool = True,
    single: bool = False,
    gravity=None,
) -> Tree:
    """Return a random tree with joints of all kinds.

    Args:
        rng: Source of the numbers.
        joint_count: Number of joints, and bodies.
        root: Kind of the first joint; any if None.
        kinds: Kinds of the other joints; all if None.
        shuffled: Whether bodies and joints are added to a builder in random order.
        losses: Whether joints have armature and damping.
        single: Whether all bodies hang on the first one; else some hang on the world.
        gravity: Gravity; random if None.
    """
    inner = kinds or [
        JointType.PRISMATIC,
        JointType.REVOLUTE,
        JointType.REVOLUTE,
        JointType.BALL,
        JointType.FIXED,
        JointType.D6,
        JointType.D6,
        JointType.FREE,
    ]
    joints = []
    for entry in range(joint_count):
        rooted = entry == 0 or (rng.random() < 0.05 and not single)
        parent = -1 if rooted else int(rng.integers(max(0, entry - 4), entry))
        if rooted:
            kind = (
                root if entry == 0 and root is not None else JointType(rng.choice([JointType.FREE, *inner]))
            )
        else:
            kind = JointType(rng.choice(inner))
        axis = rng.normal(size=3)
        axes, linear_count = random_axes(rng) if kind == JointType.D6 else (np.zeros((0, 3)), 0)
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
                if losses and kind not in FLOATING_JOINTS
                else 0.0,
                damping=float(_single(rng.uniform(0.0, 2.0)))
                if losses and kind not in FLOATING_JOINTS
                else 0.0,
                axes=axes,
                linear_count=linear_count,
            )
        )
    orders = [
        rng.permutation(joint_count).tolist() if shuffled else list(range(joint_count)) for _ in range(2)
    ]
    gravity = rng.normal(size=3) * 5.0 if gravity is None else gravity
    return Tree(joints, _single(gravity), *orders)


def dof_places(tree: Tree) -> list[list[int]]:
    """Return where the dofs of each joint stand when the joints are in tree order."""
    places, count = [], 0
    for joint in tree.joints:
        places.append(list(range(count, count + joint.dof_count)))
        count += joint.dof_count
    return places


def tree_damping(tree: Tree) -> np.ndarray:
    """Return the damping of all dofs in tree order."""
    return np.concatenate([np.full(joint.dof_count, joint.damping) for joint in tree.joints])


def internal_to_tree(model: Model, world: int, tree: Tree) -> np.ndarray:
    """Return, for each internal dof of a world, its place in tree order."""
    template, places = model.templates[model.world_template[world]], dof_places(tree)
    result = np.zeros(template.dof_count, dtype=int)
    for dof, node in enumerate(template.dof_node):
        entry = tree.joint_order[template.node_joint[node]]
        result[dof] = places[entry][dof - template.node_dof[node]]
    return result


def world_range(model: Model, world: int, values: wp.array, kind: str) -> np.ndarray:
    """Return a world's part of a workspace array; `kind` is dof, row, joint, body or tree."""
    template = model.templates[model.world_template[world]]
    size = {
        "dof": template.dof_count,
        "row": template.row_size,
        "joint": template.node_count,
        "body": template.body_count,
        "tree": template.tree_count,
    }[kind]
    start = int(getattr(model.topology, f"world_{kind}").numpy()[world])
    return values.numpy()[start : start + size]


def tree_vector(model: Model, world: int, tree: Tree, values: wp.array) -> np.ndarray:
    """Return the internal dof values of a world in tree order."""
    internal = world_range(model, world, values, "dof")
    result = np.zeros(len(internal))
    result[internal_to_tree(model, world, tree)] = internal
    return result


def tree_matrix(model: Model, world: int, tree: Tree, rows: wp.array) -> np.ndarray:
    """Return the symmetric matrix in packed rows of a world as a dense one in tree order."""
    template = model.templates[model.world_template[world]]
    packed = world_range(model, world, rows, "row")
    dense = np.zeros((template.dof_count, template.dof_count))
    for dof in range(template.dof_count):
        ancestor, entry = dof, template.dof_row[dof] + template.dof_depth[dof]
        while ancestor >= 0:
            dense[dof, ancestor] = dense[ancestor, dof] = packed[entry]
            ancestor, entry = template.dof_parent[ancestor], entry - 1
    order = internal_to_tree(model, world, tree)
    result = np.zeros_like(dense)
    result[np.ix_(order, order)] = dense
    return result


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
    """Return the tree as MJCF; joint frames go into body poses and joint axes."""

    def body_xml(entry: int) -> str:
        joint = tree.joints[entry]
        child = _pose(joint.child_frame)
        rotation, position = _compose(_pose(joint.parent_frame), _inverse(child))
        inertia = joint.inertia
        full = [inertia[0, 0], inertia[1, 1], inertia[2, 2], inertia[0, 1], inertia[0, 2], inertia[1, 2]]
        xml = f'<body name="b{entry}" pos="{_text(position)}" quat="{_wxyz(rotation)}">'
        xml += f'<inertial pos="{_text(joint.com)}" mass="{joint.mass!r}" fullinertia="{_text(full)}"/>'
        if joint.kind == JointType.D6:
            for place, axis in enumerate(joint.axes):
                kind = "slide" if place < joint.linear_count else "hinge"
                xml += (
                    f'<joint name="j{entry}_{place}" type="{kind}" pos="{_text(child[1])}" '
                    f'axis="{_text(child[0].apply(axis))}" '
                    f'armature="{joint.armature!r}" damping="{joint.damping!r}"/>'
                )
        elif joint.kind in FLOATING_JOINTS and joint.parent < 0:
            xml += f'<joint name="j{entry}" type="free" armature="0" damping="0"/>'
        elif (
            joint.kind in FLOATING_JOINTS
        ):  # which MuJoCo has at roots only: the centre of mass slides, then turns
            for place, axis in enumerate(np.eye(3)):
                xml += f'<joint name="j{entry}_{place}" type="slide" axis="{_text(child[0].apply(axis))}"/>'
            xml += f'<joint name="j{entry}_3" type="ball" pos="{_text(joint.com)}"/>'
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


def build_model(trees: list[Tree]) -> Model:
    """Return a model with one world per tree.

    The numbers of the trees are then written into the model once more: the builder gives free joints no
    frames of their own, and normalizing anew moves the last digit of a quaternion.
    """
    builder = ModelBuilder()
    joint_at = {}
    for tree in trees:
        builder.begin_world(gravity=tree.gravity)
        links, joints = {}, []
        for entry in tree.body_order:
            body = tree.joints[entry]
            links[entry] = builder.add_link(mass=body.mass, com=body.com, inertia=body.inertia)
        for entry in tree.joint_order:
            joint = tree.joints[entry]
            parent = links[joint.parent] if joint.parent >= 0 else -1
            places = {"parent_xform": joint.parent_frame, "child_xform": joint.child_frame}
            losses = {"armature": joint.armature, "damping": joint.damping}
            if joint.kind == JointType.DISTANCE:
                index = builder.add_joint_distance(parent, links[entry])  # frames follow below
            elif joint.kind == JointType.FREE:
                index = builder.add_joint_free(parent=parent, child=links[entry])
            elif joint.kind == JointType.FIXED:
                index = builder.add_joint_fixed(parent, links[entry], **places)
            elif joint.kind == JointType.BALL:
                index = builder.add_joint_ball(parent, links[entry], **places, **losses)
            elif joint.kind == JointType.D6:
                axes = [JointDofConfig(axis=axis, **losses) for axis in joint.axes]
                linear, angular = axes[: joint.linear_count], axes[joint.linear_count :]
                index = builder.add_joint_d6(
                    parent, links[entry], linear_axes=linear, angular_axes=angular, **places
                )
            elif joint.kind == JointType.REVOLUTE:
                index = builder.add_joint_revolute(parent, links[entry], axis=joint.axis, **places, **losses)
            else:
                index = builder.add_joint_prismatic(parent, links[entry], axis=joint.axis, **places, **losses)
            joints.append(index)
            joint_at[index] = joint
        if joints:
            builder.add_articulation(joints)
        builder.end_world()
    model = builder.finalize(device="cpu")
    dof_start = model.joint_qd_start.numpy()
    parent_frames, child_frames = model.joint_X_p.numpy().copy(), model.joint_X_c.numpy().copy()
    axes = model.joint_axis.numpy().copy()
    for index, joint in joint_at.items():
        parent_frames[index], child_frames[index] = joint.parent_frame, joint.child_frame
        if joint.kind in (JointType.REVOLUTE, JointType.PRISMATIC):
            axes[dof_start[index]] = joint.axis
        elif joint.kind == JointType.D6:
            axes[dof_start[index] : dof_start[index + 1]] = joint.axes
    model.joint_X_p.assign(parent_frames)
    model.joint_X_c.assign(child_frames)
    model.joint_axis.assign(axes)
    return model


def set_joint_state(
    state: State, trees: list[Tree], q: list[list[np.ndarray]], qd: list[list[np.ndarray]]
) -> None:
    """Write joint states, given per tree and per joint in tree order, into a state of the trees' model."""
    for array, values in ((state.joint_q, q), (state.joint_qd, qd)):
        flat = [values[world][entry] for world, tree in enumerate(trees) for entry in tree.joint_order]
        if flat:
            array.assign(np.concatenate(flat).astype(np.float32))


def random_joint_state(rng: np.random.Generator, tree: Tree) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return coordinates and public velocities per joint, rounded to float32."""
    q, qd = [], []
    for joint in tree.joints:
        q_joint = rng.normal(size=joint.coord_count)
        if joint.kind in (JointType.BALL, *FLOATING_JOINTS):
            q_joint[-4:] /= np.linalg.norm(q_joint[-4:])
        q.append(_single(q_joint))
        qd.append(_single(rng.normal(size=joint.dof_count)))
    return q, qd


class MujocoTree:
    """A tree in MuJoCo, at a state given in our conventions, with results in our conventions.

    Per joint, `map` takes our internal velocity ([omega, v_origin] for a free root) to MuJoCo's; it is
    orthogonal, and its rate times the velocity vanishes, so forces map with its transpose.
    """

    def __init__(self, tree: Tree, q: list[np.ndarray], qd: list[np.ndarray]):
        self.tree = tree
        self.model = mujoco.MjModel.from_xml_string(tree_mjcf(tree))
        self.data = mujoco.MjData(self.model)
        size = self.model.nv
        self.map = np.zeros((size, size))  # rows: MuJoCo's dofs, columns: ours, tree order
        column = 0
        velocities = np.zeros(size)
        for entry, joint in enumerate(tree.joints):
            count = joint.dof_count
            if count == 0:
                continue
            several = joint.kind == JointType.D6 or (joint.kind in FLOATING_JOINTS and joint.parent >= 0)
            name = f"j{entry}_0" if several else f"j{entry}"
            identifier = mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_JOINT, name)
            address, row = self.model.jnt_qposadr[identifier], self.model.jnt_dofadr[identifier]
            child = _pose(joint.child_frame)
            if joint.kind in FLOATING_JOINTS and joint.parent >= 0:
                turn = Rotation.from_quat(q[entry][3:])
                com = child[0].inv().apply(joint.com - child[1])
                self.data.qpos[address : address + 3] = q[entry][:3] + turn.apply(com) - com
                quat = (child[0] * turn * child[0].inv()).as_quat()
                self.data.qpos[address + 3 : address + 7] = np.roll(quat, 1)
                self.map[row : row + 3, column : column + 3] = np.eye(3)
                self.map[row + 3 : row + 6, column + 3 : column + 6] = (child[0] * turn.inv()).as_matrix()
                velocities[column : column + 6] = qd[entry]
            elif joint.kind in FLOATING_JOINTS:
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
                self.data.qpos[address : address + count] = q[entry]
                self.map[row : row + count, column : column + count] = np.eye(count)
                velocities[column : column + count] = qd[entry]
            column += count
        self.velocity = velocities
        self.data.qvel[:] = self.map @ velocities
        mujoco.mj_forward(self.model, self.data)

    def body(self, entry: int) -> int:
        """Return MuJoCo's index of a body."""
        return mujoco.mj_name2id(self.model, mujoco.mjtObj.mjOBJ_BODY, f"b{entry}")

    def mass_matrix(self) -> np.ndarray:
        """Return M with armature for our internal velocities, tree order."""
        columns = []
        for unit in np.eye(self.model.nv):
            column = np.zeros(self.model.nv)
            mujoco.mj_mulM(self.model, self.data, column, unit)
            columns.append(column)
        full = np.reshape(columns, (self.model.nv, self.model.nv))
        return self.map.T @ full @ self.map

    def bias(self) -> np.ndarray:
        """Return the velocity-product forces minus gravity, c - J^T m g."""
        return self.map.T @ self.data.qfrc_bias

    def applied(self, body_f: np.ndarray) -> np.ndarray:
        """Return J^T of forces and torques about the centres of mass, shape [body in tree order, 6]."""
        result = np.zeros(self.model.nv)
        for entry, wrench in enumerate(body_f):
            body = self.body(entry)
            mujoco.mj_applyFT(
                self.model, self.data, wrench[:3], wrench[3:], self.data.xipos[body], body, result
            )
        return self.map.T @ result

    def body_velocity(self, entry: int) -> np.ndarray:
        """Return (v_com, omega) of a body, world axes."""
        result = np.zeros(6)
        mujoco.mj_objectVelocity(self.model, self.data, mujoco.mjtObj.mjOBJ_BODY, self.body(entry), result, 0)
        # mjOBJ_BODY is the inertial frame: centre of mass; order is angular, linear.
        return np.concatenate([result[3:], result[:3]])


def tree_from_mujoco(model: mujoco.MjModel) -> Tree:
    """Return bodies and joints of a MuJoCo model with at most one joint per body; entry k is body k + 1."""
    joints = []
    kinds = {
        int(getattr(mujoco.mjtJoint, f"mjJNT_{name.upper()}")): kind for kind, name in MUJOCO_JOINT.items()
    }
    for body in range(1, model.nbody):
        rotation = Rotation.from_quat(np.roll(model.body_quat[body], -1))
        turn = Rotation.from_quat(np.roll(model.body_iquat[body], -1)).as_matrix()
        joint = model.body_jntadr[body]
        assert model.body_jntnum[body] <= 1
        kind, axis, place, dof = JointType.FIXED, np.array([1.0, 0.0, 0.0]), np.zeros(3), None
        if joint >= 0:
            kind, axis, dof = kinds[model.jnt_type[joint]], model.jnt_axis[joint], model.jnt_dofadr[joint]
            place = np.zeros(3) if kind == JointType.FREE else model.jnt_pos[joint]
        parent_frame = np.concatenate([model.body_pos[body] + rotation.apply(place), rotation.as_quat()])
        if kind == JointType.FREE:
            parent_frame = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
        joints.append(
            TreeJoint(
                kind=kind,
                parent=int(model.body_parentid[body]) - 1,
                parent_frame=_single(parent_frame),
                child_frame=_single(np.concatenate([place, [0.0, 0.0, 0.0, 1.0]])),
                axis=_single(axis),
                mass=float(_single(model.body_mass[body])),
                com=_single(model.body_ipos[body]),
                inertia=_single(turn @ np.diag(model.body_inertia[body]) @ turn.T),
                armature=0.0 if dof is None else float(_single(model.dof_armature[dof])),
                damping=0.0 if dof is None else float(_single(model.dof_damping[dof])),
            )
        )
    return Tree(joints, _single(model.opt.gravity))


def unset(*shape: int) -> wp.array:
    """Return an array of NaN in double precision, for a result that must be written."""
    return wp.full(shape, float("nan"), dtype=wp.float64, device="cpu")
