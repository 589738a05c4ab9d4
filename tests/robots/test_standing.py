"""Real robots stand under PD drives for ten seconds, in one batch with a pile of boxes."""

from dataclasses import dataclass

import numpy as np
import pytest

from pluriverse import (
    CollisionPipeline,
    JointTargetMode,
    ModelBuilder,
    ShapeConfig,
    SolverSAP,
    eval_fk,
)

DT = 0.005  # s
DURATION = 10.0  # s
SETTLED = 5.0  # s, from when nothing may move any more
MATERIAL = ShapeConfig(ke=2e5, tau=0.01, mu=0.8, gap=0.005)


@dataclass(frozen=True)
class Stance:
    """How a robot stands: the first label fragment that fits a joint decides its angle [rad] and gains."""

    height: float  # of the base, m
    angles: dict[str, float]
    gains: dict[str, tuple[float, float]]  # N m/rad, N m s/rad


GO1 = Stance(0.288, {"hip": 0.0, "thigh": 0.9, "calf": -1.8}, {"": (400.0, 10.0)})
G1 = Stance(
    0.780,
    {
        "hip_pitch": -0.2,
        "knee": 0.4,
        "ankle_pitch": -0.2,
        "shoulder_pitch": 0.2,
        "left_shoulder_roll": 0.2,
        "right_shoulder_roll": -0.2,
        "elbow": 1.2,
    },
    {
        "hip": (1000.0, 30.0),
        "knee": (1000.0, 30.0),
        "ankle": (1000.0, 30.0),
        "waist": (1000.0, 30.0),
        "": (100.0, 4.0),
    },
)
ANYMAL = Stance(0.545, {"F_HFE": 0.4, "H_HFE": -0.4, "F_KFE": -0.8, "H_KFE": 0.8}, {"": (5000.0, 100.0)})


def first_match(table: dict, label: str, default):
    return next((value for fragment, value in table.items() if fragment in label), default)


def pile(builder: ModelBuilder) -> None:
    """Eight boxes: four, three and one on top, no two alike."""
    half = 0.1
    for layer, count in enumerate((4, 3, 1)):
        for index in range(count):
            x = (index - 0.5 * (count - 1)) * 0.22
            size = half - 0.002 * index
            body = builder.add_body(xform=((x, 0.01 * layer, 0.1 + 0.201 * layer), (0.0, 0.0, 0.0, 1.0)))
            builder.add_shape_box(body, hx=size, hy=half, hz=half, cfg=MATERIAL)


@pytest.fixture(scope="module")
def batch(robot_assets):
    """Base poses and joint velocities of all worlds after every step."""
    stances = {"go1": GO1, "g1": G1, "anymal": ANYMAL}
    builder = ModelBuilder()
    for name in (*stances, "pile"):
        world = ModelBuilder()
        world.default_shape_cfg = MATERIAL.copy()
        world.default_joint_cfg.armature = 0.01
        if name == "go1":
            world.add_mjcf(robot_assets / "unitree_go1" / "go1.xml", parse_visuals=False)
        elif name == "g1":
            world.add_mjcf(robot_assets / "unitree_g1" / "g1.xml", parse_visuals=False)
        elif name == "anymal":
            world.add_urdf(
                robot_assets / "anymal_c_simple_description" / "urdf" / "anymal.urdf",
                floating=True,
                load_visual_shapes=False,
                collapse_fixed_joints=True,
            )
        else:
            pile(world)
        builder.add_world(world)
    builder.add_ground_plane(cfg=MATERIAL)
    model = builder.finalize("cpu")

    state, following, control = model.state(), model.state(), model.control()
    q, target = state.joint_q.numpy(), control.joint_target_pos.numpy()
    mode, ke, kd = (getattr(model, f"joint_target_{part}").numpy() for part in ("mode", "ke", "kd"))
    joint_world, joint_type = model.joint_world.numpy(), model.joint_type.numpy()
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    for joint, label in enumerate(model.joint_label):
        if joint_world[joint] >= len(stances):
            continue
        stance = list(stances.values())[joint_world[joint]]
        if q_start[joint + 1] - q_start[joint] == 7:
            q[q_start[joint] : q_start[joint] + 7] = [0.0, 0.0, stance.height, 0.0, 0.0, 0.0, 1.0]
        elif qd_start[joint + 1] > qd_start[joint]:
            dof = qd_start[joint]
            name = label.rsplit("/", 1)[-1]
            q[q_start[joint]] = target[dof] = first_match(stance.angles, name, 0.0)
            mode[dof] = JointTargetMode.POSITION
            ke[dof], kd[dof] = first_match(stance.gains, name, None)
    assert joint_type.size == len(model.joint_label)
    for array, values in (
        (state.joint_q, q),
        (control.joint_target_pos, target),
        (model.joint_target_mode, mode),
        (model.joint_target_ke, ke),
        (model.joint_target_kd, kd),
    ):
        array.assign(values)
    eval_fk(model, state.joint_q, state.joint_qd, state)

    pipeline = CollisionPipeline(model)
    contacts = pipeline.contacts()
    solver = SolverSAP(model)
    joint_q, joint_qd = [], []
    for _ in range(round(DURATION / DT)):
        pipeline.collide(state, contacts)
        solver.step(state, following, control, contacts, DT)
        state, following = following, state
        joint_q.append(state.joint_q.numpy().copy())
        joint_qd.append(state.joint_qd.numpy().copy())
    coords, dofs = model.joint_coord_world_start.numpy(), model.joint_dof_world_start.numpy()
    joint_q, joint_qd = np.array(joint_q), np.array(joint_qd)
    records = {
        name: (joint_q[:, coords[world] : coords[world + 1]], joint_qd[:, dofs[world] : dofs[world + 1]])
        for world, name in enumerate((*stances, "pile"))
    }
    return records, solver


