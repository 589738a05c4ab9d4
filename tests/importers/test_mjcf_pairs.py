"""Explicit contact pairs of MJCF files: who touches and how it rubs, beside MuJoCo and closed forms."""

import warnings

import mujoco
import numpy as np
import pytest

import pluriverse as pv
from pluriverse.types import ShapeFlags

DT = 0.002
GRAVITY = 9.81
# What the softness of MuJoCo's contacts leaves between the resting heights of two engines [m].
SETTLING = 2e-4

# As robots for learning in MuJoCo are written: nothing of a robot has contact bits, and pairs name its feet.
BIPED = """<mujoco model="biped">
  <default>
    <geom contype="0" conaffinity="0"/>
    <default class="scenery"><geom contype="1" conaffinity="1"/></default>
    <default class="foot"><geom type="box" size="0.1 0.05 0.02" mass="1"/></default>
  </default>
  <worldbody>
    <geom name="floor" class="scenery" type="plane" size="5 5 1"/>
    <body name="base" pos="0 0 0.5"><freejoint/><geom name="trunk" type="box" size="0.1 0.2 0.05" mass="5"/>
      <body name="left" pos="0 0.15 -0.3">
        <joint name="left" axis="0 1 0" damping="1" stiffness="200"/><geom name="left" class="foot"/></body>
      <body name="right" pos="0 -0.15 -0.3">
        <joint name="right" axis="0 1 0" damping="1" stiffness="200"/><geom name="right" class="foot"/></body>
    </body>
  </worldbody>
  <contact>
    <pair name="left" geom1="left" geom2="floor" friction="0.6 0.6"/>
    <pair name="right" geom1="right" geom2="floor" friction="0.6 0.6"/>
    <pair name="trunk" geom1="trunk" geom2="left" condim="1"/>
  </contact>
</mujoco>"""

# A block on a plane that is level while gravity is not: tan(slope) = 0.5.
SLOPE = np.arctan(0.5)
SLIDE = f"""<mujoco><option gravity="{GRAVITY * np.sin(SLOPE)} 0 {-GRAVITY * np.cos(SLOPE)}"/><worldbody>
  <geom name="plane" type="plane" size="9 9 1" {{bits}}/>
  <body pos="0 0 0.05"><freejoint/>
    <geom name="block" type="box" size="0.1 0.1 0.05" mass="2" {{bits}}/></body>
  </worldbody><contact><pair geom1="block" geom2="plane" {{pair}}/></contact></mujoco>"""
BITS = 'contype="0" conaffinity="0"'


def imported(xml: str) -> tuple[pv.ModelBuilder, list[str]]:
    """Return a builder of the document, and what the report says of its contact pairs."""
    builder = pv.ModelBuilder()
    report = builder.add_mjcf(xml)
    return builder, [entry.consequence for entry in report.losses if entry.feature == "contact pair"]


def candidates(builder: pv.ModelBuilder, model: pv.Model) -> set[frozenset[str]]:
    """Return the pairs of shapes that may touch, by the last parts of their labels."""
    names = [label.rpartition("/")[2] for label in builder.shape_label]
    return {frozenset((names[a], names[b])) for a, b in model.shape_contact_pairs.numpy()}


@pytest.mark.parametrize("make", [pv.SolverSAP, pv.SolverMuJoCo])
def test_a_biped_whose_feet_touch_by_pairs_alone_stands(make):
    """It stands on eight corners at MuJoCo's height, and nothing else of it may touch anything."""
    builder, losses = imported(BIPED)
    assert len(losses) == 1  # feet rub on the floor, so the trunk rubs on a foot
    assert "friction 0 0 0 0 0 and not" in losses[0]
    model = builder.finalize("cpu")
    pairs = (("left", "floor"), ("right", "floor"), ("trunk", "left"))
    assert candidates(builder, model) == {frozenset(pair) for pair in pairs}
    names = [label.rpartition("/")[2] for label in builder.shape_label]
    rubs = dict(zip(names, builder.shape_material_mu, strict=True))
    assert rubs == pytest.approx({"floor": 0.6, "left": 0.6, "right": 0.6, "trunk": 1.0})
    peer = mujoco.MjModel.from_xml_string(BIPED)
    peer.opt.timestep = DT
    data = mujoco.MjData(peer)
    mujoco.mj_step(peer, data, 500)
    with pv.Simulation(model, make(model), dt=DT, strict=True) as simulation:
        simulation.step(500)
        assert simulation.contacts.rigid_contact_count.numpy().tolist() == [data.ncon] == [8]
        assert simulation.state.joint_q.numpy()[2] == pytest.approx(data.qpos[2], abs=SETTLING)


