"""Draw the curves of training runs side by side, as one picture.

Run `python -m benchmarks.learning_curves curves.svg RUN [RUN ...]`: a panel per run, which is a folder that
`pluriverse train --out` wrote. Each shows the figure of its task, as mean over ten updates.
"""

import argparse
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np

from pluriverse.envs.learning.trainer import read_checkpoint, read_curve

PANEL_WIDTH, PANEL_HEIGHT, COLUMNS = 250, 150, 3
# Room left and right of a curve, above and below it [px].
LEFT, RIGHT, ABOVE, BELOW = 36, 10, 26, 30
WINDOW = 10
# What is drawn of a task: a metric of its own if there is one of these, else the length of episodes.
FIGURES = {
    "metric/held up": ("share of time held up", 1.0),
    "metric/turning rate": ("turning [rad/s]", 1.0),
    "metric/distance": ("distance [cm]", 100.0),
    "metric/forward velocity": ("forwards [m/s]", 1.0),
}
STANDING = ("episode [s]", "episode_seconds")
COMMAND = "metric/forward command"


@dataclass
class Panel:
    """One run as it is drawn."""

    title: str
    axis: str
    steps: np.ndarray
    """Millions of steps, shape [update]."""
    figure: np.ndarray
    """Shape [update]."""
    command: np.ndarray | None
    """What was commanded, shape [update]."""


def smooth(values: np.ndarray) -> np.ndarray:
    """Return means over the last updates; of those before the first episode ended there is none."""
    return np.array([np.nanmean(values[max(0, k - WINDOW + 1) : k + 1]) for k in range(len(values))])


def read_panel(run: Path) -> Panel:
    """Return what is drawn of a run."""
    rows = read_curve(run)
    metrics = rows[0]["metrics"]
    task = str(read_checkpoint(run)["description"].get("task", run.name))
    steps = np.array([row["env_steps"] for row in rows]) * 1.0e-6
    command = np.array([row["metrics"].get(COMMAND, 0.0) for row in rows])
    name = next((name for name in FIGURES if name in metrics), None)
    if name is None or (name == "metric/forward velocity" and COMMAND in metrics and not command.any()):
        axis, key = STANDING
        values = np.array([row[key] for row in rows])
        first = int(np.argmax(np.isfinite(values)))
        return Panel(task, axis, steps[first:], smooth(values[first:]), None)
    axis, factor = FIGURES[name]
    values = factor * np.array([row["metrics"][name] for row in rows])
    return Panel(task, axis, steps, smooth(values), smooth(command) if COMMAND in metrics else None)


def draw_panel(panel: Panel, column: int, row: int) -> str:
    """Return a panel as elements of SVG."""
    x0, y0 = column * PANEL_WIDTH + LEFT, row * PANEL_HEIGHT + ABOVE
    width, height = PANEL_WIDTH - LEFT - RIGHT, PANEL_HEIGHT - ABOVE - BELOW
    curves = [panel.figure] if panel.command is None else [panel.figure, panel.command]
    low, high = min(0.0, *(c.min() for c in curves)), max(c.max() for c in curves)

    def line(values: np.ndarray, style: str) -> str:
        x = x0 + width * panel.steps / panel.steps[-1]
        y = y0 + height * (1.0 - (values - low) / max(high - low, 1e-9))
        points = " ".join(f"{a:.0f},{b:.1f}" for a, b in zip(x, y, strict=True))
        return f'<polyline points="{points}" fill="none" {style}/>'

    parts = [
        f'<rect x="{x0}" y="{y0}" width="{width}" height="{height}" fill="none" stroke="#bbb"/>',
        f'<text x="{x0}" y="{y0 - 8}"><tspan font-weight="bold">{escape(panel.title)}</tspan> '
        f"{escape(panel.axis)}</text>",
        f'<text x="{x0 - 4}" y="{y0 + 8}" text-anchor="end">{high:.2g}</text>',
        f'<text x="{x0 - 4}" y="{y0 + height}" text-anchor="end">{low:.2g}</text>',
        f'<text x="{x0 + width}" y="{y0 + height + 14}" text-anchor="end">'
        f"{panel.steps[-1]:.2f} million steps</text>",
    ]
    if panel.command is not None:
        parts.append(line(panel.command, 'stroke="#999" stroke-dasharray="4 3"'))
    parts.append(line(panel.figure, 'stroke="#0b6" stroke-width="1.6"'))
    return "\n".join(parts)


def draw(panels: list[Panel]) -> str:
    """Return the picture of all panels."""
    rows = -(-len(panels) // COLUMNS)
    width, height = COLUMNS * PANEL_WIDTH, rows * PANEL_HEIGHT
    body = "\n".join(draw_panel(panel, k % COLUMNS, k // COLUMNS) for k, panel in enumerate(panels))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'font-family="sans-serif" font-size="11" fill="#222">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n'
    )


def main() -> None:
    """Read runs and write the picture."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("picture", type=Path, help="picture to write, in SVG")
    parser.add_argument("runs", type=Path, nargs="+", help="folders of runs")
    arguments = parser.parse_args()
    arguments.picture.write_text(draw([read_panel(run) for run in arguments.runs]), encoding="utf-8")


if __name__ == "__main__":
    main()
