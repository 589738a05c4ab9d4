"""USD cameras as those of `ModelBuilder.add_camera`."""

from typing import Any

import numpy as np

from pluriverse.importers.description import Placement
from pluriverse.importers.frames import IDENTITY, Frame
from pluriverse.importers.report import ImportReport
from pluriverse.importers.usd_bodies import UsdBody
from pluriverse.importers.usd_source import UsdSource, inverse_matrix, split_matrix

# Rows of a camera's image, which USD does not specify; the columns follow from its aperture.
ROWS = 64


def add_cameras(
    builder: Any,
    source: UsdSource,
    bodies: dict[str, UsdBody],
    placement: Placement,
    xform: Frame,
    report: ImportReport,
) -> None:
    """Add the cameras of a stage. Like ours, they look along -z of their frame, with y up."""
    carried: dict[str, str] = {}
    for path, prim in source.prims.items():
        carried[path] = path if path in bodies else carried.get(path.rpartition("/")[0], "")
        if str(prim.GetTypeName()) != "Camera":
            continue
        body = carried[path] if carried[path] in placement.bodies else ""
        if carried[path] and not body:
            continue
        stands = bodies[body].frame if body else IDENTITY
        frame, _ = split_matrix(inverse_matrix(stands) @ source.world_matrix(prim))
        pose = placement.frames[body] @ frame if body else xform @ frame
        if str(prim.GetAttribute("projection").Get()) == "orthographic":
            report.add("orthographic camera", path, "it is left out")
            continue
        length, tall, wide = (
            float(prim.GetAttribute(name).Get() or 0.0)
            for name in ("focalLength", "verticalAperture", "horizontalAperture")
        )
        if not (length > 0.0 and tall > 0.0 and wide > 0.0 and np.isfinite([length, tall, wide]).all()):
            report.add("camera without focal length or aperture", path, "it is left out")
            continue
        builder.add_camera(
            placement.bodies[body] if body else -1,
            xform=[*pose.position, *pose.quat],
            fov=2.0 * float(np.arctan(0.5 * tall / length)),
            width=max(1, round(ROWS * wide / tall)),
            height=ROWS,
            label=path,
        )
