"""Who is in a file, and which people of several files are the same: ids, `--keep`, `--remove`.

Who takes part is private: nothing here prints an id or puts one into a message.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primo._util.reading import unreadable
from primo.errors import InputError
from primo.rows.sources.base import Ids
from primo.rows.sources.canonical import canonical_ids
from primo.rows.sources.tabular.cells import first_cells, tidy
from primo.rows.sources.tabular.fast import LARGE, compiled_for

__all__ = ["People", "keys", "read_fam", "read_list_of_people", "read_psam", "read_sample"]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class People:
    """The people of one file in stored order: individual ids and, if the file has them, family ids.

    PLINK writes family id 0 for "none"; a file in which all are 0 has none here.
    """

    where: Path  # names the file in messages
    iid: Ids
    fid: Ids | None

    def __len__(self) -> int:
        return len(self.iid)

    def __repr__(self) -> str:
        """Show the number of people, and no id."""
        return f"<People n={len(self)} (private)>"

    @property
    def has_families(self) -> bool:
        """Whether family ids tell people apart."""
        return self.fid is not None and bool((self.fid != "0").any())

    def keys(self, *, families: bool) -> Ids:
        """Return the ids that distinguish people: family and individual id, or the latter alone."""
        found = self._keys(families)
        if len(set(found.tolist())) != len(found):
            raise InputError(
                f"{self.where}: some people appear more than once. Individual ids must differ, or, "
                "where all files have a column FID that is not 0 throughout, pairs of FID and IID"
            )
        return found

    def listed(self, path: str | PathLike[str]) -> NDArray[np.bool_]:
        """Mark the people whom a keep or remove file names."""
        others = read_list_of_people(path)
        families = self.has_families and others.has_families
        return np.isin(self._keys(families), others._keys(families))

    def shares_ids_with(self, others: People) -> bool:
        """Whether an id of one file is in the other, whatever the family ids.

        Tools that know no families write `FID_IID` for an id, so that spelling counts too.
        """
        return bool(np.isin(self._spellings(), others._spellings()).any())

    @property
    def joined(self) -> Ids | None:
        """The ids as tools that know no families write them, `FID_IID`; None without family ids."""
        return None if self.fid is None else np.char.add(np.char.add(self.fid, "_"), self.iid)

    def _spellings(self) -> Ids:
        return self.iid if self.joined is None else np.concatenate([self.iid, self.joined])

    def _keys(self, families: bool) -> Ids:
        if not families or self.fid is None:
            return self.iid
        return np.char.add(np.char.add(self.fid, "\t"), self.iid)


def keys(files: Sequence[People]) -> list[Ids]:
    """Return comparable ids of the people in several files.

    People are compared by family *and* individual id if every file has families, as PLINK does, and
    by individual id alone if one of them has none (a VCF, `#IID` files, FID 0 throughout).
    """
    families = all(people.has_families for people in files)
    return [people.keys(families=families) for people in files]


def read_fam(path: Path) -> People:
    """Read who is in a PLINK 1 `.fam`: family and individual id are its first two columns."""
    content = _content(path)
    words = _first_two(content)
    if words is None:
        return _people(path, list(_words(path, content, at_least=2)), header=["FID", "IID"])
    return People(where=path, iid=_ids(words[1::2]), fid=_ids(words[0::2]))


def read_psam(path: Path) -> People:
    """Read who is in a PLINK 2 `.psam`, which has a header (`#FID IID`, `#IID`) or is a `.fam`."""
    lines = list(_words(path, _content(path), at_least=1))
    header = ["FID", "IID"]
    while lines and lines[0][0].startswith("#"):
        header = [lines[0][0].removeprefix("#"), *lines[0][1:]]
        lines = lines[1:]
    return _people(path, lines, header=header)


def read_sample(path: Path) -> People:
    """Read who is in a `.sample` file of Oxford's tools: two header lines, then `ID_1 ID_2 ...`.

    ID_1 is the family id and ID_2 the individual id, as PLINK reads them; a file whose second column is
    not ID_2 has individual ids only.
    """
    lines = list(_words(path, _content(path), at_least=1))
    kinds = lines[1] if len(lines) > 1 else ()
    if not kinds or set(kinds) - set("0DCPBS") or len(kinds) != len(lines[0]):
        raise InputError(
            f"{path} is not a .sample file: its second line must give the kind of each column (0, D, C, "
            "P or B)"
        )
    pairs = len(lines[0]) > 1 and lines[0][1].upper() == "ID_2"
    return _people(path, lines[2:], header=["FID", "IID"] if pairs else ["IID"])


def read_list_of_people(path: str | PathLike[str]) -> People:
    """Read a list: `FID IID` or `IID` on each line, with or without a header."""
    lines = list(_words(Path(path), _content(Path(path)), at_least=1))
    header = ["FID", "IID"] if lines and len(lines[0]) > 1 else ["IID"]
    if lines and lines[0][0] in ("#FID", "FID", "#IID", "IID"):
        header = [lines[0][0].removeprefix("#"), *lines[0][1:]]
        lines = lines[1:]
    return _people(Path(path), lines, header=header)


def _content(path: Path) -> bytes:
    """Return a file of UTF-8."""
    try:
        content = path.read_bytes()
        content.decode()
    except OSError as error:
        raise unreadable(path, error) from None
    except UnicodeDecodeError:
        pass
    else:
        return content
    # Raised outside the handler, so that the traceback does not show the bytes.
    raise InputError(f"{path} is not text (UTF-8)")


def _words(path: Path, content: bytes, *, at_least: int) -> Iterator[tuple[str, ...]]:
    """Yield the words of each line that has some."""
    for line in content.split(b"\n"):
        # As bytes: Unicode has blanks and line ends that PLINK reads as part of an id.
        words = line.split()
        if words and len(words) < at_least:
            raise InputError(f"{path} has a line with fewer than {at_least} columns")
        if words:
            yield tuple(map(bytes.decode, words))


def _first_two(content: bytes) -> list[str] | None:
    """Return the first two words of all lines if all have equally many words; faster than `_words`."""
    text = tidy(content)
    cells = text.partition(b"\n")[0].count(b"\t") + 1
    heads = first_cells(text, "\t", cells, 2, compiled_for(len(text), many=LARGE))
    if heads is None or b"\v" in text or b"\f" in text:  # these are blanks too
        return None
    return heads.decode().replace("\n", "\t").split("\t")[:-1]


def _people(path: Path, lines: list[tuple[str, ...]], *, header: Sequence[str]) -> People:
    if not lines:
        raise InputError(f"{path} lists no people")
    if "IID" not in header:
        raise InputError(f"{path} has a header without the column IID")
    places = [header.index(name) for name in ("IID", "FID") if name in header]
    if min(map(len, lines)) <= max(places):
        raise InputError(f"{path} has a line that is too short for its ids")
    iid, *fid = (_ids([line[place] for line in lines]) for place in places)
    return People(where=path, iid=iid, fid=fid[0] if fid else None)


def _ids(words: list[str]) -> Ids:
    return canonical_ids(words)
