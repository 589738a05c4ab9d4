"""Small assets for scenes with variants."""

import mujoco
import numpy as np

import pluriverse as pv

IDENTITY = (0.0, 0.0, 0.0, 1.0)


def mesh_spec(visuals=1, collisions=1, size=0.05, *, name="prop", free=True, density=1000.0, friction=1.0):
    """Return a spec of one body with mesh geoms: boxes and wedges of different sizes."""
    spec = mujoco.MjSpec()
    body = spec.worldbody.add_body(name=name)
    if free:
        body.add_freejoint()
    for role, count in (("visual", visuals), ("collision", collisions)):
        for number in range(count):
            mesh = spec.add_mesh(name=f"{role}_{number}")
            mesh.make_hemisphere(resolution=3) if number % 2 else mesh.make_sphere(subdivision=0)
            mesh.scale[:] = (size, size * (1.0 + 0.3 * number), size)
            geom = body.add_geom(
                type=mujoco.mjtGeom.mjGEOM_MESH,
                meshname=mesh.name,
                name=f"{name}_{role}_{number}",
                pos=(0.1 * number, 0.0, 0.0),
                density=density if role == "collision" else 0.0,
                friction=(friction, 0.005, 0.0001),
            )
            if role == "visual":
                geom.contype = geom.conaffinity = 0
    return spec


def box_builder(half=0.05, *, mass=None, mu=0.5, label="box"):
    """Return a builder of a free box."""
    builder = pv.ModelBuilder()
    body = builder.add_body(label=label)
    config = builder.default_shape_cfg.copy()
    config.mu = mu
    if mass is not None:
        config.density = mass / (8.0 * half**3)
    builder.add_shape_box(body, hx=half, hy=half, hz=half, cfg=config)
    return builder


def ball_builder(radius=0.05, *, label="ball"):
    """Return a builder of a free ball."""
    builder = pv.ModelBuilder()
    body = builder.add_body(label=label)
    builder.add_shape_sphere(body, radius=radius)
    return builder


def pile_builder(count):
    """Return a builder of some boxes, one above the other."""
    builder = pv.ModelBuilder()
    for number in range(count):
        body = builder.add_body(xform=((0.02 * number, 0.0, 0.06 + 0.12 * number), IDENTITY))
        builder.add_shape_box(body, hx=0.05, hy=0.05, hz=0.05)
    return builder


def arm_builder(links, *, length=0.3, stiffness=0.0):
    """Return a builder of a chain of links that hangs from the world: a fixed base."""
    builder = pv.ModelBuilder()
    parent, joints = -1, []
    for number in range(links):
        body = builder.add_link(label=f"arm/link_{number}")
        builder.add_shape_capsule(
            body, xform=((0.0, 0.0, -0.5 * length), IDENTITY), radius=0.03, half_height=0.4 * length
        )
        frame = ((0.0, 0.0, 1.5 if number == 0 else -length), IDENTITY)
        joints.append(
            builder.add_joint_revolute(
                parent, body, parent_xform=frame, axis=(0.0, 1.0, 0.0), label=f"arm/joint_{number}"
            )
        )
        parent = body
    builder.add_articulation(joints, label="arm")
    if stiffness:
        builder.joint_target_ke[:] = stiffness
        builder.joint_target_kd[:] = 0.1 * stiffness
    builder.joint_q[:] = 0.3
    return builder


def world_rows(model, name, world):
    """Return the rows of an array that belong to bodies, dofs or shapes of a world."""
    kind = {"body": "body", "shape": "shape"}.get(name.split("_")[0], "joint_dof")
    if name == "joint_q":
        kind = "joint_coord"
    if name in ("joint_X_p", "joint_X_c"):
        kind = "joint"
    start = getattr(model, f"{kind}_world_start").numpy()
    return np.asarray(getattr(model, name).numpy())[start[world] : start[world + 1]]
