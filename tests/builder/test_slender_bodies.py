"""Slender bodies: rods, wires and ropes have little inertia along themselves, and move as in nature."""

import mujoco
import numpy as np
import pytest

from pluriverse import ModelBuilder, ShapeConfig, Simulation, SolverMuJoCo, SolverSAP

UP = (0.0, 0.0, 0.0, 1.0)
ALONG_X = (0.0, 0.5**0.5, 0.0, 0.5**0.5)
ASKEW = (0.3216, 0.5361, 0.2144, 0.7505)
APART = ShapeConfig(has_shape_collision=False)


def make_rod(radius: float, length: float, density: float = 1000.0, turn=UP) -> ModelBuilder:
    builder = ModelBuilder(gravity=0.0)
    rod = builder.add_body()
    cfg = ShapeConfig(density=density)
    builder.add_shape_capsule(rod, radius=radius, half_height=length / 2.0, xform=((0, 0, 0), turn), cfg=cfg)
    return builder


def make_rope(link_count: int, length: float, radius: float) -> ModelBuilder:
    """Return a builder of a rope along x that hangs on the world by its end, of capsules on ball joints."""
    builder = ModelBuilder()
    parent, joints, step = -1, [], length / link_count
    for index in range(link_count):
        link = builder.add_link()
        place = ((0.5 * step, 0.0, 0.0), ALONG_X)
        builder.add_shape_capsule(link, radius=radius, half_height=0.4 * step, xform=place, cfg=APART)
        anchor = (step if index else 0.0, 0.0, 0.0)
        joints.append(builder.add_joint_ball(parent, link, parent_xform=(anchor, UP)))
        parent = link
    builder.add_articulation(joints)
    return builder


def rope_mjcf(link_count: int, length: float, radius: float, dt: float) -> str:
    """Return the rope of `make_rope` for MuJoCo."""
    step = length / link_count
    links = ""
    for index in range(link_count):
        links += (
            f'<body pos="{step if index else 0} 0 0"><joint type="ball"/>'
            f'<geom type="capsule" size="{radius}" '
            f'fromto="{0.1 * step} 0 0 {0.9 * step} 0 0" contype="0" conaffinity="0"/>'
        )
    return f'<mujoco><option timestep="{dt}"/><worldbody>{links}{"</body>" * link_count}</worldbody></mujoco>'


