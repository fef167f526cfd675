"""Choose columns by name, by shell pattern, or by a file that lists them."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from primo._util.closeness import did_you_mean
from primo._util.reading import unreadable
from primo.errors import InputError

__all__ = ["asked", "choose", "read_list", "refuse_overlap"]

_SHOWN = 3  # unknown names in a message

#: The pattern that means all columns that are left.
EVERYTHING = "*"


def choose(
    available: Sequence[str],
    wanted: str | Sequence[str],
    *,
    what: str = "columns",
    where: str,
    also: Sequence[str] = (),
    taken: Sequence[str] = (),
    lists: bool = True,
) -> tuple[str, ...]:
    """Return the columns that `wanted` asks for, each once.

    `wanted` holds names and shell patterns ('snp_*', 'q_[0-9]*'); an item that is the name of a column
    is not used as a pattern. With `lists`, an item may also be several names and patterns with commas
    between them ('age,sex,snp_*'); a name that itself contains a comma is found first. Names in `also`
    may be asked for, too, but patterns and messages do not count them. The pattern '*' alone means all
    columns that are not `taken` for something else; other patterns do not leave any out. The order is
    that of `wanted`; a pattern gives its columns in the order of `available`. `what` and `where` appear
    in messages: "features", "cohort.csv".
    """
    wanted = [wanted] if isinstance(wanted, str) else list(wanted)
    if not wanted:
        raise InputError(f"no {what} were asked for; give names or patterns of columns of {where}")
    present = {*available, *also}
    if lists:
        wanted = [item for text in wanted for item in _items(text, present, available)]
    chosen: dict[str, None] = {}
    unknown = []
    for item in wanted:
        if item in present:
            chosen[item] = None
        elif _is_pattern(item):
            found = _matching(item, available)
            if item == EVERYTHING:
                found = [name for name in found if name not in taken]
                if not found and taken:
                    raise InputError(
                        f"no columns of {where} are left for the {what}: all of them are asked for as "
                        "outcomes; ask for fewer outcomes"
                    )
            if not found:
                any_case = _matching(item, available, flags=re.IGNORECASE)
                hint = f"; capitals count: did you mean {any_case[0]!r}?" if any_case else ""
                raise InputError(
                    f"the pattern {item!r} for the {what} matches none of the "
                    f"{len(available)} columns of {where}{hint}"
                )
            chosen.update(dict.fromkeys(found))
        else:
            unknown.append(item)
    if unknown:
        raise InputError(_unknown(unknown, len(wanted), available, what, where))
    return tuple(chosen)


def _items(text: str, present: set[str], available: Sequence[str]) -> Iterator[str]:
    """Cut a list at its commas, except inside the names and patterns that contain some."""
    if "," not in text or text in present or (_is_pattern(text) and _matching(text, available)):
        yield text
        return
    pieces = text.split(",")
    while pieces:
        # The longest run of pieces that is one name.
        runs = (k for k in range(len(pieces), 1, -1) if ",".join(pieces[:k]).strip() in present)
        size = next(runs, 1)
        item = ",".join(pieces[:size]).strip()
        if item:
            yield item
        pieces = pieces[size:]


def _is_pattern(item: str) -> bool:
    return any(sign in item for sign in "*?[")


def _matching(item: str, available: Sequence[str], *, flags: int = 0) -> list[str]:
    pattern = re.compile(fnmatch.translate(item), flags)
    return [name for name in available if pattern.match(name)]


def refuse_overlap(features: Sequence[str], outcomes: Sequence[str]) -> None:
    """Refuse names that are features and outcomes at once."""
    present = set(outcomes)
    shared = [name for name in features if name in present]
    if shared:
        raise InputError(
            f"{_count(len(shared), 'column')} asked for as features and as outcomes, for example "
            f"{shared[0]!r}; take it out of one of them (features '*' are all columns that are not "
            "outcomes)"
        )


def asked(names: Iterable[str] = (), lists: Iterable[str | Path] = ()) -> tuple[str, ...]:
    """Gather what a command line asks for: names and patterns, and files that list them."""
    return (*names, *(name for path in lists for name in read_list(path)))


def read_list(path: str | Path) -> tuple[str, ...]:
    """Read a file with one name or pattern per line; '#' begins a comment."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise unreadable(path, error) from None
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
        hint = did_you_mean(name, available)
        shown.append(f"{name!r} ({hint})" if hint else repr(name))
    more = f" and {len(unknown) - _SHOWN} more" if len(unknown) > _SHOWN else ""
    return (
        f"{len(unknown)} of the {wanted} {what} asked for are not among the {len(available)} columns "
        f"of {where}: {', '.join(shown)}{more}"
    )


def _count(number: int, noun: str) -> str:
    return f"1 {noun} is" if number == 1 else f"{number} {noun}s are"
