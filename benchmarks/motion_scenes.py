"""Robots in motion: one MJCF file per robot and kind of motion, and the targets that move it.

Nothing about contact is set in the files: what an engine does with its own defaults is what is measured.
"""

import dataclasses
import enum
from pathlib import Path

import numpy as np

from benchmarks.scenes import DT, SCENES, Gains, HandScene, RobotScene, write_mjcf

# Solver steps for which a target holds, as in reinforcement learning.
DECIMATION = 4
# Targets are drawn this far about the pose that a robot holds [rad].
AMPLITUDE = 0.3
# Damping of the joints of a robot without drives [N·m·s/rad].
LIMP_DAMPING = {"hand": 0.005}
LIMP_DAMPING_OTHERWISE = 0.5
# Where a falling robot begins: this much above its standing height [m], turned at random.
DROP_HEIGHT = 0.3
# Control steps after which falling worlds begin anew: half a second, of which a third is in the air.
FALL_CONTROL_STEPS = 25
# Half the edge of the cube of the arm [m], and its place on the ground between the fingers' reach.
CUBE_HALF_SIZE = 0.0225


class Motion(enum.Enum):
    """What the robots do."""

    STANDING = "standing"  # hold their pose
    RANDOM = "random"  # get new random targets in every control step
    LIMP = "limp"  # have no drives
    FALLING = "falling"  # are dropped, each turned in another way, under drives that hold the pose


ANYMAL = RobotScene(
    file="anymal_c_simple_description/urdf/anymal.urdf",
    height=0.62,
    pose={"F_HFE": 0.4, "H_HFE": -0.4, "F_KFE": -0.8, "H_KFE": 0.8},
    gains={"": Gains(150.0, 4.0)},
    armature=0.01,
)
ROBOTS: dict[str, RobotScene | HandScene] = {
    "go1": SCENES["go1"],
    "g1": SCENES["g1"],
    "anymal": ANYMAL,
    "hand": SCENES["hand"],
    "arm": SCENES["arm"],
}  # type: ignore[assignment]


@dataclasses.dataclass(frozen=True)
class MovingScene:
    """A file, the states that worlds begin with, and the targets that they get."""

    path: Path
    """MJCF file."""
    qpos: np.ndarray
    """Positions that worlds begin with, as MuJoCo orders them, shape [world, coord]."""
    targets: np.ndarray
    """Drive targets [rad or m], one row per control step and world, shape [control step, world, actuator]."""
    restarts: bool
    """Whether worlds begin anew every `FALL_CONTROL_STEPS` control steps."""


def write_motion(robot: str, motion: Motion, world_count: int, folder: Path) -> MovingScene:
    """Write the file of a robot for one kind of motion and return it with its starts and targets.

    Raises:
        FileNotFoundError: If the robot is not there.
    """
    import mujoco

    path = folder / f"{robot}_{motion.value}.xml"
    write_mjcf(ROBOTS[robot], path)
    spec = mujoco.MjSpec.from_file(str(path))
    hold = np.array(spec.keys[0].ctrl, dtype=np.float64)
    if robot == "arm":
        _add_cube(spec)
    if motion is Motion.LIMP:
        damping = LIMP_DAMPING.get(robot, LIMP_DAMPING_OTHERWISE)
        for joint in spec.joints:
            if joint.type != mujoco.mjtJoint.mjJNT_FREE:
                joint.damping = [damping, 0.0, 0.0]
        for actuator in list(spec.actuators):
            spec.delete(actuator)
        spec.keys[0].ctrl = []
        hold = hold[:0]
    model = spec.compile()
    path.write_text(spec.to_xml())

    rng = np.random.default_rng(1)
    amplitude = AMPLITUDE if motion is Motion.RANDOM else 0.0
    noise = amplitude * rng.uniform(-1.0, 1.0, (64, world_count, len(hold)))
    starts = np.tile(np.array(model.key_qpos[0]), (world_count, 1))
    restarts = motion is Motion.FALLING
    if restarts:
        _lift_and_turn(model, starts, rng)
    return MovingScene(path, starts, hold + noise, restarts)


def _add_cube(spec: "mujoco.MjSpec") -> None:  # noqa: F821
    """Put a cube on the ground in front of the arm, and start the arm with its hand about it."""
    import mujoco

    cube = spec.worldbody.add_body(name="cube", pos=[0.45, 0.0, CUBE_HALF_SIZE])
    cube.add_freejoint()
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[CUBE_HALF_SIZE] * 3, density=400.0)
    spec.keys[0].qpos = [*spec.keys[0].qpos, 0.45, 0.0, CUBE_HALF_SIZE, 1.0, 0.0, 0.0, 0.0]
    # The pose is low enough for the fingers to sweep over the ground and push the cube about.
    for name, value in {"joint2": 0.35, "joint4": -2.35, "joint6": 2.7}.items():
        for index, actuator in enumerate(spec.actuators):
            if name in actuator.name:
                spec.keys[0].qpos[index] = value
                spec.keys[0].ctrl[index] = value


def _lift_and_turn(model: "mujoco.MjModel", qpos: np.ndarray, rng: np.random.Generator) -> None:  # noqa: F821
    """Lift all free bodies and turn each world's at random, about axes that differ by world."""
    import mujoco

    for joint in range(model.njnt):
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            address = model.jnt_qposadr[joint]
            turn = rng.normal(size=(len(qpos), 4))
            qpos[:, address + 2] += DROP_HEIGHT
            qpos[:, address + 3 : address + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)


__all__ = ["DECIMATION", "DT", "FALL_CONTROL_STEPS", "ROBOTS", "Motion", "MovingScene", "write_motion"]
