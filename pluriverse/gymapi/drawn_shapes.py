"""Drawn shapes: the visible shapes of a sim, with their colours, textures and segmentation ids.

Physics needs no display geometry, so assets are loaded without it. At the first request of a picture, the
files are read again, and their visual shapes form a model of their own, with the same worlds. The bodies of
the simulated model carry them, so that nothing is copied from step to step.
"""

import warnings
from typing import Any

import numpy as np
import warp as wp

from pluriverse.geometry import Appearance, Texture, TextureMapping
from pluriverse.gymapi.assembly import add_ground_shape, place_grounds
from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.enums import MeshType
from pluriverse.gymapi.scene import Actor, Sim
from pluriverse.model import Model
from pluriverse.model_builder import ModelBuilder
from pluriverse.render import RayCaster, SeenGeometry
from pluriverse.render.raycast.appearance import AppearanceArrays
from pluriverse.types import Entity, GeoType, ShapeFlags

BITS = {
    SeenGeometry.VISUAL: int(MeshType.MESH_VISUAL),
    SeenGeometry.COLLISION: int(MeshType.MESH_COLLISION),
}
"""Bit of `MeshType` that means the shapes of a kind of geometry."""


class DrawnAsset:
    """Display geometry of an asset.

    Args:
        asset: The asset.
    """

    def __init__(self, asset: Asset):
        source = asset.builder if asset.read_visuals is None else asset.read_visuals()
        body_index = {label: body for body, label in enumerate(asset.builder.body_label)}
        carrier = np.array([body_index.get(label, -1) for label in source.body_label] + [-1], dtype=np.int64)
        shown = (source.shape_flags & int(ShapeFlags.VISIBLE)) != 0
        rows = np.flatnonzero(shown & (carrier[source.shape_body] >= 0))
        rows = rows[np.argsort(carrier[source.shape_body[rows]], kind="stable")]
        self.body = carrier[source.shape_body[rows]]
        """Body of the asset that carries each shape, shape [shape]."""
        self.builder = builder = ModelBuilder()
        """The shapes alone, in the frames of their bodies."""
        builder.tables[Entity.SHAPE] = source.tables[Entity.SHAPE].taken(rows)
        builder.shape_label = [source.shape_label[row] for row in rows.tolist()]
        builder.meshes, builder.appearances = source.meshes, source.appearances
        builder.mesh_of_content = source.mesh_of_content
        builder.appearance_of_content = source.appearance_of_content
        builder.column("shape_body")[:] = -1
        # Meshes collide as their hulls, but are shown unchanged.
        kinds = builder.shape_type
        kinds[kinds == int(GeoType.CONVEX_MESH)] = int(GeoType.MESH)


def drawn_asset(asset: Asset) -> DrawnAsset:
    """Return the display geometry of an asset, read once."""
    if asset.drawn is None:
        asset.drawn = DrawnAsset(asset)
    drawn: DrawnAsset = asset.drawn
    return drawn


class _Column:
    """Rows of an array on the device, written on the host and copied to the device when they are needed."""

    def __init__(self, array: Any):
        self.array = array
        self.host: np.ndarray = array.numpy()
        self._is_changed = False

    def put(self, rows: Any, values: Any) -> None:
        """Write rows."""
        self.host[rows] = values
        self._is_changed = True

    def to_device(self) -> None:
        """Copy written rows to the device; on a CPU they are there already."""
        if self._is_changed and not self.array.device.is_cpu:
            self.array.assign(self.host)
        self._is_changed = False


