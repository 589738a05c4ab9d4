"""Asset calls: files and primitives as assets, and what assets consist of."""

import os
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from pluriverse.files import replace_file
from pluriverse.gymapi.arguments import as_float, as_int, as_list, transform
from pluriverse.gymapi.asset import Asset, ForceSensor
from pluriverse.gymapi.asset_files import load_mjcf, load_urdf, load_usd, primitive
from pluriverse.gymapi.checks import Checks
from pluriverse.gymapi.drives import check_dof_properties, drive_rows
from pluriverse.gymapi.enums import DofType, JointType
from pluriverse.gymapi.errors import GymError, GymWarning, require
from pluriverse.gymapi.shape_properties import read_shape_properties, write_asset_shape_properties
from pluriverse.gymapi.store import asset_rows
from pluriverse.gymapi.structures import (
    ActuatorProperties,
    AssetOptions,
    ForceSensorProperties,
    RigidShapeProperties,
    TendonProperties,
)
from pluriverse.gymapi.tendons import keep_tendons, put_tendon_properties
from pluriverse.gymapi.values import IndexRange, Transform
from pluriverse.importers.errors import AssetError
from pluriverse.importers.urdf_repair import SHEET_SHARE

_LOADERS: dict[str, Callable[[str, str, AssetOptions], Asset]] = {
    ".urdf": load_urdf,
    ".xml": load_mjcf,
    ".mjcf": load_mjcf,
    ".usd": load_usd,
    ".usda": load_usd,
    ".usdc": load_usd,
}


