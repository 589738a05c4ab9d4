"""Reading USD with usd-core and its physics parser; complaints become asset errors."""

import contextlib
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pluriverse.builder.inputs import upright_rotation
from pluriverse.importers.errors import AssetError, AssetFileError
from pluriverse.importers.fetched import check_fetched
from pluriverse.importers.frames import IDENTITY, Frame, make_frame, quat_from_matrix
from pluriverse.importers.limits import check_usd_file, check_usd_layer, check_usda_text
from pluriverse.importers.options import UsdSettings
from pluriverse.importers.path_resolver import PathResolver
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.usd_instancers import expand_instancers
from pluriverse.importers.usd_paths import check_arcs, resolve_layer
from pluriverse.types import Axis

USD_SUFFIXES = (".usd", ".usda", ".usdc", ".usdz")
TEXT_START = "#usda"
# Properties of a subtree that do not depend on its place on the stage.
SHARED_KINDS = ("Scene", "CollisionGroup", "RigidBodyMaterial")
GRAVITY_MAGNITUDE = 9.81  # m/s², where a physics scene leaves it to the reader


class UsdSource:
    """A stage, its units, and what the physics parser found on it.

    Positions are in metres, along the axes of the stage; `turn` rotates them to the up axis of the builder.
    """

    def __init__(self, stage: Any, name: str, options: UsdSettings, report: ImportReport):
        from pxr import Usd, UsdGeom, UsdPhysics

        self.stage = stage
        """`Usd.Stage`."""
        self.report = report
        """Report of the features not imported as authored."""
        self.name = name
        """The file, or what the text is called in messages."""
        self.length = float(UsdGeom.GetStageMetersPerUnit(stage))
        """Length unit of the stage [m]."""
        self.mass = float(UsdPhysics.GetStageKilogramsPerUnit(stage))
        """Mass unit of the stage [kg]."""
        for quantity, unit in (("metersPerUnit", self.length), ("kilogramsPerUnit", self.mass)):
            if not 0.0 < unit < np.inf:
                raise AssetError(
                    f"{quantity} is {unit}, but a unit must be finite and > 0",
                    file=name,
                    element="stage metadata",
                    value=unit,
                    remedy="Correct it in the file.",
                )
        if not UsdGeom.StageHasAuthoredMetersPerUnit(stage):
            report.add(
                "missing metersPerUnit",
                "stage metadata",
                "lengths are taken as centimetres, USD's default; write metersPerUnit = 1 for metres",
                ImportSeverity.WARNING,
            )
        self.up_axis = str(UsdGeom.GetStageUpAxis(stage))
        """Up axis of the stage: "Y" or "Z"."""
        if self.up_axis not in Axis.__members__:
            raise AssetError(
                f"upAxis is '{self.up_axis}', but it must be Y or Z",
                file=name,
                element="stage metadata",
                value=self.up_axis,
                remedy="Correct it in the file.",
            )
        self.up_axis_frame = IDENTITY
        """Rotation of the stage that makes its up axis that of the builder."""
        if not options["apply_up_axis_from_stage"]:
            self.up_axis_frame = make_frame(quat=upright_rotation(Axis[self.up_axis], options["up_axis"]))
        self.root = (
            stage.GetPrimAtPath(options["root_path"]) if options["root_path"].startswith("/") else None
        )
        """Prim whose subtree is imported."""
        if not self.root:
            raise AssetError(
                f"there is no prim '{options['root_path']}'",
                file=name,
                element="root_path",
                value=options["root_path"],
                remedy="Pass the absolute path of a prim as root_path, for example '/' for all of the stage.",
            )
        self._patterns = [re.compile(pattern) for pattern in options["ignore_paths"]]
        self._cache = UsdGeom.XformCache(Usd.TimeCode.Default())
        self.prims: dict[str, Any] = {}
        """Prims that are imported, by path, in the order of the stage."""
        self._order: dict[str, int] = {}
        for prim in Usd.PrimRange(stage.GetPseudoRoot(), Usd.TraverseInstanceProxies()):
            path = str(prim.GetPath())
            self._order[path] = len(self._order)
            if prim.GetPath().HasPrefix(self.root.GetPath()) and not self.is_ignored(path):
                self.prims[path] = prim
        self._parsed = _parse(stage)

    def is_ignored(self, path: str) -> bool:
        """Return whether one of the patterns of `ignore_paths` matches the start of a path."""
        return any(pattern.match(path) for pattern in self._patterns)

    def objects(self, *kinds: str) -> list[tuple[str, Any]]:
        """Return path and description of the parser's objects of the given kinds, in the order of the stage.

        Raises:
            AssetError: If the parser found one that is not valid.
        """
        found = []
        for kind in kinds:
            for path, description in self._parsed.get(kind, []):
                if path in self.prims or (kind in SHARED_KINDS and not self.is_ignored(path)):
                    if not description.isValid and kind == "Articulation":
                        continue  # usd-core 25 says so of one without joints; its body is found without it
                    if not description.isValid:
                        raise AssetError(
                            f"usd-core's physics parser rejects this {kind}",
                            file=self.name,
                            element=f"prim '{path}'",
                            remedy="Correct the attributes of the prim, or leave it out with ignore_paths.",
                        )
                    found.append((path, description))
        return sorted(found, key=lambda item: self._order[item[0]])

    def order(self, path: str) -> int:
        """Return the index of a prim in the order of the stage."""
        return self._order[path]

    def world_matrix(self, prim: Any) -> np.ndarray:
        """Return the 4x4 matrix from the frame of a prim [stage units] to the stage [m].

        Raises:
            AssetError: If it is not finite or not invertible.
        """
        matrix = np.array(self._cache.GetLocalToWorldTransform(prim), dtype=np.float64).T
        if not np.isfinite(matrix).all() or abs(np.linalg.det(matrix[:3, :3])) == 0.0:
            raise self.error(
                prim,
                f"its transform {matrix[:3].tolist()} is not finite, or flattens it",
                value=matrix.tolist(),
                remedy="Correct the xformOps of the prim and of what it is in.",
            )
        matrix[:3] *= self.length
        return matrix

    def world_frame(self, prim: Any) -> Frame:
        """Return the pose of a prim on the stage, without its scale."""
        return split_matrix(self.world_matrix(prim))[0]

    def parent_rotation(self, prim: Any) -> np.ndarray:
        """Return the rotation matrix of the space that the transform of a prim is given in."""
        if prim.GetParent().IsPseudoRoot():
            return np.eye(3)
        return self.world_frame(prim.GetParent()).matrix

    def error(self, prim: Any, problem: str, *, value: Any = None, remedy: str) -> AssetError:
        """Return the error about a prim (or a path)."""
        path = prim if isinstance(prim, str) else str(prim.GetPath())
        return AssetError(problem, file=self.name, element=f"prim '{path}'", value=value, remedy=remedy)

    def number(self, prim: Any, what: str, value: Any, *, minimum: float = -np.inf) -> float:
        """Return a finite number not below `minimum`.

        Raises:
            AssetError: If it is something else.
        """
        number = float(value)
        if not (np.isfinite(number) and number >= minimum):
            bound = "" if minimum == -np.inf else f" and not below {minimum:g}"
            raise self.error(
                prim,
                f"{what} is {number}, but it must be finite{bound}",
                value=number,
                remedy="Correct the number in the file.",
            )
        return number


