"""Terms of contacts do not depend on the blocks of contacts that they are computed in."""

import numpy as np
import pytest

from pluriverse import Contacts, ModelBuilder, SolverSAP
from tests.oracles.random_scenes import (
    copy_world,
    random_contacts,
    random_world,
    randomize_state,
)

CONTACT_COUNT = 21
# Two full blocks and five more; their reverse; one contact; none; all but the last of a block.
LISTS = (
    list(range(CONTACT_COUNT)),
    list(range(CONTACT_COUNT))[::-1],
    [3],
    [],
    [20, 1, 1, 7, 6, 13, 2],
)
TERMS = (
    "contact_node0",
    "contact_node1",
    "contact_dof0",
    "contact_dof1",
    "contact_frame",
    "contact_arm0",
    "contact_arm1",
    "contact_chord",
    "contact_gap",
    "contact_weight",
    "contact_bias",
    "contact_rt",
    "contact_rn",
    "contact_mu",
    "contact_soft",
    "contact_speed_max",
    "contact_work_max",
)
LISTED = ("shape0", "shape1", "point0", "point1", "normal", "margin0", "margin1")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"contact_point_mode": "witness_point", "contact_weight_mode": "body_inertia"},
        {"contact_weight_mode": "diag_delassus", "friction_combination": "arithmetic_mean"},
    ],
)
def test_terms_of_a_contact_have_the_same_bits_in_any_list(options):
    """Worlds in the same state list some of the same contacts, in other orders and numbers.

    The last world has no slots beyond its contacts.
    """
    rng = np.random.default_rng(3)
    world = random_world(rng, (5, 1, 3))
    builder = ModelBuilder()
    for _ in LISTS:
        builder.add_world(world)
    model = builder.finalize("cpu")
    contacts = Contacts(model, [CONTACT_COUNT] * (len(LISTS) - 1) + [len(LISTS[-1])])
    state, control = model.state(), model.control()
    randomize_state(model, state, control, rng, 0)
    random_contacts(model, state, control, contacts, rng, 0, CONTACT_COUNT)
    start = contacts.rigid_contact_start.numpy()
    arrays = {name: getattr(contacts, f"rigid_contact_{name}").numpy() for name in LISTED}
    shift = model.shape_world_start.numpy()
    for target, listed in list(enumerate(LISTS))[1:]:
        copy_world(model, state, 0, target)
        for name, values in arrays.items():
            values[start[target] : start[target] + len(listed)] = values[listed]
            if name.startswith("shape"):
                values[start[target] : start[target] + len(listed)] += shift[target] - shift[0]
    for name, values in arrays.items():
        getattr(contacts, f"rigid_contact_{name}").assign(values)
    contacts.rigid_contact_count.assign([len(listed) for listed in LISTS])
    contacts.rigid_contact_found.assign([len(listed) for listed in LISTS])
    solver = SolverSAP(model, max_iterations=0, **options)
    solver.step(state, model.state(), control, contacts, 0.005)  # makes the workspace
    for name in TERMS:
        array = getattr(solver.workspace, name)
        array.assign(np.full_like(array.numpy(), -7))
    solver.step(state, model.state(), control, contacts, 0.005)

    assert solver.world_frozen.numpy().max() == 0
    for name in TERMS:
        values = getattr(solver.workspace, name).numpy()
        for target, listed in enumerate(LISTS):
            got, end = values[start[target] :][: len(listed)], start[target + 1]
            np.testing.assert_array_equal(got, values[listed], err_msg=f"{name} of world {target}")
            unused = values[start[target] + len(listed) : end]
            assert (unused == -7).all(), f"{name} of world {target} is written beyond its contacts"
