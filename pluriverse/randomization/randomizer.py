"""Randomizer: draws terms for environments, on the device."""

import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import warp as wp

from pluriverse.dynamics.forward_kinematics import eval_fk_of_worlds
from pluriverse.launch import same_memory
from pluriverse.model import Model
from pluriverse.model.drive_effort import DRIVE_ARRAYS
from pluriverse.model.schema import FRAME_ARRAYS, MODEL_ARRAYS
from pluriverse.model.world_selection import Environments, WorldSelection, resolve_worlds
from pluriverse.randomization import inertia, state
from pluriverse.randomization.bounds import update_bounds
from pluriverse.randomization.distributions import Constant, Distribution
from pluriverse.randomization.drives import drive_places, driving_stages
from pluriverse.randomization.sampling import make_sampler
from pluriverse.randomization.targets import (
    check_inertia_factor,
    check_property,
    check_scalar_joints,
    entity_of,
    find_targets,
    property_components,
    targets_to_device,
)
from pluriverse.randomization.terms import (
    InertiaFactor,
    InitialState,
    Property,
    PseudoInertia,
    Rotation,
    Term,
)
from pluriverse.randomization.write import (
    OPERATION_CODE,
    Episode,
    Targets,
    count_episode,
    launch,
    list_world,
    restore_property,
    write_property,
    write_rotation,
)
from pluriverse.solvers import SolverBase
from pluriverse.stages import StepStage
from pluriverse.types import Entity, ModelFlags

_OPPOSITE = {"joint_limit_lower": "joint_limit_upper", "joint_limit_upper": "joint_limit_lower"}
# Arrays that determine the poses and velocities of bodies.
_MOVES_BODIES = (*FRAME_ARRAYS, "joint_q", "joint_qd")


