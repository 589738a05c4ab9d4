"""Elements of Bullet's URDF that are no part of the format: planes without end, files of distances."""

import numpy as np
import pytest
import trimesh

from pluriverse import ModelBuilder, Simulation, SolverMuJoCo, SolverSAP
from pluriverse.importers import AssetError, AssetWarning, UnsupportedAssetError
from pluriverse.types import GeoType

GROUND = """<?xml version="1.0" ?>
<robot name="plane">
  <link name="planeLink">
    <contact><lateral_friction value="1."/><stiffness value="30000"/><damping value="10000"/></contact>
    <inertial><mass value=".0"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial>
    <collision><origin rpy="0 0 0" xyz="0 0 {height}"/><geometry><plane {normal}/></geometry></collision>
  </link>
</robot>"""


@pytest.mark.parametrize("solver", [SolverSAP, SolverMuJoCo])
def test_balls_come_to_rest_on_planes_as_these_lie(solver):
    """A world each: level at 0.5 m, without a normal, which is level, too, and a slope of 45 degrees."""
    builder = ModelBuilder()
    for normal, height in (('normal="0 0 1"', 0.5), ("", 0.25), ('normal="1 0 1"', 0.0)):
        world = ModelBuilder()
        world.add_urdf(GROUND.format(normal=normal, height=height), strict=True)
        assert [GeoType(int(kind)) for kind in world.shape_type] == [GeoType.PLANE]
        ball = world.add_body(xform=((0.0, 0.0, height + 0.2), (0.0, 0.0, 0.0, 1.0)))
        world.add_shape_sphere(ball, radius=0.1)
        builder.add_world(world)
    model = builder.finalize("cpu")
    assert model.shape_material_mu.numpy()[0] == 1.0
    simulation = Simulation(model, solver(model), dt=0.005, threads=1)
    simulation.step(200)
    bodies = simulation.state.body_q.numpy()
    moving = bodies[model.body_mass.numpy() > 0.0]
    np.testing.assert_allclose(moving[:2, 2], (0.6, 0.35), atol=2e-3)
    # On the slope it rolls down along x and stays a radius from the plane.
    assert moving[2, 0] > 0.3
    np.testing.assert_allclose((moving[2, 0] + moving[2, 2]) / np.sqrt(2.0), 0.1, atol=2e-3)


def test_a_plane_that_looks_nowhere_is_refused():
    with pytest.raises(AssetError, match=r"<plane> of link 'planeLink' .*its normal has no direction"):
        ModelBuilder().add_urdf(GROUND.format(normal='normal="0 0 0"', height=0.0))


def test_a_plane_that_looks_down_bounds_from_above():
    builder = ModelBuilder()
    builder.add_urdf(GROUND.format(normal='normal="0 0 -1"', height=1.0))
    x, y, _, _ = builder.shape_transform[0][3:]
    assert 1.0 - 2.0 * (x * x + y * y) == pytest.approx(-1.0)


def test_a_file_of_distances_is_made_of_the_mesh_beside_it(tmp_path):
    text = GROUND.replace("<plane {normal}/>", '<cdf filename="cup.cdf" scale="1 1 1"/>').format(height=0)
    (tmp_path / "cup.urdf").write_text(text)
    with pytest.raises(AssetError, match=r"collision mesh 'cup\.obj' was not found"):
        ModelBuilder().add_urdf(tmp_path / "cup.urdf")
    trimesh.creation.annulus(0.1, 0.2, 0.2).export(tmp_path / "cup.obj")
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match=r"<cdf>, a grid of distances .*of the mesh 'cup\.obj'"):
        builder.add_urdf(tmp_path / "cup.urdf")
    assert [GeoType(int(kind)) for kind in builder.shape_type] == [
        GeoType.MESH
    ]  # its triangles, not its hull
    with pytest.raises(UnsupportedAssetError, match="cdf"):
        ModelBuilder().add_urdf(tmp_path / "cup.urdf", strict=True)
