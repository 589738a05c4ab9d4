"""PhysX, as `sapien` brings it: piles only, one thread, sleeping off, its other settings as they come."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import sapien
from sapien import physx

from benchmarks.measure import measure, parse_arguments
from benchmarks.scenes import DT, SCENES, PileScene


def main() -> None:
    """Measure one scene."""
    arguments = parse_arguments("physx")
    scene = SCENES[arguments.model.stem]
    if not isinstance(scene, PileScene):
        raise SystemExit(f"the PhysX benchmark has piles only, not '{arguments.model.stem}'")
    if arguments.threads != 1:
        raise SystemExit("the PhysX benchmark runs on one thread only")
    key = ElementTree.parse(arguments.model).find("keyframe/key")
    assert key is not None
    poses = np.array(key.get("qpos", "").split(), dtype=np.float32).reshape(-1, 7)

    config = physx.get_scene_config()
    config.gravity = [0.0, 0.0, -9.81]
    physx.set_scene_config(config)
    body = physx.get_body_config()
    body.sleep_threshold = 0.0
    physx.set_body_config(body)
    worlds = [_make_world(scene, poses) for _ in range(arguments.worlds)]
    systems = [world.physx_system for world in worlds]

    def step(count: int) -> None:
        for system in systems:
            for _ in range(count):
                system.step()

    def largest_speed() -> float:
        boxes = [box for system in systems for box in system.rigid_dynamic_components]
        return max(float(np.abs([box.linear_velocity, box.angular_velocity]).max()) for box in boxes)

    measure(arguments, step, largest_speed, sapien.__version__)


def _make_world(scene: PileScene, poses: np.ndarray) -> sapien.Scene:
    world = sapien.Scene([physx.PhysxCpuSystem()])
    world.physx_system.timestep = DT
    material = physx.PhysxMaterial(scene.friction, scene.friction, 0.0)
    ground = physx.PhysxRigidStaticComponent()
    # The normal of a PhysX plane is its local x axis.
    plane = physx.PhysxCollisionShapePlane(material)
    plane.set_local_pose(sapien.Pose([0, 0, 0], [0.7071068, 0, -0.7071068, 0]))
    ground.attach(plane)
    _add(world, ground, sapien.Pose())
    for pose in poses:
        box = physx.PhysxRigidDynamicComponent()
        shape = physx.PhysxCollisionShapeBox([scene.half_size] * 3, material)
        shape.set_density(scene.density)
        box.attach(shape)
        _add(world, box, sapien.Pose(pose[:3], pose[3:]))
    return world


def _add(world: sapien.Scene, component: object, pose: sapien.Pose) -> None:
    entity = sapien.Entity()
    entity.add_component(component)
    entity.set_pose(pose)
    world.add_entity(entity)


if __name__ == "__main__":
    main()
