"""Errors and warnings of the actor API. Messages begin with the call, then name env, actor and remedy."""


class GymError(RuntimeError):
    """A call of the actor API came at the wrong time, or cannot be done."""


class GymWarning(UserWarning):
    """A call of the actor API failed as scripts expect (None), or does something other than it may seem."""


def require(condition: bool, call: str, problem: str) -> None:
    """Raise a `ValueError` unless a condition holds."""
    if not condition:
        raise ValueError(f"{call}: {problem}")
