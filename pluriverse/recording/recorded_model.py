"""Recorded model: the visible part of a model, as a recording stores it."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.collision import CollisionPipeline
from pluriverse.model import Model
from pluriverse.model.schema import MODEL_ARRAYS
from pluriverse.recording.appearance import AppearanceReader
from pluriverse.recording.tables import BODY_ARRAYS, DOF_ARRAYS, JOINT_ARRAYS, SHAPE_ARRAYS
from pluriverse.types import Axis


class RecordedModel(Model):
    """A model to view, not to step. Worlds keep their indices; worlds that were not recorded are empty.

    Args:
        world_count: Number of worlds of the recorded model.
        worlds: Those that were recorded, shape [recorded world].
        tables: What `read_tables` returned.
        labels: Names of bodies, joints, shapes and worlds.
        appearance: Meshes and appearances.
        state: Initial joint_q, joint_qd, body_q and body_qd.

    Raises:
        ValueError: If the arrays do not fit together.
    """

    def __init__(
        self,
        world_count: int,
        worlds: np.ndarray,
        tables: dict[str, np.ndarray],
        labels: dict[str, list[str]],
        appearance: AppearanceReader,
        state: dict[str, np.ndarray],
    ) -> None:
        super().__init__(wp.get_device("cpu"), CollisionPipeline)
        self.world_count = world_count
        self.recorded_worlds = worlds
        self.worlds = self._array("worlds", np.arange(world_count, dtype=np.int32))
        self.meshes, self.appearances = appearance.meshes, appearance.appearances
        counts = {}
        for kind in ("body", "joint", "coord", "dof", "shape"):
            counts[kind] = np.zeros(world_count, dtype=np.int64)
            counts[kind][worlds] = tables[f"{kind}_count"]
        first = {kind: np.cumsum(count) - count for kind, count in counts.items()}
        self.topology: Any = SimpleNamespace(
            **{f"world_{kind}": self._array("", start.astype(np.int32)) for kind, start in first.items()}
        )
        sizes, self.world_template = np.unique(
            np.stack(list(counts.values()), axis=1), axis=0, return_inverse=True
        )
        self.world_template = self.world_template.reshape(-1)
        self.templates: Any = [
            SimpleNamespace(
                body_count=bodies, node_count=joints, coord_count=coords, dof_count=dofs, shape_count=shapes
            )
            for bodies, joints, coords, dofs, shapes in sizes.tolist()
        ]
        self.body_count, self.joint_count = int(counts["body"].sum()), int(counts["joint"].sum())
        self.joint_coord_count, self.joint_dof_count = int(counts["coord"].sum()), int(counts["dof"].sum())
        self.shape_count = len(tables["shape_type"])
        self.particle_count = 0
        for kind in ("body", "joint", "shape"):
            total, own = int(getattr(self, f"{kind}_count")), int(counts[kind].sum())
            world = np.full(total, -1, dtype=np.int32)
            world[:own] = np.repeat(np.arange(world_count), counts[kind])
            setattr(self, f"{kind}_world", self._array("", world))
            start = np.concatenate([first[kind], [own, total]]).astype(np.int32)
            setattr(self, f"{kind}_world_start", self._array("", start))
            setattr(self, f"{kind}_label", labels[f"{kind}_label"])
        self.world_label = [f"world_{world}" for world in range(world_count)]
        for world, label in zip(worlds.tolist(), labels["world_label"], strict=True):
            self.world_label[world] = label
        names = [
            *(f"body_{name}" for name in BODY_ARRAYS),
            *(
                f"joint_{name}"
                for name in (*JOINT_ARRAYS, *DOF_ARRAYS, "parent", "child", "q_start", "qd_start")
            ),
            *(f"shape_{name}" for name in (*SHAPE_ARRAYS, "body")),
        ]
        for name in names:
            setattr(self, name, self._array(name, tables[name]))
        self.shape_source_index.assign(appearance.new_indices(tables["shape_source_index"]))
        self.up_axis = Axis(int(tables["up_axis"][0]))
        gravity = np.zeros((world_count, 3), dtype=np.float32)
        gravity[worlds] = tables["gravity"].reshape(-1, 3)
        self.gravity = self._array("gravity", gravity)
        for name, values in state.items():
            setattr(self, name, self._array(name, values))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        raise AttributeError(
            f"the model of a recording has no '{name}': a recording keeps what can be looked at. Load "
            "the scene or the robot again to simulate it."
        )

    def _array(self, name: str, values: np.ndarray) -> Any:
        values = np.ascontiguousarray(values)
        if name in MODEL_ARRAYS and wp.types.type_size(MODEL_ARRAYS[name].dtype) > 1:
            return wp.array(values.astype(np.float32), dtype=MODEL_ARRAYS[name].dtype, device=self.device)
        return wp.array(values, dtype=wp.dtype_from_numpy(values.dtype), device=self.device)
