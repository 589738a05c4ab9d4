"""One local Ray cluster for all tests of this room."""

import pytest

pytest.importorskip("ray", reason="the extra 'cluster' is not installed")
pytest.importorskip("pyarrow", reason="the extra 'cluster' is not installed")

from pluriverse.cluster import farm, part
from tests.cluster.local_cluster import PATIENCE, started


@pytest.fixture(scope="package")  # its processes are at work also when no test uses them
def ray_cluster():
    """Ray on this machine, with places for all workers of a test."""
    import ray

    if ray.is_initialized():  # by a test of another room, with fewer places
        ray.shutdown()
    with pytest.MonkeyPatch.context() as patch:
        # Workers start when they are asked for, not one for each of the CPUs at once.
        patch.setenv("RAY_prestart_worker_first_driver", "0")
        for name, value in PATIENCE.items():
            patch.setenv(name, value)
        for module in (farm, part):
            patch.setattr(module, "START_TIMEOUT", 600.0)
        options = {"include_dashboard": False, "logging_level": "error", "log_to_driver": False}
        started(lambda: ray.init(address="local", num_cpus=8, **options))
        yield ray
        ray.shutdown()
