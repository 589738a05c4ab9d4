"""Momenta: mass, centre of mass, linear and angular momentum of articulations or worlds.

Reads   body_mass, body_inertia; the workspace of the kinematics stage
Writes  `Momenta`
"""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.dynamics.articulation_query import eval_query
from pluriverse.dynamics.workspace import workspace_struct
from pluriverse.launch import launch_kernel, made_once, uninterrupted
from pluriverse.math.rotations import rotation_functions
from pluriverse.math.spatial import spatial_functions
from pluriverse.model import Model, State, Topology
from pluriverse.model.arguments import check_model


@made_once
def _kernels() -> SimpleNamespace:
    data_struct = workspace_struct(wp.float64)
    angular_part = spatial_functions(wp.float64).angular_part
    linear_part = spatial_functions(wp.float64).linear_part
    sym_times_vec = spatial_functions(wp.float64).sym_times_vec
    rotate_sym = rotation_functions(wp.float64).rotate_sym

    @wp.kernel(enable_backward=False, module="pluriverse.dynamics.momenta")
    def sum_momenta(
        worlds: wp.array[int],  # [slot]
        # model
        topology: Topology,
        body_mass: wp.array[float],  # [body] kg
        body_inertia: wp.array[wp.mat33],  # [body] kg m^2, about the centre of mass, body axes
        body_group: wp.array[int],  # [body] articulation, -1 for none; empty: the world
        # workspace
        data: data_struct,
        # of each group
        mass: wp.array[wp.float64],  # [group] kg
        mass_moment: wp.array[wp.vec3d],  # [group] kg m
        com: wp.array[wp.vec3d],  # [group] m
        linear: wp.array[wp.vec3d],  # [group] kg m/s
        angular: wp.array[wp.vec3d],  # [group] kg m^2/s about com
    ):
        thread, _ = wp.tid()
        world = worlds[thread]
        if world < 0:
            return
        template = topology.world_template[world]
        first_node = topology.template_node[template]
        node_count = topology.template_node[template + 1] - first_node
        node_base = topology.world_joint[world]
        body_base = topology.world_body[world]
        tree_base = topology.world_tree[world]
        for sweep in range(3):  # clear; sum masses and linear momenta; sum angular momenta about the result
            for local_node in range(node_count):
                index = first_node + local_node
                node = node_base + local_node
                body = body_base + topology.node_body[index]
                group = world
                if body_group.shape[0] > 0:
                    group = body_group[body]
                if group < 0:
                    continue
                if sweep == 0:
                    mass[group] = wp.float64(0.0)
                    mass_moment[group] = wp.vec3d()
                    com[group] = wp.vec3d()
                    linear[group] = wp.vec3d()
                    angular[group] = wp.vec3d()
                else:
                    own_mass = wp.float64(body_mass[body])
                    position = data.tree_ref[tree_base + topology.node_tree[index]] + data.node_com[node]
                    omega = angular_part(data.node_velocity[node])
                    velocity = linear_part(data.node_velocity[node]) + wp.cross(omega, data.node_com[node])
                    if sweep == 1:
                        mass[group] = mass[group] + own_mass
                        mass_moment[group] = mass_moment[group] + own_mass * position
                        linear[group] = linear[group] + own_mass * velocity
                    elif mass[group] > wp.float64(0.0):
                        com[group] = mass_moment[group] / mass[group]
                        rotation = data.node_rotation[node]
                        inertia = rotate_sym(rotation, wp.mat33d(body_inertia[body]))
                        spin = sym_times_vec(inertia, omega)
                        orbit = wp.cross(position - com[group], own_mass * velocity)
                        angular[group] = angular[group] + spin + orbit

    return SimpleNamespace(sum_momenta=sum_momenta)


@dataclass
class Momenta:
    """Mass, centre of mass and momenta of groups of bodies, in double precision.

    Args:
        group_count: Number of groups.
        device: Device of the arrays.
    """

    group_count: int
    """Number of groups, which are articulations or worlds."""
    device: Any
    """Device of the arrays."""
    mass: wp.array[wp.float64] = field(init=False)
    """Mass [kg], shape [group]."""
    com: wp.array[wp.vec3d] = field(init=False)
    """Centre of mass [m], world axes, shape [group]; its velocity is `linear / mass`. Zero without mass."""
    linear: wp.array[wp.vec3d] = field(init=False)
    """Linear momentum [kg·m/s], world axes, shape [group]."""
    angular: wp.array[wp.vec3d] = field(init=False)
    """Angular momentum about the centre of mass [kg·m²/s], world axes, shape [group]."""
    mass_moment: wp.array[wp.vec3d] = field(init=False)
    """Mass times centre of mass [kg·m], shape [group]."""

    def __post_init__(self) -> None:
        self.mass = wp.zeros(self.group_count, dtype=wp.float64, device=self.device)
        for name in ("com", "linear", "angular", "mass_moment"):
            setattr(self, name, wp.zeros(self.group_count, dtype=wp.vec3d, device=self.device))


@uninterrupted
def eval_momenta(
    model: Model, state: State, out: Momenta | None = None, *, worlds: wp.array | None = None
) -> Momenta:
    """Return mass, centre of mass and momenta of each articulation, from the joint state.

    Args:
        model: Model of the articulations.
        state: State whose `joint_q` and `joint_qd` are read.
        out: What to write to, of as many groups as there are articulations; None for a new one. With one
            given, the call can be recorded.
        worlds: Worlds concerned, int32; all if None. Others keep their values.

    Raises:
        TypeError: If `model` is no Model.
        ValueError: If `out` has another number of groups.
    """
    check_model(model, "eval_momenta")
    query, worlds = eval_query(model, state, worlds)
    return _sum(model, model.articulation_count, query.body_articulation, query, worlds, out, "eval_momenta")


@uninterrupted
def eval_world_momenta(
    model: Model, state: State, out: Momenta | None = None, *, worlds: wp.array | None = None
) -> Momenta:
    """Return mass, centre of mass and momenta of all bodies of each world; see `eval_momenta`.

    Args:
        model: Model of the worlds.
        state: State whose `joint_q` and `joint_qd` are read.
        out: What to write to, of as many groups as there are worlds; None for a new one.
        worlds: Worlds concerned, int32; all if None. Others keep their values.

    Raises:
        TypeError: If `model` is no Model.
        ValueError: If `out` has another number of groups.
    """
    check_model(model, "eval_world_momenta")
    query, worlds = eval_query(model, state, worlds)
    no_groups = wp.empty(0, dtype=wp.int32, device=model.device)
    return _sum(model, model.world_count, no_groups, query, worlds, out, "eval_world_momenta")


def _sum(
    model: Model,
    group_count: int,
    body_group: wp.array,
    query: Any,
    worlds: wp.array,
    out: Momenta | None,
    what: str,
) -> Momenta:
    if out is None:
        out = Momenta(group_count, model.device)
    if out.group_count != group_count:
        raise ValueError(
            f"{what}: the momenta to write to have {out.group_count} groups, but {group_count} are needed."
        )
    launch_kernel(
        _kernels().sum_momenta,
        dim=worlds.size,
        inputs=[
            worlds,
            model.topology,
            model.body_mass,
            model.body_inertia,
            body_group,
            query.workspace.data,
        ],
        outputs=[out.mass, out.mass_moment, out.com, out.linear, out.angular],
        device=model.device,
    )
    return out
