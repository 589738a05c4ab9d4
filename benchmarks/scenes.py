"""Scenes: one MJCF file each, read by all engines that read MJCF, and plain numbers for the others."""

import dataclasses
import math
import os
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

import numpy as np

if TYPE_CHECKING:
    import mujoco

# Time step of every engine [s].
DT = 0.005
# Time that robots and piles have to come to rest before the benchmark [s].
SETTLING_TIME = 4.0

ASSETS = Path(
    os.environ.get("PLURIVERSE_TEST_ASSETS")
    or Path(__file__).resolve().parent.parent.parent / "shared" / "assets"
)


@dataclasses.dataclass(frozen=True)
class Gains:
    """Drive of a joint."""

    stiffness: float
    """N·m/rad."""
    damping: float
    """N·m·s/rad."""


@dataclasses.dataclass(frozen=True)
class RobotScene:
    """A robot under position drives that stands on the ground, or is bolted to it."""

    file: str
    """MJCF or URDF file below the folder of assets."""
    height: float | None
    """Where its root body begins [m]; None for one that is bolted to the ground."""
    pose: dict[str, float]
    """Joint positions that it begins with and holds [m or rad], by a part of the joint's name, the first that
    fits; others are 0."""
    gains: dict[str, Gains]
    """Drives by a part of the joint's name; the first that fits."""
    armature: float
    """Inertia of every rotor [kg·m²]."""
    roughness: float = 0.0
    """Half of the range of the heights of the ground, a height field of cells of 0.1 m [m]; 0 for a plane."""


@dataclasses.dataclass(frozen=True)
class HandScene:
    """A hand, palm up, that holds small objects of all shapes, on a stand above the ground."""

    file: str
    """URDF file below the folder of assets."""
    pose: dict[str, float]
    """Joint positions that it holds [rad], by name; others are 0."""
    gains: Gains
    """Drive of every joint."""
    armature: float
    """Inertia of every rotor [kg·m²]."""
    objects: tuple[tuple[str, tuple[float, ...]], ...]
    """Kind and half extents or radii [m] of the objects, dropped one above the other."""
    height: float = 0.2
    """Where the palm is [m]."""
    tilt: float = 1.93
    """Angle of the fingers to the vertical [rad]; they point a little downwards and curl up."""
    density: float = 600.0
    """kg/m³."""
    friction: float = 0.8
    """Coefficient of friction."""


@dataclasses.dataclass(frozen=True)
class PileScene:
    """Boxes stacked askew, each layer shifted and turned against the one below, so that all hang together."""

    side_count: int
    """Boxes along each edge of the stack."""
    half_size: float = 0.1
    """Half the edge of a box [m]."""
    density: float = 400.0
    """kg/m³."""
    friction: float = 0.5
    """Coefficient of friction."""

    def boxes(self) -> list[tuple[tuple[float, float, float], float]]:
        """Return the position [m] and the angle about z [rad] of each box."""
        result = []
        for index in range(self.side_count**3):
            column, row, layer = (
                index % self.side_count,
                index // self.side_count % self.side_count,
                index // self.side_count**2,
            )
            # Five and seven have no common divisor with the sizes of the stack: no two neighbours are alike.
            jitter_x, jitter_y, turn = index % 5 - 2, index * 3 % 5 - 2, index * 4 % 7 - 3
            middle = 0.5 * (self.side_count - 1)
            shift = 0.04 if layer % 2 else -0.04  # a box rests on up to four others
            result.append(
                (
                    (
                        0.215 * (column - middle) + 0.002 * jitter_x + shift,
                        0.215 * (row - middle) + 0.002 * jitter_y + shift,
                        0.102 + 0.203 * layer,
                    ),
                    0.01 * turn,
                )
            )
        return result


@dataclasses.dataclass(frozen=True)
class BinScene:
    """Boxes, balls, capsules and cylinders that were dropped into a bin, where some lean on each other."""

    object_count: int
    half_width: float = 0.33
    """Half the inner width of the bin [m]."""
    sizes: tuple[tuple[str, tuple[float, ...]], ...] = (
        ("box", (0.06, 0.05, 0.04)),
        ("sphere", (0.05,)),
        ("capsule", (0.03, 0.05)),
        ("cylinder", (0.04, 0.05)),
    )
    """Geoms in turns, with their sizes as MJCF has them [m]."""


