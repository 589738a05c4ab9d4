"""Property calls: masses, materials, degrees of freedom and size of actors, at any time."""

from typing import Any

import numpy as np

from pluriverse.gymapi.arguments import as_float, as_list
from pluriverse.gymapi.checks import Checks
from pluriverse.gymapi.drives import check_dof_properties
from pluriverse.gymapi.enums import RigidBodyFlags
from pluriverse.gymapi.errors import GymError, require
from pluriverse.gymapi.frames import body_rows
from pluriverse.gymapi.mass_properties import mass_properties
from pluriverse.gymapi.scaling import scale_actor, set_dof_properties
from pluriverse.gymapi.scene import Actor
from pluriverse.gymapi.scene_tables import body_flags
from pluriverse.gymapi.shape_properties import read_shape_properties, write_shape_properties
from pluriverse.gymapi.states import set_root
from pluriverse.gymapi.store import read, write
from pluriverse.gymapi.structures import RigidBodyProperties, RigidShapeProperties, as_mat33
from pluriverse.gymapi.values import Vec3
from pluriverse.types import BodyFlags

_STILL = int(RigidBodyFlags.RIGID_BODY_DISABLE_SIMULATION)
_ALL_FLAGS = _STILL | int(RigidBodyFlags.RIGID_BODY_DISABLE_GRAVITY)


