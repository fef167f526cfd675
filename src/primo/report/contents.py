"""The numbers of the interactive part: which outcomes and coefficients the page carries.

A page has room for some of them only. One rule chooses them, from released and public numbers:
outcomes with the largest test statistic first, features with the smallest p-value over all outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from primo.errors import InputError
from primo.released.coefficients import Coefficients, coefficients
from primo.released.estimation import Estimation
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.fit import GoodnessOfFit, goodness_of_fit
from primo.released.uncertainty.intervals import coefficient_block
from primo.released.uncertainty.published import PublishedRSquared, published_r_squared
from primo.released.uncertainty.system import System, system_of
from primo.released.uncertainty.testing import SlopeTests, tests
from primo.released.uncertainty.trust import doubts, few_for_prior, mostly_prior
from primo.report.placing import Axis

__all__ = [
    "Chosen",
    "Findings",
    "choose",
    "coefficient_numbers",
    "feature_numbers",
    "find",
    "outcome_numbers",
    "shrunk_only",
    "threshold",
]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_OUTCOMES = 2_000  # in the table of outcomes
MOST_COEFFICIENTS = 30_000
MOST_FEATURES = 2_500  # per outcome, where there are more coefficients than room


@dataclass(frozen=True, kw_only=True, eq=False)
class Findings:
    """What the release says with its uncertainty; all outcomes."""

    system: System
    fit: GoodnessOfFit
    published: PublishedRSquared  # on new rows
    tests: SlopeTests
    doubts: tuple[str, ...]
    mostly_prior: int  # how many shrunk intervals depend more on the prior than on the release
    few_for_prior: bool  # whether that prior was fitted to too few coefficients


@dataclass(frozen=True, kw_only=True, eq=False)
class Chosen:
    """Positions of what the page carries."""

    outcomes: Places  # in the table of outcomes, most significant first
    detailed: Places  # those of them with coefficients
    features: Places  # ascending


def find(
    release: ReleasedMoments,
    *,
    level: float,
    fdr: float,
    estimation: Estimation | None = None,
) -> Findings | str:
    """Compute intervals, tests and goodness of fit, or say why there are none.

    `estimation` says how the published coefficients were estimated.
    Guarantee: post-processing; costs no privacy. Cost: several times that of `primo.coefficients`.
    """
    try:
        system = system_of(release)
    except InputError as error:
        return str(error)
    return Findings(
        system=system,
        fit=goodness_of_fit(release, level=level, fdr=fdr),
        published=published_r_squared(release, **asdict(estimation or Estimation())),
        tests=tests(release),
        doubts=tuple(" ".join(said.split()) for said in doubts(system)),
        mostly_prior=int(np.sum(mostly_prior(system))),
        few_for_prior=few_for_prior(system),
    )


def shrunk_only(release: ReleasedMoments, fitted: Coefficients | None = None) -> Floats | None:
    """Return the slopes in scaled units where nothing else is known, or None if not even they are.

    They are those of `fitted`, if it is given, else estimated from the release.
    """
    try:
        slopes = (fitted or coefficients(release)).slopes
    except InputError:  # public features that outnumber the rows, not attached
        return None
    plan = release.plan
    return slopes * plan.features.scale[:, None] / plan.outcomes.scale


def choose(outcome_rank: Floats, feature_rank: Floats) -> Chosen:
    """Choose what the page carries; larger ranks first, earlier columns first among equals."""
    l, d = len(outcome_rank), len(feature_rank)
    order = np.argsort(-outcome_rank, kind="stable")
    width = min(d, max(MOST_FEATURES, MOST_COEFFICIENTS // l))
    features = np.sort(np.argsort(-feature_rank, kind="stable")[:width])
    return Chosen(
        outcomes=order[:MOST_OUTCOMES],
        detailed=order[: min(MOST_OUTCOMES, max(1, MOST_COEFFICIENTS // width))],
        features=features,
    )


def threshold(found: Findings, fdr: float) -> float | None:
    """−log₁₀ of the largest p-value that Benjamini and Hochberg's rule rejects; None if none is."""
    passed = found.tests.q <= fdr
    if not passed.any():
        return None
    return float(_exponents(np.abs(found.tests.z[passed]).min(keepdims=True))[0])


def outcome_numbers(
    release: ReleasedMoments, chosen: Chosen, found: Findings | None
) -> dict[str, Any]:
    """Return the columns of the table of outcomes."""
    at = chosen.outcomes
    columns: dict[str, Any] = {"name": [release.outcome_names[j] for j in at]}
    if found is None:
        return columns
    fit, published = found.fit, found.published
    return columns | {
        "r2": _numbers(np.where(fit.trusted, fit.r_squared, np.nan)[at]),
        "lower": _numbers(fit.lower[at]),
        "upper": _numbers(fit.upper[at]),
        "statistic": _numbers(fit.statistic[at]),
        "p": _numbers(fit.p[at], 3),
        "q": _numbers(fit.q[at], 3),
        "found": fit.found[at].astype(int).tolist(),
        "trusted": fit.trusted[at].astype(int).tolist(),
        "published": _numbers(np.where(published.trusted, published.r_squared, np.nan)[at], 3),
    }


def feature_numbers(
    release: ReleasedMoments, chosen: Chosen, axis: Axis, variants: dict[str, str]
) -> dict[str, Any]:
    """Return names and places of the features; `variants` describes some of them in words."""
    at = chosen.features
    names = [release.feature_names[i] for i in at]
    return {
        "name": names,
        "place": _numbers(axis.places[at], 6),
        "stretch": axis.stretch[at].tolist(),
        "about": [variants.get(name, "") for name in names],
    }


def coefficient_numbers(
    release: ReleasedMoments, chosen: Chosen, found: Findings, *, level: float
) -> dict[str, Any]:
    """Return the coefficients of the detailed outcomes, one outcome after the other.

    `effect` holds the factors to scaled units, in which all coefficients are comparable. Flags: 1 for
    an interval that is not trusted, 2 for a shrunk one.
    """
    plan, features = release.plan, chosen.features
    part = chosen.detailed
    plain, shrunk = (
        coefficient_block(found.system, part, kind=kind, level=level, target="population")
        for kind in ("confidence", "posterior")
    )
    cells = {
        "estimate": plain.estimate,
        "error": plain.standard_error,
        "lower": plain.lower,
        "upper": plain.upper,
        "z": found.tests.z[:, part],
        "q": found.tests.q[:, part],
        "shrunk": shrunk.estimate,
        "half": (shrunk.upper - shrunk.lower) / 2,
    }
    columns: dict[str, list[Any]] = {
        name: _numbers(values[features].T.ravel(), 3 if name in ("q", "half") else 5)
        for name, values in cells.items()
    }
    flags = 1 * ~plain.trusted[features] + 2 * ~shrunk.trusted[features]
    columns["flags"] = flags.T.ravel().tolist()
    return {
        **columns,
        "effect": {
            "features": _numbers(plan.features.scale[features]),
            "outcomes": _numbers(1 / plan.outcomes.scale[chosen.detailed]),
        },
    }


def _numbers(values: Iterable[float], digits: int = 5) -> list[float | None]:
    """Round to significant digits, for JSON: null stands for what is not a finite number."""
    return [
        float(f"{x:.{digits}g}") if math.isfinite(x) else None for x in np.asarray(values).tolist()
    ]


def _exponents(z: Floats) -> Floats:
    """−log₁₀ of the two-sided p-values, which may be too small for a float."""
    return np.asarray(-(math.log(2) + log_ndtr(-np.abs(z))) / math.log(10))
