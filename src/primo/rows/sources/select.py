"""Choose columns by name, by shell pattern, or by a file that lists them."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from primo.errors import InputError

__all__ = ["asked", "choose", "read_list", "refuse_overlap"]

_SHOWN = 3  # unknown names in a message
_COMPARED = 100_000  # names that are searched for a similar one


def choose(
    available: Sequence[str], wanted: str | Sequence[str], *, what: str = "columns", where: str
) -> tuple[str, ...]:
    """Return the columns that `wanted` asks for, each once.

    `wanted` holds names and shell patterns ('snp_*', 'q_[0-9]*'); an item that is the name of a column
    is not used as a pattern. The order is that of `wanted`; a pattern gives its columns in the order of
    `available`. `what` and `where` appear in messages: "features", "cohort.csv".
    """
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    if not wanted:
        raise InputError(f"no {what} were asked for; give names or patterns of columns of {where}")
    present = set(available)
    chosen: dict[str, None] = {}
    unknown = []
    for item in wanted:
        if item in present:
            chosen[item] = None
        elif any(sign in item for sign in "*?["):
            pattern = re.compile(fnmatch.translate(item))
            found = [name for name in available if pattern.match(name)]
            if not found:
                raise InputError(
                    f"the pattern {item!r} for the {what} matches none of the "
                    f"{len(available)} columns of {where}"
                )
            chosen.update(dict.fromkeys(found))
        else:
            unknown.append(item)
    if unknown:
        raise InputError(_unknown(unknown, len(wanted), available, what, where))
    return tuple(chosen)


def refuse_overlap(features: Sequence[str], outcomes: Sequence[str]) -> None:
    """Refuse names that are features and outcomes at once."""
    present = set(outcomes)
    shared = [name for name in features if name in present]
    if shared:
        raise InputError(
            f"{_count(len(shared), 'column')} asked for as features and as outcomes, for example "
            f"{shared[0]!r}; take it out of one of them"
        )


def asked(names: Iterable[str] = (), lists: Iterable[str | Path] = ()) -> tuple[str, ...]:
    """Gather what a command line asks for: names and patterns, and files that list them."""
    return (*names, *(name for path in lists for name in read_list(path)))


def read_list(path: str | Path) -> tuple[str, ...]:
    """Read a file with one name or pattern per line; '#' begins a comment."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot read the list {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise InputError(f"the list {path} is not text in UTF-8") from None
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    names = tuple(line for line in lines if line)
    if not names:
        raise InputError(f"the list {path} is empty; write one name per line")
    return names


def _unknown(
    unknown: Sequence[str], wanted: int, available: Sequence[str], what: str, where: str
) -> str:
    """Say which names are not there, and which ones look like them."""
    shown = []
    for name in unknown[:_SHOWN]:
        close = difflib.get_close_matches(name, available[:_COMPARED], n=2)
        hint = f" (did you mean {' or '.join(map(repr, close))}?)" if close else ""
        shown.append(f"{name!r}{hint}")
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    return (
        f"{len(unknown)} of the {wanted} {what} asked for are not among the {len(available)} columns "
        f"of {where}: {', '.join(shown)}{more}"
    )


def _count(number: int, noun: str) -> str:
    return f"1 {noun} is" if number == 1 else f"{number} {noun}s are"
