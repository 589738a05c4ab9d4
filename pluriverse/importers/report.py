"""Import report: the entities added, and the features of the asset that are lost or changed."""

import dataclasses
import enum
import warnings
from collections.abc import Iterator, Sequence

import numpy as np

from pluriverse.importers.errors import UnsupportedAssetError
from pluriverse.warnings import AssetWarning


class ImportSeverity(enum.Enum):
    """Severity of an entry of a report."""

    NOTE = "note"
    """For information; the bodies move as authored, without a warning."""
    WARNING = "warning"
    """Something is missing that does not move bodies, such as the mesh of a picture."""
    REPAIR = "repair"
    """Something in the file is impossible as written, and was repaired. An error with `strict=True`."""
    LOSS = "loss"
    """Bodies may move differently than authored. An error with `strict=True`."""


@dataclasses.dataclass
class ImportEntry:
    """One feature of an asset that the model does not have as authored."""

    feature: str
    """The feature, for example `tendon`."""
    consequence: str
    """The consequence for the simulation."""
    entities: list[str]
    """The elements concerned, by name."""
    severity: ImportSeverity = ImportSeverity.LOSS
    """How much it matters."""

    def __str__(self) -> str:
        shown = ", ".join(self.entities[:4])
        more = f" and {len(self.entities) - 4} more" if len(self.entities) > 4 else ""
        return f"{self.feature} ({shown}{more}): {self.consequence}"


@dataclasses.dataclass
class Keyframe:
    """A configuration that an asset names, in the coordinates of the joints that were added.

    `builder.joint_q[report.coords] = keyframe.joint_q` makes the robot start there; the other arrays work
    alike.
    """

    name: str
    """Its name."""
    time: float
    """Its time [s]."""
    joint_q: np.ndarray
    """Coordinates as in `Model.joint_q`, of the joints of the asset, shape [coord]."""
    joint_qd: np.ndarray
    """Velocities as in `Model.joint_qd`, shape [dof]."""
    ctrl: np.ndarray
    """Controls of the actuators of the asset, shape [actuator]."""
    act: np.ndarray
    """Activations of those that have any, in the order of the asset, shape [activation]."""


@dataclasses.dataclass
class ImportReport:
    """Report of what an importer added to a builder, and what of the asset it could not represent."""

    source: str
    """The file, or the name of the text that was read."""
    label: str = ""
    """First component of all labels of the asset."""
    bodies: range = range(0)
    """Indices of the bodies added."""
    joints: range = range(0)
    """Indices of the joints added."""
    coords: range = range(0)
    """Indices of the joint coordinates added."""
    dofs: range = range(0)
    """Indices of the joint degrees of freedom added."""
    shapes: range = range(0)
    """Indices of the shapes added."""
    articulations: range = range(0)
    """Indices of the articulations added."""
    keyframes: list[Keyframe] = dataclasses.field(default_factory=list)
    """The keyframes of an MJCF document, in its order."""
    merged_links: dict[str, str] = dataclasses.field(default_factory=dict)
    """Labels of links merged by `collapse_fixed_joints`, with the label of the body they became part of."""
    merged_poses: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    """Poses of these links in the frame of that body, position [m] and quaternion xyzw."""
    entries: list[ImportEntry] = dataclasses.field(default_factory=list)
    """Features that are lost or changed, one entry per feature and consequence."""

    further: dict[str, str] = dataclasses.field(default_factory=dict)
    """Text to add to the consequence of a feature in every report."""

    path_body_map: dict[str, int] = dataclasses.field(default_factory=dict)
    """Index of each body by its label; a merged link has that of the body it became part of. Also
    `report["path_body_map"]`, and likewise the next two."""
    path_joint_map: dict[str, int] = dataclasses.field(default_factory=dict)
    """Index of each joint by its label."""
    path_shape_map: dict[str, int] = dataclasses.field(default_factory=dict)
    """Index of each shape by its label."""

    def __getitem__(self, name: str) -> dict[str, int]:
        """Return `path_body_map`, `path_joint_map` or `path_shape_map`.

        Raises:
            KeyError: For any other name.
        """
        if name not in _MAPS:
            raise KeyError(
                f"an import report has no entry {name!r}; there are {', '.join(_MAPS)}. "
                "All else are attributes: bodies, joints, shapes, articulations, keyframes, entries."
            )
        return dict(getattr(self, name))

    def __contains__(self, name: object) -> bool:
        return name in _MAPS

    def __iter__(self) -> Iterator[str]:
        return iter(_MAPS)

    def keys(self) -> list[str]:
        """Return the names of the maps."""
        return list(_MAPS)

    def get(self, name: str, default: dict[str, int] | None = None) -> dict[str, int] | None:
        """Return a map by its name, or `default` if there is none of it."""
        return self[name] if name in _MAPS else default

    def map_labels(
        self, body_label: Sequence[str], joint_label: Sequence[str], shape_label: Sequence[str]
    ) -> None:
        """Fill the maps from labels to indices, given all labels of the builder."""
        self.path_body_map = {body_label[index]: index for index in self.bodies}
        self.path_joint_map = {joint_label[index]: index for index in self.joints}
        self.path_shape_map = {shape_label[index]: index for index in self.shapes}
        for link, body in self.merged_links.items():
            if body in self.path_body_map:
                self.path_body_map.setdefault(link, self.path_body_map[body])

    def summary(self) -> str:
        """Return what was added and what was changed, in lines of text."""
        added = f"{len(self.bodies)} bodies, {len(self.joints)} joints, {len(self.shapes)} shapes"
        return f"{self.source}: {added}{_lines(self.entries)}"

    @property
    def losses(self) -> list[ImportEntry]:
        """The entries due to which bodies may move differently than authored."""
        return [entry for entry in self.entries if entry.severity is ImportSeverity.LOSS]

    @property
    def repairs(self) -> list[ImportEntry]:
        """The entries of what was impossible as written and was repaired."""
        return [entry for entry in self.entries if entry.severity is ImportSeverity.REPAIR]

    def add(
        self, feature: str, entity: str, consequence: str, severity: ImportSeverity = ImportSeverity.LOSS
    ) -> None:
        """Record that `feature` of `entity` has the given `consequence`."""
        if feature in self.further:
            consequence = f"{consequence}; {self.further[feature]}"
        for entry in self.entries:
            if entry.feature == feature and entry.consequence == consequence:
                entry.entities.append(entity)
                return
        self.entries.append(ImportEntry(feature, consequence, [entity], severity))

    def emit(self, *, strict: bool) -> None:
        """Warn once about all entries but notes, or raise.

        Raises:
            UnsupportedAssetError: If there are losses or repairs and `strict` is set.
        """
        refused = [*self.losses, *self.repairs]
        if strict and refused:
            raise UnsupportedAssetError(
                f"not everything in it can be imported as authored:{_lines(refused)}\n",
                file=self.source,
                value=[entry.feature for entry in refused],
                remedy="Remove these features or correct them, or import with strict=False to go on "
                "without them.",
            )
        reported = [entry for entry in self.entries if entry.severity is not ImportSeverity.NOTE]
        if reported:
            warnings.warn(
                f"{self.source}: not everything was imported as authored:{_lines(reported)}",
                AssetWarning,
                stacklevel=4,
            )


_MAPS = ("path_body_map", "path_joint_map", "path_shape_map")


def _lines(entries: list[ImportEntry]) -> str:
    return "".join(f"\n  - {entry}" for entry in entries)
