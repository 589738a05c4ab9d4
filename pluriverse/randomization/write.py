"""Write stage: draw the entries of an array of the model.

Reads   the defaults of the array; episode
Writes  the array, where entities are meant
"""

from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.randomization.sampling import Sampler, draw
from pluriverse.randomization.terms import Operation

ABSOLUTE = wp.constant(0)
SCALE = wp.constant(1)
OFFSET = wp.constant(2)
OPERATION_CODE = {Operation.ABSOLUTE: 0, Operation.SCALE: 1, Operation.OFFSET: 2}


@wp.struct
class Targets:
    """The entities meant by a term, by world."""

    start: wp.array[int]
    """First target of each world, shape [world + 1]."""
    entity: wp.array[int]
    """Flat index of the entity, shape [target]."""
    local: wp.array[int]
    """Index of the entity in its world, which separates draws, shape [target]. Parts of a body share it."""


@wp.struct
class Episode:
    """The environments to draw for, and their identities."""

    environments: wp.array[int]
    """Environments of this launch, shape [slot]."""
    mask: wp.array[bool]
    """Which of them; empty for all, shape [environment]."""
    world: wp.array[int]
    """World of each environment, shape [environment]."""
    count: wp.array[int]
    """Number of draws of each environment so far, shape [environment]."""
    identity: wp.array[int]
    """Identity of each environment, by default its index, shape [environment]."""
    seed: int
    """Seed of all draws."""


@wp.func
def selected_environment(episode: Episode, slot: int) -> int:
    """Return the environment of a slot, -1 if it is not selected."""
    environment = episode.environments[slot]
    if environment < 0 or environment >= episode.world.shape[0]:
        return -1  # an index on the device that names no environment
    if episode.mask.shape[0] > 0:
        if not episode.mask[environment]:
            return -1
    return environment


@wp.kernel(enable_backward=False, module="pluriverse.randomization.write")
def count_episode(episode: Episode):
    """Count one environment further."""
    thread, _ = wp.tid()
    environment = selected_environment(episode, thread)
    if environment >= 0:
        before = episode.count[environment]
        episode.count[environment] = before + 1


@wp.kernel(enable_backward=False, module="pluriverse.randomization.write")
def list_world(
    episode: Episode,
    worlds: wp.array[int],  # [slot] -1 for environments that are not meant
):
    """Write the world of one environment into a list to launch over."""
    slot, _ = wp.tid()
    environment = selected_environment(episode, slot)
    world = int(-1)
    if environment >= 0:
        world = episode.world[environment]
    worlds[slot] = world


@wp.kernel(enable_backward=False, module="pluriverse.randomization.write")
def write_property(
    episode: Episode,
    targets: Targets,
    sampler: Sampler,
    component: wp.array[int],  # [drawn component] component of an entity
    words: int,  # per entity
    operation: int,
    same_for_entities: bool,
    same_for_components: bool,
    term: int,
    defaults: wp.array[float],  # [entity word]
    # out
    value: wp.array[float],  # [entity word]
):
    """Draw the entries of one world."""
    thread, _ = wp.tid()
    environment = selected_environment(episode, thread)
    if environment < 0:
        return
    world = episode.world[environment]
    count = episode.count[environment]
    identity = episode.identity[environment]
    for target in range(targets.start[world], targets.start[world + 1]):
        entity = targets.entity[target]
        local = int(0)
        if not same_for_entities:
            local = targets.local[target]
        for index in range(component.shape[0]):
            counter = local * component.shape[0]
            if not same_for_components:
                counter += index
            number = draw(sampler, index, identity, count, counter, term, episode.seed)
            word = entity * words + component[index]
            if operation == SCALE:
                number = number * wp.float64(defaults[word])
            elif operation == OFFSET:
                number = number + wp.float64(defaults[word])
            value[word] = wp.float32(number)


@wp.func
def rotated(rotation_vector: wp.vec3, before: wp.quat) -> wp.quat:
    """Return an orientation after a rotation vector [rad], in the axes that it is given in."""
    angle = wp.length(rotation_vector)
    after = before
    if angle > 0.0:
        after = wp.normalize(wp.quat_from_axis_angle(rotation_vector / angle, angle) * before)
    return after


@wp.kernel(enable_backward=False, module="pluriverse.randomization.write")
def write_rotation(
    episode: Episode,
    targets: Targets,
    sampler: Sampler,
    same_for_entities: bool,
    term: int,
    defaults: wp.array[wp.transform],  # [entity] m, xyzw
    # out
    value: wp.array[wp.transform],  # [entity] m, xyzw
):
    """Rotate the poses of one world. Their positions do not change."""
    thread, _ = wp.tid()
    environment = selected_environment(episode, thread)
    if environment < 0:
        return
    world = episode.world[environment]
    count = episode.count[environment]
    identity = episode.identity[environment]
    for target in range(targets.start[world], targets.start[world + 1]):
        entity = targets.entity[target]
        counter = int(0)
        if not same_for_entities:
            counter = 3 * targets.local[target]
        rotation_vector = wp.vec3()
        for axis in range(3):
            rotation_vector[axis] = wp.float32(
                draw(sampler, axis, identity, count, counter + axis, term, episode.seed)
            )
        rotation = rotated(rotation_vector, wp.transform_get_rotation(defaults[entity]))
        value[entity] = wp.transform(wp.transform_get_translation(value[entity]), rotation)


@wp.kernel(enable_backward=False, module="pluriverse.randomization.write")
def restore_property(
    episode: Episode,
    targets: Targets,
    words: int,  # per entity
    defaults: wp.array[float],  # [entity word]
    # out
    value: wp.array[float],  # [entity word]
):
    """Restore the entries of one world to their defaults."""
    thread, _ = wp.tid()
    environment = selected_environment(episode, thread)
    if environment < 0:
        return
    world = episode.world[environment]
    for target in range(targets.start[world], targets.start[world + 1]):
        entity = targets.entity[target]
        for word in range(words):
            value[entity * words + word] = defaults[entity * words + word]


def launch(kernel: Any, episode: Episode, inputs: list[Any], outputs: list[Any]) -> None:
    """Launch a kernel of this package over the environments of an episode."""
    launch_kernel(
        kernel,
        dim=episode.environments.size,
        inputs=[episode, *inputs],
        outputs=outputs,
        device=episode.environments.device,
    )
