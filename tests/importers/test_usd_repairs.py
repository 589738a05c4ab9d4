"""USD stages of the wild: what can be repaired is repaired and reported in one warning; strict refuses it."""

import numpy as np
import pytest

from pluriverse import ModelBuilder
from pluriverse.importers import AssetWarning, UnsupportedAssetError
from tests.importers.usd_text import body, collider, joint, stage

pxr = pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")

CUBE = collider("Cube", "c", "double size = 0.2")
DENSE = collider("Cube", "c", "double size = 0.2\nfloat physics:density = -5", ("PhysicsMassAPI",))
NOTHING = collider("Sphere", "s", "double radius = 0")
WATER = 1000.0 * 0.2**3  # kg, of the cube

# Name: (content of the stage, feature in the report, value of the builder, what it must be)
REPAIRED = {
    "negative mass": (
        body("a", CUBE, mass=-2),
        "negative physics:mass",
        lambda b: b.body_mass[0],
        WATER,
    ),
    "negative density": (
        body("a", DENSE, mass=None),
        "negative physics:density",
        lambda b: b.body_mass[0],
        WATER,
    ),
    "negative moment": (
        body("a", CUBE, mass=3, inertia=(1, -1, 1)),
        "negative principal moment of inertia",
        lambda b: np.diagonal(b.body_inertia[0]),
        np.full(3, 3.0 * 0.2**2 / 6.0),
    ),
    "impossible moments": (
        body("a", CUBE, inertia=(1, 1, 3)),
        "impossible inertia",
        lambda b: np.diagonal(b.body_inertia[0]),
        (1.5, 1.5, 3.0),
    ),
    "limits the wrong way round": (
        body("a", CUBE)
        + joint(
            "RevoluteJoint", "j", "", "/a", "float physics:lowerLimit = 10\nfloat physics:upperLimit = -10"
        ),
        "lower limit above the upper one",
        lambda b: (b.joint_limit_lower[0], b.joint_limit_upper[0]),
        (-np.inf, np.inf),
    ),
    "sphere of size 0": (
        body("a", CUBE + NOTHING),
        "collider without extent",
        lambda b: b.shape_count,
        1,
    ),
}


@pytest.mark.parametrize("case", REPAIRED)
def test_what_can_be_repaired_is_repaired_and_reported(case):
    content, feature, value, expected = REPAIRED[case]
    builder = ModelBuilder()
    with pytest.warns(AssetWarning, match="not everything was imported as authored") as caught:
        report = builder.add_usd(stage(content))
    assert len([warning for warning in caught if warning.category is AssetWarning]) == 1
    (entry,) = (entry for entry in report.repairs if feature in entry.feature)
    assert len(entry.entities) == 1
    np.testing.assert_allclose(value(builder), expected, rtol=1e-5)
    builder.finalize("cpu")
    strict = ModelBuilder()
    with pytest.raises(UnsupportedAssetError, match="strict=False"):
        strict.add_usd(stage(content), strict=True)
    assert strict.body_count == 0


def test_a_negative_mass_counts_as_not_given_in_the_mass_computation_of_usd():
    """What the repair goes by: `ComputeMassProperties` of usd-core makes no difference between -2 and 0."""
    from pxr import Gf, Usd, UsdPhysics

    def solid(prim):
        information = UsdPhysics.RigidBodyAPI.MassInformation()
        information.volume, information.inertia = 0.2**3, Gf.Matrix3f(1.0)
        information.centerOfMass, information.localPos = Gf.Vec3f(0.0), Gf.Vec3f(0.0)
        information.localRot = Gf.Quatf(1.0)
        return information

    masses = []
    for mass in (-2, 0):
        layer = Usd.Stage.CreateInMemory()
        layer.GetRootLayer().ImportFromString(stage(body("a", CUBE, mass=mass)))
        masses.append(UsdPhysics.RigidBodyAPI(layer.GetPrimAtPath("/a")).ComputeMassProperties(solid)[0])
    assert masses == pytest.approx([WATER, WATER])
