"""Worlds that the dynamics tests share: random trees and real robots, evaluated once per precision."""

from dataclasses import dataclass
from pathlib import Path

import mujoco
import numpy as np
import pytest
import warp as wp

from pluriverse import Control, JointType, Model, State
from pluriverse.dynamics import Workspace, eval_free_motion, eval_kinematics

from .trees import (
    MujocoTree,
    Tree,
    build_model,
    random_joint_state,
    random_tree,
    set_joint_state,
    tree_from_mujoco,
)

DT = 0.01  # s
ROBOTS = ("unitree_go1/go1.xml", "unitree_g1/g1.xml")


@dataclass
class Worlds:
    """Different trees, one per world, at random states under random forces, after the free-motion stage."""

    trees: list[Tree]
    q: list[list[np.ndarray]]
    qd: list[list[np.ndarray]]
    model: Model
    state: State
    control: Control
    body_f: list[np.ndarray]  # per world, shape [body in tree order, 6]
    workspace: Workspace
    oracles: list[MujocoTree]


def make_worlds(trees: list[Tree], real, seed: int) -> Worlds:
    """Evaluate the stages up to the free motion on trees at random states."""
    rng = np.random.default_rng(seed)
    states = [random_joint_state(rng, tree) for tree in trees]
    q, qd = [state[0] for state in states], [state[1] for state in states]
    model = build_model(trees)
    state, control = model.state(), model.control()
    set_joint_state(state, trees, q, qd)
    control.joint_f.assign(rng.normal(size=model.joint_dof_count).astype(np.float32))
    body_f = [rng.normal(size=(len(tree.joints), 6)).astype(np.float32) for tree in trees]
    flat = [forces[entry] for tree, forces in zip(trees, body_f, strict=True) for entry in tree.body_order]
    state.body_f.assign(np.array(flat))
    workspace = Workspace(model, real)
    for array in vars(workspace).values():
        if isinstance(array, wp.array) and array.size and array.dtype is not wp.int32:
            array.fill_(float("nan"))
    eval_kinematics(model, model.worlds, state, workspace)
    eval_free_motion(model, model.worlds, state, control, workspace, DT)
    oracles = [MujocoTree(*case) for case in zip(trees, q, qd, strict=True)]
    return Worlds(trees, q, qd, model, state, control, body_f, workspace, oracles)


def random_trees() -> list[Tree]:
    """Return trees of all joint kinds and sizes, listed in any order, each under its own gravity."""
    rng = np.random.default_rng(7)
    return [random_tree(rng, int(rng.integers(1, 16))) for _ in range(16)]


def welded_trees() -> list[Tree]:
    """Return trees whose bodies are mostly fixed to others, as in the files of many robots."""
    rng = np.random.default_rng(11)
    kinds = [JointType.FIXED] * 4 + [JointType.REVOLUTE, JointType.BALL, JointType.D6, JointType.FREE]
    return [random_tree(rng, int(rng.integers(4, 24)), kinds=kinds) for _ in range(6)]


def robot_trees(assets: Path) -> list[Tree]:
    """Return the bodies of real robots."""
    return [tree_from_mujoco(mujoco.MjModel.from_xml_path(str(assets / robot))) for robot in ROBOTS]


@pytest.fixture(scope="session")
def random_worlds() -> Worlds:
    """Return worlds of random trees in double precision."""
    return make_worlds(random_trees(), wp.float64, seed=1)


@pytest.fixture(scope="session")
def random_worlds_single() -> Worlds:
    """Return the same worlds in single precision."""
    return make_worlds(random_trees(), wp.float32, seed=1)


@pytest.fixture(scope="session")
def welded_worlds() -> Worlds:
    """Return worlds of trees with many fixed joints, in double precision."""
    return make_worlds(welded_trees(), wp.float64, seed=3)


@pytest.fixture(scope="session")
def robot_worlds(robot_assets) -> Worlds:
    """Return worlds of real robots in double precision."""
    return make_worlds(robot_trees(robot_assets), wp.float64, seed=2)


@pytest.fixture(params=["random", "welded", "robots"])
def worlds(request) -> Worlds:
    """Return worlds in double precision: random trees, then robots (skipped where files are missing)."""
    return request.getfixturevalue(f"{request.param.removesuffix('s')}_worlds")
