"""Shortcuts of scripts written for Newton: collisions by the model, grids by the mesh, tendons of views."""

import numpy as np
import pytest

import pluriverse as newton

PAIR = """<mujoco model="pair"><worldbody>
<body name="a"><joint name="j1" axis="0 1 0"/><geom size=".1"/>
<body name="b" pos="0 0 1"><joint name="j2" axis="0 1 0"/><geom size=".1"/></body></body></worldbody>
<tendon><fixed name="cord" stiffness="3"><joint joint="j1" coef="1"/><joint joint="j2" coef="-1"/></fixed>
</tendon>
</mujoco>"""


def test_a_model_collides_by_itself():
    builder = newton.ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    builder.joint_q[2] = 0.05
    model = builder.finalize("cpu")
    state = model.state()
    contacts = model.contacts()
    assert model.collide(state, contacts) is contacts
    assert model.collide(state).rigid_contact_count.numpy().tolist() == [1]
    pipeline = newton.CollisionPipeline(model, rigid_contact_max=7)
    assert model.contacts(collision_pipeline=pipeline).rigid_contact_max == 7


def test_a_mesh_keeps_the_options_of_its_grid():
    mesh = newton.Mesh.create_box(0.5)
    key = mesh.content_key
    grid = mesh.build_sdf(max_resolution=16)
    assert mesh.signed_distance() is grid
    assert mesh.content_key != key
    with pytest.raises(ValueError, match="max_resolution"):
        mesh.build_sdf(max_resolution=-1)


def test_views_know_the_tendons_of_articulations():
    robot = newton.ModelBuilder()
    newton.SolverMuJoCo.register_custom_attributes(robot)
    robot.add_mjcf(PAIR)
    builder = newton.ModelBuilder()
    builder.replicate(robot, 3)
    model = builder.finalize("cpu")
    view = newton.selection.ArticulationView(model, "*")
    assert (view.tendon_count, view.tendon_names) == (1, ["cord"])
    np.testing.assert_array_equal(
        view.get_attribute("mujoco.tendon_stiffness", model).numpy().ravel(), [3.0] * 3
    )
    bare = newton.ModelBuilder()
    bare.add_body(mass=1.0, inertia=np.eye(3))
    assert newton.selection.ArticulationView(bare.finalize("cpu"), "*").tendon_count == 0
