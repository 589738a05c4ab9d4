"""Preparation: make the model of a sim, and its calls around steps, when a call needs them."""

from typing import Any

from pluriverse.gymapi.assembly import make_model
from pluriverse.gymapi.checks import Checks
from pluriverse.gymapi.contact_readings import ContactReadings
from pluriverse.gymapi.env_cells import CellGuard
from pluriverse.gymapi.errors import GymError
from pluriverse.gymapi.joint_efforts import JointEfforts
from pluriverse.gymapi.runtime import Runtime
from pluriverse.gymapi.scene import Sim
from pluriverse.gymapi.scene_tables import make_actor_table, make_body_table, make_dof_table
from pluriverse.gymapi.sensor_readings import SensorReadings
from pluriverse.gymapi.tendons import tendons_act
from pluriverse.gymapi.tensor_set import TensorSet


def prepare(sim: Sim, call: str) -> Runtime:
    """Return the runtime of a sim; prepare the sim if necessary.

    Raises:
        GymError: If an aggregate is still open.
    """
    if sim.runtime is not None:
        return sim.runtime
    for env in sim.envs:
        if env.aggregate is not None:
            raise GymError(
                f"prepare_sim: an aggregate of env {env.index} is still open. Call end_aggregate()."
            )
    params = sim.params
    model = make_model(sim, params.dt / max(int(params.substeps), 1), call)
    runtime = sim.runtime = Runtime(
        model,
        params,
        make_actor_table(sim, model.device),
        make_dof_table(sim, model.device),
        make_body_table(sim, model.device),
    )
    sim.prepared_by = call
    runtime.has_effort = sim.efforts_pending
    if sim.are_envs_apart:
        runtime.after_step.append(CellGuard(sim).check)
    contacts = sim.add_part(ContactReadings(runtime))
    if sim.sensor_count:
        sim.add_part(SensorReadings(sim, contacts))
    if any(actor.dof_force_sensors for actor in sim.actors):
        sim.add_part(JointEfforts(runtime))
    if sim.attractors:
        update_attractors(sim)
    if any(tendons_act(actor) for actor in sim.actors):
        update_tendons(sim)
    return runtime


def update_attractors(sim: Sim) -> None:
    """Let the attractors of a prepared sim act as they are now."""
    sim.attractors_changed = True
    if not sim.has_attractor_forces:
        # Imported late: all declared kernels are compiled, and without attractors these are not needed.
        from pluriverse.gymapi.attractor_forces import AttractorForces

        AttractorForces(sim)


def update_tendons(sim: Sim) -> None:
    """Let the tendons of a prepared sim act as they are now."""
    sim.tendons_changed = True
    if not sim.has_tendon_forces:
        # Imported late for the same reason.
        from pluriverse.gymapi.tendon_forces import TendonForces

        TendonForces(sim)


class PreparingCalls(Checks):
    """Calls that need a prepared sim, and prepare it where a script did not."""

    def _runtime(self, sim: Any, call: str) -> Runtime:
        return prepare(self._sim(sim, call), call)

    def _tensors(self, sim: Any, call: str) -> TensorSet:
        """Return the buffers of a sim."""
        found = self._sim(sim, call)
        return found.part(TensorSet) or found.add_part(TensorSet(prepare(found, call)))
