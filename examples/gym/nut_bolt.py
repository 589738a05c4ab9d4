"""Arms that screw nuts down bolts: grasp, turn, let go, turn back. The threads touch as triangle meshes."""

import tempfile
from pathlib import Path

import common
import numpy as np
from common import ASSETS, gym

from pluriverse import gymapi
from pluriverse.geometry import Mesh, bolt_mesh, nut_mesh

# File, hand, way from the hand to between the fingertips [m], and joints at the start of an arm.
OURS = ("arm.urdf", "hand", 0.125, [0.0, 0.6, 0.0, 1.3, 0.0, 1.24, 0.0, 0.04, 0.04])
FR3 = ("urdfs/fr3_franka_hand.urdf", "fr3_hand", 0.1, [0.0, 0.1, 0.0, -2.2, 0.0, 2.3, 0.785, 0.04, 0.04])
FRANKA = {"name": "--franka", "type": str, "default": "", "help": "folder franka_description, for its arm"}
DIAMETER, PITCH = 0.02, 0.0035  # m, an M4 five times as large
HEAD, HEIGHT = 0.02, 0.012  # m, height of the head of the bolt and of the nut
TURN = 0.6  # rad, to either side
APPROACH, CYCLE = 50, 90  # frames


def load(sim: gymapi.Sim, folder: Path, mesh: Mesh, *, fixed: bool) -> gymapi.Asset:
    """Return an asset of one mesh that collides as it is, by its signed distance."""
    lines = ["v {:.9g} {:.9g} {:.9g}".format(*vertex) for vertex in mesh.vertices]
    lines += ["f {} {} {}".format(*(triangle + 1)) for triangle in mesh.triangles]
    (folder / f"{mesh.name}.obj").write_text("\n".join(lines))
    shape = f'<geometry><mesh filename="{mesh.name}.obj"/></geometry>'
    (folder / f"{mesh.name}.urdf").write_text(
        f'<robot name="{mesh.name}"><link name="{mesh.name}">'
        f'<collision>{shape}<sdf resolution="64"/></collision></link></robot>'
    )
    options = gymapi.AssetOptions()
    options.fix_base_link = fixed
    options.density, options.rest_offset, options.contact_offset = 7800.0, 0.0, 2e-4
    return gym.load_asset(sim, str(folder), f"{mesh.name}.urdf", options)


def main(words: list[str] | None = None) -> None:
    """Screw, and print how far the nuts turned and how far they went down."""
    args = common.parse("screw nuts down bolts", APPROACH + 3 * CYCLE, words, FRANKA)
    sim = common.make_sim(args, substeps=4)
    options = gymapi.AssetOptions()
    options.fix_base_link = True
    options.disable_gravity = True
    options.rest_offset, options.contact_offset = 0.0, 0.002
    file, hand, reach, rest = FR3 if args.franka else OURS
    arm = gym.load_asset(sim, args.franka or ASSETS, file, options)
    with tempfile.TemporaryDirectory() as name:
        thread = bolt_mesh(DIAMETER, PITCH, 0.04, head_diameter=0.034, head_height=HEAD)
        bolt = load(sim, Path(name), thread, fixed=True)
        nut = load(sim, Path(name), nut_mesh(DIAMETER, PITCH, HEIGHT, clearance=2e-4), fixed=False)
    link = gym.get_asset_rigid_body_dict(arm)[hand]
    hands, nuts = [], []
    for index, env in enumerate(common.make_envs(sim, args.num_envs)):
        actor = gym.create_actor(env, arm, common.at(), "arm", index, 1)
        common.hold_arm(env, actor, np.array(rest, dtype=np.float32))
        for asset, height in ((bolt, HEAD), (nut, HEAD + 7 * PITCH)):
            thing = gym.create_actor(env, asset, common.at(0.55, 0.0, height), "thing", index, 0)
            shapes = gym.get_actor_rigid_shape_properties(env, thing)
            shapes[0].friction = 0.02 if asset is bolt else 0.1
            gym.set_actor_rigid_shape_properties(env, thing, shapes)
        hands.append(gym.find_actor_rigid_body_index(env, actor, hand, gymapi.DOMAIN_SIM))
        nuts.append(gym.get_actor_rigid_body_index(env, thing, 0, gymapi.DOMAIN_SIM))
    gym.prepare_sim(sim)
    bodies = gym.acquire_rigid_body_state_tensor(sim).numpy()
    dofs = gym.acquire_dof_state_tensor(sim).numpy().reshape(args.num_envs, 9, 2)
    jacobian = gym.acquire_jacobian_tensor(sim, "arm").numpy()[:, link - 1, :, :7]
    start, turned, yaw = bodies[nuts, 2].copy(), np.zeros(args.num_envs), np.zeros(args.num_envs)

    def act(frame: int) -> None:
        gym.refresh_rigid_body_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        gym.refresh_jacobian_tensors(sim)
        part = max(frame - APPROACH, 0) % CYCLE / CYCLE
        grasps = 0.0 < part < 0.6
        angle = TURN * np.interp(part, [0.0, 0.15, 0.55, 0.7, 1.0], [1.0, 1.0, -1.0, -1.0, 1.0])
        now = np.arctan2(bodies[nuts, 5], bodies[nuts, 6]) / np.pi
        turned[:] += (now - yaw + 0.5) % 1.0 - 0.5
        yaw[:] = now
        if frame == APPROACH:  # by now the nut lies on its thread
            start[:], turned[:] = bodies[nuts, 2], 0.0
        goal = bodies[nuts, :3] + [0.0, 0.0, 0.5 * HEIGHT + reach]
        goal[:, :2] = 0.55, 0.0
        change = common.reach_down(bodies[hands], jacobian, goal, [-np.sin(angle), np.cos(angle), 0.0])
        targets = np.empty((args.num_envs, 9), dtype=np.float32)
        targets[:, :7] = dofs[:, :7, 0] + change
        targets[:, 7:] = 0.0 if grasps else 0.04
        gym.set_dof_position_target_tensor(sim, targets)

    common.run(sim, args.frames, act)
    gym.refresh_rigid_body_state_tensor(sim)
    down = (start - bodies[nuts, 2]) / PITCH
    print("turned by", (-turned).round(2).tolist(), "turns")
    print("pitches a turn:", (down / -turned).astype(float).round(2).tolist())


if __name__ == "__main__":
    main()
