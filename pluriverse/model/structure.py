"""Structure: protected copies of a model's structural arrays, which steps read.

The arrays of the structure (`schema.STRUCTURE`) hold indices. A user may write anything into them, and a
kernel that used such an index could access foreign memory. So kernels read copies, made with the model.
"""

import hashlib
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model.contents import ModelContents
from pluriverse.model.schema import STRUCTURE
from pluriverse.model.topology import Template


class Structure:
    """The arrays of a model as kernels read them: copies of the structure, live arrays otherwise.

    Args:
        model: Model with all its arrays.
        live: Arrays of the structure that may change.
    """

    def __init__(self, model: ModelContents, live: frozenset[str] = frozenset()) -> None:
        self._model = model
        self._fingerprint: str | None = None
        self._guarded = [name for name in STRUCTURE if name not in live]
        for name in self._guarded:
            setattr(self, name, wp.clone(getattr(model, name)))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._model, name)

    @property
    def fingerprint(self) -> str:
        """Hash of the structure, equal for models of equal structure."""
        if self._fingerprint is None:
            self._fingerprint = _fingerprint(self._model, self)
        return self._fingerprint


def have_same_structure(model: ModelContents, other: ModelContents) -> bool:
    """Return whether two models have the same worlds, joints and shapes in the same order."""
    return model is other or model.structure.fingerprint == other.structure.fingerprint


def _fingerprint(model: ModelContents, structure: Structure) -> str:
    digest = hashlib.sha256()
    counts = [model.world_count, model.body_count, model.joint_count, model.shape_count]
    digest.update(np.array(counts, dtype=np.int64).tobytes())
    digest.update(np.ascontiguousarray(model.world_template, dtype=np.int64).tobytes())
    for name in structure._guarded:
        digest.update(np.ascontiguousarray(getattr(structure, name).numpy()).tobytes())
    for mesh in model.meshes:
        digest.update(np.ascontiguousarray(mesh.vertices).tobytes())
    for template in model.templates:
        for name, value in _template_arrays(template).items():
            digest.update(f"{name}{value.shape}".encode())
            digest.update(value.astype(np.int64).tobytes())
    return digest.hexdigest()


def _template_arrays(template: Template) -> dict[str, np.ndarray]:
    """Return the arrays of a template that the builder supplied, and the pairs of shapes."""
    names = ("joint_type", "joint_parent", "joint_child", "pair_shape0", "pair_shape1")
    sizes = np.array([template.body_count, template.shape_count])
    return {"sizes": sizes, **{name: getattr(template, name) for name in names}}
