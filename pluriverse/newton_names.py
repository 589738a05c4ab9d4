"""Names of Newton that do not exist here, with the reason and what to take instead.

Attributes that are looked up in vain ask here what to say, and the table of docs/porting.md is made of this.
"""

from collections.abc import Callable, Mapping
from typing import Any, Never

_SOFT = "only rigid bodies are simulated: no particles, cloth, cables, soft bodies or muscles"
_SOLVER = "take SolverSAP (compliant contact, large steps) or SolverMuJoCo"
_INTERNAL = "a part of Newton's collision detection; collide by CollisionPipeline and read Contacts"
_POINTS = "for signed distances of a mesh use Mesh.signed_distance"
_GRAD = "steps are not differentiable"
_ACTUATOR = "take JointActuators or NetworkActuators of pluriverse.actuators"
_BROWSER = (
    "ViewerViser shows a loop in the browser, ViewerFile and ViewerUSD write it to files, "
    "ViewerGL(headless=True) makes pictures, ViewerNull shows nothing; BrowserViewer shows a Simulation"
)
_STORED = "it is how Newton stores what it needs"
_BVH = "rays go through pluriverse.sensors.RaySensor, which keeps what it needs itself"
_MATCHING = "contacts are matched from step to step inside of the solvers"
_COUPLING = "it couples Newton's solvers with each other; here one solver steps all bodies of a world"
_EXTENDED = (
    "accelerations and joint forces are measured by builder.add_sensor_imu and add_sensor_force_torque"
)
_USD = "add_usd does by itself what an importer needs of it"
_MIMIC = "mimic constraints are equality constraints of joints; see equality_constraint_*"
_DEFAULTS = "only rigid bodies are simulated, so there are no defaults for others"
_GROUPS = "engines keep their memory for all groups of worlds; solver.groups describes them"

