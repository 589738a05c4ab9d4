"""The namespace `mujoco`: what is declared, and that copies of worlds have rows of their own."""

import mujoco
import numpy as np
import pytest

from pluriverse import Model, ModelBuilder
from pluriverse.mujoco_attributes.choices import FLAGS_OFF, FLAGS_ON, TrnType, as_number
from pluriverse.mujoco_attributes.registration import register_custom_attributes
from pluriverse.selection import ArticulationView, WorldView
from pluriverse.solvers.mujoco.options import BATCHED, SHARED

Frequency = Model.AttributeFrequency


def make_finger() -> ModelBuilder:
    """Return a builder of a hinge with a tendon on it that an actuator pulls, and a pair of shapes."""
    builder = ModelBuilder()
    register_custom_attributes(builder)
    link = builder.add_link(mass=1.0, inertia=np.eye(3), custom_attributes={"mujoco:gravcomp": 0.5})
    hinge = builder.add_joint_revolute(-1, link, axis="y", custom_attributes={"mujoco:limit_margin": 0.1})
    builder.add_articulation([hinge], label="finger")
    shape = builder.add_shape_sphere(link, radius=0.1, custom_attributes={"mujoco:condim": 4})
    other = builder.add_shape_box(-1)
    row = builder.add_custom_values(
        **{"mujoco:tendon_joint": hinge, "mujoco:tendon_joint_dof": 0, "mujoco:tendon_coef": 2.0}
    )["mujoco:tendon_joint"]
    builder.add_custom_values(
        **{
            "mujoco:tendon_label": "flexor",
            "mujoco:tendon_joint_adr": row,
            "mujoco:tendon_joint_num": 1,
            "mujoco:tendon_articulation": 0,
        }
    )
    for trntype, target in (
        (TrnType.JOINT, 0),
        (TrnType.TENDON, 0),
        (TrnType.SITE, shape),
        (TrnType.BODY, 0),
    ):
        builder.add_custom_values(
            **{
                "mujoco:actuator_trntype": trntype,
                "mujoco:actuator_trnid": (target, -1),
                "mujoco:actuator_label": f"pull_{trntype.name}",
            }
        )
    builder.add_custom_values(**{"mujoco:pair_geom1": shape, "mujoco:pair_geom2": other})
    return builder


def test_options_have_the_defaults_of_mujoco():
    """An attribute that no asset sets means what MuJoCo means where nothing is said."""
    builder = ModelBuilder()
    register_custom_attributes(builder)
    register_custom_attributes(builder)  # twice is once
    option = mujoco.MjSpec().compile().opt
    for name in (*BATCHED, *SHARED):
        attribute = builder.custom_attributes[f"mujoco:{name}"]
        if name != "integrator":
            default = np.asarray(attribute.column.default, dtype=np.float64)
            np.testing.assert_allclose(default, getattr(option, name), rtol=1e-6, err_msg=name)
    assert {f"mujoco:flag_{name}" for name in (*FLAGS_ON, *FLAGS_OFF)} <= builder.custom_attributes.keys()
    # Names of options are read as such.
    attribute = builder.custom_attributes["mujoco:integrator"]
    assert attribute.mjcf_value_transformer("implicitfast", None) == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert as_number("actuator_dyntype", "Muscle") == mujoco.mjtDyn.mjDYN_MUSCLE
    with pytest.raises(ValueError, match="mujoco:cone is 'round', but it must be one of 'pyramidal'"):
        as_number("cone", "round")


def test_worlds_have_rows_of_their_own():
    """Tendons, actuators and pairs of a copy refer to the joints, tendons and shapes of that copy."""
    scene = ModelBuilder()
    scene.add_world(make_finger())
    free = ModelBuilder()
    free.add_body(mass=1.0, inertia=np.eye(3))
    scene.add_world(free)
    scene.replicate(make_finger(), 2, label_prefix="hand")
    model = scene.finalize("cpu")
    names = model.mujoco
    np.testing.assert_array_equal(names.gravcomp.numpy(), [0.5, 0.0, 0.5, 0.5])
    np.testing.assert_array_equal(names.condim.numpy(), [4, 3] * 3)
    np.testing.assert_allclose(names.limit_margin.numpy(), [0.1] + [0.0] * 6 + [0.1] * 2)
    np.testing.assert_array_equal(names.tendon_joint.numpy(), [0, 2, 3])
    np.testing.assert_array_equal(names.tendon_joint_dof.numpy(), [0, 7, 8])
    np.testing.assert_array_equal(names.tendon_joint_adr.numpy(), [0, 1, 2])
    np.testing.assert_array_equal(names.tendon_world.numpy(), [0, 2, 3])
    assert names.tendon_label == ["flexor", "hand/flexor", "hand/flexor"]
    trnid = names.actuator_trnid.numpy()[:, 0].reshape(3, 4)
    np.testing.assert_array_equal(trnid, [[0, 0, 0, 0], [7, 1, 2, 2], [8, 2, 4, 3]])
    np.testing.assert_array_equal(names.pair_geom1.numpy(), [0, 2, 4])
    np.testing.assert_array_equal(names.pair_geom2.numpy(), [1, 3, 5])
    np.testing.assert_array_equal(names.pair_world.numpy(), [0, 2, 3])
    assert model.control().mujoco.ctrl.shape == (12,)
    assert names.tolerance.shape == (4,)
    assert names.iterations.shape == (1,)


def test_views_select_tendons_by_world_and_articulation():
    """Rows of a custom frequency belong to worlds and, where declared, to articulations."""
    scene = ModelBuilder()
    scene.replicate(make_finger(), 3)
    model = scene.finalize("cpu")
    view = ArticulationView(model, "finger")
    stiffness = view.get_attribute("mujoco.tendon_stiffness", model)
    assert stiffness.shape == (3, 1, 1)
    view.set_attribute(
        "mujoco:tendon_stiffness", model, [[[1.0]], [[2.0]], [[3.0]]], mask=[True, False, True]
    )
    np.testing.assert_array_equal(model.mujoco.tendon_stiffness.numpy(), [1.0, 0.0, 3.0])
    assert view.get_attribute("mujoco.limit_margin", model).shape == (3, 1, 1)
    control = model.control()
    assert WorldView(model).get_attribute("mujoco.ctrl", control).shape == (3, 1, 4)
    with pytest.raises(ValueError, match="no mujoco:pair belongs to the articulations of this view"):
        view.get_attribute("mujoco.pair_margin", model)
    with pytest.raises(AttributeError, match=r"Model has no attribute 'mujoco\.nothing'"):
        view.get_attribute("mujoco.nothing", model)
    with pytest.raises(AttributeError, match="State has no custom attribute 'mujoco:ctrl'"):
        view.get_attribute("mujoco.ctrl", model.state())
