"""Integration in lanes: what `integration.py` does to joints whose coordinates are numbers, eight at once.

Reads   joint_q of the old state; workspace: dof_velocity, dof_velocity_next, dof_kick, tree_regime
Writes  joint_q, joint_qd of the new state

Here a lane is a degree of freedom of one world: of a hinge, a slide or a D6 joint. Where eight follow each
other in all numberings, as they do in most robots, they advance together, with the bits of each by itself.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import made_once
from pluriverse.math.lanes import lane_code
from pluriverse.model import Topology

_ADVANCE = """
    typedef int I __attribute__((ext_vector_type(8)));
    typedef int IU __attribute__((ext_vector_type(8), aligned(sizeof(int))));
    typedef S SU __attribute__((ext_vector_type(8), aligned(sizeof(S))));
    typedef float F __attribute__((ext_vector_type(8)));
    typedef float FU __attribute__((ext_vector_type(8), aligned(sizeof(float))));
    const int kind = topology.world_template.data[world];
    const int first_dof = topology.template_dof.data[kind];
    const int* coords = topology.dof_coord.data + first_dof;
    const int* publics = topology.dof_public.data + first_dof;
    const S* old = data.dof_velocity.data + topology.world_dof.data[world];
    const S* next = data.dof_velocity_next.data + topology.world_dof.data[world];
    const S* kick = data.dof_kick.data + topology.world_dof.data[world];
    const float* q = joint_q.data + topology.world_coord.data[world];
    float* q_out = joint_q_out.data + topology.world_coord.data[world];
    float* qd_out = joint_qd_out.data + topology.world_dof.data[world];
    const S new_share = S(1) - old_share;
    const I along = { 0, 1, 2, 3, 4, 5, 6, 7 };
    const int first_tree = topology.template_tree.data[kind];
    const int tree_count = topology.template_tree.data[kind + 1] - first_tree;
    for (int tree = 0; tree < tree_count; ++tree) {
        const int regime = data.tree_regime.data[topology.world_tree.data[world] + tree];
        const bool drifts = regime == ONE_REGIME || regime == OTHER_REGIME;
        const S kick_share = drifts ? drift_share : S(0);
        const int end = topology.tree_dof_end.data[first_tree + tree];
        for (int dof = topology.tree_dof.data[first_tree + tree]; dof < end;) {
            const int coord = coords[dof], public_dof = publics[dof];
            if (dof + 8 <= end && coord >= 0
                && __builtin_reduce_and((*(const IU*)(coords + dof) == coord + along)
                                        & (*(const IU*)(publics + dof) == public_dof + along)) != 0) {
                const T speed_next = *(const SU*)(next + dof);
                T speed = T(old_share) * T(*(const SU*)(old + dof)) + T(new_share) * speed_next;
                speed += T(kick_share) * T(*(const SU*)(kick + dof));
                const T position = __builtin_convertvector(*(const FU*)(q + coord), T);
                *(FU*)(q_out + coord) = __builtin_convertvector(position + T(dt) * speed, F);
                *(FU*)(qd_out + public_dof) = __builtin_convertvector(speed_next, F);
                dof += 8;
                continue;
            }
            if (coord < 0) {
                dof += 3;  // three of a ball joint, or of the six of a free one
            } else {
                S speed = old_share * old[dof] + new_share * next[dof];
                speed += kick_share * kick[dof];
                q_out[coord] = (float)(S(q[coord]) + dt * speed);
                qd_out[public_dof] = (float)next[dof];
                ++dof;
            }
        }
    }
"""


@made_once
def integration_lanes(real: Any, drifting_regimes: tuple[int, int]) -> SimpleNamespace:
    """Return the function that advances the scalar joints of a world, for scalars of type `real`.

    `advance_scalars(world, topology, joint_q, data, dt, old_share, drift_share, joint_q_out, joint_qd_out)`
    has the arguments of `advance_joint` (`integration.py`). It does nothing on a GPU.

    Args:
        real: Scalar type.
        drifting_regimes: Regimes of trees in which `drift_share` counts.
    """
    data_struct = workspace_struct(real)
    text = _ADVANCE.replace("ONE_REGIME", str(int(drifting_regimes[0])))
    text = text.replace("OTHER_REGIME", str(int(drifting_regimes[1])))

    @wp.func_native(lane_code(real, text))
    def advance_scalars(
        world: int,
        topology: wp.ref[Topology],
        joint_q: wp.array[float],
        data: wp.ref[data_struct],
        dt: real,
        old_share: real,
        drift_share: real,
        joint_q_out: wp.array[float],
        joint_qd_out: wp.array[float],
    ): ...

    return SimpleNamespace(advance_scalars=advance_scalars)
