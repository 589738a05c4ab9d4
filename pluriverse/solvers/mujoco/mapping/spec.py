"""Writing the description (`mujoco.MjSpec`) of one world of a group."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluriverse.model.entity_names import entity_name
from pluriverse.solvers.mujoco.attributes.extensions import EXTENSIONS
from pluriverse.solvers.mujoco.attributes.pairs import mix_condim
from pluriverse.solvers.mujoco.mapping.drives import EFFORT, POSITION, VELOCITY, effort_limits
from pluriverse.solvers.mujoco.mapping.equality import JOINT, WELD, authored_constraints
from pluriverse.solvers.mujoco.mapping.frames import as_wxyz, initial_poses
from pluriverse.solvers.mujoco.mapping.geoms import (
    HFIELD,
    MESH,
    POINT_SIZE,
    ShapePlan,
    flat_shapes,
    geom_attributes,
    hull_of_shape,
)
from pluriverse.solvers.mujoco.mapping.group_plan import GroupPlan
from pluriverse.solvers.mujoco.mapping.joints import joint_attributes, limited_joints
from pluriverse.solvers.mujoco.mapping.layout import planned_layout
from pluriverse.solvers.mujoco.mapping.mesh_assets import find_assets
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint
from pluriverse.solvers.mujoco.options import MujocoOptions, write_option
from pluriverse.types import Entity

# Bound of a force range in place of 0, which MuJoCo's compiler refuses [N or N·m].
# Files would lack a smaller one.
_LEAST_FORCE = 1e-10

_CONTROL_NAME = {POSITION: "position", VELOCITY: "velocity", EFFORT: "effort"}


@dataclass
class SpecNames:
    """The names of MuJoCo's elements, for references; each list in the order of MuJoCo."""

    body: list[str] = field(default_factory=list)
    joint: list[str] = field(default_factory=list)
    geom: list[str] = field(default_factory=list)
    site: list[str] = field(default_factory=list)
    actuator: list[str] = field(default_factory=list)


