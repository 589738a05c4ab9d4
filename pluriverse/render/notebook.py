"""Notebook display of a simulation: a picture of worlds, and a table of their kinds."""

import base64
import io
from html import escape
from typing import Any

import numpy as np

from pluriverse.render.draw import draw

# Worlds in the picture; more could not be distinguished.
WORLD_COUNT_MAX = 12
PICTURE_SIZE = (600, 300)
# Rows of the table; a last line counts the remaining kinds.
ROW_COUNT_MAX = 16


def simulation_html(simulation: Any) -> str:
    """Return a picture of a world of each kind, and a table, as self-contained HTML."""
    model, solver = simulation.model, simulation.solver
    kinds = [kind for kind, template in enumerate(model.templates) if len(template.worlds)]
    shown = _shown_worlds(model, kinds)
    picture = _picture(simulation, shown)
    contacts = solver.last_contact_count.numpy()
    frozen = solver.world_frozen.numpy() != 0
    rows = []
    for kind in kinds[:ROW_COUNT_MAX]:
        template = model.templates[kind]
        worlds = np.asarray(template.worlds)
        trouble = int(frozen[worlds].sum())
        rows.append(
            f"<tr><td>{_worlds(worlds)}</td><td>{len(worlds):,}</td><td>{template.body_count}</td>"
            f"<td>{template.dof_count}</td><td>{template.shape_count}</td>"
            f"<td>{contacts[worlds].mean():.1f}</td><td>{trouble if trouble else ''}</td></tr>"
        )
    if len(kinds) > ROW_COUNT_MAX:
        rows.append(f"<tr><td colspan=7>and {len(kinds) - ROW_COUNT_MAX:,} more kinds</td></tr>")
    head = "".join(
        f"<th>{name}</th>" for name in ("worlds", "count", "bodies", "dof", "shapes", "contacts", "frozen")
    )
    return (
        f"<div><b>{model.world_count:,} world{'s' if model.world_count > 1 else ''}</b> · "
        f"{simulation.time:.6g} s · step {simulation.step_count:,} of {simulation.dt:.6g} s · "
        f"{escape(type(solver).__name__)} on {escape(str(model.device))}<br>"
        f'<img src="data:image/jpeg;base64,{picture}" width="{PICTURE_SIZE[0]}" '
        f'height="{PICTURE_SIZE[1]}" alt="worlds {", ".join(map(str, shown))}">'
        f"<table><tr>{head}</tr>{''.join(rows)}</table></div>"
    )


def _shown_worlds(model: Any, kinds: list[int]) -> list[int]:
    """Return one world of each kind, or several if there are few kinds."""
    first = [int(model.templates[kind].worlds[0]) for kind in kinds[:WORLD_COUNT_MAX]]
    others = [world for world in range(min(model.world_count, WORLD_COUNT_MAX)) if world not in first]
    return sorted([*first, *others[: max(0, WORLD_COUNT_MAX - len(first))]])


def _picture(simulation: Any, worlds: list[int]) -> str:
    """Return a picture of worlds as a base64 JPEG."""
    from PIL import Image

    data = io.BytesIO()
    pixels = draw(simulation, worlds=worlds, size=PICTURE_SIZE, samples=2)
    Image.fromarray(pixels).save(data, format="JPEG", quality=88)
    return base64.b64encode(data.getvalue()).decode("ascii")


def _worlds(worlds: np.ndarray) -> str:
    if len(worlds) > 2 and worlds[-1] - worlds[0] + 1 == len(worlds):
        return f"{worlds[0]} to {worlds[-1]}"
    return ", ".join(str(world) for world in worlds[:6].tolist()) + (", ..." if len(worlds) > 6 else "")
