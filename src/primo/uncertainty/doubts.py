"""Whether the bounds fitted the rows, read off the release: what to doubt, and what to do next time.

A release holds, of every column in scaled units, the mean square and (with an intercept) the mean, both
with noise of a known scale. Nobody needs to look at a row to see a column that lies at the end of its
range, rows that are all as long as the norm allows, or a range a thousand times too wide. Every check
asks for more than the noise could have made: a doubt that is not true appears with a probability
below `FALSE_ALARM` for each check, whatever the number of columns.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from primo.bounds import Clip
from primo.plans import CovarianceOrigin
from primo.release import Release

__all__ = ["FALSE_ALARM", "bound_doubts"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

FALSE_ALARM = 1e-7  # of each check, over all columns of a block
STUCK = 0.93  # of the half-width: a mean beyond it has nearly all values at that end, or next to it
EDGE = 0.8  # of the half-width: a mean beyond it is near the end of its range
BOTH_ENDS = 0.9  # of the largest mean square: nearly all values lie at the two ends
NARROW = 0.05  # of the half-width: a standard deviation below it wastes the range
SHORT = 0.1  # of the norm: rows below it waste the norm
VAGUE = 0.5  # standard deviations of the columns, that the noise of their means must not exceed
EXAMPLES = 3


def bound_doubts(release: Release) -> tuple[str, ...]:
    """Say which bounds do not fit the rows, each with what to do next time; none if all fit.

    Guarantee: post-processing; costs no privacy. Names of columns are public. Cost: O(d² + l).
    """
    said: list[str] = []
    for block in (_features(release), _outcomes(release)):
        if block is None:
            continue
        stuck = _stuck(block)
        said += _ranges(block, stuck) if block.clip.box else []
        if not stuck.all():  # all else follows from that
            said += _lengths(block) + _means(block)
    said += _genotypes(release)
    return tuple(f"{words[:1].upper()}{words[1:]}." for words in said)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Block:
    """What a release says of the columns of one block, in scaled units, (width,) each."""

    word: str  # "feature" or "outcome"
    names: tuple[str, ...]
    clip: Clip
    square: Floats  # mean squares
    square_error: float
    mean: Floats | None  # None without an intercept
    mean_error: float
    spread_out: float  # effective number of columns that make up a row's length

    @property
    def width(self) -> int:
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


def _features(release: Release) -> _Block | None:
    plan = release.plan
    if plan.covariance_origin in (CovarianceOrigin.ROW_SPACE, CovarianceOrigin.REFERENCE):
        return None  # not the moments of these rows
    d, n = plan.d, plan.n
    moments = release.covariance[:d, :d]
    sigma = plan.covariance_sigma
    off = sigma / math.sqrt(1 + plan.triangle_bits)
    mass = n * plan.constant
    total = float(np.trace(moments))
    together = float(np.sum(moments**2)) - sigma**2 * d - off**2 * d * (d - 1)
    return _Block(
        word="feature",
        names=release.feature_names,
        clip=plan.features,
        square=np.diagonal(moments) / n,
        square_error=sigma / n,
        mean=release.covariance[:d, -1] / mass if plan.intercept else None,
        mean_error=off / mass if plan.intercept else 0.0,
        spread_out=_effective(total, together, d),
    )


def _outcomes(release: Release) -> _Block:
    plan = release.plan
    n, mass = plan.n, plan.n * plan.constant
    moments = release.outcome_moments
    diagonal = np.diagonal(moments) if moments.ndim == 2 else moments
    private = plan.protection.outcomes_private
    sigma = plan.outcome_sigma
    squares = float(np.sum(diagonal**2)) - plan.l * sigma**2
    if moments.ndim == 2:
        squares = float(np.sum(moments**2)) - sigma**2 * plan.l * (plan.l + 1) / 2
    return _Block(
        word="outcome",
        names=release.outcome_names,
        clip=plan.outcomes,
        square=diagonal / n,
        square_error=sigma / n,
        mean=release.association[-1] / mass if plan.intercept else None,
        mean_error=plan.association_sigma / mass if plan.intercept and private else 0.0,
        spread_out=_effective(float(diagonal.sum()), squares, plan.l),
    )


def _effective(total: float, squares: float, width: int) -> float:
    """(Σλ)²/Σλ² of a covariance: 1 if rows lie along a line, the width if they lie all around."""
    if total <= 0 or squares <= 0:
        return float(width)
    return min(max(total**2 / squares, 1.0), float(width))


def _stuck(block: _Block) -> Flags:
    """Which columns have nearly all of their values at one end of their range."""
    if block.mean is None or not block.clip.box:
        return np.zeros(block.width, dtype=bool)
    return np.asarray(np.abs(block.mean) - block.margin * block.mean_error > STUCK)


def _ranges(block: _Block, stuck: Flags) -> list[str]:
    """Check columns that are cut to a range: in scaled units they lie in [-1, 1]."""
    said = []
    margin, edge = block.margin, np.zeros(block.width, dtype=bool)
    variance, error = block.variance
    if block.mean is not None:
        edge = (np.abs(block.mean) - margin * block.mean_error > EDGE) & ~stuck
        offset, offset_error = block.offset
        on_average = offset - margin * offset_error > block.width * EDGE**2
        if stuck.any():
            said.append(
                f"nearly all values of {block.some(stuck)} lie next to or beyond one end of their "
                "range. Next time: check the unit and the coding (centimetres in a range of "
                "metres? cases and controls as 1 and 2 in a range of 0 to 1?); for rare things "
                "give a centre and a scale from public knowledge"
            )
        if edge.any() or (on_average and not stuck.any()):
            which = block.some(edge) if edge.any() else f"the {block.word}s, on average,"
            said.append(
                f"the mean of {which} lies near an end of the range (beyond {EDGE:g} of its "
                "half-width): the distance to the middle is paid for in noise. Next time: put the "
                "middle of the range near the mean that is publicly known, or give it as centre"
            )
    ends = _enough(block.square, block.square_error, margin, BOTH_ENDS) & ~stuck & ~edge
    ends &= ~_codes(block.clip)
    if ends.any():
        said.append(
            f"nearly all values of {block.some(ends)} lie at the two ends of their range. That is "
            "right for columns of two values; all others were cut to almost nothing and their "
            "coefficients mean something else. Next time: a range that holds most values"
        )
    narrow = (variance + margin * error < NARROW**2) & ~stuck
    if narrow.any():
        said.append(
            f"the range of {block.some(narrow)} reaches more than {1 / NARROW:g} standard deviations "
            "to either side of its middle: noise grows with the range. Next time: a narrower range, "
            "in the right unit"
        )
    return said


def _enough(values: Floats, error: float, margin: float, limit: float) -> Flags:
    """Which values surely exceed a limit; all of them if only their mean surely does."""
    each = np.asarray(values - margin * error > limit)
    if each.any():
        return each
    whole = float(values.mean()) - margin * error / math.sqrt(len(values)) > limit
    return np.full(len(values), whole)


def _codes(clip: Clip) -> Flags:
    """Ranges of counts (0 to 1, 0 to 2, 1 to 2), whose columns may well have two values only."""
    lower, upper = clip.centre - clip.scale, clip.centre + clip.scale
    whole = (lower == np.round(lower)) & (upper == np.round(upper))
    return np.asarray(whole & (lower >= 0) & (upper <= 2))


def _lengths(block: _Block) -> list[str]:
    """Compare the length of rows with their norm, and their variation with the noise."""
    clip, margin, word = block.clip, block.margin, block.word
    length, error = block.length
    limit = clip.norm**2
    variance, variance_error = block.variance
    told = float(np.sqrt(np.sum(variance_error**2)))
    if told > 0 and float(variance.sum()) < margin * told:
        return [
            f"the variation of the {word}s as a whole cannot be told from noise. Either the bounds "
            "are much too wide (or in the wrong unit), or there are too few rows for this "
            "epsilon. Next time: bounds near what is publicly known of the columns; `primo plan` "
            "shows what they bring"
        ]
    said = []
    does_nothing = clip.box and clip.norm >= math.sqrt(clip.width) * (1 - 1e-9)
    if not does_nothing and length - margin * error > limit * (
        1 - 0.1 / math.sqrt(block.spread_out)
    ):
        said.append(
            f"nearly all rows of {word}s are as long as their norm of {clip.norm:.3g} allows: rows "
            "that are longer were shortened, by how much no release can tell, and coefficients "
            "are off by that factor. It is right where every row has this very length. Next time: "
            "a norm of about the root of Σ (sd² + (mean − middle)²)/half-width², from public "
            "knowledge"
        )
    if length + margin * error < limit * SHORT**2:
        said.append(
            f"rows of {word}s are less than {SHORT:.0%} as long as their bounds allow: noise grows "
            "with the bounds. Next time: a norm of about the root of Σ (sd² + (mean − "
            "middle)²)/half-width², from public knowledge"
        )
    return said


def _means(block: _Block) -> list[str]:
    """Look for means that lie far off, and for means that the noise hides."""
    if block.mean is None:
        return []
    said = []
    margin, word = block.margin, block.word
    length, length_error = block.length
    offset, offset_error = block.offset
    if not block.clip.box and offset - margin * offset_error > EDGE**2 * (
        length + margin * length_error
    ):
        said.append(
            f"most of the length of the rows of {word}s is the distance of their means from the "
            "public centres, which is paid for in noise. Next time: centres near the means that "
            "are publicly known"
        )
    variance, error = block.variance
    most = float(variance.sum()) + margin * float(np.sqrt(np.sum(error**2)))
    if block.mean_error > VAGUE * math.sqrt(max(most, 0.0) / block.width):
        said.append(
            f"the noise of the means of the {word}s is larger than half of their standard deviation: "
            "intercepts are drawn to the public centres. Next time: centres near the publicly "
            "known means, tighter bounds, more rows or a larger epsilon"
        )
    return said


def _genotypes(release: Release) -> list[str]:
    """Recommend public allele frequencies where features have the range of allele counts."""
    plan = release.plan
    clip = plan.features
    if not clip.box or not plan.protection.features_private:
        return []
    copies = 2 if plan.rows_per_person == 1 else 1
    counts = np.asarray((clip.centre == copies / 2) & (clip.scale == copies / 2))
    if not counts.any():
        return []
    return [
        f"{int(counts.sum())} of {plan.d} features have the range 0 to {copies}. If they are "
        "genotypes, public allele frequencies (--frequencies, or Bounds.from_frequencies) centre "
        "and scale them: the same run then needs less noise for the same signal, and predicts "
        "better in every case that was tried"
    ]


def _short(name: str) -> str:
    return name if len(name) <= 40 else name[:39] + "…"
