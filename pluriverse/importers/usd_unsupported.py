"""Report of stage contents beyond the bodies, joints and colliders of UsdPhysics."""

import re
from typing import Any

import numpy as np

from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.usd_custom import UsdCustom
from pluriverse.importers.usd_names import report_misnamed
from pluriverse.importers.usd_source import GRAVITY_MAGNITUDE, UsdSource, applied_schemas, authored
from pluriverse.mujoco_attributes.choices import DEFAULT_SOLIMP

# Namespaces of other simulators; attributes in them that affect motion are read or reported.
NAMESPACES = re.compile(r"(physx\w*|newton|mjc|warpSim|isaac\w*):")
# Attributes that the importer reads.
READ = re.compile(
    r"newton:(armature|jointArmature|friction|jointFriction|damping|velocityLimit"
    r"|limit(Angular|Linear)K[ed]|selfCollisionEnabled|contactMargin|contactGap|contactKe|margin|gap|ke|tau"
    r"|mu_torsional|mu_rolling|torsionalFriction|rollingFriction|contactStiffness|contactDamping"
    r"|limit(Stiffness|Damping)|inertia|jointsAddMobility|gravityEnabled"
    r"|maxHullVertices|mimic(Coef[01]|Enabled))"
    r"|mjc:(armature|damping|frictionloss|coef[0-4]|margin|gap|solref|maxhullvert"
    r"|torsionalfriction|rollingfriction|actuatorfrc(range:(min|max)|limited)|stiffness|springref)"
    r"|physxJoint:(armature|maxJointVelocity)"
    r"|physxLimit:(angular|linear|rot[XYZ]|trans[XYZ]):(stiffness|damping)"
    r"|physxMimicJoint:\w+:(gearing|offset|referenceJointAxis|naturalFrequency|dampingRatio)"
    r"|physxArticulation:enabledSelfCollisions"
    r"|physxCollision:(contactOffset|restOffset)"
    r"|physxRigidBody:disableGravity|mjc:gravcomp"
)
# Attributes that steer another solver, or only matter there.
HARMLESS = re.compile(
    r"physxScene:.*|newton:(solver|scene|timeStep|maxSolverIterations).*"
    r"|newton:(xpbd|kamino|vbd|mpm):.*|newton:contactFrictionGain|mjc:(option|flag|group|compiler).*"
    r"|physxArticulation:(solver.*|sleep.*|stabilization.*|articulationEnabled)"
    r"|physxRigidBody:(solver.*|sleep.*|stabilization.*|enableCCD|enableSpeculativeCCD|contactSlopCoefficient"
    r"|cfmScale|max.*Velocity|maxContactImpulse|retainAccelerations|solveContact|lockedPosAxis)"
    # Values that mean "unlimited" in PhysX, and attributes that only condition inertias for another solver.
    r"|physxLimit:[XYZ]:.*|physxLimit:\w+:contactDistance|warpSim:armature"
    r"|physxConvexHullCollision:.*|physxTriangleMesh.*|physxMaterial:.*CombineMode"
)
# Neutral values of attributes.
NEUTRAL = (0, 0.0, "", None)
# How the mass of a mesh is computed.
MESH_INERTIA = "mjc:inertia"
# What becomes of the impedance of a contact; its dmax is read with the solref.
CURVE = "contact is a spring and damper of constant ke and tau, without an impedance curve"
# Prefixes of API schemas that are constraints, actuators or bodies in their own right.
SCHEMAS = {
    "PhysxTendon": "it exerts nothing",
    "PhysxDeformable": "it is not deformable",
    "PhysxParticle": "its particles are left out",
    "PhysxVehicle": "it is no vehicle",
    "PhysxForceAPI": "it exerts nothing",
    "PhysxSurfaceVelocityAPI": "its surface does not move",
    **{
        f"{start}{kind}Deformable": "it is not deformable"
        for start in ("Physics", "OmniPhysics")
        for kind in ("", "Volume", "Surface", "Curves")
    },
}
# Types of prims that are not read.
TYPES = {
    "MjcTendon": "it exerts nothing",
    "MjcKeyframe": "it is not read",
    "NewtonActuator": "it exerts nothing",
    "PhysxPhysicsGearJoint": "it holds nothing",
    "PhysxPhysicsRackAndPinionJoint": "it holds nothing",
}


