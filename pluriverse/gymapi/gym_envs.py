"""Env calls: envs on a grid, actors in them, aggregates of actors."""

from typing import Any

import numpy as np

from pluriverse.gymapi.arguments import as_int, as_list, transform, vector
from pluriverse.gymapi.asset import Asset
from pluriverse.gymapi.checks import INVALID_HANDLE, Checks
from pluriverse.gymapi.enums import UpAxis
from pluriverse.gymapi.errors import GymError, require
from pluriverse.gymapi.scene import Actor, Aggregate, Env, pose_row
from pluriverse.gymapi.values import Transform, Vec3


class EnvCalls(Checks):
    """Envs and actors: create, find, count."""

    def create_env(self, sim: Any, lower: Vec3, upper: Vec3, num_per_row: int) -> Env:
        """Return a new env; the one before takes no further actors.

        Envs fill a grid, `num_per_row` to a row along x; rows advance along the other horizontal axis. The
        first stands at the origin. `lower` and `upper` only set the distance of neighbours.
        """
        call = "create_env"
        found = self._open_sim(sim, call)
        require(
            as_int(num_per_row, "num_per_row", call) >= 1,
            call,
            f"num_per_row is {num_per_row!r}, but must be at least 1.",
        )
        if found.envs and found.envs[-1].aggregate is not None:
            raise GymError(
                f"{call}: an aggregate of env {found.envs[-1].index} is still open. Call "
                f"end_aggregate() first."
            )
        low, high = (
            np.array(list(vector(value, what, call)), dtype=np.float64)
            for value, what in ((lower, "lower"), (upper, "upper"))
        )
        pitch = high - low
        row, column = divmod(len(found.envs), int(num_per_row))
        second = 2 if int(found.params.up_axis) == UpAxis.UP_AXIS_Y else 1
        origin = np.zeros(3)
        origin[0] = column * pitch[0]
        origin[second] += row * pitch[second]
        env = Env(found, origin, low, high)
        found.envs.append(env)
        return env

    def destroy_env(self, env: Any) -> None:
        """Take an env out of use. Its actors stay in the sim, so that no index changes."""
        self._env(env, "destroy_env").is_destroyed = True

    def get_env(self, sim: Any, index: int) -> Env | None:
        """Return an env, None if there is none of that index."""
        envs = self._sim(sim, "get_env").envs
        number = as_int(index, "index", "get_env")
        return envs[number] if 0 <= number < len(envs) else None

    def get_env_origin(self, env: Any) -> Vec3:
        """Return the origin of an env in the sim [m]."""
        return Vec3(*self._env(env, "get_env_origin").origin.tolist())

    def get_actor_count(self, env: Any) -> int:
        """Return the number of actors of an env."""
        return len(self._env(env, "get_actor_count").actors)

    def get_env_rigid_body_count(self, env: Any) -> int:
        """Return the number of bodies of an env."""
        return self._env(env, "get_env_rigid_body_count").body_count

    def get_env_joint_count(self, env: Any) -> int:
        """Return the number of joints of an env."""
        return self._env(env, "get_env_joint_count").joint_count

    def get_env_dof_count(self, env: Any) -> int:
        """Return the number of degrees of freedom of an env."""
        return self._env(env, "get_env_dof_count").dof_count

    def create_actor(
        self,
        env: Any,
        asset: Any,
        pose: Transform,
        name: str | None = None,
        group: int = -1,
        filter: int = -1,
        segmentationId: int = 0,
    ) -> int:
        """Add an instance of an asset to an env and return its handle.

        Args:
            env: The last env that was created.
            asset: Asset of the same sim.
            pose: Pose of the root body in the env.
            name: Name; need not be unique.
            group: Collision group: actors meet those of the same group, and -1 meets all. Envs whose actors
                may meet share a world, which is slower than one for each.
            filter: Bits: shapes that share one do not collide. 0 filters nothing, -1 what the file filters.
            segmentationId: Stored.
        """
        call = "create_actor"
        found = self._env(env, call)
        sim = self._open_sim(found.sim, call)
        if found is not sim.envs[-1]:
            raise GymError(
                f"{call}: env {found.index} is closed, because env {sim.envs[-1].index} was created after "
                "it. Create all actors of an env before the next create_env()."
            )
        blueprint = self._asset(asset, call)
        if blueprint.sim is not sim:
            raise GymError(f"{call}: {blueprint} was loaded into another sim. Load it into this one.")
        for what, value in (("group", group), ("filter", filter)):
            require(
                as_int(value, what, call) >= -1,
                call,
                f"{what} is {value!r}, but must be a whole number of at least -1.",
            )
        row = pose_row(transform(pose, "pose", call))
        require(bool(np.isfinite(row).all()), call, f"pose is {pose!r}, but its numbers must be finite.")
        actor = Actor(
            found,
            blueprint,
            f"actor_{len(found.actors)}" if name is None else str(name),
            pose=row,
            group=int(group),
            filter=int(filter),
            segmentation_id=as_int(segmentationId, "segmentationId", call),
        )
        if found.aggregate is not None:
            self._join_aggregate(found, found.aggregate, actor, call)
        sim.add_actor(actor)
        return actor.handle

    def get_actor_handle(self, env: Any, index: int) -> int:
        """Return the handle of an actor by position, -1 if there is none."""
        count = len(self._env(env, "get_actor_handle").actors)
        number = as_int(index, "index", "get_actor_handle")
        return number if 0 <= number < count else INVALID_HANDLE

    def find_actor_handle(self, env: Any, name: str) -> int:
        """Return the handle of the first actor of a name, -1 if there is none."""
        actors = self._env(env, "find_actor_handle").actors
        return next((actor.handle for actor in actors if actor.name == name), INVALID_HANDLE)

    def get_actor_index(self, env: Any, actor_handle: int, domain: int) -> int:
        """Return the index of an actor; that in DOMAIN_SIM goes into calls named `*_indexed`."""
        actor = self._actor(env, actor_handle, "get_actor_index")
        starts = (actor.handle, actor.index)
        return self._domain(domain, starts, 0, "get_actor_index")

    def find_actor_index(self, env: Any, name: str, domain: int) -> int:
        """Return the index of the first actor of a name, -1 if there is none."""
        self._env(env, "find_actor_index")
        handle = self.find_actor_handle(env, name)
        return INVALID_HANDLE if handle < 0 else self.get_actor_index(env, handle, domain)

    def get_actor_name(self, env: Any, actor_handle: int) -> str:
        """Return the name of an actor."""
        return self._actor(env, actor_handle, "get_actor_name").name

    def get_actor_asset(self, env: Any, actor_handle: int) -> Asset:
        """Return the asset of an actor."""
        return self._actor(env, actor_handle, "get_actor_asset").asset

    def begin_aggregate(self, env: Any, max_bodies: int, max_shapes: int, self_collisions: bool) -> bool:
        """Open an aggregate: actors created until `end_aggregate` join it. It changes no result.

        Raises:
            GymError: If one is open already.
        """
        call = "begin_aggregate"
        found = self._env(env, call)
        self._open_sim(found.sim, call)
        if found.aggregate is not None:
            raise GymError(
                f"{call}: an aggregate of env {found.index} is open already. Call end_aggregate()."
            )
        require(
            as_int(max_bodies, "max_bodies", call) >= 1 and as_int(max_shapes, "max_shapes", call) >= 0,
            call,
            f"max_bodies is {max_bodies} and max_shapes {max_shapes}, but must be at least 1 and 0.",
        )
        found.aggregate = Aggregate(int(max_bodies), int(max_shapes), bool(self_collisions))
        return True

    def end_aggregate(self, env: Any) -> bool:
        """Close the aggregate that is open.

        Raises:
            GymError: If none is open.
        """
        found = self._env(env, "end_aggregate")
        if found.aggregate is None:
            raise GymError(
                f"end_aggregate: no aggregate of env {found.index} is open. Call begin_aggregate() first."
            )
        found.aggregates.append(found.aggregate)
        found.aggregate = None
        return True

    def create_aggregate(self, env: Any, actor_handles: list[int]) -> bool:
        """Put existing actors into an aggregate. It changes no result."""
        call = "create_aggregate"
        found = self._env(env, call)
        actors = [self._actor(env, handle, call) for handle in as_list(actor_handles, "actor_handles", call)]
        bodies = sum(actor.asset.body_count for actor in actors)
        shapes = sum(actor.asset.shape_count for actor in actors)
        aggregate = Aggregate(max(bodies, 1), shapes, True)
        for actor in actors:
            self._join_aggregate(found, aggregate, actor, call)
        found.aggregates.append(aggregate)
        return True

    @staticmethod
    def _join_aggregate(env: Env, aggregate: Aggregate, actor: Actor, call: str) -> None:
        for other in env.aggregates:
            if actor in other.actors:
                raise GymError(f"{call}: {actor} is in an aggregate already. An actor is in one at most.")
        members = [*aggregate.actors, actor]
        for what, limit, count in (
            ("bodies", aggregate.max_bodies, sum(member.asset.body_count for member in members)),
            ("shapes", aggregate.max_shapes, sum(member.asset.shape_count for member in members)),
        ):
            if count > limit:
                raise GymError(
                    f"{call}: {actor} is the {len(members)}. of an aggregate with max_{what} = {limit}, "
                    f"which would have {count}. Pass the sum over its assets to begin_aggregate()."
                )
        aggregate.actors.append(actor)

    def get_env_aggregate_count(self, env: Any) -> int:
        """Return the number of aggregates that were closed."""
        return len(self._env(env, "get_env_aggregate_count").aggregates)
