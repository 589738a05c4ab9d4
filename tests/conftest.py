"""What all tests share: where robots from elsewhere lie, a quiet Warp, and a compiler that is not heard."""

import gc
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import warp as wp
from hypothesis import HealthCheck, settings

import pluriverse as pv
from tests import distribution

REPOSITORY = Path(__file__).resolve().parent.parent

# A busy machine is no error of what is tested. Each run draws the same examples: one that fails is a find,
# but must not strike a change that has nothing to do with it. `--hypothesis-profile=random` looks for more.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("pluriverse", settings.get_profile("random"), derandomize=True)
settings.load_profile("pluriverse")


def pytest_configure(config: pytest.Config) -> None:
    """Let Warp report problems only, not each module it loads, and forget the width of the terminal.

    A console takes `COLUMNS` for good when it is made. Workers of pytest-xdist inherit 80 columns, and
    tests that ask for a wide terminal would get that.
    """
    wp.config.log_level = wp.LOG_WARNING
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected, and leave out what was imported for them afterwards.

    Its millions of objects stay to the end. To go through them again and again takes two fifths of the time
    until the first test, and later seconds for each full collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let workers of pytest-xdist begin with what takes long."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: distribution.rank_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of workers of `-n auto`."""
    return distribution.worker_count()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object | None:
    """Share tests out by units, if no other distribution is asked for."""
    return distribution.make_scheduler(config, log) if config.option.dist == "load" else None


def complaints_about_kernels(text: str) -> list[str]:
    """Return what a compiler said about kernels of the package, or anything that it left unnamed."""
    named = re.findall(r"^\S*wp_pluriverse\.\S*: \w+: .*$", text, flags=re.MULTILINE)
    return named or re.findall(r"^\d+ (?:warning|error)s? generated\.$", text, flags=re.MULTILINE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Iterator[None]:
    """Fail a test that compiles a kernel of the package about which the compiler says something.

    A user would read it above the bar of the first start. So the first run with an empty cache looks at all
    kernels that tests compile.
    """
    report = yield
    complaints = complaints_about_kernels(report.capstderr) if report.when == "call" else []
    if complaints and report.outcome == "passed":
        report.outcome = "failed"
        report.longrepr = "the compiler complains:\n" + "\n".join(complaints)
    return report


@pytest.fixture(autouse=True)
def settings_end_with_the_test() -> Iterator[None]:
    """Put the settings of the package back, which code of the docs changes like any script."""
    names = ("verbose", "mesh_cache_dir", "asset_cache_dir", "asset_roots", "offline")
    before = {name: getattr(pv.config, name) for name in names}
    yield
    for name, value in before.items():
        setattr(pv.config, name, value)


@pytest.fixture(scope="session")
def robot_assets() -> Path:
    """Return the folder of robots that are not part of the repository; skip the test where it is missing."""
    chosen = os.environ.get("PLURIVERSE_TEST_ASSETS")
    folder = Path(chosen) if chosen else REPOSITORY.parent / "shared" / "assets"
    if not folder.is_dir():
        pytest.skip(f"no robots in '{folder}': set PLURIVERSE_TEST_ASSETS to a folder that has them")
    return folder
