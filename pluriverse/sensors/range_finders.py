"""Range finding stage: the values of sensors that cast one ray each.

Reads   body_q; the placed shapes of a ray scene
Writes  data

A ray starts at the frame's origin along its z axis, and hits every shape that is drawn or collides, except
those of its own body. Without a hit within range the value is -1, as in MuJoCo.
"""

import warp as wp

from pluriverse.builder.sensors import SensorType
from pluriverse.launch import launch_kernel
from pluriverse.model import State
from pluriverse.render import RayCaster
from pluriverse.render.raycast.scene import RayScene
from pluriverse.render.raycast.trace import Excluded, trace_world
from pluriverse.render.raycast.tree import make_world_trees
from pluriverse.sensors.measure import SensorTable, frame_pose, sensor_of

# Range of a ray [m]; the ray caster takes lengths of up to 1e30 for none.
MAX_RANGE = wp.constant(1.0e20)


@wp.kernel(enable_backward=False, module="pluriverse.sensors.range_finders")
def find_range(
    worlds: wp.array[int],  # [slot]
    table: SensorTable,
    scene: RayScene,
    body_root: wp.array[int],  # [body]
    body_q: wp.array[wp.transform],  # [body]
    world_frozen: wp.array[int],  # [world]
    # out
    data: wp.array2d[float],  # [world, column]
    measured: wp.array2d[float],  # [world, column]
):
    """Measure one range finder of one world."""
    slot, index = wp.tid()
    world = worlds[slot]
    sensor = sensor_of(table, world_frozen, world, index)
    if sensor < 0:
        return
    if table.type[sensor] != SensorType.RANGEFINDER:
        return
    body = table.body[sensor]
    pose = frame_pose(body, table.xform[sensor], body_q)
    excluded = Excluded()
    excluded.body = -1
    excluded.root = -1
    if body >= 0:
        excluded.body = body
    way = wp.quat_rotate(wp.transform_get_rotation(pose), wp.vec3(0.0, 0.0, 1.0))
    start = wp.transform_get_translation(pose)
    hit = trace_world(scene, world, start, wp.normalize(way), MAX_RANGE, excluded, body_root)
    distance = float(-1.0)
    if hit.shape >= 0:
        distance = hit.distance
        if table.cutoff[sensor] > 0.0:
            distance = wp.min(distance, table.cutoff[sensor])
    column = table.column[sensor]
    data[world, column] = distance
    measured[world, column] = distance


def find_ranges(
    worlds: wp.array[int],
    count_max: int,
    caster: RayCaster,
    table: SensorTable,
    state: State,
    world_frozen: wp.array[int],
    nothing: wp.array[bool],
    data: wp.array,
    measured: wp.array,
) -> None:
    """Place the shapes of worlds, and write what their range finders measure."""
    make_world_trees(worlds, nothing, caster.arrays, state.body_q)
    launch_kernel(
        find_range,
        dim=(worlds.size, count_max),
        inputs=[worlds, table, caster.arrays.scene, caster.body_root, state.body_q, world_frozen],
        outputs=[data, measured],
        device=caster.model.device,
    )
