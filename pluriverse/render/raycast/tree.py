"""Tree stage: place the shapes of each world and rebuild the tree of their boxes.

Reads   the shapes of the model; body_q of the state
Writes  rotation, position and bounds of shapes; the trees of the worlds, and of what they share

The tree is rebuilt, not refitted: shapes are sorted along a Morton curve [Morton1966], which is fast since
the order of the last step is nearly right. So the tree is as good after a thousand steps as at first. Hits do
not depend on it.
"""

import warp as wp

from pluriverse.collision.shape_state import half_extents, rotation_of
from pluriverse.launch import launch_kernel
from pluriverse.render.raycast.scene import PlacedShape, RayScene, SceneArrays
from pluriverse.types import GeoType

# Enlargement of boxes, relative to the size of the shape and to its distance from the origin: a few roundings
# of single precision, so that no ray that hits a shape misses its box.
BOX_INFLATION = wp.constant(1.0e-5)
ROUNDING = wp.constant(1.0e-6)
FAR = wp.constant(1.0e30)
# Cells of the Morton curve along each axis: 10 bits, so that three of them fit into 32.
CELLS = wp.constant(1023.0)
HIDDEN_CODE = wp.constant(2147483647)


@wp.func
def surface_of(scene: RayScene, shape: int) -> int:
    """Return the surface of a meshed shape, -1 for others."""
    result = int(-1)
    source = scene.shape_source_index[shape]
    if source >= 0:
        if scene.shape_type[shape] == GeoType.CONVEX_MESH:
            result = scene.hull_surface[source]
        else:
            result = scene.mesh_surface[source]
    return result


@wp.func
def spread_bits(value: int) -> int:
    """Return the 10 lowest bits with two zeros between each and the next."""
    x = value & 1023
    x = (x | (x << 16)) & 50331903  # 0x030000FF
    x = (x | (x << 8)) & 50393103  # 0x0300F00F
    x = (x | (x << 4)) & 51130563  # 0x030C30C3
    x = (x | (x << 2)) & 153391689  # 0x09249249
    return x


@wp.func
def place_shape(scene: RayScene, shape: int, body_q: wp.array[wp.transform]) -> bool:
    """Write the pose of a shape, and return whether it is visible."""
    local = scene.shape_transform[shape]
    position = wp.transform_get_translation(local)
    q = wp.transform_get_rotation(local)
    body = scene.shape_body[shape]
    if body >= 0:
        pose = body_q[body]
        body_rotation = rotation_of(wp.transform_get_rotation(pose))
        position = wp.transform_get_translation(pose) + body_rotation * position
        q = wp.transform_get_rotation(pose) * q
    rotation = rotation_of(q)
    scene.shape_rotation[shape] = rotation
    scene.shape_position[shape] = position
    placed = PlacedShape()
    placed.rotation = rotation
    placed.position = position
    placed.size = scene.shape_scale[shape]
    placed.kind = scene.shape_type[shape]
    surface = surface_of(scene, shape)
    if surface >= 0:
        placed.mesh = scene.surface_id[surface]
    scene.placed[shape] = placed
    visible = (scene.shape_flags[shape] & scene.visible_flags) != 0
    if scene.only_enabled == 1 and not scene.shape_enabled[shape]:
        visible = False
    # Written so that shapes at NaN are invisible.
    size = wp.abs(position[0]) + wp.abs(position[1]) + wp.abs(position[2])
    if not (size < 1.0e9 and wp.dot(q, q) > 1.0e-6 and wp.dot(q, q) < 1.0e6):
        visible = False
    scene.shape_visible[shape] = wp.where(visible, 1, 0)
    return visible


@wp.func
def bound_shape(scene: RayScene, shape: int, entry: int):
    """Write the box around a placed shape."""
    shape_type = scene.shape_type[shape]
    rotation = scene.shape_rotation[shape]
    centre = scene.shape_position[shape]
    size = scene.shape_scale[shape]
    extent = size
    surface = surface_of(scene, shape)
    if surface >= 0:
        lower = wp.cw_mul(scene.surface_lower[surface], size)
        upper = wp.cw_mul(scene.surface_upper[surface], size)
        centre += rotation * (0.5 * (lower + upper))
        extent = 0.5 * wp.vec3(
            wp.abs(upper[0] - lower[0]), wp.abs(upper[1] - lower[1]), wp.abs(upper[2] - lower[2])
        )
        shape_type = GeoType.BOX
    elif shape_type == GeoType.PLANE:
        extent = wp.vec3(0.5 * size[0], 0.5 * size[1], 0.0)
        shape_type = GeoType.BOX
    half = half_extents(shape_type, extent, rotation)
    widest = wp.max(half[0], wp.max(half[1], half[2]))
    away = wp.abs(centre[0]) + wp.abs(centre[1]) + wp.abs(centre[2])
    inflation = BOX_INFLATION * widest + ROUNDING * away
    half += wp.vec3(inflation, inflation, inflation)
    scene.entry_lower[entry] = centre - half
    scene.entry_upper[entry] = centre + half


