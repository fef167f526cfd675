"""Which stages find bounds is decided from public numbers; each costs what its sensitivity says."""

import math
from fractions import Fraction

import numpy as np
import pytest

from factories import array_source, planned
from primo.errors import BoundsError, InputError
from primo.planning.guarantee import check_plan
from primo.planning.searches import Columns, Searches, plan_searches, searched_numbers
from primo.privacy import lengths, values
from primo.privacy.bounds import Bounds
from primo.privacy.centre_search import RADIUS, centre_search
from primo.privacy.column_search import column_search
from primo.privacy.sensitivity import joint_distance
from primo.rows.sums import fold_sums
from primo.rows.values import fold_values

AUTO = Bounds(norm="auto")
RANGE = Bounds(lower=-10, upper=10, norm="auto")
SCALES = Bounds(centre=0, scale=2, norm="auto")


def plan(n=20_000, d=5, l=3, **changes):
    given = {"epsilon": 1.0, "delta": 1e-9, "feature_bounds": AUTO, "outcome_bounds": AUTO}
    return planned(n=n, d=d, l=l, **given | changes)


CASES = {
    "nothing stated": ({}, (False, False), (True, True)),
    "ranges": ({"feature_bounds": RANGE, "outcome_bounds": RANGE}, (True, True), (False, False)),
    "scales": ({"feature_bounds": SCALES, "outcome_bounds": SCALES}, (True, True), (False, False)),
    "one of each": ({"feature_bounds": RANGE}, (True, False), (False, True)),
    "no intercept": ({"fit_intercept": False}, (False, False), (False, False)),
    "a stated norm": ({"outcome_bounds": 3.0}, (False, False), (True, False)),
    "public features": ({"protection": "outcomes"}, (False, False), (False, True)),
    "a panel": (
        {"feature_bounds": RANGE, "outcome_bounds": RANGE, "public_covariance": np.eye(5)},
        (False, True),
        (False, False),
    ),
    "too few rows": (
        {"n": 400, "feature_bounds": RANGE, "outcome_bounds": RANGE},
        (False, False),
        (False, False),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_looked_for_follows_from_public_numbers(name):
    changes, centres, columns = CASES[name]
    made = plan(**changes)
    for search, wanted in ((made.centre_search, centres), (made.column_search, columns)):
        found = (False, False) if search is None else (search.features, search.outcomes)
        assert found == wanted
    check_plan(made)
    noisy = made.grid.p if made.covariance_noisy else 0 * made.grid.p
    total = joint_distance(noisy, made.grid.q, made.grid.s) + made.searched
    assert Fraction(999, 1000) * Fraction(made.mu) ** 2 < total <= Fraction(made.mu) ** 2


def test_wide_blocks_are_left_as_they_are():
    """The noise of a mean has the length √columns·σ/n; column histograms cost √(2·columns)."""
    made = plan(d=50_000, feature_bounds=RANGE, outcome_bounds=RANGE)
    assert (made.centre_search.features, made.centre_search.outcomes) == (False, True)
    made = plan(d=1000)
    assert (made.column_search.features, made.column_search.outcomes) == (False, True)
    assert made.centre_search.features


def test_a_large_share_finds_norms_alone():
    blocks = {"features": Columns(width=5, plain=False, movable=True)}
    found = plan_searches(blocks, mu=1.0, share=0.4, n=10**6)
    assert found.centres is None
    assert found.columns is None
    assert float(found.spent) == pytest.approx(0.4, rel=1e-6)


def test_few_columns_of_unknown_units_get_more_where_less_does_not_speak():
    """The least share that finds them; never more than half of the budget; many columns get none."""
    shares = []
    for n in (3_000, 5_000, 20_000):
        made = plan(n=n, d=6, l=1, epsilon=0.5, delta=1e-8)
        assert made.column_search.features
        assert made.column_search.outcomes
        shares.append(float(made.column_search.spent) / made.mu**2)
        assert made.searched <= Fraction(1, 2) * Fraction(made.mu) ** 2
        check_plan(made)
    assert shares == sorted(shares, reverse=True)
    assert shares == pytest.approx([0.3, 0.1, 0.05], rel=1e-3)
    many = plan(n=5_000, d=26, l=1, epsilon=0.5, delta=1e-8)
    assert not many.column_search.features
    assert many.column_search.outcomes


def test_units_that_are_found_take_the_place_of_a_missing_norm():
    """Fewer rows than lengths alone need; but not where only one block has its units found."""
    assert plan(n=2_400, d=6, l=1, epsilon=0.5, delta=2e-7).column_search.features
    with pytest.raises(BoundsError, match="too few"):
        plan(n=2_400, d=9, l=1, epsilon=0.5, delta=2e-7)


def test_every_number_is_counted_in_the_margin():
    made = plan(feature_bounds=RANGE)
    searches = Searches(centres=made.centre_search, columns=made.column_search)
    assert searched_numbers(searches, d=5, l=3) == 5 + lengths.BINS + 3 * values.BINS


@pytest.mark.parametrize("mu", [1e-3, 0.04, 3.0])
@pytest.mark.parametrize("blocks", [(True, False), (True, True)])
@pytest.mark.parametrize("n", [1000, 10**7])
def test_centres_spend_mu_and_no_more(mu, blocks, n):
    search = centre_search(mu=mu, n=n, features=blocks[0], outcomes=blocks[1])
    if search is None:
        assert mu == 1e-3
        return
    assert search.spent <= Fraction(mu) ** 2
    if n == 1000:
        assert float(search.spent) > 0.98 * mu**2
    assert n * RADIUS * search.unit <= 2**61
    sums = float(search.spent - search.counts.spent)
    assert 2 * math.sqrt(sum(blocks)) / search.sigma == pytest.approx(math.sqrt(sums))


@pytest.mark.parametrize("columns", [1, 7, 300])
def test_columns_spend_mu_and_no_more(columns):
    search = column_search(mu=0.1, features=True, outcomes=False, columns=columns)
    assert Fraction(99, 10_000) < search.spent <= Fraction(0.1) ** 2
    assert math.sqrt(2 * columns) / search.sigma == pytest.approx(0.1, rel=1e-6)


def odd_rows(rng, width):
    """Rows of every size and kind, opposite pairs among them."""
    row = rng.normal(size=width) * 10.0 ** rng.integers(-60, 60)
    kinds = [row, -row, row * 1e-9, np.zeros(width), np.full(width, 1e300), np.full(width, -5e-324)]
    return kinds[rng.integers(len(kinds))]


@pytest.mark.parametrize("limits", [SCALES, RANGE], ids=["scales", "ranges"])
def test_no_pair_of_rows_moves_the_sums_further_than_stated(limits):
    """A search that tries to beat 2·RADIUS for a block, and opposite rows that reach it."""
    made = plan(feature_bounds=limits, outcome_bounds=limits, d=3, l=2)
    rng = np.random.default_rng(3)

    def moved(one, other):
        a, b = (fold_sums(array_source(x[None], y[None]), made, threads=1) for x, y in (one, other))
        return (
            int(((a.features - b.features) ** 2).sum()),
            int(((a.outcomes - b.outcomes) ** 2).sum()),
        )

    for _ in range(300):
        pair = [(odd_rows(rng, 3), odd_rows(rng, 2)) for _ in range(2)]
        assert max(moved(*pair)) <= 4 * RADIUS**2
    x, y = np.array([1.0, 2.0, -2.0]), np.array([3.0, 4.0])
    reached = moved((1e3 * x, 1e3 * y), (-1e3 * x, -1e3 * y))
    assert min(reached) > 0.9999 * 4 * RADIUS**2


def test_no_pair_of_rows_moves_the_counts_of_columns_further_than_stated():
    made = plan(d=3, l=2)
    rng = np.random.default_rng(4)
    reached = 0
    for _ in range(300):
        pair = [(odd_rows(rng, 3), odd_rows(rng, 2)) for _ in range(2)]
        a, b = (fold_values(array_source(x[None], y[None]), made, threads=1) for x, y in pair)
        moved = [a.features - b.features, a.outcomes - b.outcomes]
        assert max(int(np.abs(part).max()) for part in moved) <= 1
        reached = max(reached, sum(int((part**2).sum()) for part in moved))
    assert reached == 2 * made.column_search.columns


def test_rows_that_cannot_be_released_fail_in_the_first_pass():
    """Also where the missing value is in a block that is not counted: before any noise is drawn."""
    made = plan(d=3, l=2, feature_bounds=Bounds(norm=2.0))
    assert made.column_search.outcomes
    assert not made.column_search.features
    x, y = np.ones((made.n, 3)), np.ones((made.n, 2))
    x[5, 1] = np.nan
    with pytest.raises(InputError, match="the features contain NaN"):
        fold_values(array_source(x, y), made, threads=1)
