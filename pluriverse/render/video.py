"""Video files, written by PyAV (which includes its codecs) or, as GIF, by Pillow."""

from fractions import Fraction
from pathlib import Path
from typing import Any, Self

import numpy as np

# Codec and options of each format. Quality 18 of x264 and 24 of VP9 are hard to distinguish from the
# original.
CODECS = {
    ".mp4": ("libx264", {"crf": "18", "preset": "medium"}),
    ".mov": ("libx264", {"crf": "18", "preset": "medium"}),
    ".mkv": ("libx264", {"crf": "18", "preset": "medium"}),
    ".webm": ("libvpx-vp9", {"crf": "24", "b:v": "0"}),
}


def check_video_path(path: str | Path) -> Path:
    """Return the path of a video.

    Raises:
        ValueError: If its name is that of no format.
        FileNotFoundError: If its folder does not exist.
        ImportError: If the library that writes it is missing.
    """
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix != ".gif" and suffix not in CODECS:
        raise ValueError(
            f"video '{path}': '{suffix}' is no format of videos. Name it {', '.join(CODECS)} or .gif."
        )
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"video '{path}': the folder '{path.parent}' does not exist.")
    if suffix != ".gif":
        _load_av(path)
    return path


class VideoFile:
    """A video that is written frame by frame; a context manager.

    Args:
        path: The file.
        fps: Frames per second.
    """

    def __init__(self, path: Path, fps: float):
        self._path = path
        self._fps = fps
        self._container: Any = None
        self._stream: Any = None
        self._images: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if self._container is not None:
            if kind is None:
                for packet in self._stream.encode():
                    self._container.mux(packet)
            self._container.close()
        elif self._images and kind is None:
            duration = round(1000.0 / self._fps)
            self._images[0].save(
                self._path, save_all=True, append_images=self._images[1:], duration=duration, loop=0
            )

    def write(self, picture: np.ndarray) -> None:
        """Append a picture, shape [row, column, 3], uint8."""
        if self._path.suffix.lower() == ".gif":
            from PIL import Image

            # A palette for each picture; without dithering, flat areas stay flat.
            self._images.append(Image.fromarray(picture).quantize(256, dither=Image.Dither.NONE))
            return
        av = _load_av(self._path)
        # Colour is stored per block of four pixels, so sides must be even.
        rows, columns = picture.shape[0] // 2 * 2, picture.shape[1] // 2 * 2
        if rows == 0 or columns == 0:
            raise ValueError(f"video '{self._path}': pictures must be at least 2 pixels wide and high.")
        if self._container is None:
            codec, options = CODECS[self._path.suffix.lower()]
            self._container = av.open(str(self._path), "w")
            rate = Fraction(self._fps).limit_denominator(1001)
            self._stream = self._container.add_stream(codec, rate=rate, options=options)
            self._stream.width, self._stream.height = columns, rows
            self._stream.pix_fmt = "yuv420p"
        frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(picture[:rows, :columns]), format="rgb24")
        for packet in self._stream.encode(frame):
            self._container.mux(packet)


def _load_av(path: Path) -> Any:
    try:
        import av
    except ImportError as error:
        raise ImportError(
            f"video '{path}': PyAV writes it. Install it with: pip install 'pluriverse[video]'; or name the "
            "file .gif."
        ) from error
    return av
