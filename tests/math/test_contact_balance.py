"""Contacts whose law takes the place of their impulses, and contacts that slide, against dense NumPy."""

import functools

import numpy as np
import pytest
import warp as wp

from pluriverse.math.contact_balance import BALANCE, CONTACTS_MAX, EXCHANGE
from pluriverse.math.numbers_at_once import numbers_at_once, unweave_text

ROUNDING = 2.0**-52
OPEN, STICKS, SLIDES, TURNS = range(4)

_SOLVE = f"""
    V* A = work.data;
    {EXCHANGE + BALANCE}
    begin_exchange(w.data, (const V*)u0.data);
    int found = 1;
    for (int i = 0; i < (int)moves.shape[0]; ++i) {{
        const int c = moves.data[i] < 0 ? -1 - moves.data[i] : moves.data[i];
        const V* d = (const V*)(compliance.data + c);
        if (!exchange(c, moves.data[i] < 0 ? V(-1) : V(1), d[0], d[2], wish.data[c])) found = 0;
    }}
    unsigned slides = 0, turns = 0;
    alignas(64) V x[3 * LANES], y[3 * LANES];
    for (int i = 0; i < WIDTH * groups; ++i) m0[i] = m1[i] = m2[i] = e0[i] = e1[i] = across[i] = V(0);
    for (int c = 0; c < count; ++c) {{
        if (state.data[c] < {SLIDES}) continue;
        const V* t = (const V*)(slide.data + c);
        slides |= 1u << c;
        m0[c] = t[2] * t[0];
        m1[c] = t[2] * t[1];
        m2[c] = V(1);
        if (state.data[c] < {TURNS}) continue;
        turns |= 1u << c;
        e0[c] = -t[1];
        e1[c] = t[0];
        across[c] = ((const V*)(compliance.data + c))[1];
    }}
    V rn[LANES];
    for (int c = 0; c < count; ++c) rn[c] = ((const V*)(compliance.data + c))[2];
    if (!balance(slides, turns, rn, wish.data)) found = 0;
    for (int c = 0; c < WIDTH * groups; ++c) {{
        x[lane(c)] = m0[c] * normal[c] + e0[c] * turn[c];
        x[lane(c) + WIDTH] = m1[c] * normal[c] + e1[c] * turn[c];
        x[lane(c) + 2 * WIDTH] = normal[c];
    }}
    respond(slides, x, y);
    for (int c = 0; c < count; ++c) {{
        for (int k = 0; k < 3; ++k) {{
            ((V*)(given.data + c))[k] = x[lane(c) + WIDTH * k];
            ((V*)(answer.data + c))[k] = y[lane(c) + WIDTH * k];
        }}
    }}
    return found;
"""


@functools.cache
def solving_kernel(width: int, limit: int):
    """Return the kernel with vectors of `width` numbers, for at most `limit` contacts."""
    head = f"using V = double; constexpr int CONTACTS = {limit};"
    head += numbers_at_once(width) + unweave_text(width)

    @wp.func_native(head + _SOLVE)
    def solve(
        w: wp.array[wp.float64],
        u0: wp.array(dtype=wp.vec3d),
        count: int,
        compliance: wp.array(dtype=wp.vec3d),
        wish: wp.array[wp.float64],
        slide: wp.array(dtype=wp.vec3d),
        state: wp.array[int],
        moves: wp.array[int],
        work: wp.array[wp.float64],
        given: wp.array(dtype=wp.vec3d),
        answer: wp.array(dtype=wp.vec3d),
    ) -> int: ...

    @wp.kernel(enable_backward=False, module=f"tests.math.contact_balance_{width}_{limit}")
    def solve_problem(
        w: wp.array[wp.float64],
        u0: wp.array(dtype=wp.vec3d),
        count: int,
        compliance: wp.array(dtype=wp.vec3d),
        wish: wp.array[wp.float64],
        slide: wp.array(dtype=wp.vec3d),
        state: wp.array[int],
        moves: wp.array[int],
        work: wp.array[wp.float64],
        given: wp.array(dtype=wp.vec3d),
        answer: wp.array(dtype=wp.vec3d),
        found: wp.array[int],
    ):
        thread, _ = wp.tid()
        found[thread] = solve(w, u0, count, compliance, wish, slide, state, moves, work, given, answer)

    return solve_problem


