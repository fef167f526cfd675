from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from primo.errors import InputError
from primo.released.estimate import ESTIMATORS, NoisyMoments, estimate, selection

SIMULATED = ("auto", "one-sided", "two-sided")


def excess(W, truth, A):
    return float(np.einsum("ij,ij->", W - truth, A @ (W - truth)))


def explained(truth, A):
    return float(np.einsum("ij,ij->", truth, A @ truth))


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize(("d", "l"), [(1, 1), (1, 3), (6, 1), (7, 4), (50, 3)])
def test_without_noise_it_is_least_squares(make_moments, estimator, d, l):
    moments, _, ols = make_moments(d, l)
    np.testing.assert_allclose(
        estimate(moments, estimator=estimator).coefficients, ols, rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_without_noise_a_singular_covariance_gives_the_least_norm_solution(estimator):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 5))
    Y = X @ rng.standard_normal((5, 2))
    moments = NoisyMoments(
        n=40,
        covariance=X.T @ X,
        association=X.T @ Y,
        outcome_moments=Y.T @ Y,
        covariance_sigma=0.0,
        association_sigma=0.0,
        outcome_sigma=0.0,
    )
    W = estimate(moments, estimator=estimator).coefficients
    np.testing.assert_allclose(W, np.linalg.pinv(X) @ Y, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("estimator", SIMULATED)
def test_vanishing_noise_approaches_least_squares(make_moments, estimator):
    # d above the number of knots: the smooth correction must not stand in the way.
    moments, A, ols = make_moments(60, 5, sigmas=(1e-4, 1e-4, 1e-4))
    W = estimate(moments, estimator=estimator).coefficients
    assert excess(W, ols, A) < 1e-6 * explained(ols, A)


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("kind", ["indefinite", "zero", "negative", "huge noise"])
@pytest.mark.parametrize("diagonal", [False, True])
def test_no_covariance_makes_it_explode(make_moments, estimator, kind, diagonal):
    moments, A, _ = make_moments(12, 4, sigmas=(30.0, 40.0, 20.0), diagonal=diagonal)
    size = np.abs(np.linalg.eigvalsh(A)).max()
    match kind:
        case "indefinite":
            shift = np.median(np.linalg.eigvalsh(moments.covariance))
            moments = replace(moments, covariance=moments.covariance - shift * np.eye(12))
        case "zero":
            moments = replace(moments, covariance=np.zeros((12, 12)))
        case "negative":
            moments = replace(moments, covariance=-A)
        case "huge noise":
            moments, *_ = make_moments(12, 4, sigmas=(size * 100, size * 100, size * 100))
    W = estimate(moments, estimator=estimator).coefficients
    assert np.isfinite(W).all()
    # Nothing may exceed the association divided by the scale of the covariance's own noise.
    assert np.linalg.norm(W) <= np.linalg.norm(moments.association) / moments.covariance_sigma


@pytest.mark.parametrize("estimator", SIMULATED)
def test_all_zero_release_gives_zero(estimator):
    moments = NoisyMoments(
        n=10,
        covariance=np.zeros((3, 3)),
        association=np.zeros((3, 2)),
        outcome_moments=np.zeros((2, 2)),
        covariance_sigma=0.0,
        association_sigma=0.0,
        outcome_sigma=0.0,
    )
    fitted = estimate(moments, estimator=estimator)
    assert not fitted.coefficients.any()
    assert fitted.predicted_excess == 0


@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("diagonal", [False, True])
def test_units_do_not_matter(make_moments, estimator, diagonal):
    moments, _, _ = make_moments(8, 5, sigmas=(40.0, 60.0, 50.0), diagonal=diagonal, rank=2)
    x, y = 1e-3, 256.0
    rescaled = NoisyMoments(
        n=moments.n,
        covariance=moments.covariance * x**2,
        association=moments.association * x * y,
        outcome_moments=moments.outcome_moments * y**2,
        covariance_sigma=moments.covariance_sigma * x**2,
        association_sigma=moments.association_sigma * x * y,
        outcome_sigma=moments.outcome_sigma * y**2,
    )
    W = estimate(moments, estimator=estimator).coefficients
    again = estimate(rescaled, estimator=estimator).coefficients
    np.testing.assert_allclose(again, W * y / x, rtol=1e-6, atol=1e-9 * np.abs(again).max())


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_same_release_same_coefficients_and_no_argument_is_touched(make_moments, estimator):
    moments, _, _ = make_moments(8, 5, sigmas=(40.0, 60.0, 50.0))
    before = {k: np.copy(getattr(moments, k)) for k in ("covariance", "association")}
    np.random.seed(1)  # noqa: NPY002 - global state must not matter
    first = estimate(moments, estimator=estimator).coefficients
    np.random.seed(2)  # noqa: NPY002
    again = estimate(moments, estimator=estimator).coefficients
    np.testing.assert_allclose(again, first, rtol=1e-7, atol=1e-9 * np.abs(first).max())
    for name, value in before.items():
        np.testing.assert_array_equal(getattr(moments, name), value)


@pytest.mark.parametrize("l", [1, 30])
@pytest.mark.parametrize("d", [1, 25])
@pytest.mark.parametrize("estimator", SIMULATED)
def test_hopeless_noise_predicts_the_mean(make_moments, d, l, estimator):
    lost = []
    for seed in range(20):
        moments, A, ols = make_moments(d, l, sigmas=(3e4, 3e5, 3e4), seed=seed)
        W = estimate(moments, estimator=estimator).coefficients
        lost.append((excess(W, ols, A) - explained(ols, A)) / moments.total_variation)
    assert np.mean(lost) < 0.005


def test_one_outcome_is_one_sided(make_moments):
    moments, _, _ = make_moments(8, 1, sigmas=(20.0, 30.0, 20.0))
    assert estimate(moments).name == "one-sided"


def test_shared_directions_call_for_two_sides(make_moments):
    gains = []
    for seed in range(5):
        moments, A, ols = make_moments(20, 40, sigmas=(50.0, 900.0, 300.0), rank=2, seed=seed)
        chosen = estimate(moments)
        one = estimate(moments, estimator="one-sided")
        assert chosen.name == "two-sided"
        gains.append(excess(one.coefficients, ols, A) / excess(chosen.coefficients, ols, A))
    assert np.mean(gains) > 1.3


def test_auto_is_near_the_best_closed_form_in_either_extreme(make_moments):
    # Strong covariance noise favours ridge, strong association noise the filter.
    for sigmas in ((400.0, 100.0, 100.0), (10.0, 3000.0, 300.0)):
        lost = {"auto": 0.0, "ridge": 0.0, "filter": 0.0}
        for seed in range(8):
            moments, A, ols = make_moments(40, 1, sigmas=sigmas, seed=seed)
            for name in lost:
                W = estimate(moments, estimator=name).coefficients
                lost[name] += excess(W, ols, A) / explained(ols, A) / 8
        assert lost["auto"] < min(lost["ridge"], lost["filter"]) + 0.02


def way_toward_ridge(moments: NoisyMoments) -> float:
    """How far the filter was moved, as a share of the way."""
    seen: list[float] = []
    move = selection._toward_ridge

    def watched(filters, ridge, *rest):
        moved = move(filters, ridge, *rest)
        gap = ridge[:, None] - filters
        seen.append(float((gap * (moved - filters)).sum() / (gap * gap).sum()))
        return moved

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selection, "_toward_ridge", watched)
        estimate(moments)
    return seen[0]


