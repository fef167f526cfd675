"""Moments are exact integers: the same bits for any block size, row order and thread count."""

from importlib import import_module

import numpy as np
import pytest

from factories import array_source as source
from factories import planned
from primo._util.jit import load
from primo.errors import InputError
from primo.privacy.bounds import Bounds
from primo.rows import quantise
from primo.rows.moments import fold
from primo.rows.quantise import feature_quantiser, outcome_quantiser
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.base import Block


def cohort(n=997, d=4, l=3, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * 3, rng.standard_cauchy(size=(n, l))


def plan_for(x, y, **changes):
    settings = {
        "n": len(x),
        "d": x.shape[1],
        "l": y.shape[1],
        "epsilon": 1.0,
        "delta": 1e-6,
        "feature_bounds": Bounds(norm=4.0),
        "outcome_bounds": Bounds(lower=-2.0, upper=5.0),
    }
    return planned(**{**settings, **changes})


def same(a, b):
    return (
        a.rows == b.rows
        and np.array_equal(a.covariance, b.covariance)
        and np.array_equal(a.association, b.association)
        and np.array_equal(a.outcome, b.outcome)
    )


@pytest.mark.parametrize("outcome_moments", ["full", "diagonal"])
@pytest.mark.parametrize("intercept", [True, False])
def test_moments_equal_python_integers(outcome_moments, intercept):
    x, y = cohort(n=60)
    plan = plan_for(x, y, outcome_moments=outcome_moments, fit_intercept=intercept)
    found = fold(source(x, y), plan)
    xi = np.empty((60, plan.width))
    yi = np.empty((60, 3))
    feature_quantiser(plan)(x, xi)
    outcome_quantiser(plan)(y, yi)
    xi, yi = (a.astype(int).astype(object) for a in (xi, yi))
    assert (found.covariance == xi.T @ xi).all()
    assert (found.association == xi.T @ yi).all()
    gram = yi.T @ yi
    assert (found.outcome == (gram if outcome_moments == "full" else np.diag(gram))).all()
    assert found.covariance.dtype == np.int64


@pytest.mark.parametrize("outcome_moments", ["full", "diagonal"])
def test_block_size_row_order_and_threads_do_not_matter(outcome_moments):
    x, y = cohort()
    plan = plan_for(x, y, outcome_moments=outcome_moments)
    reference = fold(source(x, y), plan, threads=1)
    order = np.random.default_rng(1).permutation(len(x))
    for workers in (1, 2):
        for rows in (1, 7, 64, 997, 10_000):
            assert same(reference, fold(source(x, y), plan, threads=workers, block_rows=rows))
        assert same(reference, fold(source(x[order], y[order]), plan, threads=workers))


@pytest.fixture
def compiled(monkeypatch):
    """Return what makes the next folds use the kernels, however few their rows."""
    if load("primo.rows.kernels") is None:
        pytest.skip("needs compiled loops: numba (primo-dp[fast]), and NUMBA_DISABLE_JIT not set")
    return lambda: monkeypatch.setattr(quantise, "_MANY", 0)


def genotypes(n=700, d=140, dtype=np.int8, copies=2):
    rng = np.random.default_rng(4)
    return rng.integers(0, copies + 1, (n, d)).astype(dtype), rng.normal(size=(n, 3))


@pytest.mark.parametrize(
    ("dtype", "copies", "changes"),
    [
        (np.int8, 2, {}),
        (np.int8, 1, {}),
        (np.float32, 2, {}),
        (np.int8, 2, {"fit_intercept": False}),
        (np.int8, 2, {"covariance_rows": 100}),
        (np.int8, 2, {"feature_bounds": Bounds(lower=0, upper=2, norm=9.0)}),  # shortened rows
    ],
)
def test_genotypes_are_multiplied_in_float32_without_a_difference(
    compiled, monkeypatch, dtype, copies, changes
):
    x, y = genotypes(dtype=dtype, copies=copies)
    if dtype is np.float32:
        x[5, 7] = np.nan
    changes = {"feature_bounds": Bounds(lower=0, upper=copies), "missing": "centre", **changes}
    plan = plan_for(x, y, **changes)
    sample = np.arange(len(x)) % 7 == 0 if plan.draws_sample else None
    reference = fold(source(x, y), plan, sample=sample)
    compiled()
    kernels, seen = import_module("primo.rows.kernels"), []
    write_signs = kernels.write_signs

    def noted(*arguments):
        seen.append(write_signs(*arguments))
        return seen[-1]

    monkeypatch.setattr(kernels, "write_signs", noted)
    assert same(reference, fold(source(x, y), plan, sample=sample, block_rows=99))
    assert set(seen) == {plan.features.norm == plan.d**0.5}  # shortened rows are no signs


def test_a_kernel_changes_no_bit(compiled):
    x, y = cohort()
    plan = plan_for(x, y, missing="centre")
    y[17, 1] = np.nan
    reference = fold(source(x, y), plan)
    compiled()
    for rows in (1, 64, None):
        assert same(reference, fold(source(x, y), plan, block_rows=rows))


def test_long_sums_do_not_round():
    """Rows at the bound in one coordinate: 3·2¹³ of them exceed 2⁵³, where float64 would round."""
    n = 3 * 2**13 + 5
    x = np.full((n, 1), 10.0)
    y = np.full((n, 1), -10.0)
    plan = plan_for(
        x, y, feature_bounds=Bounds(norm=1.0), outcome_bounds=Bounds(norm=1.0), fit_intercept=False
    )
    found = fold(source(x, y), plan, block_rows=1001)
    one = np.empty((1, 1))
    feature_quantiser(plan)(x[:1], one)
    step_x = int(one[0, 0])
    outcome_quantiser(plan)(y[:1], one)
    assert int(found.covariance[0, 0]) == n * step_x**2
    assert int(found.association[0, 0]) == n * step_x * int(one[0, 0])
    assert n * step_x**2 > 2**53


def test_merging_is_addition():
    x, y = cohort()
    parts = []
    for rows in (slice(0, 300), slice(300, None)):
        part = plan_for(x[rows], y[rows])
        parts.append(fold(source(x[rows], y[rows]), part))
    assert same(parts[0] + parts[1], fold(source(x, y), plan_for(x, y)))


def test_replacing_a_row_moves_moments_by_no_more_than_charged():
    """The sensitivity of the program, in exact integers, for rows chosen to be worst."""
    rng = np.random.default_rng(3)
    x, y = cohort(n=50)
    plan = plan_for(x, y, outcome_bounds=Bounds(norm=2.0), outcome_moments="full")
    grid = plan.grid
    mu_squared = 0.0
    for _ in range(200):
        u, v = rng.normal(size=4) * 100, rng.normal(size=3) * 100
        turn = rng.normal(size=4) * rng.choice([0, 1e-3, 1, 100])
        pair = []
        for features, outcomes in ((u, v), (u + turn, -v)):
            x[0], y[0] = features, outcomes
            pair.append(fold(source(x, y), plan, threads=1))
        change = [
            (a.astype(object) - b.astype(object))
            for a, b in zip(
                (pair[0].covariance, pair[0].association, pair[0].outcome),
                (pair[1].covariance, pair[1].association, pair[1].outcome),
                strict=True,
            )
        ]
        bits = (
            grid.covariance_variance_bits,
            grid.association_variance_bits,
            grid.outcome_variance_bits,
        )
        mu_squared = max(
            mu_squared,
            sum(float((c * c).sum()) / 2.0**b for c, b in zip(change, bits, strict=True)),
        )
    assert mu_squared <= plan.mu**2
    assert mu_squared >= 0.95 * plan.mu**2  # y = -y' is close to the worst there is


def test_repr_shows_no_number():
    x, y = cohort(n=10)
    found = fold(source(x, y), plan_for(x, y))
    assert repr(found) == "<Moments width=5 l=3 (private)>"
    assert "private" in repr(source(x, y))
    assert repr(Block(features=x, outcomes=y)) == "<Block (private)>"


def test_a_source_with_another_number_of_rows_is_refused():
    class Short(ArraySource):
        n = 11

    x, y = cohort(n=10)
    honest = source(x, y)
    short = Short(
        features=x,
        outcomes=y,
        feature_names=honest.feature_names,
        outcome_names=honest.outcome_names,
    )
    with pytest.raises(InputError, match="announced 11 rows"):
        fold(short, plan_for(x, y))


@pytest.mark.parametrize("columns", [slice(0, 3), slice(0, 1)])
@pytest.mark.parametrize("table", ["features", "outcomes"])
def test_a_block_of_another_width_is_refused(table, columns):
    x, y = cohort(n=10, l=4)
    plan, given = plan_for(x, y), {"features": x, "outcomes": y}

    class Narrow(ArraySource):
        def blocks(self, rows):
            yield Block(**given | {table: given[table][:, columns]})

    names = source(x, y)
    narrow = Narrow(**given, feature_names=names.feature_names, outcome_names=names.outcome_names)
    with pytest.raises(InputError, match="wrong size"):
        fold(narrow, plan)


def test_moments_of_parts_add_up():
    x, y = cohort(n=100)
    whole, plan = source(x, y), plan_for(x, y)
    parts = [fold(whole.part(a, b), plan) for a, b in ((0, 1), (1, 64), (64, 100))]
    total, expected = parts[0] + parts[1] + parts[2], fold(whole, plan)
    assert total.rows == expected.rows
    for name in ("covariance", "association", "outcome"):
        np.testing.assert_array_equal(getattr(total, name), getattr(expected, name))


def test_progress_counts_every_row():
    x, y = cohort()
    seen = []
    fold(source(x, y), plan_for(x, y), block_rows=100, progress=seen.append)
    assert sum(seen) == len(x)
