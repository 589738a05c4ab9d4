"""Contacts on a GPU: those of the CPU, up to rounding, for every pair of shapes."""

import numpy as np
import pytest

import pluriverse as pv
from tests.collision.pairs import plane, random_poses, read_contacts
from tests.collision.surface.test_mesh import MESHES
from tests.collision.test_pipeline import KINDS, assert_same_bits, stored

pytestmark = pytest.mark.gpu

GAP = 0.02
# Fused products round otherwise. Iterations (GJK, EPA) end at another point of a flat optimum, but at the
# same distance.
DISTANCE_TOLERANCE = 2e-5


def crowd(seed: int) -> pv.ModelBuilder:
    """Return a world with all shapes, overlapping and apart, over a plane."""
    world = pv.ModelBuilder()
    plane().add(world, -1, gap=GAP)
    rng = np.random.default_rng(seed)
    kinds = [*KINDS, *KINDS, MESHES["bowl"], MESHES["torus"]]
    for kind, pose in zip(kinds, random_poses(rng, len(kinds), 0.35), strict=True):
        pose[2] = abs(pose[2])
        kind.add(world, world.add_body(xform=pose, mass=1.0), gap=GAP)
    return world


def make_model(device: str) -> pv.Model:
    builder = pv.ModelBuilder()
    for seed in range(12):
        builder.add_world(crowd(seed))
    return builder.finalize(device)


def deepest(model: pv.Model, contacts: pv.Contacts) -> list[dict[tuple[int, int], float]]:
    """Return the least distance of each pair of shapes, one table per world."""
    tables = []
    for world in read_contacts(model, model.state(), contacts):
        table: dict[tuple[int, int], float] = {}
        for pair, distance in zip(
            zip(world.shape0.tolist(), world.shape1.tolist(), strict=True), world.distance, strict=True
        ):
            table[pair] = min(distance, table.get(pair, np.inf))
        tables.append(table)
    return tables


def test_every_pair_has_the_distance_of_the_cpu(device: str):
    """Pairs that touch on one device touch on the other, equally deep; none is lost."""
    tables, found = [], []
    for place in ("cpu", device):
        model = make_model(place)
        pipeline = pv.CollisionPipeline(model)
        contacts = pipeline.contacts()
        pipeline.collide(model.state(), contacts)
        tables.append(deepest(model, contacts))
        found.append(contacts.rigid_contact_found.numpy())
        assert (found[-1] == contacts.rigid_contact_count.numpy()).all()
    assert found[0].sum() > 500
    for cpu, gpu in zip(*tables, strict=True):
        for pair in cpu.keys() | gpu.keys():
            a, b = (
                cpu.get(pair, GAP),
                gpu.get(pair, GAP),
            )  # a pair that just touches the gap may be there or not
            assert a == pytest.approx(b, abs=DISTANCE_TOLERANCE), pair


@pytest.mark.parametrize("broad_phase", ["nxn", "sap", None])
def test_every_broad_phase_gives_the_same_bits(device: str, broad_phase: str | None):
    """Whatever finds the near pairs, contacts and their order are those of testing every pair."""
    model = make_model(device)
    state = model.state()
    results = []
    for method in ("explicit", broad_phase):
        pipeline = pv.CollisionPipeline(model, broad_phase=method)
        contacts = pipeline.contacts()
        pipeline.collide(state, contacts)
        results.append(contacts)
    for world in range(model.world_count):
        assert_same_bits(*(stored(contacts, world) for contacts in results), 0)
