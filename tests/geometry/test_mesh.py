"""Meshes: arrays, closedness, exact mass properties, files."""

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st

from pluriverse.geometry import Mesh, box_mass_properties

BOX = trimesh.creation.box((0.2, 0.4, 0.6))


def test_box_mesh_weighs_exactly_as_the_box():
    """The divergence theorem is exact for flat faces; what is left is the rounding of float32 vertices."""
    mesh = Mesh(BOX.vertices, BOX.faces).mass_properties(500.0)
    box = box_mass_properties(0.1, 0.2, 0.3, 500.0)
    rounding = 3 * float(np.finfo(np.float32).eps)
    assert mesh.mass == pytest.approx(box.mass, rel=rounding)
    np.testing.assert_allclose(mesh.inertia, box.inertia, rtol=rounding, atol=rounding * box.inertia.max())


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**31 - 1),
    st.floats(-3.0, 3.0),
    st.booleans(),
)
def test_mass_properties_agree_with_trimesh_wherever_the_mesh_is(seed, offset, inside_out):
    """A closed mesh far from the origin or inside out has trimesh's volume, centroid and inertia."""
    points = np.random.default_rng(seed).normal(size=(12, 3)) * [0.1, 0.2, 0.3] + offset
    hull = trimesh.convex.convex_hull(points.astype(np.float32).astype(np.float64))
    faces = hull.faces[:, ::-1] if inside_out else hull.faces
    mass, com, inertia = Mesh(hull.vertices, faces).mass_properties(800.0)
    # The vertices are exact in float32, so only float64 rounding is left, magnified by the distance.
    assert mass == pytest.approx(800.0 * hull.volume, rel=1e-6)
    np.testing.assert_allclose(com, hull.center_mass, atol=1e-6)
    np.testing.assert_allclose(inertia, 800.0 * hull.moment_inertia, atol=1e-5 * np.trace(inertia))


def test_surface_of_a_box_weighs_as_six_sheets():
    """A surface mesh has the mass area * thickness * density, and the inertia of its sheets."""
    mesh = Mesh(BOX.vertices, BOX.faces, is_solid=False)
    mass, com, inertia = mesh.mass_properties(1000.0, thickness=0.001)
    x, y, z = 0.2, 0.4, 0.6
    assert mass == pytest.approx(2.0 * (x * y + y * z + z * x), rel=1e-6)
    np.testing.assert_allclose(com, 0.0, atol=1e-7)
    # About x: sheets at z = ±z/2 and y = ±y/2 and the two x-sheets, per unit area density of 1 kg/m².
    about_x = 2 * x * y * (y**2 / 12 + z**2 / 4) + 2 * x * z * (z**2 / 12 + y**2 / 4)
    about_x += 2 * y * z * (y**2 + z**2) / 12
    assert inertia[0, 0] == pytest.approx(about_x, rel=1e-6)


def test_unshared_vertices_are_closed_all_the_same():
    """Triangles of an STL file share no vertices; equal positions count as one."""
    soup = Mesh(BOX.vertices[BOX.faces].reshape(-1, 3), np.arange(3 * len(BOX.faces)))
    assert soup.is_closed
    assert soup.mass_properties(1.0).mass == pytest.approx(0.048, rel=1e-6)


def test_open_mesh_is_not_weighed():
    mesh = Mesh(BOX.vertices, BOX.faces[:-1], name="lid")
    assert not mesh.is_closed
    with pytest.raises(ValueError, match=r"lid: the surface has holes.*convex_hull"):
        mesh.mass_properties(1.0)


def test_one_triangle_turned_over_is_not_closed():
    """Flipping one triangle leaves edges that run the same way twice: the volume is not defined."""
    faces = BOX.faces.copy()
    faces[0] = faces[0][::-1]
    assert not Mesh(BOX.vertices, faces).is_closed


def test_display_mesh_has_no_mass():
    assert Mesh(BOX.vertices, BOX.faces[:-1], compute_inertia=False).mass_properties(1000.0).mass == 0.0


def test_flat_closed_mesh_is_refused():
    vertices = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    with pytest.raises(ValueError, match="encloses no volume"):
        Mesh(vertices, [[0, 1, 2], [0, 2, 1]]).mass_properties(1.0)


def test_mirrored_mesh_keeps_its_outside_outside():
    """Scaling by a negative factor turns triangles over, so the signed volume stays positive."""
    mirrored = Mesh(BOX.vertices + 1.0, BOX.faces).scaled([-1.0, 1.0, 2.0])
    a, b, c = mirrored.vertices.astype(np.float64)[mirrored.triangles.T]
    assert np.einsum("ij,ij->", a, np.cross(b, c)) / 6.0 == pytest.approx(0.096, rel=1e-6)
    np.testing.assert_allclose(mirrored.mass_properties(1.0).com, [-1.0, 1.0, 2.0], atol=1e-6)


