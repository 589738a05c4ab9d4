"""Structure edits: warn of writes to a model that have no effect."""

import warnings

from pluriverse.model import Model
from pluriverse.solvers.model_change import structure_message
from pluriverse.warnings import StructureEditWarning


def report_structure(model: Model, reported: set[str], *, strict: bool) -> None:
    """Warn of arrays of the structure that were written to, each once; `reported` collects their names.

    Raises:
        ValueError: In strict mode.
    """
    changed = [name for name in model.changed_structure() if name not in reported]
    if not changed:
        return
    if strict:
        raise ValueError(structure_message(changed))
    reported.update(changed)
    warnings.warn(StructureEditWarning(structure_message(changed)), stacklevel=4)
