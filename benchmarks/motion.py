"""Robots in motion with nothing set: both solvers against `mujoco.rollout` on the same MJCF file.

`python -m benchmarks.motion [--robots go1 g1 anymal hand arm] [--motions standing random limp falling]
[--worlds 64] [--together 1] [--threads 1] [--newton-python PYTHON] [--physx-python PYTHON] [--check]`

One call makes the four steps of 5 ms of a control step, as in reinforcement learning. All contestants read
one file, get the same starts and the same random targets, and take turns, so that whatever else the machine
does falls on all of them. Newton and PhysX, where an interpreter that has them is given, run on one thread in
processes of their own. With one thread the time is that of the processor, otherwise that of the clock.

A faster wrong answer does not count, so each row says how deep shapes are in each other, and how far the
last step of `SolverSAP` is from that of a solver in double precision, with a tolerance of 1e-10, that was
given all contacts within the default gap. It also says how far this step is from the laws themselves, and in
how many steps friction was approximate: the other solver may have found another solution, or approximate the
law in the same way.
"""

import argparse
import contextlib
import dataclasses
import gc
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import warp as wp
from mujoco import rollout
from rich.console import Console
from rich.table import Table

import pluriverse as pv
from benchmarks.contact_rich import contact_distances
from benchmarks.measure import positive_count
from benchmarks.motion_peers import PEERS, Peer, PeerError
from benchmarks.motion_scenes import (
    DECIMATION,
    DT,
    FALL_CONTROL_STEPS,
    ROBOTS,
    Motion,
    MovingScene,
    write_motion,
)
from benchmarks.step_laws import law_violation
from pluriverse.solvers.mujoco.cpu.clock import clock_pointer
from pluriverse.warnings import PluriverseWarning

CONTESTANTS = ("sap", "sap_2mm", "sap_tuned", "sap_all", "mujoco")
"""`SolverSAP` with nothing set, with a gap of 2 mm, with the least gap that gives the right result, with all
contacts within the default gap, `SolverMuJoCo`."""
# Contact gap of `sap_2mm` [m], what a user would set for robots at rest.
SMALL_GAP = 0.002
# Gaps that `sap_tuned` tries [m], and the error up to which the result is right, for so many control steps.
TUNED_GAPS = (0.002, 0.005, 0.01, 0.02, 0.05)
TUNED_ERROR = 1e-5
TUNING_CONTROL_STEPS = 8
# Control steps before the clock runs: a second, for robots to fall or to come to rest.
SETTLING_CONTROL_STEPS = 50
# Least ratios of world-steps per second: of each solver to rollout, and of nothing set to the other gaps.
GOAL_SAP, GOAL_MUJOCO, GOAL_DEFAULTS = 2.0, 1.0, 0.95
TABLE_WIDTH = 160


class Rollout:
    """`mujoco.rollout` on the scene."""

    def __init__(self, scene: MovingScene, world_count: int, threads: int):
        self._model = mujoco.MjModel.from_xml_path(str(scene.path))
        self._data = [mujoco.MjData(self._model) for _ in range(threads)]
        self._pool = rollout.Rollout(nthread=threads)
        self._targets = scene.targets
        full = mujoco.mjtState.mjSTATE_FULLPHYSICS
        mujoco.mj_resetDataKeyframe(self._model, self._data[0], 0)
        start = np.empty(mujoco.mj_stateSize(self._model, full))
        mujoco.mj_getState(self._model, self._data[0], start, full)
        self._starts = np.tile(start, (world_count, 1))
        self._starts[:, 1 : 1 + self._model.nq] = scene.qpos
        self._control_step = 0
        self._contacts: list[int] = []
        pointer = clock_pointer()
        self._clock = None if pointer is None else pointer.value
        self.seconds = _clock(threads)
        self.restart()

    def restart(self) -> None:
        """Put all worlds back to their starts."""
        self._states = self._starts.copy()

    def advance(self, count: int) -> None:
        """Make so many control steps."""
        pointer = clock_pointer()
        if pointer is not None:  # MuJoCo as it is without us, who stop its clock
            pointer.value = self._clock
        for _ in range(count):
            control = None
            if self._model.nu:
                target = self._targets[self._control_step % len(self._targets)]
                control = np.repeat(target[:, None], DECIMATION, axis=1)
            trajectory, _ = self._pool.rollout(
                [self._model] * len(self._states), self._data, self._states, control, nstep=DECIMATION
            )
            self._states = trajectory[:, -1]
            self._control_step += 1
        if pointer is not None:
            pointer.value = None
        self._contacts += [data.ncon for data in self._data]

    def clear_report(self) -> None:
        """Let the figures begin anew."""
        self._contacts.clear()

    def quality(self) -> dict[str, str]:
        """Return what is known of how it goes, as cells of the table."""
        return {"contacts": f"{np.mean(self._contacts):.0f}"}

    def close(self) -> None:
        """End the threads."""
        self._pool.close()


