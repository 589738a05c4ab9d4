"""The one mapping from arrays of the model to MuJoCo's fields, wherever its kernels run."""

import numpy as np

import pluriverse as pv
from pluriverse.solvers.mujoco.mapping import group_kernels
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.mapping.stages import STAGES
from pluriverse.solvers.mujoco.options import MujocoOptions
from tests.solvers.mujoco.mapping.test_field_sync import add_coupled_bodies
from tests.solvers.mujoco.mapping.test_grouping import add_machine, fields_of


def build(seeds: list[int]) -> pv.Model:
    builder = pv.ModelBuilder()
    for seed in seeds:
        builder.begin_world()
        add_machine(builder, np.random.default_rng(seed))
        add_coupled_bodies(builder, np.random.default_rng(seed))
        builder.end_world()
    return builder.finalize(device="cpu")


def test_fields_are_the_same_by_way_of_a_device(monkeypatch):
    """On a GPU arrays go to the device and come back; here a copy on the CPU stands for that."""
    (shared,) = convert_model(build([1, 2, 3]), MujocoOptions())
    monkeypatch.setattr(group_kernels, "shares_memory", lambda device: False)
    (copied,) = convert_model(build([1, 2, 3]), MujocoOptions())
    assert shared.fields.keys() == copied.fields.keys()
    for name in fields_of(shared.model):
        np.testing.assert_array_equal(shared.value(name), copied.value(name), err_msg=name)
    for name in ("joint_rotation", "mocap_pose", "geom_ke", "geom_kd"):
        np.testing.assert_array_equal(getattr(shared, name), getattr(copied, name), err_msg=name)
    np.testing.assert_array_equal(shared.value("eq_active0"), copied.value("eq_active0"))


def test_a_world_has_the_same_bits_alone_as_among_others():
    """Fields that kernels compute do not depend on the other worlds of the group."""
    (group,) = convert_model(build([4, 5, 6]), MujocoOptions())
    (alone,) = convert_model(build([5]), MujocoOptions())
    free = {plan.body for plan in group.plan.structure.joints if plan.kind == 0}
    moved = [body for body in range(group.model.nbody) if body not in free]
    names = {name for stage, entry in STAGES.items() if stage != "derived" for name in entry.fields}
    for name in sorted(names):
        if group.has_field(name) and not name.endswith("solref") and not name.startswith("tendon_solref"):
            mine, expected = group.value(name)[1], alone.value(name)[0]
            if name in ("body_pos", "body_quat"):  # what moves freely has its place in the state
                mine, expected = mine[moved], expected[moved]
            np.testing.assert_array_equal(mine, expected, err_msg=name)
