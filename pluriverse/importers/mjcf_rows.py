"""Elements of an MJCF document beyond bodies, joints and shapes, as rows of the namespace `mujoco`.

Contact pairs, tendons with the joints, sites and geoms that they pass, constraints between tendons, and all
actuators. They refer to joints, shapes and bodies of the builder, so they are added after these.
"""

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from pluriverse.importers.description import Placement
from pluriverse.importers.mjcf_enums import MjEq, MjTrn, MjWrap
from pluriverse.importers.mjcf_source import MjcfSource
from pluriverse.importers.mjcf_tendon_levers import is_fixed_tendon
from pluriverse.importers.options import MjcfSettings
from pluriverse.importers.report import ImportReport
from pluriverse.mujoco_attributes.choices import FIXED, NO_LENGTH, SPATIAL

SITE, GEOM, PULLEY = range(3)  # values of tendon_wrap_type
# Values of actuator_trntype, by those of mujoco.mjtTrn.
TRNTYPE: dict[int, int] = {
    MjTrn.JOINT: 0,
    MjTrn.JOINT_IN_PARENT: 1,
    MjTrn.TENDON: 2,
    MjTrn.SITE: 3,
    MjTrn.BODY: 4,
    MjTrn.SLIDER_CRANK: 5,
}
JOINT_TARGET, DIRECT, FURTHER = range(3)  # values of ctrl_source
GENERAL = 2  # value of ctrl_type
# Lengths of a path that MuJoCo computed twice are equal up to this, relative.
ROUNDING = 1e-12


def report_rows(source: MjcfSource, options: MjcfSettings, report: ImportReport) -> None:
    """Report which pairs, tendons and actuators are kept in the namespace, and which cannot be."""
    namespace, model = options["custom"].namespace, source.model
    kinds = [("contact pair", model.npair, "pair"), ("tendon", model.ntendon, "tendon")]
    for kind, count, field in kinds:
        for index in range(count):
            name = getattr(model, field)(index).name or f"{kind} {index}"
            is_spatial = field == "tendon" and not is_fixed_tendon(model, index)
            feature = f"spatial {kind}" if is_spatial else kind
            # SolverSAP has fixed tendons; what it makes of the others is reported for any scale.
            is_common = field == "tendon" and not is_spatial
            if options["scale"] != 1.0 and (namespace.is_asked or is_common):
                report.add(feature, name, "it is left out, as the option scale does not scale it")
            elif options["scale"] == 1.0:
                namespace.keeps(feature, name)
    if not namespace.is_asked:
        return
    for actuator in range(actuator_count(model)):
        reason = unkept_actuator(source, actuator, options)
        name = model.actuator(actuator).name or f"actuator {actuator}"
        if reason:
            report.add(f"actuator: {reason}", name, "it exerts nothing")
        elif model.actuator_delay[actuator] != 0.0:
            report.add(
                "delay of an actuator",
                name,
                "it follows its control at once; write to the control later instead",
            )


def _given_length(length: np.ndarray) -> np.ndarray:
    """Return rest lengths of which none is the one that stands for none."""
    return np.where(length == NO_LENGTH, np.nextafter(np.float32(NO_LENGTH), np.float32(0.0)), length)


def actuator_count(model: Any) -> int:
    """Return the number of actuators, of which some have several controls."""
    return int(model.nactuator)


def unkept_actuator(source: MjcfSource, actuator: int, options: MjcfSettings) -> str:
    """Return why an actuator cannot be a row of the namespace, or an empty text."""
    model = source.model
    if options["scale"] != 1.0:
        return "the option scale does not scale it"
    if _transmission(model, actuator) not in TRNTYPE:
        return "its transmission is none of joint, tendon, site, body and slider-crank"
    plugins = getattr(model, "actuator_plugin", None)
    if plugins is not None and plugins[actuator] >= 0:
        return "it is a plugin"
    return ""


def _transmission(model: Any, actuator: int) -> int:
    """Return the target of an actuator; an orientation is one of a joint, or of a site in another."""
    kind = int(model.actuator_trntype[actuator])
    if kind == MjTrn.ROTATION:
        return MjTrn.JOINT if int(model.actuator_trnid[actuator, 1]) < 0 else MjTrn.SITE
    return kind