def test_equal_content_has_equal_keys():
    first, same = Mesh(BOX.vertices, BOX.faces), Mesh(BOX.vertices.tolist(), BOX.faces.reshape(-1).tolist())
    assert first.content_key == same.content_key
    assert first.content_key != first.scaled(1.01).content_key
    assert first.content_key != Mesh(BOX.vertices, BOX.faces, is_solid=False).content_key


def test_arrays_cannot_be_written_to():
    with pytest.raises(ValueError, match="read-only"):
        Mesh(BOX.vertices, BOX.faces).vertices[0] = 1.0


@pytest.mark.parametrize(
    ("vertices", "indices", "words"),
    [
        ([[0, 0], [1, 0], [0, 1]], [0, 1, 2], r"shape \(3, 2\)"),
        ([[0, 0, 0], [1, 0, 0], [0, np.nan, 0]], [0, 1, 2], "vertex 2 is"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 1, 3], "triangle 0 uses vertex 3"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 1, -1], "uses vertex -1"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [0, 1], "three indices per triangle"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [0.0, 1.0, 2.0], "integers are needed"),
        ([[0, 0, 0], [1, 0, 0], [0, 1, 0]], [], "no triangles"),
    ],
)
def test_malformed_arrays_are_refused(vertices, indices, words):
    with pytest.raises(ValueError, match=f"^part: .*{words}"):
        Mesh(vertices, indices, name="part")


@pytest.mark.parametrize("scale", [0.0, [1.0, 2.0], [1.0, np.inf, 1.0]])
def test_impossible_scale_is_refused(scale):
    with pytest.raises(ValueError, match="scale is"):
        Mesh(BOX.vertices, BOX.faces).scaled(scale)


@pytest.mark.parametrize("suffix", ["stl", "obj", "dae", "ply", "glb"])
def test_file_formats_give_the_same_mesh(tmp_path, suffix):
    """A box written in each format is read back as the box."""
    path = tmp_path / f"box.{suffix}"
    BOX.export(path)
    mesh = Mesh.load(path, 2.0)
    assert len(mesh.indices) == BOX.faces.size
    np.testing.assert_allclose(mesh.aabb, [[-0.2, -0.4, -0.6], [0.2, 0.4, 0.6]], atol=1e-6)
    assert mesh.mass_properties(1.0).mass == pytest.approx(8 * 0.048, rel=1e-5)


COLLADA = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><created>2024-01-01T00:00:00</created><modified>2024-01-01T00:00:00</modified>
    <unit name="centimeter" meter="0.01"/><up_axis>{up}</up_axis></asset>
  <library_geometries><geometry id="g"><mesh>
    <source id="p"><float_array id="pa" count="12">0 0 0  1 0 0  0 2 0  0 0 3</float_array>
      <technique_common><accessor source="#pa" count="4" stride="3">
        <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
      </accessor></technique_common></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/>
      <p>0 2 1  0 1 3  0 3 2  1 2 3</p></triangles>
  </mesh></geometry></library_geometries>
  <library_visual_scenes><visual_scene id="s"><node id="n">
    <translate>10 20 30</translate><instance_geometry url="#g"/></node>
    <node id="m"><scale>-1 1 1</scale><instance_geometry url="#g"/></node></visual_scene>
  </library_visual_scenes>
  <scene><instance_visual_scene url="#s"/></scene>
