"""Sweep files: a scene, and the values that its parameters are to take."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from pluriverse.scene.bundled import bundled_scenes
from pluriverse.scene.document import SceneDocument, read_scene_document
from pluriverse.scene.errors import FieldError
from pluriverse.scene.local_files import LocalFiles
from pluriverse.scene.mapping import SceneMapping
from pluriverse.scene.validation import validate_document
from pluriverse.scene.values import Count, Name, Positive


class SweepSection(SceneMapping):
    """Contents of a sweep file."""

    schema_version: Any = 1
    scene: Name = Field(description="file beside this one, or name of a bundled scene")
    grid: dict[Name, Any] | None = Field(default=None, description="values by parameter; all combinations")
    samples: list[dict[Name, Any]] | None = Field(default=None, description="values by parameter, each")
    seeds: Count = 1
    duration: Positive | None = Field(default=None, description="s")
    steps: Count | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> "SweepSection":
        if (self.grid is None) == (self.samples is None):
            raise ValueError("give either 'grid' or 'samples'")
        if (self.duration is None) == (self.steps is None):
            raise ValueError("give either 'duration' or 'steps'")
        return self


@dataclass(frozen=True)
class SweepPlan:
    """A sweep file that was read."""

    document: SceneDocument
    """The file."""
    scene: str
    """The scene file, or the name of a bundled scene."""
    samples: Any
    """Samples for `pluriverse.cluster.sweep`."""
    seeds: int
    """Number of runs of each sample."""
    duration: float | None
    """Length of a run [s]."""
    steps: int | None
    """Steps of a run."""


def read_sweep_file(path: str | Path, asset_roots: Any = ()) -> SweepPlan:
    """Return what a sweep file says.

    Raises:
        SapSceneLoaderError: The file cannot be read, or is wrong; the message names line and field.
    """
    document = read_scene_document(Path(path), "a sweep file")
    section = validate_document(document, SweepSection, strict=True, features=[])
    scene = section.scene
    if scene not in bundled_scenes():
        try:
            scene = str(LocalFiles(document.path.parent, asset_roots).find_file(scene, "scene file"))
        except FieldError as error:
            raise document.error(("scene",), str(error)) from error
    samples = section.grid if section.grid is not None else section.samples
    return SweepPlan(document, scene, samples, section.seeds, section.duration, section.steps)
