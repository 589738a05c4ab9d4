"""Assembly: the model of a sim. Envs whose actors may collide share a world; all others have their own.

A world uses the frame of its first env, so that results do not depend on the position of an env in the grid.
Worlds of equal content are copies of one builder.
"""

import warnings
from typing import Any

import numpy as np

from pluriverse.builder.equality_copies import move_constraints
from pluriverse.geometry import Mesh
from pluriverse.gymapi.asset_files import CONTACT_DISSIPATION_TIME, CONTACT_STIFFNESS
from pluriverse.gymapi.collision_codes import GROUND_GROUP, collision_codes, find_shared_envs
from pluriverse.gymapi.contact_options import is_mujoco, let_shapes_turn
from pluriverse.gymapi.drives import drive_rows
from pluriverse.gymapi.env_cells import are_apart
from pluriverse.gymapi.errors import GymError, GymWarning
from pluriverse.gymapi.scene import Actor, Ground, Sim
from pluriverse.gymapi.shape_properties import offset_rows, resolved_offsets, shape_offsets
from pluriverse.gymapi.store import start_key
from pluriverse.gymapi.terrain import add_heightfield_shape
from pluriverse.model import Model, poses
from pluriverse.model_builder import ModelBuilder

# Number of envs in one world from which on a warning is due: pairs of shapes grow with its square.
SHARED_ENVS_MANY = 64


def make_model(sim: Sim, solver_dt: float, call: str) -> Model:
    """Return the model of a sim, and record the indices of its actors and envs.

    Envs may be empty: cameras see their grounds.

    Raises:
        GymError: If there is no env.
        ValueError: If the description is not a valid model.
    """
    if not sim.envs:
        raise GymError(f"{call}: the sim has no env. Call create_env() first.")
    worlds = _worlds(sim)
    builder = ModelBuilder()
    builder.gravity = np.array(list(sim.params.gravity))
    _set_drives(sim, solver_dt)
    first = dict.fromkeys(("body", "joint", "coord", "dof", "shape", "articulation", "equality"), 0)
    runs: list[tuple[Any, ModelBuilder, int]] = []
    builders: dict[Any, ModelBuilder] = {}
    for world, envs in enumerate(worlds):
        members = [sim.envs[env] for env in envs]
        actors = [actor for env in members for actor in env.actors]
        for env in members:
            env.world = world
            env.offset = env.origin - members[0].origin
        key = _recipe(actors)
        if key not in builders:
            builders[key] = _world_builder(sim, actors)
        one = builders[key]
        if runs and runs[-1][0] == key:
            runs[-1] = (key, one, runs[-1][2] + 1)
        else:
            runs.append((key, one, 1))
        _number(actors, first, one)
    for _, one, count in runs:
        builder.replicate(one, count)
    _write_rows(sim, builder)
    if is_mujoco(sim.params):
        let_shapes_turn(builder)
    place_grounds(sim, worlds, builder)
    model = builder.finalize(sim.device)
    _shift_bodies(sim, builder, model)
    return model


def _worlds(sim: Sim) -> list[list[int]]:
    """Return the envs of each world."""
    if sim.params.isolate_envs:
        return [[env] for env in range(len(sim.envs))]
    worlds = find_shared_envs(
        [[actor.group for actor in env.actors] for env in sim.envs],
        [[_bit_patterns(actor) for actor in env.actors] for env in sim.envs],
    )
    largest = max(worlds, key=len)
    if len(largest) >= SHARED_ENVS_MANY:
        if sim.params.isolate_envs is None and are_apart(sim):
            sim.are_envs_apart = True
            return [[env] for env in range(len(sim.envs))]
        shared = next(
            (actor for env in largest for actor in sim.envs[env].actors if actor.group < 0),
            sim.envs[largest[0]].actors[0],
        )
        warnings.warn(
            f"prepare_sim: {len(largest)} envs share one world, because their actors may collide ({shared} "
            f"has the collision group {shared.group}), which is slow. Pass the index of the env as `group` "
            "to create_actor(), give create_env() cells that its actors are in, or set "
            "sim_params.isolate_envs = True.",
            GymWarning,
            stacklevel=4,
        )
    return worlds


