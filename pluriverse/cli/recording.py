"""`--record`: a run as a file to view and export, or the trajectory of all worlds as a NumPy archive."""

import csv
from pathlib import Path

import numpy as np

from pluriverse.cli.session import Session
from pluriverse.files import replace_file

# Largest size of a trajectory [B]. All of it is kept in memory until the end; more would make the machine
# swap.
RECORDING_BYTES_MAX = 8 << 30


def is_recording(name: str | Path) -> bool:
    """Return whether a file is a recording, by its name."""
    from pluriverse.recording.writer import FILE_SUFFIX

    return Path(name).suffix.lower() == FILE_SUFFIX


class RunFile:
    """Writes a recording (`.pvr`) while the run goes on.

    Args:
        session: What is recorded.
        path: File to write.
        frame_count: Number of steps; not needed.

    Raises:
        ValueError: There is no folder to write to.
    """

    IS_ASKED_EVERY_STEP = False

    def __init__(self, session: Session, path: Path, frame_count: int):
        if not path.absolute().parent.is_dir():
            raise ValueError(f"--record: there is no folder '{path.parent}'; create it first")
        self._writer = session.simulation.record(path)

    def observe(self) -> None:
        """Do nothing: the simulation notifies the writer itself."""

    def finish(self) -> str:
        """Close the file and print its name."""
        writer = self._writer
        writer.close()
        size = writer.path.stat().st_size
        return f"recorded {writer.frame_count} frames in {writer.path} ({size / 2**20:.1f} MiB)"


class Trajectory:
    """Keeps joint_q, joint_qd, body_q and contact counts of every step.

    Args:
        session: What is recorded.
        path: File to write: a NumPy archive `.npz`, which is appended if nothing is, or a table `.csv` of
            joint coordinates, joint velocities and contact counts.
        frame_count: Number of steps.

    Raises:
        ValueError: There is no room, no folder to write to, or no such format.
    """

    IS_ASKED_EVERY_STEP = True

    def __init__(self, session: Session, path: Path, frame_count: int):
        self._session = session
        self._path = path if path.suffix else path.with_name(f"{path.name}.npz")
        self._is_table = path.suffix.lower() == ".csv"
        if self._path.suffix.lower() not in (".npz", ".csv"):
            raise ValueError(
                f"--record: '{path}' ends on '{path.suffix}', but a recording is a .pvr file to view and "
                "export, an .npz file of arrays, or a .csv table; --video films a run"
            )
        if not self._path.parent.is_dir():
            raise ValueError(f"--record: there is no folder '{self._path.parent}'; create it first")
        model = session.scene.model
        numbers = model.joint_coord_count + model.joint_dof_count + 7 * model.body_count + model.world_count
        size = 4 * numbers * (frame_count + 1)
        if size > RECORDING_BYTES_MAX:
            raise ValueError(
                f"--record: {frame_count} steps of {model.world_count} worlds take {size / 2**30:.1f} GiB, "
                f"more than {RECORDING_BYTES_MAX >> 30} GiB; record fewer worlds or fewer steps"
            )
        self._time = np.zeros(frame_count + 1)
        self._joint_q = np.zeros((frame_count + 1, model.joint_coord_count), dtype=np.float32)
        self._joint_qd = np.zeros((frame_count + 1, model.joint_dof_count), dtype=np.float32)
        self._body_q = np.zeros((frame_count + 1, model.body_count, 7), dtype=np.float32)
        self._contact_count = np.zeros((frame_count, model.world_count), dtype=np.int32)
        self._frame = 0
        self._keep_state()

    def _keep_state(self) -> None:
        simulation = self._session.simulation
        state = simulation.state
        self._time[self._frame] = simulation.time
        self._joint_q[self._frame] = state.joint_q.numpy()
        self._joint_qd[self._frame] = state.joint_qd.numpy()
        self._body_q[self._frame] = state.body_q.numpy()

    def observe(self) -> None:
        """Keep the state after a step."""
        self._contact_count[self._frame] = self._session.simulation.contacts.rigid_contact_count.numpy()
        self._frame += 1
        self._keep_state()

    def finish(self) -> str:
        """Write the file and print its name."""
        scene = self._session.scene
        model = scene.model
        if self._is_table:
            self._write_table()
            return f"recorded {self._frame} steps of {model.world_count} worlds in {self._path}"
        with replace_file(self._path) as part, part.open("wb") as file:
            np.savez_compressed(
                file,
                time=self._time,
                joint_q=self._joint_q,
                joint_qd=self._joint_qd,
                body_q=self._body_q,
                contact_count=self._contact_count,
                body_label=np.array(model.body_label, dtype=str),
                joint_label=np.array(model.joint_label, dtype=str),
                body_world_start=model.body_world_start.numpy(),
                joint_world_start=model.joint_world_start.numpy(),
                joint_coord_world_start=model.joint_coord_world_start.numpy(),
                joint_dof_world_start=model.joint_dof_world_start.numpy(),
                joint_q_start=model.joint_q_start.numpy(),
                joint_qd_start=model.joint_qd_start.numpy(),
                kind_names=np.array(scene.kind_names, dtype=str),
                kind_of_world=np.array(scene.kind_of_world, dtype=np.int32),
                dt=np.float64(self._session.simulation.dt),
                scene=np.array(scene.name),
            )
        return f"recorded {self._frame} steps of {model.world_count} worlds in {self._path}"

    def _write_table(self) -> None:
        """Write a row per time: joint coordinates, joint velocities and contact counts of every world."""
        model = self._session.scene.model
        joint_world = np.maximum(model.joint_world.numpy(), 0)
        names = ["time"]
        for start, suffix in ((model.joint_q_start.numpy(), "q"), (model.joint_qd_start.numpy(), "qd")):
            for joint, label in enumerate(model.joint_label):
                count = int(start[joint + 1] - start[joint])
                suffixes = [""] if count == 1 else [f"[{entry}]" for entry in range(count)]
                names += [f"world {joint_world[joint]}: {label}.{suffix}{entry}" for entry in suffixes]
        names += [f"world {world}: contacts" for world in range(model.world_count)]
        frames = self._frame + 1
        contacts = np.concatenate(
            [np.full((1, model.world_count), np.nan), self._contact_count[: self._frame]]
        )
        columns = (self._time[:frames, None], self._joint_q[:frames], self._joint_qd[:frames], contacts)
        with replace_file(self._path) as part, part.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(names)
            for row in np.concatenate(columns, axis=1):
                writer.writerow(["" if np.isnan(value) else f"{value:.9g}" for value in row])
