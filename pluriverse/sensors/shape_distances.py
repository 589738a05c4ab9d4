"""Shape distance stage: the values of sensors of distances between two shapes or bodies.

Reads   body_q; shapes of the model
Writes  data

Any two convex shapes are measured by the support functions of the collision stages, meshes as their convex
hulls, and planes as half spaces. The result is that of MuJoCo's `mj_geomDistance`.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.sensor_sides import SensorSide
from pluriverse.builder.sensors import SensorType
from pluriverse.collision.components import to_double, to_single
from pluriverse.collision.convex.support import ConvexPair, core_radius, support_point
from pluriverse.collision.convex.witness_points import find_witness
from pluriverse.collision.hull import HullData, make_hull_data
from pluriverse.launch import launch_kernel
from pluriverse.model import Model, State, Topology
from pluriverse.sensors.measure import SensorTable, sensor_of
from pluriverse.sensors.sides import is_of_side
from pluriverse.types import GeoType


@wp.struct
class DistanceShapes:
    """Inputs of the stage from the shapes of a model."""

    body: wp.array[int]  # [shape]
    type: wp.array[int]  # [shape]
    transform: wp.array[wp.transform]  # [shape]
    scale: wp.array[wp.vec3]  # [shape]
    source: wp.array[int]  # [shape] mesh, -1 for none
    hull: wp.array[int]  # [mesh]
    hull_size: wp.array[float]  # [hull] m, of the unscaled hull


@wp.struct
class Gap:
    """The closest points of two shapes [m], world axes, and their signed distance."""

    distance: float
    point0: wp.vec3
    point1: wp.vec3


@wp.func
def pose_of(shapes: DistanceShapes, shape: int, body_q: wp.array[wp.transform]) -> wp.transform:
    """Return where a shape is in the world."""
    pose = shapes.transform[shape]
    if shapes.body[shape] >= 0:
        pose = body_q[shapes.body[shape]] * pose
    return pose


@wp.func
def kind_of(shapes: DistanceShapes, shape: int) -> int:
    """Return the type that a shape is measured as."""
    return wp.where(shapes.type[shape] == GeoType.MESH, GeoType.CONVEX_MESH, shapes.type[shape])


@wp.func
def hull_of_shape(shapes: DistanceShapes, shape: int) -> int:
    """Return the hull of a mesh, -1 for others."""
    hull = int(-1)
    if shapes.source[shape] >= 0:
        hull = shapes.hull[shapes.source[shape]]
    return hull


@wp.func
def extent_of(shapes: DistanceShapes, shape: int) -> float:
    """Return a size of a shape for tolerances [m]."""
    scale = shapes.scale[shape]
    largest = wp.max(wp.abs(scale[0]), wp.max(wp.abs(scale[1]), wp.abs(scale[2])))
    hull = hull_of_shape(shapes, shape)
    if hull >= 0:
        largest = largest * shapes.hull_size[hull]
    return largest


@wp.func
def is_convex(kind: int) -> bool:
    """Return whether distances to a type are measured."""
    return kind != GeoType.NONE and kind != GeoType.HFIELD


@wp.func
def measure_gap(
    shapes: DistanceShapes,
    hulls: wp.ref[HullData],
    shape0: int,
    shape1: int,
    body_q: wp.array[wp.transform],
    max_distance: float,
) -> Gap:
    """Return the gap of two shapes, a value above `max_distance` [m] if the gap exceeds it."""
    gap = Gap()
    gap.distance = wp.inf
    kind0 = kind_of(shapes, shape0)
    kind1 = kind_of(shapes, shape1)
    if not is_convex(kind0) or not is_convex(kind1):
        return gap
    pose0 = pose_of(shapes, shape0, body_q)
    pose1 = pose_of(shapes, shape1, body_q)
    turn0 = wp.transform_get_rotation(pose0)
    turn1 = wp.transform_get_rotation(pose1)
    origin0 = wp.transform_get_translation(pose0)
    origin1 = wp.transform_get_translation(pose1)
    if kind0 == GeoType.PLANE or kind1 == GeoType.PLANE:
        if kind0 == kind1:
            return gap
        plane = wp.where(kind0 == GeoType.PLANE, 0, 1)
        plane_rotation = wp.where(plane == 0, turn0, turn1)
        plane_origin = wp.where(plane == 0, origin0, origin1)
        other = wp.where(plane == 0, shape1, shape0)
        other_rotation = wp.where(plane == 0, turn1, turn0)
        other_origin = wp.where(plane == 0, origin1, origin0)
        up = wp.quat_rotate(plane_rotation, wp.vec3(0.0, 0.0, 1.0))
        down = wp.quat_rotate_inv(other_rotation, -up)
        kind = kind_of(shapes, other)
        size = shapes.scale[other]
        core = to_single(support_point(kind, size, hulls, hull_of_shape(shapes, other), to_double(down)))
        lowest = other_origin + wp.quat_rotate(other_rotation, core) - core_radius(kind, size) * up
        height = wp.dot(up, lowest - plane_origin)
        gap.distance = height
        gap.point0 = lowest - height * up
        gap.point1 = lowest
        if plane == 1:
            gap.point0 = lowest
            gap.point1 = lowest - height * up
        return gap
    pair = ConvexPair()
    pair.type0 = kind0
    pair.type1 = kind1
    pair.size0 = shapes.scale[shape0]
    pair.size1 = shapes.scale[shape1]
    pair.hull0 = hull_of_shape(shapes, shape0)
    pair.hull1 = hull_of_shape(shapes, shape1)
    back = wp.quat_inverse(turn0)
    between = wp.normalize(back * turn1)
    pair.rotation = wp.matrix_from_cols(
        to_double(wp.quat_rotate(between, wp.vec3(1.0, 0.0, 0.0))),
        to_double(wp.quat_rotate(between, wp.vec3(0.0, 1.0, 0.0))),
        to_double(wp.quat_rotate(between, wp.vec3(0.0, 0.0, 1.0))),
    )
    pair.position = to_double(wp.quat_rotate(back, origin1 - origin0))
    extent = wp.min(extent_of(shapes, shape0), extent_of(shapes, shape1))
    witness = find_witness(pair, hulls, extent, max_distance)
    if witness.is_near:
        gap.distance = witness.distance
        gap.point0 = origin1 + wp.quat_rotate(turn0, witness.point0)
        gap.point1 = origin1 + wp.quat_rotate(turn0, witness.point1)
    return gap


@wp.func
def shape_at(topology: Topology, world: int, side: int, side_shape: int, shape_count: int, index: int) -> int:
    """Return a candidate shape of a side, of its world or global; -1 after the last."""
    if side == SensorSide.SHAPE:
        return wp.where(index == 0, side_shape, -1)
    template = topology.world_template[world]
    own = topology.template_shape[template + 1] - topology.template_shape[template]
    if index < own:
        return topology.world_shape[world] + index
    # Global shapes come before those of the first world and after those of the last.
    front = topology.world_shape[0]
    rest = index - own
    if rest < front:
        return rest
    worlds = topology.world_shape.shape[0]
    last = topology.world_template[worlds - 1]
    behind = topology.world_shape[worlds - 1]
    behind += topology.template_shape[last + 1] - topology.template_shape[last]
    shape = behind + rest - front
    return wp.where(shape < shape_count, shape, -1)


@wp.kernel(enable_backward=False, module="pluriverse.sensors.shape_distances")
def measure_distance(
    worlds: wp.array[int],  # [slot]
    # model
    table: SensorTable,
    topology: Topology,
    shapes: DistanceShapes,
    hulls: HullData,
    # state
    body_q: wp.array[wp.transform],  # [body]
    world_frozen: wp.array[int],  # [world]
    # out
    data: wp.array2d[float],  # [world, column]
    measured: wp.array2d[float],  # [world, column]
):
    """Measure one distance sensor of one world."""
    slot, index = wp.tid()
    world = worlds[slot]
    sensor = sensor_of(table, world_frozen, world, index)
    if sensor < 0:
        return
    kind = table.type[sensor]
    if kind < SensorType.GEOMDIST or kind > SensorType.GEOMFROMTO:
        return
    cutoff = table.cutoff[sensor]
    count = shapes.body.shape[0]
    side = table.side[sensor]
    other = table.reference_side[sensor]
    nearest = Gap()
    nearest.distance = cutoff
    is_near = bool(False)
    first = int(0)
    shape0 = shape_at(topology, world, side, table.shape[sensor], count, first)
    while shape0 >= 0:
        if is_of_side(
            topology, world, side, table.shape[sensor], table.body[sensor], shape0, shapes.body[shape0]
        ):
            second = int(0)
            shape1 = shape_at(topology, world, other, table.reference_shape[sensor], count, second)
            while shape1 >= 0:
                belongs = is_of_side(
                    topology,
                    world,
                    other,
                    table.reference_shape[sensor],
                    table.reference_body[sensor],
                    shape1,
                    shapes.body[shape1],
                )
                if belongs and shape1 != shape0:
                    gap = measure_gap(shapes, hulls, shape0, shape1, body_q, cutoff)
                    if gap.distance < nearest.distance:
                        nearest = gap
                        is_near = True
                second += 1
                shape1 = shape_at(topology, world, other, table.reference_shape[sensor], count, second)
        first += 1
        shape0 = shape_at(topology, world, side, table.shape[sensor], count, first)
    column = table.column[sensor]
    way = wp.vec3()
    if is_near:
        way = wp.normalize(nearest.point1 - nearest.point0)
    for k in range(table.dim[sensor]):
        value = nearest.distance
        if cutoff > 0.0:
            value = wp.max(value, -cutoff)  # a cutoff bounds both ways, as with MuJoCo
        if kind == SensorType.GEOMNORMAL:
            value = way[k]
        elif kind == SensorType.GEOMFROMTO:
            value = wp.where(k < 3, nearest.point0[k % 3], nearest.point1[k % 3])
        data[world, column + k] = value
        measured[world, column + k] = value


class ShapeDistances:
    """Measures the distances between shapes of a model.

    Args:
        model: Model of the shapes.
    """

    def __init__(self, model: Model):
        self._model = model
        device = model.device
        source, types = model.shape_source_index.numpy(), model.shape_type.numpy()
        is_mesh = np.isin(types, (int(GeoType.MESH), int(GeoType.CONVEX_MESH))) & (source >= 0)
        used = np.unique(source[is_mesh])
        self._hulls, lower, upper = make_hull_data(
            [model.meshes[index].convex_hull() for index in used.tolist()], device
        )
        shapes: Any = DistanceShapes()
        shapes.body, shapes.type = model.structure.shape_body, model.structure.shape_type
        shapes.transform, shapes.scale = model.shape_transform, model.shape_scale
        shapes.source = model.structure.shape_source_index
        hull = np.full(max(len(model.meshes), 1), -1, dtype=np.int32)
        hull[used] = np.arange(len(used))
        shapes.hull = wp.array(hull, dtype=wp.int32, device=device)
        sizes = np.linalg.norm(upper - lower, axis=1).astype(np.float32)
        shapes.hull_size = wp.array(sizes, dtype=wp.float32, device=device)
        self._shapes = shapes

    def launch(
        self,
        worlds: wp.array[int],
        count_max: int,
        table: SensorTable,
        state: State,
        world_frozen: wp.array[int],
        data: wp.array,
        measured: wp.array,
    ) -> None:
        """Write the distances that the sensors of worlds measure."""
        launch_kernel(
            measure_distance,
            dim=(worlds.size, count_max),
            inputs=[
                worlds,
                table,
                self._model.topology,
                self._shapes,
                self._hulls,
                state.body_q,
                world_frozen,
            ],
            outputs=[data, measured],
            device=self._model.device,
        )
