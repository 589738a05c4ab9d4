"""Custom attributes: what is declared and given arrives in the arrays of the model, world by world."""

import pickle
import sys
import warnings

import numpy as np
import pytest
import warp as wp

from pluriverse import CollisionPipeline, Model, ModelBuilder
from pluriverse.solvers import SolverMuJoCo

Frequency = Model.AttributeFrequency
Assignment = Model.AttributeAssignment
Attribute = ModelBuilder.CustomAttribute

KINDS = (
    ("body_value", wp.float32, Frequency.BODY, 20.0),
    ("body_vector", wp.vec3, Frequency.BODY, None),
    ("body_flag", bool, Frequency.BODY, True),
    ("body_mask", wp.int64, Frequency.BODY, -(2**63)),
    ("body_name", str, Frequency.BODY, "none"),
    ("joint_value", int, Frequency.JOINT, 7),
    ("dof_value", float, Frequency.JOINT_DOF, 1.0),
    ("coord_value", wp.quat, Frequency.JOINT_COORD, None),
    ("constraint_value", float, Frequency.JOINT_CONSTRAINT, 0.5),
    ("shape_value", wp.types.vector(5, float), Frequency.SHAPE, (1.0, 2.0, 3.0, 4.0, 5.0)),
    ("articulation_value", wp.mat33, Frequency.ARTICULATION, None),
    ("equality_value", float, Frequency.EQUALITY_CONSTRAINT, 0.25),
    ("world_value", float, Frequency.WORLD, 3.0),
    ("once_value", float, Frequency.ONCE, 9.0),
)


def declare(builder: ModelBuilder) -> ModelBuilder:
    """Declare an attribute of every kind, and a custom frequency with references."""
    for name, dtype, frequency, default in KINDS:
        builder.add_custom_attribute(Attribute(name, dtype, frequency, namespace="lab", default=default))
    builder.add_custom_frequency(
        ModelBuilder.CustomFrequency(
            "cable",
            namespace="lab",
            label_attribute="lab:cable_label",
            articulation_owner_attribute="lab:cable_articulation",
        )
    )
    for name, dtype, references in (
        ("cable_label", str, None),
        ("cable_body", int, "body"),
        ("cable_next", wp.vec2i, "lab:cable"),
        ("cable_articulation", int, "articulation"),
        ("cable_world", int, "world"),
        ("cable_length", float, None),
    ):
        default = -1 if references not in (None, "lab:cable", "world") else None
        builder.add_custom_attribute(
            Attribute(
                name,
                dtype,
                "lab:cable",
                namespace="lab",
                references=references,
                default=(-1, -1) if references == "lab:cable" else default,
            )
        )
    return builder


def make_arm() -> ModelBuilder:
    """Return a builder of an arm of two bodies with a value of every kind, and of two cables."""
    builder = declare(ModelBuilder())
    values = {
        "lab:body_value": 5,
        "lab:body_vector": (1, 2, 3),
        "lab:body_flag": False,
        "lab:body_mask": 12,
        "lab:body_name": "upper",
    }
    upper = builder.add_link(mass=1.0, inertia=np.eye(3), custom_attributes=values)
    lower = builder.add_link(mass=1.0, inertia=np.eye(3))
    joints = [
        builder.add_joint_revolute(
            -1, upper, axis="z", custom_attributes={"lab:joint_value": 3, "lab:dof_value": 4.0}
        ),
        builder.add_joint_ball(
            upper,
            lower,
            custom_attributes={
                "lab:dof_value": [6.0, 7.0, 8.0],
                "lab:coord_value": {2: (1.0, 0.0, 0.0, 0.0)},
                "lab:constraint_value": 0.75,
            },
        ),
    ]
    builder.add_articulation(joints, custom_attributes={"lab:articulation_value": np.eye(3)})
    builder.add_shape_sphere(lower, radius=0.1, custom_attributes={"lab:shape_value": (5, 4, 3, 2, 1)})
    builder.add_shape_box(lower)
    builder.add_equality_constraint_connect(
        lower, -1, anchor=(0, 0, 1), custom_attributes={"lab:equality_value": 2.0}
    )
    builder.add_custom_values(
        **{"lab:cable_label": "left", "lab:cable_body": lower, "lab:cable_articulation": 0}
    )
    builder.add_custom_values({"lab:cable_next": (0, -1), "lab:cable_length": 2.5, "lab:cable_body": None})
    builder.custom_attributes["lab:world_value"].values = {0: 88.0}
    builder.custom_attributes["lab:once_value"].values[0] = 77.0
    return builder


