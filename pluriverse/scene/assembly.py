"""State of loading one kind of world: its builder, its document and collected notes."""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pluriverse.scene.document import FieldPath, SceneDocument
from pluriverse.scene.errors import FieldError, SapSceneLoaderError, joined_messages
from pluriverse.scene.local_files import LocalFiles


class Assembly:
    """One kind of world while its parts are added to a builder."""

    def __init__(
        self,
        builder: Any,
        document: SceneDocument,
        field: FieldPath,
        features: list[str],
        files: LocalFiles,
    ):
        self.builder = builder
        self.document = document
        self.files = files
        """Finds the files that the scene names."""
        self.body_ids: dict[str, int] = {}
        """Index of each inline body by its id."""
        self.joint_ids: dict[str, int | None] = {}
        """Index of each inline joint by its id; None for one that closes a loop and has no coordinate."""
        self.articulated_joints: set[int] = set()
        """The joints that inline articulations list."""
        self._features = features
        self._field = field
        self._errors: list[str] = []
        self._fields: dict[tuple[str, str], FieldPath] = {}

    @contextmanager
    def entry(self, section: str, index: int) -> Iterator[None]:
        """Add an entry of a section: collect its errors for `raise_errors`, and record its entities."""
        labels = _labels(self.builder)
        before = {kind: len(names) for kind, names in labels.items()}
        try:
            with self.at(section, index):
                yield
        except SapSceneLoaderError as error:
            self._errors.append(str(error))
        for kind, names in labels.items():
            for name in names[before[kind] :]:
                self._fields.setdefault((kind, name), (*self._field, section, index))

    def raise_errors(self) -> None:
        """Raise the errors of all entries so far, if there are any.

        Raises:
            SapSceneLoaderError: There are.
        """
        if self._errors:
            raise SapSceneLoaderError(joined_messages(self._errors))

    def field_of(self, message: str) -> FieldPath | None:
        """Return the entry of the body, joint, shape or articulation that a message names."""
        named = re.match(r"(body|joint|shape|articulation) '(.*?)' \(index \d+(?:, world \d+)?\)", message)
        return self._fields.get((named[1], named[2])) if named else None

    @contextmanager
    def at(self, *field: str | int) -> Iterator[None]:
        """Set the current field to one below it while the context is active.

        Raises:
            SapSceneLoaderError: For each error of a value or a file inside, with the place of the field.
        """
        outer = self._field
        self._field = (*outer, *field)
        try:
            yield
        except SapSceneLoaderError:
            raise
        except FieldError as error:
            raise self.document.error((*self._field, *error.path), str(error)) from error
        except (ValueError, OSError) as error:
            raise self.document.error(self._field, str(error)) from error
        finally:
            self._field = outer

    def note_unsupported(self, feature: str) -> None:
        """Record an unsupported feature of the scene."""
        self._features.append(self.document.located(self._field, feature))

    def warn(self, text: str) -> None:
        """Warn of something at the current field."""
        warnings.warn(self.document.located(self._field, text), UserWarning, stacklevel=2)

    def known_joint_ids(self) -> dict[str, int]:
        """Return the index of each inline joint that exists, by its id."""
        return {name: joint for name, joint in self.joint_ids.items() if joint is not None}


def _labels(builder: Any) -> dict[str, list[str]]:
    """Return the builder's lists of labels by kind of entity."""
    return {
        "body": builder.body_label,
        "joint": builder.joint_label,
        "shape": builder.shape_label,
        "articulation": builder.articulation_label,
    }