def authored(prim: Any, *names: str) -> Any:
    """Return the value of the first of the attributes that is written in the file, or None."""
    for name in names:
        attribute = prim.GetAttribute(name)
        if attribute and attribute.HasAuthoredValue():
            return attribute.Get()
    return None


def applied_schemas(prim: Any) -> list[str]:
    """Return the authored API schemas of a prim, including those unknown to usd-core."""
    operations = prim.GetMetadata("apiSchemas")
    return [] if operations is None else [str(name) for name in operations.GetAppliedItems()]


def split_matrix(matrix: np.ndarray) -> tuple[Frame, np.ndarray]:
    """Return a 4x4 matrix as a pose and the 3x3 matrix (scale, shear, mirror) that acts before it."""
    from pxr import Gf

    rigid = Gf.Matrix4d(*matrix.T.reshape(-1).tolist()).RemoveScaleShear()
    rotation = np.array(rigid, dtype=np.float64)[:3, :3].T
    frame = Frame(matrix[:3, 3].copy(), quat_from_matrix(rotation))
    return frame, frame.matrix.T @ matrix[:3, :3]


def inverse_matrix(frame: Frame) -> np.ndarray:
    """Return the 4x4 matrix of the inverse of a pose."""
    matrix = np.eye(4)
    matrix[:3, :3] = frame.matrix.T
    matrix[:3, 3] = -(frame.matrix.T @ frame.position)
    return matrix


