"""`pluriverse info`, `scenes` and `schema`: versions, bundled scenes, formats."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from pluriverse.cli.console import collected_warnings, output, quiet_warp, reported_errors
from pluriverse.cli.recording import is_recording
from pluriverse.cli.robot_file import place_in_robot, scene_of

# Worlds of a recording that are listed; more would fill the terminal.
WORLD_COUNT_LISTED = 12


def list_scenes() -> None:
    """Show name and subject of every bundled scene."""
    from pluriverse.scene.bundled import bundled_scenes

    table = Table(show_header=False, box=None)
    table.add_column(style="bold")
    for name, path in bundled_scenes().items():
        # The first line of a bundled scene is a comment that says what it shows.
        with path.open(encoding="utf-8") as file:
            table.add_row(name, file.readline().lstrip("# ").strip())
    output.print(table)
    output.print("\nTry [bold]pluriverse run quadruped[/bold].")


def print_schema() -> None:
    """Print the JSON Schema of scene files."""
    from pluriverse.scene.schema import scene_json_schema

    output.print_json(json.dumps(scene_json_schema()))


def show_scene(name: str, world_count: int | None, asset_roots: Sequence[Path]) -> None:
    """Show what each kind of world of a scene holds, how it is run, and what is not supported.

    Of a recording, show how much of which run it holds.
    """
    from pluriverse.scene import load_scene

    quiet_warp()
    if is_recording(name):
        with reported_errors():
            output.print(_recording_table(name))
        return
    with (
        collected_warnings() as warning_texts,
        reported_errors(),
        scene_of(name, tuple(asset_roots)) as (source, roots),
    ):
        scene = load_scene(source, device="cpu", num_worlds=world_count, strict=False, asset_roots=roots)
        scene = place_in_robot(name, scene)
        output.print(_kind_table(scene))
        output.print(_settings_table(scene))
    for feature in scene.unsupported_features:
        output.print(f"[yellow]not supported:[/yellow] {escape(feature)}", highlight=False)
    for text in warning_texts:
        output.print(f"[yellow]warning:[/yellow] {escape(text)}", highlight=False)


def _recording_table(name: str) -> Table:
    from pluriverse.recording import RecordedRun

    with RecordedRun(name) as recording:
        model, environments = recording.model, recording.environments.tolist()
        begin, end = (recording.moment(frame).time for frame in (0, -1))
        table = Table(title=escape(name), show_header=False, title_justify="left")
        table.add_column(style="bold")
        table.add_column()
        state = "" if recording.is_complete else ", cut off or still being written"
        table.add_row("frames", f"{recording.frame_count:,}, {recording.fps:g} a second{state}")
        table.add_row("time", f"{begin:g} s to {end:g} s")
        listed = ", ".join(str(number) for number in environments[:WORLD_COUNT_LISTED])
        more = ", ..." if len(environments) > WORLD_COUNT_LISTED else ""
        kind = "environments" if recording.has_environments else "worlds"
        table.add_row(kind, f"{len(environments):,} ({listed}{more})")
        table.add_row("bodies", f"{model.body_count:,}")
        table.add_row("shapes", f"{model.shape_count:,}")
        table.add_row("solver", f"{recording.solver}, time step {recording.dt:g} s")
    return table


def _kind_table(scene: Any) -> Table:
    from pluriverse.collision import CollisionPipeline
    from pluriverse.simulation.chunks import world_byte_counts

    model = scene.model
    pipeline = CollisionPipeline(model, rigid_contact_max=scene.settings.max_rigid_contact)
    slots = pipeline.rigid_contact_capacity
    memory = world_byte_counts(model, pipeline.contacts())
    mass = model.body_mass.numpy()
    body_start = model.body_world_start.numpy()
    table = Table(title=escape(f"{scene.name} ({scene.source_path})"), title_justify="left")
    table.add_column("per world")
    rows: dict[str, list[str]] = {}
    for kind, kind_name in enumerate(scene.kind_names):
        world = scene.kind_of_world.index(kind)
        template = model.templates[int(model.world_template[world])]
        bodies = slice(int(body_start[world]), int(body_start[world + 1]))
        table.add_column(escape(kind_name), justify="right")
        cells = {
            "worlds": f"{scene.kind_of_world.count(kind):,}",
            "bodies": f"{template.body_count:,}",
            "joints": f"{len(template.joint_type):,}",
            "dofs": f"{len(template.dof_node):,}",
            "shapes": f"{template.shape_count:,}",
            "pairs": f"{len(template.pair_shape0):,}",
            "contact slots": f"{int(slots[world]):,}",
            "mass": f"{float(mass[bodies].sum()):.4g} kg",
            "gravity": _gravity(model.gravity.numpy()[world]),
            "memory (about)": _bytes(float(memory[world])),
        }
        for title, cell in cells.items():
            rows.setdefault(title, []).append(cell)
    for title, texts in rows.items():
        table.add_row(title, *texts)
    return table


def _settings_table(scene: Any) -> Table:
    model, settings = scene.model, scene.settings
    table = Table(show_header=False, box=None)
    table.add_column(style="bold")
    table.add_row("worlds", f"{model.world_count:,}")
    table.add_row("shared shapes", str(int((model.shape_world.numpy() < 0).sum())))
    table.add_row("memory of the model", _bytes(sum(array.capacity for array in _arrays(model))))
    table.add_row("time step", f"{settings.dt:g} s")
    for option, value in settings.solver_options.items():
        table.add_row(option, escape(str(value)))
    return table


def _arrays(model: Any) -> list[Any]:
    import warp as wp

    return [array for array in vars(model).values() if isinstance(array, wp.array)]


def _bytes(size: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if size < 1024.0:
            return f"{size:.3g} {unit}" if unit != "B" else f"{int(size)} B"
        size /= 1024.0
    return f"{size:.3g} GiB"


def _gravity(vector: Any) -> str:
    """Return gravity as scenes give it: along z where there is nothing else."""
    x, y, z = (f"{float(value):g}" for value in vector)
    return f"{z if (x, y) == ('0', '0') else f'[{x}, {y}, {z}]'} m/s²"
