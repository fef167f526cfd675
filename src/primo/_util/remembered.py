"""Functions that remember their last result, for as long as what it was made from is there."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec, TypeVar

__all__ = ["remembered"]

P = ParamSpec("P")
R = TypeVar("R")


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Return the function, with its last result given again for the very same arguments.

    Numbers, text and None are the same if type and value are, and so is the sign of a zero. Everything
    else is the same if it is the same object, and lists and tuples if their members are. An argument
    that is given by its name is another one than by its place. So it is for arguments and results that
    nobody writes into. Nothing is kept alive by it but the result, and what that refers to, and only
    until one of the arguments is gone. A result is not kept where that could not be noticed.
    """
    last: tuple[tuple[Any, ...], R] | None = None

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        nonlocal last
        given, kept = tuple(_flat((args, sorted(kwargs.items())))), last  # a thread may replace it
        if kept is not None and _match(kept[0], given):
            return kept[1]
        result = function(*args, **kwargs)

        def forget(_: Any) -> None:
            nonlocal last
            last = None

        try:
            last = tuple(a if _is_text(a) else weakref.ref(a, forget) for a in given), result
        except TypeError:  # an object that nobody can be told of when it is gone
            last = None
        return result

    return call


def _flat(value: Any) -> Iterator[Any]:
    """Yield what a value is made of: type and text of what is compared as such, or else the object.

    Lists begin with their length, so that [a], b is not a, [b].
    """
    if isinstance(value, list | tuple):
        yield tuple, str(len(value))
        for member in value:
            yield from _flat(member)
    elif value is None or isinstance(value, int | float | str):
        yield type(value), repr(value)
    else:
        yield value


def _is_text(value: Any) -> bool:
    return isinstance(value, tuple)


def _match(kept: tuple[Any, ...], given: tuple[Any, ...]) -> bool:
    return len(kept) == len(given) and all(
        a == b if _is_text(b) else isinstance(a, weakref.ref) and a() is b
        for a, b in zip(kept, given, strict=True)
    )
