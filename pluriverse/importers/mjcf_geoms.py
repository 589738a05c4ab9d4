"""MJCF geoms and sites as shapes."""

from typing import Any

import numpy as np

from pluriverse.geometry import Heightfield, Mesh
from pluriverse.importers.description import RobotDescription, ShapeDescription
from pluriverse.importers.frames import make_frame, quat_from_wxyz
from pluriverse.importers.mjcf_appearance import MjcfAppearances, mesh_skin
from pluriverse.importers.mjcf_enums import MjGeom, MjWrap
from pluriverse.importers.mjcf_pairs import (
    GeomMaterials,
    find_materials,
    has_contact_bits,
    paired_geoms,
    report_pairs,
)
from pluriverse.importers.mjcf_source import MjcfSource, class_names, matches, read_class_parents
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport
from pluriverse.importers.solref import gains_of_solref
from pluriverse.mujoco_attributes.choices import DEFAULT_SOLIMP, DEFAULT_SOLREF
from pluriverse.types import GeoType

DEFAULT_RGBA = (0.5, 0.5, 0.5, 1.0)


def add_shapes(
    robot: RobotDescription,
    source: MjcfSource,
    link_of_body: dict[int, int],
    options: MjcfSettings,
    report: ImportReport,
) -> None:
    """Add the geoms and sites of the document to the links and the world of `robot`."""
    model = source.model
    parents = read_class_parents(source.spec)
    classes = {geom.id: class_names(geom, parents) for geom in source.spec.geoms}
    paired = paired_geoms(model)
    materials = find_materials(model)
    # Rows of the namespace may name geoms that do not collide otherwise.
    named = paired | _wrapped_geoms(model)
    meshes: dict[int, Mesh] = {}
    appearances = MjcfAppearances(model, report)
    added: dict[int, ShapeDescription] = {}
    for body in range(model.nbody):
        link = link_of_body[body]
        shapes = robot.world_shapes if body == 0 else robot.links[link].shapes
        path = f"{robot.label}/worldbody" if body == 0 else robot.links[link].label
        first = int(model.body_geomadr[body])
        geoms = list(range(first, first + int(model.body_geomnum[body])))
        colliding = {
            geom: _class_collides(model, geom, classes.get(geom, []), options, report)
            if has_contact_bits(model, geom)
            else geom in paired
            for geom in geoms
        }
        if options["parse_visuals_as_colliders"] and not all(colliding.values()):
            # The visuals stand in for the colliders.
            stand_in = {geom: not colliding[geom] for geom in geoms}
            geoms = [geom for geom in geoms if stand_in[geom] or geom in named]
            colliding = {geom: stand_in[geom] for geom in geoms}
        has_visuals = options["parse_visuals"] and not options["hide_visuals"] and not all(colliding.values())
        for geom in geoms:
            name = model.geom(geom).name or f"geom_{geom - first}"
            if not colliding[geom] and not options["parse_visuals"] and geom not in named:
                continue
            shape = _shape(model, geom, f"{path}/{name}", name, meshes, appearances, options, report)
            if shape is None:
                continue
            shape.collides = colliding[geom]
            if shape.collides:
                shape.is_visible &= options["force_show_colliders"] or not has_visuals
                _set_material(shape, model, materials, geom, name, options, report)
                shape.custom = options["custom"].of_geom(geom)
                if shape.type is GeoType.MESH:
                    shape.type = GeoType.CONVEX_MESH
            else:
                shape.is_visible &= options["parse_visuals"] and not options["hide_visuals"]
                shape.custom = options["custom"].of_geom(geom)
            shapes.append(shape)
            added[geom] = shape
        if options["parse_sites"]:
            _add_sites(shapes, model, body, path, options)
    for ends in zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True):
        if all(geom in added and added[geom].collides for geom in ends):
            robot.paired_shapes.append((added[ends[0]], added[ends[1]]))
    collides = {geom: shape.collides for geom, shape in added.items()}
    report_pairs(model, materials, collides, report, is_kept=options["custom"].namespace.is_asked)


