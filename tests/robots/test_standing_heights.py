"""With nothing set but drives, robots stand as high in `SolverSAP` as in `SolverMuJoCo`, at any step."""

import numpy as np

from pluriverse import JointTargetMode, ModelBuilder, Simulation, SolverSAP, eval_fk
from pluriverse.solvers import SolverMuJoCo
from tests.robots.test_standing import ANYMAL, G1, GO1, Stance, first_match
from tests.robots.test_strangers import locate

SETTLED = 1.0  # s
ROTOR = 0.05  # kg m², of joints whose file gives none: MuJoCo needs it for stiff drives
CREEP_RATIO = 100  # `impratio`, by which MuJoCo divides the creep of friction
# Half sitting, as its file of poses has it.
TALOS = Stance(
    1.0197,
    {
        "leg_left_3": -0.411,
        "leg_left_4": 0.859,
        "leg_left_5": -0.448,
        "leg_right_3": -0.411,
        "leg_right_4": 0.859,
        "leg_right_5": -0.448,
    },
    {"": (5000.0, 200.0)},
)


def stances(robot_assets) -> dict[str, tuple[Stance, ModelBuilder]]:
    """Return a world and a stance for each robot, of 13 to 93 kg."""
    worlds = {name: ModelBuilder() for name in ("go1", "g1", "anymal", "talos")}
    worlds["go1"].add_mjcf(robot_assets / "unitree_go1" / "go1.xml", parse_visuals=False)
    worlds["g1"].add_mjcf(robot_assets / "unitree_g1" / "g1.xml", parse_visuals=False)
    urdf = {"floating": True, "load_visual_shapes": False, "collapse_fixed_joints": True}
    anymal = robot_assets / "anymal_c_simple_description" / "urdf" / "anymal.urdf"
    worlds["anymal"].add_urdf(anymal, **urdf)
    talos = locate("cmeel.prefix", "share/example-robot-data/robots/talos_data/robots/talos_full_v2.urdf")
    if talos is None:
        del worlds["talos"]
    else:
        # Its meshes lie up to 90 mm in each other, which no solver can resolve.
        worlds["talos"].add_urdf(talos, enable_self_collisions=False, **urdf)
    poses = {"go1": GO1, "g1": G1, "anymal": ANYMAL, "talos": TALOS}
    return {name: (poses[name], world) for name, world in worlds.items()}


def stand(robots, solver: str, dt: float, **options) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the heights of the bases [m], and the depths at which the robots rest in `SolverSAP` [m].

    `options` are those of the solver.
    """
    builder = ModelBuilder()
    for _, world in robots.values():
        world.joint_armature[6:] = np.maximum(world.joint_armature[6:], ROTOR)
        builder.add_world(world)
    builder.add_ground_plane()
    model = builder.finalize("cpu")
    state, control = model.state(), model.control()
    q, target = state.joint_q.numpy(), control.joint_target_pos.numpy()
    mode, ke, kd = (getattr(model, f"joint_target_{part}").numpy() for part in ("mode", "ke", "kd"))
    poses = [stance for stance, _ in robots.values()]
    q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    for joint, label in enumerate(model.joint_label):
        stance, name = poses[model.joint_world.numpy()[joint]], label.rsplit("/", 1)[-1]
        if q_start[joint + 1] - q_start[joint] == 7:
            q[q_start[joint] : q_start[joint] + 7] = [0.0, 0.0, stance.height, 0.0, 0.0, 0.0, 1.0]
        elif qd_start[joint + 1] > qd_start[joint]:
            dof = qd_start[joint]
            q[q_start[joint]] = target[dof] = first_match(stance.angles, name, 0.0)
            mode[dof] = JointTargetMode.POSITION
            ke[dof], kd[dof] = first_match(stance.gains, name, None)
    for name, values in (("mode", mode), ("ke", ke), ("kd", kd)):
        getattr(model, f"joint_target_{name}").assign(values)
    solver = (SolverSAP if solver == "sap" else SolverMuJoCo)(model, **options)
    with Simulation(model, solver, dt=dt, threads=1) as simulation:
        simulation.state.joint_q.assign(q)
        simulation.control.joint_target_pos.assign(target)
        eval_fk(model, simulation.state.joint_q, simulation.state.joint_qd, simulation.state)
        simulation.step(round(SETTLED / dt))
        base = model.joint_coord_world_start.numpy()[: len(robots)] + 2
        depths = solver.last_resting_depth.numpy() if isinstance(solver, SolverSAP) else None
        return simulation.state.joint_q.numpy()[base], depths


def test_robots_stand_as_high_as_in_mujoco(robot_assets):
    """Within 2 mm of it, at 2 and 5 ms within 0.5 mm of each other, and less than 0.1 mm deep.

    What differs is how far MuJoCo's own contacts give way, 1 to 2 mm. The feet of the ANYmal, astride, creep
    apart there by millimetres a second, since friction is as soft as the contact is. With friction a
    hundred times as stiff, all that is left is the same 1 to 2 mm.
    """
    robots = stances(robot_assets)
    heights, depths = stand(robots, "sap", 0.002)
    coarse, coarse_depths = stand(robots, "sap", 0.005)
    np.testing.assert_allclose(coarse, heights, rtol=0.0, atol=5e-4)
    assert max(depths.max(), coarse_depths.max()) < 1e-4
    theirs, _ = stand(robots, "mujoco", 0.002)
    astride = list(robots).index("anymal")
    theirs[astride] = stand(
        {"anymal": robots["anymal"]}, "mujoco", 0.002, cone="elliptic", impratio=CREEP_RATIO
    )[0][0]
    np.testing.assert_allclose(heights, theirs, rtol=0.0, atol=2e-3)


def test_boxes_of_ten_grams_to_a_ton_rest_as_high_as_in_mujoco():
    """Contacts of MuJoCo give way by 0.1 mm whatever the mass, those of `SolverSAP` by 1 µm at most."""
    masses = np.array([0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
    halves = 0.5 * (masses / 1000.0) ** (1.0 / 3.0)
    depths = {}
    for solver in (SolverSAP, SolverMuJoCo):
        builder = ModelBuilder()
        for half in halves.tolist():
            world = ModelBuilder()
            body = world.add_body(xform=((0.0, 0.0, half), (0.0, 0.0, 0.0, 1.0)))
            world.add_shape_box(body, hx=half, hy=half, hz=half)
            builder.add_world(world)
        builder.add_ground_plane()
        model = builder.finalize("cpu")
        with Simulation(model, solver(model), dt=0.002, threads=1) as simulation:
            simulation.step(round(SETTLED / 0.002))
            depths[solver] = halves - simulation.state.body_q.numpy()[:, 2]
    assert np.abs(depths[SolverSAP]).max() < 1e-6
    assert np.abs(depths[SolverMuJoCo] - depths[SolverSAP]).max() < 2e-3
    assert np.ptp(depths[SolverMuJoCo]) < 1e-6
