"""Fixtures of the tests of the actor API."""

from pathlib import Path

import pytest

from pluriverse import gymapi
from tests.gymapi.scenes import write_assets


@pytest.fixture(scope="session")
def gym() -> gymapi.Gym:
    """Return the calls of the API."""
    return gymapi.acquire_gym()


@pytest.fixture(scope="session")
def assets(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder with small assets."""
    folder: Path = tmp_path_factory.mktemp("assets")
    write_assets(folder)
    return str(folder)
