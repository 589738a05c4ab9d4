"""Recordings: one file of a run, written while it goes on, to look at, to export and to send."""

from pluriverse.recording.recorded_run import RecordedRun
from pluriverse.recording.usd import export_usd
from pluriverse.recording.writer import RecordingWriter

__all__ = ["RecordedRun", "RecordingWriter", "export_usd"]
