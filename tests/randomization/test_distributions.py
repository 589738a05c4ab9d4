"""Distributions: what is drawn on the device is distributed as it says, and each draw stands for itself."""

import numpy as np
import pytest
import warp as wp
from scipy import stats

from pluriverse.math.counter_random import philox
from pluriverse.randomization import Choice, Constant, Gaussian, LogUniform, Uniform
from pluriverse.randomization.sampling import Sampler, draw, make_sampler

COUNT = 20000
# A test that fails once in a thousand million by chance: seeds are fixed, so it fails always or never.
PROBABILITY_MIN = 1e-6


@wp.kernel(enable_backward=False)
def draw_numbers(
    sampler: Sampler, component: int, episode: int, term: int, seed: int, out: wp.array[wp.float64]
):
    environment = wp.tid()
    out[environment] = draw(sampler, component, environment, episode, 0, term, seed)


@wp.kernel(enable_backward=False)
def scramble(words: wp.array2d[wp.uint32], out: wp.array2d[wp.uint32]):
    row = wp.tid()
    block = philox(words[row, 0], words[row, 1], words[row, 2], words[row, 3], words[row, 4], words[row, 5])
    out[row, 0] = block.word0
    out[row, 1] = block.word1
    out[row, 2] = block.word2
    out[row, 3] = block.word3


def numbers(distribution, *, component=0, episode=1, term=0, seed=0):
    out = wp.zeros(COUNT, dtype=wp.float64, device="cpu")
    sampler = make_sampler(distribution, distribution.component_count() or 1, "cpu")
    wp.launch(
        draw_numbers, dim=COUNT, inputs=[sampler, component, episode, term, seed], outputs=[out], device="cpu"
    )
    return out.numpy()


def test_the_cipher_gives_the_known_answers():
    """The three test vectors that come with Philox4x32-10: zeros, ones, and the digits of pi."""
    pi = [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344, 0xA4093822, 0x299F31D0]
    words = np.array([[0] * 6, [0xFFFFFFFF] * 6, pi], dtype=np.uint32)
    out = wp.zeros((3, 4), dtype=wp.uint32, device="cpu")
    wp.launch(
        scramble, dim=3, inputs=[wp.array(words, dtype=wp.uint32, device="cpu")], outputs=[out], device="cpu"
    )
    expected = [
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ]
    np.testing.assert_array_equal(out.numpy(), np.array(expected, dtype=np.uint32))


@pytest.mark.parametrize(
    ("distribution", "law"),
    [
        (Uniform(-2.0, 3.0), stats.uniform(-2.0, 5.0)),
        (LogUniform(0.1, 10.0), stats.loguniform(0.1, 10.0)),
        (Gaussian(1.0, 0.5), stats.norm(1.0, 0.5)),
        (Gaussian(1.0, 0.5, low=0.5, high=1.2), stats.truncnorm(-1.0, 0.4, 1.0, 0.5)),
        (Gaussian(0.0, 1.0, low=2.0), stats.truncnorm(2.0, np.inf)),
        (Gaussian(0.0, 1.0, high=-3.0), stats.truncnorm(-np.inf, -3.0)),
    ],
    # The frozen laws of SciPy print their addresses, which differ from one test worker to the other.
    ids=lambda value: "law" if hasattr(value, "cdf") else str(value),
)
def test_draws_have_the_distribution_that_was_asked_for(distribution, law):
    """The Kolmogorov-Smirnov distance of 20,000 draws from the law is that of draws from it."""
    drawn = numbers(distribution)
    low, high = distribution.support()
    assert stats.kstest(drawn, law.cdf).pvalue > PROBABILITY_MIN
    assert drawn.min() >= low
    assert drawn.max() <= high


def test_choices_come_by_weight():
    """The chi-squared distance from the weights is that of draws by them; zero weights never come."""
    drawn = numbers(Choice([1.0, 5.0, -2.0, 9.0], weights=[1.0, 2.0, 3.0, 0.0]))
    values, counts = np.unique(drawn, return_counts=True)
    assert values.tolist() == [-2.0, 1.0, 5.0]
    expected = COUNT * np.array([3.0, 1.0, 2.0]) / 6.0
    assert stats.chisquare(counts, expected).pvalue > PROBABILITY_MIN
    assert (numbers(Constant(0.25)) == 0.25).all()


def test_draws_for_other_things_are_independent():
    """Numbers of other episodes, terms and seeds are uncorrelated with each other and from world to world."""
    base = numbers(Uniform(0.0, 1.0))
    others = [
        numbers(Uniform(0.0, 1.0), episode=2),
        numbers(Uniform(0.0, 1.0), term=1),
        numbers(Uniform(0.0, 1.0), seed=1),
        np.roll(base, 1),
    ]
    for other in others:
        correlation = np.corrcoef(base, other)[0, 1]
        assert abs(correlation) < 5.0 / np.sqrt(COUNT)  # five standard deviations of independent ones


def test_components_have_parameters_of_their_own():
    low, high = (
        numbers(Uniform((0.0, 10.0), (1.0, 11.0)), component=0),
        numbers(Uniform((0.0, 10.0), (1.0, 11.0)), component=1),
    )
    assert high.min() >= 10.0
    assert low.max() <= 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Uniform(1.0, 0.0), "low <= high"),
        (lambda: Uniform(0.0, np.inf), "finite"),
        (lambda: LogUniform(0.0, 1.0), "0 < low"),
        (lambda: Gaussian(0.0, 0.0), "use Constant"),
        (lambda: Gaussian(0.0, 1.0, low=9.0), "use Uniform there"),
        (lambda: Gaussian(0.0, 1.0, low=1.0, high=1.0), "low < high"),
        (lambda: Choice([]), "at least one"),
        (lambda: Choice([1.0], weights=[0.0]), "not all zero"),
        (lambda: Constant(np.nan), "must be finite"),
        (lambda: Uniform((0.0, 0.0), (1.0, 1.0, 1.0)).component_count(), "give all the same"),
    ],
)
def test_impossible_distributions_are_errors(make, message):
    with pytest.raises(ValueError, match=message):
        make()
