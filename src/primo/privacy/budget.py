"""The privacy budget of one release."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

from primo.errors import Argument, InputError

__all__ = ["SMALLEST_DELTA", "Budget"]

_LARGEST_EPSILON = 100.0
_SMALLEST_EPSILON = 1e-4
#: Above what the random generator may add; docs/guarantee.md, section 5, derives it.
SMALLEST_DELTA = 1e-20


def is_number(value: Any) -> bool:
    """Whether a value is a real number that float64 can hold; True and False are not."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def is_whole(value: Any) -> bool:
    """Whether a value is an integer; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


@dataclass(frozen=True, kw_only=True)
class Budget:
    """An (epsilon, delta) pair, checked once, when it is made.

    Examples
    --------
    >>> import primo
    >>> primo.Budget(epsilon=5, delta=1e-6)
    Budget(epsilon=5.0, delta=1e-06)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Refuse what is not a number or not a privacy guarantee."""
        for name, value in (("epsilon", self.epsilon), ("delta", self.delta)):
            if not is_number(value):
                raise InputError(
                    Argument(name, value), " is not a finite number (write 5, not '5')"
                )
        # NaN and infinity are outside every range.
        if not _SMALLEST_EPSILON <= self.epsilon <= _LARGEST_EPSILON:
            raise InputError(
                Argument("epsilon", self.epsilon),
                f" must lie between {_SMALLEST_EPSILON} and "
                f"{_LARGEST_EPSILON:g}: below, every answer is noise; above, there is practically "
                "no protection. Values from 0.5 to 10 are usual",
            )
        # Converted to float: the arithmetic that follows expects floats.
        object.__setattr__(self, "epsilon", float(self.epsilon))
        object.__setattr__(self, "delta", float(self.delta))
        if not SMALLEST_DELTA <= self.delta < 1.0:
            raise InputError(
                Argument("delta", self.delta),
                f" must lie between {SMALLEST_DELTA:g} and 1. It is the "
                "probability with which the epsilon may fail: choose it below 1/n, for example "
                f"1/n². Below {SMALLEST_DELTA:g} it promises more than a random generator can give",
            )