class Ours:
    """A `Simulation` of the scene."""

    def __init__(
        self, name: str, scene: MovingScene, world_count: int, threads: int, gap: float | None = None
    ):
        self._name, self._targets, self._gap = name, scene.targets, gap
        self._scene, self._world_count = scene, world_count
        self._single_steps: tuple[pv.Simulation, pv.Simulation] | None = None
        model = make_model(scene, world_count, name, gap)
        solver = pv.SolverMuJoCo(model) if name == "mujoco" else pv.SolverSAP(model)
        self._simulation = make_simulation(name, model, solver, threads)
        self._joint_q = starts_of(scene, model)
        self._driven = driven_dofs(scene, model)
        self._control_step = 0
        self.seconds = _clock(threads)
        # On a CPU, what `numpy` returns is the array itself.
        control = self._simulation.control
        self._target = control.joint_target_pos.numpy().reshape(world_count, -1)
        self._target[:] = model.joint_target_pos.numpy().reshape(world_count, -1)
        ctrl = getattr(getattr(control, "mujoco", None), "ctrl", None)
        self._ctrl = None
        if ctrl is not None and ctrl.size == self._targets[0].size:
            self._ctrl = ctrl.numpy().reshape(self._targets[0].shape)
        self.restart()
        self._simulation.prepare()

    def restart(self) -> None:
        """Put all worlds back to their starts."""
        model = self._simulation.model
        self._simulation.reset()
        state = self._simulation.state
        state.joint_q.assign(self._joint_q)
        state.joint_qd.zero_()
        pv.eval_fk(model, state.joint_q, state.joint_qd, state)

    def continue_from(self, other: "Ours") -> None:
        """Go on from the state and the targets of another one."""
        self._simulation.state.assign(other._simulation.state)
        self._control_step = other._control_step

    def advance(self, count: int) -> None:
        """Make so many control steps."""
        for _ in range(count):
            if len(self._driven):
                target = self._targets[self._control_step % len(self._targets)]
                self._target[:, self._driven] = target
                if self._ctrl is not None:
                    self._ctrl[:] = target
            self._simulation.step()
            self._control_step += 1

    def clear_report(self) -> None:
        """Let the figures begin anew."""
        self._simulation.clear_report()

    def quality(self) -> dict[str, str]:
        """Return how it goes, as cells of the table."""
        report = self._simulation.report()
        distance = contact_distances(self._simulation)
        step_count = report.step_count * report.world_count
        cells = {
            "contacts": f"{report.contact_count_mean:.0f}",
            "iterations": f"{report.iteration_count_mean:.1f}",
            "most": f"{report.iteration_count_peak}",
            "unconverged": f"{report.unconverged_step_count}",
            "frozen": f"{len(report.frozen_worlds)}",
            "deepest, mm": f"{1e3 * max(0.0, -distance.min(initial=0.0)):.2f}",
        }
        again = report.readmitted_step_count / max(step_count, 1)
        cells["solved again"] = f"{100.0 * again:.2f} %"
        if self._gap is not None:
            cells["gap, mm"] = f"{1e3 * self._gap:g}"
        if self._name != "mujoco":
            share = report.approximated_step_count / max(step_count, 1)
            cells["approx. friction"] = f"{100.0 * share:.1f} %"
            cells["error"] = f"{self.error():.1e}"
            cells["off the laws, m/s"] = f"{self.violation():.1e}"
        return cells

    def error(self) -> float:
        """Return how far the next step's change of velocity is from that of an exact solver, relative."""
        if self._single_steps is None:
            self._single_steps = self._make_single_steps()
        return step_error(self._simulation, *self._single_steps)

    def violation(self) -> float:
        """Return by how much the step that `error` has made is off any law [m/s or rad/s]."""
        assert self._single_steps is not None
        exact, own = self._single_steps
        return law_violation(own, exact)

    def _make_single_steps(self) -> tuple[pv.Simulation, pv.Simulation]:
        """Return an exact simulation of the scene and one as this, which make a step a call."""
        model = make_model(self._scene, self._world_count, "sap_all")
        return (
            make_simulation("sap_all", model, exact_solver(model), threads=1, decimation=1),
            make_simulation(self._name, self._simulation.model, None, threads=1, decimation=1),
        )

    def close(self) -> None:
        """End the threads."""
        self._simulation.close()


