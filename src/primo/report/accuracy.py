"""How good the regressions are: the card at the top of the page, and the words above the table."""

from __future__ import annotations

import math

import numpy as np

from primo.forecast.forecast import Prediction
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.fit import NOT_DETERMINED, GoodnessOfFit
from primo.released.uncertainty.words import r2_words
from primo.report.contents import Findings
from primo.report.figures import histogram_chart
from primo.report.outlook import Outlook
from primo.report.prose import count, paragraph, table, text, thousands

__all__ = ["accuracy_card", "accuracy_words", "plus_minus"]

FEW = 20  # outcomes, below which a histogram says less than the table


def accuracy_card(found: Findings | None) -> tuple[str, str, str]:
    """Say in brief how well the published coefficients are expected to predict."""
    title = "Accuracy on new rows"
    if found is None:
        return title, "not known", "no estimate is known for this kind of release"
    published = found.published
    l = len(published.r_squared)
    said = "expected R² of the published coefficients: 1 at best, 0 if no better than the mean"
    if l > 1:
        said += f"; {published.about}"
        known = published.r_squared[published.trusted]
        if len(known):
            of = f"the {thousands(len(known))} of {thousands(l)} outcomes where it is determined"
            said += f"; from {_r2(known.min())} to {_r2(known.max())} over {of}"
        else:
            said += "; not determined for single outcomes"
    if published.worse_than_mean:
        said += ". The mean predicts better: do not predict with them"
    return title, _minus(published.together), said


def _minus(words: str) -> str:
    return words.replace("-", "\u2212")


def _r2(value: float) -> str:
    return _minus(r2_words(value))


def _determined(fit: GoodnessOfFit) -> str:
    """Write the median R² over the outcomes, if it is determined for at least half of them."""
    known = int(fit.trusted.sum())
    if not known or 2 * known < len(fit.trusted):
        return NOT_DETERMINED
    return f"{np.median(fit.r_squared[fit.trusted]):.3f}"


def _single(fit: GoodnessOfFit) -> str:
    """Say which outcomes that number is about; empty for a single one."""
    known, l = int(fit.trusted.sum()), len(fit.trusted)
    if l == 1:
        return ""
    if known == l:
        return "median over outcomes"
    if not known or 2 * known < l:
        return f"for {thousands(l - known)} of {thousands(l)} outcomes"
    return f"median over {thousands(known)} of {thousands(l)} outcomes"


def _small(words: str) -> str:
    return f"<small>{words}</small>" if words else ""


def accuracy_words(release: ReleasedMoments, found: Findings | str, outlook: Outlook | str) -> str:
    """Say what was predicted, what is estimated, and how the two relate."""
    rows = []
    if isinstance(outlook, Outlook):
        made = outlook.chosen
        rows.append(
            (
                "Predicted before the data<small>from public numbers and the assumption stated under "
                '<a href="#plan">the plan</a></small>',
                f"{made.no_privacy_r2:.3f}",
                plus_minus(made),
            )
        )
    if isinstance(found, Findings):
        fit = found.fit
        rows.append(
            (
                "Estimated from the release",
                _determined(fit) + _small(_single(fit)),
                _minus(found.published.together) + _small(found.published.about),
            )
        )
    words = paragraph(
        "R² is the share of an outcome’s variance that the features explain: 1 at best, 0 if they are "
        "no better than the mean, below 0 if the mean predicts better. Two questions have two answers: "
        "what a fit <em>without</em> noise would explain on these rows, and what the published "
        "coefficients, intercept included, are expected to explain of <em>new</em> rows of the same "
        "kind."
    )
    if rows:
        words += table(
            "R²: predicted and estimated",
            ("", "without privacy", "published coefficients, new rows"),
            rows,
        )
    if isinstance(found, str):
        return words + paragraph(f"R² is not estimated for this release: {text(found)}.", "remark")
    words += paragraph(
        f"Below, for each outcome: R² of least squares on these rows with its "
        f"{100 * fit.level:g}\u202f% interval, estimated from released numbers alone. The verdict "
        f"“{fit.verdict[int(np.argmax(fit.statistic))]}” and its opposite come from a joint test of all "
        f"features, at a false discovery rate of {100 * fit.fdr:g}\u202f% over all outcomes."
        if release.plan.l > 1
        else f"Below: R² of least squares on these rows with its {100 * fit.level:g}\u202f% interval, "
        "estimated from released numbers alone, and a joint test of all features."
    )
    if not fit.trusted.all():
        words += paragraph(
            "Where the noise leaves R² open it is <strong>not determined</strong>, and its interval is "
            "0 to 1.",
            "remark",
        )
    if int(fit.trusted.sum()) < FEW:
        return words
    return (
        f'<div class="pair wide"><div>{words}</div>'
        f"<figure>{histogram_chart(fit)}<figcaption>Estimated R² of "
        f"{count(int(fit.trusted.sum()), 'outcome')} where it is determined: "
        '<span class="key signal"></span> signal found, <span class="key noise"></span> not '
        "distinguishable from noise. An estimate that is mostly noise scatters too, so a bar far from "
        "0 is not yet a finding.</figcaption></figure></div>"
    )


def plus_minus(made: Prediction) -> str:
    """Write a prediction with the precision of its simulation, rounded up."""
    return f"{made.r2:.3f} ± {math.ceil(2000 * made.standard_error) / 1000:.3f}"
