"""Target: a public call whose arguments the campaign replaces, and what counts as a refusal."""

import dataclasses
from collections.abc import Callable
from typing import Any

from pluriverse import Simulation
from tests.campaign.values import Draw

REFUSALS = (ValueError, TypeError, IndexError, KeyError, AttributeError, OSError, RuntimeError, ImportError)


@dataclasses.dataclass(frozen=True)
class Target:
    """A call with sound arguments, each of which may be replaced."""

    name: str
    """What is called."""
    call: Callable[..., Any]
    """Takes the arguments by name."""
    sound: dict[str, Callable[[], Any]]
    """Makes each argument as it should be."""
    slots: dict[str, Draw]
    """What is wrong for each argument that is replaced."""
    may_pass: frozenset[str] = frozenset()
    """Arguments whose wrong values may turn out to be right."""
    simulation: Simulation | None = None
    """What must report wrong worlds, and be stepped afterwards without harm."""