</COLLADA>
"""


def test_dae_scene_is_placed_in_metres(tmp_path):
    """Two instances of a tetrahedron of 1 cm³, one moved by the scene graph and one mirrored, in metres."""
    path = tmp_path / "scene.dae"
    path.write_text(COLLADA.format(up="Z_UP"))
    mesh = Mesh.load(path)
    np.testing.assert_allclose(mesh.aabb, [[-0.01, 0.0, 0.0], [0.11, 0.22, 0.33]], atol=1e-6)
    volume = np.array([0.01, 0.02, 0.03]).prod() / 6.0
    # The mirrored one is turned over, so both count with the same sign.
    assert mesh.mass_properties(1.0).mass == pytest.approx(2.0 * volume, rel=1e-4)


def test_up_axis_of_a_dae_file_is_applied_on_request_only(tmp_path):
    path = tmp_path / "scene.dae"
    path.write_text(COLLADA.format(up="Y_UP"))
    assert Mesh.load(path).aabb[1][1] == pytest.approx(0.22)
    upright = Mesh.load(path, apply_up_axis=True)
    assert upright.aabb[1][2] == pytest.approx(0.22)
    assert upright.aabb[0][1] == pytest.approx(-0.33)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("broken.stl", "solid x\nfacet normal 0 0", "broken.stl"),
        ("broken.dae", "<COLLADA><asset>", "not a valid DAE file"),
        ("empty.obj", "# nothing\n", "empty.obj"),
        ("mesh.docx", "?", "cannot be read. Convert it"),
    ],
)
def test_broken_files_are_named(tmp_path, name, text, words):
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=words):
        Mesh.load(tmp_path / name)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.stl"):
        Mesh.load(tmp_path / "gone.stl")


def test_a_file_in_use_is_read_once_and_again_after_a_change(tmp_path):
    """Two robots of one mesh file share it with its hulls, at each scale; a new file is read."""
    path = tmp_path / "box.stl"
    BOX.export(path)
    mesh, half = Mesh.load(path), Mesh.load(path, 0.5)
    assert Mesh.load(path) is mesh
    assert Mesh.load(path, (0.5, 0.5, 0.5)) is half
    np.testing.assert_allclose(half.aabb[1], 0.5 * mesh.aabb[1])
    trimesh.creation.icosphere(1).export(path)
    assert len(Mesh.load(path).vertices) == 42


def collada(unit="", up="Z_UP", nodes=("<matrix>1 0 0 0 0 1 0 0 0 0 1 0 0 0 0 1</matrix>",)):
    """Return a tetrahedron of sides 1, 2, 3 along x, y, z, once per node."""
    instances = "".join(
        f'<node id="n{k}">{node}<instance_geometry url="#g"/></node>' for k, node in enumerate(nodes)
    )
    return f"""<?xml version="1.0"?>
    <COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
    <asset>{unit}<up_axis>{up}</up_axis></asset><library_geometries><geometry id="g"><mesh><source id="p">
    <float_array id="a" count="12">0 0 0 1 0 0 0 2 0 0 0 3</float_array><technique_common>
    <accessor source="#a" count="4" stride="3"><param name="X" type="float"/><param name="Y" type="float"/>
    <param name="Z" type="float"/></accessor></technique_common></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>0 2 1 0 1 3 0 3 2 1 2 3</p>
    </triangles></mesh></geometry></library_geometries><library_visual_scenes><visual_scene id="s">{instances}
    </visual_scene></library_visual_scenes><scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


# Name: (arguments of the document and of the load, bounds, number of tetrahedra)
COLLADA_CASES = {
    "as it stands": ({}, {}, ((0, 0, 0), (1, 2, 3)), 1.0),
    "millimetres": ({"unit": '<unit meter="0.001"/>'}, {}, ((0, 0, 0), (0.001, 0.002, 0.003)), 1e-9),
    "y up, not asked for": ({"up": "Y_UP"}, {}, ((0, 0, 0), (1, 2, 3)), 1.0),
    "y up": ({"up": "Y_UP"}, {"apply_up_axis": True}, ((0, -3, 0), (1, 0, 2)), 1.0),
    "mirrored": ({"nodes": ["<scale>-1 1 1</scale>"]}, {}, ((-1, 0, 0), (0, 2, 3)), 1.0),
    "moved, then scaled": (
        {"nodes": ["<translate>1 0 0</translate><scale>2 2 2</scale>"]},
        {},
        ((1, 0, 0), (3, 4, 6)),
        8.0,
    ),
    "twice": (
        {"nodes": ["<translate>0 0 0</translate>", "<translate>10 0 0</translate>"]},
        {},
        ((0, 0, 0), (11, 2, 3)),
        2.0,
    ),
}


@pytest.mark.parametrize("case", COLLADA_CASES)
def test_dae_files_have_the_size_and_place_of_their_scene(tmp_path, case):
    """Bounds and volume (1 m³ of one tetrahedron) are those of the transforms; mirrored ones stay outward."""
    document, options, bounds, volume = COLLADA_CASES[case]
    path = tmp_path / "part.dae"
    path.write_text(collada(**document))
    mesh = Mesh.load(path, **options)
    np.testing.assert_allclose([mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)], bounds, atol=1e-6)
    corners = mesh.vertices[mesh.indices.reshape(-1, 3)].astype(float)
    signed = np.linalg.det(corners).sum() / 6.0
    assert signed == pytest.approx(volume, rel=1e-5)
