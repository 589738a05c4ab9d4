"""Extensions: what custom attributes add to MuJoCo's models beside bodies, joints, shapes and drives.

An extension is an object with three functions, listed in `EXTENSIONS`:

- `compiled_numbers(rows, worlds)` returns what of it is compiled in, as integers of shape [row, column]:
  worlds that differ there are different groups. Floating-point numbers that are compiled in go through
  `grouping.as_integers`. Columns must be as many for all worlds of one template: worlds that differ in the
  number of entries are told apart by a hash or a padded row.
- `write(writer)` adds its elements to the description of one world, `writer.spec`, by names that `writer`
  knows (`SpecWriter.joint_name` and so on), and takes new names with `writer.take_name(kind, wanted)`.
- `put_fields(table, rows, plan)` gives the numbers of all worlds, `table.edit("tendon_range")[...] = ...`,
  by the names of `mjModel`. The elements are found by name: `table.group.model.tendon(name).id`, or by their
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
        """Return what is compiled in, shape [row, column]."""

    def write(self, writer: Any) -> None:
        """Add elements to the description of one world."""

    def put_fields(self, table: Any, rows: ModelRows, plan: Any) -> None:
        """Give the numbers of all worlds."""


EXTENSIONS: Sequence[Extension] = (Pairs(), Tendons(), Actuators())
"""The extensions, in the order in which their elements are added."""
