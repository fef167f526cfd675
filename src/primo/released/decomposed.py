"""The decomposed covariance of a release and the default filter, made once (`kept`)."""

from __future__ import annotations

from primo.released.estimate.centring import Centred, centred
from primo.released.estimate.problem import Estimate
from primo.released.estimate.selection import FittedFilter, fit_filter
from primo.released.kept import kept
from primo.released.moments import ReleasedMoments

__all__ = ["centred_of", "estimate_of", "filter_of"]


def centred_of(release: ReleasedMoments) -> Centred:
    """Return the moments without the constant; `moments.spectrum` is their one decomposition."""
    return kept(release, "centred", lambda: centred(release))


def filter_of(release: ReleasedMoments, *, quick: bool = False) -> FittedFilter:
    """Return the filter of estimator="auto": what coefficients and their errors have in common.

    The first call decides for all later ones whether it is made quickly, as a forecast makes it.
    """
    return kept(release, "filter", lambda: fit_filter(centred_of(release).moments, quick=quick))


def estimate_of(release: ReleasedMoments) -> Estimate:
    """Return what estimator="auto" estimates, in the coordinates without the constant."""
    return kept(
        release, "estimate", lambda: filter_of(release).estimate(centred_of(release).moments)
    )
