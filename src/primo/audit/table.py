"""Audits as lines of a table."""

from __future__ import annotations

from primo.audit.game import Audit
from primo.audit.one_run import OneRun

__all__ = ["HEADER", "ONE_RUN_HEADER", "line", "one_run_line"]

HEADER = ("setting", "stated ε", "proved ε", "ratio", "by rates", "releases", "guesses", "verdict")
ONE_RUN_HEADER = ("canaries", "right", "stated ε", "proved ε", "of any mechanism", "verdict")


def line(audit: Audit) -> tuple[str, ...]:
    """Return the cells below `HEADER`; proved values are rounded down."""
    return (
        audit.setting,
        f"{audit.stated:.4g}",
        _rounded_down(audit.lower),
        _rounded_down(audit.ratio),
        _rounded_down(audit.lower_raw),
        str(audit.releases),
        str(audit.guesses),
        audit.verdict,
    )


def one_run_line(audit: OneRun) -> tuple[str, ...]:
    """Return the cells below `ONE_RUN_HEADER`."""
    return (
        str(audit.canaries),
        f"{audit.right / audit.canaries:.1%}",
        f"{audit.stated:.4g}",
        _rounded_down(audit.lower),
        _rounded_down(audit.lower_any),
        "VIOLATED" if audit.violated else "holds",
    )


def _rounded_down(value: float) -> str:
    """Write a lower bound with two decimals, rounded down."""
    return f"{int(value * 100) / 100:.2f}"
