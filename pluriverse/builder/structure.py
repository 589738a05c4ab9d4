"""Structure: find the worlds of equal structure, sort their trees and pair their shapes, once per kind."""

import numpy as np

from pluriverse.builder.snapshot import Snapshot
from pluriverse.model.collision_pairs import CollisionShapes, find_pairs
from pluriverse.model.templates import find_equal_worlds
from pluriverse.model.topology import Template
from pluriverse.types import GeoType, JointType, ShapeFlags


def build_templates(
    source: Snapshot, equality: tuple[np.ndarray, np.ndarray]
) -> tuple[list[Template], np.ndarray]:
    """Return the kinds of worlds, and the kind of each world (shape [world]).

    Args:
        source: Columns of the builder.
        equality: Structure of the equality constraints (`EqualityColumns.structure`).

    Raises:
        ValueError: If joints form a cycle.
    """
    local = _LocalStructure(source, equality)
    world_template = find_equal_worlds(local.tables())
    templates = []
    for index in range(int(world_template.max(initial=-1)) + 1):
        worlds = np.flatnonzero(world_template == index)
        templates.append(local.template(worlds))
    return templates, world_template


class _LocalStructure:
    """The structure of all worlds in world-local indices."""

    def __init__(self, source: Snapshot, equality: tuple[np.ndarray, np.ndarray]):
        self.source = source
        self.equality = equality
        body, shape = source.ranges["body"].bounds, source.ranges["shape"].bounds
        joint_body = _first_of(source.ranges["joint"].bounds, body)
        shape_body = _first_of(shape, body)
        joints, shapes = _inside(source.ranges["joint"].bounds), _inside(shape)
        parent, carrier = source.joint_parent[joints], source.shape_body[shapes]
        self.joint = np.column_stack(
            [
                source.joint_type[joints],
                np.where(parent >= 0, parent - joint_body, -1),
                source.joint_child[joints] - joint_body,
                source.joint_collision_filter_parent[joints],
                *source.joint_dof_dim[joints].T,
            ]
        ).astype(np.int64)
        flags = source.shape_flags[shapes] & int(
            ShapeFlags.COLLIDE_SHAPES | ShapeFlags.SITE | ShapeFlags.HYDROELASTIC
        )
        self.shape = np.column_stack(
            [
                source.shape_type[shapes],
                np.where(carrier >= 0, carrier - shape_body, -1),
                flags,
                source.shape_collision_group[shapes],
                source.shape_collision_filter_parent[shapes],
                source.shape_source_index[shapes],
            ]
        ).astype(np.int64)
        self.first_joint, self.first_shape = joints.start, shapes.start
        self.filter, self.filter_start = self._local_filters()
        # Without authored worlds, the entities listed as global form the single world.
        self.global_shapes = np.flatnonzero((source.shape_world < 0) & (source.authored_world_count > 0))

    def tables(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the tables that define the structure, for `find_equal_worlds`."""
        source = self.source
        no_columns = np.zeros((len(source.body_mass) + 1, 0), dtype=np.int64)
        return [
            (self.joint, source.ranges["joint"].bounds - self.first_joint),
            (self.shape, source.ranges["shape"].bounds - self.first_shape),
            (no_columns, source.ranges["body"].bounds),
            (self.filter, self.filter_start),
            self.equality,
        ]

    def template(self, worlds: np.ndarray) -> Template:
        """Return the template of worlds of equal structure."""
        source, builder, world = self.source, self.source.builder, int(worlds[0])
        bounds = {name: ranges.bounds[world : world + 2] for name, ranges in source.ranges.items()}
        joint = self.joint[slice(*(bounds["joint"] - self.first_joint))]
        shape = self.shape[slice(*(bounds["shape"] - self.first_shape))]
        template = Template(
            joint_type=joint[:, 0],
            joint_parent=joint[:, 1],
            joint_child=joint[:, 2],
            joint_dof_dim=joint[:, 4:],
            body_count=int(np.diff(bounds["body"])[0]),
            shape_count=len(shape),
            worlds=worlds,
        )
        cyclic = template.sort()
        if len(cyclic):
            names = ", ".join(builder.joint_name(int(bounds["joint"][0] + index)) for index in cyclic)
            raise ValueError(
                f"the joints {names} form a cycle that is not connected to the world. Connect one of their "
                "bodies to the world, for example by add_joint_free() instead of the joint that "
                "closes the cycle."
            )
        moving_plane = (shape[:, 0] == GeoType.PLANE) & (shape[:, 1] >= 0) & _collides(shape[:, 2])
        moving_plane[moving_plane] = ~template.body_static[shape[moving_plane, 1]]
        if moving_plane.any():
            index = int(bounds["shape"][0] + np.argmax(moving_plane))
            carrier = builder.body_name(int(source.shape_body[index]))
            raise ValueError(
                f"{builder.shape_name(index)} is a plane on {carrier}, which can move, but planes "
                "collide only where they stand still. Attach it to the world (body=-1), or use a box."
            )
        filters = self.filter[self.filter_start[world] : self.filter_start[world + 1]]
        rows, row_start = self.equality
        world_rows = rows[row_start[world] : row_start[world + 1]]
        template.equality, template.equality_axis = world_rows[:, :5], world_rows[:, 5:]
        template.pair_shape0, template.pair_shape1 = self._pairs(template, joint, shape, filters)
        return template

    def _pairs(
        self, template: Template, joint: np.ndarray, shape: np.ndarray, filters: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        source, shared = self.source, self.global_shapes
        carrier = np.concatenate([np.full(len(shared), -1), shape[:, 1]])
        flags = np.concatenate([source.shape_flags[shared], shape[:, 2]])
        on_body = carrier >= 0
        weld, static = np.full(len(carrier), -1), np.ones(len(carrier), dtype=bool)
        weld[on_body] = template.body_weld[carrier[on_body]]
        static[on_body] = template.body_static[carrier[on_body]]
        columns = CollisionShapes(
            code=np.concatenate([-1 - shared, np.arange(len(shape))]),
            type=np.concatenate([source.shape_type[shared], shape[:, 0]]),
            group=np.concatenate([source.shape_collision_group[shared], shape[:, 3]]),
            weld=weld,
            static=static,
            filter_parent=np.concatenate([source.shape_collision_filter_parent[shared], shape[:, 4] != 0]),
        )
        for name, values in vars(columns).items():
            setattr(columns, name, values[_collides(flags)])
        neighbours = (joint[:, 1] >= 0) & (joint[:, 3] != 0) & (joint[:, 0] != JointType.FIXED)
        joint_welds = template.body_weld[joint[neighbours][:, 1:3]]
        return find_pairs(columns, joint_welds, filters)

    def _local_filters(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the filtered pairs in codes of `CollisionShapes`, sorted, and the first pair of each world.

        Pairs of two global shapes are omitted: these never move, so they are never candidates.
        """
        source = self.source
        pairs = source.filters.astype(np.int64)
        if source.authored_world_count:
            world = source.shape_world[pairs]
            own = world.max(axis=1, initial=-1)
            pairs, world, own = pairs[own >= 0], world[own >= 0], own[own >= 0]
            first = source.ranges["shape"].bounds[own][:, None]
            codes = np.where(world >= 0, pairs - first, -1 - pairs)
        else:
            codes, own = pairs, np.zeros(len(pairs), dtype=np.int64)
        codes = np.sort(codes, axis=1)
        order = np.lexsort((codes[:, 1], codes[:, 0], own))
        counts = np.bincount(own, minlength=source.world_count)
        return codes[order], np.concatenate([[0], np.cumsum(counts)])


def _collides(flags: np.ndarray) -> np.ndarray:
    """Return whether shapes with these flags collide with shapes."""
    return (flags & ShapeFlags.COLLIDE_SHAPES != 0) & (flags & ShapeFlags.SITE == 0)


def _inside(bounds: np.ndarray) -> slice:
    """Return the range of the entities of all worlds, without the global ones."""
    return slice(int(bounds[0]), int(bounds[-1]))


def _first_of(entity_bounds: np.ndarray, other_bounds: np.ndarray) -> np.ndarray:
    """Return, for each entity, the first entity of another kind in its world."""
    return np.repeat(other_bounds[:-1], np.diff(entity_bounds))
