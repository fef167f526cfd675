"""The part of the page about variants one by one: Manhattan and QQ plots, and the strongest hits."""

from __future__ import annotations

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from primo.errors import InputError
from primo.released.marginal import summary_statistics
from primo.released.marginal_effects import MarginalEffects, SummaryStatistics
from primo.released.moments import ReleasedMoments
from primo.report.block_view import block_view, linked_blocks
from primo.report.manhattan import inflation, manhattan_chart, qq_chart
from primo.report.placing import place
from primo.report.prose import count, thousands
from primo.report.templating import render
from primo.variants import Variants

__all__ = ["HITS", "top_hits", "variants_section"]

HITS = 15  # in the table of an outcome
SHOWN = 3  # outcomes with plots
LOOKED = 50  # outcomes that are looked through for the strongest


def variants_section(
    release: ReleasedMoments,
    variants: Variants | None,
    *,
    slopes: NDArray[np.float64] | None = None,
    level: float = 0.95,
) -> Markup:
    """Show the marginal effects of all variants on the outcomes with the strongest ones.

    With `slopes` (d, l), the published ones in scaled units, and blocks of linked variants, it shows
    where along the genome the score varies, too.

    Empty where the release has no variants, or no marginal effects. Cost: O(variants) for each of at
    most `LOOKED` outcomes; what is on the page does not grow with the variants.
    """
    if variants is None or not len(variants):
        return Markup("")
    try:
        statistics = summary_statistics(release, variants)
    except InputError:
        try:
            statistics = summary_statistics(release, variants, covariates="ignore")
        except InputError:
            return Markup("")
    found = [statistics.outcome(j) for j in range(min(len(statistics.outcome_names), LOOKED))]
    peaks = [float(np.nan_to_num(each.neg_log10_p, nan=0.0).max()) for each in found]
    chosen = np.argsort(-np.array(peaks), kind="stable")[:SHOWN]
    axis = place(variants.names, variants)
    parts = None if slopes is None else linked_blocks(release, variants)
    shown = []
    for j in sorted(chosen.tolist()):
        effects, strength = found[j], found[j].neg_log10_p
        shown.append(
            {
                "name": effects.outcome,
                "manhattan": manhattan_chart(
                    strength, axis, variants.names, outcome=effects.outcome
                ),
                "qq": qq_chart(strength, outcome=effects.outcome),
                "inflation": f"{inflation(effects.z):.3f}",
                "hits": top_hits(statistics, effects, level=level),
                "blocks": None
                if parts is None or slopes is None
                else block_view(parts, slopes[:, j], variants, axis, outcome=effects.outcome),
            }
        )
    return render(
        "variants.html",
        words=_words(statistics, len(found)),
        level=f"{100 * level:g}\u202f%",
        shown=shown,
    )


def top_hits(
    statistics: SummaryStatistics,
    effects: MarginalEffects,
    *,
    level: float = 0.95,
    most: int = HITS,
) -> list[tuple[str, ...]]:
    """Return the strongest variants in words: name, place, alleles, effect, interval, p."""
    variants, strength = statistics.variants, effects.neg_log10_p
    low, high = effects.interval(level)
    order = np.argsort(-np.nan_to_num(strength, nan=-1.0), kind="stable")[:most]
    return [
        (
            variants.names[i],
            f"{variants.chromosome[i]}:{int(variants.position[i])}",
            f"{variants.counted[i]}/{variants.other[i]}",
            f"{effects.effect[i]:.3g}",
            f"{low[i]:.3g} to {high[i]:.3g}",
            f"{strength[i]:.1f}",
            _people(float(effects.effective_n[i])),
        )
        for i in order.tolist()
        if np.isfinite(strength[i])
    ]


def _people(effective: float) -> str:
    return thousands(round(effective)) if np.isfinite(effective) else "not determined"


def _words(statistics: SummaryStatistics, looked: int) -> str:
    hidden = int((~statistics.determined).sum())
    words = f"Effects of {count(len(statistics.variants), 'variant')} one at a time"
    if statistics.covariates:
        words += f", beside {', '.join(statistics.covariates)}"
    words += "; standard errors hold the privacy noise. "
    if hidden:
        words += (
            f"The noise hides how much {count(hidden, 'variant')} vary: they have no effect here. "
        )
    words += f"Shown are the outcomes with the strongest variants of {count(looked, 'outcome')}."
    return words
