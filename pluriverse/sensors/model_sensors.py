"""ModelSensors: the sensors of robots, imported or added, measured in all worlds."""

import difflib
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
import warp as wp

from pluriverse.builder.sensors import SensorType
from pluriverse.launch import fill_struct
from pluriverse.model import Contacts, Control, Model, State
from pluriverse.model.arguments import check_seeding
from pluriverse.model.drive_effort import drive_arrays
from pluriverse.model.world_list import trust_worlds
from pluriverse.render import RayCaster, SeenGeometry
from pluriverse.render.raycast.tree import make_shared_trees
from pluriverse.sensors.accelerations import BodyAccelerations
from pluriverse.sensors.contact_reading import read_contacts_of_sensors
from pluriverse.sensors.contact_wrenches import sum_contact_wrenches
from pluriverse.sensors.corruption import NoiseModel, begin_episodes, corrupt_sensors, count_samples
from pluriverse.sensors.layout import SensorColumns, SensorLayout
from pluriverse.sensors.measure import SensedForces, SensedModel, SensedMotion, measure_sensors
from pluriverse.sensors.range_finders import find_ranges
from pluriverse.sensors.sensor_table import make_sensor_table
from pluriverse.types import EqType

# Longest delay in samples: 4096 worlds with 50 columns take 0.8 MB a sample.
DELAY_SAMPLES_MAX = 4096


