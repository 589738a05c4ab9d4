"""Recorded control: drive targets over time, and the state that they begin at, from a file of their own."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import FailFast, Field, model_validator

from pluriverse.model import poses
from pluriverse.scene.document import SceneDocument, field_name, read_scene_document
from pluriverse.scene.errors import FieldError, SapSceneLoaderError
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.validation import validate_document
from pluriverse.scene.values import Positive, parse_number, shown
from pluriverse.types import JointType

# A time that falls short of a sample by rounding counts as its time [relative to the sample's duration].
SAMPLE_TOLERANCE = 1e-9

# Ten minutes of 50 degrees of freedom at 100 samples a second.
RECORDING_VALUE_COUNT_MAX = 3_000_000


class Samples(SceneMapping):
    """Rows of numbers, one per frame."""

    # The message names the first wrong row, not millions of them.
    values: Annotated[list[list[Any]], FailFast(), Field(min_length=1)]
    order: Any = Field(default=None, description="not read")


class TimedSamples(Samples):
    """Rows of numbers with their start times."""

    dt: Positive | None = Field(default=None, description="s")
    times: list[Any] | None = Field(default=None, description="s, one per row, increasing")

    @model_validator(mode="after")
    def _one_clock(self) -> "TimedSamples":
        if (self.dt is None) == (self.times is None):
            raise ValueError("give either 'dt' or 'times'")
        return self


class ControlFile(SceneMapping):
    """A file of recorded control."""

    schema_version: Any = 1
    name: Any = None
    description: Any = None
    model: Any = None
    keyframes: Any = None
    loop: bool = False
    joint_target_pos: TimedSamples
    joint_q: Samples | None = None
    joint_qd: Samples | None = None


@dataclass(frozen=True)
class Recording:
    """Contents of a file of recorded control for one world."""

    source_path: Path
    """The file."""
    times: np.ndarray
    """Time from which on each sample holds [s], shape [frame]."""
    period: float
    """Time after which a looped recording begins again [s]."""
    loop: bool
    """Whether it begins again; otherwise the last sample stays."""
    joint_target_pos: np.ndarray
    """Drive targets [m or rad], shape [frame, dof]."""
    joint_q: np.ndarray | None
    """Coordinates to begin at, shape [coordinate], or None."""
    joint_qd: np.ndarray | None
    """Velocities to begin at, shape [dof], or None."""


class ControlSequence:
    """Recorded drive targets for the worlds of one kind: each sample holds until the next.

    Args:
        recording: What the file says about one world.
        model: The model that has the worlds.
        first_world: The first of them; they stand behind each other.
        offsets: Where each of them stands [m], shape [world, 3].
    """

    def __init__(self, recording: Recording, model: Any, first_world: int, offsets: np.ndarray):
        self.recording = recording
        """Contents of the file for one world."""
        self.worlds = range(first_world, first_world + len(offsets))
        """The worlds that it drives."""
        self._offsets = offsets
        self._dofs = _range_of(model.joint_dof_world_start, self.worlds, model.joint_dof_count)
        self._coords = _range_of(model.joint_coord_world_start, self.worlds, model.joint_coord_count)
        _check_width("joint_target_pos", recording.joint_target_pos, self._dofs, self.worlds)
        _check_width("joint_q", recording.joint_q, self._coords, self.worlds)
        _check_width("joint_qd", recording.joint_qd, self._dofs, self.worlds)

    @property
    def frame_count(self) -> int:
        """Number of samples."""
        return len(self.recording.times)

    @property
    def dof_count(self) -> int:
        """Degrees of freedom of one world."""
        return int(self.recording.joint_target_pos.shape[1])

    @property
    def sample_dt(self) -> float:
        """Time between the first two samples [s]; the period where there is one only."""
        times = self.recording.times
        return float(times[1] - times[0]) if len(times) > 1 else self.recording.period

    @property
    def loop(self) -> bool:
        """Whether it begins again after its end; otherwise the last sample stays."""
        return self.recording.loop

    def sample_at(self, time: float) -> int:
        """Return the sample that holds at a time [s]."""
        times, period = self.recording.times, self.recording.period
        time += SAMPLE_TOLERANCE * self.sample_dt
        if self.loop and time >= times[0] + period:
            time = times[0] + (time - times[0]) % period
        return max(0, int(np.searchsorted(times, time, side="right")) - 1)

    def apply(self, control: Any, frame_index: int, sim_dt: float) -> None:
        """Write the drive targets that hold at a step into a control.

        Args:
            control: Control of the model.
            frame_index: Number of the step.
            sim_dt: Time step [s].
        """
        row = self.recording.joint_target_pos[self.sample_at(frame_index * sim_dt)]
        if self._dofs:
            target = control.joint_target_pos[self._dofs.start : self._dofs.stop]
            target.assign(np.tile(row, len(self.worlds)).astype(np.float32))

    def apply_initial_state(self, model: Any, state: Any) -> None:
        """Set the worlds of a state to the start of the recording, and update body poses."""
        from pluriverse.dynamics import eval_fk

        joint_q, joint_qd = state.joint_q.numpy(), state.joint_qd.numpy()
        if self.recording.joint_q is not None and self._coords:
            rows = np.tile(self.recording.joint_q, (len(self.worlds), 1))
            self._move_free_joints(model, rows)
            joint_q[self._coords.start : self._coords.stop] = rows.reshape(-1)
            state.joint_q.assign(joint_q)
        if self.recording.joint_qd is not None and self._dofs:
            joint_qd[self._dofs.start : self._dofs.stop] = np.tile(self.recording.joint_qd, len(self.worlds))
            state.joint_qd.assign(joint_qd)
        eval_fk(model, state.joint_q, state.joint_qd, state)

    def _move_free_joints(self, model: Any, rows: np.ndarray) -> None:
        """Offset the free joints in each world's row of coordinates by the position of the world."""
        starts, types = model.joint_q_start.numpy(), model.joint_type.numpy()
        frames, parents = model.joint_X_p.numpy(), model.joint_parent.numpy()
        joints = model.joint_world_start.numpy()
        for row, world in enumerate(self.worlds):
            first = self._coords.start + row * rows.shape[1]
            begin, end = (0, model.joint_count) if model.world_count == 1 else joints[world : world + 2]
            for joint in range(begin, end):
                if types[joint] not in (JointType.FREE, JointType.DISTANCE) or parents[joint] >= 0:
                    continue
                rotation = np.array([0.0, 0.0, 0.0, *frames[joint, 3:]])
                step = poses.compose(poses.inverse(rotation), np.array([*self._offsets[row], 0, 0, 0, 1.0]))
                coord = starts[joint] - first
                rows[row, coord : coord + 3] += step[:3]


