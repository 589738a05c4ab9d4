"""Following, pairs: contact pairs that MuJoCo knows one by one, one world per thread.

Reads   shape_material_mu, _mu_torsional, _mu_rolling, shape_margin; shape_enabled; geom_solref
Writes  pair_friction, pair_solref, pair_margin, pair_gap

Pairs that filters have to name get what MuJoCo would mix for their geoms, as `pairs.mix_materials` computes
it on the host. Of pairs that an asset brings only the switches follow.
"""

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.math.precision import kernel_module
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.attributes.pairs import Pairs, places_of_pairs
from pluriverse.solvers.mujoco.mapping.body_kernels import renew, upload
from pluriverse.solvers.mujoco.mapping.fields import FieldTable
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_fields import FAR_APART
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.shape_kernels import ShapeMaps, shape_of_code
from pluriverse.solvers.mujoco.mapping.stages import chosen_world, fields_struct, putters
from pluriverse.solvers.mujoco.mapping.values import GroupValues

_FAR_APART = wp.constant(wp.float64(FAR_APART))
# Numbers of a pair in `pair_friction`.
_FRICTION = wp.constant(5)


@wp.struct
class PairMaps:
    """Where MuJoCo's pairs come from."""

    geom1: wp.array[int]  # [npair]
    geom2: wp.array[int]  # [npair]
    # named by filters, [npair]: -1 no; 0 both geoms count; 1, 2 only this one does
    chooses: wp.array[int]
    share: wp.array[wp.float64]  # [row npair] of the first geom, where both count
    margin: wp.array[wp.float64]  # [row npair] of pairs that an asset brings
    gap: wp.array[wp.float64]  # [row npair] likewise


def make_pair_maps(group: MujocoGroup, device: Any) -> PairMaps:
    """Return the maps of a group on a device, without what only the host changes."""
    maps = PairMaps()
    maps.geom1 = upload(group.model.pair_geom1, device)
    maps.geom2 = upload(group.model.pair_geom2, device)
    return maps


def assign_pairs(maps: PairMaps, rows: ModelRows, group: MujocoGroup, device: Any) -> None:
    """Write how pairs are mixed, and the distances of those that an asset brings, into maps."""
    model = group.model
    count, shape = int(model.npair), (group.world_count, int(model.npair))
    table = FieldTable(group)
    table.put("pair_margin", np.full(shape, np.nan))
    table.put("pair_gap", np.zeros(shape))
    Pairs().put_fields(table, rows, group.plan)
    margin, gap = table.edit("pair_margin"), table.edit("pair_gap")
    chooses, share = np.full(count, -1), np.full(shape, 0.5)
    places = places_of_pairs(model) if group.plan.masks.pairs else {}
    material = GroupValues(rows, group.plan).materials
    for first, second in group.plan.masks.pairs:
        place = places[frozenset((first, second))]
        if np.isfinite(margin[:, place]).any():
            continue  # the asset says what it is
        ends = int(model.pair_geom1[place]), int(model.pair_geom2[place])
        priority = int(material.priority[ends[0]]) - int(material.priority[ends[1]])
        chooses[place] = 0 if priority == 0 else 1 if priority > 0 else 2
        weights = material.solmix[:, ends]
        total = weights.sum(axis=1)
        share[:, place] = np.where(total > 0.0, weights[:, 0] / np.where(total > 0.0, total, 1.0), 0.5)
    renew(maps, "chooses", chooses.astype(np.int32), wp.int32, device)
    for name, values in (("share", share), ("margin", np.nan_to_num(margin)), ("gap", gap)):
        renew(maps, name, values.reshape(-1), wp.float64, device)


@functools.cache
def pair_kernels(real: Any) -> SimpleNamespace:
    """Return the kernels for fields with numbers of type `real`."""
    fields_type, put = fields_struct(real), putters(real).put
    module = kernel_module("pluriverse.solvers.mujoco.mapping.pair_kernels", real)

    @wp.kernel(enable_backward=False, module=module)
    def follow_pairs(
        worlds: wp.array[int],
        chosen: wp.array[int],
        topology: Topology,
        shapes: ShapeMaps,
        maps: PairMaps,
        shape_margin: wp.array[float],
        shape_enabled: wp.array[bool],
        geom_friction: wp.array[real],  # [row geom 3]
        geom_solref: wp.array[real],  # [row geom 2]
        fields: fields_type,
    ):
        """Write the pairs of one world."""
        row = wp.tid()
        world = chosen_world(worlds, chosen, row)
        if world < 0:
            return
        count = maps.geom1.shape[0]
        geom_count = shapes.geom_shape.shape[0]
        for pair in range(count):
            entry = row * count + pair
            shape1 = shape_of_code(topology, world, shapes.geom_shape[maps.geom1[pair]])
            shape2 = shape_of_code(topology, world, shapes.geom_shape[maps.geom2[pair]])
            margin = maps.margin[entry]
            gap = maps.gap[entry]
            chooses = maps.chooses[pair]
            if chooses >= 0:
                if shapes.has_margin != 0:
                    margin = wp.float64(shape_margin[shape1]) + wp.float64(shape_margin[shape2])
                first = row * geom_count + maps.geom1[pair]
                second = row * geom_count + maps.geom2[pair]
                if chooses == 1:
                    second = first
                if chooses == 2:
                    first = second
                for k in range(_FRICTION):
                    kind = int(0)  # sliding twice, torsional, rolling twice
                    if k == 2:
                        kind = 1
                    if k > 2:
                        kind = 2
                    value = wp.max(geom_friction[3 * first + kind], geom_friction[3 * second + kind])
                    put(fields.pair_friction, _FRICTION * entry + k, wp.float64(value))
                share = maps.share[entry]
                other = wp.float64(1.0) - share
                is_time = geom_solref[2 * first] > real(0.0) and geom_solref[2 * second] > real(0.0)
                for k in range(2):
                    a = wp.float64(geom_solref[2 * first + k])
                    b = wp.float64(geom_solref[2 * second + k])
                    mixed = wp.min(a, b)
                    if is_time:
                        mixed = share * a + other * b
                    put(fields.pair_solref, 2 * entry + k, mixed)
            if not (shape_enabled[shape1] and shape_enabled[shape2]):
                margin = -_FAR_APART  # contacts are found as ever, of which none acts
                gap = _FAR_APART
            put(fields.pair_margin, entry, margin)
            put(fields.pair_gap, entry, gap)

    return SimpleNamespace(follow_pairs=follow_pairs)
