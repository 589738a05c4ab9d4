"""Viewer in the browser, on Viser (extra `pluriverse[view]`), loaded on first use.

`view` is public as `pluriverse.view`.
"""

from typing import Any

from pluriverse.viewer.html import export_html
from pluriverse.viewer.null_viewer import ViewerNull
from pluriverse.viewer.recording_viewer import RecordingViewer
from pluriverse.viewer.viewer import BrowserViewer
from pluriverse.viewer.viewer import view as view

__all__ = ["BrowserViewer", "RecordingViewer", "ViewerNull", "export_html"]


def __getattr__(name: str) -> Any:
    if name.startswith("Viewer"):
        raise AttributeError(
            f"module 'pluriverse.viewer' has no attribute {name!r}. ViewerNull takes the same loop without "
            "showing it; BrowserViewer shows a Simulation, pluriverse.draw makes pictures."
        )
    raise AttributeError(f"module 'pluriverse.viewer' has no attribute {name!r}")
