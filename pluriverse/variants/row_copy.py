"""Row copy: copy the values of variants from tables into the worlds of their environments.

Reads   environment_world, environment_tuple, environment_variant; a table of one array of the model
Writes  that array and its defaults

Values are copied bitwise, so that one kernel serves all types of four bytes.
"""

from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel, made_once


@made_once
def _copy_kernel(dtype: Any) -> Any:
    @wp.kernel(enable_backward=False, module=f"pluriverse.variants.row_copy.{dtype.__name__}")
    def copy_variant_row(
        environments: wp.array[int],  # [slot] the environments of this launch
        mask: wp.array[bool],  # [environment] which of them; empty: all
        environment_world: wp.array[int],  # [environment]
        environment_tuple: wp.array[int],  # [environment] which layouts its world has
        environment_variant: wp.array[int],  # [environment] variant of the entity
        variant_row: wp.array[int],  # [variant] row in the table, -1 if of another layout
        world_first: wp.array[int],  # [world] first entity of the world
        tuple_offset: wp.array[int],  # [tuple] entities of the world before those of the variant
        words: int,  # per entity
        table: wp.array2d[dtype],  # [row, word]
        # out
        values: wp.array[dtype],  # [entity word]
        defaults: wp.array[dtype],  # [entity word]
    ):
        """Copy the row of one environment."""
        thread, _ = wp.tid()
        environment = environments[thread]
        if environment < 0 or environment >= environment_world.shape[0]:
            return  # an index on the device that names no environment
        if mask.shape[0] > 0:
            if not mask[environment]:
                return
        row = variant_row[environment_variant[environment]]
        if row < 0:
            return  # the variant has another layout, whose world brings its own numbers
        first = world_first[environment_world[environment]] + tuple_offset[environment_tuple[environment]]
        for word in range(table.shape[1]):
            value = table[row, word]
            values[first * words + word] = value
            defaults[first * words + word] = value

    return copy_variant_row


def copy_variant_rows(
    environments: wp.array[int], mask: wp.array[bool], inputs: list[Any], outputs: list[Any]
) -> None:
    """Copy the rows of environments; `inputs` and `outputs` are the rest of the kernel's arguments."""
    launch_kernel(
        _copy_kernel(outputs[0].dtype),
        dim=environments.size,
        inputs=[environments, mask, *inputs],
        outputs=outputs,
        device=environments.device,
    )
