"""The state of loading one kind of world: its builder, its document and what was noted on the way."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from pluriverse.scene.document import FieldPath, SceneDocument
from pluriverse.scene.errors import FieldError, SapSceneLoaderError
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
        """Index of each inline joint by its id; None for a joint that is not supported."""
        self.articulated_joints: set[int] = set()
        """The joints that inline articulations list."""
        self._features = features
        self._field = field

    @contextmanager
    def at(self, *field: str | int) -> Iterator[None]:
        """Say that what happens inside is about a field below the current one.

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
        """Note that the scene asks for something that is not done."""
        self._features.append(self.document.located(self._field, feature))

    def known_joint_ids(self) -> dict[str, int]:
        """Return the index of each inline joint that exists, by its id."""
        return {name: joint for name, joint in self.joint_ids.items() if joint is not None}