class Randomizer:
    """Draws properties of worlds, each relative to its own default.

    A draw depends on the seed, the index of its environment, the number of earlier draws there, and its
    purpose; not on the batch, nor on the order of calls. `apply` only launches kernels and may be recorded.

    Args:
        target: A `Simulation` or a `Model`. The snapshots of a simulation store the number of draws, so draws
            after `restore` repeat those that followed `save`. With a simulation of variants, defaults are
            those of the variant that an environment holds, and indices are those of environments. Gains and
            effort limits of joints with actuators are drawn in the actuators, also in those made later.
        terms: The randomized properties; nested lists are flattened.
        seed: Seed of all draws, 0 to 2**31 - 1.
        identities: Identity on which the draws of each environment depend, whole numbers from 0 to 2**31 - 1,
            shape [environment]; its index if None. A part of a batch draws the same as in the whole if
            identities are the indices there, and environments of equal identity draw equal numbers.
        is_part: Whether the worlds are a part of a batch, in which a pattern may find nothing. This is a
            `MissingEntityWarning` then, and an error otherwise.

    Raises:
        KeyError: If a pattern finds nothing, unless `is_part`.
        TypeError: If a term is not a `Term`.
        ValueError: If an array cannot be randomized, a distribution could give a value that is not allowed,
            two terms draw the same entries, or the solver of the simulation has something compiled in.
    """

    flags: ModelFlags
    """Flags of the drawn properties, for `notify_model_changed`."""

    def __init__(
        self,
        target: Any,
        terms: Sequence[Term | Sequence[Term]],
        *,
        seed: int = 0,
        identities: Any = None,
        is_part: bool = False,
    ) -> None:
        self._is_part = is_part
        self._model: Model = target if isinstance(target, Model) else target.model
        if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**31:
            raise ValueError(f"Randomizer: seed is {seed!r}, but it must be a whole number, 0 to 2**31 - 1.")
        model, device = self._model, self._model.device
        # A simulation of variants knows the defaults of each variant, and which world an environment is in.
        self._defaults: dict[str, Any] = dict(getattr(target, "per_world_default_fields", {}))
        self._variant_rows = getattr(target, "variant_rows", lambda name: ())
        world = getattr(target, "environment_world", model.worlds)
        has_environments = hasattr(target, "environment_world")
        self._environments = Environments(model, world.size) if has_environments else model
        self._world = world
        self._identity = _identities(identities, world.size, device)
        self._seed = int(seed)
        self._count: wp.array[int] = wp.zeros(world.size, dtype=wp.int32, device=device)
        self._launches: list[tuple[Any, list[Any], list[Any]]] = []
        self._restores: list[tuple[list[Any], list[Any]]] = []
        # A simulation may hold this, as a reset hook: weakly, so that no cycle keeps the memory of both.
        self._simulation: Any = weakref.proxy(target) if hasattr(target, "stages") else None
        # The stages that drive joints as of the last look; None before the first.
        self._driving_stages: tuple[StepStage, ...] | None = None
        self._stage_defaults: dict[tuple[StepStage, str], Any] = {}
        self._drive_terms: list[tuple[Property, int, np.ndarray]] = []
        self._drive_launches: list[tuple[Any, list[Any], list[Any]]] = []
        self._drive_restores: list[tuple[list[Any], list[Any]]] = []
        self._written: dict[str, np.ndarray] = {}
        self._extremes: dict[tuple[str, Any], np.ndarray] = {}
        self._moves_bodies = False
        self._lists: dict[int, wp.array[int]] = {}
        self._everywhere: wp.array[bool] = wp.zeros(0, dtype=wp.bool, device=device)
        self.flags = ModelFlags(0)
        for index, term in enumerate(_flattened(terms)):
            self._add(term, index)
        self._place_drives()
        # Solvers that keep copies of model arrays must be updated.
        solver = getattr(target, "solver", None)
        keeps_copies = type(solver).sync_worlds is not SolverBase.sync_worlds if solver else False
        self._solver = solver if keeps_copies else None
        if self._solver is not None:
            self._solver.track_model(self._drawn_entries())
        if hasattr(target, "add_snapshot_array"):
            target.add_snapshot_array("randomizer", self._count)
        if hasattr(target, "add_reset_hook"):
            target.add_reset_hook(self.restore)

    @property
    def episode(self) -> wp.array[int]:
        """Number of draws of each environment so far, on the device, shape [environment]."""
        return self._count

    def apply(self, environments: Any = None) -> None:
        """Draw all terms for environments (default: all).

        Initial states are drawn in the model; `Simulation.reset` then puts worlds there. A solver of the
        simulation that keeps copies of the model (`SolverMuJoCo`) is updated too, also on the device. If only
        a model was given, notify such a solver of `flags`.

        Args:
            environments: Indices, or one truth value per environment (world), on host or device.

        Raises:
            IndexError: If there is no such environment.
            TypeError: If `environments` are neither whole numbers nor truth values.
            ValueError: If a mask has not one entry per environment, or an array is on another device.
        """
        self._place_drives()
        episode = self._episode(environments, "Randomizer.apply")
        launch(count_episode, episode, [], [])
        for kernel, inputs, outputs in self._launches + self._drive_launches:
            launch(kernel, episode, inputs, outputs)
        self._update_dependents(episode)

    def restart(self, seed: int | None = None) -> None:
        """Restart from the first draws, with a new seed if one is given.

        Raises:
            ValueError: If the seed is out of range.
        """
        if seed is not None:
            if not isinstance(seed, int | np.integer) or not 0 <= seed < 2**31:
                raise ValueError(
                    f"Randomizer: seed is {seed!r}, but it must be a whole number, 0 to 2**31 - 1."
                )
            self._seed = int(seed)
        self._count.zero_()

    def restore(self, environments: Any = None) -> None:
        """Restore the defaults of everything that is drawn, for environments (default: all)."""
        self._place_drives()
        episode = self._episode(environments, "Randomizer.restore")
        for inputs, outputs in self._restores + self._drive_restores:
            launch(restore_property, episode, inputs, outputs)
        self._update_dependents(episode)

    def _episode(self, environments: Any, what: str) -> Episode:
        selection = resolve_worlds(self._environments, environments, what=what)
        episode = Episode()
        episode.environments = selection.worlds
        episode.mask = selection.mask
        episode.world = self._world
        episode.count = self._count
        episode.identity = self._identity
        episode.seed = self._seed
        return episode

    def _drawn_entries(self) -> dict[str, np.ndarray | None]:
        """Return which entries of which arrays are drawn."""
        result: dict[str, np.ndarray | None] = {}
        for claim, term in self._written.items():
            name = claim.rpartition(" ")[2]  # of "orientations of joint_X_p" as well
            before = result.get(name)
            result[name] = term >= 0 if before is None else before | (term >= 0)
        return result

    def _update_dependents(self, episode: Episode) -> None:
        """Update dependent values: the initial poses of bodies, and copies in a solver."""
        if not (self._moves_bodies or self._solver is not None):
            return
        size = episode.environments.size
        if size not in self._lists:
            self._lists[size] = wp.empty(size, dtype=wp.int32, device=self._model.device)
        worlds = self._lists[size]
        launch(list_world, episode, [], [worlds])
        if self._moves_bodies:
            eval_fk_of_worlds(self._model, worlds, self._model)  # type: ignore[arg-type]
        if self._solver is not None:
            self._solver.sync_worlds(WorldSelection(worlds, self._everywhere, None))

    def _add(self, term: Any, index: int) -> None:
        if isinstance(term, Property):
            self._add_property(term, index)
        elif isinstance(term, Rotation):
            self._add_rotation(term, index)
        elif isinstance(term, PseudoInertia | InertiaFactor):
            self._add_inertia(term, index)
        elif isinstance(term, InitialState):
            self._add_initial_state(term, index)
        else:
            raise TypeError(
                f"Randomizer: term {index} is a {type(term).__name__}, but must be a Property, a "
                "Rotation, a PseudoInertia, an InertiaFactor or an InitialState."
            )

    def _default(self, name: str) -> Any:
        """Return the array of defaults of a field, copied from the model where there is none yet."""
        if name not in self._defaults:
            self._defaults[name] = wp.clone(getattr(self._model, name))
        return self._defaults[name]

    def _add_property(self, term: Property, index: int) -> None:
        components, words = property_components(term, self._model)
        found, targets = self._targets(entity_of(term.name), term.entities, f"Property({term.name!r})")
        default = self._default(term.name)
        if term.name in DRIVE_ARRAYS:
            self._claim(term.name, found, index)
            self._drive_terms.append((term, index, found))
            self.flags |= MODEL_ARRAYS[term.name].flag
            return
        if term.name in ("joint_q", "joint_qd"):
            check_scalar_joints(term, self._model, found)
        self._check_values(term, found, components, words)
        self._claim(term.name, found, index)
        value = getattr(self._model, term.name)
        self._launches.append(self._drawing(term, index, targets, components, words, default, value))
        self._remember(term.name, targets)
        if term.name == "shape_scale":
            self._add_bounds(targets)

    def _drawing(
        self,
        term: Property,
        index: int,
        targets: Targets,
        components: list[int],
        words: int,
        default: Any,
        value: Any,
    ) -> tuple[Any, list[Any], list[Any]]:
        """Return the launch that draws a property."""
        device = self._model.device
        sampler = make_sampler(term.distribution, len(components), device)
        component_indices: Any = wp.array(components, dtype=wp.int32, device=device)
        inputs = [
            targets,
            sampler,
            component_indices,
            words,
            OPERATION_CODE[term.operation],
            term.same_for_entities,
            term.same_for_components,
            index,
            _flat(default),
        ]
        return write_property, inputs, [_flat(value)]

    def _place_drives(self) -> None:
        """Let the terms of drives write where the drives are: in the model, or in stages in its place.

        Actuators may be made before the randomizer or after it, and be removed again.

        Raises:
            ValueError: If a stage lacks what a term draws, or a value may be drawn that is not allowed.
        """
        stages = driving_stages(self._simulation)
        if not self._drive_terms or stages == self._driving_stages:
            return
        self._take_drives_back(stages)
        launches, restores = [], []
        for term, index, found in self._drive_terms:
            for place in drive_places(self._model, stages, term.name, found, index):
                if place.stage is None:
                    defaults = self._default(term.name)
                    self._check_values(term, place.found, [0], 1)
                else:
                    key = place.stage, term.name
                    if key not in self._stage_defaults:
                        self._stage_defaults[key] = place.stage.drive_default(term.name)
                    defaults = self._stage_defaults[key]
                    dofs = np.flatnonzero(place.found)
                    now = defaults.numpy()[place.entry[dofs], None]
                    check_property(term, self._model, dofs, now, None)
                targets = targets_to_device(self._model, Entity.JOINT_DOF, place.found, place.entry)
                launches.append(self._drawing(term, index, targets, [0], 1, defaults, place.values))
                restores.append(([targets, 1, defaults], [place.values]))
        self._driving_stages = stages
        self._drive_launches, self._drive_restores = launches, restores

    def _take_drives_back(self, stages: tuple[StepStage, ...]) -> None:
        """Take the defaults of drives that were off when this was made, and no longer are."""
        dofs: Any = np.concatenate([np.zeros(0, dtype=np.int64), *(stage.driven_dofs for stage in stages)])
        if self._driving_stages is None:
            self._unseen_drives = dofs
            return
        back = np.setdiff1d(self._unseen_drives, dofs)
        self._unseen_drives = np.intersect1d(self._unseen_drives, dofs)
        for name in {term.name for term, _, _ in self._drive_terms} if back.size else ():
            defaults = self._default(name).numpy().copy()
            defaults[back] = getattr(self._model, name).numpy()[back]
            self._default(name).assign(defaults)

    def _add_rotation(self, term: Rotation, index: int) -> None:
        model, what = self._model, f"Rotation({term.name!r})"
        poses = [name for name, spec in MODEL_ARRAYS.items() if spec.is_pose]
        if term.name not in poses:
            raise ValueError(f"{what}: there are no orientations there; poses are {', '.join(poses)}.")
        found, targets = self._targets(entity_of(term.name), term.entities, what)
        self._claim(f"orientations of {term.name}", found, index)
        distribution = _or_zero(term.distribution, 3, what)
        sampler = make_sampler(distribution, 3, model.device)
        inputs = [targets, sampler, term.same_for_entities, index, self._default(term.name)]
        self._launches.append((write_rotation, inputs, [getattr(model, term.name)]))
        self._remember(term.name, targets)

    def _add_bounds(self, targets: Targets) -> None:
        """Update the bounds of shapes from their sizes."""
        model, device = self._model, self._model.device
        vertices = [np.asarray(mesh.vertices, dtype=np.float64) for mesh in model.meshes]
        lower = np.array([each.min(axis=0) for each in vertices]).reshape(-1, 3)
        upper = np.array([each.max(axis=0) for each in vertices]).reshape(-1, 3)
        centre = 0.5 * (lower + upper)
        radius = [
            np.linalg.norm(each - middle, axis=1).max() for each, middle in zip(vertices, centre, strict=True)
        ]
        inputs = [
            targets,
            model.structure.shape_type,
            model.shape_scale,
            model.structure.shape_source_index,
            wp.array(lower, dtype=wp.vec3, device=device),
            wp.array(upper, dtype=wp.vec3, device=device),
            wp.array(np.array(radius), dtype=wp.float32, device=device),
        ]
        names = ("shape_aabb_lower", "shape_aabb_upper", "shape_collision_radius")
        self._launches.append((update_bounds, inputs, [getattr(model, name) for name in names]))
        for name in names:
            self._default(name)
            self._remember(name, targets)

    def _add_inertia(self, term: PseudoInertia | InertiaFactor, index: int) -> None:
        model, device = self._model, self._model.device
        what = type(term).__name__
        is_factor = isinstance(term, InertiaFactor)
        names = ("body_mass", "body_com", "body_inertia")
        defaults = [self._default(name) for name in names]
        # Bodies without mass have no parameters, and do not change.
        heavy = defaults[0].numpy() > 0.0
        found, targets = self._targets(Entity.BODY, term.entities, what, keep=heavy)
        for _, entities, values in self._rows("body_inertia") if is_factor else ():
            meant = found[entities]
            check_inertia_factor(model, np.tile(entities[meant], len(values)), values[:, meant])
        for name in names:
            self._claim(name, found, index)
        samplers = inertia.InertiaSamplers()
        for name, count in (("alpha", 1), ("d", 3), ("s", 3), ("t", 3)):
            distribution = _or_zero(getattr(term, name), count, f"{what}: {name}")
            setattr(samplers, name, make_sampler(distribution, count, device))
        self._launches.append(
            (
                inertia.write_inertia_factor if is_factor else inertia.transform_pseudo_inertia,
                [targets, samplers, index, *defaults],
                [getattr(model, name) for name in names],
            )
        )
        for name in names:
            self._remember(name, targets)

    def _add_initial_state(self, term: InitialState, index: int) -> None:
        model, device = self._model, self._model.device
        what = "InitialState"
        found, targets = self._targets(Entity.JOINT, term.entities, what)
        entries = {}
        for kind, name, start in (
            (Entity.JOINT_COORD, "joint_q", model.joint_q_start),
            (Entity.JOINT_DOF, "joint_qd", model.joint_qd_start),
        ):
            rows = np.repeat(found, np.diff(start.numpy()))
            self._claim(name, rows, index)
            entries[name] = targets_to_device(model, kind, rows)
        samplers = state.StateSamplers()
        for name, count in (
            ("root_position", 3),
            ("root_rotation", 3),
            ("root_velocity", 6),
            ("joint_position", 1),
            ("joint_velocity", 1),
        ):
            distribution = _or_zero(getattr(term, name), count, f"{what}: {name}")
            setattr(samplers, name, make_sampler(distribution, count, device))
        inputs = [
            targets,
            samplers,
            index,
            model.structure.joint_type,
            model.structure.joint_parent,
            model.structure.joint_q_start,
            model.structure.joint_qd_start,
            model.joint_limit_lower,
            model.joint_limit_upper,
            self._default("joint_q"),
            self._default("joint_qd"),
        ]
        self._launches.append((state.write_initial_state, inputs, [model.joint_q, model.joint_qd]))
        for name, targets_of in entries.items():
            self._remember(name, targets_of)

    def _rows(self, name: str) -> Iterator[tuple[Any, np.ndarray, np.ndarray]]:
        """Yield a key, entities and their defaults, in the model and for all variants that may come.

        The defaults have the shape [variant, entity, component].
        """
        default = self._default(name).numpy()
        words = int(np.prod(default.shape[1:], dtype=np.int64))
        yield None, np.arange(len(default)), default.reshape(1, len(default), words)
        yield from self._variant_rows(name)

    def _check_values(self, term: Property, found: np.ndarray, components: list[int], words: int) -> None:
        """Check that all values of a term are allowed, for all variants, and that limits stay ordered."""
        opposite = _OPPOSITE.get(term.name)
        for key, entities, values in self._rows(term.name):
            meant = found[entities]
            selected = np.tile(entities[meant], len(values))
            rows = values.reshape(len(values), len(entities), words)[:, meant][..., components]
            across = None
            if opposite is not None:
                across = self._extreme(opposite, key, entities, len(values))[:, meant].reshape(-1)
            flat = rows.reshape(len(selected), len(components))
            least, most = check_property(term, self._model, selected, flat, across)
            if opposite is not None:
                reached = most if term.name == "joint_limit_lower" else least
                self._extreme(term.name, key, entities, len(values))[:, meant] = reached.reshape(
                    len(values), -1
                )

    def _extreme(self, name: str, key: Any, entities: np.ndarray, row_count: int) -> np.ndarray:
        """Return how close joint limits may come to the opposite ones, with the terms so far."""
        if (name, key) not in self._extremes:
            own = next((values for known, _, values in self._rows(name) if known == key), None)
            if own is None:  # variants differ in the other limit only
                own = np.tile(self._default(name).numpy()[entities], (row_count, 1))
            self._extremes[name, key] = own.reshape(row_count, len(entities)).astype(np.float64)
        return self._extremes[name, key]

    def _targets(
        self, kind: Entity, patterns: Any, what: str, *, keep: np.ndarray | None = None
    ) -> tuple[np.ndarray, Targets]:
        found = find_targets(self._model, kind, patterns, what, is_part=self._is_part)
        if keep is not None:
            found &= keep
        return found, targets_to_device(self._model, kind, found)

    def _claim(self, name: str, found: np.ndarray, index: int) -> None:
        """Record that a term draws some entries of an array.

        Raises:
            ValueError: If another one does so already.
        """
        taken = self._written.setdefault(name, np.full(len(found), -1))
        both = np.flatnonzero(found & (taken >= 0))
        if len(both):
            raise ValueError(
                f"Randomizer: the terms {int(taken[both[0]])} and {index} both draw {name} of entry "
                f"{int(both[0])}, and only the last one would count. Let them mean different entities."
            )
        taken[found] = index

    def _remember(self, name: str, targets: Targets) -> None:
        """Record what `restore` must reset, and whether that moves bodies."""
        default, value = self._default(name), getattr(self._model, name)
        words = _flat(value).size // max(value.shape[0], 1)
        self._restores.append(([targets, words, _flat(default)], [_flat(value)]))
        self._moves_bodies |= name in _MOVES_BODIES
        self.flags |= MODEL_ARRAYS[name].flag


