"""Residuals are integers within the clip, exact, and a function of their row alone."""

import itertools
import math
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest

from factories import array_source, planned
from primo._util.jit import load
from primo.audit.numbers import NoiseUnits, before_noise
from primo.errors import InputError
from primo.planning.residuals import residual_grid, wide_factor
from primo.planning.rounds import round_plan
from primo.privacy.bounds import Bounds
from primo.privacy.rounds import round_spent
from primo.rows import quantise
from primo.rows.moments import fold
from primo.rows.quantise import feature_quantiser
from primo.rows.residuals import ResidualQuantiser
from primo.workflow.rounds import plan_of_step

KERNELS = load("primo.rows.kernels")
BOUNDS = {
    "norms": (Bounds(norm=1.5), Bounds(norm=2.0)),
    "boxes": (Bounds(lower=-1, upper=2), Bounds(lower=-1.0, upper=3.0)),
    "boxes and norms": (Bounds(lower=-1, upper=2, norm=0.8), Bounds(lower=-1, upper=3, norm=0.5)),
    "centres": (
        Bounds(norm=2.0, centre=0.3, scale=0.7),
        Bounds(norm=1.0, centre=-1.0, scale=2.0),
    ),
}
every_bound = pytest.mark.parametrize("bounds", BOUNDS.values(), ids=BOUNDS)
D, L, N = 4, 3, 90


@cache
def many_rounds(bounds, *, missing="error", protection="both", l=L, d=D, intercept=True, n=N):
    return planned(
        n=n,
        d=d,
        l=l,
        epsilon=2.0,
        delta=1e-6,
        protection=protection,
        feature_bounds=bounds[0],
        outcome_bounds=bounds[1],
        missing=missing,
        fit_intercept=intercept,
        rounds=3,
        split=2.0,
    )


def one_round(plan, *, number=1, share=0.3, seed=0):
    """The plan of a round with a clip that shortens many residuals, and coefficients on its grid."""
    own = round_plan(plan, number, share * plan.outcomes.norm)
    rng = np.random.default_rng(seed)
    size = plan.outcomes.norm / plan.features.norm
    grid = residual_grid(own, rng.normal(size=(plan.width, plan.l)) * size)
    return own, grid


def rows(n=N, d=D, l=L, seed=0, *, holes=False, huge=1e200):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(n, d)), rng.normal(size=(n, l))
    x[::7] *= 1e3
    y[::5] *= 1e4
    y[3::11] *= huge
    if holes:
        x[rng.random(x.shape) < 0.05] = np.nan
        y[rng.random(y.shape) < 0.1] = np.nan
        y[2, 0], y[4, 1] = np.inf, -np.inf
    return x, y


def whole(moments):
    return moments.covariance, moments.association, moments.outcome


def same(one, other):
    for a, b in zip(whole(one), whole(other), strict=True):
        np.testing.assert_array_equal(a, b)


@every_bound
@pytest.mark.parametrize("missing", ["error", "centre"])
def test_the_same_bits_for_every_block_and_thread(bounds, missing, monkeypatch):
    plan = many_rounds(bounds, missing=missing)
    own, grid = one_round(plan)
    source = array_source(*rows(holes=missing == "centre"))
    usual = fold(source, own, residuals=grid, threads=1)
    for block_rows, threads in ((1, 1), (7, 2), (64, 3), (N, 1)):
        same(usual, fold(source, own, residuals=grid, threads=threads, block_rows=block_rows))
    if KERNELS is not None:
        monkeypatch.setattr(quantise, "_MANY", 0)
        for block_rows in (1, 8, N):
            same(usual, fold(source, own, residuals=grid, threads=2, block_rows=block_rows))


