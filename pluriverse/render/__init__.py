"""Pictures: what is to be seen of a model, our own ray caster, cameras, pictures and video."""

from pluriverse.render.visual import SeenGeometry, ShapeGroup, VisualMesh, VisualModel

__all__ = ["SeenGeometry", "ShapeGroup", "VisualMesh", "VisualModel"]
