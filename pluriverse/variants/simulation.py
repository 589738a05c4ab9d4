"""Simulation of a scene with variants: environments change their variants without rebuilding anything.

Changing to a variant of the same layout copies values from tables into the model. Changing to another layout
switches the world: every environment has a world for each tuple of layouts, or takes a free one of a shared
pool, and the list of stepped worlds names another one. Both only launch kernels, which may be recorded
together with the steps.
"""

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.forward_kinematics import eval_fk_of_worlds
from pluriverse.model.world_selection import Environments, WorldSelection, resolve_worlds
from pluriverse.simulation import Simulation, SimulationReport, SimulationSnapshot
from pluriverse.simulation.chunks import split_worlds
from pluriverse.simulation.snapshot import check_structure
from pluriverse.stages import passing_drives_on
from pluriverse.variants.contents import SceneContents
from pluriverse.variants.switching import Switching
from pluriverse.warnings import SimulationError, SimulationWarning

# Prefix of the names of this module's arrays in a snapshot.
_PREFIX = "variants/"


@dataclasses.dataclass
class VariantScene(SceneContents):
    """A scene of many environments, ready to be simulated. Made by `make_scene`."""

    def simulation(self, **options: Any) -> "VariantSimulation":
        """Return a `VariantSimulation`; options as of `Simulation`, among them the time step `dt` [s]."""
        return VariantSimulation(self, **options)


