"""Helpers for USD stages that scripts written for Newton use."""

import numpy as np
import pytest

import pluriverse as newton
from pluriverse.usd import SchemaResolver, SchemaResolverNewton, SchemaResolverPhysx

pytest.importorskip("pxr")
STAGE = """#usda 1.0
( metersPerUnit = 0.01
  upAxis = "Z" )
def PhysicsScene "Scene" {}
def Xform "Body" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"])
{
    float physics:mass = 2
    double3 xformOp:translate = (100, 0, 0)
    quatf xformOp:orient = (0.70710678, 0, 0, 0.70710678)
    double3 xformOp:scale = (1, 2, 3)
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient", "xformOp:scale"]
    def Mesh "Quad" (prepend apiSchemas = ["PhysicsCollisionAPI", "MadeUpAPI"])
    {
        point3f[] points = [(0, 0, 0), (100, 0, 0), (100, 100, 0), (0, 100, 0), (50, 50, 100)]
        int[] faceVertexCounts = [4, 3, 3, 3, 3]
        int[] faceVertexIndices = [3, 2, 1, 0, 0, 1, 4, 1, 2, 4, 2, 3, 4, 3, 0, 4]
        quatf my:turn = (2, 0, 0, 0)
    }
    def Capsule "Rod"
    {
        uniform token axis = "X"
    }
}
"""


@pytest.fixture(scope="module")
def stage():
    from pxr import Usd

    stage = Usd.Stage.CreateInMemory()
    stage.GetRootLayer().ImportFromString(STAGE)
    return stage


def test_values_of_prims(stage):
    usd = newton.usd
    body, quad = stage.GetPrimAtPath("/Body"), stage.GetPrimAtPath("/Body/Quad")
    assert usd.get_float(body, "physics:mass") == 2.0
    assert usd.get_float(body, "my:number", 7.0) == 7.0
    assert usd.has_attribute(body, "physics:mass")
    assert not usd.has_attribute(body, "physics:nonsense")
    assert usd.get_attributes_in_namespace(quad, "my").keys() == {"my:turn"}
    assert tuple(usd.get_quat(quad, "my:turn")) == (0.0, 0.0, 0.0, 1.0)
    assert usd.get_gprim_axis(stage.GetPrimAtPath("/Body/Rod")) is newton.Axis.X
    assert usd.has_applied_api_schema(quad, "MadeUpAPI")
    assert not usd.has_applied_api_schema(body, "MadeUpAPI")
    assert [str(scene.GetPath()) for scene in usd.get_physics_scenes(stage)] == ["/Scene"]
    assert usd.get_physics_scenes(stage, exclude_paths=["/Scene"]) == []


def test_poses_and_scales(stage):
    body, quad = stage.GetPrimAtPath("/Body"), stage.GetPrimAtPath("/Body/Quad")
    half = np.sqrt(0.5)
    np.testing.assert_allclose(newton.usd.get_transform(body), [100, 0, 0, 0, 0, half, half], atol=1e-6)
    np.testing.assert_allclose(newton.usd.get_scale(body), [1, 2, 3], rtol=1e-6)
    np.testing.assert_allclose(newton.usd.get_scale(quad), [1, 1, 1], rtol=1e-6)
    np.testing.assert_allclose(newton.usd.get_scale(quad, local=False), [1, 2, 3], rtol=1e-6)


def test_a_mesh_of_a_stage_in_metres(stage):
    mesh = newton.usd.get_mesh(stage)
    assert len(mesh.triangles) == 6
    # A pyramid of base 1 m² and height 1 m, its faces pointing outwards.
    assert mesh.mass_properties(1.0).mass == pytest.approx(1.0 / 3.0, rel=1e-6)
    with pytest.raises(ValueError, match="'/Body' of type Xform, but it must be a Mesh"):
        newton.usd.get_mesh(stage.GetPrimAtPath("/Body"))
    with pytest.raises(FileNotFoundError, match=r"no file 'missing\.usd'"):
        newton.usd.get_mesh("missing.usd")


def test_add_usd_takes_resolvers_and_its_report_is_asked_like_a_dictionary(stage):
    builder = newton.ModelBuilder()
    result = builder.add_usd(stage, schema_resolvers=[SchemaResolverNewton(), SchemaResolverPhysx()])
    assert "path_body_map" in result
    assert list(result) == list(result.keys()) == ["path_body_map", "path_joint_map", "path_shape_map"]
    assert result.get("path_body_map") == {"/Body": 0}
    assert result.get("collapse_results") is None

    class Own(SchemaResolver):
        pass

    with pytest.raises(TypeError, match=r"add_usd: schema_resolvers has .*Own.* but there are"):
        builder.add_usd(stage, schema_resolvers=[Own()])