def _identities(identities: Any, count: int, device: Any) -> wp.array[int]:
    """Return the identity of each environment, on the device."""
    values = np.arange(count) if identities is None else np.asarray(identities)
    if values.shape != (count,) or not np.issubdtype(values.dtype, np.integer):
        raise ValueError(
            f"Randomizer: identities have shape {values.shape} and type {values.dtype}, but must be one "
            f"whole number for each of the {count} environments."
        )
    if count and not 0 <= values.min() <= values.max() < 2**31:
        raise ValueError(
            f"Randomizer: identities are from {values.min()} to {values.max()}, but must be from 0 to "
            "2**31 - 1."
        )
    return wp.array(values.astype(np.int32), dtype=wp.int32, device=device)


def _flattened(terms: Sequence[Term | Sequence[Term]]) -> Iterable[Term]:
    for term in terms:
        if isinstance(term, list | tuple):
            yield from term
        else:
            yield term  # type: ignore[misc]


def _or_zero(distribution: Distribution | None, count: int, what: str) -> Distribution:
    """Return a distribution with the given number of components; a constant zero if it is None."""
    if distribution is None:
        return Constant(0.0)
    given = distribution.component_count()
    if given not in (None, count):
        raise ValueError(
            f"{what} is {distribution}, which has {given} components, but it must have {count}, or one "
            "number for all."
        )
    return distribution


def _flat(array: Any) -> Any:
    """Return the memory of an array of float32 numbers, vectors or matrices as one axis of numbers."""
    return same_memory(array, wp.float32, (array.capacity // 4,))
