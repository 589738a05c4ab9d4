"""Native loops over contacts against the functions of the cone, contact by contact, and NumPy."""

import itertools

import numpy as np
import pytest
import warp as wp

from pluriverse import Contacts, ModelBuilder, SolverSAP
from pluriverse.math.precision import mat33_type, vec3_type
from pluriverse.solvers.sap.cone import cone_functions
from pluriverse.solvers.sap.contact_list import STICKING_SPEED, contact_list_functions
from pluriverse.solvers.sap.contact_loops import contact_loop_functions
from pluriverse.solvers.sap.contact_stiffness import contact_stiffness_functions, mat66_type
from pluriverse.solvers.sap.dilation import DILATION_SHARE, DILATION_SPEED, dilation_functions
from pluriverse.solvers.sap.recovery import BIAS_SHARE_MIN, SPEED_EXCESS, WORK_EXCESS, recovery_functions
from pluriverse.solvers.sap.workspace import RUN_SIZE, SPACE_CONTACTS_MAX, sap_struct
from tests.oracles.random_scenes import random_contacts, random_world, randomize_state

REAL = wp.float64
CONTACT_COUNT = 60
ALPHA = 0.3
VEC3, MAT33 = vec3_type(REAL), mat33_type(REAL)
SapData = sap_struct(REAL, REAL)
loops, cone = contact_loop_functions(REAL, REAL), cone_functions(REAL)
stiffness = contact_stiffness_functions(REAL, REAL)
dilation, recovery = dilation_functions(REAL, REAL), recovery_functions(REAL, REAL)
BEGIN, CORRECT, LIMIT, END = range(4)
lists = contact_list_functions(REAL, REAL)


@wp.kernel(enable_backward=False, module="unique")
def run_loops(
    sap: SapData,
    end: int,
    alpha: REAL,
    result: wp.array[REAL],
):
    _thread, _ = wp.tid()
    probed = loops.probe_slots(sap, 0, end, alpha)
    for k in range(3):
        result[k] = probed[k]
    loops.advance_slots(sap, 0, end, alpha)
    result[3] = loops.evaluate_slots(sap, 0, end)


@wp.kernel(enable_backward=False, module="unique")
def run_pieces(sap: SapData, size: int, end: int, alpha: REAL, probed: wp.array[VEC3], cost: wp.array[REAL]):
    """Run the loops over so many contacts at a time, and sum up."""
    _thread, _ = wp.tid()
    for piece in range((end + size - 1) / size):
        first = piece * size
        for slot in range(first, wp.min(first + size, end)):
            probed[0] = probed[0] + loops.probe_slots(sap, slot, slot + 1, alpha)
        cost[piece] = loops.evaluate_slots(sap, first, wp.min(first + size, end))


@wp.kernel(enable_backward=False, module="unique")
def run_cone(
    sap: SapData,
    end: int,
    alpha: REAL,
    impulse: wp.array[VEC3],
    matrix: wp.array[MAT33],
    terms: wp.array[VEC3],
    cost: wp.array[REAL],
):
    _thread, _ = wp.tid()
    for slot in range(end):
        rt, rn = sap.contact_rt[slot], sap.contact_rn[slot]
        mu, bound, soft = sap.contact_mu[slot], sap.contact_bound[slot], sap.contact_soft[slot]
        velocity = sap.contact_velocity[slot] + alpha * sap.contact_slope[slot]
        y = cone.unprojected(velocity, sap.contact_bias[slot], rt, rn)
        impulse[slot] = cone.project(y, mu, bound, rt, rn, soft)
        cost[slot] = cone.cost(y, impulse[slot], mu, bound, rt, rn, soft)
        matrix[slot] = cone.stiffness(y, mu, bound, rt, rn, soft)
        terms[slot] = cone.along(y, sap.contact_slope[slot], mu, bound, rt, rn, soft)


@wp.kernel(enable_backward=False, module="unique")
def sum_runs(sap: SapData, end: int, slots: wp.array[int], between: wp.array[mat66_type(REAL)]):
    _thread, _ = wp.tid()
    slot, run = int(0), int(0)
    while slot < end:
        first = int(slot)
        slot = stiffness.measure_stiffness(sap, first, end, sap.stiffness_work, 0)
        sums = int(0)
        while sap.stiffness_work[sums + RUN_SIZE - 1] >= REAL(0.0):
            slots[run] = first + int(sap.stiffness_work[sums + RUN_SIZE - 1])
            between[run] = stiffness.add_stiffness(sap, first, 0, sap.stiffness_work, sums)
            run += 1
            sums += RUN_SIZE


