"""A script as it is run: y up as by default, a stack of boxes, keys that throw balls and put all back."""

import math
import random

import numpy as np

from pluriverse import gymapi, gymutil

gym = gymapi.acquire_gym()
args = gymutil.parse_arguments(
    description="Throw balls at boxes",
    custom_parameters=[
        {"name": "--num_envs", "type": int, "default": 4, "help": "Number of environments"},
        {"name": "--layers", "type": int, "default": 3, "help": "Boxes in a stack"},
        {"name": "--shape", "type": str, "default": "box", "choices": ["box", "ball"]},
        {"name": "--all_collisions", "action": "store_true", "help": "Collisions between environments"},
    ],
)
sim_params = gymapi.SimParams()
if args.physics_engine == gymapi.SIM_FLEX:
    sim_params.flex.shape_collision_margin = 0.25
    sim_params.flex.num_outer_iterations = 4
    sim_params.flex.num_inner_iterations = 10
elif args.physics_engine == gymapi.SIM_PHYSX:
    sim_params.substeps = 1
    sim_params.physx.solver_type = 1
    sim_params.physx.num_position_iterations = 4
    sim_params.physx.num_velocity_iterations = 1
    sim_params.physx.num_threads = args.num_threads
    sim_params.physx.use_gpu = args.use_gpu
sim_params.use_gpu_pipeline = False
if args.use_gpu_pipeline:
    print("WARNING: Forcing CPU pipeline.")
sim = gym.create_sim(args.compute_device_id, args.graphics_device_id, args.physics_engine, sim_params)
if sim is None:
    print("*** Failed to create sim")
    quit()
gym.add_ground(sim, gymapi.PlaneParams())
viewer = gym.create_viewer(sim, gymapi.CameraProperties())
if viewer is None:
    print("*** Failed to create viewer")
    quit()
for key, name in ((gymapi.KEY_SPACE, "space_shoot"), (gymapi.KEY_R, "reset"), (gymapi.KEY_ESCAPE, "QUIT")):
    gym.subscribe_viewer_keyboard_event(viewer, key, name)
gym.subscribe_viewer_mouse_event(viewer, gymapi.MOUSE_LEFT_BUTTON, "mouse_shoot")

asset_options = gymapi.AssetOptions()
asset_options.density = 10.0
box = gym.create_box(sim, 0.3, 0.3, 0.3, asset_options)
asset_options.density = 100.0
ball = gym.create_sphere(sim, 0.1, asset_options)
num_per_row = int(math.sqrt(args.num_envs))
random.seed(17)
envs, boxes, balls = [], [], []
pose = gymapi.Transform()
pose.r = gymapi.Quat(0, 0, 0, 1)
for i in range(args.num_envs):
    env = gym.create_env(sim, gymapi.Vec3(-2.0, 0.0, -2.0), gymapi.Vec3(2.0, 2.0, 2.0), num_per_row)
    envs.append(env)
    group, bits = (0, 0) if args.all_collisions else (i, 0)
    for k in range(args.layers):
        pose.p = gymapi.Vec3(0.0, 0.15 + 0.3 * k, 0.0)
        handle = gym.create_actor(env, box if args.shape == "box" else ball, pose, f"box_{k}", group, bits)
        color = gymapi.Vec3(random.uniform(0, 1), random.uniform(0, 1), random.uniform(0, 1))
        gym.set_rigid_body_color(env, handle, 0, gymapi.MESH_VISUAL_AND_COLLISION, color)
        boxes.append(handle)
    pose.p = gymapi.Vec3(0.0, 0.1, 1.5)
    balls.append(gym.create_actor(env, ball, pose, "ball", group, bits))
gym.viewer_camera_look_at(viewer, envs[0], gymapi.Vec3(10, 5, 20), gymapi.Vec3(0, 1, 0))
initial_state = np.copy(gym.get_sim_rigid_body_states(sim, gymapi.STATE_ALL))
heights = []
while not gym.query_viewer_has_closed(viewer):
    for evt in gym.query_viewer_action_events(viewer):
        if evt.action == "reset" and evt.value > 0:
            gym.set_sim_rigid_body_states(sim, initial_state, gymapi.STATE_ALL)
        elif evt.action == "QUIT" and evt.value > 0:
            quit()
        elif evt.action in ("space_shoot", "mouse_shoot") and evt.value > 0:
            if evt.action == "mouse_shoot":
                pos, window = gym.get_viewer_mouse_position(viewer), gym.get_viewer_size(viewer)
                print(f"Left mouse was clicked at x: {pos.x * window.x}")
            cam = gym.get_viewer_camera_transform(viewer, envs[0])
            ahead = cam.r.rotate(gymapi.Vec3(0, 0, 1))
            for env, handle in zip(envs, balls):  # noqa: B905
                state = gym.get_actor_rigid_body_states(env, handle, gymapi.STATE_NONE)
                state["pose"]["p"].fill((0.0, 0.45, 1.5))
                state["pose"]["r"].fill((0, 0, 0, 1))
                state["vel"]["linear"].fill((0.2 * ahead.x, 0.0, -12.0))
                state["vel"]["angular"].fill((0, 0, 0))
                gym.set_actor_rigid_body_states(env, handle, state, gymapi.STATE_ALL)
    gym.simulate(sim)
    gym.fetch_results(sim, True)
    gym.step_graphics(sim)
    gym.draw_viewer(viewer, sim, False)
    gym.sync_frame_time(sim)
    heights.append(gym.get_sim_rigid_body_states(sim, gymapi.STATE_POS)["pose"]["p"]["y"].copy())
print("Done")
gym.destroy_viewer(viewer)
gym.destroy_sim(sim)
