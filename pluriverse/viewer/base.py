"""Viewer base: a server, a scene, and a thread that redraws a source."""

import abc
import atexit
import contextlib
import socket
import threading
import time
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np

from pluriverse.files import replace_file
from pluriverse.recording.moment import Moment
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.extras import load_viser, quiet_viser
from pluriverse.viewer.layout import shown_environments, world_of
from pluriverse.viewer.plots import History
from pluriverse.viewer.source import Source
from pluriverse.viewer.stage import Stage

# Frames per second: smooth to the eye, and under one percent of a core for a few robots.
FRAME_RATE = 30.0
# Frames between two measurements of the time that sending takes.
SEND_INTERVAL = 10
# Largest share of a core that drawing may take, the lowest frame rate that this may lead to, and the frame
# rate without a connection. A program that steps on one or two cores loses two to four times the drawing
# time: it waits for the interpreter, which runs one thread at a time, and its threads wait for each other.
FRAME_SHARE = 0.0125
FRAME_RATE_MIN = 2.0
HIDDEN_RATE = 4.0
# Distance of the camera to the right of what it shows, relative to its extent.
PANEL_SHIFT = 0.3
# Ports that are tried where none is asked for.
PORT_FIRST, PORT_COUNT = 8080, 100


class ViewerBase(abc.ABC):
    """Shows worlds of a source in a browser. Subclasses add controls and start drawing.

    Args:
        source: What is shown.
        worlds: Worlds (environments) to show; some of all if None.
        host: Address to listen on.
        port: Port to listen on; a free one from 8080 on if None.
        geometry: Which shapes are drawn: "visual", "collision" or "all".

    Raises:
        ImportError: If Viser is not installed.
        IndexError: If there is no such world.
        OSError: If the port is taken.
    """

    def __init__(
        self, source: Source, worlds: Any, *, host: str, port: int | None, geometry: SeenGeometry | str
    ) -> None:
        geometry = SeenGeometry(geometry)
        environments = shown_environments(source.environments, worlds, type(self).__name__)
        viser = load_viser()
        self.source = source
        """The displayed source."""
        with quiet_viser():
            self.server = viser.ViserServer(
                host=host, port=free_port(host, port), label="Pluriverse", verbose=False
            )
        """The Viser server, to add drawings and controls of one's own."""
        # Viser must not complain at the end of a program that did not close it.
        atexit.register(_close, weakref.ref(self))
        # Sharing would send the scene through a third-party server.
        self.server.gui.configure_theme(show_logo=False, show_share_button=False, control_width="large")
        self.is_playing = True
        """Whether the source is playing."""
        self.speed = 1.0
        """Simulated time per wall time."""
        self.history = History(source.model)
        """Figures of the chosen world."""
        self._host = host
        self._lock = threading.RLock()
        self._closed = threading.Event()
        self.server.scene.set_up_direction(source.up)
        light_scene(self.server.scene)
        self.stage = Stage(self.server.scene, source, environments)
        """The drawn worlds."""
        if geometry is not SeenGeometry.VISUAL:
            self.stage.set_geometry(geometry)
        self.panel: Any = None
        """The controls beside the scene."""
        self.frame_count = 0
        """Frames prepared so far."""
        self.draw_time = 0.0
        """Recent CPU time to prepare a frame [s]."""
        self.send_time = 0.0
        """Recent CPU time to send a frame to all browsers [s]."""
        self._sent = (0, 0.0)
        self.frame_share = FRAME_SHARE
        """Share of a core that drawing may take next to a program that does not wait for the clock."""
        self._thread = threading.Thread(target=self._follow, name="pluriverse viewer", daemon=True)

    def _begin(self, panel: Any, *, verbose: bool) -> None:
        """Draw once, then keep drawing in a thread."""
        self.panel = panel
        self._aim_camera()
        self._draw(self.source.moment())
        self._thread.start()
        if verbose:
            print(f"Pluriverse viewer: {self.url}")

    @property
    def url(self) -> str:
        """Address to open in a browser."""
        host = "localhost" if self._host in ("127.0.0.1", "0.0.0.0", "") else self._host
        return f"http://{host}:{self.server.get_port()}"

    @property
    def is_running(self) -> bool:
        """Whether the viewer has not been closed."""
        return not self._closed.is_set()

    def show(self, worlds: Any) -> None:
        """Show other worlds.

        Raises:
            IndexError: If there is no such world.
        """
        environments = shown_environments(self.source.environments, worlds, type(self).__name__)
        with self._lock:
            self.stage.choose(environments)
            self._aim_camera()

    def wait_for_client(self) -> None:
        """Wait until a browser is connected, the viewer is closed, or Ctrl-C is pressed."""
        with contextlib.suppress(KeyboardInterrupt):
            while self.is_running and not self.server.get_clients():
                time.sleep(1.0 / FRAME_RATE)

    def save_html(self, path: str | Path) -> None:
        """Write the current scene as one self-contained page that any browser can show and rotate.

        Raises:
            OSError: If the file cannot be written.
        """
        with self._lock:
            self._draw(self.source.moment())
            text = standalone_html(self.server, self.server.get_scene_serializer)
        with replace_file(path) as part:
            part.write_text(text, encoding="utf-8")

    def close(self) -> None:
        """Stop drawing and listening."""
        if self._closed.is_set():
            return
        self._closed.set()
        if threading.current_thread() is not self._thread:
            self._thread.join(timeout=5.0)
        with quiet_viser():
            self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.url}" style="width: 100%; height: 500px; border: 0"></iframe>'

    @contextlib.contextmanager
    def changing(self) -> Iterator[Stage]:
        """Yield the drawn stage with the lock held."""
        with self._lock:
            yield self.stage

    @abc.abstractmethod
    def _follow(self) -> None:
        """Redraw the source until the viewer is closed."""

    def _frame_share(self) -> float:
        """Return the share of a core that drawing may take."""
        return self.frame_share

    def _frame_interval(self) -> float:
        """Return the wait before the next frame [s] that keeps the load on the simulation small."""
        if not self.server.get_clients():
            return 1.0 / HIDDEN_RATE
        slow = (self.draw_time + self.send_time) / self._frame_share()
        return min(max(1.0 / FRAME_RATE, slow), 1.0 / FRAME_RATE_MIN)

    def _draw(self, moment: Moment) -> None:
        start = time.thread_time()
        self.history.keep(moment)
        with self.server.atomic():
            self.stage.update(moment)
        self.panel.update(moment)
        self.frame_count += 1
        self.draw_time += 0.1 * (time.thread_time() - start - self.draw_time)
        if self.frame_count % SEND_INTERVAL == 0:
            self.server.get_event_loop().call_soon_threadsafe(self._note_sending)

    def _note_sending(self) -> None:
        """Measure the sending time, in the thread that sends."""
        (frames, used), now = self._sent, time.thread_time()
        self._sent = self.frame_count, now
        if frames:
            self.send_time += 0.5 * ((now - used) / max(1, self.frame_count - frames) - self.send_time)

    def _aim_camera(self) -> None:
        """Point the camera at the shown worlds from the front left, at a distance that fits them."""
        camera = self.server.initial_camera
        camera.look_at, camera.position = aimed_camera(self.source, self.stage)