@dataclasses.dataclass(frozen=True)
class CartpoleScene:
    """A pole that swings on a cart, without contact."""


Scene = RobotScene | HandScene | PileScene | BinScene | CartpoleScene

SCENES: dict[str, Scene] = {
    "go1": RobotScene(
        file="unitree_go1/go1.xml",
        height=0.29,
        pose={"thigh": 0.9, "calf": -1.8},
        gains={"": Gains(60.0, 2.0)},
        armature=0.01,
    ),
    "go1_rough": RobotScene(
        file="unitree_go1/go1.xml",
        height=0.32,
        pose={"thigh": 0.9, "calf": -1.8},
        gains={"": Gains(60.0, 2.0)},
        armature=0.01,
        roughness=0.03,
    ),
    "g1": RobotScene(
        file="unitree_g1/g1.xml",
        height=0.793,
        pose={"hip_pitch": -0.1, "knee": 0.2, "ankle_pitch": -0.1},
        gains={
            "shoulder": Gains(60.0, 2.0),
            "elbow": Gains(60.0, 2.0),
            "wrist": Gains(20.0, 1.0),
            "": Gains(400.0, 10.0),
        },
        armature=0.02,
    ),
    "arm": RobotScene(
        file="franka_description/urdfs/fr3_franka_hand.urdf",
        height=None,
        pose={"finger": 0.02, "joint2": -0.6, "joint4": -2.2, "joint6": 1.6, "joint7": 0.8},
        gains={
            "finger": Gains(1000.0, 50.0),
            "": Gains(400.0, 40.0),
        },
        armature=0.05,
    ),
    "hand": HandScene(
        file="allegro_hand_description/allegro_hand_description_right.urdf",
        pose={
            **{f"joint_{finger + 1}.0": 0.61 for finger in (0, 4, 8)},
            **{f"joint_{finger + 2}.0": 0.81 for finger in (0, 4, 8)},
            **{f"joint_{finger + 3}.0": 1.18 for finger in (0, 4, 8)},
            **{"joint_0.0": -0.19, "joint_8.0": 0.19},
            **{"joint_12.0": 0.69, "joint_13.0": 0.12, "joint_14.0": 0.82, "joint_15.0": 1.19},
        },
        gains=Gains(3.0, 0.1),
        armature=0.0005,
        objects=(
            ("box", (0.022, 0.018, 0.014)),
            ("sphere", (0.018,)),
            ("capsule", (0.012, 0.02)),
            ("cylinder", (0.016, 0.014)),
            ("ellipsoid", (0.022, 0.016, 0.013)),
            ("box", (0.014, 0.014, 0.014)),
        ),
    ),
    "cartpole": CartpoleScene(),
    "pile8": PileScene(side_count=2),
    "pile64": PileScene(side_count=4),
    "bin8": BinScene(object_count=8),
    "bin20": BinScene(object_count=20),
}

CARTPOLE_MJCF = f"""
<mujoco model="cartpole">
  <option timestep="{DT}" integrator="implicitfast"/>
  <worldbody>
    <body name="cart" pos="0 0 1">
      <joint name="slide" type="slide" axis="0 1 0" damping="0.05"/>
      <geom type="box" size="0.08 0.15 0.06" mass="2" contype="0" conaffinity="0"/>
      <body name="pole">
        <joint name="hinge" type="hinge" axis="1 0 0" damping="0.002"/>
        <geom type="capsule" fromto="0 0 0 0 0 0.8" size="0.015" mass="0.5" contype="0" conaffinity="0"/>
      </body>
    </body>
  </worldbody>
  <keyframe><key qpos="0 0.2"/></keyframe>
</mujoco>
"""


def write_scene(name: str, folder: Path) -> Path:
    """Write the MJCF file of one of `SCENES`; see `write_mjcf`."""
    path = folder / f"{name}.xml"
    write_mjcf(SCENES[name], path)
    return path


