"""Many canaries in one release of a full-size fit (Steinke, Nasr and Jagielski 2023).

Half of the rows are canaries: each has one feature and one outcome at the bound and a coin decides the
sign of the outcome. A canary and its replacement are neighbours, and no two canaries share an entry of
the association, so that entry reveals this one coin. All coins are guessed from one release.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from primo.audit.evidence import gaussian_epsilon, mu_at_least, one_run_epsilon
from primo.audit.game import CONFIDENCE, new_bits_from
from primo.audit.settings import FEATURE_NORM, OUTCOME_NORM, as_source
from primo.errors import InputError
from primo.planning.make import make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.moments import fold
from primo.workflow.pipeline import make_release

__all__ = ["OneRun", "audit_in_one_run"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class OneRun:
    """What one release proves about its own ε, at the stated confidence.

    `lower_any` holds for every mechanism. `lower_mu` and `lower` assume that the noise on different
    entries is independent, and `lower` also that it is Gaussian.
    """

    n: int
    d: int
    l: int
    stated: float  # ε
    delta: float
    canaries: int
    right: int  # right guesses, with one guess for each canary
    guesses: int  # the most certain ones, as many as were fixed in advance
    right_guesses: int
    confidence: float
    lower_mu: float
    lower: float  # ε at delta
    lower_any: float  # ε at delta

    @property
    def violated(self) -> bool:
        """Whether the stated ε is refuted."""
        return max(self.lower, self.lower_any) > self.stated

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers and the verdict."""
        return {**asdict(self), "violated": self.violated}


def audit_in_one_run(
    *,
    epsilon: float,
    delta: float | None = None,
    n: int = 6000,
    d: int = 25,
    l: int = 1000,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> OneRun:
    """Fit once under `both` with the default plan, half of the rows canaries, and guess their coins.

    Guarantee: if the statement is true, `violated` is False with probability 2·confidence - 1 at
    least. `delta` is 1/n² if not given. Cost: one fit.
    """
    canaries = n // 2
    if canaries > d * l:
        raise InputError(f"{canaries} canaries do not fit {d}·{l} entries; use fewer rows")
    delta = 1 / n**2 if delta is None else delta
    settings = Settings(
        epsilon=epsilon,
        delta=delta,
        feature_bounds=Bounds(norm=FEATURE_NORM),
        outcome_bounds=Bounds(norm=OUTCOME_NORM),
    )
    plan = make_plan(settings, n=n, d=d, l=l)
    scores, truth = _scores(plan, canaries, seed)
    right = (scores > 0) == truth
    guesses = _guesses(plan, canaries, confidence)
    certain = np.argsort(-np.abs(scores), kind="stable")[:guesses]
    found, sure = int(right.sum()), int(right[certain].sum())
    lower_mu = mu_at_least(found, canaries, confidence)
    return OneRun(
        n=n,
        d=d,
        l=l,
        stated=plan.epsilon,
        delta=delta,
        canaries=canaries,
        right=found,
        guesses=guesses,
        right_guesses=sure,
        confidence=confidence,
        lower_mu=lower_mu,
        lower=gaussian_epsilon(lower_mu, delta),
        lower_any=one_run_epsilon(
            canaries=canaries, guesses=guesses, right=sure, delta=delta, confidence=confidence
        ),
    )


def _scores(plan: Plan, canaries: int, seed: int | None) -> tuple[Matrix, NDArray[np.bool_]]:
    """Release once; return the log-odds of each coin, and the coins."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(2, size=canaries) == 1
    entries = rng.choice(plan.d * plan.l, size=canaries, replace=False)
    feature, outcome = np.divmod(entries, plan.l)
    x, y = rng.normal(size=(plan.n, plan.d)), rng.normal(size=(plan.n, plan.l))
    j = np.arange(canaries)
    x[j], y[j] = 0.0, 0.0
    x[j, feature] = plan.features.norm
    # The attacker knows everything but the coins, including what the other rows add to each entry.
    known = fold(as_source(x, y), plan).association[feature, outcome]
    y[j, outcome] = np.where(truth, 1.0, -1.0) * plan.outcomes.norm
    release = make_release(as_source(x, y), plan, bits=new_bits_from(seed)())
    seen = release.association[feature, outcome]
    signal = plan.features.norm * plan.outcomes.norm
    moved = seen - known * (plan.feature_step * plan.outcome_step)
    return 2 * signal * moved / plan.association_sigma**2, truth


def _guesses(plan: Plan, canaries: int, confidence: float) -> int:
    """Return how many of the most certain guesses are expected to prove most; no guess is looked at.

    A canary's score is mu·t with t ~ ±mu/2 + N(0, 1); a guess with |t| is right with odds e^(mu·|t|).
    """
    mu = plan.mu
    t = np.linspace(0.0, 8.0, 2001)[1:]
    density = np.exp(-((t - mu / 2) ** 2) / 2) + np.exp(-((t + mu / 2) ** 2) / 2)

    def expected(guesses: int) -> float:
        share = guesses / canaries
        beyond = 2 - ndtr(t - mu / 2) - ndtr(t + mu / 2)
        certain = density * (beyond <= max(share, float(beyond.min())))
        chance = float((certain * expit(mu * t)).sum() / certain.sum())
        return one_run_epsilon(
            canaries=canaries,
            guesses=guesses,
            right=round(chance * guesses),
            delta=plan.budget.delta,
            confidence=confidence,
        )

    candidates = np.unique(np.geomspace(min(20, canaries), canaries, 12).astype(int))
    return max((int(r) for r in candidates), key=expected)
