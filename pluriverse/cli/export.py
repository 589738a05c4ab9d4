"""`pluriverse export`: a recording as a page, a USD stage, a video or arrays."""

from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.cli.console import errors, fail, output, quiet_warp, reported_errors
from pluriverse.cli.options import ExportOptions
from pluriverse.cli.pictures import parse_size, save_film
from pluriverse.cli.view import EXIT_MISSING, parse_worlds
from pluriverse.files import replace_file

# Worlds of a video by default; more would be too small to tell apart.
FILMED_WORLD_COUNT = 16


def export_recording(name: str, out: Path, options: ExportOptions) -> None:
    """Write a recording in the format that the name of the file asks for."""
    from pluriverse.recording import RecordedRun
    from pluriverse.recording.usd import SUFFIXES
    from pluriverse.render.video import CODECS

    quiet_warp()
    suffix = out.suffix.lower()
    with reported_errors():
        known = (".html", *SUFFIXES, *CODECS, ".gif", ".npz")
        if suffix not in known:
            raise ValueError(f"export: '{out}' ends in '{suffix}', but it must be one of {', '.join(known)}")
        if not out.absolute().parent.is_dir():
            raise ValueError(f"export: there is no folder '{out.parent}'; create it first")
        if options.geometry not in ("visual", "collision", "all"):
            raise ValueError(f"--geometry is {options.geometry!r}, but it is visual, collision or all")
        worlds = None if options.worlds is None else parse_worlds(options.worlds, "--worlds")
        try:
            with RecordedRun(name) as recording:
                if not recording.is_complete:
                    output.print(f"[yellow]warning:[/yellow] '{name}' was cut off, or is still being written")
                if suffix in (*CODECS, ".gif"):
                    if worlds is None:
                        worlds = recording.environments[:FILMED_WORLD_COUNT].tolist()
                    film = recording.film(worlds, geometry=options.geometry)
                    save_film(film, out, size=parse_size(options.size))
                else:
                    with errors.status(f"Writing {out}"):
                        _export(recording, out, worlds, options)
        except ImportError as error:
            raise fail(str(error), "A library is missing", EXIT_MISSING) from error
        except IndexError as error:
            raise ValueError(str(error)) from error
    output.print(f"{out}: {out.stat().st_size / 2**20:.2f} MiB", highlight=False)


def _export(recording: Any, out: Path, worlds: list[int] | None, options: ExportOptions) -> None:
    """Write a recording as a page, a stage or arrays."""
    suffix = out.suffix.lower()
    if suffix == ".npz":
        _export_arrays(recording, out)
    elif suffix == ".html":
        from pluriverse.viewer.html import export_html

        export_html(recording, out, worlds, geometry=options.geometry, stride=options.stride)
    else:
        from pluriverse.recording import export_usd

        export_usd(recording, out, worlds, geometry=options.geometry, stride=options.stride)


def _export_arrays(recording: Any, out: Path) -> None:
    """Write the trajectory, under the names of `run --record FILE.npz`."""
    model = recording.model
    with replace_file(out) as part, part.open("wb") as file:
        np.savez_compressed(
            file,
            time=recording.time,
            joint_q=recording.array("joint_q"),
            joint_qd=recording.array("joint_qd"),
            body_q=recording.array("body_q"),
            body_qd=recording.array("body_qd"),
            body_label=np.array(model.body_label, dtype=str),
            joint_label=np.array(model.joint_label, dtype=str),
            body_world_start=model.body_world_start.numpy(),
            joint_world_start=model.joint_world_start.numpy(),
            joint_q_start=model.joint_q_start.numpy(),
            joint_qd_start=model.joint_qd_start.numpy(),
            dt=np.float64(recording.dt),
        )
