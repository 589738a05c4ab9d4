"""Schema resolvers: names by which scripts written for Newton say which USD schemas are to be read.

`add_usd` reads all schemas that it knows at once, so a resolver changes nothing.
"""

from collections.abc import Iterable
from typing import Any


class SchemaResolver:
    """Base of the resolvers. Those of one's own cannot be used: `add_usd` reads known schemas only."""


class SchemaResolverNewton(SchemaResolver):
    """Stands for the schemas of Newton, which are always read."""


class SchemaResolverPhysx(SchemaResolver):
    """Stands for the schemas of PhysX, which are always read."""


class SchemaResolverMjc(SchemaResolver):
    """Stands for the schemas of MuJoCo, which are always read."""


_KNOWN = (SchemaResolverNewton, SchemaResolverPhysx, SchemaResolverMjc)


def check_resolvers(resolvers: Iterable[Any] | None) -> None:
    """Check the resolvers given to `add_usd`.

    Raises:
        TypeError: If one is none of those that stand for the known schemas.
    """
    for resolver in resolvers or ():
        if type(resolver) not in _KNOWN:
            raise TypeError(
                f"add_usd: schema_resolvers has {resolver!r}, but there are SchemaResolverNewton(), "
                "SchemaResolverPhysx() and SchemaResolverMjc(), whose schemas are always read. Leave it out, "
                "and read attributes of other schemas as custom attributes."
            )
