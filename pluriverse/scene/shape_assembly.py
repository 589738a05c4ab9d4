"""Assembly of shapes: from their descriptions in a scene to shapes of a builder."""

from typing import Any

from pluriverse.scene.assembly import Assembly
from pluriverse.scene.errors import FieldError
from pluriverse.scene.meshes import add_mesh
from pluriverse.scene.shapes import (
    Box,
    Capsule,
    Cone,
    Cylinder,
    Ellipsoid,
    HeightfieldShape,
    MeshShape,
    Plane,
    Shape,
    Sphere,
    shape_configuration,
)


def add_shape(assembly: Assembly, shape: Shape, body: int, body_material: dict[str, Any]) -> int:
    """Add a shape to a body (-1 for the world) and return its index."""
    builder = assembly.builder
    options: dict[str, Any] = {
        "xform": shape.transform.as_list(),
        "cfg": shape_configuration(builder.default_shape_cfg, body_material, shape.configuration()),
        "label": shape.label,
        "color": shape.color,
    }
    match shape:
        case Box():
            return builder.add_shape_box(body, hx=shape.hx, hy=shape.hy, hz=shape.hz, **options)
        case Sphere():
            return builder.add_shape_sphere(body, radius=shape.radius, **options)
        case Capsule():
            return builder.add_shape_capsule(
                body, radius=shape.radius, half_height=shape.half_height, **options
            )
        case Cylinder():
            return builder.add_shape_cylinder(
                body, radius=shape.radius, half_height=shape.half_height, **options
            )
        case Cone():
            return builder.add_shape_cone(body, radius=shape.radius, half_height=shape.half_height, **options)
        case Ellipsoid():
            return builder.add_shape_ellipsoid(body, rx=shape.a, ry=shape.b, rz=shape.c, **options)
        case MeshShape():
            return add_mesh(assembly, shape, body, options)
        case HeightfieldShape():
            with assembly.at("terrain"):
                heightfield = shape.terrain.heightfield(assembly)
            if body != -1:
                raise FieldError(
                    "a height field is fixed to the world; add it by a post-build add_shape", "type"
                )
            return builder.add_shape_heightfield(heightfield=heightfield, **_colored(options))
        case Plane():
            return builder.add_shape_plane(body=body, width=shape.width, length=shape.length, **options)
    raise AssertionError(f"no case adds shapes of type {type(shape).__name__}")


def _colored(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options without an unset colour, so that the builder's default applies."""
    return {name: value for name, value in options.items() if name != "color" or value is not None}
