"""Viewer in the browser, on Viser (extra `pluriverse[view]`), loaded on first use.

`view` is public as `pluriverse.view`.
"""

from typing import Any

from pluriverse.newton_names import missing
from pluriverse.viewer.html import export_html
from pluriverse.viewer.live_loop import ViewerViser
from pluriverse.viewer.loop_viewers import ViewerFile, ViewerGL, ViewerUSD
from pluriverse.viewer.null_viewer import ViewerNull
from pluriverse.viewer.recording_viewer import RecordingViewer
from pluriverse.viewer.viewer import BrowserViewer
from pluriverse.viewer.viewer import view as view

__all__ = [
    "BrowserViewer",
    "RecordingViewer",
    "ViewerFile",
    "ViewerGL",
    "ViewerNull",
    "ViewerUSD",
    "ViewerViser",
    "export_html",
]


def __getattr__(name: str) -> Any:
    raise missing("viewer", name, kind="module")
