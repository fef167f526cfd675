"""The budgets of rounds: fixed in advance, exact fractions, never more than mu together."""

from fractions import Fraction

import pytest

from factories import planned
from primo.errors import InputError, PrivacyError
from primo.planning.guarantee import check_plan
from primo.planning.rounds import clip_of_round, round_plan
from primo.privacy.bounds import Bounds
from primo.privacy.rounds import (
    FIRST_SHARE,
    MOST_ROUNDS,
    SMALL_STEP_ROUNDS,
    make_rounds,
    round_shares,
    round_spent,
)

COMMON = {
    "n": 1000,
    "d": 4,
    "l": 3,
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": (-1, 1),
    "outcome_bounds": Bounds(norm=2.0),
}


def plan_of(**changes):
    return planned(**COMMON | {"rounds": 5} | changes)


@pytest.mark.parametrize("count", [1, 2, 5, MOST_ROUNDS])
@pytest.mark.parametrize("mu", [0.01, 0.45, 3.0])
@pytest.mark.parametrize("first", [0.0, FIRST_SHARE])
def test_shares_add_up_and_nothing_more_is_spent(count, mu, first):
    shares = round_shares(count, first=first)
    assert len(shares) == count
    assert sum(shares) == pytest.approx(1, abs=1e-12)
    assert shares[0] == pytest.approx(1 if count == 1 else max(first, 1 / count))
    assert len(set(shares[1:])) <= 1
    rounds = make_rounds(mu=mu, split=2.0, n=5000, shares=shares)
    spent = rounds.spent(covariance_noisy=True)
    # Two-sided: at most mu², as a fraction, and not a millionth less.
    assert (1 - Fraction(1, 10**6)) * Fraction(mu) ** 2 < spent <= Fraction(mu) ** 2
    assert rounds.spent(covariance_noisy=False) <= spent


@pytest.mark.parametrize("protection", ["both", "outcomes", "features"])
@pytest.mark.parametrize("norm", [2.0, "auto"])
def test_rounds_and_norm_search_together_spend_mu(protection, norm):
    given = {"outcome_bounds": Bounds(lower=-9, upper=9, norm=norm)}
    if protection == "features":  # public outcomes have nothing to be searched
        given = {"feature_bounds": Bounds(lower=-1, upper=1, norm=norm)}
    plan = plan_of(protection=protection, **given)
    spent = plan.rounds.spent(covariance_noisy=plan.covariance_noisy)
    searches = (plan.norm_search, plan.centre_search, plan.column_search)
    spent += sum(search.spent for search in searches if search is not None)
    assert (plan.norm_search is not None) == (norm == "auto")
    assert 0.9999 * plan.mu**2 < spent <= Fraction(plan.mu) ** 2
    check_plan(plan)


@pytest.mark.parametrize(
    ("changes", "share"),
    [
        ({}, FIRST_SHARE),
        ({"fit_intercept": False}, 1 / 5),
        ({"protection": "outcomes"}, FIRST_SHARE),
        ({"protection": "features"}, 1 / 5),
        ({"rounds": 2}, 1 / 2),
        ({"rounds": SMALL_STEP_ROUNDS}, 1 / SMALL_STEP_ROUNDS),
    ],
)
def test_the_first_round_has_a_third_where_means_are_private(changes, share):
    plan = plan_of(**changes)
    spent = [
        round_spent(grid, covariance_noisy=plan.covariance_noisy) for grid in plan.rounds.grids
    ]
    assert float(spent[0] / sum(spent)) == pytest.approx(share, rel=1e-5)
    check_plan(plan)


def test_one_round_is_the_plan_without_rounds():
    one, none = plan_of(rounds=1), planned(**COMMON)
    assert one.rounds is None
    assert one.round_count == 1
    assert (one.grid, one.mu, one.margin) == (none.grid, none.mu, none.margin)


def test_the_margin_counts_the_numbers_of_all_rounds():
    one, five = plan_of(rounds=1), plan_of(rounds=5)
    assert five.margin == pytest.approx(5 * one.margin)
    assert five.mu < one.mu  # by very little: the margin comes off epsilon
    assert five.cost.mu == five.mu


