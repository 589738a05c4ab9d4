"""Values: what scripts compute with on the host."""

import copy

import numpy as np
import pytest

from pluriverse import gymapi

ROUNDING = 2.0**-23


def test_rotation_agrees_with_its_matrix():
    """A quarter turn about z takes x to y, and Euler angles come back."""
    quarter = gymapi.Quat.from_axis_angle(gymapi.Vec3(0, 0, 2), np.pi / 2)
    turned = quarter.rotate(gymapi.Vec3(1, 0, 0))
    np.testing.assert_allclose(list(turned), [0, 1, 0], atol=2 * ROUNDING)
    angles = (0.3, -0.8, 2.0)
    np.testing.assert_allclose(gymapi.Quat.from_euler_zyx(*angles).to_euler_zyx(), angles, rtol=4 * ROUNDING)


def test_transform_inverts():
    """A pose times its inverse is no pose, and points agree with the array form."""
    pose = gymapi.Transform(gymapi.Vec3(1, 2, 3), gymapi.Quat.from_euler_zyx(0.1, 0.2, 0.3))
    unit = pose * pose.inverse()
    np.testing.assert_allclose(np.array(unit), [0, 0, 0, 0, 0, 0, 1], atol=8 * ROUNDING)
    points = np.zeros(2, gymapi.Vec3.dtype)
    points["x"] = [1.0, 2.0]
    moved = pose.transform_points(points)
    one = pose.transform_point(gymapi.Vec3(2, 0, 0))
    np.testing.assert_allclose(moved[1].tolist(), list(one), rtol=4 * ROUNDING)


def test_values_are_owned():
    """Chains change in place; copies and assigned parts share nothing."""
    pose = gymapi.Transform(p=gymapi.Vec3(1, 2, 3))
    pose.p.z = 7
    assert pose.p.z == 7.0
    other = copy.copy(pose)
    other.p.x = 9
    part = gymapi.Vec3(4, 5, 6)
    pose.p = part
    part.x = 0
    assert (other.p.x, pose.p.x) == (9.0, 4.0)


def test_structured_records_are_values():
    """An element of a structured array can be assigned to a pose, and is copied."""
    states = np.zeros(2, gymapi.RigidBodyState.dtype)
    assert states.dtype.itemsize == 52
    states["pose"]["r"].fill((0, 0, 0, 1))
    states["pose"]["p"][1] = (1, 2, 3)
    attractor = gymapi.AttractorProperties()
    attractor.target = states["pose"][1]
    states["pose"]["p"].fill((0, 0, 0))
    attractor.target.p.y -= 0.5
    assert list(attractor.target.p) == [1.0, 1.5, 3.0]
    assert gymapi.Vec3.from_buffer(states["vel"]["linear"][0]) == gymapi.Vec3()


def test_members_of_enumerations_are_names_of_the_module():
    assert gymapi.UP_AXIS_Z is gymapi.UpAxis.UP_AXIS_Z
    assert gymapi.ContactCollection(2) is gymapi.CC_ALL_SUBSTEPS
    assert (gymapi.DOF_MODE_POS, gymapi.AXIS_ALL, gymapi.STATE_ALL) == (1, 63, 3)
    modes = np.zeros(3, dtype=np.int32)
    modes.fill(gymapi.DOF_MODE_EFFORT)
    assert modes.tolist() == [3, 3, 3]


def test_misspelt_attributes_are_errors():
    with pytest.raises(AttributeError, match="SimParams has no attribute 'substep'"):
        gymapi.SimParams().substep = 3
    with pytest.raises(TypeError, match="a Vec3 was expected"):
        gymapi.SimParams().gravity = 3.0
