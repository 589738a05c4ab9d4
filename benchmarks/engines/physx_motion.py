"""PhysX on moving robots, as `sapien` brings it: articulations made from the MJCF file, sleeping off.

Shapes, masses, joints, limits, drives, armature, damping and which shapes may touch are those of the file.
PhysX understands some of it in another way: the friction of two shapes is the mean of theirs instead of the
larger, a mesh's hull has at most 255 corners, an ellipsoid is a hull, and joints have no dry friction. All
else is as it comes. The interpreter needs `sapien` and `mujoco`, which reads the file.
"""

import mujoco
import numpy as np
import sapien
from sapien import physx

from benchmarks.engines.moving import serve
from benchmarks.motion_scenes import DECIMATION, DT, MovingScene

# Turns the axis of PhysX's capsules and cylinders, x, to that of MuJoCo's, z.
UPRIGHT = sapien.Pose([0.0, 0.0, 0.0], [0.7071068, 0.0, -0.7071068, 0.0])
# Points on an ellipsoid.
ELLIPSOID_POINT_COUNT = 120
# What couples two joints [N/m or N·m/rad].
COUPLING_STIFFNESS = 1e5
# Pairs of bodies that do not touch: a bit of a group each.
EXCLUDED_PAIR_COUNT_MAX = 32
UNLIMITED = (-np.inf, np.inf)


class PhysxWorlds:
    """Worlds of a scene in PhysX."""

    version = f"physx (sapien {sapien.__version__})"

    def __init__(self, scene: MovingScene, world_count: int):
        spec = mujoco.MjSpec.from_file(str(scene.path))
        spec.compiler.fusestatic = True
        model = spec.compile()
        _refuse_what_is_missing(model)
        self._starts = scene.qpos
        config = physx.get_scene_config()
        config.gravity = model.opt.gravity
        physx.set_scene_config(config)
        body = physx.get_body_config()
        body.sleep_threshold = 0.0
        physx.set_body_config(body)
        self._worlds = [_World(model) for _ in range(world_count)]
        self.clear()
        self.restart()

    def restart(self) -> None:
        """Put all worlds back to their starts."""
        for world, start in zip(self._worlds, self._starts, strict=True):
            world.restart(start)

    def advance(self, targets: np.ndarray) -> None:
        """Make a control step with the targets of all worlds, shape [world, actuator]."""
        for world, row in zip(self._worlds, targets.tolist(), strict=True):
            for joint, target in zip(world.driven, row, strict=True):
                joint.set_drive_target(target)
            for _ in range(DECIMATION):
                world.system.step()

    def clear(self) -> None:
        """Let the figures begin anew."""
        self._contacts: list[float] = []
        self._deepest = 0.0

    def observe(self) -> None:
        """Take figures of the last step."""
        gaps = [
            point.separation
            for world in self._worlds
            for contact in world.system.get_contacts()
            for point in contact.points
            if np.any(point.impulse)
        ]
        self._contacts.append(len(gaps) / len(self._worlds))
        self._deepest = max(self._deepest, -min(gaps, default=0.0))

    def quality(self) -> dict[str, str]:
        """Return how it goes, as cells of the table."""
        return {
            "contacts": f"{np.mean(self._contacts):.0f}",
            "frozen": f"{sum(not world.is_finite() for world in self._worlds)}",
            "deepest, mm": f"{1e3 * self._deepest:.2f}",
        }


