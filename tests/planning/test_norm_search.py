"""What finding norms costs, and when it is declined: exact fractions, never more than mu."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest

import primo
from factories import planned
from primo.errors import BoundsError, InputError, PrivacyError
from primo.planning.guarantee import check_plan
from primo.privacy.bounds import Bounds
from primo.privacy.norm_search import norm_search
from primo.privacy.sensitivity import joint_distance

AUTO = Bounds(norm="auto")
RANGE = Bounds(lower=-1, upper=1, norm="auto")


def plan(n=20_000, **changes):
    given = {"epsilon": 1.0, "delta": 1e-9, "feature_bounds": AUTO, "outcome_bounds": AUTO}
    return planned(n=n, d=5, l=3, **given | changes)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("share", [0.001, 0.05, 0.5])
@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_both_stages_together_spend_mu_and_no_more(epsilon, share, protection):
    made = plan(n=10**6, epsilon=epsilon, norm_share=share, protection=protection)
    assert made.norm_search is not None
    main = joint_distance(
        made.grid.p if made.covariance_noisy else 0 * made.grid.p, made.grid.q, made.grid.s
    )
    total = main + made.searched
    assert total <= Fraction(made.mu) ** 2
    assert total > Fraction(made.mu) ** 2 * Fraction(999, 1000)
    alone = made.centre_search is None and made.column_search is None
    assert alone == (share == 0.5)
    spent = float(made.norm_search.spent)
    assert spent == pytest.approx((1.0 if alone else 0.6) * share * made.mu**2, rel=1e-4)
    check_plan(made)


def test_a_histogram_moves_by_the_root_of_two_and_two_by_two():
    one = norm_search(mu=0.5, features=True, outcomes=False)
    two = norm_search(mu=0.5, features=True, outcomes=True)
    assert one.sigma == pytest.approx(math.sqrt(2) / 0.5, rel=1e-6)
    assert two.sigma == pytest.approx(2 / 0.5, rel=1e-6)


def test_too_few_rows_decline_and_the_ranges_stand():
    made = plan(n=150, epsilon=0.4, feature_bounds=RANGE, outcome_bounds=RANGE)
    assert made.norm_search is None
    assert made.declined == ("features", "outcomes")
    assert made.features.norm == pytest.approx(math.sqrt(5))
    check_plan(made)


def test_too_few_rows_without_a_range_are_refused():
    with pytest.raises(BoundsError, match="150 rows are too few to find a norm"):
        plan(n=150, epsilon=0.4)


@pytest.mark.parametrize("changes", [{"calibration": "paper"}, {"covariance_rows": 100}])
def test_other_accounting_is_refused(changes):
    with pytest.raises(BoundsError, match='norm="auto", which goes with'):
        plan(**changes)


@pytest.mark.parametrize("share", [0, 0.6, math.nan, "x"])
def test_bad_shares_are_named(share):
    with pytest.raises(InputError, match="norm_share"):
        plan(norm_share=share)


def test_other_words_than_auto_are_refused():
    with pytest.raises(BoundsError, match='must be a positive number or "auto"'):
        Bounds(norm="automatic")


def edited(made, name="norm_search", **search):
    return dataclasses.replace(made, **{name: dataclasses.replace(getattr(made, name), **search)})


def test_a_plan_that_forgets_a_stage_is_refused():
    made = plan()
    for bad in (
        dataclasses.replace(made, norm_search=None),
        edited(made, unit=2 * made.norm_search.unit),
        edited(made, outcomes=False),
        edited(made, variance_bits=40),
        edited(made, variance_bits=61),
        edited(made, unit=2**41),
        dataclasses.replace(made, column_search=None),
        edited(made, "column_search", unit=made.column_search.unit // 2),
        edited(made, "column_search", columns=1),
        edited(made, "column_search", outcomes=False),
        edited(made, "column_search", variance_bits=64),
        dataclasses.replace(made, intercept=False),
        dataclasses.replace(made, auto_norms=("features",)),
    ):
        with pytest.raises(PrivacyError):
            check_plan(bad)


def test_a_plan_that_forgets_its_centres_is_refused():
    made = plan(feature_bounds=RANGE, outcome_bounds=RANGE)
    for bad in (
        dataclasses.replace(made, centre_search=None),
        edited(made, "centre_search", unit=made.centre_search.unit // 2),
        edited(made, "centre_search", count_unit=1),
        edited(made, "centre_search", outcomes=False),
        edited(made, "centre_search", variance_bits=82),
        dataclasses.replace(made, norm_search=None),
    ):
        with pytest.raises(PrivacyError):
            check_plan(bad)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(20_000, 5)) * 1000
    return x, x @ rng.normal(size=(5, 3)) / 1000 + rng.normal(size=(20_000, 3))


class TestRelease:
    """End to end, through the shell."""

    @pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
    def test_no_bounds_but_that_they_are_numbers(self, data, protection):
        model = primo.PrimoRegressor(
            1, 1e-9, protection=protection, feature_bounds=AUTO, outcome_bounds=AUTO
        ).fit(*data)
        predicted = model.predict(data[0])
        assert 1 - np.var(data[1] - predicted) / np.var(data[1]) > 0.8
        plan = model.release_.plan
        if plan.is_private("features"):
            assert ((plan.features.scale > 500) & (plan.features.scale < 2000)).all()
        assert "was found from a histogram" in " ".join(model.release_.statement().split())

    def test_a_wrong_order_of_magnitude_costs_little(self, data):
        scores = []
        for factor in (1e-3, 1.0, 1e3):
            limits = Bounds(centre=0, scale=factor, norm="auto")
            model = primo.PrimoRegressor(1, 1e-9, feature_bounds=limits, outcome_bounds=limits).fit(
                *data
            )
            left = data[1] - model.predict(data[0])
            scores.append(1 - np.var(left) / np.var(data[1]))
        assert max(scores) - min(scores) < 0.02

    def test_a_file_keeps_the_histograms(self, data, tmp_path):
        release = (
            primo.PrimoRegressor(1, 1e-9, feature_bounds=AUTO, outcome_bounds=AUTO)
            .fit(*data)
            .release_
        )
        read = primo.load_release(primo.save_release(release, tmp_path / "r.npz"))
        np.testing.assert_array_equal(read.lengths.features, release.lengths.features)
        assert read.plan.norm_search == release.plan.norm_search

    def test_later_outcomes_have_norms_found(self, data):
        x, y = data
        limits = {"feature_bounds": AUTO, "outcome_bounds": AUTO}
        first = primo.PrimoRegressor(1, 1e-9, **limits).fit(x, y[:, :2]).release_
        later = primo.extend(
            first, x, 100 * y[:, 2], protection="both", epsilon=1, delta=1e-9, outcome_bounds=AUTO
        )
        assert later.plan.auto_norms == ("outcomes",)
        assert later.plan.features.norm == first.plan.features.norm
        size, earlier = (
            each.plan.outcomes.norm * each.plan.outcomes.scale for each in (later, first)
        )
        assert size.min() > 10 * earlier.max()
