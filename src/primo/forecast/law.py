"""From bounds and a `Signal` to the means and standard deviations that a forecast works with.

Bounds are public knowledge about columns, and say more than how long a row may be. A centre and a scale
are a public mean and standard deviation; genotypes that lie in 0 to 2 have the mean 2f and the
variance 2f(1 − f) of an allele frequency f; for any
other range, constants are assumed (`RANGE_SD`, `RANGE_OFFSET`). Every assumption is stated in words, so
that the user can replace it by a stated number.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.forecast.assumptions import Signal
from primo.planning.plan import Plan
from primo.privacy.bounds import Clip

__all__ = ["Block", "Law", "law_of"]

Floats = NDArray[np.float64]

#: A range about which nothing else is known reaches three standard deviations to either side of its
#: middle; the mean lies this many standard deviations off the middle, on one side or the other.
RANGE_SD, RANGE_OFFSET = 1 / 3, 3 / 4

#: Frequencies of alleles about which nothing is known: evenly spread between these.
RAREST, COMMONEST = 0.05, 0.5

_OFFSET = "means three quarters of a standard deviation off the middle of their ranges"

_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True, kw_only=True, eq=False)
class Block:
    """What the columns of one block are assumed to be like, in scaled units."""

    mean: Floats  # (width,)
    sd: Floats  # (width,)
    norm: float  # longer rows are shortened; infinite where the ranges already keep rows inside it
    cut: bool  # whether values must lie beyond ±1, and are moved to the end of their range
    share: float  # mean squared length of a row over the squared bound, before shortening
    genotypes: NDArray[np.bool_]  # (width,) columns taken for genotypes without public frequencies
    ranges: NDArray[np.bool_]  # (width,) columns of which nothing but a range is known
    words: str  # what was assumed, and why
    limit: float = 1.0  # where values are cut: the half-width of a range

    @property
    def length(self) -> float:
        """Root mean squared length of a row before shortening."""
        return math.sqrt(float(self.mean @ self.mean + self.sd @ self.sd))

    @property
    def key(self) -> tuple[object, ...]:
        """All that simulated rows depend on, as something to look them up by."""
        arrays = (self.mean, self.sd, self.genotypes, self.ranges)
        return (*(array.tobytes() for array in arrays), self.norm, self.limit, self.cut, self.share)


@dataclass(frozen=True, kw_only=True, eq=False)
class Law:
    """What a forecast assumes of data nobody has looked at."""

    features: Block
    outcomes: Block
    signal: Signal

    @property
    def words(self) -> tuple[str, ...]:
        """All assumptions as sentences."""
        d = len(self.features.mean)
        explained = f"the features explain {self.signal.r2:.0%} of each outcome's variance"
        if d > 1:
            rank = max(1, round(self.signal.rank(d)))
            explained += f", and vary in about {rank} of {d} directions"
            explained += "; " + _alignment(self.signal.alignment)
        return (explained, self.features.words, self.outcomes.words)

    def spreads(self) -> Signal:
        """Return the signal with the shares of the squared bounds that follow from this law."""
        return dataclasses.replace(
            self.signal,
            feature_mean=None,
            feature_sd=None,
            outcome_mean=None,
            outcome_sd=None,
            feature_spread=min(1.0, self.features.share),
            outcome_spread=min(1.0, self.outcomes.share),
        )

    def stated(self, plan: Plan) -> Signal:
        """Return a signal that states this law in the data's own units, whatever the bounds are."""
        x, y = plan.features, plan.outcomes
        return dataclasses.replace(
            self.signal,
            feature_mean=_compact(x.centre + x.scale * self.features.mean),
            feature_sd=_compact(x.scale * self.features.sd),
            outcome_mean=_compact(y.centre + y.scale * self.outcomes.mean),
            outcome_sd=_compact(y.scale * self.outcomes.sd),
            feature_spread=None,
            outcome_spread=None,
        )


def _compact(numbers: Floats) -> float | tuple[float, ...]:
    """Return one number where all are the same: a million of them take a second to pass on."""
    first = float(numbers[0])
    return first if bool((numbers == first).all()) else tuple(numbers.tolist())


