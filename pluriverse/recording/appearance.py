"""Meshes, textures and appearances of a model, to and from a container."""

import io
from typing import Any

import numpy as np

from pluriverse.geometry import Appearance, Heightfield, Mesh, Texture, TextureMapping
from pluriverse.geometry.appearance import MeshSkin
from pluriverse.geometry.image_file import read_pixels
from pluriverse.recording.container import ContainerReader, ContainerWriter


class AppearanceWriter:
    """Writes meshes and textures into a container, each once, before anything refers to it.

    Args:
        container: The container.
        model: The model that owns them.
    """

    def __init__(self, container: ContainerWriter, model: Any) -> None:
        self._container = container
        self._model = model
        self._textures: dict[bytes, int] = {}
        self._meshes: set[int] = set()

    def add_appearances(self) -> None:
        """Write all appearances of the model."""
        rows = [
            {
                "texture": self._texture(appearance.texture),
                "texture_repeat": appearance.texture_repeat,
                "texture_is_uniform": appearance.texture_is_uniform,
                "alpha": appearance.alpha,
                "specular": appearance.specular,
                "shininess": appearance.shininess,
                "emission": appearance.emission,
            }
            for appearance in self._model.appearances
        ]
        self._container.add_json("appearances", rows)

    def add_meshes(self, indices: np.ndarray) -> None:
        """Write those of these meshes of the model that were not written yet."""
        for index in np.unique(indices[indices >= 0]).tolist():
            if index not in self._meshes:
                self._meshes.add(index)
                self._add_mesh(f"mesh/{index}", self._model.meshes[index])

    def _add_mesh(self, name: str, mesh: Any) -> None:
        info: dict[str, Any] = {"name": mesh.name, "color": mesh.color}
        if isinstance(mesh, Heightfield):
            self._container.add(f"{name}/heights", mesh.heights)
            self._container.add_json(name, info | {"hx": mesh.hx, "hy": mesh.hy})
            return
        self._container.add(f"{name}/vertices", mesh.vertices)
        self._container.add(f"{name}/indices", mesh.indices)
        info["is_convex_hull"] = mesh.is_convex_hull
        skin = mesh.skin
        if skin is not None:
            info["part_texture"] = [self._texture(texture) for texture in skin.part_texture]
            for key in ("corner_uv", "triangle_part", "part_color"):
                if getattr(skin, key) is not None:
                    self._container.add(f"{name}/{key}", getattr(skin, key))
        # Written last: a mesh with a description is complete.
        self._container.add_json(name, info)

    def _texture(self, texture: Texture | None) -> int:
        if texture is None:
            return -1
        key = texture.content_key
        if key not in self._textures:
            from PIL import Image

            data = io.BytesIO()
            Image.fromarray(texture.pixels, mode="RGBA").save(data, format="PNG")
            index = self._textures[key] = len(self._textures)
            self._container.add(f"texture/{index}/png", np.frombuffer(data.getvalue(), dtype=np.uint8))
            info = {"name": texture.name, "mapping": texture.mapping.value}
            self._container.add_json(f"texture/{index}", info)
        return self._textures[key]


class AppearanceReader:
    """Reads meshes and textures of a container, each once.

    Args:
        container: The container.

    Raises:
        ValueError: If the file is damaged.
    """

    def __init__(self, container: ContainerReader) -> None:
        self._container = container
        self._textures: dict[int, Texture] = {}
        self.appearances: list[Appearance] = [
            Appearance(**{**row, "texture": self._texture(row["texture"])})
            for row in container.read_json("appearances")
        ]
        """Appearances of the model."""
        names = [name for name in container.names if name.startswith("mesh/") and name.count("/") == 1]
        self.mesh_indices = np.array(
            sorted(int(name.removeprefix("mesh/")) for name in names), dtype=np.int64
        )
        """Indices of the written meshes in the recorded model."""
        self.meshes: list[Any] = [self._mesh(f"mesh/{index}") for index in self.mesh_indices.tolist()]
        """These meshes."""

    def new_indices(self, indices: np.ndarray) -> np.ndarray:
        """Return the indices into `meshes` of mesh indices of the recorded model, -1 for none."""
        if not len(self.mesh_indices):
            return np.full(indices.shape, -1, dtype=np.int32)
        position = np.minimum(np.searchsorted(self.mesh_indices, indices), len(self.mesh_indices) - 1)
        return np.where(self.mesh_indices[position] == indices, position, -1).astype(np.int32)

    def _mesh(self, name: str) -> Any:
        container, info = self._container, self._container.read_json(name)
        if "hx" in info:
            heights = container.read(f"{name}/heights")
            field = Heightfield(heights, heights.shape[0], heights.shape[1], info["hx"], info["hy"])
            field.color = None if info["color"] is None else tuple(info["color"])
            return field

        def part(key: str) -> np.ndarray | None:
            return container.read(f"{name}/{key}") if f"{name}/{key}" in container else None

        skin = None
        if "part_texture" in info:
            skin = MeshSkin(
                corner_uv=part("corner_uv"),
                triangle_part=part("triangle_part"),
                part_color=part("part_color"),
                part_texture=[self._texture(index) for index in info["part_texture"]],
            )
        mesh = Mesh(
            container.read(f"{name}/vertices"),
            container.read(f"{name}/indices"),
            compute_inertia=False,
            color=info["color"],
            name=info["name"],
            skin=skin,
        )
        mesh.is_convex_hull = info["is_convex_hull"]
        return mesh

    def _texture(self, index: int) -> Texture | None:
        if index < 0:
            return None
        if index not in self._textures:
            from PIL import Image

            info = self._container.read_json(f"texture/{index}")
            data = io.BytesIO(self._container.read(f"texture/{index}/png").tobytes())
            with Image.open(data, formats=["PNG"]) as image:
                pixels = read_pixels(image, f"texture {index} of the recording")
            self._textures[index] = Texture(
                pixels, mapping=TextureMapping(info["mapping"]), name=info["name"]
            )
        return self._textures[index]
