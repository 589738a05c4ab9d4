"""The tasks that come with the package, by name."""

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

from pluriverse.envs.learning.config import LearningConfig
from pluriverse.envs.own_modules import load_own_module
from pluriverse.envs.task import Task

ROUGH = ("flat", "rough", "waves", "slope", "stairs", "blocks")


@dataclass(frozen=True)
class TaskEntry:
    """A task that has a name."""

    name: str
    """Name."""
    summary: str
    """The goal of the task, in a few words."""
    location: str
    """Module and class, with a colon between them."""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    """Arguments of the class."""
    config: LearningConfig = field(default_factory=LearningConfig)
    """Settings under which it is learnt."""
    robot: str | None = None
    """Robot whose files are not part of this package, if it needs one."""


_LEGS = LearningConfig(env_count=256, iterations=1000)
# Torques of a robot four times as heavy as Go1 are ten times as large, and would dominate the reward.
_HEAVY = {"torques": -1.0e-5}


# Larger initial actions make a heavy robot fall before it learns anything.
_LEGS_CALM = replace(_LEGS, initial_std=0.6)

# Small actions change the motion of the clock little at a time, so that updates may change more.
_TWO_LEGS = replace(_LEGS, initial_std=0.2, desired_kl=0.03, symmetric=True)


def _legged(
    name: str,
    robot: str,
    summary: str,
    *,
    own: bool = False,
    config: LearningConfig = _LEGS,
    **arguments: Any,
) -> TaskEntry:
    return TaskEntry(
        name,
        summary,
        "pluriverse.envs.tasks.velocity:VelocityTask",
        {"robot": robot, **arguments},
        config,
        None if own else robot,
    )


TASKS: dict[str, TaskEntry] = {
    entry.name: entry
    for entry in (
        TaskEntry(
            "cartpole",
            "a cart holds a pole upright",
            "pluriverse.envs.tasks.cartpole:CartpoleTask",
            config=LearningConfig(
                env_count=128,
                iterations=80,
                steps_per_iteration=32,
                hidden_sizes=(32, 32),
                learning_rate=3.0e-3,
                epochs=5,
                initial_std=0.5,
                desired_kl=0.03,
                discount=0.98,
                entropy=0.0,
                normalize_observations=False,
            ),
        ),
        TaskEntry(
            "ant",
            "a ball on four legs runs",
            "pluriverse.envs.tasks.ant:AntTask",
            config=LearningConfig(env_count=256, iterations=500),
        ),
        _legged("puli-flat", "puli", "Puli follows commands on the plane", own=True),
        _legged(
            "puli-rough", "puli", "Puli follows commands on six kinds of ground", own=True, terrains=ROUGH
        ),
        _legged("go1-flat", "go1", "Go1 follows commands on the plane"),
        _legged("go1-rough", "go1", "Go1 follows commands on six kinds of ground", terrains=ROUGH),
        _legged(
            "anymal-flat",
            "anymal",
            "ANYmal C follows commands on the plane",
            config=_LEGS_CALM,
            weights=_HEAVY,
        ),
        _legged(
            "anymal-rough",
            "anymal",
            "ANYmal C follows commands on six kinds of ground",
            config=_LEGS_CALM,
            terrains=ROUGH,
            weights=_HEAVY,
        ),
        TaskEntry(
            "g1-stand",
            "G1 stands, and is pushed",
            "pluriverse.envs.tasks.humanoid:HumanoidTask",
            {"command": (0.0, 0.0, 0.0), "push": 0.5},
            replace(_TWO_LEGS, iterations=300),
            "g1",
        ),
        TaskEntry(
            "g1-walk",
            "G1 follows velocity commands",
            "pluriverse.envs.tasks.humanoid:HumanoidTask",
            {},
            replace(_TWO_LEGS, iterations=600),
            "g1",
        ),
        TaskEntry(
            "reach",
            "an arm moves its gripper to commanded poses",
            "pluriverse.envs.tasks.reach:ReachTask",
            config=LearningConfig(env_count=128, iterations=300, initial_std=0.6),
        ),
        TaskEntry(
            "lift",
            "an arm lifts objects that differ from world to world",
            "pluriverse.envs.tasks.lift:LiftTask",
            config=LearningConfig(env_count=256, iterations=300, initial_std=0.6),
        ),
        TaskEntry(
            "turn",
            "a hand turns cubes of three sizes",
            "pluriverse.envs.tasks.turn:TurnTask",
            config=LearningConfig(env_count=256, iterations=300, initial_std=0.2, desired_kl=0.02),
        ),
    )
}
"""All tasks by their names."""


def task_names() -> list[str]:
    """Return the names of the tasks that come with the package."""
    return list(TASKS)


def find_task(name: str) -> TaskEntry:
    """Return a task by its name, or as `module:Class` of your own; a file may stand for the module.

    Raises:
        KeyError: If there is none.
    """
    if name in TASKS:
        return TASKS[name]
    if ":" in name:
        return TaskEntry(name, "", name)
    close = get_close_matches(name, TASKS, n=3)
    hint = f"did you mean {', '.join(close)}?" if close else f"there are {', '.join(TASKS)}."
    raise KeyError(
        f"there is no task '{name}'; {hint} A task of your own is named by module and class, walk:Walk or "
        "path/walk.py:Walk."
    )


def make_task(name: str, **arguments: Any) -> Task:
    """Return a task by its name, or as `module:Class` of your own.

    Modules that are not installed are looked for in the working directory. That, or the folder of a file,
    stays on `sys.path`, so that they may import others from it.

    Args:
        name: Name, `module:Class`, or `path/file.py:Class`.
        arguments: Arguments of the class, in addition to or instead of those of the name.

    Raises:
        ImportError: If the module, or one that it imports, cannot be imported.
        KeyError: If there is no such task.
        TypeError: If the class is no task, or does not take the arguments.
    """
    entry = find_task(name)
    result: Task = _task_class(entry.location)(**{**entry.arguments, **arguments})
    return result


def takes_argument(entry: TaskEntry, argument: str) -> bool:
    """Return whether the class of a task takes an argument, itself or for the class that it derives from."""
    for kind in _task_class(entry.location).__mro__:
        if "__init__" not in vars(kind):
            continue
        parameters = inspect.signature(vars(kind)["__init__"]).parameters
        if argument in parameters:
            return True
        if not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
            return False
    return False


def _task_class(location: str) -> type[Task]:
    module_name, _, class_name = location.rpartition(":")
    module = load_own_module(module_name)
    if not hasattr(module, class_name):
        raise KeyError(f"there is no class '{class_name}' in '{module_name}'.")
    kind = getattr(module, class_name)
    if not (isinstance(kind, type) and issubclass(kind, Task)):
        raise TypeError(f"'{location}' is no task: it must derive from pluriverse.envs.Task.")
    return kind