def test_values_and_defaults_arrive_in_the_arrays_of_the_model():
    """An entity has the value given to it, all others the default of the attribute."""
    lab = make_arm().finalize("cpu").lab
    np.testing.assert_array_equal(lab.body_value.numpy(), [5.0, 20.0])
    np.testing.assert_array_equal(lab.body_vector.numpy(), [[1, 2, 3], [0, 0, 0]])
    np.testing.assert_array_equal(lab.body_flag.numpy(), [False, True])
    np.testing.assert_array_equal(lab.body_mask.numpy(), [12, -(2**63)])
    assert lab.body_name == ["upper", "none"]
    np.testing.assert_array_equal(lab.joint_value.numpy(), [3, 7])
    np.testing.assert_array_equal(lab.dof_value.numpy(), [4, 6, 7, 8])
    identity = [0, 0, 0, 1]
    np.testing.assert_array_equal(
        lab.coord_value.numpy(), [identity, identity, identity, [1, 0, 0, 0], identity]
    )
    np.testing.assert_array_equal(lab.constraint_value.numpy(), [0.5] * 5 + [0.75] * 3)
    np.testing.assert_array_equal(lab.shape_value.numpy(), [[5, 4, 3, 2, 1], [1, 2, 3, 4, 5]])
    np.testing.assert_array_equal(lab.articulation_value.numpy(), [np.eye(3)])
    np.testing.assert_array_equal(lab.equality_value.numpy(), [2.0])
    np.testing.assert_array_equal(lab.world_value.numpy(), [88.0])
    np.testing.assert_array_equal(lab.once_value.numpy(), [77.0])
    assert lab.cable_label == ["left", ""]
    np.testing.assert_array_equal(lab.cable_next.numpy(), [[-1, -1], [0, -1]])


def test_copies_carry_values_along_and_move_references():
    """Every copy of a builder has its values; indices name the same entities of the copy."""
    builder = ModelBuilder()
    builder.add_body(mass=1.0, inertia=np.eye(3))
    scene = ModelBuilder()
    scene.begin_world()
    scene.add_builder(builder)
    scene.add_builder(make_arm(), label_prefix="first")
    scene.add_builder(make_arm())
    scene.end_world()
    scene.replicate(make_arm(), 2, label_prefixes=["a", "b"])
    scene.add_world(builder)
    with pytest.warns(UserWarning, match="'lab:once_value' has one value for the whole model"):
        model = scene.finalize("cpu")
    lab = model.lab
    np.testing.assert_array_equal(lab.body_value.numpy(), [20] + [5, 20] * 4 + [20])
    np.testing.assert_array_equal(lab.dof_value.numpy(), [1] * 6 + [4, 6, 7, 8] * 4 + [1] * 6)
    np.testing.assert_array_equal(lab.world_value.numpy(), [88, 88, 88, 3])
    np.testing.assert_array_equal(lab.cable_body.numpy(), [2, -1, 4, -1, 6, -1, 8, -1])
    np.testing.assert_array_equal(lab.cable_next.numpy()[1::2], [[0, -1], [2, -1], [4, -1], [6, -1]])
    np.testing.assert_array_equal(lab.cable_articulation.numpy()[::2], [1, 2, 3, 4])
    np.testing.assert_array_equal(lab.cable_world.numpy(), [0, 0, 0, 0, 1, 1, 2, 2])
    assert lab.cable_label[::2] == ["first/left", "left", "a/left", "b/left"]
    assert model.get_custom_frequency_count("lab:cable") == 8
    np.testing.assert_array_equal(model.custom_frequency_world["lab:cable"], [0, 0, 0, 0, 1, 1, 2, 2])
    assert model.get_attribute_frequency("lab:dof_value") is Frequency.JOINT_DOF


def test_replicate_equals_repeated_add_world():
    """replicate() is add_world() many times over, for custom attributes too."""
    one, other = ModelBuilder(), ModelBuilder()
    one.replicate(make_arm(), 3)
    for _ in range(3):
        other.add_world(make_arm())
    ours, theirs = (builder.finalize("cpu").custom_arrays for builder in (one, other))
    assert ours.keys() == theirs.keys()
    for key, values in ours.items():
        if isinstance(values, list):
            assert values == theirs[key], key
        else:
            assert values.numpy().tobytes() == theirs[key].numpy().tobytes(), key


