"""Fields of shapes: poses, sizes, meshes and materials of geoms and sites, one world per thread.

Reads   shape_transform, shape_scale, shape_source_index; shape_material_*, shape_margin; shape_enabled
Writes  geom_pos, _quat, _size, _rbound, _aabb, _dataid; geom_friction, _solref, _margin, body_margin;
        geom_contype, _conaffinity; site_pos, _quat

A plane of finite size is a box below it; MuJoCo moves the frame of a mesh to its centre, along its principal
axes. Contact gains become `solref` as `solref` derives it, for a mass of 1 kg.
"""

from types import SimpleNamespace
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import made_once
from pluriverse.math.precision import kernel_module
from pluriverse.model import Topology
from pluriverse.solvers.mujoco.exchange.contact_mixing import mixing_functions
from pluriverse.solvers.mujoco.mapping import geoms
from pluriverse.solvers.mujoco.mapping.body_kernels import assign_inplace, to_device
from pluriverse.solvers.mujoco.mapping.frames import as_xyzw
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan
from pluriverse.solvers.mujoco.mapping.layout import FieldLayout
from pluriverse.solvers.mujoco.mapping.mesh_assets import MeshAsset, mesh_box
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.solref import softness_of_solimp
from pluriverse.solvers.mujoco.mapping.stages import (
    composed,
    field_writers,
    fields_struct,
    rotated,
    selected_world,
    widen,
    widen_pose,
)

_PLANE, _HFIELD, _SPHERE, _CAPSULE, _ELLIPSOID, _CYLINDER, _BOX, _MESH = (
    wp.constant(kind)
    for kind in (
        geoms.PLANE,
        geoms.HFIELD,
        geoms.SPHERE,
        geoms.CAPSULE,
        geoms.ELLIPSOID,
        geoms.CYLINDER,
        geoms.BOX,
        geoms.MESH,
    )
)
# Margin [m] with which no two geoms overlap.
FAR_APART = 1e10
_FAR_APART = wp.constant(wp.float64(FAR_APART))
_GRID = wp.constant(wp.float64(geoms.PLANE_GRID))
_HALF = wp.constant(wp.float64(0.5))

solref_of_gains = mixing_functions(wp.float64).solref_of_gains


@wp.struct
class ShapeMaps:
    """Sources of MuJoCo's geoms and sites."""

    geom_shape: wp.array[int]  # [ngeom] world-local, or -1 - flat index of a shared one
    geom_kind: wp.array[int]  # [ngeom]
    geom_slab: wp.array[int]  # [ngeom] whether it is a plane of finite size
    geom_body: wp.array[int]  # [ngeom] MuJoCo's body
    contype: wp.array[int]  # [ngeom]
    conaffinity: wp.array[int]  # [ngeom]
    has_margin: int  # 0: MuJoCo gets none
    body_count: int
    site_shape: wp.array[int]  # [site of a shape]
    site: wp.array[int]  # [site of a shape] MuJoCo's
    site_count: int
    gain_first: int  # place of the first geom of the group among those of all worlds
    is_raw: wp.array[int]  # [row geom] whether its `solref` stays what the asset says
    softness: wp.array[float]  # [row geom] 1 - dmax of its `solimp`
    # meshes: those of shapes with source s are asset_start[s] to [s + 1]; cones come last
    asset_start: wp.array[int]
    asset_mesh: wp.array[int]  # MuJoCo's mesh
    asset_scale: wp.array[wp.vec3]
    asset_pose: wp.array[wp.transformd]  # of the principal axes in the frame of the shape
    asset_centre: wp.array[wp.vec3d]  # of its box, in its principal axes
    asset_half: wp.array[wp.vec3d]  # half extents of its box
    # geoms with their own mesh, whose size changes: a mesh by its vertices and faces in its compiled size
    asset_geom: wp.array[int]  # -1: of any geom of this size
    asset_base: wp.array[wp.vec3d]  # extent along each axis, of meshes 1 if not scaled
    asset_is_cone: wp.array[int]
    asset_vertex: wp.array[int]  # first vertex
    asset_vertex_count: wp.array[int]
    asset_face: wp.array[int]  # first face
    asset_face_count: wp.array[int]
    vertex: wp.array[wp.vec3]  # [vertex] m, principal axes
    face_normal: wp.array[wp.vec3d]  # [face] principal axes
    field_lift: wp.array[float]  # [mesh] least height of height fields


