"""Tests of every coefficient, of every outcome and of every feature, all at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc

from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.confidence import infer
from primo.released.uncertainty.fit import joint_p_values
from primo.released.uncertainty.intervals import outcome_blocks
from primo.released.uncertainty.multiple import benjamini_hochberg, cauchy_combination
from primo.released.uncertainty.system import System, check_target, system_of

__all__ = ["SlopeTests", "p_values", "tests", "z_scores"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class SlopeTests:
    """Tests of "the slope is 0" and their summaries by outcome and by feature."""

    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    z: Floats  # (d, l)
    p: Floats  # (d, l) two-sided
    q: Floats  # (d, l) Benjamini-Hochberg over all d·l
    outcome_p: Floats  # (l,) no feature has a slope for this outcome
    outcome_q: Floats  # (l,)
    feature_p: Floats  # (d,) this feature has no slope for any outcome (the PheWAS question)
    feature_q: Floats  # (d,)
    trusted: NDArray[np.bool_]  # (d, l) whether p is uniform under the null; else conservative
    target: str


def tests(release: ReleasedMoments, *, target: str = "population") -> SlopeTests:  # noqa: PT028
    """Test every slope, every outcome over all features, and every feature over all outcomes.

    Parameters
    ----------
    release
        All that is read; the data may be gone.
    target
        "population", or "rows": whether least squares on these very rows would give 0 (a question
        about the noise alone, seldom the one to ask). The test of an outcome is always about the
        population.

    Notes
    -----
    A feature's test combines its p-values over outcomes by Cauchy's method, valid however outcomes
    depend on each other. False discoveries over d·l: Benjamini-Hochberg; tests of one outcome are
    correlated through the covariance, as in any regression.
    Guarantee: post-processing; costs no privacy. Cost: O(d²·l).
    """
    check_target(target)
    system = system_of(release)
    z, trusted = z_scores(system, target=target)
    p = p_values(z)
    _, outcome_p = joint_p_values(system)
    feature_p = cauchy_combination(p)
    return SlopeTests(
        feature_names=release.feature_names,
        outcome_names=release.outcome_names,
        z=z,
        p=p,
        q=benjamini_hochberg(p),
        outcome_p=outcome_p,
        outcome_q=benjamini_hochberg(outcome_p),
        feature_p=feature_p,
        feature_q=benjamini_hochberg(feature_p),
        trusted=trusted,
        target=target,
    )


def z_scores(system: System, *, target: str) -> tuple[Floats, NDArray[np.bool_]]:
    """Return z of every slope and whether to trust it, (d, l) each, in blocks of outcomes."""
    z = np.empty((system.d, system.l))
    trusted = np.empty(z.shape, dtype=bool)
    for part in outcome_blocks(system.l, system.d):
        found = infer(system.select(part), system.terms, level=0.95, target=target)
        z[:, part], trusted[:, part] = found.z[: system.d], found.trusted[: system.d]
    return z, trusted & (not system.warnings)


def p_values(z: Floats) -> Floats:
    """Two-sided normal p-values."""
    return np.asarray(erfc(np.abs(z) / np.sqrt(2.0)))