def test_default_references_move_along():
    """A reference that is left at a default >= 0 names the first entity of its copy."""
    arm = make_arm()
    arm.add_custom_attribute(Attribute("root", int, Frequency.JOINT, references="body", default=0))
    scene = ModelBuilder()
    scene.replicate(arm, 3)
    np.testing.assert_array_equal(scene.finalize("cpu").root.numpy(), [0, 0, 2, 2, 4, 4])


def test_rows_may_refer_to_different_kinds():
    """`row_references` tells for each row what its value is an index of."""
    arm = make_arm()
    arm.add_custom_attribute(
        Attribute(
            "target",
            wp.vec2i,
            "lab:cable",
            default=(-1, -1),
            row_references=lambda builder: (
                ["joint_dof", None] * (builder.custom_frequency_count("lab:cable") // 2)
            ),
        )
    )
    arm.custom_attributes["target"].values = [(1, -1), (1, -1)]
    scene = ModelBuilder()
    scene.replicate(arm, 2)
    np.testing.assert_array_equal(scene.finalize("cpu").target.numpy(), [[1, -1], [1, -1], [5, -1], [1, -1]])


def test_a_transformer_makes_the_values_of_copies():
    """`reference_value_transformer` is asked once per copy, with the offsets of all kinds."""
    seen = []

    def transform(values, context):
        seen.append((context["world"], context["label_prefix"], context["row_indices"]))
        return [value + 10 * context["entity_offsets"]["body"] for value in values]

    arm = make_arm()
    arm.add_custom_attribute(
        Attribute("special", int, Frequency.JOINT, default=-1, reference_value_transformer=transform)
    )
    arm.custom_attributes["special"].values[1] = 1
    scene = ModelBuilder()
    scene.replicate(arm, 2, label_prefix="p")
    np.testing.assert_array_equal(scene.finalize("cpu").special.numpy(), [-1, 1, -1, 21])
    assert seen == [(0, "p", [1]), (1, "p", [1])]


def test_states_and_controls_have_their_own_copies():
    """An attribute assigned to states is in every state, of its own memory, and is assigned with it."""
    builder = make_arm()
    builder.add_custom_attribute(
        Attribute("heat", float, Frequency.BODY, Assignment.STATE, namespace="lab", default=2.0)
    )
    builder.add_custom_attribute(Attribute("gain", float, Frequency.JOINT_DOF, Assignment.CONTROL))
    builder.add_custom_attribute(
        Attribute("seen", float, Frequency.SHAPE, Assignment.CONTACT, namespace="lab", default=4.0)
    )
    builder.custom_attributes["lab:heat"].values[1] = 3.0
    model = builder.finalize("cpu")
    one, other = model.state(), model.state()
    one.lab.heat.fill_(7.0)
    np.testing.assert_array_equal(other.lab.heat.numpy(), [2.0, 3.0])
    other.assign(one)
    np.testing.assert_array_equal(other.lab.heat.numpy(), [7.0, 7.0])
    np.testing.assert_array_equal(model.lab.heat.numpy(), [2.0, 3.0])
    control = model.control()
    control.gain.fill_(5.0)
    control.clear()
    np.testing.assert_array_equal(control.gain.numpy(), [5.0] * 4)
    np.testing.assert_array_equal(model.gain.numpy(), [0.0] * 4)
    np.testing.assert_array_equal(CollisionPipeline(model).contacts().lab.seen.numpy(), [4.0, 4.0])


def test_writing_to_an_attribute_keeps_its_memory():
    """Values assigned to an array of the model are copied into it, in a namespace too."""
    model = make_arm().finalize("cpu")
    array = model.lab.body_value
    model.lab.body_value = [1.0, 2.0]
    assert model.lab.body_value is array
    np.testing.assert_array_equal(array.numpy(), [1.0, 2.0])
    with pytest.raises(ValueError, match=r"lab\.body_value has shape \(2,\)"):
        model.lab.body_value = [1.0]
    with pytest.raises(AttributeError, match="namespace 'lab' has no attribute 'nothing'; it has body_value"):
        _ = model.lab.nothing


def test_loop_joints_take_their_places_out_of_attributes():
    """Joints that close loops are none of the model's, so attributes and references close ranks."""
    builder = declare(ModelBuilder())
    links = [builder.add_link(mass=1.0, inertia=np.eye(3)) for _ in range(2)]
    first = builder.add_joint_revolute(-1, links[0], axis="z", custom_attributes={"lab:dof_value": 4.0})
    loop = builder.add_joint_ball(links[0], links[1], custom_attributes={"lab:dof_value": 5.0})
    last = builder.add_joint_revolute(-1, links[1], axis="z", custom_attributes={"lab:dof_value": 6.0})
    builder.add_articulation([first])
    builder.add_articulation([last])
    builder.add_custom_attribute(Attribute("joint", int, "lab:cable", references="joint", default=-1))
    for joint in (first, loop, last):
        builder.add_custom_values(joint=joint)
    model = builder.finalize("cpu")
    np.testing.assert_array_equal(model.lab.dof_value.numpy(), [4.0, 6.0])
    np.testing.assert_array_equal(model.joint.numpy(), [0, -1, 1])
    np.testing.assert_array_equal(model.lab.equality_value.numpy(), [0.25])


def test_attributes_of_constraints_go_along_when_distance_joints_come_between():
    """The constraint of a distance joint is the last of its world: those of later worlds move up."""
    one = ModelBuilder()
    one.add_custom_attribute(Attribute("strength", float, Frequency.EQUALITY_CONSTRAINT, default=7.0))
    held_by = Attribute("held_by", int, Frequency.BODY, references="equality_constraint", default=-1)
    one.add_custom_attribute(held_by)
    swing = one.add_link(mass=1.0, inertia=np.eye(3))
    one.add_articulation([one.add_joint_distance(-1, swing, max_distance=1.0, label="rope")])
    other = one.add_body(mass=1.0, inertia=np.eye(3))
    weld = one.add_equality_constraint_weld(swing, other, label="weld", custom_attributes={"strength": 5.0})
    one.add_body(mass=1.0, inertia=np.eye(3), custom_attributes={"held_by": weld})
    builder = ModelBuilder()
    builder.replicate(one, 2)
    model = builder.finalize("cpu")
    assert model.equality_constraint_label == ["weld", "rope"] * 2
    assert model.strength.numpy().tolist() == [5.0, 7.0] * 2
    assert model.held_by.numpy().tolist() == [-1, -1, 0, -1, -1, 2]


def test_unused_attributes_cost_nothing_and_used_ones_no_loop_over_worlds():
    """Copying worlds takes array operations: as many calls for 4096 worlds as for 64."""
    arm = make_arm()
    calls = []
    for count in (64, 4096):
        scene = ModelBuilder()
        calls.append(0)

        def count_call(frame, event, argument):
            calls[-1] += event == "call"

        sys.setprofile(count_call)
        try:
            scene.replicate(arm, count)
        finally:
            sys.setprofile(None)
    # Tables double their room, which takes a few calls more for more worlds.
    assert calls[1] < 2 * calls[0]
    columns = scene.custom_attributes
    assert columns["lab:cable_length"].column.size == 2 * 4096
    assert columns["lab:joint_value"].column.size == 2 * 4096
    unused = ModelBuilder()
    unused.replicate(declare(ModelBuilder()), 4096)
    assert all(attribute.column.size == 0 for attribute in unused.custom_attributes.values())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda b: b.add_link(custom_attributes={"lab:nothing": 1}),
            "body 'body_2'.*'lab:nothing' is not declared; declared are lab:body_value",
        ),
        (
            lambda b: b.add_link(custom_attributes={"lab:joint_value": 1}),
            "'lab:joint_value' has one value per joint, but this entity has values per body only",
        ),
        (
            lambda b: b.add_link(custom_attributes={"lab:body_vector": (1, 2)}),
            r"body 'body_2' \(index 2\): .*'lab:body_vector': value is \(1, 2\), of shape \(2,\)",
        ),
        (
            lambda b: b.add_link(custom_attributes={"lab:body_value": "warm"}),
            "value is 'warm', but it must be a number",
        ),
        (
            lambda b: b.add_link(custom_attributes={"lab:body_name": 3}),
            "value is 3, but it must be a text",
        ),
        (
            lambda b: b.add_joint_ball(-1, 1, custom_attributes={"lab:joint_value": 2.5}),
            "value is 2.5, but it must be a whole number",
        ),
        (
            lambda b: b.add_joint_ball(-1, 1, custom_attributes={"lab:dof_value": [1, 2]}),
            "has 2 values, but the joint has 3 of kind joint_dof",
        ),
        (
            lambda b: b.add_joint_ball(-1, 1, custom_attributes={"lab:dof_value": {3: 1.0}}),
            "has a value for joint_dof 3, but the joint has 3 of them",
        ),
        (
            lambda b: b.add_joint_fixed(-1, 1, custom_attributes={"lab:dof_value": 1.0}),
            "has one value per joint_dof, but the joint has none of them",
        ),
        (lambda b: b.add_custom_values(), "no value is given"),
        (
            lambda b: b.add_custom_values(**{"lab:body_value": 1.0}),
            "has one value per body, which is no custom frequency",
        ),
        (lambda b: b.add_custom_values(nothing=1.0), "'nothing' is not declared"),
        (
            lambda b: b.add_custom_attribute(Attribute("x", float, "lab:rope")),
            "frequency is 'lab:rope', which is no custom frequency; declared are lab:cable",
        ),
        (
            lambda b: b.add_custom_attribute(Attribute("body_value", int, Frequency.BODY, namespace="lab")),
            "'lab:body_value' is declared already",
        ),
        (
            lambda b: b.add_custom_attribute(
                Attribute("body_value", float, Frequency.BODY, namespace="lab", default=1.0)
            ),
            "declared already with default 20.0, now with 1.0",
        ),
        (lambda b: b.add_custom_attribute("x"), "'x' is no declaration"),
        (
            lambda b: b.begin_world(attributes={"lab:body_value": 1.0}),
            "world 'world_0': .*one value per body, but this entity has values per world only",
        ),
    ],
)
def test_a_call_refuses(call, message):
    """Every mistake is named with the entity, the value and what is allowed, and nothing is added."""
    builder = make_arm()
    counts = (builder.body_count, builder.joint_count, builder.custom_frequency_count("lab:cable"))
    with pytest.raises((ValueError, TypeError, AttributeError), match=message):
        call(builder)
    assert counts == (builder.body_count, builder.joint_count, builder.custom_frequency_count("lab:cable"))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Attribute("a b", float, Frequency.BODY), "must be an identifier"),
        (lambda: Attribute("x", object, Frequency.BODY), "dtype is <class 'object'>"),
        (lambda: Attribute("x", float, 3), "frequency is 3"),
        (lambda: Attribute("x", float, Frequency.BODY, references="body"), "dtype is float32"),
        (lambda: Attribute("x", wp.vec3, Frequency.BODY, default=(1, 2)), r"default is \(1, 2\)"),
        (lambda: Attribute("x", str, Frequency.BODY, Assignment.STATE), "texts cannot be assigned to STATE"),
        (lambda: Attribute("x", float, Frequency.BODY, usd_attribute_name="*"), "Give a usd_value_transf"),
        (lambda: ModelBuilder.CustomFrequency("body"), "the name is that of a kind of entity"),
    ],
)
def test_a_declaration_refuses(make, message):
    """A declaration that cannot work is refused when it is made."""
    with pytest.raises((ValueError, TypeError), match=message):
        make()


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (
            lambda b: b.custom_attributes["lab:body_value"].values.update({2: 1.0}),
            "'lab:body_value' has a value for body 2, but there are 2 of them",
        ),
        (
            lambda b: b.add_custom_values(**{"lab:cable_body": 5}),
            "the value of lab:cable 2 is 5, but it refers to a body, of which there are 2",
        ),
        (
            lambda b: b.add_custom_attribute(Attribute("body_mass", float, Frequency.BODY)),
            "Model has a 'body_mass' of its own",
        ),
    ],
)
def test_finalize_refuses(edit, message):
    """What cannot become an array of the model is named."""
    builder = make_arm()
    edit(builder)
    with pytest.raises((ValueError, AttributeError), match=message):
        builder.finalize("cpu")


