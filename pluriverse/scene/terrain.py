"""Terrain: ground that is not a plane, made by a rule or given by heights."""

import abc
import csv
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema, model_validator

from pluriverse.files import LFS_REMEDY, is_lfs_pointer
from pluriverse.scene.assembly import Assembly
from pluriverse.scene.errors import FieldError
from pluriverse.scene.mapping import SceneMapping, tag_of, tagged
from pluriverse.scene.values import (
    Count,
    Name,
    NotNegative,
    Number,
    Positive,
    Seed,
    at_most,
    parse_vector,
    reported,
    shown,
)

# Grid points of one terrain: 40 m x 40 m with a point every 2 cm. Its triangles take some 200 bytes a point.
GRID_POINT_COUNT_MAX = 4_000_000
OBSTACLE_COUNT_MAX = 100_000


def _parse_extent(value: Any) -> tuple[float, float]:
    x, y = parse_vector(value, length=2)
    if not min(x, y) > 0.0:
        raise FieldError(f"{shown(value)} is no extent; both lengths must be greater than 0")
    return (x, y)


Extent = Annotated[
    tuple[float, float],
    PlainValidator(reported(_parse_extent)),
    WithJsonSchema({"type": "array", "minItems": 2, "maxItems": 2, "description": "m, along x and y"}),
]


class Terrain(SceneMapping):
    """Common option of terrains: the extent, centred on the origin."""

    size: Extent

    @abc.abstractmethod
    def heightfield(self, assembly: Assembly) -> Any:
        """Return the terrain as a `Heightfield`.

        Raises:
            FieldError: It has too many points, or a value is out of range.
        """


class _MadeTerrain(Terrain):
    """A terrain made by a function of `pluriverse.geometry`."""

    resolution: Positive | None = Field(default=None, description="distance of grid points, m")

    function: ClassVar[str]
    resolution_default: ClassVar[float] = 0.05

    def heightfield(self, assembly: Assembly) -> Any:
        """Return the terrain as a `Heightfield`."""
        from pluriverse import geometry

        resolution = self.resolution or self.resolution_default
        count = (self.size[0] / resolution + 1.0) * (self.size[1] / resolution + 1.0)
        if count > GRID_POINT_COUNT_MAX:
            raise FieldError(
                f"{self.size[0]:g} m x {self.size[1]:g} m with a point every {resolution:g} m are "
                f"{count:.3g} points, but {GRID_POINT_COUNT_MAX:,} are allowed; make the resolution coarser"
            )
        options = {name: value for name, value in self.given().items() if name not in ("type", "size")}
        return getattr(geometry, self.function)(self.size, **options)


class FlatTerrain(Terrain):
    """Level ground of finite extent."""

    type: Literal["flat"]
    height: Number = Field(default=0.0, description="m")

    def heightfield(self, assembly: Assembly) -> Any:
        """Return the terrain as a `Heightfield`."""
        from pluriverse.geometry import flat_terrain

        return flat_terrain(self.size, height=self.height)


class RandomUniformTerrain(_MadeTerrain):
    """Rough ground: independent heights at coarse points, linear between them."""

    type: Literal["random_uniform"]
    min_height: Number | None = Field(default=None, description="m; -0.05")
    max_height: Number | None = Field(default=None, description="m; 0.05")
    step: NotNegative | None = Field(default=None, description="heights are multiples of this, m; 0.005")
    sample_distance: Positive | None = Field(default=None, description="distance of heights of their own, m")
    seed: Seed | None = None
    function = "random_uniform_terrain"
    resolution_default = 0.1

    @model_validator(mode="after")
    def _coarser_than_grid(self) -> "RandomUniformTerrain":
        if self.sample_distance is not None and self.sample_distance < (self.resolution or 0.1):
            raise ValueError(
                "sample_distance is below the resolution, so heights would be left out; make it larger"
            )
        return self


class SlopedTerrain(_MadeTerrain):
    """A pyramid with a level top, or a pit."""

    type: Literal["sloped"]
    slope: Number | None = Field(default=None, description="rise over run; 0.2")
    platform: NotNegative | None = Field(default=None, description="width of the level square, m; 1")
    function = "sloped_terrain"
    resolution_default = 0.1


class StairsTerrain(_MadeTerrain):
    """Stairs from all sides to a level square in the middle."""

    type: Literal["stairs"]
    step_width: Positive | None = Field(default=None, description="m; 0.3")
    step_height: Number | None = Field(default=None, description="m, negative to descend; 0.15")
    platform: NotNegative | None = Field(default=None, description="width of the level square, m; 1")
    function = "stairs_terrain"