def test_few_features_go_further_toward_ridge_where_its_error_is_noise(make_moments):
    """Not where nearly all of it is noise, not for one feature, and hardly for many outcomes."""

    def way(d: int, l: int, noise: float) -> float:
        made = (make_moments(d, l, sigmas=(600.0, noise, 100.0), seed=k) for k in range(5))
        return float(np.mean([way_toward_ridge(moments) for moments, _, _ in made]))

    assert way(1, 1, 200.0) == 0
    assert way(8, 1, 1.0) + 0.1 < way(8, 1, 200.0) < selection.MOST_OF_WAY
    assert way(8, 1, 1000.0) < 0.01
    assert way(8, 30, 200.0) < 0.05


def test_predicted_excess_is_what_happens(make_moments):
    ratio = []
    for seed in range(12):
        moments, A, ols = make_moments(20, 30, sigmas=(60.0, 300.0, 100.0), seed=seed)
        fitted = estimate(moments, estimator="one-sided")
        ratio.append(fitted.predicted_excess / excess(fitted.coefficients, ols, A))
    assert 0.75 < np.mean(ratio) < 1.33


def test_ridge_is_ridge(make_moments):
    moments, _, _ = make_moments(6, 3, sigmas=(1.0, 5.0, 5.0))
    fitted = estimate(moments, estimator="ridge", ridge_lambda=70.0)
    direct = np.linalg.solve(moments.covariance + 70 * np.eye(6), moments.association)
    np.testing.assert_allclose(fitted.coefficients, direct, rtol=1e-10)
    assert fitted.parameters == {"lambda": 70.0}