class VariantSimulation(Simulation):
    """Steps the environments of a scene with variants. Made by `VariantScene.simulation`.

    The content of an environment may change. It is simulated in the environment's world, which changes too if
    the scene is `reassignable` and the variants differ in layout.

    Args:
        scene: The scene.
        **options: As of `Simulation`.

    Raises:
        ValueError: If variants share layouts and the solver cannot change between them.
    """

    def __init__(self, scene: VariantScene, **options: Any) -> None:
        solver = options.pop("solver", None)
        super().__init__(scene.model, solver, **options)
        if scene.config.reassignable and not scene.tables.is_empty:
            self.solver.track_model(dict.fromkeys(scene.tables.names), meshes=list(scene.mesh_rows()))
        self._scene = scene
        self._switching = Switching(scene)
        self._reset_hooks: list[Callable[[WorldSelection], None]] = []
        self._reported_fallbacks = 0
        self._environments = Environments(scene.model, scene.environment_count)

    @property
    def scene(self) -> VariantScene:
        """The scene."""
        return self._scene

    @property
    def environment_count(self) -> int:
        """Number of environments."""
        return self._scene.environment_count

    @property
    def environment_world(self) -> wp.array[int]:
        """World of each environment, on the device, shape [environment]."""
        return self._switching.environment_world

    @property
    def episode(self) -> wp.array[int]:
        """Number of reassignments of each environment, on the device, shape [environment]."""
        return self._switching.episode

    @property
    def world_to_variant(self) -> dict[str, wp.array[int]]:
        """Variant of each environment by entity, on the device, shape [environment].

        Indices count in the order in which the variants were declared. Only entities with variants are
        listed.
        """
        return {
            name: self._switching.variant[name]
            for name, entity in self._scene.entities.items()
            if entity.has_variants
        }

    def world_to_variant_tensors(self) -> dict[str, Any]:
        """Return `world_to_variant` as PyTorch tensors on the memory of its arrays, which they follow."""
        return {name: wp.to_torch(variant) for name, variant in self.world_to_variant.items()}

    @property
    def per_world_default_fields(self) -> dict[str, Any]:
        """Default values of the arrays of the model that depend on variants, in the shapes of those arrays.

        They follow when an environment changes its variant. Empty for scenes without variants.
        """
        return self._scene.per_world_default_fields

    @property
    def fallback_count(self) -> wp.array[int] | None:
        """Number of times that each environment got a variant of another layout than it had drawn.

        This happens if environments share worlds (`SceneCfg.prepared_worlds`) and none was free; None if they
        do not share. On the device, shape [environment].
        """
        pool = self._switching.pool
        return None if pool is None else pool.fallback_count

    def add_reset_hook(self, restore: Callable[[WorldSelection], None]) -> None:
        """Register a function that restores properties of environments when they get another one's world.

        A `Randomizer` of this simulation registers itself. Without shared worlds it is never called.

        Args:
            restore: Called with the environments, by `reassign`; only launches kernels.
        """
        self._reset_hooks.append(restore)

    def report(self) -> SimulationReport:
        """Return the figures so far, as `Simulation.report`.

        Warns of environments that found no free world too, or raises in strict mode (`SimulationError`).
        """
        if self.fallback_count is not None:
            self._report_fallbacks(self.fallback_count.numpy())
        return super().report()

    def _report_fallbacks(self, counts: np.ndarray) -> None:
        """Report once how often environments got another variant than drawn."""
        new = int(counts.sum()) - self._reported_fallbacks
        self._reported_fallbacks += max(new, 0)
        if new <= 0:
            return
        environments = np.flatnonzero(counts).tolist()
        message = (
            f"{new} time(s) an environment got another variant than it was to have, among them environment "
            f"{environments[0]}, since all prepared worlds of its layouts were taken. Choose variants by the "
            "weights that worlds were prepared for, or prepare worlds for each environment "
            "(prepared_worlds=PreparedWorlds.OWN)."
        )
        if self._strict:
            raise SimulationError(message, environments)
        warnings.warn(SimulationWarning(message, environments), stacklevel=3)

    def variant_rows(self, name: str) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Yield the defaults of all variants that share layouts; see `VariantScene.variant_rows`."""
        return self._scene.variant_rows(name)

    def resolve_environments(self, environments: Any, *, what: str) -> WorldSelection:
        """Return the environments selected by indices or truth values, like `resolve_worlds` for worlds."""
        return resolve_worlds(self._environments, environments, what=what)

    def worlds_of(self, environments: Any, *, what: str = "VariantSimulation.worlds_of") -> WorldSelection:
        """Return the worlds in which environments are simulated now, without reading anything back.

        Args:
            environments: Indices or one truth value per environment, on host or device; None for all.
            what: The operation, for messages.

        Raises:
            IndexError: If there is no such environment.
            TypeError: If `environments` are neither whole numbers nor truth values.
            ValueError: If a mask has not one entry per environment, or an array is on another device.
        """
        return self._switching.worlds_of(self.resolve_environments(environments, what=what))

    def reassign(self, environments: Any = None, *, variants: Mapping[str, Any] | None = None) -> None:
        """Give environments new variants, and reset them to the initial state of these.

        Without `variants`, each entity with variants draws one by the weights of its assignment, as a
        function of the seed of the scene, the index of the environment and the number of its reassignments,
        but not of other environments. Drives get the targets of the new variant. Only kernels are launched,
        so the call may be recorded into a graph.

        Args:
            environments: Indices or one truth value per environment, on host or device; None for all.
            variants: Variant of every environment by entity, on host or device, shape [environment]; only the
                values of selected environments are used. Entities not named keep their variant.

        Raises:
            IndexError: If there is no such environment.
            KeyError: If `variants` names no entity with variants.
            RuntimeError: If the scene is not reassignable.
            TypeError: If `environments` are neither whole numbers nor truth values.
            ValueError: If a mask or an array of variants has not one entry per environment, or an index on
                the host names no variant.
        """
        if not self._scene.config.reassignable:
            raise RuntimeError(
                "VariantSimulation.reassign: the scene was made with fixed variants. Make it with "
                "SceneCfg(reassignable=True)."
            )
        selection = self.resolve_environments(environments, what="VariantSimulation.reassign")
        with passing_drives_on(self.stages):
            self._switching.switch(selection, variants)
        self._tell_stages(selection)
        if self._switching.pool is not None:
            for restore in self._reset_hooks:  # undo the random changes of the previous environment
                restore(selection)
        if not self._scene.tables.is_empty:
            self.solver.sync_worlds(self._switching.worlds_of(selection))
        self._switching.set_targets(selection, self.control)
        self._return_worlds(selection)

    def reset(self, worlds: Any = None, *, state: Any = None) -> None:
        """Reset environments (default: all) to a state; see `Simulation.reset`.

        Args:
            worlds: Indices of environments, or one truth value per environment; None for all.
            state: State, or snapshot, to take them from; None for the initial state of their variants.
        """
        if worlds is None:
            super().reset(None, state=state)
            return
        selection = self.resolve_environments(worlds, what="VariantSimulation.reset")
        super().reset(self._switching.worlds_of(selection), state=state)

    def save(self, path: str | Path | None = None) -> SimulationSnapshot:
        """Return a copy of everything that changes, as `Simulation.save` does, with the variants held.

        Args:
            path: File to write it to as well; None for none.
        """
        snapshot = super().save()
        for name, array in self._switching.arrays().items():
            snapshot.solver_arrays[_PREFIX + name] = wp.clone(array)
        if path is not None:
            snapshot.write(path)
        return snapshot

    def restore(self, snapshot: SimulationSnapshot | str | Path) -> None:
        """Restore a snapshot, with the variants that environments held then; see `Simulation.restore`.

        Raises:
            FileNotFoundError: If there is no such file.
            ValueError: If the file is damaged, or of a scene of another structure.
        """
        if not isinstance(snapshot, SimulationSnapshot):
            snapshot = SimulationSnapshot.read(snapshot, self.model)
        check_structure(snapshot.structure, self.model, "VariantSimulation.restore")
        own: dict[str, Any] = {}
        rest: dict[str, Any] = {}
        for name, array in snapshot.solver_arrays.items():
            (own if name.startswith(_PREFIX) else rest)[name.removeprefix(_PREFIX)] = array
        mine = self._switching.arrays()
        if {name: array.size for name, array in own.items()} != {
            name: array.size for name, array in mine.items()
        }:
            raise ValueError(
                "VariantSimulation.restore: the snapshot was saved by a simulation without these entities "
                f"({', '.join(self._scene.entities)}) or with another number of environments than "
                f"{self.environment_count}. Restore what a simulation of an equal scene has saved."
            )
        for name, array in mine.items():
            wp.copy(array, own[name])
        # First set the defaults from the assignment of variants, then restore the arrays of the model.
        selection = self.resolve_environments(None, what="VariantSimulation.restore")
        with passing_drives_on(self.stages):
            self._switching.apply_tables(selection)
        self._tell_stages(selection)
        super().restore(dataclasses.replace(snapshot, solver_arrays=rest))

    def _tell_stages(self, selection: WorldSelection) -> None:
        """Tell the stages of the simulation that environments have other variants."""
        if self.stages:
            worlds = self._switching.worlds_of(selection)
            for stage in self.stages:
                stage.after_reassign(worlds.worlds, worlds.mask, self.per_world_default_fields)

    def _return_worlds(self, selection: WorldSelection) -> None:
        """Reset environments to the initial state of the model, after updating its body poses."""
        worlds = self._switching.list_worlds(selection)
        eval_fk_of_worlds(self.model, worlds.worlds, self.model)  # type: ignore[arg-type]
        super().reset(worlds)

    @property
    def _stepped_worlds(self) -> wp.array[int]:
        return self._switching.environment_world

    def _split_worlds(self, byte_counts: np.ndarray) -> tuple[list[wp.array[int]], float, bool]:
        if not self._switching.has_spare_worlds:
            return super()._split_worlds(byte_counts)
        # The list of worlds itself changes, so its chunks are parts of that one array.
        world = self._switching.environment_world
        now = world.numpy()
        share = self._solver.chunk_share
        count = len(split_worlds(byte_counts[now], self.model.world_template[now], self.threads, share))
        bounds = np.linspace(0, len(now), count + 1).astype(int).tolist()
        chunks = [world[start:end] for start, end in itertools.pairwise(bounds) if end > start]
        return chunks, float(byte_counts[now].sum()), False
