"""Names that look like a name that is not there."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

__all__ = ["closest", "did_you_mean"]

_COMPARED = 100_000  # names that are searched


def closest(name: str, available: Sequence[str], *, most: int = 2) -> list[str]:
    """Return up to `most` names that look like `name`, the likeliest first.

    Capitals and the signs between words do not count: `Birth Year` looks like `birth_year`.
    """
    plain: dict[str, list[str]] = {}
    for other in available[:_COMPARED]:
        plain.setdefault(_plain(other), []).append(other)
    near = difflib.get_close_matches(_plain(name), list(plain), n=most)
    return [other for key in near for other in plain[key]][:most]


def did_you_mean(name: str, available: Sequence[str]) -> str:
    """Return a question with the names that look like `name`; nothing if none does."""
    close = closest(name, available)
    return f"did you mean {' or '.join(map(repr, close))}?" if close else ""


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name.casefold()) or name
