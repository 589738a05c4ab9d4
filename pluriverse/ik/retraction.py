"""Retraction: joint coordinates after a step in the degrees of freedom.

Reads   joint_q, step
Writes  joint_q_out

Coordinates with a dof of their own are added to. Quaternions are turned by the exponential of the rotation
vector in the step ([Sola2017] eq. 101), so they keep their length and no step is too long for them.
"""

from types import SimpleNamespace

import warp as wp

from pluriverse.ik.rows import Rows
from pluriverse.launch import launch_kernel, made_once
from pluriverse.math.conversion import conversion_functions
from pluriverse.math.precision import vec3_type
from pluriverse.math.rotations import rotation_functions
from pluriverse.model import Model, Topology
from pluriverse.model.topology import FREE_BELOW
from pluriverse.types import JointType


@made_once
def _kernels() -> SimpleNamespace:
    real = wp.float64
    vec3 = vec3_type(real)
    quat_from_rotation_vector = rotation_functions(real).quat_from_rotation_vector
    quat_normalize = rotation_functions(real).quat_normalize
    read_rotation = conversion_functions(real).read_rotation
    write_rotation = conversion_functions(real).write_rotation

    @wp.kernel(enable_backward=False, module="pluriverse.ik.retraction")
    def move_row(
        rows: Rows,
        topology: Topology,
        joint_q: wp.array[float],  # [row * coord]
        coord_count: int,
        step: wp.array2d[wp.float64],  # [row, dof] m or rad
        scale: wp.float64,
        joint_q_out: wp.array[float],  # [row * coord] out
    ):
        row, _ = wp.tid()
        if rows.place_due[row] == 0:
            return
        first_world = rows.problem_world[rows.row_problem[row]]
        for world in range(first_world, first_world + rows.world_count):
            template = topology.world_template[world]
            dof_base = topology.world_dof[world] - topology.world_dof[first_world]
            coord_base = topology.world_coord[world] - topology.world_coord[first_world] + row * coord_count
            for node in range(topology.template_node[template], topology.template_node[template + 1]):
                joint_type = topology.node_type[node]
                dof = dof_base + topology.node_qd[node]
                coord = coord_base + topology.node_coord[node]
                scalar_count = topology.node_dof_count[node]
                turns = int(0)
                if joint_type == JointType.BALL:
                    turns = 3
                    scalar_count = 0
                elif joint_type == JointType.FREE or joint_type == FREE_BELOW:
                    turns = 3
                    scalar_count = 3
                for k in range(scalar_count):
                    joint_q_out[coord + k] = float(real(joint_q[coord + k]) + scale * step[row, dof + k])
                if turns == 0:
                    continue
                coord += scalar_count
                dof += scalar_count
                turn = scale * vec3(step[row, dof], step[row, dof + 1], step[row, dof + 2])
                if wp.dot(turn, turn) > real(0.0):
                    rotation = quat_from_rotation_vector(turn) * read_rotation(joint_q, coord)
                    write_rotation(joint_q_out, coord, quat_normalize(rotation))
                else:
                    # A rotation that is held keeps its bits.
                    for k in range(4):
                        joint_q_out[coord + k] = joint_q[coord + k]

    @wp.kernel(enable_backward=False, module="pluriverse.ik.retraction")
    def repair_row(
        rows: Rows,
        topology: Topology,
        joint_q: wp.array2d[float],  # [row, coord] in and out
    ):
        row, _ = wp.tid()
        first_world = rows.problem_world[rows.row_problem[row]]
        for world in range(first_world, first_world + rows.world_count):
            template = topology.world_template[world]
            coord_base = topology.world_coord[world] - topology.world_coord[first_world]
            for node in range(topology.template_node[template], topology.template_node[template + 1]):
                joint_type = topology.node_type[node]
                coord = coord_base + topology.node_coord[node]
                if joint_type == JointType.FREE or joint_type == FREE_BELOW:
                    coord += 3
                elif joint_type != JointType.BALL:
                    continue
                is_zero = int(1)
                for k in range(4):
                    if joint_q[row, coord + k] != 0.0:
                        is_zero = 0
                if is_zero != 0:
                    joint_q[row, coord + 3] = 1.0

    return SimpleNamespace(move_row=move_row, repair_row=repair_row)


def repair_rows(model: Model, rows: Rows, joint_q: wp.array) -> None:
    """Make the identity of quaternions that are 0, as in coordinates that were allocated and not set.

    Args:
        model: The model.
        rows: The rows.
        joint_q: Coordinates, shape [row, coord]; changed.
    """
    launch_kernel(
        _kernels().repair_row,
        dim=joint_q.shape[0],
        inputs=[rows, model.topology],
        outputs=[joint_q],
        device=model.device,
    )


def move_rows(
    model: Model, rows: Rows, joint_q: wp.array, step: wp.array, joint_q_out: wp.array, *, scale: float = 1.0
) -> None:
    """Write the coordinates after `scale` times a step, of the rows that are due.

    Args:
        model: The model.
        rows: The rows.
        joint_q: Coordinates before, shape [row, coord].
        step: Step [m or rad], shape [row, dof].
        joint_q_out: Receives the coordinates; may be `joint_q`.
        scale: Factor of the step.
    """
    launch_kernel(
        _kernels().move_row,
        dim=joint_q.shape[0],
        inputs=[rows, model.topology, joint_q.flatten(), joint_q.shape[1], step, scale],
        outputs=[joint_q_out.flatten()],
        device=model.device,
    )
