"""Explicit contact pairs of an MJCF document: which geoms touch by them, and with which materials.

The two geoms of a pair touch in MuJoCo whatever their contact bits, `exclude` and the joint between their
bodies say, with properties of the pair in place of their own. Here friction, softness, margin and gap belong
to shapes. So geoms that touch by pairs only, as the bits let them touch no other geom of the file, take over
the properties of their pairs: of those with geoms of the world, as feet have with a floor, or else of all,
where the pairs that connect these geoms have the same properties. What remains different is reported.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from pluriverse.importers.report import ImportReport

# Relative difference up to which a property of a pair and that of its geoms are the same. MJCF has decimal
# numbers, and sums of them round.
SAME = 1e-6

# Contact bit of geoms whose pairs name a geom that the file lacks: the highest one, which files do not use.
# No other geom of the file looks for it, nor does such a geom itself.
ELSEWHERE_BIT = 1 << 30


@dataclass
class GeomMaterials:
    """Properties of geoms, as MuJoCo orders them, shape [geom, ...]."""

    friction: np.ndarray
    """Coefficients of sliding, torsional and rolling friction [-, m, m], shape [geom, 3]."""
    condim: np.ndarray
    """Dimensions of contacts: 1 without friction, 3, 4 with torsional and 6 with rolling friction."""
    solref: np.ndarray
    """Time constant [s] and damping ratio, or stiffness and damping as negative numbers, shape [geom, 2]."""
    solimp: np.ndarray
    """Curve of the impedance, shape [geom, 5]."""
    margin: np.ndarray
    """Distance at which a contact pushes; that of two geoms is the sum [m]."""
    gap: np.ndarray
    """Distance beyond the margin in which a contact is found [m]."""


def has_contact_bits(model: Any, geom: int) -> bool:
    """Return whether a geom has contact bits, by which it may touch geoms that it shares no pair with."""
    return bool(model.geom_contype[geom] != 0 or model.geom_conaffinity[geom] != 0)


def touch_elsewhere(geom: Any, pair: Any) -> None:
    """Let a geom (of `mujoco.MjSpec`) without contact bits touch what is added besides its file.

    A robot file that is meant to be included pairs its feet with the floor of another file. They take the
    properties of the pair, where it has some. A second pair of the geom finds bits, and changes nothing.
    """
    geom.contype = ELSEWHERE_BIT
    if int(pair.condim) == 1:
        geom.friction = [0.0, 0.0, 0.0]
    elif np.isfinite(pair.friction[0]):
        geom.friction = [float(pair.friction[number]) for number in (0, 2, 3)]
    for name in ("solref", "solimp"):
        value = np.array(getattr(pair, name), dtype=np.float64)
        if np.isfinite(value).all():
            setattr(geom, name, value)
    for name in ("margin", "gap"):
        length = float(getattr(pair, name))
        if np.isfinite(length):
            setattr(geom, name, length)


def _touches_by_bits(model: Any) -> np.ndarray:
    """Return whether the contact bits let a geom touch another of the file, shape [geom]."""
    welds = np.array(model.body_weldid)[np.array(model.geom_bodyid)]
    columns = np.stack([welds, np.array(model.geom_contype), np.array(model.geom_conaffinity)], axis=1)
    kinds, kind = np.unique(columns, axis=0, return_inverse=True)
    weld, contype, conaffinity = kinds.T
    apart = weld[:, None] != weld[None, :]
    agree = (contype[:, None] & conaffinity[None, :]) | (conaffinity[:, None] & contype[None, :])
    touches: np.ndarray = (apart & (agree != 0)).any(axis=1)[kind.reshape(-1)]
    return touches


def paired_geoms(model: Any) -> set[int]:
    """Return the geoms that contact pairs name."""
    return {int(geom) for ends in (model.pair_geom1, model.pair_geom2) for geom in ends}


def find_materials(model: Any) -> GeomMaterials:
    """Return the properties of all geoms, those of pairs where geoms touch by these only."""
    materials = GeomMaterials(
        friction=np.array(model.geom_friction, dtype=np.float64),
        condim=np.array(model.geom_condim),
        solref=np.array(model.geom_solref, dtype=np.float64),
        solimp=np.array(model.geom_solimp, dtype=np.float64),
        margin=np.array(model.geom_margin, dtype=np.float64),
        gap=np.array(model.geom_gap, dtype=np.float64),
    )
    if model.npair == 0:
        return materials
    ends = np.stack([model.pair_geom1, model.pair_geom2], axis=1)
    # Takes the properties of its pairs, and has none yet.
    is_free = ~_touches_by_bits(model) & (np.array(model.geom_contype) != ELSEWHERE_BIT)
    is_of_world = np.array(model.body_weldid)[np.array(model.geom_bodyid)] == 0
    with_world = is_of_world[ends].any(axis=1)
    for chosen in (with_world, ~with_world):
        may_set = is_free.copy()
        for geoms, pairs in _connected(ends, np.flatnonzero(chosen & is_free[ends].all(axis=1))):
            first = pairs[0]
            own = _properties(model, first)
            if not all(_is_same(own, _properties(model, pair)) for pair in pairs[1:]):
                continue
            may_set[geoms] = False
            materials.friction[geoms] = own["friction"][[0, 2, 3]]
            materials.condim[geoms] = model.pair_dim[first]
            materials.solref[geoms] = model.pair_solref[first]
            materials.solimp[geoms] = model.pair_solimp[first]
            materials.margin[geoms] = 0.5 * model.pair_margin[first]
            materials.gap[geoms] = 0.5 * model.pair_gap[first]
        is_free = may_set
    return materials


def report_pairs(
    model: Any,
    materials: GeomMaterials,
    added: dict[int, bool],
    report: ImportReport,
    *,
    is_kept: bool,
) -> None:
    """Report the pairs that are left out, and in what the others differ from the materials of their geoms.

    Args:
        model: The compiled document.
        materials: Properties that the shapes of geoms have.
        added: Geoms that became shapes, and whether these collide.
        report: Report of the import.
        is_kept: Whether it is enough that the namespace `mujoco` has what pairs say.
    """
    for pair in range(model.npair):
        name = model.pair(pair).name or f"contact pair {pair}"
        ends = [int(model.pair_geom1[pair]), int(model.pair_geom2[pair])]
        lost = [model.geom(geom).name or f"geom {geom}" for geom in ends if geom not in added]
        if lost:
            report.add("contact pair", name, f"it is left out, as its geom '{lost[0]}' is")
            continue
        idle = [model.geom(geom).name or f"geom {geom}" for geom in ends if not added[geom]]
        welds = [int(model.body_weldid[model.geom_bodyid[geom]]) for geom in ends]
        if welds[0] == welds[1]:
            report.add("contact pair", name, "its geoms are fixed to each other, so they never touch")
        elif idle and not is_kept:
            report.add(
                "contact pair", name, f"its geom '{idle[0]}' does not collide by the options about classes"
            )
        elif not is_kept:
            differing = _differences(model, materials, pair)
            if differing:
                report.add(
                    "contact pair",
                    name,
                    f"its geoms touch with the materials of their own; the pair says {', '.join(differing)}",
                )


def _connected(ends: np.ndarray, pairs: np.ndarray) -> list[tuple[list[int], list[int]]]:
    """Return the geoms that some pairs connect, directly or over others, each group with its pairs."""
    parts: list[tuple[set[int], list[int]]] = []
    for pair in pairs.tolist():
        geoms, found = set(ends[pair].tolist()), [pair]
        apart = []
        for part in parts:
            if part[0] & geoms:
                geoms |= part[0]
                found = part[1] + found
            else:
                apart.append(part)
        parts = [*apart, (geoms, found)]
    return [(sorted(geoms), sorted(found)) for geoms, found in parts]


def _friction(friction: np.ndarray, condim: int) -> np.ndarray:
    """Return the coefficients of sliding (two), torsion and rolling (two), 0 where a pair lacks them."""
    acting = {1: 0, 3: 2, 4: 3, 6: 5}[condim]
    return np.where(np.arange(5) < acting, friction, 0.0)


def _properties(model: Any, pair: int) -> dict[str, np.ndarray]:
    """Return what a pair says of its contacts, by the names of MJCF."""
    properties = {
        "friction": _friction(model.pair_friction[pair], int(model.pair_dim[pair])),
        "solref": np.array(model.pair_solref[pair]),
        "solreffriction": np.array(model.pair_solreffriction[pair]),
        "solimp": np.array(model.pair_solimp[pair]),
        "margin": np.array(model.pair_margin[pair]),
        "gap": np.array(model.pair_gap[pair]),
    }
    adhesion = getattr(model, "pair_adhesion", None)
    if adhesion is not None:
        properties["adhesion"] = np.array(adhesion[pair])
    return properties


def _differences(model: Any, materials: GeomMaterials, pair: int) -> list[str]:
    """Return what the materials of two geoms do not give to their contacts, as text."""
    ends = [int(model.pair_geom1[pair]), int(model.pair_geom2[pair])]
    result = []
    for what, value in _properties(model, pair).items():
        if what in ("margin", "gap"):
            given = [getattr(materials, what)[ends].sum()]
        elif what == "friction":
            # Shapes rub in any case; of spinning and rolling the reports of the geoms tell.
            condim = max(int(model.pair_dim[pair]), 3)
            given = [_friction(materials.friction[geom][[0, 0, 1, 2, 2]], condim) for geom in ends]
        elif what in ("solref", "solimp"):
            given = list(getattr(materials, what)[ends])
        else:
            given = [np.zeros_like(value)]
        other = [found for found in given if not _is_close(value, found)]
        if other:
            result.append(f"{what} {_shown(value)} and not {_shown(other[0])}")
    return result


def _is_same(first: dict[str, np.ndarray], second: dict[str, np.ndarray]) -> bool:
    return all(_is_close(value, second[what]) for what, value in first.items())


def _is_close(first: np.ndarray, second: np.ndarray) -> bool:
    return bool(np.allclose(first, second, rtol=SAME, atol=0.0))


def _shown(value: np.ndarray) -> str:
    return " ".join(f"{number:g}" for number in np.ravel(value))
