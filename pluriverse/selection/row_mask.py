"""Row mask: which rows of a view an operation concerns, from masks or indices on host or device."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import array_of, launch_kernel
from pluriverse.model import Model
from pluriverse.model.indices import (
    INDEX_TYPES,
    MASK_TYPES,
    IndexKind,
    count_wrong_indices,
    device_array,
    narrow_indices,
    read_mask,
)


@wp.kernel(enable_backward=False, module="pluriverse.selection.row_mask")
def spread_world_mask(
    row_slot: wp.array[int],  # [row] world of the view
    mask: wp.array[bool],  # [world of the view]
    selected: wp.array[bool],  # [row]
):
    """Select one row if its world is selected."""
    row, _ = wp.tid()
    selected[row] = mask[row_slot[row]]


@wp.kernel(enable_backward=False, module="pluriverse.selection.row_mask")
def mark_row(
    indices: wp.array[int],  # [entry] row
    selected: wp.array[bool],  # [row]
):
    """Select the row of one entry; invalid entries are ignored here and counted elsewhere."""
    thread, _ = wp.tid()
    row = indices[thread]
    if row >= 0 and row < selected.shape[0]:
        selected[row] = True


class RowMask:
    """Turns masks and indices into one truth value per row, without allocating for those on the device.

    Args:
        row_shape: Shape of the rows.
        row_slot: World of the view of each row, shape [row].
        world_count: Worlds of the view.
        model: Model of the view.
    """

    all_rows: wp.array[bool]
    """The empty mask, which stands for all rows."""

    def __init__(
        self, row_shape: tuple[int, ...], row_slot: np.ndarray, world_count: int, model: Model
    ) -> None:
        device = model.device
        self.row_shape = row_shape
        self.count = len(row_slot)
        self.world_count = world_count
        self.device = device
        self._index_errors = model.index_errors
        self._slots_host = row_slot
        self._slots = array_of(row_slot.astype(np.int32), wp.int32, device)
        self._selected = wp.zeros(self.count, dtype=wp.bool, device=device)
        self.all_rows = wp.zeros(0, dtype=wp.bool, device=device)

    def selected(self, mask: Any, indices: Any, *, what: str) -> wp.array[bool]:
        """Return the truth value of each row, empty for all rows.

        Raises:
            IndexError: If an index on the host names no row.
            TypeError: If a mask is not made of truth values, or indices not of whole numbers.
            ValueError: If both are given, or a shape or device is wrong.
        """
        if mask is not None and indices is not None:
            raise ValueError(f"{what}: both mask and indices were given; choose the rows one way only.")
        if mask is not None:
            return self._from_mask(mask, what)
        if indices is not None:
            return self._from_indices(indices, what)
        return self.all_rows

    def _from_mask(self, mask: Any, what: str) -> wp.array[bool]:
        on_host = _on_host(mask)
        values = np.asarray(mask) if on_host else _on_device(mask, self.device, f"{what}: mask")
        if values.dtype not in ((np.dtype(bool),) if on_host else MASK_TYPES):
            raise TypeError(
                f"{what}: mask is of type {_name(values.dtype)}, but must be made of truth values (bool, or "
                "uint8 on the device)."
            )
        shape = tuple(values.shape)
        accepted = dict.fromkeys([self.row_shape, (self.count,), (self.world_count,)])
        if shape not in accepted:
            raise ValueError(
                f"{what}: mask has shape {shape}, but must have "
                f"{' or '.join(str(known) for known in accepted)}."
            )
        of_worlds = shape == (self.world_count,) and shape != (self.count,)
        if on_host:
            rows = values[self._slots_host] if of_worlds else values.reshape(-1)
            return array_of(np.ascontiguousarray(rows), wp.bool, self.device)
        values = read_mask(values if values.is_contiguous else values.contiguous())
        if not of_worlds:
            return values.flatten()
        launch_kernel(
            spread_world_mask,
            dim=self.count,
            inputs=[self._slots, values],
            outputs=[self._selected],
            device=self.device,
        )
        return self._selected

    def _from_indices(self, indices: Any, what: str) -> wp.array[bool]:
        if _on_host(indices):
            rows = np.asarray(indices)
            if rows.size == 0:
                rows = rows.astype(np.int64)
            if rows.dtype.kind not in "iu":
                raise TypeError(f"{what}: indices are of type {rows.dtype}, but must be whole numbers.")
            bad = rows[(rows < 0) | (rows >= self.count)]
            if bad.size:
                raise IndexError(
                    f"{what}: there is no row {int(bad.flat[0])}; the view has {self.count} rows."
                )
            selected = np.zeros(self.count, dtype=bool)
            selected[rows] = True
            return array_of(selected, wp.bool, self.device)
        rows = _on_device(indices, self.device, f"{what}: indices")
        if rows.dtype not in INDEX_TYPES or rows.ndim != 1:
            raise TypeError(
                f"{what}: indices are of type {_name(rows.dtype)} with {rows.ndim} axes, but must be of 32 "
                "or 64 bits with one axis."
            )
        count_wrong_indices(rows, self.count, IndexKind.ROW, self._index_errors)
        rows = narrow_indices(rows)
        self._selected.zero_()
        launch_kernel(mark_row, dim=rows.size, inputs=[rows], outputs=[self._selected], device=self.device)
        return self._selected


def _on_host(values: Any) -> bool:
    return isinstance(values, np.ndarray) or not (
        isinstance(values, wp.array) or hasattr(values, "__dlpack__")
    )


def _on_device(values: Any, device: Any, what: str) -> Any:
    array: Any = device_array(values)
    if array.device != device:
        raise ValueError(
            f"{what} is on {array.device}, but the view's model is on {device}. Move it there first."
        )
    return array


def _name(dtype: Any) -> str:
    return str(getattr(dtype, "__name__", dtype))
