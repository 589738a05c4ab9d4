"""A robot imported from USD is the robot imported from MJCF or URDF, where a file of each exists."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

from pluriverse.importers import AssetError
from pluriverse.model_builder import ModelBuilder
from pluriverse.types import JointType
from tests.importers.mechanics import body_poses, mass_matrix
from tests.importers.usd_text import body, collider, entries, stage

pytest.importorskip("pxr", reason="usd-core is not installed: pip install pluriverse[usd]")
pytestmark = pytest.mark.filterwarnings("ignore::pluriverse.importers.AssetWarning")

EXAMPLES = "newton_examples"
ANT_DENSITY = 5.0  # times that of the USD file in the MJCF file
FILE_ROUNDING = 2e-6  # relative: the USD files are in single precision, with six or seven digits
POSE_TOLERANCE = 1e-5  # float32 coordinates along chains of some decimetres


def last(label):
    return label.rpartition("/")[2]


def load(robot_assets, usd, other):
    """Return the builders of the same robot from USD and from the other format."""
    builders = ModelBuilder(), ModelBuilder()
    builders[0].add_usd(robot_assets / EXAMPLES / usd)
    add = builders[1].add_urdf if other.endswith("urdf") else builders[1].add_mjcf
    add(robot_assets / EXAMPLES / other)
    return builders


def dofs_by_body(builder):
    """Return first coordinate, first dof and number of dofs of the joint of each body, by its name."""
    starts = [*builder.joint_qd_start, builder.joint_dof_count]
    return {
        last(builder.body_label[child]): (
            int(builder.joint_q_start[joint]),
            int(starts[joint]),
            int(starts[joint + 1] - starts[joint]),
        )
        for joint, child in enumerate(builder.joint_child)
    }


def match_dofs(usd, other):
    """Return, for each dof of the USD robot, that of the other one with the same body and place."""
    ours, theirs = dofs_by_body(usd), dofs_by_body(other)
    match = np.full(usd.joint_dof_count, -1)
    for name, (_, dof, count) in ours.items():
        assert count == theirs[name][2], name
        match[dof : dof + count] = theirs[name][1] + np.arange(count)
    return match


def set_random_pose(usd, other, rng):
    """Put both robots into the same random configuration."""
    ours, theirs = dofs_by_body(usd), dofs_by_body(other)
    for name, (coord, _, count) in ours.items():
        if count == 6:
            quat = rng.normal(size=4)
            value = [*rng.uniform(-1.0, 1.0, 3), *(quat / np.linalg.norm(quat))]
        else:
            value = rng.uniform(-1.0, 1.0, count)
        usd.joint_q[coord : coord + len(value)] = value
        start = theirs[name][0]
        other.joint_q[start : start + len(value)] = value


def assert_same_poses(usd, other):
    expected = {last(label): pose for label, pose in body_poses(other).items()}
    for label, pose in body_poses(usd).items():
        np.testing.assert_allclose(pose[:3], expected[last(label)][:3], atol=POSE_TOLERANCE)
        turn = abs(pose[3:] @ expected[last(label)][3:])
        assert turn == pytest.approx(1.0, abs=POSE_TOLERANCE)


@pytest.mark.parametrize("seed", [0, 1])
def test_ant_has_the_kinematics_and_mass_matrix_of_the_mjcf_ant(robot_assets, seed):
    """Masses and inertias differ by the density alone; joint frames, limits and armatures are the same."""
    usd, mjcf = load(robot_assets, "ant.usda", "nv_ant.xml")
    match = match_dofs(usd, mjcf)
    masses = {last(label): mass for label, mass in zip(mjcf.body_label, mjcf.body_mass, strict=True)}
    for index, label in enumerate(usd.body_label):
        assert usd.body_mass[index] * ANT_DENSITY == pytest.approx(masses[last(label)], rel=FILE_ROUNDING)
    np.testing.assert_allclose(usd.joint_limit_lower[6:], mjcf.joint_limit_lower[match[6:]], rtol=1e-6)
    np.testing.assert_allclose(usd.joint_limit_upper[6:], mjcf.joint_limit_upper[match[6:]], rtol=1e-6)
    np.testing.assert_allclose(usd.joint_armature[6:], mjcf.joint_armature[match[6:]], rtol=1e-6)
    set_random_pose(usd, mjcf, np.random.default_rng(seed))
    assert_same_poses(usd, mjcf)
    usd.joint_armature[:] = 0.0
    mjcf.joint_armature[:] = 0.0
    expected = mass_matrix(mjcf)[np.ix_(match, match)]
    np.testing.assert_allclose(
        ANT_DENSITY * mass_matrix(usd), expected, rtol=0.0, atol=1e-5 * np.abs(expected).max()
    )


def test_cartpole_has_the_masses_axes_and_limits_of_the_urdf_cartpole(robot_assets):
    """What both files say alike: masses, the rail's inertia, a slide along y and hinges about x."""
    usd, urdf = load(robot_assets, "cartpole.usda", "cartpole.urdf")
    assert list(usd.joint_type) == list(urdf.joint_type)
    assert list(usd.joint_type[:2]) == [JointType.FIXED, JointType.PRISMATIC]
    np.testing.assert_allclose(usd.body_mass, urdf.body_mass, rtol=FILE_ROUNDING)
    np.testing.assert_allclose(usd.body_inertia[0], urdf.body_inertia[0], rtol=FILE_ROUNDING)
    np.testing.assert_allclose(usd.joint_axis, urdf.joint_axis, atol=FILE_ROUNDING)
    np.testing.assert_allclose(usd.joint_limit_lower, urdf.joint_limit_lower)
    np.testing.assert_allclose(usd.joint_limit_upper, urdf.joint_limit_upper)


