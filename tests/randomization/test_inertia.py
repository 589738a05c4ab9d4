"""Pseudo-inertia: whatever is drawn is the inertia of some body, and small draws do what they say."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pluriverse as pv
from pluriverse.randomization import (
    Constant,
    Gaussian,
    InertiaFactor,
    Operation,
    Property,
    PseudoInertia,
    Randomizer,
    Uniform,
)

ROUNDING = 2.0**-23


def make_model(count=1, *, inertia=None, mass=1.0, com=(0.0, 0.0, 0.0)):
    body = pv.ModelBuilder()
    tensor = np.diag([0.02, 0.03, 0.04]) if inertia is None else inertia
    body.add_body(mass=mass, com=com, inertia=tensor, label="body")
    builder = pv.ModelBuilder()
    builder.replicate(body, count)
    return builder.finalize("cpu")


def second_moments(model):
    inertia = model.body_inertia.numpy().astype(np.float64)
    return 0.5 * np.trace(inertia, axis1=1, axis2=2)[:, None, None] * np.eye(3) - inertia


def random_body(seed):
    """Return mass, centre and inertia of a cloud of points: those of a body, by definition."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(12, 3)) * rng.uniform(0.05, 1.0, 3) @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    masses = rng.uniform(0.1, 1.0, 12)
    com = masses @ points / masses.sum()
    moment = np.einsum("i,ij,ik->jk", masses, points - com, points - com)
    return masses.sum(), com, np.trace(moment) * np.eye(3) - moment


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from([PseudoInertia, InertiaFactor]),
    st.integers(0, 10**6),
    st.floats(0.0, 2.0),
    st.integers(0, 10**6),
)
def test_every_drawn_inertia_is_that_of_a_body(draw, body, spread, seed):
    """Masses stay positive and principal moments satisfy the triangle inequalities, however much is drawn."""
    mass, com, inertia = random_body(body)
    model = make_model(16, mass=mass, com=com, inertia=inertia)
    size = float(np.sqrt(np.trace(inertia) / mass))
    term = draw(
        alpha=Uniform(-spread, spread),
        d=Uniform(-spread, spread),
        s=Uniform(-spread * size, spread * size),
        t=Uniform(-spread, spread),
    )
    Randomizer(model, [term], seed=seed).apply()
    assert (model.body_mass.numpy() > 0.0).all()
    inertia = model.body_inertia.numpy().astype(np.float64)
    np.testing.assert_array_equal(inertia, inertia.transpose(0, 2, 1))
    moments = np.linalg.eigvalsh(inertia)
    # Each entry was rounded once to single precision, which moves eigenvalues by no more than that in all.
    assert (moments[:, 0] + moments[:, 1] - moments[:, 2] >= -9.0 * ROUNDING * moments[:, 2]).all()
    assert (moments[:, 0] > -3.0 * ROUNDING * moments[:, 2]).all()


@pytest.mark.parametrize("draw", [PseudoInertia, InertiaFactor])
def test_without_perturbation_nothing_changes(draw):
    """Factoring and multiplying again is exact to the rounding of single precision."""
    mass, com, inertia = random_body(7)
    model = make_model(1, mass=mass, com=com, inertia=inertia)
    before = [getattr(model, name).numpy().copy() for name in ("body_mass", "body_com", "body_inertia")]
    Randomizer(model, [draw()]).apply()
    for name, values in zip(("body_mass", "body_com", "body_inertia"), before, strict=True):
        scale = np.abs(values).max()
        np.testing.assert_allclose(
            getattr(model, name).numpy(), values, rtol=0.0, atol=4.0 * ROUNDING * scale
        )


@pytest.mark.parametrize("draw", [PseudoInertia, InertiaFactor])
def test_a_part_of_a_batch_draws_what_it_draws_in_the_whole(draw):
    """Draws follow the identity of an environment, not its place: to the bit, for every parameter."""
    term = draw(alpha=Uniform(-0.5, 0.5), d=Uniform(-0.5, 0.5), s=Uniform(-0.1, 0.1), t=Uniform(-0.1, 0.1))
    drawn = {}
    for name, identities in (("whole", [0, 1, 2, 3, 4]), ("part", [3, 1])):
        model = make_model(len(identities))
        Randomizer(model, [term], seed=4, identities=identities).apply()
        drawn[name] = [getattr(model, array).numpy() for array in ("body_mass", "body_com", "body_inertia")]
    assert len(np.unique(drawn["whole"][0])) == 5
    for whole, part in zip(drawn["whole"], drawn["part"], strict=True):
        np.testing.assert_array_equal(part, whole[[3, 1]])


def test_alpha_scales_the_density():
    """Mass and inertia are multiplied by exp(2 alpha)."""
    model = make_model()
    Randomizer(model, [PseudoInertia(alpha=Constant(0.5 * np.log(2.0)))]).apply()
    np.testing.assert_allclose(model.body_mass.numpy(), 2.0, rtol=2 * ROUNDING)
    np.testing.assert_allclose(np.diag(model.body_inertia.numpy()[0]), [0.04, 0.06, 0.08], rtol=4 * ROUNDING)


def test_d_stretches_the_body_along_its_axes():
    """The second moment of mass along an axis is multiplied by exp(2 d), the others and the mass stay."""
    model = make_model()
    before = np.diag(second_moments(model)[0])
    Randomizer(model, [PseudoInertia(d=Constant((np.log(3.0), 0.0, 0.0)))]).apply()
    after = second_moments(model)[0]
    np.testing.assert_allclose(np.diag(after), before * [9.0, 1.0, 1.0], rtol=1e-5)
    assert model.body_mass.numpy()[0] == 1.0


