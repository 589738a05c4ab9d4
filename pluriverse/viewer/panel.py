"""Panel: the controls beside the scene."""

from typing import TYPE_CHECKING, Any

import numpy as np

from pluriverse.dynamics import eval_fk
from pluriverse.recording.moment import Moment
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.overlays import Overlay
from pluriverse.viewer.plots import Plot, scalar_joints

if TYPE_CHECKING:
    from pluriverse.viewer.viewer import BrowserViewer

# Sliders that fit into a panel.
SLIDER_COUNT_MAX = 48
# Frames between two updates of texts and curves, which cost more than moving shapes.
TEXT_INTERVAL, PLOT_INTERVAL = 6, 10
# Range of a slider [rad or m] where a joint has no limits.
FREE_RANGE = 3.2
# Worlds that the panel names in a list of trouble.
NAMED_WORLD_COUNT = 12


class Panel:
    """Controls of a viewer.

    Args:
        viewer: The viewer.
    """

    def __init__(self, viewer: "BrowserViewer") -> None:
        self._viewer = viewer
        self._gui = viewer.server.gui
        self._frame = 0
        self._sliders: list[Any] = []
        self._gizmo: Any = None
        self._status = self._gui.add_markdown("")
        self._add_playback()
        self._add_show()
        self._add_world()
        self._add_plot()
        with self._gui.add_folder("Trouble"):
            self._trouble = self._gui.add_markdown("None so far.")

    def _add_playback(self) -> None:
        viewer = self._viewer
        with self._gui.add_folder("Simulation"):
            play = self._gui.add_button("Pause")
            step = self._gui.add_button("Step")
            reset = self._gui.add_button("Reset")
            speed = self._gui.add_slider("Speed", min=0.05, max=4.0, step=0.05, initial_value=1.0)
        self._play = play

        @play.on_click
        def _(_: Any) -> None:
            viewer.is_playing = not viewer.is_playing

        @step.on_click
        def _(_: Any) -> None:
            viewer.step_once()

        @reset.on_click
        def _(_: Any) -> None:
            viewer.reset()

        @speed.on_update
        def _(_: Any) -> None:
            viewer.speed = float(speed.value)

    def _add_show(self) -> None:
        viewer = self._viewer
        with self._gui.add_folder("Show"):
            geometry = self._gui.add_dropdown(
                "Geometry", [each.value for each in SeenGeometry], initial_value=viewer.stage.geometry.value
            )
            boxes = {each: self._gui.add_checkbox(each.value, initial_value=False) for each in Overlay}
            shown = ", ".join(str(world) for world in viewer.stage.environments)
            worlds = self._gui.add_text("Worlds", initial_value=shown)

        @geometry.on_update
        def _(_: Any) -> None:
            with viewer.changing() as stage:
                stage.set_geometry(SeenGeometry(geometry.value))

        for overlay, box in boxes.items():

            def toggle(_: Any, overlay: Overlay = overlay, box: Any = box) -> None:
                with viewer.changing() as stage:
                    stage.show(overlay, box.value)

            box.on_update(toggle)

        @worlds.on_update
        def _(_: Any) -> None:
            # Whoever types has not finished yet: what is no list of worlds changes nothing.
            try:
                chosen = [int(text) for text in worlds.value.replace(",", " ").split()]
                viewer.show(chosen)
            except (ValueError, IndexError):
                return
            self._choose_world(chosen[0])

    def _add_world(self) -> None:
        viewer = self._viewer
        self._folder = self._gui.add_folder("World")
        with self._folder:
            self._world = self._gui.add_dropdown(
                "World", [str(world) for world in viewer.stage.environments.tolist()]
            )
            self._slides = self._gui.add_dropdown("Sliders", ["none", "drive targets", "joint positions"])
            pull = self._gui.add_dropdown("Pull", ["nothing", *self._body_names()])
        self._pull = pull

        @self._world.on_update
        def _(_: Any) -> None:
            self._choose_world(int(self._world.value))

        @self._slides.on_update
        def _(_: Any) -> None:
            self._make_sliders()

        @pull.on_update
        def _(_: Any) -> None:
            self._begin_pull(pull.value)

    def _add_plot(self) -> None:
        history = self._viewer.history
        history.world = int(self._viewer.stage.worlds[0])
        with self._gui.add_folder("Plot", expand_by_default=False):
            choice = self._gui.add_dropdown("Figures", [each.value for each in Plot])
            self._plot = self._gui.add_uplot(history.columns(), history.series(), aspect=1.6)

        @choice.on_update
        def _(_: Any) -> None:
            history.plot = Plot(choice.value)
            self._clear_plot()

    def update(self, moment: Moment) -> None:
        """Show the texts and curves of a moment, now and then."""
        self._frame += 1
        viewer = self._viewer
        if self._frame % TEXT_INTERVAL == 1:
            note = "" if viewer.is_attended else " · the program steps by itself"
            rate = f"{viewer.step_rate:,.0f} steps/s"
            self._status.content = f"**{moment.time:.2f} s** · step {moment.step_count:,} · {rate}{note}"
            self._play.label = "Pause" if viewer.is_playing else "Play"
            self._trouble.content = trouble_text(moment)
        if self._frame % PLOT_INTERVAL == 1:
            self._plot.data = viewer.history.columns()

    def _clear_plot(self) -> None:
        history = self._viewer.history
        history.clear()
        self._plot.series = history.series()
        self._plot.data = history.columns()

    def _choose_world(self, environment: int) -> None:
        viewer = self._viewer
        options = tuple(str(world) for world in viewer.stage.environments.tolist())
        if self._world.options != options:
            self._world.options = options
        if self._world.value != str(environment):
            self._world.value = str(environment)
        viewer.history.world = self._model_world()
        self._clear_plot()
        self._make_sliders()
        self._begin_pull("nothing")
        self._pull.options = ("nothing", *self._body_names())

    def _model_world(self) -> int:
        """Return the world of the model that the chosen environment is in."""
        stage = self._viewer.stage
        place = int(np.flatnonzero(stage.environments == int(self._world.value))[0])
        return int(stage.worlds[place])

    def _bodies(self) -> np.ndarray:
        model = self._viewer.simulation.model
        return np.flatnonzero(model.body_world.numpy() == self._model_world())

    def _body_names(self) -> list[str]:
        model = self._viewer.simulation.model
        names = [f"{model.body_label[body].rpartition('/')[2]} ({body})" for body in self._bodies()]
        return names

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
            "/pull", scale=0.3, disable_rotations=True, position=tuple(pull.position + offset)
        )
        self._gizmo = gizmo

        @gizmo.on_update
        def _(_: Any) -> None:
            pull.target = np.asarray(gizmo.position, dtype=np.float64) - offset

    def _make_sliders(self) -> None:
        viewer, model = self._viewer, self._viewer.simulation.model
        for slider in self._sliders:
            slider.remove()
        self._sliders = []
        if self._slides.value == "none":
            return
        is_target = self._slides.value == "drive targets"
        lower, upper = model.joint_limit_lower.numpy(), model.joint_limit_upper.numpy()
        coord_dof = _dof_of_coord(model)
        now = viewer.simulation.state.joint_q.numpy()
        targets = viewer.simulation.control.joint_target_pos.numpy()
        with self._folder:
            for coord, label in scalar_joints(model, self._model_world())[:SLIDER_COUNT_MAX]:
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


def trouble_text(moment: Moment) -> str:
    """Return what is wrong with which worlds, as Markdown."""
    lines = [
        f"**{what}:** {_named(np.flatnonzero(worlds))}"
        for what, worlds in (
            ("Frozen", moment.frozen),
            ("Unconverged steps in", moment.unconverged > 0),
            ("Contacts lost in", moment.truncated > 0),
        )
        if worlds.any()
    ]
    return "\n\n".join(lines) or "None so far."


def _named(worlds: np.ndarray) -> str:
    named = ", ".join(str(world) for world in worlds[:NAMED_WORLD_COUNT].tolist())
    more = len(worlds) - NAMED_WORLD_COUNT
    return f"world{'s' if len(worlds) > 1 else ''} {named}" + (f" and {more:,} more" if more > 0 else "")


def _dof_of_coord(model: Any) -> np.ndarray:
    """Return the degree of freedom of each coordinate of joints with one of both, -1 for others."""
    coord, dof = model.joint_q_start.numpy(), model.joint_qd_start.numpy()
    result = np.full(int(coord[-1]), -1)
    single = (np.diff(coord) == 1) & (np.diff(dof) == 1)
    result[coord[:-1][single]] = dof[:-1][single]
    return result