class RowWriter:
    """Adds the rows of a document to a builder.

    Args:
        builder: Builder that has the bodies, joints and shapes of the document.
        source: The document.
        placement: Where these are.
    """

    def __init__(self, builder: Any, source: MjcfSource, placement: Placement):
        self._builder = builder
        self._source = source
        self._model = source.model
        self._placement = placement
        self._tendons: dict[int, int] = {}
        articulation = np.asarray(builder.joint_articulation)
        self._articulation_of_body = np.full(builder.body_count, -1, dtype=np.int64)
        self._articulation_of_body[np.asarray(builder.joint_child)] = articulation

    def add_pairs(self) -> None:
        """Add the contact pairs whose two geoms were added."""
        model = self._model
        for pair in range(model.npair):
            shapes = [
                self._placement.shapes.get(("geom", int(geom[pair])))
                for geom in (model.pair_geom1, model.pair_geom2)
            ]
            if None in shapes:
                continue
            self._add(
                pair_geom1=shapes[0],
                pair_geom2=shapes[1],
                pair_label=model.pair(pair).name,
                pair_condim=model.pair_dim[pair],
                pair_solref=model.pair_solref[pair],
                pair_solreffriction=model.pair_solreffriction[pair],
                pair_solimp=model.pair_solimp[pair],
                pair_margin=model.pair_margin[pair],
                pair_gap=model.pair_gap[pair],
                pair_adhesion=model.pair_adhesion[pair],
                pair_friction=model.pair_friction[pair],
            )

    def add_tendons(self) -> None:
        """Add the tendons whose joints, sites and geoms were added, and the constraints between them."""
        model = self._model
        for tendon in range(model.ntendon):
            wraps = range(
                int(model.tendon_adr[tendon]), int(model.tendon_adr[tendon] + model.tendon_num[tendon])
            )
            fixed = int(model.wrap_type[wraps[0]]) == MjWrap.JOINT
            rows = [self._joint_row(wrap) if fixed else self._wrap_row(wrap) for wrap in wraps]
            if None in rows:
                continue
            owner = self._owner(rows[0] or {}, fixed=fixed)
            first = -1
            for row in rows:
                kind = "tendon_joint" if fixed else "tendon_wrap"
                added = self._add(**(row or {}), **{f"{kind}_articulation": owner})
                first = added if first < 0 else first
            self._tendons[tendon] = self._add_tendon(tendon, fixed, first, len(rows), owner)
        for index in np.flatnonzero(np.asarray(model.eq_type) == MjEq.TENDON):
            ends = [int(model.eq_obj1id[index]), int(model.eq_obj2id[index])]
            if any(end >= 0 and end not in self._tendons for end in ends):
                continue
            self._add(
                tendon_equality_label=model.equality(index).name,
                tendon_equality_tendon1=self._tendons[ends[0]],
                tendon_equality_tendon2=self._tendons.get(ends[1], -1),
                tendon_equality_polycoef=model.eq_data[index][:5],
                tendon_equality_enabled=bool(model.eq_active0[index]),
                tendon_equality_solref=model.eq_solref[index],
                tendon_equality_solimp=model.eq_solimp[index],
            )

    def add_actuators(
        self, drives: Mapping[int, int], controls: np.ndarray, keyframe: int | None, options: MjcfSettings
    ) -> None:
        """Add all actuators that can be rows.

        Args:
            drives: Actuators that are drives of their joints, with their `ctrl_type`.
            controls: Initial controls of all actuators.
            keyframe: Keyframe that their activations start with, None for none.
            options: Options of the import.
        """
        for actuator in range(actuator_count(self._model)):
            target = None if unkept_actuator(self._source, actuator, options) else self._target(actuator)
            if target is not None:
                self._add_actuator(actuator, target, drives.get(actuator), controls, keyframe)

    def _joint_row(self, wrap: int) -> dict[str, Any] | None:
        origin: Hashable = ("joint", int(self._model.wrap_objid[wrap]))
        joint = self._placement.joints.get(origin)
        if joint is None:
            return None
        coef = self._model.wrap_prm[wrap]
        return {
            "tendon_joint": joint,
            "tendon_joint_dof": self._placement.dofs[origin],
            "tendon_coef": coef,
        }

    def _wrap_row(self, wrap: int) -> dict[str, Any] | None:
        model, shapes = self._model, self._placement.shapes
        kind, index, parameter = int(model.wrap_type[wrap]), int(model.wrap_objid[wrap]), model.wrap_prm[wrap]
        if kind == MjWrap.PULLEY:
            return {"tendon_wrap_type": PULLEY, "tendon_wrap_prm": parameter}
        if kind == MjWrap.SITE:
            site = shapes.get(("site", index))
            return None if site is None else {"tendon_wrap_type": SITE, "tendon_wrap_shape": site}
        geom, side = shapes.get(("geom", index)), shapes.get(("site", round(float(parameter))), -1)
        if geom is None or (parameter >= 0.0 and side < 0):
            return None
        return {"tendon_wrap_type": GEOM, "tendon_wrap_shape": geom, "tendon_wrap_sidesite": side}

    def _owner(self, row: dict[str, Any], *, fixed: bool) -> int:
        """Return the articulation of a tendon's first element, -1 for none."""
        if fixed:
            return int(self._builder.joint_articulation[row["tendon_joint"]])
        shape = row.get("tendon_wrap_shape", -1)
        body = int(self._builder.shape_body[shape]) if shape >= 0 else -1
        return int(self._articulation_of_body[body]) if body >= 0 else -1

    def _add_tendon(self, tendon: int, fixed: bool, first: int, count: int, owner: int) -> int:
        model = self._model
        springlength = _given_length(model.tendon_lengthspring[tendon])
        if not fixed and self._rests_at_start(tendon):
            springlength = np.full(2, NO_LENGTH)  # it follows edits of the bodies that the tendon passes
        rows = (
            {"tendon_joint": first, "tendon_wrap": -1}
            if fixed
            else {"tendon_joint": -1, "tendon_wrap": first}
        )
        return self._add(
            tendon_label=model.tendon(tendon).name,
            tendon_type=FIXED if fixed else SPATIAL,
            tendon_articulation=owner,
            tendon_joint_adr=rows["tendon_joint"],
            tendon_joint_num=count if fixed else 0,
            tendon_wrap_adr=rows["tendon_wrap"],
            tendon_wrap_num=0 if fixed else count,
            tendon_stiffness=model.tendon_stiffness[tendon],
            tendon_stiffnesspoly=model.tendon_stiffnesspoly[tendon],
            tendon_damping=model.tendon_damping[tendon],
            tendon_dampingpoly=model.tendon_dampingpoly[tendon],
            tendon_frictionloss=model.tendon_frictionloss[tendon],
            tendon_limited=int(model.tendon_limited[tendon]),
            tendon_range=model.tendon_range[tendon],
            tendon_margin=model.tendon_margin[tendon],
            tendon_solref_limit=model.tendon_solref_lim[tendon],
            tendon_solimp_limit=model.tendon_solimp_lim[tendon],
            tendon_solref_friction=model.tendon_solref_fri[tendon],
            tendon_solimp_friction=model.tendon_solimp_fri[tendon],
            tendon_armature=model.tendon_armature[tendon],
            tendon_springlength=springlength,
            tendon_actuator_force_range=model.tendon_actfrcrange[tendon],
            tendon_actuator_force_limited=int(model.tendon_actfrclimited[tendon]),
        )

    def _rests_at_start(self, tendon: int) -> bool:
        """Return whether a tendon rests at the length that its path has at `qpos0`, whatever `springref`."""
        authored = np.asarray(self._source.spec.tendons[tendon].springlength)
        rest, start = self._model.tendon_lengthspring[tendon], self._model.tendon_length0[tendon]
        return bool(np.all(authored == NO_LENGTH) and np.allclose(rest, start, rtol=ROUNDING, atol=0.0))

    def _target(self, actuator: int) -> tuple[int, int, int] | None:
        """Return the target of an actuator, a second target (-1 for none) and its articulation."""
        model, placement = self._model, self._placement
        kind = _transmission(model, actuator)
        index, second = (int(value) for value in model.actuator_trnid[actuator])
        if kind in (MjTrn.JOINT, MjTrn.JOINT_IN_PARENT):
            joint, dof = placement.joints.get(("joint", index)), placement.dofs.get(("joint", index))
            if joint is None or dof is None:
                return None
            return dof, -1, int(self._builder.joint_articulation[joint])
        if kind == MjTrn.TENDON:
            tendon = self._tendons.get(index)
            if tendon is None:
                return None
            owners = self._builder.custom_attributes["mujoco:tendon_articulation"].values
            return tendon, -1, int(owners[tendon])
        if kind == MjTrn.BODY:
            body = placement.bodies.get(("body", index))
            return None if body is None else (body, -1, int(self._articulation_of_body[body]))
        site = placement.shapes.get(("site", index))
        other = placement.shapes.get(("site", second), -1) if second >= 0 else -1
        if site is None or (second >= 0 and other < 0):
            return None
        body = int(self._builder.shape_body[site])
        return site, other, int(self._articulation_of_body[body]) if body >= 0 else -1

    def _add_actuator(
        self,
        actuator: int,
        target: tuple[int, int, int],
        drive: int | None,
        controls: np.ndarray,
        keyframe: int | None,
    ) -> None:
        """Add the row of an actuator, and one for each of its further controls."""
        model, spec = self._model, self._source.spec.actuators[actuator]
        first, output = int(model.actuator_ctrladr[actuator]), int(model.actuator_outadr[actuator])
        optional = {}
        for name in ("damping", "dampingpoly", "armature"):
            table = getattr(model, f"actuator_{name}", None)
            if table is not None:
                optional[f"actuator_{name}"] = table[actuator]
        activation = int(model.actuator_actadr[actuator])
        if keyframe is not None and activation >= 0:
            optional["actuator_act"] = np.zeros(10)
            given = model.key_act[keyframe][activation : activation + int(model.actuator_actnum[actuator])][
                :10
            ]
            optional["actuator_act"][: len(given)] = given
        ranges = {**self._range("force", actuator), **self._range("act", actuator)}
        common = {
            "actuator_trntype": TRNTYPE[_transmission(model, actuator)],
            "actuator_trnid": target[:2],
            "actuator_articulation": target[2],
            "actuator_target_label": spec.target,
        }
        self._add(
            actuator_label=model.actuator(actuator).name,
            actuator_dyntype=model.actuator_dyntype[actuator],
            actuator_gaintype=model.actuator_gaintype[actuator],
            actuator_biastype=model.actuator_biastype[actuator],
            actuator_gear=model.actuator_gear[output],
            actuator_cranklength=model.actuator_cranklength[actuator],
            actuator_dynprm=model.actuator_dynprm[actuator],
            actuator_gainprm=model.actuator_gainprm[actuator],
            actuator_biasprm=model.actuator_biasprm[actuator],
            actuator_lengthrange=model.actuator_lengthrange[output],
            actuator_actdim=int(spec.actdim),
            actuator_actearly=bool(model.actuator_actearly[actuator]),
            actuator_ctrlspec=model.actuator_ctrlspec[actuator],
            ctrl=float(controls[first]),
            ctrl_source=DIRECT if drive is None else JOINT_TARGET,
            ctrl_type=GENERAL if drive is None else drive,
            **common,
            **self._range("ctrl", first),
            **ranges,
            **optional,
        )
        for further in range(1, int(model.actuator_ctrlnum[actuator])):
            self._add(
                actuator_label=f"{model.actuator(actuator).name}/{further}",
                ctrl=float(controls[first + further]),
                ctrl_source=FURTHER,
                ctrl_type=GENERAL,
                **common,
                **self._range("ctrl", first + further),
            )

    def _range(self, name: str, index: int) -> dict[str, Any]:
        """Return a range of an actuator or a control, and whether it is active."""
        bounds = getattr(self._model, f"actuator_{name}range")[index]
        return {
            f"actuator_{name}range": bounds,
            f"actuator_has_{name}range": int(bool(np.any(bounds != 0.0))),
            f"actuator_{name}limited": int(getattr(self._model, f"actuator_{name}limited")[index]),
        }

    def _add(self, **values: Any) -> int:
        """Add a row and return its index."""
        rows = self._builder.add_custom_values({f"mujoco:{name}": value for name, value in values.items()})
        return int(next(iter(rows.values())))
