"""The paper's bounds and Table 1."""

import math

import pytest

from primo.errors import InputError
from primo.forecast.theory import (
    feature_projection_bound,
    gauss_bound,
    lower_bound,
    outcome_projection_bound,
    regime,
)
from primo.planning.settings import associations_for
from primo.privacy.protection import Protection

NORMS = {"feature_norm": 2.0, "outcome_bound": 0.5, "coefficient_norm": 3.0}
ONE = {"n": 10_000, "epsilon": 2.0, **NORMS}


def test_each_bound_at_numbers_worked_by_hand():
    assert lower_bound(d=4, **ONE) == pytest.approx(2 * (36 + 3) / 20_000)
    assert gauss_bound(d=4, l=9, **ONE) == pytest.approx(6 * math.sqrt(4 * 36 + 9) / 20_000)
    public = gauss_bound(d=4, l=9, covariance_private=False, **ONE)
    assert public == pytest.approx(6 * 3 / 20_000)
    assert feature_projection_bound(d=4, **ONE) == pytest.approx(
        6 * math.sqrt(4 * 36 / 20_000**2 + 2 * 0.25 / 20_000)
    )
    assert outcome_projection_bound(l=16, **ONE) == pytest.approx(6 * 0.5 * 2 / math.sqrt(20_000))


def test_the_lower_bound_never_exceeds_the_variance():
    assert lower_bound(d=4, n=1, epsilon=0.01, **NORMS) == 0.25


def test_reusing_the_covariance_never_costs_more_than_separate_regressions():
    for l in (1, 10, 1000):
        separate = math.sqrt(l * 7) * (36 + 3) / 20_000  # equation 4 of the paper
        assert gauss_bound(d=7, l=l, **ONE) <= separate * (1 + 1e-12)


def ratio_of(l, **given):
    return regime(d=100, l=l, **{**ONE, **given})


@pytest.mark.parametrize(
    ("protection", "association", "l", "n", "row", "free"),
    [
        ("both", "gauss", 10, 10_000, 1, True),
        ("both", "gauss", 500, 10_000, 2, False),
        ("features", "gauss", 10, 10_000, 1, True),
        ("features", "projection", 5_000, 1_000, 3, True),
        ("features", "projection", 5_000, 10_000, 4, False),
        ("outcomes", "gauss", 10, 10_000, 2, False),
        ("outcomes", "projection", 5_000, 10_000, 5, False),
    ],
)
def test_rows_of_table_1(protection, association, l, n, row, free):
    # b_x²‖w‖²/b_y² = 144, √d = 10: rows change at l = 144 and n = 1 440.
    found = ratio_of(l, n=n, protection=protection, association=association)
    assert (found.row, found.free) == (row, free)
    assert found.cost >= 1
    assert found.cost == pytest.approx(max(1.0, found.rate / found.lower_bound))


def test_free_means_close_to_the_lower_bound():
    assert ratio_of(2).cost < 1.5
    assert ratio_of(10_000).cost > 5


def test_the_cost_has_the_growth_that_table_1_prints():
    """Where the association dominates, b_y ≫ b_x‖w‖ (and errors are far below the variance)."""
    norms = {"feature_norm": 1.0, "outcome_bound": 1.0, "coefficient_norm": 1e-4}
    base = {"n": 10**6, "d": 16, "epsilon": 1.0, **norms}

    def cost(**given):
        return regime(**{**base, "l": 100, **given}).cost

    assert cost(l=400) / cost() == pytest.approx(2, rel=1e-3)  # √l
    features = {"protection": "features", "association": "projection"}
    assert cost(n=4 * 10**6, **features) / cost(**features) == pytest.approx(2, rel=1e-3)
    assert cost(d=256, **features) / cost(**features) == pytest.approx(1 / 2, rel=1e-3)
    outcomes = {"protection": "outcomes", "association": "projection"}
    assert cost(l=1600, **outcomes) / cost(**outcomes) == pytest.approx(2, rel=1e-3)  # l^(1/4)
    assert cost(n=4 * 10**6, **outcomes) / cost(**outcomes) == pytest.approx(2, rel=1e-3)  # √n


@pytest.mark.parametrize("protection", ["features", "outcomes"])
def test_the_threshold_is_where_the_association_errors_cross(protection):
    """With a covariance that costs nothing (‖w‖ → 0) and ε = 1 the two bounds are equal there."""
    norms = {"feature_norm": 1.0, "outcome_bound": 1.0, "coefficient_norm": 1e-9}
    base = {"n": 1000, "d": 25, "epsilon": 1.0, "protection": protection, **norms}
    threshold = regime(l=1, association="projection", **base).threshold
    l = round(threshold)
    gauss = regime(l=l, association="gauss", **base).rate
    projected = regime(l=l, association="projection", **base).rate
    assert gauss == pytest.approx(projected, rel=1e-3)


def test_the_printed_threshold_of_the_paper_is_kept_beside_ours():
    found = regime(n=8000, d=20, l=10, epsilon=1, protection="outcomes", association="projection")
    assert found.printed_threshold == pytest.approx(400)
    assert found.threshold == pytest.approx(160_000)


def test_a_hopeless_bound_says_so():
    assert ratio_of(10**9).trivial
    assert not ratio_of(10).trivial


def test_projection_needs_a_public_block():
    assert associations_for(Protection.BOTH) == ("gauss",)
    with pytest.raises(InputError, match='"projection" needs a public block'):
        ratio_of(10, association="projection")


@pytest.mark.parametrize(
    "bad", [{"n": 0}, {"epsilon": -1.0}, {"feature_norm": math.nan}, {"coefficient_norm": "x"}]
)
def test_bad_numbers_are_named(bad):
    (name,) = bad
    with pytest.raises(InputError, match=name):
        ratio_of(10, **bad)


def test_it_becomes_plain_words():
    assert ratio_of(10).to_dict()["printed_cost"] == "1"
