"""Rounds made of rows in floats, without the wall: for tests of what follows from released rounds."""

from __future__ import annotations

import numpy as np

from primo.forecast.compare import choose_plan
from primo.planning.plan import Plan
from primo.planning.rounds import round_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.estimate.rounds import next_step
from primo.released.rounds import ReleasedRound, Step

__all__ = ["make_plan", "released", "rows", "run_rounds", "shorten"]


def make_plan(*, n: int, d: int, l: int, rounds: int, epsilon: float = 5.0) -> Plan:
    settings = Settings(
        epsilon=epsilon,
        delta=1e-6,
        feature_bounds=Bounds(norm=1.0),
        outcome_bounds=Bounds(norm=2.0),
        fit_intercept=False,
        rounds=rounds,
    )
    return choose_plan(settings, n=n, d=d, l=l)


def shorten(rows, norm):
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows * np.minimum(1, norm / np.maximum(lengths, 1e-300))


def released(plan, number, features, outcomes, coefficients, clip, rng=None) -> ReleasedRound:
    """One round in floats: with noise of the plan's scales, or without if there is no generator."""
    own = round_plan(plan, number, clip)
    x, r = shorten(features, 1.0), shorten(outcomes - features @ coefficients, clip)
    blocks = {"covariance": x.T @ x, "association": x.T @ r, "outcome_moments": r.T @ r}
    scales = own.covariance_sigma, own.association_sigma, own.outcome_sigma
    if rng is not None:
        for (name, exact), sigma in zip(blocks.items(), scales, strict=True):
            drawn = rng.normal(size=exact.shape)
            square = name != "association"
            noise = (drawn + drawn.T) / 2 if square else drawn
            blocks[name] = exact + sigma * noise
    return ReleasedRound(
        coefficients=coefficients,
        clip=clip,
        covariance_sigma=scales[0],
        association_sigma=scales[1],
        outcome_sigma=scales[2],
        **blocks,
    )


def run_rounds(
    plan, features, outcomes, rng=None, *, count=None
) -> tuple[list[ReleasedRound], Step]:
    """All rounds of a plan, or the first `count`, and the step after the last of them."""
    step = Step(coefficients=np.zeros((plan.width, plan.l)), clip=plan.outcomes.norm)
    found = []
    for number in range(plan.round_count if count is None else count):
        found.append(released(plan, number, features, outcomes, step.coefficients, step.clip, rng))
        step = next_step(plan, found)
    return found, step


def rows(n=4000, d=6, l=3, *, noise=0.3, seed=0):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)) / np.sqrt(3 * d)
    outcomes = features @ rng.normal(size=(d, l)) + noise * rng.normal(size=(n, l))
    return features, outcomes