class PropertyCalls(Checks):
    """Properties of bodies, shapes and degrees of freedom; scale."""

    def get_actor_rigid_body_properties(self, env: Any, actor_handle: int) -> list[RigidBodyProperties]:
        """Return mass, centre of mass, inertia and flags of each body."""
        actor = self._actor(env, actor_handle, "get_actor_rigid_body_properties")
        mass, com = read(actor, "body_mass"), read(actor, "body_com").reshape(-1, 3)
        inertia = read(actor, "body_inertia").reshape(-1, 3, 3)
        flags = body_flags(actor) & int(RigidBodyFlags(3))
        inverse = np.zeros_like(inertia)
        regular = np.linalg.matrix_rank(inertia) == 3
        inverse[regular] = np.linalg.inv(inertia[regular])
        return [
            RigidBodyProperties._of_parts(  # scripts ask for those of a hundred thousand bodies
                mass=float(mass[body]),
                com=Vec3._of_parts(*com[body].tolist()),
                inertia=as_mat33(inertia[body]),
                invMass=0.0 if mass[body] == 0.0 else 1.0 / float(mass[body]),
                invInertia=as_mat33(inverse[body]),
                flags=RigidBodyFlags(int(flags[body])),
            )
            for body in range(actor.asset.body_count)
        ]

    def set_actor_rigid_body_properties(
        self,
        env: Any,
        actor_handle: int,
        properties: list[RigidBodyProperties],
        recomputeInertia: bool = False,
    ) -> bool:
        """Set mass, centre of mass, inertia and flags of each body.

        Args:
            env: Env.
            actor_handle: Actor.
            properties: One for each body. Inverses are not read.
            recomputeInertia: Whether inertias change in proportion to the masses, whatever `inertia` says.

        Raises:
            ValueError: If a number is not finite, a mass negative, an inertia not symmetric or negative about
                some axis; if a body that a joint moves has no mass, or one at the end of the actor no inertia
                about its joint.
        """
        call = "set_actor_rigid_body_properties"
        actor = self._actor(env, actor_handle, call)
        parts = as_list(properties, "properties", call)
        require(
            len(parts) == actor.asset.body_count,
            call,
            f"{len(parts)} properties were given, but {actor} has {actor.asset.body_count} "
            f"bodies; pass one for each.",
        )
        flags = np.array([int(part.flags) for part in parts], dtype=np.int64)
        for body, name in enumerate(actor.asset.body_names):
            allowed = _ALL_FLAGS if body == actor.asset.root_body else _ALL_FLAGS & ~_STILL
            require(
                not flags[body] & ~allowed,
                call,
                f"flags of body '{name}' of {actor} are {flags[body]}, but must be made of "
                "RIGID_BODY_DISABLE_GRAVITY and, for the root of an actor, RIGID_BODY_DISABLE_SIMULATION.",
            )
        mass, com, inertia = mass_properties(actor, parts, flags, recompute_inertia=recomputeInertia)
        write(actor, "body_mass", mass)
        write(actor, "body_com", com)
        write(actor, "body_inertia", inertia)
        if not np.array_equal(flags, body_flags(actor) & int(RigidBodyFlags(3))):
            self._hold_still(actor, flags, call)
            actor.body_flags = flags
            if actor.env.sim.runtime is not None:
                actor.env.sim.runtime.set_body_flags(actor.body_start, body_flags(actor))
        return True

    @staticmethod
    def _hold_still(actor: Actor, flags: np.ndarray, call: str) -> None:
        """Fix or free the root of an actor, by its flags."""
        asset, runtime = actor.asset, actor.env.sim.runtime
        still = bool(flags[asset.root_body] & _STILL)
        if not asset.is_free or still == bool(body_flags(actor)[asset.root_body] & _STILL):
            return
        if runtime is not None and not runtime.model.has_kinematic_bodies:
            raise GymError(
                f"{call}: RIGID_BODY_DISABLE_SIMULATION of {actor} cannot change, because no body of the sim "
                "had it when the sim was prepared. Set it for one body at least before prepare_sim()."
            )
        kinds = read(actor, "body_flags")
        kinds[asset.root_body] = int(BodyFlags.KINEMATIC if still else BodyFlags.DYNAMIC)
        write(actor, "body_flags", kinds)
        body_q, body_qd = body_rows(actor)
        set_root(actor, body_q[asset.root_body], 0.0 * body_qd[asset.root_body])

    def get_actor_rigid_shape_properties(self, env: Any, actor_handle: int) -> list[RigidShapeProperties]:
        """Return the material of each shape."""
        actor = self._actor(env, actor_handle, "get_actor_rigid_shape_properties")
        return read_shape_properties(actor.asset, actor)

    def set_actor_rigid_shape_properties(
        self, env: Any, actor_handle: int, properties: list[RigidShapeProperties]
    ) -> bool:
        """Set the material of each shape."""
        call = "set_actor_rigid_shape_properties"
        write_shape_properties(self._actor(env, actor_handle, call), properties, call)
        return True

    def get_actor_dof_properties(self, env: Any, actor_handle: int) -> np.ndarray:
        """Return limits, drives and losses of the degrees of freedom; a copy."""
        return self._actor(env, actor_handle, "get_actor_dof_properties").dof_properties.copy()

    def set_actor_dof_properties(self, env: Any, actor_handle: int, properties: Any) -> bool:
        """Set limits, drives and losses of the degrees of freedom."""
        call = "set_actor_dof_properties"
        actor = self._actor(env, actor_handle, call)
        names = [dof.name for dof in actor.asset.dofs]
        checked = check_dof_properties(properties, actor.dof_properties, names, call, str(actor))
        set_dof_properties(actor, checked)
        return True

    def get_actor_scale(self, env: Any, actor_handle: int) -> float:
        """Return the size of an actor relative to its asset."""
        return self._actor(env, actor_handle, "get_actor_scale").scale

    def set_actor_scale(self, env: Any, actor_handle: int, scale: Any, *, scale_gains: bool = True) -> bool:
        """Give an actor `scale` times the size of its asset, at the same density; at any time.

        Its root stays where it is. See `pluriverse.gymapi.scaling` for what changes by which power.

        Args:
            env: Env.
            actor_handle: Actor.
            scale: Size relative to the asset; not to the size so far.
            scale_gains: Whether stiffness, damping, largest effort, friction and armature follow the inertia.
                With False they stay, to be tuned by hand.
        """
        call = "set_actor_scale"
        actor = self._actor(env, actor_handle, call)
        # Scripts that draw it pass arrays of one entry.
        value = as_float(scale[0] if np.size(scale) == 1 and np.ndim(scale) > 0 else scale, "scale", call)
        require(0.0 < value < np.inf, call, f"scale of {actor} is {scale!r}, but must be one number > 0.")
        rigid = actor.asset.rigid_sizes
        require(
            value == actor.scale or not rigid,
            call,
            f"{actor} has constraints ({', '.join(rigid[:4])}) whose lengths stay, so it cannot change its "
            "size. Load a file of that size.",
        )
        if value != actor.scale:
            scale_actor(actor, value, gains=scale_gains)
        return True

    def get_actor_segmentation_id(self, env: Any, actor_handle: int) -> int:
        """Return the segmentation id given to `create_actor`."""
        return self._actor(env, actor_handle, "get_actor_segmentation_id").segmentation_id