class _World:
    """One world: the ground, articulations of all that has joints, and free bodies."""

    def __init__(self, model: mujoco.MjModel):
        self._model = model
        self._scene = sapien.Scene([physx.PhysxCpuSystem()])
        self.system = self._scene.physx_system
        self.system.timestep = DT
        self._bodies: dict[int, physx.PhysxRigidBaseComponent] = {}
        self._roots: list[tuple[physx.PhysxRigidBaseComponent, int]] = []
        self._joints: dict[int, physx.PhysxArticulationJoint] = {}
        entities = []
        self._add(physx.PhysxRigidStaticComponent(), 0, entities)
        parents = set(model.body_parentid[1:].tolist())
        # All that is jointed to the ground is one articulation, whose root is fixed and has no shapes.
        bolted = [
            body
            for body in range(1, model.nbody)
            if model.body_parentid[body] == 0 and not self._is_free(body)
        ]
        if bolted:
            base = physx.PhysxArticulationLinkComponent(None)
            base.set_mass(1.0)
            base.set_inertia([1.0, 1.0, 1.0])
            base.joint.type = "fixed"
            entities.append(_entity_of(base))
            self._bodies[0] = base
        for body in range(1, model.nbody):
            if not self._is_free(body):
                parent = self._bodies[int(model.body_parentid[body])]
                component = physx.PhysxArticulationLinkComponent(parent)
                self._connect(component, body)
            elif body in parents:
                component = physx.PhysxArticulationLinkComponent(None)
                component.joint.type = "undefined"
            else:
                component = physx.PhysxRigidDynamicComponent()
            if self._is_free(body):
                self._roots.append((component, int(model.jnt_qposadr[model.body_jntadr[body]])))
            self._bodies[body] = component
            self._add(component, body, entities)
            component.set_mass(model.body_mass[body])
            component.set_cmass_local_pose(sapien.Pose(model.body_ipos[body], model.body_iquat[body]))
            component.set_inertia(model.body_inertia[body])
        for entity in entities:
            self._scene.add_entity(entity)
        self._drive()
        self._couple()
        links = [item for item in self._bodies.values() if hasattr(item, "articulation")]
        self._articulations = {id(link.articulation): link.articulation for link in links}
        # In the order that an articulation has them.
        self._orders = [
            (articulation, [int(joint.name) for joint in articulation.active_joints])
            for articulation in self._articulations.values()
        ]

    def _is_free(self, body: int) -> bool:
        first = self._model.body_jntadr[body]
        return bool(first >= 0 and self._model.jnt_type[first] == mujoco.mjtJoint.mjJNT_FREE)

    def _connect(self, link: physx.PhysxArticulationLinkComponent, body: int) -> None:
        """Set the joint of a link to its parent."""
        model, joint = self._model, link.joint
        row = int(model.body_jntadr[body])
        is_slide = model.jnt_type[row] == mujoco.mjtJoint.mjJNT_SLIDE
        joint.type = "prismatic" if is_slide else "revolute"
        joint.name = str(int(model.jnt_qposadr[row]))
        # The axis of a joint in PhysX is the x axis of its frames.
        turn = np.empty(4)
        mujoco.mju_quatZ2Vec(turn, model.jnt_axis[row])
        frame = sapien.Pose(model.jnt_pos[row], turn) * UPRIGHT
        joint.pose_in_child = frame
        joint.pose_in_parent = sapien.Pose(model.body_pos[body], model.body_quat[body]) * frame
        limits = model.jnt_range[row] if model.jnt_limited[row] else UNLIMITED
        joint.limit = np.array([limits], dtype=np.float32)
        joint.set_armature(np.array([model.dof_armature[model.jnt_dofadr[row]]], dtype=np.float32))
        joint.set_friction(0.0)
        self._joints[row] = joint

    def _drive(self) -> None:
        """Give joints their damping and drives."""
        model = self._model
        damping = {row: float(model.dof_damping[model.jnt_dofadr[row]]) for row in self._joints}
        for row, joint in self._joints.items():
            joint.set_drive_properties(0.0, damping[row])
        self.driven = []
        for actuator in range(model.nu):
            row = int(model.actuator_trnid[actuator, 0])
            stiffness = float(model.actuator_gainprm[actuator, 0])
            own = -float(model.actuator_biasprm[actuator, 2])
            limit = (
                [float(model.actuator_forcerange[actuator, 1])]
                if model.actuator_forcelimited[actuator]
                else []
            )
            self._joints[row].set_drive_properties(stiffness, own + damping[row], *limit)
            self.driven.append(self._joints[row])

    def _couple(self) -> None:
        """Make joints follow others, as the file says: tendons that keep a weighted sum of both constant."""
        model = self._model
        for first, second, weights in zip(model.eq_obj1id, model.eq_obj2id, model.eq_data, strict=True):
            children = [self._bodies[int(model.jnt_bodyid[row])] for row in (first, second)]
            ratio = float(weights[1])
            children[0].articulation.create_fixed_tendon(
                [children[0].parent, *children],
                [0.0, 1.0, -ratio],
                [0.0, 1.0, -1.0 / ratio],
                rest_length=float(weights[0]),
                stiffness=COUPLING_STIFFNESS,
            )

    def _add(
        self, component: physx.PhysxRigidBaseComponent, body: int, entities: list[sapien.Entity]
    ) -> None:
        """Give a body its shapes and list its entity."""
        model = self._model
        first = int(model.body_geomadr[body])
        for geom in range(first, first + int(model.body_geomnum[body])):
            if model.geom_contype[geom] or model.geom_conaffinity[geom]:
                component.attach(_shape_of(model, geom))
        entities.append(_entity_of(component))

    def restart(self, qpos: np.ndarray) -> None:
        """Put all bodies to a start, at rest."""
        for component, place in self._roots:
            pose = sapien.Pose(qpos[place : place + 3], qpos[place + 3 : place + 7])
            if hasattr(component, "articulation"):
                component.articulation.set_root_pose(pose)
                component.articulation.set_root_linear_velocity([0.0, 0.0, 0.0])
                component.articulation.set_root_angular_velocity([0.0, 0.0, 0.0])
            else:
                component.set_pose(pose)
                component.set_linear_velocity([0.0, 0.0, 0.0])
                component.set_angular_velocity([0.0, 0.0, 0.0])
        for articulation, places in self._orders:
            articulation.set_qpos(qpos[places].astype(np.float32))
            articulation.set_qvel(np.zeros(len(places), dtype=np.float32))

    def is_finite(self) -> bool:
        """Return whether all poses are numbers."""
        return all(np.isfinite(item.get_pose().p).all() for item in self._bodies.values())


