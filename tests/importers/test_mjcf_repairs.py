"""MJCF files of the wild: what MuJoCo refuses is repaired and reported in one warning."""

import numpy as np
import pytest
from PIL import Image

from pluriverse import ModelBuilder, SolverSAP
from pluriverse.importers import AssetWarning, UnsupportedAssetError

BALL = 0.4 * 2.0 * (2.0 / (4.0 / 3.0 * np.pi * 1000.0)) ** (2.0 / 3.0)  # of water and 2 kg
TEXTURE = '<texture name="t" type="2d" builtin="flat" width="4" height="4"/>'
MESH = '<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>'
GEOM = '<geom size="0.1"/>'


def mjcf(inside=GEOM, top="", rest="", world=""):
    return f"""<mujoco>{top}<worldbody>{world}<body name="arm"><joint name="hinge"/>{inside}</body>
      </worldbody>{rest}</mujoco>"""


def inertial(text):
    return f'<inertial pos="0 0 0" {text}/>'


def inertia(builder):
    return np.sort(np.linalg.eigvalsh(builder.body_inertia[0]))


def mass(builder):
    return builder.body_mass[0]


SPHERE_MASS = 1000.0 * 4.0 / 3.0 * np.pi * 0.1**3
# Name: (document, feature in the report, value of the builder, what it must be)
REPAIRED = {
    "unknown attribute": (
        mjcf(top='<option apirate="50"/>'),
        "unknown attribute 'apirate'",
        mass,
        SPHERE_MASS,
    ),
    "unknown element": (
        mjcf(top="<hints><hint/></hints>"),
        "unknown element <hints>",
        mass,
        SPHERE_MASS,
    ),
    "undefined material": (
        mjcf(world='<geom name="floor" type="plane" size="1 1 1" material="grid"/>'),
        "undefined material 'grid'",
        lambda b: b.shape_count,
        2,
    ),
    "two inertials": (
        mjcf(inertial('mass="3" diaginertia="1 1 1"') + inertial('mass="5" diaginertia="1 1 1"')),
        "several <inertial>",
        mass,
        3.0,
    ),
    "inertial without a mass": (
        mjcf(inertial('diaginertia="1 1 1"') + GEOM),
        "<inertial> without a mass",
        mass,
        SPHERE_MASS,
    ),
    "geom of size 0": (
        mjcf(f'{GEOM}<geom name="dot" size="0"/>'),
        "geom without extent",
        lambda b: b.shape_count,
        1,
    ),
    "box of thickness 0": (
        mjcf('<geom name="plate" type="box" size="1 2 0"/>'),
        "geom without thickness",
        lambda b: b.shape_scale[0],
        (1.0, 2.0, 0.002),
    ),
    "massless body on a joint": (
        mjcf("", world='<body name="other"><freejoint/><geom size="0.1" mass="3"/></body>'),
        "no mass on a joint",
        lambda b: b.body_mass[1],
        0.03,
    ),
    "largest moment beyond the sum of the others": (
        mjcf(inertial('mass="2" diaginertia="1 5 1"')),
        "impossible inertia",
        lambda b: np.diagonal(b.body_inertia[0]),
        (2.5, 5.0, 2.5),
    ),
    "negative moment": (
        mjcf(inertial('mass="2" diaginertia="1 1 -1"')),
        "negative principal moment",
        inertia,
        np.full(3, BALL),
    ),
    "products beyond the moments": (
        mjcf(inertial('mass="2" fullinertia="1 1 1 3 0 0"')),
        "negative principal moment",
        inertia,
        np.ones(3),
    ),
    "exclusion of a body that there is not": (
        mjcf(rest='<contact><exclude body1="arm" body2="leg"/></contact>'),
        "exclusion of missing elements",
        mass,
        SPHERE_MASS,
    ),
    "two joints of a name": (
        mjcf(world='<body name="leg" pos="0 0 1"><joint name="hinge"/><geom size="0.1"/></body>'),
        "two of a name: joint",
        mass,
        SPHERE_MASS,
    ),
    "joint that cannot move": (
        mjcf(
            world='<body name="leg" pos="0 0 1"><joint name="knee" limited="true" range="0 0"/>'
            '<geom size="0.1"/></body>'
        ),
        "range of no width",
        mass,
        SPHERE_MASS,
    ),
    "range the wrong way round": (
        mjcf(
            world='<body name="leg" pos="0 0 1"><joint name="knee" range="40 -40"/><geom size="0.1"/></body>'
        ),
        "range that ends below its begin",
        lambda b: np.isinf(b.joint_limit_lower).all(),
        True,
    ),
    "range of a ball joint as if of a hinge": (
        mjcf(
            world='<body name="leg" pos="0 0 1"><joint name="hip" type="ball" limited="true" range="-30 60"/>'
            '<geom size="0.1"/></body>'
        ),
        "range of a ball joint",
        mass,
        SPHERE_MASS,
    ),
    "joint of a type that others have": (
        mjcf(world='<body pos="0 0 1"><joint name="knee" type="fixed"/><geom size="0.1"/></body>'),
        "joint of type fixed",
        mass,
        SPHERE_MASS,
    ),
    "tendon of another file": (
        mjcf(
            rest='<tendon><fixed name="t"><joint joint="gone" coef="1"/></fixed></tendon><actuator>'
            '<motor tendon="t"/></actuator><sensor><tendonpos tendon="t"/></sensor>'
        ),
        "tendon along what there is not",
        mass,
        SPHERE_MASS,
    ),
    "actuators of another file": (
        mjcf(rest='<actuator><motor joint="gone"/><position joint="away"/></actuator>'),
        "actuator of what there is not",
        mass,
        SPHERE_MASS,
    ),
    "two meshes of a name": (
        mjcf(top=f"<asset>{2 * MESH}</asset>"),
        "two of a name: mesh",
        mass,
        SPHERE_MASS,
    ),
    "two textures of a name": (
        mjcf(top=f"<asset>{2 * TEXTURE}</asset>"),
        "two of a name: texture",
        mass,
        SPHERE_MASS,
    ),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_what_can_be_repaired_is_repaired_and_reported(case):
    document, feature, value, expected = REPAIRED[case]
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match="not everything was imported as authored") as caught:
        report = builder.add_mjcf(document)
    assert len([warning for warning in caught if warning.category is AssetWarning]) == 1
    assert any(feature in entry.feature for entry in report.repairs), report.repairs
    np.testing.assert_allclose(value(builder), expected, rtol=1e-5)
    builder.finalize("cpu")
    strict = ModelBuilder()
    with pytest.raises(UnsupportedAssetError, match="strict=False"):
        strict.add_mjcf(document, strict=True)
    assert strict.body_count == 0


