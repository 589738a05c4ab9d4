"""Bodies touch the static parents of their joints where MuJoCo lets them."""

import mujoco
import numpy as np
import pytest

import pluriverse as pv

# A block that sinks onto the body that carries its rail, and a link above it that overlaps the block.
DOCUMENT = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="5 5 1" pos="0 0 -1"/>
  <body name="base">{before}<geom name="wall" type="box" size="0.2 0.2 0.1"/>{inside}
    <body name="lift" pos="0 0 0.3"><joint name="rail" type="slide" axis="0 0 1"/>
      <geom name="block" type="box" size="0.2 0.2 0.2" mass="1"/>
      <body name="lid" pos="0 0 0.1"><joint name="turn" axis="0 0 1"/>
        <geom name="disc" type="box" size="0.1 0.1 0.2" mass="0.1"/></body></body>{after}</body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("registered", [False, True])
@pytest.mark.parametrize(
    "parts", [{}, {"before": "<body name='part'>", "after": "</body>"}], ids=["one body", "two welded"]
)
def test_a_body_rests_on_what_carries_its_joint(parts, registered):
    """Both solvers hold the block where MuJoCo does; parent and child that both move do not touch."""
    xml = DOCUMENT.format(**{"before": "", "inside": "", "after": ""} | parts)
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 300)
    assert abs(data.qpos[0]) < 1e-2
    builder = pv.ModelBuilder()
    if registered:
        pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(xml)
    ours = builder.finalize("cpu")
    for make in (pv.SolverSAP, pv.SolverMuJoCo):
        with pv.Simulation(ours, make(ours), dt=0.002, threads=1) as simulation:
            simulation.step(300)
            place = simulation.state.joint_q.numpy()
            assert simulation.contacts.rigid_contact_count.numpy().tolist() == [data.ncon]
        np.testing.assert_allclose(place, data.qpos, rtol=0.0, atol=1e-3)


def test_a_floor_below_leaves_the_rule_of_parents_alone():
    """Only the carrier itself is an exception, so bits are not spent on pairs that MuJoCo filters anyway."""
    xml = DOCUMENT.format(before="", inside="", after="").replace('name="wall"', 'name="wall" contype="0"')
    builder = pv.ModelBuilder()
    builder.add_mjcf(xml.replace('contype="0"', 'contype="0" conaffinity="0"'))
    (group,) = pv.SolverMuJoCo(builder.finalize("cpu")).groups
    assert group.plan.masks.filter_parent