class WaveTerrain(_MadeTerrain):
    """Waves along x and y."""

    type: Literal["wave"]
    amplitude: Number | None = Field(default=None, description="greatest height, m; 0.1")
    wave_count: NotNegative | None = Field(default=None, description="waves over the extent; 4")
    function = "wave_terrain"


class DiscreteObstaclesTerrain(_MadeTerrain):
    """Level ground with blocks and holes of random size."""

    type: Literal["discrete_obstacles"]
    height: Number | None = Field(default=None, description="m; 0.1")
    min_width: Positive | None = Field(default=None, description="m; 0.2")
    max_width: Positive | None = Field(default=None, description="m; 0.8")
    count: Annotated[Count, AfterValidator(at_most(OBSTACLE_COUNT_MAX))] | None = Field(
        default=None, description="number of obstacles; 40"
    )
    platform: NotNegative | None = Field(default=None, description="width of the level square, m; 1")
    seed: Seed | None = None
    function = "discrete_obstacles_terrain"


class HeightsTerrain(Terrain):
    """Heights over a grid, row by row along y, given in the scene or in a file (`.npy`, `.csv`)."""

    type: Literal["heights"]
    heights: list[list[Number]] | None = Field(default=None, min_length=2)
    path: Name | None = Field(default=None, description="relative to the scene file")
    min_z: Number | None = Field(default=None, description="height of the lowest point, m")
    max_z: Number | None = Field(default=None, description="height of the highest point, m")

    @model_validator(mode="after")
    def _one_source(self) -> "HeightsTerrain":
        if (self.heights is None) == (self.path is None):
            raise ValueError("give either 'heights' or 'path'")
        if (self.min_z is None) != (self.max_z is None):
            raise ValueError("give both 'min_z' and 'max_z', or neither if the heights are in metres")
        return self

    def heightfield(self, assembly: Assembly) -> Any:
        """Return the terrain as a `Heightfield`."""
        from pluriverse.geometry import Heightfield

        if self.heights is not None:
            widths = {len(row) for row in self.heights}
            if len(widths) != 1:
                raise FieldError("the rows have different lengths", "heights")
            data = np.array(self.heights)
        else:
            assert self.path is not None
            with assembly.at("path"):
                data = _read_heights(assembly.files.find_file(self.path, "file of heights"))
        if data.size > GRID_POINT_COUNT_MAX:
            raise FieldError(
                f"{data.size:,} heights, but {GRID_POINT_COUNT_MAX:,} are allowed; thin them out"
            )
        rows, columns = data.shape
        extent = (0.5 * self.size[0], 0.5 * self.size[1])
        return Heightfield(data, rows, columns, *extent, min_z=self.min_z, max_z=self.max_z)


def _read_heights(path: Path) -> np.ndarray:
    """Return the numbers of a file, shape [row, column]."""
    if path.stat().st_size > 100 * GRID_POINT_COUNT_MAX:
        raise FieldError(f"'{path}' has {path.stat().st_size / 2**20:.0f} MiB, too much for one terrain")
    if is_lfs_pointer(path):
        raise FieldError(f"'{path}' is a pointer of Git LFS, not the file. {LFS_REMEDY}")
    match path.suffix.lower():
        case ".npy":
            # Mapped, so that a header that promises more than the file holds is an error and no allocation.
            data = np.load(path, mmap_mode="r", allow_pickle=False)
        case ".csv" | ".txt":
            with path.open(encoding="utf-8", newline="") as file:
                rows = [[float(cell) for cell in row] for row in csv.reader(file) if row]
            if len({len(row) for row in rows}) > 1:
                raise FieldError(f"the rows of '{path}' have different lengths")
            data = np.array(rows)
        case suffix:
            raise FieldError(f"files of heights end in .npy or .csv, not in {suffix!r}")
    if data.ndim != 2 or not np.issubdtype(data.dtype, np.number) or np.iscomplexobj(data):
        raise FieldError(f"'{path}' holds {data.dtype} of shape {data.shape}, not rows of numbers")
    return np.array(data, dtype=np.float64)


TERRAINS: dict[str, type[Terrain]] = {
    "flat": FlatTerrain,
    "random_uniform": RandomUniformTerrain,
    "sloped": SlopedTerrain,
    "stairs": StairsTerrain,
    "wave": WaveTerrain,
    "discrete_obstacles": DiscreteObstaclesTerrain,
    "heights": HeightsTerrain,
}

if TYPE_CHECKING:
    AnyTerrain = Terrain
else:
    AnyTerrain = Annotated[tagged(TERRAINS), tag_of("type")]
