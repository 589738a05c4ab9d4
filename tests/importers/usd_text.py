"""Text of USD stages for importer tests: bodies, joints and colliders in a few words, and their import."""

import numpy as np

from pluriverse.model_builder import ModelBuilder

ROUNDING = 1e-6  # USD's physics attributes are in single precision
DEGREE = np.pi / 180.0

# A tetrahedron.
MESH = """point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)]
int[] faceVertexCounts = [3, 3, 3, 3]
int[] faceVertexIndices = [0, 2, 1, 0, 1, 3, 0, 3, 2, 1, 2, 3]
"""


def stage(content, *, meters=1, kilograms=1, up="Z"):
    """Return the text of a stage."""
    return f"""#usda 1.0
(
    metersPerUnit = {meters}
    kilogramsPerUnit = {kilograms}
    upAxis = "{up}"
)
{content}
"""


def prim(kind, name, content="", apis=(), meta=""):
    """Return a prim; `content` holds one statement per line."""
    schemas = (
        f"prepend apiSchemas = [{', '.join(f'{chr(34)}{api}{chr(34)}' for api in apis)}]" if apis else ""
    )
    return f"""def {kind} "{name}" (
{schemas}
{meta}
)
{{
{content}
}}
"""


def at(x=0.0, y=0.0, z=0.0):
    """Return the transform of a prim at a position."""
    return f"""double3 xformOp:translate = ({x}, {y}, {z})
uniform token[] xformOpOrder = ["xformOp:translate"]
"""


def body(name, content="", *, mass=1.0, inertia=(0.1, 0.1, 0.1), apis=()):
    """Return a rigid body with a mass of its own."""
    own = ""
    if mass is not None:
        own = f"float physics:mass = {mass}\nfloat3 physics:diagonalInertia = {inertia}\n"
    return prim("Xform", name, own + content, ("PhysicsRigidBodyAPI", "PhysicsMassAPI", *apis))


def joint(kind, name, first, second, content="", apis=()):
    """Return a joint between two prims; an empty path is the world."""
    ends = f"rel physics:body0 = <{first}>\n" if first else ""
    ends += f"rel physics:body1 = <{second}>\n" if second else ""
    return prim(f"Physics{kind}", name, ends + content, apis)


def collider(kind, name, content="", apis=()):
    """Return geometry that collides."""
    return prim(kind, name, content, ("PhysicsCollisionAPI", *apis))


def arm(content="", kind="RevoluteJoint", apis=(), first="/base", second="/tip"):
    """Return a base fixed to the world, and a tip 1 above it on a joint."""
    return (
        body("base")
        + body("tip", at(z=1.0))
        + joint("FixedJoint", "mount", "", "/base")
        + joint(
            kind,
            "elbow",
            first,
            second,
            ("point3f physics:localPos0 = (0, 0, 1)\n" if first == "/base" else "")
            + ("point3f physics:localPos1 = (0, 0, 1)\n" if second == "/base" else "")
            + content,
            apis,
        )
    )


def load(content, *, meters=1, kilograms=1, up="Z", **options):
    """Return a builder with a stage of that content, and the report of the import."""
    builder = ModelBuilder()
    report = builder.add_usd(stage(content, meters=meters, kilograms=kilograms, up=up), **options)
    return builder, report


def entries(report):
    """Return the entries of a report by feature."""
    return {entry.feature: entry for entry in report.entries}
