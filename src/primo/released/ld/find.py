"""Blocks of linked variants, found from a public panel: borders where little correlation is cut.

For a border before variant j, let c_j be the sum of r² of the pairs that it separates, at most `most`
variants apart, less what r² of unlinked variants is in a panel of this size. The borders that cut the
least in all, with blocks of at least `least` and at most `most` variants, follow by dynamic programming.
"""

from __future__ import annotations

import math
import os
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from primo._util.atomic import whole_file
from primo._util.writers import escaped
from primo.errors import Argument, InputError
from primo.variants import Variants

__all__ = ["find_ld_blocks", "write_ld_blocks"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

CERTAIN = 2.0  # standard deviations of r² of unlinked pairs
WORTH = 1e-6  # r² that a border more is worth
CHUNK = 256  # variants whose correlations with those after them are computed at a time


def find_ld_blocks(
    panel: NDArray[np.generic], variants: Variants, *, least: int = 10, most: int = 100
) -> Places:
    """Find the borders of blocks of linked variants in a public panel.

    Parameters
    ----------
    panel
        Allele counts of *public* people, (people, variants), nothing missing.
    variants
        What is counted, in the order of a file: by chromosome, then by position.
    least, most
        Variants in a block. A chromosome with fewer than `least` is a block of its own.

    Returns
    -------
    starts
        (blocks + 1,) borders: block k holds variants starts[k] … starts[k + 1] - 1.

    Notes
    -----
    Guarantee: reads public people only; costs no privacy. Cost: O(people · variants · most).

    Examples
    --------
    >>> import numpy as np
    >>> from primo.released.ld.find import find_ld_blocks
    >>> from primo.variants import Variants
    >>> rng = np.random.default_rng(0)
    >>> founders = rng.binomial(2, 0.4, size=(500, 3))
    >>> panel = np.repeat(founders, [4, 6, 5], axis=1)  # three blocks of copies
    >>> variants = Variants(
    ...     names=tuple(f"rs{i}" for i in range(15)), chromosome=("1",) * 15,
    ...     position=np.arange(1, 16), counted=("A",) * 15, other=("G",) * 15,
    ... )
    >>> find_ld_blocks(panel, variants, least=2, most=8).tolist()
    [0, 4, 10, 15]
    """
    counts = np.asarray(panel)
    if counts.ndim != 2 or counts.shape[1] != len(variants) or len(counts) < 3:
        raise InputError(
            Argument("panel"),
            f" must hold a column for each of {len(variants)} variants and at least three people",
        )
    if not 1 <= least <= most:
        raise InputError(
            Argument("least", least), f" must be at least 1 and at most {most}, the largest block"
        )
    found = [0]
    for start, end in _chromosomes(variants):
        cut = _cut(_standardised(counts[:, start:end]), most)
        # Chance makes sums of this size where nothing is linked. Such a border cuts nothing, and
        # smaller blocks are better: each needs less noise.
        chance = math.sqrt(most * (most + 1)) / len(counts)
        cut = np.maximum(cut - CERTAIN * chance, 0.0) - WORTH
        found.extend(start + border for border in _borders(cut, least, most))
    return np.array(found, dtype=np.intp)


def write_ld_blocks(
    path: str | os.PathLike[str], variants: Variants, starts: Places, *, replace: bool = False
) -> None:
    """Write blocks as a BED file: chromosome, start (counted from 0), end, one line per block.

    Blocks touch: each ends where the next one begins, the last of a chromosome at its last variant.
    Guarantee: holds public positions only.
    """
    lines = []
    for a, b in pairwise(int(at) for at in starts):
        last = b >= len(variants) or variants.chromosome[b] != variants.chromosome[a]
        end = int(variants.position[b - 1]) if last else int(variants.position[b]) - 1
        first = int(variants.position[a]) - 1
        lines.append(f"{escaped(variants.chromosome[a])}\t{first}\t{end}\n")
    with whole_file(Path(path), replace=replace) as file:
        file.write("".join(lines).encode())


def _chromosomes(variants: Variants) -> list[tuple[int, int]]:
    """Return where each chromosome begins and ends; refuse variants out of order."""
    names = np.array(variants.chromosome)
    change = np.flatnonzero(names[1:] != names[:-1]) + 1
    borders = [0, *change.tolist(), len(names)]
    if len(set(names[borders[:-1]].tolist())) < len(borders) - 1:
        raise InputError("the variants of a chromosome must follow one another")
    for a, b in pairwise(borders):
        if (np.diff(variants.position[a:b]) < 0).any():
            raise InputError(
                f"the variants of chromosome {variants.chromosome[a]} are not sorted by position",
                remedy="Sort the files, for example with plink2 --sort-vars",
            )
    return list(pairwise(borders))


def _standardised(counts: NDArray[np.generic]) -> Floats:
    """Return columns of mean 0 and squared length 1; 0 where a variant does not vary."""
    columns = counts.astype(np.float64)
    if not np.isfinite(columns).all() or (columns < 0).any():
        raise InputError(
            Argument("panel"), " has missing values", remedy="leave out or impute those variants"
        )
    columns -= columns.mean(axis=0)
    length = np.linalg.norm(columns, axis=0)
    return np.asarray(np.divide(columns, length, out=columns, where=length > 0))


def _cut(columns: Floats, most: int) -> Floats:
    """Sum of r² that a border before each variant cuts, (variants + 1,)."""
    people, d = columns.shape
    gained, lost = np.zeros(d), np.zeros(d)
    for start in range(0, d, CHUNK):
        end = min(start + CHUNK, d)
        far = min(end + most, d)
        squared = (columns[:, start:end].T @ columns[:, start:far]) ** 2 - 1 / people
        apart = np.arange(start, far)[None, :] - np.arange(start, end)[:, None]
        squared[(apart < 1) | (apart > most)] = 0.0
        gained[start:end] += squared.sum(axis=1)
        lost[start:far] += squared.sum(axis=0)
    # From the border before j to the one after it, j changes sides.
    return np.append(0.0, np.maximum(np.cumsum(gained - lost), 0.0))


def _borders(cut: Floats, least: int, most: int) -> list[int]:
    """Choose borders 0 < … ≤ d that cut least, with sizes within the limits; d is the last."""
    d = len(cut) - 1
    if d <= most and d < 2 * least:
        return [d]
    least = min(least, d)
    best = np.full(d + 1, np.inf)
    best[0] = 0.0
    before = np.zeros(d + 1, dtype=np.intp)
    for end in range(least, d + 1):
        low, high = max(0, end - most), end - least
        at = low + int(np.argmin(best[low : high + 1]))
        # The end of the chromosome cuts nothing.
        best[end] = best[at] + (cut[end] if end < d else 0.0)
        before[end] = at
    if not np.isfinite(best[d]):  # no sizes add up to d: let blocks be as small as they must
        return _borders(cut, 1, most)
    borders = [d]
    while before[borders[-1]] > 0:
        borders.append(int(before[borders[-1]]))
    return borders[::-1]