def _refuse_what_is_missing(model: mujoco.MjModel) -> None:
    """Stop where the file has what the articulations made here have not."""
    reasons = {
        "exclusions of that many pairs of bodies": max(0, model.nexclude - EXCLUDED_PAIR_COUNT_MAX),
        "pairs of shapes of their own": model.npair,
        "equality constraints other than a factor between joints of one body's children": sum(
            not _is_factor(model, row) for row in range(model.neq)
        ),
        "tendons": model.ntendon,
        "several joints on a body": int((model.body_jntnum > 1).sum()),
        "ball joints": int((model.jnt_type == mujoco.mjtJoint.mjJNT_BALL).sum()),
        "reference positions": int(np.count_nonzero(model.qpos0[_single(model)])),
    }
    found = [f"{count} {what}" for what, count in reasons.items() if count]
    if found:
        raise SystemExit(f"the PhysX benchmark has no {', '.join(found)}")


def _is_factor(model: mujoco.MjModel, row: int) -> bool:
    """Return whether an equality constraint keeps two joints of siblings at a ratio."""
    if model.eq_type[row] != mujoco.mjtEq.mjEQ_JOINT or model.eq_obj2id[row] < 0:
        return False
    parents = {
        int(model.body_parentid[model.jnt_bodyid[joint]])
        for joint in (model.eq_obj1id[row], model.eq_obj2id[row])
    }
    return len(parents) == 1 and model.eq_data[row, 1] != 0.0 and not model.eq_data[row, 2:5].any()


def _excluded(model: mujoco.MjModel, body: int) -> int:
    """Return the bits of the excluded pairs that a body is part of."""
    pairs = [(int(signature) >> 16, int(signature) & 0xFFFF) for signature in model.exclude_signature]
    return sum(1 << bit for bit, pair in enumerate(pairs) if body in pair)


def _single(model: mujoco.MjModel) -> np.ndarray:
    """Return the coordinates of the joints with one."""
    single = (model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE) | (model.jnt_type == mujoco.mjtJoint.mjJNT_SLIDE)
    return np.asarray(model.jnt_qposadr[single])


def _shape_of(model: mujoco.MjModel, geom: int) -> physx.PhysxCollisionShape:
    """Return a shape in the frame of its body."""
    friction = float(model.geom_friction[geom, 0])
    material = physx.PhysxMaterial(friction, friction, 0.0)
    size = model.geom_size[geom]
    pose = sapien.Pose(model.geom_pos[geom], model.geom_quat[geom])
    ones = np.ones(3, dtype=np.float32)
    match mujoco.mjtGeom(model.geom_type[geom]):
        case mujoco.mjtGeom.mjGEOM_PLANE:
            shape = physx.PhysxCollisionShapePlane(material)
            pose = pose * UPRIGHT
        case mujoco.mjtGeom.mjGEOM_SPHERE:
            shape = physx.PhysxCollisionShapeSphere(size[0], material)
        case mujoco.mjtGeom.mjGEOM_CAPSULE:
            shape = physx.PhysxCollisionShapeCapsule(size[0], size[1], material)
            pose = pose * UPRIGHT
        case mujoco.mjtGeom.mjGEOM_CYLINDER:
            shape = physx.PhysxCollisionShapeCylinder(size[0], size[1], material)
            pose = pose * UPRIGHT
        case mujoco.mjtGeom.mjGEOM_BOX:
            shape = physx.PhysxCollisionShapeBox(size, material)
        case mujoco.mjtGeom.mjGEOM_ELLIPSOID:
            shape = physx.PhysxCollisionShapeConvexMesh(_sphere_points() * size, ones, material)
        case mujoco.mjtGeom.mjGEOM_MESH:
            mesh = model.geom_dataid[geom]
            first = model.mesh_vertadr[mesh]
            points = model.mesh_vert[first : first + model.mesh_vertnum[mesh]]
            shape = physx.PhysxCollisionShapeConvexMesh(points, ones, material)
        case other:
            raise SystemExit(f"the PhysX benchmark has no shapes of type {other.name}")
    shape.set_local_pose(pose)
    # Shapes whose types and affinities match touch, unless they share a bit of the third group.
    groups = [int(model.geom_contype[geom]), int(model.geom_conaffinity[geom])]
    groups += [_excluded(model, int(model.geom_bodyid[geom])), 0]
    shape.set_collision_groups(groups)
    return shape


def _sphere_points() -> np.ndarray:
    """Return points spread evenly over the unit sphere, on a spiral, shape [point, 3]."""
    rank = np.arange(ELLIPSOID_POINT_COUNT) + 0.5
    height = 1.0 - 2.0 * rank / ELLIPSOID_POINT_COUNT
    angle = np.pi * (1.0 + np.sqrt(5.0)) * rank
    radius = np.sqrt(1.0 - height**2)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), height], axis=1)


def _entity_of(component: physx.PhysxRigidBaseComponent) -> sapien.Entity:
    entity = sapien.Entity()
    entity.add_component(component)
    return entity


if __name__ == "__main__":
    serve(PhysxWorlds)
