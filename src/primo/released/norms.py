"""Norms chosen from noisy histograms of row lengths: post-processing, costs no privacy.

Noise is proportional to the norms b_x and b_y, and rows longer than them are shortened, which biases.
Let r be the length of a row of features, q that of a row of outcomes, and write E for means over rows.
Shortening multiplies slopes, for rows without a preferred direction, by F = F_x·F_y with

    F_x = E[r·min(r, b_x)] / E[min(r, b_x)²]  ≥ 1,
    F_y = P(q ≤ b_y) + (1 − 1/k)·E[b_y/q; q > b_y]  ≤ 1,   where long outcomes tell no more than others,
    F_y = E[q·min(q, b_y)] / E[q²]  ≤ 1,                   where they tell as much as they are long,

with k directions of outcomes, as many as their lengths speak for (l even ones; any number where all
rows are as long, and shortening them changes their unit alone). For normal rows the two F_y are the same
number; for others their logarithms are averaged, with a share of `TELLING` for the second. Long rows of
features often have directions of their own, in which slopes become longer still: F_x counts with a power
of `DIRECTED`. Most of what is lost is what a slope that is F times too long costs, so the two norms are
matched: a shorter b_x goes with a shorter b_y. The predicted error is that, plus the noise, plus what is
lost with the lengths themselves: rows that lie far off their public centre differ in length by what they
tell, so a norm below all of them takes that away. Every term is an average over the histogram.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.privacy.lengths import BINS_PER_OCTAVE, edges
from primo.released.length_law import LengthLaw, denoised

__all__ = ["BlockChoice", "ChosenNorms", "LengthHistogram", "NormOption", "choose_norms"]

Floats = NDArray[np.float64]

# Tuned on the cells that benchmarks/norms_cells.py marks so; the result hardly depends on any of them.
EXPLAINED = 0.5  # share of the outcomes' variance that the features are taken to explain
NOISE = 2.0  # times the noise of even directions: slopes are loud where features vary little
DIRECTED = 1.3  # power of the features' factor: their long rows have directions of their own
TELLING = 0.3  # share of outcomes that tell as much as they are long
OUTCOMES_BENT = 0.2  # what shortening outcomes costs beyond its factor: their long rows tell more
OFF_CENTRE = 0.1  # least share of a row's squared length that is taken to be its mean
RADIAL = 0.2  # share of the signal that lies along the mean of rows far off their centre
FAR_OFF = 0.9  # largest such share that is believed
OWN_SCALES = 0.65  # how far lengths that vary are put down to rows with scales of their own
USUAL = 3.0  # times the median: longer rows do not count in how much lengths vary
RARE = 0.03  # share of the rows, the longest ones, that tell nothing by their lengths
LOOSER = (0.5, 0.7, 1.0, 1.4, 2.0)  # multiples of the chosen norms in the table for the report
SHORT_ROWS = 0.02  # share of rows that no norm is shorter than


@dataclass(frozen=True, kw_only=True, eq=False)
class LengthHistogram:
    """Noisy counts of row lengths over the grid of `primo.privacy.lengths`, in scaled units."""

    counts: Floats  # (BINS,)
    sigma: float  # standard deviation of the noise on each count


@dataclass(frozen=True, kw_only=True)
class BlockChoice:
    """The norm of one block, and what it does to the rows."""

    norm: float
    found: bool  # whether the histogram chose it; otherwise it is the stated one
    shortened: float  # estimated share of rows that are shortened; 0 where nothing is known
    factor: float  # what it is taken to multiply slopes by; 1 where nothing is known
    mean_factor: float  # what it multiplies the mean of the block by; 1 where nothing is known


@dataclass(frozen=True, kw_only=True)
class NormOption:
    """A pair of norms that could have been chosen, and the error that is predicted with it."""

    feature_norm: float
    outcome_norm: float
    feature_shortened: float
    outcome_shortened: float
    lost: float  # predicted share of the outcomes' variance lost to noise and shortening


@dataclass(frozen=True, kw_only=True)
class ChosenNorms:
    """What `choose_norms` found."""

    features: BlockChoice
    outcomes: BlockChoice
    options: tuple[NormOption, ...]  # tighter to looser; the chosen pair is among them

    @property
    def used(self) -> int:
        """Place of the chosen pair among the options."""
        pairs = [(option.feature_norm, option.outcome_norm) for option in self.options]
        return pairs.index((self.features.norm, self.outcomes.norm))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Block:
    """Averages over the lengths of one block, for each norm that is considered, (norms,)."""

    norms: Floats
    found: bool
    shortened: Floats  # share of rows longer than the norm
    factor: Floats  # of slopes
    mean_factor: Floats  # E[min(r, b)] / E[r]
    square: float  # E[r²]
    squares: Floats  # E[min(r, b)²]
    flattened: Floats  # share of the variance of r that min(r, b) does not tell
    directions: float  # in which rows are taken to vary
    off_centre: float  # share of E[r²] that is taken to be the squared length of the mean

    def at(self, i: int) -> BlockChoice:
        return BlockChoice(
            norm=float(self.norms[i]),
            found=self.found,
            shortened=float(self.shortened[i]),
            factor=float(self.factor[i]),
            mean_factor=float(self.mean_factor[i]),
        )


def choose_norms(
    *,
    features: LengthHistogram | None,
    outcomes: LengthHistogram | None,
    feature_norm: float,
    outcome_norm: float,
    n: int,
    d: int,
    l: int,
    covariance_scale: float,
    association_scale: float,
    outcome_scale: float,
    intercept: bool,
    centred: tuple[str, ...] = (),
) -> ChosenNorms:
    """Choose the norms of least predicted error.

    Parameters
    ----------
    features, outcomes
        Noisy histograms; None for a block that is public or has a stated norm.
    feature_norm, outcome_norm
        The stated norm: kept where there is no histogram, and where it says nothing. A histogram's
        choice is not limited by it.
    n, d, l
        Rows, features, outcomes.
    covariance_scale, association_scale, outcome_scale
        Noise of the main release for norms of 1: σ₁ = c₁·b_x², σ₂ = c₂·b_x·b_y, σ₃ = c₃·b_y². The
        last one does not enter the predicted error: slopes hardly depend on YᵀY.
    intercept
        Whether the release has a constant feature.
    centred
        Blocks whose lengths were counted about means that were found before, so that rows do not lie
        far off their centre.

    Notes
    -----
    Guarantee: post-processing; costs no privacy. Deterministic. Cost: about a millisecond.
    """
    x = _block(
        features,
        n=n,
        columns=d,
        stated=feature_norm,
        features=True,
        centred="features" in centred,
    )
    y = _block(
        outcomes,
        n=n,
        columns=l,
        stated=outcome_norm,
        features=False,
        centred="outcomes" in centred,
    )
    lost = _predicted(
        x, y, n=n, d=d, l=l, c1=covariance_scale, c2=association_scale, intercept=intercept
    )
    i, j = np.unravel_index(int(np.argmin(lost)), lost.shape)
    return ChosenNorms(
        features=x.at(int(i)),
        outcomes=y.at(int(j)),
        options=_options(x, y, lost, int(i), int(j)),
    )


def _block(
    histogram: LengthHistogram | None,
    *,
    n: int,
    columns: int,
    stated: float,
    features: bool,
    centred: bool,
) -> _Block:
    """Average over the lengths of a block, for every norm between its short and its longest rows."""
    law = None
    if histogram is not None:
        # Long outcomes carry much of the signal of numbers of visits and costs.
        law = denoised(histogram.counts, sigma=histogram.sigma, n=n, long_tail=not features)
    if law is None:
        return _unknown(stated, columns)
    r = law.lengths
    zeros = float(law.shares[r == 0].sum())
    low, high = law.quantile(zeros + SHORT_ROWS * (1 - zeros)), law.longest
    norms = edges()
    norms = norms[(norms >= min(low, high / 2)) & (norms <= 2 ** (1.01 / BINS_PER_OCTAVE) * high)]
    short = np.minimum(r, norms[:, None])
    square = float(law.mean(r**2))
    squares = law.mean(short**2)
    mean, means = float(law.mean(r)), law.mean(short)
    longer = r > norms[:, None]
    shortened = law.mean(longer.astype(float))
    spoken_for = max(1.0, 2 / max(_varies(law), 1e-9))  # any number where lengths are constant
    # Lengths vary where directions are few, and where rows have scales of their own: a part of each.
    directions = min(float(columns), spoken_for) ** (1 - OWN_SCALES) * columns**OWN_SCALES
    if features:
        factor = (law.mean(r * short) / squares) ** DIRECTED
    else:
        across = 1 - 1 / spoken_for  # share of the directions at right angles to a row
        slope = np.where(longer, across * short / np.maximum(r, 1e-300), 1.0)
        factor = law.mean(slope) ** (1 - TELLING) * (law.mean(r * short) / square) ** TELLING
    return _Block(
        norms=norms,
        found=True,
        shortened=shortened,
        factor=factor,
        mean_factor=means / mean,
        square=square,
        squares=squares,
        flattened=np.where(shortened > RARE, _flattened(law, short), 0.0),
        directions=directions,
        off_centre=OFF_CENTRE if centred else _off_centre(law, columns),
    )


def _unknown(norm: float, columns: int) -> _Block:
    """Return a block of which only the stated norm is known: rows of half its length."""
    one, zero = np.ones(1), np.zeros(1)
    square = (norm / 2) ** 2
    return _Block(
        norms=np.array([norm]),
        found=False,
        shortened=zero,
        factor=one,
        mean_factor=one,
        square=square,
        squares=square * one,
        flattened=zero,
        directions=float(columns),
        off_centre=OFF_CENTRE,
    )


def _flattened(law: LengthLaw, short: Floats) -> Floats:
    """Share of the variance of lengths that shortened lengths (norms, points) do not tell.

    The few longest rows do not count: a thin tail, which may be noise, would be most of the variance.
    """
    most = law.quantile(1 - RARE)
    r, short = np.minimum(law.lengths, most), np.minimum(short, most)
    own = r - law.mean(r)
    cut = short - law.mean(short)[:, None]
    spread = float(law.mean(own**2)) + (r[-1] / BINS_PER_OCTAVE / 4) ** 2
    spreads = law.mean(cut**2)
    told = law.mean(cut * own) ** 2
    kept = np.divide(told, spread * spreads, out=np.zeros_like(told), where=spreads > 0)
    return np.asarray(1 - kept)


def _off_centre(law: LengthLaw, columns: int) -> float:
    """Share of the mean squared length that the squared length of the mean is taken to have.

    For rows that spread evenly over k columns about a mean with a share ω of E[r²], the squared lengths
    have the variance 2(1 − ω²)/k in units of E[r²]². Rows that vary more than that may lie anywhere.
    """
    return max(OFF_CENTRE, math.sqrt(max(0.0, 1 - columns * _varies(law) / 2)))


def _varies(law: LengthLaw) -> float:
    """Variance of the squared lengths in units of their squared mean: 2/k for k even directions."""
    squares = np.minimum(law.lengths, USUAL * law.quantile(0.5)) ** 2
    mean = float(law.mean(squares))
    return float(law.mean((squares / mean - 1) ** 2)) if mean > 0 else 2.0


def _predicted(
    x: _Block, y: _Block, *, n: int, d: int, l: int, c1: float, c2: float, intercept: bool
) -> Floats:
    """Share of the outcomes' variance lost with every pair of norms, (norms of x, norms of y)."""
    bx, by = x.norms[:, None], y.norms[None, :]
    factor = x.factor[:, None] * y.factor[None, :]
    variation = y.square / l  # of one outcome
    k = x.directions
    gain = k / (n * x.squares[:, None])  # from the association to slopes
    noise = x.square * (c2 * bx * by * gain) ** 2 / variation
    noise = noise + EXPLAINED * k * (c1 * bx**2 * gain) ** 2 / 2
    noise = NOISE * noise
    lost = EXPLAINED * (noise / (noise + EXPLAINED) + (1 - factor) ** 2)
    lost = lost + EXPLAINED * OUTCOMES_BENT * ((1 - y.mean_factor) ** 2)[None, :]
    lost = lost + EXPLAINED * _radial(d) * (x.off_centre**2 * x.flattened)[:, None]
    if intercept:
        offset = y.off_centre / (1 - min(y.off_centre, FAR_OFF))
        lost = lost + (offset * (1 - y.mean_factor) ** 2)[None, :]
    return np.asarray(lost)


def _radial(columns: int) -> float:
    """Share of what there is to learn that lies along the mean of a row."""
    return max(RADIAL, 1 / columns)


def _options(x: _Block, y: _Block, lost: Floats, i: int, j: int) -> tuple[NormOption, ...]:
    """Return the chosen pair and pairs that are tighter and looser by the same multiple."""
    found = {}
    for multiple in LOOSER:
        a = int(np.argmin(np.abs(np.log(x.norms / (multiple * x.norms[i])))))
        b = int(np.argmin(np.abs(np.log(y.norms / (multiple * y.norms[j])))))
        found[a, b] = NormOption(
            feature_norm=float(x.norms[a]),
            outcome_norm=float(y.norms[b]),
            feature_shortened=float(x.shortened[a]),
            outcome_shortened=float(y.shortened[b]),
            lost=float(lost[a, b]),
        )
    return tuple(found[pair] for pair in sorted(found))
