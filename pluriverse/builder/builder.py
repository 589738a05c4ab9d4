"""ModelBuilder: what a user assembles on the host."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import warp as wp

from pluriverse.builder.cameras import CameraMode, add_camera
from pluriverse.builder.custom_attribute import CustomAttribute, CustomFrequency
from pluriverse.builder.inputs import Transform, Vector
from pluriverse.builder.joint_config import JointDofConfig
from pluriverse.builder.sensors import SensorTerm, SensorType, SensorZone, add_sensor
from pluriverse.builder.shape_config import ShapeConfig
from pluriverse.builder.worlds import WorldBuilder
from pluriverse.model import Model
from pluriverse.types import Axis
from pluriverse.warnings import PluriverseWarning

if TYPE_CHECKING:
    from pluriverse.importers.report import ImportReport


class ModelBuilder(WorldBuilder):
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

    def __init__(self, up_axis: Axis | int | str = Axis.Z, gravity: float | Vector | None = None):
        super().__init__()
        self.up_axis = up_axis
        if gravity is not None:
            self.gravity = gravity

    def add_mjcf(self, source: Any, **options: Any) -> "ImportReport":
        """Add a MuJoCo model (MJCF file, XML text, MjSpec); see `pluriverse.importers.mjcf.add_mjcf`."""
        from pluriverse.importers.mjcf import add_mjcf
        from pluriverse.importers.other_options import read_other_options

        own_options, is_verbose = read_other_options("add_mjcf", options)
        report = add_mjcf(self, source, **own_options)
        report.map_labels(self.body_label, self.joint_label, self.shape_label)
        if is_verbose:
            print(report.summary())
        return report

    def add_urdf(self, source: Any, **options: Any) -> "ImportReport":
        """Add the links of a URDF file or XML text; see `pluriverse.importers.urdf.add_urdf`."""
        from pluriverse.importers.other_options import read_other_options
        from pluriverse.importers.urdf import add_urdf

        own_options, is_verbose = read_other_options("add_urdf", options)
        report = add_urdf(self, source, **own_options)
        report.map_labels(self.body_label, self.joint_label, self.shape_label)
        if is_verbose:
            print(report.summary())
        return report

    def add_usd(self, source: Any, **options: Any) -> "ImportReport":
        """Add the bodies of a USD file, text or stage; see `pluriverse.importers.usd.add_usd`."""
        from pluriverse.importers.other_options import read_other_options
        from pluriverse.importers.usd import add_usd

        own_options, is_verbose = read_other_options("add_usd", options)
        report = add_usd(self, source, **own_options)
        report.map_labels(self.body_label, self.joint_label, self.shape_label)
        if is_verbose:
            print(report.summary())
        return report

    def add_camera(
        self,
        body: int = -1,
        *,
        xform: Transform | None = None,
        fov: float = 0.785,
        width: int = 64,
        height: int = 64,
        mode: CameraMode = CameraMode.FIXED,
        target: int = -1,
        label: str | None = None,
    ) -> int:
        """Add a camera, for `CameraSensor` and for pictures (`pv.draw(..., camera=label)`).

        Args:
            body: Body that carries it, -1 for the world.
            xform: Pose in the frame of the body. The camera looks along -z, with y up.
            fov: Vertical field of view [rad].
            width: Columns of its image.
            height: Rows of its image.
            mode: Whether it is fixed to its body, keeps its orientation, or turns towards another body.
            target: Body that it turns towards, with `CameraMode.TARGET`.
            label: Name; `camera_INDEX` if None.

        Returns:
            Index of the camera.

        Raises:
            IndexError: If there is no such body.
            ValueError: If a value is out of range.
        """
        return add_camera(
            self,
            body,
            xform=xform,
            fov=fov,
            width=width,
            height=height,
            mode=mode,
            target=target,
            label=label,
        )

    def add_sensor(
        self,
        type: SensorType | str,
        *,
        body: int = -1,
        xform: Transform | None = None,
        joint: int | None = None,
        axis: int = 0,
        reference_body: int | None = None,
        reference_xform: Transform | None = None,
        zone: SensorZone | None = None,
        terms: Sequence[SensorTerm] | None = None,
        parameter: Sequence[float] | None = None,
        cutoff: float = 0.0,
        noise: float = 0.0,
        delay: float = 0.0,
        label: str | None = None,
    ) -> int:
        """Add a sensor, which `Simulation.sensors` measures in every world: `simulation.sensors[label]`.

        Robots from any file can be given sensors: `builder.add_sensor("gyro", body=report.bodies[0])`.

        Args:
            type: What it measures: a `SensorType`, or its name in either case, as in MJCF.
            body: Body that carries it, -1 for the world.
            xform: Frame of the sensor in that body [m, xyzw]; the frame of the body if None.
            joint: Joint that it is on, for `jointpos`, `jointvel`, `jointactuatorfrc`, `jointlimitpos`,
                `jointlimitvel`, `ballquat` and `ballangvel`.
            axis: Axis of a D6 joint.
            reference_body: Body whose frame `frame*` sensors measure in, that of the zone of `insidesite`, or
                of the camera of `camprojection`; -1 for the world, None for none.
            reference_xform: The frame in that body.
            zone: Volume that contacts of `touch`, or the frame's origin of `insidesite`, are looked for in.
            terms: Shares of a sum over joint coordinates in place of `joint`; springs of `e_potential`.
            parameter: The field in the world of `magnetometer`; focal lengths and centre of the image [pixel]
                of `camprojection`.
            cutoff: Largest absolute value that it tells, 0 for no bound; not for quaternions and axes.
            noise: Standard deviation of the noise of each sample, in the unit of the sensor.
            delay: How late it is read [s].
            label: Name; `TYPE_INDEX` if None.

        Returns:
            Index of the sensor.

        Raises:
            IndexError: If there is no such body.
            ValueError: If a value is out of range, or something that the type needs is missing.
        """
        return add_sensor(
            self,
            type,
            body=body,
            xform=xform,
            joint=joint,
            axis=axis,
            reference_body=reference_body,
            reference_xform=reference_xform,
            zone=zone,
            terms=terms,
            parameter=parameter,
            cutoff=cutoff,
            noise=noise,
            delay=delay,
            label=label,
        )

    def add_sensor_imu(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        accelerometer_noise: float = 0.0,
        gyro_noise: float = 0.0,
        delay: float = 0.0,
        label: str = "imu",
    ) -> tuple[int, int, int]:
        """Add an inertial measurement unit: sensors `LABEL_acc`, `LABEL_gyro` and `LABEL_quat` on one frame.

        Args:
            body: Body that carries it.
            xform: Its frame in the body.
            accelerometer_noise: Standard deviation of the specific force [m/s²].
            gyro_noise: Standard deviation of the angular velocity [rad/s].
            delay: How late it is read [s].
            label: First part of the three names.

        Returns:
            Indices of accelerometer, gyro and orientation (`framequat`).

        Raises:
            IndexError: If there is no such body.
            ValueError: If a value is out of range.
        """
        frame: dict[str, Any] = {"body": body, "xform": xform, "delay": delay}
        return (
            self.add_sensor("accelerometer", noise=accelerometer_noise, label=f"{label}_acc", **frame),
            self.add_sensor("gyro", noise=gyro_noise, label=f"{label}_gyro", **frame),
            self.add_sensor("framequat", label=f"{label}_quat", **frame),
        )

    def add_sensor_force_torque(
        self,
        body: int,
        *,
        xform: Transform | None = None,
        noise: float = 0.0,
        delay: float = 0.0,
        label: str = "wrist",
    ) -> tuple[int, int]:
        """Add sensors `LABEL_force` and `LABEL_torque` of what the joint above a body transmits to it.

        Args:
            body: Body on the far side of the joint.
            xform: Frame of the sensor in the body; torques are about its origin.
            noise: Standard deviation [N and N·m].
            delay: How late it is read [s].
            label: First part of the two names.

        Returns:
            Indices of both sensors.

        Raises:
            IndexError: If there is no such body.
            ValueError: If a value is out of range.
        """
        frame: dict[str, Any] = {"body": body, "xform": xform, "noise": noise, "delay": delay}
        return (
            self.add_sensor("force", label=f"{label}_force", **frame),
            self.add_sensor("torque", label=f"{label}_torque", **frame),
        )

    def approximate_meshes(
        self,
        method: str = "convex_hull",
        shape_indices: Iterable[int] | None = None,
        raise_on_failure: bool = False,
        keep_visual_shapes: bool = False,
        *,
        cache_dir: str | Path | None = None,
        **options: Any,
    ) -> set[int]:
        """Let shapes with a mesh collide as simpler geometry. Masses stay as they are.

        Do this before the builder is replicated or added to another one: then all copies share the result.

        Args:
            method: `"convex_hull"`; `"components"`, the hull of each connected piece, as a shape of its own;
                `"bounding_box"` (oriented); `"bounding_sphere"`; `"coacd"` or `"vhacd"`:
                a convex decomposition, each part a shape of its own; `"quadratic"`: a mesh of fewer
                triangles.
            shape_indices: Shapes concerned, those without a mesh being left out; None for all meshes that
                collide.
            raise_on_failure: Whether to raise where a method fails. Otherwise a warning names the shape, and
                the convex hull is taken, or the box if that fails too.
            keep_visual_shapes: Whether the mesh stays visible, as a shape that does not collide.
            cache_dir: Folder that keeps decompositions and simplifications; see `approximate_mesh`.
            **options: Options of the method, such as `threshold` of CoACD; see `approximate_mesh`.

        Returns:
            The shapes that were replaced. Further parts are added behind the last shape, as `LABEL_1` and so
            on.

        Raises:
            ValueError: If there is no such method, or a shape in a world that is closed becomes several.
            IndexError: If there is no such shape.
            TypeError: If the method has no such option.
            ImportError: If a package is missing and `raise_on_failure` is set.
        """
        from pluriverse.builder.mesh_approximation import approximate_meshes

        return approximate_meshes(
            self, method, shape_indices, raise_on_failure, keep_visual_shapes, cache_dir, options
        )

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
        """Check everything and make a model of it. The builder can be used further.

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
            ValueError: If the description is not a valid model, or `requires_grad` is set; the message names
                the entity, the value and the remedy.
        """
        from pluriverse.builder.finalize import make_model

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

        return make_model(self, wp.get_device(device))
