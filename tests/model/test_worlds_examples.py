"""The examples of Newton's page about worlds run with the package name changed and print the same."""

import pytest
import warp as wp

import pluriverse
from pluriverse import Model, ModelBuilder

pytestmark = pytest.mark.filterwarnings("ignore:.*a mass of 1 kg without any inertia")


@pytest.fixture
def two_worlds() -> Model:
    """Two spheres in one world, an arm in the other, a plane in front and a box at the back."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.begin_world()
    b0 = builder.add_body(mass=1.0)
    b1 = builder.add_body(mass=1.0)
    builder.add_shape_sphere(body=b0, radius=0.1)
    builder.add_shape_sphere(body=b1, radius=0.1)
    builder.end_world()
    builder.begin_world()
    link0 = builder.add_link(mass=1.0)
    j0 = builder.add_joint_fixed(parent=-1, child=link0)
    link1 = builder.add_link(mass=2.0)
    j1 = builder.add_joint_revolute(parent=link0, child=link1)
    builder.add_articulation(joints=[j0, j1])
    builder.add_shape_box(body=link0, hx=0.1, hy=0.1, hz=0.1)
    builder.add_shape_box(body=link1, hx=0.1, hy=0.1, hz=0.1)
    builder.end_world()
    builder.add_shape_box(body=-1, hx=0.5, hy=0.5, hz=0.05)
    return builder.finalize()


@pytest.fixture
def arm() -> ModelBuilder:
    """An arm of two links."""
    arm = ModelBuilder()
    link0 = arm.add_link(mass=1.0)
    j0 = arm.add_joint_fixed(parent=-1, child=link0)
    link1 = arm.add_link(mass=1.0)
    j1 = arm.add_joint_revolute(parent=link0, child=link1)
    arm.add_articulation(joints=[j0, j1])
    arm.add_shape_box(body=link0, hx=0.1, hy=0.1, hz=0.1)
    arm.add_shape_box(body=link1, hx=0.1, hy=0.1, hz=0.1)
    return arm


def test_world_of_each_entity(two_worlds, capsys):
    """The *_world arrays as documented."""
    model = two_worlds
    print("Body worlds:", model.body_world.numpy().tolist())
    print("Shape worlds:", model.shape_world.numpy().tolist())
    print("Joint worlds:", model.joint_world.numpy().tolist())
    assert capsys.readouterr().out.splitlines() == [
        "Body worlds: [0, 0, 1, 1]",
        "Shape worlds: [-1, 0, 0, 1, 1, -1]",
        "Joint worlds: [0, 0, 1, 1]",
    ]


def test_where_each_world_begins(two_worlds, capsys):
    """The *_world_start arrays as documented."""
    model = two_worlds
    print("world_count:", model.world_count)
    shape_start = model.shape_world_start.numpy()
    print("Shape starts:", shape_start.tolist())
    world_shape_counts = [int(shape_start[i + 1] - shape_start[i]) for i in range(model.world_count)]
    global_shape_count = int(shape_start[0]) + int(shape_start[-1] - shape_start[-2])
    print("Shape counts per world:", world_shape_counts)
    print("Global shape count:", global_shape_count)
    assert capsys.readouterr().out.splitlines() == [
        "world_count: 2",
        "Shape starts: [1, 3, 5, 6]",
        "Shape counts per world: [2, 2]",
        "Global shape count: 2",
    ]


def test_every_kind_of_entity_has_world_starts(two_worlds):
    """All starts have world_count + 2 entries: front, worlds, back, total."""
    expected = {
        "body": [0, 2, 4, 4],
        "shape": [1, 3, 5, 6],
        "joint": [0, 2, 4, 4],
        "articulation": [0, 2, 3, 3],
        "joint_dof": [0, 12, 13, 13],
        "joint_coord": [0, 14, 15, 15],
        "joint_constraint": [0, 0, 11, 11],
        "equality_constraint": [0, 0, 0, 0],
        "particle": [0, 0, 0, 0],
    }
    for kind, start in expected.items():
        assert getattr(two_worlds, f"{kind}_world_start").numpy().tolist() == start, kind


def test_add_world_adds_one_world_a_call(arm, capsys):
    """Two instances of one arm."""
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.add_world(arm)
    scene.add_world(arm)
    multi_arm_model = scene.finalize()
    print("world_count:", multi_arm_model.world_count)
    assert capsys.readouterr().out == "world_count: 2\n"


def test_replicate_copies_all_bodies(arm, capsys):
    """Four copies of one arm, 2 m apart."""
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.replicate(arm, world_count=4, spacing=(2.0, 0.0, 0.0))
    replicated_model = scene.finalize()
    print("world_count:", replicated_model.world_count)
    print("body_count:", replicated_model.body_count)
    assert capsys.readouterr().out == "world_count: 4\nbody_count: 8\n"


def test_gravity_per_world(capsys):
    """Earth in one world, Moon in the other."""
    robot_builder = ModelBuilder()
    robot_builder.add_body(mass=1.0)
    scene = ModelBuilder()
    scene.add_world(robot_builder)
    scene.add_world(robot_builder)
    model = scene.finalize()
    model.set_gravity((0.0, 0.0, -9.81), world=0)
    model.set_gravity((0.0, 0.0, -1.62), world=1)
    print("Gravity shape:", model.gravity.numpy().shape)
    assert capsys.readouterr().out == "Gravity shape: (2, 3)\n"


@wp.kernel(enable_backward=False, module="unique")
def count_world_bodies(
    body_world_start: wp.array(dtype=wp.int32),
    body_qd: wp.array(dtype=wp.spatial_vectorf),
    visits: wp.array(dtype=wp.int32),
):
    world_id, body_world_id = wp.tid()
    world_start = body_world_start[world_id]
    num_bodies_in_world = body_world_start[world_id + 1] - world_start
    if body_world_id < num_bodies_in_world:
        global_body_id = world_start + body_world_id
        twist = body_qd[global_body_id]
        visits[global_body_id] = visits[global_body_id] + 1 + int(twist[0])


def test_threads_partitioned_by_world_and_entity(two_worlds):
    """A grid of (world, body) visits every body once, in worlds of unequal size too."""
    model = two_worlds
    body_world_start = model.body_world_start.numpy()
    num_bodies_per_world = [body_world_start[i + 1] - body_world_start[i] for i in range(model.world_count)]
    state = model.state()
    visits = wp.zeros(model.body_count, dtype=wp.int32, device=model.device)
    wp.launch(
        count_world_bodies,
        dim=(model.world_count, max(num_bodies_per_world)),
        inputs=[model.body_world_start, state.body_qd, visits],
        device=model.device,
    )
    assert visits.numpy().tolist() == [1] * model.body_count


def test_current_world_follows_the_scope():
    """-1 outside, the index of the world inside; it cannot be set."""
    builder = pluriverse.ModelBuilder()
    assert builder.current_world == -1
    builder.begin_world()
    assert (builder.current_world, builder.world_count) == (0, 1)
    builder.end_world()
    assert builder.current_world == -1
    with pytest.raises(AttributeError):
        builder.current_world = 3
