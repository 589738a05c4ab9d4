"""Equality constraints in builder and model: where they stand, how copies move, and what is refused."""

import numpy as np
import pytest

from pluriverse import EqType, ModelBuilder
from pluriverse.model import poses
from pluriverse.mujoco_attributes.registration import register_custom_attributes

INERTIA = np.eye(3)
TURN = np.array([0.0, 0.0, np.sin(0.4), np.cos(0.4)])


def pair() -> ModelBuilder:
    """Two free bodies and a hinge, with a constraint of each kind."""
    builder = ModelBuilder()
    first = builder.add_body(mass=1.0, inertia=INERTIA, xform=((0.1, 0.2, 0.3), TURN), label="first")
    second = builder.add_body(
        mass=1.0, inertia=INERTIA, xform=((1.0, 0.0, 0.5), (0, 0, 0, 1)), label="second"
    )
    link = builder.add_link(mass=1.0, inertia=INERTIA, com=(0.1, 0, 0))
    arm = builder.add_link(mass=1.0, inertia=INERTIA, com=(0.1, 0, 0))
    joints = [builder.add_joint_revolute(-1, link), builder.add_joint_prismatic(link, arm)]
    builder.add_articulation(joints)
    builder.add_equality_constraint_connect(first, second, anchor=(0.1, 0.0, 0.0), label="connect")
    builder.add_equality_constraint_weld(-1, first, anchor=(0.0, 0.3, 0.0), label="weld")
    builder.add_equality_constraint_weld(second, -1, anchor=(0.0, 0.3, 0.0), relpose=((1, 2, 3), TURN))
    builder.add_equality_constraint(EqType.HINGE, -1, second, anchor=(1.0, 0.0, 0.0), axis="x")
    builder.add_constraint_mimic(joints[1], joints[0], 0.5, 2.0, label="mimic")
    builder.add_equality_constraint_joint(joints[0], polycoef=[0.2], enabled=False)
    return builder


def test_arrays_of_one_world():
    model = pair().finalize("cpu")
    assert model.equality_constraint_count == 6
    assert model.equality_constraint_world_start.numpy().tolist() == [6, 6, 6]
    assert model.equality_constraint_type.numpy().tolist() == [0, 1, 1, 3, 2, 2]
    assert model.equality_constraint_body1.numpy().tolist() == [0, -1, 1, -1, -1, -1]
    assert model.equality_constraint_body2.numpy().tolist() == [1, 0, -1, 1, -1, -1]
    assert model.equality_constraint_joint1.numpy().tolist() == [-1, -1, -1, -1, 3, 2]
    assert model.equality_constraint_joint2.numpy().tolist() == [-1, -1, -1, -1, 2, -1]
    assert model.equality_constraint_enabled.numpy().tolist() == [True] * 5 + [False]
    assert model.equality_constraint_polycoef.numpy()[4].tolist() == [0.5, 2.0, 0.0, 0.0, 0.0]
    assert model.equality_constraint_label[0] == "connect"
    assert model.equality_constraint_label[3] == "equality_constraint_3"
    body_q = model.body_q.numpy().astype(float)
    relpose = model.equality_constraint_relpose.numpy()
    initial = poses.compose(poses.inverse(body_q[0]), body_q[1])
    np.testing.assert_allclose(relpose[0], initial, atol=1e-6)
    np.testing.assert_allclose(relpose[1], body_q[0], atol=1e-6)
    np.testing.assert_allclose(relpose[2], [1, 2, 3, *TURN], atol=1e-6)


@pytest.mark.parametrize("how", ["replicate", "add_world", "add_builder"])
def test_copies_hold_the_same_in_their_own_place(how):
    """What a constraint holds in the world moves with the copy: the errors of all copies are those of one."""
    scene, world = ModelBuilder(), pair()
    xform = ((3.0, -1.0, 0.5), (0.0, np.sin(0.3), 0.0, np.cos(0.3)))
    if how == "replicate":
        scene.replicate(world, 2, spacing=(3.0, 0.0, 0.0))
    else:
        for place in (None, xform):
            if how == "add_world":
                scene.add_world(world, xform=place, label_prefix="copy")
            else:
                scene.begin_world()
                scene.add_builder(world, xform=place)
                scene.end_world()
    model = scene.finalize("cpu")
    assert model.equality_constraint_world_start.numpy().tolist() == [0, 6, 12, 12]
    assert model.equality_constraint_world.numpy().tolist() == [0] * 6 + [1] * 6
    assert model.equality_constraint_body1.numpy()[6:].tolist() == [4, -1, 5, -1, -1, -1]
    assert model.equality_constraint_joint1.numpy()[6:].tolist() == [-1, -1, -1, -1, 7, 6]
    assert len(model.templates) == 1
    errors = [_errors(model, index) for index in range(12)]
    np.testing.assert_allclose(errors[:6], errors[6:], atol=2e-6)


