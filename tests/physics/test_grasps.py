"""Two fingers lift what people grasp: a cube, a ball, cans, a mug as hulls and as a mesh."""

import numpy as np
import pytest
import trimesh

import pluriverse as pv

GRAVITY = 9.81
MASS = 0.2  # kg, of each object
STIFFNESSES = (None, 1e4, 1e5)
FORCE = 20.0  # N, what each finger pushes with at most
KINDS = ("cube", "ball", "can", "lying can", "capsule", "mug mesh", "mug hulls")
# Half heights of the objects, which stand on a table below the fingers [m].
HALF_HEIGHT = dict(zip(KINDS, (0.0225, 0.025, 0.04, 0.025, 0.055, 0.045, 0.045), strict=True))


def mug_parts() -> list[trimesh.Trimesh]:
    """Return a cup of 24 sides, 4 mm thick and open above, and its handle, a ring through the wall."""
    count, outer, inner, height, bottom = 24, 0.036, 0.032, 0.09, 0.005
    angle = np.linspace(0.0, 2.0 * np.pi, count, endpoint=False)
    circle = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    rings = [(outer, 0.0), (outer, height), (inner, height), (inner, bottom)]
    vertices = [np.column_stack([radius * circle, np.full(count, z)]) for radius, z in rings]
    faces = []
    for side in range(count):
        after = (side + 1) % count
        for ring in range(0, 3 * count, count):
            a, b = ring + side, ring + after
            faces += [(a, b, b + count), (a, b + count, a + count)]
        faces += [(4 * count, after, side), (4 * count + 1, 3 * count + side, 3 * count + after)]
    cup = trimesh.Trimesh(np.vstack([*vertices, [[0, 0, 0], [0, 0, bottom]]]), faces)
    handle = trimesh.creation.torus(0.025, 0.005, major_sections=16, minor_sections=8)
    handle.apply_transform(trimesh.transformations.rotation_matrix(0.5 * np.pi, (1.0, 0.0, 0.0)))
    handle.apply_translation((0.05, 0.0, 0.045))
    for part in (cup, handle):
        assert part.is_volume
        part.apply_translation((0.0, 0.0, -0.045))
    return [cup, handle]


def add_object(builder: pv.ModelBuilder, kind: str, config: pv.ShapeConfig) -> None:
    body = builder.add_body(mass=MASS, inertia=MASS * 0.03**2 * np.eye(3))
    if kind == "cube":
        builder.add_shape_box(body, hx=0.0225, hy=0.0225, hz=0.0225, cfg=config)
    elif kind == "ball":
        builder.add_shape_sphere(body, radius=0.025, cfg=config)
    elif kind == "can":
        builder.add_shape_cylinder(body, radius=0.025, half_height=0.04, cfg=config)
    elif kind == "lying can":
        across = ((0.0, 0.0, 0.0), (np.sqrt(0.5), 0.0, 0.0, np.sqrt(0.5)))
        builder.add_shape_cylinder(body, xform=across, radius=0.025, half_height=0.04, cfg=config)
    elif kind == "capsule":
        builder.add_shape_capsule(body, radius=0.025, half_height=0.03, cfg=config)
    else:
        add = builder.add_shape_mesh if kind == "mug mesh" else builder.add_shape_convex_hull
        for part in mug_parts():
            mesh = pv.Mesh(part.vertices.astype(np.float32), part.faces.reshape(-1).astype(np.int32))
            add(body, mesh=mesh, cfg=config)


def make_scene(kind: str, stiffness: float | None) -> pv.ModelBuilder:
    """A hand that lifts, two fingers that close along y, a table, and an object between the fingers."""
    builder = pv.ModelBuilder(gravity=-GRAVITY)
    config = pv.ShapeConfig(mu=0.8, density=0.0, ke=stiffness)
    drive = {"actuator_mode": pv.JointTargetMode.POSITION}
    hand = builder.add_link(mass=1.0, inertia=0.01 * np.eye(3))
    joints = [
        builder.add_joint_prismatic(-1, hand, axis=(0.0, 0.0, 1.0), target_ke=1e4, target_kd=400.0, **drive)
    ]
    for side in (1.0, -1.0):
        finger = builder.add_link(mass=0.1, inertia=1e-4 * np.eye(3))
        gains = {"target_ke": 1000.0, "target_kd": 100.0, "effort_limit": FORCE}
        joints.append(builder.add_joint_prismatic(hand, finger, axis=(0.0, side, 0.0), **gains, **drive))
        pad = ((0.0, 0.06 * side, 0.0), (0.0, 0.0, 0.0, 1.0))
        builder.add_shape_box(finger, xform=pad, hx=0.01, hy=0.01, hz=0.02, cfg=config)
    builder.add_articulation(joints)
    add_object(builder, kind, config)
    table = ((0.0, 0.0, -HALF_HEIGHT[kind] - 0.05), (0.0, 0.0, 0.0, 1.0))
    builder.add_shape_box(-1, xform=table, hx=0.2, hy=0.2, hz=0.05, cfg=config)
    return builder


CASES = [(kind, stiffness) for kind in KINDS for stiffness in STIFFNESSES]


