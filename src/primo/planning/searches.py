"""What is released before the moments, to find bounds: decided from public numbers alone.

Three stages, each on rows of its own pass and with noise of its own:

- columns: histograms of every column's values, where nothing is stated of a block but that it is
  numbers. They find a centre and a scale for each column.
- centres: histograms of row lengths and noisy sums of shortened rows, elsewhere. They find the mean.
- norms: histograms of row lengths about these centres.

Centres are found only with an intercept: without one the stated centre is where the line passes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from primo.privacy import lengths, values
from primo.privacy.bounds import Bounds
from primo.privacy.centre_search import CentreSearch, centre_search, centring_pays
from primo.privacy.column_search import ColumnSearch, column_search, columns_speak
from primo.privacy.norm_search import NormSearch, norm_search, speaks

__all__ = ["NONE", "Columns", "Searches", "plan_searches", "searched_numbers"]

# Shares of mu² in units of `norm_share`.
NORMS_ALONE = (
    1.0,
    2.0,
)  # histograms of lengths, if nothing else is looked for: the first that speaks
NORMS = (0.6, 1.0, 2.0)  # the same beside centres or columns; more than the first beside columns
CENTRES = 1.2
#: Histograms of columns. Units that nobody knows may differ by any factor, which no noise on the rest
#: makes up for; so few columns get more where less would not speak. Many are usually alike.
COLUMNS = (1.0, 2.0, 4.0, 6.0)
FEW_COLUMNS = 20
MOST = 0.5  # of mu², all stages together: beyond it norms alone are looked for


@dataclass(frozen=True, kw_only=True)
class Columns:
    """A private block whose norm is to be found."""

    width: int
    plain: bool  # nothing is stated of its columns
    movable: bool  # whether its centre and scales may be found, too
    open: bool = False  # no range gives a norm where none is found

    @classmethod
    def of(cls, bounds: Bounds, width: int, *, movable: bool) -> Columns:
        """Describe a block by its bounds."""
        stated = (bounds.lower, bounds.centre, bounds.scale)
        return cls(
            width=width,
            plain=all(part is None for part in stated),
            movable=movable,
            open=not bounds.has_fallback,
        )


@dataclass(frozen=True, kw_only=True)
class Searches:
    """The stages before the moments; None for one that is not made."""

    norms: NormSearch | None = None
    centres: CentreSearch | None = None
    columns: ColumnSearch | None = None

    @property
    def spent(self) -> Fraction:
        """Squared mu of all stages together, exactly: they compose."""
        made = (self.norms, self.centres, self.columns)
        return sum((search.spent for search in made if search is not None), Fraction(0))


NONE = Searches()


def plan_searches(blocks: dict[str, Columns], *, mu: float, share: float, n: int) -> Searches:
    """Decide which stages are made for private blocks whose norm is to be found, and their noise.

    Guarantee: a function of public numbers. All stages together spend at most `mu`² times what the
    shares above say, and at most `MOST` where more than norms are looked for.
    """
    if not blocks:
        return NONE
    columns = _columns(blocks, mu=mu, share=share, n=n)
    alone = _norms_alone(blocks, mu=mu, share=share, n=n)
    left = {
        name: block
        for name, block in blocks.items()
        if block.movable and not (columns is not None and getattr(columns, name))
    }
    centres = _centres(left, mu=math.sqrt(CENTRES * share) * mu, n=n)
    if columns is None and centres is None:
        return alone
    # Scales that were found give a norm to use where lengths do not tell one.
    scaled = {
        name: replace(block, open=block.open and not (columns and getattr(columns, name)))
        for name, block in blocks.items()
    }
    if alone is NONE and any(block.open for block in scaled.values()):
        return NONE  # units of one block, and nothing to tell the lengths of the other by
    for shares in NORMS if columns is not None else NORMS[:1]:
        norms = _norms(blocks, mu=math.sqrt(shares * share) * mu)
        found = Searches(norms=norms, centres=centres, columns=columns)
        if _speaks(scaled, n, norms.sigma) and found.spent <= Fraction(MOST) * Fraction(mu) ** 2:
            return found
    return alone


def searched_numbers(searches: Searches, *, d: int, l: int) -> int:
    """Return how many noisy numbers the centres and columns release."""
    count = 0
    for search, each, more in (
        (searches.centres, 1, lengths.BINS),
        (searches.columns, values.BINS, 0),
    ):
        if search is not None:
            count += search.features * (each * d + more) + search.outcomes * (each * l + more)
    return count


def _norms(blocks: dict[str, Columns], *, mu: float) -> NormSearch:
    return norm_search(mu=mu, features="features" in blocks, outcomes="outcomes" in blocks)


def _norms_alone(blocks: dict[str, Columns], *, mu: float, share: float, n: int) -> Searches:
    """Plan histograms of lengths and nothing else; for two shares where one would not speak."""
    for shares in NORMS_ALONE:
        search = _norms(blocks, mu=math.sqrt(min(shares * share, max(share, MOST))) * mu)
        if _speaks(blocks, n, search.sigma):
            return Searches(norms=search)
    return NONE


def _speaks(blocks: dict[str, Columns], n: int, sigma: float) -> bool:
    return all(speaks(n, sigma, alone=block.open, columns=block.width) for block in blocks.values())


def _columns(blocks: dict[str, Columns], *, mu: float, share: float, n: int) -> ColumnSearch | None:
    """Plan histograms of the columns of both plain blocks, or else of the narrower one."""
    plain = {name: block for name, block in blocks.items() if block.plain and block.movable}
    narrow = sorted(plain, key=lambda name: plain[name].width)
    for names in (narrow, narrow[:1]):
        if not names:
            continue
        width = sum(plain[name].width for name in names)
        for shares in COLUMNS if width <= FEW_COLUMNS else COLUMNS[:1]:
            search = column_search(
                mu=math.sqrt(shares * share) * mu,
                features="features" in names,
                outcomes="outcomes" in names,
                columns=width,
            )
            if search is not None and columns_speak(n, search.sigma):
                return search
    return None


def _centres(blocks: dict[str, Columns], *, mu: float, n: int) -> CentreSearch | None:
    """Plan sums of both blocks, or else of the narrower one."""
    narrow = sorted(blocks, key=lambda name: blocks[name].width)
    for names in (narrow, narrow[:1]):
        if not names:
            continue
        search = centre_search(
            mu=mu, n=n, features="features" in names, outcomes="outcomes" in names
        )
        if (
            search is not None
            and _speaks(blocks, n, search.counts.sigma)
            and all(
                centring_pays(n=n, columns=blocks[name].width, sigma=search.sigma) for name in names
            )
        ):
            return search
    return None
