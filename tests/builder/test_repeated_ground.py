"""A world that has the same ground more than once is told so."""

import warnings

import numpy as np
import pytest

from pluriverse import ModelBuilder, ShapeConfig
from pluriverse.warnings import RepeatedGroundWarning

SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="{size}" {more}/>
    <body pos="{x} 0 1"><freejoint/><geom size="0.1"/></body>
  </worldbody>
</mujoco>
"""


def add_scene(builder, x=0.0, size="0 0 0.05", more=""):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder.add_mjcf(SCENE.format(x=x, size=size, more=more))


def test_a_file_with_a_floor_beside_a_ground_plane():
    """As scripts do that were written for files without."""
    builder = ModelBuilder()
    add_scene(builder, size="5 5 0.05")
    builder.add_ground_plane()
    with pytest.warns(RepeatedGroundWarning, match=r"'ground_plane.*same plane as .*floor.*add_ground_plane"):
        builder.finalize("cpu")


def test_a_file_with_a_floor_that_is_added_again():
    """Each of the four robots brings it; the message counts the planes."""
    builder = ModelBuilder()
    for index in range(4):
        add_scene(builder, x=float(index))
    with pytest.warns(RepeatedGroundWarning, match="and 2 more: .* ignore_names="):
        builder.finalize("cpu")


def test_worlds_that_share_a_ground_of_their_own():
    """A plane of all worlds lies in that of each of them; further ones elsewhere are no matter."""
    robot, builder = ModelBuilder(), ModelBuilder()
    add_scene(robot)
    builder.add_ground_plane()
    builder.replicate(robot, 3)
    with pytest.warns(RepeatedGroundWarning, match=r"world 0\) is the same plane .* and 2 more"):
        builder.finalize("cpu")


def test_other_planes_are_no_matter():
    """One in each world, at other heights, facing elsewhere, of other groups, without contact, or bounded."""
    robot, builder = ModelBuilder(), ModelBuilder()
    add_scene(robot)
    add_scene(robot, more='pos="0 0 -1"')
    add_scene(robot, more='euler="90 0 0"')
    add_scene(robot, more='contype="0" conaffinity="0"')
    robot.add_ground_plane(cfg=ShapeConfig(collision_group=2))
    quat = np.array([0.0, 0.0, 0.0, 1.0])
    robot.add_shape_plane(xform=(np.zeros(3), quat), width=1.0, length=1.0)
    builder.replicate(robot, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RepeatedGroundWarning)
        builder.finalize("cpu")
