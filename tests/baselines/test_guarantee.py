"""What `guarantee_` says is the truth: not below it (a search, an oracle), and not far above."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from baselines.adassp import AdaSSP, adassp_scales
from baselines.base import ExactMoments
from baselines.ssp import ComposedSSP, advanced_total, share_of, ssp_scales
from primo.privacy.accounting import Cost, epsilon_spent
from primo.privacy.budget import Budget
from primo.privacy.calibration import delta_of, mu_of

BUDGETS = [
    Budget(epsilon=epsilon, delta=delta)
    for epsilon in (0.1, 1.0, 5.0, 30.0)
    for delta in (1e-3, 1 / 5008**2)
]


def ones(d: int, l: int) -> ExactMoments:
    return ExactMoments(n=9, covariance=np.eye(d), association=np.ones((d, l)), outcome=np.ones(l))


def composed_cost(scales, l: int, pair) -> float:
    """Squared distance of two neighbours over the noise of all 2l releases, from scratch."""
    x, y, u, v = pair
    covariance = np.outer(x, x) - np.outer(u, u)
    association = np.outer(x, y) - np.outer(u, v)
    return float(
        l * np.sum(covariance**2) / scales.covariance**2
        + np.sum(association**2) / scales.association**2
    )


def worst_pair(cost, d: int, l: int, *, box: bool) -> float:
    """Search rows with ‖x‖ ≤ 1 and |y_j| ≤ 1 (or ‖y‖ ≤ 1) for the largest cost."""
    rng = np.random.default_rng(0)

    def rows(flat):
        x, u, y, v = np.split(flat, [d, 2 * d, 2 * d + l])
        x, u = (z / max(1.0, np.linalg.norm(z)) for z in (x, u))
        if box:
            return x, np.clip(y, -1, 1), u, np.clip(v, -1, 1)
        y, v = (z / max(1.0, np.linalg.norm(z)) for z in (y, v))
        return x, y, u, v

    return max(
        -minimize(
            lambda flat: -cost(rows(flat)),
            2 * rng.normal(size=2 * d + 2 * l),
            method="Nelder-Mead",
            options={"maxiter": 4000, "xatol": 1e-6, "fatol": 1e-9},
        ).fun
        for _ in range(12)
    )


@pytest.mark.parametrize("composition", ["gdp", "advanced", "printed"])
def test_no_pair_of_rows_costs_more_than_composed_ssp_states(composition):
    d, l = 2, 2
    scales = ssp_scales(Budget(epsilon=2.0, delta=1e-5), l, composition=composition)
    found = worst_pair(lambda pair: composed_cost(scales, l, pair), d, l, box=True)
    assert found <= l * scales.joint * (1 + 1e-6)
    assert found >= l * scales.joint * 0.995


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("l", [1, 3, 101, 100_000])
def test_composition_never_exceeds_the_budget(budget, l):
    mu = mu_of(budget)
    for composition, joint in (("gdp", False), ("gdp", True), ("advanced", False)):
        scales = ssp_scales(budget, l, composition=composition, joint=joint)
        assert l * scales.joint <= mu**2
        assert delta_of(math.sqrt(l * scales.joint), budget.epsilon) <= budget.delta
        if not joint:  # plain SSP charges for two releases: that total too stays within
            assert l * scales.separate <= mu**2
    plain, exact = (
        ssp_scales(budget, l, composition="gdp", joint=joint) for joint in (False, True)
    )
    assert l * plain.separate == pytest.approx(mu**2)
    assert l * exact.joint == pytest.approx(mu**2)
    assert plain.joint / plain.separate == pytest.approx(25 / 32)
    for joint in (False, True):
        lowest, scales = adassp_scales(budget, joint=joint)
        assert lowest**-2 + scales.joint <= mu**2
    assert lowest**-2 + scales.joint == pytest.approx(mu**2)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("l", [2, 11, 1001])
def test_advanced_composition_is_inverted_on_the_safe_side(budget, l):
    epsilon, delta = share_of(budget, l)
    assert advanced_total(epsilon, l, budget.delta / 2) <= budget.epsilon
    assert advanced_total(epsilon * (1 + 1e-9), l, budget.delta / 2) > budget.epsilon
    assert l * delta + budget.delta / 2 <= budget.delta * (1 + 1e-12)


@pytest.mark.parametrize("l", [11, 101])
def test_advanced_composition_against_the_optimal_one(l):
    """Kairouz, Oh & Viswanath: the exact total of l mechanisms that are only known to be (ε′, δ′)-DP."""
    budget = Budget(epsilon=5.0, delta=1e-6)
    epsilon, delta = share_of(budget, l)
    exact = epsilon_spent([Cost(epsilon=epsilon, delta=delta)] * l, budget.delta)
    assert 0.5 * budget.epsilon < exact <= budget.epsilon


def test_the_shares_of_the_paper_are_not_what_the_theorem_gives():
    """ε/√l (and ε/√(2l·log(2/δ))) exceed ε by the theorem; Gaussian noise saves the former."""
    budget, l = Budget(epsilon=5.0, delta=1 / 5008**2), 1001
    printed = budget.epsilon / math.sqrt(l)
    assert advanced_total(printed, l, budget.delta / 2) > 10 * budget.epsilon
    quoted = printed / math.sqrt(2 * math.log(2 / budget.delta))
    assert advanced_total(quoted, l, budget.delta / 2) > 1.1 * budget.epsilon
    model = ComposedSSP(budget.epsilon, budget.delta, composition="printed")
    assert model.fit_moments(ones(2, l)).guarantee_.epsilon < budget.epsilon
    # ... but not always, and then the guarantee says so.
    wide = ComposedSSP(100.0, 0.1, composition="printed").fit_moments(ones(2, l))
    assert wide.guarantee_.epsilon > 100.0


@pytest.mark.parametrize("l", [1, 40])
@pytest.mark.parametrize("model", [ComposedSSP, AdaSSP])
def test_the_stated_epsilon_is_that_of_dp_accounting(model, l):
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    budget = Budget(epsilon=2.0, delta=1e-5)
    stated = model(budget.epsilon, budget.delta, joint=True).fit_moments(ones(3, l)).guarantee_
    # The same releases, by hand: worst cases as in mathematics.md section 2, at q = p/2.
    share = mu_of(budget) / math.sqrt(l if model is ComposedSSP else 1)
    event = dp_accounting.SelfComposedDpEvent(
        dp_accounting.GaussianDpEvent(1 / share), l if model is ComposedSSP else 1
    )
    oracle = PLDAccountant().compose(event).get_epsilon(budget.delta)
    assert stated.epsilon == pytest.approx(oracle, rel=1e-3)
    assert stated.delta == budget.delta
    # Separate charges of the plain version add up to the same budget.
    plain = model(budget.epsilon, budget.delta).fit_moments(ones(3, l)).guarantee_
    assert plain.epsilon < stated.epsilon <= budget.epsilon * (1 + 1e-12)


def test_no_pair_of_rows_costs_more_than_adassp_states():
    """With the worst change of the smallest eigenvalue on top, whatever the rows."""
    lowest, scales = adassp_scales(Budget(epsilon=2.0, delta=1e-5))
    found = worst_pair(lambda pair: composed_cost(scales, 1, pair), 2, 2, box=False)
    assert 0.995 * scales.joint <= found <= scales.joint * (1 + 1e-6)
    assert lowest == pytest.approx(math.sqrt(3) / mu_of(Budget(epsilon=2.0, delta=1e-5)))


@pytest.mark.parametrize("d", [1, 2, 4])
def test_replacing_a_row_moves_the_smallest_eigenvalue_by_no_more_than_its_squared_norm(d):
    rng = np.random.default_rng(d)
    largest = 0.0
    for trial in range(4000):
        others = rng.normal(size=(rng.integers(0, 2 * d + 1), d)) * 10.0 ** rng.uniform(-2, 2)
        if trial % 2:  # the worst case has a direction that only the replaced row has
            others[:, -1] = 0.0
        rows = rng.normal(size=(2, d)) * 10.0 ** rng.uniform(-1, 1, size=(2, d))
        x, u = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True))
        rest = others.T @ others
        moved = np.diff([np.linalg.eigvalsh(rest + np.outer(z, z))[0] for z in (x, u)])[0]
        largest = max(largest, abs(moved))
    assert largest <= 1 + 1e-9
    rest = np.diag([100.0] * (d - 1) + [0.0])
    tight = np.linalg.eigvalsh(rest + np.outer(np.eye(d)[-1], np.eye(d)[-1]))[0]
    assert tight - np.linalg.eigvalsh(rest)[0] == pytest.approx(1.0)
    assert largest > 0.8
