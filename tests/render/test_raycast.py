"""Rays against the same scene in MuJoCo, and what must hold of rays in many worlds."""

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.render import RayCaster, SeenGeometry

SCENE = """<mujoco><asset><hfield name="h" nrow="8" ncol="6" size="2 3 .5 .2"/>
<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1 1 1 1"/></asset><worldbody>
<geom type="plane" size="0 0 1" pos="0 0 -1" euler="3 -2 0"/>
<geom type="sphere" size=".5" pos="1 0 1"/>
<geom type="box" size=".3 .2 .4" pos="-1 .5 1" euler="20 30 40"/>
<geom type="capsule" size=".2 .5" pos="0 1.5 1" euler="60 20 0"/>
<geom type="cylinder" size=".3 .4" pos="0 -1.5 1" euler="30 50 10"/>
<geom type="ellipsoid" size=".3 .5 .2" pos="1.5 1.5 1" euler="10 70 0"/>
<geom type="mesh" mesh="m" pos="-1.5 -1.5 .5" euler="10 20 30"/>
</worldbody></mujoco>"""


def random_rays(count: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Return origins in a box of 6 m and unit directions, both exact in single precision."""
    random = np.random.default_rng(seed)
    origins = random.uniform(-3.0, 3.0, (count, 3)).astype(np.float32)
    directions = random.normal(size=(count, 3)).astype(np.float32)
    return origins.astype(np.float64), directions.astype(np.float64)


def mujoco_ranges(model: mujoco.MjModel, origins: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Return the distances that mj_ray finds [m], infinite for none."""
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    geom = np.zeros(1, dtype=np.int32)
    units = directions / np.linalg.norm(directions, axis=1)[:, None]
    found = np.array(
        [mujoco.mj_ray(model, data, o, d, None, 1, -1, geom) for o, d in zip(origins, units, strict=True)]
    )
    return np.where(found < 0.0, np.inf, found)


def test_ranges_are_those_of_mujoco():
    """Each primitive, a convex mesh and a tilted plane: equal to 1e-5, relative beyond a metre.

    A ray that touches a surface at a grazing angle turns a rounding of 1e-7 into its square root: one in
    five hundred may be off.
    """
    model = mujoco.MjModel.from_xml_string(SCENE)
    builder = pv.ModelBuilder()
    builder.add_mjcf(SCENE)
    origins, directions = random_rays(20_000)
    expected = mujoco_ranges(model, origins, directions)
    found, shapes, normals = RayCaster(builder.finalize("cpu")).cast(0, origins, directions)
    assert (np.isfinite(found) == np.isfinite(expected)).mean() > 0.9995
    both = np.isfinite(found) & np.isfinite(expected)
    error = np.abs(found[both] - expected[both]) / np.maximum(expected[both], 1.0)
    assert np.mean(error > 1.0e-5) < 2.0e-3
    assert np.median(error) < 2.0e-7
    assert set(shapes[both].tolist()) == set(range(7))
    np.testing.assert_allclose(np.linalg.norm(normals[both], axis=1), 1.0, atol=1e-5)
    assert (np.einsum("ij,ij->i", normals[both], directions[both]) <= 0.0).all()


def test_a_ray_without_end_misses_a_small_ellipsoid():
    """Rays through the corners of its box, which pass beside it, meet nothing."""
    builder = pv.ModelBuilder()
    builder.add_shape_ellipsoid(-1, rx=0.02, ry=0.03, rz=0.02)
    x, y = np.meshgrid([-0.018, 0.0, 0.018], [-0.027, 0.0, 0.027], indexing="ij")
    origins = np.column_stack([x.ravel(), y.ravel(), np.full(9, 1.0)])
    distance, shape, _ = RayCaster(builder.finalize("cpu")).cast(
        0, origins, np.tile([0.0, 0.0, -1.0], (9, 1))
    )
    expected = np.full((3, 3), -1)
    expected[1, :] = expected[:, 1] = 0
    np.testing.assert_array_equal(shape, expected.ravel())
    np.testing.assert_array_equal(np.isfinite(distance), shape == 0)


def test_height_field_is_hit_where_its_triangles_are():
    """Rays straight down meet the interpolated height, in triangles cut from corner to corner."""
    heights = np.random.default_rng(3).uniform(0.0, 0.4, (9, 7))
    builder = pv.ModelBuilder()
    builder.add_shape_heightfield(heightfield=pv.Heightfield(heights, 9, 7, 3.0, 4.0))
    points = np.random.default_rng(4).uniform([-2.9, -3.9], [2.9, 3.9], (2000, 2))
    origins = np.column_stack([points, np.full(2000, 5.0)])
    found, _, _ = RayCaster(builder.finalize("cpu")).cast(0, origins, np.tile([0.0, 0.0, -1.0], (2000, 1)))
    x, y = (points[:, 0] + 3.0), (points[:, 1] + 4.0)
    column, row = np.minimum(x.astype(int), 5), np.minimum(y.astype(int), 7)
    u, v = x - column, y - row
    low, right = heights[row, column], heights[row, column + 1]
    back, far = heights[row + 1, column], heights[row + 1, column + 1]
    expected = np.where(
        u >= v, low + u * (right - low) + v * (far - right), low + v * (back - low) + u * (far - back)
    )
    np.testing.assert_allclose(5.0 - found, expected, atol=5e-6)


def test_cone_is_hit_where_its_equation_holds():
    """Points that are hit are on the cone or in its base; rays that miss are never inside."""
    builder = pv.ModelBuilder()
    builder.add_shape_cone(-1, radius=0.5, half_height=0.8)
    origins, directions = random_rays(20_000, seed=5)
    found, shapes, _ = RayCaster(builder.finalize("cpu")).cast(0, origins, directions)
    units = directions / np.linalg.norm(directions, axis=1)[:, None]
    hit = shapes == 0
    point = origins[hit] + found[hit, None] * units[hit]
    side = np.hypot(point[:, 0], point[:, 1]) - 0.5 / 1.6 * (0.8 - point[:, 2])
    assert np.minimum(np.abs(side), np.abs(point[:, 2] + 0.8)).max() < 1.0e-5
    t = np.linspace(0.0, 8.0, 400)[:, None, None]
    path = origins[None, ~hit][:, :3000] + t * units[None, ~hit][:, :3000]
    inside = (np.hypot(path[..., 0], path[..., 1]) < 0.5 / 1.6 * (0.8 - path[..., 2]) - 1e-4) & (
        path[..., 2] > -0.8 + 1e-4
    )
    assert not inside.any()


def make_mixed_worlds(order: list[str]) -> pv.Model:
    """Worlds of different shapes around a shared wall, in some order."""
    kinds = {}
    for number, name in enumerate(["ball", "boxes", "mesh"]):
        part = pv.ModelBuilder()
        random = np.random.default_rng(number)
        if name == "ball":
            part.add_shape_sphere(part.add_body(xform=(1.0, 0.2, 0.1, 0, 0, 0, 1)), radius=0.4)
        elif name == "boxes":
            for place in random.uniform(-1.5, 1.5, (40, 3)):
                part.add_shape_box(part.add_body(xform=(*place, 0, 0, 0, 1)), hx=0.1, hy=0.2, hz=0.05)
        else:
            mesh = pv.Mesh(random.normal(size=(30, 3)), np.arange(30))
            part.add_shape_mesh(-1, mesh=mesh, cfg=pv.ShapeConfig(density=0.0))
        kinds[name] = part
    builder = pv.ModelBuilder()
    for name in order:
        builder.add_world(kinds[name])
    builder.add_shape_box(-1, xform=(0, 0, -2.5, 0, 0, 0, 1), hx=3.0, hy=3.0, hz=0.1)
    return builder.finalize("cpu")


def test_a_world_sees_itself_alone_and_the_same_bits_in_any_company():
    """Distances in a world do not depend on the other worlds, on their order, or on steps of the past."""
    origins, directions = random_rays(3000, seed=7)
    together = RayCaster(make_mixed_worlds(["ball", "boxes", "mesh", "boxes"]), geometry=SeenGeometry.ALL)
    together.update(together.model.state())  # the tree is sorted from another order the second time
    for name, worlds in {"ball": [0], "boxes": [1, 3], "mesh": [2]}.items():
        alone = RayCaster(make_mixed_worlds([name]), geometry=SeenGeometry.ALL)
        expected, _, normals = alone.cast(0, origins, directions)
        for world in worlds:
            distance, shape, normal = together.cast(world, origins, directions)
            np.testing.assert_array_equal(distance, expected)
            np.testing.assert_array_equal(normal, normals)
            seen = together.model.shape_world.numpy()[shape[shape >= 0]]
            assert set(seen.tolist()) <= {world, -1}


def test_rays_follow_bodies_and_what_is_switched_off_is_not_hit():
    """After an update, shapes are where the state says; disabled colliders are gone."""
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.5)
    model = builder.finalize("cpu")
    caster = RayCaster(model)
    state = model.state()
    state.body_q.assign(np.array([[3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]], dtype=np.float32))
    assert caster.cast(0, (0, 0, 0), [(1, 0, 0)])[0][0] == pytest.approx(0.5)  # from inside: where it leaves
    caster.update(state)
    assert caster.cast(0, (0, 0, 0), [(2, 0, 0)])[0][0] == pytest.approx(2.5)
    assert np.isinf(caster.cast(0, (0, 0, 0), [(1, 0, 0)], max_distance=2.0)[0][0])
    model.shape_enabled.zero_()
    caster.update(state)
    assert np.isinf(caster.cast(0, (0, 0, 0), [(1, 0, 0)])[0][0])


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((3, (0, 0, 0), [(1, 0, 0)]), IndexError, "world 3 does not exist; the model has worlds 0 to 0"),
        ((0, (0, 0, 0), [(0, 0, 0)]), ValueError, "direction other than 0"),
        ((0, (0, np.nan, 0), [(1, 0, 0)]), ValueError, "finite origin"),
        ((0, np.zeros((2, 3)), np.ones((3, 3))), ValueError, "one of each per ray"),
    ],
)
def test_wrong_rays_are_refused(arguments, error, message):
    """Errors name the ray."""
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    with pytest.raises(error, match=message):
        RayCaster(builder.finalize("cpu")).cast(*arguments)
