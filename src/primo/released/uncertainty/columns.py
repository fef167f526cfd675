"""What a release shows about every column: where it lies in its range, and how much of it is noise.

A release holds, of every column in scaled units, the mean square and (with an intercept) the mean, both
with noise of a known scale. `doubts` puts into words what this shows about the bounds. `BoundsFit`
says for which outcomes R² can be stated: numbers from cut columns hold for cut rows only, and R² of
an outcome whose own variation is lost in noise is a ratio of noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaincinv, ndtri

from primo.planning.plan import CovarianceOrigin
from primo.privacy.bounds import Clip
from primo.released.blocks import ReleasedBlocks
from primo.released.moments import ReleasedMoments

__all__ = [
    "EDGE",
    "FALSE_ALARM",
    "Block",
    "BoundsFit",
    "at_both_ends",
    "at_one_end",
    "bounds_fit",
    "feature_block",
    "less_than_stated",
    "lost_in_noise",
    "near_an_end",
    "outcome_block",
    "shortened",
    "two_values",
]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FALSE_ALARM = 1e-7  # of each check, over all columns of a block
STUCK = 0.93  # of the half-width: a mean beyond it has nearly all values at that end, or next to it
EDGE = 0.8  # of the half-width: a mean beyond it is near the end of its range
BOTH_ENDS = 0.9  # of the largest mean square: nearly all values lie at the two ends
KNOWN = 0.25  # relative error of an outcome's own variation above which its R² is not determined
FEWEST_ALIKE = 4  # outcomes needed to see that they are alike; as `system` shrinks their variations
FAR_BELOW = 0.25  # of the variation of the outcomes that can be told from noise
LESS = (
    0.9  # of the variance that scales promise: below it long rows held the rest, or scales are wide
)
LEAST_KEPT = 0.6  # of that variance, whatever shortening was to be expected
FEW = 0.04  # mean squared length over the squared norm, below which hardly a row can be that long
RAREST = 0.01  # frequency below which `Bounds.from_frequencies` does not follow an allele
TAIL = (np.arange(200) + 0.5) / 200  # shares of rows at which lengths are compared with the norm
EXAMPLES = 3


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """What a release shows about the columns of one block, in scaled units, (width,) each."""

    word: str  # "feature" or "outcome"
    n: int  # rows
    names: tuple[str, ...]
    clip: Clip
    square: Floats  # mean squares
    square_error: float
    mean: Floats | None  # None without an intercept
    mean_error: float
    spread_out: float  # effective number of columns that make up a row's length
    scales_found: bool = False  # from the rows: they are no public standard deviations

    @property
    def width(self) -> int:
        """Number of columns."""
        return len(self.names)

    @property
    def margin(self) -> float:
        """Standard errors that no column exceeds by noise alone."""
        return float(-ndtri(FALSE_ALARM / (2 * self.width)))

    @property
    def variance(self) -> tuple[Floats, Floats]:
        """Variances about the means (about the centres without an intercept), and their errors."""
        if self.mean is None:
            return self.square, np.full(self.width, self.square_error)
        error = self.square_error**2 + 4 * self.mean**2 * self.mean_error**2
        error += 2 * self.mean_error**4
        return self.square - self.mean**2 + self.mean_error**2, np.sqrt(error)

    @property
    def placed(self) -> Floats | None:
        """Means within their ranges, from -1 to 1, wherever the centres lie."""
        return (
            self.mean
            if self.mean is None or self.clip.middle is None
            else self.mean - self.clip.middle
        )

    @property
    def placed_square(self) -> Floats:
        """Mean squares about the middles of the ranges."""
        if self.mean is None or self.clip.middle is None:
            return self.square
        return self.square - 2 * self.clip.middle * self.mean + self.clip.middle**2

    @property
    def offset(self) -> tuple[float, float]:
        """Sum of the squared means over columns, and its error."""
        assert self.mean is not None
        total = float(np.sum(self.mean**2)) - self.width * self.mean_error**2
        error = 4 * max(total, 0.0) * self.mean_error**2 + 2 * self.width * self.mean_error**4
        return total, math.sqrt(error)

    @property
    def length(self) -> tuple[float, float]:
        """Mean squared length of a row, and its error."""
        return float(self.square.sum()), self.square_error * math.sqrt(self.width)

    def some(self, which: Flags) -> str:
        """Write "37 of 300 features (for example a, b, c)"."""
        few = [_short(self.names[j]) for j in np.flatnonzero(which)[:EXAMPLES]]
        found = int(which.sum())
        if self.width == 1:
            return f"the {self.word} {few[0]}"
        words = f"{found} of {self.width} {self.word}s"
        listed = ", ".join(few)
        return f"{words} ({listed})" if found <= EXAMPLES else f"{words} (for example {listed})"


def feature_block(release: ReleasedMoments) -> Block | None:
    """Read the features off a release; None where the covariance is not that of these rows."""
    plan = release.plan
    if plan.covariance_origin in (CovarianceOrigin.ROW_SPACE, CovarianceOrigin.REFERENCE):
        return None  # not the moments of these rows
    if release.blocks is not None:
        return _inside_blocks(release, release.blocks)
    d, n = plan.d, plan.n
    moments = release.covariance[:d, :d]
    sigma = release.covariance_sigma
    off = sigma / math.sqrt(1 + plan.triangle_bits)
    mass = n * plan.constant
    total = float(np.trace(moments))
    together = float(np.sum(moments**2)) - sigma**2 * d - off**2 * d * (d - 1)
    return Block(
        word="feature",
        n=n,
        names=release.feature_names,
        clip=plan.features,
        square=np.diagonal(moments) / n,
        square_error=sigma / n,
        mean=release.covariance[:d, -1] / mass if plan.intercept else None,
        mean_error=off / mass if plan.intercept else 0.0,
        spread_out=_effective(total, together, d),
        scales_found=plan.column_search is not None and plan.column_search.features,
    )


def _inside_blocks(release: ReleasedMoments, blocks: ReleasedBlocks) -> Block:
    """Read the features off a covariance inside blocks; the largest noise stands for all."""
    plan, squares = release.plan, np.concatenate([np.diagonal(b) for b in blocks.covariance])
    widths = np.diff(blocks.starts)
    together = math.fsum(float(np.sum(b**2)) for b in blocks.covariance)
    together -= float(np.sum(blocks.sigma**2 * widths * (widths + 1) / 2))
    return Block(
        word="feature",
        n=plan.n,
        names=release.feature_names,
        clip=plan.features,
        square=squares / plan.n,
        square_error=float(blocks.sigma.max()) / plan.n,
        mean=blocks.sums / plan.n if plan.intercept else None,
        mean_error=blocks.sums_sigma / plan.n,
        spread_out=_effective(float(squares.sum()), together, plan.d),
        scales_found=False,
    )


def outcome_block(release: ReleasedMoments) -> Block:
    """Read the outcomes off a release."""
    plan = release.plan
    n, mass = plan.n, plan.n * plan.constant
    moments = release.outcome_moments
    diagonal = np.diagonal(moments) if moments.ndim == 2 else moments
    sigma = release.outcome_sigma
    squares = float(np.sum(diagonal**2)) - plan.l * sigma**2
    if moments.ndim == 2:
        squares = float(np.sum(moments**2)) - sigma**2 * plan.l * (plan.l + 1) / 2
    return Block(
        word="outcome",
        n=n,
        names=release.outcome_names,
        clip=plan.outcomes,
        square=diagonal / n,
        square_error=sigma / n,
        mean=release.association[-1] / mass if plan.intercept else None,
        mean_error=release.mean_sigma if plan.intercept else 0.0,
        spread_out=_effective(float(diagonal.sum()), squares, plan.l),
        scales_found=plan.column_search is not None and plan.column_search.outcomes,
    )


def _effective(total: float, squares: float, width: int) -> float:
    """(Σλ)²/Σλ² of a covariance: 1 if rows lie along a line, the width if they lie all around."""
    if total <= 0 or squares <= 0:
        return float(width)
    return min(max(total**2 / squares, 1.0), float(width))


@dataclass(frozen=True, kw_only=True, eq=False)
class BoundsFit:
    """For which outcomes R² can be stated; flags of the outcomes, (l,) each."""

    # Some features appear to have been cut or shortened: R² would hold for such rows only.
    features_cut: bool
    cut: Flags  # the outcome itself appears to have been cut
    lost: Flags  # its variation cannot be told from noise, though that of others can
    known: Flags  # its variation is known to 25 %, or that of all if they are alike
    known_together: bool  # the same, of all usable outcomes together

    @property
    def usable(self) -> Flags:
        """Which outcomes can be part of a number for all of them together."""
        return np.asarray(~self.cut & ~self.lost)

    @property
    def stated(self) -> Flags:
        """For which outcomes R² may be stated."""
        return np.asarray(self.usable & self.known & (not self.features_cut))

    @property
    def stated_together(self) -> bool:
        """Whether R² may be stated for all usable outcomes together."""
        return self.known_together and not self.features_cut


def bounds_fit(release: ReleasedMoments) -> BoundsFit:
    """Judge every outcome by the released numbers.

    Guarantee: post-processing; costs no privacy. Cost: O(d² + l).
    """
    features, outcomes = feature_block(release), outcome_block(release)
    # Allele counts: columns of rare alleles lie at 0, of common ones at the other end.
    copies = 2 if release.plan.rows_per_person == 1 else 1
    cut = _cut(outcomes, copies) | shortened(outcomes) | less_than_stated(outcomes)
    lost = lost_in_noise(outcomes)
    variance, error = outcomes.variance
    left = ~cut & ~lost
    total, total_error = float(variance[left].sum()), math.sqrt(float(np.sum(error[left] ** 2)))
    # Outcomes whose variations differ by no more than noise makes them are judged by their common one.
    count, noise = int(left.sum()), error[left]
    alike = count >= FEWEST_ALIKE and bool(noise.all())
    if alike:
        off = (variance[left] - total / count) / noise
        alike = float(off @ off) < 2 * (count - 3)
    return BoundsFit(
        features_cut=features is not None
        and (
            bool(_cut(features, copies).any())
            or shortened(features)
            or bool(less_than_stated(features).all())
        ),
        cut=cut,
        lost=lost,
        known=np.asarray((variance > 0) & (error <= KNOWN * variance)) | (left & alike),
        known_together=total > 0 and total_error <= KNOWN * total,
    )


def _cut(block: Block, copies: int) -> Flags:
    """Which columns appear to have been cut.

    A column of the range of a count that lies at the lower end is rare, not cut; so is one at the upper
    end of a range of allele counts.
    """
    stuck = at_one_end(block)
    if stuck.any():
        assert block.placed is not None
        alleles = (block.clip.range_centre == copies / 2) & (block.clip.scale == copies / 2)
        stuck &= ~(_codes(block.clip) & ((block.placed < 0) | alleles))
    return stuck | (at_both_ends(block) & ~two_values(block))


def at_one_end(block: Block) -> Flags:
    """Which columns have nearly all of their values at, or next to, one end of their range."""
    if block.placed is None or not block.clip.box:
        return np.zeros(block.width, dtype=bool)
    return np.asarray(np.abs(block.placed) - block.margin * block.mean_error > STUCK)


def near_an_end(block: Block) -> Flags:
    """Which others have their mean near an end of their range, and the centre in the middle."""
    if block.mean is None or not block.clip.box or block.clip.middle is not None:
        return np.zeros(block.width, dtype=bool)
    near = np.abs(block.mean) - block.margin * block.mean_error > EDGE
    return np.asarray(near & ~at_one_end(block))


def at_both_ends(block: Block) -> Flags:
    """Which columns, not of two values by their range, lie at the two ends of it."""
    if not block.clip.box:
        return np.zeros(block.width, dtype=bool)
    ends = _enough(block.placed_square, block.square_error, block.margin, BOTH_ENDS)
    return np.asarray(ends & ~at_one_end(block) & ~near_an_end(block) & ~_codes(block.clip))


def two_values(block: Block) -> Flags:
    """Which columns of the range −1 to 1 (or −½ to ½) have all values at its ends: two values, no more.

    Whatever is cut to such a range leaves some values inside, unless it is far too narrow.
    """
    clip = block.clip
    signs = (clip.range_centre == 0) & ((clip.scale == 1) | (clip.scale == 0.5))
    whole = block.placed_square + block.margin * block.square_error >= 1 - 1e-4
    return np.asarray(signs & whole) if clip.box else np.zeros(block.width, dtype=bool)


def less_than_stated(block: Block, errors: float = 0.0) -> Flags:
    """Which columns vary less than their public scales promise, by more than shortening explains.

    A scale is a public standard deviation. Rows of normal length that are shortened to the norm keep a
    known share of the variance. Where a column has less, its longest rows held much of it (heavy
    tails) and what they explained is unknown, or the scale is too wide: the release cannot tell which.
    The mean and the median column are checked, and each by itself. `errors` is how many standard errors
    of noise are allowed for: none where the check decides whether R² is stated. Ranges and a norm alone
    promise no variance; nothing is checked either where rows are so much shorter than the norm that
    hardly one can have reached it. Columns with the scale of allele counts (or zeros and ones) of their
    mean have no tails.
    """
    clip = block.clip
    none = np.zeros(block.width, dtype=bool)
    promised = ~_counted(clip)
    nothing = clip.box or block.scales_found or bool((clip.scale == 1).all())
    if nothing or not promised.any():
        return none
    if block.length[0] < FEW * clip.norm**2:
        return none
    offset = max(block.offset[0], 0.0) if block.mean is not None else 0.0
    # The quantile of χ² per degree of freedom. (`scipy.stats` takes half a second to load.)
    sizes = gammaincinv(block.spread_out / 2, TAIL) / (block.spread_out / 2)
    shorter = np.minimum(1.0, clip.norm**2 / (offset + block.width * sizes))
    limit = max(LESS * float(np.mean(sizes * shorter)), LEAST_KEPT)
    variance, error = block.variance
    total, noise = float(variance[promised].mean()), float(np.mean(error[promised] ** 2))
    sampled = math.sqrt(2 / block.n)  # relative error of a variance, of so many rows
    allowed = math.hypot(errors * math.sqrt(noise / promised.sum()), sampled * total)
    middle = float(np.median(variance[promised])) + errors * math.sqrt(noise)
    if min(total + allowed, middle + sampled * total) < limit:
        return promised
    # One column of many is named only if noise does not explain it.
    return np.asarray(promised & (variance + (1 + errors) * error + sampled * variance < limit))


def shortened(block: Block) -> bool:
    """Whether nearly all rows are as long as their norm allows."""
    clip = block.clip
    length, error = block.length
    if clip.norm >= clip.longest * (1 - 1e-9):  # does nothing
        return False
    short_of = clip.norm**2 * (1 - 0.1 / math.sqrt(block.spread_out))
    return length - block.margin * error > short_of


def lost_in_noise(block: Block) -> Flags:
    """Which columns have a variation that noise alone could make, surely far below the others'.

    Where the others' is not much larger, all may be alike, and none is named.
    """
    variance, error = block.variance
    most = variance + block.margin * error
    lost = np.asarray((error > 0) & (variance < block.margin * error))
    if lost.all():
        return np.zeros(block.width, dtype=bool)
    return np.asarray(lost & (most < FAR_BELOW * float(np.median(variance[~lost]))))


def _enough(values: Floats, error: float, margin: float, limit: float) -> Flags:
    """Which values surely exceed a limit; all of them if only their mean surely does."""
    each = np.asarray(values - margin * error > limit)
    if each.any():
        return each
    whole = float(values.mean()) - margin * error / math.sqrt(len(values)) > limit
    return np.full(len(values), whole)


def _codes(clip: Clip) -> Flags:
    """Ranges of counts (0 to 1, 0 to 2, 1 to 2), whose columns may well have two values only."""
    lower, upper = clip.range_centre - clip.scale, clip.range_centre + clip.scale
    whole = (lower == np.round(lower)) & (upper == np.round(upper))
    return np.asarray(whole & (lower >= 0) & (upper <= 2))


def _counted(clip: Clip) -> Flags:
    """Columns scaled as counts of alleles, or zeros and ones, of their mean."""
    found = np.zeros(clip.width, dtype=bool)
    for copies in (1, 2):
        f = np.clip(clip.centre / copies, 0.0, 1.0)
        kept = np.clip(f, RAREST, 1 - RAREST)
        inside = (clip.centre >= 0) & (clip.centre <= copies)
        found |= inside & np.isclose(clip.scale**2, copies * kept * (1 - kept), rtol=1e-6)
    return found


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"
