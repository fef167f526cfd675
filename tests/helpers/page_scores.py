"""Made-up scores of the reproduction, and the verdicts that they lead to."""

import math

from experiments.figures.page.claims import judge
from experiments.figures.page.compare import Scores
from experiments.figures.results import Score

EXACT = 0.45  # R² of least squares, everywhere
PROTECTION = {
    "ols": "none", "ridge": "none",
    "proj-x": "outcomes", "proj-x-printed": "outcomes", "primo-outcomes": "outcomes",
    "proj-y": "features", "proj-y-printed": "features", "primo-features": "features",
}  # fmt: skip
SHAPES = {
    "1kg": ("1kg", "linear", 5008, 25),
    "dbgap": ("dbgap", "linear", 6042, 25),
    "gan": ("gan", "linear", 500_000, 25),
    "gaussian": ("gaussian", "linear", 5000, 25),
    "mnist": ("mnist", "unit", 5000, 784),
}
L = (1, 11, 101, 201, 401, 601, 801, 1001)


def rows(study, l, method, values, *, epsilon=5.0, skipped="", n=None, outcomes=None, ratio=2.0):
    """Return one score for each value of R²; the repeats are numbered from 0."""
    features, kind, size, d = SHAPES[study]
    size = n or size
    protection = PROTECTION.get(method, "both")
    return [
        Score(
            study=study, features=features, outcomes=outcomes or kind, n=size, d=d, l=l,
            repeat=repeat, seed=repeat, method=method, protection=protection,
            epsilon_requested=5.0, delta_requested=1 / size**2,
            epsilon_true=math.inf if protection == "none" else epsilon,
            delta_true=1.0 if protection == "none" else 1 / size**2,
            r2=math.nan if skipped else value, mse=1 - value,
            log_ratio=math.nan if skipped else math.log((1 - value) / (1 - EXACT)),
            time_ratio=ratio, fitted_outcomes=l, from_moments=False, skipped=skipped,
            version="0.1", commit="abc1234",
        )
        for repeat, value in enumerate(values)
    ]  # fmt: skip


def around(value, spread=0.001, repeats=4):
    """Return repeats around a value, in both directions alike."""
    return [value + spread * (-1) ** i * (1 + i // 2) for i in range(repeats)]


def curve(study, method, at, **options):
    """Return scores over l from a function of l."""
    return [
        row for l in options.pop("l", L) for row in rows(study, l, method, around(at(l)), **options)
    ]


def verdicts(key, *parts):
    """Return the verdicts of one claim, by what they are about and by version."""
    claim = next(c for c in judge(Scores(row for part in parts for row in part)) if c.key == key)
    return {(f.data, f.variant): f.verdict for f in claim.findings}


def one(key, data, *parts, variant="calibrated"):
    found = verdicts(key, *parts)
    assert (data, variant) in found, found
    return found[data, variant]


def everything():
    """Return scores of all studies but one, with a method skipped."""
    parts = []
    for study in ("1kg", "dbgap", "gan", "mnist"):
        for i, method in enumerate(("gauss", "gauss-printed", "proj-x", "proj-x-printed")):
            over = 6.85 if method == "gauss-printed" else 5.0
            parts += curve(study, method, lambda l, i=i: 0.3 - 0.02 * i, epsilon=over)
        parts += curve(study, "ols", lambda l: EXACT)
        parts += curve(study, "primo", lambda l: 0.35)
        parts += curve(study, "adassp", lambda l: 0.34)
        for l in L:
            parts += rows(study, l, "diffprivlib-true", [0.0], skipped="no environment")
    return parts
