"""What options are made of: types of their values, and how several are declared together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from primo.cli.render import argument_of
from primo.errors import InputError
from primo.privacy.protection import PROTECTION_SPELLINGS, Protection

__all__ = ["AUTO", "FILE", "PROTECTIONS", "F", "Rounds", "SpelledChoice", "Whole", "together"]

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path)

AUTO = "auto"  # as `planning.rounds` has it, which help must not load


class SpelledChoice(click.Choice):  # type: ignore[type-arg, unused-ignore]
    """A choice of words, some of which may also be spelled in another way."""

    def __init__(self, choices: Sequence[str], spellings: Mapping[str, str]) -> None:
        super().__init__(choices)
        self._spellings = spellings

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the word in the spelling that is listed."""
        word = self._spellings.get(value, value) if isinstance(value, str) else value
        return super().convert(word, param, ctx)


class Whole(click.IntRange):
    """A whole number in a range; a fraction is refused, also that of a configuration file."""

    @property
    def wanted(self) -> str:
        """Say which numbers are accepted."""
        if self.min is None:
            return "a whole number"
        if self.max is None:
            return f"a whole number, {self.min} or more"
        return f"a whole number from {self.min} to {self.max}"

    def fits(self, value: Any) -> bool:
        """Whether a value is a whole number in the range; True and False are not."""
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and (self.min is None or value >= self.min)
            and (self.max is None or value <= self.max)
        )

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number."""
        number = _number(value)
        if self.fits(number):
            return number
        option = param.opts[0] if param is not None else "the value"
        raise InputError(argument_of(option, value), f" must be {self.wanted}")


class Rounds(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A number of rounds, or "auto"; a configuration file may have either."""

    name = "integer or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or the word."""
        if value == AUTO:
            return value
        from primo.planning.rounds import check_rounds

        number = _number(value)
        check_rounds(number)
        return number


def _number(value: Any) -> Any:
    """Return the whole number that a text states; anything else as it is."""
    try:
        return int(value) if isinstance(value, str) else value
    except ValueError:
        return value


#: What is secret; "full", "feature" and "label" are accepted, too.
PROTECTIONS = SpelledChoice([str(kind) for kind in Protection], PROTECTION_SPELLINGS)


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator that declares all options, in the order in which they are given."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
