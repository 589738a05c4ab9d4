"""The viewer without a browser: what it would draw, and what its controls do to the simulation."""

import socket
import threading
import time

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.recording.moment import contacts_of, energies, moment_of
from pluriverse.render import SeenGeometry
from pluriverse.viewer.layout import grid_offsets, shown_environments
from pluriverse.viewer.overlays import Overlay
from pluriverse.viewer.panel import trouble_text, world_ranges, worlds_of_ranges
from pluriverse.viewer.plots import History, Plot
from pluriverse.viewer.pull import Pull
from tests.viewer.waiting import wait_until


def test_every_seen_shape_is_drawn_once_where_it_is(viewer, simulation):
    """Instances stand at the poses of their shapes, moved by the offset of their world and nothing else."""
    stage, model = viewer.stage, simulation.model
    moment = moment_of(simulation)
    with viewer.changing():
        stage.update(moment)
        drawn = 0
        for each in stage.view._drawn:
            pose = stage.view.visual.poses(moment.body_q, each.shapes)
            for handle, _ in each.handles:
                expected = pose[:, :3] + stage.offsets[each.slot]
                np.testing.assert_allclose(handle.batched_positions, expected, atol=1e-6)
            drawn += len(each.shapes)
    world = model.shape_world.numpy()
    own = stage.view.visual.shape_visible & (world >= 0)
    assert drawn == own.sum()  # the shared ground is drawn as a grid
    assert stage.view.batch_count < drawn / 2


def test_worlds_stand_apart(simulation):
    """No two shown worlds overlap, although all of them stand at the origin of the model."""
    model, body_q = simulation.model, simulation.state.body_q.numpy()
    offsets, distance = grid_offsets(model, body_q, np.arange(model.world_count))
    start = model.body_world_start.numpy()
    roots = np.array([body_q[start[world], :2] for world in range(model.world_count)]) + offsets[:, :2]
    apart = np.linalg.norm(roots[:, None] - roots[None], axis=2)[np.triu_indices(model.world_count, 1)]
    assert apart.min() >= distance - 1e-6


def test_a_running_simulation_is_followed(viewer, simulation):
    before = [np.array(handle.batched_positions) for handle in viewer.stage.view.handles]
    simulation.step(40)
    wait_until(
        lambda: any(
            np.abs(handle.batched_positions - old).max() > 1e-4
            for handle, old in zip(viewer.stage.view.handles, before, strict=True)
        )
    )


def test_run_plays_pauses_steps_and_resets(viewer, simulation):
    viewer.is_playing = False
    runner = threading.Thread(target=viewer.run)
    runner.start()
    wait_until(lambda: viewer.is_attended)
    assert simulation.step_count == 0
    viewer.step_once()
    wait_until(lambda: simulation.step_count == 1)
    viewer.is_playing = True
    wait_until(lambda: simulation.step_count > 20)
    viewer.is_playing = False
    viewer.reset()
    wait_until(lambda: simulation.step_count == 0)
    viewer.close()
    runner.join(timeout=300.0)
    assert not runner.is_alive()
    assert not viewer.is_running
    simulation.step(1)  # goes on without


def test_a_loop_of_ones_own_waits_while_it_is_paused(viewer, simulation):
    viewer.is_playing = False
    loop = threading.Thread(target=lambda: [(viewer.sync(), simulation.step()) for _ in range(3)])
    loop.start()
    time.sleep(0.2)
    assert simulation.step_count == 0
    viewer.step_once()
    wait_until(lambda: simulation.step_count == 1)
    viewer.is_playing = True
    loop.join(timeout=300.0)
    assert simulation.step_count == 3