@pytest.fixture(scope="module")
def model():
    builder = pv.ModelBuilder(gravity=-GRAVITY)
    for kind, stiffness in CASES:
        builder.add_world(make_scene(kind, stiffness))
    return builder.finalize("cpu")


class Grasp:
    """The hands close, lift by 0.2 m in half a second, and hold."""

    def __init__(self, model: pv.Model, solver, dt: float):
        self.simulation = pv.Simulation(model, solver, dt=dt, threads=1)
        self.count, self.dt = model.world_count, dt
        self._command(0.0)
        self.simulation.step(round(0.5 / dt))
        steps = round(0.5 / dt)
        for step in range(steps):
            self._command(0.2 * (step + 1) / steps)
            self.simulation.step()
        self.simulation.step(round(0.2 / dt))

    def _command(self, height: float) -> None:
        target = self.simulation.control.joint_target_pos.numpy().reshape(self.count, -1)
        target[:, :3] = [height, -0.05, -0.05]
        self.simulation.control.joint_target_pos.assign(target.reshape(-1))

    def heights(self) -> np.ndarray:
        """Return the height [m] of hands, fingers and objects, shape [world, 4]."""
        return self.simulation.state.body_q.numpy().reshape(self.count, 4, 7)[:, :, 2].copy()

    def normals(self) -> list[dict[tuple[int, int], np.ndarray]]:
        """Return, per world, the normals of each pair of shapes that touches."""
        contacts = self.simulation.contacts
        start, count = contacts.rigid_contact_start.numpy(), contacts.rigid_contact_count.numpy()
        shapes = contacts.rigid_contact_shape0.numpy(), contacts.rigid_contact_shape1.numpy()
        normal, result = contacts.rigid_contact_normal.numpy(), []
        for world in range(self.count):
            found: dict[tuple[int, int], list[np.ndarray]] = {}
            for row in range(start[world], start[world] + count[world]):
                found.setdefault((int(shapes[0][row]), int(shapes[1][row])), []).append(normal[row].copy())
            result.append({pair: np.array(rows) for pair, rows in found.items()})
        return result


@pytest.mark.parametrize("dt", [0.002, 0.005, 0.01])
def test_sap_carries_what_is_grasped(model, dt):
    """What is held slips by no more than the regularisation lets it, and its normals stay where they are.

    Friction of SAP sticks up to a slip velocity of sigma times what gravity adds in a step [Castro2022], with
    sigma = 1e-3. A flat side is held at several points by each finger.
    """
    grasp = Grasp(model, pv.SolverSAP(model), dt)
    with grasp.simulation:
        before, last = grasp.heights(), grasp.normals()
        turn = np.zeros(len(CASES))
        for _ in range(20):
            grasp.simulation.step()
            now = grasp.normals()
            for world in range(len(CASES)):
                assert now[world].keys() == last[world].keys(), CASES[world]
                for pair, rows in now[world].items():
                    nearest = (rows @ last[world][pair].T).max(axis=1)
                    turn[world] = max(turn[world], np.degrees(np.arccos(np.clip(nearest.min(), -1.0, 1.0))))
            last = now
        grasp.simulation.step(round(0.5 / dt) - 20)
        after = grasp.heights()
    assert (after[:, 3] > 0.195).all(), dict(zip(CASES, after[:, 3], strict=True))
    slip = np.abs((after - before)[:, 3] - (after - before)[:, 0])
    # Twice the law, since the object also turns a little in the grasp, and poses are in single precision.
    assert (slip < 2.0 * 1e-3 * GRAVITY * dt * 0.5 + 1e-6).all(), dict(zip(CASES, slip, strict=True))
    assert turn.max() < 0.5, dict(zip(CASES, turn, strict=True))
    for (kind, _), pairs in zip(CASES, last, strict=True):
        least = {"cube": 4, "ball": 1}.get(kind, 2)
        assert sum(len(rows) for rows in pairs.values()) >= 2 * least, kind


@pytest.mark.filterwarnings("ignore::pluriverse.solvers.mujoco.caveats.MujocoCaveatWarning")
def test_mujoco_carries_what_is_grasped(model):
    """Elliptic cones with an impratio of 10 creep a tenth as much as with 1: it divides R of friction."""
    slips = []
    for ratio in (1.0, 10.0):
        grasp = Grasp(model, pv.SolverMuJoCo(model, cone="elliptic", impratio=ratio), 0.002)
        with grasp.simulation:
            before = grasp.heights()
            grasp.simulation.step(250)
            after = grasp.heights()
        assert (after[:, 3] > 0.18).all(), dict(zip(CASES, after[:, 3], strict=True))
        slips.append(-((after - before)[:, 3] - (after - before)[:, 0]))
    # 0.2 mm in half a second, but for the lying can with 1e4 N/m, whose contacts are underdamped: 1.8 mm.
    assert (slips[1] < 2.5e-3).all(), dict(zip(CASES, slips[1], strict=True))
    assert np.median(slips[1]) < 3e-4
    for kind in ("cube", "ball"):
        held = [case[0] == kind for case in CASES]
        np.testing.assert_allclose(slips[0][held] / slips[1][held], 10.0, rtol=0.2)
