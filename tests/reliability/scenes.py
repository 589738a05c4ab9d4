"""Small scenes for calls with wrong arguments."""

import numpy as np
import warp as wp

from pluriverse import Model, ModelBuilder


def make_boxes(world_count: int = 3, *, box_count: int = 1, hinge: bool = False) -> Model:
    """Return worlds of boxes just above the ground, or each on a hinge."""
    kind = ModelBuilder()
    for index in range(box_count):
        place = wp.transform((0.3 * index, 0.0, 0.099), wp.quat_identity())
        if hinge:
            body = kind.add_link(xform=place, mass=1.0, inertia=0.1 * np.eye(3))
            joint = kind.add_joint_revolute(-1, body, parent_xform=place, axis=(0.0, 1.0, 0.0))
            kind.add_articulation([joint])
        else:
            body = kind.add_body(xform=place)
        kind.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1)
    builder = ModelBuilder()
    builder.replicate(kind, world_count)
    builder.add_ground_plane()
    return builder.finalize(device="cpu")