def test_merging_refuses_other_declarations():
    """Two builders that mean different things by one name cannot be merged, and nothing is added."""
    scene = ModelBuilder()
    scene.add_custom_attribute(Attribute("body_value", int, Frequency.BODY, namespace="lab"))
    with pytest.raises(ValueError, match="add_world: custom attribute 'lab:body_value' is declared already"):
        scene.add_world(make_arm())
    assert scene.world_count == scene.body_count == 0


def test_values_of_the_whole_model_that_differ_are_reported():
    """The last value of the whole model counts, with a warning."""
    scene, other = ModelBuilder(), make_arm()
    scene.add_world(make_arm())
    other.custom_attributes["lab:once_value"].values[0] = 78.0
    with pytest.warns(UserWarning, match=r"'lab:once_value' has one value for the whole model, 77.0 so far"):
        scene.add_world(other)
    np.testing.assert_array_equal(scene.finalize("cpu").lab.once_value.numpy(), [78.0])


def make_part(value):
    """Return a builder of a body that declares a value of the whole model, and gives one unless None."""
    builder = ModelBuilder()
    builder.add_custom_attribute(Attribute("solver", int, Frequency.ONCE, default=3, namespace="lab"))
    builder.add_body(mass=1.0, inertia=np.eye(3))
    if value is not None:
        builder.custom_attributes["lab:solver"].values[0] = value
    return builder


