"""Measures how many pairs of shapes a core collides per second, for every pair of types.

Each world holds one pair whose shapes touch or overlap a little, all at other poses; ground shapes lie still.
With `--hydroelastic` the convex shapes have a pressure field and touch in patches.
The time is that of `CollisionPipeline.collide`, recorded and replayed, on one thread.
"""

import argparse
import itertools
import statistics
import time

import numpy as np
import warp as wp
from rich.console import Console
from rich.table import Table
from scipy.spatial.transform import Rotation

import pluriverse as pv
from pluriverse.geometry import nut_mesh, random_uniform_terrain
from pluriverse.types import GeoType

# Distance from which contacts are created [m].
GAP = 0.002


def make_shapes() -> dict[str, dict]:
    """Return arguments of `add_shape` for every type; shapes are about 0.2 m large."""
    import trimesh

    rng = np.random.default_rng(0)
    stone = rng.normal(size=(60, 3))
    stone = pv.Mesh(*_hull(0.1 * stone / np.linalg.norm(stone, axis=1, keepdims=True)))
    ring = trimesh.creation.torus(0.08, 0.03, major_sections=24, minor_sections=12)
    fine = trimesh.creation.torus(0.08, 0.03, major_sections=96, minor_sections=48)
    nut = nut_mesh(0.1, 0.0175, 0.08, clearance=1e-3)
    ground = random_uniform_terrain((4.0, 4.0), min_height=-0.02, max_height=0.02)
    return {
        "plane": {"type": GeoType.PLANE, "scale": (0.0, 0.0, 0.0)},
        "height field": {"type": GeoType.HFIELD, "src": ground, "scale": (1.0, 1.0, 1.0)},
        "sphere": {"type": GeoType.SPHERE, "scale": (0.1, 0.0, 0.0)},
        "capsule": {"type": GeoType.CAPSULE, "scale": (0.06, 0.08, 0.0)},
        "box": {"type": GeoType.BOX, "scale": (0.1, 0.08, 0.06)},
        "cylinder": {"type": GeoType.CYLINDER, "scale": (0.08, 0.08, 0.0)},
        "cone": {"type": GeoType.CONE, "scale": (0.1, 0.1, 0.0)},
        "ellipsoid": {"type": GeoType.ELLIPSOID, "scale": (0.1, 0.08, 0.06)},
        "hull": {"type": GeoType.CONVEX_MESH, "src": stone, "scale": (1.0, 1.0, 1.0)},
        "mesh": {
            "type": GeoType.MESH,
            "src": pv.Mesh(ring.vertices, ring.faces.reshape(-1)),
            "scale": (1.0, 1.0, 1.0),
        },
        "fine mesh": {
            "type": GeoType.MESH,
            "src": pv.Mesh(fine.vertices, fine.faces.reshape(-1)),
            "scale": (1.0, 1.0, 1.0),
        },
        "nut": {"type": GeoType.MESH, "src": nut, "scale": (1.0, 1.0, 1.0)},
    }


