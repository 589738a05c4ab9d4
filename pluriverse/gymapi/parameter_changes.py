"""Parameter changes: effects of parameters of the sim that change once it is prepared."""

from pluriverse.gymapi.collision_codes import GROUND_GROUP
from pluriverse.gymapi.scaling import set_dof_properties
from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.shape_properties import offset_rows, shape_offsets
from pluriverse.gymapi.store import write
from pluriverse.gymapi.structures import SimParams
from pluriverse.types import ModelFlags


def follow_params(sim: Sim, old: SimParams) -> None:
    """Update everything made with the previous parameters of the sim."""
    new = sim.params
    if (new.dt, new.substeps) != (old.dt, old.substeps):
        for actor in sim.actors:
            if (actor.asset.dof_ball_axis >= 0).any():  # their drives are implicit in the time step
                set_dof_properties(actor, actor.dof_properties)
    offsets = (new.physx.contact_offset, new.physx.rest_offset)
    if offsets == (old.physx.contact_offset, old.physx.rest_offset):
        return
    for actor in sim.actors:
        for name, rows in offset_rows(shape_offsets(actor.asset, actor)).items():
            write(actor, name, rows)
    model = sim.prepared.model
    grounds = model.shape_collision_group.numpy() == GROUND_GROUP
    for array, value in ((model.shape_margin, offsets[1]), (model.shape_gap, offsets[0] - offsets[1])):
        values = array.numpy().copy()
        values[grounds] = value
        array.assign(values)
    sim.prepared.changed |= ModelFlags.SHAPE_PROPERTIES
