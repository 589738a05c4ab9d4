"""Ray: connection to a cluster, and workers that match the driver."""

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

import pluriverse
from pluriverse.cluster.errors import ClusterError

# Packages whose versions decide the bits of a step, apart from Python and this package.
COMPARED_PACKAGES = ("warp-lang", "numpy", "mujoco")
# A worker that has not answered for this long [s] did not find a place: it waits for cores or GPUs.
START_TIMEOUT = 120.0


def load_ray() -> Any:
    """Return the module `ray`.

    Raises:
        ImportError: If it is not installed.
    """
    try:
        import ray
    except ImportError as error:
        raise ImportError(
            "pluriverse.cluster runs on Ray, which is not installed. Install it with: "
            "pip install 'pluriverse[cluster]'"
        ) from error
    return ray


def connect(address: str | None, worker_count: int, cpus_per_worker: float) -> Any:
    """Return `ray`, connected to a cluster, or to one of this machine that was started for it.

    A connection that exists is used.

    Args:
        address: Address of a running cluster, or "auto" for that of this machine; None for that of the
            variable RAY_ADDRESS, or to start one here.
        worker_count: Workers that will be asked for.
        cpus_per_worker: Cores that Ray sets aside for each of them.

    Raises:
        ImportError: If Ray is not installed.
        ClusterError: If there is no cluster at the address, or it runs other versions of Ray or Python.
    """
    ray = load_ray()
    if ray.is_initialized():
        return ray
    # Jobs submitted to a cluster find it by this variable.
    address = address or os.environ.get("RAY_ADDRESS")
    # Workers of a local cluster are counted by the user, so its size follows from theirs.
    local: dict[str, Any] = {}
    if not address:
        # Workers find what this process found, also from a checkout that is not installed.
        paths = [str(Path(pluriverse.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        local = {
            "num_cpus": max(os.cpu_count() or 1, int(worker_count * cpus_per_worker) + 1),
            "runtime_env": {"env_vars": {"PYTHONPATH": os.pathsep.join(paths)}},
        }
    try:
        ray.init(
            # Without an address Ray would take any cluster that it finds here, whose size is not ours to set.
            address=address or "local",
            include_dashboard=None if address else False,
            logging_level="error",
            log_to_driver=False,
            **local,
        )
    except Exception as error:  # Ray has no type of its own for a node that does not start in time
        where = f"at address {address!r}" if address else "on this machine"
        raise ClusterError(
            f"no Ray cluster can be used {where}: {error} Start one with 'ray start --head', with the Ray "
            "and Python of this environment, or leave the address out to use this machine alone."
        ) from error
    return ray


def versions() -> dict[str, str]:
    """Return the versions that driver and workers must share, since they decide the bits of a step."""
    found = {"python": platform.python_version(), "pluriverse": pluriverse.__version__}
    for name in COMPARED_PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "none"
    return found


def check_versions(worker: dict[str, str], node: str) -> None:
    """Raise if a worker runs other versions than this process.

    Raises:
        ClusterError: Naming each version that differs.
    """
    here = versions()
    # Another patch release of Python reads the same pickles and computes the same numbers.
    differing = [
        f"{name} {worker.get(name, 'none')} there and {version} here"
        for name, version in here.items()
        if _compared(name, worker.get(name, "none")) != _compared(name, version)
    ]
    if differing:
        raise ClusterError(
            f"the worker on node {node} does not fit this process: {', '.join(differing)}. Equal results "
            "need equal versions: install the same ones on all nodes."
        )


def _compared(name: str, version: str) -> str:
    return ".".join(version.split(".")[:2]) if name == "python" else version


def pickled(value: Any, what: str) -> bytes:
    """Return a value in the form in which it travels to workers.

    Raises:
        ValueError: If it cannot be sent.
    """
    from ray import cloudpickle

    try:
        return cloudpickle.dumps(value)
    except Exception as error:  # objects raise what they like when they are pickled
        raise ValueError(
            f"{what} cannot be sent to workers: {type(error).__name__}: {error}. Make it a function of a "
            "module, and let it open files, devices and simulations itself, on the worker."
        ) from error


def losses(ray: Any) -> tuple[type[Exception], ...]:
    """Return the errors that say that a worker is gone: killed, out of memory, or its node lost."""
    exceptions = ray.exceptions
    return (
        exceptions.RayActorError,
        exceptions.ObjectLostError,
        exceptions.OutOfMemoryError,
        exceptions.NodeDiedError,
        exceptions.WorkerCrashedError,
    )
