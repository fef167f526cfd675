"""How much outcomes vary about their means, and whether R² can be stated after several rounds.

One round shortens features, outcomes and their association alike, and R² is that of the shortened rows.
Rounds take residuals of whole outcomes and of nearly whole rows of features, so that what they explain
is no part of a variation of shortened rows. A model of lengths says what was shortened, and the
residuals of the last round say whether to believe it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.rounds.lengths import (
    features_kept,
    is_stepped,
    outcomes_kept,
    residual_lengths,
    squares_of,
)
from primo.released.estimate.rounds.pooling import IN_DOUBT, own_outcome_moments
from primo.released.moments import ReleasedMoments

__all__ = [
    "explained_by_residuals",
    "mostly_usable",
    "residuals_agree",
    "rows_whole",
    "seen_share",
    "variation_of",
]

Floats = NDArray[np.float64]

MOST_ADDED = 0.35  # of Σ(y − ȳ)², by the model of what was shortened, where R² is stated
LAST = 3  # rounds whose residuals say together how much is explained
AGREEMENT = 0.1  # of R² with what is left in the residuals of the last round, where R² is stated


def variation_of(release: ReleasedMoments) -> tuple[Floats, Floats]:
    """Σ(y − ȳ)² of every outcome from noisy moments, and the variance of its error.

    Outcomes are in comparable (scaled) units. Where noise makes more than half of their scatter they
    are shrunk toward their common mean by as much as it warrants (James and Stein); the error is
    then an average over the outcomes, not that of each.
    """
    plan = release.plan
    moments, sigma = release.outcome_moments, release.outcome_sigma
    whole = 1.0
    if release.rounds:  # what is pooled has directions of other rounds, which rest on a model
        moments, sigma = own_outcome_moments(plan, release.rounds)
        whole = _of_whole_rows(release)[0]
    raw = whole * (np.diagonal(moments) if moments.ndim == 2 else moments)
    off = IN_DOUBT * (whole - 1) * raw
    variance = np.full(plan.l, (whole * sigma) ** 2)
    if plan.intercept:
        means = release.association[-1] / (plan.n * plan.constant)
        mean_variance = release.mean_sigma**2
        raw -= plan.n * (means**2 - mean_variance)
        variance += plan.n**2 * mean_variance * (4 * means**2 + 2 * mean_variance)
    common = float(raw.mean())
    kept = 1.0
    if plan.l >= 4 and sigma > 0:
        scatter = float(np.sum((raw - common) ** 2 / variance))
        kept = max(0.0, 1 - (plan.l - 3) / scatter) if scatter > 0 else 0.0
        kept = kept if kept < 0.5 else 1.0
    shrunk = common + kept * (raw - common)
    variance *= kept + (1 - kept) / plan.l
    variance += off**2
    floor = max(0.05 * common, np.sqrt(variance.max()) / np.sqrt(plan.l) * 0.05, 1e-300)
    return np.maximum(shrunk, floor), variance


def seen_share(release: ReleasedMoments) -> float:
    """Return the share of what slopes explain of whole rows that the released covariance shows.

    It is 1 where there is one round only: its slopes are those of rows as they were shortened.
    """
    return _of_whole_rows(release)[1] if release.rounds else 1.0


def rows_whole(release: ReleasedMoments) -> bool:
    """Whether so few rows were shortened before rounds that Σ(y − ȳ)² of whole ones is known.

    True where there is one round only: R² is then that of rows as they were shortened.
    """
    if not release.rounds:
        return True
    own, _ = own_outcome_moments(release.plan, release.rounds)
    squares = float(np.trace(own) if own.ndim == 2 else own.sum())
    whole, held = _of_whole_rows(release)
    variation = float(variation_of(release)[0].sum())
    return max(abs(whole - 1) * squares / variation, 1 / held - 1) <= MOST_ADDED


def residuals_agree(release: ReleasedMoments, explained: float, usable: NDArray[np.bool_]) -> bool:
    """Whether the residuals of the last rounds are about as long as this share explained leaves them.

    It is another way to R², with other errors: the covariance has no part in it, and a model of lengths
    has. True where rounds took no residuals of slopes, and where outcomes that are not `usable` (l,)
    make up more than a fifth of the variation: lengths are those of all outcomes together.
    """
    if not release.rounds or not is_stepped(release.plan, release.rounds[-1]):
        return True
    if not mostly_usable(release, usable):
        return True
    found, error = explained_by_residuals(release)
    return bool(np.isfinite(error)) and abs(found - explained) <= AGREEMENT


def mostly_usable(release: ReleasedMoments, usable: NDArray[np.bool_]) -> bool:
    """Whether outcomes that are not usable (l,) make up at most a fifth of the variation."""
    variation, _ = variation_of(release)
    return bool(variation[~usable].sum() <= 0.2 * variation.sum())


def explained_by_residuals(release: ReleasedMoments) -> tuple[float, float]:
    """1 − Σ‖r‖²/Σ‖y − ȳ‖² of the last rounds, and its standard error: another way to the pooled R².

    The covariance has no part in it. Its errors are the noise of Σ‖r‖² and a part of what the model of
    lengths adds for the clip. The error is infinite where none of them took residuals of slopes, and
    where noise leaves nothing of the variation.
    """
    plan = release.plan
    own, sigma = own_outcome_moments(plan, release.rounds)
    _, kept = outcomes_kept(plan, release.rounds)
    whole = float(np.trace(own) if own.ndim == 2 else own.sum()) / (kept * plan.n)
    if plan.intercept:
        means = release.association[-1] / (plan.n * plan.constant)
        whole -= float(means @ means) - plan.l * release.mean_sigma**2
    lengths = residual_lengths(plan, release.rounds).lengths
    chosen = [
        (released, float(length) ** 2)
        for released, length in zip(release.rounds[-LAST:], lengths[-LAST:], strict=True)
        if is_stepped(plan, released)
    ]
    if not chosen or whole <= 0:
        return 0.0, np.inf
    left = float(np.mean([square for _, square in chosen]))
    through = [squares_of(released) / (plan.n * square) for released, square in chosen]
    share = float(np.clip(np.mean(through), 0.05, 1.0))
    of_residuals = np.linalg.norm([released.outcome_sigma for released, _ in chosen]) / len(chosen)
    of_outcomes = sigma / kept * left / whole
    noise = np.sqrt(plan.l) / plan.n * np.hypot(of_residuals / share, of_outcomes)
    model = IN_DOUBT * np.hypot(1 / share - 1, 1 / kept - 1) * left
    return 1 - left / whole, float(np.hypot(noise, model) / whole)


def _of_whole_rows(release: ReleasedMoments) -> tuple[float, float]:
    """Return what Σy² of shortened rows is multiplied by, and the share of Σ‖x‖² that was kept.

    Rounds take residuals of whole outcomes and of (nearly) whole rows of features, so their slopes are
    those of whole rows. Of whole outcomes Σy² is 1/ρ_y times as large, and of whole features Σ(wᵀx)² is
    1/ρ_x times as large.
    The rounds of the outcomes themselves, as one release, have slopes that are κ_x·κ_y/ρ_x times as
    long. So what is explained counts as f² of that of whole rows, with
    f = 1 − (1 − κ_x·κ_y/ρ_x)·(their share).
    """
    plan = release.plan
    slope, kept = outcomes_kept(plan, release.rounds)
    bent, held = features_kept(plan, release.covariance, release.covariance_sigma)
    carried = 0.0 if release.scales is None else release.scales.carried
    share = 1 - (1 - slope * bent / held) * (1 - carried)
    return share**2 / kept, held