class AssetCalls(Checks):
    """Assets: load, create, ask."""

    def load_asset(
        self, sim: Any, rootpath: str, filename: str, options: AssetOptions | None = None
    ) -> Asset:
        """Return the asset of a URDF, MJCF (.xml) or USD file.

        Raises:
            GymError: If it cannot be read. Nothing that scripts could overlook is returned in its place.
            ValueError: If the name of the file has none of these endings.
        """
        extension = os.path.splitext(str(filename))[1].lower()
        loader = _LOADERS.get(extension)
        require(
            loader is not None,
            "load_asset",
            f"filename is '{filename}', but must end in one of {', '.join(_LOADERS)}.",
        )
        assert loader is not None
        return self._load("load_asset", sim, rootpath, filename, options, loader)

    def load_urdf(self, sim: Any, rootpath: str, filename: str, options: AssetOptions | None = None) -> Asset:
        """Return the asset of a URDF file.

        Raises:
            GymError: If it cannot be read.
        """
        return self._load("load_urdf", sim, rootpath, filename, options, load_urdf)

    def load_mjcf(self, sim: Any, rootpath: str, filename: str, options: AssetOptions | None = None) -> Asset:
        """Return the asset of an MJCF file.

        Raises:
            GymError: If it cannot be read.
        """
        return self._load("load_mjcf", sim, rootpath, filename, options, load_mjcf)

    def load_usd(self, sim: Any, rootpath: str, filename: str, options: AssetOptions | None = None) -> Asset:
        """Return the asset of a USD file.

        Raises:
            GymError: If it cannot be read.
        """
        return self._load("load_usd", sim, rootpath, filename, options, load_usd)

    def load_opensim(self, *_: Any) -> None:
        """Not supported.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            "load_opensim: OpenSim files are not read. Convert the model to MJCF or URDF."
        )

    def create_box(
        self, sim: Any, width: float, height: float, depth: float, options: AssetOptions | None = None
    ) -> Asset:
        """Return the asset of a box of full sizes along x, y and z [m].

        A size of zero becomes a thousandth of the largest one, with a warning.
        """
        sizes = _sizes("create_box", **_thickened(width=width, height=height, depth=depth))
        hx, hy, hz = (0.5 * size for size in sizes)
        return self._primitive(
            "create_box", sim, "box", options, lambda b, body: b.add_shape_box(body, hx=hx, hy=hy, hz=hz)
        )

    def create_sphere(self, sim: Any, radius: float, options: AssetOptions | None = None) -> Asset:
        """Return the asset of a sphere [m]."""
        (size,) = _sizes("create_sphere", radius=radius)
        return self._primitive(
            "create_sphere", sim, "sphere", options, lambda b, body: b.add_shape_sphere(body, radius=size)
        )

    def create_capsule(
        self, sim: Any, radius: float, width: float, options: AssetOptions | None = None
    ) -> Asset:
        """Return the asset of a capsule along x; `width` [m] is that of its cylinder, without the caps."""
        size, length = _sizes("create_capsule", radius=radius, width=width)
        half_turn = (0.0, 0.0, 0.0, 0.0, 2.0**-0.5, 0.0, 2.0**-0.5)  # z to x
        return self._primitive(
            "create_capsule",
            sim,
            "capsule",
            options,
            lambda b, body: b.add_shape_capsule(body, xform=half_turn, radius=size, half_height=0.5 * length),
        )

    def _load(
        self,
        call: str,
        sim: Any,
        root: Any,
        filename: Any,
        options: AssetOptions | None,
        loader: Callable[[str, str, AssetOptions], Asset],
    ) -> Asset:
        found = self._open_sim(sim, call)
        asset_options = _options(options, call)
        try:
            asset = loader(str(root), str(filename), asset_options)
        except (AssetError, OSError, ValueError) as error:
            raise GymError(f"{call}: '{filename}' cannot be an asset. {error}") from error
        return self._settle(found, asset)

    def _primitive(
        self,
        call: str,
        sim: Any,
        name: str,
        options: AssetOptions | None,
        add_shape: Callable[[Any, int], Any],
    ) -> Asset:
        found = self._open_sim(sim, call)
        return self._settle(found, primitive(name, _options(options, call), add_shape))

    def _settle(self, sim: Any, asset: Asset) -> Asset:
        sim.assets.append(asset)
        asset.sim = sim
        _write_drives(asset, sim.params.dt / sim.params.substeps)
        return asset

    def debug_print_asset(self, asset: Any, outpath: str | None = None) -> None:
        """Print bodies, joints and degrees of freedom of an asset, to a file if `outpath` is given."""
        found = self._asset(asset, "debug_print_asset")
        if not isinstance(outpath, str | os.PathLike | None):
            raise TypeError(f"debug_print_asset: outpath is {outpath!r}, but must be the path of a file.")
        lines = [repr(found)]
        for index, name in enumerate(found.body_names):
            lines.append(f"  body {index} '{name}': {found.builder.body_mass[index]:.6g} kg")
        for index, joint in enumerate(found.joints):
            dofs = ", ".join(found.dofs[dof].name for dof in joint.dofs)
            lines.append(f"  joint {index} '{joint.name}': {self.get_joint_type_string(joint.type)} ({dofs})")
        text = "\n".join(lines) + "\n"
        if outpath is None:
            print(text, end="")
        else:
            with replace_file(outpath) as part:
                part.write_text(text, encoding="utf-8")

    def get_asset_rigid_body_count(self, asset: Any) -> int:
        """Return the number of bodies."""
        return self._asset(asset, "get_asset_rigid_body_count").body_count

    def get_asset_rigid_body_name(self, asset: Any, index: int) -> str:
        """Return the name of a body."""
        names = self._asset(asset, "get_asset_rigid_body_name").body_names
        return names[self._entry(index, names, "body", str(asset), "get_asset_rigid_body_name")]

    def get_asset_rigid_body_names(self, asset: Any) -> list[str]:
        """Return the names of the bodies."""
        return list(self._asset(asset, "get_asset_rigid_body_names").body_names)

    def get_asset_rigid_body_dict(self, asset: Any) -> dict[str, int]:
        """Return the index of each body by name."""
        return _indices(self._asset(asset, "get_asset_rigid_body_dict").body_names)

    def find_asset_rigid_body_index(self, asset: Any, name: str) -> int:
        """Return the index of a body, -1 if there is none of that name."""
        return self._asset(asset, "find_asset_rigid_body_index").body_index(name)

    def get_asset_rigid_shape_count(self, asset: Any) -> int:
        """Return the number of shapes."""
        return self._asset(asset, "get_asset_rigid_shape_count").shape_count

    def get_asset_rigid_body_shape_indices(self, asset: Any) -> list[IndexRange]:
        """Return the shapes of each body."""
        ranges = self._asset(asset, "get_asset_rigid_body_shape_indices").body_shape_ranges
        return [IndexRange(part.start, part.count) for part in ranges]

    def get_asset_rigid_shape_properties(self, asset: Any) -> list[RigidShapeProperties]:
        """Return the material of each shape, as new actors will have it."""
        return read_shape_properties(self._asset(asset, "get_asset_rigid_shape_properties"), None)

    def set_asset_rigid_shape_properties(self, asset: Any, properties: list[RigidShapeProperties]) -> bool:
        """Set the material of each shape, for actors created from now on."""
        call = "set_asset_rigid_shape_properties"
        found = self._asset(asset, call)
        write_asset_shape_properties(found, properties, call)
        return True

    def get_asset_joint_count(self, asset: Any) -> int:
        """Return the number of joints."""
        return len(self._asset(asset, "get_asset_joint_count").joints)

    def get_asset_joint_name(self, asset: Any, index: int) -> str:
        """Return the name of a joint."""
        names = [joint.name for joint in self._asset(asset, "get_asset_joint_name").joints]
        return names[self._entry(index, names, "joint", str(asset), "get_asset_joint_name")]

    def get_asset_joint_names(self, asset: Any) -> list[str]:
        """Return the names of the joints."""
        return [joint.name for joint in self._asset(asset, "get_asset_joint_names").joints]

    def get_asset_joint_dict(self, asset: Any) -> dict[str, int]:
        """Return the index of each joint by name."""
        return _indices([joint.name for joint in self._asset(asset, "get_asset_joint_dict").joints])

    def get_asset_joint_type(self, asset: Any, index: int) -> JointType:
        """Return the type of a joint."""
        joints = self._asset(asset, "get_asset_joint_type").joints
        names = [joint.name for joint in joints]
        return joints[self._entry(index, names, "joint", str(asset), "get_asset_joint_type")].type

    def find_asset_joint_index(self, asset: Any, name: str) -> int:
        """Return the index of a joint, -1 if there is none of that name."""
        return self._asset(asset, "find_asset_joint_index").joint_index(name)

    def get_joint_type_string(self, type: JointType | int) -> str:
        """Return the name of a type of joints."""
        return (
            JointType(as_int(type, "type", "get_joint_type_string")).name.removeprefix("JOINT_").capitalize()
        )

    def get_asset_dof_count(self, asset: Any) -> int:
        """Return the number of degrees of freedom."""
        return self._asset(asset, "get_asset_dof_count").dof_count

    def get_asset_dof_name(self, asset: Any, index: int) -> str:
        """Return the name of a degree of freedom."""
        names = [dof.name for dof in self._asset(asset, "get_asset_dof_name").dofs]
        return names[self._entry(index, names, "degree of freedom", str(asset), "get_asset_dof_name")]

    def get_asset_dof_names(self, asset: Any) -> list[str]:
        """Return the names of the degrees of freedom."""
        return [dof.name for dof in self._asset(asset, "get_asset_dof_names").dofs]

    def get_asset_dof_dict(self, asset: Any) -> dict[str, int]:
        """Return the index of each degree of freedom by name."""
        return _indices([dof.name for dof in self._asset(asset, "get_asset_dof_dict").dofs])

    def get_asset_dof_type(self, asset: Any, index: int) -> DofType:
        """Return the type of a degree of freedom."""
        dofs = self._asset(asset, "get_asset_dof_type").dofs
        names = [dof.name for dof in dofs]
        return dofs[self._entry(index, names, "degree of freedom", str(asset), "get_asset_dof_type")].type

    def get_asset_dof_properties(self, asset: Any) -> np.ndarray:
        """Return limits, drives and losses of the degrees of freedom; a copy."""
        return self._asset(asset, "get_asset_dof_properties").dof_properties.copy()

    def set_asset_dof_properties(self, asset: Any, properties: Any) -> bool:
        """Set limits, drives and losses, for actors created from now on."""
        call = "set_asset_dof_properties"
        found = self._asset(asset, call)
        names = self.get_asset_dof_names(asset)
        found.dof_properties = check_dof_properties(properties, found.dof_properties, names, call, str(found))
        _write_drives(found, 0.0)
        return True

    def find_asset_dof_index(self, asset: Any, name: str) -> int:
        """Return the index of a degree of freedom, -1 if there is none of that name."""
        return self._asset(asset, "find_asset_dof_index").dof_index_of(name)

    def get_dof_type_string(self, type: DofType | int) -> str:
        """Return the name of a type of degrees of freedom."""
        return DofType(as_int(type, "type", "get_dof_type_string")).name.removeprefix("DOF_").capitalize()

    def get_asset_actuator_count(self, asset: Any) -> int:
        """Return the number of actuators of an MJCF file."""
        return len(self._asset(asset, "get_asset_actuator_count").actuators)

    def get_asset_actuator_name(self, asset: Any, index: int) -> str:
        """Return the name of an actuator."""
        return self._actuator(asset, index, "get_asset_actuator_name").name

    def get_asset_actuator_joint_name(self, asset: Any, index: int) -> str:
        """Return the name of the joint of an actuator."""
        return self._actuator(asset, index, "get_asset_actuator_joint_name").joint

    def get_asset_actuator_properties(self, asset: Any) -> list[ActuatorProperties]:
        """Return what the file says about each actuator."""
        return [part.copy() for part in self._asset(asset, "get_asset_actuator_properties").actuators]

    def find_asset_actuator_index(self, asset: Any, name: str) -> int:
        """Return the index of an actuator, -1 if there is none of that name."""
        names = [part.name for part in self._asset(asset, "find_asset_actuator_index").actuators]
        return names.index(name) if name in names else -1

    def _actuator(self, asset: Any, index: Any, call: str) -> ActuatorProperties:
        actuators = self._asset(asset, call).actuators
        return actuators[self._entry(index, [part.name for part in actuators], "actuator", str(asset), call)]

    def get_asset_tendon_count(self, asset: Any) -> int:
        """Return the number of fixed tendons of an MJCF file."""
        return len(self._asset(asset, "get_asset_tendon_count").tendons)

    def get_asset_tendon_name(self, asset: Any, index: int) -> str:
        """Return the name of a tendon."""
        return self._asset_tendon(asset, index, "get_asset_tendon_name").properties.name

    def get_asset_tendon_properties(self, asset: Any) -> list[TendonProperties]:
        """Return the properties of each tendon."""
        tendons = self._asset(asset, "get_asset_tendon_properties").tendons
        return [tendon.properties.copy() for tendon in tendons]

    def set_asset_tendon_properties(self, asset: Any, properties: list[TendonProperties]) -> bool:
        """Set the properties of each tendon, for actors created from now on."""
        call = "set_asset_tendon_properties"
        found = self._asset(asset, call)
        parts = as_list(properties, "properties", call)
        require(
            len(parts) == len(found.tendons),
            call,
            f"{len(parts)} properties were given, but {found} has {len(found.tendons)} tendons.",
        )
        keep_tendons(found)
        put_tendon_properties(found.tendons, parts, call, str(found))
        return True

    def find_asset_tendon_index(self, asset: Any, name: str) -> int:
        """Return the index of a tendon, -1 if there is none of that name."""
        names = [tendon.properties.name for tendon in self._asset(asset, "find_asset_tendon_index").tendons]
        return names.index(name) if name in names else -1

    def get_asset_fixed_tendon_joint_coefficients(self, asset: Any, tendon: int) -> list[float]:
        """Return the coefficients of the joints of a tendon."""
        return list(
            self._asset_tendon(asset, tendon, "get_asset_fixed_tendon_joint_coefficients").coefficients
        )

    def set_asset_fixed_tendon_joint_coefficients(self, asset: Any, tendon: int, values: list[float]) -> bool:
        """Set the coefficients of the joints of a tendon, for actors created from now on."""
        call = "set_asset_fixed_tendon_joint_coefficients"
        found = self._asset_tendon(asset, tendon, call)
        values = as_list(values, "values", call)
        require(
            len(values) == len(found.dofs),
            call,
            f"{len(values)} coefficients were given, but the tendon has {len(found.dofs)} joints.",
        )
        keep_tendons(asset)
        found.coefficients = [as_float(value, "a coefficient", call) for value in values]
        return True

    def get_asset_fixed_tendon_joint_name(self, asset: Any, tendon: int, index: int) -> str:
        """Return the name of a joint of a tendon."""
        call = "get_asset_fixed_tendon_joint_name"
        found = self._asset_tendon(asset, tendon, call)
        names = [asset.dofs[dof].name for dof in found.dofs]
        return names[self._entry(index, names, "joint", f"tendon '{found.properties.name}'", call)]

    def _asset_tendon(self, asset: Any, index: Any, call: str) -> Any:
        tendons = self._asset(asset, call).tendons
        names = [tendon.properties.name for tendon in tendons]
        return tendons[self._entry(index, names, "tendon", str(asset), call)]

    def create_asset_force_sensor(
        self, asset: Any, body_idx: int, local_pose: Transform, props: ForceSensorProperties | None = None
    ) -> int:
        """Add a force sensor to a body of an asset, for actors created from now on; return its index.

        Returns:
            Index of the sensor; -1 if there is no such body.
        """
        call = "create_asset_force_sensor"
        found = self._asset(asset, call)
        if found.actor_count:
            raise GymError(
                f"{call}: {found} has {found.actor_count} actors already. Add sensors before the first "
                "create_actor()."
            )
        body = as_int(body_idx, "body_idx", call)
        if not 0 <= body < found.body_count:
            return -1
        properties = ForceSensorProperties() if props is None else props.copy()
        found.force_sensors.append(ForceSensor(body, transform(local_pose, "local_pose", call), properties))
        return len(found.force_sensors) - 1


def _write_drives(asset: Asset, dt: float) -> None:
    """Write what follows from the properties of the degrees of freedom into the builder of an asset."""
    if asset.dof_count == 0:
        return
    for name, rows in drive_rows(asset.dof_properties, asset.dof_ball_axis, dt).items():
        column = np.array(asset_rows(asset, name))
        column[asset.dof_index] = rows
        asset.override_rows({name: column})


def _options(options: Any, call: str) -> AssetOptions:
    if options is None:
        return AssetOptions()
    if not isinstance(options, AssetOptions):
        raise TypeError(f"{call}: options is {options!r}, but must be a gymapi.AssetOptions.")
    for name in ("density", "armature", "linear_damping", "angular_damping"):
        value = getattr(options, name)
        require(
            0.0 <= as_float(value, f"options.{name}", call) < np.inf,
            call,
            f"options.{name} is {value}, but must be >= 0 and finite.",
        )
    for name in ("max_linear_velocity", "max_angular_velocity"):
        value = getattr(options, name)
        require(
            as_float(value, f"options.{name}", call) > 0.0,
            call,
            f"options.{name} is {value}, but must be > 0, infinite for none.",
        )
    return options.copy()


def _thickened(**sizes: Any) -> dict[str, Any]:
    """Return the sizes of a box, where those of zero are replaced by the thickness of a sheet."""
    values = {name: as_float(value, name, "create_box") for name, value in sizes.items()}
    largest = max(values.values())
    flat = [name for name, value in values.items() if value == 0.0]
    if not flat or not 0.0 < largest < np.inf:
        return sizes
    thickness = SHEET_SHARE * largest
    warnings.warn(
        f"create_box: {' and '.join(flat)} {'is' if len(flat) == 1 else 'are'} 0, so the box is a plate "
        f"{thickness:g} m thick. Give each size a positive value.",
        GymWarning,
        stacklevel=3,
    )
    return {name: value or thickness for name, value in values.items()}


def _sizes(call: str, **sizes: float) -> list[float]:
    for name, value in sizes.items():
        require(
            0.0 < as_float(value, name, call) < np.inf,
            call,
            f"{name} is {value} m, but must be positive and finite.",
        )
    return [float(value) for value in sizes.values()]


def _indices(names: list[str]) -> dict[str, int]:
    """Return the first index of each name."""
    result: dict[str, int] = {}
    for index, name in enumerate(names):
        result.setdefault(name, index)
    return result