def test_looking_changes_no_bits():
    states = []
    for looked_at in (False, True):
        with pv.load_scene("quadruped").simulation(threads=1) as simulation:
            viewer = pv.view(simulation, verbose=False) if looked_at else None
            for _ in range(20):
                simulation.step(5)
            states.append(simulation.state.joint_q.numpy().copy())
            if viewer is not None:
                viewer.close()
    np.testing.assert_array_equal(*states)


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
def test_a_pulled_body_comes_to_the_handle(solver):
    """A critically damped spring holds a floating ball against its weight, g / (2 π f)² below the handle."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(body, radius=0.1)
    model = builder.finalize("cpu")
    chosen = pv.SolverMuJoCo(model) if solver == "mujoco" else None
    with pv.Simulation(model, chosen, dt=0.002, threads=1) as simulation:
        pull = Pull(simulation, 0)
        pull.target = np.array([0.5, 0.0, 2.5])
        for _ in range(400):
            pull.apply()
            simulation.step(2)
        sag = 9.81 / (2.0 * np.pi * 1.5) ** 2
        np.testing.assert_allclose(pull.position, [0.5, 0.0, 2.5 - sag], atol=2e-3)
        pull.release()
        assert not simulation.state.body_f.numpy().any()


def test_contacts_carry_the_weight(simulation):
    """The forces drawn on a standing pile, from the ground up, add up to its weight."""
    simulation.step(400)
    model = simulation.model
    world = model.world_count - 1
    contacts = contacts_of(simulation, np.array([world]))
    on_ground = np.abs(contacts.point[:, 2]) < 0.02
    bodies = model.body_world.numpy() == world
    weight = 9.81 * model.body_mass.numpy()[bodies].sum()
    assert abs(contacts.force[on_ground, 2].sum()) == pytest.approx(weight, rel=0.02)


def test_energies_of_a_fall_follow_the_closed_form():
    """What a falling ball loses in height it gains in speed, to the first order in the step."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 5.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(body, radius=0.1)
    with pv.Simulation(builder.finalize("cpu"), dt=0.001, threads=1) as simulation:
        kinetic, potential = energies(simulation.model, moment_of(simulation), 0)
        simulation.step(500)
        later = energies(simulation.model, moment_of(simulation), 0)
    fallen = potential - later[1]
    assert kinetic == 0.0
    assert later[0] == pytest.approx(fallen, rel=0.01)


def test_overlays_and_geometry_are_drawn_and_taken_away(viewer, simulation):
    simulation.step(100)
    with viewer.changing() as stage:
        for overlay in Overlay:
            stage.show(overlay, is_shown=True)
        stage.update(moment_of(simulation))
        handles = stage.overlays._handles
        drawn = {name.split()[0] for name in handles}
        assert drawn == {overlay.name for overlay in Overlay}
        stage.set_geometry(SeenGeometry.COLLISION)
        stage.update(moment_of(simulation))
        for overlay in Overlay:
            stage.show(overlay, is_shown=False)
        assert stage.overlays._handles == {}


def test_plots_keep_the_last_figures_of_a_world(simulation):
    history = History(simulation.model)
    for plot in Plot:
        history.plot = plot
        history.clear()
        for _ in range(5):
            simulation.step(2)
            history.keep(moment_of(simulation))
            history.keep(moment_of(simulation))  # the same moment counts once
        columns = history.columns()
        assert len(columns) == 1 + len(history.names()) == len(history.series())
        assert all(len(column) == 5 for column in columns)
        assert (np.diff(columns[0]) > 0.0).all()


def test_trouble_is_reported_and_frozen_worlds_are_coloured(viewer, simulation):
    q = simulation.state.joint_q.numpy().copy()
    start = simulation.model.joint_coord_world_start.numpy()
    q[start[3]] = np.nan
    simulation.state.joint_q.assign(q)
    with pytest.warns(UserWarning, match="frozen|froze"):
        simulation.step(1)
    moment = moment_of(simulation)
    assert "**Frozen:** world 3" in trouble_text(moment)
    with viewer.changing() as stage:
        stage.update(moment)
        colors = [
            (place, tuple(color))
            for each in stage.view._drawn
            for handle, own in each.handles
            if own is not None
            for place, color in zip(each.slot, handle.batched_colors, strict=True)
        ]
    reds = {place for place, color in colors if color == (255, 20, 20)}
    assert reds == {3}


def test_html_pages_stand_alone(viewer, tmp_path):
    path = tmp_path / "page.html"
    viewer.save_html(path)
    text = path.read_text()
    assert text.lstrip().lower().startswith("<!doctype html")
    assert len(text) > 100_000


def test_other_worlds_can_be_chosen(viewer):
    viewer.show([2, 5])
    assert viewer.stage.environments.tolist() == [2, 5]
    with pytest.raises(IndexError, match="world 8 does not exist"):
        viewer.show([8])


def test_wrong_arguments_are_refused(simulation):
    with pytest.raises(TypeError, match="a Model cannot be viewed"):
        pv.view(simulation.model)
    with pytest.raises(IndexError, match="world 99 does not exist"):
        pv.view(simulation, worlds=[99])
    with pytest.raises(ValueError, match="at least one"):
        pv.view(simulation, worlds=[])
    with pytest.raises(ValueError, match="port is 0"):
        pv.view(simulation, port=0)
    with pytest.raises(ValueError, match="'wireframe'"):
        pv.view(simulation, geometry="wireframe")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=rf"port {port} of 127\.0\.0\.1 cannot be had"):
            pv.view(simulation, port=port)


def test_many_worlds_are_thinned_out():
    chosen = shown_environments(np.arange(1000), None, "BrowserViewer")
    assert len(chosen) == 16
    assert (chosen[0], chosen[-1]) == (0, 999)