def make_shape_maps(plan: GroupPlan, layout: FieldLayout, device: Any) -> ShapeMaps:
    """Return the maps of a group on a device, without those of meshes and materials."""
    maps = ShapeMaps()
    maps.body_count, maps.site_count = len(plan.structure.bodies), layout.site_count
    for name, values in {
        "geom_shape": plan.geoms.shape,
        "geom_kind": plan.geoms.kind,
        "geom_slab": plan.geoms.is_slab,
        "geom_body": plan.geoms.body,
        "contype": plan.masks.contype,
        "conaffinity": plan.masks.conaffinity,
        "site_shape": layout.site_shape,
        "site": layout.site,
    }.items():
        setattr(maps, name, to_device(values, device))
    return maps


def assign_height_fields(maps: ShapeMaps, rows: ModelRows) -> None:
    """Write the least heights of height fields into maps, and no mesh for any geom."""
    device, meshes = rows.model.device, rows.model.meshes
    maps.asset_start = to_device(np.zeros(len(meshes) + 2), device)
    lift = np.array([getattr(mesh, "min_z", 0.0) for mesh in meshes], dtype=np.float32)
    maps.field_lift = wp.array(lift, dtype=wp.float32, device=device)


def assign_assets(maps: ShapeMaps, rows: ModelRows, group: MujocoGroup, assets: list[MeshAsset]) -> None:
    """Write the meshes that geoms may have into maps."""
    device, model = rows.model.device, group.model
    last = len(rows.model.meshes)
    order = sorted(assets, key=lambda asset: asset.source if asset.source >= 0 else last)
    sources = np.array([asset.source if asset.source >= 0 else last for asset in order], dtype=np.int64)
    maps.asset_start = to_device(np.searchsorted(sources, np.arange(last + 2)), device)
    ids = np.array([model.mesh(asset.name).id for asset in order], dtype=np.int64)
    maps.asset_mesh = to_device(ids, device)
    scale = np.array([asset.scale for asset in order], dtype=np.float32).reshape(-1, 3)
    maps.asset_scale = wp.array(scale, dtype=wp.vec3, device=device)
    pose, centre, half = np.zeros((len(ids), 7)), np.zeros((len(ids), 3)), np.zeros((len(ids), 3))
    for index, mesh in enumerate(ids.tolist()):
        pose[index] = np.concatenate([model.mesh_pos[mesh], as_xyzw(model.mesh_quat[mesh])])
        centre[index], half[index] = mesh_box(model, mesh)
    maps.asset_pose = wp.array(pose, dtype=wp.transformd, device=device)
    maps.asset_centre = wp.array(centre, dtype=wp.vec3d, device=device)
    maps.asset_half = wp.array(half, dtype=wp.vec3d, device=device)
    cone = np.array([asset.source < 0 for asset in order], dtype=bool)
    base = np.where(cone[:, None], scale[:, [0, 0, 1]], scale).astype(np.float64)
    maps.asset_base = wp.array(base, dtype=wp.vec3d, device=device)
    for name, values in {
        "asset_geom": [asset.geom for asset in order],
        "asset_is_cone": cone,
        "asset_vertex": model.mesh_vertadr[ids],
        "asset_vertex_count": model.mesh_vertnum[ids],
        "asset_face": model.mesh_polyadr[ids],
        "asset_face_count": model.mesh_polynum[ids],
    }.items():
        setattr(maps, name, to_device(values, device))
    maps.vertex = wp.array(model.mesh_vert, dtype=wp.vec3, device=device)
    maps.face_normal = wp.array(model.mesh_polynormal, dtype=wp.vec3d, device=device)


