"""Loop joints: a joint outside the articulation is an equality constraint, or moves a part of a body."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pluriverse import EqType, JointTargetMode, Model, ModelBuilder, SolverSAP

INERTIA = 0.05 * np.eye(3)
IDENTITY = (0.0, 0.0, 0.0, 1.0)
TURN = (0.0, 0.0, np.sin(0.3), np.cos(0.3))
DT = 0.005
START = -0.6


def linkage(add_loop, *, shapes: bool = False) -> ModelBuilder:
    """A crank with a rod, and a rocker, hinged about z; `add_loop(builder, rod, rocker)` ties the ends."""
    builder = ModelBuilder(gravity=(0.0, -9.81, 0.0))
    crank, rod, rocker = (
        builder.add_link(mass=1.0, com=(0.2, 0.0, 0.0), inertia=INERTIA, label=name)
        for name in ("crank", "rod", "rocker")
    )
    hinges = [builder.add_joint_revolute(-1, crank, axis="z", label="first")]
    add_loop(builder, rod, rocker)  # not the last joint: those behind it move up
    hinges += [
        builder.add_joint_revolute(
            crank, rod, axis="z", parent_xform=((0.4, 0, 0), IDENTITY), label="second"
        ),
        builder.add_joint_revolute(-1, rocker, axis="z", parent_xform=((1.0, 0, 0), IDENTITY), label="third"),
    ]
    builder.add_articulation(hinges)
    if shapes:
        for body in (crank, rod, rocker):
            builder.add_shape_sphere(body, radius=0.1)
    # Below the horizontal, where the linkage would fold flat and could go on as an antiparallelogram.
    builder.joint_q[builder.joint_q_start[hinges]] = [START, -START, START]
    return builder


def revolute(builder: ModelBuilder, rod: int, rocker: int, **options) -> int:
    frames = {"parent_xform": ((1.0, 0, 0), IDENTITY), "child_xform": ((0.4, 0, 0), TURN)}
    return builder.add_joint_revolute(rod, rocker, axis="z", label="loop", **(frames | options))


def ball(builder: ModelBuilder, rod: int, rocker: int) -> int:
    return builder.add_joint_ball(
        rod, rocker, parent_xform=((1.0, 0, 0), IDENTITY), child_xform=((0.4, 0, 0), TURN), label="loop"
    )


def simulate(model, step_count: int = 100) -> np.ndarray:
    solver = SolverSAP(model)
    state, other = model.state(), model.state()
    for _ in range(step_count):
        solver.step(state, other, None, None, DT)
        state, other = other, state
    return state.joint_q.numpy()


@pytest.mark.parametrize(("add_loop", "kind"), [(revolute, EqType.HINGE), (ball, EqType.CONNECT)])
def test_linkage_closed_by_a_joint_moves_like_a_parallelogram(add_loop, kind):
    """Crank and rocker turn together and the rod keeps its direction, under gravity."""
    model = linkage(add_loop).finalize("cpu")
    assert model.equality_constraint_type.numpy().tolist() == [int(kind)]
    assert model.equality_constraint_label == ["loop"]
    assert model.joint_label == ["first", "second", "third"]
    assert model.joint_qd_start.numpy().tolist() == [0, 1, 2, 3]
    first, second, third = simulate(model)
    assert abs(first - START) > 0.5, "it swings"
    # (speed dt)^2 of a step, twice that for positions at the mean of velocities, taken back by half a step.
    tolerance = 8.0 * (10.0 * DT) ** 2
    assert abs(first - third) < tolerance
    assert abs(first + second) < tolerance


def test_constraint_holds_what_the_joint_frames_say():
    """The same motion as with the connect constraint written by hand."""

    def connect(builder: ModelBuilder, rod: int, rocker: int) -> None:
        builder.add_equality_constraint(
            EqType.CONNECT, rod, rocker, anchor=(1.0, 0, 0), relpose=((0.6, 0, 0), IDENTITY)
        )

    by_joint, by_hand = (simulate(linkage(add).finalize("cpu")) for add in (ball, connect))
    np.testing.assert_allclose(by_joint, by_hand, atol=1e-4)


def test_fixed_loop_joint_is_a_weld():
    """Two bodies on free joints, fixed to each other, keep the pose that the joint frames give."""
    builder = ModelBuilder(gravity=0.0)
    first = builder.add_body(mass=1.0, inertia=INERTIA)
    second = builder.add_body(mass=1.0, inertia=INERTIA, xform=((0.5, 0.1, 0.0), IDENTITY))
    builder.add_joint_fixed(first, second, parent_xform=((0.5, 0, 0), IDENTITY), label="glue")
    builder.joint_qd[5] = 1.0
    model = builder.finalize("cpu")
    assert model.equality_constraint_type.numpy().tolist() == [int(EqType.WELD)]
    q = simulate(model, 50)
    spin = 2.0 * np.arctan2(q[5], q[6])
    expected = q[:3] + 0.5 * np.array([np.cos(spin), np.sin(spin), 0.0])
    np.testing.assert_allclose(q[7:10], expected, atol=1e-3)
    np.testing.assert_allclose(q[3:7], q[10:14], atol=1e-3)


def test_loop_joints_of_many_worlds():
    """Every world has its own, between those of its neighbours, and joints behind a loop joint move up."""
    scene, plain = ModelBuilder(), ModelBuilder()
    plain.add_body(mass=1.0, inertia=INERTIA)

    def both(builder: ModelBuilder, rod: int, rocker: int) -> None:
        revolute(builder, rod, rocker)
        builder.add_equality_constraint_connect(rod, rocker, anchor=(1.0, 0, 0), label="hand")

    for world in (linkage(revolute), plain, linkage(both), linkage(revolute)):
        scene.add_world(world)
    model = scene.finalize("cpu")
    assert model.equality_constraint_label == ["loop", "hand", "loop", "loop"]
    assert model.equality_constraint_world.numpy().tolist() == [0, 2, 2, 3]
    assert model.equality_constraint_world_start.numpy().tolist() == [0, 1, 1, 3, 4, 4]
    assert model.joint_world_start.numpy().tolist() == [0, 3, 4, 7, 10, 10]
    assert model.world_template.tolist() == [0, 1, 2, 0]
    q = simulate(model).reshape(-1)
    np.testing.assert_array_equal(q[:3], q[13:16])
    assert scene.joint_count == 13, "the builder stays as it was"


def test_coupled_joints_behind_a_loop_joint_are_found():
    def mimic(builder: ModelBuilder) -> int:
        return builder.add_equality_constraint_joint(3, 0, [0.0, 1.0])

    builder = linkage(revolute)
    mimic(builder)
    model = builder.finalize("cpu")
    assert model.equality_constraint_joint1.numpy().tolist() == [2, -1]
    assert model.equality_constraint_joint2.numpy().tolist() == [0, -1]


@pytest.mark.parametrize("filtered", [True, False])
def test_bodies_of_a_loop_joint_do_not_collide(filtered):
    def loop(builder: ModelBuilder, rod: int, rocker: int) -> None:
        revolute(builder, rod, rocker, collision_filter_parent=filtered)

    topology = linkage(loop, shapes=True).finalize("cpu").topology
    pairs = set(
        zip(topology.pair_shape0.numpy().tolist(), topology.pair_shape1.numpy().tolist(), strict=True)
    )
    assert pairs == ({(0, 2)} if filtered else {(0, 2), (1, 2)})


@pytest.mark.parametrize(
    "options",
    [
        {"damping": 1.0},
        {"friction": 1.0},
        {"target_ke": 5.0},
        {"limit_lower": -1.0},
        {"limit_upper": 1.0},
        {"actuator_mode": JointTargetMode.EFFORT},
    ],
)
def test_loop_joint_that_does_more_than_hold_keeps_its_coordinate(options):
    """The rocker is cut in two halves, one of which the joint moves and a weld holds to the other."""
    builder = linkage(lambda *bodies: revolute(*bodies, **options))
    model = builder.finalize("cpu")
    assert model.joint_label == builder.joint_label
    assert model.body_label == ["crank", "rod", "rocker", "loop_half"]
    np.testing.assert_allclose(model.body_mass.numpy(), [1.0, 1.0, 0.5, 0.5])
    np.testing.assert_allclose(model.body_inertia.numpy()[2:], [0.5 * INERTIA] * 2, rtol=1e-6)
    np.testing.assert_allclose(model.body_com.numpy()[3], model.body_com.numpy()[2])
    assert (model.joint_parent.numpy()[1], model.joint_child.numpy()[1]) == (1, 3)
    assert model.articulation_label == ["articulation_0"]
    assert model.joint_articulation.numpy().tolist() == [0] * 4
    assert model.equality_constraint_label == ["loop"]
    assert model.equality_constraint_type.numpy().tolist() == [int(EqType.WELD)]
    assert model.equality_constraint_body1.numpy().tolist() == [2]
    assert model.equality_constraint_body2.numpy().tolist() == [3]
    np.testing.assert_allclose(model.equality_constraint_anchor.numpy(), [[0.4, 0.0, 0.0]])
    # The rod is level, the rocker at START, and the child frame 0.6 rad ahead of it.
    np.testing.assert_allclose(model.joint_q.numpy()[1], START + 0.6, atol=1e-6)
    np.testing.assert_allclose(model.body_q.numpy()[3], model.body_q.numpy()[2], atol=1e-6)
    assert builder.body_count == 3, "the builder stays as it was"


def test_coupled_loop_joint_keeps_its_coordinate():
    builder = linkage(revolute)
    builder.add_equality_constraint_joint(1, polycoef=[0.1])
    model = builder.finalize("cpu")
    assert model.joint_count == 4
    assert model.equality_constraint_type.numpy().tolist() == [int(EqType.JOINT), int(EqType.WELD)]
    assert model.equality_constraint_joint1.numpy().tolist() == [1, 1], "the weld names the joint, too"


def slide(builder: ModelBuilder, rod: int, rocker: int, **options) -> int:
    return builder.add_joint_prismatic(rod, rocker, axis="x", label="loop", **options)


def test_parts_of_many_worlds_are_the_last_of_their_bodies():
    """Shapes, couplings, constraints and custom attributes follow the bodies of later worlds."""
    scene = ModelBuilder()
    scene.add_custom_attribute(ModelBuilder.CustomAttribute("grip", float, Model.AttributeFrequency.BODY))
    scene.add_custom_attribute(
        ModelBuilder.CustomAttribute(
            "friend", int, Model.AttributeFrequency.BODY, references="body", default=-1
        )
    )
    plain = ModelBuilder()
    plain.add_body(mass=1.0, inertia=INERTIA, label="ball")
    cut = linkage(slide, shapes=True)
    cut.add_equality_constraint_connect(0, 2, anchor=(1.0, 0, 0), label="hand")
    for world in (cut, plain, cut):
        scene.add_world(world)
    scene.custom_attributes["grip"].values[2], scene.custom_attributes["friend"].values[6] = 7.0, 5
    model = scene.finalize("cpu")
    names = ["crank", "rod", "rocker", "loop_half"]
    assert model.body_label == [*names, "ball", *names]
    assert model.body_world.numpy().tolist() == [0] * 4 + [1] + [2] * 4
    assert model.world_template.tolist() == [0, 1, 0]
    assert model.shape_body.numpy().tolist() == [0, 1, 2, 5, 6, 7]
    assert model.equality_constraint_label == ["hand", "loop", "hand", "loop"]
    assert model.equality_constraint_body1.numpy().tolist() == [0, 2, 5, 7]
    assert model.equality_constraint_body2.numpy().tolist() == [2, 3, 7, 8]
    assert model.joint_child.numpy().tolist() == [0, 3, 1, 2, 4, 5, 8, 6, 7]
    # A part has the values of the body that it was cut from; references mean the body.
    np.testing.assert_array_equal(model.grip.numpy(), [0.0, 0.0, 7.0, 7.0] + [0.0] * 5)
    assert model.friend.numpy().tolist() == [-1] * 7 + [6, 6]
    assert not (model.topology.pair_shape0.numpy() == 1).any(), "rod and rocker do not collide"


def test_body_with_two_loop_joints_is_cut_into_three():
    def two(builder: ModelBuilder, rod: int, rocker: int) -> None:
        slide(builder, rod, rocker)
        builder.add_joint_prismatic(-1, rocker, axis="y", label="second loop")

    model = linkage(two).finalize("cpu")
    assert model.body_label == ["crank", "rod", "rocker", "loop_half", "second loop_half"]
    np.testing.assert_allclose(model.body_mass.numpy()[2:], [1.0 / 3.0] * 3, rtol=1e-6)
    assert model.joint_articulation.numpy().tolist() == [0] * 5


@given(
    axes=st.lists(st.sampled_from(["x", "y", "z"]), max_size=3, unique=True),
    turns=st.sampled_from([(), ("z",), ("x", "z"), ("y", "x", "z"), ("z", "y", "z")]),
    q=st.lists(st.floats(-0.9, 0.9), min_size=6, max_size=6),
    qd=st.lists(st.floats(-1.0, 1.0), min_size=6, max_size=6),
    seed=st.integers(0, 9),
)
@settings(max_examples=40, deadline=None)
def test_coordinates_of_a_loop_joint_are_those_that_would_move_the_body_there(axes, turns, q, qd, seed):
    """A body that a D6 joint of the tree moves, and a loop joint like it: both have the same coordinates."""
    assume(axes or turns)
    assume(turns != ("z", "y", "z") or abs(q[len(axes) + 1]) > 0.1)  # off gimbal lock
    rng = np.random.default_rng(seed)
    frame, other = (
        (rng.normal(size=3).tolist(), (quat / np.linalg.norm(quat)).tolist())
        for quat in rng.normal(size=(2, 4))
    )
    builder = ModelBuilder()
    base = builder.add_body(mass=1.0, inertia=INERTIA, com=(0.1, 0.0, 0.2))
    body = builder.add_link(mass=1.0, inertia=INERTIA, com=(0.0, 0.3, 0.0))
    frames = {"parent_xform": frame, "child_xform": other}
    joint = builder.add_joint_d6(base, body, linear_axes=axes, angular_axes=turns, **frames)
    builder.add_articulation([joint])
    builder.add_joint_d6(base, body, linear_axes=axes, angular_axes=turns, label="loop", **frames)
    count = len(axes) + len(turns)
    builder.joint_q[7 : 7 + count] = q[:count]
    builder.joint_qd[:6] = rng.normal(size=6)
    builder.joint_qd[6 : 6 + count] = qd[:count]
    if turns == ("z", "y", "z"):  # two sets of angles mean the same
        builder.joint_q[7 + count :] = np.array(q[:count]) + 0.01
    model = builder.finalize("cpu")
    joint_q, joint_qd = model.joint_q.numpy()[7:], model.joint_qd.numpy()[6:]
    # Coordinates are found in float64 and stored in single precision.
    np.testing.assert_allclose(joint_q[count:], joint_q[:count], atol=2e-6)
    np.testing.assert_allclose(joint_qd[count:], joint_qd[:count], atol=1e-5)
    np.testing.assert_allclose(model.body_q.numpy()[2], model.body_q.numpy()[1], atol=2e-6)
    np.testing.assert_allclose(model.body_qd.numpy()[2], model.body_qd.numpy()[1], atol=2e-5)


def test_given_coordinate_of_a_loop_joint_says_how_many_turns_it_has_made():
    builder = linkage(lambda *bodies: revolute(*bodies, damping=1.0))
    builder.joint_q[1] = 12.0
    np.testing.assert_allclose(
        builder.finalize("cpu").joint_q.numpy()[1], START + 0.6 + 4.0 * np.pi, atol=1e-5
    )


def test_free_joint_that_closes_a_loop_is_refused():
    builder = linkage(lambda builder, rod, rocker: builder.add_joint_free(rocker, label="loop"))
    with pytest.raises(
        ValueError, match=r"'loop' .* closes a loop: body 'rocker' .* FREE joint constrains nothing"
    ):
        builder.finalize("cpu")


def test_distance_joint_with_losses_that_closes_a_loop_is_refused():
    builder = linkage(lambda *bodies: bodies[0].add_joint_distance(*bodies[1:], label="loop"))
    builder.joint_damping[1] = 1.0
    with pytest.raises(ValueError, match=r"'loop' .* DISTANCE joint has no coordinates .* joint_damping"):
        builder.finalize("cpu")


def test_body_without_mass_cannot_be_cut():
    builder = linkage(slide)
    builder.body_mass[2] = 0.0
    with pytest.raises(ValueError, match=r"'loop' .* closes a loop .* 'rocker' .*, whose mass is 0.0 kg"):
        builder.finalize("cpu")


@pytest.mark.parametrize("add_loop", [revolute, ball])
def test_loop_joint_that_is_off_can_be_switched_on(add_loop):
    """Crank and rocker are two pendula of their own until the constraint is enabled."""
    builder = linkage(add_loop)
    builder.joint_enabled[1] = False
    model = builder.finalize("cpu")
    assert model.equality_constraint_enabled.numpy().tolist() == [False]
    first, _, third = simulate(model)
    assert abs(first - third) > 0.1
    model.equality_constraint_enabled.fill_(True)
    first, _, third = simulate(model)
    assert abs(first - third) < 0.03


def test_joint_of_a_tree_that_is_off_leaves_its_child_free():
    """A tool that an arm does not hold falls, with all that hangs on it, until the grip is switched on."""
    builder = ModelBuilder()
    arm, tool, tip = (
        builder.add_link(mass=1.0, inertia=INERTIA, label=name, xform=((x, 0.0, 0.0), IDENTITY))
        for x, name in ((0.0, "arm"), (0.5, "tool"), (1.0, "tip"))
    )
    at_half = {"parent_xform": ((0.5, 0.0, 0.0), IDENTITY)}
    joints = [
        builder.add_joint_fixed(-1, arm, label="mount"),
        builder.add_joint_fixed(arm, tool, label="grip", enabled=False, **at_half),
        builder.add_joint_revolute(tool, tip, axis="y", label="hinge", **at_half),
    ]
    builder.add_articulation(joints, label="robot")
    model = builder.finalize("cpu")
    assert model.joint_label == ["mount", "hinge", "tool_free_joint"]
    assert model.joint_articulation.numpy().tolist() == [0, 0, 0]
    assert model.equality_constraint_label == ["grip"]
    assert model.equality_constraint_enabled.numpy().tolist() == [False]
    np.testing.assert_allclose(model.body_q.numpy()[:, 0], [0.0, 0.5, 1.0], atol=1e-6)
    q = simulate(model, 40)
    np.testing.assert_allclose(q[3], -0.5 * 9.81 * (40 * DT) ** 2, rtol=0.05)
    model.equality_constraint_enabled.fill_(True)
    assert abs(simulate(model, 40)[3]) < 1e-3


def test_loop_joint_that_is_off_and_no_constraint_is_left_out():
    builder = linkage(lambda *bodies: slide(*bodies, enabled=False))
    builder.add_equality_constraint_joint(3, 0)
    with pytest.warns(UserWarning, match=r"'loop' .* is disabled .*: they are not in the model"):
        model = builder.finalize("cpu")
    assert model.joint_label == ["first", "second", "third"]
    assert model.body_label == ["crank", "rod", "rocker"]
    assert model.equality_constraint_joint1.numpy().tolist() == [2]
    builder.add_equality_constraint_joint(1)
    with pytest.raises(ValueError, match=r"'loop' .* is disabled .*, but an equality constraint couples it"):
        builder.finalize("cpu")
