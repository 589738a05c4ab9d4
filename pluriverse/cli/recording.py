"""`--record`: a run as a file to view and export, or the trajectory of all worlds as a NumPy archive."""

from pathlib import Path

import numpy as np

from pluriverse.cli.session import Session
from pluriverse.files import replace_file

# Everything is kept in memory until the end. Beyond this the machine would begin to swap [B].
RECORDING_BYTES_MAX = 8 << 30


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
        self._writer.start()

    def observe(self) -> None:
        """Do nothing: the simulation tells the writer itself."""

    def finish(self) -> str:
        """End the file and say so."""
        writer = self._writer
        writer.stop()
        writer.close()
        size = writer.path.stat().st_size
        return f"recorded {writer.frame_count} frames in {writer.path} ({size / 2**20:.1f} MiB)"


class Trajectory:
    """Keeps joint_q, joint_qd, body_q and contact counts of every step.

    Args:
        session: What is recorded.
        path: File to write; `.npz` is appended if it ends otherwise.
        frame_count: Number of steps.

    Raises:
        ValueError: There is no room, or no folder to write to.
    """

    IS_ASKED_EVERY_STEP = True

    def __init__(self, session: Session, path: Path, frame_count: int):
        self._session = session
        self._path = path if path.suffix == ".npz" else path.with_name(f"{path.name}.npz")
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
        """Write the file and say so."""
        scene = self._session.scene
        model = scene.model
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
