"""What all tests share: where robots from outside the repository lie, and a quiet Warp."""

import os
from pathlib import Path

import pytest
import warp as wp
from hypothesis import HealthCheck, settings

REPOSITORY = Path(__file__).resolve().parent.parent

# A busy machine is no error of what is tested.
settings.register_profile("pluriverse", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pluriverse")


def pytest_configure(config: pytest.Config) -> None:
    """Let Warp report problems only, not each module it loads, and forget the width of the terminal.

    A console takes `COLUMNS` for good when it is made. Workers of pytest-xdist inherit 80 columns, and
    tests that ask for a wide terminal would get that.
    """
    wp.config.log_level = wp.LOG_WARNING
    for name in ("COLUMNS", "LINES"):
        os.environ.pop(name, None)


@pytest.fixture(scope="session")
def robot_assets() -> Path:
    """Return the folder of robots that are not part of the repository; skip the test where it is missing."""
    chosen = os.environ.get("PLURIVERSE_TEST_ASSETS")
    folder = Path(chosen) if chosen else REPOSITORY.parent / "shared" / "assets"
    if not folder.is_dir():
        pytest.skip(f"no robots in '{folder}': set PLURIVERSE_TEST_ASSETS to a folder that has them")
    return folder
