"""The API reference documents every public name, once."""

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pluriverse

API = Path(__file__).resolve().parent.parent / "docs" / "api"
DIRECTIVE = re.compile(r"^\.\. auto(?:class|function|data|exception):: (\S+)$", re.MULTILINE)

NOT_SIMULATION = {"pluriverse.cli.main"}
"""Public names that are no part of the programming interface: commands are described in `docs/cli.md`."""


def public_names():
    names = [f"pluriverse.{name}" for name in pluriverse.__all__]
    for module in pkgutil.walk_packages(pluriverse.__path__, "pluriverse."):
        if module.ispkg:
            package = importlib.import_module(module.name)
            names += [f"{module.name}.{name}" for name in getattr(package, "__all__", [])]
    warnings = importlib.import_module("pluriverse.warnings")
    for name, value in vars(warnings).items():
        if isinstance(value, type) and value.__module__ == warnings.__name__:
            names.append(f"pluriverse.warnings.{name}")
    return set(names) - NOT_SIMULATION


def test_every_public_name_is_documented_once():
    """A new public name needs an entry on the page of its room in docs/api."""
    documented = [name for page in sorted(API.glob("*.md")) for name in DIRECTIVE.findall(page.read_text())]
    assert len(documented) == len(set(documented))
    assert set(documented) == public_names()


def test_every_page_is_listed():
    pages = {page.stem for page in API.glob("*.md")} - {"index"}
    assert pages == set(re.findall(r"^([a-z_]+)$", (API / "index.md").read_text(), re.MULTILINE))


def test_the_documentation_builds_without_a_warning(tmp_path):
    """Every docstring is sound markup, every link has a target, and every page is in a table of contents."""
    for module in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(module, reason="building the documentation needs the extra 'docs'")
    arguments = ["-q", "-W", "--keep-going", "-b", "html", "-d", str(tmp_path / "doctrees")]
    process = subprocess.run(
        [sys.executable, "-m", "sphinx", *arguments, str(API.parent), str(tmp_path / "html")],
        cwd=API.parents[1],
        env=os.environ | {"PYTHONPATH": str(API.parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert process.returncode == 0, process.stderr