class SpecWriter:
    """Writes the description of the first world of a group.

    Args:
        rows: Arrays of the model.
        options: How MuJoCo solves.
        plan: Structure of the group.
        fields: Its values (`group_kernels.describe_worlds`), of which the first row is written.
        general_bodies: MuJoCo's bodies whose inertial frame must not get a compiler shortcut, since it
            differs between worlds or changes.
    """

    def __init__(
        self,
        rows: ModelRows,
        options: MujocoOptions,
        plan: GroupPlan,
        fields: Mapping[str, np.ndarray],
        general_bodies: frozenset[int] = frozenset(),
    ):
        import mujoco

        self.mujoco = mujoco
        self.rows, self.options, self.plan = rows, options, plan
        self.general_bodies = general_bodies
        self.world = int(plan.worlds[0])
        self._worlds = plan.worlds[:1]
        self._field = {name: values[0] for name, values in fields.items()}
        self._bounded_joints, self._bounded_drives = effort_limits(
            rows, plan.structure, plan.drives, plan.worlds
        )
        self.spec = mujoco.MjSpec()
        self.names = SpecNames()
        self._taken: dict[str, set[str]] = {}

    def write(self) -> Any:
        """Return the description."""
        spec = self.spec
        spec.modelname = self.rows.model.world_label[self.world]
        spec.compiler.degree = False
        spec.compiler.autolimits = False
        spec.compiler.fusestatic = False
        spec.compiler.alignfree = False
        spec.compiler.balanceinertia = False
        spec.compiler.inertiafromgeom = self.mujoco.mjtInertiaFromGeom.mjINERTIAFROMGEOM_FALSE
        resolved = {**self.options.shared(self.rows), **self.options.batched(self.rows)}
        write_option(spec.option, resolved, self.world)
        if not self.plan.masks.filter_parent:
            spec.option.disableflags |= int(self.mujoco.mjtDisableBit.mjDSBL_FILTERPARENT)
        self._add_meshes()
        bodies = self._add_bodies()
        self._add_joints(bodies)
        self._add_geoms(bodies)
        self._add_sites(bodies)
        self._add_filters()
        self._add_equalities(bodies)
        self._add_drives()
        self._add_distances()
        for extension in EXTENSIONS:
            extension.write(self)
        return spec

    def body_name(self, body: int) -> str:
        """Return the name of a world-local body, -1 being the world.

        Raises:
            ValueError: If MuJoCo has no such body, since it has no mass.
        """
        made = int(self.plan.structure.body_mj[body]) if body >= 0 else 0
        if made < 0:
            label = self.rows.model.body_label[int(self.rows.first["body"][self.world]) + body]
            raise ValueError(
                f"SolverMuJoCo: body '{label}' has neither mass nor shapes, so MuJoCo has no such body. Give "
                "it a mass, or refer to the body that its joints carry."
            )
        return self.names.body[made]

    def joint_name(self, dof: int) -> str:
        """Return the name of the joint that has a world-local degree of freedom."""
        for name, joint in zip(self.names.joint, self.plan.structure.joints, strict=True):
            size = {MujocoJoint.FREE: 6, MujocoJoint.BALL: 3}.get(joint.kind, 1)
            if joint.dof <= dof < joint.dof + size:
                return name
        raise ValueError(f"SolverMuJoCo: world {self.world} has no degree of freedom {dof}.")

    def geom_name(self, shape: int) -> str | None:
        """Return the name of the geom of a shape (`-1 - flat index` if global), None if there is none."""
        found = np.flatnonzero(self.plan.geoms.shape == shape)
        return self.names.geom[int(found[0])] if len(found) else None

    def site_name(self, shape: int) -> str | None:
        """Return the name of the site of a shape (`-1 - flat index` if global), None if there is none."""
        found = np.flatnonzero(self.plan.sites.shape == shape)
        return self.names.site[int(found[0])] if len(found) else None

    def take_name(self, kind: str, requested: str) -> str:
        """Return a name that no other element of the kind has."""
        taken = self._taken.setdefault(kind, set())
        name, number = requested, 1
        while name in taken:
            number += 1
            name = f"{requested}_{number}"
        taken.add(name)
        return name

    def _add_bodies(self) -> list[Any]:
        field, free = self._field, initial_poses(self.rows, self.plan.structure, self.world)
        labels, first = self.rows.model.body_label, int(self.rows.first["body"][self.world])
        gravcomp = self.rows.custom("gravcomp", "body", np.array([self.world]))
        sleep = self.rows.custom("sleep_policy", "body", np.array([self.world]))
        bodies: list[Any] = [self.spec.worldbody]
        self._taken["body"] = {"world"}
        self.names.body.append("world")
        for index, plan in enumerate(self.plan.structure.bodies):
            if plan is None:
                continue
            name = self.take_name("body", labels[first + plan.body])
            body = bodies[plan.parent].add_body(name=name)
            body.pos, body.quat = field["body_pos"][index], field["body_quat"][index]
            if index in free:
                body.pos, body.quat = free[index][:3], as_wxyz(free[index][3:])
            body.mocap = plan.is_mocap
            body.mass = field["body_mass"][index]
            body.ipos, body.iquat = field["body_ipos"][index], field["body_iquat"][index]
            body.inertia = field["body_inertia"][index]
            body.explicitinertial = True
            if sleep is not None:
                body.sleep = self.mujoco.mjtSleepPolicy(int(sleep[0, plan.body]))
            if gravcomp is not None:
                body.gravcomp = float(gravcomp[0, plan.body])
            if index in self.general_bodies:
                self._generalize(body)
            bodies.append(body)
            self.names.body.append(name)
        return bodies

    def _generalize(self, body: Any) -> None:
        """Keep the compiler from simplifications that only hold for one position of the centre of mass."""
        if hasattr(body, "simple"):
            body.simple = 0
        else:  # older versions decide by the numbers, which are written again after compilation
            body.ipos = np.asarray(body.ipos) + 0.01

    def _add_joints(self, bodies: list[Any]) -> None:
        field, structure = self._field, self.plan.structure
        attributes = joint_attributes(self.rows, structure, self._worlds)
        limited = limited_joints(self.rows, structure, self.plan.worlds)
        labels, first = self.rows.model.joint_label, int(self.rows.first["joint"][self.world])
        counts = np.bincount(
            [joint.joint for joint in self.plan.structure.joints], minlength=len(self.plan.structure.joints)
        )
        for index, plan in enumerate(self.plan.structure.joints):
            label = labels[first + plan.joint]
            name = self.take_name("joint", f"{label}_{plan.part}" if counts[plan.joint] > 1 else label)
            self.names.joint.append(name)
            joint = bodies[plan.body].add_joint(name=name, type=_joint_type(self.mujoco, plan.kind))
            joint.pos = field["jnt_pos"][index]
            if plan.kind in (MujocoJoint.SLIDE, MujocoJoint.HINGE):
                joint.axis = field["jnt_axis"][index]
            joint.limited = _tristate(self.mujoco, limited[index])
            if limited[index]:
                joint.range = field["jnt_range"][index]
            joint.margin = attributes["jnt_margin"][0, index]
            joint.solimp_limit = attributes["jnt_solimp"][0, index]
            joint.actfrclimited = _tristate(self.mujoco, self._bounded_joints[index])
            if self._bounded_joints[index]:
                joint.actfrcrange = _force_range(field["jnt_actfrcrange"][index])
            joint.actgravcomp = bool(attributes["jnt_actgravcomp"][0, index])
            _set_first(joint, "stiffness", attributes["jnt_stiffness"][0, index])
            joint.springref = attributes["springref"][0, index]
            joint.armature = field["dof_armature"][plan.qvel]
            _set_first(joint, "damping", field["dof_damping"][plan.qvel])
            joint.frictionloss = field["dof_frictionloss"][plan.qvel]
            joint.solref_friction = attributes["dof_solref"][0, plan.qvel]
            joint.solimp_friction = attributes["dof_solimp"][0, plan.qvel]

    def _add_geoms(self, bodies: list[Any]) -> None:
        shapes, field, masks = self.plan.geoms, self._field, self.plan.masks
        flat = flat_shapes(self.rows, shapes, self._worlds)[0]
        attributes = geom_attributes(self.rows, shapes, self._worlds)
        assets = find_assets(self.rows, shapes, self._worlds, self.plan.sized)
        known = {asset.key: asset.name for asset in self.plan.assets}
        color = self.rows.array("shape_color")
        for index in range(len(shapes)):
            kind = int(shapes.kind[index])
            name = self.take_name("geom", self.rows.model.shape_label[flat[index]])
            self.names.geom.append(name)
            geom = bodies[int(shapes.body[index])].add_geom(name=name, type=self.mujoco.mjtGeom(kind))
            geom.pos, geom.quat = field["geom_pos"][index], field["geom_quat"][index]
            if kind == MESH:
                number = int(assets[1][0, index])
                # A slot that no variant fills here is disabled, and may have any mesh.
                asset = self.plan.assets[0] if number < 0 else assets[0][number]
                geom.meshname = known[asset.key]
            elif kind == HFIELD:
                geom.hfieldname = self._height_field(shapes.mesh[index], int(flat[index]))
            else:
                geom.size = field["geom_size"][index]
            geom.mass = 0.0
            geom.friction = field["geom_friction"][index]
            is_authored = attributes["is_authored"][0, index]
            geom.solref = attributes["solref"][0, index] if is_authored else field["geom_solref"][index]
            geom.solimp, geom.solmix = attributes["solimp"][0, index], attributes["solmix"][0, index]
            geom.condim, geom.priority = int(attributes["condim"][index]), int(attributes["priority"][index])
            geom.group = int(attributes["group"][index])
            geom.gap = 0.0
            geom.contype, geom.conaffinity = int(masks.contype[index]), int(masks.conaffinity[index])
            geom.rgba = [*color[flat[index]], 1.0]

    def _add_meshes(self) -> None:
        """Add the meshes that geoms have in any world, or may be given."""
        for asset in self.plan.assets:
            self._taken.setdefault("mesh", set()).add(asset.name)
            try:
                hull = hull_of_shape(self.rows, asset.kind, asset.source, asset.scale)
            except ValueError as error:
                name = entity_name(self.rows.model, Entity.SHAPE, asset.shape)
                raise ValueError(
                    f"SolverMuJoCo: {name} is a mesh that MuJoCo cannot "
                    f"collide: {error} Replace it by a box, or let it not collide "
                    "(has_shape_collision=False)."
                ) from error
            mesh = self.spec.add_mesh(name=asset.name)
            mesh.uservert = hull.vertices.astype(np.float64).ravel()
            mesh.userface = hull.indices.astype(np.int32).ravel()
            mesh.inertia = self.mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX

    def _height_field(self, asset: str, flat: int) -> str:
        if asset in self._taken.setdefault("hfield", set()):
            return asset
        self._taken["hfield"].add(asset)
        source = self.rows.model.meshes[int(self.rows.array("shape_source_index")[flat])]
        scale = self.rows.array("shape_scale")[flat]
        field = self.spec.add_hfield(name=asset)
        field.nrow, field.ncol = source.nrow, source.ncol
        field.userdata = source.data.astype(np.float64).ravel()
        half = [source.hx * scale[0], source.hy * scale[1]]
        height = (source.max_z - source.min_z) * scale[2]
        # MuJoCo requires a height even for a flat field, whose data are all zero.
        field.size = [*half, height if height > 0.0 else min(half), min(half)]
        return asset

    def _add_sites(self, bodies: list[Any]) -> None:
        """Add the sites of shapes, then those of constraints, as `layout.planned_layout` counts them."""
        field, layout = self._field, planned_layout(self.plan)
        self._add_shape_sites(bodies, self.plan.sites)

        def add(kind: str, index: int, ends: tuple[int, int], indices: np.ndarray) -> None:
            for number, (body, end) in enumerate(zip(ends, indices, strict=True)):
                name = self.take_name("site", f"{kind}_{index}_site_{number}")
                site = bodies[body].add_site(name=name, pos=field["site_pos"][end], group=5)
                site.size = [POINT_SIZE] * 3
                if kind == "equality":
                    site.quat = field["site_quat"][end]

        equalities = self.plan.equalities
        for index, constraint in enumerate(equalities.constraints):
            if constraint.kind != JOINT:
                ends = (constraint.body1, constraint.body2)
                add("equality", index, ends, layout.constraint_site[index])
        for index, distance in enumerate(equalities.distances):
            add("distance", index, (distance.body1, distance.body2), layout.distance_site[index])

    def _add_distances(self) -> None:
        """Add the tendons that bound the distance of points; they come before all other tendons."""
        authored = authored_constraints(self.rows, self.plan.equalities, self._worlds)
        labels = self.rows.model.equality_constraint_label
        first = int(self.rows.first["equality"][self.world])
        for index, distance in enumerate(self.plan.equalities.distances):
            tendon = self.spec.add_tendon(name=self.take_name("tendon", labels[first + distance.equality]))
            tendon.limited = _tristate(self.mujoco, True)
            tendon.range = self._field["tendon_range"][index]
            tendon.solref_limit = authored["tendon_solref_lim"][0, index]
            tendon.solimp_limit = authored["tendon_solimp_lim"][0, index]
            tendon.wrap_site(f"distance_{index}_site_0")
            tendon.wrap_site(f"distance_{index}_site_1")

    def _add_shape_sites(self, bodies: list[Any], shapes: ShapePlan) -> None:
        field, scale = self._field, self.rows.array("shape_scale")
        flat = flat_shapes(self.rows, shapes, self._worlds)[0]
        for index in range(len(shapes)):
            name = self.take_name("site", self.rows.model.shape_label[flat[index]])
            self.names.site.append(name)
            size = scale[flat[index]]
            bodies[int(shapes.body[index])].add_site(
                name=name,
                type=self.mujoco.mjtGeom(int(shapes.kind[index])),
                pos=field["site_pos"][index],
                quat=field["site_quat"][index],
                size=np.maximum(size, POINT_SIZE * (size <= 0.0)),
            )

    def _add_filters(self) -> None:
        masks = self.plan.masks
        for first, second in masks.excludes:
            self.spec.add_exclude(bodyname1=self.names.body[first], bodyname2=self.names.body[second])
        if not masks.pairs:
            return
        attributes = geom_attributes(self.rows, self.plan.geoms, self._worlds)
        for first, second in masks.pairs:  # what else they have of both geoms MuJoCo mixes
            self.spec.add_pair(
                geomname1=self.names.geom[first],
                geomname2=self.names.geom[second],
                condim=mix_condim(attributes["condim"], attributes["priority"], first, second),
            )

    def _add_equalities(self, bodies: list[Any]) -> None:
        field, mujoco = self._field, self.mujoco
        authored = authored_constraints(self.rows, self.plan.equalities, self._worlds)
        labels = self.rows.model.equality_constraint_label
        first = int(self.rows.first["equality"][self.world])
        for index, constraint in enumerate(self.plan.equalities.constraints):
            equality = self.spec.add_equality(
                name=self.take_name("equality", labels[first + constraint.equality])
            )
            equality.active = bool(field["eq_active"][index])
            equality.solref = authored["eq_solref"][0, index]
            equality.solimp = authored["eq_solimp"][0, index]
            _assign_prefix(equality, "data", field["eq_data"][index])
            if constraint.kind == JOINT:
                equality.type = mujoco.mjtEq.mjEQ_JOINT
                equality.objtype = mujoco.mjtObj.mjOBJ_JOINT
                equality.name1 = self.names.joint[constraint.joint1]
                equality.name2 = self.names.joint[constraint.joint2] if constraint.joint2 >= 0 else ""
            else:
                weld = constraint.kind == WELD
                equality.type = mujoco.mjtEq.mjEQ_WELD if weld else mujoco.mjtEq.mjEQ_CONNECT
                equality.objtype = mujoco.mjtObj.mjOBJ_SITE
                equality.name1, equality.name2 = f"equality_{index}_site_0", f"equality_{index}_site_1"

    def _add_drives(self) -> None:
        plan, field, mujoco = self.plan.drives, self._field, self.mujoco
        for index in range(len(plan)):
            joint = self.names.joint[plan.joint[index]]
            axis = f"_{'xyz'[plan.axis_index[index]]}" if plan.axis_index[index] >= 0 else ""
            name = self.take_name("actuator", f"{joint}{axis}_{_CONTROL_NAME[plan.control[index]]}")
            self.names.actuator.append(name)
            actuator = self.spec.add_actuator(name=name, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            actuator.gaintype, actuator.biastype = (
                mujoco.mjtGain.mjGAIN_FIXED,
                mujoco.mjtBias.mjBIAS_AFFINE,
            )
            _assign_prefix(actuator, "gainprm", field["actuator_gainprm"][index])
            _assign_prefix(actuator, "biasprm", field["actuator_biasprm"][index])
            if plan.axis_index[index] >= 0:
                actuator.gear = field["actuator_gear"][index]
            actuator.forcelimited = _tristate(mujoco, self._bounded_drives[index])
            if self._bounded_drives[index]:
                actuator.forcerange = _force_range(field["actuator_forcerange"][index])


def _joint_type(mujoco: Any, kind: MujocoJoint) -> Any:
    return mujoco.mjtJoint(int(kind))


def _tristate(mujoco: Any, value: Any) -> Any:
    return mujoco.mjtLimited.mjLIMITED_TRUE if value else mujoco.mjtLimited.mjLIMITED_FALSE


def _force_range(bounds: np.ndarray) -> np.ndarray:
    """Return a range that MuJoCo compiles, also of a drive that is off; fields have its 0 afterwards."""
    return np.where(bounds == 0.0, [-_LEAST_FORCE, _LEAST_FORCE], bounds)


def _set_first(element: Any, name: str, value: float) -> None:
    """Set a value that is the first coefficient of a polynomial in newer versions of MuJoCo."""
    current = getattr(element, name)
    if np.ndim(current):
        current = np.zeros_like(current)
        current[0] = value
        setattr(element, name, current)
    else:
        setattr(element, name, float(value))


def _assign_prefix(element: Any, name: str, values: Any) -> None:
    """Set the leading entries of an array and zero the others."""
    entries = np.zeros(len(getattr(element, name)))
    entries[: len(values)] = values
    setattr(element, name, entries)