ROBOTS = ("go1", "g1", "anymal")


@pytest.mark.parametrize("robot", ROBOTS)
def test_robot_stands_upright(batch, robot):
    joint_q, _ = batch[0][robot]
    start, end = joint_q[0], joint_q[-1]
    assert end[2] == pytest.approx(start[2], abs=0.006), (
        "the base keeps its height, but for the sag of the drives"
    )
    assert 2.0 * np.linalg.norm(end[3:5]) < 0.02, "the base stays level to 0.02 rad"
    assert np.linalg.norm(end[:2]) < 0.01, "the base stays where it was put"


@pytest.mark.parametrize("robot", ROBOTS)
def test_robot_does_not_drift(batch, robot):
    """From five to ten seconds the base moves by less than 0.1 mm along the ground and 1 mm in height.

    Stiction is regularized: a foot creeps at R_t times its tangential impulse until the legs no longer
    push it aside. That is an exponential decay, and what is left of it lowers ANYmal by 0.7 mm.
    """
    joint_q, _ = batch[0][robot]
    settled = joint_q[round(SETTLED / DT) :]
    drift = np.abs(settled - settled[0]).max(axis=0)
    assert drift[:2].max() < 1e-4
    assert drift[2] < 1e-3
    assert drift[3:7].max() < 1e-4


@pytest.mark.parametrize("robot", [*ROBOTS, "pile"])
def test_nothing_jitters(batch, robot):
    """After five seconds no velocity exceeds 1 mm/s or 1 mrad/s, and what is left decays."""
    _, joint_qd = batch[0][robot]
    settled = np.abs(joint_qd[round(SETTLED / DT) :])
    assert settled.max() < 1e-3
    # A jitter would keep its size; a creep only gets smaller.
    third = len(settled) // 3
    assert settled[-third:].max() <= settled[:third].max()


def test_pile_stays_a_pile(batch):
    joint_q, _ = batch[0]["pile"]
    poses = joint_q.reshape(len(joint_q), 8, 7)
    assert np.abs(poses[-1, :, :3] - poses[0, :, :3]).max() < 3e-3
    layers = poses[-1, :, 2]
    assert layers[-1] > layers[4:7].max() + 0.15 > layers[:4].max() + 0.3


def test_every_step_converged_with_all_its_contacts(batch):
    _, solver = batch
    np.testing.assert_array_equal(solver.unconverged_step_count.numpy(), 0)
    np.testing.assert_array_equal(solver.truncated_step_count.numpy(), 0)
    np.testing.assert_array_equal(solver.world_frozen.numpy(), 0)
    assert (solver.last_contact_count.numpy() >= 4).all()
