"""`--plot`: height, energy and joint curves of one world of each kind."""

import importlib.util
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.cli.session import Session

# Number of points of a curve: more than the pixels of a panel.
SAMPLE_COUNT_MAX = 500
# Largest number of curves in a panel; more cannot be distinguished.
JOINT_CURVE_COUNT_MAX = 24


@dataclass
class _Curves:
    """The curves of one world."""

    title: str
    bodies: slice
    coords: np.ndarray
    """Coordinates of joints with one degree of freedom."""
    height: list[float] = field(default_factory=list)
    energy: list[float] = field(default_factory=list)
    joint_q: list[np.ndarray] = field(default_factory=list)


class Plot:
    """Samples the first world of each kind and draws it at the end.

    Args:
        session: What is drawn.
        path: Picture to write, in the format of its suffix.
        frame_count: Number of steps.

    Raises:
        ValueError: Matplotlib is not installed, cannot write such a file, or there is no folder to write to.
    """

    IS_ASKED_EVERY_STEP = True

    def __init__(self, session: Session, path: Path, frame_count: int):
        if importlib.util.find_spec("matplotlib") is None:
            raise ValueError("--plot needs matplotlib; install it with: pip install 'pluriverse[plot]'")
        if not path.parent.is_dir():
            raise ValueError(f"--plot: there is no folder '{path.parent}'; create it first")
        from matplotlib.backends.backend_agg import FigureCanvasAgg

        formats = FigureCanvasAgg.get_supported_filetypes()
        if path.suffix.lstrip(".").lower() not in formats:
            raise ValueError(
                f"--plot: '{path}' is no picture; end its name in one of .{', .'.join(sorted(formats))}"
            )
        self._session = session
        self._path = path
        self._interval = max(1, frame_count // SAMPLE_COUNT_MAX)
        self._frame = 0
        self._time: list[float] = []
        model = session.scene.model
        self._mass = model.body_mass.numpy().astype(np.float64)
        self._inertia = model.body_inertia.numpy().astype(np.float64)
        self._com = model.body_com.numpy().astype(np.float64)
        self._gravity = model.gravity.numpy().astype(np.float64)
        self._curves = [self._make_curves(kind) for kind in range(len(session.scene.kind_names))]
        self._sample()

    def _make_curves(self, kind: int) -> _Curves:
        scene = self._session.scene
        model = scene.model
        world = scene.kind_of_world.index(kind)
        body, joint = model.body_world_start.numpy(), model.joint_world_start.numpy()
        q_start, qd_start = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
        joints = range(int(joint[world]), int(joint[world + 1]))
        coords = [
            int(q_start[j])
            for j in joints
            if q_start[j + 1] - q_start[j] == 1 and qd_start[j + 1] - qd_start[j] == 1
        ]
        return _Curves(
            scene.kind_names[kind],
            slice(int(body[world]), int(body[world + 1])),
            np.array(coords[:JOINT_CURVE_COUNT_MAX], dtype=int),
        )

    def observe(self) -> None:
        """Take a sample, if it is time."""
        self._frame += 1
        if self._frame % self._interval == 0:
            self._sample()

    def _sample(self) -> None:
        scene = self._session.scene
        state = self._session.simulation.state
        body_q = state.body_q.numpy().astype(np.float64)
        body_qd = state.body_qd.numpy().astype(np.float64)
        joint_q = state.joint_q.numpy()
        self._time.append(self._session.simulation.time)
        for kind, curves in enumerate(self._curves):
            gravity = self._gravity[scene.kind_of_world.index(kind)]
            height, energy = self._height_and_energy(body_q, body_qd, curves.bodies, gravity)
            curves.height.append(height)
            curves.energy.append(energy)
            curves.joint_q.append(joint_q[curves.coords])

    def _height_and_energy(
        self, body_q: np.ndarray, body_qd: np.ndarray, bodies: slice, gravity: np.ndarray
    ) -> tuple[float, float]:
        """Return height of the centre of mass [m] and mechanical energy [J] of the bodies of a world."""
        pose, mass = body_q[bodies], self._mass[bodies]
        rotation = _rotation_matrices(pose[:, 3:])
        com = pose[:, :3] + np.einsum("bij,bj->bi", rotation, self._com[bodies])
        velocity, spin = body_qd[bodies, :3], body_qd[bodies, 3:]
        spin_local = np.einsum("bji,bj->bi", rotation, spin)
        kinetic = 0.5 * mass @ (velocity**2).sum(axis=1)
        kinetic += 0.5 * np.einsum("bi,bij,bj->", spin_local, self._inertia[bodies], spin_local)
        total = float(mass.sum())
        height = float(mass @ com[:, 2]) / total if total > 0.0 else 0.0
        return height, float(kinetic - mass @ (com @ gravity))

    def finish(self) -> str:
        """Draw the picture and print its name."""
        from matplotlib.figure import Figure

        rows = len(self._curves)
        figure = Figure(figsize=(13.0, 0.6 + 2.6 * rows), layout="constrained")
        axes = figure.subplots(rows, 3, squeeze=False, sharex=True)
        for row, curves in zip(axes, self._curves, strict=True):
            self._draw(row, curves)
        for axis in axes[-1]:
            axis.set_xlabel("time [s]")
        figure.suptitle(self._session.scene.name)
        figure.savefig(self._path, dpi=110)
        return f"drew {', '.join(curves.title for curves in self._curves)} in {self._path}"

    def _draw(self, row: Any, curves: _Curves) -> None:
        row[0].plot(self._time, curves.height)
        row[0].set_ylabel("centre of mass, z [m]")
        row[0].set_title(curves.title, loc="left", fontweight="bold")
        row[1].plot(self._time, curves.energy, color="tab:orange")
        row[1].set_ylabel("mechanical energy [J]")
        row[2].set_ylabel("joints [rad or m]")
        if len(curves.coords):
            row[2].plot(self._time, np.array(curves.joint_q), linewidth=0.8)
        else:
            row[2].text(
                0.5, 0.5, "no joints of one degree of freedom", ha="center", transform=row[2].transAxes
            )
        for axis in row:
            axis.grid(alpha=0.3)


def _rotation_matrices(quaternion: np.ndarray) -> np.ndarray:
    """Return the rotation matrices of unit quaternions xyzw, shape [body, 3, 3]."""
    x, y, z, w = quaternion.T
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), 2, 0)
