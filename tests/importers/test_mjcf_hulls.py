"""MuJoCo compiles documents without hulls of their meshes, and all else is as it would be with them."""

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.importers.mjcf_source import read_mjcf
from pluriverse.importers.report import ImportReport

TETRAHEDRON = "0 0 0  0.1 0 0  0 0.1 0  0 0 0.1"
FACES = "0 2 1  0 1 3  0 3 2  1 2 3"


def document(compiler: str = "") -> str:
    return f"""<mujoco><compiler {compiler}/><asset>
    <mesh name="tetrahedron" vertex="{TETRAHEDRON}" face="{FACES}"/></asset>
    <worldbody><geom type="plane" size="1 1 1"/><body name="one"><freejoint/>
    <geom name="seen" type="mesh" mesh="tetrahedron" contype="0" conaffinity="0"/>
    <geom name="felt" type="mesh" mesh="tetrahedron" contype="2" conaffinity="5"/>
    <geom name="fitted" type="box" mesh="tetrahedron" contype="4"/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("compiler", ["", 'discardvisual="true"'])
def test_all_but_the_hulls_is_what_mujoco_makes(compiler):
    expected = mujoco.MjModel.from_xml_string(document(compiler))
    for source in (document(compiler), mujoco.MjSpec.from_string(document(compiler))):
        read = read_mjcf(source, edit=lambda *_: None, report=ImportReport("text"))
        for name in ("geom_contype", "geom_conaffinity", "geom_type", "geom_size", "geom_pos", "body_mass"):
            np.testing.assert_array_equal(getattr(read.model, name), getattr(expected, name))
        masks = {geom.name: (geom.contype, geom.conaffinity) for geom in read.spec.geoms}
        assert masks["felt"] == (2, 5)
        if not compiler:
            assert (read.model.mesh_graphadr == -1).all()


def test_the_caller_keeps_a_document_that_collides():
    spec = mujoco.MjSpec.from_string(document())
    builder = pv.ModelBuilder()
    builder.add_mjcf(spec)
    assert [(geom.contype, geom.conaffinity) for geom in spec.geoms if geom.name == "felt"] == [(2, 5)]
    collides = builder.shape_flags & int(pv.ShapeFlags.COLLIDE_SHAPES)
    assert [bool(flag) for flag in collides] == [True, False, True, True]
