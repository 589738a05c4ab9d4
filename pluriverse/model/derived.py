"""Derived quantities of a model: computed on request, so that no array must be kept in step with another."""

import numpy as np
import warp as wp

from pluriverse.model.contents import ModelContents
from pluriverse.types import EqType


class DerivedArrays(ModelContents):
    """Quantities of a model that are computed on request. All results are copies.

    Steps do not use them: they serve tools, and scripts written for Newton.
    """

    @property
    def articulation_end(self) -> wp.array:
        """End of the entries of each articulation in `articulation_joint`, shape [articulation]."""
        return wp.array(self.articulation_start.numpy()[1:], dtype=wp.int32, device=self.device)

    @property
    def max_joints_per_articulation(self) -> int:
        """Number of joints of the largest articulation."""
        return int(np.diff(self.articulation_start.numpy()).max(initial=0))

    @property
    def max_dofs_per_articulation(self) -> int:
        """Number of degrees of freedom of the articulation with the most."""
        dof_count = np.diff(self.joint_qd_start.numpy())
        owner = self.joint_articulation.numpy()
        inside = owner >= 0
        return int(np.bincount(owner[inside], weights=dof_count[inside]).max(initial=0))

    @property
    def joint_ancestor(self) -> wp.array:
        """Joint that moves the parent body of each joint, -1 for none, shape [joint]."""
        mover = np.full(self.body_count + 1, -1, dtype=np.int32)  # the last entry is that of the world, -1
        mover[self.joint_child.numpy()] = np.arange(len(self.joint_child), dtype=np.int32)
        return wp.array(mover[self.joint_parent.numpy()], dtype=wp.int32, device=self.device)

    @property
    def body_inv_mass(self) -> wp.array:
        """1 / mass [1/kg], 0 for bodies without one, shape [body]."""
        mass = self.body_mass.numpy()
        inverse = np.divide(1.0, mass, out=np.zeros_like(mass), where=mass > 0.0)
        return wp.array(inverse, dtype=wp.float32, device=self.device)

    @property
    def body_inv_inertia(self) -> wp.array:
        """Inverse of `body_inertia` [1/(kg·m²)], zero for bodies whose inertia is singular, shape [body]."""
        inertia = self.body_inertia.numpy().astype(np.float64)
        regular = np.linalg.det(inertia) > 0.0
        inverse = np.zeros_like(inertia)
        inverse[regular] = np.linalg.inv(inertia[regular])
        return wp.array(inverse.astype(np.float32), dtype=wp.mat33, device=self.device)

    @property
    def body_split_from(self) -> wp.array:
        """Body that each part of a split body belongs to; any other body itself; shape [body]."""
        split_from = np.arange(self.body_count, dtype=np.int32)
        kind, joint = self.equality_constraint_type.numpy(), self.equality_constraint_joint1.numpy()
        welds = np.flatnonzero((kind == EqType.WELD) & (joint >= 0))
        split_from[self.equality_constraint_body2.numpy()[welds]] = self.equality_constraint_body1.numpy()[
            welds
        ]
        return wp.array(split_from, dtype=wp.int32, device=self.device)

    @property
    def body_shapes(self) -> dict[int, list[int]]:
        """Shapes that each body carries, in ascending order; those of the world under -1."""
        shapes: dict[int, list[int]] = {body: [] for body in range(-1, self.body_count)}
        for shape, body in enumerate(self.shape_body.numpy().tolist()):
            shapes[body].append(shape)
        return shapes

    @property
    def shape_contact_pair_count(self) -> int:
        """Number of pairs of shapes that may touch, in all worlds together."""
        return sum(len(template.worlds) * len(template.pair_shape0) for template in self.templates)

    @property
    def shape_contact_pairs(self) -> wp.array:
        """Pairs of shapes that may touch, by world, the lower index first, type `wp.vec2i`, shape [pair].

        The model itself stores them once per template; this list is large for many worlds.
        """
        first_shape = self.topology.world_shape.numpy()
        pairs = [np.zeros((0, 2), dtype=np.int64)]
        for template_index in self.world_template if self.shape_contact_pair_count else ():
            template = self.templates[template_index]
            world = len(pairs) - 1
            local = np.stack([template.pair_shape0, template.pair_shape1], axis=1).astype(np.int64)
            pairs.append(np.sort(np.where(local >= 0, local + first_shape[world], -1 - local), axis=1))
        flat = np.concatenate(pairs).astype(np.int32)
        return wp.array(flat, dtype=wp.vec2i, device=self.device)