def _close(viewer: "weakref.ref[ViewerBase]") -> None:
    alive = viewer()
    if alive is not None:
        alive.close()


def aimed_camera(source: Source, stage: Stage) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the target and the position of a camera [m] that sees all shown worlds from the front left."""
    worlds = stage.worlds
    pose = source.moment().body_q
    body_world, model = world_of(source.model, "body"), stage.view.visual.model
    shapes = stage.view.visual.shapes_of(worlds.tolist())
    carrier = stage.view.visual.shape_body[shapes]
    lower_all, upper_all = model.shape_aabb_lower.numpy()[shapes], model.shape_aabb_upper.numpy()[shapes]
    radius = 0.5 * np.linalg.norm(upper_all - lower_all, axis=1)
    radius = np.where(np.isfinite(radius), radius, 0.0)
    boxes = []
    for index, world in enumerate(worlds.tolist()):
        mine = carrier >= 0
        mine[mine] = body_world[carrier[mine]] == world
        points, margin = stage.view.visual.poses(pose, shapes[mine])[:, :3], radius[mine, None]
        if not len(points):
            points = pose[body_world == world, :3]
            margin = np.zeros((len(points), 1))
        sound = np.isfinite(points).all(axis=1)
        if sound.any():
            lower = (points - margin)[sound].min(axis=0)
            upper = (points + margin)[sound].max(axis=0)
            boxes += [lower + stage.offsets[index], upper + stage.offsets[index]]
    corners = np.array(boxes) if boxes else np.array([[-0.5] * 3, [0.5] * 3])
    centre = 0.5 * (corners.min(axis=0) + corners.max(axis=0))
    # Half the diagonal, seen from 1.5 times that distance: the field of view is 75 degrees.
    extent = max(0.05, float(np.linalg.norm(corners - centre, axis=1).max()))
    position = centre + extent * np.roll([1.0, 0.9, 0.6], int(source.model.up_axis) + 1)
    # The panel covers the right of the window, so the centre of the free part lies left of the centre.
    away = position - centre
    right = np.cross(source.up, away)
    shift = PANEL_SHIFT * extent * right / np.linalg.norm(right)
    return tuple((centre + shift).tolist()), tuple((position + shift).tolist())


def standalone_html(server: Any, serializer: Any) -> str:
    """Return the page of a scene, without our lights: such pages have lights that cannot be switched off.

    Args:
        server: The server that shows the scene.
        serializer: Returns the serializer of its scene.
    """
    for name in LIGHT_NAMES:
        server.scene.remove_by_name(name)
    try:
        text: str = serializer().as_html()
    finally:
        light_scene(server.scene)
    return text


LIGHT_NAMES = ("/light/sky", "/light/sun")
"""Names of the lights of scenes."""


def light_scene(scene: Any) -> None:
    """Light the scene like daylight: a sun from the left, and a sky that preserves hues."""
    scene.configure_default_lights(enabled=False)
    scene.configure_environment_map(hdri=None)
    scene.add_light_hemisphere(
        "/light/sky", sky_color=(255, 255, 255), ground_color=(120, 120, 115), intensity=1.6
    )
    scene.add_light_directional("/light/sun", color=(255, 247, 235), intensity=2.2, position=(3.0, 4.0, 8.0))


def free_port(host: str, port: int | None) -> int:
    """Return a port to listen on: the one asked for, or the first free one from 8080 on.

    Raises:
        OSError: If it is taken, or none is free.
        ValueError: If it is no port.
    """
    if port is not None and (not isinstance(port, int) or isinstance(port, bool) or not 0 < port < 65536):
        raise ValueError(
            f"BrowserViewer: port is {port!r}, but must be a whole number from 1 to 65535, or None."
        )
    for candidate in [port] if port is not None else range(PORT_FIRST, PORT_FIRST + PORT_COUNT):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError as error:
                if port is not None:
                    raise OSError(
                        f"BrowserViewer: port {port} of {host} cannot be had: {error.strerror}. Name another "
                        "port, or none to get a free one."
                    ) from error
                continue
        return candidate
    raise OSError(
        f"BrowserViewer: no port from {PORT_FIRST} to {PORT_FIRST + PORT_COUNT - 1} of {host} is free."
    )