def write_mjcf(scene: Scene, path: Path) -> None:
    """Write the MJCF file of a scene, ready to run: ground, drives, time step, and a keyframe to begin with.

    All but the cartpole have come to rest at its start, so that every engine works on the same contacts.

    Raises:
        FileNotFoundError: If the robot is not there.
    """
    import mujoco

    if isinstance(scene, CartpoleScene):
        path.write_text(CARTPOLE_MJCF)
        return
    match scene:
        case PileScene():
            spec = _pile_spec(scene)
        case BinScene():
            spec = _bin_spec(scene)
        case HandScene():
            spec = _hand_spec(scene)
        case _:
            spec = _robot_spec(scene)
    model = spec.compile()
    data = mujoco.MjData(model)
    mujoco.mj_resetDataKeyframe(model, data, 0)
    mujoco.mj_step(model, data, round(SETTLING_TIME / DT))
    spec.keys[0].qpos = data.qpos.copy()
    spec.compile()
    path.write_text(spec.to_xml())


def _urdf_for_mujoco(path: Path, *, floats: bool = False) -> str:
    """Return a URDF without what is only seen, with absolute file names, since MuJoCo knows no packages.

    MuJoCo makes the root of a URDF part of the world, unless the file says that the robot floats.
    """
    tree = ElementTree.parse(path)
    robot = tree.getroot()
    for link in robot.iter("link"):
        for visual in link.findall("visual"):
            link.remove(visual)
    for mesh in robot.iter("mesh"):
        mesh.set("filename", mesh.get("filename", "").replace("package:/", str(ASSETS)))
    for inertia in robot.iter("inertia"):
        xx, yy, zz, xy, xz, yz = (
            float(inertia.get(name, 0.0)) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
        )
        if np.linalg.eigvalsh([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])[0] <= 0.0:
            for name in ("ixy", "ixz", "iyz"):  # a placeholder, which MuJoCo refuses
                inertia.set(name, "0")
    options = ElementTree.SubElement(robot, "mujoco")
    ElementTree.SubElement(
        options,
        "compiler",
        strippath="false",
        balanceinertia="true",
        fusestatic="false" if floats else "true",
    )
    return ElementTree.tostring(robot, encoding="unicode")


def _make_spec(source: str | None = None) -> "mujoco.MjSpec":
    """Return a scene with the ground and, if given, the robot of a file or of XML text."""
    import mujoco

    if source is None:
        spec = mujoco.MjSpec()
    else:
        spec = mujoco.MjSpec.from_string(source) if "<" in source else mujoco.MjSpec.from_file(source)
    spec.option.timestep = DT
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0])
    return spec


def _pile_spec(scene: PileScene) -> "mujoco.MjSpec":
    import mujoco

    spec = _make_spec()
    qpos = []
    for number, (position, angle) in enumerate(scene.boxes()):
        body = spec.worldbody.add_body(name=f"box_{number}")
        body.add_freejoint()
        body.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[scene.half_size] * 3,
            density=scene.density,
            friction=[scene.friction, 0.005, 0.0001],
        )
        qpos += [*position, math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2)]
    spec.worldbody.first_geom().friction = [scene.friction, 0.005, 0.0001]
    spec.add_key(name="start", qpos=qpos)
    return spec


