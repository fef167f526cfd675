"""Numbers and tables as people read them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from experiments.figures.grid import Cell
from experiments.figures.page.compare import Estimate

__all__ = [
    "DATA", "budget", "count", "data_name", "listed", "name", "r2", "signed", "table", "times"
]  # fmt: skip

_NAMES = {
    "ols": "least squares",
    "ridge": "ridge",
    "gauss-printed": "Gauss (printed)",
    "gauss": "Gauss (calibrated)",
    "proj-x-printed": "Proj_X (printed)",
    "proj-x": "Proj_X (calibrated)",
    "proj-y-printed": "Proj_Y (printed)",
    "proj-y": "Proj_Y (calibrated)",
    "ssp-advanced": "SSP × l (advanced)",
    "ssp-gdp": "SSP × l (GDP)",
    "adassp": "AdaSSP",
    "dpsgd-each": "DP-SGD × l",
    "dpsgd-joint": "DP-SGD (joint)",
    "boosted-adassp": "BoostedAdaSSP",
    "ihm": "Iterative Hessian Mixing",
    "primo-one-round": "primo, one round",
    "diffprivlib": "diffprivlib (own count)",
    "diffprivlib-true": "diffprivlib (true ε)",
    "primo": "primo",
    "primo-outcomes": "primo (outcomes)",
    "primo-features": "primo (features)",
    "primo-features-one-round": "primo, one round (features)",
}

#: What the sets of features are called on the page.
DATA = {
    "1kg": "1000 Genomes†",
    "1kg-real": "1000 Genomes, real people",
    "dbgap": "dbGaP†",
    "gan": "GAN†",
    "gan-quick": "GAN (quick)",
    "gaussian": "Gaussian",
    "mnist": "MNIST",
    "soynam": "Soybean lines",
    "crime": "Communities and crime",
    "drugs": "Drug use",
    "personality": "Personality",
}
_OUTCOMES = {
    "linear": "",
    "mlp": " (outcomes of a network)",
    "unit": "",
    "real": " (real outcomes)",
}


def name(method: str) -> str:
    """Return what a method is called in a table."""
    return _NAMES.get(method, method)


def data_name(cell: Cell) -> str:
    """Return what the data of a cell are called."""
    known = DATA.get(cell.features, cell.features)
    return known + _OUTCOMES.get(cell.outcomes, f" ({cell.outcomes} outcomes)")


def count(number: float) -> str:
    """Return a whole number with its thousands apart."""
    whole = round(number)
    return f"{whole:,}".replace(",", " ") if abs(whole) >= 10_000 else str(whole)


def r2(value: float | None) -> str:
    """Return an R²: three decimals near 0 and 1, fewer where it is very negative, a dash for none."""
    if value is None or not math.isfinite(value):
        return "–"
    if value < -100:
        return "< −100"
    if value < -10:
        return _minus(f"{value:.0f}")
    return _minus(f"{value:.1f}") if value < -1 else _minus(f"{value:.3f}")


def signed(value: Estimate | None) -> str:
    """Return a difference with its sign and standard error."""
    if value is None:
        return "–"
    if abs(value.mean) > 100:
        return "> +100" if value.mean > 0 else "< −100"
    error = value.error
    digits = _digits(error if error else abs(value.mean))
    text = _minus(f"{value.mean:+.{digits}f}")
    return f"{text} (one repeat)" if error is None else f"{text} ± {error:.{digits}f}"


def _digits(size: float) -> int:
    """Return the decimals that show two figures of a standard error."""
    if size <= 0:
        return 3
    return min(max(1 - math.floor(math.log10(size)), 1), 6)


def budget(value: float | None) -> str:
    """Return an ε, rounded up."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞"
    if value >= 100:
        return count(math.ceil(value - 1e-6))
    # A bisection may end slightly above the ε that was asked for; that is not shown as 5.01.
    return f"{math.ceil(value * 100 - 1e-6) / 100:.2f}"


def times(value: float | None) -> str:
    """Return a ratio of times with two figures."""
    if value is None or not math.isfinite(value):
        return "–"
    if value >= 100:
        return count(float(f"{value:.2g}"))
    if value >= 10:
        return f"{value:.0f}"
    if value >= 0.995:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.1 else f"{value:.2g}"


def listed(items: Iterable[object], last: str = "and") -> str:
    """Return "a, b and c"."""
    words = [str(item) for item in items]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + f" {last} {words[-1]}"


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; a bar inside a cell does not end it."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows:
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |")
    return "\n".join(lines)


def _minus(text: str) -> str:
    """Return a number with a real minus sign, and without one on a zero."""
    if text.startswith("-") and float(text) == 0:
        text = text[1:]
    return text.replace("-", "−")
