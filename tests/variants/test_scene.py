"""Scenes: every world has exactly what its variant has on its own, and moves as it would alone."""

import functools
import sys
import warnings

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.entity import EntityCfg, VariantEntityCfg
from pluriverse.entity.variants import VARIANT_DEPENDENT_FIELDS
from pluriverse.scene import SceneCfg
from pluriverse.variants import make_scene
from tests.variants.objects import (
    arm_builder,
    ball_builder,
    box_builder,
    mesh_spec,
    pile_builder,
    world_rows,
)

DT = 0.005
STATE = ("joint_q", "joint_qd", "body_q", "body_qd")


def alone(asset, **place):
    """Return the model of one world of an asset above the ground."""
    world = pv.ModelBuilder()
    if isinstance(asset, pv.ModelBuilder):
        world.add_builder(asset)
    else:
        world.add_mjcf(asset)
    for name, value in place.items():
        getattr(world, name)[:3] = value
    builder = pv.ModelBuilder()
    builder.add_world(world)
    builder.add_ground_plane()
    return builder.finalize("cpu")


@pytest.mark.parametrize("share_layouts", [True, False])
def test_inertia_equals_that_of_an_independent_compile_bit_for_bit(share_layouts):
    """Mass, centre and inertia of a world are those of its variant compiled alone."""
    specs = {
        "small": mesh_spec(1, 1, 0.03),
        "large": mesh_spec(1, 4, 0.2),
        "dense": mesh_spec(0, 2, density=9e3),
    }
    entity = VariantEntityCfg(variants=specs, assignment=lambda n: [w % 3 for w in range(n)])
    scene = make_scene(
        SceneCfg(num_envs=7, entities={"object": entity}, share_layouts=share_layouts), device="cpu"
    )
    compiled = {name: (alone(spec), spec.copy().compile()) for name, spec in specs.items()}
    for world in range(7):
        model, mujoco_model = compiled[list(specs)[world % 3]]
        for name in ("body_mass", "body_com", "body_inertia"):
            np.testing.assert_array_equal(
                world_rows(scene.model, name, world),
                getattr(model, name).numpy(),
                err_msg=f"{name} of {world}",
            )
        assert world_rows(scene.model, "body_mass", world)[0] == np.float32(mujoco_model.body_mass[1])
        np.testing.assert_array_equal(
            world_rows(scene.model, "body_com", world)[0], mujoco_model.body_ipos[1].astype(np.float32)
        )


def test_every_world_moves_as_its_variant_does_alone():
    """Robots, objects and piles give the same bits in a scene as in a world of their own."""
    variants = {
        "box": box_builder(),
        "ball": ball_builder(),
        "pile": pile_builder(3),
        "meshes": mesh_spec(1, 3),
        "more meshes": mesh_spec(0, 2, 0.08),
        "arm": arm_builder(2, stiffness=50.0),
        "long arm": arm_builder(3, stiffness=50.0),
    }
    entity = VariantEntityCfg(variants=variants)
    scene = make_scene(SceneCfg(num_envs=14, entities={"thing": entity}), device="cpu")
    simulation = scene.simulation(dt=DT)
    simulation.step(60)
    for number, asset in enumerate(variants.values()):
        model = alone(asset)
        reference = pv.Simulation(model, dt=DT)
        reference.step(60)
        for world in (2 * number, 2 * number + 1):
            for name in ("joint_q", "joint_qd"):
                kind = "joint_coord" if name == "joint_q" else "joint_dof"
                start = getattr(scene.model, f"{kind}_world_start").numpy()
                mine = getattr(simulation.state, name).numpy()[start[world] : start[world + 1]]
                np.testing.assert_array_equal(mine, getattr(reference.state, name).numpy())


