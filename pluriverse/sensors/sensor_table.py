"""Sensor table: what kernels know of each sensor, in arrays on the device of the model."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.sensors.layout import SensorLayout
from pluriverse.sensors.measure import SensorTable

_TABLE_TYPES: dict[str, Any] = {
    "type": wp.int32,
    "body": wp.int32,
    "xform": wp.transform,
    "is_relative": wp.int32,
    "reference_body": wp.int32,
    "reference_xform": wp.transform,
    "side": wp.int32,
    "shape": wp.int32,
    "reference_side": wp.int32,
    "reference_shape": wp.int32,
    "fields": wp.int32,
    "reduce": wp.int32,
    "slots": wp.int32,
    "zone_type": wp.int32,
    "zone_size": wp.vec3,
    "coord": wp.int32,
    "dof": wp.int32,
    "term": wp.int32,
    "term_count": wp.int32,
    "segment": wp.int32,
    "segment_count": wp.int32,
    "parameter": wp.vec4,
    "cutoff": wp.float32,
}
_TERM_TYPES: dict[str, Any] = {
    "term_coord": wp.int32,
    "term_dof": wp.int32,
    "term_coefficient": wp.float32,
    "term_offset": wp.float32,
    "segment_body": wp.int32,
    "segment_xform": wp.transform,
    "segment_reference_body": wp.int32,
    "segment_reference_xform": wp.transform,
    "segment_weight": wp.float32,
}


def make_sensor_table(layout: SensorLayout, device: Any) -> SensorTable:
    """Return the table of the sensors of a layout, on a device."""
    table = SensorTable()
    table.start = wp.array(layout.start, dtype=wp.int32, device=device)
    table.dim = wp.array(layout.dim.astype(np.int32), dtype=wp.int32, device=device)
    table.column = wp.array(layout.column, dtype=wp.int32, device=device)
    if not layout.columns:
        for name, dtype in (_TABLE_TYPES | _TERM_TYPES).items():
            setattr(table, name, wp.zeros(0, dtype=dtype, device=device))
        return table
    for name, dtype in _TABLE_TYPES.items():
        setattr(table, name, wp.array(layout.columns[name][layout.row], dtype=dtype, device=device))
    for name, dtype in _TERM_TYPES.items():
        setattr(table, name, wp.array(layout.columns[name], dtype=dtype, device=device))
    return table
