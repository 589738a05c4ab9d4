"""FieldLayout: indices of the entities of a plan in the arrays that kernels write.

MuJoCo orders bodies, joints, geoms and the actuators of drives as a plan does. It sorts sites and pairs, and
elements from custom attributes (sites, tendons, actuators) come between and after them. Before there is a
compiled model, arrays are in the order of the plan, in which its description is written.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.solvers.mujoco.mapping.group import NO_SHAPE, MujocoGroup
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan

# Number of entries of an equality constraint in `eq_data`.
EQUALITY_DATA = 11


@dataclass(frozen=True)
class FieldLayout:
    """Indices of entities, and their number per kind."""

    site_shape: np.ndarray
    """Shape of each site that represents one, as in `ShapePlan.shape`, shape [site of a shape]."""
    site: np.ndarray
    """Index of that site, shape [site of a shape]."""
    constraint_site: np.ndarray
    """Indices of the two sites of each constraint, shape [constraint, 2]; not used for joint constraints."""
    distance_site: np.ndarray
    """Indices of the two sites of each distance constraint, shape [distance constraint, 2]."""
    site_count: int
    constraint_count: int
    tendon_count: int
    actuator_count: int
    constraint_data: int
    """Number of entries of a constraint in `eq_data`."""


def planned_layout(plan: GroupPlan) -> FieldLayout:
    """Return the layout of a plan that is not compiled yet: sites in the order of addition."""
    shapes, constraints = len(plan.sites), len(plan.equalities.constraints)
    distances = len(plan.equalities.distances)
    ends = shapes + np.arange(2 * (constraints + distances)).reshape(-1, 2)
    return FieldLayout(
        site_shape=plan.sites.shape,
        site=np.arange(shapes),
        constraint_site=ends[:constraints],
        distance_site=ends[constraints:],
        site_count=shapes + 2 * (constraints + distances),
        constraint_count=constraints,
        tendon_count=distances,
        actuator_count=len(plan.drives),
        constraint_data=EQUALITY_DATA,
    )


def compiled_layout(group: MujocoGroup) -> FieldLayout:
    """Return the layout of the compiled model of a group."""
    model: Any = group.model
    plan: GroupPlan = group.plan
    own = np.flatnonzero(group.site_shape != NO_SHAPE)
    count = len(plan.equalities.constraints)
    distance_sites = [
        [model.site(f"distance_{index}_site_{end}").id for end in range(2)]
        for index in range(len(plan.equalities.distances))
    ]
    return FieldLayout(
        site_shape=group.site_shape[own],
        site=own,
        constraint_site=np.stack([model.eq_obj1id[:count], model.eq_obj2id[:count]], axis=1),
        distance_site=np.array(distance_sites, dtype=np.int64).reshape(-1, 2),
        site_count=int(model.nsite),
        constraint_count=int(model.neq),
        tendon_count=int(model.ntendon),
        actuator_count=len(model.actuator_gainprm),
        constraint_data=model.eq_data.shape[1] if model.eq_data.ndim == 2 else 0,
    )
