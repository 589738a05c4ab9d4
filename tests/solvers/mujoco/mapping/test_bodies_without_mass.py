"""Bodies without mass on joints: what MuJoCo gets for them, seen by the drag that they have in a fluid."""

import mujoco
import pytest

import pluriverse as pv
from pluriverse.solvers.mujoco.caveats import MujocoCaveatWarning

WIND = '<option gravity="0 0 0" density="1.2" wind="0 0 1" integrator="implicitfast" timestep="0.002"/>'
BOX = '<geom type="box" size=".025 .01 .005" mass="1e-2"/>'
ROOT = f"<mujoco>{WIND}<worldbody><body><freejoint/><body>{BOX}</body></body></worldbody></mujoco>"
CARRIER = (
    f'<mujoco>{WIND}<worldbody><body><joint type="slide"/><geom size="0.01" mass="0"/>'
    f'{{}}<body pos="0 0 0.1"><joint axis="0 1 0"/>{BOX}</body></body></worldbody></mujoco>'
)


def blow(text, saved=None):
    """Return the velocities of a robot after 100 steps in the wind; save its model on request."""
    builder = pv.ModelBuilder()
    pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_mjcf(text)
    model = builder.finalize("cpu")
    solver = pv.SolverMuJoCo(model)
    if saved is not None:
        solver.save_to_mjcf(saved)
    with pv.Simulation(model, solver, dt=0.002) as simulation:
        simulation.step(100)
        return simulation.state.joint_qd.numpy()


def blow_in_mujoco(text):
    """Return the same of MuJoCo itself."""
    reference = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(reference)
    mujoco.mj_step(reference, data, 100)
    return data.qvel


def test_a_root_without_mass_has_the_drag_of_what_is_fixed_to_it(tmp_path, recwarn):
    """MuJoCo takes such a root as it is, and so does a model that is saved; no body has mass of ours."""
    expected = blow_in_mujoco(ROOT)[2]
    saved = tmp_path / "root.xml"
    assert blow(ROOT, saved)[2] == pytest.approx(expected, rel=1e-5)
    assert blow_in_mujoco(saved.read_text())[2] == pytest.approx(expected, rel=1e-5)
    assert not [warning for warning in recwarn if warning.category is MujocoCaveatWarning]


def test_a_body_without_mass_that_carries_another_by_a_joint_has_hardly_any_drag():
    """MuJoCo refuses the file; a carrier of a milligram, 2.4 mm wide, is what it comes closest to."""
    light = '<inertial pos="0 0 0" mass="1e-6" diaginertia="1e-12 1e-12 1e-12"/>'
    expected = blow_in_mujoco(CARRIER.format(light))[0]
    with pytest.warns(MujocoCaveatWarning, match="'.*body_1' has no mass or no inertia"):
        velocity = blow(CARRIER.format(""))[0]
    assert velocity == pytest.approx(expected, rel=2e-2)
