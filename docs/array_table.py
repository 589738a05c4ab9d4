"""Sphinx directive `array-table`: the arrays of a model, a state or a control, as the schema has them."""

from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList

from pluriverse.model import schema

HOLDERS = {"Model": schema.ModelArrays, "State": schema.StateArrays, "Control": schema.ControlArrays}


def rows(holder: str) -> list[tuple[str, ...]]:
    """Return name, meaning, unit, least value, flag and whether it may be drawn of each array of `holder`."""
    described = schema.describe_arrays(HOLDERS[holder])
    result = []
    for name, spec in vars(HOLDERS[holder]).items():
        if not isinstance(spec, schema.ArraySpec):
            continue
        text = described[name]
        if holder != "Model":
            result.append((f"``{name}``", text.meaning))
            continue
        low = "" if spec.low is None else f"{spec.low:g}"
        flag = (spec.flag.name or "") if spec.flag and not spec.structural else ""
        change = "fixed by ``finalize``" if spec.structural else f"``{flag}``" if flag else ""
        least = f"{low}, NaN" if spec.may_be_unset else low
        drawn = "yes" if spec.can_be_drawn else "no"
        result.append((f"``{name}``", text.meaning, least, change, drawn))
    return result


class ArrayTable(Directive):
    """Render the arrays of one holder as a table."""

    required_arguments = 1
    heads: ClassVar = ("Array", "Meaning", "Least", "Tell by", "Drawn")

    def run(self) -> list[nodes.Node]:
        """Return the table."""
        found = rows(self.arguments[0])
        lines = [".. list-table::", "   :header-rows: 1", ""]
        for row in [self.heads[: len(found[0])], *found]:
            lines += [f"   {'*' if place == 0 else ' '} - {cell}" for place, cell in enumerate(row)]
        node = nodes.container()
        self.state.nested_parse(StringList(lines, "array-table"), self.content_offset, node)
        return node.children


def setup(app) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("array-table", ArrayTable)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
