"""Point instancers of USD: each of their instances becomes a prim of its own, before the stage is parsed.

usd-core's physics parser does not look into point instancers. The prims are written to a session layer, so
that files and stages of the caller stay as they are.
"""

from typing import Any

from pluriverse.importers.errors import AssetLimitError
from pluriverse.importers.limits import PRIM_COUNT_MAX
from pluriverse.importers.report import ImportReport, ImportSeverity

# Name of the sibling of an instancer that takes its instances: that of the instancer and this.
SUFFIX = "_instances"


def expand_instancers(stage: Any, report: ImportReport) -> Any:
    """Return a stage with prims for the instances of all point instancers; `stage` itself if it has none.

    Raises:
        AssetLimitError: If there are more instances than prims may be on a stage.
    """
    from pxr import Sdf, Usd, UsdGeom

    if not any(prim.IsA(UsdGeom.PointInstancer) for prim in _prims(stage)):
        return stage
    session = Sdf.Layer.CreateAnonymous("instances.usda")
    session.subLayerPaths = [stage.GetSessionLayer().identifier] if stage.GetSessionLayer() else []
    expanded = Usd.Stage.Open(
        stage.GetRootLayer(), session, stage.GetPathResolverContext(), Usd.Stage.LoadNone
    )
    expanded.SetLoadRules(stage.GetLoadRules())
    expanded.SetEditTarget(Usd.EditTarget(session))
    count = 0
    while True:
        # Prototypes may hold instancers, which only appear once their instances exist.
        found = next((prim for prim in _prims(expanded) if prim.IsA(UsdGeom.PointInstancer)), None)
        if found is None:
            return expanded
        if found.IsInstanceProxy():  # nothing can be written there
            _instance_root(found).SetInstanceable(False)
            continue
        count += _expand(expanded, found, report)
        if count > PRIM_COUNT_MAX:
            raise AssetLimitError(
                f"its point instancers make more than {PRIM_COUNT_MAX:,} instances",
                file=report.source,
                element=f"prim '{found.GetPath()}'",
                value=count,
                remedy="Leave instances out, or make a height field or a mesh of them.",
            )


def _prims(stage: Any) -> Any:
    from pxr import Usd

    return Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies())


def _instance_root(prim: Any) -> Any:
    while not prim.IsInstance() or prim.IsInstanceProxy():
        prim = prim.GetParent()
    return prim


def _expand(stage: Any, prim: Any, report: ImportReport) -> int:
    """Replace an instancer by sibling prims; return how many."""
    from pxr import Gf, Sdf, Usd, UsdGeom

    instancer, now = UsdGeom.PointInstancer(prim), Usd.TimeCode.Default()
    prototypes = instancer.GetPrototypesRel().GetForwardedTargets()
    kinds = list(instancer.GetProtoIndicesAttr().Get() or [])
    mask = list(instancer.ComputeMaskAtTime(now)) or [True] * len(kinds)
    poses = _poses(instancer)
    shapes = [UsdGeom.Xformable(stage.GetPrimAtPath(target)) for target in prototypes]
    own = [shape.GetLocalTransformation() if shape else Gf.Matrix4d(1.0) for shape in shapes]
    path = str(prim.GetPath())
    if len(poses) != len(kinds) or any(not 0 <= kind < len(prototypes) for kind in kinds):
        report.add(
            "point instancer whose arrays disagree",
            path,
            f"{len(kinds)} indices into {len(prototypes)} prototypes, {len(poses)} poses; it is left out",
        )
        prim.SetActive(False)
        return 0
    transform, resets = (
        UsdGeom.Xformable(prim).GetLocalTransformation(),
        UsdGeom.Xformable(prim).GetResetXformStack(),
    )
    prim.SetActive(False)
    name = _free_name(stage, f"{path}{SUFFIX}")
    scope = UsdGeom.Xform.Define(stage, name)
    scope.AddTransformOp().Set(transform)
    scope.SetResetXformStack(resets)
    count = 0
    with Sdf.ChangeBlock():
        for number, (kind, pose, is_shown) in enumerate(zip(kinds, poses, mask, strict=True)):
            if not is_shown:
                continue
            target = prototypes[kind]
            spec = Sdf.CreatePrimInLayer(stage.GetEditTarget().GetLayer(), f"{name}/{target.name}_{number}")
            spec.specifier = Sdf.SpecifierDef
            spec.referenceList.prependedItems = [Sdf.Reference("", target)]
            attribute = Sdf.AttributeSpec(spec, "xformOp:transform:instance", Sdf.ValueTypeNames.Matrix4d)
            attribute.default = own[kind] * pose
            order = Sdf.AttributeSpec(
                spec, "xformOpOrder", Sdf.ValueTypeNames.TokenArray, Sdf.VariabilityUniform
            )
            order.default = ["xformOp:transform:instance"]
            count += 1
    report.add("point instancer", path, f"its {count} instances are in {name}", ImportSeverity.NOTE)
    return count


def _poses(instancer: Any) -> list[Any]:
    """Return scale, rotation and position of each instance as a matrix for rows; none if the arrays disagree.

    Orientations have half precision, so that they are normalized here: as they are, they would stretch.
    """
    from pxr import Gf

    positions = list(instancer.GetPositionsAttr().Get() or [])
    orientations = instancer.GetPrim().GetAttribute("orientationsf")
    if not (orientations and orientations.HasAuthoredValue()):
        orientations = instancer.GetOrientationsAttr()
    rotations = list(orientations.Get() or []) or [Gf.Quath(1.0)] * len(positions)
    scales = list(instancer.GetScalesAttr().Get() or []) or [Gf.Vec3f(1.0)] * len(positions)
    if not len(positions) == len(rotations) == len(scales):
        return []
    return [
        Gf.Matrix4d().SetScale(Gf.Vec3d(scale))
        * Gf.Matrix4d().SetRotate(Gf.Quatd(rotation).GetNormalized())
        * Gf.Matrix4d().SetTranslate(Gf.Vec3d(position))
        for position, rotation, scale in zip(positions, rotations, scales, strict=True)
    ]


def _free_name(stage: Any, path: str) -> str:
    while stage.GetPrimAtPath(path):
        path += "_"
    return path