def bend(builder: ModelBuilder, angle: float) -> np.ndarray:
    """Bend a rope to an arc that turns by `angle` [rad] at each joint; return the quaternions, xyzw."""
    turns = np.tile([0.0, np.sin(angle / 2.0), 0.0, np.cos(angle / 2.0)], (len(builder.joint_q) // 4, 1))
    builder.joint_q[:] = turns.ravel().tolist()
    return turns


@pytest.mark.parametrize(("radius", "length", "density"), [(0.0003, 1.0, 1000.0), (0.0008, 2.0, 7800.0)])
def test_a_thin_rod_keeps_momentum_and_energy(radius, length, density):
    model = make_rod(radius, length, density).finalize("cpu")
    moments = model.body_inertia.numpy()[0].diagonal().astype(np.float64)
    assert moments[2] < 1e-6 * moments[0]
    for velocity in ((0.0, 3.0, 0.0), (0.0, 0.0, 20.0), (2.0, 3.0, 20.0)):
        model.joint_qd.assign(np.array([0.5, 0.0, 0.0, *velocity], dtype=np.float32))
        simulation = Simulation(model, dt=0.002)
        simulation.step(500)
        x, y, z, w = simulation.state.body_q.numpy()[0, 3:].astype(np.float64)
        axis = np.array([2.0 * (x * z + y * w), 2.0 * (y * z - x * w), 1.0 - 2.0 * (x * x + y * y)])
        omega = simulation.state.body_qd.numpy()[0, 3:].astype(np.float64)
        spin = omega @ axis
        assert spin == pytest.approx(velocity[2], abs=1e-3)
        across = omega - spin * axis
        assert np.linalg.norm(across) == pytest.approx(np.hypot(*velocity[:2]), abs=2e-5)
        momentum = moments[0] * across + moments[2] * spin * axis
        np.testing.assert_allclose(momentum, moments * velocity, atol=2e-5 * np.linalg.norm(momentum))
        np.testing.assert_allclose(simulation.state.body_q.numpy()[0, :3], [0.5, 0.0, 0.0], atol=1e-5)


def test_a_rod_askew_in_its_frame_is_refused_where_storage_leaves_it_nothing():
    """Single precision holds its axial inertia of 6e-8 of the largest along an axis of the frame only."""
    SolverSAP(make_rod(0.0001, 1.0).finalize("cpu"))
    SolverSAP(make_rod(0.0003, 1.0, turn=ASKEW).finalize("cpu"))
    builder = make_rod(0.0001, 1.0, turn=ASKEW)
    with pytest.raises(ValueError, match=r"body 'body_0' .* leaves none. Turn the frames of slender bodies"):
        SolverSAP(builder.finalize("cpu"))
    builder.joint_armature[3:] = [1e-9] * 3
    SolverSAP(builder.finalize("cpu"))


def test_a_bent_rope_is_sound():
    """Taking the links off one by one as differences lost their axial inertia, and the check refused it."""
    for radius in (0.01, 0.0005):
        builder = make_rope(30, 1.5, radius)
        for index in range(30):
            sign = 1.0 if index % 2 else -1.0
            builder.joint_q[4 * index : 4 * index + 4] = [0.0, sign * np.sin(0.1), 0.0, np.cos(0.1)]
        assert builder.finalize("cpu").dynamics_obstacle is None


def test_a_rope_swings_as_in_mujoco():
    """10 m of 1 cm: steps of first order differ by less than 1 cm of the metre that its end moves."""
    dt, steps = 0.001, 500
    builder = make_rope(40, 10.0, 0.005)
    turns = bend(builder, 0.02)
    reference = mujoco.MjModel.from_xml_string(rope_mjcf(40, 10.0, 0.005, dt))
    data = mujoco.MjData(reference)
    data.qpos[:] = turns[:, [3, 0, 1, 2]].ravel()
    start = None
    for _ in range(steps):
        mujoco.mj_step(reference, data)
        start = data.xpos[-1].copy() if start is None else start
    mujoco.mj_kinematics(reference, data)
    assert np.linalg.norm(data.xpos[-1] - start) > 0.9
    simulation = Simulation(builder.finalize("cpu"), dt=dt)
    simulation.step(steps)
    np.testing.assert_allclose(simulation.state.body_q.numpy()[:, :3], data.xpos[1:], atol=0.01)


def test_a_rope_from_mjcf_keeps_its_inertias():
    text = rope_mjcf(40, 10.0, 0.005, 0.001)
    builder = ModelBuilder()
    report = builder.add_mjcf(text)
    assert not report.entries
    reference = mujoco.MjModel.from_xml_string(text)
    moments = np.linalg.eigvalsh(np.array(builder.body_inertia))
    np.testing.assert_allclose(moments, np.sort(reference.body_inertia[1:]), rtol=1e-6)


def test_solvers_in_single_precision_refuse_what_they_cannot_tell_from_nothing():
    straight = make_rope(40, 10.0, 0.005).finalize("cpu")
    SolverSAP(straight)
    SolverMuJoCo(straight)
    message = r"body 'body_0' .* single precision .* Use free_motion_solve_precision='fp64'"
    with pytest.raises(ValueError, match=message):
        SolverSAP(straight, contact_preset_variant="approx32")
    SolverSAP(straight, contact_preset_variant="approx32", free_motion_solve_precision="fp64")
    with pytest.raises(ValueError, match=r"SolverMuJoCo: body 'body_0' .* single precision .* C engine"):
        SolverMuJoCo(straight, use_mujoco_cpu=False)
    builder = make_rope(40, 10.0, 0.005)
    bend(builder, 0.05)
    bent = builder.finalize("cpu")
    SolverSAP(bent)
    with pytest.raises(ValueError, match=r"joint '.*' .* its entry of the mass matrix .* single precision"):
        SolverSAP(bent, contact_preset_variant="approx32")
    SolverSAP(make_rope(5, 1.0, 0.01).finalize("cpu"), contact_preset_variant="approx32")