@pytest.mark.parametrize(
    ("pair", "friction"),
    [
        ('friction="0.3 0.3"', 0.3),
        ('friction="0.8 0.8"', None),  # more than tan(slope): it sticks
        ('condim="1"', 0.0),
        ("", None),  # MuJoCo's default, 1
    ],
)
def test_a_block_slides_by_the_friction_of_its_pair(pair, friction):
    """After a time t it is as fast as g (sin - mu cos) t down the slope, or at rest, by Coulomb's law."""
    builder, losses = imported(SLIDE.format(bits=BITS, pair=pair))
    assert not losses
    model = builder.finalize("cpu")
    steps = 200
    with pv.Simulation(model, dt=DT, strict=True) as simulation:
        simulation.step(steps)
        speed = simulation.state.joint_qd.numpy()[0]
    expected = 0.0
    if friction is not None:
        expected = GRAVITY * (np.sin(SLOPE) - friction * np.cos(SLOPE)) * steps * DT
    # One step in which the block settles on the plane has not all of its friction.
    assert speed == pytest.approx(expected, abs=GRAVITY * DT)


def test_a_pair_touches_across_a_joint_and_an_exclude():
    """Neighbours across a hinge and excluded bodies touch where a pair names them, as in MuJoCo."""
    xml = """<mujoco><worldbody>
      <body name="a"><joint name="a" axis="0 1 0"/><geom name="a" size="0.1" mass="1"/>
        <body name="b" pos="0.15 0 0"><joint name="b" axis="0 1 0"/><geom name="b" size="0.1" mass="1"/>
          <body name="c" pos="-0.1 0.1 0">
            <joint name="c" axis="0 1 0"/><geom name="c" size="0.1" mass="1"/></body>
        </body></body>
    </worldbody><contact><exclude body1="a" body2="c"/>{pairs}</contact></mujoco>"""
    pairs = '<pair geom1="a" geom2="b"/><pair geom1="c" geom2="a"/>'
    for text in ("", pairs):
        builder, losses = imported(xml.format(pairs=text))
        assert not losses
        peer = mujoco.MjModel.from_xml_string(xml.format(pairs=text))
        data = mujoco.MjData(peer)
        mujoco.mj_forward(peer, data)
        touching = {frozenset(peer.geom(geom).name for geom in contact.geom) for contact in data.contact}
        assert candidates(builder, builder.finalize("cpu")) == touching
    assert len(touching) == 2


def test_what_a_pair_says_beside_its_geoms_is_reported():
    """Of pairs whose geoms have materials of their own, each difference is named with both values."""
    bits = 'contype="1" conaffinity="1"'
    _, losses = imported(SLIDE.format(bits=bits, pair='friction="0.3 0.3" gap="0.01"'))
    assert len(losses) == 1
    assert "friction 0.3 0.3 0 0 0 and not 1 1 0 0 0" in losses[0]
    assert "gap 0.01 and not 0" in losses[0]
    assert "solref" not in losses[0]
    _, losses = imported(SLIDE.format(bits=bits, pair=""))
    assert not losses
    # Two feet that differ on one floor cannot both have what their pairs say.
    uneven = BIPED.replace('friction="0.6 0.6"', 'friction="0.2 0.2"', 1)
    _, losses = imported(uneven)
    assert any("friction 0.2 0.2 0 0 0 and not 1 1 0 0 0" in text for text in losses)
    _, losses = imported(SLIDE.format(bits=BITS, pair='friction="0.3 0.5"'))
    assert any("friction 0.3 0.5 0 0 0" in text for text in losses)


