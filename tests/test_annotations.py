"""Types: no public call leaves an editor without a clue of what it returns."""

import importlib
import inspect
import pkgutil
from typing import Any

import numpy as np

import pluriverse

# What can be of any type, and why.
ANYTHING = {
    "pluriverse.cluster.evaluate": "a table of pyarrow, which is an optional package",
    "pluriverse.cluster.sweep": "a table of pyarrow, which is an optional package",
    "pluriverse.gymtorch.wrap_tensor": "a tensor of torch, which is an optional package",
    "pluriverse.gymutil.generate_random_samples": "a number or an array, as asked for",
    "pluriverse.gymutil.get_bucketed_val": "a number or an array, as asked for",
    "pluriverse.torch_utils.unscale_np": "a number or an array, as was given",
    "pluriverse.tensors.RobotTensors": "arrays of the library chosen, by their names",
    "pluriverse.solvers.sap.SapOptions.real": "a scalar type of Warp",
    "pluriverse.SolverMuJoCo.mj_model": "MuJoCo's own model",
    "pluriverse.SolverMuJoCo.mj_data": "MuJoCo's own data",
    "pluriverse.SolverMuJoCo.mjw_model": "MuJoCo Warp's own model",
    "pluriverse.SolverMuJoCo.mjw_data": "MuJoCo Warp's own data",
    "pluriverse.Model.structure": "the model, or what kernels see of it",
    "pluriverse.render.Recorder.render": "a video of IPython, or nothing",
    "pluriverse.JointDofConfig": "a number, or one per component",
    "pluriverse.envs": "arrays of the library chosen, and what learning libraries ask for",
}


def public_calls() -> dict[str, Any]:
    """Return the functions, methods and properties of all public names, by where they are found."""
    names = [f"pluriverse.{module.name}" for module in pkgutil.iter_modules(pluriverse.__path__)]
    found: dict[int, tuple[str, Any]] = {}
    for name in ["pluriverse", *names, "pluriverse.solvers.sap", "pluriverse.solvers.mujoco"]:
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue  # of an optional package
        for public in getattr(module, "__all__", []):
            value = getattr(module, public)
            found.setdefault(id(value), (f"{name}.{public}", value))
    calls: dict[str, Any] = {}
    for name, value in found.values():
        if inspect.isfunction(value):
            calls[name] = value
        elif inspect.isclass(value):
            for member in dir(value):
                raw = inspect.getattr_static(value, member)
                call = raw.fget if isinstance(raw, property) else getattr(raw, "__func__", raw)
                if not member.startswith("_") and inspect.isfunction(call):
                    calls[f"{name}.{member}"] = call
    return {name: call for name, call in calls.items() if call.__module__.startswith("pluriverse")}


def test_no_public_call_returns_anything():
    """What is returned is annotated, with a type that says what it is; exceptions have a reason."""
    vague = [
        name
        for name, call in public_calls().items()
        if call.__annotations__.get("return", Any) in (Any, "Any")
        and not any(name == known or name.startswith(f"{known}.") for known in ANYTHING)
    ]
    assert vague == []


def test_columns_of_a_builder_are_arrays():
    """`builder.joint_q` is a NumPy array for an editor, as it is when it runs."""
    from pluriverse.builder.columns import ColumnArray, ColumnView

    assert issubclass(ColumnArray, np.ndarray)
    assert "ColumnArray" in str(ColumnView.__get__.__annotations__["return"])
