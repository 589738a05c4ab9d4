"""Appearance calls: colours, textures and labels of bodies, and lights. Without effect on physics."""

from typing import Any

import numpy as np

from pluriverse.geometry import Texture
from pluriverse.gymapi.arguments import as_int, vector
from pluriverse.gymapi.checks import Checks
from pluriverse.gymapi.enums import MeshType
from pluriverse.gymapi.errors import GymError, require
from pluriverse.gymapi.lights import LIGHT_COUNT, DistantLight
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.values import Vec3

# Handle of no texture.
NO_TEXTURE = 0


class AppearanceCalls(Checks):
    """What cameras and pictures see of bodies."""

    def set_rigid_body_color(
        self, env: Any, actor_handle: int, body: int, mesh_type: MeshType | int, color: Vec3
    ) -> None:
        """Give a body a colour: red, green and blue from 0 to 1."""
        call = "set_rigid_body_color"
        actor, index = self._part(env, actor_handle, body, call)
        value = vector(color, "color", call)
        require(
            bool(np.isfinite(list(value)).all()), call, f"color is {color!r}, but its numbers must be finite."
        )
        for bit in _bits(mesh_type, call):
            actor.colors[index, bit] = value
        _paint(actor, index)

    def get_rigid_body_color(self, env: Any, actor_handle: int, body: int, mesh_type: MeshType | int) -> Vec3:
        """Return the colour of a body, that of its first shape; white if it has none."""
        call = "get_rigid_body_color"
        actor, index = self._part(env, actor_handle, body, call)
        bits = _bits(mesh_type, call)
        given = next((actor.colors[index, bit] for bit in bits if (index, bit) in actor.colors), None)
        if given is not None:
            return given
        carrier, colors = actor.asset.builder.shape_body, actor.asset.builder.shape_color
        if int(MeshType.MESH_VISUAL) in bits:
            from pluriverse.gymapi.drawn_shapes import drawn_asset  # loads the ray caster

            drawn = drawn_asset(actor.asset)
            carrier, colors = drawn.body, drawn.builder.shape_color
        rows = np.flatnonzero(carrier == index)
        return Vec3(*colors[rows[0]].tolist()) if len(rows) else Vec3(1.0, 1.0, 1.0)

    def reset_actor_materials(self, env: Any, actor_handle: int, mesh_type: MeshType | int) -> None:
        """Give the bodies of an actor the colours and textures of their file again."""
        call = "reset_actor_materials"
        actor = self._actor(env, actor_handle, call)
        bits = _bits(mesh_type, call)
        touched = {key for key in (*actor.colors, *actor.textures) if key[1] in bits}
        for key in touched:
            actor.colors.pop(key, None)
            actor.textures.pop(key, None)
        for index in {index for index, _ in touched}:
            _paint(actor, index)

    def create_texture_from_file(self, sim: Any, filename: str) -> int:
        """Read an image (PNG, JPEG, BMP, ...) and return its handle.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If it is no image.
        """
        found = self._sim(sim, "create_texture_from_file")
        try:
            texture = Texture.load(str(filename))
        except FileNotFoundError as error:
            raise FileNotFoundError(f"create_texture_from_file: {error} Check filename.") from error
        except (OSError, ValueError) as error:
            raise ValueError(f"create_texture_from_file: {error}") from error
        return _add_texture(found, texture)

    def create_texture_from_buffer(self, sim: Any, width: int, height: int, pixels: Any) -> int:
        """Make a texture of an array of bytes and return its handle.

        Args:
            sim: The sim.
            width: Columns.
            height: Rows.
            pixels: Red, green, blue (and alpha) of each pixel from 0 to 255, row by row from the top, of any
                shape; bodies stay opaque.
        """
        call = "create_texture_from_buffer"
        found = self._sim(sim, call)
        columns, rows = as_int(width, "width", call), as_int(height, "height", call)
        array = np.asarray(pixels.cpu() if hasattr(pixels, "cpu") else pixels)
        channels = array.size // max(columns * rows, 1)
        require(
            columns >= 1 and rows >= 1 and channels in (3, 4) and array.size == channels * columns * rows,
            call,
            f"pixels has {array.size} numbers, but {columns} x {rows} pixels need 3 or 4 each.",
        )
        if array.dtype != np.uint8:
            require(
                bool(np.isfinite(array).all() and array.min() >= 0 and array.max() <= 255),
                call,
                "pixels has numbers outside 0 to 255.",
            )
        image = array.astype(np.uint8).reshape(rows, columns, channels)
        # Bodies are opaque, whatever the fourth byte is.
        return _add_texture(found, Texture(image[:, :, :3], name=f"texture {len(found.textures) + 1}"))

    def free_texture(self, sim: Any, texture_handle: int) -> None:
        """Take a texture out of use. Bodies that wear it keep it."""
        found = self._sim(sim, "free_texture")
        handle = as_int(texture_handle, "texture_handle", "free_texture")
        if found.textures.get(handle) is None:
            raise IndexError(f"free_texture: there is no texture {texture_handle!r}.")
        found.freed_textures.add(handle)

    def set_rigid_body_texture(
        self, env: Any, actor_handle: int, body: int, mesh_type: MeshType | int, texture_handle: int
    ) -> None:
        """Lay a texture around a body; its colour, where `set_rigid_body_color` gave one, tints it."""
        call = "set_rigid_body_texture"
        actor, index = self._part(env, actor_handle, body, call)
        sim = actor.env.sim
        handle = as_int(texture_handle, "texture_handle", call)
        if handle not in sim.textures:
            raise IndexError(
                f"{call}: there is no texture {texture_handle!r}. Use what create_texture_from_file() or "
                "create_texture_from_buffer() returned."
            )
        if handle in sim.freed_textures:
            raise GymError(f"{call}: texture {texture_handle!r} was freed. Create another one.")
        for bit in _bits(mesh_type, call):
            actor.textures[index, bit] = handle
        _paint(actor, index)

    def get_rigid_body_texture(
        self, env: Any, actor_handle: int, body: int, mesh_type: MeshType | int
    ) -> int:
        """Return the handle of the texture that a call gave a body, 0 if none did."""
        call = "get_rigid_body_texture"
        actor, index = self._part(env, actor_handle, body, call)
        given = (actor.textures.get((index, bit), NO_TEXTURE) for bit in _bits(mesh_type, call))
        return next((handle for handle in given if handle), NO_TEXTURE)

    def set_rigid_body_segmentation_id(
        self, env: Any, actor_handle: int, body: int, segmentation_id: int
    ) -> None:
        """Set the segmentation id of a body, in place of that of its actor."""
        call = "set_rigid_body_segmentation_id"
        actor, index = self._part(env, actor_handle, body, call)
        actor.segmentation_ids[index] = as_int(segmentation_id, "segmentation_id", call)
        for watcher in actor.env.sim.shape_watchers:
            watcher.segment(actor, index)

    def get_rigid_body_segmentation_id(self, env: Any, actor_handle: int, body: int) -> int:
        """Return the segmentation id of a body."""
        actor, index = self._part(env, actor_handle, body, "get_rigid_body_segmentation_id")
        return actor.segmentation_ids.get(index, actor.segmentation_id)

    def set_light_parameters(
        self, sim: Any, light: int, intensity: Vec3, ambient: Vec3, direction: Vec3
    ) -> None:
        """Set a light that is infinitely far away.

        Args:
            sim: The sim.
            light: Its number, 0 to 3.
            intensity: Red, green and blue of what comes from it, from 0 up.
            ambient: Red, green and blue of what comes from everywhere, from 0 up.
            direction: Where it stands, of any length.
        """
        call = "set_light_parameters"
        found = self._sim(sim, call)
        index = as_int(light, "light", call)
        require(
            0 <= index < LIGHT_COUNT, call, f"light is {light!r}, but must be from 0 to {LIGHT_COUNT - 1}."
        )
        rows = [
            np.array(list(vector(value, what, call)), dtype=np.float64)
            for value, what in ((intensity, "intensity"), (ambient, "ambient"), (direction, "direction"))
        ]
        require(
            bool(np.isfinite(rows).all() and (np.array(rows[:2]) >= 0.0).all()),
            call,
            f"intensity is {intensity!r}, ambient {ambient!r} and direction {direction!r}, but they must be "
            "finite, and the first two not negative.",
        )
        found.lights.set(index, DistantLight(*rows))

    def _part(self, env: Any, actor_handle: Any, body: Any, call: str) -> tuple[Actor, int]:
        """Return the actor and the body of it that a call means."""
        actor = self._actor(env, actor_handle, call)
        return actor, self._entry(body, actor.asset.body_names, "body", str(actor), call)


def _bits(mesh_type: Any, call: str) -> list[int]:
    """Return the bits of a mesh type."""
    try:
        kind = int(MeshType(int(mesh_type)))
    except (TypeError, ValueError):
        names = ", ".join(f"gymapi.{member.name}" for member in MeshType)
        raise ValueError(f"{call}: the mesh type is {mesh_type!r}, but must be one of {names}.") from None
    return [bit for bit in (int(MeshType.MESH_VISUAL), int(MeshType.MESH_COLLISION)) if kind & bit]


def _paint(actor: Actor, body: int) -> None:
    """Apply changes to what is drawn, if anything is drawn so far."""
    for watcher in actor.env.sim.shape_watchers:
        watcher.paint(actor, body)


def _add_texture(sim: Any, texture: Any) -> int:
    handle = len(sim.textures) + 1
    sim.textures[handle] = texture
    return handle
