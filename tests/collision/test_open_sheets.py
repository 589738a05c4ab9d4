"""Open triangle meshes beside each other."""

import numpy as np
from scipy.spatial import cKDTree
from scipy.spatial.transform import Rotation

import pluriverse as pv

CORNERS = np.array([[-0.5, -0.5, 0.0], [0.5, -0.5, 0.0], [0.0, 0.5, 0.0]])
GAP = 0.001
APART = 0.07  # m, far beyond what the sampled distance is off by


def test_sheets_apart_do_not_push():
    """Two single triangles 7 cm apart do not touch, whatever plane their corners are behind.

    Nearer ones may: which side of an open sheet a corner came from is told by one ray.
    """
    rng = np.random.default_rng(0)
    poses = [(Rotation.random(random_state=rng), 0.4 * rng.normal(size=3)) for _ in range(300)]
    weights = rng.dirichlet([1.0, 1.0, 1.0], 3000)
    mesh = pv.Mesh(CORNERS.astype(np.float32), np.array([0, 1, 2]))
    builder, distances = pv.ModelBuilder(gravity=0.0), []
    for rotation, position in poses:
        world = pv.ModelBuilder(gravity=0.0)
        for pose in ((0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), (*position, *rotation.as_quat())):
            body = world.add_body(xform=pose, mass=1.0, inertia=np.eye(3))
            world.add_shape_mesh(body, mesh=mesh, cfg=pv.ShapeConfig(density=0.0, gap=GAP))
        builder.add_world(world)
        other = weights @ (rotation.apply(CORNERS) + position)
        distances.append(cKDTree(weights @ CORNERS).query(other)[0].min())
    model = builder.finalize("cpu")
    pipeline = pv.CollisionPipeline(model)
    contacts = pipeline.contacts()
    pipeline.collide(model.state(), contacts)
    touching = contacts.rigid_contact_count.numpy()[np.array(distances) > APART] > 0
    assert touching.size > 150
    assert not touching.any()
