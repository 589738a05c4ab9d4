"""A Franka arm with its hand, from its URDF with nothing set but drives, picks up a cube of 45 mm."""

import functools
from collections.abc import Callable
from pathlib import Path

import mujoco
import numpy as np
import pytest
from scipy.optimize import least_squares

import pluriverse as pv
from pluriverse.dynamics import eval_fk

URDF = "franka_description/urdfs/fr3_franka_hand.urdf"
HALF = 0.0225  # m, of the cube
PLACE = (0.45, 0.0)  # m
HAND = 0.125  # m, height of the hand above the ground with the fingertips 10 mm below the centre of the cube
HOME = (0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.785)
LIFT = 0.2  # m

pytestmark = pytest.mark.filterwarnings("ignore")  # visual meshes are left out of the asset


@pytest.fixture(scope="module")
def arms(robot_assets):
    """Return a function that makes the scene for a contact stiffness [N/m]."""
    return functools.cache(functools.partial(make_scene, robot_assets))


def make_scene(robot_assets: Path, stiffness: float | None) -> tuple[pv.Model, np.ndarray]:
    """Return the model and the joint angles of the arm above, at and over the cube, shape [3, 7]."""
    builder = pv.ModelBuilder()
    builder.default_shape_cfg.ke = stiffness
    builder.add_urdf(robot_assets / URDF, enable_self_collisions=False)
    builder.joint_q[:9] = [*HOME, 0.04, 0.04]
    builder.joint_target_mode[:9] = int(pv.JointTargetMode.POSITION)
    builder.joint_target_ke[:9] = [4000.0] * 7 + [1000.0] * 2
    builder.joint_target_kd[:9] = [200.0] * 7 + [50.0] * 2
    cube = builder.add_body(xform=((*PLACE, HALF), (0.0, 0.0, 0.0, 1.0)), label="cube")
    builder.add_shape_box(cube, hx=HALF, hy=HALF, hz=HALF)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    hand = next(index for index, label in enumerate(model.body_label) if label.endswith("fr3_hand"))
    state = model.state()
    joint_q = state.joint_q.numpy().copy()

    def miss(angles: np.ndarray, height: float) -> np.ndarray:
        """Return how far the hand is from pointing down at a height, fingers along y."""
        joint_q[:7] = angles
        state.joint_q.assign(joint_q)
        eval_fk(model, state.joint_q, state.joint_qd, state)
        pose = state.body_q.numpy()[hand].astype(float)
        aim = np.array([1.0, 0.0, 0.0, 0.0])
        quat = pose[3:] * np.sign(pose[3:] @ aim)
        return np.concatenate([pose[:3] - (*PLACE, height), 0.3 * (quat - aim)])

    limits = [getattr(model, f"joint_limit_{end}").numpy()[:7].astype(float) for end in ("lower", "upper")]
    limits = limits[0] + 0.1, limits[1] - 0.1
    poses: list[np.ndarray] = []
    for height in (HAND + 0.15, HAND, HAND + LIFT):
        begin = poses[-1] if poses else HOME
        found = least_squares(miss, begin, args=(height,), diff_step=1e-3, bounds=limits)
        assert np.abs(found.fun).max() < 2e-3
        poses.append(found.x)
    return model, np.array(poses)


def pick_up(poses: np.ndarray, dt: float, step: Callable[[np.ndarray], None], height: Callable[[], float]):
    """Return the height of the cube [m] at the end of each of six phases; `step` takes the nine targets."""
    above, at, over = poses
    phases = [
        (np.array(HOME), above, 0.04, 0.5),
        (above, at, 0.04, 0.7),
        (at, at, 0.0, 0.4),
        (at, over, 0.0, 0.8),
        (over, over, 0.0, 0.3),
        (over, over, 0.0, 0.5),
    ]
    heights = []
    for begin, end, fingers, duration in phases:
        count = round(duration / dt)
        for number in range(count):
            step(np.array([*(begin + (end - begin) * (number + 1) / count), fingers, fingers]))
        heights.append(height())
    return np.array(heights)


def pick_up_with(arms, solver, dt: float, stiffness: float | None) -> np.ndarray:
    """Return the heights of the cube [m] in one of our solvers."""
    model, poses = arms(stiffness)
    with pv.Simulation(model, solver(model), dt=dt, threads=1) as simulation:

        def step(targets: np.ndarray) -> None:
            target = simulation.control.joint_target_pos.numpy()
            target[:9] = targets
            simulation.control.joint_target_pos.assign(target)
            simulation.step()

        return pick_up(poses, dt, step, lambda: float(simulation.state.body_q.numpy()[-1, 2]))


@pytest.mark.parametrize(
    ("solver", "dt", "stiffness"),
    [
        (pv.SolverSAP, 0.002, None),
        (pv.SolverSAP, 0.005, None),
        (pv.SolverSAP, 0.01, None),
        (pv.SolverSAP, 0.005, 1e5),
        (pv.SolverMuJoCo, 0.002, 1e5),
    ],
)
def test_the_cube_is_carried(arms, solver, dt, stiffness):
    """It rises with the hand, and stays in it."""
    heights = pick_up_with(arms, solver, dt, stiffness)
    assert heights[1] == pytest.approx(HALF, abs=1e-3)
    assert heights[-1] > HALF + LIFT - 0.01


@pytest.mark.parametrize(("dt", "is_carried"), [(0.002, True), (0.005, False)])
def test_mujoco_does_the_same_with_the_file_as_it_is(arms, robot_assets, dt, is_carried):
    """MuJoCo reads the URDF and steps it itself, nothing set but the drives: the cube is where it is here.

    Its own contacts carry the cube at 2 ms. At 5 ms they let the fingers through, in both.
    """
    spec = mujoco.MjSpec.from_file(str(robot_assets / URDF))
    for mesh in spec.meshes:
        mesh.file = str(robot_assets / mesh.file.removeprefix("package://"))
    spec.option.timestep = dt
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # drives as stiff as these need it
    for geom in spec.geoms:  # the arm touches the cube, and nothing else, as in the scene
        geom.contype, geom.conaffinity = 2, 1
    for number, joint in enumerate(spec.joints):
        stiffness, damping = (4000.0, 200.0) if number < 7 else (1000.0, 50.0)
        actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=stiffness, kv=damping)
    cube = spec.worldbody.add_body(name="cube", pos=(*PLACE, HALF))
    cube.add_freejoint()
    solid = {"contype": 1, "conaffinity": 3}
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[HALF] * 3, density=1000.0, **solid)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[1.0, 1.0, 0.1], **solid)
    model = spec.compile()
    data = mujoco.MjData(model)
    data.qpos[:9] = [*HOME, 0.04, 0.04]

    def step(targets: np.ndarray) -> None:
        data.ctrl[:] = targets
        mujoco.mj_step(model, data)

    theirs = pick_up(arms(None)[1], dt, step, lambda: float(data.body("cube").xpos[2]))
    assert (theirs[-1] > HALF + LIFT - 0.01) == is_carried
    np.testing.assert_allclose(pick_up_with(arms, pv.SolverMuJoCo, dt, None), theirs, atol=5e-4)