@pytest.mark.parametrize("solver", ["sap", "mujoco"])
@pytest.mark.parametrize("point", [(0.0, 0.0, 0.0), (0.05, 0.05, 0.05)])
def test_a_light_body_at_a_heavy_one_is_pulled_without_shaking(solver, point):
    """The tip of a chain, a thousandth of its mass, comes to rest: forces of a step pump no energy."""
    builder = pv.ModelBuilder()
    base = builder.add_link(xform=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_box(base, hx=0.2, hy=0.2, hz=0.2, cfg=pv.ShapeConfig(density=1000.0))
    tip = builder.add_link(xform=(0.3, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_box(tip, hx=0.05, hy=0.05, hz=0.05, cfg=pv.ShapeConfig(density=60.0))
    free = builder.add_joint_free(base)
    hinge = builder.add_joint_revolute(
        base, tip, axis=(0.0, 0.0, 1.0), parent_xform=(0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    )
    builder.add_articulation([free, hinge])
    model = builder.finalize("cpu")
    model.set_gravity(0.0)
    chosen = pv.SolverMuJoCo(model) if solver == "mujoco" else None
    with pv.Simulation(model, chosen, dt=0.005, threads=1) as simulation:
        pull = Pull(simulation, tip, np.array(point))
        pull.target = pull.position + np.array([0.0, 0.3, 0.1])
        speeds = []
        for _ in range(2000):
            pull.apply()
            simulation.step()
            speeds.append(np.abs(simulation.state.body_qd.numpy()).max())
        assert np.isfinite(speeds).all()
        assert speeds[-1] < 0.5 * max(speeds)
        assert max(speeds) < 40.0


def test_a_model_without_worlds_has_all_controls():
    """What was authored without worlds is listed as global, and overlaid and pulled all the same."""
    builder = pv.ModelBuilder()
    body = builder.add_body(xform=(0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), label="ball")
    builder.add_shape_sphere(body, radius=0.1)
    with pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1) as simulation:
        assert simulation.model.body_world.numpy().tolist() == [-1]
        with pv.view(simulation, verbose=False) as viewer:
            with viewer.changing() as stage:
                for overlay in (Overlay.FRAMES, Overlay.MASSES, Overlay.BOUNDS):
                    stage.show(overlay, is_shown=True)
                stage.update(moment_of(simulation))
                assert set(stage.overlays._handles) == {"FRAMES", "MASSES", "BOUNDS"}
            assert viewer.panel._pull.options == ("nothing", "ball (0)")


def test_nothing_is_printed_unless_asked_for(simulation, capfd):
    with pv.view(simulation, verbose=False):
        pass
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    with pv.view(simulation) as viewer:
        assert capfd.readouterr().out == f"Pluriverse viewer: {viewer.url}\n"


def test_dragging_pulls_at_the_point_that_was_grabbed(viewer, simulation):
    """Ctrl and the mouse: the spring begins where the body was hit, and ends when the button is let go."""
    import asyncio
    from types import SimpleNamespace

    stage = viewer.stage
    each = next(each for each in stage.view._drawn if (stage.view.visual.shape_body[each.shapes] >= 0).all())
    body, place = int(stage.view.visual.shape_body[each.shapes[0]]), int(each.slot[0])
    hit = simulation.state.body_q.numpy()[body, :3] + stage.offsets[place] + np.array([0.02, 0.0, 0.01])

    def drag(phase, end):
        event = SimpleNamespace(
            phase=phase, target=each.handles[0][0], instance_index=0, start_position=hit, end_position=end
        )
        asyncio.run(viewer.panel._drag(event))

    drag("start", hit)
    assert viewer.pull.body == body
    np.testing.assert_allclose(viewer.pull.position + stage.offsets[place], hit, atol=1e-6)
    drag("update", hit + np.array([0.0, 0.0, 0.5]))
    np.testing.assert_allclose(viewer.pull.target - viewer.pull.position, [0.0, 0.0, 0.5], atol=1e-6)
    drag("end", hit)
    assert viewer.pull is None
    assert not simulation.state.body_f.numpy().any()


def test_worlds_are_typed_as_ranges(viewer):
    """What the panel lists can be typed; slips of the finger change nothing."""
    assert world_ranges(np.array([0, 1, 2, 5, 7, 8])) == "0-2, 5, 7-8"
    assert worlds_of_ranges("0-2, 5 7-8") == [0, 1, 2, 5, 7, 8]
    for text in ("", "5-2", "0-99999999", "a", "1,,x"):
        with pytest.raises(ValueError, match=r"no world is|is no range of|invalid literal"):
            worlds_of_ranges(text)
    field = next(
        handle
        for handle in viewer.server.gui._gui_input_handle_from_uuid.values()
        if getattr(handle, "label", "") == "Worlds"
    )
    assert field.value == "0-7"
    field.value = "2-4, 6"
    wait_until(lambda: viewer.stage.environments.tolist() == [2, 3, 4, 6])
    field.value = "2-4, 99"
    field.value = "2-4, 6 and"
    field.value = "5"
    wait_until(lambda: viewer.stage.environments.tolist() == [5])


def test_grounds_lie_as_planes_do():
    """One plane without end where all worlds have the same, tilted as it is; else one under each world."""

    def world(height, tilt):
        builder = pv.ModelBuilder()
        body = builder.add_body(xform=(0.0, 0.0, 1.0 + height, 0.0, 0.0, 0.0, 1.0))
        builder.add_shape_sphere(body, radius=0.1)
        normal = (np.sin(tilt), 0.0, np.cos(tilt))
        builder.add_shape_plane(plane=(*normal, -height))
        return builder

    def grids(*worlds):
        builder = pv.ModelBuilder()
        for height, tilt in worlds:
            builder.add_world(world(height, tilt))
        with (
            pv.Simulation(builder.finalize("cpu"), dt=0.01, threads=1) as simulation,
            pv.view(simulation, verbose=False) as viewer,
        ):
            return [
                (grid.infinite_grid, np.array(grid.wxyz), np.array(grid.position), grid.width)
                for grid in viewer.stage.view._grids
            ], viewer.stage.offsets

    ((is_endless, wxyz, position, _),), _ = grids((0.0, 0.3), (0.0, 0.3))
    assert is_endless
    np.testing.assert_allclose(np.abs(wxyz), [np.cos(0.15), 0.0, np.sin(0.15), 0.0], atol=1e-6)
    np.testing.assert_allclose(position, [0.0, 0.0, 0.0], atol=2e-3)
    apart, offsets = grids((0.0, 0.0), (0.5, 0.0))
    assert [one[0] for one in apart] == [False, False]
    np.testing.assert_allclose([one[2] for one in apart] - offsets, [[0, 0, 0.0], [0, 0, 0.5]], atol=2e-3)
    assert max(one[3] for one in apart) < np.linalg.norm(offsets[1] - offsets[0])


def test_worlds_stand_side_by_side_across_the_axis_that_points_up():
    one = pv.ModelBuilder(up_axis="y")
    one.add_shape_sphere(one.add_body(xform=(0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)), radius=0.1)
    builder = pv.ModelBuilder(up_axis="y")
    builder.replicate(one, 4)
    model = builder.finalize("cpu")
    offsets, distance = grid_offsets(model, model.body_q.numpy(), np.arange(4))
    assert not offsets[:, 1].any()
    assert len(np.unique(offsets[:, 0])) == len(np.unique(offsets[:, 2])) == 2
    assert distance > 0.2


def test_shapes_are_looked_through_while_something_inside_of_them_is_shown(viewer):
    """Centres of mass lie inside of shapes, which would hide them."""

    def opacities():
        return {handle.opacity for handle in viewer.stage.view.handles}

    before = opacities()
    with viewer.changing() as stage:
        stage.show(Overlay.FRAMES, is_shown=True)
        assert opacities() == before
        stage.show(Overlay.MASSES, is_shown=True)
        assert max(opacity or 1.0 for opacity in opacities()) < 0.5
        stage.set_geometry(SeenGeometry.COLLISION)
        assert max(opacity or 1.0 for opacity in opacities()) < 0.5
        stage.set_geometry(SeenGeometry.VISUAL)
        stage.show(Overlay.MASSES, is_shown=False)
    assert opacities() == before


def test_pictures_take_a_small_share_of_a_busy_loop_and_more_of_one_that_waits(viewer, simulation):
    """The interval is what a picture takes over its share, between the rates that eyes ask for."""

    class Server:
        def get_clients(self):
            return {0: None}

    with viewer.changing():
        server, viewer.server = viewer.server, Server()
        try:
            viewer.draw_time, viewer.send_time = 3e-3, 1e-3
            viewer.frame_share = 0.02
            assert viewer._frame_interval() == pytest.approx(4e-3 / 0.02)
            viewer._idle = 0.9
            assert viewer._frame_interval() == pytest.approx(1.0 / 30.0)
            viewer._idle, viewer.draw_time = 0.0, 10.0
            assert viewer._frame_interval() == pytest.approx(1.0 / 2.0)
        finally:
            viewer.server = server


def test_a_loop_that_waits_for_the_clock_is_known(viewer, simulation):
    """Paused, `run` does nothing but wait; a loop of one's own does not wait at all."""
    viewer.is_playing = False
    viewer.run(2.0)
    assert viewer._idle > 0.5
    viewer.is_playing = True
    viewer.sync()
    assert viewer._idle == 0.0
