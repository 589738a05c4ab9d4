"""Collider of hydroelastic shapes: the pressure on the patch between two shapes as up to eight contacts.

Reads   ShapeModel, ShapeState; shape_flags and shape_material_kh of the model
Writes  contacts with a stiffness of their own, `rigid_contact_stiffness`

A shape that is not marked as hydroelastic is rigid here: its own surface is the patch. Each contact has the
force, the pressure centre and the stiffness of a part of the patch. At rest its elastic force is

    stiffness * depth = pressure * area,

so the two points of the contact lie that depth apart, on either side of the pressure centre
([Masterjohn2022]).
"""

from typing import Any

import warp as wp

from pluriverse.collision.contact_output import KNOWN, ContactOutput, store_contact
from pluriverse.collision.hull import HullData
from pluriverse.collision.hydroelastic.convex_field import direction_of
from pluriverse.collision.hydroelastic.convex_patch import clear_bins, find_patch
from pluriverse.collision.hydroelastic.patch_pair import SECTOR_COUNT, PatchPair, levels_of
from pluriverse.collision.shape_pair import ShapePair, make_pair_kernel
from pluriverse.collision.shape_state import ShapeModel, hull_of
from pluriverse.launch import launch_kernel
from pluriverse.model import Model
from pluriverse.types import GeoType, ShapeFlags

# Half extents of the box around a half space [m].
ENDLESS = wp.constant(1.0e15)
# A bin with less than this fraction of the force joins the next one.
LIGHT_BIN = wp.constant(1.0e-3)
# A sum of forces below this fraction of their magnitudes is that of a closed surface: there is no patch.
BALANCED = wp.constant(0.05)


@wp.struct
class PressureModel:
    """What hydroelastic contact reads of the model, and where the stiffness of contacts goes."""

    shape_flags: wp.array[int]
    """`ShapeFlags`, shape [shape]."""
    shape_kh: wp.array[float]
    """Pressure per depth [N/m³], shape [shape]."""
    stiffness: wp.array[float]
    """Stiffness of each contact [N/m], 0 where it comes from the materials, shape [slot]."""


@wp.struct
class PatchData:
    """What this collider needs besides the shapes."""

    hulls: HullData
    """Convex hulls."""
    pressures: PressureModel
    """Pressure fields."""


@wp.func
def compliance_of(pressures: PressureModel, shape: int) -> float:
    """Return the depth per pressure [m³/N] of a shape: 0 if it is rigid, infinite without a stiffness."""
    compliance = float(0.0)
    if (pressures.shape_flags[shape] & ShapeFlags.HYDROELASTIC) != 0:
        kh = pressures.shape_kh[shape]
        compliance = wp.where(kh > 0.0, 1.0 / kh, wp.inf)
    return compliance


@wp.func
def half_box(model: ShapeModel, shape: int, size: wp.vec3) -> wp.vec3:
    """Return the half extents [m] of the box around a shape, in its frame."""
    shape_type = model.shape_type[shape]
    half = size
    if shape_type == GeoType.SPHERE:
        half = wp.vec3(size[0], size[0], size[0])
    elif shape_type == GeoType.CAPSULE:
        half = wp.vec3(size[0], size[0], size[0] + size[1])
    elif shape_type == GeoType.CYLINDER or shape_type == GeoType.CONE:
        half = wp.vec3(size[0], size[0], size[1])
    elif shape_type == GeoType.PLANE:
        half = wp.vec3(ENDLESS, ENDLESS, ENDLESS)
    elif shape_type == GeoType.CONVEX_MESH:
        hull = hull_of(model, shape)
        half = wp.abs(0.5 * wp.cw_mul(size, model.hull_upper[hull] - model.hull_lower[hull]))
    elif shape_type == GeoType.MESH:
        mesh = model.shape_source_index[shape]
        half = wp.abs(0.5 * wp.cw_mul(size, model.mesh_upper[mesh] - model.mesh_lower[mesh]))
    return half


@wp.func
def box_middle(model: ShapeModel, shape: int, size: wp.vec3) -> wp.vec3:
    """Return the middle of the box around a shape [m], in its frame."""
    middle = wp.vec3(0.0, 0.0, 0.0)
    if model.shape_type[shape] == GeoType.CONVEX_MESH:
        hull = hull_of(model, shape)
        middle = 0.5 * wp.cw_mul(size, model.hull_upper[hull] + model.hull_lower[hull])
    elif model.shape_type[shape] == GeoType.MESH:
        mesh = model.shape_source_index[shape]
        middle = 0.5 * wp.cw_mul(size, model.mesh_upper[mesh] + model.mesh_lower[mesh])
    return middle


@wp.func
def make_patch_pair(model: ShapeModel, pressures: PressureModel, shapes: ShapePair) -> PatchPair:
    """Return two shapes as `convex_patch` takes them."""
    pair = PatchPair()
    pair.type0 = model.shape_type[shapes.shape0]
    pair.type1 = model.shape_type[shapes.shape1]
    pair.size0 = shapes.size0
    pair.size1 = shapes.size1
    pair.hull0 = hull_of(model, shapes.shape0)
    pair.hull1 = hull_of(model, shapes.shape1)
    pair.margin0 = model.shape_margin[shapes.shape0]
    pair.margin1 = model.shape_margin[shapes.shape1]
    pair.compliance0 = compliance_of(pressures, shapes.shape0)
    pair.compliance1 = compliance_of(pressures, shapes.shape1)
    pair.rotation = shapes.rotation
    pair.middle = box_middle(model, shapes.shape1, shapes.size1)
    pair.position = shapes.position + shapes.rotation * pair.middle
    pair.middle0 = box_middle(model, shapes.shape0, shapes.size0)
    thick0 = wp.vec3(pair.margin0, pair.margin0, pair.margin0)
    thick1 = wp.vec3(pair.margin1, pair.margin1, pair.margin1)
    pair.half0 = half_box(model, shapes.shape0, shapes.size0) + thick0
    pair.half1 = half_box(model, shapes.shape1, shapes.size1) + thick1
    pair.extent = wp.length(pair.half1)
    return pair


