"""Contents of a model, by name: what every part that reads or guards a model may rely on."""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.copying import Uncopied
from pluriverse.model import attributes
from pluriverse.model.batches import Batch
from pluriverse.model.indices import IndexErrors
from pluriverse.model.schema import ModelArrays
from pluriverse.model.topology import Template, Topology
from pluriverse.types import Axis


class ModelContents(Uncopied, ModelArrays):
    """The arrays of a model, and what describes them."""

    copy_remedy = "Call finalize() again, or copy the ModelBuilder before it."
    pickle_remedy = "Pass the ModelBuilder, or the file it was made from, and call finalize() there."

    device: wp.Device
    """Device of all arrays."""

    world_count: int
    """Number of worlds."""
    body_count: int
    """Number of bodies."""
    joint_count: int
    """Number of joints."""
    joint_coord_count: int
    """Number of joint coordinates."""
    joint_dof_count: int
    """Number of joint degrees of freedom."""
    joint_constraint_count: int
    """Number of constraints of all joints (6 minus their degrees of freedom)."""
    articulation_count: int
    """Number of articulations."""
    shape_count: int
    """Number of shapes."""
    equality_constraint_count: int
    """Number of equality constraints."""
    particle_count: int
    """Number of particles; 0, they are not supported yet."""

    up_axis: Axis
    """Axis that points up, that of the builder."""

    world_label: list[str]
    """Name of each world."""

    has_hydroelastic_shapes: bool
    """Whether a colliding shape is marked as hydroelastic, so that contacts carry a stiffness."""
    has_kinematic_bodies: bool
    """Whether a body was kinematic when the model was made. Only then may bodies become or cease to be
    kinematic."""
    body_label: list[str]
    """Name, shape [body]. Labels repeat from world to world."""

    joint_label: list[str]
    """Name, shape [joint]. Labels repeat from world to world."""
    articulation_label: list[str]
    """Name, shape [articulation]. Labels repeat from world to world."""

    shape_label: list[str]
    """Name, shape [shape]. Labels repeat from world to world."""
    meshes: list[Any]
    """The different meshes (`Mesh`) of all shapes."""
    appearances: list[Any]
    """The different appearances (`Appearance`) of all shapes."""

    equality_constraint_label: list[str]
    """Name, shape [equality constraint]. Labels repeat from world to world."""

    # structure
    topology: Topology
    """How bodies are connected and which shapes may touch, for kernels."""
    templates: list[Template]
    """The kinds of worlds, on the host, in the order of `Topology`."""
    world_template: np.ndarray
    """Template of each world, on the host, shape [world]."""
    tree_count: int
    """Number of trees of all worlds."""
    world_row_count: int
    """Number of packed row entries of all worlds."""
    batches: list[Batch]
    """The worlds by size class."""

    # custom attributes
    attribute_specs: dict[str, attributes.AttributeSpec]
    """Declaration of each custom attribute, by its key: its name, with the namespace if it has one."""
    custom_arrays: dict[str, Any]
    """The custom attributes of the model, and those that states, controls and contacts begin with, by key:
    arrays, or lists of texts."""
    custom_frequency_counts: dict[str, int]
    """Number of rows of each custom frequency, by its key."""
    custom_frequency_world: dict[str, np.ndarray]
    """World of each row of a custom frequency (-1 outside of any), on the host, by its key."""
    custom_frequency_articulation: dict[str, np.ndarray]
    """Articulation of each row of a custom frequency that has owners (-1 for none), on the host, by its
    key."""

    _structure: Any
    _index_errors: IndexErrors

    @property
    def structure(self) -> Any:
        """The arrays of this model as kernels read them, without later writes to the structure."""
        return self if self._structure is None else self._structure

    @property
    def index_errors(self) -> IndexErrors:
        """Counters of invalid indices on the device; `SolverBase.report` reports them."""
        return self._index_errors