def _errors(model, index: int) -> np.ndarray:
    """Distance of the two points, and scalar product of the two orientations, as the model has them."""
    kind = model.equality_constraint_type.numpy()[index]
    if kind == EqType.JOINT:
        return np.zeros(2)
    placed = np.vstack([model.body_q.numpy(), [0, 0, 0, 0, 0, 0, 1]]).astype(float)
    body1 = placed[model.equality_constraint_body1.numpy()[index]]
    body2 = placed[model.equality_constraint_body2.numpy()[index]]
    relpose = model.equality_constraint_relpose.numpy()[index].astype(float)
    held = poses.compose(body1, relpose)
    anchor = np.array([*model.equality_constraint_anchor.numpy()[index], 0.0, 0.0, 0.0, 1.0])
    if kind == EqType.WELD:
        points = poses.compose(held, anchor)[:3], poses.compose(body2, anchor)[:3]
    else:
        other = poses.compose(poses.inverse(relpose), anchor)
        points = poses.compose(body1, anchor)[:3], poses.compose(body2, other)[:3]
    return np.array([np.linalg.norm(points[0] - points[1]), abs(held[3:] @ body2[3:])])


def test_worlds_of_other_constraints_are_other_templates():
    scene, plain = ModelBuilder(), pair()
    more = pair()
    more.add_equality_constraint_connect(0, 1)
    for world in (plain, more, plain):
        scene.add_world(world)
    model = scene.finalize("cpu")
    assert model.world_template.tolist() == [0, 1, 0]
    assert model.equality_constraint_world_start.numpy().tolist() == [0, 6, 13, 19, 19]


@pytest.mark.parametrize(
    ("add", "error", "message"),
    [
        (lambda b: b.add_equality_constraint(7, 0, 1), ValueError, "constraint_type is 7"),
        (
            lambda b: b.add_equality_constraint_connect(0, 0),
            ValueError,
            "body1 and body2 are both body 'first'",
        ),
        (lambda b: b.add_equality_constraint_connect(), ValueError, "are both the world"),
        (lambda b: b.add_equality_constraint_weld(0, 99), IndexError, "body 99 does not exist"),
        (
            lambda b: b.add_equality_constraint_connect(0, 1, anchor=(1, 2)),
            ValueError,
            "three finite numbers",
        ),
        (lambda b: b.add_equality_constraint_weld(0, 1, torquescale=-1.0), ValueError, "torquescale is -1"),
        (lambda b: b.add_equality_constraint_weld(0, 1, relpose=(0,) * 7), ValueError, "has length 0"),
        (lambda b: b.add_equality_constraint_joint(2, 2), ValueError, "joint1 and joint2 are both"),
        (lambda b: b.add_equality_constraint_joint(0, 2), ValueError, "is FREE, but only joints whose axes"),
        (lambda b: b.add_equality_constraint_joint(9, 2), IndexError, "joint 9 does not exist"),
        (lambda b: b.add_equality_constraint_joint(3, 2, [0] * 6), ValueError, "1 to 5 finite numbers"),
        (lambda b: b.add_constraint_mimic(3, -1), ValueError, "the joint to be mimicked"),
        (
            lambda b: b.add_equality_constraint(EqType.CONNECT, 0, 1, torquescale=1.0),
            ValueError,
            "torquescale does not belong to a constraint of type CONNECT",
        ),
        (
            lambda b: b.add_equality_constraint(EqType.JOINT, 0, joint1=2),
            ValueError,
            "body1 does not belong to a constraint of type JOINT",
        ),
    ],
)
def test_constraint_that_cannot_be_is_refused(add, error, message):
    with pytest.raises(error, match=message):
        add(pair())


def test_bodies_and_joints_of_another_world_are_refused():
    builder = ModelBuilder()
    builder.add_world(pair())
    builder.begin_world()
    with pytest.raises(ValueError, match="is in world 0, but the entity is being added to world 1"):
        builder.add_equality_constraint_connect(0, -1)
    with pytest.raises(ValueError, match="is in world 0, but the constraint is being added to world 1"):
        builder.add_equality_constraint_joint(2)