def test_several_entities_each_have_their_own_variants():
    """A fixed arm of two lengths beside a ball, a box or a pile: layouts combine, names do not mix."""
    arms = VariantEntityCfg(
        variants={"short": arm_builder(1), "long": arm_builder(2)},
        assignment=lambda n: [w % 2 for w in range(n)],
    )
    things = VariantEntityCfg(
        variants={"ball": ball_builder(), "box": box_builder(), "pile": pile_builder(2)},
        assignment=lambda n: [w // 2 for w in range(n)],
        init_state=EntityCfg.InitialStateCfg(pos=(1.0, 0.0, 0.5)),
    )
    floor = EntityCfg(
        spec_fn=lambda: box_builder(0.1), init_state=EntityCfg.InitialStateCfg(pos=(3.0, 0.0, 0.1))
    )
    scene = make_scene(
        SceneCfg(num_envs=6, entities={"arm": arms, "thing": things, "block": floor}), device="cpu"
    )
    simulation = scene.simulation(dt=DT)
    assert list(simulation.world_to_variant) == ["arm", "thing"]
    assert simulation.world_to_variant["arm"].numpy().tolist() == [0, 1, 0, 1, 0, 1]
    assert simulation.world_to_variant["thing"].numpy().tolist() == [0, 0, 1, 1, 2, 2]
    torch = pytest.importorskip("torch")
    tensors = simulation.world_to_variant_tensors()
    assert torch.equal(tensors["thing"], torch.tensor([0, 0, 1, 1, 2, 2], dtype=torch.int32))
    model = scene.model
    ball, box = alone(ball_builder()), alone(box_builder())
    for world, single in ((0, ball), (1, ball), (2, box), (3, box)):
        thing = world % 2 + 1  # after the links of the arm
        assert world_rows(model, "body_mass", world)[thing] == single.body_mass.numpy()[0]
        np.testing.assert_allclose(world_rows(model, "body_q", world)[thing][:3], (1.0, 0.0, 0.5))
    assert [len(world_rows(model, "body_mass", world)) for world in range(6)] == [3, 4, 3, 4, 4, 5]
    # A pile of several roots is moved as a whole.
    np.testing.assert_allclose(world_rows(model, "body_q", 4)[1][:3], (1.0, 0.0, 0.56), rtol=1e-6)
    assert {label.split("/")[0] for label in model.body_label} == {"arm", "thing", "block"}


def test_initial_states_are_those_of_the_configuration():
    """Pose and velocity of a floating root; joint values by pattern, which their drives are to hold."""
    state = EntityCfg.InitialStateCfg(
        pos=(0.0, 0.0, 2.0), rot=(0.0, 0.0, 1.0, 0.0), lin_vel=(1.0, 0.0, 0.0), ang_vel=(0.0, 0.0, 2.0)
    )
    arm_state = EntityCfg.InitialStateCfg(
        joint_pos={"joint_.*": 0.5, "joint_1": -0.25}, joint_vel={".*": 0.1}
    )
    scene = make_scene(
        SceneCfg(
            entities={
                "box": EntityCfg(spec_fn=box_builder, init_state=state),
                "arm": EntityCfg(spec_fn=lambda: arm_builder(2, stiffness=1.0), init_state=arm_state),
            }
        ),
        device="cpu",
    )
    np.testing.assert_allclose(scene.model.joint_q.numpy(), [0.0, 0.0, 2.0, 0.0, 0.0, 1.0, 0.0, 0.5, -0.25])
    np.testing.assert_allclose(scene.model.joint_qd.numpy(), [1.0, 0, 0, 0, 0, 2.0, 0.1, 0.1], rtol=1e-6)
    np.testing.assert_allclose(scene.model.joint_target_pos.numpy()[6:], [0.5, -0.25])
    assert scene.simulation(dt=DT).world_to_variant == {}
    assert scene.simulation(dt=DT).per_world_default_fields == {}


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (
            {"joint_pos": {"elbow": 1.0}},
            "pattern 'elbow', which matches no joint; there are joint_0, joint_1",
        ),
        ({"joint_pos": {"joint_0": (1.0, 2.0)}}, "takes 1 finite numbers"),
        ({"lin_vel": (1.0, 0.0, 0.0)}, "no floating root"),
        ({"rot": (1.0, 1.0, 0.0, 0.0)}, "quaternion x, y, z, w of length 1"),
        ({"pos": (0.0, 1.0)}, "init_state.pos is"),
    ],
)
def test_a_wrong_initial_state_is_named(state, message):
    arm = EntityCfg(spec_fn=lambda: arm_builder(2), init_state=EntityCfg.InitialStateCfg(**state))
    with pytest.raises(ValueError, match=f"entity 'arm': .*{message}"):
        make_scene(SceneCfg(entities={"arm": arm}), device="cpu")