class ModelSensors:
    """The readings of the sensors of all worlds: `simulation.sensors["imu_gyro"]`, shape [world, 3].

    Values are laid out as MuJoCo lays out `sensordata`: one row per world, with the sensors of a robot in the
    order of its file and quaternions as wxyz. `data` has the true values, `measured` those with noise, bias
    and delay; without these both are equal. Arrays keep their memory, and indexing by name gives a view.
    Columns of sensors that a world lacks are NaN.

    Positions and velocities are those of the state after a step; accelerations, forces and contacts are those
    of its last solver step. After a reset, before the first step, accelerations and contact forces count as
    zero. After steps that were not measured they are NaN, up to the next step (`forget_step`).

    Made by `Simulation.sensors`. By hand, call `measure_step` after each solver step.

    Args:
        model: The model.
        seed: Seed of noise, 0 to 2**31 - 1.
    """

    data: wp.array
    """True values, shape [world, column]."""
    measured: wp.array
    """The readings, shape [world, column]."""
    time: wp.array
    """Time since each world was reset [s], shape [world]. Resets before the sensors existed count if they
    were of all worlds."""

    def __init__(self, model: Model, *, seed: int = 0):
        self.model = model
        """The model."""
        self._layout = layout = SensorLayout(model)
        device, worlds = model.device, model.world_count
        empty = np.full((worlds, layout.width), np.nan, dtype=np.float32)
        self.data = wp.array(empty, dtype=wp.float32, device=device)
        self.measured = wp.array(empty, dtype=wp.float32, device=device)
        self.time = wp.zeros(worlds, dtype=wp.float64, device=device)
        self._count_max = int(np.diff(layout.start).max(initial=0))
        self._table = make_sensor_table(layout, device)
        self._everywhere: wp.array = wp.zeros(0, dtype=wp.bool, device=device)
        self._sound: wp.array = wp.zeros(worlds, dtype=wp.int32, device=device)
        kinds = {SensorType(code) for code in np.unique(layout.type).tolist()}
        self._types = kinds
        without = (SensorType.TOUCH, SensorType.JOINTACTUATORFRC, SensorType.CONTACT)
        self._needs_dynamics = any(kind.needs_step and kind not in without for kind in kinds)
        self._accelerations = BodyAccelerations(model) if self._needs_dynamics else None
        self._wrench = wp.zeros(model.body_count, dtype=wp.spatial_vectorf, device=device)
        self._caster: RayCaster | None = None
        if SensorType.RANGEFINDER in kinds:
            self._caster = RayCaster(model, geometry=SeenGeometry.ALL)
        distances = {SensorType.GEOMDIST, SensorType.GEOMNORMAL, SensorType.GEOMFROMTO}
        self._distances: Any = None
        if distances & kinds:
            from pluriverse.sensors.shape_distances import ShapeDistances  # its kernels take seconds to load

            self._distances = ShapeDistances(model)
        self._no_contacts = Contacts(model, 0)
        self._control = model.control()
        self._noise = self._make_noise(seed)
        self._version = 0
        self._lists: dict[int, wp.array] = {}
        self._is_corrupted = False
        self._has_delay = False
        self._adopt_authored()

    def _make_noise(self, seed: int) -> Any:
        device, worlds = self.model.device, self.model.world_count
        noise: Any = NoiseModel()
        for name in ("std", "bias_std", "bias_walk", "delay_low", "delay_high", "delay"):
            table = wp.zeros((worlds, max(self._count_max, 1)), dtype=wp.float32, device=device)
            setattr(noise, name, table)
        noise.bias = wp.zeros(self.data.shape, dtype=wp.float32, device=device)
        noise.history = wp.zeros((worlds, 0, self._layout.width), dtype=wp.float32, device=device)
        noise.sample = wp.zeros(worlds, dtype=wp.int32, device=device)
        noise.episode = wp.zeros(worlds, dtype=wp.int32, device=device)
        noise.identity = wp.array(np.arange(worlds, dtype=np.int32), dtype=wp.int32, device=device)
        noise.seed, _ = check_seeding(self.model, seed, None, "ModelSensors")
        noise.interval = 1.0
        return noise

    def _adopt_authored(self) -> None:
        """Adopt noise and delay that were imported with the sensors."""
        columns = self._layout.columns
        if not columns:
            return
        std, delay = columns["noise"][self._layout.row], columns["delay"][self._layout.row]
        column = np.arange(len(self._layout.row)) - self._layout.start[self._layout.world]
        for name, values in (("std", std), ("delay_low", delay), ("delay_high", delay), ("delay", delay)):
            table = getattr(self._noise, name).numpy()
            table[self._layout.world, column] = values
            getattr(self._noise, name).assign(table)
        self._is_corrupted = bool((std > 0.0).any() or (delay > 0.0).any())
        self._has_delay = bool((delay > 0.0).any())

    # What there is.

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all sensors, in the order of their columns."""
        return tuple(self._layout.names)

    @property
    def width(self) -> int:
        """Number of columns of a world."""
        return self._layout.width

    def __len__(self) -> int:
        return len(self._layout.names)

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __getitem__(self, name: str) -> wp.array:
        """Return the readings of a sensor in every world, shape [world, dim]; a view of `measured`.

        Raises:
            KeyError: If there is no sensor of this name, or a world has several.
        """
        columns = self._columns(name)
        return self.measured[:, columns.first : columns.first + columns.dim]

    def true(self, name: str) -> wp.array:
        """Return the true values of a sensor in every world, shape [world, dim]; a view of `data`.

        Raises:
            KeyError: If there is no sensor of this name, or a world has several.
        """
        columns = self._columns(name)
        return self.data[:, columns.first : columns.first + columns.dim]

    def type_of(self, name: str) -> SensorType:
        """Return what a sensor measures.

        Raises:
            KeyError: If there is no sensor of this name, or a world has several.
        """
        first = self._columns(name).first
        return SensorType(int(self._layout.type[np.flatnonzero(self._layout.column == first)[0]]))

    def worlds_with(self, name: str) -> np.ndarray:
        """Return the worlds that have a sensor, on the host.

        Raises:
            KeyError: If there is no sensor of this name, or a world has several.
        """
        first = self._columns(name).first
        return np.unique(self._layout.world[self._layout.column == first])

    def columns_of(self, world: int) -> np.ndarray:
        """Return the columns of a world in the order of its sensors: `data[world, columns]` has no gaps.

        Raises:
            IndexError: If there is no such world.
        """
        if not 0 <= world < self.model.world_count:
            raise IndexError(
                f"ModelSensors.columns_of: world {world} does not exist; the model has worlds 0 to "
                f"{self.model.world_count - 1}."
            )
        sensors = range(int(self._layout.start[world]), int(self._layout.start[world + 1]))
        parts = [self._layout.column[sensor] + np.arange(self._layout.dim[sensor]) for sensor in sensors]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)

    def _find(self, name: str) -> SensorColumns | None:
        names = self._layout.names
        if name in names:
            return names[name]
        columns = {
            int(self._layout.column[sensor])
            for sensor, label in enumerate(self._layout.label)
            if label == name or label.endswith(f"/{name}")
        }
        if len(columns) > 1:
            found = [known for known, group in names.items() if group.first in columns]
            raise KeyError(
                f"sensors: '{name}' could be any of {', '.join(found[:6])}. Name one of these, or its label."
            )
        return next((group for group in names.values() if group.first in columns), None)

    def _columns(self, name: str) -> SensorColumns:
        columns = self._find(name)
        if columns is None:
            close = difflib.get_close_matches(str(name), self._layout.names, 4, 0.4)
            known = ", ".join(close or list(self._layout.names)[:12])
            if not known:
                raise KeyError(
                    f"sensors: there is no sensor '{name}', and none at all: the robots of this model have "
                    "none. Add some with builder.add_sensor(...), or in the robot's file."
                )
            hint = "did you mean" if close else "there are"
            raise KeyError(f"sensors: there is no sensor '{name}'; {hint} {known}?")
        return columns

    # Noise.

    def set_noise(
        self,
        pattern: str = "*",
        *,
        std: Any = None,
        bias: Any = None,
        bias_walk: Any = None,
        delay: Any = None,
    ) -> list[str]:
        """Set the errors of sensors. Options not given do not change; bias and delay act from resets on.

        Args:
            pattern: Name of sensors, with wildcards.
            std: Standard deviation of the noise of each sample, in the unit of the sensor.
            bias: Standard deviation of the initial bias of a world.
            bias_walk: Random walk of the bias, per square root of a second.
            delay: Delay of values [s], one number, or a lowest and a highest between which each world draws
                one at its resets.

        Each of them is a number, or one per world, shape [world]; a delay (low, high) of either.

        Returns:
            The names concerned.

        Raises:
            KeyError: If the pattern finds nothing.
            ValueError: If a value is negative, not finite, or of another shape.
        """
        selected = [
            sensor
            for sensor, (name, label) in enumerate(zip(self._layout.name, self._layout.label, strict=True))
            if fnmatchcase(name, pattern) or fnmatchcase(label, pattern)
        ]
        if not selected:
            self._columns(pattern)  # raises, and lists the columns
        sensors = np.array(selected, dtype=np.int64)
        worlds = self._layout.world[sensors]
        offsets = sensors - self._layout.start[worlds]
        given = {"std": std, "bias_std": bias, "bias_walk": bias_walk}
        if delay is not None:
            low, high = delay if isinstance(delay, tuple) and len(delay) == 2 else (delay, delay)
            given |= {"delay_low": low, "delay_high": high}
        for name, value in given.items():
            if value is None:
                continue
            values = self._per_world(name, value)
            table = getattr(self._noise, name).numpy().copy()
            table[worlds, offsets] = values[worlds]
            getattr(self._noise, name).assign(table)
        if delay is not None:
            low_now, high_now = self._noise.delay_low.numpy(), self._noise.delay_high.numpy()
            if (low_now > high_now).any():
                raise ValueError("set_noise: the lowest delay is above the highest one. Pass (low, high).")
            self._has_delay = bool(high_now.max(initial=0.0) > 0.0)
        self._is_corrupted = True
        self._version += 1
        return list(dict.fromkeys(self._layout.name[sensor] for sensor in selected))

    def _per_world(self, name: str, value: Any) -> np.ndarray:
        try:
            values = np.broadcast_to(np.asarray(value, dtype=np.float64), (self.model.world_count,))
        except (TypeError, ValueError):
            raise ValueError(
                f"set_noise: {name} is {value!r}, but it must be a number or one per world, "
                f"{self.model.world_count} in all."
            ) from None
        if not (np.isfinite(values).all() and (values >= 0.0).all()):
            raise ValueError(f"set_noise: {name} is {value!r}, but it must be finite and >= 0.")
        return values.astype(np.float32)

    def set_seed(self, seed: int, *, identities: Sequence[int] | np.ndarray | None = None) -> None:
        """Set the seed of the noise. Call `Simulation.reset` to apply it.

        Args:
            seed: Seed, 0 to 2**31 - 1.
            identities: Identity on which the noise of each world depends, shape [world]; its index if None. A
                world of the same identity has the same noise in a batch of any size.

        Raises:
            ValueError: If a number is out of range, or there is not one identity per world.
        """
        number, selected = check_seeding(self.model, seed, identities, "set_seed")
        self._noise.identity.assign(selected)
        self._noise.episode.zero_()
        if number != self._noise.seed:  # which is part of the recording
            self._noise.seed = number
            self._version += 1

    @property
    def version(self) -> int:
        """Number that changes whenever earlier recorded steps are out of date."""
        return self._version

    @property
    def samples_every_substep(self) -> bool:
        """Whether values of every solver step are kept, since some sensors have a delay."""
        return self._has_delay

    @property
    def snapshot_arrays(self) -> dict[str, wp.array]:
        """Arrays that the sensors carry from step to step, by name."""
        noise = self._noise
        return {
            "sensors data": self.data,
            "sensors measured": self.measured,
            "sensors time": self.time,
            "sensors bias": noise.bias,
            "sensors delay": noise.delay,
            "sensors sample": noise.sample,
            "sensors episode": noise.episode,
        } | ({"sensors history": noise.history} if noise.history.size else {})

    # Measuring.

    def prepare(self, interval: float) -> None:
        """Allocate the history of delayed sensors for a sample time [s]; not during a recording.

        Raises:
            ValueError: If a delay is too long.
        """
        self._noise.interval = float(interval)
        depth = 0
        if self._has_delay:
            longest = float(self._noise.delay_high.numpy().max(initial=0.0))
            depth = int(np.floor(longest / interval + 0.5)) + 1
            if depth > DELAY_SAMPLES_MAX:
                raise ValueError(
                    f"sensors: a delay of {longest} s is {depth - 1} samples of {interval} s, more than "
                    f"{DELAY_SAMPLES_MAX - 1}. Choose a shorter delay."
                )
        if depth > self._noise.history.shape[1]:
            # A longer memory begins with what is read now.
            history = np.repeat(self.data.numpy()[:, None, :], depth, axis=1)
            self._noise.history = wp.array(history, dtype=wp.float32, device=self.model.device)
        if self._caster is not None:
            make_shared_trees(self._caster.arrays, self.model.body_q)

    def measure_step(
        self,
        worlds: wp.array[int],
        before: State,
        after: State,
        control: Control,
        contacts: Contacts,
        dt: float,
        *,
        elapsed: float | None = None,
        world_frozen: wp.array[int] | None = None,
        steps_body_axes: bool = False,
        has_explicit_drives: bool = False,
        stage_driven: wp.array[int] | None = None,
    ) -> None:
        """Measure worlds after a solver step. Only launches.

        Args:
            worlds: World indices, shape [slot].
            before: State that the step began from.
            after: Its result.
            control: Targets and efforts of the step.
            contacts: Contacts of the step with their forces.
            dt: Length of the step [s].
            elapsed: Time since these worlds were measured last [s]; `dt` if None.
            world_frozen: 1 for worlds that do not move and keep their values, shape [world]; None for none.
            steps_body_axes: Whether the solver steps angular velocities along the axes of bodies.
            has_explicit_drives: Whether drives act on the state before the step, or on that after it.
            stage_driven: 1 where a stage drives joints in place of the model, shape [dof]; None for nowhere.
        """
        frozen = self._sound if world_frozen is None else world_frozen
        count_samples(worlds, frozen, dt if elapsed is None else elapsed, self._noise.sample, self.time)
        driven = before if has_explicit_drives else after
        self._measure(
            worlds,
            before,
            after,
            driven,
            control,
            contacts,
            frozen,
            1.0 / dt,
            steps_body_axes=steps_body_axes,
            stage_driven=stage_driven,
        )
        if self._is_corrupted:
            self._corrupt(worlds, frozen, is_reset=False)

    def measure_state(
        self,
        worlds: wp.array[int],
        state: State,
        *,
        mask: wp.array[bool] | None = None,
        control: Control | None = None,
        start_time: float = 0.0,
    ) -> None:
        """Measure worlds that were reset to a state: their time, bias and delay restart. Only launches.

        Args:
            worlds: World indices, shape [slot].
            state: State of the worlds.
            mask: Mask of selected worlds, shape [world]; all of `worlds` if None or empty.
            control: Targets and efforts of drives; those of the model if None.
            start_time: What their clocks show [s].
        """
        mask = self._everywhere if mask is None else mask
        if worlds.size not in self._lists:
            empty = wp.empty(worlds.size, dtype=wp.int32, device=self.model.device)
            self._lists[worlds.size] = trust_worlds(empty)
        active = self._lists[worlds.size]
        begin_episodes(worlds, mask, start_time, self._noise.sample, self.time, self._noise.episode, active)
        self._measure(
            active, state, state, state, control or self._control, self._no_contacts, self._sound, 0.0
        )
        if self._is_corrupted:
            self._corrupt(active, self._sound, is_reset=True)

    def forget_step(self) -> list[str]:
        """Make NaN what only a step can give, since a step that was not measured led to the state.

        The next step gives it. Not during a recording.

        Returns:
            Names of the sensors concerned.
        """
        unknown = self._layout.columns_of_steps()
        for array in (self.data, self.measured, self._noise.history):
            values = array.numpy()
            places = unknown if array.ndim == 2 else unknown[:, None]
            array.assign(np.where(places, np.float32(np.nan), values))
        columns = set(np.flatnonzero(unknown.any(axis=0)).tolist())
        return [name for name, group in self._layout.names.items() if group.first in columns]

    def _measure(
        self,
        worlds: wp.array[int],
        before: State,
        after: State,
        driven: State,
        control: Control,
        contacts: Contacts,
        frozen: wp.array[int],
        rate: float,
        *,
        steps_body_axes: bool = False,
        stage_driven: wp.array[int] | None = None,
    ) -> None:
        if not self._count_max:
            return
        model = self.model
        forces = SensedForces()
        if self._accelerations is not None:
            sum_contact_wrenches(model, worlds, before, contacts, self._wrench)
            self._accelerations.launch(
                worlds, before, after, self._wrench, frozen, rate=rate, steps_body_axes=steps_body_axes
            )
            forces.acceleration = self._accelerations.acceleration
            forces.carried = self._accelerations.carried
        forces.drives = drive_arrays(model, control, stage_driven)
        forces.contact_start, forces.contact_count = contacts.slot_start, contacts.rigid_contact_count
        forces.shape0, forces.shape1 = contacts.rigid_contact_shape0, contacts.rigid_contact_shape1
        forces.point0, forces.point1 = contacts.rigid_contact_point0, contacts.rigid_contact_point1
        forces.normal, forces.force = contacts.rigid_contact_normal, contacts.rigid_contact_force
        measure_sensors(
            worlds,
            self._count_max,
            model,
            self._table,
            fill_struct(SensedModel, model.structure),
            tuple(fill_struct(SensedMotion, state) for state in (before, after, driven)),
            forces,
            frozen,
            self.time,
            self.data,
            self.measured,
        )
        count, readings = self._count_max, (self.data, self.measured)
        if SensorType.CONTACT in self._types:
            read_contacts_of_sensors(
                worlds, count, model, self._table, before.body_q, forces, frozen, *readings
            )
        if self._distances is not None:
            self._distances.launch(worlds, count, self._table, after, frozen, *readings)
        if self._caster is not None:
            find_ranges(
                worlds,
                self._count_max,
                self._caster,
                self._table,
                after,
                frozen,
                self._everywhere,
                self.data,
                self.measured,
            )

    def _corrupt(self, worlds: wp.array[int], frozen: wp.array[int], *, is_reset: bool) -> None:
        if self._count_max:
            corrupt_sensors(
                worlds,
                self._count_max,
                self._table,
                frozen,
                self.data,
                self._noise,
                self.measured,
                is_reset=is_reset,
            )

    @property
    def unread_forces(self) -> str:
        """Text on forces in this model that the sensors do not include; empty for none."""
        if not {SensorType.FORCE, SensorType.TORQUE} & self._types:
            return ""
        types = set(self.model.equality_constraint_type.numpy().tolist())
        if types - {int(EqType.JOINT)}:
            return "connect and weld constraints"
        return ""
