"""What is drawn for friction is what acts, by the ways that the documentation names."""

import textwrap

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.randomization import Choice, Randomizer, friction

GRAVITY = 9.81
DRAWN = (0.1, 0.34, 0.8)
PULL = 10.0  # m/s², along x; with gravity it is that of a slope of 45 degrees
SETTLING, DURATION, DT = 0.1, 0.1, 0.002  # s
# Both solvers regularise friction: what slides at 0.2 m/s and more has the force of Coulomb's law to the
# rounding of velocities, 2**-24 of 2 m/s a step of 1 kg.
TOLERANCE = 1e-3


SLAB = [
    0,
    1,
    2,
    0,
    2,
    3,
    4,
    6,
    5,
    4,
    7,
    6,
    0,
    4,
    5,
    0,
    5,
    1,
    1,
    5,
    6,
    1,
    6,
    2,
    2,
    6,
    7,
    2,
    7,
    3,
    3,
    7,
    4,
    3,
    4,
    0,
]
"""Corners of the triangles of a box, its top first."""


def sliding_block() -> pv.ModelBuilder:
    """A flat block that begins to slide along x; its friction, given here, is what the draw replaces."""
    block = pv.ModelBuilder(gravity=(PULL, 0.0, -GRAVITY))
    body = block.add_body(xform=((0.0, 0.0, 0.05), (0.0, 0.0, 0.0, 1.0)), label="block")
    block.add_shape_box(body, hx=0.2, hy=0.2, hz=0.05, cfg=pv.ShapeConfig(mu=0.6, density=50.0))
    return block


def add_ground(builder: pv.ModelBuilder, kind: str, mu: float) -> None:
    config = pv.ShapeConfig(mu=mu)
    if kind == "plane":
        builder.add_ground_plane(cfg=config)
    elif kind == "height field":
        heights = np.zeros((9, 9), dtype=np.float32)
        field = pv.Heightfield(heights, 9, 9, hx=2.0, hy=2.0, min_z=0.0, max_z=0.0)
        builder.add_shape_heightfield(heightfield=field, cfg=config)
    else:
        corners = np.array([[-2, -2, 0], [2, -2, 0], [2, 2, 0], [-2, 2, 0]], dtype=np.float32)
        floor = pv.Mesh(
            np.vstack([corners, corners - [0.0, 0.0, 1.0]]).astype(np.float32),
            np.array(SLAB),
        )
        builder.add_shape_mesh(-1, mesh=floor, cfg=config)


def acting_friction(speed_before: np.ndarray, speed_after: np.ndarray) -> np.ndarray:
    """Return mu, the impulse along x that the ground took by the one that it gave along z.

    Args:
        speed_before: Velocities [m/s] before, shape [block, 3].
        speed_after: Velocities `DURATION` later.
    """
    change = speed_after - speed_before
    return (PULL * DURATION - change[:, 0]) / (GRAVITY * DURATION + change[:, 2])


def measure(simulation: pv.Simulation) -> tuple[np.ndarray, np.ndarray]:
    """Return the friction drawn for the block of each world, and the one that acts."""
    model = simulation.model
    simulation.step(round(SETTLING / DT))
    before = simulation.state.body_qd.numpy()[:, :3].copy()
    simulation.step(round(DURATION / DT))
    after = simulation.state.body_qd.numpy()[:, :3].copy()
    blocks = model.shape_body.numpy() >= 0
    return model.shape_material_mu.numpy()[blocks], acting_friction(before, after)


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
@pytest.mark.parametrize("ground", ["plane", "height field", "mesh"])
def test_what_is_drawn_for_robots_on_a_shared_ground_acts(ground, solver):
    """SAP takes the smaller coefficient of a pair if asked to, MuJoCo the larger: the ground is to fit."""
    builder = pv.ModelBuilder(gravity=(PULL, 0.0, -GRAVITY))
    builder.replicate(sliding_block(), 6)
    add_ground(builder, ground, {"sap": max(DRAWN), "mujoco": 0.0}[solver])
    model = builder.finalize("cpu")
    made = (
        pv.SolverMuJoCo(model) if solver == "mujoco" else pv.SolverSAP(model, friction_combination="minimum")
    )
    with pv.Simulation(model, made, dt=DT, threads=1) as simulation:
        Randomizer(simulation, [friction(Choice(DRAWN))], seed=3).apply()
        drawn, acting = measure(simulation)
    assert len(set(drawn.tolist())) > 1
    np.testing.assert_allclose(acting, drawn, atol=TOLERANCE)


