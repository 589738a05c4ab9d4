"""Draws the picture of the README: worlds of the scene `mixed`, after a second of simulation.

`python docs/pictures/draw_worlds.py` writes docs/pictures/worlds.png. Needs matplotlib (`pluriverse[plot]`).
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import trimesh
import warp as wp
from matplotlib.collections import PolyCollection

import pluriverse as pv

DURATION = 1.2  # s
SPACING = 1.9  # m, between the worlds in the picture; in the simulation they do not know of each other
VIEW = np.radians([25.0, 18.0])  # azimuth and elevation of the camera
LIGHT = np.array([0.35, -0.55, 0.75])  # direction to the light, camera axes: right, away, up
COLORS = {
    "quadruped": "#3a7ca5",
    "quadruped_on_the_moon": "#8d99ae",
    "humanoid": "#d1495b",
    "arm": "#edae49",
    "pile": "#66a182",
}


def shape_mesh(model: pv.Model, shape: int) -> trimesh.Trimesh | None:
    """Return the surface of a shape in its own frame."""
    kind = pv.GeoType(int(model.shape_type.numpy()[shape]))
    x, y, z = (float(value) for value in model.shape_scale.numpy()[shape])
    if kind is pv.GeoType.SPHERE:
        return trimesh.creation.icosphere(subdivisions=3, radius=x)
    if kind is pv.GeoType.BOX:
        return trimesh.creation.box(extents=(2 * x, 2 * y, 2 * z))
    if kind is pv.GeoType.CAPSULE:
        mesh = trimesh.creation.capsule(radius=x, height=2 * y, count=[24, 24])
        mesh.apply_translation(-mesh.bounds.mean(axis=0))
        return mesh
    if kind is pv.GeoType.CYLINDER:
        return trimesh.creation.cylinder(radius=x, height=2 * y, sections=32)
    if kind is pv.GeoType.ELLIPSOID:
        mesh = trimesh.creation.icosphere(subdivisions=3)
        mesh.apply_scale((x, y, z))
        return mesh
    if kind in (pv.GeoType.MESH, pv.GeoType.CONVEX_MESH):
        source = model.shape_source[shape]
        return trimesh.Trimesh(
            np.asarray(source.vertices) * (x, y, z), np.asarray(source.indices).reshape(-1, 3)
        )
    return None


def transform_points(pose: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return points [m] moved by a pose (p, quaternion xyzw)."""
    vector, scalar = pose[3:6], pose[6]
    turned = points + 2.0 * np.cross(vector, np.cross(vector, points) + scalar * points)
    return turned + pose[:3]


def camera_axes() -> np.ndarray:
    """Return the camera's axes to the right, away and up, as rows."""
    azimuth, elevation = VIEW
    right = np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    forward = np.array([-np.sin(azimuth), np.cos(azimuth), 0.0])
    away = np.cos(elevation) * forward - np.array([0.0, 0.0, np.sin(elevation)])
    return np.stack([right, away, np.cross(right, away)])


def main() -> None:
    """Simulate and draw."""
    wp.config.log_level = wp.LOG_WARNING
    scene = pv.load_scene("mixed", device="cpu")
    model = scene.model
    with scene.simulation() as simulation:
        simulation.step(round(DURATION / scene.settings.dt))
        body_q = simulation.state.body_q.numpy()

    axes = camera_axes()
    step = SPACING * axes[0]  # the worlds stand side by side
    polygons, depths, colors = [], [], []
    kinds = scene.kind_names
    shape_body, shape_pose = model.shape_body.numpy(), model.shape_transform.numpy()
    start = model.shape_world_start.numpy()
    for place, kind in enumerate(kinds):
        world = scene.kind_of_world.index(place)
        base = np.array(plt.matplotlib.colors.to_rgb(COLORS[kind]))
        for shape in range(start[world], start[world + 1]):
            mesh = shape_mesh(model, shape)
            if mesh is None:
                continue
            points = transform_points(shape_pose[shape], np.asarray(mesh.vertices))
            if shape_body[shape] >= 0:
                points = transform_points(body_q[shape_body[shape]], points)
            seen = (points + place * step) @ axes.T
            triangles = seen[mesh.faces]
            normal = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
            length = np.linalg.norm(normal, axis=1, keepdims=True)
            normal = normal / np.maximum(length, 1e-12)
            front = normal[:, 1] < 0.0
            light = 0.55 + 0.45 * np.clip(normal @ (LIGHT / np.linalg.norm(LIGHT)), 0.0, 1.0)
            polygons.append(triangles[front][:, :, [0, 2]])
            depths.append(triangles[front][:, :, 1].mean(axis=1))
            colors.append(np.clip(light[front, None] * base, 0.0, 1.0))
    order = np.argsort(-np.concatenate(depths))

    figure, view = plt.subplots(figsize=(11.0, 3.4), dpi=110)
    for place in range(len(kinds)):
        edge = 0.42 * SPACING
        corners = np.array([[-edge, -edge, 0], [edge, -edge, 0], [edge, edge, 0], [-edge, edge, 0]])
        seen = (corners + place * step) @ axes.T
        view.add_collection(PolyCollection([seen[:, [0, 2]]], facecolors="#e9ecef", edgecolors="#ced4da"))
        x, y = seen[:, 0].mean(), seen[:, 2].min() - 0.1
        view.text(x, y, kinds[place].replace("_", " "), ha="center", va="top", color="#495057")
    faces = np.concatenate(colors)[order]
    view.add_collection(
        PolyCollection(np.concatenate(polygons)[order], facecolors=faces, edgecolors=faces, linewidths=0.3)
    )
    view.set_aspect("equal")
    view.autoscale_view()
    view.axis("off")
    figure.savefig(Path(__file__).parent / "worlds.png", bbox_inches="tight", pad_inches=0.05)


if __name__ == "__main__":
    main()
