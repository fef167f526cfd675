"""One tree of exceptions, so that a caller can catch exactly what it can handle.

Messages name the offending *public* value and the remedy. A private value never enters a message: an
exception travels to logs and screens, which are on the public side of the wall.
"""

from __future__ import annotations

__all__ = [
    "BoundsError",
    "BudgetError",
    "InputError",
    "LedgerError",
    "NotNumericError",
    "PrimoError",
    "PrivacyError",
    "ReproducibleNoiseWarning",
    "WeakGuaranteeWarning",
]


class PrimoError(Exception):
    """Root of every error that primo raises on purpose.

    Examples
    --------
    One clause catches all of them:

    >>> import primo
    >>> try:
    ...     primo.Budget(epsilon=-1, delta=1e-6)
    ... except primo.PrimoError as error:
    ...     print(type(error).__name__)
    InputError
    >>> issubclass(primo.BudgetError, primo.PrivacyError)
    True
    """


class InputError(PrimoError, ValueError):
    """The input cannot be used; the message says which value and what to do instead."""


class NotNumericError(InputError, TypeError):
    """A table holds something that is not a number."""


class PrivacyError(PrimoError, ValueError):
    """The request would break, or could not keep, the privacy guarantee."""


class BoundsError(PrivacyError):
    """A private block of data has no usable public bounds."""


class BudgetError(PrivacyError):
    """The ledger has too little left for this release; nothing was charged."""


class LedgerError(PrimoError):
    """The ledger cannot be read, written or believed; the message says what to do about it."""


class WeakGuaranteeWarning(UserWarning):
    """The budget asked for protects much less than it seems to.

    Examples
    --------
    It is given, for example, where delta is above 1/n. To turn it into an error:

    >>> import warnings
    >>> import primo
    >>> warnings.filterwarnings("error", category=primo.WeakGuaranteeWarning)
    """


class ReproducibleNoiseWarning(UserWarning):
    """The noise can be recomputed from a seed, so the release protects nobody.

    Examples
    --------
    Tests that fix `random_state` can silence it:

    >>> import warnings
    >>> import primo
    >>> warnings.filterwarnings("ignore", category=primo.ReproducibleNoiseWarning)
    """
