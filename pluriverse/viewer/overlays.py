"""Overlays drawn over the shapes: contacts, frames, centres of mass, axes, bounds."""

import enum
from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.recording.moment import ContactPoints, Moment, rotated
from pluriverse.types import JointType
from pluriverse.viewer.layout import world_of


class Overlay(enum.Enum):
    """Overlays that can be drawn over the shapes."""

    CONTACTS = "Contacts and forces"
    FRAMES = "Body frames"
    MASSES = "Centres of mass"
    AXES = "Joint axes"
    BOUNDS = "Bounding boxes"


# Length of drawn axes [m], and the force that is drawn one metre long [N]: the weight of about 50 kg.
AXIS_LENGTH = 0.12
FORCE_PER_METRE = 500.0
_FORCE_COLOR, _CONTACT_COLOR = (230, 60, 40), (250, 170, 30)
_MASS_COLOR, _AXIS_COLOR, _BOUND_COLOR = (150, 50, 200), (30, 120, 220), (40, 160, 90)


class Overlays:
    """Overlays of some worlds in a Viser scene.

    Args:
        scene: `viser.SceneApi` to draw into.
        model: Model that is drawn.
        worlds: The worlds.
        offsets: Where each is drawn relative to where it is [m], shape [world, 3].
    """

    def __init__(self, scene: Any, model: Model, worlds: np.ndarray, offsets: np.ndarray) -> None:
        self._scene = scene
        self._model = model
        self._offset = np.zeros((model.world_count, 3))
        self._offset[worlds] = offsets
        self._worlds = worlds
        self._shown: set[Overlay] = set()
        self._handles: dict[str, Any] = {}
        shown = np.zeros(model.world_count + 1, dtype=bool)
        shown[worlds] = True
        self._bodies = np.flatnonzero(shown[world_of(model, "body")])
        joint_world = world_of(model, "joint")
        self._joints = np.flatnonzero(shown[joint_world] & _has_axis(model))
        self._body_world = world_of(model, "body")
        bounded = np.isfinite(model.shape_aabb_lower.numpy()).all(axis=1) & (model.shape_body.numpy() >= 0)
        carried = np.flatnonzero(bounded)
        self._shapes = carried[shown[self._body_world[model.shape_body.numpy()[carried]]]]

    @property
    def shown(self) -> frozenset[Overlay]:
        """The overlays that are drawn."""
        return frozenset(self._shown)

    def show(self, overlay: Overlay, is_shown: bool) -> None:
        """Show or hide an overlay."""
        if is_shown:
            self._shown.add(overlay)
        else:
            self._shown.discard(overlay)
            for name in [name for name in self._handles if name.startswith(overlay.name)]:
                self._handles.pop(name).remove()

    def remove(self) -> None:
        """Remove everything from the scene."""
        for handle in self._handles.values():
            handle.remove()
        self._handles.clear()

    def update(self, moment: Moment, contacts: ContactPoints | None) -> None:
        """Draw the visible overlays in their current state."""
        pose = np.nan_to_num(moment.body_q.astype(np.float64))
        if Overlay.CONTACTS in self._shown and contacts is not None:
            self._draw_contacts(contacts)
        if Overlay.FRAMES in self._shown and len(self._bodies):
            own = pose[self._bodies]
            self._place_axes("FRAMES", own[:, [6, 3, 4, 5]], own[:, :3] + self._of_body(self._bodies))
        if Overlay.MASSES in self._shown and len(self._bodies):
            own = pose[self._bodies]
            com = own[:, :3] + rotated(
                own[:, 3:], self._model.body_com.numpy()[self._bodies].astype(np.float64)
            )
            self._draw_points("MASSES", com + self._of_body(self._bodies), _MASS_COLOR, 0.03)
        if Overlay.AXES in self._shown and len(self._joints):
            self._draw_axes(pose)
        if Overlay.BOUNDS in self._shown and len(self._shapes):
            self._draw_bounds(pose)

    def _of_body(self, bodies: np.ndarray) -> np.ndarray:
        return self._offset[self._body_world[bodies]]

    def _draw_contacts(self, contacts: ContactPoints) -> None:
        points = contacts.point + self._offset[contacts.world]
        sound = np.isfinite(points).all(axis=1) & np.isfinite(contacts.force).all(axis=1)
        points, force = points[sound], contacts.force[sound]
        self._draw_points("CONTACTS points", points, _CONTACT_COLOR, 0.02)
        # Drawn on the side of the body that is pushed.
        self._draw_lines(
            "CONTACTS forces", np.stack([points, points + force / FORCE_PER_METRE], 1), _FORCE_COLOR
        )

    def _draw_axes(self, pose: np.ndarray) -> None:
        model, joints = self._model, self._joints
        dof = model.joint_qd_start.numpy()[joints]
        child = model.joint_child.numpy()[joints]
        frame = model.joint_X_c.numpy().reshape(-1, 7)[joints].astype(np.float64)
        axis = rotated(frame[:, 3:], model.joint_axis.numpy()[dof].astype(np.float64))
        own = pose[child]
        centre = own[:, :3] + rotated(own[:, 3:], frame[:, :3]) + self._of_body(child)
        half = 0.5 * AXIS_LENGTH * rotated(own[:, 3:], axis)
        self._draw_lines("AXES", np.stack([centre - half, centre + half], axis=1), _AXIS_COLOR)

    def _draw_bounds(self, pose: np.ndarray) -> None:
        model, shapes = self._model, self._shapes
        lower = model.shape_aabb_lower.numpy()[shapes].astype(np.float64)
        upper = model.shape_aabb_upper.numpy()[shapes].astype(np.float64)
        corners = np.array([[i, j, k] for i in (0, 1) for j in (0, 1) for k in (0, 1)])
        edges = [
            (a, b) for a in range(8) for b in range(a + 1, 8) if np.abs(corners[a] - corners[b]).sum() == 1
        ]
        local = lower[:, None] + corners[None] * (upper - lower)[:, None]
        shape_pose = model.shape_transform.numpy().reshape(-1, 7)[shapes].astype(np.float64)
        body = model.shape_body.numpy()[shapes]
        own = pose[body]

        def moved(frame: np.ndarray, points: np.ndarray) -> np.ndarray:
            rotation = np.repeat(frame[:, 3:], 8, axis=0)
            return frame[:, None, :3] + rotated(rotation, points.reshape(-1, 3)).reshape(points.shape)

        world = moved(own, moved(shape_pose, local)) + self._of_body(body)[:, None]
        lines = np.concatenate([world[:, list(edge)] for edge in edges])
        self._draw_lines("BOUNDS", lines, _BOUND_COLOR)

    def _draw_points(self, name: str, points: np.ndarray, color: tuple[int, int, int], size: float) -> None:
        points = np.ascontiguousarray(points, dtype=np.float32)
        colors = np.tile(np.array(color, dtype=np.uint8), (len(points), 1))
        handle = self._handles.get(name)
        if handle is not None and len(points) == len(handle.points):
            handle.points = points
            return
        if handle is not None:
            handle.remove()
        self._handles[name] = self._scene.add_point_cloud(
            f"/overlays/{name}", points, colors, point_size=size, point_shape="circle", precision="float32"
        )

    def _draw_lines(self, name: str, lines: np.ndarray, color: tuple[int, int, int]) -> None:
        lines = np.ascontiguousarray(lines, dtype=np.float32).reshape(-1, 2, 3)
        handle = self._handles.get(name)
        if handle is not None and len(lines) == len(handle.points):
            handle.points = lines
            return
        if handle is not None:
            handle.remove()
        colors = np.tile(np.array(color, dtype=np.uint8), (len(lines), 2, 1))
        self._handles[name] = self._scene.add_line_segments(
            f"/overlays/{name}", lines, colors, thickness=2.0, thickness_units="screen"
        )

    def _place_axes(self, name: str, wxyz: np.ndarray, position: np.ndarray) -> None:
        wxyz, position = wxyz.astype(np.float32), position.astype(np.float32)
        handle = self._handles.get(name)
        if handle is None:
            self._handles[name] = self._scene.add_batched_axes(
                f"/overlays/{name}", wxyz, position, axes_length=AXIS_LENGTH, axes_radius=0.004
            )
            return
        handle.batched_wxyzs = wxyz
        handle.batched_positions = position


def _has_axis(model: Model) -> np.ndarray:
    """Return which joints rotate about or slide along a single axis, shape [joint]."""
    return np.isin(model.joint_type.numpy(), [int(JointType.REVOLUTE), int(JointType.PRISMATIC)])
