"""Worlds of one group may have other meshes, or meshes of another size, each as compiled by itself."""

import numpy as np
import pytest

import pluriverse as pv
from pluriverse.solvers.mujoco import SolverMuJoCo
from pluriverse.solvers.mujoco.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions

# `mjModel` keeps vertices, which bounds are computed from, in single precision.
ROUNDING = 1e-7


def add_wedge(builder: pv.ModelBuilder, scale: float) -> None:
    """Add a body with a lopsided mesh and a cone."""
    corners = np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.2, 0.0], [0.1, 0.1, 0.25]])
    faces = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
    body = builder.add_body(xform=((0.0, 0.0, 0.5), (0.0, 0.0, 0.0, 1.0)), mass=1.0, inertia=np.eye(3) * 0.01)
    massless = pv.ShapeConfig(density=0.0)
    frame = ((0.02, 0.0, 0.1), (0.0, 0.0, 0.6, 0.8))
    builder.add_shape_mesh(
        body, xform=frame, mesh=pv.Mesh(corners, faces), scale=(scale, 1.0, scale), cfg=massless
    )
    builder.add_shape_cone(body, radius=0.1 * scale, half_height=0.1, cfg=massless)


def make(scales: list[float]) -> pv.Model:
    """Return worlds with wedges of these sizes above the ground."""
    builder = pv.ModelBuilder()
    for scale in scales:
        builder.begin_world()
        add_wedge(builder, scale)
        builder.end_world()
    builder.add_ground_plane()
    return builder.finalize("cpu")


@pytest.mark.filterwarnings("ignore:SolverMuJoCo")
def test_meshes_of_other_sizes_are_numbers_of_a_world():
    """Poses and bounds of meshes are those of the world compiled by itself, and so is what it does."""
    scales = [1.0, 0.6, 1.0, 1.4]
    (group,) = convert_model(make(scales), MujocoOptions())
    assert group.model.nmesh == 6
    for row, scale in enumerate(scales):
        (alone,) = convert_model(make([scale]), MujocoOptions())
        for name in ("geom_pos", "geom_quat", "geom_size", "geom_rbound", "geom_aabb"):
            mine, expected = group.value(name)[row], getattr(alone.model, name)
            np.testing.assert_allclose(mine.reshape(expected.shape), expected, atol=ROUNDING, err_msg=name)
    model = make(scales)
    simulation = pv.Simulation(model, SolverMuJoCo(model), dt=0.002)
    simulation.step(250)
    for world, scale in enumerate(scales):
        single = make([scale])
        other = pv.Simulation(single, SolverMuJoCo(single), dt=0.002)
        other.step(250)
        # It lies on the ground by then, so bounds count; rounding of these hardly does.
        np.testing.assert_allclose(
            simulation.state.body_q.numpy()[world, :3], other.state.body_q.numpy()[0, :3], atol=1e-4
        )


@pytest.mark.filterwarnings("ignore:SolverMuJoCo")
def test_a_size_that_was_not_compiled_is_named():
    model = make([1.0, 0.6])
    solver = SolverMuJoCo(model)
    scale = model.shape_scale.numpy()
    scale[0] = scale[2]  # that of the other world, which is there
    model.shape_scale.assign(scale)
    solver.notify_model_changed(pv.ModelFlags.SHAPE_PROPERTIES)
    (group,) = solver.groups
    np.testing.assert_array_equal(group.value("geom_dataid")[0, 1], group.value("geom_dataid")[1, 1])
    scale[0] = 0.7
    model.shape_scale.assign(scale)
    with pytest.raises(ValueError, match=r"shape '.*' \(index 0\) has another mesh or size"):
        solver.notify_model_changed(pv.ModelFlags.SHAPE_PROPERTIES)