Contestant = Rollout | Ours | Peer


def _clock(threads: int) -> Callable[[], float]:
    """Return what tells the time of this process [s]: of the processor for one thread, else of the clock."""
    return time.process_time if threads == 1 else time.perf_counter


def exact_solver(model: pv.Model) -> pv.SolverSAP:
    """Return a solver in double precision with a tolerance of 1e-10."""
    return pv.SolverSAP(
        model,
        contact_solve_precision="fp64",
        contact_linear_solve_precision="fp64",
        optimality_rel_tol=1e-10,
        cost_rel_tol=0.0,
        max_iterations=300,
    )


def step_error(simulation: pv.Simulation, exact: pv.Simulation, own: pv.Simulation) -> float:
    """Return how far the next step's change of velocity is from that of an exact simulation, relative.

    Args:
        simulation: Where the step begins.
        exact: Simulation with all contacts and an `exact_solver`, which makes a step a call.
        own: Simulation like `simulation`, which makes a step a call.
    """
    before = simulation.save()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for single in (exact, own):
            single.state.assign(before.state)
            single.control.assign(before.control)
            single.step()
    expected, found = (single.state.joint_qd.numpy() for single in (exact, own))
    change = np.abs(expected - before.state.joint_qd.numpy()).max()
    return float(np.abs(found - expected).max() / max(change, 1e-3))


def make_model(scene: MovingScene, world_count: int, contestant: str, gap: float | None = None) -> pv.Model:
    """Return the worlds of a scene with nothing set but a gap [m], if there is one."""
    builder, robot = pv.ModelBuilder(), pv.ModelBuilder()
    if contestant == "mujoco":
        for some in (builder, robot):
            pv.SolverMuJoCo.register_custom_attributes(some)
    if gap is not None:
        robot.rigid_gap = gap
    robot.add_mjcf(scene.path)
    builder.replicate(robot, world_count)
    return builder.finalize("cpu")


def make_simulation(
    contestant: str, model: pv.Model, solver: Any, threads: int, decimation: int = DECIMATION
) -> pv.Simulation:
    """Return the simulation of a contestant."""
    culls = contestant != "sap_all"
    return pv.Simulation(model, solver, dt=DT, decimation=decimation, threads=threads, cull_contacts=culls)


