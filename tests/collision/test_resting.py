"""Bodies of every shape come to rest on every kind of ground, and stay where they are."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import pluriverse as pv
from tests.collision.pairs import (
    ShapeSpec,
    box,
    capsule,
    collide_pairs,
    cone,
    cylinder,
    ellipsoid,
    hull,
    plane,
    sphere,
)

CUBE = np.array(np.meshgrid([-0.1, 0.1], [-0.1, 0.1], [-0.1, 0.1])).reshape(3, -1).T.astype(np.float64)
SHAPES = {
    "sphere": sphere(0.1),
    "capsule": capsule(0.1, 0.1),
    "box": box(0.1, 0.1, 0.1),
    "cylinder": cylinder(0.1, 0.1),
    "cone": cone(0.1, 0.1),
    "ellipsoid": ellipsoid(0.1, 0.12, 0.08),
    "cube": hull(CUBE),
    "stone": hull(np.random.default_rng(0).normal(size=(30, 3)) * 0.07),
}
GROUNDS = {"plane": plane(), "box": box(2.0, 2.0, 0.1), "hull": hull(CUBE * [20.0, 20.0, 1.0])}
LYING = tuple(Rotation.from_euler("x", np.pi / 2).as_quat())
UPRIGHT = (0.0, 0.0, 0.0, 1.0)
MATERIAL = {"gap": 0.002, "ke": 1e5, "tau": 0.01, "mu": 0.7}


def make_world(ground: ShapeSpec, bodies: list[tuple[str, float, tuple[float, ...]]]) -> pv.ModelBuilder:
    """Return a ground with its surface at z = 0 and bodies above the origin: shape, height, orientation."""
    world = pv.ModelBuilder()
    height = 0.0 if ground.type == GROUNDS["plane"].type else -0.1
    ground.add(world, -1, xform=(0.0, 0.0, height, *UPRIGHT), **MATERIAL)
    for name, z, quat in bodies:
        SHAPES[name].add(world, world.add_body(xform=(0.0, 0.0, z, *quat)), **MATERIAL)
    return world


@pytest.mark.parametrize("ground", GROUNDS)
def test_bodies_dropped_come_to_rest_and_stacks_stand(ground: str):
    """After 3 s nothing moves beyond rounding, no stack has shifted, and each body has its patch."""
    cases = [[(name, 0.15, UPRIGHT)] for name in SHAPES]
    cases += [[(name, 0.15, LYING)] for name in ("capsule", "cylinder", "cone")]
    cases += [
        [(name, 0.1 + 0.2 * level, UPRIGHT) for level in range(4)] for name in ("box", "cube", "cylinder")
    ]
    mixed = ("box", "cylinder", "cube", "cylinder", "box")
    cases.append([(name, 0.1 + 0.2 * level, UPRIGHT) for level, name in enumerate(mixed)])
    builder = pv.ModelBuilder()
    for case in cases:
        builder.add_world(make_world(GROUNDS[ground], case))
    model = builder.finalize("cpu")
    pipeline, solver, control = pv.CollisionPipeline(model), pv.SolverSAP(model), model.control()
    contacts, states = pipeline.contacts(), [model.state(), model.state()]
    for _ in range(600):
        pipeline.collide(states[0], contacts)
        solver.step(states[0], states[1], control, contacts, 0.005)
        states.reverse()
    # A velocity of 1e-5 m/s is a contact force off by 1e-4 of the weight in one step: rounding of contact
    # points (1e-8 m) over the static penetration (1e-4 m).
    assert np.abs(states[0].body_qd.numpy()).max() < 2e-5
    poses, world_of = states[0].body_q.numpy(), model.body_world.numpy()
    counts = contacts.rigid_contact_count.numpy()
    for world, case in enumerate(cases):
        if len(case) > 1:
            assert np.abs(poses[world_of == world, :2]).max() < 1e-5
            assert counts[world] == 4 * len(case)
        elif case[0][0] in ("box", "cube", "cylinder", "cone") and case[0][2] == UPRIGHT:
            assert counts[world] == 4
        elif case[0][2] == LYING:
            assert counts[world] == 2


@pytest.mark.parametrize("ground", ["box", "hull"])
def test_ellipsoid_touches_a_face_at_its_lowest_point(ground: str):
    """Normal and point of a smooth body on a face are exact, not to the tolerance of a search."""
    size = np.array([0.1, 0.12, 0.08])
    turns = Rotation.from_rotvec(np.random.default_rng(0).normal(size=(40, 3)) * [1e-3, 1e-3, 1.0])
    up = turns.inv().apply([0.0, 0.0, 1.0])
    lowest = -(size**2 * up) / np.linalg.norm(size * up, axis=1, keepdims=True)
    heights = 0.1 - 1e-4 + np.linalg.norm(size * up, axis=1)
    poses = np.concatenate([np.zeros((40, 2)), heights[:, None], turns.as_quat()], axis=1)
    origin = np.tile([0.0, 0.0, 0.0, *UPRIGHT], (40, 1))
    for world, contacts in enumerate(collide_pairs(GROUNDS[ground], SHAPES["ellipsoid"], origin, poses)):
        assert contacts.count == 1
        np.testing.assert_allclose(np.abs(contacts.normal), [[0.0, 0.0, 1.0]], atol=1e-7)
        # float32 orientations are off by 1e-7 rad.
        local = contacts.local1 if contacts.shape1[0] % 2 == 1 else contacts.local0
        np.testing.assert_allclose(local[0], lowest[world], atol=2e-7)
