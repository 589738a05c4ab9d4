"""Sampling: starts of a problem beside the one that the user gives.

Reads   joint_q, joint limits
Writes  joint_q of all rows but the first of each problem

Numbers are named by the problem, the start, the coordinate and how often starts were drawn
(`math/counter_random.py`), so a problem draws the same ones whatever other problems there are.

Ball joints get any orientation with equal probability. Free and distance joints stay where they are, unless
steps are normally distributed. Angles without limits range over a turn, distances without limits stay.
"""

import math
from types import SimpleNamespace

import numpy as np
import warp as wp

from pluriverse.ik.choices import IKSampler
from pluriverse.ik.evaluation import Evaluation
from pluriverse.ik.retraction import move_rows
from pluriverse.ik.rows import Rows
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.counter_random import open_uniform_of, philox
from pluriverse.math.precision import vec3_type
from pluriverse.model import Topology
from pluriverse.model.topology import FREE_BELOW
from pluriverse.types import MAXVAL, JointType

# Stream of random numbers, apart from all others of the same seed.
STREAM = wp.constant(wp.uint32(0x494B))
TURN = wp.constant(wp.float64(2.0 * math.pi))
# Limits from here on are none. A tenth, since single precision may round the value down.
NO_LIMIT = wp.constant(wp.float64(0.1 * MAXVAL))


@made_once
def _kernels() -> SimpleNamespace:
    real = wp.float64
    vec3 = vec3_type(real)

    @wp.func
    def draw(problem: int, start: int, dof: int, round_: int, key: wp.uint32):
        """Return two independent numbers strictly between 0 and 1."""
        block = philox(wp.uint32(problem), wp.uint32(start), wp.uint32(dof), wp.uint32(round_), key, STREAM)
        return open_uniform_of(block.word0), open_uniform_of(block.word1)

    @wp.kernel(enable_backward=False, module="pluriverse.ik.sampling")
    def sample_row(
        rows: Rows,
        topology: Topology,
        seed_count: int,
        is_normal: int,
        std: wp.float64,  # m or rad
        key: wp.uint32,
        recurrence: wp.array[wp.float64],  # [dof of a row]; empty: random numbers
        movable: wp.array[int],  # [dof + dof of a row] 0: held
        lower: wp.array[float],  # [dof] m or rad
        upper: wp.array[float],  # [dof] m or rad
        rounds: wp.array[int],  # [1] how often starts were drawn
        joint_q: wp.array2d[float],  # [row, coord]
        step: wp.array2d[wp.float64],  # [row, dof] out
    ):
        row, _ = wp.tid()
        start = row % seed_count
        rows.place_due[row] = wp.min(start, 1)  # the first start is that of the user
        if start == 0:
            return
        problem = rows.row_problem[row]
        first_world = rows.problem_world[problem]
        point = real(rounds[0] * (seed_count - 1) + start)
        for world in range(first_world, first_world + rows.world_count):
            template = topology.world_template[world]
            dof_base = topology.world_dof[world] - topology.world_dof[first_world]
            coord_base = topology.world_coord[world] - topology.world_coord[first_world]
            for node in range(topology.template_node[template], topology.template_node[template + 1]):
                joint_type = topology.node_type[node]
                first_dof = topology.node_qd[node]
                u = vec3()
                for k in range(topology.node_dof_count[node]):
                    dof = dof_base + first_dof + k
                    flat = topology.world_dof[world] + first_dof + k
                    step[row, dof] = real(0.0)
                    if movable[flat] == 0:
                        continue
                    uniform, second = draw(problem, start, dof, rounds[0], key)
                    if is_normal != 0:
                        # Box and Muller: a radius and an angle from two uniform numbers.
                        step[row, dof] = std * wp.sqrt(real(-2.0) * wp.log(uniform)) * wp.cos(TURN * second)
                        continue
                    if recurrence.shape[0] > 0:
                        uniform = real(0.5) + recurrence[dof] * point
                        uniform = uniform - wp.floor(uniform)
                    if joint_type == JointType.BALL:
                        u[k] = uniform
                    elif joint_type != JointType.FREE and joint_type != FREE_BELOW:
                        least, most = real(lower[flat]), real(upper[flat])
                        if least > -NO_LIMIT and most < NO_LIMIT:
                            step[row, dof] = least + uniform * wp.max(most - least, real(0.0))
                        elif k >= topology.node_linear_count[node]:
                            step[row, dof] = (uniform - real(0.5)) * TURN
                        else:
                            continue
                        position = real(joint_q[row, coord_base + topology.node_coord[node] + k])
                        step[row, dof] = step[row, dof] - position
                if joint_type == JointType.BALL and u[0] > real(0.0):
                    # A turn by any rotation with equal probability leads anywhere with equal probability
                    # ([Shoemake1992]); as a rotation vector.
                    w = wp.sqrt(u[0]) * wp.cos(TURN * u[2])
                    axis = vec3(
                        wp.sqrt(real(1.0) - u[0]) * wp.sin(TURN * u[1]),
                        wp.sqrt(real(1.0) - u[0]) * wp.cos(TURN * u[1]),
                        wp.sqrt(u[0]) * wp.sin(TURN * u[2]),
                    )
                    length = wp.length(axis)
                    if length > real(0.0):
                        turn = (real(2.0) * wp.atan2(length, w) / length) * axis
                        for k in range(3):
                            step[row, dof_base + first_dof + k] = turn[k]

    @wp.kernel(enable_backward=False, module="pluriverse.ik.sampling")
    def count_round(rounds: wp.array[int]):  # [1] in and out
        rounds[0] = rounds[0] + 1

    return SimpleNamespace(sample_row=sample_row, count_round=count_round)