def test_cartpole_has_the_mass_matrix_of_a_double_pendulum_on_a_cart(robot_assets):
    """Kinetic energy of a cart and two rods of 1 m, from the velocities of their centres in closed form."""
    builder = ModelBuilder()
    builder.add_usd(robot_assets / EXAMPLES / "cartpole.usda")
    first, second = 0.4, -0.9
    builder.joint_q[:] = [0.3, first, second]
    cart, rod, inertia = 1.0, 0.25, 0.0209
    # Velocities (y, z) of the two centres per rate of cart, first and second hinge: a rod at angle a points
    # along (-sin a, cos a), and turns by the sum of the angles before it.
    along = [np.array([-np.cos(a), -np.sin(a)]) for a in (first, first + second)]
    slide = np.array([1.0, 0.0])
    lower = np.column_stack([slide, 0.5 * along[0], np.zeros(2)])
    upper = np.column_stack([slide, along[0] + 0.5 * along[1], 0.5 * along[1]])
    spins = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]])
    expected = rod * (lower.T @ lower + upper.T @ upper) + inertia * spins.T @ spins
    expected[0, 0] += cart
    np.testing.assert_allclose(mass_matrix(builder), expected, rtol=0.0, atol=5e-6)


def test_humanoid_has_the_mass_matrix_of_the_mjcf_humanoid(robot_assets):
    """At zero, between the joints of equal names: the files order the axes of a hip differently.

    (Velocities of the base are those of its centre of mass, and the MJCF torso has the head in it; but motion
    of the joints alone does not depend on that.)
    """
    from pxr import Usd

    usd, mjcf = load(robot_assets, "humanoid.usda", "nv_humanoid.xml")
    document = ElementTree.parse(robot_assets / EXAMPLES / "nv_humanoid.xml")
    hinges = [joint.get("name") for body in document.iter("body") for joint in body.findall("joint")]
    stage = Usd.Stage.Open(str(robot_assets / EXAMPLES / "humanoid.usda"))
    names = []
    for label in usd.joint_label:
        prim = stage.GetPrimAtPath(label)
        tokens = [prim.GetAttribute(f"mjcf:rot{axis}:name").Get() for axis in "XYZ"] if prim else []
        if any(tokens):
            names += [token for token in tokens if token]
        elif prim and prim.GetTypeName() == "PhysicsRevoluteJoint":
            names.append(last(label))
    assert len(names) == usd.joint_dof_count - 6 == 21
    match = [5 + hinges.index(name) for name in names]  # the first is the free joint, with six
    usd.joint_armature[:] = 0.0
    mjcf.joint_armature[:] = 0.0
    assert usd.body_mass.sum() == pytest.approx(mjcf.body_mass.sum(), rel=FILE_ROUNDING)
    expected = mass_matrix(mjcf)[np.ix_(match, match)]
    actual = mass_matrix(usd)[6:, 6:]
    merged = ModelBuilder()
    report = merged.add_usd(robot_assets / EXAMPLES / "humanoid.usda", collapse_fixed_joints=True)
    assert set(report.merged_links) == {
        f"/nv_humanoid/{name}" for name in ("head", "left_hand", "right_hand")
    }
    assert merged.body_count == mjcf.body_count
    assert merged.articulation_label == usd.articulation_label
    np.testing.assert_allclose(mass_matrix(merged)[6:, 6:], actual, rtol=0.0, atol=1e-5 * expected.max())
    # The joint frames of the USD file have five digits.
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=1e-4 * expected.max())


@pytest.mark.parametrize("solimp", ["0.9 0.999 0.001", "0.5 0.6 0.01 0.3 1"])
def test_contacts_at_rest_are_as_stiff_as_in_mjcf(solimp):
    """The impedance of a contact at rest, dmax of solimp, divides into its stiffness."""
    mjcf, usd = ModelBuilder(), ModelBuilder()
    mjcf.add_mjcf(
        f"""<mujoco><worldbody><body><freejoint/>
        <geom type="sphere" size="0.1" solref="0.005 1" solimp="{solimp}"/></body></worldbody></mujoco>"""
    )
    numbers = ", ".join(solimp.split())
    contact = f"uniform double[] mjc:solref = [0.005, 1]\nuniform double[] mjc:solimp = [{numbers}]"
    ball = body("a", collider("Sphere", "ball", f"double radius = 0.1\n{contact}"))
    report = usd.add_usd(stage(ball))
    np.testing.assert_allclose(usd.shape_material_ke_per_mass, mjcf.shape_material_ke_per_mass)
    np.testing.assert_allclose(usd.shape_material_tau, mjcf.shape_material_tau)
    assert "without an impedance curve" in entries(report)["mjc:solimp"].consequence
    with pytest.raises(AssetError, match="prim '/a/ball': dmax of mjc:solimp is nan"):
        usd.add_usd(stage(ball).replace(numbers, "0.9, nan"))
