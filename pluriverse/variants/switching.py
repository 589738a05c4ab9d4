"""Switching: the variants and worlds of environments, and how they change."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import warp as wp

from pluriverse.launch import launch_kernel
from pluriverse.model import Control
from pluriverse.model.world_selection import WorldSelection
from pluriverse.variants.config import PreparedWorlds
from pluriverse.variants.contents import SceneContents
from pluriverse.variants.environments import (
    begin_episode,
    copy_targets,
    draw_variant,
    list_world,
    move_environment,
    set_layout,
    take_variant,
)
from pluriverse.variants.pool import (
    WorldPool,
    acquire_worlds,
    fit_variant,
    make_pool,
    release_worlds,
    use_fallback_worlds,
)

# Arrays of the pool that change.
_POOL_ARRAYS = ("free_count", "free_world", "fallback_count")


class Switching:
    """Variants, layouts and worlds of the environments of a scene, on the device.

    Args:
        scene: The scene.
    """

    def __init__(self, scene: SceneContents) -> None:
        self._scene = scene
        self._device = scene.model.device
        count = scene.environment_count
        self.has_spare_worlds = scene.tuple_first is not None and len(scene.tuples) > 1
        """Whether environments go to other worlds."""
        self.environment_world: wp.array[int] = self._to_device(scene.environment_world)
        """World of each environment, shape [environment]."""
        self.environment_tuple: wp.array[int] = self._to_device(scene.environment_tuple)
        """Tuple of layouts of each environment, shape [environment]."""
        self.episode: wp.array[int] = self._to_device(np.zeros(count))
        """Number of switches of each environment, shape [environment]."""
        self.variant: dict[str, wp.array[int]] = {
            name: self._to_device(entity.assignment) for name, entity in scene.entities.items()
        }
        """Variant of each environment by entity, shape [environment]."""
        self._steps: dict[str, wp.array[int]] = {}
        self._digits: dict[str, tuple[int, int]] = {}
        self._shares: dict[str, wp.array[float]] = {}
        self._allowed: dict[str, np.ndarray] = {}
        self._allowed_on_device: dict[str, wp.array[int]] = {}
        for entity_index, (name, entity) in enumerate(scene.entities.items()):
            steps, allowed, self._digits[name] = self._tuple_steps(entity_index)
            self._steps[name] = self._to_device(steps)
            self._allowed[name] = allowed
            self._allowed_on_device[name] = self._to_device(allowed)
            cumulative = np.cumsum(entity.shares)
            # Variants without share come after 1 or repeat the number before: they are never drawn.
            last = int(np.flatnonzero(entity.shares > 0.0)[-1])
            cumulative[last:] = 1.0
            self._shares[name] = wp.array(
                cumulative.astype(np.float32), dtype=wp.float32, device=self._device
            )
        self.pool: WorldPool | None = None
        """Worlds without an environment, if environments share worlds."""
        self._tuple_first: Any = None
        if scene.tuple_first is not None:
            self._tuple_first = self._to_device(scene.tuple_first)
            if self.has_spare_worlds and scene.config.prepared_worlds is PreparedWorlds.SHARED:
                self.pool = make_pool(
                    scene.tuple_first, scene.environment_world, scene.environment_tuple, self._device
                )
        self._fits = {name: self._fit(entity_index) for entity_index, name in enumerate(scene.entities)}
        self._worlds = self._to_device(np.full(count, -1))
        self._other_worlds: dict[int, wp.array[int]] = {}
        self._everywhere: wp.array[bool] = wp.zeros(0, dtype=wp.bool, device=self._device)
        dof_count = np.array([template.dof_count for template in scene.model.templates])
        bounds = np.concatenate([[0], np.cumsum(dof_count[scene.model.world_template])])
        self._world_dof = self._to_device(bounds + int(scene.model.topology.world_dof.numpy()[0]))

    def switch(self, selection: WorldSelection, variants: Mapping[str, Any] | None) -> None:
        """Give environments new variants, drawn or requested, with their worlds and values."""
        scene, lists = self._scene, [selection.worlds, selection.mask]
        requested = None if variants is None else self._requested(variants, selection)
        self._launch(begin_episode, selection, [*lists], [self.episode])
        for entity_index, (name, entity) in enumerate(scene.entities.items()):
            if requested is None:
                if entity.has_variants:
                    stream = [scene.config.seed, entity_index, scene.first_environment]
                    inputs = [*lists, self.episode, self._shares[name], *stream]
                    self._launch(draw_variant, selection, inputs, [self.variant[name]])
            elif name in requested:
                inputs = [*lists, requested[name], self._allowed_on_device[name]]
                self._launch(take_variant, selection, inputs, [self.variant[name]])
        if self.has_spare_worlds:
            if self.pool is not None:
                self._exchange(release_worlds, selection)
            for name in scene.entities:
                inputs = [*lists, self.variant[name], self._steps[name], *self._digits[name]]
                self._launch(set_layout, selection, inputs, [self.environment_tuple])
            if self.pool is None:
                inputs = [*lists, self.environment_tuple, self._tuple_first]
                self._launch(move_environment, selection, inputs, [self.environment_world])
            else:
                self._take_from_pool(selection)
        self.apply_tables(selection)

    def _take_from_pool(self, selection: WorldSelection) -> None:
        """Give environments worlds of the kinds that they drew, or of others if none are left."""
        self._exchange(acquire_worlds, selection)
        self._exchange(use_fallback_worlds, selection, dim=1)
        for name in self._scene.entities:
            inputs = [selection.worlds, selection.mask, self.environment_tuple, *self._fits[name]]
            self._launch(fit_variant, selection, inputs, [self.variant[name]])

    def _exchange(self, kernel: Any, selection: WorldSelection, *, dim: int | None = None) -> None:
        inputs = [selection.worlds, selection.mask, self.environment_tuple, self.environment_world, self.pool]
        launch_kernel(kernel, dim=dim or len(self._scene.tuples), inputs=inputs, device=self._device)

    def _fit(self, entity_index: int) -> list[Any]:
        """Return the layout of each variant of an entity, and layout and a variant of it in each tuple."""
        scene = self._scene
        entity = list(scene.entities.values())[entity_index]
        layouts = [layouts[entity_index] for layouts in scene.tuples]
        drawn = np.flatnonzero(entity.shares > 0.0)
        # A tuple has a layout that some variant with a share has, but for fixed scenes, which change nothing.
        by_layout = {int(entity.layout_of[variant]): int(variant) for variant in drawn[::-1]}
        variants = [by_layout.get(layout, 0) for layout in layouts]
        return [self._to_device(np.asarray(values)) for values in (entity.layout_of, layouts, variants)]

    def apply_tables(self, selection: WorldSelection) -> None:
        """Copy the values of the variants of environments into their worlds."""
        self._scene.tables.apply(
            selection.worlds, selection.mask, self.environment_world, self.environment_tuple, self.variant
        )

    def arrays(self) -> dict[str, wp.array[int]]:
        """Return what changes, by name."""
        return {
            "environment_world": self.environment_world,
            "environment_tuple": self.environment_tuple,
            "episode": self.episode,
            **{f"variant/{name}": array for name, array in self.variant.items()},
            **{f"pool/{name}": getattr(self.pool, name) for name in _POOL_ARRAYS if self.pool is not None},
        }

    def worlds_of(self, selection: WorldSelection) -> WorldSelection:
        """Return the worlds of environments. The list is overwritten by the next call."""
        return self.list_worlds(selection) if self.has_spare_worlds else selection

    def list_worlds(self, selection: WorldSelection) -> WorldSelection:
        """Return the worlds of environments as a list without a mask, -1 for those that are not selected."""
        size = selection.worlds.size
        worlds = self._worlds
        if size > worlds.size:  # a list on the device with repetitions
            if size not in self._other_worlds:
                self._other_worlds[size] = self._to_device(np.full(size, -1))
            worlds = self._other_worlds[size]
        worlds = worlds[:size]
        self._launch(
            list_world, selection, [selection.worlds, selection.mask, self.environment_world], [worlds]
        )
        return WorldSelection(worlds, self._everywhere, None)

    def set_targets(self, selection: WorldSelection, control: Control) -> None:
        """Write the forces and targets of the model into those of the worlds of environments."""
        worlds, model = self.worlds_of(selection), self._scene.model
        names = ("joint_f", "joint_act", "joint_target_pos", "joint_target_vel")
        self._launch(
            copy_targets,
            worlds,
            [worlds.worlds, worlds.mask, self._world_dof, *(getattr(model, name) for name in names)],
            [getattr(control, name) for name in names],
        )

    def _requested(self, variants: Mapping[str, Any], selection: WorldSelection) -> dict[str, Any]:
        """Return the requested variants as arrays on the device."""
        result = {}
        count = self._scene.environment_count
        for name, values in variants.items():
            entity = self._scene.entities.get(name)
            if entity is None or not entity.has_variants:
                known = [name for name, entity in self._scene.entities.items() if entity.has_variants]
                raise KeyError(
                    f"VariantSimulation.reassign: '{name}' is no entity with variants; there are {known}"
                )
            if isinstance(values, wp.array):
                array: Any = values
            else:
                indices = np.asarray(values)
                if not np.issubdtype(indices.dtype, np.integer):
                    raise ValueError(
                        f"VariantSimulation.reassign: the variants of '{name}' are {values!r}, but must "
                        "be whole numbers."
                    )
                if indices.shape == (count,):
                    self._check_indices(entity, indices, selection)
                array = self._to_device(indices)
            if array.shape != (count,) or array.dtype is not wp.int32 or array.device != self._device:
                raise ValueError(
                    f"VariantSimulation.reassign: the variants of '{name}' are {array.dtype.__name__} of "
                    f"shape {tuple(array.shape)} on {array.device}, but must be one int32 index for each of "
                    f"the {count} environments on {self._device}."
                )
            result[name] = array
        return result

    def _check_indices(self, entity: Any, indices: np.ndarray, selection: WorldSelection) -> None:
        """Check variants on the host."""
        rows = np.arange(len(indices)) if selection.indices is None else selection.indices
        allowed = self._allowed[entity.name]
        for environment in rows.tolist():
            variant = int(indices[environment])
            if not 0 <= variant < len(allowed):
                raise ValueError(
                    f"VariantSimulation.reassign: environment {environment} is to hold variant {variant} of "
                    f"'{entity.name}', which has variants 0 to {len(allowed) - 1}."
                )
            if not allowed[variant]:
                raise ValueError(
                    f"VariantSimulation.reassign: environment {environment} is to hold the variant "
                    f"'{entity.variants[variant]}' of '{entity.name}', for which no worlds were prepared, "
                    "since its weight is 0. Give it a weight > 0 in the assignment."
                )

    def _tuple_steps(self, entity_index: int) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
        """Return how many tuples lie between the layout of each variant and the first, and which are there.

        Tuples are the product of the layouts: the index of a tuple is a mixed-radix number with a digit per
        entity. The last values returned are the place value of the digit, and its number of values.
        """
        scene = self._scene
        entity = list(scene.entities.values())[entity_index]
        columns = np.array(scene.tuples).reshape(len(scene.tuples), -1)
        present = np.unique(columns[:, entity_index])
        below = 1
        for later in range(entity_index + 1, columns.shape[1]):
            below *= len(np.unique(columns[:, later]))
        rank = {int(layout): index for index, layout in enumerate(present.tolist())}
        steps = np.array([rank.get(int(layout), 0) * below for layout in entity.layout_of])
        allowed = np.array([int(layout) in rank for layout in entity.layout_of])
        return steps, allowed, (below, max(len(present), 1))

    def _to_device(self, values: np.ndarray) -> Any:
        return wp.array(np.asarray(values).astype(np.int32), dtype=wp.int32, device=self._device)

    def _launch(self, kernel: Any, selection: WorldSelection, inputs: list[Any], outputs: list[Any]) -> None:
        launch_kernel(kernel, dim=selection.worlds.size, inputs=inputs, outputs=outputs, device=self._device)
