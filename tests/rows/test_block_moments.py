"""Rows shortened block by block: each by itself, within every norm; moments are exact integers."""

from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from factories import array_source, planned
from primo._util.jit import load
from primo.errors import InputError
from primo.privacy.bounds import Bounds
from primo.rows.block_moments import fold_blocks
from primo.rows.quantise import feature_quantiser, outcome_quantiser

BORDERS = [0, 1, 2, 6, 7, 12]
D, L, N = 12, 3, 301
BOUNDS = {
    "norm": Bounds(norm=2.0),
    "box": Bounds(lower=-1.0, upper=2.0),
    "box and norm": Bounds(lower=-1.0, upper=2.0, norm=1.7),
    "centre": Bounds(norm=2.0, centre=0.3, scale=0.7),
}
KERNELS = load("primo.rows.kernels")


@cache
def plan_for(bounds, *, moments="full", intercept=True, missing="centre", norms=None, n=N):
    return planned(
        n=n,
        d=D,
        l=L,
        epsilon=2.0,
        delta=1e-6,
        feature_bounds=BOUNDS[bounds],
        outcome_bounds=Bounds(norm=1.5),
        covariance="blocks",
        blocks=BORDERS,
        block_norms=norms,
        outcome_moments=moments,
        fit_intercept=intercept,
        missing=missing,
    )


def odd_rows(seed=0, n=N):
    """Rows inside the bounds, far outside them, beyond float64 when squared, and missing values."""
    rng = np.random.default_rng(seed)
    x = rng.standard_cauchy(size=(n, D)) * 10.0 ** rng.integers(-3, 4, size=(n, 1))
    x[::7] *= 1e200
    x[3::11, 4] = np.nan
    x[5::13, 9] = -np.inf
    x[6::17] = 0.0
    return x, rng.standard_cauchy(size=(n, L))


def integers(plan, x, y, kernel=None):
    out, seen = np.empty((len(x), D)), np.empty((len(y), L + plan.intercept))
    feature_quantiser(plan, kernel=kernel)(x, out)
    outcome_quantiser(plan, kernel=kernel)(y, seen)
    return out.astype(np.int64).astype(object), seen.astype(np.int64).astype(object)


@pytest.mark.parametrize("norms", [None, 0.9], ids=["from bounds", "stated"])
@pytest.mark.parametrize("bounds", BOUNDS)
def test_every_block_and_every_row_is_within_its_norm(bounds, norms):
    plan = plan_for(bounds, norms=norms)
    x, y = integers(plan, *odd_rows())
    limits = plan.blocks.radius_squared.tolist()
    for start, stop, limit in zip(BORDERS, BORDERS[1:], limits, strict=False):
        lengths = (x[:, start:stop] ** 2).sum(axis=1)
        assert max(lengths) <= limit
        # Long blocks are shortened to their norm and not to less, unless the whole row was too long.
        if bounds == "norm" and norms:
            assert max(lengths) > 0.99 * limit
    assert max((x**2).sum(axis=1)) <= plan.grid.feature_radius_squared
    assert max((y**2).sum(axis=1)) <= plan.grid.outcome_radius_squared
    assert (y[:, -1] == plan.constant_steps).all()


@pytest.mark.parametrize(
    "kernel",
    [
        None,
        pytest.param("fused", marks=pytest.mark.skipif(KERNELS is None, reason="needs numba")),
    ],
)
@pytest.mark.parametrize("bounds", BOUNDS)
def test_a_row_is_the_same_by_itself(bounds, kernel):
    plan = plan_for(bounds, norms=0.9)
    x, y = odd_rows()
    together, _ = integers(plan, x, y, kernel and KERNELS.fused)
    alone = np.vstack([integers(plan, x[i : i + 1], y[i : i + 1])[0] for i in range(N)])
    assert (together == alone).all()


@pytest.mark.parametrize("moments", ["full", "diagonal"])
@pytest.mark.parametrize("intercept", [True, False])
def test_moments_are_the_exact_sums(moments, intercept):
    plan = plan_for("norm", moments=moments, intercept=intercept)
    rows = odd_rows()
    found = fold_blocks(array_source(*rows), plan)
    x, y = integers(plan, *rows)
    inside = [(x[:, start:stop].T @ x[:, start:stop]).ravel() for start, stop in pairwise(BORDERS)]
    assert found.rows == N
    assert (found.blocks == np.concatenate(inside)).all()
    assert (found.association == x.T @ y[:, :L]).all()
    whole = y.T @ y
    expected = whole[:L, :L] if moments == "full" else np.diagonal(whole)[:L]
    assert (found.outcome == expected).all()
    sums = (found.feature_sums, found.outcome_sums)
    for total, true in zip(sums, (x.T @ y[:, -1], whole[-1, :L]), strict=True):
        assert (total == true).all() if intercept else total.shape == (0,)


def test_the_bits_do_not_depend_on_blocks_of_rows_or_threads():
    plan, rows = plan_for("box and norm"), odd_rows()
    source = array_source(*rows)
    usual = fold_blocks(source, plan)
    halves = [fold_blocks(source.part(a, b), plan) for a, b in ((0, 100), (100, N))]
    others = [
        fold_blocks(source, plan, threads=3, block_rows=17),
        fold_blocks(source, plan, threads=1, block_rows=1),
        halves[1] + halves[0],
    ]
    for other in others:
        for name, value in vars(usual).items():
            assert np.array_equal(getattr(other, name), value), name


def test_a_missing_value_is_refused_without_naming_it():
    plan = plan_for("norm", missing="error")
    with pytest.raises(InputError, match="NaN or infinity"):
        fold_blocks(array_source(*odd_rows()), plan)


def test_nothing_of_size_d_times_d_is_made():
    """A hundred thousand features of a few rows: a d × d matrix would need 80 GB."""
    d = 100_000
    plan = planned(
        n=20,
        d=d,
        l=1,
        epsilon=1.0,
        delta=1e-6,
        feature_bounds=(0, 2),
        outcome_bounds=(0, 1),
        covariance="none",
    )
    rng = np.random.default_rng(0)
    found = fold_blocks(array_source(rng.integers(0, 3, (20, d)), rng.random((20, 1))), plan)
    assert found.blocks.shape == (d,)


def test_a_plan_without_blocks_is_refused():
    plan = planned(
        n=N, d=D, l=L, epsilon=1.0, delta=1e-6, feature_bounds=(0, 1), outcome_bounds=(0, 1)
    )
    with pytest.raises(InputError, match="no blocks"):
        fold_blocks(array_source(*odd_rows()), plan)