def assign_materials(maps: ShapeMaps, rows: ModelRows, plan: GroupPlan, *, margins: bool) -> None:
    """Write the modes that determine the `solref` of geoms, from custom attributes, into maps."""
    maps.has_margin = int(margins)
    attributes, device = geoms.geom_attributes(rows, plan.geoms, plan.worlds), rows.model.device
    assign_inplace(maps, "is_raw", attributes["is_authored"].reshape(-1).astype(np.int32), wp.int32, device)
    softness = softness_of_solimp(attributes["solimp"]).reshape(-1).astype(np.float32)
    assign_inplace(maps, "softness", softness, wp.float32, device)


@wp.func
def shape_of_code(topology: Topology, world: int, code: int) -> int:
    """Return the flat index of a world-local or global shape."""
    if code >= 0:
        return topology.world_shape[world] + code
    return -1 - code


@wp.func
def find_asset(maps: ShapeMaps, geom: int, source: int, scale: wp.vec3) -> int:
    """Return the asset of a geom's own mesh, or of a mesh of this size; -1 if there is none."""
    bucket = source
    if source < 0:
        bucket = maps.asset_start.shape[0] - 2
    for asset in range(maps.asset_start[bucket], maps.asset_start[bucket + 1]):
        if maps.asset_geom[asset] == geom:
            return asset
        if maps.asset_geom[asset] < 0 and maps.asset_scale[asset] == scale:
            return asset
    return -1