def test_feet_stand_on_a_ground_from_elsewhere_where_the_file_lacks_the_floor_of_their_pairs():
    """A robot file without its scene: feet touch a ground plane that is added, and not each other."""
    robot = BIPED.replace('<geom name="floor" class="scenery" type="plane" size="5 5 1"/>', "")
    builder = pv.ModelBuilder()
    report = builder.add_mjcf(robot)
    repairs = [str(entry) for entry in report.entries if entry.feature == "contact pair of missing elements"]
    assert len(repairs) == 2
    assert "'left' touches shapes that are not of the file instead" in repairs[0]
    ground = builder.add_ground_plane(label="ground")
    builder.shape_material_mu[ground] = 0.6
    np.testing.assert_allclose(builder.shape_material_mu, [1.0, 0.6, 0.6, 0.6])
    model = builder.finalize("cpu")
    pairs = (("left", "ground"), ("right", "ground"), ("trunk", "left"))
    expected = {frozenset(pair) for pair in pairs} | {frozenset(("trunk", "ground"))}
    assert candidates(builder, model) == expected
    with pv.Simulation(model, dt=DT, strict=True) as simulation:
        simulation.step(500)
        assert simulation.contacts.rigid_contact_count.numpy().tolist() == [8]
        assert simulation.state.joint_q.numpy()[2] == pytest.approx(0.32, abs=SETTLING)


RUBS = "the shapes of 1 contact pairs in model.mujoco touch with their own friction"
IDLE = "the model has 1 contact pairs of shapes that do not collide"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("", ""), [RUBS]),
        (('<pair name="trunk" geom1="trunk" geom2="left" condim="1"/>', ""), []),
        (("", ""), [IDLE]),
    ],
    ids=["rubs otherwise", "as the pair says", "does not collide"],
)
def test_solver_sap_tells_pairs_that_rub_otherwise_from_those_that_do_not_touch(change, expected):
    """It says which act in part and which not at all, and nothing where all pairs have what they say."""
    builder, _ = imported(BIPED.replace(*change))
    if expected == [IDLE]:  # a script may switch the trunk off, which then touches in SolverMuJoCo alone
        trunk = [label.rpartition("/")[2] for label in builder.shape_label].index("trunk")
        builder.shape_flags[trunk] &= ~int(ShapeFlags.COLLIDE_SHAPES)
    model = builder.finalize("cpu")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pv.SolverSAP(model)
    found = [str(warning.message) for warning in caught if "contact pairs" in str(warning.message)]
    assert len(found) == len(expected)
    for text, part in zip(found, expected, strict=True):
        assert part in text
        assert "actuators" not in text  # a remedy for what is not there


def test_a_pair_of_geoms_that_are_fixed_to_each_other_is_reported():
    """They never touch here."""
    xml = """<mujoco><worldbody><body name="a"><freejoint/><geom name="a" size="0.1"/>
      <body name="b"><geom name="b" size="0.1"/></body></body></worldbody>
      <contact><pair geom1="a" geom2="b"/></contact></mujoco>"""
    _, losses = imported(xml)
    assert losses == ["its geoms are fixed to each other, so they never touch"]


def test_margins_and_gaps_of_a_pair_are_those_of_both_shapes_together():
    """A block comes to rest at the margin of its pair."""
    builder, losses = imported(SLIDE.format(bits=BITS, pair='margin="0.02" gap="0.01"'))
    assert not losses
    np.testing.assert_allclose(builder.shape_margin, 0.01)
    np.testing.assert_allclose(builder.shape_gap, 0.005)
    model = builder.finalize("cpu")
    with pv.Simulation(model, dt=DT, strict=True) as simulation:
        simulation.step(300)
        assert simulation.state.joint_q.numpy()[2] == pytest.approx(0.07, abs=SETTLING)


def test_a_world_with_pairs_has_the_same_bits_beside_others():
    """Alone, and between worlds of another robot and without the pairs."""
    robot, _ = imported(BIPED)
    floating, _ = imported(BIPED[: BIPED.index("<contact>")] + "</mujoco>")
    block, _ = imported(SLIDE.format(bits=BITS, pair=""))
    found = []
    for robots in ([robot], [block, robot, floating, robot]):
        scene = pv.ModelBuilder()
        for each in robots:
            scene.add_world(each)
        model = scene.finalize("cpu")
        with pv.Simulation(model, dt=DT) as simulation:
            simulation.step(200)
            start = model.joint_coord_world_start.numpy()
            q = simulation.state.joint_q.numpy()
            found += [q[start[w] : start[w + 1]].copy() for w, each in enumerate(robots) if each is robot]
            if floating in robots:
                assert q[start[2] + 2] < 0.0  # nothing holds the one without pairs
    assert len(found) == 3
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
