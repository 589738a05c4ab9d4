"""Corruption stage: apply the delay, bias and noise of real sensors to true values.

Reads   data, models of noise
Writes  measured, bias, history

    measured(t) = true(t - delay) + bias(t) + noise(t)

with white noise of a standard deviation per sample, and a bias with a random initial value and a random walk,
whose standard deviation after a time t is `bias_walk` sqrt(t). Random numbers depend on the seed, the
identity of the world, its number of resets, the sample since then and the sensor; not on the batch.
"""

import warp as wp

from pluriverse.builder.sensor_sides import DIM_MAX
from pluriverse.builder.sensors import SensorType
from pluriverse.launch import launch_kernel
from pluriverse.math.counter_random import open_uniform_of, philox
from pluriverse.sensors.measure import SensorTable, sensor_of

_MODULE = "pluriverse.sensors.corruption"
SENSOR_STREAM = wp.constant(wp.uint32(0x73656E73))
ROOT_TWO = wp.constant(wp.float64(1.4142135623730951))
# Each component of a value has its own random numbers.
COMPONENT_COUNT = wp.constant(DIM_MAX)


@wp.struct
class NoiseModel:
    """Error models of sensors, and their state from sample to sample."""

    std: wp.array2d[float]  # [world, sensor of the world] standard deviation of a sample
    bias_std: wp.array2d[float]  # [world, sensor] standard deviation of the first bias
    bias_walk: wp.array2d[float]  # [world, sensor] per square root of a second
    delay_low: wp.array2d[float]  # [world, sensor] s
    delay_high: wp.array2d[float]  # [world, sensor] s
    delay: wp.array2d[float]  # [world, sensor] s, drawn at resets
    bias: wp.array2d[float]  # [world, column]
    history: wp.array3d[float]  # [world, sample, column]
    sample: wp.array[int]  # [world] samples since the reset
    episode: wp.array[int]  # [world] resets
    identity: wp.array[int]  # [world]
    seed: int
    interval: float  # between samples [s]


@wp.func
def normal_number(
    noise: NoiseModel, world: int, sample: int, index: int, component: int, purpose: int
) -> float:
    """Return a number of the standard normal distribution."""
    block = philox(
        wp.uint32(noise.identity[world]),
        wp.uint32(noise.episode[world]),
        wp.uint32(sample),
        wp.uint32((index * COMPONENT_COUNT + component) * 4 + purpose),
        wp.uint32(noise.seed),
        SENSOR_STREAM,
    )
    return float(-ROOT_TWO * wp.erfcinv(wp.float64(2.0) * open_uniform_of(block.word0)))


@wp.kernel(enable_backward=False, module=_MODULE)
def corrupt_sensor(
    worlds: wp.array[int],  # [slot]
    is_reset: int,
    table: SensorTable,
    world_frozen: wp.array[int],  # [world]
    data: wp.array2d[float],  # [world, column]
    noise: NoiseModel,
    # out
    measured: wp.array2d[float],  # [world, column]
):
    """Write what one sensor of one world reads."""
    slot, index = wp.tid()
    world = worlds[slot]
    sensor = sensor_of(table, world_frozen, world, index)
    if sensor < 0:
        return
    sample = noise.sample[world]
    column = table.column[sensor]
    dim = table.dim[sensor]
    kind = table.type[sensor]
    if is_reset != 0:
        block = philox(
            wp.uint32(noise.identity[world]),
            wp.uint32(noise.episode[world]),
            wp.uint32(0),
            wp.uint32(index * COMPONENT_COUNT * 4 + 3),
            wp.uint32(noise.seed),
            SENSOR_STREAM,
        )
        share = float(open_uniform_of(block.word1))
        low = noise.delay_low[world, index]
        noise.delay[world, index] = low + share * (noise.delay_high[world, index] - low)
    depth = noise.history.shape[1]
    late = int(0)
    if depth > 0:
        late = int(wp.floor(noise.delay[world, index] / noise.interval + 0.5))
        late = wp.clamp(late, 0, wp.min(sample, depth - 1))
    norm = float(0.0)
    for k in range(dim):
        value = data[world, column + k]
        if depth > 0:
            noise.history[world, sample % depth, column + k] = value
            value = noise.history[world, (sample - late) % depth, column + k]
        bias = noise.bias[world, column + k]
        if is_reset != 0:
            bias = noise.bias_std[world, index]
            if bias > 0.0:
                bias = bias * normal_number(noise, world, 0, index, k, 0)
        elif noise.bias_walk[world, index] > 0.0:
            step = noise.bias_walk[world, index] * wp.sqrt(noise.interval)
            bias = bias + step * normal_number(noise, world, sample, index, k, 1)
        noise.bias[world, column + k] = bias
        is_known = not wp.isnan(value)  # else no bound may make a number of it
        # A range finder that sees nothing reports -1, without noise.
        if is_known and not (kind == SensorType.RANGEFINDER and value < 0.0):
            value = value + bias
            if noise.std[world, index] > 0.0:
                value = value + noise.std[world, index] * normal_number(noise, world, sample, index, k, 2)
            if kind == SensorType.RANGEFINDER or kind == SensorType.TOUCH:
                value = wp.max(value, 0.0)
        cutoff = table.cutoff[sensor]
        if is_known and cutoff > 0.0 and kind < SensorType.GEOMNORMAL:
            value = wp.min(value, cutoff)
            if kind != SensorType.RANGEFINDER:
                value = wp.max(value, -cutoff)
        norm += value * value
        measured[world, column + k] = value
    is_unit = (
        kind == SensorType.BALLQUAT
        or kind == SensorType.FRAMEQUAT
        or (kind >= SensorType.FRAMEXAXIS and kind <= SensorType.FRAMEZAXIS)
    )
    is_unit = is_unit or kind == SensorType.GEOMNORMAL
    if is_unit and norm > 0.0:
        for k in range(dim):
            measured[world, column + k] = measured[world, column + k] / wp.sqrt(norm)


