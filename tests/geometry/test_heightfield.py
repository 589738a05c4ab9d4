"""Height fields and the terrain made of them, on the host."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.geometry import (
    discrete_obstacles_terrain,
    flat_terrain,
    random_uniform_terrain,
    sloped_terrain,
    stairs_terrain,
    wave_terrain,
)


def test_grid_points_and_heights_lie_where_the_documentation_says():
    """Rows run along y, columns along x, and the data fill the range of heights that was asked for."""
    data = np.arange(6.0).reshape(2, 3)
    field = pv.Heightfield(data, 2, 3, hx=2.0, hy=1.0, min_z=-1.0, max_z=4.0)
    points = field.vertices.reshape(2, 3, 3)
    np.testing.assert_allclose(points[0, :, 0], [-2.0, 0.0, 2.0])
    np.testing.assert_allclose(points[:, 0, 1], [-1.0, 1.0])
    np.testing.assert_allclose(points[..., 2], data - 1.0)
    np.testing.assert_allclose(field.data, data / 5.0)
    np.testing.assert_allclose(pv.Heightfield(data + 7.0, 2, 3).heights, data + 7.0)


def test_constant_data_lie_at_the_lower_limit_or_at_their_value():
    """A level field has no range to fill."""
    assert (pv.Heightfield(np.full((2, 2), 3.0), 2, 2).heights == 3.0).all()
    assert (pv.Heightfield(np.full((2, 2), 3.0), 2, 2, min_z=1.0, max_z=2.0).heights == 1.0).all()


def test_triangles_face_up_and_cover_the_rectangle():
    """The triangles have upward normals, and their areas seen from above add up."""
    field = pv.Heightfield(np.random.default_rng(0).uniform(size=(5, 7)), 5, 7, 3.0, 2.0)
    a, b, c = field.vertices.astype(np.float64)[field.triangles].transpose(1, 0, 2)
    normals = np.cross(b - a, c - a)
    assert (normals[:, 2] > 0.0).all()
    assert 0.5 * normals[:, 2].sum() == pytest.approx(24.0, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 3)), 3, 2), r"shape \(2, 3\)"),
        ((np.zeros((1, 3)), 1, 3), "two rows and columns"),
        ((np.array([[0.0, np.nan], [0.0, 0.0]]), 2, 2), "row 0, column 1 is nan"),
        ((np.zeros((2, 2)), 2, 2, 0.0), "hx is 0.0 m"),
        ((np.zeros((2, 2)), 2, 2, 1.0, 1.0, 0.0), "Give both"),
        ((np.zeros((2, 2)), 2, 2, 1.0, 1.0, 1.0, 0.0), "in order"),
    ],
)
def test_bad_height_field_is_refused(arguments: tuple, message: str):
    """Shapes, sizes and ranges are checked, and the message names the value."""
    with pytest.raises(ValueError, match=message):
        pv.Heightfield(*arguments)


def test_mesh_becomes_the_height_field_of_its_upper_side():
    """A tilted plate above a floor is seen, the floor below it is not."""
    x, y = (axis.reshape(-1) for axis in np.meshgrid([-1.0, 1.0], [-2.0, 2.0]))
    floor = np.stack([x, y, np.zeros(4)], axis=1)
    plate = np.stack([x, y, 1.0 + 0.5 * x], axis=1)
    mesh = pv.Mesh(np.concatenate([floor, plate]), [0, 1, 3, 0, 3, 2, 4, 5, 7, 4, 7, 6], is_solid=False)
    field = pv.Heightfield.create_from_mesh(mesh, resolution=0.25)
    assert (field.nrow, field.ncol, field.hx, field.hy) == (17, 9, 1.0, 2.0)
    np.testing.assert_allclose(field.heights, np.tile(1.0 + 0.5 * np.linspace(-1, 1, 9), (17, 1)), atol=1e-6)
    with pytest.raises(ValueError, match="nothing lies over"):
        pv.Heightfield.create_from_mesh(pv.Mesh(floor, [0, 1, 3], is_solid=False), resolution=0.5)


def test_terrain_has_the_heights_asked_for():
    """Each kind of terrain has its defining feature in closed form."""
    assert (flat_terrain((3.0, 2.0), height=0.5).heights == 0.5).all()
    rough = random_uniform_terrain((4.0, 3.0), min_height=-0.2, max_height=0.2, step=0.05, seed=3)
    steps = (rough.heights + 0.2) / 0.05
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-5)
    assert rough.heights.min() >= -0.2 - 1e-6
    assert rough.heights.max() <= 0.2 + 1e-6
    again = random_uniform_terrain((4.0, 3.0), min_height=-0.2, max_height=0.2, step=0.05, seed=3)
    np.testing.assert_array_equal(rough.heights, again.heights)
    slope = sloped_terrain((6.0, 6.0), slope=0.3, platform=2.0, resolution=0.5)
    expected = 0.3 * np.clip(3.0 - np.abs(np.linspace(-3.0, 3.0, 13)), 0.0, 2.0)
    np.testing.assert_allclose(slope.heights[6], expected, atol=1e-6)
    stairs = stairs_terrain((6.0, 6.0), step_width=0.5, step_height=-0.1, platform=2.0, resolution=0.25)
    levels = np.unique(np.round(stairs.heights, 5))
    np.testing.assert_allclose(levels, [-0.4, -0.3, -0.2, -0.1, 0.0], atol=1e-6)
    wave = wave_terrain((4.0, 4.0), amplitude=0.2, wave_count=2.0, resolution=0.125)
    assert wave.heights.max() == pytest.approx(0.2, abs=1e-6)
    assert wave.heights.min() == pytest.approx(-0.2, abs=1e-6)
    blocks = discrete_obstacles_terrain((6.0, 6.0), height=0.2, platform=1.0, seed=1)
    assert set(np.unique(np.round(blocks.heights, 6))) <= {np.float32(h) for h in (-0.2, -0.1, 0.0, 0.1, 0.2)}
    middle = blocks.nrow // 2
    assert (blocks.heights[middle - 8 : middle + 8, middle - 8 : middle + 8] == 0.0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: flat_terrain((0.0, 1.0)), "size is"),
        (lambda: random_uniform_terrain((1.0, 1.0), resolution=-1.0), "resolution is -1.0"),
        (lambda: random_uniform_terrain((1.0, 1.0), min_height=1.0, max_height=0.0), "in order"),
        (lambda: stairs_terrain((4.0, 4.0), step_width=0.1, resolution=0.1), "at most half a step"),
        (lambda: discrete_obstacles_terrain((1.0, 1.0), max_width=2.0), "fit the ground"),
        (lambda: sloped_terrain((4.0, 4.0), platform=-1.0), "platform is -1.0"),
    ],
)
def test_bad_terrain_is_refused(make: object, message: str):
    """Sizes and ranges are checked."""
    with pytest.raises(ValueError, match=message):
        make()


def test_the_highest_point_near_a_place_is_where_a_robot_is_put():
    """Of a cone of slope one over 4 m, with its top beside the place; too far outside there is none."""
    x, y = np.meshgrid(np.linspace(-2.0, 2.0, 41), np.linspace(-2.0, 2.0, 41))
    field = pv.Heightfield(3.0 - np.hypot(x - 0.4, y), 41, 41, 2.0, 2.0)
    assert field.highest_near() == pytest.approx(3.0)
    assert field.highest_near(radius=0.3) == pytest.approx(2.9)
    assert field.highest_near(-1.0, 0.0, radius=0.04) == pytest.approx(1.6)
    with pytest.raises(ValueError, match=r"no grid point lies within 0.5 m of \(9.0, 0.0\)"):
        field.highest_near(9.0, 0.0)
