"""Hydroelastic contact: force and moment of pressure patches, and bodies that rest and roll on them."""

import warnings

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse.solvers import SolverMuJoCo
from pluriverse.types import ShapeFlags
from pluriverse.warnings import PluriverseWarning
from tests.collision.hydroelastic.patch_oracle import pressure_patch
from tests.collision.hydroelastic.patches import IDENTITY, PatchPair, find_patches, pair_model
from tests.collision.pairs import ShapeSpec, box, capsule, cone, cylinder, ellipsoid, hull, plane, sphere

KH = 1.0e7
"""Pressure per depth [N/m³] of the shapes here: a 10 cm cube of 1 kg sinks in by 0.1 mm."""
PLANE = plane()
SPHERE = sphere(0.1)
BOX = box(0.1, 0.15, 0.08)
SHAPES = {
    "sphere": SPHERE,
    "capsule": capsule(0.06, 0.12),
    "box": BOX,
    "cylinder": cylinder(0.08, 0.1),
    "cone": cone(0.1, 0.1),
    "ellipsoid": ellipsoid(0.1, 0.13, 0.07),
    "hull": hull(np.random.default_rng(1).normal(size=(30, 3)) * 0.07),
}


def at(x: float, y: float, z: float, turn: Rotation | None = None) -> np.ndarray:
    """Return a pose (position, xyzw)."""
    return np.array([x, y, z, *(Rotation.identity() if turn is None else turn).as_quat()])


def on_plane(shape: ShapeSpec, pose: np.ndarray, **options: float) -> PatchPair:
    return PatchPair(PLANE, shape, None, KH, IDENTITY, pose, **options)


def sphere_force(radius: float, depth: float) -> float:
    """Return the integral of kh (r - sqrt(rho^2 + d^2)), d = r - depth, over the disc that is cut."""
    d = radius - depth
    return np.pi * KH * (radius * (radius**2 - d**2) - 2.0 / 3.0 * (radius**3 - d**3))


def box_force(width: float, length: float, depth: float) -> float:
    """Return the integral of kh min(depth, distance to the side) over a rectangle."""
    return KH * (depth * width * length - depth**2 * (width + length) + 4.0 / 3.0 * depth**3)


def test_a_sphere_on_a_plane_carries_the_integral_of_its_pressure():
    """To the rule of the integration along rays, 0.2 %, whatever the depth, and without moment."""
    depths = [1e-4, 1e-3, 1e-2, 5e-2, 9e-2]
    patches = find_patches([on_plane(SPHERE, at(0.3, 0.2, 0.1 - depth)) for depth in depths])
    for depth, patch in zip(depths, patches, strict=True):
        force = sphere_force(0.1, depth)
        # The position is rounded to single precision: 4e-9 m of the depth, which counts twice.
        tolerance = (2e-3 + 8e-9 / depth) * force
        np.testing.assert_allclose(patch.force, [0.0, 0.0, force], rtol=0.0, atol=tolerance)
        np.testing.assert_allclose(patch.centre, [0.3, 0.2, 0.0], rtol=0.0, atol=1e-4)


def test_a_box_on_a_plane_carries_the_integral_of_its_pressure():
    """However it is turned about the vertical; the pressure falls off along its sides, too."""
    cases = [(depth, angle) for depth in (1e-4, 1e-3, 1e-2) for angle in (0.0, 0.3, 0.7)]
    pairs = [on_plane(BOX, at(0, 0, 0.08 - depth, Rotation.from_euler("z", angle))) for depth, angle in cases]
    for (depth, _), patch in zip(cases, find_patches(pairs), strict=True):
        force = box_force(0.2, 0.3, depth)
        np.testing.assert_allclose(patch.force[2], force, rtol=2e-3)
        # No moment but that of rounding: its arm is far below the size of the box.
        assert np.abs(patch.moment).max() < 1e-4 * force
        # The face yields as a whole, all but the strips along its sides, as wide as it is deep.
        inner = KH * (0.2 - 2.0 * depth) * (0.3 - 2.0 * depth)
        assert 0.97 * inner < patch.stiffness.sum() < 1.01 * KH * 0.2 * 0.3