@made_once
def shape_kernels(real: Any) -> SimpleNamespace:
    """Return the kernels for fields with numbers of type `real`."""
    fields_type, to = fields_struct(real), field_writers(real)
    write, write_vec3, write_quat = to.write, to.write_vec3, to.write_quat
    module = kernel_module("pluriverse.solvers.mujoco.mapping.shape_kernels", real)

    @wp.func
    def resize_mesh(maps: ShapeMaps, asset: int, row: int, scale: wp.vec3, fields: fields_type):
        """Write vertices and normals of a mesh in another size; return centre and half extents of its box.

        Its frame in the shape stays, so vertices move as S x does in the axes of the shape, and normals
        with the inverse of S.
        """
        size = widen(scale)
        if maps.asset_is_cone[asset] != 0:
            size = wp.vec3d(size[0], size[0], size[1])
        factor = wp.cw_div(size, maps.asset_base[asset])
        position = wp.transform_get_translation(maps.asset_pose[asset])
        rotation = wp.transform_get_rotation(maps.asset_pose[asset])
        back = wp.quat_inverse(rotation)
        first = maps.asset_vertex[asset]
        lower = wp.vec3d()
        upper = wp.vec3d()
        for index in range(first, first + maps.asset_vertex_count[asset]):
            point = wp.cw_mul(factor, rotated(rotation, widen(maps.vertex[index])) + position)
            moved = rotated(back, point - position)
            if index == first:
                lower = moved
                upper = moved
            lower = wp.min(lower, moved)
            upper = wp.max(upper, moved)
            entry = 3 * (row * maps.vertex.shape[0] + index)
            if entry < fields.mesh_vert.shape[0]:
                for k in range(3):
                    fields.mesh_vert[entry + k] = wp.float32(moved[k])
        face = maps.asset_face[asset]
        for index in range(face, face + maps.asset_face_count[asset]):
            normal = wp.normalize(wp.cw_div(rotated(rotation, maps.face_normal[index]), factor))
            write_vec3(fields.mesh_polynormal, row * maps.face_normal.shape[0] + index, rotated(back, normal))
        return wp.float64(0.5) * (lower + upper), wp.float64(0.5) * (upper - lower)

    @wp.kernel(enable_backward=False, module=module)
    def update_placement(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: ShapeMaps,
        shape_transform: wp.array[wp.transform],  # [shape] m, xyzw, body frame
        shape_scale: wp.array[wp.vec3],  # [shape] m, of meshes 1
        shape_source_index: wp.array[int],  # [shape]
        fields: fields_type,
    ):
        """Write poses, sizes and meshes of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        count = maps.geom_shape.shape[0]
        for geom in range(count):
            entry = row * count + geom
            shape = shape_of_code(topology, world, maps.geom_shape[geom])
            kind = maps.geom_kind[geom]
            scale = shape_scale[shape]
            size = widen(scale)
            given = widen_pose(shape_transform[shape])
            rotation = wp.normalize(wp.transform_get_rotation(given))
            position = wp.transform_get_translation(given)
            sized = int(1)
            half = size
            centre = wp.vec3d()
            radius = wp.length(size)
            if maps.geom_slab[geom] != 0:  # its top is in the plane
                size = _HALF * size
                size[2] = _HALF * wp.min(size[0], size[1])
                position = position - rotated(rotation, wp.vec3d(wp.float64(0.0), wp.float64(0.0), size[2]))
                half = size
                radius = wp.length(size)
            elif kind == _PLANE:
                size = wp.vec3d(_HALF * size[0], _HALF * size[1], _GRID)
                for k in range(3):
                    write(fields.geom_size, 3 * entry + k, size[k])
                sized = int(0)
            elif kind == _HFIELD:  # MuJoCo's heights begin at its origin
                lift = wp.float64(maps.field_lift[shape_source_index[shape]]) * size[2]
                position = position + rotated(rotation, wp.vec3d(wp.float64(0.0), wp.float64(0.0), lift))
                sized = int(0)
            elif kind == _MESH:
                sized = int(0)
                asset = find_asset(maps, geom, shape_source_index[shape], scale)
                if asset >= 0:
                    if entry < fields.geom_dataid.shape[0]:
                        fields.geom_dataid[entry] = maps.asset_mesh[asset]
                    pose = composed(wp.transformd(position, rotation), maps.asset_pose[asset])
                    position = wp.transform_get_translation(pose)
                    rotation = wp.transform_get_rotation(pose)
                    centre = maps.asset_centre[asset]
                    half = maps.asset_half[asset]
                    if maps.asset_geom[asset] == geom:
                        centre, half = resize_mesh(maps, asset, row, scale, fields)
                    size = wp.vec3d(
                        wp.abs(centre[0]) + half[0],
                        wp.abs(centre[1]) + half[1],
                        wp.abs(centre[2]) + half[2],
                    )
                    radius = wp.length(size)
                    sized = int(1)
            elif kind == _SPHERE:
                half = wp.vec3d(size[0], size[0], size[0])
                radius = size[0]
            elif kind == _CAPSULE:
                half = wp.vec3d(size[0], size[0], size[0] + size[1])
                radius = size[0] + size[1]
            elif kind == _CYLINDER:
                half = wp.vec3d(size[0], size[0], size[1])
                radius = wp.length(wp.vec2d(size[0], size[1]))
            elif kind == _ELLIPSOID:
                radius = wp.max(size[0], wp.max(size[1], size[2]))
            write_vec3(fields.geom_pos, entry, position)
            write_quat(fields.geom_quat, entry, rotation)
            if sized != 0:
                write_vec3(fields.geom_size, entry, size)
                write_vec3(fields.geom_aabb, 2 * entry, centre)
                write_vec3(fields.geom_aabb, 2 * entry + 1, half)
                write(fields.geom_rbound, entry, radius)
        for site in range(maps.site.shape[0]):
            shape = shape_of_code(topology, world, maps.site_shape[site])
            entry = row * maps.site_count + maps.site[site]
            mark = widen_pose(shape_transform[shape])
            write_vec3(fields.site_pos, entry, wp.transform_get_translation(mark))
            write_quat(fields.site_quat, entry, wp.normalize(wp.transform_get_rotation(mark)))

    @wp.kernel(enable_backward=False, module=module)
    def update_materials(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: ShapeMaps,
        shape_material_ke: wp.array[float],  # [shape] N/m, NaN: not given
        shape_material_ke_per_mass: wp.array[float],  # [shape] 1/s², NaN: not given
        shape_material_tau: wp.array[float],  # [shape] s, NaN: not given
        shape_material_mu: wp.array[float],  # [shape]
        shape_material_mu_torsional: wp.array[float],  # [shape] m
        shape_material_mu_rolling: wp.array[float],  # [shape] m
        shape_margin: wp.array[float],  # [shape] m
        fields: fields_type,
    ):
        """Write the contact properties of one world."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        count = maps.geom_shape.shape[0]
        largest = wp.float64(0.0)
        for geom in range(count):
            entry = row * count + geom
            shape = shape_of_code(topology, world, maps.geom_shape[geom])
            write(fields.geom_friction, 3 * entry, wp.float64(shape_material_mu[shape]))
            write(fields.geom_friction, 3 * entry + 1, wp.float64(shape_material_mu_torsional[shape]))
            write(fields.geom_friction, 3 * entry + 2, wp.float64(shape_material_mu_rolling[shape]))
            ke = shape_material_ke[shape]
            tau = shape_material_tau[shape]
            kd = wp.float64(ke) * wp.float64(tau)
            write(fields.external_ke, maps.gain_first + entry, wp.float64(ke))
            write(fields.external_kd, maps.gain_first + entry, kd)
            if maps.is_raw[entry] == 0:
                if wp.isnan(ke):
                    ke = shape_material_ke_per_mass[shape] * maps.softness[entry]
                    kd = wp.float64(ke) * wp.float64(tau)
                solref = solref_of_gains(wp.float64(ke), kd, wp.float64(1.0))
                write(fields.geom_solref, 2 * entry, solref[0])
                write(fields.geom_solref, 2 * entry + 1, solref[1])
            margin = wp.float64(0.0)
            if maps.has_margin != 0:
                margin = wp.float64(shape_margin[shape])
            write(fields.geom_margin, entry, margin)
            # Geoms are in the order of their bodies.
            body = maps.geom_body[geom]
            largest = wp.max(largest, margin)
            is_last = geom == count - 1
            if not is_last:
                is_last = maps.geom_body[geom + 1] != body
            if is_last:
                write(fields.body_margin, row * maps.body_count + body, largest)
                largest = wp.float64(0.0)

    @wp.kernel(enable_backward=False, module=module)
    def update_switches(
        worlds: wp.array[int],  # [row]
        selected: wp.array[int],  # [world] 1 where meant
        topology: Topology,
        maps: ShapeMaps,
        shape_enabled: wp.array[bool],  # [shape]
        fields: fields_type,
    ):
        """Write which geoms of one world collide."""
        row, _ = wp.tid()
        world = selected_world(worlds, selected, row)
        if world < 0:
            return
        count = maps.geom_shape.shape[0]
        for geom in range(count):
            entry = row * count + geom
            contype = int(0)
            conaffinity = int(0)
            gap = -_FAR_APART  # MuJoCo Warp knows the bits when it starts only
            if shape_enabled[shape_of_code(topology, world, maps.geom_shape[geom])]:
                contype = maps.contype[geom]
                conaffinity = maps.conaffinity[geom]
                gap = wp.float64(0.0)
            if entry < fields.geom_contype.shape[0]:
                fields.geom_contype[entry] = contype
                fields.geom_conaffinity[entry] = conaffinity
            write(fields.geom_gap, entry, gap)

    return SimpleNamespace(
        update_placement=update_placement,
        update_materials=update_materials,
        update_switches=update_switches,
    )