def _range_of(starts: Any, worlds: range, count: int) -> range:
    """Return the entries of some worlds in an array of `count` entries."""
    begins = starts.numpy()
    if len(begins) == 3:  # one world, perhaps the implicit one
        return range(count)
    return range(int(begins[worlds.start]), int(begins[worlds.stop]))


def _check_width(name: str, rows: np.ndarray | None, entries: range, worlds: range) -> None:
    if rows is not None and rows.shape[-1] * len(worlds) != len(entries):
        raise FieldError(
            f"a row has {rows.shape[-1]} numbers, but a world of this scene has "
            f"{len(entries) // max(len(worlds), 1)} "
            + ("coordinates" if name == "joint_q" else "degrees of freedom"),
            name,
            "values",
        )


def read_recording(path: Path, *, loop: bool | None) -> Recording:
    """Return what a file of recorded control says.

    Args:
        path: The file, JSON or YAML.
        loop: Whether to begin again at its end; None leaves that to the file.

    Raises:
        SapSceneLoaderError: The file is wrong; the message names file, line, field and value.
    """
    document = read_scene_document(
        path, "a file of recorded control", value_count_max=RECORDING_VALUE_COUNT_MAX
    )
    content = validate_document(document, ControlFile, strict=True, features=[])
    targets = _rows(document, content.joint_target_pos, "joint_target_pos")
    clock = content.joint_target_pos
    try:
        if clock.dt is not None:
            times, period = clock.dt * np.arange(len(targets)), clock.dt * len(targets)
        else:
            assert clock.times is not None
            times, period = _times(clock.times, len(targets))
    except FieldError as error:
        raise document.error(("joint_target_pos", *error.path), str(error)) from error
    joint_q = _rows(document, content.joint_q, "joint_q")[0] if content.joint_q is not None else None
    joint_qd = _rows(document, content.joint_qd, "joint_qd")[0] if content.joint_qd is not None else None
    return Recording(path, times, period, content.loop if loop is None else loop, targets, joint_q, joint_qd)