def test_two_compliant_boxes_yield_like_springs_in_series():
    """A depth d between faces of kh and 3 kh gives the pressure 3/4 kh d."""
    depth = 1e-3
    pairs = [
        PatchPair(BOX, BOX, kh0, kh1, IDENTITY, at(0, 0, 0.16 - depth))
        for kh0, kh1 in ((KH, 3 * KH), (3 * KH, KH), (None, KH), (KH, None))
    ]
    forces = [patch.force[2] for patch in find_patches(pairs)]
    share = np.array([0.75, 0.75, 1.0, 1.0])
    # Along the sides the pressure falls off over a strip as wide as the depth in the box.
    np.testing.assert_allclose(forces, share * KH * depth * 0.06, rtol=1.5e-2)


def test_the_margin_moves_the_surface():
    """A sphere with a margin is a larger sphere, on a plane that is higher by its own margin."""
    depth, margin = 5e-3, 1e-3
    (patch,) = find_patches([on_plane(SPHERE, at(0, 0, 0.1 - depth + 2.0 * margin), margin=margin)])
    np.testing.assert_allclose(patch.force[2], sphere_force(0.1 + margin, depth), rtol=2e-3)
    np.testing.assert_allclose(patch.centre, [0.0, 0.0, margin], rtol=0.0, atol=1e-4)
    np.testing.assert_allclose(patch.contacts.margin, 2.0 * margin, rtol=1e-6)


def random_pairs(first: ShapeSpec, second: ShapeSpec, kh: tuple, count: int, seed: int) -> list[PatchPair]:
    """Return pairs at random poses, pushed together until they overlap by 5 to 25 mm."""
    rng = np.random.default_rng(seed)
    turns = Rotation.random(2 * count, random_state=seed)
    pairs = []
    for index in range(count):
        pose0 = IDENTITY if first is PLANE else at(0, 0, 0, turns[2 * index])
        way = np.array([0.0, 0.0, 1.0]) if first is PLANE else rng.normal(size=3)
        way /= np.linalg.norm(way)
        near, far = 0.0, 0.5
        for _ in range(16):
            middle = 0.5 * (near + far)
            pose1 = at(*(middle * way), turns[2 * index + 1])
            overlap = pressure_patch(first, second, pose0, pose1, 1.0, 1.0, resolution=12).force
            near, far = (middle, far) if overlap.any() else (near, middle)
        pose1 = at(*((near - rng.uniform(0.005, 0.025)) * way), turns[2 * index + 1])
        pairs.append(PatchPair(first, second, *kh, pose0, pose1))
    return pairs


@pytest.mark.parametrize("name", SHAPES)
def test_any_shape_on_a_plane_has_the_force_of_the_volume_of_its_overlap(name):
    """By the divergence theorem, at random poses: to the 48 cells along each axis of the volume, 5 %."""
    pairs = random_pairs(PLANE, SHAPES[name], (None, KH), 6, seed=len(name))
    for pair, patch in zip(pairs, find_patches(pairs), strict=True):
        expected = pressure_patch(pair.first, pair.second, pair.pose0, pair.pose1, None, KH)
        size = np.linalg.norm(expected.force)
        np.testing.assert_allclose(patch.force, expected.force, rtol=0.0, atol=0.05 * size)
        np.testing.assert_allclose(patch.moment, expected.moment, rtol=0.0, atol=5e-3 * size)


ROUND = [("sphere", "sphere"), ("sphere", "capsule"), ("capsule", "capsule"), ("sphere", "ellipsoid")]


@pytest.mark.parametrize(("first", "second"), ROUND)
@pytest.mark.parametrize("kh", [(KH, 3 * KH), (None, KH)], ids=["compliant", "rigid"])
def test_round_shapes_have_the_force_of_the_volume_of_their_overlap(first, second, kh):
    """At random poses, with pressures of their own or one of them rigid."""
    pairs = random_pairs(SHAPES[first], SHAPES[second], kh, 4, seed=7)
    for pair, patch in zip(pairs, find_patches(pairs), strict=True):
        expected = pressure_patch(pair.first, pair.second, pair.pose0, pair.pose1, pair.kh0, pair.kh1)
        size = np.linalg.norm(expected.force)
        np.testing.assert_allclose(patch.force, expected.force, rtol=0.0, atol=0.05 * size)
        np.testing.assert_allclose(patch.moment, expected.moment, rtol=0.0, atol=5e-3 * size)


