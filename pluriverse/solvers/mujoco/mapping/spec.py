"""Writing the description (`mujoco.MjSpec`) of one world of a group."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pluriverse.solvers.mujoco.attributes.extensions import EXTENSIONS
from pluriverse.solvers.mujoco.attributes.pairs import mix_condim, mix_materials
from pluriverse.solvers.mujoco.mapping.drives import EFFORT, POSITION, VELOCITY
from pluriverse.solvers.mujoco.mapping.equality import JOINT, WELD, site_wxyz
from pluriverse.solvers.mujoco.mapping.geoms import (
    HFIELD,
    MESH,
    POINT_SIZE,
    ShapePlan,
    flat_shapes,
    hull_of_shape,
)
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows
from pluriverse.solvers.mujoco.mapping.structure import MujocoJoint
from pluriverse.solvers.mujoco.mapping.values import GroupPlan, GroupValues
from pluriverse.solvers.mujoco.options import MujocoOptions, write_option

_CONTROL_NAME = {POSITION: "position", VELOCITY: "velocity", EFFORT: "effort"}


@dataclass
class SpecNames:
    """The names of MuJoCo's elements, for what refers to them; each list in the order of MuJoCo."""

    body: list[str] = field(default_factory=list)
    joint: list[str] = field(default_factory=list)
    geom: list[str] = field(default_factory=list)
    site: list[str] = field(default_factory=list)
    actuator: list[str] = field(default_factory=list)