def _alignment(alignment: float | None) -> str:
    """Say which directions are assumed to carry the signal."""
    even = "a signal that prefers no direction, with effects alike per standard deviation"
    leading = "one along the directions in which the features vary most"
    if alignment is None:
        return f"the forecast is the mean for {even}, and for {leading}"
    return f"the signal is between {even} (0), and {leading} (1), at {alignment:g}"


def law_of(plan: Plan, signal: Signal) -> Law:
    """Return what is assumed of the rows of a release. Reads nothing but the plan."""
    features = _block(
        plan.features,
        "feature",
        mean=signal.feature_mean,
        sd=signal.feature_sd,
        spread=signal.feature_spread,
        share=signal.feature_share(),
        found="features" in plan.counted,
        columns_found=plan.column_search is not None and plan.column_search.features,
    )
    outcomes = _block(
        plan.outcomes,
        "outcome",
        mean=signal.outcome_mean,
        sd=signal.outcome_sd,
        spread=signal.outcome_spread,
        share=signal.outcome_share(plan.l),
        found="outcomes" in plan.counted,
        columns_found=plan.column_search is not None and plan.column_search.outcomes,
    )
    return Law(features=features, outcomes=outcomes, signal=signal)


def knows_outcome_units(plan: Plan, signal: Signal) -> bool:
    """Whether a forecast says how far outcomes spread in their own units.

    It does not where their norm is found and nothing is stated of them: it is then in units of what will
    be found.
    """
    clip = plan.outcomes
    found = "outcomes" in plan.counted and clip.is_plain and not clip.box
    return not found or signal.outcome_sd is not None


def _block(
    clip: Clip,
    block: str,
    *,
    mean: float | tuple[float, ...] | None,
    sd: float | tuple[float, ...] | None,
    spread: float | None,
    share: float,
    found: bool,
    columns_found: bool,
) -> Block:
    """Return the law of one block: what is stated of it, else what its bounds say.

    `spread` is the stated share of the squared bound, `share` the one to take if only a norm is known.
    A norm that is `found` from the rows shortens none before it is known.
    """
    known = _from_bounds(clip, block, share)
    if found:
        words = _found_words(clip, block, known.words, columns=columns_found)
        known = dataclasses.replace(known, norm=math.inf, words=words)
    means, deviations, words = known.mean, known.sd, known.words
    if spread is not None:
        factor = math.sqrt(spread) * clip.norm / known.length
        means, deviations = factor * means, factor * deviations
        words = f"a row of {block}s has {spread:.0%} of the squared length that its bound allows"
    if mean is not None:
        means = (_columns(mean, clip, f"{block}_mean") - clip.centre) / clip.scale
    if sd is not None:
        deviations = _columns(sd, clip, f"{block}_sd") / clip.scale
        if mean is None:  # the offset of a range is in standard deviations
            means = np.where(known.ranges, means * (deviations / known.sd), means)
    if mean is not None or sd is not None:
        stated = " and ".join(
            ["means"] * (mean is not None) + ["standard deviations"] * (sd is not None)
        )
        words = f"{stated} of the {block}s are as stated"
        if mean is None:
            words += ", " + (_OFFSET if known.ranges.any() else "means as their bounds say")
        elif sd is None:
            words += ", standard deviations as their bounds say"
    squares = means**2 + deviations**2
    share_found = float(squares.sum()) / clip.norm**2
    # No law within ±1 of the middle has a larger mean square about it than 1.
    placed = (means - (0.0 if clip.middle is None else clip.middle)) ** 2 + deviations**2
    cut = clip.box and bool((placed > 1 + 1e-9).any())
    if cut:
        words += " (more than their ranges hold: values are cut)"
    elif share_found > 1 and math.isfinite(known.norm):
        longer = math.sqrt(share_found)
        words += f" (a usual row is {longer:.2g} times as long as its bound, and shortened)"
    return dataclasses.replace(
        known, mean=means, sd=deviations, cut=cut, share=share_found, words=words
    )


