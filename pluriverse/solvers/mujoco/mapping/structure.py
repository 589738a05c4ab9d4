"""StructurePlan: the bodies and joints of MuJoCo for the worlds of one structure, in its order.

MuJoCo allows several joints in a row on one body, and requires that every moving body has mass. So a body
without mass and shapes between two joints is omitted: its joints become joints of the next body, as they were
if the model came from MuJoCo. A D6 joint becomes one joint per axis.
"""

import enum
from dataclasses import dataclass, field

import numpy as np

from pluriverse.model.topology import Template
from pluriverse.types import JointType

_FLOATING = (JointType.FREE, JointType.DISTANCE)


class MujocoJoint(enum.IntEnum):
    """`mujoco.mjtJoint`."""

    FREE = 0
    BALL = 1
    SLIDE = 2
    HINGE = 3


@dataclass
class BodyPlan:
    """A body of MuJoCo."""

    body: int
    """World-local body."""
    parent: int
    """MuJoCo's parent body, 0 for the world."""
    chain: list[int]
    """World-local joints between the parent and the body, the first one next to the parent."""
    is_mocap: bool
    """Whether the body is fixed to the world."""


@dataclass
class JointPlan:
    """A joint of MuJoCo."""

    kind: MujocoJoint
    body: int
    """MuJoCo's body."""
    joint: int
    """World-local joint."""
    part: int
    """Which degree of freedom of that joint, where there are several of one coordinate."""
    dof: int
    """World-local first degree of freedom."""
    qpos: int
    qvel: int