@wp.func
def is_contained(pair: PatchPair, total: float, weight: wp.array[wp.vec2]) -> bool:
    """Return whether a compliant shape meets nothing of the surface of a rigid one, maybe being inside."""
    gross = float(0.0)
    for sector in range(int(SECTOR_COUNT)):
        gross += weight[sector][0]
    return pair.compliance0 == 0.0 and total <= BALANCED * gross


@wp.func
def push_out(
    pair: PatchPair,
    level: wp.vec4,
    force: wp.array[wp.vec3],
    moment: wp.array[wp.vec3],
    weight: wp.array[wp.vec2],
) -> float:
    """Push a shape out of another from its middle, by the stiffness of a patch of its own size.

    Args:
        pair: The shapes.
        level: Gradient and level of the first shape in the middle of the second.
        force: Force of each bin.
        moment: Moment of each bin.
        weight: Weight and stiffness of each bin.

    Returns:
        The force [N].
    """
    area = pair.extent * pair.extent
    compliance = pair.compliance0 + pair.compliance1
    clear_bins(force, moment, weight)
    total = -level[3] * area / compliance
    force[0] = total * wp.normalize(direction_of(level))
    weight[0] = wp.vec2(total, area / compliance)
    return total


@wp.func
def store_patch(
    output: ContactOutput,
    model: ShapeModel,
    pressures: PressureModel,
    shapes: ShapePair,
    pair: PatchPair,
    force: wp.array[wp.vec3],
    moment: wp.array[wp.vec3],
    weight: wp.array[wp.vec2],
    total: float,
    found: int,
) -> int:
    """Add a contact for each bin that has a share of the force; return the number of contacts found."""
    inverse = wp.transpose(shapes.rotation)
    carried_force = wp.vec3()
    carried_moment = wp.vec3()
    carried = wp.vec2()
    # `int` keeps Warp from writing the loop out, which costs compilers time.
    for sector in range(int(SECTOR_COUNT)):
        carried_force += force[sector]
        carried_moment += moment[sector]
        carried += weight[sector]
        size = wp.length(carried_force)
        is_last = sector + 1 == SECTOR_COUNT
        if size > LIGHT_BIN * total or (is_last and size > 0.0):
            normal = carried_force / size
            # At least so stiff that the force stands for no more depth than the size of the shape.
            stiffness = wp.max(carried[1], size / pair.extent)
            depth = size / stiffness
            apart = pair.margin0 + pair.margin1 - depth
            point = carried_moment / carried[0]
            local0 = point + pair.position - 0.5 * apart * normal
            local1 = inverse * (point + 0.5 * apart * normal) + pair.middle
            slot = store_contact(
                output,
                model,
                shapes.world,
                found,
                shapes.shape0,
                shapes.shape1,
                local0,
                local1,
                shapes.rotation0 * normal,
                apart,
            )
            if slot >= 0:
                pressures.stiffness[slot] = stiffness
            if slot != KNOWN:
                found += 1
            carried_force = wp.vec3()
            carried_moment = wp.vec3()
            carried = wp.vec2()
    return found


@wp.func
def collide_hydroelastic(
    output: ContactOutput,
    model: ShapeModel,
    data: PatchData,
    shapes: ShapePair,
    found: int,
) -> int:
    """Add the contacts of the patch of two shapes; a half space comes first."""
    hulls = data.hulls
    pressures = data.pressures
    pair = make_patch_pair(model, pressures, shapes)
    compliance = pair.compliance0 + pair.compliance1
    if not (compliance > 0.0 and compliance < wp.inf):
        return found
    force = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec3)
    moment = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec3)
    weight = wp.zeros(shape=SECTOR_COUNT, dtype=wp.vec2)
    total = find_patch(pair, hulls, force, moment, weight)
    if is_contained(pair, total, weight):
        both = levels_of(pair, hulls, wp.vec3(0.0, 0.0, 0.0))
        if both.first[3] < 0.0:
            total = push_out(pair, both.first, force, moment, weight)
    return store_patch(output, model, pressures, shapes, pair, force, moment, weight, total, found)


collide_hydroelastic_pairs = make_pair_kernel(
    "hydroelastic", collide_hydroelastic, data_type=PatchData, is_symmetric=True
)


@wp.kernel(enable_backward=False, module="pluriverse.collision.hydroelastic")
def clear_world_stiffness(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    start: wp.array[int],  # [world + 1]
    # out
    stiffness: wp.array[float],  # [slot] N/m
):
    """Leave the stiffness of all contacts of one world to the materials."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    for slot in range(start[world], start[world + 1]):
        stiffness[slot] = 0.0


def clear_stiffness(
    worlds: wp.array[int], output: ContactOutput, stiffness: wp.array[float], device: Any
) -> None:
    """Leave the stiffness [N/m] of all contacts of `worlds` to the materials, shape [slot]."""
    launch_kernel(
        clear_world_stiffness,
        dim=worlds.size,
        inputs=[worlds, output.start],
        outputs=[stiffness],
        device=device,
    )


def make_pressure_model(model: Model, stiffness: wp.array[float]) -> PressureModel:
    """Return what kernels read of the shapes of `model`, and where they write the stiffness of contacts."""
    pressures = PressureModel()
    pressures.shape_flags = model.structure.shape_flags
    pressures.shape_kh = model.shape_material_kh
    pressures.stiffness = stiffness
    return pressures
