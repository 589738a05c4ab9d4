"""Viewer in the browser, on Viser (extra `pluriverse[view]`), loaded on first use.

`view` is public as `pluriverse.view`.
"""

from pluriverse.viewer.html import export_html
from pluriverse.viewer.recording_viewer import RecordingViewer
from pluriverse.viewer.viewer import BrowserViewer
from pluriverse.viewer.viewer import view as view

__all__ = ["BrowserViewer", "RecordingViewer", "export_html"]
