"""The baselines in rounds: what they cost, and that they do what their papers say."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm
from sklearn.base import clone

from baselines.boosted_adassp import BoostedAdaSSP, boosted_scales
from baselines.hessian_mixing import (
    HessianMixing,
    Mixing,
    calibrated,
    sketch_divergence,
    spent_epsilon,
)
from baselines.least_squares import LeastSquares
from primo.privacy.budget import Budget
from primo.privacy.calibration import epsilon_of, mu_of

BUDGETS = [Budget(epsilon=e, delta=d) for e in (0.5, 5.0) for d in (1e-4, 1 / 5008**2)]


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("rounds", [1, 100])
def test_boosting_spends_the_budget_and_no_more(budget, rounds):
    lowest, covariance, association = boosted_scales(budget, rounds)
    spent = lowest**-2 + 2 / covariance**2 + rounds * 4 / association**2
    assert spent <= mu_of(budget) ** 2
    assert spent == pytest.approx(mu_of(budget) ** 2)


@pytest.mark.parametrize("order", [1.5, 4.0, 20.0])
@pytest.mark.parametrize("u", [0.01, 0.04])
def test_divergence_of_a_sketch_is_the_integral(order, u):
    expected = 0.0
    for variance in (1 + u, 1 / (1 + u)):
        first, second = norm(scale=math.sqrt(variance)), norm()

        def density(x, first=first, second=second):
            return math.exp(order * first.logpdf(x) + (1 - order) * second.logpdf(x))

        expected += math.log(quad(density, -30, 30)[0]) / (order - 1)
    assert sketch_divergence(order, u) == pytest.approx(expected, rel=1e-4, abs=1e-9)


def test_no_pair_of_rows_costs_more_than_a_sketch_states():
    """Search rows x, x′ and M ⪰ γ for the largest divergence of N(0, M + xxᵀ) from N(0, M + x′x′ᵀ)."""
    gamma, order, rng = 20.0, 6.0, np.random.default_rng(0)
    stated, found = sketch_divergence(order, 1 / gamma), 0.0
    for _ in range(500):
        base = gamma * np.eye(3) + np.diag(rng.exponential(size=3)) * rng.integers(2)
        x, y = rng.normal(size=(2, 3))
        y -= rng.choice([0, 1]) * x * (x @ y) / (x @ x)  # half of the pairs at a right angle
        x, y = x / np.linalg.norm(x), y / np.linalg.norm(y)
        first, second = base + np.outer(x, x), base + np.outer(y, y)
        mixed = order * second + (1 - order) * first
        logs = [np.linalg.slogdet(m)[1] for m in (first, second, mixed)]
        divergence = -(logs[2] - (1 - order) * logs[0] - order * logs[1]) / 2 / (order - 1)
        found = max(found, divergence)
    assert found <= stated * (1 + 1e-9)
    assert found >= 0.95 * stated


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_mixing_is_calibrated_to_the_budget_from_below(budget):
    mixing = calibrated(budget, rows=150, rounds=3)
    spent = spent_epsilon(mixing, budget.delta)
    assert 0.999 * budget.epsilon <= spent <= budget.epsilon
    less = replace(mixing, gradient=mixing.gradient / math.sqrt(2))
    assert spent_epsilon(less, budget.delta) > 1.05 * budget.epsilon


def test_mixing_with_hardly_any_sketch_costs_what_its_gaussian_part_costs():
    mixing = Mixing(lowest=1e9, gamma=1e9, gradient=4.0, rows=10, rounds=3)
    exact = epsilon_of(math.sqrt(3) / 2, 1e-6)
    assert exact <= spent_epsilon(mixing, 1e-6) <= 1.1 * exact


@pytest.mark.parametrize("kind", [BoostedAdaSSP, HessianMixing])
def test_with_a_huge_budget_they_are_least_squares(kind):
    rng = np.random.default_rng(7)
    features = rng.normal(size=(20_000, 4)) / 4
    outcomes = features @ rng.normal(size=(4, 3)) + rng.normal(size=(20_000, 3)) / 4
    model = kind(60.0, 0.1, feature_bounds=1.5, outcome_bounds=4.0, rounds=30, random_state=0)
    exact = LeastSquares().fit(features, outcomes).coef_
    assert np.linalg.norm(model.fit(features, outcomes).coef_ - exact) < 0.05 * np.linalg.norm(
        exact
    )


@pytest.mark.parametrize("kind", [BoostedAdaSSP, HessianMixing])
def test_seeded_and_within_budget(kind, rows):
    model = kind(1.0, 1e-5, feature_bounds=1.5, outcome_bounds=3.0, random_state=3)
    fits = [clone(model).fit(*rows) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].guarantee_.epsilon <= 1.0
