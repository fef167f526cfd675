"""What a command says of the accuracy of a release, and of bounds that did not fit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from primo.cli.output import say

if TYPE_CHECKING:
    from primo.bundle import Bundle

__all__ = ["accuracy_numbers", "show_accuracy"]


def accuracy_numbers(bundle: Bundle) -> dict[str, Any]:
    """Return R² of the outcomes where it is determined, and for how many it is.

    `published` is expected of new rows, `fit` is that of least squares without noise on these rows;
    lowest, median and highest over the outcomes, None where it is determined for none.
    """
    table = bundle.table("outcomes")
    return {
        "outcomes": len(table["outcome"]),
        "published": _spread(table, "published_r_squared", "published_trusted"),
        "fit": _spread(table, "r_squared", "trusted"),
        "signal_found": int(np.sum(table["signal_found"])),
    }


def show_accuracy(bundle: Bundle) -> None:
    """Print it in words, and the doubts."""
    numbers = accuracy_numbers(bundle)
    l = numbers["outcomes"]
    for name, words in (
        ("published", "R² that the published coefficients are expected to have on new rows"),
        ("fit", "R² of least squares without noise on these rows"),
    ):
        say(f"{words}: {_words(numbers[name], l)}")
    say(f"Signal found for {numbers['signal_found']} of {l} outcomes.")
    for said in bundle.release.doubts():
        say(f"Doubt: {said}")
    say()


def _spread(table: Mapping[str, Any], values: str, trusted: str) -> dict[str, Any] | None:
    if trusted not in table:  # written by an earlier version
        return None
    known = np.asarray(table[values], np.float64)[np.asarray(table[trusted], dtype=bool)]
    if not len(known):
        return None
    low, middle, high = np.quantile(known, (0, 0.5, 1)).tolist()
    return {"determined": len(known), "lowest": low, "median": middle, "highest": high}


def _words(spread: dict[str, Any] | None, l: int) -> str:
    if spread is None:
        return "not determined."
    if l == 1:
        return f"about {spread['median']:.2f}."
    text = f"median {spread['median']:.2f} ({spread['lowest']:.2f} to {spread['highest']:.2f})"
    left = l - spread["determined"]
    return text + (f", not determined for {left} of {l} outcomes." if left else ".")