def _bit_patterns(actor: Actor) -> frozenset[int]:
    """Return the different filter bits of the shapes of an actor."""
    if actor.shape_filter is None:
        return frozenset([max(actor.filter, 0)] if actor.asset.shape_count else [])
    return frozenset(np.unique(actor.shape_filter).tolist())


def _recipe(actors: list[Actor]) -> Any:
    """Return the key of the structure of a world."""
    groups: dict[int, int] = {}
    return tuple(
        (
            id(actor.asset),
            -1 if actor.group < 0 else groups.setdefault(actor.group, len(groups)),
            actor.filter,
            None if actor.shape_filter is None else tuple(actor.shape_filter.tolist()),
        )
        for actor in actors
    )


def _world_builder(sim: Sim, actors: list[Actor]) -> ModelBuilder:
    """Return the builder of one world."""
    builder = ModelBuilder()
    owners, filtered = [], []
    for number, actor in enumerate(actors):
        asset, first_shape = actor.asset, builder.shape_count
        builder.add_builder(asset.builder)
        offsets = resolved_offsets(asset.first_offsets, sim.params.physx)
        for name, rows in offset_rows(offsets).items():
            getattr(builder, name)[first_shape:] = rows
        owners.append(np.full(asset.shape_count, number))
        if actor.filter == -1:
            filtered += (asset.shape_filter + first_shape).tolist()
    group = np.array([actor.group for actor in actors])
    owner = np.concatenate(owners) if owners else np.zeros(0, dtype=np.int64)
    bits = np.concatenate([actor.filter_bits() for actor in actors]) if actors else np.zeros(0, dtype=int)
    codes, pairs = collision_codes(owner, group[owner] if len(owner) else group, bits, filtered)
    builder.shape_collision_group = codes
    for a, b in np.unique(pairs, axis=0).tolist():
        builder.add_shape_collision_filter_pair(a, b)
    for ground in sim.grounds:
        add_ground_shape(sim, builder, ground)
    return builder


def add_ground_shape(sim: Sim, builder: ModelBuilder, ground: Ground) -> None:
    """Add a ground to a world, at its pose in the sim."""
    config = builder.default_shape_cfg.copy()
    config.ke, config.tau = CONTACT_STIFFNESS, CONTACT_DISSIPATION_TIME
    config.mu, config.restitution = ground.friction, ground.restitution
    config.mu_torsional = config.mu_rolling = 0.0
    physx = sim.params.physx
    config.margin, config.gap = physx.rest_offset, max(physx.contact_offset - physx.rest_offset, 0.0)
    config.collision_group = GROUND_GROUP
    if ground.kind == "plane":
        builder.add_shape_plane(xform=ground.pose, width=0.0, length=0.0, cfg=config, label="ground")
    elif ground.kind == "mesh":
        if ground.mesh is None:
            ground.mesh = Mesh(
                ground.vertices, ground.triangles, compute_inertia=False, is_solid=False, name="terrain"
            )
        builder.add_shape_mesh(-1, xform=ground.pose, mesh=ground.mesh, cfg=config, label="terrain")
    else:
        add_heightfield_shape(sim, builder, ground, config)


def _number(actors: list[Actor], first: dict[str, int], world: ModelBuilder) -> None:
    """Record the first indices of the components of actors in the model, and of the next world."""
    at = dict(first)
    for actor in actors:
        actor.starts = dict(at)
        builder = actor.asset.builder
        at["body"] += builder.body_count
        at["joint"] += builder.joint_count
        at["coord"] += builder.joint_coord_count
        at["dof"] += builder.joint_dof_count
        at["shape"] += builder.shape_count
        at["articulation"] += 1
        at["equality"] += builder.equality_constraint_count
    at["shape"] = first["shape"] + world.shape_count
    first.update(at)


def _shift_bodies(sim: Sim, builder: ModelBuilder, model: Model) -> None:
    """Record the indices of bodies after the parts that `finalize` cut from bodies of earlier worlds."""
    counts = np.bincount(builder.body_world, minlength=model.world_count)
    shift = model.body_world_start.numpy()[: model.world_count] - (np.cumsum(counts) - counts)
    for actor in sim.actors:
        actor.starts["body"] += int(shift[actor.env.world])


