"""Environments: learning tasks in many worlds, which may all differ.

`Task` is the base class of tasks, `Environment` steps a task with PyTorch tensors, `VectorEnv` is the same as
`gymnasium.vector.VectorEnv`, `SingleEnv` one world as `gymnasium.Env`, and `RslRlEnv`, `SkrlEnv` and
`Sb3VecEnv` are adapters for learning libraries. The names load on first use; the libraries come with the
extra `learn`.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pluriverse.envs.adapters.rsl_rl import RslRlEnv
    from pluriverse.envs.adapters.sb3 import Sb3VecEnv
    from pluriverse.envs.adapters.skrl import SkrlEnv
    from pluriverse.envs.environment import Environment, StepResult
    from pluriverse.envs.learning.config import LearningConfig
    from pluriverse.envs.learning.policy import OnnxPolicy, export_policy
    from pluriverse.envs.learning.trainer import Trainer
    from pluriverse.envs.mirror import Mirror, Reflection, mirrored_joints
    from pluriverse.envs.registry import TaskEntry, make_task, task_names
    from pluriverse.envs.robots import Robot, add_robot, find_robot
    from pluriverse.envs.task import Task
    from pluriverse.envs.vector_env import SingleEnv, VectorEnv

_LAZY_MODULES = {
    "Environment": ("environment", "learn"),
    "LearningConfig": ("learning.config", ""),
    "Mirror": ("mirror", ""),
    "OnnxPolicy": ("learning.policy", ""),
    "Reflection": ("mirror", ""),
    "Robot": ("robots", ""),
    "RslRlEnv": ("adapters.rsl_rl", "rsl_rl"),
    "Sb3VecEnv": ("adapters.sb3", "stable_baselines3"),
    "SingleEnv": ("vector_env", "gymnasium"),
    "SkrlEnv": ("adapters.skrl", "skrl"),
    "StepResult": ("environment", "learn"),
    "Task": ("task", ""),
    "TaskEntry": ("registry", ""),
    "Trainer": ("learning.trainer", "rsl_rl"),
    "VectorEnv": ("vector_env", "gymnasium"),
    "add_robot": ("robots", ""),
    "export_policy": ("learning.policy", ""),
    "find_robot": ("robots", ""),
    "make_task": ("registry", ""),
    "mirrored_joints": ("mirror", ""),
    "task_names": ("registry", ""),
}
"""Module of each public name, and the library that it cannot be loaded without."""

_PACKAGES = {
    "gymnasium": "pip install 'pluriverse[learn]'",
    "rsl_rl": "pip install 'pluriverse[learn]'",
    "skrl": "pip install skrl",
    "stable_baselines3": "pip install stable-baselines3",
}

__all__ = [
    "Environment",
    "LearningConfig",
    "Mirror",
    "OnnxPolicy",
    "Reflection",
    "Robot",
    "RslRlEnv",
    "Sb3VecEnv",
    "SingleEnv",
    "SkrlEnv",
    "StepResult",
    "Task",
    "TaskEntry",
    "Trainer",
    "VectorEnv",
    "add_robot",
    "export_policy",
    "find_robot",
    "make_task",
    "mirrored_joints",
    "task_names",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY_MODULES:
        raise AttributeError(f"module 'pluriverse.envs' has no attribute {name!r}")
    module, library = _LAZY_MODULES[name]
    try:
        value = getattr(importlib.import_module(f"pluriverse.envs.{module}"), name)
    except ModuleNotFoundError as error:
        remedy = _PACKAGES.get(library, "pip install 'pluriverse[learn]'")
        raise ImportError(f"pluriverse.envs.{name} needs {error.name}: {remedy}") from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
