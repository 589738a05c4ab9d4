"""Control: the commands of a user from step to step."""

from typing import TYPE_CHECKING, Any

import warp as wp

from pluriverse.copying import Unpickled
from pluriverse.model.attributes import assign_custom_arrays, set_array
from pluriverse.model.drive_targets import DriveTargets
from pluriverse.model.schema import CONTROL_ARRAYS, ControlArrays
from pluriverse.model.world_list import check_worlds
from pluriverse.newton_names import explain_missing

_KEPT = tuple(name for name in CONTROL_ARRAYS if name != "joint_target_q")
"""The independent arrays; `joint_target_q` follows from `joint_target_pos`."""


class Control(Unpickled, ControlArrays):
    """Forces and drive targets of all degrees of freedom. Made by `Model.control`.

    Copies (`copy.copy`, `copy.deepcopy`) have arrays of their own.
    """

    pickle_remedy = "Pass its arrays, as joint_target_pos.numpy()."
    custom_arrays: dict[str, Any]
    """The custom attributes of controls, by their keys."""

    def __init__(
        self,
        joint_f: wp.array[float],
        targets: DriveTargets,
        joint_target_vel: wp.array[float],
        joint_act: wp.array[float],
    ):
        self.joint_f = wp.clone(joint_f)
        self._targets = targets.clone()
        self.joint_target_pos = self._targets.by_dof
        self.joint_target_q = self._targets.by_coord
        self.joint_target_vel = wp.clone(joint_target_vel)
        self.joint_act = wp.clone(joint_act)
        self.custom_arrays = {}

    def __copy__(self) -> "Control":
        result: Control = vars(self)["_model"].control()
        result.assign(self)
        return result

    def __setattr__(self, name: str, value: Any) -> None:
        set_array(self, name, value, owner="Control")

    @property
    def joint_target_qd(self) -> wp.array[float]:
        """Another name of `joint_target_vel`."""
        return self.joint_target_vel

    @joint_target_qd.setter
    def joint_target_qd(self, values: Any) -> None:
        self.joint_target_vel = values

    def unify_targets(self, worlds: wp.array[int] | None = None) -> None:
        """Make `joint_target_pos` and `joint_target_q` agree, which every step of a solver does first.

        Args:
            worlds: World indices, shape [slot]; None for all.
        """
        model = getattr(self, "_model", None)
        if worlds is not None and model is not None:
            worlds = check_worlds(model, worlds, what="Control.unify_targets")
        self._targets.unify(worlds)

    if not TYPE_CHECKING:
        __getattr__ = explain_missing("Control")

    def clear(self) -> None:
        """Set all forces and all targets to zero (targets do not return to those of the model).

        Custom attributes keep their values.
        """
        self.joint_f.zero_()
        self.joint_target_pos.zero_()
        self._targets.prefer_dofs()
        self.joint_target_vel.zero_()
        self.joint_act.zero_()

    def assign(self, other: "Control") -> None:
        """Copy every array of `other`, a control of the same model.

        Raises:
            ValueError: If `other` belongs to a model with another number of degrees of freedom.
        """
        if self.joint_f.size != other.joint_f.size:
            raise ValueError(
                f"Control.assign: there are {self.joint_f.size} degrees of freedom here and "
                f"{other.joint_f.size} in the other control. Assign controls of the same model only."
            )
        self._targets.assign(other._targets)
        for name in _KEPT:
            wp.copy(getattr(self, name), getattr(other, name))
        assign_custom_arrays(self, other)

    def arrays(self) -> dict[str, wp.array]:
        """Return every array by its name, custom attributes by their keys; targets by degree of freedom."""
        self.unify_targets()
        custom = {key: array for key, array in self.custom_arrays.items() if isinstance(array, wp.array)}
        return {name: getattr(self, name) for name in _KEPT} | custom