def _wrapped_geoms(model: Any) -> set[int]:
    """Return the geoms that spatial tendons wrap around."""
    around = np.isin(model.wrap_type, (MjWrap.SPHERE, MjWrap.CYLINDER))
    return {int(geom) for geom in np.asarray(model.wrap_objid)[around]}


def _class_collides(
    model: Any, geom: int, classes: list[str], options: MjcfSettings, report: ImportReport
) -> bool:
    """Return whether a geom with contact bits collides by the options about its classes."""
    if any(matches(options["collider_classes"], name) for name in classes):
        return True
    if any(matches(options["visual_classes"], name) for name in classes):
        report.add(
            "contact bits of a visual class",
            model.geom(geom).name or f"geom {geom}",
            "it does not collide, because its class is one of visual_classes; pass visual_classes=() if it "
            "should",
        )
        return False
    return options["no_class_as_colliders"]


def _shape(
    model: Any,
    geom: int,
    label: str,
    name: str,
    meshes: dict[int, Mesh],
    appearances: MjcfAppearances,
    options: MjcfSettings,
    report: ImportReport,
) -> ShapeDescription | None:
    kind = int(model.geom_type[geom])
    size = options["scale"] * np.array(model.geom_size[geom])
    frame = make_frame(options["scale"] * model.geom_pos[geom], quat_from_wxyz(model.geom_quat[geom]))
    rgba = model.geom_rgba[geom]
    if model.geom_matid[geom] >= 0 and np.allclose(rgba, DEFAULT_RGBA):
        rgba = model.mat_rgba[model.geom_matid[geom]]
    shape = ShapeDescription(
        label,
        GeoType.NONE,
        frame,
        color=(float(rgba[0]), float(rgba[1]), float(rgba[2])),
        is_visible=bool(rgba[3] > 0.0),
        appearance=appearances.of_material(int(model.geom_matid[geom]), float(rgba[3])),
        contype=int(model.geom_contype[geom]),
        conaffinity=int(model.geom_conaffinity[geom]),
        origin=("geom", geom),
    )
    if kind == MjGeom.HFIELD and model.geom_bodyid[geom] == 0:
        shape.type, shape.mesh = GeoType.HFIELD, _height_field(model, geom, options["scale"])
        return shape
    if kind in (MjGeom.HFIELD, MjGeom.SDF):
        report.add("hfield or sdf geom", name, "it is left out; height fields belong to the worldbody")
        return None
    if kind == MjGeom.MESH:
        if not options["parse_meshes"]:
            return None
        mesh_id = int(model.geom_dataid[geom])
        if mesh_id not in meshes:
            meshes[mesh_id] = _mesh(model, mesh_id, options["scale"])
        shape.type, shape.mesh = GeoType.MESH, meshes[mesh_id]
        return shape
    shape.type, shape.scale = _primitive(kind, size)
    return shape


def _primitive(kind: int, size: np.ndarray) -> tuple[GeoType, tuple[float, float, float]]:
    x, y, z = (float(length) for length in size)
    if kind == MjGeom.PLANE:
        return GeoType.PLANE, (
            0.0,
            0.0,
            0.0,
        )  # MuJoCo draws a plane in its size and lets things collide with all of it
    if kind == MjGeom.SPHERE:
        return GeoType.SPHERE, (x, 0.0, 0.0)
    if kind == MjGeom.CAPSULE:
        return GeoType.CAPSULE, (x, y, 0.0)
    if kind == MjGeom.ELLIPSOID:
        return GeoType.ELLIPSOID, (x, y, z)
    if kind == MjGeom.CYLINDER:
        return GeoType.CYLINDER, (x, y, 0.0)
    assert kind == MjGeom.BOX
    return GeoType.BOX, (x, y, z)


def _mesh(model: Any, mesh: int, scale: float) -> Mesh:
    start, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    face, face_count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    return Mesh(
        scale * model.mesh_vert[start : start + count],
        model.mesh_face[face : face + face_count],
        name=f"mesh '{model.mesh(mesh).name}'",
        skin=mesh_skin(model, mesh),
    )