def _set_drives(sim: Sim, solver_dt: float) -> None:
    """Set the rows of actors with stiff ball joints for the time step of the solver."""
    for actor in sim.actors:
        properties, asset = actor.dof_properties, actor.asset
        if (properties["stiffness"][asset.dof_ball_axis >= 0] > 0.0).any():
            rows = np.array(
                actor.rows.get("joint_target_kd", asset.builder.joint_target_kd), dtype=np.float32
            )
            rows[asset.dof_index] = drive_rows(properties, asset.dof_ball_axis, solver_dt)["joint_target_kd"]
            actor.rows["joint_target_kd"] = rows


def _write_rows(sim: Sim, builder: ModelBuilder) -> None:
    """Write the rows of actors into the columns of the builder."""
    columns: dict[str, np.ndarray] = {}
    for actor in sim.actors:
        if actor.env.offset.any():
            _shift_root(actor)
        if actor.shape_offsets is not actor.asset.first_offsets:
            actor.rows.update(offset_rows(shape_offsets(actor.asset, actor)))
        for name, rows in actor.rows.items():
            column = columns.get(name)
            if column is None:
                column = columns[name] = getattr(builder, name)
            start = actor.starts[start_key(name)]
            column[start : start + len(rows)] = rows
        _place_loops(actor, builder)
        world = actor.starts["articulation"]
        builder.articulation_label[world] = actor.name
        actor.rows = {}


def _place_loops(actor: Actor, builder: ModelBuilder) -> None:
    """Move loop joints between an asset and the world to the pose of the actor."""
    asset = actor.asset
    own = asset.builder
    loose = np.flatnonzero((own.joint_parent < 0) & (own.joint_articulation < 0))
    if len(loose) == 0 and own.equality_constraint_count == 0:
        return
    root = asset.root_joint
    name, entries = "joint_X_p", slice(root, root + 1)
    if asset.is_free:
        coord = int(own.joint_q_start[root])
        name, entries = "joint_q", slice(coord, coord + 7)
    rows = actor.rows[name][entries].astype(np.float64)
    offset = poses.compose(rows.reshape(1, 7), poses.inverse(getattr(own, name)[entries].reshape(1, 7)))
    first = actor.starts["equality"]
    move_constraints(builder, own, slice(first, first + own.equality_constraint_count), offset)
    joints = actor.starts["joint"] + loose
    builder.joint_X_p[joints] = poses.compose(offset, own.joint_X_p[loose])


def _shift_root(actor: Actor) -> None:
    """Set the pose of the root in the world of its env."""
    asset = actor.asset
    offset = actor.env.offset.astype(np.float32)
    if asset.is_free:
        coord = int(asset.builder.joint_q_start[asset.root_joint])
        actor.rows["joint_q"][coord : coord + 3] += offset
    else:
        actor.rows["joint_X_p"][asset.root_joint, :3] += offset


def place_grounds(sim: Sim, worlds: list[list[int]], builder: ModelBuilder) -> None:
    """Set the poses of the grounds of each world relative to its first env."""
    if not sim.grounds:
        return
    count = len(sim.grounds)
    origins = np.array([sim.envs[envs[0]].origin for envs in worlds])
    ends = np.searchsorted(builder.shape_world, np.arange(len(worlds)), side="right")
    transforms = builder.shape_transform
    for number, ground in enumerate(sim.grounds):
        rows = transforms[ends - count + number]
        if ground.kind == "plane":
            # Only the distance matters: worlds over a level plane stay bit for bit alike.
            normal = _plane_normal(ground.pose)
            rows[:, :3] -= (origins @ normal)[:, None] * normal
        else:
            rows[:, :3] -= origins
        transforms[ends - count + number] = rows


def _plane_normal(pose: np.ndarray) -> np.ndarray:
    """Return the normal of a plane, local z."""
    x, y, z, w = pose[3:]
    normal = np.array([2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)])
    normal[np.abs(normal) < 1.0e-9] = 0.0  # rounding of the quaternion
    return normal / np.linalg.norm(normal)
