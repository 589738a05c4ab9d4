"""ModelBuilder: what a user assembles on the host."""

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import warp as wp

from pluriverse.builder import (
    articulations,
    axis_joints,
    bodies,
    cameras,
    custom_attributes,
    custom_rows,
    equality,
    fixed_joints,
    global_bodies,
    joints,
    mesh_approximation,
    sensors,
    shapes,
    world_scope,
    worlds,
)
from pluriverse.builder.custom_attribute import CustomAttribute, CustomFrequency
from pluriverse.builder.filter_pairs import FilterPairs
from pluriverse.builder.finalize import make_model
from pluriverse.builder.inputs import Vector
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.builder.shape_config import ShapeConfig
from pluriverse.builder.tables import BuilderTables
from pluriverse.collision import CollisionPipeline
from pluriverse.importers import methods as importers
from pluriverse.model import Model
from pluriverse.model.requested import check_contact_attributes, check_state_attributes
from pluriverse.newton_names import explain_missing
from pluriverse.types import Axis
from pluriverse.warnings import PluriverseWarning


class ModelBuilder(BuilderTables):
    """Describes bodies, joints, shapes and worlds, and makes a `Model` of them.

    Entities added outside of any world are global: shared by all worlds (shapes of the environment), or,
    where no world is ever opened, the one world there is. Bodies and joints may be added in any order.

    All properties are NumPy arrays that can be written to before `finalize`: `builder.joint_q[2] = 0.3`.
    Fetch an array from the builder again after adding entities.

    Args:
        up_axis: Axis that points up: of gravity given as a number, the ground plane and imported assets.
        gravity: Gravity [m/s²], a vector or its component along the up axis; -9.81 if None.

    Raises:
        ValueError: If `up_axis` is no axis, or gravity is neither a number nor a vector.
    """

    ShapeConfig = ShapeConfig  # as in Newton, where configurations are nested in the builder
    JointDofConfig = JointDofConfig
    CustomAttribute = CustomAttribute
    CustomFrequency = CustomFrequency

    # Each of these is the function of its module that takes a builder first.
    begin_world = world_scope.begin_world
    end_world = world_scope.end_world
    add_world = worlds.add_world
    add_builder = worlds.add_builder
    replicate = worlds.replicate
    copy_global_bodies = global_bodies.copy_global_bodies
    collapse_fixed_joints = fixed_joints.collapse_fixed_joints
    add_link = bodies.add_link
    add_body = articulations.add_body
    add_articulation = articulations.add_articulation
    add_joint_revolute = axis_joints.add_joint_revolute
    add_joint_prismatic = axis_joints.add_joint_prismatic
    add_joint_d6 = axis_joints.add_joint_d6
    add_joint = joints.add_joint
    add_joint_ball = joints.add_joint_ball
    add_joint_fixed = joints.add_joint_fixed
    add_joint_free = joints.add_joint_free
    add_joint_distance = joints.add_joint_distance
    add_shape = shapes.add_shape
    add_ground_plane = shapes.add_ground_plane
    add_shape_plane = shapes.add_shape_plane
    add_shape_sphere = shapes.add_shape_sphere
    add_shape_box = shapes.add_shape_box
    add_shape_capsule = shapes.add_shape_capsule
    add_shape_cylinder = shapes.add_shape_cylinder
    add_shape_cone = shapes.add_shape_cone
    add_shape_ellipsoid = shapes.add_shape_ellipsoid
    add_shape_mesh = shapes.add_shape_mesh
    add_shape_convex_hull = shapes.add_shape_convex_hull
    add_shape_heightfield = shapes.add_shape_heightfield
    add_site = shapes.add_site
    add_shape_collision_filter_pair = shapes.add_shape_collision_filter_pair
    set_appearance = shapes.set_appearance
    approximate_meshes = mesh_approximation.approximate_meshes
    add_equality_constraint = equality.add_equality_constraint
    add_equality_constraint_connect = equality.add_equality_constraint_connect
    add_equality_constraint_weld = equality.add_equality_constraint_weld
    add_equality_constraint_joint = equality.add_equality_constraint_joint
    add_constraint_mimic = equality.add_constraint_mimic
    set_joint_mimic = equality.set_joint_mimic
    add_sensor = sensors.add_sensor
    add_sensor_imu = sensors.add_sensor_imu
    add_sensor_force_torque = sensors.add_sensor_force_torque
    add_camera = cameras.add_camera
    add_custom_attribute = custom_attributes.add_custom_attribute
    add_custom_frequency = custom_attributes.add_custom_frequency
    has_custom_attribute = custom_attributes.has_custom_attribute
    get_custom_attributes_by_frequency = custom_attributes.get_custom_attributes_by_frequency
    get_custom_frequency_keys = custom_attributes.get_custom_frequency_keys
    custom_frequency_count = custom_attributes.custom_frequency_count
    custom_entity_count = custom_attributes.custom_entity_count
    add_custom_values = custom_rows.add_custom_values
    add_custom_values_batch = custom_rows.add_custom_values_batch
    add_mjcf = importers.add_mjcf
    add_urdf = importers.add_urdf
    add_usd = importers.add_usd

    def __init__(self, up_axis: Axis | int | str = Axis.Z, gravity: float | Vector | None = None):
        super().__init__()
        self.up_axis = up_axis
        if gravity is not None:
            self.gravity = gravity

    if not TYPE_CHECKING:
        __getattr__ = explain_missing("ModelBuilder")

    @property
    def shape_collision_filter_pairs(self) -> FilterPairs:
        """Pairs of shapes filtered by `add_shape_collision_filter_pair`: a list that can be written to."""
        return FilterPairs(self)

    @shape_collision_filter_pairs.setter
    def shape_collision_filter_pairs(self, pairs: Iterable[Any]) -> None:
        FilterPairs(self).replace(pairs)

    def request_state_attributes(self, *names: str) -> None:
        """Have the model made of this builder request arrays of states; see `Model.request_state_attributes`.

        Raises:
            ValueError: If there is no such array.
        """
        check_state_attributes("ModelBuilder", names)
        self.requested_state_attributes |= set(names)

    def request_contact_attributes(self, *names: str) -> None:
        """Ask for nothing: forces are in every `Contacts`; see `Model.request_contact_attributes`.

        Raises:
            ValueError: If there is no such array.
        """
        check_contact_attributes("ModelBuilder", names)

    @property
    def up_vector(self) -> tuple[float, float, float]:
        """Unit vector that points up. Assigning one of the axes sets `up_axis`."""
        return self.up_axis.vector

    @up_vector.setter
    def up_vector(self, vector: Vector) -> None:
        axes = [axis for axis in Axis if tuple(float(part) for part in vector) == axis.vector]
        if not axes:
            raise ValueError(
                f"ModelBuilder.up_vector is {tuple(vector)}, but must be along x, y or z. Turn what you add."
            )
        self.up_axis = axes[0]

    def color(self, *settings: Any, **options: Any) -> None:
        """Ask for nothing: solvers here need no colors of bodies, which Newton's `SolverVBD` does."""

    def validate_joint_ordering(self) -> bool:
        """Return True: joints may be added in any order, and `finalize` sorts what needs an order."""
        return True

    def finalize(
        self,
        device: Any = None,
        *,
        requires_grad: bool = False,
        skip_all_validations: bool = False,
        skip_validation_worlds: bool = False,
        skip_validation_joints: bool = False,
        skip_validation_shapes: bool = False,
        skip_validation_structure: bool = False,
        skip_validation_joint_ordering: bool = True,
    ) -> Model:
        """Check the description and return a model of it. The builder stays usable.

        Args:
            device: Device of the model, for example "cpu" or "cuda:0"; Warp's default device if None.
            requires_grad: Must be False: steps are not differentiable.
            skip_all_validations: As in Newton, but every check runs. This and the following can be given and
                change nothing; True is warned about.
            skip_validation_worlds: See above.
            skip_validation_joints: See above.
            skip_validation_shapes: See above.
            skip_validation_structure: See above.
            skip_validation_joint_ordering: Changes nothing, since joints may be added in any order.

        Raises:
            RuntimeError: If a world is still open.
            ValueError: If the description is not a valid model, there is no such device, or `requires_grad`
                is set; the message names the entity, the value and the remedy.
        """
        if requires_grad:
            raise ValueError(
                "ModelBuilder.finalize: requires_grad is True, but steps are not differentiable. "
                "Leave it out."
            )
        skipped = {
            "skip_all_validations": skip_all_validations,
            "skip_validation_worlds": skip_validation_worlds,
            "skip_validation_joints": skip_validation_joints,
            "skip_validation_shapes": skip_validation_shapes,
            "skip_validation_structure": skip_validation_structure,
        }
        if any(skipped.values()):
            given = ", ".join(name for name, is_given in skipped.items() if is_given)
            warnings.warn(
                f"ModelBuilder.finalize: {given}: every check runs all the same, since a model that is not "
                "valid would be simulated wrongly.",
                PluriverseWarning,
                stacklevel=2,
            )

        try:
            target = wp.get_device(device)
        except (ValueError, RuntimeError) as error:
            known = ", ".join(f"'{each}'" for each in wp.get_devices())
            raise ValueError(
                f"ModelBuilder.finalize: device is {device!r}, but this machine has {known}."
            ) from error
        return make_model(self, target, CollisionPipeline)
