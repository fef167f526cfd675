"""Composition against dp_accounting, against theorems, and at its edges."""

import itertools
import math

import numpy as np
import pytest
from dp_accounting.pld import common
from dp_accounting.pld import privacy_loss_distribution as pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from primo.errors import InputError
from primo.privacy.accounting import (
    Cost,
    Left,
    delta_spent,
    epsilon_spent,
    fits,
    left,
    mu_spent,
)
from primo.privacy.budget import Budget
from primo.privacy.calibration import delta_of, epsilon_of, lattice_margin, mu_of

GRID = 1e-4


def theirs(costs):
    """Return dp_accounting's pessimistic privacy loss distribution of all costs."""
    whole = pld.identity(value_discretization_interval=GRID)
    for cost in costs:
        if cost.mu is not None:
            one = pld.from_gaussian_mechanism(1 / cost.mu, value_discretization_interval=GRID)
        else:
            pair = common.DifferentialPrivacyParameters(cost.epsilon, cost.delta)
            one = pld.from_privacy_parameters(pair, value_discretization_interval=GRID)
        whole = whole.compose(one)
    return whole


CASES = {
    "one Gaussian": [Cost(mu=0.7)],
    "Gaussians": [Cost(mu=0.5), Cost(mu=0.25), Cost(mu=1.0)],
    "one pair": [Cost(epsilon=1.0, delta=1e-6)],
    "pairs": [Cost(epsilon=0.5, delta=1e-7), Cost(epsilon=1.5, delta=0.0)] * 3,
    "mixed": [Cost(mu=0.8), Cost(epsilon=0.5, delta=1e-7), Cost(mu=0.3), Cost(epsilon=2, delta=0)],
    "many": [Cost(mu=0.2)] * 5 + [Cost(epsilon=0.1, delta=1e-8)] * 20,
}