def test_ridge_does_not_divide_by_what_the_noise_made_of_nothing(make_moments):
    moments, _, _ = make_moments(2, 1, sigmas=(1.0, 5.0, 5.0))
    moments = replace(moments, covariance=np.diag([-70 * (1 - 1e-9), 500.0]))
    W = estimate(moments, estimator="ridge", ridge_lambda=70.0).coefficients
    np.testing.assert_allclose(W, moments.association / np.array([[70.0], [570.0]]))


def test_total_variation_is_never_below_its_own_noise(make_moments):
    moments, _, _ = make_moments(2, 4, sigmas=(1.0, 5.0, 5.0))
    assert moments.total_variation == pytest.approx(np.trace(moments.outcome_moments))
    drowned = replace(moments, outcome_moments=-np.ones(4))
    assert drowned.total_variation == pytest.approx(5.0 * 2)


def test_refusals_name_the_value(make_moments):
    moments, _, _ = make_moments(3, 2)
    with pytest.raises(InputError, match=r"'lasso'.*two-sided"):
        estimate(moments, estimator="lasso")
    with pytest.raises(InputError, match="ridge_lambda"):
        estimate(moments, ridge_lambda=1.0)
    with pytest.raises(InputError, match="-1"):
        estimate(moments, estimator="ridge", ridge_lambda=-1.0)
    with pytest.raises(InputError, match=r"\(3, 3\)"):
        replace(moments, covariance=np.eye(2))
    with pytest.raises(InputError, match="outcome moments"):
        replace(moments, outcome_moments=np.ones(3))
    with pytest.raises(InputError, match="damaged"):
        replace(moments, association=np.full((3, 2), np.nan))
    with pytest.raises(InputError, match="covariance_sigma"):
        replace(moments, covariance_sigma=-0.5)
    with pytest.raises(InputError, match="association must"):
        replace(moments, association=np.ones(3))
    with pytest.raises(InputError, match="at least 1"):
        replace(moments, n=0)


def test_sampling_error_is_shrunk_but_not_without_noise(make_moments):
    # No signal, few rows: what fits these rows by chance is mostly not published.
    moments, A, _ = make_moments(10, 1, sigmas=(1.0, 4.0, 1.0), n=150)
    rng = np.random.default_rng(1)
    y = rng.standard_normal((10, 1))
    chance = np.linalg.cholesky(A) @ y  # covariance A: the sampling error of one unit of residual
    moments = replace(moments, association=chance, outcome_moments=np.full((1, 1), 150.0))
    whole = np.linalg.solve(A, chance)
    found = estimate(moments).coefficients
    assert explained(found, A) < 0.5 * explained(whole, A)
    exact = replace(moments, covariance=A, covariance_sigma=0.0, association_sigma=0.0)
    np.testing.assert_allclose(estimate(exact).coefficients, whole, rtol=1e-6)


def test_one_feature_lost_in_noise_uses_what_the_outcome_bounds(make_moments):
    # a = 0.3·σ₁ and a strong association: ‖y‖² says that a cannot be small, â that it is not large.
    moments, _, _ = make_moments(1, 1, sigmas=(100.0, 5.0, 5.0))
    truth, slope = 30.0, 2.0
    moments = replace(
        moments,
        n=100,
        association=np.full((1, 1), truth * slope),
        outcome_moments=np.full((1, 1), 1.2 * truth * slope**2),
    )
    for released in (-60.0, 0.0, 30.0):
        found = estimate(replace(moments, covariance=np.full((1, 1), released))).coefficients
        assert 0.3 * slope < float(found[0, 0]) < 1.2 * slope
