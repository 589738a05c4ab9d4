"""The terms under mjlab's names draw what those say."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.randomization import Constant, Randomizer, dr


def make_model():
    arm = pv.ModelBuilder()
    base = arm.add_link(mass=1.0, inertia=0.1 * np.eye(3), label="base")
    joint = arm.add_joint_revolute(
        -1, base, label="hinge", armature=0.1, damping=0.2, target_ke=10.0, target_kd=1.0, effort_limit=5.0
    )
    arm.add_articulation([joint])
    arm.add_shape_box(base, hx=0.1, hy=0.1, hz=0.1, label="box")
    builder = pv.ModelBuilder()
    builder.replicate(arm, 6)
    return builder.finalize("cpu")


# Function and arguments, array, least and most of what is drawn as a factor of or an offset from the default.
TERMS = {
    "geom_friction": (lambda: dr.geom_friction((0.3, 0.6)), "shape_material_mu", "abs", 0.3, 0.6),
    "geom_size": (lambda: dr.geom_size((0.9, 1.1)), "shape_scale", "scale", 0.9, 1.1),
    "geom_pos": (lambda: dr.geom_pos((-0.1, 0.1)), "shape_transform", "add", -0.1, 0.1),
    "joint_armature": (lambda: dr.joint_armature((0.5, 2.0)), "joint_armature", "scale", 0.5, 2.0),
    "joint_damping": (
        lambda: dr.joint_damping((0.5, 2.0), distribution="log_uniform"),
        "joint_damping",
        "scale",
        0.5,
        2.0,
    ),
    "effort_limits": (lambda: dr.effort_limits((0.8, 1.2)), "joint_effort_limit", "scale", 0.8, 1.2),
    "pd_gains": (lambda: dr.pd_gains(kp_range=(0.8, 1.2))[0], "joint_target_ke", "scale", 0.8, 1.2),
    "body_com_offset": (
        lambda: dr.body_com_offset(((-0.1, 0.0, 0.0), (0.1, 0.0, 0.0))),
        "body_com",
        "add",
        -0.1,
        0.1,
    ),
    "gravity": (lambda: dr.gravity((-0.5, 0.5)), "gravity", "add", -0.5, 0.5),
}


@pytest.mark.parametrize("name", TERMS)
def test_terms_draw_within_their_ranges(name):
    make, array, operation, low, high = TERMS[name]
    model = make_model()
    before = getattr(model, array).numpy().astype(np.float64)
    Randomizer(model, [make()], seed=2).apply()
    after = getattr(model, array).numpy().astype(np.float64)
    if operation == "scale":
        drawn = (after / np.where(before == 0.0, 1.0, before))[before != 0.0]
    else:
        drawn = after if operation == "abs" else after - before
    assert drawn.min() >= low - 1e-6
    assert drawn.max() <= high + 1e-6
    assert len(np.unique(drawn)) >= 6


def test_pseudo_inertia_takes_the_ranges_one_by_one():
    """d2 alone stretches along y: the second moment there grows by exp(2 d2), the mass by exp(2 alpha)."""
    model = make_model()
    before = model.body_inertia.numpy()[0].astype(np.float64)
    mass = model.body_mass.numpy()[0]
    term = dr.pseudo_inertia(alpha_range=Constant(0.1), d2_range=(0.2, 0.2))
    Randomizer(model, [term]).apply()
    second = 0.5 * np.trace(before) * np.eye(3) - before
    second[1, 1] *= np.exp(0.4)
    expected = np.exp(0.2) * (np.trace(second) * np.eye(3) - second)
    np.testing.assert_allclose(model.body_inertia.numpy()[0], expected, rtol=1e-5)
    assert model.body_mass.numpy()[0] == pytest.approx(np.exp(0.2) * mass, rel=1e-6)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: dr.geom_friction((0.3, 0.6), operation="mul"), r"dr\.geom_friction: operation is 'mul'"),
        (lambda: dr.geom_friction((0.3, 0.6), distribution="normal"), "distribution is 'normal'"),
        (lambda: dr.geom_friction(0.3), r"ranges is 0\.3, but it is \(low, high\)"),
        (lambda: dr.pseudo_inertia(d_range=(0, 1), d1_range=(0, 1)), "take the place of d_range"),
    ],
)
def test_wrong_arguments_are_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_body_mass_warns_that_inertias_stay():
    with pytest.warns(UserWarning, match="PseudoInertia"):
        term = dr.body_mass((0.9, 1.1))
    model = make_model()
    Randomizer(model, [term]).apply()
    assert len(np.unique(model.body_mass.numpy())) == 6
