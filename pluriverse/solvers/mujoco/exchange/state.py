"""StateExchange: what every engine does before and after MuJoCo's step.

Before a step State and Control become rows of MuJoCo's data (`push`). After it the rows become the new State,
with body poses from our own forward kinematics, and worlds without a valid new state keep the old one
(`pull`).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.forward_kinematics import eval_fk_of_worlds
from pluriverse.model import Control, Model, State
from pluriverse.model.world_selection import WorldSelection
from pluriverse.solvers.mujoco.exchange.joints import pull_worlds, push_worlds
from pluriverse.solvers.mujoco.exchange.maps import (
    ExchangeRows,
    assign_activations,
    assign_rotations,
    make_maps,
)
from pluriverse.solvers.mujoco.exchange.prescribed import pull_kinematic_joints, push_kinematic_joints
from pluriverse.solvers.mujoco.exchange.restore import count_coordinates, restore_worlds
from pluriverse.solvers.mujoco.mapping.group import MujocoGroup
from pluriverse.solvers.unfreeze import unfreeze_worlds


class StateExchange:
    """The rows of all worlds, and their conversion from State and Control and back.

    Args:
        model: Model that is stepped.
        groups: Its groups.
        real: Type of the numbers in rows.
        interval: Number of steps between readings of the joint state from the State; in other steps, and
            always if 0, worlds continue from MuJoCo's own state.
    """

    def __init__(self, model: Model, groups: Sequence[MujocoGroup], real: Any, interval: int):
        self.model, self.groups, self._interval = model, groups, interval
        count, device = model.world_count, model.device
        self.maps = make_maps(model, groups)
        """Positions of the entities of every world in the rows."""
        self.rows = ExchangeRows(groups, real, device)
        """The rows of MuJoCo's data of all worlds."""
        self.known: Any = wp.zeros(count, dtype=int, device=device)
        """1 where the rows are what the last step left, shape [world]."""
        self.age: Any = wp.zeros(count, dtype=int, device=device)
        """Steps since the state was last read, shape [world]."""
        self.stepped: Any = wp.zeros(count, dtype=int, device=device)
        """1 where the rows hold a new, finite state, which engines write, shape [world]."""
        self.writes_bodies = True
        """Whether steps that are launched now write the bodies of the new state."""
        self.has_outdated_bodies = False
        """Whether the bodies of the old state were left out by the step before."""
        self._coord_count = count_coordinates(model)

    @property
    def runtime_arrays(self) -> dict[str, wp.array]:
        """Arrays that worlds carry from step to step besides their State, by name."""
        names = ("qpos", "qvel", "act", "qacc_warmstart", "time")
        rows = {name: getattr(self.rows, name) for name in names}
        return {**rows, "world_known": self.known, "world_age": self.age}

    def push(
        self,
        worlds: wp.array,
        state_in: State,
        control: Control,
        world_frozen: wp.array,
        dt: float,
        *,
        follows: bool = False,
    ) -> None:
        """Write the inputs of a step of `dt` [s] into the rows; frozen worlds are skipped. Only launches.

        With `follows`, state and control are as the step before left them. Most rows then are, too.
        """
        push_worlds(
            self.model,
            worlds,
            self.maps,
            self.rows,
            state_in,
            control,
            world_frozen,
            self.known,
            self.age,
            interval=self._interval,
            is_kept=follows and self._interval == 1 and not self.model.has_kinematic_bodies,
        )
        push_kinematic_joints(self.model, worlds, self.maps, self.rows, state_in, control, dt)

    def pull(
        self,
        worlds: wp.array,
        state_in: State,
        state_out: State,
        control: Control,
        world_frozen: wp.array,
        dt: float,
    ) -> None:
        """Write `state_out` from the rows; worlds that were not stepped keep `state_in`. Only launches."""
        model, stepped = self.model, self.stepped
        pull_worlds(model, worlds, self.maps, self.rows, state_in, state_out, stepped)
        pull_kinematic_joints(model, worlds, self.maps, state_in, state_out, control, stepped, dt)
        if self.writes_bodies:
            eval_fk_of_worlds(model, worlds, state_out)
            restore_worlds(
                model,
                worlds,
                self._coord_count,
                state_in,
                state_out,
                stepped,
                world_frozen,
                keeps_bodies=self.has_outdated_bodies,
            )

    def assign_group(self, index: int) -> None:
        """Write what depends on the model alone: mocap bodies, constraints, joint frames, activations."""
        group = self.groups[index]
        assign_rotations(self.maps, group)
        if group.model.na:
            assign_activations(self.maps, self.groups)
        values = {
            "mocap_pos": group.mocap_pose[:, :, :3],
            "mocap_quat": group.mocap_pose[:, :, 3:],
            "eq_active": group.value("eq_active0"),
        }
        for name, value in values.items():
            rows = self.rows.of_group(self.groups, index, name)
            if rows.size:
                rows.assign(np.ascontiguousarray(value).reshape(rows.shape))

    def tracked_rows(self, index: int) -> dict[str, wp.array]:
        """Return the rows of a group that depend on the model alone, flat, by name."""
        names = ("mocap_pos", "mocap_quat", "eq_active")
        return {name: self.rows.of_group(self.groups, index, name).flatten() for name in names}

    def reset(self, selection: WorldSelection) -> None:
        """Restart worlds from their State. Only launches."""
        unfreeze_worlds(selection, self.known)
