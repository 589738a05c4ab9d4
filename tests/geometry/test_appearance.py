"""Colours and textures: what files give reaches the model, and wrong ones are refused."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.geometry import MeshSkin, TextureMapping

SQUARE = (np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], dtype=float), [[0, 1, 2], [0, 2, 3]])


def test_obj_with_two_materials_and_an_image_has_a_skin(tmp_path):
    """Each triangle of a file keeps the colour or the image of its material."""
    from PIL import Image

    Image.fromarray(np.array([[[255, 0, 0], [0, 255, 0]]], dtype=np.uint8)).save(tmp_path / "map.png")
    (tmp_path / "a.mtl").write_text("newmtl blue\nKd 0 0 1\nnewmtl image\nKd 1 1 1\nmap_Kd map.png\n")
    (tmp_path / "a.obj").write_text(
        "mtllib a.mtl\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvt 0 0\nvt 1 0\nvt 1 1\nvt 0 1\n"
        "usemtl blue\nf 1/1 2/2 3/3\nusemtl image\nf 1/1 3/3 4/4\n"
    )
    mesh = pv.Mesh.load(tmp_path / "a.obj")
    assert mesh.skin is not None
    assert mesh.skin.triangle_part is not None
    looks = {}
    for triangle, part in zip(mesh.triangles, mesh.skin.triangle_part, strict=True):
        centre = mesh.vertices[triangle].mean(axis=0)
        looks[bool(centre[1] > centre[0])] = (mesh.skin.part_color[part], mesh.skin.part_texture[part])
    np.testing.assert_allclose(looks[False][0], [0.0, 0.0, 1.0, 1.0])
    assert looks[False][1] is None
    np.testing.assert_array_equal(looks[True][1].pixels[0, :, :3], [[255, 0, 0], [0, 255, 0]])
    textured = int(np.flatnonzero([texture is not None for texture in mesh.skin.part_texture])[0])
    row = int(np.flatnonzero(mesh.skin.triangle_part == textured)[0])
    # In this file texture coordinates are positions.
    np.testing.assert_allclose(mesh.skin.corner_uv[row], mesh.vertices[mesh.triangles[row]][:, :2])


def test_an_image_that_git_keeps_elsewhere_says_how_to_fetch_it(tmp_path):
    (tmp_path / "wood.png").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    with pytest.raises(ValueError, match=r"wood\.png' is a pointer of Git LFS.*`git lfs pull`"):
        pv.Texture.load(tmp_path / "wood.png")


def test_mirrored_mesh_keeps_texture_coordinates_with_their_corners():
    """A negative scale turns triangles over; each vertex has the coordinates that it had."""
    vertices, triangles = SQUARE
    uv = vertices[np.array(triangles)][:, :, :2]
    mirrored = pv.Mesh(vertices, triangles, skin=MeshSkin(corner_uv=uv)).scaled((-1.0, 1.0, 1.0))
    seen = mirrored.vertices[mirrored.triangles][:, :, :2] * [-1.0, 1.0]
    np.testing.assert_allclose(mirrored.skin.corner_uv, seen)


def test_meshes_of_other_colours_stay_apart_in_a_model():
    """Equal triangles with other skins are two meshes."""
    vertices, triangles = SQUARE
    builder = pv.ModelBuilder()
    cfg = pv.ShapeConfig(density=0.0, has_shape_collision=False)
    for color in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)):
        skin = MeshSkin(part_color=[(*color, 1.0)])
        builder.add_shape_mesh(-1, mesh=pv.Mesh(vertices, triangles, color=color, skin=skin), cfg=cfg)
    assert len(builder.meshes) == 2


def test_appearances_follow_shapes_into_worlds():
    """Copies of a builder keep which shape has which look, whatever the builder had before."""
    red = pv.Appearance(texture=pv.Texture(np.zeros((2, 2, 3), dtype=np.uint8)))
    glass = pv.Appearance(alpha=0.25)
    part = pv.ModelBuilder()
    part.add_shape_sphere(-1, radius=0.1)
    part.set_appearance(part.add_shape_sphere(-1, radius=0.2), red)
    scene = pv.ModelBuilder()
    scene.set_appearance(scene.add_shape_box(-1), glass)
    scene.replicate(part, 2)
    model = scene.finalize("cpu")
    looks = [model.appearances[index] if index >= 0 else None for index in model.shape_appearance.numpy()]
    assert [None if look is None else look.alpha for look in looks] == [0.25, None, 1.0, None, 1.0]
    assert looks[2].texture.content_key == red.texture.content_key


def test_mjcf_material_gives_colour_texture_and_gloss():
    """A geom of a material with a built-in checker has that image; the material's colour applies."""
    builder = pv.ModelBuilder()
    builder.add_mjcf(
        """<mujoco><asset><texture name="t" type="2d" builtin="checker" rgb1="1 0 0" rgb2="0 0 1"
        width="4" height="4"/><material name="m" texture="t" texrepeat="3 2" rgba=".5 1 1 .5"
        specular=".25" shininess=".75"/></asset>
        <worldbody><geom type="box" size="1 1 1" material="m"/></worldbody></mujoco>"""
    )
    look = builder.appearances[int(builder.shape_appearance[0])]
    assert (look.texture_repeat, look.alpha, look.specular, look.shininess) == ((3.0, 2.0), 0.5, 0.25, 0.75)
    assert set(map(tuple, look.texture.pixels[:, :, :3].reshape(-1, 3))) == {(255, 0, 0), (0, 0, 255)}
    np.testing.assert_allclose(builder.shape_color[0], [0.5, 1.0, 1.0])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: pv.Texture(np.zeros((2, 2, 5))), "channels"),
        (lambda: pv.Texture(np.full((2, 2), np.nan)), "pixels go from nan"),
        (lambda: pv.Texture(np.zeros((5, 1)), mapping=TextureMapping.CUBE), "six times"),
        (lambda: pv.Appearance(alpha=1.5), "alpha is 1.5"),
        (lambda: pv.Appearance(texture_repeat=(1.0,)), "two finite numbers"),
        (lambda: pv.Mesh(*SQUARE, skin=MeshSkin(corner_uv=np.zeros((1, 3, 2)))), "corner_uv of the skin"),
        (lambda: MeshSkin(triangle_part=[0, 3], part_color=[(1, 1, 1, 1)]), "belongs to part 3"),
    ],
)
def test_wrong_looks_are_refused(make, message):
    """Errors name what is wrong."""
    with pytest.raises(ValueError, match=message):
        make()