@wp.func
def make_tree(scene: RayScene, group: int, body_q: wp.array[wp.transform]):
    """Place the shapes of a group and build its tree."""
    first = scene.entry_start[group]
    end = scene.entry_start[group + 1]
    for plane in range(scene.plane_start[group], scene.plane_start[group + 1]):
        place_shape(scene, scene.plane_shape[plane], body_q)
    lower = wp.vec3(FAR, FAR, FAR)
    upper = wp.vec3(-FAR, -FAR, -FAR)
    for entry in range(first, end):
        shape = scene.entry_shape[entry]
        if place_shape(scene, shape, body_q):
            bound_shape(scene, shape, entry)
            centre = 0.5 * (scene.entry_lower[entry] + scene.entry_upper[entry])
            lower = wp.min(lower, centre)
            upper = wp.max(upper, centre)
    for entry in range(first, end):
        code = int(HIDDEN_CODE)
        if scene.shape_visible[scene.entry_shape[entry]] == 1:
            centre = 0.5 * (scene.entry_lower[entry] + scene.entry_upper[entry])
            code = int(0)
            for axis in range(3):
                span = wp.max(upper[axis] - lower[axis], 1.0e-9)
                cell = int(CELLS * wp.clamp((centre[axis] - lower[axis]) / span, 0.0, 1.0))
                code = code | (spread_bits(cell) << axis)
        scene.entry_code[entry] = code
    # Insertion sort, starting from the order of the previous step, which has changed little.
    for position in range(first, end):
        entry = scene.entry_order[position]
        code = scene.entry_code[entry]
        hole = int(position)
        going = bool(True)
        while going:
            going = False
            if hole > first:
                before = scene.entry_order[hole - 1]
                if scene.entry_code[before] > code:
                    scene.entry_order[hole] = before
                    hole -= 1
                    going = True
        scene.entry_order[hole] = entry
    node = scene.node_start[group]
    leaves = (scene.node_start[group + 1] - node) / 2
    for leaf in range(leaves):
        box_lower = wp.vec3(FAR, FAR, FAR)
        box_upper = wp.vec3(-FAR, -FAR, -FAR)
        if leaf < end - first:
            entry = scene.entry_order[first + leaf]
            if scene.entry_code[entry] != HIDDEN_CODE:
                box_lower = scene.entry_lower[entry]
                box_upper = scene.entry_upper[entry]
        scene.node_lower[node + leaves + leaf] = box_lower
        scene.node_upper[node + leaves + leaf] = box_upper
    for step in range(leaves - 1):
        parent = leaves - 1 - step
        left = node + 2 * parent
        scene.node_lower[node + parent] = wp.min(scene.node_lower[left], scene.node_lower[left + 1])
        scene.node_upper[node + parent] = wp.max(scene.node_upper[left], scene.node_upper[left + 1])


@wp.kernel(enable_backward=False, module="pluriverse.render.raycast.tree")
def make_world_tree(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    mask: wp.array[bool],  # [world] which of them; empty: all
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    # in and out
    scene: RayScene,
):
    """Build the tree of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0 or world >= scene.node_start.shape[0] - 2:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    make_tree(scene, world, body_q)


@wp.kernel(enable_backward=False, module="pluriverse.render.raycast.tree")
def make_shared_tree(
    group: int,
    body_q: wp.array[wp.transform],  # [body] m, xyzw
    # in and out
    scene: RayScene,
):
    """Build the tree of the global shapes."""
    make_tree(scene, group, body_q)


def make_world_trees(
    worlds: wp.array[int], mask: wp.array[bool], arrays: SceneArrays, body_q: wp.array[wp.transform]
) -> None:
    """Place the shapes of worlds, and build the trees of these worlds."""
    launch_kernel(
        make_world_tree,
        dim=worlds.size,
        inputs=[worlds, mask, body_q, arrays.scene],
        device=body_q.device if body_q.size else arrays.scene.shape_type.device,
    )


def make_shared_trees(arrays: SceneArrays, body_q: wp.array[wp.transform]) -> None:
    """Place the global shapes, and build their tree. They belong to no moving body."""
    launch_kernel(
        make_shared_tree,
        dim=1,
        inputs=[arrays.group_count - 1, body_q, arrays.scene],
        device=arrays.scene.shape_type.device,
    )
