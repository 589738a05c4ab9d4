"""A script that loads an arm with many options, drives it in each mode, and pulls its hand."""

import itertools
import os
import sys

import numpy as np

from pluriverse import gymapi, gymutil

gym = gymapi.acquire_gym()
args = gymutil.parse_arguments(
    custom_parameters=[
        {"name": "--asset_root", "type": str, "default": os.path.join("examples", "gym", "assets")},
        {"name": "--headless", "action": "store_true", "default": False},
        {"name": "--gains", "type": float, "nargs": 2, "default": [400.0, 40.0]},
    ]
)
if not os.path.exists(os.path.join(args.asset_root, "arm.urdf")):
    sys.exit(f"no assets in {args.asset_root}")
configs = []
for fixed, collapse, gravity, armature in itertools.product(
    (True, False), (True, False), (True, False), (0, 0.01)
):
    opts = gymapi.AssetOptions()
    opts.fix_base_link, opts.collapse_fixed_joints, opts.disable_gravity = fixed, collapse, gravity
    opts.armature, opts.flip_visual_attachments, opts.use_mesh_materials = armature, True, True
    opts.default_dof_drive_mode = gymapi.DOF_MODE_POS
    opts.mesh_normal_mode = gymapi.COMPUTE_PER_VERTEX
    opts.override_com = opts.override_inertia = collapse
    opts.replace_cylinder_with_capsule = not collapse
    opts.vhacd_enabled, opts.convex_decomposition_from_submeshes = False, False
    opts.thickness, opts.linear_damping, opts.max_linear_velocity = 0.001, 0.0, 100.0
    configs.append(opts)

sim_params = gymapi.SimParams()
sim_params.dt = dt = 1.0 / 60.0
sim_params.substeps = 2
sim_params.up_axis = gymapi.UP_AXIS_Z
sim_params.gravity = gymapi.Vec3(0, 0, -9.8)
sim_params.physx.num_threads = args.num_threads
sim_params.use_gpu_pipeline = args.use_gpu_pipeline
sim = gym.create_sim(args.compute_device_id, args.graphics_device_id, args.physics_engine, sim_params)
assert sim is not None
plane_params = gymapi.PlaneParams()
plane_params.normal = gymapi.Vec3(0, 0, 1)
plane_params.distance = 0
gym.add_ground(sim, plane_params)

stiffness, damping = args.gains
modes = (gymapi.DOF_MODE_POS, gymapi.DOF_MODE_VEL, gymapi.DOF_MODE_EFFORT, gymapi.DOF_MODE_NONE)
rows = []
for index, opts in enumerate(configs):
    asset = gym.load_asset(sim, args.asset_root, "arm.urdf", opts)
    names = gym.get_asset_dof_names(asset)
    kinds = [gym.get_dof_type_string(gym.get_asset_dof_type(asset, j)) for j in range(len(names))]
    env = gym.create_env(sim, gymapi.Vec3(-1.5, -1.5, 0), gymapi.Vec3(1.5, 1.5, 2), 4)
    actor = gym.create_actor(
        env, asset, gymapi.Transform(p=gymapi.Vec3(0, 0, 0.05)), f"arm {index}", index, 2
    )
    props = gym.get_actor_dof_properties(env, actor)
    lower, upper = props["lower"], props["upper"]
    assert np.all(props["hasLimits"][7:]), kinds
    mode = modes[index % 4]
    props["driveMode"][:] = mode
    props["stiffness"][:] = stiffness if mode == gymapi.DOF_MODE_POS else 0.0
    props["damping"][:] = damping if mode != gymapi.DOF_MODE_EFFORT else 1.0
    gym.set_actor_dof_properties(env, actor, props)
    mids = 0.5 * (upper + lower)
    state = np.zeros(len(names), gymapi.DofState.dtype)
    state["pos"] = mids
    gym.set_actor_dof_states(env, actor, state, gymapi.STATE_ALL)
    if mode == gymapi.DOF_MODE_POS:
        gym.set_actor_dof_position_targets(env, actor, mids.astype("f"))
    elif mode == gymapi.DOF_MODE_VEL:
        velocities = np.zeros(len(names), dtype=np.float32)
        velocities[0] = 0.5
        gym.set_actor_dof_velocity_targets(env, actor, velocities)
    rows.append((env, actor, opts, mode))

puller = gymapi.AttractorProperties()
puller.stiffness, puller.damping = 5e4, 5e2
puller.axes = gymapi.AXIS_TRANSLATION
env, actor = rows[3][:2]
hand = gym.find_actor_rigid_body_handle(env, actor, "hand")
puller.rigid_handle = hand
puller.target = gym.get_rigid_transform(env, hand)
puller.target.p.z += 0.05
attractor = gym.create_rigid_body_attractor(env, puller)
gym.prepare_sim(sim)
for _ in range(90):
    for env, actor, _opts, mode in rows:
        if mode == gymapi.DOF_MODE_EFFORT:
            gym.apply_actor_dof_efforts(env, actor, np.full(9, 0.05, dtype=np.float32))
    gym.simulate(sim)
    gym.fetch_results(sim, True)
results = [
    (
        opts,
        mode,
        gym.get_actor_dof_states(env, actor, gymapi.STATE_ALL).copy(),
        gym.get_actor_rigid_body_count(env, actor),
        gym.get_actor_rigid_body_states(env, actor, gymapi.STATE_ALL).copy(),
    )
    for env, actor, opts, mode in rows
]
reached = gym.get_rigid_transform(rows[3][0], hand).p - puller.target.p
gym.destroy_sim(sim)