def test_every_row_by_itself_adds_up_to_the_whole():
    plan = many_rounds(BOUNDS["norms"])
    own, grid = one_round(plan)
    x, y = rows()
    parts = [
        fold(array_source(x[i : i + 1], y[i : i + 1]), own, residuals=grid, threads=1)
        for i in range(N)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    same(total, fold(array_source(x, y), own, residuals=grid))


@pytest.mark.parametrize("dtype", [np.float32, np.int8])
def test_other_types_of_numbers(dtype):
    plan = many_rounds(BOUNDS["boxes"])
    own, grid = one_round(plan)
    rng = np.random.default_rng(1)
    x, y = (rng.integers(-3, 4, size=(N, k)).astype(dtype) for k in (D, L))
    usual = fold(array_source(x.astype(float), y.astype(float)), own, residuals=grid)
    same(usual, fold(array_source(x, y), own, residuals=grid))


@every_bound
def test_residuals_are_those_of_exact_arithmetic(bounds):
    """Outcomes cut to their box minus the prediction from the row before it is shortened."""
    plan = many_rounds(bounds, missing="centre")
    own, grid = one_round(plan)
    x, y = rows(holes=True, huge=1e120)
    wide = feature_quantiser(own, wider=wide_factor(own))
    integers = np.empty((N, own.width))
    wide(x, integers)
    found = np.empty((N, L))
    ResidualQuantiser(own, grid)(integers, y, found)
    limit = own.grid.outcome_radius_squared
    clip = own.outcomes
    factor = 1.0 / clip.scale / own.outcome_step
    for i in range(N):
        predicted = [
            Fraction(
                sum(int(a) * int(v) for a, v in zip(integers[i], grid.integers[:, j], strict=True))
            )
            / 2**grid.bits
            for j in range(L)
        ]
        exact = []
        for j in range(L):
            if not math.isfinite(y[i, j]):
                exact.append(Fraction(0))
                continue
            value = (y[i, j] - clip.centre[j]) * factor[j]
            if clip.box:
                value = min(max(value, -1 / own.outcome_step), 1 / own.outcome_step)
            exact.append(Fraction(value) - predicted[j])
        squares = sum(value**2 for value in exact)
        shrink = math.sqrt(limit / squares) if squares > limit else 1.0
        np.testing.assert_allclose(
            found[i], [float(value) * shrink for value in exact], rtol=1e-6, atol=2.5
        )
        assert sum(int(v) ** 2 for v in found[i]) <= limit
        assert (found[i] == np.trunc(found[i])).all()


def test_predictions_are_exact_at_the_largest_coefficients():
    """No partial sum is rounded, however long the coefficients; too long ones are shortened."""
    plan = many_rounds(BOUNDS["norms"])
    own = round_plan(plan, 1, plan.outcomes.norm / 4096)
    rng = np.random.default_rng(0)
    for size in (1e-9, 1.0, 1e6, 1e30, 1e200):
        grid = residual_grid(own, rng.normal(size=(plan.width, L)) * size)
        longest = max(
            math.isqrt(sum(int(v) ** 2 for v in column)) + 1 for column in grid.integers.T
        )
        row = math.sqrt(own.grid.feature_radius_squared) * wide_factor(own)
        assert longest * row < 2**52
        if size >= 1.0:  # and fine enough: no bit was given away
            assert longest * row * 2 ** (17 - min(grid.bits, 16)) > 2**49 or grid.bits == 16
        assert np.array_equal(grid.integers, np.trunc(grid.integers))


def test_a_missing_outcome_has_no_residual():
    plan = many_rounds(BOUNDS["boxes"], missing="centre")
    own, grid = one_round(plan)
    x, y = rows(n=1)
    y[0, 1] = np.nan
    moments = fold(array_source(x, y), own, residuals=grid)
    assert not moments.association[:, 1].any()
    assert moments.association[:, 0].any()
    with pytest.raises(InputError, match="NaN or infinity"):
        fold(array_source(x, y), one_round(many_rounds(BOUNDS["boxes"]))[0], residuals=grid)


def test_the_constant_and_the_shortened_row_are_those_of_a_release_without_residuals():
    plan = many_rounds(BOUNDS["boxes and norms"])
    own, grid = one_round(plan)
    source = array_source(*rows())
    np.testing.assert_array_equal(
        fold(source, own, residuals=grid).covariance, fold(source, own).covariance
    )


def distance(own, grid, one, other):
    """Squared distance of two rows in units of the round's noise, an exact fraction."""
    moved = [
        before_noise(fold(array_source(x[None], y[None]), own, residuals=grid, threads=1))
        for x, y in (one, other)
    ]
    return NoiseUnits.of(own).squared_length(moved[0] - moved[1])


@every_bound
@pytest.mark.parametrize("protection", ["both", "outcomes"])
def test_a_search_does_not_beat_the_sensitivity(bounds, protection):
    """Random and adversarial pairs, with coefficients that an adversary would like."""
    plan = many_rounds(bounds, protection=protection, intercept=False)
    rng = np.random.default_rng(5)
    reached = []
    for number, share in ((1, 1.0), (1, 0.1), (2, 1e-3)):
        for seed in range(3):
            own, grid = one_round(plan, number=number, share=share, seed=seed)
            budget = Fraction(own.mu) ** 2
            for size in (0.3, 1.0, 1e9):
                x, xx = rng.normal(size=(2, D)) * size
                y, yy = rng.normal(size=(2, L)) * size
                xx = x if protection == "outcomes" else xx
                assert distance(own, grid, (x, y), (xx, yy)) <= budget
            # At the split ratio 2 opposite residuals of the same long row are the worst.
            x = own.features.centre + own.features.scale * 1e3 * rng.choice([-1.0, 1.0], size=D)
            y = np.zeros(L)
            y[0] = 1e9
            found = distance(own, grid, (x, y), (x, -y))
            assert found <= budget
            reached.append(float(found / budget))
    # A factor √2 that is lost anywhere shows on one side or the other.
    assert max(reached) > 0.9


def far_and_near(rng, clip):
    """Return a row of any length: 0, subnormal, at the norm, 64 times as long, endless; with holes."""
    row = rng.normal(size=clip.width)
    row *= clip.norm / np.linalg.norm(row)
    row = clip.centre + clip.scale * row * rng.choice([0, 1e-310, 0.5, 1, 3, 64, 65, 1e6, 1e150])
    if rng.random() < 0.1:
        row[rng.integers(clip.width)] = rng.choice([np.nan, np.inf, -np.inf, 1e308, 5e-324])
    return row


@every_bound
@pytest.mark.parametrize("intercept", [False, True])
def test_a_search_does_not_beat_the_sensitivity_of_public_outcomes(bounds, intercept):
    """Neighbours have the same outcomes, but residuals depend on private features."""
    plan = many_rounds(bounds, protection="features", missing="centre", intercept=intercept)
    rng = np.random.default_rng(7)
    reached = []
    for share, size in itertools.product((1.0, 0.1, 1e-3), (0.0, 0.1, 1.0, 1e5)):
        clip = share * plan.outcomes.norm
        size *= plan.outcomes.norm / plan.features.norm
        grid = residual_grid(
            round_plan(plan, 1, clip), rng.normal(size=(plan.width, plan.l)) * size
        )
        own = plan_of_step(plan, 1, grid)
        budget = round_spent(plan.rounds.grids[1], covariance_noisy=True)
        assert own.protection.outcomes_private == (size > 0)
        for _ in range(20):
            x, y = far_and_near(rng, own.features), far_and_near(rng, plan.outcomes)
            for xx in (far_and_near(rng, own.features), 2 * own.features.centre - x):
                found = distance(own, grid, (x, y), (xx, y))
                assert found <= budget
                reached.append(float(found / budget))
            if size == 0:  # nothing that is released without noise may differ
                one, other = (
                    fold(array_source(row[None], y[None]), own, residuals=grid) for row in (x, xx)
                )
                np.testing.assert_array_equal(one.outcome, other.outcome)
                if intercept:
                    np.testing.assert_array_equal(one.association[-1], other.association[-1])
    assert max(reached) > (0.6 if intercept else 0.9)  # the constant does not turn round


def test_signs_of_genotypes_give_the_same_residuals(monkeypatch):
    if KERNELS is None:
        pytest.skip("needs numba")
    plan = many_rounds((Bounds(lower=0, upper=2), Bounds(norm=2.0)), d=64)
    own, grid = one_round(plan)
    rng = np.random.default_rng(0)
    source = array_source(rng.integers(0, 3, size=(N, 64)), rng.normal(size=(N, L)))
    usual = fold(source, own, residuals=grid)
    monkeypatch.setattr(quantise, "_MANY", 0)
    same(usual, fold(source, own, residuals=grid))
    same(usual, partial(fold, residuals=grid)(source, own, threads=3))


def test_coefficients_of_zero_leave_the_outcomes_as_they_are():
    plan = many_rounds(BOUNDS["norms"], protection="outcomes", intercept=False)
    own = round_plan(plan, 1, plan.outcomes.norm)
    grid = residual_grid(own, np.zeros((plan.width, plan.l)))
    assert not grid.integers.any()


@pytest.mark.parametrize("share", [0.9, 0.3, 1e-3])
def test_few_and_many_shortened_rows_are_each_the_reference(share, monkeypatch):
    """NumPy goes through all rows in place where most are too long, and a kernel row by row."""
    own, grid = one_round(many_rounds(BOUNDS["norms"], l=40), share=share)
    x, y = rows(l=40, huge=1.0)
    integers = np.trunc(x * 1e3)
    integers = np.concatenate([integers, np.ones((N, 1))], axis=1)
    limit = own.grid.outcome_radius_squared
    with np.errstate(all="ignore"):
        z = np.trunc(y / own.outcome_step - integers @ np.ascontiguousarray(grid.in_steps))
    for row in z:
        length = sum(int(v) ** 2 for v in row)
        if length > limit:
            row[:] = np.trunc(row * np.sqrt(limit / length))
            while sum(int(v) ** 2 for v in row) > limit:
                row -= np.sign(row)
    kernels = (None,) if KERNELS is None else (None, KERNELS.fused)
    for kernel in kernels:
        out = np.empty_like(z)
        ResidualQuantiser(own, grid, kernel=kernel)(integers, y, out)
        np.testing.assert_array_equal(out.view(np.int64), z.view(np.int64))
