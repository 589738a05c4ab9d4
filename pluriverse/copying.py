"""Copying: what `copy` and `pickle` do with objects that hold the memory of recorded steps.

States and controls are copied with their numbers, as arrays of NumPy are. Everything else that belongs to a
model refuses: Python would copy addresses of memory, or fail somewhere inside with a message that helps
nobody.
"""

import copy
from typing import Any, ClassVar, NoReturn


class Unpickled:
    """Base of classes whose objects cannot be pickled, and whose copies are deep."""

    pickle_remedy: ClassVar[str]
    """What to do instead, a sentence."""

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be pickled, since it holds memory of this process. "
            f"{self.pickle_remedy}"
        )

    def __deepcopy__(self, memo: Any) -> Any:
        return copy.copy(self)


class Uncopied(Unpickled):
    """Base of classes whose objects cannot be copied either."""

    copy_remedy: ClassVar[str]
    """What to do instead, a sentence."""

    def __copy__(self) -> NoReturn:
        raise TypeError(
            f"{type(self).__name__} cannot be copied, since recorded steps use its memory. {self.copy_remedy}"
        )