@wp.kernel(enable_backward=False, module="unique")
def change_biases(sap: SapData, what: int, number: int, result: wp.array[int]):
    _thread, _ = wp.tid()
    if what == BEGIN:
        dilation.begin_dilation(sap, 0, number)
    elif what == CORRECT:
        result[0] = dilation.correct_contacts(sap, 0, number)
    elif what == LIMIT:
        result[0] = recovery.limit_contacts(sap, 0, number)
    else:
        dilation.end_dilation(sap, 0)


@wp.kernel(enable_backward=False, module="unique")
def measure_and_list(
    sap: SapData, size: int, end: int, along_chords: int, rate: wp.array[VEC3], pairs: wp.array[int]
):
    """Measure so many contacts at a time, and list those with which another pair of bodies begins."""
    _thread, _ = wp.tid()
    for piece in range((end + size - 1) / size):
        loops.measure_slots(sap, piece * size, wp.min(piece * size + size, end), 0, along_chords, rate)
    found = int(0)
    slot = loops.next_pair(sap, 0, end, -1, -1)
    while slot < end:
        pairs[found] = slot
        found += 1
        slot = loops.next_pair(sap, slot + 1, end, sap.contact_dof0[slot], sap.contact_dof1[slot])


@wp.kernel(enable_backward=False, module="unique")
def run_lists(
    sap: SapData,
    count: int,
    capacity: int,
    friction_follows: int,
    moved: REAL,
    resumes: int,
    result: wp.array[int],
):
    _thread, _ = wp.tid()
    result[0] = lists.list_carrying(sap, 0, 0, capacity, count, friction_follows, moved, resumes)
    result[1] = lists.has_room(sap, 0, 0, count, capacity)


def _cross(arm: np.ndarray) -> np.ndarray:
    x, y, z = arm
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


