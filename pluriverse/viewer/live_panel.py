"""Live panel: controls of a simulation: play buttons, joint sliders, a spring to pull bodies."""

from typing import Any

import numpy as np

from pluriverse.dynamics import eval_fk
from pluriverse.recording.moment import Moment, rotated
from pluriverse.viewer.panel import Panel, set_changed
from pluriverse.viewer.plots import dof_of_coord, scalar_joints

# Sliders that fit into a panel.
SLIDER_COUNT_MAX = 48
# Range of a slider [rad or m] where a joint has no limits.
FREE_RANGE = 3.2
# Keys and button with which a body is pulled; without keys, the mouse turns the camera.
PULL_MODIFIER = "cmd/ctrl"
_PULL_COLOR = (240, 120, 0)


class LivePanel(Panel):
    """Controls of a viewer of a simulation.

    Args:
        viewer: The viewer.
    """

    def __init__(self, viewer: Any) -> None:
        self._sliders: list[Any] = []
        self._gizmo: Any = None
        self._line: Any = None
        super().__init__(viewer)
        viewer.stage.set_drag(self._drag, PULL_MODIFIER)

    def _add_playback(self) -> None:
        viewer = self._viewer
        with self._gui.add_folder("Simulation"):
            play = self._gui.add_button("Pause")
            step = self._gui.add_button("Step")
            self._add_ending()
            speed = self._gui.add_slider("Speed", min=0.05, max=4.0, step=0.05, initial_value=1.0)
        self._play = play

        @play.on_click
        def _(_: Any) -> None:
            viewer.is_playing = not viewer.is_playing

        @step.on_click
        def _(_: Any) -> None:
            viewer.step_once()

        @speed.on_update
        def _(_: Any) -> None:
            viewer.speed = float(speed.value)

    def _add_ending(self) -> None:
        """Add the reset controls."""
        reset = self._gui.add_button("Reset")

        @reset.on_click
        def _(_: Any) -> None:
            self._viewer.reset()

    def _add_world_controls(self) -> None:
        self._slides = self._gui.add_dropdown("Sliders", ["none", "drive targets", "joint positions"])
        self._pull = self._gui.add_dropdown(
            "Pull", ["nothing", *self._body_names()], hint="Or hold Ctrl and drag a body with the mouse."
        )

        @self._slides.on_update
        def _(_: Any) -> None:
            self._make_sliders()

        @self._pull.on_update
        def _(_: Any) -> None:
            self._begin_pull(self._pull.value)

    def _world_selected(self) -> None:
        self._make_sliders()
        self._begin_pull("nothing")
        self._pull.options = ("nothing", *self._body_names())

    def _status_text(self, moment: Moment) -> str:
        viewer = self._viewer
        set_changed(self._play, "label", "Pause" if viewer.is_playing else "Play")
        note = "" if viewer.is_attended else " · the program steps by itself"
        rate = f"{viewer.step_rate:,.0f} steps/s"
        return f"**{moment.time:.2f} s** · step {moment.step_count:,} · {rate}{note}"

    def update(self, moment: Moment) -> None:
        """Show the texts and curves of a moment, and the spring."""
        super().update(moment)
        self._draw_spring()

    def _body_names(self) -> list[str]:
        model = self._viewer.simulation.model
        return [f"{model.body_label[body].rpartition('/')[2]} ({body})" for body in self._bodies()]

    def _begin_pull(self, name: str) -> None:
        viewer = self._viewer
        if self._gizmo is not None:
            self._gizmo.remove()
            self._gizmo = None
        if name == "nothing":
            viewer.pull_body(None)
            return
        viewer.pull_body(int(name.rpartition("(")[2].rstrip(")")))
        pull = viewer.pull
        assert pull is not None
        offset = viewer.stage.offsets[viewer.stage.place_of(self._model_world())]
        gizmo = viewer.server.scene.add_transform_controls(
            "/pull/handle", scale=0.3, disable_rotations=True, position=tuple(pull.position + offset)
        )
        self._gizmo = gizmo

        @gizmo.on_update
        def _(_: Any) -> None:
            pull.target = np.asarray(gizmo.position, dtype=np.float64) - offset

    async def _drag(self, event: Any) -> None:
        """Pull the point of the body that the mouse grabbed."""
        viewer = self._viewer
        if event.phase == "end":
            viewer.pull_body(None)
            return
        stage = viewer.stage
        if event.phase == "start":
            shape, slot = stage.view.instance_at(event.target, event.instance_index)
            body = int(stage.view.visual.shape_body[shape]) if shape >= 0 else -1
            if body < 0:
                viewer.pull_body(None)
                return
            self._drag_offset = stage.offsets[slot]
            pose = viewer.simulation.state.body_q.numpy().reshape(-1, 7)[body].astype(np.float64)
            away = np.asarray(event.start_position) - self._drag_offset - pose[:3]
            back = pose[None, 3:] * np.array([-1.0, -1.0, -1.0, 1.0])
            viewer.pull_body(body, point=rotated(back, away[None])[0])
        if viewer.pull is not None:
            viewer.pull.target = np.asarray(event.end_position) - self._drag_offset

    def _draw_spring(self) -> None:
        """Draw a line from the pulled point to where it is pulled."""
        viewer = self._viewer
        pull = viewer.pull
        target = None if pull is None else pull.target
        if pull is None or target is None:
            if self._line is not None:
                self._line.remove()
                self._line = None
            return
        world = int(viewer.stage.body_world[pull.body])
        offset = viewer.stage.offsets[viewer.stage.place_of(world)]
        points = np.array([[pull.position + offset, target + offset]], dtype=np.float32)
        if self._line is None:
            colors = np.tile(np.array(_PULL_COLOR, dtype=np.uint8), (1, 2, 1))
            self._line = viewer.server.scene.add_line_segments(
                "/pull/spring", points, colors, thickness=4.0, thickness_units="screen"
            )
        else:
            self._line.points = points

    def _make_sliders(self) -> None:
        viewer, model = self._viewer, self._viewer.simulation.model
        for slider in self._sliders:
            slider.remove()
        self._sliders = []
        if self._slides.value == "none":
            return
        is_target = self._slides.value == "drive targets"
        lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
        coord_dof = dof_of_coord(model)
        now = viewer.simulation.state.joint_q.numpy()
        targets = viewer.simulation.control.joint_target_pos.numpy()
        with self._folder:
            joints = scalar_joints(model, self._model_world())
            for coord, label in joints[:SLIDER_COUNT_MAX]:
                dof = coord_dof[coord]
                low, high = float(lower[dof]), float(upper[dof])
                if not (np.isfinite([low, high]).all() and 0.0 < high - low < 100.0):
                    low, high = -FREE_RANGE, FREE_RANGE
                value = float(targets[dof] if is_target else now[coord])
                slider = self._gui.add_slider(
                    label,
                    min=low,
                    max=high,
                    step=(high - low) / 200.0,
                    initial_value=float(np.clip(value, low, high)),
                )
                self._sliders.append(slider)

                def move(_: Any, slider: Any = slider, coord: int = coord, dof: int = dof) -> None:
                    value = float(slider.value)
                    if is_target:
                        viewer.request(lambda: self._set_target(dof, value))
                    else:
                        viewer.request(lambda: self._set_position(coord, dof, value))

                slider.on_update(move)

    def _set_target(self, dof: int, value: float) -> None:
        targets = self._viewer.simulation.control.joint_target_pos
        targets[dof : dof + 1].fill_(value)

    def _set_position(self, coord: int, dof: int, value: float) -> None:
        simulation = self._viewer.simulation
        state = simulation.state
        state.joint_q[coord : coord + 1].fill_(value)
        state.joint_qd[dof : dof + 1].fill_(0.0)
        eval_fk(simulation.model, state.joint_q, state.joint_qd, state)
