"""Build and step a scene in Drake: discrete `MultibodyPlant`, SAP, point contact."""

from __future__ import annotations

import numpy as np
from pydrake.common.eigen_geometry import Quaternion
from pydrake.geometry import (
    AddContactMaterial,
    Box,
    Capsule,
    CollisionFilterDeclaration,
    GeometryId,
    GeometrySet,
    HalfSpace,
    ProximityProperties,
    Sphere,
)
from pydrake.math import RigidTransform, RotationMatrix
from pydrake.multibody.math import SpatialVelocity
from pydrake.multibody.plant import (
    AddMultibodyPlantSceneGraph,
    ContactModel,
    CoulombFriction,
    DiscreteContactApproximation,
    MultibodyPlant,
)
from pydrake.multibody.tree import (
    FixedOffsetFrame,
    PdControllerGains,
    PlanarJoint,
    PrismaticJoint,
    RevoluteJoint,
    RotationalInertia,
    SpatialInertia,
    UniversalJoint,
    default_model_instance,
)
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import Context, Diagram, DiagramBuilder

from tests.drake.description import WORLD, Engine, Joint, Scene, Shape


def _transform(position, rotation) -> RigidTransform:
    x, y, z, w = rotation
    return RigidTransform(
        RotationMatrix(Quaternion(np.array([w, x, y, z]) / np.linalg.norm(rotation))), position
    )


def _add_shape(plant: MultibodyPlant, shape: Shape, name: str) -> GeometryId:
    properties = ProximityProperties()
    mu = shape.material.mu
    AddContactMaterial(None, shape.material.stiffness, CoulombFriction(mu, mu), properties)
    properties.AddProperty("material", "relaxation_time", shape.material.tau)
    match shape.kind:
        case "sphere":
            geometry = Sphere(shape.size[0])
        case "capsule":
            geometry = Capsule(shape.size[0], 2.0 * shape.size[1])
        case "box":
            geometry = Box(*(2.0 * np.asarray(shape.size)))
        case "half_space":
            geometry = HalfSpace()
        case _:
            raise ValueError(shape.kind)
    body = plant.world_body() if shape.body == WORLD else plant.GetBodyByName(shape.body)
    return plant.RegisterCollisionGeometry(
        body, _transform(shape.position, shape.rotation), geometry, name, properties
    )


def _add_joint(plant: MultibodyPlant, joint: Joint) -> None:
    parent = plant.world_body() if joint.parent == WORLD else plant.GetBodyByName(joint.parent)
    child = plant.GetBodyByName(joint.child)
    offset = RigidTransform(joint.position)
    if joint.kind == "fixed":
        plant.WeldFrames(parent.body_frame(), child.body_frame(), offset)
        return
    frame = plant.AddFrame(FixedOffsetFrame(f"{joint.name}_frame", parent.body_frame(), offset))
    frames = (joint.name, frame, child.body_frame())
    match joint.kind:
        case "planar":
            added = plant.AddJoint(PlanarJoint(*frames, damping=[joint.damping] * 3))
        case "universal":
            added = plant.AddJoint(UniversalJoint(*frames, damping=joint.damping))
        case "revolute":
            added = plant.AddJoint(RevoluteJoint(*frames, joint.axis, damping=joint.damping))
        case _:
            added = plant.AddJoint(PrismaticJoint(*frames, joint.axis, damping=joint.damping))
    if joint.limit is not None:
        added.set_position_limits([joint.limit[0]], [joint.limit[1]])
    added.set_default_positions(np.atleast_1d(joint.q))
    if joint.drive is not None:
        actuator = plant.AddJointActuator(joint.name, added, joint.effort_limit)
        actuator.set_controller_gains(PdControllerGains(p=joint.drive[0], d=joint.drive[1]))
        actuator.set_default_rotor_inertia(joint.armature)
    elif joint.armature:
        raise ValueError(f"joint '{joint.name}': Drake has armature only where there is an actuator")


def build(scene: Scene, dt: float) -> tuple[Diagram, MultibodyPlant, Context]:
    """The diagram, its plant and a root context in the scene's initial state."""
    builder = DiagramBuilder()
    plant, scene_graph = AddMultibodyPlantSceneGraph(builder, dt)
    plant.set_discrete_contact_approximation(DiscreteContactApproximation.kSap)
    plant.set_contact_model(ContactModel.kPoint)
    plant.mutable_gravity_field().set_gravity_vector(scene.gravity)
    for body in scene.bodies:
        inertia = SpatialInertia.MakeFromCentralInertia(
            body.mass, np.asarray(body.com), RotationalInertia(*body.inertia)
        )
        plant.AddRigidBody(body.name, inertia)
    for joint in scene.joints:
        _add_joint(plant, joint)
    faces = GeometrySet()
    for index, shape in enumerate(scene.shapes):
        if shape.engine is not Engine.PLURIVERSE:
            geometry = _add_shape(plant, shape, f"shape_{index}")
            if shape.kind == "half_space" or (shape.kind == "box" and shape.engine is Engine.DRAKE):
                faces.Add(geometry)
    # A box that only Drake has offers its faces to spheres; what touches a face is a sphere at a corner.
    scene_graph.collision_filter_manager().Apply(CollisionFilterDeclaration().ExcludeWithin(faces))
    plant.Finalize()
    diagram = builder.Build()
    root = diagram.CreateDefaultContext()
    context = plant.GetMyMutableContextFromRoot(root)
    for body in scene.free_bodies:
        drake_body = plant.GetBodyByName(body.name)
        plant.SetFreeBodyPose(context, drake_body, _transform(body.position, body.rotation))
        plant.SetFreeBodySpatialVelocity(
            context=context, body=drake_body, V_JpJc=SpatialVelocity(w=body.omega, v=body.velocity)
        )
    for joint in scene.joints:
        if joint.kind != "fixed":
            velocities = plant.GetVelocities(context)
            start = plant.GetJointByName(joint.name).velocity_start()
            velocities[start : start + np.size(joint.qd)] = joint.qd
            plant.SetVelocities(context, velocities)
    targets = [joint.target for joint in scene.joints if joint.drive is not None]
    if targets:
        # Desired states are ordered by actuator: all positions, then all velocities.
        desired = np.asarray(targets).T.ravel()
        plant.get_desired_state_input_port(default_model_instance()).FixValue(context, desired)
    return diagram, plant, root


def simulate(scene: Scene, dt: float) -> np.ndarray:
    """Body poses (p, xyzw) after every step, shape [step, body, 7]."""
    diagram, plant, root = build(scene, dt)
    context = plant.GetMyMutableContextFromRoot(root)
    bodies = [plant.GetBodyByName(body.name) for body in scene.bodies]
    simulator = Simulator(diagram, root)
    simulator.Initialize()
    step_count = round(scene.duration / dt)
    poses = np.empty((step_count, len(bodies), 7))
    for step in range(step_count):
        # Just short of the next update, so that rounding of the time cannot trigger it.
        simulator.AdvanceTo((step + 0.5) * dt)
        for index, body in enumerate(bodies):
            pose = plant.EvalBodyPoseInWorld(context, body)
            poses[step, index, :3] = pose.translation()
            poses[step, index, 3:] = np.roll(pose.rotation().ToQuaternion().wxyz(), -1)
    return poses
