"""Public blocks of linked variants: a BED file of their borders, and the features that lie in each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from primo._util.reading import unreadable
from primo.errors import InputError
from primo.variants import Variants

__all__ = ["LdBlocks", "read_ld_blocks"]

_MOST_LINES = 10**6

#: A block: chromosome, and the positions start + 1 … end (BED counts from 0 and leaves the end out).
_Line = tuple[str, int, int]


@dataclass(frozen=True, kw_only=True)
class LdBlocks:
    """Borders of blocks by feature position; every feature lies in one block."""

    borders: tuple[int, ...]  # (m + 1,) from 0 to d
    used: int  # blocks of the file that hold a variant
    alone: int  # features outside all blocks of the file, each a block of its own


def read_ld_blocks(
    path: str | os.PathLike[str], variants: Variants, feature_names: tuple[str, ...]
) -> LdBlocks:
    """Read a BED file of blocks, and find the features of each; reads no private row.

    A line has a chromosome, a start and an end, separated by blanks; a variant at position p lies in it
    if start < p ≤ end. Lines that begin with "#", "track" or "browser", and one line of headings, are
    left out. Blocks of a chromosome come in order and do not overlap. Features that are no variants, or
    lie in no block, are blocks of one.

    Cost: O(lines + features·log(lines)).
    """
    name = str(path)
    blocks = _read(path, name)
    found = set(blocks)
    _check_spelling(found, set(variants.chromosome), name)
    places = {feature: i for i, feature in enumerate(feature_names)}
    block_of = np.full(len(feature_names), -1, dtype=np.int64)
    first = 0
    for chromosome, lines in blocks.items():
        starts, ends = np.array(lines, dtype=np.int64).T
        of = np.array([i for i, own in enumerate(variants.chromosome) if own == chromosome], int)
        at = variants.position[of]
        line = np.searchsorted(starts, at, side="left") - 1  # the last start below the position
        inside = (line >= 0) & (at <= ends[np.maximum(line, 0)])
        for i, k in zip(of[inside].tolist(), line[inside].tolist(), strict=True):
            block_of[places[variants.names[i]]] = first + k
        first += len(lines)
    return _borders(block_of, name)


def _borders(block_of: np.ndarray[tuple[int], np.dtype[np.int64]], name: str) -> LdBlocks:
    """Return borders where the block changes; refuse a block whose features are not neighbours."""
    alone = block_of < 0
    change = (block_of[1:] != block_of[:-1]) | alone[1:] | alone[:-1]
    starts = np.concatenate([[0], np.flatnonzero(change) + 1])
    held = block_of[starts]
    held = held[held >= 0]
    if len(np.unique(held)) < len(held):
        raise InputError(
            f"a block of {name!r} holds variants that are not neighbours in the genotype files",
            remedy="sort the genotype files by position, for example with plink2 --sort-vars",
        )
    if not len(held):
        raise InputError(
            f"no variant lies in a block of {name!r}",
            remedy="see that both are of the same genome build",
        )
    borders = (*starts.tolist(), len(block_of))
    return LdBlocks(borders=borders, used=len(held), alone=int(alone.sum()))


def _read(path: str | os.PathLike[str], name: str) -> dict[str, list[tuple[int, int]]]:
    """Return start and end of the blocks of every chromosome."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"there is no file of blocks at {name!r}") from None
    except UnicodeDecodeError:
        raise InputError(f"{name!r} is not a BED file: it is not text") from None
    except OSError as error:
        raise unreadable(path, error) from None
    blocks: dict[str, list[tuple[int, int]]] = {}
    lines = text.splitlines()
    if len(lines) > _MOST_LINES:
        raise InputError(f"{name!r} has more than {_MOST_LINES} lines")
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith(("#", "track", "browser")):
            continue
        block = _block(line.split())
        if block is None:
            if not blocks and number == 1:
                continue  # headings
            raise InputError(
                f"line {number} of {name!r} is no block",
                remedy="write a chromosome, a start and a larger end, separated by tabs",
            )
        chromosome, start, end = block
        own = blocks.setdefault(chromosome, [])
        if own and start < own[-1][1]:
            raise InputError(
                f"line {number} of {name!r}: blocks of chromosome {chromosome} overlap or are not in "
                "order",
                remedy="sort them (sort -k1,1 -k2,2n) and see that each starts where the one before "
                "ends, or later",
            )
        own.append((start, end))
    if not blocks:
        raise InputError(f"{name!r} holds no block")
    return blocks


def _block(cells: list[str]) -> _Line | None:
    if len(cells) < 3 or not all(c.isascii() and c.isdigit() and len(c) < 16 for c in cells[1:3]):
        return None
    start, end = int(cells[1]), int(cells[2])
    return (cells[0], start, end) if start < end else None


def _check_spelling(blocks: set[str], variants: set[str], name: str) -> None:
    """Refuse a chromosome that both files have and spell differently."""
    plain = {_plain(chromosome): chromosome for chromosome in blocks}
    for chromosome in sorted(variants - blocks):
        other = plain.get(_plain(chromosome))
        if other is not None:
            raise InputError(
                f"{name!r} spells a chromosome {other!r} that is {chromosome!r} in the genotype files",
                remedy="spell chromosomes alike in both, for example: "
                + (
                    f"sed 's/^chr//' {name}"
                    if other.startswith("chr")
                    else f"sed 's/^/chr/' {name}"
                ),
            )


def _plain(chromosome: str) -> str:
    text = chromosome.lower().removeprefix("chr").lstrip("0")
    return {"23": "x", "24": "y", "25": "xy", "26": "mt", "m": "mt"}.get(text, text)
