"""Numbers and counts in words."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal

__all__ = [
    "at_most",
    "count",
    "number",
    "percent_up",
    "thousands",
]

THIN = "\u202f"  # narrow no-break space


def thousands(value: int) -> str:
    """Write a count with narrow spaces."""
    return f"{value:,}".replace(",", THIN)


def count(value: int, thing: str, things: str | None = None) -> str:
    """Write a count of things."""
    return f"{thousands(value)} {thing if value == 1 else things or thing + 's'}"


def number(value: float, digits: int = 3) -> str:
    """Write a number with significant digits; large and small ones as powers of ten."""
    if not math.isfinite(value):
        return "unbounded" if math.isinf(value) else "not known"
    if value == 0:
        return "0"
    if not 1e-3 <= abs(value) < 10 ** max(5, digits):
        mantissa, power = f"{value:.{digits - 1}e}".split("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        superscript = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return f"10{superscript}" if mantissa == "1" else f"{mantissa}·10{superscript}"
    if abs(value) < 10**digits:
        return f"{value:.{digits}g}"
    return f"{value:,.0f}".replace(",", THIN) if abs(value) >= 1e4 else f"{value:.0f}"


def at_most(value: float, digits: int = 4) -> str:
    """Write a privacy loss, rounded up: a statement never understates a loss.

    A number that was given in few digits keeps them: 1e-06 stays 10⁻⁶.
    """
    shortest = Decimal(repr(value))
    if value and len(shortest.as_tuple().digits) > digits:
        unit = Decimal(1).scaleb(shortest.adjusted() - digits + 1)
        shortest = Decimal(value).quantize(unit, rounding=ROUND_CEILING)
    return number(float(shortest), digits)


def percent_up(share: float) -> str:
    """Write what an attack can reach, in per cent, rounded up to one decimal."""
    return f"{math.ceil(share * 1000 - 1e-9) / 10:.1f}{THIN}%"
