"""What options are made of: types of their values, and how several are declared together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from primo.privacy.protection import PROTECTION_SPELLINGS, Protection

__all__ = ["AUTO", "FILE", "PROTECTIONS", "F", "SpelledChoice", "WholeOrAuto", "together"]

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


class WholeOrAuto(click.ParamType):  # type: ignore[type-arg, unused-ignore]
    """A whole number, or "auto"; a configuration file may have either."""

    name = "integer or auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number, or the word."""
        if value == AUTO or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        try:
            return int(value)
        except (TypeError, ValueError):
            self.fail(f"{value!r} is neither a whole number nor 'auto'", param, ctx)


#: What is secret; "full", "feature" and "label" are accepted, too.
PROTECTIONS = SpelledChoice([str(kind) for kind in Protection], PROTECTION_SPELLINGS)


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return one decorator that declares all options, in the order in which they are given."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate
