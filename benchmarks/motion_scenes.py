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
# Targets are drawn this far about the pose that a robot holds [rad], those of sliding fingers so far [m].
AMPLITUDE = 0.3
SLIDE_AMPLITUDE = 0.02
# Damping of the joints of a robot without drives [N·m·s/rad].
LIMP_DAMPING = {"hand": 0.005}
LIMP_DAMPING_OTHERWISE = 0.5
# Where a falling robot, or the arm's cube, begins: this much above where it rests [m], turned at random. The
# cube begins above the wrist.
DROP_HEIGHT = 0.3
CUBE_DROP_HEIGHT = 0.55
# Control steps after which falling worlds begin anew: half a second, of which a third is in the air.
FALL_CONTROL_STEPS = 25
# Half the edge of the cube of the arm [m], and its distance from the arm's base [m].
CUBE_HALF_SIZE = 0.0225
CUBE_DISTANCE = 0.45
# Where there are several robots in a world: how many stand in a row, and how far they are apart [m].
ROW_LENGTH, PLACE_SIZE = 4, 1.5
# The arm with its hand down over the cube [rad], and its fingers [m]: just clear of the cube, and so closed
# that they hold it with 4.5 N.
ARM_POSE = (0.0, 0.383, 0.0, -2.53, 0.0, 2.913, 0.785)
FINGERS_OPEN, FINGERS_CLOSED = 0.0235, 0.018


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

    def save(self) -> None:
        """Write what is not in the MJCF file beside it, for other processes."""
        np.savez(self.path.with_suffix(".npz"), qpos=self.qpos, targets=self.targets, restarts=self.restarts)

    @classmethod
    def load(cls, path: Path) -> "MovingScene":
        """Return the scene of an MJCF file that was saved.

        Raises:
            FileNotFoundError: If nothing was saved beside the file.
        """
        with np.load(path.with_suffix(".npz")) as saved:
            return cls(path, saved["qpos"], saved["targets"], bool(saved["restarts"]))


def write_motion(
    robot: str, motion: Motion, world_count: int, folder: Path, together: int = 1
) -> MovingScene:
    """Write the file of a robot for one kind of motion and return it with its starts and targets.

    A world has as many of the robot `together`.

    Raises:
        FileNotFoundError: If the robot is not there.
    """
    import mujoco

    path = folder / f"{robot}_{motion.value}.xml"
    write_mjcf(ROBOTS[robot], path)
    spec = mujoco.MjSpec.from_file(str(path))
    if robot == "arm":
        _add_cube(spec)
    hold = np.array(spec.keys[0].ctrl, dtype=np.float64)
    if motion is Motion.LIMP:
        damping = LIMP_DAMPING.get(robot, LIMP_DAMPING_OTHERWISE)
        for joint in spec.joints:
            if joint.type != mujoco.mjtJoint.mjJNT_FREE:
                joint.damping = [damping, 0.0, 0.0]
        for actuator in list(spec.actuators):
            spec.delete(actuator)
        spec.keys[0].ctrl = []
        hold = hold[:0]
    if together > 1:
        spec, hold = _put_together(spec, together), np.tile(hold, together)
    model = spec.compile()
    path.write_text(spec.to_xml())

    rng = np.random.default_rng(1)
    noise = rng.uniform(-1.0, 1.0, (64, world_count, len(hold)))
    slides = model.jnt_type[model.actuator_trnid[:, 0]] == mujoco.mjtJoint.mjJNT_SLIDE
    noise *= np.where(slides, SLIDE_AMPLITUDE, AMPLITUDE) if motion is Motion.RANDOM else 0.0
    starts = np.tile(np.array(model.key_qpos[0]), (world_count, 1))
    restarts = motion is Motion.FALLING
    if restarts:
        _lift_and_turn(model, starts, CUBE_DROP_HEIGHT if robot == "arm" else DROP_HEIGHT, rng)
    return MovingScene(path, starts, hold + noise, restarts)


def _put_together(spec: "mujoco.MjSpec", count: int) -> "mujoco.MjSpec":  # noqa: F821
    """Return a world of as many copies of all that is in the file, in rows, on one ground."""
    import mujoco

    key, source = spec.keys[0], spec.compile()
    files = {mesh.name: str(Path(spec.meshdir) / mesh.file) for mesh in spec.meshes}
    world = mujoco.MjSpec()
    world.option.timestep, world.option.integrator = spec.option.timestep, spec.option.integrator
    world.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0.0, 0.0, 1.0])
    starts = []
    for index in range(count):
        place = np.array([index % ROW_LENGTH, index // ROW_LENGTH, 0.0]) * PLACE_SIZE
        copy = spec.copy()
        copy.delete(copy.keys[0])
        copy.nkey = 0
        for mesh in copy.meshes:
            mesh.file = files[mesh.name]
        for geom in list(copy.worldbody.geoms):
            if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
                copy.delete(geom)
        world.attach(copy, prefix=f"{index}_", frame=world.worldbody.add_frame(pos=place))
        qpos = np.array(key.qpos, dtype=np.float64)
        for joint in np.flatnonzero(source.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
            address = source.jnt_qposadr[joint]
            qpos[address : address + 3] += place
        starts.append(qpos)
    world.add_key(name=key.name, qpos=np.concatenate(starts), ctrl=np.tile(key.ctrl, count))
    return world


def _add_cube(spec: "mujoco.MjSpec") -> None:  # noqa: F821
    """Put a cube on the ground, and start the arm with its fingers about it."""
    import mujoco

    place = [CUBE_DISTANCE, 0.0, CUBE_HALF_SIZE]
    cube = spec.worldbody.add_body(name="cube", pos=place)
    cube.add_freejoint()
    cube.add_geom(type=mujoco.mjtGeom.mjGEOM_BOX, size=[CUBE_HALF_SIZE] * 3, density=400.0)
    spec.keys[0].qpos = [*ARM_POSE, FINGERS_OPEN, FINGERS_OPEN, *place, 1.0, 0.0, 0.0, 0.0]
    spec.keys[0].ctrl = [*ARM_POSE, FINGERS_CLOSED, FINGERS_CLOSED]


def _lift_and_turn(
    model: "mujoco.MjModel",  # noqa: F821
    qpos: np.ndarray,
    height: float,
    rng: np.random.Generator,
) -> None:
    """Lift all free bodies by a height [m] and turn each world's at random, about axes of their own."""
    import mujoco

    for joint in range(model.njnt):
        if model.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            address = model.jnt_qposadr[joint]
            turn = rng.normal(size=(len(qpos), 4))
            qpos[:, address + 2] += height
            qpos[:, address + 3 : address + 7] = turn / np.linalg.norm(turn, axis=1, keepdims=True)


__all__ = ["DECIMATION", "DT", "FALL_CONTROL_STEPS", "ROBOTS", "Motion", "MovingScene", "write_motion"]
