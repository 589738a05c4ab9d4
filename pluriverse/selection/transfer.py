"""Transfer: gather entries of an array of the model, or scatter values into it.

Reads   the array, or the values; index and row of each entry; which rows are selected
Writes  the values, or the selected entries of the array; all others stay as they are

Entries are moved as machine words, so that one pair of kernels serves every type.
"""

from types import SimpleNamespace
from typing import Any

import warp as wp

from pluriverse.launch import launch_kernel, made_once, same_memory

# Bytes of a word. Every type of a model is made of whole words, except truth values.
WORD_BYTES = 4


@made_once
def _kernels(word: Any) -> SimpleNamespace:
    @wp.kernel(enable_backward=False, module=f"pluriverse.selection.transfer.{word.__name__}")
    def gather_entry(
        index: wp.array[int],  # [entry] index in the source
        value_index: wp.array[int],  # [entry] index among the values; empty: in order
        source: wp.array2d[word],  # [entity, word]
        values: wp.array2d[word],  # [element, word]
    ):
        """Copy one entry out of an array."""
        entry, _ = wp.tid()
        target = entry
        if value_index.shape[0] > 0:
            target = value_index[entry]
        origin = index[entry]
        for k in range(source.shape[1]):
            values[target, k] = source[origin, k]

    @wp.kernel(enable_backward=False, module=f"pluriverse.selection.transfer.{word.__name__}")
    def scatter_entry(
        index: wp.array[int],  # [entry] index in the target
        value_index: wp.array[int],  # [entry] index among the values; empty: in order
        entry_row: wp.array[int],  # [entry] row of the view
        selected: wp.array[bool],  # [row]; empty: all
        values: wp.array2d[word],  # [element, word]
        target: wp.array2d[word],  # [entity, word]
    ):
        """Copy one entry into an array, if its row is selected."""
        entry, _ = wp.tid()
        if selected.shape[0] > 0:
            if not selected[entry_row[entry]]:
                return
        origin = entry
        if value_index.shape[0] > 0:
            origin = value_index[entry]
        goal = index[entry]
        for k in range(values.shape[1]):
            target[goal, k] = values[origin, k]

    return SimpleNamespace(gather_entry=gather_entry, scatter_entry=scatter_entry)


def _word_of(array: wp.array) -> Any:
    return wp.uint8 if wp.types.type_size_in_bytes(array.dtype) % WORD_BYTES else wp.uint32


def _as_words(array: wp.array, row_count: int, word: Any) -> wp.array:
    """Return a contiguous array as [row, word], in the same memory."""
    byte_count = array.size * wp.types.type_size_in_bytes(array.dtype)
    word_count = byte_count // (max(row_count, 1) * wp.types.type_size_in_bytes(word))
    return same_memory(array, word, (row_count, word_count))


def gather(
    index: wp.array, value_index: wp.array, source: wp.array, values: wp.array, value_count: int
) -> None:
    """Copy the entries at `index` of `source` to `values`, in order or to given positions."""
    if index.size == 0:
        return
    word = _word_of(source)
    launch_kernel(
        _kernels(word).gather_entry,
        dim=index.size,
        inputs=[index, value_index, _as_words(source, source.shape[0], word)],
        outputs=[_as_words(values, value_count, word)],
        device=source.device,
    )


def scatter(
    index: wp.array,
    value_index: wp.array,
    entry_row: wp.array,
    selected: wp.array,
    values: wp.array,
    value_count: int,
    target: wp.array,
) -> None:
    """Copy `values` to the entries at `index` of `target`, where the row is selected."""
    if index.size == 0:
        return
    word = _word_of(target)
    launch_kernel(
        _kernels(word).scatter_entry,
        dim=index.size,
        inputs=[index, value_index, entry_row, selected, _as_words(values, value_count, word)],
        outputs=[_as_words(target, target.shape[0], word)],
        device=target.device,
    )