def test_defaults_are_those_of_each_world():
    """What varies with the variant is listed, in the shape of the model's arrays, as the worlds begin."""
    entity = VariantEntityCfg(
        variants={"light": box_builder(0.05), "heavy": box_builder(0.2), "pile": pile_builder(2)}
    )
    scene = make_scene(SceneCfg(num_envs=6, entities={"object": entity}), device="cpu")
    simulation = scene.simulation(dt=DT)
    assert set(simulation.per_world_default_fields) == set(VARIANT_DEPENDENT_FIELDS)
    masses = simulation.per_world_default_fields["body_mass"].numpy()
    np.testing.assert_array_equal(masses, scene.model.body_mass.numpy())
    assert len(np.unique(masses)) == 2
    scene.model.body_mass.fill_(7.0)
    assert not (simulation.per_world_default_fields["body_mass"].numpy() == 7.0).any()


def test_files_are_variants_too(tmp_path):
    """MJCF, URDF and mesh files stand beside functions."""
    from pluriverse.geometry import Mesh

    (tmp_path / "ball.xml").write_text(
        "<mujoco><worldbody><body name='ball'><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"
    )
    (tmp_path / "box.urdf").write_text(
        "<robot name='box'><link name='base'><inertial><mass value='2'/>"
        "<inertia ixx='.1' iyy='.1' izz='.1' ixy='0' ixz='0' iyz='0'/></inertial></link></robot>"
    )
    corners = np.array([[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0, 0, 0.1]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
    with open(tmp_path / "wedge.obj", "w") as file:
        for corner in corners:
            file.write("v {} {} {}\n".format(*corner))
        for face in faces + 1:
            file.write("f {} {} {}\n".format(*face))
    entity = VariantEntityCfg(
        variants={name: tmp_path / name for name in ("ball.xml", "box.urdf", "wedge.obj")}
    )
    scene = make_scene(SceneCfg(num_envs=3, entities={"object": entity}), device="cpu")
    wedge = Mesh(corners, faces).mass_properties(1000.0)
    masses = [world_rows(scene.model, "body_mass", world)[0] for world in range(3)]
    np.testing.assert_allclose(masses, [1000.0 * 4.0 / 3.0 * np.pi * 0.1**3, 2.0, wedge.mass], rtol=1e-5)


def test_construction_is_linear_in_the_number_of_variants():
    """Four times as many variants take about four times as many calls, where squares would take sixteen."""

    def call_count(count):
        builders = {f"box_{number}": box_builder(0.02 + 1e-4 * number) for number in range(count)}
        calls = [0]

        def count_call(frame, event, argument):
            calls[0] += event == "call"

        sys.setprofile(count_call)
        try:
            make_scene(
                SceneCfg(num_envs=count, entities={"object": VariantEntityCfg(variants=builders)}),
                device="cpu",
            )
        finally:
            sys.setprofile(None)
        return calls[0]

    call_count(10)  # loads what the first use loads
    assert call_count(200) < 6 * call_count(50)


def test_scenes_without_content_are_errors():
    with pytest.raises(ValueError, match="there are no entities"):
        make_scene(SceneCfg())
    with pytest.raises(ValueError, match="num_envs is 0"):
        make_scene(SceneCfg(num_envs=0, entities={"box": EntityCfg(spec_fn=box_builder)}))
    with pytest.raises(ValueError, match="entity 'box': spec_fn is missing"):
        make_scene(SceneCfg(entities={"box": EntityCfg()}))
    with pytest.raises(ValueError, match="entity 'box': variants is empty"):
        make_scene(SceneCfg(entities={"box": VariantEntityCfg()}))
    with pytest.raises(TypeError, match="entity 'box' is a dict"):
        make_scene(SceneCfg(entities={"box": {}}))


def test_real_robots_from_files_are_variants(robot_assets):
    """A quadruped, an arm and a cart are variants of one entity, beside a box, and move as they do alone."""
    files = {
        "go1": robot_assets / "unitree_go1" / "go1.xml",
        "arm": robot_assets / "franka_description" / "urdfs" / "fr3_franka_hand.urdf",
        "cartpole": robot_assets / "newton_examples" / "cartpole.urdf",
    }
    options = {"go1": {}, "arm": {"package_dirs": [robot_assets]}, "cartpole": {}}

    def read(name):
        builder = pv.ModelBuilder()
        importer = builder.add_mjcf if files[name].suffix == ".xml" else builder.add_urdf
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what of these files is not represented does not matter here
            importer(files[name], **options[name])
        return builder

    robots = VariantEntityCfg(variants={name: functools.partial(read, name) for name in files})
    place = EntityCfg.InitialStateCfg(pos=(2.0, 0.0, 0.3))
    box = EntityCfg(spec_fn=box_builder, init_state=place)
    scene = make_scene(SceneCfg(num_envs=6, entities={"robot": robots, "box": box}), device="cpu")
    simulation = scene.simulation(dt=DT)
    simulation.step(30)
    assert simulation.report().frozen_worlds == ()
    start = scene.model.joint_coord_world_start.numpy()
    state = simulation.state.joint_q.numpy()
    for number, name in enumerate(files):
        world = read(name)
        other = box_builder()
        other.joint_q[:3] = place.pos
        world.add_builder(other)
        reference = pv.Simulation(alone(world), dt=DT)
        reference.step(30)
        for environment in (2 * number, 2 * number + 1):
            np.testing.assert_array_equal(
                state[start[environment] : start[environment + 1]], reference.state.joint_q.numpy()
            )


def test_loop_joints_with_coordinates_begin_closed():
    """A variant whose loop joint has coordinates begins in the state that a model of its own begins in."""

    def crank(length: float) -> pv.ModelBuilder:
        builder, here = pv.ModelBuilder(), (0.0, 0.0, 0.0, 1.0)
        first, second = (builder.add_link(mass=1.0, inertia=np.eye(3) * 0.01) for _ in range(2))
        joints = [
            builder.add_joint_revolute(-1, first, axis=(0.0, 1.0, 0.0), label="crank"),
            builder.add_joint_revolute(
                first, second, parent_xform=((length, 0.0, 0.0), here), axis=(0.0, 1.0, 0.0), label="elbow"
            ),
        ]
        builder.add_articulation(joints)
        frame = ((length, 0.0, 0.0), (0.0, float(np.sin(0.2)), 0.0, float(np.cos(0.2))))
        builder.add_joint_revolute(
            -1, second, parent_xform=frame, axis=(0.0, 1.0, 0.0), damping=0.3, label="loop"
        )
        builder.joint_qd[:2] = [0.0, 1.5]
        return builder

    lengths = {"short": 0.3, "long": 0.5}
    entity = VariantEntityCfg(variants={name: crank(length) for name, length in lengths.items()})
    scene = make_scene(SceneCfg(num_envs=2, entities={"crank": entity}), device="cpu")
    models = [crank(length).finalize("cpu") for length in lengths.values()]
    for name, least in (("joint_q", 0.1), ("joint_qd", 1.0)):
        expected = np.concatenate([getattr(model, name).numpy() for model in models])
        assert abs(expected[2]) > least
        np.testing.assert_array_equal(getattr(scene.model, name).numpy(), expected)
