"""Names of Newton: each exists here, or is missing with a reason; the page on porting lists all of them."""

import importlib
import os
from pathlib import Path

import pytest

import pluriverse as pv
from pluriverse.newton_names import ABSENT
from tests.ported.newton_reference import NAMES

PAGE = Path(__file__).resolve().parents[2] / "docs" / "porting.md"
BEGIN, END = "<!-- names: begin -->\n", "<!-- names: end -->\n"
MODULES = (
    *("", "actuators", "examples", "geometry", "ik", "math", "selection", "sensors", "solvers"),
    *("usd", "utils", "viewer"),
)


@pytest.fixture(scope="module")
def owners():
    """Return modules and instances by the names of the table; a model of one ball."""
    builder = pv.ModelBuilder()
    pv.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    model = builder.finalize("cpu")
    pipeline = pv.CollisionPipeline(model)
    result = {
        "ModelBuilder": builder,
        "Model": model,
        "State": model.state(),
        "Control": model.control(),
        "CollisionPipeline": pipeline,
        "Contacts": pipeline.contacts(),
        "ArticulationView": pv.selection.ArticulationView(model, "*"),
        "Mesh": pv.Mesh.create_box(0.1),
        "SolverMuJoCo": pv.SolverMuJoCo(model),
    }
    for module in MODULES:
        result[module] = importlib.import_module(f"pluriverse.{module}" if module else "pluriverse")
    return result


def why_missing(owner, holder, name):
    """Return why a name is not there: what looking it up says after the colon. None if it is there."""
    try:
        getattr(holder, name)
    except AttributeError as error:
        return str(error).partition(": ")[2] or "no reason"
    return None


def split(owner, holder):
    """Return the names that exist, and those that do not, by their reasons."""
    here, missing = [], {}
    for name in NAMES[owner]:
        reason = why_missing(owner, holder, name)
        if reason is None:
            here.append(name)
        else:
            missing.setdefault(reason, []).append(name)
    return here, missing


def page_text(owners):
    lines = []
    for owner in NAMES:
        here, missing = split(owner, owners[owner])
        title = f"`newton.{owner}`" if owner in MODULES and owner else f"`{owner or 'newton'}`"
        lines += [f"### {title}", "", "| names | here |", "|---|---|"]
        if here:
            lines.append(f"| {', '.join(f'`{name}`' for name in here)} | yes |")
        for reason, names in missing.items():
            lines.append(f"| {', '.join(f'`{name}`' for name in names)} | no: {reason.removesuffix('.')} |")
        lines.append("")
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("owner", NAMES)
def test_every_name_exists_or_says_why_not(owners, owner):
    _, missing = split(owner, owners[owner])
    assert missing.get("no reason", []) == []


def test_the_page_lists_every_name(owners):
    """Run this test with PLURIVERSE_WRITE_NAMES=1 to write the table anew."""
    text = PAGE.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    expected = page_text(owners)
    if os.environ.get("PLURIVERSE_WRITE_NAMES"):
        PAGE.write_text(text[:begin] + expected + text[end:])
    assert PAGE.read_text()[begin : begin + len(expected)] == expected


def test_no_reason_is_given_for_what_exists(owners):
    """A name that was built since has no reason left."""
    stale = [
        f"{owner}.{name}"
        for owner, names in NAMES.items()
        for name in names
        if name in ABSENT.get(owner, {}) and why_missing(owner, owners[owner], name) is None
    ]
    assert stale == []
    assert set(ABSENT) <= {*NAMES, "SolverSAP"}


def test_the_list_is_that_of_the_installed_package():
    """Where Newton is installed, the list has all public names of its modules and objects."""
    newton = pytest.importorskip("newton")
    builder = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    model = builder.finalize(device="cpu")
    pipeline = newton.CollisionPipeline(model)
    theirs = {
        "ModelBuilder": builder,
        "Model": model,
        "State": model.state(),
        "Control": model.control(),
        "CollisionPipeline": pipeline,
        "Contacts": pipeline.contacts(),
        "ArticulationView": newton.selection.ArticulationView(model, "*"),
        "Mesh": newton.Mesh.create_box(0.1),
        "SolverMuJoCo": newton.solvers.SolverMuJoCo,
    }
    for module in MODULES:
        theirs[module] = importlib.import_module(f"newton.{module}" if module else "newton")
    unknown = {}
    for owner, names in NAMES.items():
        public = getattr(theirs[owner], "__all__", None) or [
            name for name in dir(theirs[owner]) if not name.startswith("_")
        ]
        unknown[owner or "newton"] = sorted(set(public) - set(names))
    assert {owner: names for owner, names in unknown.items() if names} == {}


def test_nonsense_is_refused_without_a_reason(owners):
    for owner in NAMES:
        with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
            _ = owners[owner].nonsense
