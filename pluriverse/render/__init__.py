"""Pictures: the visible shapes of a model, our own ray caster, cameras, images and video."""

from pluriverse.render.camera import Camera
from pluriverse.render.draw import draw as draw
from pluriverse.render.picture import PictureRenderer, PictureStyle, WorldLayout
from pluriverse.render.raycast.caster import RayCaster
from pluriverse.render.recorder import Recorder
from pluriverse.render.visual import SeenGeometry, ShapeGroup, VisualMesh, VisualModel

__all__ = [
    "Camera",
    "PictureRenderer",
    "PictureStyle",
    "RayCaster",
    "Recorder",
    "SeenGeometry",
    "ShapeGroup",
    "VisualMesh",
    "VisualModel",
    "WorldLayout",
]
