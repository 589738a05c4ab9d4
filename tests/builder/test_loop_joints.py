"""Loop joints: a joint beside the articulation is an equality constraint that holds the same."""

import numpy as np
import pytest

from pluriverse import EqType, ModelBuilder, SolverSAP

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
    ("options", "message"),
    [
        ({"damping": 1.0}, "joint_damping is given"),
        ({"target_ke": 5.0}, "joint_target_ke is given"),
        ({"limit_lower": -1.0}, "joint_limit_lower, joint_limit_upper is given"),
    ],
)
def test_loop_joint_with_a_drive_limits_or_losses_is_refused(options, message):
    builder = linkage(lambda *bodies: revolute(*bodies, **options))
    with pytest.raises(ValueError, match=f"'loop' .* closes a loop: body 'rocker' .*{message}"):
        builder.finalize("cpu")


def test_loop_joint_of_another_type_is_refused():
    builder = linkage(lambda builder, *bodies: builder.add_joint_prismatic(*bodies, axis="x"))
    with pytest.raises(NotImplementedError, match=r"Only ball, fixed, .* joints can.* PRISMATIC"):
        builder.finalize("cpu")


def test_coupling_of_a_loop_joint_is_refused():
    builder = linkage(revolute)
    builder.add_equality_constraint_joint(1, polycoef=[0.1])
    with pytest.raises(ValueError, match=r"'loop' .* an equality constraint couples it"):
        builder.finalize("cpu")
