"""Text of USD stages for importer tests: bodies, joints and colliders in a few words."""


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
