"""MJCF materials and textures as appearances of shapes."""

from typing import Any

import numpy as np

from pluriverse.geometry import Appearance, MeshSkin, Texture, TextureMapping
from pluriverse.importers.report import ImportReport

TEXTURE_2D, TEXTURE_CUBE = 0, 1  # mujoco.mjtTexture
ROLE_COLOR, ROLE_COLOR_ALPHA = 1, 8  # mujoco.mjtTextureRole
IGNORED_ROLES = {2: "occlusion", 4: "metallic", 5: "normal", 6: "opacity", 7: "emissive", 9: "orm"}


class MjcfAppearances:
    """Makes appearances from the materials of a compiled model, each once."""

    def __init__(self, model: Any, report: ImportReport):
        self.model = model
        self.report = report
        self._textures: dict[int, Texture] = {}
        self._appearances: dict[tuple[int, float], Appearance | None] = {}

    def of_material(self, material: int, alpha: float) -> Appearance | None:
        """Return the appearance of a geom with a material (-1 for none) and an opacity."""
        key = (material, alpha)
        if key not in self._appearances:
            self._appearances[key] = self._make(material, min(max(alpha, 0.0), 1.0))
        return self._appearances[key]

    def _make(self, material: int, alpha: float) -> Appearance | None:
        model = self.model
        if material < 0:
            return None if alpha == 1.0 else Appearance(alpha=alpha)
        roles = model.mat_texid[material]
        texture = int(roles[ROLE_COLOR] if roles[ROLE_COLOR] >= 0 else roles[ROLE_COLOR_ALPHA])
        for role, name in IGNORED_ROLES.items():
            if roles[role] >= 0:
                self.report.add(f"{name} texture", model.material(material).name, "it is not drawn")
        repeat = np.where(np.isfinite(model.mat_texrepeat[material]), model.mat_texrepeat[material], 1.0)
        return Appearance(
            texture=self._texture(texture) if texture >= 0 else None,
            texture_repeat=repeat.tolist(),
            texture_is_uniform=bool(model.mat_texuniform[material]),
            alpha=alpha,
            specular=float(np.clip(model.mat_specular[material], 0.0, 1.0)),
            shininess=float(np.clip(model.mat_shininess[material], 0.0, 1.0)),
            emission=max(float(model.mat_emission[material]), 0.0),
        )

    def _texture(self, texture: int) -> Texture | None:
        model = self.model
        kind = int(model.tex_type[texture])
        if kind not in (TEXTURE_2D, TEXTURE_CUBE):
            return None  # a sky is no surface
        if texture not in self._textures:
            rows, columns = int(model.tex_height[texture]), int(model.tex_width[texture])
            channels, first = int(model.tex_nchannel[texture]), int(model.tex_adr[texture])
            data = model.tex_data[first : first + rows * columns * channels]
            pixels = np.array(data, dtype=np.uint8).reshape(rows, columns, channels)
            if channels == 2:
                pixels = pixels[:, :, :1]
            if kind == TEXTURE_CUBE and rows == columns:
                pixels = np.tile(pixels, (6, 1, 1))  # one image for all six faces
            # MuJoCo stores the faces of a cube unchanged, and images with their first row at the bottom.
            self._textures[texture] = Texture(
                pixels if kind == TEXTURE_CUBE else pixels[::-1],
                mapping=TextureMapping.CUBE if kind == TEXTURE_CUBE else TextureMapping.SURFACE,
                name=f"texture '{model.texture(texture).name}'",
            )
        return self._textures[texture]


def mesh_skin(model: Any, mesh: int) -> MeshSkin | None:
    """Return the texture coordinates of a mesh, or None where it has none."""
    first = int(model.mesh_texcoordadr[mesh])
    if first < 0 or int(model.mesh_texcoordnum[mesh]) == 0:
        return None
    coordinates = model.mesh_texcoord[first : first + int(model.mesh_texcoordnum[mesh])].reshape(-1, 2)
    face, count = int(model.mesh_faceadr[mesh]), int(model.mesh_facenum[mesh])
    corners = model.mesh_facetexcoord[face : face + count].reshape(-1, 3)
    # MuJoCo counts the second coordinate from the top of the image.
    uv = np.array(coordinates, dtype=np.float32)[corners] * np.array([1.0, -1.0]) + np.array([0.0, 1.0])
    return MeshSkin(corner_uv=uv)