@pytest.mark.parametrize(("first", "second"), [("box", "box"), ("box", "cylinder"), ("sphere", "hull")])
def test_no_overlap_of_shapes_with_corners_is_lost(first, second):
    """Patches around corners are integrated over cells: the force is right to a quarter, never zero."""
    pairs = random_pairs(SHAPES[first], SHAPES[second], (KH, KH), 8, seed=11)
    for pair, patch in zip(pairs, find_patches(pairs), strict=True):
        expected = pressure_patch(pair.first, pair.second, pair.pose0, pair.pose1, KH, KH)
        size = np.linalg.norm(expected.force)
        np.testing.assert_allclose(patch.force, expected.force, rtol=0.0, atol=0.25 * size)


def test_a_box_that_tilts_over_its_edge_presses_without_jumps():
    """The force changes by less than its own size over the width of a strip of the patch, at every angle."""
    angles = np.linspace(-0.4, 0.4, 321)
    height = 0.078
    pairs = [on_plane(BOX, at(0, 0, height, Rotation.from_euler("y", angle))) for angle in angles]
    patches = find_patches(pairs)
    forces = np.array([patch.force[2] for patch in patches])
    moments = np.array([patch.moment[1] for patch in patches])
    assert forces.min() > 0.0
    # The force is a smooth function of the angle, so that second differences are of second order: the points
    # of two neighbours on one side predict the third to a small part of the force.
    assert np.abs(np.diff(forces, 2)).max() < 0.01 * forces.max()
    assert np.abs(np.diff(moments, 2)).max() < 0.01 * np.abs(moments).max()
    np.testing.assert_allclose(forces, forces[::-1], rtol=5e-3)
    np.testing.assert_allclose(moments, -moments[::-1], atol=5e-3 * np.abs(moments).max())


def resting_world(shape: ShapeSpec, height: float, *, mu: float = 1.0, tau: float = 0.02) -> pv.ModelBuilder:
    world = pv.ModelBuilder()
    world.add_shape_plane(body=-1, width=0.0, length=0.0, cfg=pv.ShapeConfig(mu=mu, tau=0.0))
    body = world.add_body(xform=(at(0.0, 0.0, height)[:3], at(0, 0, 0)[3:]))
    shape.add(world, body, is_hydroelastic=True, kh=KH, mu=mu, tau=tau, gap=0.0)
    return world


RESTING = {"box": (BOX, 0.081), "cylinder": (SHAPES["cylinder"], 0.101), "sphere": (SPHERE, 0.1)}


def resting_model() -> pv.Model:
    builder = pv.ModelBuilder()
    for shape, height in RESTING.values():
        builder.add_world(resting_world(shape, height))
    return builder.finalize("cpu")


