"""Intervals of coefficients, predictions and contrasts, in the data's own units."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from primo.errors import Argument, InputError
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.confidence import infer
from primo.released.uncertainty.posterior import Outcomes
from primo.released.uncertainty.system import System, check_level, check_target, system_of
from primo.released.uncertainty.trust import trusted_posterior

__all__ = [
    "KINDS",
    "Intervals",
    "coefficient_block",
    "coefficient_intervals",
    "contrasts",
    "outcome_blocks",
    "prediction_intervals",
]

Floats = NDArray[np.float64]

KINDS = ("confidence", "posterior")
BLOCK_CELLS = 1 << 18  # numbers per array and block: memory stays in the cache, whatever l


@dataclass(frozen=True, kw_only=True, eq=False)
class Intervals:
    """Estimates with intervals: a row per term (row of features, contrast), a column per outcome.

    ``kind="confidence"``: unshrunk estimates; each interval covers its own target.
    ``kind="posterior"``: the shrunk estimates of `primo.coefficients`; intervals cover on average over
    terms and outcomes.
    """

    names: tuple[str, ...]  # (terms,)
    outcome_names: tuple[str, ...]  # (l,)
    estimate: Floats  # (terms, l)
    standard_error: Floats  # (terms, l)
    lower: Floats  # (terms, l) −∞ where the release does not determine the term
    upper: Floats  # (terms, l)
    z: Floats | None  # (terms, l) of "it is 0"; None for posterior intervals
    trusted: NDArray[np.bool_]  # (terms, l) whether nominal coverage was measured for such a case
    level: float
    kind: str
    target: str


def coefficient_intervals(
    release: ReleasedMoments,
    *,
    level: float = 0.95,
    kind: str = "confidence",
    target: str = "population",
) -> Intervals:
    """Return intervals for every slope and, last, the intercept.

    Parameters
    ----------
    release
        All that is read; the data may be gone.
    level
        Nominal coverage.
    kind
        "confidence" for unshrunk coefficients (noise of covariance and association, and sampling);
        "posterior" for the shrunk ones that `primo.coefficients` returns.
    target
        "population": the coefficients in the population the rows were drawn from (equal residual
        variance in all rows is assumed). "rows": least squares on these very rows, after clipping.

    Notes
    -----
    `trusted` is False where directions of the features that are lost in covariance noise matter to a
    term (module `trust`). Its confidence interval is then too wide, or the whole line, not too narrow.
    Guarantee: post-processing; costs no privacy.
    Cost: O(d²·l), in blocks of outcomes; nothing of size d² per outcome.
    """
    check(level=level, kind=kind, target=target)
    system = system_of(release)
    return _filled(system, kind, system.terms, system.term_names, level, target, shift=True)


def contrasts(
    release: ReleasedMoments,
    weights: ArrayLike,
    *,
    level: float = 0.95,
    kind: str = "confidence",
    target: str = "population",
    names: tuple[str, ...] | None = None,
) -> Intervals:
    """Return intervals for linear combinations of slopes, for example the difference of two.

    Parameters
    ----------
    weights
        (d,) or (combinations, d): a combination is Σ weight × slope in the data's own units.
    names
        Of the combinations.
    release
        As for `coefficient_intervals`.
    level
        As for `coefficient_intervals`.
    kind
        As for `coefficient_intervals`.
    target
        As for `coefficient_intervals`.
    """
    check(level=level, kind=kind, target=target)
    system = system_of(release)
    rows = np.atleast_2d(np.asarray(weights, dtype=np.float64))
    if rows.shape[1] != system.d or rows.ndim != 2 or not np.isfinite(rows).all():
        raise InputError(
            f"contrast weights have shape {np.shape(weights)}; give ({system.d},) or"
            f" (combinations, {system.d}), finite"
        )
    if not rows.any(axis=1).all():
        raise InputError("a contrast with all weights 0 has nothing to estimate")
    names = names or tuple(f"contrast{i}" for i in range(len(rows)))
    if len(names) != len(rows):
        raise InputError(f"{len(rows)} contrasts but {len(names)} names for them")
    points = system.terms[:, : system.d] @ rows.T
    return _filled(system, kind, points, names, level, target, shift=False)


def prediction_intervals(
    release: ReleasedMoments,
    X: ArrayLike,
    *,
    level: float = 0.95,
    kind: str = "posterior",
    target: str = "population",
    new_rows: bool = False,
) -> Intervals:
    """Return intervals for the outcomes that the regressions predict for rows of features.

    Parameters
    ----------
    X
        (rows, d) features in the data's own units.
    kind
        "posterior" around `Coefficients.predict`, or "confidence" around the unshrunk prediction.
    new_rows
        Whether the interval is for the outcome of a new row (with its own residual) instead of the
        mean outcome of all such rows.
    release
        As for `coefficient_intervals`.
    level
        As for `coefficient_intervals`.
    target
        As for `coefficient_intervals`.
    """
    check(level=level, kind=kind, target=target)
    system = system_of(release)
    rows = np.atleast_2d(np.asarray(X, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != system.d or not np.isfinite(rows).all():
        raise InputError(f"X has shape {np.shape(X)}; give (rows, {system.d}) finite numbers")
    plan = release.plan
    points = np.zeros((system.width, len(rows)))
    points[: system.d] = ((rows - plan.features.centre) / plan.features.scale).T
    if system.intercept:
        points[-1] = plan.constant
    names = tuple(f"row{i}" for i in range(len(rows)))
    return _filled(system, kind, points, names, level, target, shift="all", new_rows=new_rows)


def check(*, level: float, kind: str, target: str) -> None:
    """Refuse unknown kinds, targets and levels."""
    check_level(level)
    check_target(target)
    if kind not in KINDS:
        raise InputError(
            Argument("kind", kind), " is unknown", remedy='choose "confidence" or "posterior"'
        )


def outcome_blocks(l: int, terms: int) -> Iterator[slice]:
    """Cut l outcomes into blocks of bounded memory."""
    size = max(1, BLOCK_CELLS // max(terms, 1))
    for start in range(0, l, size):
        yield slice(start, min(start + size, l))


def coefficient_block(
    system: System, outcomes: Outcomes, *, kind: str, level: float, target: str
) -> Intervals:
    """Return the intervals of all terms for some outcomes: what a streaming writer asks for."""
    part = system.select(outcomes)
    return _block(part, kind, system.terms, system.term_names, level, target, shift=True)


def _filled(
    system: System,
    kind: str,
    points: Floats,
    names: tuple[str, ...],
    level: float,
    target: str,
    *,
    shift: bool | str,
    new_rows: bool = False,
) -> Intervals:
    """Work through all outcomes in blocks."""
    blocks = [
        _block(
            system.select(part), kind, points, names, level, target, shift=shift, new_rows=new_rows
        )
        for part in outcome_blocks(system.l, points.shape[1])
    ]

    def joined(name: str) -> NDArray[Any]:
        return np.concatenate([getattr(block, name) for block in blocks], axis=1)

    return replace(
        blocks[0],
        outcome_names=system.outcome_names,
        estimate=joined("estimate"),
        standard_error=joined("standard_error"),
        lower=joined("lower"),
        upper=joined("upper"),
        z=None if kind == "posterior" else joined("z"),
        trusted=joined("trusted"),
    )


def _block(
    part: System,
    kind: str,
    points: Floats,
    names: tuple[str, ...],
    level: float,
    target: str,
    *,
    shift: bool | str,
    new_rows: bool = False,
) -> Intervals:
    """Infer combinations `points` (width, terms) of θ, then change units.

    `shift` says which of them include the outcome's centre: "all", none (False), or (True) the
    intercept, last.
    """
    quantile = float(ndtri((1 + level) / 2))
    if kind == "confidence":
        found = infer(part, points, level=level, target=target)
        estimate, error, z = found.estimate, found.standard_error, found.z
        lower, upper, trusted = found.lower, found.upper, found.trusted & (not part.warnings)
    else:
        estimate, variance = part.posterior.infer(
            points, sampling=part.sampling(target), outcomes=part.outcomes
        )
        error = np.sqrt(variance)
        lower, upper, z = estimate - quantile * error, estimate + quantile * error, None
        trusted = trusted_posterior(part, points, prediction=shift == "all")
    if new_rows:
        own = part.residual_variance
        error = np.sqrt(error**2 + own)
        lower = estimate - np.sqrt((estimate - lower) ** 2 + quantile**2 * own)
        upper = estimate + np.sqrt((upper - estimate) ** 2 + quantile**2 * own)
    centre = np.zeros_like(estimate)
    if shift == "all":
        centre += part.centre
    elif shift and part.intercept:
        centre[-1] = part.centre
    return Intervals(
        names=names,
        outcome_names=part.outcome_names,
        estimate=estimate * part.unit + centre,
        standard_error=error * part.unit,
        lower=lower * part.unit + centre,
        upper=upper * part.unit + centre,
        z=z,
        trusted=trusted,
        level=level,
        kind=kind,
        target=target,
    )