# By owner: a module ("" is the package) or a class. Names that end in * stand for all that begin so.
_GROUPED: Mapping[str, tuple[tuple[str, str], ...]] = {
    "": (
        (_SOFT, "Gaussian ParticleFlags TetMesh"),
        (_POINTS, "SDF"),
        (_BVH, "intersect_ray"),
        ("take pluriverse.actuators, or write forces to Control.joint_f", "controllers"),
    ),
    "actuators": (
        (
            _ACTUATOR,
            "Actuator ActuatorParsed Clamping* ComponentKind Controller* Delay SchemaNames "
            "parse_actuator_prim register_actuator_component",
        ),
    ),
    "examples": (
        (_SOFT, "test_particle_state"),
        ("it is for Newton's Kamino solver", "add_kamino_contacts_arg"),
        (
            _COUPLING,
            "add_coupled_view_args apply_coupled_viewer_forces configure_coupled_view get_coupled_view_state "
            "is_coupled_view_combined log_coupled_view",
        ),
        (
            "name the folder with the environment variable PLURIVERSE_ASSETS, and files by get_asset",
            "get_asset_directory get_source_directory",
        ),
        ("take pluriverse.utils.download_asset", "download_external_git_folder"),
        ("run a script with python; there is no list of examples to start from", "get_examples main"),
    ),
    "geometry": (
        (_INTERNAL, "BroadPhase* NarrowPhase HydroelasticSDF collide_*"),
        (_POINTS, "sdf_* create_empty_sdf_data compute_offset_mesh"),
        (
            "take box_mass_properties, sphere_mass_properties and so on, or Mesh.mass_properties",
            "compute_inertia_shape",
        ),
        ("take transform_mass_properties", "transform_inertia"),
    ),
    "sensors": (("take CameraSensor", "SensorTiledCamera"),),
    "solvers": (
        (_SOLVER, "SolverFeatherstone SolverKamino SolverSemiImplicit SolverXPBD"),
        (f"{_SOFT}; for rigid ones {_SOLVER}", "SolverImplicitMPM SolverStyle3D SolverVBD style3d"),
        (_COUPLING, "experimental"),
    ),
    "usd": (
        (_SOFT, "DEFORMABLE_LEGACY_NAMESPACES find_tetmesh_prims get_tetmesh"),
        (
            _USD,
            "PrimType get_custom_attribute_declarations get_custom_attribute_values type_to_warp "
            "value_to_warp",
        ),
    ),
    "utils": (
        (
            _SOFT,
            "CableStiffness RodStiffness cable_* create_cable_* create_parallel_* create_straight_* rod_* "
            "color_graph plot_graph validate_tet_mesh",
        ),
        (_INTERNAL, "MeshAdjacency MeshAdjacencyData"),
        (
            "it makes meshes of Newton's own; approximate_mesh and Mesh.convex_hull are ours",
            "remesh_mesh solidify_mesh",
        ),
        ("Texture takes any image and holds it as 8 bits of red, green, blue and alpha", "normalize_texture"),
        ("colours are sRGB, as in files; color_linear_to_srgb converts", "ColorSpace"),
        (
            "terrain may be a mesh; add_shape_heightfield takes heights of a grid",
            "rasterize_mesh_to_heightfield",
        ),
        ("it reads values of USD and MJCF for Newton's importers", "string_to_warp"),
        ("take pluriverse benchmark, or a profiler", "EventTracer event_scope run_benchmark"),
        ("Mesh checks its triangles by itself", "validate_triangle_mesh"),
    ),
    "viewer": ((_BROWSER, "Layer ViewerBase ViewerRTX ViewerRerun"),),
    "ModelBuilder": (
        (
            _SOFT,
            "add_cloth_* add_edge add_edges add_joint_cable add_joint_rod add_muscle add_particle* add_rod* "
            "add_soft_* add_spring add_tetrahedron add_triangle* set_coloring edge_* muscle_* "
            "particle_* spring_* tet_* tri_* body_color_groups",
        ),
        (_DEFAULTS, "default_edge_* default_particle_* default_spring_* default_tet_* default_tri_*"),
        ("it displays point clouds, which are not part of a model", "add_shape_gaussian"),
        (_ACTUATOR, "ActuatorEntry actuator_entries add_actuator"),
        (_BVH, "BvhConfig default_bvh_cfg"),
        (
            "give the arguments to approximate_meshes",
            "MeshApproximationConfig default_mesh_approximation_cfg",
        ),
        ("add_site takes everything itself", "default_site_cfg"),
        ("candidate pairs are found by finalize; see Model.templates", "find_shape_contact_pairs"),
        ("print builder.joint_parent and joint_child, or use BrowserViewer", "plot_articulation"),
        (
            "inertias are never changed but by importers, which report it",
            "balance_inertia bound_inertia bound_mass validate_inertia_detailed",
        ),
        (
            "gravity of a world is given to begin_world or add_world, or set by Model.set_gravity",
            "world_gravity",
        ),
        (_MIMIC, "constraint_mimic_*"),
        (
            "resolutions are part of ShapeConfig and of Mesh.build_sdf",
            "sdf_texture_paired_samples shape_sdf_* shape_force_sdf",
        ),
        ("a damping is kept as the time tau = kd / ke", "shape_material_kd"),
        ("friction is Coulomb's with stiction, and nothing sticks", "shape_material_kf shape_material_ka"),
        ("initial velocities are those of joint_qd", "body_qd"),
        ("it follows from body_mass and body_inertia, in the model", "body_inv_mass body_inv_inertia"),
        (
            "worlds are counted by finalize; see the model",
            "*_world_start articulation_end articulation_start",
        ),
        (
            _STORED,
            "body_shapes joint_parents joint_children joint_cts joint_cts_start joint_constraint_count "
            "joint_twist_lower joint_twist_upper shape_collision_radius num_rigid_contacts_per_world",
        ),
    ),
    "Model": (
        (
            _SOFT,
            "edge_* muscle_* particle_* spring_* tet_* tri_* soft_* body_color* bvh_build_particles "
            "bvh_refit_particles bvh_particles* gaussians_*",
        ),
        (_BVH, "bvh_*"),
        (_MIMIC, "constraint_mimic_*"),
        (_ACTUATOR, "actuators"),
        ("a damping is kept as the time tau = kd / ke", "shape_material_kd"),
        ("friction is Coulomb's with stiction, and nothing sticks", "shape_material_kf shape_material_ka"),
        (
            "forces of contacts are always there: Contacts.rigid_contact_force",
            "get_requested_contact_attributes",
        ),
        ("it is given to CollisionPipeline, per world", "rigid_contact_max"),
        (
            "filtered pairs are in the builder, candidate pairs in Model.templates",
            "shape_collision_filter_* shape_filter",
        ),
        ("every attribute of an array is in pluriverse.model.schema", "AttributeSpec"),
        ("joint_target_q is always numbered like coordinates", "use_coord_layout_targets"),
        (
            _STORED,
            "heightfield_* mesh_edge_* shape_edge_range shape_heightfield_index shape_source_ptr "
            "shape_collision_aabb_* joint_twist_lower joint_twist_upper",
        ),
    ),
    "State": (
        (_SOFT, "particle_*"),
        (
            _EXTENDED,
            "body_parent_f EXTENDED_* ExtendedAttributeTemplate validate_extended_attributes",
        ),
        ("the state before a step is the state_in of that step", "body_q_prev"),
    ),
    "Control": ((_SOFT, "muscle_activations tet_activations tri_activations"),),
    "Contacts": (
        (_SOFT, "soft_contact_*"),
        (_GRAD, "rigid_contact_diff_*"),
        (
            "the force on shape 1 is rigid_contact_force",
            "force EXTENDED_ATTRIBUTES validate_extended_attributes",
        ),
        (_MATCHING, "contact_* rigid_contact_match_index rigid_contact_new_* rigid_contact_broken_*"),
        (
            "points lie on the surfaces, without offsets; friction and damping are those of the shapes",
            "rigid_contact_offset0 rigid_contact_offset1 rigid_contact_friction rigid_contact_damping",
        ),
        (
            _STORED,
            "clear_buffers device per_contact_shape_properties rigid_contact_point_id rigid_contact_tids",
        ),
    ),
    "CollisionPipeline": (
        (_SOFT, "soft_* enable_rigid_soft_full_surface_contact"),
        (_MATCHING, "contact_* reset_contact_matching"),
        ("slots per world are in rigid_contact_capacity, all together in Contacts", "rigid_contact_max"),
        ("gaps follow the speed of bodies by themselves", "SpeculativeContactConfig speculative_config"),
        (
            _INTERNAL,
            "broad_phase* narrow_phase hydroelastic_sdf geom_* shape_pairs_* device deterministic "
            "include_static_kinematic_pairs reduce_contacts requires_grad shape_count",
        ),
    ),
    "ArticulationView": (
        (_ACTUATOR, "get_actuator_parameter set_actuator_parameter"),
        (
            "views gather what they show, wherever it is",
            "*_contiguous frequency_layouts full_mask joint_coord_counts joint_dof_counts",
        ),
        (
            "shapes of the view are in shape_names, their bodies in Model.shape_body",
            "body_shapes link_shapes",
        ),
    ),
    "Mesh": (
        ("a mesh without options for its signed distance is Mesh.copy of its triangles", "clear_sdf"),
        ("take Heightfield and add_shape_heightfield", "create_heightfield create_terrain"),
        ("it is drawn, never simulated", "create_arrow"),
        ("take Mesh.load", "create_from_file"),
        ("take add_usd, or Mesh with the points and triangles of the prim", "create_from_usd"),
        ("textures are in MeshSkin", "texture_hash"),
        (
            "meshes are immutable; what follows from them is found when needed",
            "edges invalidate_cache",
        ),
        ("make a Texture, and draw by an Appearance", "roughness metallic texture"),
        ("mass, com and inertia are those of Mesh.mass_properties(density)", "has_inertia mass com inertia"),
        (_POINTS, "sdf"),
        ("finalize returns the id of a mesh of Warp", "mesh"),
        ("Mesh.convex_hull returns it", "compute_convex_hull"),
    ),
    "SolverMuJoCo": (
        (_COUPLING, "coupling_*"),
        ("solver.contacts() makes a buffer with room for them", "get_max_contact_count"),
        ("actuators act on bodies only, as there are no particles", "EndpointKind"),
        ("take BrowserViewer", "close_mujoco_viewer render_mujoco_viewer"),
        (
            "bodies do not sleep by policies of their own; enable_sleeping is an option of files",
            "SleepPolicy",
        ),
        ("one solver steps all bodies", "integrate_bodies integrate_particles"),
    ),
    "SolverSAP": (("one solver steps all bodies", "integrate_bodies integrate_particles"),),
}