def test_the_plan_of_a_round_states_what_it_spends():
    plan = plan_of()
    assert plan.grid == plan.rounds.grids[0]
    squares = 0.0
    for number, grid in enumerate(plan.rounds.grids):
        own = round_plan(plan, number, 0.5)
        assert own.rounds is None
        assert own.outcomes.norm == 0.5
        assert Fraction(own.mu) ** 2 >= round_spent(grid, covariance_noisy=True)
        squares += own.mu**2
    assert squares == pytest.approx(plan.mu**2, rel=1e-6)
    # Noise is proportional to the clip.
    near, far = (round_plan(plan, 1, clip) for clip in (0.1, 1.0))
    assert far.association_sigma == pytest.approx(10 * near.association_sigma)
    assert far.outcome_sigma == pytest.approx(100 * near.outcome_sigma)
    assert far.covariance_sigma == near.covariance_sigma


def test_residuals_of_public_outcomes_have_the_noise_of_private_ones():
    """A round of the outcomes themselves has exact outcome moments; one of residuals that of `both`."""
    plan, both = plan_of(protection="features", rounds=3), plan_of(rounds=3)
    assert (plan.grid, plan.rounds, plan.mu, plan.margin) == (
        both.grid,
        both.rounds,
        both.mu,
        both.margin,
    )
    own, left = (round_plan(plan, 1, 0.5, residuals=found) for found in (False, True))
    assert own.protection.outcomes_private is False
    assert own.outcome_sigma == own.outcome_sum_sigma == 0
    assert left.protection.outcomes_private is True
    assert left.outcome_sigma == round_plan(both, 1, 0.5).outcome_sigma > 0
    assert left.residual_sigma == own.residual_sigma == left.outcome_sigma
    assert left.mu == own.mu


def test_clips_stay_between_the_norm_and_a_small_part_of_it():
    plan = plan_of()
    found = [
        clip_of_round(plan, clip) for clip in (0.0, -1.0, 0.3, 7.0, float("inf"), float("nan"))
    ]
    assert found == [2 / 4096, 2 / 4096, 0.3, 2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    "changes",
    [
        {"protection": "features", "association": "projection"},
        {"calibration": "paper"},
        {"covariance_rows": 100},
        {"public_covariance": True},
        {"protection": "outcomes", "d": 2000},
    ],
    ids="-".join,
)
def test_several_rounds_are_refused_where_there_can_be_one(changes):
    with pytest.raises(InputError, match="rounds=5 is not possible here"):
        plan_of(**changes)
    assert plan_of(rounds=1, **changes).rounds is None


@pytest.mark.parametrize("rounds", [0, -1, 2.5, MOST_ROUNDS + 1, "many", None, True])
def test_a_number_of_rounds_that_is_none(rounds):
    with pytest.raises(InputError, match="whole number from 1 to 256"):
        plan_of(rounds=rounds)


def test_a_plan_that_spends_more_than_it_states_is_refused():
    from dataclasses import replace

    plan = plan_of()
    grids = plan.rounds.grids
    forged = [
        (*grids, grids[-1]),  # a round that was not charged
        grids[:-1],
        (*grids[:-1], replace(grids[-1], association_variance_bits=70)),
        (replace(grids[0], outcome_variance_bits=90), *grids[1:]),  # the plan's own is another
    ]
    for changed in forged:
        with pytest.raises(PrivacyError):
            check_plan(replace(plan, rounds=replace(plan.rounds, grids=changed)))
    with pytest.raises(PrivacyError):
        check_plan(replace(plan, rounds=None))
    with pytest.raises(PrivacyError):
        check_plan(replace(plan, margin=plan.margin / 5))


def test_plans_can_be_compared():
    """Clips hold arrays, which have no truth of their own."""
    assert plan_of() == plan_of()
    assert plan_of() != plan_of(outcome_bounds=Bounds(norm=3.0))
    assert plan_of() != plan_of(rounds=4)
