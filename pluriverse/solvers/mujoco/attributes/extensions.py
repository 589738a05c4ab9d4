"""Extensions: elements of MuJoCo's models that only custom attributes describe.

An extension is an object with three functions, listed in `EXTENSIONS`:

- `compiled_numbers(rows, worlds)` returns its compiled-in values, as integers of shape [row, column]: worlds
that differ there are different groups. Floating-point numbers that are compiled in go through
  `grouping.as_integers`. All worlds of one template must have the same number of columns: worlds that differ
  in the number of entries are distinguished by a hash or a padded row.
- `write(writer)` adds its elements to the description of one world, `writer.spec`, by names that `writer`
  knows (`SpecWriter.joint_name` and so on), and takes new names with `writer.take_name(kind, wanted)`.
- `put_fields(table, rows, plan)` writes the values of all worlds, `table.edit("tendon_range")[...] = ...`, by
the names of `mjModel`. Elements are found by name, `table.group.model.tendon(name).id`, or by
  order: those of `write` come after those of the conversion.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pluriverse.solvers.mujoco.attributes.actuators import Actuators
from pluriverse.solvers.mujoco.attributes.pairs import Pairs
from pluriverse.solvers.mujoco.attributes.tendons import Tendons
from pluriverse.solvers.mujoco.mapping.model_rows import ModelRows


class Extension(Protocol):
    """The functions of an extension."""

    def compiled_numbers(self, rows: ModelRows, worlds: np.ndarray) -> np.ndarray:
        """Return the compiled-in values, shape [row, column]."""

    def write(self, writer: Any) -> None:
        """Add elements to the description of one world."""

    def put_fields(self, table: Any, rows: ModelRows, plan: Any) -> None:
        """Write the values of all worlds."""


EXTENSIONS: Sequence[Extension] = (Pairs(), Tendons(), Actuators())
"""The extensions, in the order in which their elements are added."""
