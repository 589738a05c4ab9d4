"""What the tensor path of the actor API costs beyond the bare simulation, and how long envs take to build.

`python -m benchmarks.gymapi [--envs 1024]` steps crawlers with random efforts in two ways, in turns: by the
API (refresh root, DOF and body states, set efforts, reset some envs, simulate), and by a `Simulation` of the
same model from the same states with the same efforts. It prints the ratio of the best times.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import warp as wp

from pluriverse import Simulation, gymapi
from pluriverse.gymapi.runtime import make_solver

ASSETS = str(Path(__file__).resolve().parent.parent / "examples" / "gym" / "assets")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gymapi", description=__doc__)
    parser.add_argument("--envs", type=int, default=1024)
    parser.add_argument("--frames", type=int, default=20, help="frames of one measurement")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0 for all cores")
    parser.add_argument("--gpu", action="store_true", help="simulate on the GPU")
    arguments = parser.parse_args()

    gym = gymapi.acquire_gym()
    begin = time.perf_counter()
    sim = make_sim(gym, arguments)
    created = time.perf_counter()
    gym.prepare_sim(sim)
    prepared = time.perf_counter()
    bare = make_bare(sim)
    rng = np.random.default_rng(0)
    efforts = [
        wp.array(rng.uniform(-15.0, 15.0, sim.dof_count).astype(np.float32), device=sim.device)
        for _ in range(arguments.frames)
    ]
    states = Tensors(gym, sim)
    step_by_tensors(gym, sim, states, efforts)  # compiles and warms up both
    step_bare(sim, bare, efforts)
    with_tensors, without = [], []
    for _ in range(arguments.repeats):
        snapshot = sim.runtime.simulation.save()
        with_tensors.append(step_by_tensors(gym, sim, states, efforts))
        bare.restore(snapshot)
        without.append(step_bare(sim, bare, efforts))
    print(f"{arguments.envs} envs created in {created - begin:.2f} s, prepared in {prepared - created:.2f} s")
    frame = 1e3 / arguments.frames
    print(f"bare simulation: {frame * min(without):.3f} ms a frame")
    print(f"tensor path:     {frame * min(with_tensors):.3f} ms a frame")
    print(f"overhead:        {100.0 * (min(with_tensors) / min(without) - 1.0):.1f} %")


def make_sim(gym: gymapi.Gym, arguments: argparse.Namespace) -> gymapi.Sim:
    """Return a sim of crawlers on the ground."""
    params = gymapi.SimParams()
    params.up_axis = gymapi.UP_AXIS_Z
    params.gravity = gymapi.Vec3(0.0, 0.0, -9.81)
    params.use_gpu_pipeline = arguments.gpu
    params.physx.num_threads = arguments.threads
    sim = gym.create_sim(0, -1, gymapi.SIM_PHYSX, params)
    plane = gymapi.PlaneParams()
    plane.normal = gymapi.Vec3(0.0, 0.0, 1.0)
    gym.add_ground(sim, plane)
    asset = gym.load_asset(sim, ASSETS, "crawler.xml", gymapi.AssetOptions())
    pose = gymapi.Transform(gymapi.Vec3(0.0, 0.0, 0.6))
    for index in range(arguments.envs):
        env = gym.create_env(sim, gymapi.Vec3(-2, -2, 0), gymapi.Vec3(2, 2, 2), 32)
        actor = gym.create_actor(env, asset, pose, "crawler", index, 1)
        gym.set_actor_dof_properties(env, actor, gym.get_actor_dof_properties(env, actor))
    return sim


class Tensors:
    """What the loop reads and writes."""

    def __init__(self, gym: gymapi.Gym, sim: gymapi.Sim):
        self.root = gym.acquire_actor_root_state_tensor(sim)
        self.dof = gym.acquire_dof_state_tensor(sim)
        gym.acquire_rigid_body_state_tensor(sim)
        self.first_root, self.first_dof = wp.clone(self.root.array), wp.clone(self.dof.array)
        rows = np.arange(0, sim.actor_count, 64, dtype=np.int32)
        self.reset = wp.array(rows, dtype=wp.int32, device=sim.device)


def step_by_tensors(gym: gymapi.Gym, sim: gymapi.Sim, tensors: Tensors, efforts: list[wp.array]) -> float:
    """Make a frame for each array of efforts; return how long it took [s]."""
    wp.synchronize_device(sim.device)
    begin = time.perf_counter()
    for frame, values in enumerate(efforts):
        gym.refresh_actor_root_state_tensor(sim)
        gym.refresh_dof_state_tensor(sim)
        gym.refresh_rigid_body_state_tensor(sim)
        if frame % 10 == 0:
            gym.set_actor_root_state_tensor_indexed(
                sim, tensors.first_root, tensors.reset, tensors.reset.size
            )
            gym.set_dof_state_tensor_indexed(sim, tensors.first_dof, tensors.reset, tensors.reset.size)
        gym.set_dof_actuation_force_tensor(sim, values)
        gym.simulate(sim)
    wp.synchronize_device(sim.device)
    return time.perf_counter() - begin


def make_bare(sim: gymapi.Sim) -> Simulation:
    """Return a simulation of the model of a sim, with the same solver and time step."""
    runtime = sim.runtime
    solver = make_solver(runtime.model, sim.params.solver, sim.params.solver_options)
    return Simulation(
        runtime.model,
        solver,
        dt=runtime.simulation.dt,
        decimation=runtime.substeps,
        threads=runtime.simulation.threads,
    )


def step_bare(sim: gymapi.Sim, simulation: Simulation, efforts: list[wp.array]) -> float:
    """Make a frame for each array of efforts; return how long it took [s]."""
    dofs = sim.runtime.dofs.dof.numpy()
    act = []
    for values in efforts:
        rows = np.zeros(sim.runtime.model.joint_dof_count, dtype=np.float32)
        rows[dofs] = values.numpy()
        act.append(wp.array(rows, device=sim.device))
    wp.synchronize_device(sim.device)
    begin = time.perf_counter()
    for rows in act:
        wp.copy(simulation.control.joint_act, rows)
        simulation.step()
    wp.synchronize_device(sim.device)
    return time.perf_counter() - begin


if __name__ == "__main__":
    main()
