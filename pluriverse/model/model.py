"""Model: everything about all worlds that steps do not change."""

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from pluriverse.launch import outside_recordings
from pluriverse.model import attributes
from pluriverse.model.control import Control
from pluriverse.model.derived import DerivedArrays
from pluriverse.model.drive_targets import DriveTargets
from pluriverse.model.edits import Edits
from pluriverse.model.indices import IndexErrors
from pluriverse.model.requested import check_contact_attributes, check_state_attributes
from pluriverse.model.schema import FRAME_ARRAYS, MOTION_ARRAYS, STATE_ARRAYS
from pluriverse.model.state import State
from pluriverse.model.structure import Structure
from pluriverse.model.structure_guard import StructureGuard
from pluriverse.model.world_list import trust_worlds
from pluriverse.newton_names import missing
from pluriverse.types import Entity

if TYPE_CHECKING:
    from pluriverse.model.contacts import Contacts

INITIAL_ARRAYS = (*FRAME_ARRAYS, *MOTION_ARRAYS)
"""Arrays of the initial state, and those that place its bodies."""


class Model(DerivedArrays):
    """All worlds of a simulation on one device. Made by `ModelBuilder.finalize`.

    Entities are stored flat, per kind, sorted by world: global ones (world -1) in front and at the back,
    worlds 0, 1, ... between. `*_world` is the world of an entity. `*_world_start`, of length `world_count +
    2`, holds the first index of each world, then that of the global entities at the back, then the total.

    A model authored without worlds has one world, 0; its entities are listed as global (`*_world` -1,
    `*_world_start` [n, n, n]) but simulated as that world.

    Arrays may be written to between steps (masses, materials, gains, limits, gravity ...), and the next step
    uses the new values. Assigning to one copies the values into it, since recorded steps hold its memory. The
    structure (types, parents, groups, flags, filters) was evaluated in `finalize` and is fixed; writes to it
    are reported.
    """

    AttributeFrequency = Entity  # as in Newton, where these are nested in the model
    AttributeAssignment = attributes.AttributeAssignment
    AttributeNamespace = attributes.AttributeNamespace

    initial_edits: Edits
    """Tracks in which worlds the initial state was written to since it was last made consistent."""
    _targets: DriveTargets

    def __init__(self, device: wp.Device, make_pipeline: Callable[["Model"], Any]):
        self.device = device
        self._make_pipeline = make_pipeline
        self.dynamics_obstacle: str | None = None
        """Why solvers refuse the model, if they do: a joint had no inertia to accelerate when it was made."""
        self.single_precision_obstacle: str | None = None
        """Why solvers in single precision refuse it, if only they do: a joint had almost none."""
        self._structure_guard: StructureGuard | None = None
        self._structure = None
        self._index_errors = IndexErrors(device)
        self.attribute_specs = {}
        self.custom_arrays = {}
        self._requested_state_attributes: set[str] = set()
        self._pipeline: Any = None
        self._recorded_contacts: list[Contacts] = []
        self.custom_frequency_counts = {}
        self.custom_frequency_world = {}
        self.custom_frequency_articulation = {}

    if not TYPE_CHECKING:  # whose users shall go on to hear of attributes that do not exist

        def __getattr__(self, name: str) -> Any:
            """Extend the error for a namespace that importers fill by its remedy.

            Raises:
                AttributeError: Always.
            """
            remedy = ""
            if name == "mujoco":
                remedy = (
                    ": no MJCF file was imported. Call "
                    "SolverMuJoCo.register_custom_attributes(builder) before anything is added."
                )
            if remedy:
                raise AttributeError(f"'{type(self).__name__}' object has no attribute {name!r}{remedy}")
            raise missing("Model", name)

    def __setattr__(self, name: str, value: Any) -> None:
        if self.__dict__.get("_structure_guard") is None:
            object.__setattr__(self, name, value)
        else:
            attributes.set_array(self, name, value, owner="Model")

    def guard_structure(self, live: Sequence[str] = ()) -> None:
        """Freeze the structure. Called by `ModelBuilder.finalize`.

        Args:
            live: Arrays of the structure that may change nevertheless, since their owner updates the derived
                values.
        """
        # Parts of the model refer to it weakly: nothing else would free the memory of a model that is dropped
        # before the next full garbage collection, which may be many models later.
        model = weakref.proxy(self)
        object.__setattr__(self, "_structure", Structure(model, frozenset(live)))
        trust_worlds(self.structure.worlds)
        object.__setattr__(self, "initial_edits", Edits(model, INITIAL_ARRAYS))
        self._structure_guard = StructureGuard(self, live)

    @property
    def guarded_arrays(self) -> list[str]:
        """Names of the arrays that only take effect when a model is made."""
        return [] if self._structure_guard is None else self._structure_guard.names

    def changed_structure(self) -> list[str]:
        """Return the names of arrays that were written to although that has no effect since `finalize`."""
        return [] if self._structure_guard is None else self._structure_guard.changed(self)

    @property
    def shape_source(self) -> list[Any]:
        """The `Mesh` of each shape, None for primitives, shape [shape]."""
        return [self.meshes[index] if index >= 0 else None for index in self.shape_source_index.numpy()]

    @property
    def requires_grad(self) -> bool:
        """False: steps are not differentiable."""
        return False

    @property
    def joint_target_q_start(self) -> wp.array[int]:
        """First entry of each joint in `joint_target_q`: that in `joint_q`, shape [joint + 1]."""
        return self.joint_q_start

    @property
    def joint_target_qd(self) -> wp.array[float]:
        """Another name of `joint_target_vel`."""
        return self.joint_target_vel

    @joint_target_qd.setter
    def joint_target_qd(self, values: Any) -> None:
        self.joint_target_vel = values

    def unify_targets(self) -> None:
        """Make `joint_target_pos` and `joint_target_q` agree, which `control` and snapshots do first."""
        self._targets.unify()

    def connect_targets(self) -> None:
        """Make `joint_target_q`, from `joint_target_pos` and `joint_q`. Called once, by `finalize`."""
        self._targets = DriveTargets(self.topology, self.worlds, self.joint_target_pos, self.joint_q)
        self.joint_target_q = self._targets.by_coord

    def state(self, requires_grad: bool | None = None) -> State:
        """Return a new state, as the worlds begin.

        Args:
            requires_grad: Must not be True: steps are not differentiable.

        Raises:
            ValueError: If it is.
        """
        _refuse_gradients("Model.state", requires_grad)
        with outside_recordings(self.device):
            state = State(self.joint_q, self.joint_qd, self.body_q, self.body_qd)
            object.__setattr__(state, "_model", self)
            for name in self._requested_state_attributes:
                spec = STATE_ARRAYS[name]
                assert spec.entity is not None
                size = self.get_frequency_count(spec.entity)
                setattr(state, name, wp.zeros(size, dtype=spec.dtype, device=self.device))
            self.attach_custom_arrays(state, attributes.AttributeAssignment.STATE)
        return state

    def request_state_attributes(self, *names: str) -> None:
        """Have states that are made from now on hold more arrays, which solvers write in each step.

        Args:
            names: "body_qdd".

        Raises:
            ValueError: If there is no such array.
        """
        check_state_attributes("Model", names)
        self._requested_state_attributes |= set(names)

    def get_requested_state_attributes(self) -> list[str]:
        """Return the names of the arrays that states hold on request."""
        return sorted(self._requested_state_attributes)

    def request_contact_attributes(self, *names: str) -> None:
        """Ask for nothing: forces are in every `Contacts`, as `rigid_contact_force`.

        Args:
            names: "force".

        Raises:
            ValueError: If there is no such array.
        """
        check_contact_attributes("Model", names)

    def contacts(self, collision_pipeline: Any = None) -> "Contacts":
        """Return contacts for `collide`; short for `CollisionPipeline.contacts`.

        Args:
            collision_pipeline: The `CollisionPipeline`; one of the model with all defaults if None.
        """
        return self._pipeline_or(collision_pipeline).contacts()

    def collide(
        self, state: State, contacts: "Contacts | None" = None, *, collision_pipeline: Any = None
    ) -> "Contacts":
        """Find the contacts of a state; short for `CollisionPipeline.collide`.

        Args:
            state: The state.
            contacts: Receives the contacts; new ones if None, which costs time in a loop.
            collision_pipeline: The `CollisionPipeline`; one of the model with all defaults if None.

        Returns:
            The contacts.

        Raises:
            ValueError: If the state or the contacts belong to another model.
        """
        is_recorded = self.device.is_capturing
        with outside_recordings(self.device):
            pipeline = self._pipeline_or(collision_pipeline)
            if contacts is None:
                contacts = pipeline.contacts()
                if is_recorded:  # replays write to them, even if the caller lets go of them
                    self._recorded_contacts.append(contacts)
        pipeline.collide(state, contacts)
        return contacts

    def _pipeline_or(self, given: Any) -> Any:
        """Return a pipeline that is given, or that of the model with all defaults."""
        if given is not None:
            return given
        pipeline = None if self._pipeline is None else self._pipeline()
        if pipeline is None:
            pipeline = self._make_pipeline(self)
            # Its contacts hold it. If the model did, only a full garbage collection would free both.
            self._pipeline = weakref.ref(pipeline)
        return pipeline

    def control(self, requires_grad: bool | None = None) -> Control:
        """Return a new control: the targets of the model, and no force.

        Args:
            requires_grad: Must not be True: steps are not differentiable.

        Raises:
            ValueError: If it is.
        """
        _refuse_gradients("Model.control", requires_grad)
        with outside_recordings(self.device):
            control = Control(self.joint_f, self._targets, self.joint_target_vel, self.joint_act)
            object.__setattr__(control, "_model", self)
            self.attach_custom_arrays(control, attributes.AttributeAssignment.CONTROL)
        return control

    def add_attribute(
        self,
        name: str,
        attrib: Any,
        frequency: Entity | str,
        assignment: attributes.AttributeAssignment | None = None,
        namespace: str | None = None,
        references: Entity | str | None = None,
    ) -> None:
        """Add a custom attribute; builders do so for those declared with `add_custom_attribute`.

        Args:
            name: Name.
            attrib: Array on the device of the model, or a list of texts, with one entry per entity.
            frequency: What it has one entry per: a kind of entity, or the key of a custom frequency.
            assignment: Object that has the array, `MODEL` if None. States, controls and contacts made
                from now on begin with a copy.
            namespace: Namespace; None for an attribute of the object itself.
            references: Kind of entity that the values index; None for other values.

        Raises:
            AttributeError: If there is an attribute of that name already.
            ValueError: If the number of entries or the device differs.
            KeyError: If there is no such custom frequency.
        """
        if isinstance(references, Entity):
            references = references.key
        spec = attributes.AttributeSpec(
            name,
            namespace,
            frequency,
            assignment or attributes.AttributeAssignment.MODEL,
            references=references,
        )
        count = self.get_frequency_count(frequency)
        if isinstance(attrib, wp.array) and attrib.device != self.device:
            raise ValueError(
                f"add_attribute: '{spec.key}' is on {attrib.device}, but the model is on {self.device}."
            )
        if len(attrib) != count:
            raise ValueError(
                f"add_attribute: '{spec.key}' has {len(attrib)} entries, but there are {count} of kind "
                f"{spec.count_name}."
            )
        attributes.attach(self, spec, attrib)
        self.attribute_specs[spec.key] = spec

    @property
    def attribute_frequency(self) -> dict[str, Entity | str]:
        """Frequency of each custom attribute, by its key."""
        return {key: spec.frequency for key, spec in self.attribute_specs.items()}

    @property
    def attribute_assignment(self) -> dict[str, attributes.AttributeAssignment]:
        """Object that has the array, of each custom attribute, by its key."""
        return {key: spec.assignment for key, spec in self.attribute_specs.items()}

    def get_attribute_frequency(self, name: str) -> Entity | str:
        """Return the frequency of a custom attribute ("name" or "namespace:name").

        Raises:
            AttributeError: If there is no such attribute.
        """
        spec = self.attribute_specs.get(name.replace(".", ":", 1))
        if spec is None:
            known = ", ".join(self.attribute_specs) or "none"
            raise AttributeError(
                f"get_attribute_frequency: there is no custom attribute {name!r}; there are {known}."
            )
        return spec.frequency

    def get_custom_frequency_count(self, frequency: str) -> int:
        """Return the number of rows of a custom frequency.

        Raises:
            KeyError: If there is no such frequency.
        """
        if frequency not in self.custom_frequency_counts:
            known = ", ".join(self.custom_frequency_counts) or "none"
            raise KeyError(f"there is no custom frequency '{frequency}'; there are {known}.")
        return self.custom_frequency_counts[frequency]

    def get_frequency_count(self, frequency: Entity | str) -> int:
        """Return the number of entities of a kind, or of rows of a custom frequency.

        Raises:
            KeyError: If there is no such custom frequency.
        """
        if isinstance(frequency, str):
            return self.get_custom_frequency_count(frequency)
        return 1 if frequency is Entity.ONCE else int(getattr(self, f"{frequency.key}_count"))

    def attach_custom_arrays(self, holder: Any, assignment: attributes.AttributeAssignment) -> None:
        """Give a new state, control or contacts a copy of the custom attributes that belong to it."""
        for key, spec in self.attribute_specs.items():
            if spec.assignment is assignment:
                attributes.attach(holder, spec, attributes.clone(self.custom_arrays[key]))

    def set_gravity(
        self, gravity: float | Sequence[float] | np.ndarray, world: int | Sequence[int] | None = None
    ) -> None:
        """Set gravity [m/s²]: a vector, or its component along `up_axis`.

        Args:
            gravity: Vector in world axes of shape [3], or its component along `up_axis`; or one vector per
                world, shape [world, 3].
            world: World or worlds concerned; all if None.

        Raises:
            ValueError: If gravity has another shape or is not finite.
            IndexError: If there is no such world.
        """
        value = np.asarray(gravity, dtype=np.float64)
        if value.ndim == 0:
            value = float(value) * np.array(self.up_axis.vector) + 0.0  # no zeros with a sign
        worlds = np.arange(self.world_count) if world is None else np.atleast_1d(np.asarray(world))
        if value.shape not in ((3,), (len(worlds), 3)) or not np.isfinite(value).all():
            raise ValueError(
                f"set_gravity: gravity is {np.asarray(gravity).tolist()}, but it must be a finite number "
                f"(along {self.up_axis.name.lower()}), a vector of 3, or {len(worlds)} vectors for the "
                "worlds concerned."
            )
        if len(worlds) and (worlds.min() < 0 or worlds.max() >= self.world_count):
            raise IndexError(
                f"set_gravity: world {np.asarray(world).tolist()} does not exist; the model has worlds 0 to "
                f"{self.world_count - 1}."
            )
        rows = self.gravity.numpy().copy()
        rows[worlds] = value
        self.gravity.assign(rows)

    def __repr__(self) -> str:
        return (
            f"Model({self.world_count} worlds of {len(self.templates)} kinds, {self.body_count} bodies, "
            f"{self.joint_dof_count} degrees of freedom, {self.shape_count} shapes, on {self.device})"
        )


def _refuse_gradients(call: str, requires_grad: bool | None) -> None:
    if requires_grad:
        raise ValueError(f"{call}: requires_grad is True, but steps are not differentiable. Leave it out.")
