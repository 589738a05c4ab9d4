"""Learning to walk, whole loop: `SolverSAP` against `mujoco.rollout` with the same policy optimization.

`python -m benchmarks.learning --go1 FOLDER/unitree_go1/go1.xml [--envs 256] [--threads 2] [--updates 3]`

Both sides simulate Go1 with the same gains, time step and steps per action, on all threads; both have the
same observations, reward, ends of episodes, networks and optimizer (rsl_rl). What they do is timed in three
parts: simulation, networks (acting and learning), and the rest, which is observations, reward and episodes.
Updates of the two take turns in one process. MuJoCo's side has one model for all robots; ours draws friction
for each.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read once, when PyTorch is loaded

import mujoco
import numpy as np
import torch
import warp as wp
from mujoco import rollout
from rich.console import Console
from rich.table import Table
from rsl_rl.env import VecEnv
from tensordict import TensorDict

from pluriverse import envs
from pluriverse.envs.learning.trainer import _make_ppo
from pluriverse.envs.registry import find_task
from pluriverse.envs.robots import get_robot
from pluriverse.envs.tasks.velocity import VelocityTask
from pluriverse.envs.tasks.velocity_terms import TERMS, VelocityTerms

ROBOT = get_robot("go1")
STIFFNESS, DAMPING = ROBOT.drive_gains["*_joint"]
FEET = tuple(f"{corner}_calf" for corner in ("FR", "FL", "RR", "RL"))
TRUNK = ("trunk", *(f"{corner}_thigh" for corner in ("FR", "FL", "RR", "RL")))
JOINTS = tuple(f"{c}_{part}_joint" for c in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf"))
HOME_PARTS = {"hip": (0.1, -0.1), "thigh": (0.8, 1.0), "calf": (-1.5, -1.5)}


class MuJoCoGo1(VecEnv):
    """Go1 following commands, stepped by `mujoco.rollout`, as `VelocityTask` has it.

    Args:
        path: MJCF file of Go1.
        env_count: Number of robots.
        threads: Threads of the rollout.
    """

    def __init__(self, path: Path, env_count: int, threads: int) -> None:
        self.model = _make_model(path)
        self.num_envs, self.num_actions, self.device = env_count, len(JOINTS), "cpu"
        self.dt = VelocityTask.dt * VelocityTask.decimation
        self.max_episode_length = round(VelocityTask.episode_seconds / self.dt)
        self.cfg: dict[str, Any] = {}
        self.episode_length_buf = torch.zeros(env_count, dtype=torch.int32)
        self.simulate_time = 0.0
        self._rollout = rollout.Rollout(nthread=threads)
        self._datas = [mujoco.MjData(self.model) for _ in range(threads)]
        self._random = np.random.default_rng(0)
        start = mujoco.MjData(self.model)
        start.qpos[2], start.qpos[7:] = ROBOT.height, _home(self.model)
        self._full = int(mujoco.mjtState.mjSTATE_FULLPHYSICS)
        self._start = np.zeros(mujoco.mj_stateSize(self.model, self._full))
        mujoco.mj_getState(self.model, start, self._start, self._full)
        self._states = np.tile(self._start, (env_count, 1))
        shape = (env_count, VelocityTask.decimation)
        self._controls = np.zeros((*shape, self.num_actions))
        self._state_out = np.zeros((*shape, len(self._start)))
        self._sensed = np.zeros((*shape, self.model.nsensordata))
        self._places = {
            self.model.sensor(k).name: slice(s.adr[0], s.adr[0] + s.dim[0])
            for k, s in enumerate(self.model.sensor(i) for i in range(self.model.nsensor))
        }
        self._allocate(env_count)
        self._begin(np.ones(env_count, dtype=bool))

    def get_observations(self) -> TensorDict:
        """Return what the policy sees."""
        return TensorDict({"policy": self._observe()}, batch_size=[self.num_envs])

    def reset(self) -> tuple[TensorDict, dict[str, Any]]:
        """Begin all episodes anew."""
        self._begin(np.ones(self.num_envs, dtype=bool))
        return self.get_observations(), {}

    def step(self, actions: torch.Tensor) -> tuple[TensorDict, Any, Any, dict[str, Any]]:
        """Make one step of all robots."""
        self.previous_actions.copy_(self.actions)
        torch.clamp(actions, -VelocityTask.action_limit, VelocityTask.action_limit, out=self.actions)
        self.last_velocities.copy_(self.joint_velocities)
        targets = self.home + VelocityTask.action_scale * self.actions
        self._controls[:] = targets.numpy()[:, None]
        begin = time.perf_counter()
        self._rollout.rollout(
            self.model,
            self._datas,
            self._states,
            self._controls,
            state=self._state_out,
            sensordata=self._sensed,
            skip_checks=False,
        )
        self.simulate_time += time.perf_counter() - begin
        self._states[:] = self._state_out[:, -1]
        self._read()
        self.episode_length_buf += 1
        fallen = (self.gravity[:, 2] > -0.5) | self.is_trunk_touching
        timed_out = (self.episode_length_buf >= self.max_episode_length) & ~fallen
        rewards = sum(self._terms().values())
        done = fallen | timed_out
        if bool(done.any()):
            self._begin(done.numpy())
        recommanded = (self.episode_length_buf % 500 == 0) & (self.episode_length_buf > 0)
        if bool(recommanded.any()):
            self._command(recommanded.numpy())
        return self.get_observations(), rewards, done.long(), {"time_outs": timed_out}

    def close(self) -> None:
        """End the threads."""
        self._rollout.close()

    def _allocate(self, count: int) -> None:
        zeros = torch.zeros
        self.velocity, self.spin, self.gravity = zeros(count, 3), zeros(count, 3), zeros(count, 3)
        self.joint_positions, self.joint_velocities = zeros(count, 12), zeros(count, 12)
        self.torques, self.last_velocities = zeros(count, 12), zeros(count, 12)
        self.actions, self.previous_actions = zeros(count, 12), zeros(count, 12)
        self.commands = zeros(count, 3)
        self.home = torch.tensor(_home(self.model), dtype=torch.float32).expand(count, 12).contiguous()
        self.contact_times, self.air_times, self.last_air = (zeros(count, 4) for _ in range(3))
        self.is_trunk_touching = zeros(count, dtype=torch.bool)
        to_vec3 = {"dtype": wp.vec3}
        robot = SimpleNamespace(
            base_positions=wp.from_torch(zeros(count, 3), **to_vec3),
            base_linear_velocities=wp.from_torch(self.velocity, **to_vec3),
            base_angular_velocities=wp.from_torch(self.spin, **to_vec3),
            projected_gravity=wp.from_torch(self.gravity, **to_vec3),
            joint_positions=wp.from_torch(self.joint_positions),
            joint_velocities=wp.from_torch(self.joint_velocities),
            joint_torques=wp.from_torch(self.torques),
            foot_contact_times=wp.from_torch(self.contact_times),
            foot_last_air_times=wp.from_torch(self.last_air),
        )
        self._terms = VelocityTerms(
            robot,
            commands=self.commands,
            actions=self.actions,
            previous_actions=self.previous_actions,
            home=self.home,
            last_velocities=self.last_velocities,
            weights={name: VelocityTask.weights[name] for name in TERMS},
            tracking_width=VelocityTask.tracking_width,
            swing_seconds=VelocityTask.swing_seconds,
            dt=self.dt,
        )

    def _read(self) -> None:
        """Take over what the rollout gave."""
        sensed, nq, time_count = self._sensed[:, -1], self.model.nq, 1
        self.velocity.copy_(torch.from_numpy(sensed[:, self._places["velocity"]]))
        self.spin.copy_(torch.from_numpy(sensed[:, self._places["spin"]]))
        self.gravity.copy_(torch.from_numpy(-sensed[:, self._places["up"]]))
        self.joint_positions.copy_(torch.from_numpy(self._states[:, time_count + 7 : time_count + nq]))
        end = time_count + nq + self.model.nv
        self.joint_velocities.copy_(torch.from_numpy(self._states[:, time_count + nq + 6 : end]))
        efforts = self._sensed[..., self._places["torque 0"].start : self._places["torque 11"].stop]
        self.torques.copy_(torch.from_numpy(efforts.mean(axis=1)))
        touching = self._sensed[..., self._places["touch 0"].start : self._places["touch 8"].stop]
        touches = torch.from_numpy((touching > 0.0).any(axis=1))
        feet = touches[:, :4]
        self.is_trunk_touching = touches[:, 4:].any(dim=1)
        self.last_air = torch.where(
            feet & (self.air_times > 0.0), self.air_times, self.last_air, out=self.last_air
        )
        self.contact_times.add_(self.dt).mul_(feet)
        self.air_times.add_(self.dt).mul_(~feet)

    def _observe(self) -> torch.Tensor:
        parts = [
            self.velocity * 2.0,
            self.spin * 0.25,
            self.gravity,
            self.commands,
            self.joint_positions - self.home,
            self.joint_velocities * 0.05,
            self.actions,
        ]
        return torch.cat(parts, dim=1)

    def _begin(self, mask: np.ndarray) -> None:
        count, random = int(mask.sum()), self._random
        states = np.tile(self._start, (count, 1))
        yaw = random.uniform(-np.pi, np.pi, count)
        states[:, 4], states[:, 7] = np.cos(0.5 * yaw), np.sin(0.5 * yaw)
        states[:, 8 : 1 + self.model.nq] += random.uniform(-0.1, 0.1, (count, 12))
        root = 1 + self.model.nq
        states[:, root : root + 6] = random.uniform(-0.3, 0.3, (count, 6))
        self._states[mask] = states
        for buffer in (
            self.actions,
            self.previous_actions,
            self.contact_times,
            self.air_times,
            self.last_air,
        ):
            buffer[mask] = 0.0
        self.joint_positions[mask] = torch.from_numpy(states[:, 8 : 1 + self.model.nq]).float()
        self.joint_velocities[mask] = 0.0
        self.gravity[mask] = torch.tensor([0.0, 0.0, -1.0])
        self.episode_length_buf[mask] = 0
        self._command(mask)

    def _command(self, mask: np.ndarray) -> None:
        low, high = (0.0, -0.3, -0.6), (1.0, 0.3, 0.6)
        drawn = self._random.uniform(low, high, (int(mask.sum()), 3))
        self.commands[mask] = torch.from_numpy(drawn).float()


def _home(model: Any) -> np.ndarray:
    """Return the home positions of the joints."""
    values = []
    for k in range(1, model.njnt):
        corner, part, _ = model.joint(k).name.split("_")
        values.append(HOME_PARTS[part][1 if (corner[1] if part == "hip" else corner[0]) == "R" else 0])
    return np.array(values)


def _make_model(path: Path) -> Any:
    """Return Go1 on a plane, with the drives and gains of `VelocityTask` and sensors for what it needs."""
    spec = mujoco.MjSpec.from_file(str(path))
    spec.option.timestep = VelocityTask.dt
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for sensor in list(spec.sensors):
        spec.delete(sensor)
    for geom in spec.geoms:
        if geom.contype or geom.conaffinity:  # with the ground only
            geom.contype, geom.conaffinity = 0, 1
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], contype=1, conaffinity=0)
    site = spec.body("trunk").add_site(name="base")
    add = spec.add_sensor
    kinds, objects = mujoco.mjtSensor, mujoco.mjtObj
    for name, kind in (("velocity", kinds.mjSENS_VELOCIMETER), ("spin", kinds.mjSENS_GYRO)):
        add(name=name, type=kind, objtype=objects.mjOBJ_SITE, objname=site.name)
    add(
        name="up",
        type=kinds.mjSENS_FRAMEZAXIS,
        objtype=objects.mjOBJ_XBODY,
        objname="world",
        reftype=objects.mjOBJ_XBODY,
        refname="trunk",
    )
    for k, joint in enumerate(joint for joint in spec.joints if joint.type != mujoco.mjtJoint.mjJNT_FREE):
        limit = next(v for pattern, v in ROBOT.effort_limit.items() if joint.name.endswith(pattern[1:]))
        joint.armature = ROBOT.armature
        joint.actfrcrange = [-limit, limit]
        joint.actfrclimited = True
        drive = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        drive.set_to_position(kp=STIFFNESS, kv=DAMPING)
        add(
            name=f"torque {k}",
            type=kinds.mjSENS_JOINTACTFRC,
            objtype=objects.mjOBJ_JOINT,
            objname=joint.name,
        )
    for k, body in enumerate((*FEET, *TRUNK)):
        add(
            name=f"touch {k}",
            type=kinds.mjSENS_CONTACT,
            objtype=objects.mjOBJ_BODY,
            objname=body,
            intprm=[1, 0, 1],  # whether there is one
        )
    return spec.compile()


class Side:
    """One engine with its policy, timed in parts.

    Args:
        name: Name in the table.
        env: Environment in the interface of rsl_rl.
        simulate_time: Returns the time spent in its simulation so far [s].
    """

    def __init__(self, name: str, env: Any, simulate_time: Callable[[], float]) -> None:
        self.name, self.env, self._simulate_time = name, env, simulate_time
        self.config = find_task("go1-flat").config
        env.env = getattr(env, "env", SimpleNamespace(seed=0))
        torch.manual_seed(0)
        self.ppo = _make_ppo(env, self.config)
        self.ppo.train_mode()
        self._seen = env.get_observations()
        self.times: list[tuple[float, float, float]] = []

    def update(self) -> None:
        """Collect and learn once, and note the times of simulation, networks and the rest [s]."""
        clock, networks, before = time.perf_counter, 0.0, self._simulate_time()
        begin = clock()
        with torch.inference_mode():
            for _ in range(self.config.steps_per_iteration):
                start = clock()
                actions = self.ppo.act(self._seen)
                networks += clock() - start
                self._seen, rewards, dones, extras = self.env.step(actions)
                start = clock()
                self.ppo.process_env_step(self._seen, rewards, dones, extras)
                networks += clock() - start
        start = clock()
        with torch.inference_mode():
            self.ppo.compute_returns(self._seen)
        self.ppo.update()
        end = clock()
        networks += end - start
        simulation = self._simulate_time() - before
        self.times.append((simulation, networks, end - begin - simulation - networks))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--go1", type=Path, required=True, help="MJCF file of Go1")
    parser.add_argument("--envs", type=int, default=256)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warm-up", type=int, default=15, help="updates before the clock runs")
    parser.add_argument("--updates", type=int, default=15)
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    torch.set_num_threads(arguments.threads)

    root = arguments.go1.resolve().parent.parent
    environment = envs.Environment(
        envs.make_task("go1-flat", asset_roots=(root,)), arguments.envs, threads=arguments.threads
    )
    spent = [0.0]
    step = environment.simulation.step

    def timed(count: int = 1) -> None:
        begin = time.perf_counter()
        step(count)
        spent[0] += time.perf_counter() - begin

    environment.simulation.step = timed  # type: ignore[method-assign]
    theirs = MuJoCoGo1(arguments.go1, arguments.envs, arguments.threads)
    sides = [
        Side("Pluriverse", envs.RslRlEnv(environment), lambda: spent[0]),
        Side("mujoco.rollout", theirs, lambda: theirs.simulate_time),
    ]
    for update in range(arguments.warm_up + arguments.updates):
        for side in sides:
            side.update()
            if update < arguments.warm_up:
                side.times.clear()
    Console(width=110).print(_table(sides, arguments.envs))
    for side in sides:
        side.env.close()


def _table(sides: list[Side], env_count: int) -> Table:
    """Return steps per second and shares of each side, medians over updates."""
    table = Table(title=f"{env_count} Go1, steps of environments")
    for column in ("engine", "steps/s", "simulation", "networks", "rest", "simulation alone, steps/s"):
        table.add_column(column, justify="left" if column == "engine" else "right")
    for side in sides:
        steps = side.config.steps_per_iteration * env_count
        whole = statistics.median(sum(times) for times in side.times)
        shares = [statistics.median(t[k] / sum(t) for t in side.times) for k in range(3)]
        alone = steps / statistics.median(times[0] for times in side.times)
        table.add_row(
            side.name, f"{steps / whole:,.0f}", *(f"{share:.1%}" for share in shares), f"{alone:,.0f}"
        )
    return table


if __name__ == "__main__":
    main()
