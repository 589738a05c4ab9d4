"""Fields of explicit contact pairs, one world per thread.

Reads   shape_material_mu, _mu_torsional, _mu_rolling, shape_margin; shape_enabled; geom_solref
Writes  pair_friction, pair_solref, pair_margin, pair_gap

Pairs that collision filters must list get the properties that MuJoCo would mix from their geoms. For pairs
from an asset only the switches are written.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import kernel_module
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.attributes.namespace_rows import values_of
from pluriverse.solvers.mujoco.attributes.pairs import authored_pairs, indices_of_pairs
from pluriverse.solvers.mujoco.mapping.body_kernels import assign_inplace, to_device
from pluriverse.solvers.mujoco.mapping.geoms import geom_attributes
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.shape_kernels import FAR_APART, ShapeMaps, shape_of_code
from pluriverse.solvers.mujoco.mapping.stages import field_writers, fields_struct, selected_world

_FAR_APART = wp.constant(wp.float64(FAR_APART))
# Numbers of a pair in `pair_friction`.
_FRICTION = wp.constant(5)


@wp.struct
class PairMaps:
    """Sources of MuJoCo's pairs."""

    geom1: wp.array[int]  # [npair]
    geom2: wp.array[int]  # [npair]
    # listed for filters, [npair]: -1 no; 0 both geoms count; 1, 2 only this one does
    chooses: wp.array[int]
    share: wp.array[wp.float64]  # [row npair] of the first geom, where both count
    margin: wp.array[wp.float64]  # [row npair] of pairs that an asset brings
    gap: wp.array[wp.float64]  # [row npair] likewise


def make_pair_maps(group: MujocoGroup, device: Any) -> PairMaps:
    """Return the maps of a group on a device, without the values that only the host changes."""
    maps = PairMaps()
    maps.geom1 = to_device(group.model.pair_geom1, device)
    maps.geom2 = to_device(group.model.pair_geom2, device)
    return maps


def mix_pairs(rows: ModelRows, group: MujocoGroup) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return how the properties of the geoms of each pair are mixed, by MuJoCo's rules.

    Returns:
        Which geoms count: -1 for a pair from an asset, 0 for both, 1 or 2 for only this one, shape [npair];
        the weight of the first geom, shape [row, npair]; and the mixed impedance, shape [row, npair, 5].
    """
    model, attributes = group.model, geom_attributes(rows, group.plan.geoms, group.worlds)
    chooses = np.full(int(model.npair), -1)
    share = np.full((group.world_count, int(model.npair)), 0.5)
    solimp = np.array(group.value("pair_solimp"))
    indices = indices_of_pairs(model)
    named = {indices[frozenset(pair)] for pair in group.plan.masks.pairs}
    for pair in sorted(named - set(authored_pairs(rows, group)[1])):
        ends = int(model.pair_geom1[pair]), int(model.pair_geom2[pair])
        priority = int(attributes["priority"][ends[0]]) - int(attributes["priority"][ends[1]])
        chooses[pair] = 0 if priority == 0 else 1 if priority > 0 else 2
        weights = attributes["solmix"][:, ends]
        total = weights.sum(axis=1)
        share[:, pair] = np.where(total > 0.0, weights[:, 0] / np.where(total > 0.0, total, 1.0), 0.5)
        first = {0: share[:, pair, None], 1: 1.0, 2: 0.0}[int(chooses[pair])]
        impedance = attributes["solimp"][:, ends]
        solimp[:, pair] = first * impedance[:, 0] + (1.0 - first) * impedance[:, 1]
    return chooses, share, solimp


def assign_pairs(maps: PairMaps, rows: ModelRows, group: MujocoGroup, device: Any) -> None:
    """Write how pairs are mixed, and the distances of pairs from assets, into maps."""
    chooses, share, _ = mix_pairs(rows, group)
    margin, gap = np.zeros_like(share), np.zeros_like(share)
    own, places = authored_pairs(rows, group)
    if places:
        margin[:, places], gap[:, places] = (values_of(rows, f"pair_{n}", own) for n in ("margin", "gap"))
    assign_inplace(maps, "chooses", chooses.astype(np.int32), wp.int32, device)
    for name, values in (("share", share), ("margin", margin), ("gap", gap)):
        assign_inplace(maps, name, values.reshape(-1), wp.float64, device)


@made_once
def pair_kernels(real: Any) -> SimpleNamespace:
    """Return the kernels for fields with numbers of type `real`."""
    fields_type, write = fields_struct(real), field_writers(real).write
    module = kernel_module("pluriverse.solvers.mujoco.mapping.pair_kernels", real)

    @wp.kernel(enable_backward=False, module=module)
    def update_pairs(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        shapes: ShapeMaps,
        maps: PairMaps,
        shape_margin: wp.array[float],  # [shape] m
        shape_enabled: wp.array[bool],  # [shape]
        geom_friction: wp.array[real],  # [row geom 3]
        geom_solref: wp.array[real],  # [row geom 2]
        fields: fields_type,
    ):
        """Write the pairs of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
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
                    write(fields.pair_friction, _FRICTION * entry + k, wp.float64(value))
                share = maps.share[entry]
                other = wp.float64(1.0) - share
                is_time = geom_solref[2 * first] > real(0.0) and geom_solref[2 * second] > real(0.0)
                for k in range(2):
                    a = wp.float64(geom_solref[2 * first + k])
                    b = wp.float64(geom_solref[2 * second + k])
                    mixed = wp.min(a, b)
                    if is_time:
                        mixed = share * a + other * b
                    write(fields.pair_solref, 2 * entry + k, mixed)
            if not (shape_enabled[shape1] and shape_enabled[shape2]):
                margin = -_FAR_APART  # contacts are found as ever, of which none acts
                gap = _FAR_APART
            write(fields.pair_margin, entry, margin)
            write(fields.pair_gap, entry, gap)

    return SimpleNamespace(update_pairs=update_pairs)