def read_usd(
    source: Any, options: UsdSettings, report: ImportReport, path_resolver: PathResolver | None = None
) -> UsdSource:
    """Return the stage of `source`: a path, the text of a usda file, or a `Usd.Stage`.

    Args:
        source: What to read.
        options: Options of the importer.
        report: Report of the import.
        path_resolver: Finds the files that the stage refers to; None for USD's own resolver.

    Raises:
        ValueError: If there is a resolver for a stage that is open already.
        ImportError: If usd-core is not installed.
        AssetFileError: If there is no such file, or Git LFS has not fetched it or a layer that it refers to.
        AssetError: If usd-core cannot read it.
    """
    try:
        from pxr import Sdf, Usd
    except ImportError as error:
        raise ImportError(
            "add_usd: usd-core, which reads USD, is not installed. Run: pip install pluriverse[usd]"
        ) from error
    if isinstance(source, Usd.Stage):
        if path_resolver is not None:
            raise ValueError(
                "add_usd: path_resolver is for files and texts, but the source is a Usd.Stage, which found "
                "its files when it was opened. Pass the file, or open the stage with a resolver context of "
                "yours (Usd.Stage.Open(path, Ar.DefaultResolverContext([folders]))."
            )
        stage, name = source, source.GetRootLayer().identifier
    else:
        text = str(source)
        is_text = text.lstrip("\ufeff \t\r\n").startswith(TEXT_START) or "\n" in text
        name = "USD text" if is_text else text
        if not is_text and not Path(text).is_file():
            raise AssetFileError(
                "there is no such file",
                file=name,
                value=text,
                remedy="Correct the path (relative ones start at the current directory), or pass the text of "
                f"a usda file, which starts with {TEXT_START}.",
            )
        if not is_text and Path(text).suffix.lower() not in USD_SUFFIXES:
            raise AssetError(
                "this is no USD file by its name",
                file=name,
                value=Path(text).suffix,
                remedy=f"Pass a file that ends in {', '.join(USD_SUFFIXES)}; MJCF is read by add_mjcf(), "
                "URDF by add_urdf().",
            )
        if is_text:
            check_usda_text(text, name)
        else:
            check_fetched(Path(text), file=name)
            check_usd_file(Path(text), name)
        with usd_errors(name):
            if is_text:
                layer = Sdf.Layer.CreateAnonymous(".usda")
                layer.ImportFromString(text.lstrip("\ufeff \t\r\n"))
            else:
                layer = Sdf.Layer.FindOrOpen(text)
            if layer:
                check_usd_layer(layer, name)
            layers = [layer]
            if layer and path_resolver is not None:
                folder = None if is_text else Path(text).absolute().parent
                layers = resolve_layer(layer, folder, path_resolver, name)
            stage = Usd.Stage.Open(layers[0] if is_text or path_resolver is not None else text)
    report.source = name
    problems = stage.GetCompositionErrors()
    check_arcs(problems, name)
    for problem in problems:
        report.add("broken reference", " ".join(str(problem).split()), "what it refers to is missing")
    with usd_errors(name):
        stage = expand_instancers(stage, report)
        unloaded = Usd.PrimIsActive & Usd.PrimIsDefined & ~Usd.PrimIsLoaded & ~Usd.PrimIsAbstract
        for prim in Usd.PrimRange(stage.GetPseudoRoot(), Usd.PrimIsActive & Usd.PrimIsDefined):
            if prim.HasAuthoredPayloads() and unloaded(prim):
                path = str(prim.GetPath())
                report.add("payload that is not loaded", path, "it is missing; stage.Load() loads it")
        return UsdSource(stage, name, options, report)


@contextlib.contextmanager
def usd_errors(name: str) -> Iterator[None]:
    """Raise the complaints of usd-core as errors of the asset `name`."""
    from pxr import Tf

    try:
        yield
    except Tf.ErrorException as error:
        raise AssetError(
            f"usd-core cannot read it: {_complaint(str(error))}",
            file=name,
            remedy="Correct the file at that place.",
        ) from error


def _complaint(text: str) -> str:
    """Return the message of a usd-core error, without its source location."""
    said: Iterator[str] = (match.group(1) for match in re.finditer(r"\.\w+ : '(.*?)'\s*$", text, re.M | re.S))
    return " ".join(" ".join(said).split()) or " ".join(text.split())


def _parse(stage: Any) -> dict[str, list[tuple[str, Any]]]:
    """Return the physics objects of a stage by kind."""
    from pxr import UsdPhysics

    with warnings.catch_warnings():
        # The name that usd-core 26 suggests instead does not exist in usd-core 25.
        warnings.simplefilter("ignore", DeprecationWarning)
        parsed = UsdPhysics.LoadUsdPhysicsFromRange(stage, ["/"])
    return {
        str(kind).rpartition(".")[2]: [
            (str(path), description) for path, description in zip(paths, descriptions, strict=True)
        ]
        for kind, (paths, descriptions) in parsed.items()
    }
