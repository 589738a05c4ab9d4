"""USD colours, materials and textures as appearances of shapes."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.geometry import Appearance, MeshSkin, Texture
from pluriverse.importers.report import ImportReport, ImportSeverity

COLOR_INPUTS = ("diffuseColor", "diffuse_color_constant", "base_color", "diffuse_tint", "inputs:color")
"""Inputs of shaders that hold the colour of a surface: of UsdPreviewSurface, OmniPBR and MaterialX."""
TEXTURE_INPUTS = ("diffuse_texture", "file", "diffuse_color_texture", "albedo_texture")
"""Inputs of shaders that hold an image."""


class Surface:
    """Colour, opacity and texture of a material."""

    def __init__(self, color: tuple[float, float, float] | None, alpha: float, texture: Texture | None):
        self.color = color
        self.alpha = alpha
        self.texture = texture


class UsdAppearances:
    """Reads the appearance of the prims of a stage, each material once."""

    def __init__(self, report: ImportReport):
        self.report = report
        self._surfaces: dict[str, Surface] = {}
        self._textures: dict[str, Texture | None] = {}

    def of_prim(self, prim: Any) -> tuple[tuple[float, float, float] | None, Appearance | None]:
        """Return the colour and the appearance of a prim, None for what it does not set."""
        surface = self._bound(prim)
        color, alpha = _display(prim)
        texture = None
        if surface is not None:
            color = surface.color or color
            alpha, texture = surface.alpha, surface.texture
            if texture is not None and surface.color is None:
                color = (1.0, 1.0, 1.0)
        if texture is None and alpha >= 1.0:
            return color, None
        return color, Appearance(texture=texture, alpha=alpha)

    def skin(
        self, prim: Any, corner_of_triangle: np.ndarray, face_of_triangle: np.ndarray, *, is_turned: bool
    ) -> MeshSkin | None:
        """Return the texture coordinates of a mesh and the appearance of its subsets of faces.

        Args:
            prim: The mesh.
            corner_of_triangle: Which face-vertex each corner is, shape [triangle, 3].
            face_of_triangle: Face that each triangle was cut from, shape [triangle].
            is_turned: Whether the winding of the triangles was reversed.
        """
        from pxr import UsdGeom

        uv = _corner_uv(prim, corner_of_triangle)
        if uv is not None and is_turned:
            uv = uv[:, ::-1]
        subsets = UsdGeom.Subset.GetAllGeomSubsets(UsdGeom.Imageable(prim))
        face_count = int(face_of_triangle.max(initial=-1)) + 1
        part_of_face = np.zeros(face_count, dtype=np.int32)
        color, _ = self.of_prim(prim)
        colors, textures = [(*(color or (0.6, 0.63, 0.68)), 1.0)], [self._texture_of(prim)]
        for subset in subsets:
            surface = self._bound(subset.GetPrim())
            faces = np.array(subset.GetIndicesAttr().Get() or [], dtype=np.int64)
            if surface is None or not len(faces) or str(subset.GetElementTypeAttr().Get()) != "face":
                continue
            part_of_face[faces[(faces >= 0) & (faces < face_count)]] = len(colors)
            base = (1.0, 1.0, 1.0) if surface.texture is not None else colors[0][:3]
            colors.append((*(surface.color or base), surface.alpha))
            textures.append(surface.texture)
        if len(colors) == 1:
            return None if uv is None else MeshSkin(corner_uv=uv)
        return MeshSkin(
            corner_uv=uv,
            triangle_part=part_of_face[face_of_triangle],
            part_color=colors,
            part_texture=textures,
        )

    def _texture_of(self, prim: Any) -> Texture | None:
        surface = self._bound(prim)
        return None if surface is None else surface.texture

    def _bound(self, prim: Any) -> Surface | None:
        """Return the surface of the material that is bound to a prim, or None."""
        from pxr import UsdShade

        material, _ = UsdShade.MaterialBindingAPI(prim).ComputeBoundMaterial()
        if not material:
            return None
        path = str(material.GetPath())
        if path not in self._surfaces:
            self._surfaces[path] = self._read(material)
        return self._surfaces[path]

    def _read(self, material: Any) -> Surface:
        from pxr import Usd, UsdShade

        color: tuple[float, float, float] | None = None
        alpha = 1.0
        texture: Texture | None = None
        for prim in Usd.PrimRange(material.GetPrim()):
            if not prim.IsA(UsdShade.Shader):
                continue
            shader = UsdShade.Shader(prim)
            for name in COLOR_INPUTS:
                value = _input(shader, name)
                if color is None and value is not None and len(np.shape(value)) == 1 and len(value) >= 3:
                    if np.isfinite(np.array(value[:3], dtype=np.float64)).all():
                        color = (float(value[0]), float(value[1]), float(value[2]))
            opacity = _input(shader, "opacity")
            if isinstance(opacity, float) and 0.0 < opacity <= 1.0:
                alpha = float(opacity)
            for name in TEXTURE_INPUTS:
                value = _input(shader, name)
                if texture is None and value is not None and hasattr(value, "resolvedPath"):
                    texture = self._texture(value, prim)
        return Surface(color, alpha, texture)

    def _texture(self, asset: Any, prim: Any) -> Texture | None:
        if not asset.path:
            return None
        name = asset.resolvedPath or asset.path
        if name not in self._textures:
            self._textures[name] = None
            try:
                self._textures[name] = _read_image(asset)
            except (OSError, ValueError, ImportError) as error:
                self.report.add(
                    "texture", str(prim.GetPath()), f"it is not drawn: {error}", ImportSeverity.WARNING
                )
        return self._textures[name]


def _read_image(asset: Any) -> Texture:
    """Return the image of an asset, also of one inside a package."""
    path = Path(asset.resolvedPath or asset.path)
    if path.is_file():
        return Texture.load(path)
    from pxr import Ar

    opened = Ar.GetResolver().OpenAsset(Ar.ResolvedPath(asset.resolvedPath)) if asset.resolvedPath else None
    if opened is None:
        raise FileNotFoundError(f"texture '{asset.path}' does not exist.")
    with tempfile.NamedTemporaryFile(suffix=path.suffix.rstrip("]")) as file:
        file.write(bytes(opened.GetBuffer()))
        file.flush()
        return Texture.load(file.name)


def _input(shader: Any, name: str) -> Any:
    """Return the value of an input of a shader that is authored, or None."""
    found = shader.GetInput(name)
    if not found or found.HasConnectedSource():
        return None
    return found.Get()


def _corner_uv(prim: Any, corner_of_triangle: np.ndarray) -> np.ndarray | None:
    """Return the texture coordinates of the corners of triangles, or None where a mesh has none."""
    from pxr import UsdGeom

    primvars = UsdGeom.PrimvarsAPI(prim)
    for name in ("st", "st0", "st_0", "UVMap", "uv", "map1", "Texture_uv"):
        primvar = primvars.FindPrimvarWithInheritance(name)
        values = primvar.ComputeFlattened() if primvar and primvar.HasValue() else None
        if values is None or len(np.shape(values)) != 2 or np.shape(values)[1] < 2:
            continue
        uv = np.array(values, dtype=np.float32)[:, :2]
        corners = np.array(prim.GetAttribute("faceVertexIndices").Get() or [], dtype=np.int64)
        if str(primvar.GetInterpolation()) == UsdGeom.Tokens.faceVarying and len(uv) == len(corners):
            return uv[corner_of_triangle]
        if len(corners) and len(uv) > int(corners.max()):
            return uv[corners[corner_of_triangle]]
    return None


def _display(prim: Any) -> tuple[tuple[float, float, float] | None, float]:
    """Return the display colour and opacity of a prim."""
    from pxr import UsdGeom

    primvars = UsdGeom.PrimvarsAPI(prim)
    color: tuple[float, float, float] | None = None
    primvar = primvars.FindPrimvarWithInheritance("displayColor")
    values = primvar.Get() if primvar else None
    if values and np.isfinite(np.array(values[0])).all():
        color = (float(values[0][0]), float(values[0][1]), float(values[0][2]))
    primvar = primvars.FindPrimvarWithInheritance("displayOpacity")
    values = primvar.Get() if primvar else None
    alpha = float(values[0]) if values else 1.0
    return color, alpha if 0.0 < alpha <= 1.0 else 1.0
