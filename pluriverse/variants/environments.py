"""Environments: draw their variants and find their worlds, one environment per thread.

Reads   episode, shares of the variants
Writes  episode, variant of each entity, environment_tuple, environment_world, control
"""

import warp as wp

from pluriverse.math.counter_random import philox, uniform_of

# First words of the counters of draws, which keep draws of variants distinct from those of properties.
VARIANT_STREAM = wp.constant(wp.uint32(0x76617269))


@wp.func
def is_selected(environment: int, count: int, mask: wp.array[bool]) -> bool:
    """Return whether an entry of a list of environments names a selected one."""
    if environment < 0 or environment >= count:
        return False
    if mask.shape[0] == 0:
        return True
    return mask[environment]


@wp.kernel(enable_backward=False, module="pluriverse.variants.switching")
def begin_episode(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    episode: wp.array[int],  # [environment]
):
    """Count one environment further."""
    thread, _ = wp.tid()
    environment = environments[thread]
    if is_selected(environment, episode.shape[0], mask):
        count = episode[environment]
        episode[environment] = count + 1


@wp.kernel(enable_backward=False, module="pluriverse.variants.switching")
def draw_variant(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    episode: wp.array[int],  # [environment]
    cumulative_share: wp.array[float],  # [variant] the last one is 1
    seed: int,
    entity: int,
    first: int,  # what environment 0 is in draws
    variant: wp.array[int],  # [environment]
):
    """Draw the variant of an entity in one environment."""
    thread, _ = wp.tid()
    environment = environments[thread]
    if not is_selected(environment, episode.shape[0], mask):
        return
    block = philox(
        wp.uint32(first + environment),
        wp.uint32(episode[environment]),
        wp.uint32(entity),
        wp.uint32(0),
        wp.uint32(seed),
        VARIANT_STREAM,
    )
    draw = uniform_of(block.word0)
    selected = int(0)
    while selected < cumulative_share.shape[0] - 1 and draw >= cumulative_share[selected]:
        selected += 1
    variant[environment] = selected


@wp.kernel(enable_backward=False, module="pluriverse.variants.switching")
def take_variant(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    requested: wp.array[int],  # [environment]
    variant_allowed: wp.array[int],  # [variant] whether worlds are prepared for it
    variant: wp.array[int],  # [environment]
):
    """Give one environment its requested variant."""
    thread, _ = wp.tid()
    environment = environments[thread]
    if not is_selected(environment, variant.shape[0], mask):
        return
    selected = requested[environment]
    # An index on the device that names no variant changes nothing.
    if selected >= 0 and selected < variant_allowed.shape[0]:
        if variant_allowed[selected] != 0:
            variant[environment] = selected


@wp.kernel(enable_backward=False, module="pluriverse.variants.switching")
def set_layout(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    variant: wp.array[int],  # [environment] of one entity
    variant_step: wp.array[int],  # [variant] tuples between its layout and the first one
    below: int,  # tuples from one layout of the entity to the next
    layout_count: int,  # of the entity
    environment_tuple: wp.array[int],  # [environment]
):
    """Set the layout of one entity as a digit in the tuple of one environment."""
    thread, _ = wp.tid()
    environment = environments[thread]
    if is_selected(environment, environment_tuple.shape[0], mask):
        before = environment_tuple[environment]
        digit = (before // below) % layout_count
        environment_tuple[environment] = before + variant_step[variant[environment]] - digit * below


@wp.kernel(enable_backward=False, module="pluriverse.variants.switching")
def move_environment(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    environment_tuple: wp.array[int],  # [environment]
    tuple_first: wp.array[int],  # [tuple + 1] first world
    environment_world: wp.array[int],  # [environment]
):
    """Send one environment to its own world of its tuple."""
    thread, _ = wp.tid()
    environment = environments[thread]
    if is_selected(environment, environment_world.shape[0], mask):
        environment_world[environment] = tuple_first[environment_tuple[environment]] + environment


@wp.kernel(enable_backward=False, module="pluriverse.variants.switching")
def list_world(
    environments: wp.array[int],  # [slot] the environments of this launch
    mask: wp.array[bool],  # [environment] which of them; empty: all
    environment_world: wp.array[int],  # [environment]
    worlds: wp.array[int],  # [slot] -1 for environments that are not meant
):
    """Write the world of one environment into a list to launch over."""
    slot, _ = wp.tid()
    environment = environments[slot]
    world = int(-1)
    if is_selected(environment, environment_world.shape[0], mask):
        world = environment_world[environment]
    worlds[slot] = world


@wp.kernel(enable_backward=False, module="pluriverse.variants.switching")
def copy_targets(
    worlds: wp.array[int],  # [slot] the worlds of this launch, -1 for none
    mask: wp.array[bool],  # [world] which of them; empty: all
    world_dof: wp.array[int],  # [world + 1]
    # model
    joint_f: wp.array[float],  # [dof]
    joint_act: wp.array[float],  # [dof]
    joint_target_pos: wp.array[float],  # [dof]
    joint_target_vel: wp.array[float],  # [dof]
    # control out
    joint_f_out: wp.array[float],  # [dof] N, N m
    joint_act_out: wp.array[float],  # [dof] N, N m
    joint_target_pos_out: wp.array[float],  # [dof] m, rad
    joint_target_vel_out: wp.array[float],  # [dof] m/s, rad/s
):
    """Give the control of one world the forces and targets of the model."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    if not is_selected(world, world_dof.shape[0] - 1, mask):
        return
    for dof in range(world_dof[world], world_dof[world + 1]):
        joint_f_out[dof] = joint_f[dof]
        joint_act_out[dof] = joint_act[dof]
        joint_target_pos_out[dof] = joint_target_pos[dof]
        joint_target_vel_out[dof] = joint_target_vel[dof]
