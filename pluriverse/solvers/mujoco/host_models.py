"""Preparation of MuJoCo's models for its C engine."""

import warnings
from collections.abc import Sequence

import mujoco

from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.warnings import PluriverseWarning


def prepare_models(groups: Sequence[MujocoGroup]) -> None:
    """Make MuJoCo report a bad state instead of resetting to the model's initial one.

    Also switch sleeping off, which needs separate data for each world.
    """
    sleep = int(mujoco.mjtEnableBit.mjENBL_SLEEP)
    for group in groups:
        option = group.model.opt
        option.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_AUTORESET)
        if option.enableflags & sleep:
            option.enableflags &= ~sleep
            warnings.warn(
                PluriverseWarning(
                    f"SolverMuJoCo: world {int(group.worlds[0])} and those like it enable sleeping, "
                    "for which MuJoCo's engine on a CPU needs separate data for each world. It is "
                    "switched off: bodies at rest are computed like all others."
                ),
                stacklevel=3,
            )
