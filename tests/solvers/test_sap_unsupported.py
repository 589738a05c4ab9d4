"""SolverSAP says what of a model only SolverMuJoCo simulates."""

import warnings

import pytest

from pluriverse import ModelBuilder, SolverSAP
from pluriverse.mujoco_attributes.registration import register_custom_attributes
from pluriverse.solvers.sap.unsupported import UnsupportedFeatureWarning

ARM = """
<mujoco>
  <worldbody>
    <body name="a">
      <joint name="j" axis="0 1 0" stiffness="3"/><geom size="0.1" pos="0 0 1"/>
      <body name="b" pos="0 0 1"><joint name="k" axis="0 1 0"/><geom size="0.1" pos="0 0 1"/></body>
    </body>
  </worldbody>
  <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
  <actuator><motor joint="j"/><position joint="k" kp="3"/></actuator>
</mujoco>
"""


def test_forces_of_mujoco_only_are_named():
    """Everything that acts in one solver and not in the other is counted, over all worlds."""
    robot, builder = ModelBuilder(), ModelBuilder()
    register_custom_attributes(robot)
    robot.add_mjcf(ARM)
    builder.replicate(robot, 2)
    model = builder.finalize("cpu")
    expected = (
        "SolverSAP: the model has 2 general actuators, 2 joint axes with a spring of their own in "
        "model.mujoco"
    )
    with pytest.warns(UnsupportedFeatureWarning, match=expected):
        SolverSAP(model)


def test_a_namespace_without_forces_is_no_reason_for_a_warning():
    """Drives and parameters of contact are simulated, or belong to the method."""
    robot = ModelBuilder()
    register_custom_attributes(robot)
    robot.add_mjcf(
        ARM.replace('<motor joint="j"/>', "").replace(
            '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>', ""
        )
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        SolverSAP(robot.finalize("cpu"))


@pytest.mark.parametrize("limit", ["", 'actuatorfrcrange="-0.5 0.5"'])
def test_ranges_of_joints_that_tendons_exceed_are_named(limit):
    """A range bounds the sum of all actuators of a joint in MuJoCo, and here its drive."""
    robot = ModelBuilder()
    robot.add_mjcf(
        f"""
        <mujoco>
          <worldbody>
            <body><joint name="j" axis="0 1 0" {limit}/><geom size="0.1" pos="0 0 1"/></body>
          </worldbody>
          <tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>
          <actuator><motor tendon="t" gear="10"/></actuator>
        </mujoco>
        """
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SolverSAP(robot.finalize("cpu"))
    named = [str(warning.message) for warning in caught if warning.category is UnsupportedFeatureWarning]
    assert len(named) == (1 if limit else 0)
    assert all("the effort limit of 1 joint axes bounds their drives" in message for message in named)