def _height_field(model: Any, geom: int, scale: float) -> Heightfield:
    """Return the height field of a geom [m]. MuJoCo's has a base, ours is solid without bound below."""
    field = int(model.geom_dataid[geom])
    rows, columns = int(model.hfield_nrow[field]), int(model.hfield_ncol[field])
    first = int(model.hfield_adr[field])
    half_x, half_y, elevation, _ = (scale * float(length) for length in model.hfield_size[field])
    data = elevation * model.hfield_data[first : first + rows * columns].astype(np.float64)
    return Heightfield(data, rows, columns, half_x, half_y)


def _set_material(
    shape: ShapeDescription,
    model: Any,
    materials: GeomMaterials,
    geom: int,
    name: str,
    options: MjcfSettings,
    report: ImportReport,
) -> None:
    sliding, torsional, rolling = (float(value) for value in materials.friction[geom])
    condim = int(materials.condim[geom])
    shape.cfg["mu"] = sliding
    # A pair has the larger condim of its geoms, so the coefficients of a geom with a lower one may act too.
    shape.cfg["mu_torsional"], shape.cfg["mu_rolling"] = torsional, rolling
    kept = options["custom"].namespace.keeps
    if condim == 1 and sliding > 0.0 and not kept("condim 1", name):
        report.add("condim 1", name, "it rubs; in MuJoCo two geoms that both have condim 1 do not")
    if model.geom_priority[geom] != 0 and not kept("priority", name):
        report.add("priority", name, "a pair combines the materials of both shapes")
    if condim >= 4 and not kept("torsional and rolling friction", name):
        report.add(
            "torsional and rolling friction",
            name,
            "stored as mu_torsional and mu_rolling; SolverSAP uses them with torsional_friction=True only",
        )
    margin = options["scale"] * float(materials.margin[geom])
    gap = options["scale"] * float(materials.gap[geom])
    # As in MuJoCo, contacts push below the sum of both margins, and are detected below that of margins and
    # gaps.
    for quantity, value in (("margin", margin), ("gap", gap)):
        if value > 0.0:
            shape.cfg[quantity] = value
        elif value < 0.0:
            report.add(f"negative {quantity}", name, f"its {quantity} is 0")
    solref = materials.solref[geom]
    if not np.allclose(solref, DEFAULT_SOLREF):
        shape.cfg |= gains_of_solref(solref.tolist(), float(materials.solimp[geom][1]))
        if not (options["custom"].namespace.is_asked and kept("solref", name)):
            report.add(
                "solref",
                name,
                "converted to a stiffness per effective mass and a dissipation time "
                "(ke_per_mass = 1/((1 - dmax) (t d)²), tau = 2 t d²)",
            )
    if not np.allclose(materials.solimp[geom], DEFAULT_SOLIMP) and not kept("solimp", name):
        report.add(
            "solimp",
            name,
            "contact is a spring and damper of constant ke and tau, without an impedance curve",
        )
    adhesion = getattr(model, "geom_adhesion", None)
    if adhesion is not None and np.any(adhesion[geom] != 0.0):
        report.add("adhesion", name, "it does not stick")
    surface = getattr(model, "geom_surfacevel", None)
    if surface is not None and np.any(surface[geom] != 0.0):
        report.add("surfacevel", name, "its surface does not move")
    if np.any(model.geom_fluid[geom] != 0.0):
        report.add("fluidshape", name, "no fluid acts on it")


def _add_sites(
    shapes: list[ShapeDescription], model: Any, body: int, path: str, options: MjcfSettings
) -> None:
    sites = [site for site in range(model.nsite) if model.site_bodyid[site] == body]
    for number, site in enumerate(sites):
        kind, scale = _primitive(
            int(model.site_type[site]), options["scale"] * np.array(model.site_size[site])
        )
        rgba = model.site_rgba[site]
        shapes.append(
            ShapeDescription(
                f"{path}/{model.site(site).name or f'site_{number}'}",
                kind,
                make_frame(options["scale"] * model.site_pos[site], quat_from_wxyz(model.site_quat[site])),
                scale,
                collides=False,
                is_visible=False,
                is_site=True,
                color=(float(rgba[0]), float(rgba[1]), float(rgba[2])),
                custom=options["custom"].of_site(site),
                origin=("site", site),
            )
        )