@pytest.fixture
def sap():
    """The workspace of a world of free bodies with random contacts, in every piece of their cost."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder()
    builder.add_world(random_world(rng, (1, 1, 1, 1)))
    model = builder.finalize("cpu")
    state, control, contacts = model.state(), model.control(), Contacts(model, CONTACT_COUNT)
    randomize_state(model, state, control, rng, 0)
    random_contacts(model, state, control, contacts, rng, 0, CONTACT_COUNT)
    solver = SolverSAP(model, max_iterations=0)
    solver.step(state, model.state(), control, contacts, 0.005)
    sap = solver.workspace
    count = CONTACT_COUNT
    bounds = rng.choice([-1.0, 0.0, 0.5], count)
    rn, rt = 10.0 ** rng.uniform(-4.0, -1.0, (2, count))
    rn[0] = -1.0  # takes no part
    frictions = rng.choice([0.0, 0.3, 1.0], count)
    velocity = rng.normal(size=(count, 3)) * [0.1, 0.1, 0.03]
    velocity[1, :2] = 0.0  # no direction to slide in
    # Of some, the tangential impulse is as small as the rounding of its norm, and yet beyond its bound.
    soft = np.where(np.arange(count) % 5 == 2, 30.0, 1e-7)
    for name, values in (
        ("velocity", velocity),
        ("slope", rng.normal(size=(count, 3)) * 0.1),
        ("bias", rng.normal(size=count) * 0.02),
        ("bound", bounds),
        ("rn", rn),
        ("rt", rt),
        ("mu", frictions),
        ("soft", soft),
    ):
        getattr(sap, "contact_" + name).assign(values)
    for name in ("ww", "wv", "vv"):
        getattr(sap, "node_stiffness_" + name).zero_()
    return sap


def _cone_terms(sap, alpha: float):
    arrays = [wp.zeros(CONTACT_COUNT, dtype=dtype, device="cpu") for dtype in (VEC3, MAT33, VEC3, REAL)]
    wp.launch(run_cone, dim=(1, 1), inputs=[sap.data, CONTACT_COUNT, alpha], outputs=arrays, device="cpu")
    return [array.numpy() for array in arrays]


def test_loops_equal_the_functions_of_the_cone(sap):
    """Costs, impulses, slopes and curvatures, in double precision to the rounding of their sums."""
    taking_part = sap.contact_rn.numpy() > 0.0
    before, slope = sap.contact_velocity.numpy().copy(), sap.contact_slope.numpy().copy()
    sap.contact_impulse.zero_()
    result = wp.zeros(4, dtype=REAL, device="cpu")
    wp.launch(run_loops, dim=(1, 1), inputs=[sap.data, CONTACT_COUNT, ALPHA, result], device="cpu")
    np.testing.assert_allclose(sap.contact_velocity.numpy(), before + ALPHA * slope, rtol=0.0, atol=1e-15)
    sap.contact_velocity.assign(before)
    impulse, _, terms, cost = _cone_terms(sap, ALPHA)
    found = result.numpy()
    np.testing.assert_allclose(found[:3], terms[taking_part].sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found[3], cost[taking_part].sum(), rtol=1e-12)
    np.testing.assert_allclose(
        sap.contact_impulse.numpy()[taking_part], impulse[taking_part], rtol=1e-12, atol=1e-12
    )
    assert not sap.contact_impulse.numpy()[~taking_part].any()


def test_a_contact_has_the_same_bits_in_every_lane(sap):
    """Impulses, costs and what probes sum up are those of one contact after the other, to the bit."""
    found = {}
    for size in (1, 3, 8, CONTACT_COUNT):
        sap.contact_impulse.zero_()
        probed = wp.zeros(1, dtype=VEC3, device="cpu")
        cost = wp.zeros(CONTACT_COUNT, dtype=REAL, device="cpu")
        inputs = [sap.data, size, CONTACT_COUNT, ALPHA, probed, cost]
        wp.launch(run_pieces, dim=(1, 1), inputs=inputs, device="cpu")
        found[size] = sap.contact_impulse.numpy().copy(), probed.numpy()[0], cost.numpy()
    single_costs = found[1][2]
    for size, (impulse, _, cost) in found.items():
        np.testing.assert_array_equal(impulse, found[1][0])
        pieces = [0.0] * len(range(0, CONTACT_COUNT, size))
        for slot, single in enumerate(single_costs):
            pieces[slot // size] += single
        np.testing.assert_array_equal(cost[: len(pieces)], pieces)
    result = wp.zeros(4, dtype=REAL, device="cpu")
    wp.launch(run_loops, dim=(1, 1), inputs=[sap.data, CONTACT_COUNT, ALPHA, result], device="cpu")
    np.testing.assert_array_equal(result.numpy()[:3], found[1][1])


def test_a_velocity_that_is_no_number_makes_the_cost_no_number(sap):
    """A contact without friction does not turn NaN into no impulse."""
    sap.contact_mu.zero_()
    velocity = sap.contact_velocity.numpy()
    velocity[3, 2] = np.nan
    sap.contact_velocity.assign(velocity)
    result = wp.zeros(4, dtype=REAL, device="cpu")
    wp.launch(run_loops, dim=(1, 1), inputs=[sap.data, CONTACT_COUNT, 0.0, result], device="cpu")
    assert np.isnan(result.numpy()[3])


def test_sums_of_runs_equal_the_stiffness_of_the_cone(sap):
    """K = J^T G J of the contacts of every body and between every two, with G of `cone.py`."""
    impulse, matrix, _, _ = _cone_terms(sap, 0.0)
    impulse[sap.contact_rn.numpy() <= 0.0] = 0.0
    sap.contact_impulse.assign(impulse)
    slots = wp.full(CONTACT_COUNT, -1, dtype=int, device="cpu")
    between = wp.zeros(CONTACT_COUNT, dtype=mat66_type(REAL), device="cpu")
    wp.launch(sum_runs, dim=(1, 1), inputs=[sap.data, CONTACT_COUNT, slots, between], device="cpu")
    nodes = [getattr(sap, "contact_node" + side).numpy() for side in "01"]
    arms = [getattr(sap, "contact_arm" + side).numpy() for side in "01"]
    frames, bounds = sap.contact_frame.numpy(), sap.contact_bound.numpy()
    expected = np.zeros((len(sap.node_stiffness_ww), 6, 6))
    pairs, found_pairs = {}, {}
    for slot in range(CONTACT_COUNT):
        if impulse[slot, 2] == 0.0 and bounds[slot] <= 0.0:
            continue
        stiffness = frames[slot] @ matrix[slot] @ frames[slot].T
        phi = [np.hstack([-_cross(arms[side][slot]), np.eye(3)]) for side in (0, 1)]
        ends = nodes[0][slot], nodes[1][slot]
        for side in (0, 1):
            if ends[side] >= 0:
                expected[ends[side]] += phi[side].T @ stiffness @ phi[side]
        if min(ends) >= 0:
            pairs[ends] = pairs.get(ends, 0.0) + phi[0].T @ stiffness @ phi[1]
    run_slots = slots.numpy()[slots.numpy() >= 0]
    assert 1 < len(run_slots) < CONTACT_COUNT
    assert (np.diff(run_slots) > 0).all()
    for slot, block in zip(run_slots, between.numpy(), strict=False):
        ends = nodes[0][slot], nodes[1][slot]
        if min(ends) >= 0:
            found_pairs[ends] = found_pairs.get(ends, 0.0) + block
    assert pairs.keys() == found_pairs.keys()
    assert pairs
    scale = np.abs(expected).max()
    for ends, block in pairs.items():
        np.testing.assert_allclose(found_pairs[ends], block, rtol=0.0, atol=1e-14 * scale)
    for name, rows, columns in (
        ("ww", slice(3), slice(3)),
        ("wv", slice(3), slice(3, 6)),
        ("vv", slice(3, 6), slice(3, 6)),
    ):
        found = getattr(sap, "node_stiffness_" + name).numpy()
        np.testing.assert_allclose(found, expected[:, rows, columns], rtol=0.0, atol=1e-14 * scale)


@pytest.mark.parametrize("number", [0, 1])
def test_biases_change_by_what_sliding_and_recovery_ask_for(sap, number):
    """What is taken off v_hat for sliding, begun, corrected and ended, and what recovery takes off."""
    rng = np.random.default_rng(6)
    result = wp.zeros(1, dtype=int, device="cpu")

    def change(what: int) -> tuple[np.ndarray, np.ndarray, int]:
        result.zero_()
        wp.launch(change_biases, dim=(1, 1), inputs=[sap.data, what, number, result], device="cpu")
        return sap.contact_bias.numpy().copy(), sap.contact_dilation.numpy().copy(), result.numpy()[0]

    impulse, work_max, speed_max = (rng.normal(size=(CONTACT_COUNT, 3)), *rng.uniform(0, 0.02, (2, 60)))
    impulse[:, 2] = np.where(np.arange(CONTACT_COUNT) % 2, np.abs(impulse[:, 2]), 0.0)
    impulse[::2] = 0.0  # parts, and is asked for less with those that act
    for name, values in (("impulse", impulse), ("work_max", work_max), ("speed_max", speed_max)):
        getattr(sap, "contact_" + name).assign(values)
    bias, mu, rn = (getattr(sap, "contact_" + name).numpy().copy() for name in ("bias", "mu", "rn"))
    velocity = sap.contact_velocity.numpy()
    slip = np.linalg.norm(velocity[:, :2], axis=1)

    begun = mu * (slip if number else np.maximum(slip + mu * np.minimum(velocity[:, 2], 0.0), 0.0))
    begun[begun <= DILATION_SPEED] = 0.0
    found = change(BEGIN)
    np.testing.assert_allclose(found[1], begun, rtol=1e-14)
    np.testing.assert_allclose(found[0], bias - begun, rtol=1e-13)

    velocity[:, :2] *= rng.choice([1.0, 1.01, 3.0], CONTACT_COUNT)[:, None]
    sap.contact_velocity.assign(velocity)
    target = mu * np.linalg.norm(velocity[:, :2], axis=1)
    wanted = target - begun
    changes = ~((impulse[:, 2] <= 0.0) & (velocity[:, 2] >= bias))
    changes &= np.abs(wanted) > np.maximum(DILATION_SPEED, DILATION_SHARE * target)
    wanted = np.maximum(begun + wanted * (1.0 if number else 1.0 + mu**2), 0.0)
    corrected = np.where(changes, wanted, begun)
    found = change(CORRECT)
    assert found[2] == 1
    assert changes.any()
    assert not changes.all()
    np.testing.assert_allclose(found[1], corrected, rtol=1e-13)
    np.testing.assert_allclose(found[0], bias - corrected, rtol=1e-12, atol=1e-16)
    slope = sap.contact_slope.numpy()
    np.testing.assert_allclose(slope[:, 2], corrected - begun, rtol=1e-12, atol=1e-16)
    assert not slope[:, :2].any()

    speed, work = velocity[:, 2], np.einsum("ij,ij->i", impulse, velocity)
    share = np.sqrt(np.minimum(work_max / np.where(work > WORK_EXCESS * work_max, work, work_max), 1.0))
    fast = speed > SPEED_EXCESS * speed_max
    share = np.where(fast, np.minimum(share, speed_max / speed), share)
    asks = (rn > 0.0) & (bias > BIAS_SHARE_MIN * np.maximum(speed, 0.0)) & (share < 1.0) & (speed > 0.0)
    less = np.maximum(bias - 4.0**number * (1.0 - share) * speed, share * bias)
    limited = np.where(asks, less, bias)
    found = change(LIMIT)
    assert found[2] == 1
    assert (asks & (impulse[:, 2] > 0.0)).any()
    assert (asks & (impulse[:, 2] == 0.0)).any()
    np.testing.assert_allclose(found[0], limited - corrected, rtol=1e-12, atol=1e-16)

    found = change(END)
    assert not found[1].any()
    np.testing.assert_allclose(found[0], limited, rtol=1e-12, atol=1e-16)


def test_points_move_with_their_bodies(sap):
    """R^T of the difference of v + w x r, with the same bits in every lane. Pairs are listed once.

    Along chords that of the chord is added.
    """
    rng = np.random.default_rng(7)
    node_rate = rng.normal(size=sap.node_rate.numpy().shape)
    sap.node_rate.assign(node_rate)
    nodes = [np.repeat(rng.integers(-1, 4, 20), 3) for _ in "01"]
    dofs = [6 * side + 5 for side in nodes]
    for side, (node, dof) in enumerate(zip(nodes, dofs, strict=True)):
        getattr(sap, f"contact_node{side}").assign(node.astype(np.int32))
        getattr(sap, f"contact_dof{side}").assign(np.where(node < 0, -1, dof).astype(np.int32))
    impulse = np.ones((CONTACT_COUNT, 3))
    impulse[rng.random(CONTACT_COUNT) < 0.4] = 0.0
    sap.contact_impulse.assign(impulse)
    sap.contact_bound.assign(np.full(CONTACT_COUNT, -1.0))
    chord = rng.normal(size=(CONTACT_COUNT, 2))
    sap.contact_chord.assign(chord)
    found = {}
    for along_chords, size in itertools.product((0, 1), (1, 5, CONTACT_COUNT)):
        rate = wp.full(CONTACT_COUNT, 7.0, dtype=VEC3, device="cpu")
        pairs = wp.full(CONTACT_COUNT, -1, dtype=int, device="cpu")
        inputs = [sap.data, size, CONTACT_COUNT, along_chords, rate, pairs]
        wp.launch(measure_and_list, dim=(1, 1), inputs=inputs, device="cpu")
        found[along_chords, size] = rate.numpy()
        np.testing.assert_array_equal(found[along_chords, size], found[along_chords, 1])
    frames = sap.contact_frame.numpy()
    expected, listed, last = np.zeros((CONTACT_COUNT, 3)), [], None
    for slot in range(CONTACT_COUNT):
        for sign, side in ((-1.0, 0), (1.0, 1)):
            if nodes[side][slot] >= 0:
                turn, linear = np.split(node_rate[nodes[side][slot]], 2)
                arm = getattr(sap, f"contact_arm{side}").numpy()[slot]
                expected[slot] += sign * (linear + np.cross(turn, arm)) @ frames[slot]
        pair = nodes[0][slot], nodes[1][slot]
        if min(pair) >= 0 and impulse[slot, 2] != 0.0 and pair != last:
            listed.append(slot)
            last = pair
    np.testing.assert_allclose(found[0, 1], expected, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(found[1, 1], expected + np.pad(chord, [(0, 0), (0, 1)]), rtol=0.0, atol=1e-13)
    assert len(listed) > 2
    np.testing.assert_array_equal(pairs.numpy()[pairs.numpy() >= 0], listed)


def _run_lists(
    sap,
    *,
    count: int = 0,
    capacity: int = CONTACT_COUNT,
    follows: int = 1,
    moved: float = 0.0,
    resumes: int = 0,
):
    result = wp.zeros(2, dtype=int, device="cpu")
    inputs = [sap.data, count, capacity, follows, moved, resumes, result]
    wp.launch(run_lists, dim=(1, 1), inputs=inputs, device="cpu")
    return result.numpy()


def test_listed_contacts_move_below_what_they_are_asked_for(sap):
    """With convex friction those with a bound, too; the others lose impulse and bound with Coulomb's law."""
    sap.space_slot = wp.full(CONTACT_COUNT, -1, dtype=int, device="cpu")
    sap.data.space_slot = sap.space_slot
    velocity, slope = sap.contact_velocity.numpy()[:, 2], sap.contact_slope.numpy()[:, 2]
    bias, bound, acts = sap.contact_bias.numpy(), sap.contact_bound.numpy().copy(), sap.contact_rn.numpy() > 0
    carrying = acts & (velocity < bias)
    convex = acts & ((velocity < bias) | (bound != 0.0))
    closing = acts & (velocity + 0.7 * slope < bias)
    for follows, expected in ((0, convex), (1, carrying)):
        listed = np.flatnonzero(expected)
        assert _run_lists(sap, follows=follows, capacity=9)[0] == len(listed) > 9
        np.testing.assert_array_equal(sap.space_slot.numpy()[:10], [*listed[:9], -1])
        sap.space_slot.fill_(-1)
    idle = acts & ~carrying
    assert not sap.contact_impulse.numpy()[idle].any()
    np.testing.assert_array_equal(sap.contact_bound.numpy(), np.where(idle, 0.0, bound))
    count = _run_lists(sap)[0]
    total = _run_lists(sap, count=count, moved=0.7)[0]
    added = np.flatnonzero(closing & ~carrying)
    np.testing.assert_array_equal(sap.space_slot.numpy()[:total], [*np.flatnonzero(carrying), *added])
    # Where a problem is resumed, what has an impulse is listed however fast it parts.
    impulse = np.zeros((CONTACT_COUNT, 3))
    impulse[::7, 2] = 1.0
    sap.contact_impulse.assign(impulse)
    resumed = np.flatnonzero(carrying | (acts & (impulse[:, 2] > 0.0)))
    assert _run_lists(sap, resumes=1)[0] == len(resumed) > count
    np.testing.assert_array_equal(sap.space_slot.numpy()[: len(resumed)], resumed)