def _found_words(clip: Clip, block: str, known: str, *, columns: bool) -> str:
    """Say what is assumed of a block whose norm is found."""
    words = f"the norm of the {block}s is found from the rows"
    if columns:
        return f"{words}, and so are the centre and the scale of every column"
    if clip.is_plain and not clip.box:
        return f"{words}; their columns are centred and in comparable units"
    return f"{known}; {words}"


def _from_bounds(clip: Clip, block: str, share: float) -> Block:
    """Return what the bounds alone say of a block."""
    width = clip.width
    zero, one = np.zeros(width), np.ones(width)
    none = np.zeros(width, dtype=bool)
    if not clip.box:
        if clip.is_plain:
            mean, sd = zero, one * math.sqrt(share / width) * clip.norm
            words = (
                f"the {block}s are centred, and a row has {share:.0%} of the squared length that its "
                "bound allows"
            )
        else:
            mean, sd = zero, one
            words = (
                f"the {block}s have the centres and scales of their bounds as means and standard "
                "deviations"
            )
        return _made(clip, mean, sd, norm=clip.norm, genotypes=none, ranges=none, words=words)
    bounded = clip.norm < math.sqrt(width) * (1 - 1e-9)
    norm = clip.norm if bounded else math.inf
    genotypes = (clip.centre == 1) & (clip.scale == 1) & (block == "feature")
    binary = (clip.centre == 0.5) & (clip.scale == 0.5)
    ranges = ~(genotypes | binary)
    even = np.mod(0.5 + _GOLDEN * np.arange(width), 1.0)  # every part of the sequence is even
    f = RAREST + (COMMONEST - RAREST) * even
    offset = np.where(even < 0.5, -RANGE_OFFSET, RANGE_OFFSET) * RANGE_SD
    mean = np.where(ranges, offset, 2 * f - 1)
    sd = np.where(genotypes, np.sqrt(2 * f * (1 - f)), 2 * np.sqrt(f * (1 - f)))
    sd = np.where(ranges, RANGE_SD, sd)
    if bounded and ranges.all():
        factor = math.sqrt(share / float(mean @ mean + sd @ sd)) * clip.norm
        words = (
            f"the norm of the {block}s fits: a row has {share:.0%} of the squared length that it "
            f"allows, {_OFFSET}"
        )
        return _made(
            clip,
            factor * mean,
            factor * sd,
            norm=norm,
            genotypes=genotypes,
            ranges=ranges,
            words=words,
        )
    said = []
    if genotypes.any():
        said.append(
            f"the {block}s that lie in 0 to 2 are genotypes, of allele frequencies spread evenly over "
            f"{RAREST:g} to {COMMONEST:g}"
        )
    if binary.any():
        said.append(
            f"{block}s that lie in 0 to 1 are 0 or 1, with a share of ones spread over {RAREST:g} to "
            f"{COMMONEST:g}"
        )
    if ranges.any():
        said.append(
            f"standard deviations of the {'other ' * bool(said)}{block}s are a third of the half-width "
            f"of their ranges, {_OFFSET}"
        )
    return _made(
        clip, mean, sd, norm=norm, genotypes=genotypes, ranges=ranges, words="; ".join(said)
    )


def _made(
    clip: Clip,
    mean: Floats,
    sd: Floats,
    *,
    norm: float,
    genotypes: NDArray[np.bool_],
    ranges: NDArray[np.bool_],
    words: str,
) -> Block:
    square = float(mean @ mean + sd @ sd)
    return Block(
        mean=mean,
        sd=sd,
        norm=norm,
        cut=False,
        share=square / clip.norm**2,
        genotypes=genotypes,
        ranges=ranges,
        words=words,
    )


def _columns(value: float | tuple[float, ...], clip: Clip, name: str) -> Floats:
    """Return one number per column."""
    numbers = np.asarray(value, dtype=np.float64)
    if numbers.ndim and len(numbers) != clip.width:
        raise InputError(
            Argument(f"signal.{name}"),
            f" has {len(numbers)} values for {clip.width} columns",
            remedy="give one number for all, or one per column",
        )
    return np.asarray(np.broadcast_to(numbers, (clip.width,)), dtype=np.float64)
