"""Snapshot of an environment: everything that later steps depend on, in a form for other processes.

The simulation saves its own data. A task is a plain object of its user, so its attributes are traversed:
tensors, arrays, numbers, generators, and lists, mappings and objects of them are copied. Views of the
simulation's memory need no copy. Functions, classes, modules and files stay as `setup` makes them.
"""

import pickle
import random
import tempfile
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import warp as wp

from pluriverse.envs.environment import Environment

# Kinds of value that are what they are in every copy of a task.
_CONSTANT = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)
_PLAIN = (type(None), bool, int, float, complex, str, bytes, np.generic)


def save_environment(env: Environment) -> dict[str, Any]:
    """Return what `restore_environment` needs, made of NumPy arrays and plain values."""
    import torch

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.npz"
        env.simulation.save(path)
        simulation = np.fromfile(path, dtype=np.uint8)  # an array, so that it travels without a copy
    return {
        "simulation": simulation,
        "seed": env.seed,
        "is_ready": env._is_ready,
        "robots": [_arrays_of(robots) for robots in env._robots],
        "actions": [_numbers(env.actions), _numbers(env.previous_actions)],
        "task": _Saver(env).save(env.task),
        # Tasks should draw by `env.uniform`; for those that do not, the state of other generators is
        # continued.
        "random": (
            random.getstate(),
            np.random.get_state(),  # noqa: NPY002, that is what such tasks use
            torch.get_rng_state().numpy().copy(),
        ),
    }


