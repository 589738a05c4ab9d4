"""Worlds of one group may have other meshes, or meshes of another size, each as compiled by itself."""

import mujoco
import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.randomization import Randomizer, Uniform, geometry_size
from pluriverse.solvers.mujoco import SolverMuJoCo
from pluriverse.solvers.mujoco.mapping.conversion import convert_model
from pluriverse.solvers.mujoco.options import MujocoOptions
from pluriverse.variants import SceneCfg, VariantEntityCfg, make_scene

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
    with pytest.raises(ValueError, match=r"shape '.*' \(index 0, world 0\) has another mesh or size"):
        solver.notify_model_changed(pv.ModelFlags.SHAPE_PROPERTIES)


def outline(group, row, geom):
    """Return vertices and face normals of a geom with a mesh, in its body, in an order of their own."""
    model, mesh = group.model, int(group.value("geom_dataid")[row, geom])
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, group.value("geom_quat")[row, geom])
    first, count = int(model.mesh_vertadr[mesh]), int(model.mesh_vertnum[mesh])
    vertices = group.value("mesh_vert")[row][first : first + count].astype(np.float64)
    box = group.value("geom_aabb")[row].reshape(-1, 6)[geom]
    np.testing.assert_allclose(box[:3] + box[3:], vertices.max(axis=0), atol=ROUNDING)
    np.testing.assert_allclose(box[:3] - box[3:], vertices.min(axis=0), atol=ROUNDING)
    first, count = int(model.mesh_polyadr[mesh]), int(model.mesh_polynum[mesh])
    normals = group.value("mesh_polynormal")[row][first : first + count]
    vertices = vertices @ turn.reshape(3, 3).T + group.value("geom_pos")[row, geom]
    normals = normals @ turn.reshape(3, 3).T
    return (each[np.lexsort(np.round(each, 5).T)] for each in (vertices, normals))


@pytest.mark.filterwarnings("ignore:SolverMuJoCo")
def test_sizes_of_meshes_are_drawn_on_the_device():
    """Vertices and faces of meshes and cones are those of a conversion with the sizes drawn, recorded."""
    model = make([1.0, 1.0, 0.8, 1.0])
    simulation = pv.Simulation(model, SolverMuJoCo(model), dt=0.002)
    randomizer = Randomizer(simulation, [geometry_size(Uniform(0.6, 1.4))])
    with wp.ScopedCapture(device="cpu", force_module_load=False) as capture:
        randomizer.apply()
    for _ in range(2):
        wp.capture_launch(capture.graph)
        (group,), (anew,) = simulation.solver.groups, SolverMuJoCo(model).groups
        assert group.model.nmesh == 2
        assert anew.model.nmesh == 8
        for row in range(4):
            for geom in (1, 2):
                for mine, expected in zip(outline(group, row, geom), outline(anew, row, geom), strict=True):
                    np.testing.assert_allclose(mine, expected, atol=10.0 * ROUNDING)
    # A notice on the host does not disturb it, and motion is as after a conversion.
    simulation.notify_model_changed(pv.ModelFlags.ALL)
    other = pv.Simulation(model, SolverMuJoCo(model), dt=0.002)
    for each in (simulation, other):
        each.step(250)
    np.testing.assert_allclose(
        simulation.state.body_q.numpy()[:, :3], other.state.body_q.numpy()[:, :3], atol=1e-4
    )


@pytest.mark.filterwarnings("ignore:SolverMuJoCo")
def test_sizes_of_variants_are_drawn_around_their_own():
    """A mesh of a variant that nobody held yet is scaled as well, from the size that it has there."""
    wedges = {}
    for scale in (1.0, 0.5):
        wedges[str(scale)] = pv.ModelBuilder()
        add_wedge(wedges[str(scale)], scale)
    config = SceneCfg(
        num_envs=3,
        entities={"wedge": VariantEntityCfg(variants=wedges, assignment=lambda n: [0] * n)},
        reassignable=True,
    )
    scene = make_scene(config, device="cpu")
    simulation = scene.simulation(dt=0.002, solver=SolverMuJoCo(scene.model))
    randomizer = Randomizer(simulation, [geometry_size(Uniform(0.9, 1.1))])
    simulation.reassign(variants={"wedge": [1, 0, 1]})
    randomizer.apply()
    size = scene.model.shape_scale.numpy()[:6].reshape(3, 2, 3)[:, 0, 0]
    assert (np.abs(size / [0.5, 1.0, 0.5] - 1.0) < 0.1).all()
    (group,), (anew,) = simulation.solver.groups, SolverMuJoCo(scene.model).groups
    for row in range(3):
        for geom in (1, 2):
            for mine, expected in zip(outline(group, row, geom), outline(anew, row, geom), strict=True):
                np.testing.assert_allclose(mine, expected, atol=10.0 * ROUNDING)


@pytest.mark.filterwarnings("ignore:SolverMuJoCo")
def test_mujoco_warp_has_sizes_of_meshes_compiled_in():
    pytest.importorskip("mujoco_warp")
    model = make([1.0, 1.0])
    simulation = pv.Simulation(model, SolverMuJoCo(model, use_mujoco_cpu=False), dt=0.002)
    with pytest.raises(
        ValueError, match=r"shape '.*' \(index 0, world 0\) is a mesh, whose size MuJoCo has compiled"
    ):
        Randomizer(simulation, [geometry_size(Uniform(0.6, 1.4))])