def starts_of(scene: MovingScene, model: pv.Model) -> np.ndarray:
    """Return `joint_q` of the worlds' starts, shape [coord]."""
    authored = mujoco.MjModel.from_xml_path(str(scene.path))
    joints = moving_joints(authored, model)
    start = model.joint_q_start.numpy()
    joint_q = model.joint_q.numpy().reshape(model.world_count, -1).copy()
    for joint, place in enumerate(start[joints]):
        address = authored.jnt_qposadr[joint]
        if authored.jnt_type[joint] == mujoco.mjtJoint.mjJNT_FREE:
            pose = scene.qpos[:, address : address + 7]
            joint_q[:, place : place + 7] = pose[:, [0, 1, 2, 4, 5, 6, 3]]  # quaternions as xyzw
        else:
            joint_q[:, place] = scene.qpos[:, address]
    return joint_q.reshape(-1).astype(np.float32)


def driven_dofs(scene: MovingScene, model: pv.Model) -> np.ndarray:
    """Return the degree of freedom within a world of each actuator, shape [actuator]."""
    authored = mujoco.MjModel.from_xml_path(str(scene.path))
    joints = moving_joints(authored, model)[authored.actuator_trnid[:, 0]]
    return np.asarray(model.joint_qd_start.numpy()[joints], dtype=np.int64)


def moving_joints(authored: mujoco.MjModel, model: pv.Model) -> np.ndarray:
    """Return the joint of the first world for each joint of the file, shape [joint]."""
    in_world = np.arange(*model.joint_world_start.numpy()[:2])
    joints = in_world[model.joint_type.numpy()[in_world] != pv.JointType.FIXED]
    for joint, row in enumerate(joints):  # both list joints depth first
        name = authored.joint(joint).name
        if name and name not in model.joint_label[row]:
            raise LookupError(f"joint {joint} is {name!r} in the file and {model.joint_label[row]!r} here")
    return np.asarray(joints)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.motion", description=__doc__)
    parser.add_argument("--robots", nargs="+", default=list(ROBOTS), choices=list(ROBOTS))
    motions = [motion.value for motion in Motion]
    parser.add_argument("--motions", nargs="+", default=motions, choices=motions)
    parser.add_argument("--contestants", nargs="+", default=list(CONTESTANTS), choices=list(CONTESTANTS))
    parser.add_argument("--worlds", type=positive_count, default=64)
    parser.add_argument("--together", type=positive_count, default=1, help="of the robot in each world")
    parser.add_argument("--threads", type=positive_count, default=1)
    parser.add_argument("--rounds", type=positive_count, default=7)
    parser.add_argument("--control-steps", type=positive_count, default=25, help="control steps of a round")
    parser.add_argument(
        "--tuned-gap", type=float, help="gap of sap_tuned [m], instead of the least right one"
    )
    for peer in PEERS:
        parser.add_argument(
            f"--{peer}-python", help=f"interpreter that has {peer}; without it it is left out"
        )
    parser.add_argument("--check", action="store_true", help="exit with 1 below the goals")
    arguments = parser.parse_args()
    wp.config.log_level = wp.LOG_WARNING
    warnings.simplefilter("ignore", PluriverseWarning)
    console = Console(width=TABLE_WIDTH)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for robot in arguments.robots:
            for name in arguments.motions:
                try:
                    scene = write_motion(
                        robot, Motion(name), arguments.worlds, Path(folder), arguments.together
                    )
                except FileNotFoundError as error:
                    console.print(f"{robot} {name}: left out: {error}", highlight=False)
                    continue
                new = measure(f"{robot} {name}", scene, arguments)
                rows += new
                for row in new:
                    console.print(row.text(), highlight=False, soft_wrap=True)
    console.print(make_table(rows, arguments))
    for line in default_ratios(rows):
        console.print(line, highlight=False)
    failures = below_goals(rows)
    for failure in failures:
        console.print(f"below its goal: {failure}", highlight=False)
    sys.exit(int(arguments.check and (bool(failures) or not rows)))


