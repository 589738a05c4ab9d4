"""Recordings: one file per run, written while it runs, to view, to export and to share."""

from pluriverse.recording.recorded_run import RecordedRun
from pluriverse.recording.usd import export_usd
from pluriverse.recording.writer import RecordingWriter

__all__ = ["RecordedRun", "RecordingWriter", "export_usd"]
