"""HTML: a recording as one self-contained page that plays in any browser."""

from pathlib import Path
from typing import Any

from pluriverse.files import replace_file
from pluriverse.recording import RecordedRun
from pluriverse.render.visual import SeenGeometry
from pluriverse.viewer.base import aimed_camera, free_port
from pluriverse.viewer.extras import load_viser, quiet_viser
from pluriverse.viewer.layout import shown_environments
from pluriverse.viewer.source import RecordedSource
from pluriverse.viewer.stage import Stage


def export_html(
    recording: RecordedRun,
    path: str | Path,
    worlds: Any = None,
    *,
    geometry: SeenGeometry | str = SeenGeometry.VISUAL,
    stride: int = 1,
) -> None:
    """Write a recording as one page with a slider of time, which needs neither a server nor a network.

    Args:
        recording: The recording.
        path: File to write.
        worlds: Worlds (environments) to show; some of all if None.
        geometry: Which shapes are drawn: "visual", "collision" or "all".
        stride: Write every `stride`-th frame.

    Raises:
        ImportError: If Viser is not installed.
        IndexError: If a world was not recorded.
        OSError: If the file cannot be written.
        ValueError: If an argument is out of range.
    """
    if not isinstance(stride, int) or stride < 1:
        raise ValueError(f"export: stride is {stride!r}, but it must be a whole number of frames >= 1.")
    source = RecordedSource(recording)
    environments = shown_environments(source.environments, worlds, "export")
    viser = load_viser()
    with quiet_viser():
        server = viser.ViserServer(
            host="127.0.0.1", port=free_port("127.0.0.1", None), label="Pluriverse", verbose=False
        )
    try:
        server.scene.set_up_direction(source.up)
        stage = Stage(server.scene, source, environments)
        stage.set_geometry(SeenGeometry(geometry))
        camera = server.initial_camera
        camera.look_at, camera.position = aimed_camera(source, stage)
        serializer = server.get_scene_serializer()
        appearance = recording.appearance(0)
        for frame in range(0, recording.frame_count, stride):
            source.frame = frame
            moment = source.moment()
            if recording.appearance(frame) is not appearance or recording.has_environments:
                appearance = recording.appearance(frame)
                stage.refresh()
            stage.update(moment)
            serializer.insert_sleep(stride / recording.fps)
        text = serializer.as_html()
    finally:
        with quiet_viser():
            server.stop()
    with replace_file(path) as part:
        part.write_text(text, encoding="utf-8")
