"""One tree of exceptions, so that a caller can catch exactly what it can handle.

Messages name the offending *public* value and the remedy. A private value never enters a message: an
exception travels to logs and screens, which are on the public side of the wall.

A message is a sequence of parts: plain text, and an `Argument` wherever it speaks of a setting. Python
spells an argument `missing="centre"`; another front end passes its own spelling to `render`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

__all__ = [
    "ABSENT",
    "Advice",
    "Argument",
    "BoundsError",
    "BudgetError",
    "InputError",
    "LedgerError",
    "Message",
    "NotNumericError",
    "PrimoError",
    "PrimoWarning",
    "PrivacyError",
    "ReproducibleNoiseWarning",
    "WeakGuaranteeWarning",
    "in_python",
]


class Absent(Enum):
    """The type of `ABSENT`."""

    ABSENT = "absent"


#: Stands for a value that is not stated; None is a value.
ABSENT = Absent.ABSENT


@dataclass(frozen=True)
class Argument:
    """A setting that a message speaks of, with its value if that is stated.

    `name` is Python's name of the argument. Where two functions mean different things by one name, it
    begins with its owner and a dot: `table.missing` are the spellings of a missing cell.
    """

    name: str
    value: object = ABSENT


@dataclass(frozen=True)
class Advice:
    """Text for callers of Python only; another front end has its own text under `name`.

    `about` is what that text depends on, for example the name of a block.
    """

    name: str
    text: str
    about: str = ""


Part = str | Argument | Advice


@dataclass(frozen=True)
class Message:
    """A sequence of text and arguments."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, *parts: Part | Message) -> Message:
        """Return one message of parts, some of which may be messages themselves."""
        flat: list[Part] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Message) else (part,))
        return cls(tuple(flat))

    def render(self, spell: Callable[[Argument | Advice], str]) -> str:
        """Return the text, with arguments and advice as a front end spells them."""
        return "".join(part if isinstance(part, str) else spell(part) for part in self.parts)

    def __str__(self) -> str:
        """Return the text with Python's spelling."""
        return self.render(in_python)


def in_python(part: Argument | Advice) -> str:
    """Spell an argument as it is written in a call: `missing="centre"`."""
    if isinstance(part, Advice):
        return part.text
    name = part.name.rpartition(".")[2]
    if part.value is ABSENT:
        return name
    if part.value is ...:
        return f"{name}=..."
    plain = isinstance(part.value, str) and part.value.isprintable() and '"' not in part.value
    return f'{name}="{part.value}"' if plain else f"{name}={part.value!r}"


class _Worded(Exception):  # noqa: N818 - errors and warnings share it
    """What errors and warnings of primo share: a message that each front end can spell.

    Parameters
    ----------
    message
        A sequence of text and arguments.
    argument, value
        The setting that is wrong, and what it is; by default the first that the message speaks of.
    remedy
        What to do instead. It follows the message, after a full stop if it begins with a capital
        letter, else after a semicolon.
    """

    message: Message
    argument: str | None
    value: object
    remedy: Message | None

    def __init__(
        self,
        *message: Part | Message,
        argument: str | None = None,
        value: object = ABSENT,
        remedy: Part | Message | None = None,
    ) -> None:
        self.message = Message.of(*message)
        self.remedy = None if remedy is None else Message.of(remedy)
        if argument is None:
            named = (part for part in self.message.parts if isinstance(part, Argument))
            first = next(named, None)
            if first is not None:
                argument = first.name
                value = ABSENT if first.value is ... else first.value
        self.argument, self.value = argument, value
        super().__init__(
            self.render(in_python)
        )  # pickling passes this text, and the fields separately

    def render(self, spell: Callable[[Argument | Advice], str]) -> str:
        """Return message and remedy, with arguments and advice as a front end spells them."""
        text = self.message.render(spell)
        if self.remedy is None:
            return text
        remedy = self.remedy.render(spell)
        return f"{text}{'. ' if remedy[:1].isupper() else '; '}{remedy}"


class PrimoError(_Worded):
    """Root of every error that primo raises on purpose.

    Attributes
    ----------
    message : Message
        What is wrong; `str(error)` is this and the remedy, in Python's spelling.
    argument : str or None
        The setting that is wrong.
    value : object
        What it is; `ABSENT` if the message does not say.
    remedy : Message or None
        What to do instead.

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
    """The ledger cannot be read, written or trusted; the message says what to do about it."""


class PrimoWarning(_Worded, UserWarning):
    """Root of every warning of primo."""


class WeakGuaranteeWarning(PrimoWarning):
    """The budget asked for protects much less than it seems to.

    Examples
    --------
    It is given, for example, where delta is above 1/n. To turn it into an error:

    >>> import warnings
    >>> import primo
    >>> warnings.filterwarnings("error", category=primo.WeakGuaranteeWarning)
    """


class ReproducibleNoiseWarning(PrimoWarning):
    """The noise can be recomputed from a seed, so the release protects nobody.

    Examples
    --------
    Tests that fix `random_state` can silence it:

    >>> import warnings
    >>> import primo
    >>> warnings.filterwarnings("ignore", category=primo.ReproducibleNoiseWarning)
    """
