"""Collision: contacts between the shapes of each world.

`CollisionPipeline` is public as `pluriverse.CollisionPipeline`.
"""

from pluriverse.collision.contact_kinematics import (
    eval_rigid_contact_kinematics as eval_rigid_contact_kinematics,
)
from pluriverse.collision.pipeline import CollisionPipeline as CollisionPipeline

__all__: list[str] = []