def test_there_is_room_for_a_few_contacts(sap):
    """Where joints are coupled, those between bodies that move count twice, unless one slides."""
    sap.space_slot = wp.array(np.arange(CONTACT_COUNT), dtype=int, device="cpu")
    sap.data.space_slot = sap.space_slot
    for name in ("dof0", "dof1"):
        getattr(sap, "contact_" + name).fill_(0)
    sap.contact_velocity.zero_()
    sap.contact_bias.fill_(-1.0)  # nothing is listed anew
    half = SPACE_CONTACTS_MAX // 2

    def counts(capacity: int = CONTACT_COUNT) -> list[int]:
        return [n for n in range(CONTACT_COUNT) if _run_lists(sap, count=n, capacity=capacity)[1]]

    assert counts() == list(range(SPACE_CONTACTS_MAX + 1))
    assert counts(3) == [0, 1, 2, 3]
    sap.equality_start.assign([0, 1])
    sap.equality_end.fill_(1)
    assert counts() == list(range(half + 1))
    sap.contact_dof0.assign(np.where(np.arange(CONTACT_COUNT) < 2, -1, 0))
    assert counts() == list(range(half + 2))
    velocity = np.zeros((CONTACT_COUNT, 3))
    velocity[0, :2] = 0.8 * STICKING_SPEED
    sap.contact_velocity.assign(velocity)
    assert counts() == list(range(SPACE_CONTACTS_MAX + 1))