@pytest.mark.parametrize("preset", ["approx32", "drake"])
def test_bodies_come_to_rest_at_the_depth_that_carries_them(preset):
    """In single and double precision, without jitter: the weight is the pressure on the patch."""
    model = resting_model()
    simulation = pv.Simulation(model, pv.SolverSAP(model, contact_preset_variant=preset), dt=0.005)
    simulation.step(400)
    before = simulation.state.body_q.numpy().copy()
    simulation.step(100)
    after = simulation.state.body_q.numpy()
    weight = 9.81 * model.body_mass.numpy()
    # The box and the cylinder do not move; a sphere may roll, but keeps its height.
    np.testing.assert_allclose(after[:2], before[:2], rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(after[2, 2], before[2, 2], rtol=0.0, atol=1e-6)
    depth = np.array([height for _, height in RESTING.values()]) - after[:, 2] - [0.001, 0.001, 0.0]
    carried = [box_force(0.2, 0.3, depth[0]), KH * np.pi * 0.08**2 * depth[1], sphere_force(0.1, depth[2])]
    # The cylinder loses what its pressure falls off along the rim: a strip as wide as the depth.
    np.testing.assert_allclose(carried, weight, rtol=1.5e-2)
    contacts = simulation.contacts
    start, count = contacts.rigid_contact_start.numpy(), contacts.rigid_contact_count.numpy()
    force = contacts.rigid_contact_force.numpy()
    for world in range(3):
        total = force[start[world] : start[world] + count[world]].sum(axis=0)
        np.testing.assert_allclose(total, [0.0, 0.0, weight[world]], rtol=0.0, atol=1e-3 * weight[world])


def test_a_stack_of_turned_boxes_stands_still():
    """Patches of faces are found corner by corner, so that nothing moves: less than 10 µm in a second."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    config = pv.ShapeConfig(is_hydroelastic=True, kh=1e8, mu=0.6, tau=0.02, gap=0.0)
    for level in range(4):
        turn = Rotation.from_euler("z", 0.2 * level)
        pose = at(0.003 * level, 0.002 * level, 0.1 + 0.2 * level, turn)
        world.add_shape_box(world.add_body(xform=(pose[:3], pose[3:])), hx=0.1, hy=0.1, hz=0.1, cfg=config)
    simulation = pv.Simulation(world.finalize("cpu"), dt=0.005)
    simulation.step(400)
    before = simulation.state.body_q.numpy().copy()
    simulation.step(200)
    np.testing.assert_allclose(simulation.state.body_q.numpy(), before, rtol=0.0, atol=1e-5)
    assert simulation.report().truncated_step_count == 0


def test_recorded_steps_and_other_worlds_change_no_bit():
    """Eager, recorded, and alone: a world has the same bits."""
    model = resting_model()
    states = []
    for record in (False, True):
        simulation = pv.Simulation(model, dt=0.005, record=record)
        simulation.step(50)
        states.append(simulation.state.body_q.numpy())
    np.testing.assert_array_equal(states[0], states[1])
    alone = pv.ModelBuilder()
    alone.add_world(resting_world(*RESTING["cylinder"]))
    simulation = pv.Simulation(alone.finalize("cpu"), dt=0.005)
    simulation.step(50)
    np.testing.assert_array_equal(simulation.state.body_q.numpy()[0], states[0][1])


def test_a_dropped_sphere_gains_no_energy():
    """It bounces lower each time, or not at all."""
    builder = pv.ModelBuilder()
    builder.add_world(resting_world(SPHERE, 0.3))
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=0.002)
    mass = model.body_mass.numpy()[0]
    energies = []
    for _ in range(40):
        simulation.step(10)
        q, qd = simulation.state.body_q.numpy()[0], simulation.state.body_qd.numpy()[0]
        energies.append(mass * (9.81 * q[2] + 0.5 * qd[:3] @ qd[:3]))
    # A step of 2 ms in free fall has a rounding of its own: g^2 dt^2 / 8 per unit of mass.
    assert max(energies) <= mass * 9.81 * 0.3 * (1.0 + 1e-4)
    assert energies[-1] < 0.35 * energies[0]


def test_dissipation_resists_rolling_by_the_moment_of_the_patch():
    """A patch of radius a that turns at omega resists with (tau + dt) kh pi a^4 / 4 omega, spread or lumped.

    Points stand for sectors of the patch, with the inertia of theirs left out: two thirds of it remain.
    """
    builder = pv.ModelBuilder()
    taus = (0.0, 0.02)
    speed, dt, height = 0.3, 0.002, 0.0965
    for tau in taus:
        builder.add_world(resting_world(SPHERE, height, tau=tau))
    model = builder.finalize("cpu")
    simulation = pv.Simulation(model, dt=dt)
    simulation.step(200)
    height = simulation.state.body_q.numpy()[0, 2]
    velocity = np.zeros((2, 6), dtype=np.float32)
    velocity[:, 0], velocity[:, 4] = speed, speed / height
    simulation.state.joint_qd.assign(velocity.reshape(-1))
    duration = 0.2
    simulation.step(round(duration / dt))
    rolled = simulation.state.body_qd.numpy()
    radius_squared = 0.1**2 - height**2
    mass = model.body_mass.numpy()[0]
    for tau, row in zip(taus, rolled, strict=True):
        rate = (tau + dt) * KH * np.pi * radius_squared**2 / 4.0 / (0.4 * mass * 0.1**2 + mass * height**2)
        loss = -np.log(row[0] / speed)
        assert 0.4 * rate * duration < loss < 1.1 * rate * duration, (tau, loss, rate * duration)
        np.testing.assert_allclose(row[4] * height, row[0], rtol=3e-2)


def test_a_patch_resists_spinning():
    """A box that spins on its face is stopped by friction of its patch, a frictionless one spins on."""
    builder = pv.ModelBuilder()
    for mu in (0.5, 0.0):
        builder.add_world(resting_world(BOX, 0.0798, mu=mu))
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.005)
    velocity = np.zeros((2, 6), dtype=np.float32)
    velocity[:, 5] = 2.0
    simulation.state.joint_qd.assign(velocity.reshape(-1))
    simulation.step(200)
    spin = simulation.state.body_qd.numpy()[:, 5]
    assert abs(spin[0]) < 1e-3
    np.testing.assert_allclose(spin[1], 2.0, rtol=1e-3)


def test_mujoco_uses_the_patches_or_warns():
    """With our contacts a sphere sinks in as far as its pressure carries it; else there is a word."""
    builder = pv.ModelBuilder()
    builder.add_world(resting_world(SPHERE, 0.1))
    model = builder.finalize("cpu")
    with pytest.warns(PluriverseWarning, match="hydroelastic, which MuJoCo lacks"):
        SolverMuJoCo(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solver = SolverMuJoCo(model, use_mujoco_contacts=False)
    simulation = pv.Simulation(model, solver, dt=0.002)
    simulation.step(800)
    depth = 0.1 - simulation.state.body_q.numpy()[0, 2]
    np.testing.assert_allclose(sphere_force(0.1, depth), 9.81 * model.body_mass.numpy()[0], rtol=1e-2)


def test_what_has_sunk_into_a_rigid_shape_is_pushed_out():
    """Wholly below a plane or inside a rigid box a shape meets no surface, and yet is not lost."""
    pairs = [
        on_plane(SPHERE, at(0, 0, -0.15)),
        PatchPair(box(1, 1, 1), SPHERE, None, KH, IDENTITY, at(0, 0, 0.8)),
    ]
    for patch in find_patches(pairs):
        assert patch.contacts.count == 1
        assert patch.force[2] > 0.0
        np.testing.assert_allclose(patch.force[:2], 0.0, atol=1e-6 * patch.force[2])
    # Nothing happens between shapes that are apart.
    (apart,) = find_patches([on_plane(SPHERE, at(0, 0, 0.11))])
    assert apart.contacts.count == 0


def test_contacts_that_do_not_fit_are_counted():
    """A world with room for five of the eight contacts of a patch keeps five and tells of eight."""
    model, state = pair_model([on_plane(BOX, at(0, 0, 0.079))])
    pipeline = pv.CollisionPipeline(model, rigid_contact_max=5)
    contacts = pipeline.contacts()
    pipeline.collide(state, contacts)
    assert (contacts.rigid_contact_count.numpy()[0], contacts.rigid_contact_found.numpy()[0]) == (5, 8)
    assert (contacts.rigid_contact_stiffness.numpy() > 0.0).all()


def test_points_and_patches_live_in_one_world():
    """Only pairs with a hydroelastic shape have patches; other contacts keep the stiffness of materials."""
    world = resting_world(BOX, 0.079)
    body = world.add_body(xform=(np.array([1.0, 0.0, 0.079]), at(0, 0, 0)[3:]))
    BOX.add(world, body)
    builder = pv.ModelBuilder()
    builder.add_world(world)
    model = builder.finalize("cpu")
    pipeline = pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    contacts.rigid_contact_stiffness.fill_(1.0)
    pipeline.collide(model.state(), contacts)
    count = contacts.rigid_contact_count.numpy()[0]
    shapes, stiffness = (
        contacts.rigid_contact_shape1.numpy()[:count],
        contacts.rigid_contact_stiffness.numpy()[:count],
    )
    np.testing.assert_array_equal(np.bincount(shapes, minlength=3), [0, 8, 4])
    np.testing.assert_array_equal(stiffness > 0.0, shapes == 1)


def test_every_broad_phase_finds_the_same_patches():
    """On a plane, which has no bounds, and between shapes: the same contacts, bit for bit."""
    world = pv.ModelBuilder()
    world.add_ground_plane()
    for level in range(3):
        body = world.add_body(xform=(np.array([0.01 * level, 0.0, 0.079 + 0.158 * level]), at(0, 0, 0)[3:]))
        BOX.add(world, body, is_hydroelastic=True, kh=KH, gap=0.0)
    model = world.finalize("cpu")
    found = []
    for broad_phase in ("explicit", "nxn", "sap"):
        pipeline = pv.CollisionPipeline(model, broad_phase=broad_phase)
        contacts = pipeline.contacts()
        pipeline.collide(model.state(), contacts)
        count = contacts.rigid_contact_count.numpy()[0]
        assert count == 24
        found.append(
            [contacts.rigid_contact_point0.numpy()[:count], contacts.rigid_contact_stiffness.numpy()[:count]]
        )
    for other in found[1:]:
        np.testing.assert_array_equal(other[0], found[0][0])
        np.testing.assert_array_equal(other[1], found[0][1])


def test_models_without_hydroelastic_shapes_have_no_stiffness_of_contacts():
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(body=builder.add_body(), radius=0.1)
    model = builder.finalize("cpu")
    assert not model.has_hydroelastic_shapes
    assert pv.CollisionPipeline(model).contacts().rigid_contact_stiffness is None


def test_planes_lose_the_mark_and_others_without_stiffness_are_refused():
    builder = pv.ModelBuilder()
    config = pv.ShapeConfig(is_hydroelastic=True, kh=0.0)
    plane_shape = builder.add_shape_plane(body=-1, width=0.0, length=0.0, cfg=config)
    assert builder.shape_flags[plane_shape] & ShapeFlags.HYDROELASTIC == 0
    builder.add_shape_sphere(body=builder.add_body(), radius=0.1, cfg=config, label="ball")
    with pytest.raises(
        ValueError, match=r"shape 'ball' .* kh is 0.0 N/m³, but a hydroelastic shape needs kh > 0"
    ):
        pv.CollisionPipeline(builder.finalize("cpu"))


def test_hydroelastic_shapes_that_can_meet_a_surface_warn_once_per_kind_of_surface():
    """Named with their number, over all worlds; not those filtered out, rigid or in other worlds."""
    vertices = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]) * 0.1
    mesh = pv.Mesh(vertices, np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2]]), compute_inertia=False)
    field = pv.Heightfield(np.zeros((3, 3)), 3, 3)
    soft = pv.ShapeConfig(is_hydroelastic=True)
    builder = pv.ModelBuilder()
    for _ in range(3):
        world = pv.ModelBuilder()
        world.add_shape_heightfield(heightfield=field)
        world.add_shape_box(world.add_body(), hx=0.1, hy=0.1, hz=0.1)
        world.add_shape_sphere(world.add_body(), radius=0.1, cfg=soft, label="ball")
        tool = world.add_shape_mesh(world.add_body(mass=1.0, inertia=np.eye(3)), mesh=mesh)
        filtered = world.add_shape_sphere(world.add_body(), radius=0.1, cfg=soft, label="pad")
        world.add_shape_collision_filter_pair(tool, filtered)
        builder.add_world(world)
    alone = pv.ModelBuilder()
    alone.add_ground_plane()
    alone.add_shape_sphere(alone.add_body(), radius=0.1, cfg=soft, label="alone")
    builder.add_world(alone)
    with pytest.warns(PluriverseWarning) as told:
        pv.CollisionPipeline(builder.finalize("cpu"))
    texts = sorted(str(warning.message) for warning in told)
    assert [text.partition(" are ")[0] for text in texts] == [
        "shape 'ball' (index 2, world 0) and 2 others",
        "shape 'ball' (index 2, world 0) and 5 others",
    ]
    assert "can meet a triangle mesh that is not closed" in texts[0]
    assert "approximate_meshes" in texts[0]
    assert "can meet a height field" in texts[1]


def test_scene_files_mark_shapes(tmp_path):
    """`is_hydroelastic` and `kh` of a scene act: the ball rests at the depth of its pressure."""
    path = tmp_path / "scene.yaml"
    path.write_text(
        """
ground: {}
bodies:
  - id: ball
    transform: {p: [0, 0, 0.1]}
    shapes:
      - {type: sphere, radius: 0.1, cfg: {is_hydroelastic: true, kh: 1e7}}
joints:
  - {id: free, type: free, parent: -1, child: ball}
"""
    )
    scene = pv.load_scene(path, device="cpu")
    assert not scene.unsupported_features
    simulation = pv.Simulation(scene.model, dt=0.005)
    simulation.step(400)
    depth = 0.1 - simulation.state.body_q.numpy()[0, 2]
    weight = 9.81 * scene.model.body_mass.numpy()[0]
    np.testing.assert_allclose(sphere_force(0.1, depth), weight, rtol=1e-2)
