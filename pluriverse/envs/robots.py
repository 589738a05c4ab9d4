"""Robots by name: locations of their files, with suitable drive gains and home poses.

Puli, Ada, Heron and the cart and pole belong to this package. The files of others are not bundled: they are
searched in your folders, then fetched from the MuJoCo Menagerie, if its package is installed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pluriverse.config import ASSET_ROOTS_VARIABLE, OFFLINE_VARIABLE, asset_folders, is_offline
from pluriverse.files import find_file
from pluriverse.model_builder import ModelBuilder

_BUNDLED = Path(__file__).parent.parent / "scenes" / "robots"
_OWN = Path(__file__).parent / "assets"


@dataclass(frozen=True)
class Robot:
    """A robot as tasks use it."""

    name: str
    """Name, and label of its articulation."""
    files: tuple[str, ...]
    """Files by which it is known, relative to a folder of assets."""
    height: float = 0.0
    """Height of the base over the ground in the home pose [m]; 0 for a base that is fixed."""
    home: Mapping[str, float] = field(default_factory=dict)
    """Position of each joint at home [rad or m], by name or wildcard; 0 for others."""
    drive_gains: Mapping[str, tuple[float, float]] | None = None
    """Stiffness and damping of drives, by name or wildcard of joints; those of the file if None."""
    effort_limit: Mapping[str, float] | None = None
    """Largest effort of drives [N or N·m], likewise."""
    armature: float | None = None
    """Rotor inertia as seen by each driven joint [kg·m²]; that of the file if None."""
    floating: bool | None = None
    """Whether the base is free. If None, as in the file, or by `height` for URDF, which cannot say so."""
    menagerie: str | None = None
    """Name in the MuJoCo Menagerie."""
    self_collisions: bool = False
    """Whether its links collide with each other. In many files links overlap in every pose, which then throws
    the robot apart."""
    feet: tuple[str, ...] = ()
    """Bodies that are its feet."""
    trunk: tuple[str, ...] = ()
    """Bodies that must not touch the ground."""


_QUADRUPED_GO1 = {
    "F[RL]_thigh_joint": 0.8,
    "R[RL]_thigh_joint": 1.0,
    "*_calf_joint": -1.5,
    "?L_hip_joint": 0.1,
    "?R_hip_joint": -0.1,
}

ROBOTS: dict[str, Robot] = {
    robot.name: robot
    for robot in (
        Robot(
            "puli",
            ("puli.xml",),
            height=0.31,
            home={"*_hip_pitch": 0.8, "*_knee": -1.6},
            drive_gains={"*_abduction": (40.0, 1.0), "*_hip_pitch": (40.0, 1.0), "*_knee": (40.0, 1.0)},
            feet=("*_shank",),
            trunk=("trunk", "*_thigh"),
        ),
        Robot(
            "go1",
            ("unitree_go1/go1.xml", "go1.xml"),
            height=0.33,
            home=_QUADRUPED_GO1,
            drive_gains={"*_joint": (20.0, 0.5)},
            effort_limit={"*_hip_joint": 23.7, "*_thigh_joint": 23.7, "*_calf_joint": 35.55},
            armature=0.01,
            menagerie="unitree_go1",
            feet=("*_calf",),
            trunk=("trunk", "*_thigh"),
        ),
        Robot(
            "anymal",
            (
                "anymal_c_simple_description/urdf/anymal.urdf",
                "anybotics_anymal_c/anymal_c.xml",
                "anymal.urdf",
            ),
            height=0.58,
            home={"?F_HFE": 0.4, "?H_HFE": -0.4, "?F_KFE": -0.8, "?H_KFE": 0.8},
            # With softer drives its 50 kg sag until the thighs touch the ground.
            drive_gains={"*_HAA": (200.0, 8.0), "*_HFE": (200.0, 8.0), "*_KFE": (200.0, 8.0)},
            effort_limit={"*_HAA": 80.0, "*_HFE": 80.0, "*_KFE": 80.0},
            armature=0.02,
            floating=True,
            menagerie="anybotics_anymal_c",
            feet=("*_FOOT", "*_SHANK"),
            trunk=("base*", "*_THIGH"),
        ),
        Robot(
            "g1",
            ("unitree_g1/g1.xml", "g1.xml"),
            height=0.76,
            home={
                "*_hip_pitch_joint": -0.312,
                "*_knee_joint": 0.669,
                "*_ankle_pitch_joint": -0.363,
                "*_shoulder_pitch_joint": 0.2,
                "left_shoulder_roll_joint": 0.2,
                "right_shoulder_roll_joint": -0.2,
                "*_elbow_joint": 0.6,
            },
            # It stands by its ankles: together they have to be stiffer than gravity topples it, about
            # 220 N·m/rad, by more than knees and hips give way.
            drive_gains={
                "*_hip_*": (200.0, 6.0),
                "*_knee_joint": (200.0, 6.0),
                "*_ankle_*": (200.0, 6.0),
                "waist_*": (200.0, 6.0),
                "*_shoulder_*": (40.0, 2.0),
                "*_elbow_joint": (40.0, 2.0),
                "*_wrist_*": (15.0, 1.0),
            },
            effort_limit={
                "*_hip_*": 88.0,
                "*_knee_joint": 139.0,
                "*_ankle_*": 50.0,
                "waist_*": 88.0,
                "*_shoulder_*": 25.0,
                "*_elbow_joint": 25.0,
                "*_wrist_*": 5.0,
            },
            armature=0.01,
            menagerie="unitree_g1",
            feet=("*_ankle_roll_link",),
            trunk=("pelvis", "torso_link", "*_knee_link"),
        ),
        Robot(
            "heron",
            ("heron.urdf",),
            home={
                "shoulder_pitch": 0.4,
                "elbow_pitch": 1.2,
                "wrist_pitch": 1.5416,
                "left_finger": 0.04,
                "right_finger": 0.04,
            },
            drive_gains={
                "base_yaw": (2000.0, 300.0),
                "shoulder_pitch": (2000.0, 300.0),
                "elbow_pitch": (2000.0, 300.0),
                "forearm_roll": (300.0, 20.0),
                "wrist_*": (300.0, 20.0),
                "*_finger": (2000.0, 40.0),
            },
            armature=0.05,
            floating=False,
        ),
        Robot("ant", ("ant.xml",), height=0.46, home={"*_ankle": 1.1}),
        Robot("hand", ("hand.xml",), floating=False),
        Robot("cartpole", ("cartpole.urdf",), floating=False),
    )
}
"""Robots that tasks know by name."""


def find_robot(name: str, asset_roots: Sequence[str | Path] = ()) -> Path:
    """Return the file of a robot.

    It is looked for in `asset_roots`, in those of `pluriverse.config.asset_roots`, below each of them down to
    three folders deep, and then in the MuJoCo Menagerie.

    Args:
        name: Name of the robot, of `ROBOTS`.
        asset_roots: Folders to look in first.

    Raises:
        FileNotFoundError: If it is nowhere; the message says where it was looked for and how to get it.
        KeyError: If there is no robot of this name.
    """
    robot = get_robot(name)
    for folder in (_OWN, _BUNDLED):
        if (folder / robot.files[0]).is_file():
            return folder / robot.files[0]
    folders = [Path(folder) for folder in asset_roots]
    folders += asset_folders()
    for folder in folders:
        if not folder.is_dir():
            raise FileNotFoundError(f"robot '{name}': the asset folder '{folder}' does not exist.")
        for file in robot.files:
            found = find_file(folder, file)
            if found is not None:
                return found
    tried = ", ".join(f"'{folder}'" for folder in folders) or "no folder, since none was given"
    reason = _fetch_reason(robot)
    if isinstance(reason, Path):
        return reason
    raise FileNotFoundError(
        f"robot '{name}': its file ({' or '.join(robot.files)}) is not part of this package, and was not "
        f"found in {tried}. Name the folder that holds it: asset_roots=[...], --asset-root FOLDER, or the "
        f"environment variable {ASSET_ROOTS_VARIABLE}. {reason}"
    )


def get_robot(name: str) -> Robot:
    """Return a robot by its name.

    Raises:
        KeyError: If there is none.
    """
    if name not in ROBOTS:
        raise KeyError(f"there is no robot '{name}'; known are {', '.join(sorted(ROBOTS))}.")
    return ROBOTS[name]


def add_robot(
    builder: ModelBuilder,
    name: str | Robot,
    *,
    asset_roots: Sequence[str | Path] = (),
    lift: float = 0.0,
) -> Robot:
    """Add a robot in its home pose, with drive targets at that pose.

    Args:
        builder: Builder to add to.
        name: Name of a known robot, or a `Robot` of your own, whose first file is then the path of its file.
        asset_roots: Folders to look for its file in.
        lift: Height by which it stands above its usual one [m], for uneven ground.

    Returns:
        The robot.

    Raises:
        FileNotFoundError: If its file is nowhere.
        KeyError: If there is no robot of this name.
        ValueError: If the home pose names joints that the file does not have.
    """
    robot = get_robot(name) if isinstance(name, str) else name
    path = find_robot(name, asset_roots) if isinstance(name, str) else Path(robot.files[0])
    first_joint, first_articulation = len(builder.joint_type), len(builder.articulation_label)
    options: dict[str, Any] = {"enable_self_collisions": robot.self_collisions}
    if robot.floating is not None:
        options["floating"] = robot.floating
    elif robot.height > 0.0 and path.suffix.lower() == ".urdf":
        options["floating"] = True  # URDF cannot say so; a height is that of a base that is free
    if robot.drive_gains is not None:
        options["drive_gains"] = dict(robot.drive_gains)
    if robot.effort_limit is not None:
        options["effort_limit"] = dict(robot.effort_limit)
    if path.suffix.lower() == ".urdf":
        builder.add_urdf(path, collapse_fixed_joints=True, **options)
    elif path.suffix.lower() in (".usd", ".usda", ".usdc", ".usdz"):
        builder.add_usd(path, **options)
    else:
        builder.add_mjcf(path, **options)
    if len(builder.articulation_label) > first_articulation:
        builder.articulation_label[first_articulation] = robot.name
    _take_home(builder, robot, first_joint, lift)
    return robot


def _take_home(builder: ModelBuilder, robot: Robot, first_joint: int, lift: float) -> None:
    """Set a robot to its home pose, with matching drive targets."""
    used: set[str] = set()
    is_free = False
    for joint in range(first_joint, len(builder.joint_type)):
        coord, dof = builder.joint_q_start[joint], builder.joint_qd_start[joint]
        coord_count = _next(builder.joint_q_start, joint, len(builder.joint_q)) - coord
        dof_count = _next(builder.joint_qd_start, joint, len(builder.joint_qd)) - dof
        if coord_count == 7:
            is_free = True
            if robot.height or lift:
                builder.joint_q[coord + 2] = robot.height + lift
            continue
        if coord_count != 1 or dof_count != 1:
            continue
        label = builder.joint_label[joint].rpartition("/")[2]
        for pattern, value in robot.home.items():
            if fnmatchcase(label, pattern):
                used.add(pattern)
                builder.joint_q[coord] = value
        builder.joint_target_pos[dof] = builder.joint_q[coord]
        if robot.armature is not None:
            builder.joint_armature[dof] = robot.armature
    if robot.height > 0.0 and not is_free:
        raise ValueError(
            f"robot '{robot.name}': its height is {robot.height} m, but its base is fixed to the world: "
            "it would hang in the ground. Say floating=True for a base that is free, or leave height out."
        )
    unknown = sorted(set(robot.home) - used)
    if unknown:
        names = [
            builder.joint_label[k].rpartition("/")[2] for k in range(first_joint, len(builder.joint_type))
        ]
        raise ValueError(
            f"robot '{robot.name}': its home pose names {', '.join(unknown)}, but no joint of its file is "
            f"called so; there are {', '.join(names)}. This may be another version of the file."
        )


def _next(starts: Any, joint: int, end: int) -> int:
    return int(starts[joint + 1]) if joint + 1 < len(starts) else end


def _fetch_reason(robot: Robot) -> Path | str:
    """Return the file of a robot in the Menagerie, or why there is none."""
    if robot.menagerie is None:
        return "The MuJoCo Menagerie does not have it."
    try:
        import mujoco_menagerie
    except ImportError:
        return (
            f"Or pip install 'pluriverse[menagerie]', which fetches '{robot.menagerie}' from the MuJoCo "
            "Menagerie."
        )

    cache = mujoco_menagerie.Cache()
    try:
        entry = mujoco_menagerie.get(robot.menagerie)
        if is_offline() and cache.root is None and not cache.is_cached(entry):
            return f"{OFFLINE_VARIABLE} forbids to fetch it from the MuJoCo Menagerie."
        return Path(entry.xml(entry.default_model, cache))
    except (mujoco_menagerie.MenagerieError, OSError, KeyError) as error:
        return f"It could not be fetched from the MuJoCo Menagerie: {error}"