class Problem:
    """Near-rigid contacts that have more components than there are joints, each with a state."""

    def __init__(self, count: int):
        rng = np.random.default_rng(count)
        self.count = count
        jacobian = rng.normal(size=(3 * count, 2 * count + 1))
        self.mobility = jacobian @ jacobian.T
        self.free = rng.normal(size=(count, 3))
        # Rolling contacts have the same compliance in both directions.
        self.compliance = np.repeat(rng.uniform(1e-3, 1e-2, (count, 2)), (2, 1), axis=1)
        self.wish = rng.normal(size=count)
        angle = rng.uniform(0.0, 2.0 * np.pi, count)
        self.slide = np.stack([np.cos(angle), np.sin(angle), rng.uniform(0.2, 0.5, count)], axis=1)
        self.state = rng.integers(0, 4, count)

    def solve(
        self, moves: list[int], width: int = 8, limit: int = CONTACTS_MAX
    ) -> tuple[int, np.ndarray, np.ndarray]:
        """Return whether it was solved, what is given and what is found, shape [contact, 3].

        `moves` are contacts to be held in turn, and to be released as -1 - contact.
        """
        m, lanes = 3 * self.count, width * -(-self.count // width)
        rows = np.zeros((m, 8 * -(-m // 8)))
        rows[:, :m] = self.mobility
        size = 9 * self.count * lanes + 4 * self.count * lanes

        def array(values, dtype):
            return wp.array(values, dtype=dtype, device="cpu")

        given, answer = (array(np.full((self.count, 3), np.nan), wp.vec3d) for _ in range(2))
        work, found = array(np.full(size + 1, 7.0), wp.float64), array([-1], int)
        inputs = [array(rows.ravel(), wp.float64), array(self.free, wp.vec3d), self.count]
        inputs += [array(self.compliance, wp.vec3d), array(self.wish, wp.float64)]
        inputs += [array(self.slide, wp.vec3d), array(self.state, int), array(moves, int), work]
        kernel = solving_kernel(width, limit)
        wp.launch(kernel, dim=(1, 1), inputs=inputs, outputs=[given, answer, found], device="cpu")
        assert work.numpy()[-1] == 7.0  # nothing is written behind what the text asks for
        return int(found.numpy()[0]), given.numpy(), answer.numpy()


@pytest.mark.parametrize(
    ("count", "width", "limit"),
    [(1, 4, 4), (3, 4, 4), (4, 4, 4), (7, 4, 8), (8, 8, 8)]
    + [(count, 8, CONTACTS_MAX) for count in (1, 4, 8, 9, CONTACTS_MAX)],
)
def test_contacts_obey_the_law_of_their_state(count, width, limit):
    """Impulses and velocities of all are those of one dense system, in whatever order contacts were held."""
    problem = Problem(count)
    held = [c for c in range(count) if problem.state[c] == STICKS]
    others = [c for c in range(count) if problem.state[c] != STICKS]
    moves = [*others, *held[::-1], *(-1 - c for c in others)]
    found, given, answer = problem.solve(moves, width, limit)
    assert found == 1

    # p = E x, and the rows F of u = u0 + W p that have a law: F u + D x = g.
    columns, rows, diagonal, right = [], [], [], []
    for c in range(count):
        unit = np.zeros((3, 3 * count))
        unit[:, 3 * c : 3 * c + 3] = np.eye(3)
        t, d, wish = problem.slide[c], problem.compliance[c], problem.wish[c]
        if problem.state[c] == STICKS:
            columns += list(unit)
            rows += list(unit)
            diagonal += list(d)
            right += [0.0, 0.0, wish]
        if problem.state[c] >= SLIDES:
            columns.append(t[2] * (t[0] * unit[0] + t[1] * unit[1]) + unit[2])
            rows.append(unit[2])
            diagonal.append(d[2])
            right.append(wish)
        if problem.state[c] == TURNS:
            across = t[0] * unit[1] - t[1] * unit[0]
            columns.append(across)
            rows.append(across)
            diagonal.append(d[1])
            right.append(0.0)
    e, f = np.reshape(columns, (-1, 3 * count)).T, np.reshape(rows, (-1, 3 * count))
    system = f @ problem.mobility @ e + np.diag(diagonal)
    impulse = e @ np.linalg.solve(system, np.array(right) - f @ problem.free.ravel())
    velocity = problem.free.ravel() + problem.mobility @ impulse
    sticks = (problem.state == STICKS)[:, None]
    impulse, velocity = impulse.reshape(count, 3), velocity.reshape(count, 3)
    size = np.linalg.cond(system) * ROUNDING * (np.abs(problem.mobility).max() + 1.0)
    tolerance = 10.0 * count * size * (np.abs(impulse).max() + 1.0)
    np.testing.assert_allclose(given, np.where(sticks, 0.0, impulse), rtol=0.0, atol=tolerance)
    np.testing.assert_allclose(answer, np.where(sticks, impulse, velocity), rtol=0.0, atol=tolerance)


@pytest.mark.parametrize(("count", "width"), [(3, 4), (4, 4), (6, 4), (6, 8), (8, 8)])
def test_the_size_of_vectors_does_not_change_a_bit(count, width):
    """A contact that opens takes a world from one size to another, which must not show."""
    problem = Problem(count)
    moves = [c for c in range(count) if problem.state[c] == STICKS]
    expected = problem.solve(moves)
    for given, other in zip(expected, problem.solve(moves, width, width * -(-count // width)), strict=True):
        np.testing.assert_array_equal(given, other)


def test_a_mobility_that_is_not_positive_cannot_be_held():
    """A negative compliance larger than the mobility is refused, not inverted."""
    problem = Problem(2)
    problem.state[:] = STICKS
    problem.compliance[1] = -100.0
    assert problem.solve([0])[0] == 1
    assert problem.solve([0, 1])[0] == 0