def _entries(owner: str) -> dict[str, str]:
    return {name: reason for reason, names in _GROUPED.get(owner, ()) for name in names.split()}


ABSENT: Mapping[str, Mapping[str, str]] = {owner: _entries(owner) for owner in _GROUPED}
"""Reasons by owner and name; a name may begin or end with a star."""


def reason_for(owner: str, name: str) -> str | None:
    """Return why Newton's name does not exist here and what to do instead, or None for any other name."""
    entries = ABSENT.get(owner, {})
    if name in entries:
        return entries[name]
    for pattern, reason in entries.items():
        if pattern.endswith("*") and name.startswith(pattern[:-1]):
            return reason
        if pattern.startswith("*") and name.endswith(pattern[1:]):
            return reason
    return None


def missing(owner: str, name: str, *, kind: str = "class") -> AttributeError:
    """Return the error of a name that is not there, with the reason if it is one of Newton's.

    Args:
        owner: Class, or module below the package ("" for the package itself).
        name: What was looked up.
        kind: "class" or "module".
    """
    if kind == "module":
        module = f"pluriverse.{owner}" if owner else "pluriverse"
        text = f"module '{module}' has no attribute {name!r}"
    else:
        text = f"'{owner}' object has no attribute {name!r}"
    reason = reason_for(owner, name)
    return AttributeError(f"{text}: {reason}." if reason else text)


def explain_missing(owner: str) -> Callable[[Any, str], Never]:
    """Return a `__getattr__` for a class that says of Newton's names why they are not there."""

    def __getattr__(self: Any, name: str) -> Never:  # noqa: N807, it becomes that of the class
        raise missing(owner, name)

    return __getattr__