def _hull(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import trimesh

    hull = trimesh.convex.convex_hull(points)
    return hull.vertices, hull.faces.reshape(-1)


def make_model(first: dict, second: dict, world_count: int, config: pv.ShapeConfig) -> pv.Model:
    """Return worlds of two shapes."""
    grounded = first["type"] in (GeoType.PLANE, GeoType.HFIELD)
    world = pv.ModelBuilder()
    bodies = [world.add_body(mass=1.0, inertia=np.eye(3)) for _ in range(1 if grounded else 2)]
    world.add_shape(body=-1 if grounded else bodies[0], cfg=config, **first)
    world.add_shape(body=bodies[-1], cfg=config, **second)
    builder = pv.ModelBuilder()
    builder.replicate(world, world_count)
    return builder.finalize("cpu")


def make_pairs(
    first: dict, second: dict, world_count: int, *, hydroelastic: bool = False
) -> tuple[pv.Model, pv.State]:
    """Return worlds of two shapes and a state in which they touch, found by moving them together."""
    model = make_model(first, second, world_count, pv.ShapeConfig(gap=0.4, density=0.0))
    grounded = first["type"] in (GeoType.PLANE, GeoType.HFIELD)
    bodies = range(1 if grounded else 2)
    rng = np.random.default_rng(1)
    poses = np.zeros((world_count, len(bodies), 7))
    poses[..., 3:] = (
        Rotation.random(world_count * len(bodies), random_state=rng).as_quat().reshape(world_count, -1, 4)
    )
    if grounded:
        poses[:, -1, :3] = np.column_stack(
            [rng.uniform(-1.0, 1.0, (world_count, 2)), np.full(world_count, 0.2)]
        )
    else:
        direction = rng.normal(size=(world_count, 3))
        poses[:, -1, :3] = 0.25 * direction / np.linalg.norm(direction, axis=1, keepdims=True)
    state = model.state()
    pipeline = pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    body_of = model.shape_body.numpy()
    for _ in range(4):
        state.body_q.assign(poses.reshape(-1, 7).astype(np.float32))
        pipeline.collide(state, contacts)
        _move_together(contacts, state, body_of, poses, len(bodies))
    if hydroelastic:
        config = pv.ShapeConfig(gap=0.0, density=0.0, is_hydroelastic=True, kh=1e7)
        model = make_model(first, second, world_count, config)
        state = model.state()
    state.body_q.assign(poses.reshape(-1, 7).astype(np.float32))
    model.shape_gap.fill_(0.0 if hydroelastic else GAP)
    return model, state


def _move_together(
    contacts: pv.Contacts, state: pv.State, body_of: np.ndarray, poses: np.ndarray, body_count: int
) -> None:
    """Move the last body of each world along its deepest contact until that is 1 mm deep."""
    start, count = contacts.rigid_contact_start.numpy(), contacts.rigid_contact_count.numpy()
    shapes = [getattr(contacts, f"rigid_contact_shape{side}").numpy() for side in (0, 1)]
    points = [getattr(contacts, f"rigid_contact_point{side}").numpy() for side in (0, 1)]
    normal = contacts.rigid_contact_normal.numpy()
    body_q = np.concatenate([state.body_q.numpy(), [[0, 0, 0, 0, 0, 0, 1]]])
    for world in range(len(poses)):
        slots = slice(start[world], start[world] + count[world])
        if count[world] == 0:
            continue
        placed = []
        for side in (0, 1):
            pose = body_q[body_of[shapes[side][slots]]]
            placed.append(Rotation.from_quat(pose[:, 3:]).apply(points[side][slots]) + pose[:, :3])
        distance = np.einsum("ij,ij->i", normal[slots], placed[1] - placed[0])
        deepest = int(distance.argmin())
        last = world * body_count + body_count - 1
        sign = 1.0 if body_of[shapes[1][slots][deepest]] == last else -1.0
        poses[world, -1, :3] -= sign * (distance[deepest] + 1e-3) * normal[slots][deepest]


def measure(model: pv.Model, state: pv.State, repeats: int) -> tuple[float, float]:
    """Return pairs per second, and contacts per pair."""
    pipeline = pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    pipeline.collide(state, contacts)
    with wp.ScopedCapture(device="cpu") as capture:
        pipeline.collide(state, contacts)
    rates = []
    for _ in range(repeats):
        begin, count = time.perf_counter(), 0
        while time.perf_counter() - begin < 0.1:
            wp.capture_launch(capture.graph)
            count += 1
        rates.append(count * model.world_count / (time.perf_counter() - begin))
    return statistics.median(rates), float(contacts.rigid_contact_count.numpy().mean())


def main() -> None:
    """Measure all pairs of types and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.collision", description=__doc__)
    parser.add_argument("--worlds", type=int, default=256)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--types", nargs="+", default=list(make_shapes()), metavar="TYPE")
    parser.add_argument("--hydroelastic", action="store_true", help="touch in pressure patches")
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    shapes = make_shapes()
    table = Table("first", "second", "pairs per second", "contacts per pair", title="one thread")
    for first, second in itertools.combinations_with_replacement(arguments.types, 2):
        if {first, second} <= {"plane", "height field"}:
            continue  # both stand still
        pairs = make_pairs(
            shapes[first], shapes[second], arguments.worlds, hydroelastic=arguments.hydroelastic
        )
        rate, contacts = measure(*pairs, arguments.repeats)
        table.add_row(first, second, f"{rate:,.0f}", f"{contacts:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
