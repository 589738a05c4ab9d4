"""Structure guard: detect writes to arrays that only take effect when a model is made."""

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from pluriverse.model.contents import ModelContents
from pluriverse.model.schema import STRUCTURE
from pluriverse.types import GeoType


class StructureGuard:
    """Remembers the original structure of a model.

    Args:
        model: Model with all its arrays.
        live: Arrays of the structure that may change.
    """

    def __init__(self, model: ModelContents, live: Sequence[str] = ()) -> None:
        self._live = frozenset(live)
        self._digests = _digests(model, self._live)

    @property
    def names(self) -> list[str]:
        """The arrays of the structure that must stay as they are."""
        return [name for name in STRUCTURE if name not in self._live]

    def changed(self, model: ModelContents) -> list[str]:
        """Return the arrays of the structure that have changed, or hold invalid indices."""
        digests = _digests(model, self._live)
        changed = [name for name, digest in digests.items() if digest != self._digests[name]]
        if "shape_source_index" in self._live:
            source = model.shape_source_index.numpy()
            if ((source < -1) | (source >= len(model.meshes))).any():
                changed.append("shape_source_index")
        return changed


def _digests(model: ModelContents, live: frozenset[str]) -> dict[str, bytes]:
    result = {name: _digest(getattr(model, name).numpy()) for name in STRUCTURE if name not in live}
    # A plane with both sizes is a slab, others are half spaces: different shapes for collision.
    scale = model.shape_scale.numpy().reshape(-1, 3)
    finite = (scale[:, :2] > 0.0).all(axis=1) & (model.structure.shape_type.numpy() == GeoType.PLANE)
    result["shape_scale of planes"] = _digest(finite)
    structure = model.structure  # what was written to is no index
    inner = structure.joint_child.numpy()[structure.joint_parent.numpy() >= 0]
    result["body_flags of bodies that hang on others"] = _digest(model.body_flags.numpy()[inner])
    return result


def _digest(values: np.ndarray[Any, Any]) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16).digest()