def _times(values: Sequence[Any], count: int) -> tuple[np.ndarray, float]:
    """Return the times of samples, and the time from the first to the end of the last."""
    if len(values) != count:
        raise FieldError(f"{len(values)} times for {count} rows", "times")
    times = np.array([_number(value, "times", index) for index, value in enumerate(values)])
    steps = np.diff(times)
    if not (steps > 0.0).all():
        index = int(np.argmin(steps > 0.0)) + 1
        raise FieldError(f"{shown(values[index])} is not later than the time before it", "times", index)
    # The last sample holds as long as the previous one.
    return times, float(times[-1] - times[0] + (steps[-1] if count > 1 else 1.0))


def _rows(document: SceneDocument, samples: Samples, name: str) -> np.ndarray:
    """Return rows of numbers, all of the same length."""
    width = len(samples.values[0])
    for index, row in enumerate(samples.values):
        if len(row) != width:
            raise document.error(
                (name, "values", index), f"this row has {len(row)} numbers, and the first has {width}"
            )
    try:
        rows = [
            [_number(value, "values", index, column) for column, value in enumerate(row)]
            for index, row in enumerate(samples.values)
        ]
    except FieldError as error:
        raise document.error((name, *error.path), str(error)) from error
    return np.array(rows, dtype=np.float64).reshape(len(rows), width)


def _number(value: Any, *path: str | int) -> float:
    if isinstance(value, float | int) and not isinstance(value, bool) and -1e38 < value < 1e38:
        return float(value)
    return parse_number(value, *path)


def load_sap_control_sequence(
    scene_path: str | Path, model: Any, state: Any, control: Any, device: Any = None
) -> ControlSequence | None:
    """Return the recorded control of a scene for a model of it; None if the scene has none.

    The state is put where the recording begins, and the drive targets of its first sample are written.
    `load_scene` does the same for the state and the control that it returns.

    Args:
        scene_path: The scene file.
        model: A model made from it, with worlds of one kind.
        state: State of the model.
        control: Control of the model.
        device: Must be that of the model, if given.

    Raises:
        SapSceneLoaderError: Scene or recording are wrong.
        ValueError: `device` is not the model's.
    """
    import warp as wp

    from pluriverse.builder.worlds import world_offsets
    from pluriverse.scene.bundled import find_scene_file
    from pluriverse.scene.layout import SPACING_DEFAULT
    from pluriverse.scene.local_files import LocalFiles
    from pluriverse.scene.validation import validate_scene

    if device is not None and wp.get_device(device) != model.device:
        raise ValueError(f"device is {device}, but the model is on {model.device}; leave the argument out")
    document = read_scene_document(find_scene_file(scene_path))
    scene = validate_scene(document, strict=False, features=[])
    if scene.control is None:
        return None
    spacing = scene.replicate.spacing or SPACING_DEFAULT
    offsets = world_offsets(model.world_count, np.asarray(spacing))
    recording = find_recording(document, scene.control, LocalFiles(document.path.parent))
    try:
        sequence = ControlSequence(recording, model, 0, offsets)
    except FieldError as error:
        location = f"{recording.source_path}: {field_name(error.path)}"
        raise SapSceneLoaderError(f"{location}: {error}") from error
    sequence.apply_initial_state(model, state)
    sequence.apply(control, 0, 1.0)
    return sequence


def find_recording(document: SceneDocument, section: Any, files: Any) -> Recording:
    """Return the recording that the control section of a scene names.

    Raises:
        SapSceneLoaderError: There is no such file, or it is wrong.
    """
    try:
        path = files.find_file(section.source, "control file")
    except FieldError as error:
        raise document.error(("control", "source"), str(error)) from error
    return read_recording(path, loop=section.loop)
