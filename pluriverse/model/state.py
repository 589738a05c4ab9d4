"""State: the quantities that change from step to step."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pluriverse.copying import Unpickled
from pluriverse.model.archive import check_fit, read_arrays, take_array, write_arrays
from pluriverse.model.attributes import assign_custom_arrays, set_array, share_custom_arrays
from pluriverse.model.schema import REQUESTED_ARRAYS, STATE_ARRAYS, StateArrays
from pluriverse.newton_names import explain_missing


class State(Unpickled, StateArrays):
    """Positions, velocities and external forces of all worlds at one time. Made by `Model.state`.

    Assigning to an array copies the values into it, since recorded steps hold its memory. Copies of a state
    (`copy.copy`, `copy.deepcopy`) have arrays of their own.
    """

    pickle_remedy = "Write it to a file with save(), or pass its arrays, as joint_q.numpy()."
    custom_arrays: dict[str, Any]
    """The custom attributes of states, by their keys."""

    def __init__(
        self,
        joint_q: wp.array[float],
        joint_qd: wp.array[float],
        body_q: wp.array[wp.transform],
        body_qd: wp.array[wp.spatial_vectorf],
    ):
        self.joint_q = wp.clone(joint_q)
        self.joint_qd = wp.clone(joint_qd)
        self.body_q = wp.clone(body_q)
        self.body_qd = wp.clone(body_qd)
        self.body_f = wp.zeros(body_q.size, dtype=wp.spatial_vectorf, device=body_q.device)
        for name in REQUESTED_ARRAYS:
            setattr(self, name, None)
        self.custom_arrays = {}

    def __setattr__(self, name: str, value: Any) -> None:
        set_array(self, name, value, owner="State")

    if not TYPE_CHECKING:
        __getattr__ = explain_missing("State")

    def __copy__(self) -> "State":
        result: State = vars(self)["_model"].state()
        result.assign(self)
        return result

    @property
    def requires_grad(self) -> bool:
        """False: steps are not differentiable."""
        return False

    @property
    def joint_coord_count(self) -> int:
        """Number of joint coordinates."""
        return int(self.joint_q.size)

    @property
    def joint_dof_count(self) -> int:
        """Number of joint degrees of freedom."""
        return int(self.joint_qd.size)

    @property
    def body_count(self) -> int:
        """Number of bodies."""
        return int(self.body_q.size)

    def clear_forces(self) -> None:
        """Set the external forces of all bodies to zero."""
        self.body_f.zero_()

    def assign(self, other: "State") -> None:
        """Copy every array of `other`, a state of the same model. Those that it was made without become zero.

        Raises:
            ValueError: If `other` belongs to a model with other counts.
        """
        self.check_counts(other, "State.assign")
        for name in STATE_ARRAYS:
            target, source = getattr(self, name), getattr(other, name)
            if target is None:
                continue
            if source is None:
                target.zero_()
            else:
                wp.copy(target, source)
        assign_custom_arrays(self, other)

    def share_inputs(self, other: "State") -> None:
        """Share the memory of external forces and custom attributes with a state of the same model."""
        object.__setattr__(self, "body_f", other.body_f)
        share_custom_arrays(self, other)

    def arrays(self) -> dict[str, wp.array]:
        """Return every array by its name, custom attributes by their keys."""
        custom = {key: array for key, array in self.custom_arrays.items() if isinstance(array, wp.array)}
        own = {name: getattr(self, name) for name in STATE_ARRAYS}
        return {name: array for name, array in own.items() if array is not None} | custom

    def save(self, path: str | Path) -> None:
        """Write every array to a file, bit for bit: a NumPy archive (`.npz`) of plain arrays."""
        write_arrays(path, {name: array.numpy() for name, array in self.arrays().items()})

    def load(self, path: str | Path) -> None:
        """Copy every array from a file that `save` made of a state of the same model; nothing is unpickled.

        Arrays on request that the saved state was made without become zero.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is damaged, or belongs to a model with other counts. The state is then
                left as it is.
        """
        arrays = read_arrays(path, "a state")
        own = self.arrays()
        for name in REQUESTED_ARRAYS:
            if name in own and name not in arrays:
                arrays[name] = np.zeros_like(own[name].numpy())
        values = {name: take_array(arrays, name, path, "a state") for name in own}
        for name, array in own.items():
            check_fit(array, values[name], f"'{path}': {name}")
        for name, array in own.items():
            array.assign(values[name])

    def check_counts(self, other: "State", what: str) -> None:
        """Raise if another state cannot belong to the same model.

        Raises:
            ValueError: If a count differs; `what` names the operation.
        """
        for name in ("joint_coord_count", "joint_dof_count", "body_count"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine != theirs:
                raise ValueError(
                    f"{what}: {name} is {mine} here and {theirs} in the other state. "
                    "Assign states of the same model only."
                )