@dataclass
class StructurePlan:
    """Bodies and joints of MuJoCo for worlds of one structure.

    Args:
        template: Structure of the worlds.
        weightless: Whether a body has neither mass nor shapes nor constraints, shape [body].
    """

    template: Template
    weightless: np.ndarray
    bodies: list[BodyPlan | None] = field(init=False)
    """Bodies in the order of MuJoCo; None for the world."""
    joints: list[JointPlan] = field(init=False)
    """Joints in the order of MuJoCo."""
    body_mj: np.ndarray = field(init=False)
    """MuJoCo's body of each body, -1 for those not made, shape [body]."""
    qpos_count: int = field(init=False, default=0)
    qvel_count: int = field(init=False, default=0)
    float_depth: int = field(init=False, default=0)
    """Most joints that float below a body, on the way to a root."""

    def __post_init__(self) -> None:
        template = self.template
        kind = template.joint_type[template.node_joint]
        child_count = np.bincount(
            template.node_parent[template.node_parent >= 0], minlength=template.node_count
        )
        between = np.isin(kind, [JointType.PRISMATIC, JointType.REVOLUTE, JointType.BALL, JointType.D6])
        skipped = between & (child_count == 1) & self.weightless[template.node_body]
        floats = np.isin(kind, _FLOATING)
        skipped[template.node_parent[floats & (template.node_parent >= 0)]] = False
        self.body_mj = np.full(template.body_count, -1, dtype=np.int64)
        chains: list[list[int]] = []
        made: list[tuple[int, int, list[int], bool]] = []  # body, body above, joints, whether it is fixed
        depth: list[int] = []
        for node in range(template.node_count):
            parent = int(template.node_parent[node])
            depth.append((depth[parent] if parent >= 0 else 0) + int(floats[node] and parent >= 0))
            carried = parent >= 0 and bool(skipped[parent])
            chain = [*(chains[parent] if carried else []), int(template.node_joint[node])]
            chains.append(chain)
            if not skipped[node]:
                above = -1 if floats[node] else int(template.joint_parent[chain[0]])
                fixed = above < 0 and len(chain) == 1 and kind[node] == JointType.FIXED
                made.append((int(template.node_body[node]), above, chain, bool(fixed)))
        self.float_depth = max(depth, default=0)
        self._add_bodies(made)

    def _add_bodies(self, made: list[tuple[int, int, list[int], bool]]) -> None:
        """Add bodies in the order of MuJoCo: depth first."""
        children: dict[int, list[int]] = {}
        for entry, (_, above, _, _) in enumerate(made):
            children.setdefault(above, []).append(entry)
        self.bodies, self.joints = [None], []
        pending = children.get(-1, [])[::-1]
        while pending:
            body, above, chain, fixed = made[pending.pop()]
            self.body_mj[body] = len(self.bodies)
            self.bodies.append(BodyPlan(body, int(self.body_mj[above]) if above >= 0 else 0, chain, fixed))
            for joint in chain:
                self._add_joint(joint, len(self.bodies) - 1)
            pending += children.get(body, [])[::-1]

    def _add_joint(self, joint: int, body: int) -> None:
        template = self.template
        kind = JointType(int(template.joint_type[joint]))
        linear, angular = (int(count) for count in template.joint_dof_dim[joint])
        if kind is JointType.FIXED:
            return
        dof = int(self.joint_dof[joint])
        if kind in _FLOATING:
            parts = [(MujocoJoint.FREE, 7, 6)]
        elif kind is JointType.BALL:
            parts = [(MujocoJoint.BALL, 4, 3)]
        else:
            parts = [(MujocoJoint.SLIDE, 1, 1)] * linear + [(MujocoJoint.HINGE, 1, 1)] * angular
        for part, (mujoco_kind, coord_count, dof_count) in enumerate(parts):
            self.joints.append(
                JointPlan(mujoco_kind, body, joint, part, dof + part, self.qpos_count, self.qvel_count)
            )
            self.qpos_count += coord_count
            self.qvel_count += dof_count

    @property
    def joint_dof(self) -> np.ndarray:
        """World-local first degree of freedom of each joint, shape [joint]."""
        return _by_joint(self.template, self.template.node_qd)

    @property
    def joint_coord(self) -> np.ndarray:
        """World-local first coordinate of each joint, shape [joint]."""
        return _by_joint(self.template, self.template.node_coord)

    @property
    def body_weld(self) -> np.ndarray:
        """First of MuJoCo's bodies welded together with each (0: the world), shape [nbody]."""
        moved = {plan.body for plan in self.joints}
        weld = np.zeros(len(self.bodies), dtype=np.int64)
        for index, plan in enumerate(self.bodies):
            if plan is not None:
                weld[index] = index if index in moved else weld[plan.parent]
        return weld

    @property
    def body_mocap(self) -> tuple[np.ndarray, np.ndarray]:
        """Mocap body that each of MuJoCo's bodies is or is welded to, and that a moving one has for a parent.

        0 for none, shape [nbody] each.
        """
        weld = self.body_weld
        welded, held = np.zeros_like(weld), np.zeros_like(weld)
        for index, plan in enumerate(self.bodies):
            if plan is None:
                continue
            if weld[index] == index:
                held[index] = welded[plan.parent]
            elif weld[index] == 0:
                welded[index] = index if plan.is_mocap else welded[plan.parent]
        return welded, held


def _by_joint(template: Template, node_values: np.ndarray) -> np.ndarray:
    values = np.zeros(template.node_count, dtype=np.int64)
    values[template.node_joint] = node_values
    return values


def public_dofs(plan: StructurePlan) -> np.ndarray:
    """Return the world-local public degree of freedom of each of MuJoCo's, shape [nv]."""
    public = np.zeros(plan.qvel_count, dtype=np.int64)
    for joint in plan.joints:
        size = _DOF_COUNT[joint.kind]
        public[joint.qvel : joint.qvel + size] = joint.dof + np.arange(size)
    return public


def dof_joints(plan: StructurePlan) -> np.ndarray:
    """Return the world-local joint of each of MuJoCo's degrees of freedom, shape [nv]."""
    joints = np.zeros(plan.qvel_count, dtype=np.int64)
    for joint in plan.joints:
        joints[joint.qvel : joint.qvel + _DOF_COUNT[joint.kind]] = joint.joint
    return joints


_DOF_COUNT = {MujocoJoint.FREE: 6, MujocoJoint.BALL: 3, MujocoJoint.SLIDE: 1, MujocoJoint.HINGE: 1}
