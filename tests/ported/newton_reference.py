"""Public names of Newton 1.8, by module (the package is "") or class, as scripts know them."""

from collections.abc import Mapping

_TEXT: Mapping[str, str] = {
    "": """
        Axis AxisType BodyFlags CollisionPipeline Contacts Control EqType Gaussian GeoType
        Heightfield JointTargetMode JointType __version__ MAXVAL Mesh Model ModelBuilder ModelFlags
        ParticleFlags SDF ShapeFlags State StateFlags TetMesh actuators config controllers eval_fk
        eval_ik eval_inverse_dynamics_force eval_inverse_dynamics_passive eval_jacobian
        eval_mass_matrix eval_rigid_contact_kinematics examples geometry ik intersect_ray math
        selection sensors solvers usd use_coord_layout_targets utils viewer
    """,
    "actuators": """
        Actuator ActuatorParsed Clamping ClampingDCMotor ClampingMaxEffort ClampingPositionBased
        ComponentKind Controller ControllerNeuralLSTM ControllerNeuralMLP ControllerPD ControllerPID
        Delay SchemaNames parse_actuator_prim register_actuator_component
    """,
    "examples": """
        add_broad_phase_arg add_coupled_view_args add_kamino_contacts_arg add_max_worlds_arg
        add_mujoco_contacts_arg add_world_count_arg apply_coupled_viewer_forces configure_coupled_view
        create_collision_pipeline create_parser default_args download_external_git_folder get_asset
        get_asset_directory get_coupled_view_state get_examples get_source_directory init
        is_coupled_view_combined log_coupled_view main run test_body_state test_particle_state
    """,
    "geometry": """
        BroadPhaseAllPairs BroadPhaseExplicit BroadPhaseSAP HydroelasticSDF NarrowPhase
        collide_box_box collide_capsule_box collide_capsule_capsule collide_plane_box
        collide_plane_capsule collide_plane_cylinder collide_plane_ellipsoid collide_plane_sphere
        collide_sphere_box collide_sphere_capsule collide_sphere_cylinder collide_sphere_sphere
        compute_inertia_shape compute_offset_mesh create_empty_sdf_data sdf_box sdf_capsule sdf_cone
        sdf_cylinder sdf_mesh sdf_plane sdf_sphere transform_inertia
    """,
    "ik": """
        IKJacobianType IKObjective IKObjectiveJointLimit IKObjectivePosition IKObjectiveRotation IKOptimizer
        IKOptimizerLBFGS IKOptimizerLM IKSampler IKSolver
    """,
    "math": """
        boltzmann leaky_max leaky_min normalize_with_norm orthonormal_basis quat_between_axes
        quat_between_vectors_robust quat_decompose quat_velocity safe_div smooth_max smooth_min
        transform_twist transform_wrench vec_abs vec_allclose vec_inside_limits vec_leaky_max
        vec_leaky_min vec_max vec_min velocity_at_point
    """,
    "selection": """
        ArticulationView
    """,
    "sensors": """
        SensorContact SensorFrameTransform SensorIMU SensorTiledCamera
    """,
    "solvers": """
        SolverBase SolverFeatherstone SolverImplicitMPM SolverKamino SolverMuJoCo SolverSemiImplicit
        SolverStyle3D SolverVBD SolverXPBD experimental style3d
    """,
    "usd": """
        DEFORMABLE_LEGACY_NAMESPACES PrimType SchemaResolver SchemaResolverMjc SchemaResolverNewton
        SchemaResolverPhysx find_tetmesh_prims get_attribute get_attributes_in_namespace
        get_custom_attribute_declarations get_custom_attribute_values get_float get_gprim_axis
        get_mesh get_physics_scenes get_quat get_scale get_tetmesh get_transform
        has_applied_api_schema has_attribute type_to_warp value_to_warp
    """,
    "utils": """
        CableStiffness ColorSpace EventTracer MeshAdjacency MeshAdjacencyData RodStiffness
        bourke_color_map cable_straight_points color_graph color_linear_to_srgb
        color_srgb_to_linear compute_world_offsets create_cable_stiffness_from_elastic_moduli
        create_parallel_transport_cable_quaternions create_straight_cable_points
        create_straight_cable_points_and_quaternions download_asset event_scope load_texture
        normalize_texture plot_graph rasterize_mesh_to_heightfield remesh_mesh
        rod_parallel_transport_quaternions rod_stiffness_from_elastic_moduli
        rod_straight_points_and_quaternions run_benchmark solidify_mesh string_to_warp
        validate_tet_mesh validate_triangle_mesh
    """,
    "viewer": """
        Layer ViewerBase ViewerFile ViewerGL ViewerNull ViewerRTX ViewerRerun ViewerUSD ViewerViser
    """,
    "ModelBuilder": """
        ActuatorEntry BvhConfig CustomAttribute CustomFrequency JointDofConfig
        MeshApproximationConfig ShapeConfig actuator_entries add_actuator add_articulation add_body
        add_builder add_cloth_grid add_cloth_mesh add_constraint_mimic add_custom_attribute
        add_custom_frequency add_custom_values add_custom_values_batch add_edge add_edges
        add_ground_plane add_joint add_joint_ball add_joint_cable add_joint_d6 add_joint_distance
        add_joint_fixed add_joint_free add_joint_prismatic add_joint_revolute add_joint_rod add_link
        add_mjcf add_muscle add_particle add_particle_grid add_particles add_rod add_rod_graph
        add_shape add_shape_box add_shape_capsule add_shape_collision_filter_pair add_shape_cone
        add_shape_convex_hull add_shape_cylinder add_shape_ellipsoid add_shape_gaussian
        add_shape_heightfield add_shape_mesh add_shape_plane add_shape_sphere add_site add_soft_grid
        add_soft_mesh add_spring add_tetrahedron add_triangle add_triangles add_urdf add_usd
        add_world approximate_meshes articulation_count articulation_end articulation_label
        articulation_start articulation_world articulation_world_start balance_inertia begin_world
        body_color_groups body_com body_count body_flags body_inertia body_inv_inertia body_inv_mass
        body_label body_lock_inertia body_mass body_q body_qd body_shapes body_world
        body_world_start bound_inertia bound_mass collapse_fixed_joints color constraint_mimic_coef0
        constraint_mimic_coef1 constraint_mimic_enabled constraint_mimic_joint0
        constraint_mimic_joint1 constraint_mimic_label constraint_mimic_world current_world
        custom_attributes custom_frequencies default_bvh_cfg default_edge_kd default_edge_ke
        default_joint_cfg default_mesh_approximation_cfg default_particle_radius default_shape_cfg
        default_site_cfg default_spring_kd default_spring_ke default_tet_density default_tet_k_damp
        default_tet_k_lambda default_tet_k_mu default_tri_drag default_tri_ka default_tri_kd
        default_tri_ke default_tri_lift edge_bending_properties edge_count edge_indices
        edge_rest_angle edge_rest_length end_world finalize find_shape_contact_pairs
        get_custom_attributes_by_frequency get_custom_frequency_keys gravity has_custom_attribute
        joint_X_c joint_X_p joint_act joint_armature joint_articulation joint_axis joint_child
        joint_children joint_collision_filter_parent joint_constraint_count
        joint_constraint_world_start joint_coord_count joint_coord_world_start joint_count joint_cts
        joint_cts_start joint_damping joint_dof_count joint_dof_dim joint_dof_world_start
        joint_effort_limit joint_enabled joint_f joint_friction joint_label joint_limit_kd
        joint_limit_ke joint_limit_lower joint_limit_upper joint_parent joint_parents joint_q
        joint_q_start joint_qd joint_qd_start joint_target_kd joint_target_ke joint_target_mode
        joint_target_pos joint_target_q joint_target_qd joint_target_vel joint_twist_lower
        joint_twist_upper joint_type joint_velocity_limit joint_world joint_world_start
        muscle_activations muscle_bodies muscle_count muscle_params muscle_points muscle_start
        num_rigid_contacts_per_world particle_color_groups particle_count particle_flags
        particle_mass particle_max_velocity particle_q particle_qd particle_radius particle_world
        particle_world_start plot_articulation replicate request_contact_attributes
        request_state_attributes rigid_gap sdf_texture_paired_samples set_coloring shape_body
        shape_collision_filter_pairs shape_collision_group shape_collision_radius shape_color
        shape_count shape_flags shape_force_sdf shape_gap shape_is_solid shape_label shape_margin
        shape_material_ka shape_material_kd shape_material_ke shape_material_kf shape_material_kh
        shape_material_mu shape_material_mu_rolling shape_material_mu_torsional
        shape_material_restitution shape_scale shape_sdf_max_resolution shape_sdf_narrow_band_range
        shape_sdf_padding shape_sdf_target_voxel_size shape_sdf_texture_format shape_source
        shape_transform shape_type shape_world shape_world_start spring_control spring_count
        spring_damping spring_indices spring_rest_length spring_stiffness tet_activations tet_count
        tet_indices tet_materials tet_poses tri_activations tri_areas tri_count tri_indices
        tri_materials tri_poses up_axis up_vector validate_inertia_detailed validate_joint_ordering
        world_count world_gravity
    """,
    "Model": """
        AttributeAssignment AttributeFrequency AttributeNamespace AttributeSpec actuators
        add_attribute articulation_count articulation_end articulation_label articulation_start
        articulation_world articulation_world_start attribute_assignment attribute_frequency
        attribute_specs body_color_groups body_colors body_com body_count body_flags body_inertia
        body_inv_inertia body_inv_mass body_label body_mass body_q body_qd body_shapes body_world
        body_world_start bvh_build_particles bvh_build_shapes bvh_particles
        bvh_particles_group_roots bvh_refit_particles bvh_refit_shapes bvh_shape_bounds
        bvh_shape_count_enabled bvh_shape_enabled bvh_shape_world_transforms bvh_shapes
        bvh_shapes_group_roots collide constraint_mimic_coef0 constraint_mimic_coef1
        constraint_mimic_count constraint_mimic_enabled constraint_mimic_joint0
        constraint_mimic_joint1 constraint_mimic_label constraint_mimic_world contacts control
        custom_frequency_counts device edge_bending_properties edge_constraint_lambdas edge_count
        edge_indices edge_rest_angle edge_rest_length gaussians_count gaussians_data
        get_attribute_frequency get_custom_frequency_count get_requested_contact_attributes
        get_requested_state_attributes gravity heightfield_count heightfield_data
        heightfield_elevations heightfield_meshes joint_X_c joint_X_p joint_act joint_ancestor
        joint_armature joint_articulation joint_axis joint_child joint_constraint_count
        joint_constraint_world_start joint_coord_count joint_coord_world_start joint_count
        joint_damping joint_dof_count joint_dof_dim joint_dof_world_start joint_effort_limit
        joint_enabled joint_f joint_friction joint_label joint_limit_kd joint_limit_ke
        joint_limit_lower joint_limit_upper joint_parent joint_q joint_q_start joint_qd
        joint_qd_start joint_target_kd joint_target_ke joint_target_mode joint_target_pos
        joint_target_q joint_target_q_start joint_target_qd joint_target_vel joint_twist_lower
        joint_twist_upper joint_type joint_velocity_limit joint_world joint_world_start
        max_dofs_per_articulation max_joints_per_articulation mesh_edge_centers mesh_edge_halves
        mesh_edge_indices mujoco muscle_activations muscle_bodies muscle_count muscle_params
        muscle_points muscle_start particle_adhesion particle_cohesion particle_color_groups
        particle_colors particle_count particle_flags particle_grid particle_inv_mass particle_kd
        particle_ke particle_kf particle_mass particle_max_radius particle_max_velocity particle_mu
        particle_q particle_qd particle_radius particle_world particle_world_start
        request_contact_attributes request_state_attributes requires_grad rigid_contact_max
        set_gravity shape_body shape_collision_aabb_lower shape_collision_aabb_upper
        shape_collision_filter_contains shape_collision_filter_mask shape_collision_filter_pairs
        shape_collision_filter_pairs_array shape_collision_group shape_collision_radius shape_color
        shape_contact_pair_count shape_contact_pairs shape_count shape_edge_range shape_filter
        shape_flags shape_gap shape_heightfield_index shape_is_solid shape_label shape_margin
        shape_material_ka shape_material_kd shape_material_ke shape_material_kf shape_material_kh
        shape_material_mu shape_material_mu_rolling shape_material_mu_torsional
        shape_material_restitution shape_scale shape_source shape_source_ptr shape_transform
        shape_type shape_world shape_world_start soft_contact_kd soft_contact_ke soft_contact_kf
        soft_contact_mu soft_contact_restitution soft_mesh_adjacency soft_mesh_adjacency_device
        spring_constraint_lambdas spring_control spring_count spring_damping spring_indices
        spring_rest_length spring_stiffness state tet_activations tet_count tet_indices
        tet_materials tet_poses tri_activations tri_areas tri_count tri_indices tri_materials
        tri_poses up_axis use_coord_layout_targets world_count
    """,
    "State": """
        EXTENDED_ATTRIBUTES EXTENDED_ATTRIBUTE_TEMPLATES ExtendedAttributeTemplate assign body_count
        body_f body_parent_f body_q body_q_prev body_qd body_qdd clear_forces joint_coord_count
        joint_dof_count joint_q joint_qd particle_count particle_f particle_q particle_qd
        requires_grad validate_extended_attributes
    """,
    "Control": """
        clear joint_act joint_f joint_target_pos joint_target_q joint_target_qd joint_target_vel
        muscle_activations tet_activations tri_activations
    """,
    "Contacts": """
        EXTENDED_ATTRIBUTES clear clear_buffers contact_counters contact_generation contact_matching
        contact_matching_mode contact_report device force per_contact_shape_properties requires_grad
        rigid_contact_broken_count rigid_contact_broken_indices rigid_contact_count
        rigid_contact_damping rigid_contact_diff_distance rigid_contact_diff_normal
        rigid_contact_diff_point0_world rigid_contact_diff_point1_world rigid_contact_force
        rigid_contact_friction rigid_contact_margin0 rigid_contact_margin1 rigid_contact_match_index
        rigid_contact_max rigid_contact_new_count rigid_contact_new_indices rigid_contact_normal
        rigid_contact_offset0 rigid_contact_offset1 rigid_contact_point0 rigid_contact_point1
        rigid_contact_point_id rigid_contact_shape0 rigid_contact_shape1 rigid_contact_stiffness
        rigid_contact_tids soft_contact_barycentric soft_contact_body_pos soft_contact_body_vel
        soft_contact_count soft_contact_indices soft_contact_max soft_contact_normal
        soft_contact_particle soft_contact_shape soft_contact_tids validate_extended_attributes
    """,
    "CollisionPipeline": """
        SpeculativeContactConfig broad_phase broad_phase_mode broad_phase_pair_count
        broad_phase_shape_pairs collide contact_matching contact_report contacts deterministic
        device enable_rigid_soft_full_surface_contact geom_data geom_transform hydroelastic_sdf
        include_static_kinematic_pairs model narrow_phase reduce_contacts requires_grad
        reset_contact_matching rigid_contact_max shape_count shape_pairs_excluded
        shape_pairs_excluded_count shape_pairs_filtered shape_pairs_max soft_contact_margin
        soft_contact_max soft_edge_rigid_pairs soft_face_rigid_pairs soft_rigid_contact_pair_count
        soft_rigid_contact_pairs speculative_config
    """,
    "ArticulationView": """
        articulation_ids articulation_mask body_labels body_names body_shapes count count_per_world
        device eval_fk eval_inverse_dynamics_force eval_inverse_dynamics_passive eval_jacobian
        eval_mass_matrix frequency_layouts full_mask get_actuator_parameter get_attribute
        get_dof_forces get_dof_positions get_dof_velocities get_link_transforms get_link_velocities
        get_model_articulation_mask get_root_transforms get_root_velocities is_fixed_base
        is_floating_base joint_coord_count joint_coord_counts joint_coord_names
        joint_coords_contiguous joint_count joint_dof_count joint_dof_counts joint_dof_names
        joint_dofs_contiguous joint_labels joint_names joints_contiguous link_count link_labels
        link_names link_shapes links_contiguous model root_joint_type set_actuator_parameter
        set_attribute set_dof_forces set_dof_positions set_dof_velocities set_root_transforms
        set_root_velocities shape_count shape_labels shape_names shapes_contiguous tendon_count
        tendon_names world_count
    """,
    "Mesh": """
        MAX_HULL_VERTICES build_sdf clear_sdf color com compute_convex_hull copy create_arrow
        create_box create_capsule create_cone create_cylinder create_ellipsoid create_from_file
        create_from_usd create_heightfield create_plane create_sphere create_terrain edges finalize
        has_inertia indices inertia invalidate_cache is_solid is_watertight mass maxhullvert mesh
        metallic normals roughness sdf texture texture_hash uvs vertices
    """,
    "SolverMuJoCo": """
        CtrlSource CtrlType EndpointKind EqType SleepPolicy TrnType close_mujoco_viewer
        coupling_eval_effective_mass coupling_eval_effective_mass_block
        coupling_eval_gravity_acceleration coupling_harvest_proxy_particle_forces
        coupling_harvest_proxy_wrenches coupling_notify_input_state_update
        coupling_prepare_proxy_contacts coupling_rewind_proxy_body coupling_rewind_proxy_particle
        coupling_supports_full_surface_soft_contacts coupling_supports_inertial_property_refresh
        device get_max_contact_count import_mujoco integrate_bodies integrate_particles
        notify_model_changed register_custom_attributes render_mujoco_viewer reset step
        update_contacts
    """,
}

NAMES: Mapping[str, tuple[str, ...]] = {owner: tuple(text.split()) for owner, text in _TEXT.items()}
