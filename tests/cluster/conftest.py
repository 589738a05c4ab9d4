"""One local Ray cluster for all tests of this room."""

import pytest

pytest.importorskip("ray", reason="the extra 'cluster' is not installed")
pytest.importorskip("pyarrow", reason="the extra 'cluster' is not installed")

from tests.cluster.local_cluster import patience, started


@pytest.fixture(scope="package")  # its processes are at work also when no test uses them
def ray_cluster():
    """Ray on this machine, with places for all workers of a test."""
    import ray

    with patience():
        options = {"include_dashboard": False, "logging_level": "error", "log_to_driver": False}
        started(lambda: ray.init(address="local", num_cpus=8, **options))
        yield ray