@dataclasses.dataclass(frozen=True)
class Row:
    """What was measured of one contestant in one scene."""

    scene: str
    contestant: str
    rate: float
    """World-steps per second of the processor time, or of the clock."""
    ratios: list[float]
    """Rate over that of rollout, one for each round."""
    cells: dict[str, str]

    @property
    def ratio(self) -> float:
        """The median of the ratios."""
        return statistics.median(self.ratios)

    @property
    def spread(self) -> str:
        """The quartiles of the ratios."""
        low, high = np.quantile(self.ratios, [0.25, 0.75])
        return f"{low:.2f} to {high:.2f}"

    def text(self) -> str:
        """Return the row as a line."""
        cells = ", ".join(f"{name} {value}" for name, value in self.cells.items())
        return (
            f"{self.scene}: {self.contestant} {self.rate:,.0f}/s, {self.ratio:.2f} ({self.spread}), {cells}"
        )


def measure(name: str, scene: MovingScene, arguments: argparse.Namespace) -> list[Row]:
    """Return the rows of a scene: rollout, and the contestants asked for."""
    gc.collect()
    worlds, threads = arguments.worlds, arguments.threads
    runs: dict[str, Contestant] = {"rollout": Rollout(scene, worlds, threads)}
    for contestant in arguments.contestants:
        gap = {"sap_2mm": SMALL_GAP}.get(contestant)
        if contestant == "sap_tuned":
            gap = arguments.tuned_gap or tuned_gap(scene, worlds)
        runs[contestant] = Ours(contestant, scene, worlds, threads, gap)
    for run in runs.values():
        run.advance(SETTLING_CONTROL_STEPS)
    runs |= _peers(name, scene, arguments)
    for run in runs.values():
        run.clear_report()
    durations: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(arguments.rounds):
        _follow(runs)
        # Who ran before decides what the caches hold, so everyone is first in turn.
        order = list(runs)
        first = turn % len(order)
        for contestant in order[first:] + order[:first]:
            try:
                taken = _time_round(runs[contestant], scene, arguments.control_steps)
            except PeerError as error:
                _tell_left_out(name, contestant, error)
                del runs[contestant]
            else:
                durations[contestant].append(taken)
    steps = worlds * arguments.control_steps * DECIMATION
    rows = []
    for contestant, run in runs.items():
        own = durations[contestant]
        ratios = [base / one for base, one in zip(durations["rollout"], own, strict=True)]
        rows.append(Row(name, contestant, steps / statistics.median(own), ratios, run.quality()))
        run.close()
    return rows


def _peers(name: str, scene: MovingScene, arguments: argparse.Namespace) -> dict[str, Contestant]:
    """Return the other engines for which there is an interpreter, settled; say why one is left out."""
    peers: dict[str, Contestant] = {}
    for engine in PEERS:
        interpreter = getattr(arguments, f"{engine}_python")
        if interpreter is None:
            continue
        try:
            if arguments.threads != 1:
                raise PeerError(f"runs on one thread, not on {arguments.threads}")
            peer = Peer(f"benchmarks.engines.{engine}_motion", interpreter, scene, arguments.worlds)
            peer.advance(SETTLING_CONTROL_STEPS)
            peers[peer.version] = peer
        except PeerError as error:
            _tell_left_out(name, engine, error)
    return peers


def _tell_left_out(scene: str, contestant: str, error: PeerError) -> None:
    """Say why there is no row of an engine."""
    print(f"{scene}: {contestant} left out: {error}", flush=True)


def _follow(runs: dict[str, Contestant]) -> None:
    """Let `sap_tuned` go on from where `sap` is, if both take part.

    Robots with another gap come to rest in other poses, which would be compared instead of gaps.
    """
    leader, follower = runs.get("sap"), runs.get("sap_tuned")
    if isinstance(leader, Ours) and isinstance(follower, Ours):
        follower.continue_from(leader)