def test_pictures_that_are_missing_do_no_harm():
    """A texture without its file is a picture less, and nobody is refused for it."""
    document = mjcf(
        '<geom size="0.1" material="m"/>',
        top='<asset><texture name="t" type="2d" file="gone.png"/><material name="m" texture="t"/></asset>',
    )
    with pytest.warns(AssetWarning, match=r"missing texture \(gone\.png\): it is not drawn"):
        ModelBuilder().add_mjcf(document, strict=True)


def test_moments_off_by_rounding_are_no_repair():
    """A rod's moments in six digits, written as a full matrix, miss being possible by rounding."""
    document = mjcf(inertial('mass="2" fullinertia="-3e-19 0.5 0.5 0 0 0"') + GEOM)
    builder = ModelBuilder()
    builder.add_mjcf(document, strict=True)
    np.testing.assert_allclose(inertia(builder), (0.0, 0.5, 0.5), atol=1e-6)


def test_meshes_are_read_in_formats_that_mujoco_does_not_know(tmp_path):
    """A box from a binary glTF file has the mass of the box."""
    import trimesh

    trimesh.creation.box((0.2, 0.4, 0.6)).export(tmp_path / "box.glb")
    (tmp_path / "robot.xml").write_text(
        '<mujoco><asset><mesh file="box.glb"/></asset><worldbody><body><freejoint/>'
        '<geom type="mesh" mesh="box"/></body></worldbody></mujoco>'
    )
    builder = ModelBuilder()
    builder.add_mjcf(tmp_path / "robot.xml")
    np.testing.assert_allclose(builder.body_mass[0], 1000.0 * 0.2 * 0.4 * 0.6, rtol=1e-5)
    assert builder.shape_count == 1


def test_one_image_is_on_all_faces_of_a_cube_texture(tmp_path):
    """Files of hands and kitchens give a cube texture one square image."""
    image = np.arange(12, dtype=np.uint8).reshape(2, 2, 3)
    Image.fromarray(image).save(tmp_path / "marble.png")
    path = tmp_path / "table.xml"
    path.write_text(
        '<mujoco><asset><texture name="marble" type="cube" file="marble.png"/>'
        '<material name="m" texture="marble"/></asset><worldbody><geom type="box" size="1 1 1" material="m"/>'
        "</worldbody></mujoco>"
    )
    builder = ModelBuilder()
    builder.add_mjcf(path)
    (look,) = builder.appearances
    for face in range(6):
        np.testing.assert_array_equal(look.texture.pixels[2 * face : 2 * face + 2, :, :3], image)


@pytest.mark.parametrize("armature", [0.0, 0.1])
def test_a_weightless_body_gets_mass_also_with_armature(armature):
    """No solver takes a body that moves without mass; the inertia of a rotor does not change that."""
    builder = ModelBuilder()
    document = mjcf('<geom size="0.1" mass="0"/>').replace('"hinge"', f'"hinge" armature="{armature}"')
    with pytest.warns(AssetWarning, match="no mass on a joint"):
        builder.add_mjcf(document)
    assert mass(builder) == pytest.approx(SPHERE_MASS)
    SolverSAP(builder.finalize("cpu"))