def _bin_spec(scene: BinScene) -> "mujoco.MjSpec":
    import mujoco

    spec = _make_spec()
    wall, height = 0.02, 0.2
    for axis in range(2):
        for side in (-1.0, 1.0):
            position, size = [0.0, 0.0, height], [scene.half_width + 2.0 * wall] * 2 + [height]
            position[axis] = side * (scene.half_width + wall)
            size[axis] = wall
            spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, pos=position, size=size)
    rng = np.random.default_rng(0)
    qpos: list[float] = []
    for number in range(scene.object_count):
        kind, size = scene.sizes[number % len(scene.sizes)]
        body = spec.worldbody.add_body(name=f"{kind}_{number}")
        body.add_freejoint()
        body.add_geom(type=getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}"), size=list(size))
        turn = rng.normal(size=4)
        # Three by three in a layer.
        cell = np.array([number % 3 - 1, number // 3 % 3 - 1, number // 9])
        qpos += [*(0.18 * cell + [0.0, 0.0, 0.15] + [*rng.uniform(-0.02, 0.02, 2), 0.0])]
        qpos += [*(turn / np.linalg.norm(turn))]
    spec.add_key(name="start", qpos=qpos)
    return spec


def _roughen(spec: "mujoco.MjSpec", roughness: float) -> None:
    """Put a height field of random heights in place of the ground plane."""
    import mujoco

    ground = next(geom for geom in spec.worldbody.geoms if geom.type == mujoco.mjtGeom.mjGEOM_PLANE)
    side = 41
    heights = np.random.default_rng(0).uniform(0.0, 1.0, (side, side))
    spec.add_hfield(
        name="rough",
        nrow=side,
        ncol=side,
        size=[2.0, 2.0, 2.0 * roughness, 1.0],
        userdata=heights.reshape(-1).tolist(),
    )
    ground.type = mujoco.mjtGeom.mjGEOM_HFIELD
    ground.hfieldname = "rough"
    ground.pos = [0.0, 0.0, -roughness]


def _find_asset(file: str) -> Path:
    source = ASSETS / file
    if not source.is_file():
        raise FileNotFoundError(
            f"benchmark robot '{source}' is missing: set PLURIVERSE_TEST_ASSETS to a folder with it"
        )
    return source


def _hand_spec(scene: HandScene) -> "mujoco.MjSpec":
    import mujoco

    spec = _make_spec()
    friction = [scene.friction, 0.005, 0.0001]
    half = 0.5 * scene.tilt
    turn = [math.cos(half), 0.0, -math.sin(half), 0.0]  # the palm looks along +x of the file
    stand = spec.worldbody.add_frame(pos=[0.0, 0.0, scene.height], quat=turn)
    hand = mujoco.MjSpec.from_string(_urdf_for_mujoco(_find_asset(scene.file)))
    for geom in hand.geoms:
        geom.contype = 0  # hulls of neighbouring links overlap; the hand meets the ground and objects only
    spec.attach(hand, prefix="hand_", frame=stand)
    qpos, targets = [], []
    for joint in spec.joints:
        joint.armature = scene.armature
        actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=scene.gains.stiffness, kv=scene.gains.damping)
        targets.append(scene.pose.get(joint.name.removeprefix("hand_"), 0.0))
    qpos += targets
    for number, (kind, size) in enumerate(scene.objects):
        body = spec.worldbody.add_body(name=f"object_{number}")
        body.add_freejoint()
        shape = getattr(mujoco.mjtGeom, f"mjGEOM_{kind.upper()}")
        body.add_geom(type=shape, size=[*size, 0.0, 0.0][:3], density=scene.density)
        height = scene.height + 0.05 + 0.045 * number
        qpos += [-0.045 - 0.01 * (number % 2), 0.012 * (number % 3 - 1), height, 1.0, 0.0, 0.0, 0.0]
    for geom in spec.geoms:
        geom.friction = friction
    spec.add_key(name="start", qpos=qpos, ctrl=targets)
    return spec


def _robot_spec(scene: RobotScene) -> "mujoco.MjSpec":
    import mujoco

    source = _find_asset(scene.file)
    floats = scene.height is not None
    spec = _make_spec(_urdf_for_mujoco(source, floats=floats) if source.suffix == ".urdf" else str(source))
    if source.suffix == ".urdf" and floats:
        spec.worldbody.first_body().add_freejoint()
    if source.suffix != ".urdf":
        spec.meshdir = str((source.parent / spec.meshdir).resolve())
    for item in [*spec.lights, *spec.cameras]:
        spec.delete(item)
    if scene.roughness > 0.0:
        _roughen(spec, scene.roughness)
    if scene.height is None:
        for geom in spec.geoms[1:]:
            geom.contype = 0  # hulls of neighbouring links overlap; the arm meets the ground and objects only
    qpos = [] if scene.height is None else [0.0, 0.0, scene.height, 1.0, 0.0, 0.0, 0.0]
    targets = []
    for joint in spec.joints:
        if joint.type == mujoco.mjtJoint.mjJNT_FREE:
            continue
        joint.armature = scene.armature
        target = next((angle for part, angle in scene.pose.items() if part in joint.name), 0.0)
        gains = next(gains for part, gains in scene.gains.items() if part in joint.name)
        actuator = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        actuator.set_to_position(kp=gains.stiffness, kv=gains.damping)
        qpos.append(target)
        targets.append(target)
    spec.add_key(name="start", qpos=qpos, ctrl=targets)
    return spec