def test_mimicked_joint_can_be_changed_and_cleared():
    """One constraint per follower, whatever it follows; none acts once it is cleared."""
    builder = ModelBuilder()
    links = [builder.add_link(mass=1.0, inertia=INERTIA) for _ in range(3)]
    joints = [builder.add_joint_revolute(-1, link, label=f"joint {link}") for link in links]
    for joint in joints:
        builder.add_articulation([joint])
    builder.set_joint_mimic(joints[2], joints[0])
    builder.set_joint_mimic(joints[2], joints[1], coeffs=(0.5, -2.0))
    assert builder.equality_constraint_label == ["joint 2_mimic"]
    assert builder.equality_constraint_joint2.tolist() == [joints[1]]
    assert builder.equality_constraint_polycoef[0].tolist() == [0.5, -2.0, 0.0, 0.0, 0.0]
    builder.set_joint_mimic(joints[2], None)
    assert builder.finalize("cpu").equality_constraint_enabled.numpy().tolist() == [False]
    builder.set_joint_mimic(joints[2], joints[0])
    assert builder.finalize("cpu").equality_constraint_enabled.numpy().tolist() == [True]
    for reference, coeffs, message in (
        (joints[2], (0.0, 1.0), "cannot mimic itself"),
        (joints[0], (1.0,), "two numbers"),
        (joints[0], (np.nan, 1.0), "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            builder.set_joint_mimic(joints[2], reference, coeffs=coeffs)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("anchor", np.nan, "equality_constraint_anchor is .*nan"),
        ("torquescale", -1.0, "equality_constraint_torquescale is .*-1.0"),
        ("axis", 0.0, "an axis not zero"),
        ("polycoef", np.inf, "equality_constraint_polycoef is .*inf"),
        ("relpose", 3.0, "equality_constraint_relpose is .*3.0"),
    ],
)
def test_impossible_number_in_an_array_is_refused(column, value, message):
    builder = pair()
    getattr(builder, f"equality_constraint_{column}")[1] = value
    with pytest.raises(ValueError, match=f"'weld' .*{message}|{message}"):
        builder.finalize("cpu")


def test_constraint_between_bodies_that_cannot_move_is_refused():
    builder = ModelBuilder()
    base = builder.add_body(mass=1.0, inertia=INERTIA, label="base")
    cap = builder.add_link(mass=1.0, inertia=INERTIA, label="cap")
    builder.add_articulation([builder.add_joint_fixed(base, cap)])
    builder.add_equality_constraint_connect(base, cap)
    with pytest.raises(ValueError, match=r"'base' .* and body 'cap' .* cannot move against each other"):
        builder.finalize("cpu")


def test_rows_of_newton_are_equality_constraints():
    """A constraint given as a row of mujoco:equality_constraint is the one that the method adds."""
    rows = [
        {"type": 0, "body1": 0, "body2": 1, "anchor": (1.0, 2.0, 3.0), "label": "point"},
        {"type": 1, "body1": 0, "body2": 1, "torquescale": 2.0, "relpose": (1.0, 2.0, 3.0, 0, 0, 0, 1)},
        {"type": 1, "body1": 1, "body2": 0, "torquescale": 1.0, "relpose": (0, 1, 0, 0, 0, 0, 0)},
        {"type": 2, "joint1": 0, "joint2": 1, "polycoef": (0.1, 2.0, 0, 0, 0), "enabled": False},
        {"type": 2, "joint1": 1, "joint1_dof": 1, "polycoef": (0.1, 0, 0, 0, 0)},
    ]
    one, other = ModelBuilder(), ModelBuilder()
    for builder in (one, other):
        register_custom_attributes(builder)
        links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
        joints = [builder.add_joint_revolute(-1, link, axis="z") for link in links]
        builder.add_articulation(joints)
    for row in rows:
        softness = {"mujoco:eq_solref": (0.05, 0.7)}
        one.add_custom_values(
            {f"mujoco:equality_constraint_{name}": value for name, value in row.items()} | softness
        )
    softness = {"custom_attributes": {"mujoco:eq_solref": (0.05, 0.7)}}
    other.add_equality_constraint_connect(0, 1, (1.0, 2.0, 3.0), label="point", **softness)
    other.add_equality_constraint_weld(0, 1, None, 2.0, (1.0, 2.0, 3.0, 0, 0, 0, 1), **softness)
    other.add_equality_constraint_weld(1, 0, None, 1.0, None, **softness)
    other.add_equality_constraint_joint(0, 1, (0.1, 2.0), enabled=False, **softness)
    other.add_equality_constraint_joint(1, -1, (0.1,), **softness)
    ours, theirs = one.finalize("cpu"), other.finalize("cpu")
    for name in (
        "type",
        "body1",
        "body2",
        "anchor",
        "relpose",
        "torquescale",
        "joint1",
        "polycoef",
        "enabled",
    ):
        arrays = [getattr(model, f"equality_constraint_{name}").numpy() for model in (ours, theirs)]
        np.testing.assert_array_equal(*arrays, err_msg=name)
    assert ours.equality_constraint_label == theirs.equality_constraint_label
    np.testing.assert_array_equal(ours.mujoco.eq_solref.numpy(), theirs.mujoco.eq_solref.numpy())
    assert ours.mujoco.equality_constraint_enabled is ours.equality_constraint_enabled
    with pytest.raises(
        AttributeError, match="'mujoco:equality_constraint_size' is no attribute of an equality"
    ):
        one.add_custom_values(**{"mujoco:equality_constraint_size": 1})
    with pytest.raises(ValueError, match="equality_constraint_type is 9, but it must be 0"):
        one.add_custom_values(**{"mujoco:equality_constraint_type": 9})
    with pytest.raises(ValueError, match="equality_constraint_world is 3, but the current world is -1"):
        one.add_custom_values(**{"mujoco:equality_constraint_world": 3})