def report_unsupported(source: UsdSource, report: ImportReport, custom: UsdCustom) -> None:
    """Report what is misnamed on the stage, and attributes of other simulators that no reader has used."""
    report_misnamed(source, report, custom, reported=(*TYPES, *SCHEMAS))
    for path, prim in source.prims.items():
        kind = str(prim.GetTypeName())
        for start, consequence in TYPES.items():
            if kind.startswith(start) and not custom.has_rows(prim):
                report.add(kind, path, consequence)
        for schema in applied_schemas(prim):
            for start, consequence in SCHEMAS.items():
                if schema.startswith(start):
                    report.add(schema.partition(":")[0], path, consequence)
        if not _is_physical(prim):
            continue
        for attribute in prim.GetAuthoredAttributes():
            name = str(attribute.GetName())
            if not NAMESPACES.match(name) or READ.fullmatch(name) or not attribute.HasAuthoredValue():
                continue
            value = attribute.Get()
            if name in custom.names:
                continue
            if HARMLESS.fullmatch(name):
                report.add(name, path, "it belongs to another solver", ImportSeverity.NOTE)
            elif name == "mjc:condim":
                report_condim(int(value), path, report)
            elif not _is_neutral(name, value):
                is_curve = name == "mjc:solimp" and "PhysicsCollisionAPI" in applied_schemas(prim)
                report.add(name, path, CURVE if is_curve else "it is not read")


def report_condim(condim: int, path: str, report: ImportReport) -> None:
    """Report the number of directions in which MuJoCo lets a contact act."""
    if condim == 1:
        report.add("condim 1", path, "it rubs; in MuJoCo two geoms that both have condim 1 do not")
    elif condim >= 4:
        report.add(
            "torsional and rolling friction",
            path,
            "stored as mu_torsional and mu_rolling; SolverSAP uses them with torsional_friction=True",
            ImportSeverity.NOTE,
        )


def set_gravity(source: UsdSource, builder: Any, report: ImportReport) -> None:
    """Give the builder the gravity of the physics scene of the stage, if there is one."""
    scenes = source.objects("Scene")
    if not scenes:
        return
    path, scene = scenes[0]
    for other, _ in scenes[1:]:
        report.add("second physics scene", other, f"all bodies are in that of '{path}'")
    direction = np.array(scene.gravityDirection, dtype=np.float64)
    magnitude = float(scene.gravityMagnitude)
    prim = source.stage.GetPrimAtPath(path)
    if any(authored(prim, name) is False for name in ("mjc:flag:gravity", "newton:gravityEnabled")):
        magnitude = 0.0
    if not np.isfinite(direction).all() or np.isnan(magnitude) or magnitude == np.inf:
        raise source.error(
            path,
            f"gravity is {magnitude} along {direction.tolist()}",
            value=[*direction, magnitude],
            remedy="Write a finite gravityMagnitude and gravityDirection.",
        )
    gravity = gravity_vector(source, direction, magnitude)
    builder.gravity = gravity
    report.add(
        "gravity", path, f"it is now that of the builder: {gravity.tolist()} m/s²", ImportSeverity.NOTE
    )


def gravity_vector(source: UsdSource, direction: np.ndarray, magnitude: float) -> np.ndarray:
    """Return the gravity of a physics scene [m/s²] in the axes of the builder.

    A direction of zero means down, a negative magnitude that of the earth.
    """
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        direction, length = -np.eye(3)["XYZ".index(source.up_axis)], 1.0
    strength = GRAVITY_MAGNITUDE if magnitude < 0.0 else source.length * magnitude
    return source.up_axis_frame.matrix @ (strength / length * direction)


def _is_physical(prim: Any) -> bool:
    """Return whether a prim takes part in the simulation."""
    return str(prim.GetTypeName()).startswith("Physics") or any(
        schema.startswith("Physics") for schema in applied_schemas(prim)
    )


def _is_neutral(name: str, value: Any) -> bool:
    if name == "physxRigidBody:enableGyroscopicForces":
        return bool(value)  # without them is the exception
    if name == MESH_INERTIA:
        return str(value) != "shell"
    if name in ("mjc:solimp", "mjc:solimplimit", "mjc:solimpfriction"):
        return len(value) <= len(DEFAULT_SOLIMP) and bool(np.allclose(value, DEFAULT_SOLIMP[: len(value)]))
    if name.startswith("newton:") and isinstance(value, float) and value == -np.inf:
        return True  # leaves it to the solver
    try:
        return value in NEUTRAL or bool(np.all(np.asarray(value, dtype=np.float64) == 0.0))
    except (TypeError, ValueError):
        return False
