"""Tables: the entities of selected worlds as a recording stores and numbers them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from pluriverse.model.schema import MODEL_ARRAYS
from pluriverse.recording.container import ContainerReader, ContainerWriter

SHAPE_APPEARANCE = ("flags", "enabled", "transform", "scale", "source_index", "color", "appearance")
"""Arrays of shapes that may change while a simulation runs."""
BODY_ARRAYS = ("mass", "inertia", "com")
JOINT_ARRAYS = ("type", "X_p", "X_c")
DOF_ARRAYS = ("axis", "limit_lower", "limit_upper")
SHAPE_ARRAYS = ("type", "aabb_lower", "aabb_upper", *SHAPE_APPEARANCE)


@dataclass(frozen=True)
class Rows:
    """The entities of some worlds, as indices of the model, world by world."""

    body: np.ndarray
    joint: np.ndarray
    coord: np.ndarray
    dof: np.ndarray
    shape: np.ndarray
    """Those that all worlds share are at the end."""
    body_count: np.ndarray
    """Bodies of each world, shape [world]."""
    joint_count: np.ndarray
    coord_count: np.ndarray
    dof_count: np.ndarray
    shape_count: np.ndarray


def rows_of(model: Any, worlds: np.ndarray) -> Rows:
    """Return the entities of worlds of a model."""
    topology, kinds = model.topology, [model.templates[kind] for kind in model.world_template[worlds]]
    counts = {
        "body": [kind.body_count for kind in kinds],
        "joint": [kind.node_count for kind in kinds],  # a node per joint
        "coord": [kind.coord_count for kind in kinds],
        "dof": [kind.dof_count for kind in kinds],
        "shape": [kind.shape_count for kind in kinds],
    }
    rows = {
        name: _ranges(getattr(topology, f"world_{name}").numpy()[worlds], np.array(count, dtype=np.int64))
        for name, count in counts.items()
    }
    rows["shape"] = np.concatenate([rows["shape"], shared_shapes(model)])
    return Rows(
        **rows, **{f"{name}_count": np.array(count, dtype=np.int64) for name, count in counts.items()}
    )


def shared_shapes(model: Any) -> np.ndarray:
    """Return the global shapes, which all worlds see."""
    everyone = np.arange(model.world_count)
    counts = np.array([kind.shape_count for kind in model.templates])[model.world_template[everyone]]
    own = _ranges(model.topology.world_shape.numpy(), counts)
    return np.setdiff1d(np.arange(model.shape_count), own)


def _ranges(first: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the indices of ranges, one after the other."""
    ends = np.cumsum(counts)
    ramp = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - counts, counts)
    return np.repeat(first.astype(np.int64), counts) + ramp


def renumbered(indices: np.ndarray, rows: np.ndarray, count: int) -> np.ndarray:
    """Return the positions of indices of a model among some of its entities; -1 stays."""
    new_index = np.full(count + 1, -1, dtype=np.int32)
    new_index[rows] = np.arange(len(rows))
    return new_index[indices]


def write_tables(container: ContainerWriter, model: Any, worlds: np.ndarray, rows: Rows) -> None:
    """Write the constant part: bodies, joints and shapes of the worlds."""
    for kind in ("body", "joint", "coord", "dof", "shape"):
        container.add(f"model/{kind}_count", getattr(rows, f"{kind}_count"))
    for name in BODY_ARRAYS:
        container.add(f"model/body_{name}", getattr(model, f"body_{name}").numpy()[rows.body])
    for name in JOINT_ARRAYS:
        container.add(f"model/joint_{name}", getattr(model, f"joint_{name}").numpy()[rows.joint])
    for name in ("parent", "child"):
        bodies = renumbered(getattr(model, f"joint_{name}").numpy()[rows.joint], rows.body, model.body_count)
        container.add(f"model/joint_{name}", bodies)
    for name in ("q_start", "qd_start"):
        start = getattr(model, f"joint_{name}").numpy()
        sizes = np.diff(start)[rows.joint]
        container.add(f"model/joint_{name}", np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
    for name in DOF_ARRAYS:
        container.add(f"model/joint_{name}", getattr(model, f"joint_{name}").numpy()[rows.dof])
    for name in SHAPE_ARRAYS:
        container.add(f"model/shape_{name}", getattr(model, f"shape_{name}").numpy()[rows.shape])
    bodies = renumbered(model.shape_body.numpy()[rows.shape], rows.body, model.body_count)
    container.add("model/shape_body", bodies)
    container.add("model/gravity", model.gravity.numpy()[worlds])
    container.add("model/up_axis", np.array([int(model.up_axis)], dtype=np.int32))
    for kind in ("body", "joint", "shape"):
        labels = getattr(model, f"{kind}_label")
        container.add_json(f"model/{kind}_label", [labels[row] for row in getattr(rows, kind).tolist()])
    container.add_json("model/world_label", [model.world_label[world] for world in worlds.tolist()])


def read_tables(container: ContainerReader) -> dict[str, np.ndarray]:
    """Return the arrays that `write_tables` wrote, by name.

    Raises:
        ValueError: If they do not fit together.
    """
    names = [name.removeprefix("model/") for name in container.names if name.startswith("model/")]
    tables = {name: container.read(f"model/{name}") for name in names if not name.endswith("_label")}
    if tables["up_axis"].tolist() not in ([0], [1], [2]):
        raise ValueError(f"up_axis is {tables['up_axis'].tolist()}, but it is the number of an axis")
    for name, (kind, more, width) in _layouts().items():
        count = len(tables["shape_type"]) if kind == "shape" else int(tables[f"{kind}_count"].sum())
        values = tables[name]
        if (
            len(values) != count + more
            or values.size != (count + more) * width
            or values.dtype.kind not in "bif"
        ):
            raise ValueError(f"{name} has shape {values.shape}, which does not fit {count} of its kind")
    for name, kind in (("joint_parent", "body"), ("joint_child", "body"), ("shape_body", "body")):
        values, count = tables[name], int(tables[f"{kind}_count"].sum())
        if len(values) and not -1 <= values.min() <= values.max() < count:
            raise ValueError(f"{name} has indices up to {values.max()}, but there are {count} bodies")
    return tables


def _layouts() -> dict[str, tuple[str, int, int]]:
    """Return the kind of entity, the number of extra entries, and the components per entry of each array."""
    layouts = {f"body_{name}": ("body", 0) for name in BODY_ARRAYS}
    layouts |= {f"joint_{name}": ("joint", 0) for name in (*JOINT_ARRAYS, "parent", "child")}
    layouts |= {f"joint_{name}": ("joint", 1) for name in ("q_start", "qd_start")}
    layouts |= {f"joint_{name}": ("dof", 0) for name in DOF_ARRAYS}
    layouts |= {f"shape_{name}": ("shape", 0) for name in (*SHAPE_ARRAYS, "body")}
    return {
        name: (kind, more, wp.types.type_size(MODEL_ARRAYS[name].dtype))
        for name, (kind, more) in layouts.items()
    }