@pytest.mark.parametrize("solver", [pv.SolverSAP, pv.SolverMuJoCo])
def test_the_friction_of_a_ground_of_each_world_is_drawn_as_well(solver):
    """A ground that belongs to a world is one of its entities; equal coefficients combine to themselves."""
    world = sliding_block()
    add_ground(world, "plane", 1.0)
    builder = pv.ModelBuilder(gravity=(PULL, 0.0, -GRAVITY))
    builder.replicate(world, 6)
    model = builder.finalize("cpu")
    with pv.Simulation(model, solver(model), dt=DT, threads=1) as simulation:
        Randomizer(simulation, [friction(Choice(DRAWN))], seed=3).apply()
        drawn, acting = measure(simulation)
        np.testing.assert_allclose(acting, drawn, atol=TOLERANCE)
        # The ground alone, under a block of 0.6: by the mean of both, or the larger.
        Randomizer(simulation, [friction(Choice(DRAWN), entities="ground_plane")], seed=4).apply()
        mu = model.shape_material_mu.numpy()
        blocks = model.shape_body.numpy() >= 0
        assert len(set(mu[~blocks].tolist())) > 1
        before = simulation.state.body_qd.numpy()[:, :3].copy()
        simulation.step(round(DURATION / DT))
        acting = acting_friction(before, simulation.state.body_qd.numpy()[:, :3])
    pair = mu[blocks], mu[~blocks]
    expected = (
        np.maximum(*pair) if solver is pv.SolverMuJoCo else 2.0 * pair[0] * pair[1] / (pair[0] + pair[1])
    )
    np.testing.assert_allclose(acting, expected, atol=TOLERANCE)


def test_what_a_scene_file_draws_acts(tmp_path):
    """The rule is one of the options of the solver, the friction of the ground with the ground."""
    (tmp_path / "slide.yaml").write_text(
        textwrap.dedent(f"""
        simulation: {{dt: {DT}, num_worlds: 6, solver: {{friction_combination: minimum}}}}
        builder: {{gravity: [{PULL}, 0, {-GRAVITY}]}}
        ground: {{cfg: {{mu: {max(DRAWN)}}}}}
        bodies:
          - id: block
            transform: {{p: [0, 0, 0.05]}}
            shapes: [{{type: box, hx: 0.2, hy: 0.2, hz: 0.05, cfg: {{density: 50}}}}]
        joints: [{{id: root, type: free, child: block}}]
        randomize:
          seed: 3
          terms:
            - {{property: shape_material_mu, distribution: {{choice: {{values: {list(DRAWN)}}}}}}}
        """)
    )
    scene = pv.load_scene(tmp_path / "slide.yaml", device="cpu")
    with scene.simulation() as simulation:
        scene.randomizer(simulation).apply()
        drawn, acting = measure(simulation)
    assert len(set(drawn.tolist())) > 1
    np.testing.assert_allclose(acting, drawn, atol=TOLERANCE)


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
def test_what_a_script_of_the_actor_api_draws_acts(solver):
    """Friction of actors by set_actor_rigid_shape_properties, on a plane that lets it hold."""
    from pluriverse import gymapi

    gym = gymapi.acquire_gym()
    params = gymapi.SimParams()
    params.dt, params.substeps, params.up_axis = DT, 1, gymapi.UP_AXIS_Z
    params.gravity = gymapi.Vec3(PULL, 0.0, -GRAVITY)
    params.solver = solver
    params.solver_options = {"friction_combination": "minimum"} if solver == "sap" else {}
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
    plane.static_friction = plane.dynamic_friction = max(DRAWN) if solver == "sap" else 0.0
    gym.add_ground(sim, plane)
    options = gymapi.AssetOptions()
    options.density = 50.0
    block = gym.create_box(sim, 0.4, 0.4, 0.1, options)
    drawn = np.random.default_rng(3).choice(DRAWN, 6)
    for mu in drawn.tolist():
        env = gym.create_env(sim, gymapi.Vec3(-1.0, -1.0, 0.0), gymapi.Vec3(1.0, 1.0, 1.0), 3)
        pose = gymapi.Transform()
        pose.p = gymapi.Vec3(0.0, 0.0, 0.05)
        actor = gym.create_actor(env, block, pose, "block", 0, 0)
        properties = gym.get_actor_rigid_shape_properties(env, actor)
        properties[0].friction = mu
        gym.set_actor_rigid_shape_properties(env, actor, properties)
    gym.prepare_sim(sim)
    states = gym.acquire_actor_root_state_tensor(sim)
    speeds = []
    for steps in (round(SETTLING / DT), round(DURATION / DT)):
        for _ in range(steps):
            gym.simulate(sim)
        gym.refresh_actor_root_state_tensor(sim)
        speeds.append(states.numpy()[:, 7:10].copy())
    gym.destroy_sim(sim)
    np.testing.assert_allclose(acting_friction(*speeds), drawn, atol=TOLERANCE)