def restore_environment(env: Environment, saved: dict[str, Any]) -> None:
    """Restore the saved state of an environment into one that was made in the same way.

    Raises:
        RuntimeError: If an attribute of the task cannot be brought back, by its name.
    """
    import torch

    env._seed(saved["seed"])
    env._is_ready = saved["is_ready"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot.npz"
        saved["simulation"].tofile(path)
        env.simulation.restore(path)
    for robots, arrays in zip(env._robots, saved["robots"], strict=True):
        robots.refresh()  # takes the commands in as given before
        for name, values in arrays.items():
            getattr(robots, name).assign(values)
    for tensor, values in zip((env.actions, env.previous_actions), saved["actions"], strict=True):
        tensor.copy_(torch.tensor(values))
    _Restorer(env).restore(env.task, saved["task"], type(env.task).__name__)
    python, numpy, pytorch = saved["random"]
    random.setstate(python)
    np.random.set_state(numpy)  # noqa: NPY002
    torch.set_rng_state(torch.tensor(pytorch))


def _arrays_of(robots: Any) -> dict[str, np.ndarray]:
    arrays = {name: value for name, value in vars(robots).items() if isinstance(value, wp.array)}
    return {name: value.numpy().copy() for name, value in arrays.items()}


def _numbers(tensor: Any) -> np.ndarray:
    return np.array(tensor.detach().cpu().numpy())


def _shows_other_memory(tensor: Any) -> bool:
    """Return whether memory of a tensor is not PyTorch's own, but that of the simulation."""
    return not tensor.untyped_storage().resizable()


def _is_ours(value: Any) -> bool:
    """Return whether a value is a part of the environment, such as its robots."""
    package = type(value).__module__.partition(".")[0]
    return package in ("pluriverse", "warp")


def _known(env: Environment) -> dict[str, Any]:
    return {
        name: getattr(env, name)
        for name in ("actions", "previous_actions", "episodes", "episode_steps", "ended")
    } | {"environment": env, "simulation": env.simulation, "model": env.model, "task": env.task}


class _Saver:
    """Turns a value into a tree of kinds and contents; each object once."""

    def __init__(self, env: Environment) -> None:
        self._env = env
        self._known = {id(value): name for name, value in _known(env).items() if value is not env.task}
        self._encoded: dict[int, int] = {}
        # Values made on the way have to live, or another one would get their identity.
        self._kept: list[Any] = []

    def save(self, value: Any) -> tuple[Any, ...]:
        import torch

        if isinstance(value, _PLAIN):
            return "plain", value
        if isinstance(value, _CONSTANT):
            return ("constant",)
        if id(value) in self._known:
            return "known", self._known[id(value)]
        if id(value) in self._encoded:
            return "same", self._encoded[id(value)]
        number = self._encoded[id(value)] = len(self._encoded)
        self._kept.append(value)
        if isinstance(value, torch.Tensor):
            if _shows_other_memory(value):
                return "shown", number, tuple(value.shape)
            return "tensor", number, _numbers(value)
        if isinstance(value, torch.Generator):
            return "generator", number, value.get_state().numpy().copy()
        if isinstance(value, np.ndarray) and value.dtype != object:
            return "ndarray", number, value.copy()
        if isinstance(value, wp.array):
            return "array", number, value.numpy().copy()
        if isinstance(value, dict):
            return "dict", number, [(key, self.save(each)) for key, each in value.items()]
        if type(value) in (list, tuple):
            return type(value).__name__, number, [self.save(each) for each in value]
        if value is not self._env.task and _is_ours(value):
            return ("constant",)
        if hasattr(value, "__dict__") and not isinstance(value, tuple):
            return "object", number, {name: self.save(each) for name, each in vars(value).items()}
        try:
            return "pickled", number, pickle.dumps(value)
        except Exception:  # noqa: BLE001, objects raise what they like; a file stays as setup makes it
            return ("constant",)


class _Restorer:
    """Writes a tree into a value of the same making, in place where that is possible."""

    def __init__(self, env: Environment) -> None:
        self._known = _known(env)
        self._device = env.device
        self._made: dict[int, Any] = {}
        self._claimed: set[int] = set()

    def restore(self, current: Any, saved: tuple[Any, ...], where: str) -> Any:
        kind = saved[0]
        if kind == "plain":
            return saved[1]
        if kind == "constant":
            return current
        if kind == "known":
            return self._known[saved[1]]
        if kind == "same":
            return self._made[saved[1]]
        number, content = saved[1:]
        # An object that already represents another must not be written to.
        is_free = id(current) not in self._claimed
        result = self._made[number] = getattr(self, f"_restore_{kind}")(
            number, current if is_free else None, content, where
        )
        self._claimed.add(id(result))
        return result

    def _restore_shown(self, _: int, current: Any, shape: tuple[int, ...], where: str) -> Any:
        if not hasattr(current, "untyped_storage") or tuple(current.shape) != shape:
            raise RuntimeError(
                f"{where} shows memory of the simulation and was set after setup(), so it cannot be brought "
                "back. Set it in setup(), or keep a copy: tensor.clone()."
            )
        return current

    def _restore_tensor(self, _: int, current: Any, content: np.ndarray, where: str) -> Any:
        import torch

        new = torch.tensor(content, device=self._device)
        if (
            isinstance(current, torch.Tensor)
            and not _shows_other_memory(current)
            and (current.shape, current.dtype) == (new.shape, new.dtype)
        ):
            with torch.no_grad():
                current.copy_(new)  # views of it show the same
            return current
        return new

    def _restore_generator(self, _: int, current: Any, content: np.ndarray, where: str) -> Any:
        import torch

        generator = current if isinstance(current, torch.Generator) else torch.Generator()
        generator.set_state(torch.tensor(content))
        return generator

    def _restore_ndarray(self, _: int, current: Any, content: np.ndarray, where: str) -> Any:
        if isinstance(current, np.ndarray) and current.flags.writeable:
            if (current.shape, current.dtype) == (content.shape, content.dtype):
                current[...] = content
                return current
        return content.copy()

    def _restore_array(self, _: int, current: Any, content: np.ndarray, where: str) -> Any:
        if not isinstance(current, wp.array) or current.shape[0] != content.shape[0]:
            raise RuntimeError(
                f"{where} is an array of Warp that was made after setup(), so it cannot be brought back. "
                "Make it in setup()."
            )
        current.assign(content)
        return current

    def _restore_dict(self, number: int, current: Any, content: list[Any], where: str) -> Any:
        result = current if isinstance(current, dict) else {}
        self._made[number] = result
        values = {key: self.restore(result.get(key), each, f"{where}[{key!r}]") for key, each in content}
        result.clear()
        result.update(values)
        return result

    def _restore_list(self, number: int, current: Any, content: list[Any], where: str) -> Any:
        result = current if isinstance(current, list) else []
        self._made[number] = result
        result[:] = self._values(result, content, where)
        return result

    def _restore_tuple(self, _: int, current: Any, content: list[Any], where: str) -> Any:
        return tuple(self._values(current if isinstance(current, tuple) else (), content, where))

    def _values(self, current: Any, content: list[Any], where: str) -> list[Any]:
        return [
            self.restore(current[index] if index < len(current) else None, each, f"{where}[{index}]")
            for index, each in enumerate(content)
        ]

    def _restore_object(self, number: int, current: Any, content: dict[str, Any], where: str) -> Any:
        if not hasattr(current, "__dict__"):
            raise RuntimeError(
                f"{where} is an object that was made after setup(), so it cannot be brought back. Make it "
                "in setup()."
            )
        self._made[number] = current
        attributes = vars(current)
        for name, each in content.items():
            attributes[name] = self.restore(attributes.get(name), each, f"{where}.{name}")
        for name in set(attributes) - set(content):
            del attributes[name]
        return current

    def _restore_pickled(self, _: int, current: Any, content: bytes, where: str) -> Any:
        return pickle.loads(content)