def tuned_gap(scene: MovingScene, world_count: int) -> float:
    """Return the least gap [m] with which the steps of a scene are right, the largest tried if none is."""
    for gap in TUNED_GAPS[:-1]:
        run = Ours("sap_tuned", scene, world_count, 1, gap)
        try:
            if not scene.restarts:
                run.advance(SETTLING_CONTROL_STEPS)
            count = FALL_CONTROL_STEPS if scene.restarts else TUNING_CONTROL_STEPS
            if all(_is_right_after_a_step(run) for _ in range(count)):
                return gap
        finally:
            run.close()
    return TUNED_GAPS[-1]


def _is_right_after_a_step(run: Ours) -> bool:
    """Make a control step and return whether the next one would be right."""
    run.advance(1)
    return run.error() < TUNED_ERROR


def _time_round(run: Contestant, scene: MovingScene, control_steps: int) -> float:
    """Return how long a round takes [s]. Worlds that fall begin anew every so often, off the clock."""
    taken = 0.0
    while control_steps > 0:
        count = min(control_steps, FALL_CONTROL_STEPS) if scene.restarts else control_steps
        if scene.restarts:
            run.restart()
        begin = run.seconds()
        with contextlib.suppress(PluriverseWarning):
            run.advance(count)
        taken += run.seconds() - begin
        control_steps -= count
    return taken


def below_goals(rows: list[Row]) -> list[str]:
    """Return the goals that are not reached, in words."""
    found = {(row.scene, row.contestant): row for row in rows}
    failures = []
    for (scene, contestant), row in found.items():
        goal = {"sap": GOAL_SAP, "mujoco": GOAL_MUJOCO}.get(contestant)
        if goal is not None and row.ratio < goal:
            failures.append(f"{scene}: {contestant} is {row.ratio:.2f} times rollout, the goal is {goal}")
    for scene, words, ratios in _ratios_to_gaps(found):
        ratio = statistics.median(ratios)
        if ratio < GOAL_DEFAULTS:
            failures.append(
                f"{scene}: nothing set is {ratio:.2f} times as fast as {words}, the goal is {GOAL_DEFAULTS}"
            )
    return failures


def default_ratios(rows: list[Row]) -> list[str]:
    """Return how fast the defaults are compared with the other gaps, in words."""
    found = {(row.scene, row.contestant): row for row in rows}
    return [
        f"{scene}: nothing set is {statistics.median(ratios):.2f} times as fast as {words} "
        f"({np.quantile(ratios, 0.25):.2f} to {np.quantile(ratios, 0.75):.2f})"
        for scene, words, ratios in _ratios_to_gaps(found)
    ]


def _ratios_to_gaps(found: dict[tuple[str, str], Row]) -> list[tuple[str, str, list[float]]]:
    """Return the scene, a gap in words, and the rates of nothing set over it, one for each round."""
    result = []
    for (scene, contestant), row in found.items():
        for other, words in (("sap_2mm", "a gap of 2 mm"), ("sap_tuned", "the least right gap")):
            tuned = found.get((scene, other))
            if contestant == "sap" and tuned is not None:
                ratios = [a / b for a, b in zip(row.ratios, tuned.ratios, strict=True)]
                result.append((scene, words, ratios))
    return result


def make_table(rows: list[Row], arguments: argparse.Namespace) -> Table:
    """Return all rows as a table."""
    table = Table(
        title=f"{arguments.worlds} worlds, {arguments.threads} thread(s), "
        f"{DECIMATION} steps of {1e3 * DT:g} ms a call"
    )
    names = list(dict.fromkeys(name for row in rows for name in row.cells))
    for title in ("scene", "contestant", "world-steps/s", "/ rollout", "quartiles", *names):
        table.add_column(title, justify="left" if title in ("scene", "contestant") else "right")
    for row in rows:
        cells = [row.cells.get(name, "") for name in names]
        table.add_row(row.scene, row.contestant, f"{row.rate:,.0f}", f"{row.ratio:.2f}", row.spread, *cells)
    return table


if __name__ == "__main__":
    main()
