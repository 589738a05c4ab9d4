"""ModelRows: the arrays of a model on the host, world by world."""

from typing import Any

import numpy as np

from pluriverse.model import Model
from pluriverse.model.topology import Template
from pluriverse.mujoco_attributes.choices import NAMESPACE
from pluriverse.mujoco_attributes.registration import DEFAULTS


class ModelRows:
    """Copies of model arrays on the host, made on first use.

    Args:
        model: Model to read.
    """

    def __init__(self, model: Model):
        self.model = model
        topology = model.topology
        self.first = {
            kind: getattr(topology, f"world_{kind}").numpy().astype(np.int64)
            for kind in ("body", "joint", "coord", "dof", "shape")
        }
        """First flat entity of each world, by kind, shape [world]."""
        equality = model.equality_constraint_world_start.numpy().astype(np.int64)[: model.world_count]
        if model.world_count == 1 and len(model.templates[0].equality) == model.equality_constraint_count:
            equality = np.zeros(1, dtype=np.int64)  # a model without authored worlds lists them as global
        self.first["equality"] = equality
        self.first["world"] = np.arange(model.world_count)
        self.global_shapes = self._find_global_shapes()
        """Flat indices of the global shapes."""
        self._arrays: dict[str, np.ndarray] = {}

    def template(self, worlds: np.ndarray) -> Template:
        """Return the template of worlds of one kind."""
        return self.model.templates[self.model.world_template[worlds[0]]]

    def array(self, name: str) -> np.ndarray:
        """Return a whole array of the model: floating point as float64, others as int64."""
        if name not in self._arrays:
            self._arrays[name] = _on_host(getattr(self.model, name))
        return self._arrays[name]

    def gather(self, name: str, kind: str, worlds: np.ndarray) -> np.ndarray:
        """Return the entries of an array for worlds of one kind, shape [row, entity, ...]."""
        return self.array(name)[self.indices(kind, worlds)]

    def custom(self, name: str, kind: str, worlds: np.ndarray) -> np.ndarray | None:
        """Return a custom attribute of the namespace `mujoco` likewise, None if the model has none."""
        values = self.custom_array(name)
        return None if values is None else values[self.indices(kind, worlds)]

    def custom_array(self, name: str) -> np.ndarray | None:
        """Return all values of a custom attribute of the namespace `mujoco`, None if the model has none."""
        values = getattr(getattr(self.model, NAMESPACE, None), name, None)
        if values is None:
            return None
        key = f"{NAMESPACE}:{name}"
        if key not in self._arrays:
            found = _on_host(values)
            default = DEFAULTS.get(name)
            if default is not None and found.dtype.kind == "f":
                # In single precision 0.9 is another number. A world keeps its bits whether others have the
                # attribute or not, so that its defaults are those of a model without it.
                exact = np.asarray(default, dtype=np.float64)
                found = np.where(found == exact.astype(np.float32), exact, found)
            self._arrays[key] = found
        return self._arrays[key]

    def indices(self, kind: str, worlds: np.ndarray) -> np.ndarray:
        """Return flat indices of all entities of worlds of one kind, shape [row, entity]."""
        if kind == "world":
            return worlds
        template = self.template(worlds)
        count = {
            "body": template.body_count,
            "joint": template.node_count,
            "coord": template.coord_count,
            "dof": template.dof_count,
            "shape": template.shape_count,
            "equality": len(template.equality),
        }[kind]
        return self.first[kind][worlds][:, None] + np.arange(count)

    def _find_global_shapes(self) -> np.ndarray:
        shared = np.ones(self.model.shape_count, dtype=bool)
        counts = np.array([template.shape_count for template in self.model.templates], dtype=np.int64)
        inside = int(counts[self.model.world_template].sum())
        first = int(self.first["shape"][0]) if self.model.world_count else 0
        shared[first : first + inside] = False
        return np.flatnonzero(shared)


def _on_host(array: Any) -> np.ndarray:
    values = np.asarray(array.numpy() if hasattr(array, "numpy") else array)
    return values.astype(np.float64 if values.dtype.kind == "f" else np.int64)