def test_pseudo_inertia_moves_the_points_of_a_body():
    """J' = U J Uᵀ is what a cloud of points has after x -> A x + t, each heavier by exp(2 alpha)."""
    rng = np.random.default_rng(3)
    points, masses = rng.normal(size=(12, 3)) * (0.3, 0.1, 0.2) + (0.2, 0.0, -0.1), rng.uniform(0.1, 1.0, 12)
    linear = np.array([[np.exp(0.2), 0.3, -0.1], [0.0, np.exp(-0.4), 0.2], [0.0, 0.0, np.exp(0.1)]])
    shift = np.array([0.05, -0.02, 0.01])

    def properties(points, masses):
        com = masses @ points / masses.sum()
        second = np.einsum("i,ij,ik->jk", masses, points - com, points - com)
        return masses.sum(), com, np.trace(second) * np.eye(3) - second

    mass, com, inertia = properties(points, masses)
    model = make_model(1, mass=mass, com=com, inertia=inertia)
    term = PseudoInertia(
        alpha=Constant(0.15),
        d=Constant((0.2, -0.4, 0.1)),
        s=Constant((0.3, -0.1, 0.2)),
        t=Constant(tuple(shift)),
    )
    Randomizer(model, [term]).apply()
    expected = properties(points @ linear.T + shift, np.exp(0.3) * masses)
    rounding = 8.0 * ROUNDING  # of the inputs and the results
    np.testing.assert_allclose(model.body_mass.numpy()[0], expected[0], rtol=rounding)
    np.testing.assert_allclose(model.body_com.numpy()[0], expected[1], rtol=0.0, atol=rounding)
    tolerance = rounding * np.abs(expected[2]).max()
    np.testing.assert_allclose(model.body_inertia.numpy()[0], expected[2], rtol=0.0, atol=tolerance)


def test_s_shears_and_t_shifts():
    """A shear s12 turns the second moment as the factor F does; t moves the centre of mass by itself."""
    model = make_model(com=(0.1, 0.0, 0.0))
    factor = np.diag(np.sqrt(np.diag(second_moments(model)[0])))
    term = InertiaFactor(s=Constant((0.1, 0.0, 0.0)), t=Constant((0.0, 0.0, 0.2)))
    Randomizer(model, [term]).apply()
    factor[0, 1] += 0.1
    np.testing.assert_allclose(second_moments(model)[0], factor @ factor.T, atol=1e-8)
    np.testing.assert_allclose(model.body_com.numpy()[0], (0.1, 0.0, 0.2), rtol=ROUNDING)


def test_masses_of_worlds_spread_as_asked():
    """Half of log m is alpha: normal with the standard deviation that was given."""
    model = make_model(2000)
    Randomizer(model, [PseudoInertia(alpha=Gaussian(0.0, 0.1))]).apply()
    alpha = 0.5 * np.log(model.body_mass.numpy().astype(np.float64))
    assert abs(alpha.mean()) < 5.0 * 0.1 / np.sqrt(2000)
    assert alpha.std() == pytest.approx(0.1, rel=5.0 / np.sqrt(4000))


def test_flat_bodies_are_named():
    """A plate without thickness has no parameters: its inertia is at the edge of what is possible."""
    model = make_model(inertia=np.diag([0.01, 0.02, 0.03]))
    with pytest.raises(ValueError, match=r"body 'body' .*mass in a plane or to no body at all"):
        Randomizer(model, [InertiaFactor(alpha=Uniform(-0.1, 0.1))])
    Randomizer(model, [PseudoInertia(alpha=Uniform(-0.1, 0.1))]).apply()  # which needs none


def test_parts_of_a_cut_body_are_drawn_together():
    """Half of the mass is in each part of a body that a loop joint cuts: what is drawn holds for both."""
    one = pv.ModelBuilder()
    one.add_body(mass=2.0, inertia=0.1 * np.eye(3), label="sled")
    one.add_joint_prismatic(-1, 0, axis="x", label="rail")
    one.add_body(mass=3.0, inertia=0.1 * np.eye(3), label="ball")
    scene = pv.ModelBuilder()
    scene.replicate(one, 8)
    model = scene.finalize("cpu")
    assert model.body_split_from.numpy()[:6].tolist() == [0, 1, 0, 3, 4, 3]
    spread = PseudoInertia(alpha=Uniform(-0.3, 0.3), t=Uniform(-0.1, 0.1), entities="sled")
    Randomizer(model, [spread], seed=1).apply()
    mass, com = model.body_mass.numpy().reshape(8, 3), model.body_com.numpy().reshape(8, 3, 3)
    assert len(np.unique(mass[:, 0])) == 8
    np.testing.assert_array_equal(mass[:, 0], mass[:, 2])
    np.testing.assert_array_equal(com[:, 0], com[:, 2])
    np.testing.assert_array_equal(mass[:, 1], 3.0)
    for named in ("sled", "rail_half"):
        factor = Property("body_mass", Uniform(0.5, 2.0), Operation.SCALE, named)
        randomizer = Randomizer(model, [factor], seed=1)
        randomizer.apply()
        mass = model.body_mass.numpy().copy().reshape(8, 3)
        assert len(np.unique(mass[:, 2])) == 8
        np.testing.assert_array_equal(mass[:, 0], mass[:, 2])
        randomizer.restore()
    absolute = Property("body_mass", Uniform(1.0, 2.0), Operation.ABSOLUTE, "sled")
    with pytest.raises(ValueError, match=r"'sled'.* one of the parts .*SCALE"):
        Randomizer(model, [absolute], seed=1)
