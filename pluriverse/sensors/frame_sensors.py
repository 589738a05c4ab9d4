"""Sensors at sites of a model that are read from any state: inertial units and relative poses.

They take a loop of one's own. Sensors that robots bring along, and those with noise, are in `ModelSensors`.
"""

from typing import Any

import numpy as np
import warp as wp

from pluriverse.model import Model, State
from pluriverse.model.arguments import check_state
from pluriverse.selection.patterns import Patterns
from pluriverse.sensors.selected_entities import select_entities, select_sites, world_of
from pluriverse.sensors.site_reading import measure_sites, relate_shapes


class SensorIMU:
    """Accelerometers and gyroscopes at sites, without noise.

    The acceleration is the mean over the last solver step, less gravity: at rest it is +9.81 m/s² upwards.

    Args:
        model: The model.
        sites: Labels, patterns or indices of sites.
        verbose: Makes no difference.
        request_state_attributes: Whether states that are made from now on are to hold `body_qdd`, which
            `update` needs.

    Raises:
        IndexError: If an index is out of range.
        KeyError: If there is no such site.
        ValueError: If a shape is no site, or one of no world where there are several.
    """

    accelerometer: wp.array[wp.vec3]
    """Acceleration less gravity [m/s²], axes of the site, shape [sensor]."""
    gyroscope: wp.array[wp.vec3]
    """Angular velocity [rad/s], axes of the site, shape [sensor]."""

    def __init__(
        self,
        model: Model,
        sites: Patterns,
        *,
        verbose: bool | None = None,
        request_state_attributes: bool = True,
    ):
        self.model = model
        """The model."""
        selected = select_sites(model, sites, "SensorIMU: sites")
        world = world_of(model, model.shape_world.numpy()[selected])
        if (world < 0).any():
            shape = int(selected[np.flatnonzero(world < 0)[0]])
            raise ValueError(
                f"SensorIMU: site '{model.shape_label[shape]}' (index {shape}) belongs to no world, so "
                "it has no gravity of its own. Add it to the worlds."
            )
        self._site: Any = wp.array(selected.astype(np.int32), dtype=wp.int32, device=model.device)
        self._world: Any = wp.array(world.astype(np.int32), dtype=wp.int32, device=model.device)
        self.accelerometer = wp.zeros(len(selected), dtype=wp.vec3, device=model.device)
        self.gyroscope = wp.zeros(len(selected), dtype=wp.vec3, device=model.device)
        if request_state_attributes:
            model.request_state_attributes("body_qdd")

    def update(self, state: State) -> None:
        """Measure at a state that a solver has written. Only launches.

        Raises:
            ValueError: If the state belongs to another model, or has no accelerations.
        """
        check_state(self.model, state, "SensorIMU.update: state")
        if state.body_qdd is None:
            raise ValueError(
                "SensorIMU.update: the state has no accelerations (body_qdd). Make states by model.state() "
                "after the sensor, or after model.request_state_attributes('body_qdd')."
            )
        measure_sites(self.model, self._site, self._world, state, self.accelerometer, self.gyroscope)


class SensorFrameTransform:
    """Poses of shapes and sites in the frames of sites.

    Args:
        model: The model.
        shapes: Labels, patterns or indices of shapes and sites.
        reference_sites: Those of as many sites, or of one for all shapes.
        verbose: Makes no difference.

    Raises:
        IndexError: If an index is out of range.
        KeyError: If there is no such shape.
        ValueError: If a reference is no site, there are neither one nor as many as shapes, or a pair belongs
            to two worlds.
    """

    transforms: wp.array[wp.transform]
    """Pose of each shape in the frame of its reference [m, xyzw], shape [sensor]."""

    def __init__(
        self, model: Model, shapes: Patterns, reference_sites: Patterns, *, verbose: bool | None = None
    ):
        self.model = model
        """The model."""
        selected = select_entities(model, "shape", shapes, "SensorFrameTransform: shapes")
        references = select_sites(model, reference_sites, "SensorFrameTransform: reference_sites")
        if len(references) not in (1, len(selected)):
            raise ValueError(
                f"SensorFrameTransform: there are {len(selected)} shapes and {len(references)} sites of "
                "reference. Give one site, or one for each shape."
            )
        references = np.broadcast_to(references, selected.shape)
        worlds = model.shape_world.numpy()
        apart = (worlds[selected] != worlds[references]) & (worlds[selected] >= 0) & (worlds[references] >= 0)
        if apart.any():
            pair = int(np.flatnonzero(apart)[0])
            raise ValueError(
                f"SensorFrameTransform: shape '{model.shape_label[selected[pair]]}' is in world "
                f"{worlds[selected[pair]]}, its reference in world {worlds[references[pair]]}. Name a site "
                "of the same world for each shape."
            )
        self._shape: Any = wp.array(selected.astype(np.int32), dtype=wp.int32, device=model.device)
        self._reference: Any = wp.array(references.astype(np.int32), dtype=wp.int32, device=model.device)
        self.transforms = wp.zeros(len(selected), dtype=wp.transform, device=model.device)

    def update(self, state: State) -> None:
        """Measure at a state. Only launches.

        Raises:
            ValueError: If the state belongs to another model.
        """
        check_state(self.model, state, "SensorFrameTransform.update: state")
        relate_shapes(self.model, self._shape, self._reference, state, self.transforms)
