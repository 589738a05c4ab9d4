"""Workspace of the dynamics: all that its stages and the solver compute about one state, for all worlds.

Spatial vectors are [angular; linear], in world axes, about one fixed reference point per tree: the world
position that the origin of the tree's root body has at the start of the step. A *node* is a joint with the
body that it moves, a *dof* is a degree of freedom of the internal numbering, a *row* the packed row of a
dof in a tree-sparse matrix (`pluriverse.model.topology`).
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.rigid_groups import RigidGroups
from pluriverse.dynamics.tree_states import make_tree_states
from pluriverse.launch import made_once
from pluriverse.math.precision import mat33_type, precision_name, quat_type, vec3_type, vec6_type
from pluriverse.math.spatial import vec10_type
from pluriverse.model import Model
from pluriverse.model.arguments import check_owner
from pluriverse.scratch import Scratch, zeros_on_demand

# Arrays by node that are read after the step: three belong to the tree states that the next step begins with,
# the fourth is needed for the forces on bodies.
_TREE_STATES = ("node_quat", "node_offset", "node_velocity")
_KEPT = (*_TREE_STATES, "node_com")


@made_once
def workspace_struct(real: Any) -> Any:
    """Return the `wp.struct` that hands the workspace to a kernel, for scalars of type `real`."""
    vec3 = vec3_type(real)
    vec6 = vec6_type(real)
    vec10 = vec10_type(real)
    mat33 = mat33_type(real)
    quat = quat_type(real)

    @wp.struct
    class DynamicsData:
        # kinematics
        tree_ref: wp.array(dtype=vec3)
        node_quat: wp.array(dtype=quat)
        node_rotation: wp.array(dtype=mat33)
        node_offset: wp.array(dtype=vec3)
        node_com: wp.array(dtype=vec3)
        group_com: wp.array(dtype=vec3)
        group_inertia: wp.array(dtype=vec6)
        node_velocity: wp.array(dtype=vec6)
        dof_motion: wp.array(dtype=vec6)
        dof_velocity: wp.array(dtype=real)
        # bias
        node_acceleration: wp.array(dtype=vec6)
        node_wrench: wp.array(dtype=vec6)
        dof_force: wp.array(dtype=real)
        dof_product: wp.array(dtype=real)
        node_load: wp.array(dtype=vec6)
        tree_energy: wp.array(dtype=real)
        # mass matrix and its factors
        node_composite: wp.array(dtype=vec10)
        mass_row: wp.array(dtype=real)
        factor_row: wp.array(dtype=real)
        # free motion and the solver's result
        dof_velocity_free: wp.array(dtype=real)
        dof_velocity_next: wp.array(dtype=real)
        # balance of trees
        dof_kick: wp.array(dtype=real)
        dof_response: wp.array(dtype=real)
        tree_regime: wp.array(dtype=int)
        next_composite: wp.array(dtype=vec10)
        next_momentum: wp.array(dtype=vec6)
        next_energy: wp.array(dtype=real)
        # bodies that spin
        tree_spin: wp.array(dtype=vec3)
        # kinematic roots
        tree_prescribed: wp.array(dtype=int)
        tree_drift: wp.array(dtype=vec6)

    return DynamicsData


class Workspace:
    """What the dynamics stages write and read between them; made once per solver, never resized.

    Most of it is scratch of a solver step: in a `Simulation` of many worlds, those that a thread steps after
    each other use the same places (`pluriverse.scratch`).

    Args:
        model: Model that the stages will be applied to.
        real: `wp.float32` or `wp.float64`, the precision of all stages.

    Raises:
        ValueError: If `real` is another type.
    """

    real: Any
    """Scalar type of the arrays below."""
    data: Any
    """The same arrays as one `wp.struct` (`workspace_struct(real)`), to pass to a kernel."""

    tree_states: Any
    """Poses and velocities of the last joint state that the stages were applied to (`tree_states.py`). Its
    `node_quat`, `node_offset` and `node_velocity` are those below."""
    groups: RigidGroups
    """The rigid groups of the model. Arrays of carriers (`rigid_groups.py`) below hold nothing for the nodes
    of bodies welded to others."""

    tree_ref: wp.array
    """World position of the tree's root body origin at the start of the step [m], shape [tree]."""
    node_quat: wp.array
    """Orientation of the body (body to world, xyzw), shape [node]; of carriers.
    `integrate` overwrites it."""
    node_rotation: wp.array
    """Orientation of the body as a matrix (body to world), shape [node]."""
    node_offset: wp.array
    """Body origin relative to `tree_ref` [m], world axes, shape [node]. `integrate` overwrites it."""
    node_com: wp.array
    """Centre of mass relative to `tree_ref` [m], world axes, shape [node]."""
    group_com: wp.array
    """Centre of mass of the rigid group relative to `tree_ref` [m], world axes, shape [node]; of carriers."""
    group_inertia: wp.array
    """Inertia of the rigid group about its centre of mass [kg·m²], world axes, as (xx, xy, xz, yy, yz, zz),
    shape [node]; of carriers."""
    node_velocity: wp.array
    """Spatial velocity of the body about `tree_ref` [rad/s; m/s], shape [node]; of carriers, and of others
    where worlds are not in lanes. `integrate` overwrites it."""
    dof_motion: wp.array
    """Motion subspace column: spatial velocity per unit of the dof's velocity, shape [dof]."""
    dof_velocity: wp.array
    """Velocity at the start of the step [rad/s or m/s], shape [dof]."""

    node_acceleration: wp.array
    """Velocity-product acceleration [rad/s²; m/s²], shape [node];
    of carriers."""
    node_wrench: wp.array
    """Wrench through the joint due to velocity products [N·m; N], shape [node];
    of carriers."""
    node_load: wp.array
    """Wrench of `body_f` on the body and all that it carries [N·m; N], shape [node]; only written in worlds
    where any is set."""
    dof_force: wp.array
    """Force: applied + gravity - velocity products - damping * velocity [N·m or N], shape [dof]."""

    dof_product: wp.array
    """Velocity-product force c, which `dof_force` has taken off [N·m or N], shape [dof]. `integrate`
    overwrites it."""
    tree_energy: wp.array
    """Kinetic energy of the bodies at the start of the step [J], shape [tree]."""

    node_composite: wp.array
    """Spatial inertia of the body and all bodies it carries (m, m * com, inertia), shape [node];
    of carriers."""
    mass_row: wp.array
    """A = mass matrix + armature + dt * damping, packed rows, shape [row entry]."""
    factor_row: wp.array
    """L and D of A = L^T D L, packed rows with 1 / D on the diagonal, shape [row entry]."""

    dof_velocity_free: wp.array
    """Velocity at the end of the step without any constraint [rad/s or m/s], shape [dof]."""
    dof_velocity_next: wp.array
    """Velocity at the end of the step, from the solver to `integrate` [rad/s or m/s], shape [dof]."""

    dof_kick: wp.array
    """Velocity that velocity products take away in the step (`balance.py`) [rad/s or m/s], shape [dof].
    `integrate` overwrites it."""
    dof_response: wp.array
    """Velocity that constraints add in the step [rad/s or m/s], shape [dof]."""
    tree_regime: wp.array
    """How velocity products count in the step, a constant of `balance.py`, shape [tree]."""
    next_composite: wp.array
    """Spatial inertia of the tree about its root body's origin, at the end of the step (`tree_sums.py`),
    shape [tree]. It and the two below are written for trees that are to be balanced."""
    next_momentum: wp.array
    """Momentum of the tree about the same point [N·m·s; N·s], shape [tree]."""
    next_energy: wp.array
    """Kinetic energy of the tree with armature [J], shape [tree]."""
    world_due: wp.array
    """1 where `balance.py` changes the joint state that the step has reached, shape [world]."""

    tree_spin: wp.array
    """Gyroscopic impulse of trees that spin (`spin.py`) [N·m·s], in the axes of the
    rotational velocity, shape [tree]."""

    tree_prescribed: wp.array
    """1 where the root of the tree is kinematic and its motion prescribed, shape [tree]. `dof_motion` of
    its degrees of freedom is zero then, from the free-motion stage on."""
    tree_drift: wp.array
    """Spatial velocity that a kinematic root gives all bodies of its tree [rad/s; m/s], shape [tree]."""

    no_selection: wp.array
    """The empty selection of joints or worlds, which stands for all of them."""
    no_poses: wp.array
    no_velocities: wp.array
    """Empty `body_q` and `body_qd`, where no bodies are to be written."""

    def __init__(self, model: Model, real: Any):
        precision_name(real)  # raises for other types
        self.real = real
        self._model = model
        self.data = workspace_struct(real)()
        self.groups = RigidGroups(model, real)
        self.tree_states = make_tree_states(model, real)
        vec3, vec6, vec10 = vec3_type(real), vec6_type(real), vec10_type(real)
        mat33 = mat33_type(real)
        node, dof, row = model.joint_count, model.joint_dof_count, model.world_row_count
        shapes = {
            "tree_ref": (model.tree_count, vec3),
            "node_rotation": (node, mat33),
            "node_com": (node, vec3),
            "group_com": (node, vec3),
            "group_inertia": (node, vec6),
            "dof_motion": (dof, vec6),
            "dof_velocity": (dof, real),
            "node_acceleration": (node, vec6),
            "node_wrench": (node, vec6),
            "dof_force": (dof, real),
            "dof_product": (dof, real),
            "node_load": (node, vec6),
            "tree_energy": (model.tree_count, real),
            "node_composite": (node, vec10),
            "mass_row": (row, real),
            "factor_row": (row, real),
            "dof_velocity_free": (dof, real),
            "dof_velocity_next": (dof, real),
            "dof_kick": (dof, real),
            "dof_response": (dof, real),
            "tree_regime": (model.tree_count, int),
            "next_composite": (model.tree_count, vec10),
            "next_momentum": (model.tree_count, vec6),
            "next_energy": (model.tree_count, real),
            "tree_spin": (model.tree_count, vec3),
            "tree_prescribed": (model.tree_count, int),
            "tree_drift": (model.tree_count, vec6),
        }
        for name, (size, dtype) in shapes.items():
            array = zeros_on_demand(size, dtype, model.device)
            setattr(self, name, array)
            setattr(self.data, name, array)
        for name in _TREE_STATES:
            array = getattr(self.tree_states, name)
            setattr(self, name, array)
            setattr(self.data, name, array)
        self.no_poses = wp.empty(0, dtype=wp.transform, device=model.device)
        self.no_velocities = wp.empty(0, dtype=wp.spatial_vector, device=model.device)
        self.no_selection = wp.empty(0, dtype=int, device=model.device)
        self.world_due = wp.zeros(model.world_count, dtype=int, device=model.device)

    def scratch(self) -> list[Scratch]:
        """Return the arrays that steps leave nothing in."""
        ranges = scratch_ranges(self._model)
        axes = {"node": "node", "group": "node", "dof": "dof", "mass": "row", "factor": "row"}
        return [
            Scratch(getattr(self, name), *ranges[axes[name.partition("_")[0]]])
            for name in self.data._cls.vars
            if name.partition("_")[0] in axes and name not in _KEPT
        ]


def scratch_ranges(model: Model) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return the first entry of each world and the number of its entries, shape [world], by axis."""
    topology = model.topology
    starts = {
        "node": topology.world_joint,
        "dof": topology.world_dof,
        "row": topology.world_row,
        "shape": topology.world_shape,
    }
    counts = {"node": "node_count", "dof": "dof_count", "row": "row_size", "shape": "shape_count"}
    return {
        axis: (
            starts[axis].numpy().astype(np.int64),
            np.array([getattr(template, counts[axis]) for template in model.templates])[model.world_template],
        )
        for axis in starts
    }


def check_workspace(model: Model, workspace: Workspace, what: str) -> None:
    """Raise if an object is not a workspace of a model.

    Raises:
        TypeError: If it is not a workspace.
        ValueError: If it was made for a model of another structure.
    """
    if not isinstance(workspace, Workspace):
        raise TypeError(
            f"{what}: workspace is a {type(workspace).__name__}, but must be a Workspace. Make one with "
            "Workspace(model, wp.float64)."
        )
    check_owner(model, workspace, f"{what}: workspace", "Make one with Workspace(model, wp.float64).")
