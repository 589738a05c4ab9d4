"""Contact properties of USD colliders: physics materials, and offsets of other simulators' schemas."""

from typing import Any

import numpy as np

from pluriverse.importers.description import ShapeDescription
from pluriverse.importers.report import ImportReport, ImportSeverity
from pluriverse.importers.solref import gains_of_solref
from pluriverse.importers.usd_source import UsdSource, authored
from pluriverse.mujoco_attributes.choices import DEFAULT_SOLIMP, DEFAULT_SOLREF


class UsdMaterials:
    """Applies the physics materials of a stage to shapes."""

    def __init__(self, source: UsdSource, report: ImportReport):
        self.source = source
        self.report = report
        self._materials = dict(source.objects("RigidBodyMaterial"))
        self._surfaces: dict[str, dict[str, float]] = {}

    def apply(
        self, path: str, prim: Any, description: Any, shapes: list[ShapeDescription], density: float
    ) -> float:
        """Set the contact properties of the shapes of a collider.

        Returns:
            The density of its material [kg/m³], or `density` if that has none.
        """
        cfg = self._contact(path, prim)
        bound = [str(name) for name in description.materials if str(name) in self._materials]
        if bound:
            material = self._materials[bound[0]]
            if bound[0] not in self._surfaces:
                self._surfaces[bound[0]] = self._surface(bound[0], material)
            surface = self._surfaces[bound[0]]
            if authored(prim, "mjc:solref") is not None or "ke" in cfg:
                # Converters write the solref of the collider into the material again, as if for 1 kg, in N/m.
                repeated = ("ke", "ke_per_mass", "tau")
                surface = {name: value for name, value in surface.items() if name not in repeated}
            cfg |= surface
            if material.density > 0.0:
                density = float(material.density) * self.source.mass / self.source.length**3
        if len(set(bound)) > 1:
            self.report.add("several physics materials on a collider", path, f"all of it is '{bound[0]}'")
        for shape in shapes:
            shape.cfg |= cfg
        return density

    def _surface(self, path: str, material: Any) -> dict[str, float]:
        """Return the fields that a physics material gives."""
        number = self.source.number
        cfg = {
            "mu": number(path, "physics:dynamicFriction", material.dynamicFriction, minimum=0.0),
            "restitution": number(path, "physics:restitution", material.restitution, minimum=0.0),
        }
        static = number(path, "physics:staticFriction", material.staticFriction, minimum=0.0)
        number(path, "physics:density", material.density, minimum=0.0)
        prim = self.source.stage.GetPrimAtPath(path)
        if authored(prim, "physics:staticFriction") is not None and static != cfg["mu"]:
            self.report.add(
                "static friction other than dynamic", path, "the dynamic coefficient holds at rest too"
            )
        for field, unit, name in (
            ("mu_torsional", self.source.length, "newton:torsionalFriction"),
            ("mu_rolling", self.source.length, "newton:rollingFriction"),
            ("mu_torsional", 1.0, "newton:mu_torsional"),
            ("mu_rolling", 1.0, "newton:mu_rolling"),
            ("mu_torsional", self.source.length, "mjc:torsionalfriction"),
            ("mu_rolling", self.source.length, "mjc:rollingfriction"),
        ):
            value = authored(prim, name)
            if value is not None and field not in cfg:
                cfg[field] = unit * number(path, name, value, minimum=0.0)
                self.report.add(
                    "torsional and rolling friction",
                    path,
                    "SolverSAP uses it with torsional_friction=True only",
                    ImportSeverity.NOTE,
                )
        return cfg | self._softness(path, prim)

    def _softness(self, path: str, prim: Any) -> dict[str, float]:
        """Return stiffness and dissipation time of a material; -inf leaves them to the solver."""
        given = {}
        for name in ("contactStiffness", "contactDamping"):
            value = authored(prim, f"newton:{name}")
            if value is not None and value != -np.inf:
                number = self.source.number(path, f"newton:{name}", value, minimum=0.0)
                given[name] = self.source.mass * number
        stiffness, damping = given.get("contactStiffness", 0.0), given.get("contactDamping")
        if stiffness > 0.0:
            return {"ke": stiffness} | ({} if damping is None else {"tau": damping / stiffness})
        if damping:
            self.report.add("newton:contactDamping", path, "it has no contactStiffness")
        return {}

    def _contact(self, path: str, prim: Any) -> dict[str, float]:
        """Return the fields that attributes of the collider give."""
        source = self.source
        cfg: dict[str, float] = {}
        rest = authored(prim, "physxCollision:restOffset")
        if rest is not None and np.isfinite(rest):  # -inf leaves it to the simulator
            if rest < 0.0:
                self.report.add("negative restOffset", path, "it touches at its surface")
            cfg["margin"] = source.length * max(float(rest), 0.0)
        offset = authored(prim, "physxCollision:contactOffset")
        if offset is not None and np.isfinite(offset):
            cfg["gap"] = max(source.length * float(offset) - cfg.get("margin", 0.0), 0.0)
        for field, unit, names in (
            ("margin", source.length, ("newton:contactMargin", "newton:margin", "mjc:margin")),
            ("gap", source.length, ("newton:contactGap", "newton:gap", "mjc:gap")),
            ("ke", source.mass, ("newton:contactKe", "newton:ke")),
            ("tau", 1.0, ("newton:tau",)),
        ):
            value = authored(prim, *names)
            if value is not None and np.isfinite(value):
                cfg[field] = unit * source.number(path, names[0], value, minimum=0.0)
        solref = authored(prim, "mjc:solref")
        if solref is not None and "ke" not in cfg and tuple(solref) != DEFAULT_SOLREF:
            if len(solref) != 2 or not np.isfinite(solref).all():
                raise source.error(
                    path,
                    f"mjc:solref is {list(solref)}",
                    value=list(solref),
                    remedy="Write two finite numbers: a time constant and a damping ratio.",
                )
            solimp = authored(prim, "mjc:solimp")
            still = DEFAULT_SOLIMP[1] if solimp is None or len(solimp) < 2 else solimp[1]
            cfg |= gains_of_solref(solref, source.number(path, "dmax of mjc:solimp", still))
            self.report.add(
                "mjc:solref",
                path,
                "converted, with dmax of mjc:solimp, to a stiffness per effective mass; SolverMuJoCo uses it "
                "unchanged where its custom attributes are registered",
                ImportSeverity.NOTE,
            )
        return cfg