class DrawnShapes:
    """The shapes of one kind of geometry in all worlds, ready for rendering.

    Args:
        sim: A prepared sim.
        geometry: VISUAL for what files show, COLLISION for what collides.
    """

    def __init__(self, sim: Sim, geometry: SeenGeometry):
        self.sim = sim
        self.geometry = geometry
        """Which shapes are seen."""
        model: Model = sim.prepared.model
        self._is_visual = geometry is SeenGeometry.VISUAL
        if self._is_visual:
            self.model, self._start, carrier = _visual_model(sim)
            self.caster = RayCaster(self.model, geometry=geometry)
            # The shapes are static in their own model; from now on bodies of the simulated model carry them.
            self.model.shape_body.assign(carrier.astype(np.int32))
        else:
            self.model = model
            self._start = np.array([actor.starts["shape"] for actor in sim.actors], dtype=np.int64)
            self.caster = RayCaster(model, geometry=geometry)
        self._color, self._appearance = _Column(self.model.shape_color), _Column(self.model.shape_appearance)
        self._transform = _Column(self.model.shape_transform)
        self._scale = _Column(self.model.shape_scale)
        self._types: np.ndarray = self.model.shape_type.numpy()
        self._first_color = self._color.host.copy()
        self._first_appearance = self._appearance.host.copy()
        segmentation: Any = wp.zeros(self.model.shape_count, dtype=wp.int32, device=model.device)
        self._segmentation = _Column(segmentation)
        self.segmentation = segmentation
        """Segmentation id of each shape, shape [shape]."""
        self._appearance_of_texture: dict[tuple[int, bool], int] = {}
        self._appearance_arrays: AppearanceArrays | None = None
        for actor in sim.actors:
            self._dress(actor)
        self._segment_grounds()

    @property
    def appearance(self) -> AppearanceArrays:
        """Colours and textures for the shader, made when they are needed."""
        if self._appearance_arrays is None:
            self._appearance_arrays = AppearanceArrays(self.model, self.caster.arrays)
        return self._appearance_arrays

    def to_device(self) -> None:
        """Copy changes by calls to the device."""
        for column in (self._color, self._appearance, self._transform, self._scale, self._segmentation):
            column.to_device()

    def rows(self, actor: Actor, body: int) -> np.ndarray:
        """Return the shapes of a body."""
        return int(self._start[actor.index]) + np.flatnonzero(self._bodies(actor) == body)

    def _bodies(self, actor: Actor) -> np.ndarray:
        return drawn_asset(actor.asset).body if self._is_visual else actor.asset.builder.shape_body

    def _dress(self, actor: Actor) -> None:
        """Apply all earlier calls to the shapes of an actor."""
        count = len(self._bodies(actor))
        start = int(self._start[actor.index])
        self._segmentation.put(slice(start, start + count), actor.segmentation_id)
        for body in actor.segmentation_ids:
            self.segment(actor, body)
        if actor.colors or actor.textures:
            for body in {body for body, _ in (*actor.colors, *actor.textures)}:
                self.paint(actor, body)
        if actor.scale != 1.0:
            self.rescale(actor)

    def segment(self, actor: Actor, body: int) -> None:
        """Write the segmentation id of a body."""
        identity = actor.segmentation_ids.get(body, actor.segmentation_id)
        self._segmentation.put(self.rows(actor, body), identity)

    def _segment_grounds(self) -> None:
        grounds = self.sim.grounds
        ends = np.searchsorted(
            self.model.shape_world.numpy(), np.arange(self.model.world_count), side="right"
        )
        for number, ground in enumerate(grounds):
            self._segmentation.put(ends - len(grounds) + number, ground.segmentation_id)

    def paint(self, actor: Actor, body: int) -> None:
        """Write colour and texture of a body: those set by calls, else those of its file."""
        rows, key = self.rows(actor, body), (body, BITS[self.geometry])
        color, texture = actor.colors.get(key), actor.textures.get(key, 0)
        self._color.put(rows, self._first_color[rows] if color is None else list(color))
        if not texture:
            self._appearance.put(rows, self._first_appearance[rows])
            return
        if color is None:
            self._color.put(rows, 1.0)  # the texture as it is
        is_mesh = np.isin(self._types[rows], (int(GeoType.MESH), int(GeoType.CONVEX_MESH)))
        for meshed in (False, True):
            if (is_mesh == meshed).any():
                self._appearance.put(rows[is_mesh == meshed], self._texture_appearance(texture, meshed))

    def _texture_appearance(self, handle: int, meshed: bool) -> int:
        """Return the index of the appearance of a texture: by the coordinates of meshes, or on six faces."""
        key = (handle, meshed)
        if key not in self._appearance_of_texture:
            texture: Texture = self.sim.textures[handle]
            if not meshed:
                texture = _six_faces(texture)
            self._appearance_of_texture[key] = len(self.model.appearances)
            self.model.appearances.append(Appearance(texture=texture))
            self._appearance_arrays = None
        return self._appearance_of_texture[key]

    def rescale(self, actor: Actor) -> None:
        """Scale display geometry with its actor; collision geometry is scaled already."""
        if not self._is_visual:
            return
        builder = drawn_asset(actor.asset).builder
        start = int(self._start[actor.index])
        rows = slice(start, start + builder.shape_count)
        transform = builder.shape_transform.copy()
        transform[:, :3] *= actor.scale
        self._transform.put(rows, transform)
        self._scale.put(rows, builder.shape_scale * actor.scale)


def _six_faces(texture: Texture) -> Texture:
    """Return a texture that shows an image on each side of a box around a shape."""
    from PIL import Image

    side = max(texture.pixels.shape[:2])
    image = np.asarray(Image.fromarray(texture.pixels).resize((side, side)))
    return Texture(np.concatenate([image] * 6), mapping=TextureMapping.CUBE, name=texture.name)


def _visual_model(sim: Sim) -> tuple[Model, np.ndarray, np.ndarray]:
    """Return the model of the visible shapes, the first shape of each actor, and the body of each shape."""
    simulated: Model = sim.prepared.model
    worlds: list[list[int]] = [[] for _ in range(simulated.world_count)]
    for env in sim.envs:
        worlds[env.world].append(env.index)
    start = np.zeros(len(sim.actors), dtype=np.int64)
    carriers: list[np.ndarray] = []
    runs: list[tuple[Any, ModelBuilder, int]] = []
    builders: dict[Any, ModelBuilder] = {}
    count = 0
    for envs in worlds:
        actors = [actor for env in envs for actor in sim.envs[env].actors]
        key = tuple(id(actor.asset) for actor in actors)
        if key not in builders:
            builders[key] = _world_builder(sim, actors)
        if runs and runs[-1][0] == key:
            runs[-1] = (key, builders[key], runs[-1][2] + 1)
        else:
            runs.append((key, builders[key], 1))
        for actor in actors:
            start[actor.index] = count
            body = drawn_asset(actor.asset).body
            carriers.append(actor.starts["body"] + body)
            count += len(body)
        carriers.append(np.full(len(sim.grounds), -1))
        count += len(sim.grounds)
    builder = ModelBuilder()
    for _, one, copies in runs:
        builder.replicate(one, copies)
    place_grounds(sim, worlds, builder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of physics, which this model has none of
        model = builder.finalize(simulated.device)
    return model, start, np.concatenate(carriers) if carriers else np.zeros(0, dtype=np.int64)


def _world_builder(sim: Sim, actors: list[Actor]) -> ModelBuilder:
    """Return the builder of the visible shapes of one world."""
    builder = ModelBuilder()
    for actor in actors:
        builder.add_builder(drawn_asset(actor.asset).builder)
    for ground in sim.grounds:
        add_ground_shape(sim, builder, ground)
    builder.shape_flags[:] = int(ShapeFlags.VISIBLE)
    return builder