class StartSampler:
    """Starts of all rows.

    Args:
        evaluation: Rows, `start_count` in a row of each problem.
        kind: How they are chosen.
        start_count: Starts per problem.
        std: Standard deviation of normally distributed steps [m or rad].
        seed: Seed of random numbers.
    """

    def __init__(
        self, evaluation: Evaluation, kind: IKSampler, start_count: int, std: float, seed: int
    ) -> None:
        self._evaluation, self._kind, self._start_count, self._std = evaluation, kind, start_count, std
        self._key = seed & 0xFFFFFFFF
        device, dofs = evaluation.model.device, evaluation.problems.dof_count
        recurrence = np.zeros(0)
        if kind is IKSampler.ROBERTS:
            recurrence = roberts_recurrence(dofs)
        self._recurrence = wp.array(recurrence, dtype=wp.float64, device=device)
        self._rounds = wp.zeros(1, dtype=wp.int32, device=device)
        self._step = wp.zeros((evaluation.row_count, dofs), dtype=wp.float64, device=device)

    def reset(self) -> None:
        """Draw the same starts again from here on."""
        self._rounds.zero_()

    def sample(self, joint_q: wp.array) -> None:
        """Change the coordinates of all rows but the first of each problem, shape [row, coord]."""
        evaluation, problems = self._evaluation, self._evaluation.problems
        model, kernels = evaluation.model, _kernels()
        launch_kernel(
            kernels.sample_row,
            dim=evaluation.row_count,
            inputs=[
                evaluation.rows,
                model.topology,
                self._start_count,
                int(self._kind is IKSampler.GAUSS),
                self._std,
                self._key,
                self._recurrence,
                problems.movable,
                model.joint_limit_lower,
                model.joint_limit_upper,
                self._rounds,
                joint_q,
            ],
            outputs=[self._step],
            device=model.device,
        )
        move_rows(model, evaluation.rows, joint_q, self._step, joint_q)
        launch_kernel(kernels.count_round, dim=1, outputs=[self._rounds], device=model.device)


def roberts_recurrence(dimension: int) -> np.ndarray:
    """Return the steps of the recurrence that fills a cube evenly ([Roberts2018]), shape [dimension].

    They are powers of the inverse of the greatest root of x^(d + 1) = x + 1.
    """
    root = 2.0
    for _ in range(64):  # a contraction by 1 / (d + 1) or better: 64 steps reach the last bit
        root = (1.0 + root) ** (1.0 / (dimension + 1))
    return root ** -np.arange(1.0, dimension + 1.0)