class SpecWriter:
    """Writes the description of one row of a group.

    Args:
        rows: Arrays of the model.
        options: How MuJoCo solves.
        plan: Structure of the group.
        values: Its numbers.
        row: Which world of the group to write.
        general_bodies: MuJoCo's bodies whose inertial frame must not be taken for a special one, since it
            differs between worlds or changes.
    """

    def __init__(
        self,
        rows: ModelRows,
        options: MujocoOptions,
        plan: GroupPlan,
        values: GroupValues,
        row: int = 0,
        general_bodies: frozenset[int] = frozenset(),
    ):
        import mujoco

        self.mujoco = mujoco
        self.rows, self.options, self.plan, self.values, self.row = rows, options, plan, values, row
        self.general_bodies = general_bodies
        self.world = int(plan.worlds[row])
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
        self._add_ropes()
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

    def take_name(self, kind: str, wanted: str) -> str:
        """Return a name that no other element of the kind has."""
        taken = self._taken.setdefault(kind, set())
        name, number = wanted, 1
        while name in taken:
            number += 1
            name = f"{wanted}_{number}"
        taken.add(name)
        return name

    def _add_bodies(self) -> list[Any]:
        frames, inertias, row = self.values.frames, self.values.inertias, self.row
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
            body.pos, body.quat = frames.body_pos[row, index], frames.body_quat[row, index]
            body.mocap = plan.is_mocap
            body.mass = inertias.body_mass[row, index]
            body.ipos, body.iquat = inertias.body_ipos[row, index], inertias.body_iquat[row, index]
            body.inertia = inertias.body_inertia[row, index]
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
        """Keep the compiler from simplifications that only hold for one place of the centre of mass."""
        if hasattr(body, "simple"):
            body.simple = 0
        else:  # older versions decide by the numbers, which are written again after compilation
            body.ipos = np.asarray(body.ipos) + 0.01

    def _add_joints(self, bodies: list[Any]) -> None:
        values, frames, row = self.values.joints, self.values.frames, self.row
        labels, first = self.rows.model.joint_label, int(self.rows.first["joint"][self.world])
        counts = np.bincount(
            [joint.joint for joint in self.plan.structure.joints], minlength=len(self.plan.structure.joints)
        )
        for index, plan in enumerate(self.plan.structure.joints):
            label = labels[first + plan.joint]
            name = self.take_name("joint", f"{label}_{plan.place}" if counts[plan.joint] > 1 else label)
            self.names.joint.append(name)
            joint = bodies[plan.body].add_joint(name=name, type=_joint_type(self.mujoco, plan.kind))
            joint.pos, joint.axis = frames.jnt_pos[row, index], frames.jnt_axis[row, index]
            joint.limited = _tristate(self.mujoco, values.jnt_limited[index])
            if values.jnt_limited[index]:
                joint.range = values.jnt_range[row, index]
            joint.margin = values.jnt_margin[row, index]
            joint.solimp_limit = values.jnt_solimp[row, index]
            joint.actfrclimited = _tristate(self.mujoco, values.jnt_actfrclimited[index])
            if values.jnt_actfrclimited[index]:
                joint.actfrcrange = values.jnt_actfrcrange[row, index]
            joint.actgravcomp = bool(values.jnt_actgravcomp[index])
            _set_first(joint, "stiffness", values.jnt_stiffness[row, index])
            joint.springref = values.spring_rest[row, index]
            joint.armature = values.dof_armature[row, plan.qvel]
            _set_first(joint, "damping", values.dof_damping[row, plan.qvel])
            joint.frictionloss = values.dof_frictionloss[row, plan.qvel]
            joint.solref_friction = values.dof_solref[row, plan.qvel]
            joint.solimp_friction = values.dof_solimp[row, plan.qvel]

    def _add_geoms(self, bodies: list[Any]) -> None:
        shapes, place, material, row = self.plan.geoms, self.values.geoms, self.values.materials, self.row
        masks, flat = self.plan.masks, flat_shapes(self.rows, self.plan.geoms, self.plan.worlds)[self.row]
        color = self.rows.array("shape_color")
        for index in range(len(shapes)):
            kind = int(shapes.kind[index])
            name = self.take_name("geom", self.rows.model.shape_label[flat[index]])
            self.names.geom.append(name)
            geom = bodies[int(shapes.body[index])].add_geom(name=name, type=self.mujoco.mjtGeom(kind))
            geom.pos, geom.quat = place.pos[row, index], place.quat[row, index]
            if kind == MESH:
                geom.meshname = self._mesh(index)
            elif kind == HFIELD:
                geom.hfieldname = self._height_field(shapes.mesh[index], int(flat[index]))
            else:
                geom.size = place.size[row, index]
            geom.mass = 0.0
            geom.friction = material.friction[row, index]
            geom.solref, geom.solimp = material.solref[row, index], material.solimp[row, index]
            geom.solmix = material.solmix[row, index]
            geom.condim, geom.priority = int(material.condim[index]), int(material.priority[index])
            geom.group = int(material.group[index])
            geom.gap = 0.0
            geom.contype, geom.conaffinity = int(masks.contype[index]), int(masks.conaffinity[index])
            geom.rgba = [*color[flat[index]], 1.0]

    def _add_meshes(self) -> None:
        """Add the meshes that geoms have in any world, or may come to have."""
        for asset in self.plan.assets:
            self._taken.setdefault("mesh", set()).add(asset.name)
            try:
                hull = hull_of_shape(self.rows, asset.kind, asset.source, asset.scale)
            except ValueError as error:
                label = self.rows.model.shape_label[asset.shape]
                raise ValueError(
                    f"SolverMuJoCo: shape '{label}' (index {asset.shape}) is a mesh that MuJoCo cannot "
                    f"collide: {error} Replace it by a box, or let it not collide "
                    "(has_shape_collision=False)."
                ) from error
            mesh = self.spec.add_mesh(name=asset.name)
            mesh.uservert = hull.vertices.astype(np.float64).ravel()
            mesh.userface = hull.indices.astype(np.int32).ravel()
            mesh.inertia = self.mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX

    def _mesh(self, geom: int) -> str:
        """Return the name of the mesh of a geom in the row that is written."""
        number = int(self.values.meshes[self.row, geom])
        # A slot that no variant fills here is off, and may have any mesh.
        return self.plan.assets[max(number, 0)].name

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
        # MuJoCo wants a height even of a flat field, whose data are all zero.
        field.size = [*half, height if height > 0.0 else min(half), min(half)]
        return asset

    def _add_sites(self, bodies: list[Any]) -> None:
        self._add_shape_sites(bodies, self.plan.sites)
        values, row = self.values.equalities, self.row
        for index, constraint in enumerate(self.plan.equalities.constraints):
            if constraint.kind == JOINT:
                continue
            for number, (body, pose) in enumerate(
                ((constraint.body1, values.site1), (constraint.body2, values.site2))
            ):
                name = self.take_name("site", f"equality_{index}_site_{number}")
                position, quat = site_wxyz(pose[row, index])
                bodies[body].add_site(name=name, pos=position, quat=quat, size=[POINT_SIZE] * 3, group=5)

        ropes = self.values.ropes
        for index, rope in enumerate(self.plan.equalities.ropes):
            for number, (body, position) in enumerate(((rope.body1, ropes.site1), (rope.body2, ropes.site2))):
                name = self.take_name("site", f"rope_{index}_site_{number}")
                bodies[body].add_site(name=name, pos=position[row, index], size=[POINT_SIZE] * 3, group=5)

    def _add_ropes(self) -> None:
        """Add the tendons that keep points within a distance; they are the first of all tendons."""
        ropes, row = self.values.ropes, self.row
        labels = self.rows.model.equality_constraint_label
        first = int(self.rows.first["equality"][self.world])
        for index, rope in enumerate(self.plan.equalities.ropes):
            tendon = self.spec.add_tendon(name=self.take_name("tendon", labels[first + rope.equality]))
            tendon.limited = _tristate(self.mujoco, True)
            tendon.range = ropes.range[row, index]
            tendon.solref_limit, tendon.solimp_limit = ropes.solref[row, index], ropes.solimp[row, index]
            tendon.wrap_site(f"rope_{index}_site_0")
            tendon.wrap_site(f"rope_{index}_site_1")

    def _add_shape_sites(self, bodies: list[Any], shapes: ShapePlan) -> None:
        place, row = self.values.sites, self.row
        flat = flat_shapes(self.rows, shapes, self.plan.worlds)[row]
        for index in range(len(shapes)):
            name = self.take_name("site", self.rows.model.shape_label[flat[index]])
            self.names.site.append(name)
            bodies[int(shapes.body[index])].add_site(
                name=name,
                type=self.mujoco.mjtGeom(int(shapes.kind[index])),
                pos=place.pos[row, index],
                quat=place.quat[row, index],
                size=np.maximum(place.size[row, index], POINT_SIZE * (place.size[row, index] <= 0.0)),
            )

    def _add_filters(self) -> None:
        masks, material, row = self.plan.masks, self.values.materials, self.row
        for first, second in masks.excludes:
            self.spec.add_exclude(bodyname1=self.names.body[first], bodyname2=self.names.body[second])
        for first, second in masks.pairs:
            mixed = {name: values[row] for name, values in mix_materials(material, first, second).items()}
            self.spec.add_pair(
                geomname1=self.names.geom[first],
                geomname2=self.names.geom[second],
                condim=mix_condim(material, first, second),
                **mixed,
            )

    def _add_equalities(self, bodies: list[Any]) -> None:
        values, row, mujoco = self.values.equalities, self.row, self.mujoco
        labels = self.rows.model.equality_constraint_label
        first = int(self.rows.first["equality"][self.world])
        for index, constraint in enumerate(self.plan.equalities.constraints):
            equality = self.spec.add_equality(
                name=self.take_name("equality", labels[first + constraint.equality])
            )
            equality.active = bool(values.active[row, index])
            equality.solref, equality.solimp = values.solref[row, index], values.solimp[row, index]
            data = np.zeros(len(equality.data))
            if constraint.kind == JOINT:
                equality.type = mujoco.mjtEq.mjEQ_JOINT
                equality.objtype = mujoco.mjtObj.mjOBJ_JOINT
                equality.name1 = self.names.joint[constraint.joint1]
                equality.name2 = self.names.joint[constraint.joint2] if constraint.joint2 >= 0 else ""
                data[:5] = values.data[row, index]
            else:
                weld = constraint.kind == WELD
                equality.type = mujoco.mjtEq.mjEQ_WELD if weld else mujoco.mjtEq.mjEQ_CONNECT
                equality.objtype = mujoco.mjtObj.mjOBJ_SITE
                equality.name1, equality.name2 = f"equality_{index}_site_0", f"equality_{index}_site_1"
                if weld:
                    data[10] = values.torquescale[row, index]
            equality.data = data

    def _add_drives(self) -> None:
        plan, values, row, mujoco = self.plan.drives, self.values.drives, self.row, self.mujoco
        for index in range(len(plan)):
            joint = self.names.joint[plan.joint[index]]
            axis = f"_{'xyz'[plan.place[index]]}" if plan.place[index] >= 0 else ""
            name = self.take_name("actuator", f"{joint}{axis}_{_CONTROL_NAME[plan.control[index]]}")
            self.names.actuator.append(name)
            actuator = self.spec.add_actuator(name=name, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
            actuator.gaintype, actuator.biastype = (
                mujoco.mjtGain.mjGAIN_FIXED,
                mujoco.mjtBias.mjBIAS_AFFINE,
            )
            _assign_prefix(actuator, "gainprm", [values.gain[row, index]])
            _assign_prefix(actuator, "biasprm", values.bias[row, index])
            if plan.place[index] >= 0:
                gear = np.zeros(6)
                gear[:3] = values.axis[row, index]
                actuator.gear = gear
            actuator.forcelimited = _tristate(mujoco, values.force_limited[index])
            if values.force_limited[index]:
                actuator.forcerange = values.force_range[row, index]


def _joint_type(mujoco: Any, kind: MujocoJoint) -> Any:
    return mujoco.mjtJoint(int(kind))


def _tristate(mujoco: Any, value: Any) -> Any:
    return mujoco.mjtLimited.mjLIMITED_TRUE if value else mujoco.mjtLimited.mjLIMITED_FALSE


def _set_first(element: Any, name: str, value: float) -> None:
    """Set a number that newer versions of MuJoCo have as the first coefficient of a polynomial."""
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