@wp.kernel(enable_backward=False, module=_MODULE)
def count_sample(
    worlds: wp.array[int],  # [slot]
    world_frozen: wp.array[int],  # [world]
    elapsed: wp.float64,  # s
    sample: wp.array[int],  # [world]
    time: wp.array[wp.float64],  # [world] s
):
    """Advance the time of one world."""
    thread, _ = wp.tid()
    world = worlds[thread]
    if world < 0:
        return
    if world_frozen[world] == 0:
        sample[world] = sample[world] + 1
        time[world] = time[world] + elapsed


@wp.kernel(enable_backward=False, module=_MODULE)
def begin_episode(
    worlds: wp.array[int],  # [slot]
    mask: wp.array[bool],  # [world] empty for all
    start_time: wp.float64,  # s
    sample: wp.array[int],  # [world]
    time: wp.array[wp.float64],  # [world] s
    episode: wp.array[int],  # [world]
    active: wp.array[int],  # [slot] the world, -1 for one that is not meant
):
    """Start an episode of one world."""
    slot, _ = wp.tid()
    world = worlds[slot]
    active[slot] = -1
    if world < 0 or world >= sample.shape[0]:
        return
    if mask.shape[0] > 0:
        if not mask[world]:
            return
    active[slot] = world
    sample[world] = 0
    time[world] = start_time
    episode[world] = episode[world] + 1


def corrupt_sensors(
    worlds: wp.array[int],
    count_max: int,
    table: SensorTable,
    world_frozen: wp.array[int],
    data: wp.array,
    noise: NoiseModel,
    measured: wp.array,
    *,
    is_reset: bool,
) -> None:
    """Write the readings of the sensors of worlds; after a reset, draw delay and bias first."""
    launch_kernel(
        corrupt_sensor,
        dim=(worlds.size, count_max),
        inputs=[worlds, int(is_reset), table, world_frozen, data, noise],
        outputs=[measured],
        device=data.device,
    )


def count_samples(
    worlds: wp.array[int],
    world_frozen: wp.array[int],
    elapsed: float,
    sample: wp.array[int],
    time: wp.array[wp.float64],
) -> None:
    """Advance the time of worlds by a duration [s]."""
    launch_kernel(
        count_sample,
        dim=worlds.size,
        inputs=[worlds, world_frozen, wp.float64(elapsed)],
        outputs=[sample, time],
        device=sample.device,
    )


def begin_episodes(
    worlds: wp.array[int],
    mask: wp.array[bool],
    start_time: float,
    sample: wp.array[int],
    time: wp.array[wp.float64],
    episode: wp.array[int],
    active: wp.array[int],
) -> None:
    """Start episodes of worlds at a time [s], and list the worlds."""
    launch_kernel(
        begin_episode,
        dim=worlds.size,
        inputs=[worlds, mask, wp.float64(start_time)],
        outputs=[sample, time, episode, active],
        device=sample.device,
    )
