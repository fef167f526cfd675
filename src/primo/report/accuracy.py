"""How good the regressions are: the card at the top of the page, and the words above the table."""

from __future__ import annotations

import math

import numpy as np
from markupsafe import Markup

from primo.forecast.forecast import Prediction
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.fit import NOT_DETERMINED, GoodnessOfFit
from primo.released.uncertainty.words import r2_words
from primo.report.contents import Findings
from primo.report.figures import histogram_chart
from primo.report.outlook import Outlook
from primo.report.prose import count, thousands
from primo.report.templating import render

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


def accuracy_words(
    release: ReleasedMoments, found: Findings | str, outlook: Outlook | str
) -> Markup:
    """Say what was predicted, what is estimated, and how the two relate."""
    predicted = None
    if isinstance(outlook, Outlook):
        predicted = f"{outlook.chosen.no_privacy_r2:.3f}", plus_minus(outlook.chosen)
    if isinstance(found, str):
        return render(
            "accuracy.html",
            predicted=predicted,
            estimated=None,
            why_not=found,
            some_open=False,
            histogram=None,
        )
    fit, published = found.fit, found.published
    known = int(fit.trusted.sum())
    return render(
        "accuracy.html",
        predicted=predicted,
        estimated=(
            (_determined(fit), _single(fit)),
            (_minus(published.together), published.about),
        ),
        why_not=None,
        several=release.plan.l > 1,
        level=f"{100 * fit.level:g}\u202f%",
        fdr=f"{100 * fit.fdr:g}\u202f%",
        verdict=fit.verdict[int(np.argmax(fit.statistic))],
        some_open=not fit.trusted.all(),
        determined=count(known, "outcome"),
        histogram=histogram_chart(fit) if known >= FEW else None,
    )


def plus_minus(made: Prediction) -> str:
    """Write a prediction with the precision of its simulation, rounded up."""
    return f"{made.r2:.3f} ± {math.ceil(2000 * made.standard_error) / 1000:.3f}"
