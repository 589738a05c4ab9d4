"""Names, keywords and habits that scripts written for Newton bring along."""

import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
import warp as wp

import pluriverse as pv
from pluriverse.warnings import AssetWarning, PluriverseWarning

ARM = """<mujoco model="arm"><worldbody><body name="link"><joint name="hinge" axis="0 1 0"/>
<geom name="rod" type="capsule" fromto="0 0 0 0 0 1" size="0.05"/></body></worldbody></mujoco>"""


def test_rooms_are_attributes_of_the_package():
    program = (
        "import sys, pluriverse as pv; assert 'warp' not in sys.modules;"
        "print(pv.solvers.SolverSAP.__name__, pv.selection.ArticulationView.__name__,"
        "pv.geometry.Mesh is pv.Mesh, pv.math.__name__,"
        "pv.sensors.__name__, pv.warnings.PluriverseWarning.__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(pv.__file__).parents[1],
        capture_output=True,
        text=True,
        check=True,
    )
    assert result.stdout.splitlines()[-1] == (
        "SolverSAP ArticulationView True pluriverse.math pluriverse.sensors PluriverseWarning"
    )


@pytest.mark.parametrize("value", ["y", "Y", 1, np.int64(1), pv.Axis.Y])
def test_axis_of_anything(value):
    assert pv.Axis.from_any(value) is pv.Axis.Y
    assert pv.Axis.from_any(value).to_vector() == (0.0, 1.0, 0.0)


@pytest.mark.parametrize("value", ["up", "", 3, -1, 1.0, True, None, "1"])
def test_what_is_no_axis_is_refused(value):
    with pytest.raises(ValueError, match=r"is no axis. Give Axis\.X"):
        pv.Axis.from_any(value)


def test_finalize_takes_the_keywords_and_still_checks():
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        builder.finalize("cpu", requires_grad=False, skip_validation_joint_ordering=True)
    with pytest.raises(ValueError, match="requires_grad is True, but steps are not differentiable"):
        builder.finalize("cpu", requires_grad=True)
    builder.add_link(mass=1.0)
    with (
        pytest.warns(PluriverseWarning, match="skip_all_validations: every check runs"),
        pytest.raises(ValueError, match="has no joint"),
    ):
        builder.finalize("cpu", skip_all_validations=True)


