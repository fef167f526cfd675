"""What a command says of the accuracy of a release, and of bounds that did not fit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from primo.cli.output import counted, say
from primo.released.uncertainty.words import spread_words

if TYPE_CHECKING:
    from primo.released.bundle import Bundle
    from primo.released.uncertainty import PublishedRSquared

__all__ = ["accuracy_numbers", "doubts_about", "show_accuracy"]

Floats = NDArray[np.float64]


def accuracy_numbers(bundle: Bundle) -> dict[str, Any]:
    """Return R² of the outcomes where it is determined, and for how many it is.

    `published` is the R² expected on new rows, `fit` is that of least squares without noise on these
    rows. Both hold the lowest, median and highest over the outcomes, or are None if R² is determined
    for no outcome. `published_together` is R² on new rows of all outcomes together whose bounds fit,
    with its standard error. Cost: that of `published_r_squared`.
    """
    table, together = bundle.table("outcomes"), _together(bundle)
    return {
        "outcomes": len(table["outcome"]),
        "published": _spread(_known(table, "published_r_squared", "published_trusted")),
        "published_together": None
        if together is None
        else {
            "outcomes": int(together.usable.sum()),
            "r_squared": together.pooled,
            "standard_error": together.pooled_error,
            "determined": together.pooled_trusted,
        },
        "fit": _spread(_known(table, "r_squared", "trusted")),
        "signal_found": int(np.sum(table["signal_found"])),
    }


def show_accuracy(bundle: Bundle) -> None:
    """Print the accuracy in words, and all doubts."""
    table, together = bundle.table("outcomes"), _together(bundle)
    l = len(table["outcome"])
    if bundle.release.blocks is not None:
        say(
            "R² and intervals of joint effects need a whole covariance, and this release holds "
            f"{bundle.release.held}. Marginal effects with standard errors: primo sumstats."
        )
        _show_doubts(bundle)
        return
    single = spread_words(_known(table, "published_r_squared", "published_trusted"), l)
    if together is not None:
        label = "" if single.startswith(("not", "determined")) else "single outcomes: "
        single = f"{together.about} {together.together}; {label}{single}"
        if l == 1:
            single = together.together
    say(f"R² that the published coefficients are expected to have on new rows: {single}.")
    fit = spread_words(_known(table, "r_squared", "trusted"), l)
    say(f"R² of least squares without noise on these rows: {fit}.")
    say(f"Signal found for {int(np.sum(table['signal_found']))} of {counted(l, 'outcome')}.")
    _show_doubts(bundle)


def doubts_about(bundle: Bundle) -> list[str]:
    """Return everything that cannot be relied on: the doubts that `primo report` lists."""
    from primo.report.contents import find
    from primo.report.page import FDR, LEVEL
    from primo.report.results import doubts_of

    found = find(bundle.release, level=LEVEL, fdr=FDR, estimation=bundle.estimation)
    return doubts_of(bundle.release, found)


def _show_doubts(bundle: Bundle) -> None:
    for said in doubts_about(bundle):
        say(f"Doubt: {said}")
    say()


def _together(bundle: Bundle) -> PublishedRSquared | None:
    from primo._util.progress import working
    from primo.released.uncertainty import published_r_squared

    if not bundle.manifest["intervals"]:
        return None
    with working("estimating R² on new rows"):
        return published_r_squared(bundle.release, **asdict(bundle.estimation))


def _known(table: Mapping[str, Any], values: str, trusted: str) -> Floats:
    if trusted not in table:  # written by an earlier version
        return np.empty(0)
    return np.asarray(np.asarray(table[values], np.float64)[np.asarray(table[trusted], dtype=bool)])


def _spread(known: Floats) -> dict[str, Any] | None:
    if not len(known):
        return None
    low, middle, high = np.quantile(known, (0, 0.5, 1)).tolist()
    return {"determined": len(known), "lowest": low, "median": middle, "highest": high}