@pytest.mark.parametrize("gives_first", [True, False])
def test_a_value_of_the_whole_model_that_only_some_worlds_give_is_reported(gives_first):
    """A robot whose file is silent is not to move by the options of another one without a word."""
    scene = ModelBuilder()
    scene.replicate(make_part(1 if gives_first else None), 2)
    scene.replicate(make_part(None if gives_first else 1), 3)
    given, missing, more = ("world_0", "world_2", 2) if gives_first else ("world_2", "world_0", 1)
    message = f"'lab:solver' has one value .* 1, .*'{given}'.*'{missing}'.* and {more} more .*default 3.*"
    with pytest.warns(UserWarning, match=message) as caught:
        model = scene.finalize("cpu")
    assert [warning.filename for warning in caught] == [__file__]
    assert model.lab.solver.numpy()[0] == 1


def test_a_value_of_the_whole_model_that_all_worlds_have_is_not_reported():
    """Parts of one world share its options, and what is given outside of worlds is given to all."""
    equal, shared, last, default = (ModelBuilder() for _ in range(4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            equal.begin_world()
            equal.add_builder(make_part(1))
            equal.add_builder(make_part(None))
            equal.end_world()
        shared.add_builder(make_part(None))  # a table in every world
        shared.replicate(make_part(1), 2)
        shared.copy_global_bodies()
        last.add_world(make_part(1))
        last.add_world(make_part(None))
        last.custom_attributes["lab:solver"].values[0] = 1  # the remedy
        default.add_world(make_part(3))
        default.add_world(make_part(None))
        for scene in (equal, shared, last, default):
            scene.finalize("cpu")


@pytest.mark.parametrize("silent", [True, False])
def test_options_of_files_that_only_some_worlds_have_are_reported(silent):
    """A file that is added to a world gives its options to that world, like a builder."""
    body = '<worldbody><body><freejoint/><geom size="0.1"/></body></worldbody></mujoco>'
    scene = ModelBuilder()
    SolverMuJoCo.register_custom_attributes(scene)
    for option in ('<option cone="elliptic"/>', "" if silent else '<option cone="elliptic"/>'):
        scene.begin_world()
        scene.add_mjcf("<mujoco>" + option + body)
        scene.add_mjcf("<mujoco>" + body)
        scene.end_world()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        scene.finalize("cpu")
    texts = [str(warning.message) for warning in caught]
    assert len(texts) == silent
    assert not silent or "'mujoco:cone' has one value for the whole model, 1, given in world 0" in texts[0]


@pytest.mark.parametrize(("name", "dtype", "frequency", "default"), KINDS)
def test_attributes_travel_to_other_processes(name, dtype, frequency, default):
    """Workers get builders: vectors of sizes without a type of Warp's own arrive as they were."""
    given = Attribute(name=name, frequency=frequency, dtype=dtype, default=default)
    given.column.put(0, given.convert(given.default)[None])
    received = pickle.loads(pickle.dumps(given))
    assert received.same_declaration(given)
    assert received.column.shape == given.column.shape
    np.testing.assert_array_equal(received.column.rows, given.column.rows)