@pytest.mark.parametrize("costs", CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("delta", [1e-5, 1e-3])
def test_agrees_with_dp_accounting(costs, delta):
    """Its grid rounds losses up, so it may be above by a grid step per release, and never below."""
    ours, other = epsilon_spent(costs, delta), theirs(costs).get_epsilon_for_delta(delta)
    assert other - GRID * len(costs) <= ours <= other + 1e-6


@pytest.mark.parametrize("factor", [2**-0.5, 2**0.5])
def test_a_factor_of_root_two_is_seen(factor):
    costs = CASES["mixed"]
    wrong = [Cost(mu=c.mu * factor) if c.mu else c for c in costs]
    other = theirs(costs).get_epsilon_for_delta(1e-5)
    assert abs(epsilon_spent(wrong, 1e-5) - other) > 0.1


def test_squares_of_mu_add_up_and_epsilons_do_not():
    costs = [Cost(mu=0.3), Cost(mu=0.4)]
    assert mu_spent(costs) == pytest.approx(0.5, rel=1e-15)
    assert epsilon_spent(costs, 1e-6) == pytest.approx(epsilon_of(0.5, 1e-6), rel=1e-12)
    assert epsilon_spent(costs, 1e-6) < sum(epsilon_spent([c], 1e-6) for c in costs)
    assert mu_spent([*costs, Cost(epsilon=1, delta=0)]) is None


def test_optimal_composition_of_pure_pairs():
    """Kairouz, Oh & Viswanath (2015), Theorem 3.3, written out."""
    k, epsilon = 9, 0.4
    for i in range(k // 2 + 1):
        total = (k - 2 * i) * epsilon
        exact = (
            sum(
                math.comb(k, j)
                * (math.exp((k - j) * epsilon) - math.exp((k - 2 * i + j) * epsilon))
                for j in range(i)
            )
            / (1 + math.exp(epsilon)) ** k
        )
        found = delta_spent([Cost(epsilon=epsilon, delta=0)] * k, total)
        assert found == pytest.approx(exact, rel=1e-7, abs=1e-12)


def test_many_different_pairs_are_rounded_to_the_safe_side():
    """A grid takes over from 2¹⁶ sums; it must cost little and never be below."""
    sizes = [0.05 + 0.003 * i * math.sqrt(2) for i in range(16)]
    costs = [Cost(mu=0.5), *(Cost(epsilon=size, delta=1e-9) for size in sizes)]
    epsilon = 3.0
    signs = np.array(list(itertools.product([1, -1], repeat=16)))
    weights = np.prod(1 / (1 + np.exp(-signs * sizes)), axis=1)
    rest = epsilon - signs @ np.array(sizes)
    gauss = norm.cdf(0.25 - rest / 0.5) - np.exp(rest) * norm.cdf(-0.25 - rest / 0.5)
    exact = float(weights @ gauss)
    found = delta_spent(costs, epsilon)
    assert exact <= found <= 1.01 * exact + 16e-9


@settings(max_examples=25, deadline=None)
@given(epsilon=st.floats(0.01, 20), delta=st.floats(1e-12, 0.1), bits=st.integers(58, 80))
def test_what_was_planned_for_the_limit_fits_it_to_the_last_bit(epsilon, delta, bits):
    limit, margin = Budget(epsilon=epsilon, delta=delta), lattice_margin(10**5, bits)
    mu = mu_of(limit, margin=margin)
    assert fits([Cost(mu=mu, margin=margin)], limit)
    assert not fits([Cost(mu=math.nextafter(mu, 9), margin=margin)], limit)
    assert fits([Cost(epsilon=epsilon, delta=delta)], limit)
    assert not fits([Cost(epsilon=epsilon, delta=math.nextafter(delta, 1))], limit)
    assert not fits([Cost(epsilon=epsilon * (1 + 1e-9), delta=delta)], limit)
    assert epsilon_spent([Cost(epsilon=epsilon, delta=delta)], delta) == epsilon


def test_simple_sums_fit():
    assert fits([Cost(epsilon=1, delta=1e-6)] * 2, Budget(epsilon=2, delta=2e-6))
    assert not fits([Cost(epsilon=1, delta=1e-6)] * 2, Budget(epsilon=1.9, delta=1e-6))


@settings(max_examples=25, deadline=None)
@given(
    spent=st.lists(st.floats(0.01, 0.9), max_size=4),
    pairs=st.lists(st.floats(0.01, 0.5), max_size=2),
    epsilon=st.floats(0.5, 10),
)
def test_what_is_left_can_be_spent_and_no_more(spent, pairs, epsilon):
    costs = [Cost(mu=mu) for mu in spent] + [Cost(epsilon=e, delta=1e-8) for e in pairs]
    limit = Budget(epsilon=epsilon, delta=1e-6)
    rest = left(costs, limit)
    if rest.mu == 0:
        assert not fits([*costs, Cost(mu=1e-4)], limit)
        return
    assert fits([*costs, Cost(mu=rest.mu)], limit)
    assert not fits([*costs, Cost(mu=rest.mu * (1 + 1e-6) + 1e-6)], limit)
    if rest.epsilon > 1e-3:
        margin = lattice_margin(10**6, 58)
        mu = mu_of(Budget(epsilon=rest.epsilon, delta=limit.delta), margin=margin)
        assert fits([*costs, Cost(mu=mu, margin=margin)], limit)


def test_nothing_spent_leaves_the_whole_limit():
    limit = Budget(epsilon=5, delta=1e-6)
    assert epsilon_spent([], 1e-6) == 0
    assert delta_spent([], 1.0) == 0
    assert fits([], limit)
    assert left([], limit).mu == mu_of(limit)
    assert left([], limit).epsilon == pytest.approx(5, rel=1e-5)
    assert left([Cost(mu=9)], limit) == Left(mu=0.0, epsilon=0.0)


def test_margins_add_up():
    costs = [Cost(mu=0.5, margin=0.01), Cost(epsilon=0.5, delta=1e-6), Cost(mu=0.5, margin=0.02)]
    bare = [Cost(mu=0.5), Cost(epsilon=0.5, delta=1e-6), Cost(mu=0.5)]
    assert delta_spent(costs, 2.0) == pytest.approx(
        math.exp(0.06) * delta_spent(bare, 1.94), rel=1e-9
    )
    assert not fits([Cost(mu=0.01, margin=1.0)], Budget(epsilon=1, delta=1e-6))


def test_leaks_alone_can_exceed_delta():
    assert epsilon_spent([Cost(epsilon=0.1, delta=1e-3)], 1e-6) == math.inf


@pytest.mark.parametrize("delta", [1e-30, 1e-100])
def test_deltas_far_below_the_reach_of_a_fourier_transform(delta):
    costs = [Cost(mu=0.5), Cost(epsilon=0.5, delta=0.0)]
    found = epsilon_spent(costs, delta)
    worse, better = epsilon_of(0.5, delta) + 0.5, epsilon_of(0.5, delta)
    assert better < found <= worse * (1 + 1e-9)
    assert delta_of(0.5, found - 0.5) >= delta * (1 - 1e-9)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"mu": 1, "epsilon": 1, "delta": 0},
        {"epsilon": 1},
        {"delta": 0.1},
        {"mu": math.inf},
        {"mu": math.nan},
        {"mu": "1"},
        {"mu": True},
        {"mu": -1},
        {"mu": 1, "delta": 0.1},
        {"epsilon": 1, "delta": 1},
        {"epsilon": 1, "delta": 0, "margin": 0.1},
    ],
)
def test_a_cost_is_one_of_two_kinds(fields):
    with pytest.raises(InputError):
        Cost(**fields)


def test_a_cost_survives_a_file():
    for cost in (Cost(mu=0.1 + 0.2, margin=1e-18), Cost(epsilon=1, delta=1e-9)):
        assert Cost.from_dict(cost.to_dict()) == cost
    with pytest.raises(InputError, match="fields"):
        Cost.from_dict({"price": 1.0})
    assert str(Cost(mu=0.91)) == "mu=0.91"
    assert str(Cost(epsilon=2, delta=1e-6)) == "epsilon=2, delta=1e-06"


def test_somebody_with_two_rows_pays_for_both():
    alone = Cost(mu=0.5, margin=1e-9)
    assert alone.for_group(1) is alone
    assert alone.for_group(2) == Cost(mu=1.0, margin=1e-9)
    pair = Cost(epsilon=0.3, delta=1e-6).for_group(2)
    assert pair.epsilon == pytest.approx(0.6)
    assert pair.delta == pytest.approx((1 + math.exp(0.3)) * 1e-6)
    # The mean moves twice as far: the cost is that of one release with half the noise.
    assert epsilon_spent([alone.for_group(2)], 1e-6) > 2 * epsilon_spent([alone], 1e-6)
