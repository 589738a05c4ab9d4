"""Statistics stage: sum up the solver's counters of each step, per world.

Reads   last_contact_count, last_solve_iterations of the solver
Writes  contact_total, contact_peak, iteration_total, iteration_peak
"""

import warp as wp

from pluriverse.launch import launch_kernel


@wp.kernel(enable_backward=False, module="pluriverse.simulation.statistics")
def accumulate_statistic(
    worlds: wp.array[int],  # [slot] the worlds of this launch
    # of the last step
    contact_count: wp.array[int],  # [world]
    iteration_count: wp.array[int],  # [world]
    # of all steps
    contact_total: wp.array[wp.int64],  # [world]
    contact_peak: wp.array[int],  # [world]
    iteration_total: wp.array[wp.int64],  # [world]
    iteration_peak: wp.array[int],  # [world]
):
    """Add the numbers of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    contacts = contact_count[world]
    iterations = iteration_count[world]
    contact_total[world] = contact_total[world] + wp.int64(contacts)
    contact_peak[world] = wp.max(contact_peak[world], contacts)
    iteration_total[world] = iteration_total[world] + wp.int64(iterations)
    iteration_peak[world] = wp.max(iteration_peak[world], iterations)


@wp.kernel(enable_backward=False, module="pluriverse.simulation.statistics")
def add_to_count(
    count: wp.array[wp.int64],  # [1]
    added: int,
):
    """Add a number."""
    count[0] = count[0] + wp.int64(added)


def count_steps(step_count: wp.array[wp.int64], added: int) -> None:
    """Add steps to a count on the device, shape [1], where the host does not see them."""
    launch_kernel(add_to_count, dim=1, inputs=[step_count, added], device=step_count.device)


class Statistics:
    """Sums and peaks over all steps so far.

    Args:
        world_count: Number of worlds.
        device: Device that they are on.
    """

    contact_total: wp.array[wp.int64]
    """Contacts of all steps, shape [world]."""
    contact_peak: wp.array[int]
    """Largest number of contacts in a step, shape [world]."""
    iteration_total: wp.array[wp.int64]
    """Solver iterations of all steps, shape [world]."""
    iteration_peak: wp.array[int]
    """Largest number of solver iterations in a step, shape [world]."""

    def __init__(self, world_count: int, device: wp.Device) -> None:
        self.contact_total = wp.zeros(world_count, dtype=wp.int64, device=device)
        self.contact_peak = wp.zeros(world_count, dtype=wp.int32, device=device)
        self.iteration_total = wp.zeros(world_count, dtype=wp.int64, device=device)
        self.iteration_peak = wp.zeros(world_count, dtype=wp.int32, device=device)

    def accumulate(
        self, worlds: wp.array[int], contact_count: wp.array[int], iteration_count: wp.array[int]
    ) -> None:
        """Add the numbers of the step that was just made."""
        launch_kernel(
            accumulate_statistic,
            dim=worlds.size,
            inputs=[worlds, contact_count, iteration_count],
            outputs=[self.contact_total, self.contact_peak, self.iteration_total, self.iteration_peak],
            device=worlds.device,
        )

    def clear(self) -> None:
        """Set all sums and peaks to zero."""
        for sums in (self.contact_total, self.contact_peak, self.iteration_total, self.iteration_peak):
            sums.zero_()
