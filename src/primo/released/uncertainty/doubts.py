"""Whether the bounds fitted the rows, as the release shows: what to doubt, and what to do next time.

A release holds, of every column in scaled units, the mean square and (with an intercept) the mean, both
with noise of a known scale. Nobody needs to look at a row to see a column that lies at the end of its
range, rows that are all as long as the norm allows, or a range a thousand times too wide. Every check
asks for more than the noise could have made: a false doubt appears with a probability below
`FALSE_ALARM` for each check, whatever the number of columns.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from primo.released.found_norms import found_norms
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.columns import (
    EDGE,
    FALSE_ALARM,
    Block,
    at_both_ends,
    at_one_end,
    feature_block,
    less_than_stated,
    lost_in_noise,
    near_an_end,
    outcome_block,
    shortened,
    two_values,
)

__all__ = ["FALSE_ALARM", "bound_doubts"]

Flags = NDArray[np.bool_]

NARROW = 0.05  # of the half-width: a standard deviation below it wastes the range
MANY = 0.05  # share of shortened rows that is worth a word
SHORT = 0.1  # of the norm: rows below it waste the norm
UNLIKE = 10.0  # times as large as a typical column: one norm for both wastes the smaller one
VAGUE = 0.5  # standard deviations of a column: the noise of its mean must not exceed it


def bound_doubts(release: ReleasedMoments) -> tuple[str, ...]:
    """Say which bounds do not fit the rows, each with what to do next time; none if all fit.

    Guarantee: post-processing; costs no privacy. Names of columns are public. Cost: O(d² + l).
    """
    said: list[str] = []
    for block in (feature_block(release), outcome_block(release)):
        if block is None:
            continue
        found = f"{block.word}s" in release.plan.counted
        stuck = at_one_end(block)
        if block.clip.box:
            centred = f"{block.word}s" in release.plan.centred
            said += _ranges(block, stuck, found=found, centred=centred)
        if not stuck.all():  # otherwise all other doubts follow from it
            said += _lengths(block, found=found) + _means(block)
        said += _units(block, found=found)
    said += _shortened_rows(release) + _genotypes(release)
    return tuple(f"{words[:1].upper()}{words[1:]}." for words in said)


def _shortened_rows(release: ReleasedMoments) -> list[str]:
    """Say what follows where a norm that was found shortens many rows, as released lengths tell."""
    if release.lengths is None:
        return []
    chosen = found_norms(release.plan, release.lengths)
    many = [
        f"{choice.shortened:.0%} of the rows of {block}"
        for block, choice in (("features", chosen.features), ("outcomes", chosen.outcomes))
        if block in release.plan.counted and choice.found and choice.shortened > MANY
    ]
    if not many:
        return []
    return [
        f"about {' and '.join(many)} are longer than the norm that was found, and were shortened: it is "
        "the norm of the best predictions. Slopes, R² and intervals are about the shortened rows; with "
        "heavy tails, those of whole rows can lie outside. Next time, to test single effects: state a "
        "norm that leaves nearly all rows whole, or a logarithm of what has heavy tails"
    ]


def _ranges(block: Block, stuck: Flags, *, found: bool, centred: bool) -> list[str]:
    """Check columns that are cut to a range: in scaled units they lie in [-1, 1].

    With a norm that was `found` noise does not grow with the range, only columns are weighed by it; and
    where centres were found, the middle of the range costs nothing.
    """
    said = []
    margin, edge = block.margin, near_an_end(block)
    variance, error = block.variance
    if block.mean is not None:
        offset, offset_error = block.offset
        on_average = offset - margin * offset_error > block.width * EDGE**2
        if stuck.any():
            said.append(
                f"nearly all values of {block.some(stuck)} lie next to or beyond one end of their "
                "range: they were cut, or the range is much too wide. If they were cut, predictions "
                "for rows that are not cut may be far off. Next time: check the unit and the coding "
                "(centimetres in a range of metres? cases and controls as 1 and 2 in a range of 0 to "
                "1?) and give a range near what is publicly known; for rare things give a centre and "
                "a scale from public knowledge"
            )
        if not centred and (edge.any() or (on_average and not stuck.any())):
            which = block.some(edge) if edge.any() else f"the {block.word}s, on average,"
            said.append(
                f"the mean of {which} lies near an end of the range (beyond {EDGE:g} of its "
                "half-width): the distance to the middle is paid for in noise. Next time: put the "
                "middle of the range near the mean that is publicly known, or give it as centre"
            )
    ends, signs = at_both_ends(block), two_values(block)
    if (ends & signs).any():
        said.append(
            f"all values of {block.some(ends & signs)} lie at the two ends of their range, as those of "
            "columns of two values do: they are taken for that. If they are not, they were cut to "
            "almost nothing, and coefficients and R² mean something else. Next time, if so: a range "
            "that holds most values"
        )
    if (ends & ~signs).any():
        said.append(
            f"nearly all values of {block.some(ends & ~signs)} lie at the two ends of their range. "
            "That is right for columns of two values; all others were cut to almost nothing and their "
            "coefficients mean something else. R² of rows that are not cut is not determined. Next "
            "time: a range that holds most values"
        )
    narrow = (variance + margin * error < NARROW**2) & ~stuck
    if narrow.any() and not (found and narrow.all()):
        why = "beside the others it drowns in noise" if found else "noise grows with the range"
        said.append(
            f"the range of {block.some(narrow)} reaches more than {1 / NARROW:g} standard deviations "
            f"to either side of its middle: {why}. Next time: a narrower range, in the right unit"
        )
    return said


def _lengths(block: Block, *, found: bool) -> list[str]:
    """Compare the length of rows with their norm, and their variation with the noise.

    `found` says that primo chose the norm, so that another one is no advice.
    """
    clip, margin, word = block.clip, block.margin, block.word
    length, error = block.length
    limit = clip.norm**2
    variance, variance_error = block.variance
    total_error = float(np.sqrt(np.sum(variance_error**2)))
    if total_error > 0 and float(variance.sum()) < margin * total_error:
        return [
            f"the variation of the {word}s as a whole cannot be told from noise. Signal may still be "
            "found, but R² is not determined. Either the bounds are much too wide (or in the wrong "
            "unit), or there are too few rows for this epsilon. Next time: bounds near what is "
            "publicly known of the columns; `primo plan` shows what they gain"
        ]
    said = []
    lost = lost_in_noise(block) & ~at_one_end(block)
    if word == "outcome" and lost.any():
        said.append(
            f"the variation of {block.some(lost)} cannot be told from noise. Signal may still be found, "
            "but R² is not determined, and predictions may be far off. Next time: a range near what "
            "is publicly known"
        )
    if shortened(block):
        said.append(
            f"nearly all rows of {word}s are as long as their norm of {clip.norm:.3g} allows: rows "
            "that are longer were shortened, by how much no release can tell, and coefficients "
            "are off by that factor. It is right where every row has this very length. Next time: "
            + (
                "centres nearer to the publicly known means (the norm was found: longer ones were "
                "predicted to do worse), more rows or a larger epsilon"
                if found
                else "a norm of about the root of Σ (sd² + (mean − middle)²)/half-width², from public "
                "knowledge"
            )
        )
    less = less_than_stated(block, errors=margin)
    if less.any() and not shortened(block):
        said.append(
            f"{block.some(less)} vary less than the scales of their bounds say: long rows held the "
            f"rest and were shortened to the norm of {clip.norm:.3g} (heavy tails), or the scales are "
            "larger than the standard deviations. R² of rows that are not shortened is not determined. "
            f"Next time: {'' if found else 'a longer norm, '}a logarithm or another transformation that "
            "shortens the tails, or scales that are standard deviations"
        )
    if length + margin * error < limit * SHORT**2:
        said.append(
            f"rows of {word}s are less than {SHORT:.0%} as long as their bounds allow: noise grows "
            "with the bounds. Next time: "
            + (
                "tighter ranges, so that lengths are told more finely"
                if found
                else "a norm of about the root of Σ (sd² + (mean − middle)²)/half-width², from public "
                'knowledge, or norm = "auto"'
            )
        )
    return said


def _means(block: Block) -> list[str]:
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
            "centres of their bounds, which is paid for in noise. Next time: centres near the means "
            "that are publicly known"
        )
    variance, error = block.variance
    most = float(variance.sum()) + margin * float(np.sqrt(np.sum(error**2)))
    if block.mean_error > VAGUE * math.sqrt(max(most, 0.0) / block.width):
        said.append(
            f"the noise of the means of the {word}s is larger than half of their standard deviation: "
            "intercepts are drawn to the centres. Next time: centres near the publicly "
            "known means, tighter bounds, more rows or a larger epsilon"
        )
    return said


def _units(block: Block, *, found: bool) -> list[str]:
    """Look for raw columns of very different size, for which one norm was found."""
    if not found or not block.clip.is_plain or block.clip.box or block.width < 2:
        return []
    squares = block.square
    typical = float(np.median(squares)) + block.margin * block.square_error
    if float(squares.max()) < UNLIKE**2 * typical:
        return []
    return [
        f"the values of {block.some(squares == squares.max())} are more than {UNLIKE:g} times as large "
        f"as those of a typical {block.word}: one norm was found for the whole row, and noise that "
        "fits the largest column drowns the others. Next time: a range, or a centre and a scale, for "
        f"every column ([{block.word}s.columns.NAME] in a bounds file)"
    ]


def _genotypes(release: ReleasedMoments) -> list[str]:
    """Recommend public allele frequencies where features have the range of allele counts."""
    plan = release.plan
    clip = plan.features
    if not clip.box or not plan.protection.features_private:
        return []
    copies = 2 if plan.rows_per_person == 1 else 1
    counts = np.asarray((clip.range_centre == copies / 2) & (clip.scale == copies / 2))
    if not counts.any():
        return []
    return [
        f"{int(counts.sum())} of {plan.d} features have the range 0 to {copies}. If they are "
        "genotypes, public allele frequencies (--frequencies, or Bounds.from_frequencies) centre "
        "and scale them: the same run then needs less noise for the same signal, and predicts "
        "better in every case that was tried"
    ]