def test_a_pipeline_takes_the_keywords():
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    model = builder.finalize("cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pv.CollisionPipeline(model, broad_phase="sap", requires_grad=False, deterministic=True)
    with pytest.raises(ValueError, match="contacts are not differentiable"):
        pv.CollisionPipeline(model, requires_grad=True)


def test_contact_gains_without_meaning_are_taken_with_a_warning():
    for name in ("kf", "ka"):
        with pytest.warns(PluriverseWarning, match=f"{name} is 5.0, but it changes nothing") as caught:
            config = pv.ShapeConfig(ke=1.0e4, **{name: 5.0})
        assert len(caught) == 1
        assert caught[0].filename == __file__
        assert getattr(config, name) == 0.0
        with pytest.raises(ValueError, match=f"{name} is nan"):
            setattr(config, name, float("nan"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pv.ShapeConfig(kf=0.0, ka=0.0)


def test_importers_take_the_keywords(capsys):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pv.ModelBuilder().add_mjcf(
            ARM,
            verbose=True,
            ctrl_direct=False,
            convert_mjc_equality_constraints=True,
            mesh_maxhullvert=None,
        )
    assert "1 bodies, 1 joints, 1 shapes" in capsys.readouterr().out
    with pytest.warns(AssetWarning, match="ctrl_direct=True changes nothing: actuators become") as caught:
        pv.ModelBuilder().add_mjcf(ARM, ctrl_direct=True)
    assert caught[0].filename == __file__
    with pytest.raises(TypeError, match="ctrl_directly"):
        pv.ModelBuilder().add_mjcf(ARM, ctrl_directly=True)


def test_a_report_maps_labels_to_indices():
    builder = pv.ModelBuilder()
    builder.add_body(label="before")
    report = builder.add_mjcf(ARM)
    assert list(report["path_body_map"].values()) == [1]
    for name, labels in (
        ("body", builder.body_label),
        ("joint", builder.joint_label),
        ("shape", builder.shape_label),
    ):
        assert all(labels[index] == label for label, index in report[f"path_{name}_map"].items())
        assert report[f"path_{name}_map"]
    with pytest.raises(KeyError, match="no entry 'fps'; there are path_body_map"):
        report["fps"]


def test_links_that_were_merged_are_mapped_to_their_body():
    text = ARM.replace("</body>", '<body name="tip"><geom name="ball" size="0.1"/></body></body>')
    builder = pv.ModelBuilder()
    report = builder.add_mjcf(text, collapse_fixed_joints=True)
    (tip,) = [label for label in report.path_body_map if label.endswith("tip")]
    assert builder.body_count == 1
    assert report.path_body_map[tip] == 0


def test_the_mujoco_model_of_one_group():
    one, two = pv.ModelBuilder(), pv.ModelBuilder()
    one.add_mjcf(ARM)
    two.add_mjcf(ARM)
    two.add_shape_sphere(two.add_body(), radius=0.1)
    builder = pv.ModelBuilder()
    builder.replicate(one, 2)
    solver = pv.SolverMuJoCo(builder.finalize("cpu"))
    assert solver.mj_model is solver.groups[0].model
    assert solver.mj_model.nq == 1
    builder.add_world(two)
    solver = pv.SolverMuJoCo(builder.finalize("cpu"))
    with pytest.raises(AttributeError, match=r"the worlds have 2 structures.*groups\[k\]\.model"):
        _ = solver.mj_model
    for name in ("mj_data", "mjw_data", "mjc_body_to_newton"):
        with pytest.raises(AttributeError, match=rf"no attribute '{name}': the worlds have 2 structures"):
            getattr(solver, name)


def falling_arms(**options):
    """Return a solver of two arms after three steps, with its last state."""
    world = pv.ModelBuilder()
    world.add_mjcf(ARM)
    world.add_shape_sphere(world.add_body(label="ball"), radius=0.1)
    world.joint_q[-7:-4] = (0.0, 0.0, 2.0)
    builder = pv.ModelBuilder()
    builder.add_ground_plane()
    builder.replicate(world, 2)
    model = builder.finalize("cpu")
    solver = pv.SolverMuJoCo(model, **options)
    state, after, contacts = model.state(), model.state(), solver.contacts()
    for _ in range(3):
        solver.step(state, after, None, contacts, 0.01)
        state, after = after, state
    return solver, state


def test_the_data_of_one_group_is_that_of_the_first_world():
    solver, state = falling_arms()
    data = solver.mj_data
    assert data.time == pytest.approx(0.03)
    np.testing.assert_allclose(data.qpos[0], state.joint_q.numpy()[0], rtol=1e-6)
    ball = solver.groups[0].body_mj[1]
    np.testing.assert_allclose(data.xpos[ball], state.body_q.numpy()[1, :3], rtol=1e-6)
    assert not hasattr(solver, "mjw_data")
    with pytest.raises(AttributeError, match=r"C engine steps the worlds\. Use mj_model and mj_data"):
        _ = solver.mjw_model


def test_the_data_before_the_first_step_is_the_initial_state():
    solver, _ = falling_arms()
    solver = pv.SolverMuJoCo(solver.model)
    np.testing.assert_allclose(
        solver.mj_data.qpos, solver.model.joint_q.numpy()[:8][[0, 1, 2, 3, 7, 4, 5, 6]]
    )


def test_mujoco_warp_shows_its_own_model_and_data():
    pytest.importorskip("mujoco_warp")
    solver, state = falling_arms(use_mujoco_cpu=False)
    assert solver.mjw_data.qpos.shape == (2, solver.mj_model.nq)
    np.testing.assert_allclose(solver.mjw_data.qpos.numpy()[:, 0], state.joint_q.numpy()[[0, 8]], rtol=1e-6)
    assert solver.mjw_model.nq == solver.mj_model.nq


def test_maps_lead_from_mujoco_to_entities():
    solver, _ = falling_arms()
    model, mj_model = solver.model, solver.mj_model
    bodies = solver.mjc_body_to_newton.numpy()
    assert bodies.shape == (2, mj_model.nbody)
    assert [model.body_label[body].rpartition("/")[2] for body in bodies[1] if body >= 0] == ["link", "ball"]
    geoms = solver.mjc_geom_to_newton_shape.numpy()
    back = solver.newton_shape_to_mjc_geom.numpy()
    for row in geoms:
        np.testing.assert_array_equal(back[row], np.arange(mj_model.ngeom))
    joints = solver.mjc_jnt_to_newton_jnt.numpy()
    np.testing.assert_array_equal(joints, [[0, 1], [2, 3]])
    np.testing.assert_array_equal(solver.mjc_jnt_to_newton_dof.numpy(), [[0, 1], [7, 8]])
    dofs = solver.mjc_dof_to_newton_dof.numpy()
    np.testing.assert_array_equal(np.sort(dofs.ravel()), np.arange(14))
    assert solver.mjc_eq_to_newton_eq.numpy().shape == (2, 0)
    with pytest.raises(AttributeError, match=r"groups\[k\]\.position_ctrl"):
        _ = solver.mjc_actuator_to_newton_idx


def test_the_kinds_of_equality_constraints():
    assert pv.SolverMuJoCo.EqType is pv.EqType


def test_equality_constraints_of_files_may_be_left_out():
    text = """<mujoco><worldbody>
      <body name="a"><joint name="one"/><geom size="0.1"/></body>
      <body name="b" pos="1 0 0"><joint name="two"/><geom size="0.1"/></body>
    </worldbody><equality><joint joint1="one" joint2="two"/><connect body1="a" body2="b" anchor="0 0 1"/>
    </equality></mujoco>"""
    counts = []
    for skip in (False, True):
        builder = pv.ModelBuilder()
        builder.add_mjcf(text, skip_equality_constraints=skip)
        counts.append(builder.equality_constraint_count)
    assert counts == [2, 0]


def test_the_modules_of_mujoco():
    mujoco_warp = pytest.importorskip("mujoco_warp")
    assert pv.SolverMuJoCo.import_mujoco() == (pytest.importorskip("mujoco"), mujoco_warp)


SOLIDS = {
    "box": (lambda: pv.Mesh.create_box(0.1, 0.2, 0.3), 8 * 0.006, (0.1, 0.2, 0.3)),
    "cube": (lambda: pv.Mesh.create_box(0.1, duplicate_vertices=False), 8e-3, (0.1, 0.1, 0.1)),
    "sphere": (lambda: pv.Mesh.create_sphere(0.2), 4 / 3 * np.pi * 0.008, (0.2, 0.2, 0.2)),
    "ellipsoid": (lambda: pv.Mesh.create_ellipsoid(0.1, 0.2, 0.3), 4 / 3 * np.pi * 0.006, (0.1, 0.2, 0.3)),
    "capsule": (
        lambda: pv.Mesh.create_capsule(0.1, 0.3),
        np.pi * 0.01 * 0.6 + 4 / 3 * np.pi * 0.001,
        (0.1, 0.4, 0.1),
    ),
    "cylinder": (lambda: pv.Mesh.create_cylinder(0.1, 0.3, up_axis="x"), np.pi * 0.01 * 0.6, (0.3, 0.1, 0.1)),
    "frustum": (
        lambda: pv.Mesh.create_cylinder(0.2, 0.3, top_radius=0.1, up_axis=pv.Axis.Z),
        np.pi * 0.6 * (0.04 + 0.02 + 0.01) / 3,
        (0.2, 0.2, 0.3),
    ),
    "cone": (
        lambda: pv.Mesh.create_cone(0.2, 0.3, up_axis=pv.Axis.Z),
        np.pi * 0.04 * 0.6 / 3,
        (0.2, 0.2, 0.3),
    ),
}


@pytest.mark.parametrize("kind", SOLIDS)
def test_solids_are_closed_and_have_the_volume_of_the_shape(kind):
    """An inscribed polyhedron of 32 sectors has up to 1.3 % less volume, never more."""
    make, volume, half = SOLIDS[kind]
    mesh = make()
    assert mesh.is_closed
    mass = mesh.mass_properties(1.0).mass
    assert 0.98 * volume < mass <= volume * (1.0 + 1e-6)
    np.testing.assert_allclose(mesh.aabb[1], half, rtol=1e-6)
    np.testing.assert_allclose(-mesh.aabb[0], half, rtol=1e-6)


def test_the_tip_of_a_cone_points_along_its_axis():
    tip = pv.Mesh.create_cone(0.2, 0.3).vertices[-1]
    np.testing.assert_allclose(tip, (0.0, 0.3, 0.0), atol=1e-7)


def test_a_plane_is_a_sheet_that_faces_up():
    mesh = pv.Mesh.create_plane(2.0, 3.0)
    corner = mesh.vertices[mesh.triangles]
    normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    np.testing.assert_allclose(normal, [[0.0, 0.0, 6.0]] * 2)
    assert mesh.mass_properties(10.0, thickness=0.01).mass == pytest.approx(0.6)


def test_solids_of_impossible_size_are_refused():
    with pytest.raises(ValueError, match="create_box: hy is -1"):
        pv.Mesh.create_box(1.0, -1.0)
    with pytest.raises(ValueError, match="create_sphere: radius is nan"):
        pv.Mesh.create_sphere(float("nan"))
    with pytest.raises(ValueError, match="create_cylinder: segments is 2"):
        pv.Mesh.create_cylinder(0.1, 0.1, segments=2)


def test_a_copy_of_a_mesh_is_another_mesh_of_equal_content():
    mesh = pv.Mesh.create_box(0.1)
    other = mesh.copy()
    assert other is not mesh
    assert other.content_key == mesh.content_key
    larger = mesh.copy(vertices=2.0 * mesh.vertices, recompute_inertia=True)
    assert larger.mass_properties(1.0).mass == pytest.approx(8.0 * mesh.mass_properties(1.0).mass)


def test_pairs_of_filtered_shapes_are_a_list_that_can_be_written_to():
    builder = pv.ModelBuilder()
    a, b, c = (builder.add_shape_sphere(builder.add_body(), radius=0.1) for _ in range(3))
    builder.shape_collision_filter_pairs.append((a, b))
    builder.shape_collision_filter_pairs += [(b, c)]
    assert builder.shape_collision_filter_pairs == [(0, 1), (1, 2)]
    assert (b, c) in builder.shape_collision_filter_pairs
    assert builder.shape_collision_filter_pairs.count((a, b)) == 1
    builder.shape_collision_filter_pairs.remove((a, b))
    builder.add_shape_collision_filter_pair(a, c)
    assert np.asarray(builder.shape_collision_filter_pairs).tolist() == [[1, 2], [0, 2]]
    with pytest.raises(IndexError, match="shape 7 does not exist"):
        builder.shape_collision_filter_pairs = [(a, b), (a, 7)]
    with pytest.raises(ValueError, match=r"3 is no pair. Give the indices of two shapes"):
        builder.shape_collision_filter_pairs.append(3)
    assert len(builder.shape_collision_filter_pairs) == 2
    builder.shape_collision_filter_pairs.clear()
    assert not builder.shape_collision_filter_pairs


def test_a_shape_configuration_is_validated_before_it_is_used():
    config = pv.ModelBuilder.ShapeConfig()
    config.validate(shape_type=pv.GeoType.SPHERE)
    config.density = -1.0
    with pytest.raises(ValueError, match="ShapeConfig of a sphere: density is -1"):
        config.validate(shape_type=pv.GeoType.SPHERE)


def test_the_axes_of_a_ball_joint_have_losses_of_their_own():
    builder = pv.ModelBuilder()
    link = builder.add_link(mass=1.0, inertia=np.eye(3))
    axes = [pv.JointDofConfig(axis=axis, damping=0.1 * (axis + 1), armature=0.2) for axis in range(3)]
    joint = builder.add_joint(pv.JointType.BALL, -1, link, angular_axes=axes)
    builder.add_articulation([joint])
    np.testing.assert_allclose(builder.joint_damping, [0.1, 0.2, 0.3])
    np.testing.assert_allclose(builder.joint_armature, 0.2)
    with pytest.raises(ValueError, match="they must be x, y and z"):
        builder.add_joint(pv.JointType.BALL, -1, builder.add_link(mass=1.0), angular_axes=["y", "x", "z"])


def test_views_write_terms_of_the_equation_of_motion():
    """A rod of 1 kg that sticks out by 0.5 m from a hinge about y takes 4.9 N·m to be held, in view only."""
    builder = pv.ModelBuilder()
    for label in ("left", "right"):
        rod = builder.add_link(mass=1.0, inertia=np.eye(3), com=(0.5, 0.0, 0.0))
        builder.add_articulation([builder.add_joint_revolute(-1, rod, axis="y")], label=label)
    model = builder.finalize("cpu")
    view = pv.selection.ArticulationView(model, "right")
    gravity, velocity, joint_f = (wp.zeros(2, dtype=float, device="cpu") for _ in range(3))
    mass = wp.zeros((2, 1, 1), dtype=float, device="cpu")
    view.eval_inverse_dynamics_passive(
        model.state(), mass_matrix=mass, gravity_force=gravity, coriolis_force=velocity
    )
    np.testing.assert_allclose(gravity.numpy(), [0.0, -0.5 * 9.81], rtol=1.0e-6)
    view.eval_inverse_dynamics_force(
        model.state(),
        mass_matrix=mass,
        joint_qdd=wp.ones(2, dtype=float, device="cpu"),
        coriolis_force=velocity,
        gravity_force=gravity,
        joint_f=joint_f,
    )
    np.testing.assert_allclose(joint_f.numpy(), [0.0, 1.25 - 0.5 * 9.81], rtol=1.0e-6)


def test_columns_of_a_builder_have_the_habits_of_lists():
    builder = pv.ModelBuilder()
    for place in range(3):
        builder.add_body(xform=wp.transform((place, 0.0, 1.0), wp.quat_identity()), mass=1.0)
    assert builder.joint_type.count(pv.JointType.FREE) == 3
    assert builder.joint_child.index(2) == 2
    assert builder.body_q[1].p.tolist() == [1.0, 0.0, 1.0]
    assert builder.joint_X_p[0].q.tolist() == [0.0, 0.0, 0.0, 1.0]
    assert wp.transform(*builder.body_q[2]).p == wp.vec3(2.0, 0.0, 1.0)
    with pytest.raises(ValueError, match=r"ModelBuilder.joint_child: 7 is not in it"):
        builder.joint_child.index(7)
    with pytest.raises(ValueError, match=r"ModelBuilder.body_q follows from .* set through joint_q"):
        builder.body_q[0] = wp.transform()
    with pytest.raises(AttributeError, match=r"ModelBuilder.body_mass has one entry per entity"):
        builder.body_mass.append(1.0)
    with pytest.raises(AttributeError, match="only poses have a position p"):
        _ = builder.body_mass.p


def test_a_joint_taken_out_of_its_articulation_closes_a_loop():
    """Two rods hang on hinges 1 m apart; a third joint between their tips keeps them parallel."""
    builder = pv.ModelBuilder()
    rods = [builder.add_link(mass=1.0, inertia=np.eye(3), com=(0.0, 0.0, -0.5)) for _ in range(2)]
    joints = [
        builder.add_joint_revolute(-1, rod, axis="y", parent_xform=((place, 0.0, 0.0), (0, 0, 0, 1)))
        for place, rod in enumerate(rods)
    ]
    tip = ((0.0, 0.0, -1.0), (0, 0, 0, 1))
    loop = builder.add_joint_ball(
        rods[0], rods[1], parent_xform=((1.0, 0.0, -1.0), (0, 0, 0, 1)), child_xform=tip
    )
    builder.add_articulation(joints)
    builder.joint_articulation[loop] = -1
    assert builder.finalize("cpu").equality_constraint_count == 1
    builder.joint_articulation[loop] = 5
    with pytest.raises(ValueError, match=r"joint_articulation is 5, but it must be an articulation of"):
        builder.finalize("cpu")


def test_missing_attributes_of_the_peers_mujoco_solver_name_the_counterpart():
    builder = pv.ModelBuilder()
    builder.add_mjcf(ARM)
    solver = pv.SolverMuJoCo(builder.finalize("cpu"))
    for name, message in (
        ("mjw_model", r"C engine steps the worlds\. Use mj_model and mj_data"),
        ("mjc_eq_to_newton_mimic", r"groups\[k\]\.joint_qpos"),
        ("nonsense", "has no attribute 'nonsense'"),
    ):
        with pytest.raises(AttributeError, match=message):
            getattr(solver, name)
    assert not hasattr(solver, "mjw_data")
    with pytest.raises(
        AttributeError, match=r"Call SolverMuJoCo\.register_custom_attributes\(builder\) before"
    ):
        _ = pv.ModelBuilder().finalize("cpu").mujoco
    assert solver.model.mujoco.condim.numpy().tolist() == [3]  # of a file
    assert not hasattr(solver.model, "nonsense")


def test_a_loop_with_a_viewer_runs_where_nobody_looks():
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    simulation = pv.Simulation(builder.finalize("cpu"), dt=0.01)
    viewer = pv.viewer.ViewerNull(num_frames=3)
    viewer.set_model(simulation.model)
    viewer.set_camera(pos=wp.vec3(2.0, 0.0, 1.0), pitch=-10.0, yaw=180.0)
    time = 0.0
    while viewer.is_running():
        if not viewer.is_paused():
            viewer.apply_forces(simulation.state)
            simulation.step()
            time += 0.01
        viewer.begin_frame(time)
        viewer.log_state(simulation.state)
        viewer.log_lines("normals", None, None, colors=(1.0, 0.0, 0.0))
        viewer.end_frame()
    viewer.close()
    assert viewer.frame_count == 3
    assert viewer.time == pytest.approx(0.03)
    with pytest.raises(AttributeError, match="ViewerViser shows a loop in the browser"):
        _ = pv.viewer.ViewerRerun
    with pytest.raises(AttributeError, match=r"take SolverSAP .* or SolverMuJoCo"):
        _ = pv.solvers.SolverXPBD


def test_columns_take_matrices_of_warp():
    """NumPy takes the memory of a Warp matrix for nine numbers in a row."""
    builder = pv.ModelBuilder()
    body = builder.add_link(mass=1.0)
    inertia = np.arange(9.0).reshape(3, 3) + 10.0 * np.eye(3)
    inertia = inertia + inertia.T
    builder.body_inertia[body] = wp.mat33(inertia)
    np.testing.assert_array_equal(builder.body_inertia[body], inertia)
    builder.body_com[body] = wp.vec3(1.0, 2.0, 3.0)
    np.testing.assert_array_equal(builder.body_com[body], [1.0, 2.0, 3.0])


def test_meshes_for_queries_in_kernels():
    @wp.kernel
    def shoot(mesh: wp.uint64, distance: wp.array[float]):
        query = wp.mesh_query_ray(mesh, wp.vec3(0.0, 0.0, 3.0), wp.vec3(0.0, 0.0, -1.0), 10.0)
        distance[0] = query.t

    normals = np.tile([0.0, 0.0, 1.0], (8, 1))
    box = pv.Mesh.create_box(0.5, 0.5, 0.5)
    mesh = pv.Mesh(box.vertices, box.indices, normals=normals[: len(box.vertices)])
    distance = wp.zeros(1, dtype=float, device="cpu")
    wp.launch(shoot, dim=1, inputs=[mesh.finalize("cpu")], outputs=[distance], device="cpu")
    assert distance.numpy()[0] == pytest.approx(2.5, abs=1e-6)
    assert mesh.finalize(device="cpu") == mesh.finalize(device="cpu")
    assert box.normals is None
    assert box.uvs is None
    assert mesh.copy().normals is not None
    with pytest.raises(ValueError, match="meshes here take no gradients"):
        mesh.finalize("cpu", requires_grad=True)


def test_habits_of_scripts_with_contacts_of_mujoco():
    builder = pv.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    builder.color()
    solver = pv.SolverMuJoCo(builder.finalize("cpu"))
    with pytest.raises(AttributeError, match=r"solver\.contacts\(\) makes a buffer"):
        solver.get_max_contact_count()
    with pytest.raises(TypeError, match=r"contacts belong to the worlds of a model. Take solver\.contacts"):
        pv.Contacts(100, 0)
