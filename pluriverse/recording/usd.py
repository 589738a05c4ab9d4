"""USD: a recording as an animated stage, for renderers and editors."""

import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.recording.recorded_run import RecordedRun
from pluriverse.render.picture import world_offsets
from pluriverse.render.visual import SeenGeometry, VisualMesh, VisualModel
from pluriverse.types import Axis

SUFFIXES = (".usd", ".usda", ".usdc")
"""File extensions that can be written."""


def export_usd(
    recording: RecordedRun,
    path: str | Path,
    worlds: Any = None,
    *,
    geometry: SeenGeometry | str = SeenGeometry.VISUAL,
    stride: int = 1,
) -> None:
    """Write a recording as an animated USD stage.

    Each world is an `Xform` with its bodies below it, which have a time sample per frame. Shapes are
    instances of meshes that are written once. Lengths are in metres; z or y is up as in the model, and a
    model whose x is up is turned upright. Textures are written into a folder beside the file, named after it.

    Args:
        recording: The recording.
        path: File to write: .usd or .usdc (binary) or .usda (text).
        worlds: Worlds (environments) to write; all if None. Where they overlap, they stand on a grid.
        geometry: Which shapes are written: "visual", "collision" or "all".
        stride: Write every `stride`-th frame.

    Raises:
        ImportError: If usd-core is not installed.
        IndexError: If a world was not recorded.
        OSError: If the file cannot be written.
        ValueError: If an argument is out of range.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"export: '{path}' is no USD file. Name it {', '.join(SUFFIXES)}.")
    if not isinstance(stride, int) or stride < 1:
        raise ValueError(f"export: stride is {stride!r}, but it must be a whole number of frames >= 1.")
    if not path.absolute().parent.is_dir():
        raise FileNotFoundError(f"export: there is no folder '{path.parent}'. Create it first.")
    try:
        from pxr import Usd
    except ImportError as error:
        raise ImportError(
            "USD is written with usd-core, which is not installed. Install it with: pip install "
            "'pluriverse[usd]'"
        ) from error
    positions = recording.recorded_positions(worlds, "export")
    frames = list(range(0, recording.frame_count, stride))
    stage = Usd.Stage.CreateInMemory()
    _Writer(recording, positions, frames, SeenGeometry(geometry), stage, path).write()
    stage.GetRootLayer().Export(str(path))


class _Writer:
    def __init__(
        self,
        recording: RecordedRun,
        positions: np.ndarray,
        frames: list[int],
        geometry: SeenGeometry,
        stage: Any,
        path: Path,
    ) -> None:
        self._recording, self._frames, self._stage, self._path = recording, frames, stage, path
        self._model = recording.model
        self._shown = [recording.worlds_of(frame)[positions] for frame in frames]
        self._worlds = np.unique(np.concatenate(self._shown))
        self._geometry = geometry
        self._meshes: dict[int, Any] = {}
        self._kept: list[VisualMesh] = []
        self._materials: dict[Any, Any] = {}

    def write(self) -> None:
        from pxr import Gf, Sdf, UsdGeom, UsdLux

        stage, recording = self._stage, self._recording
        up = self._model.up_axis
        # USD knows no stages whose x axis points up: such a recording is turned.
        UsdGeom.SetStageUpAxis(stage, UsdGeom.Tokens.y if up is Axis.Y else UsdGeom.Tokens.z)
        UsdGeom.SetStageMetersPerUnit(stage, 1.0)
        stage.SetTimeCodesPerSecond(recording.fps)
        stage.SetFramesPerSecond(recording.fps)
        stage.SetStartTimeCode(self._frames[0])
        stage.SetEndTimeCode(self._frames[-1])
        root = UsdGeom.Xform.Define(stage, "/Recording")
        if up is Axis.X:
            root.AddRotateYOp().Set(-90.0)
        stage.SetDefaultPrim(root.GetPrim())
        stage.CreateClassPrim("/Prototypes")  # not drawn itself
        UsdGeom.Scope.Define(stage, "/Recording/Materials")
        sun = UsdLux.DistantLight.Define(stage, "/Recording/Sun")
        sun.CreateIntensityAttr(2500.0)
        if up is Axis.Y:
            sun.AddRotateXOp(opSuffix="up").Set(-90.0)
        elif up is Axis.X:
            sun.AddRotateYOp(opSuffix="up").Set(90.0)
        sun.AddRotateXYZOp().Set(Gf.Vec3f(35.0, 20.0, 0.0))
        UsdLux.DomeLight.Define(stage, "/Recording/Sky").CreateIntensityAttr(600.0)
        self._float = Sdf.ValueTypeNames
        offsets = self._offsets()
        for world in self._worlds.tolist():
            prim = UsdGeom.Xform.Define(stage, f"/Recording/world_{world}")
            prim.AddTranslateOp().Set(Gf.Vec3d(*offsets[world]))
            is_shown = [world in shown for shown in self._shown]
            self._animate_visibility(prim, is_shown)
        self._write_bodies()
        self._write_shapes()

    def _offsets(self) -> dict[int, np.ndarray]:
        """Return the offset of each world: zero, or a place on a grid if worlds overlap."""
        pose = self._recording.moment(self._frames[0]).body_q
        start = self._model.body_world_start.numpy()
        boxes = []
        for world in self._worlds.tolist():
            own = pose[start[world] : start[world + 1], :3].astype(np.float64)
            own = own[np.isfinite(own).all(axis=1)] if len(own) else own
            own = own if len(own) else np.zeros((1, 3))
            boxes.append([own.min(axis=0) - 0.5, own.max(axis=0) + 0.5])
        offsets = world_offsets(np.array(boxes), None, self._model.up_axis)
        return dict(zip(self._worlds.tolist(), offsets, strict=True))

    def _write_bodies(self) -> None:
        from pxr import Gf, UsdGeom

        model = self._model
        self._body_path: dict[int, str] = {}
        ops = {}
        names: dict[tuple[int, str], int] = defaultdict(int)
        body_world = np.maximum(model.body_world.numpy(), 0)
        for body in np.flatnonzero(np.isin(body_world, self._worlds)).tolist():
            world = int(body_world[body])
            name = _identifier(model.body_label[body].rpartition("/")[2])
            names[world, name] += 1
            name = name if names[world, name] == 1 else f"{name}_{names[world, name]}"
            self._body_path[body] = f"/Recording/world_{world}/{name}"
            prim = UsdGeom.Xform.Define(self._stage, self._body_path[body])
            ops[body] = prim.AddTranslateOp(), prim.AddOrientOp()
        last: dict[int, np.ndarray] = {}
        for frame, shown in zip(self._frames, self._shown, strict=True):
            pose = self._recording.moment(frame).body_q.astype(np.float64)
            visible = np.isin(body_world, shown) & np.isfinite(pose).all(axis=1)
            for body, (translate, orient) in ops.items():
                if not visible[body]:
                    continue  # of a frozen world, or one that is not shown now
                rotation = pose[body, 3:]
                # Of the two quaternions of a rotation, the one closer to the last: interpolation takes the
                # short way.
                rotation = -rotation if body in last and last[body] @ rotation < 0.0 else rotation
                last[body] = rotation
                translate.Set(Gf.Vec3d(*pose[body, :3]), frame)
                orient.Set(Gf.Quatf(rotation[3], *rotation[:3]), frame)

    def _write_shapes(self) -> None:
        """Write each appearance that a shape ever has, and when it has it."""
        from pxr import Gf, UsdGeom

        model = self._model
        visual: VisualModel | None = None
        prims: dict[tuple[int, int, int], Any] = {}
        seen_at: dict[tuple[int, int, int], list[bool]] = {}
        appearance: Any = None
        visible: list[tuple[int, int, int]] = []
        shape_world = model.shape_world.numpy()
        for number, frame in enumerate(self._frames):
            now = self._recording.appearance(frame)
            if now is not appearance:
                appearance = now
                self._recording.show_frame(frame)
                if visual is None:
                    visual = VisualModel(model, geometry=self._geometry)
                else:
                    visual.refresh()
                visible = []
                for shape in visual.shapes_of(self._worlds.tolist()).tolist():
                    mesh = visual.mesh_of(shape)
                    own = int(shape_world[shape])
                    owners = self._worlds.tolist() if own < 0 else [own]
                    for world in owners:
                        key = (shape, id(mesh), world)
                        visible.append(key)
                        if key in prims:
                            continue
                        body = int(visual.shape_body[shape])
                        parent = self._body_path[body] if body >= 0 else f"/Recording/world_{world}"
                        prim = UsdGeom.Xform.Define(self._stage, f"{parent}/shape_{shape}_{len(prims)}")
                        pose = visual.shape_transform[shape].astype(np.float64)
                        prim.AddTranslateOp().Set(Gf.Vec3d(*pose[:3]))
                        prim.AddOrientOp().Set(Gf.Quatf(pose[6], *pose[3:6]))
                        prim.GetPrim().GetReferences().AddInternalReference(self._prototype(mesh))
                        prim.GetPrim().SetInstanceable(True)
                        prims[key] = prim
                        seen_at[key] = [False] * len(self._frames)
            for key in visible:
                seen_at[key][number] = True
        for key, prim in prims.items():
            self._animate_visibility(prim, seen_at[key])

    def _animate_visibility(self, prim: Any, is_shown: list[bool]) -> None:
        if all(is_shown):
            return
        attribute = prim.CreateVisibilityAttr("inherited")
        for number, frame in enumerate(self._frames):
            if number == 0 or is_shown[number] != is_shown[number - 1]:
                attribute.Set("inherited" if is_shown[number] else "invisible", frame)

    def _prototype(self, mesh: VisualMesh) -> str:
        """Return the path of the triangles of a mesh, written once, a `Mesh` per part of it."""
        from pxr import Gf, UsdGeom, UsdShade, Vt

        if id(mesh) in self._meshes:
            path: str = self._meshes[id(mesh)]
            return path
        path = f"/Prototypes/mesh_{len(self._meshes)}"
        self._meshes[id(mesh)] = path
        self._kept.append(mesh)  # so that nothing else gets its identity
        UsdGeom.Xform.Define(self._stage, path)
        for part, (rgba, texture) in enumerate(zip(mesh.part_rgba, mesh.part_texture, strict=True)):
            member = mesh.triangle_part == part
            if not member.any():
                continue
            prim = UsdGeom.Mesh.Define(self._stage, f"{path}/part_{part}")
            triangles = mesh.triangles[member]
            used, indices = np.unique(triangles, return_inverse=True)
            prim.CreatePointsAttr(Vt.Vec3fArray.FromNumpy(np.ascontiguousarray(mesh.vertices[used])))
            prim.CreateFaceVertexIndicesAttr(Vt.IntArray.FromNumpy(indices.reshape(-1).astype(np.int32)))
            sizes = np.full(len(triangles), 3, dtype=np.int32)
            prim.CreateFaceVertexCountsAttr(Vt.IntArray.FromNumpy(sizes))
            prim.CreateSubdivisionSchemeAttr("none")
            prim.CreateDoubleSidedAttr(bool(mesh.is_double_sided))
            normals = np.ascontiguousarray(mesh.corner_normals[member].reshape(-1, 3))
            prim.CreateNormalsAttr(Vt.Vec3fArray.FromNumpy(normals))
            prim.SetNormalsInterpolation("faceVarying")
            lower, upper = mesh.vertices[used].min(axis=0), mesh.vertices[used].max(axis=0)
            prim.CreateExtentAttr([Gf.Vec3f(*lower.tolist()), Gf.Vec3f(*upper.tolist())])
            color = np.clip(rgba[:3], 0.0, 1.0)
            prim.CreateDisplayColorAttr([Gf.Vec3f(*_linear(color).tolist())])
            if rgba[3] < 1.0:
                prim.CreateDisplayOpacityAttr([float(rgba[3])])
            if mesh.corner_uv is not None and texture is not None:
                primvar = UsdGeom.PrimvarsAPI(prim.GetPrim()).CreatePrimvar(
                    "st", self._float.TexCoord2fArray, "faceVarying"
                )
                uv = np.ascontiguousarray(mesh.corner_uv[member].reshape(-1, 2))
                primvar.Set(Vt.Vec2fArray.FromNumpy(uv))
            material = self._material(rgba, texture if mesh.corner_uv is not None else None)
            UsdShade.MaterialBindingAPI.Apply(prim.GetPrim()).Bind(material)
        return path

    def _material(self, rgba: np.ndarray, texture: Any) -> Any:
        """Return a preview surface of a colour and a texture, written once."""
        from pxr import Gf, UsdShade

        key = (rgba.tobytes(), None if texture is None else texture.content_key)
        if key in self._materials:
            return self._materials[key]
        types = self._float
        path = f"/Recording/Materials/material_{len(self._materials)}"
        material = UsdShade.Material.Define(self._stage, path)
        surface = UsdShade.Shader.Define(self._stage, f"{path}/surface")
        surface.CreateIdAttr("UsdPreviewSurface")
        color = surface.CreateInput("diffuseColor", types.Color3f)
        linear = _linear(np.clip(rgba[:3], 0.0, 1.0)).tolist()
        color.Set(Gf.Vec3f(*linear))
        surface.CreateInput("roughness", types.Float).Set(0.6)
        surface.CreateInput("opacity", types.Float).Set(float(rgba[3]))
        if texture is not None:
            reader = UsdShade.Shader.Define(self._stage, f"{path}/coordinates")
            reader.CreateIdAttr("UsdPrimvarReader_float2")
            reader.CreateInput("varname", types.String).Set("st")
            image = UsdShade.Shader.Define(self._stage, f"{path}/texture")
            image.CreateIdAttr("UsdUVTexture")
            image.CreateInput("file", types.Asset).Set(self._texture_file(texture, len(self._materials)))
            image.CreateInput("sourceColorSpace", types.Token).Set("sRGB")
            image.CreateInput("scale", types.Float4).Set(Gf.Vec4f(*linear, 1.0))
            for wrap in ("wrapS", "wrapT"):
                image.CreateInput(wrap, types.Token).Set("repeat")
            coordinates = reader.CreateOutput("result", types.Float2)
            image.CreateInput("st", types.Float2).ConnectToSource(coordinates)
            color.ConnectToSource(image.CreateOutput("rgb", types.Float3))
        material.CreateSurfaceOutput().ConnectToSource(surface.CreateOutput("surface", types.Token))
        self._materials[key] = material
        return material

    def _texture_file(self, texture: Any, number: int) -> str:
        """Write a texture beside the stage and return its path from there."""
        from PIL import Image

        folder = self._path.with_name(f"{self._path.stem}_textures")
        folder.mkdir(exist_ok=True)
        Image.fromarray(texture.pixels, mode="RGBA").save(folder / f"texture_{number}.png")
        return f"./{folder.name}/texture_{number}.png"


def _linear(color: np.ndarray) -> np.ndarray:
    """Return display values (sRGB) as linear light, which USD uses."""
    value = np.asarray(color, dtype=np.float64)
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def _identifier(text: str) -> str:
    """Return a valid USD name."""
    name = re.sub(r"[^0-9A-Za-z_]", "_", text)
    return name if name and not name[0].isdigit() else f"_{name}"
