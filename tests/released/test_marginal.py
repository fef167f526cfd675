"""Marginal effects: least squares without noise, and the law of their error with it."""

import dataclasses
import math

import numpy as np
import pytest

import primo
from factories import planned
from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin
from primo.privacy.bounds import Bounds
from primo.released.export.sumstats import p_text
from primo.released.marginal import MarginalEffects, summary_statistics
from primo.released.release import Release
from primo.variants import Variants

N, D, L = 3000, 6, 2
DRAWS, NEAR = 800, 0.1
NAMES = (*(f"rs{i}" for i in range(D)), "age", "sex")


def variants(names=NAMES[:D], haplotypes=False):
    return Variants(
        names=tuple(names),
        chromosome=("1",) * len(names),
        position=np.arange(1, len(names) + 1),
        counted=("A",) * len(names),
        other=("G",) * len(names),
        haplotypes=haplotypes,
    )


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    copies = rng.binomial(2, rng.uniform(0.2, 0.5, size=D), size=(N, D)).astype(float)
    copies[:, 1] = np.where(rng.random(N) < 0.7, copies[:, 0], copies[:, 1])
    age = rng.uniform(20, 80, size=N) + 5 * copies[:, 2]
    sex = rng.integers(0, 2, size=N)
    features = np.column_stack([copies, age, sex])
    slopes = rng.normal(size=(D + 2, L)) * [1, 0.01]
    slopes[D] *= 0.03  # of a year
    outcomes = features @ slopes + rng.normal(size=(N, L))
    return features, outcomes


def plan_of(rows, protection="both", *, epsilon=20.0, intercept=True, **options):
    _features, outcomes = rows
    return planned(
        n=N,
        d=D + 2,
        l=L,
        epsilon=epsilon,
        delta=1e-6,
        protection=protection,
        feature_bounds=Bounds(
            lower=np.r_[np.zeros(D), 0.0, 0.0], upper=np.r_[np.full(D, 2.0), 100.0, 1.0]
        ),
        outcome_bounds=Bounds(
            lower=-np.abs(outcomes).max(axis=0), upper=np.abs(outcomes).max(axis=0)
        ),
        fit_intercept=intercept,
        **options,
    )


def exact(rows, plan):
    """Return the moments of the rows, without rounding and noise."""
    features, outcomes = rows
    scaled = (features - plan.features.centre) / plan.features.scale
    if plan.intercept:
        scaled = np.column_stack([scaled, np.full(N, plan.constant)])
    targets = (outcomes - plan.outcomes.centre) / plan.outcomes.scale
    return Release(
        plan=plan,
        feature_names=NAMES,
        outcome_names=("y0", "y1"),
        covariance=scaled.T @ scaled,
        association=scaled.T @ targets,
        outcome_moments=targets.T @ targets,
        reproducible=True,
        backend="numpy",
    )


def noisy(release, rng):
    """Add noise of the law that the plan states."""
    plan = release.plan
    square = rng.standard_normal(release.covariance.shape)
    error = plan.covariance_sigma * (square + square.T) / 2
    added = plan.association_sigma * rng.standard_normal(release.association.shape)
    if plan.intercept:
        error[-1, -1] = 0.0
        if not plan.protection.outcomes_private:
            added[-1] = 0.0
    return dataclasses.replace(
        release, covariance=release.covariance + error, association=release.association + added
    )


def least_squares(columns, y):
    """Slope of the last column, its standard error, and the residual variance."""
    found, left, *_ = np.linalg.lstsq(columns, y)
    variance = left[0] / (len(y) - columns.shape[1])
    inverse = np.linalg.inv(columns.T @ columns)
    return found[-1], math.sqrt(variance * inverse[-1, -1])


@pytest.mark.parametrize("covariates", ["adjust", "ignore"])
@pytest.mark.parametrize("intercept", [True, False])
def test_without_noise_they_are_least_squares(rows, covariates, intercept):
    features, outcomes = rows
    plan = plan_of(rows, intercept=intercept)
    release = exact(rows, plan)
    statistics = summary_statistics(release, variants(), covariates=covariates)
    assert statistics.covariates == (("age", "sex") if covariates == "adjust" else ())
    centred = features - (0 if intercept else plan.features.centre)
    beside = [np.ones(N)] if intercept else []
    beside += [centred[:, D], centred[:, D + 1]] if covariates == "adjust" else []
    for j in range(L):
        y = outcomes[:, j] - (0 if intercept else plan.outcomes.centre[j])
        found = statistics.outcome(j)
        for i in range(D):
            slope, error = least_squares(np.column_stack([*beside, centred[:, i]]), y)
            assert found.effect[i] == pytest.approx(slope, rel=1e-8, abs=1e-10)
            # The standard error contains the noise; what sampling makes of it is that of the rows.
            sampling = found.standard_error[i] * math.sqrt(found.effective_n[i] / N)
            assert sampling == pytest.approx(error, rel=0.02)
            assert found.standard_error[i] > error


def test_haplotypes_count_people(rows):
    release = exact(rows, plan_of(rows, rows_per_person=2))
    whole = summary_statistics(exact(rows, plan_of(rows)), variants()).outcome(0)
    half = summary_statistics(release, variants(haplotypes=True))
    assert half.n == N // 2
    np.testing.assert_allclose(half.outcome(0).effective_n, whole.effective_n / 2, rtol=1e-6)


@pytest.mark.parametrize("covariates", ["adjust", "ignore"])
@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_the_scatter_of_releases_is_the_stated_noise(rows, protection, covariates):
    """Draw many releases of the same rows: a factor √2 in any term would show."""
    release = exact(rows, plan_of(rows, protection, epsilon=3.0))
    rng = np.random.default_rng(11)
    effects, stated = [], []
    for _ in range(DRAWS):
        found = summary_statistics(noisy(release, rng), variants(), covariates=covariates).outcome(
            0
        )
        effects.append(found.effect)
        noise = found.standard_error**2 * (1 - found.effective_n / N)
        stated.append(noise)
    # In a few draws the noise hides how much the outcome varies: no effective n.
    assert np.isfinite(stated).mean() > 0.9
    ratio = np.std(effects, axis=0) / np.sqrt(np.nanmedian(stated, axis=0))
    assert (np.abs(ratio - 1) < NEAR).all(), ratio  # a standard deviation to 2.5 %
    clean = summary_statistics(release, variants(), covariates=covariates).outcome(0)
    bias = np.abs(np.mean(effects, axis=0) - clean.effect) / np.std(effects, axis=0)
    assert (bias < 0.15).all()


@pytest.mark.parametrize("factor", [0.87, 1.15])
def test_a_wrong_noise_scale_would_be_seen(rows, factor):
    release = exact(rows, plan_of(rows, "outcomes", epsilon=3.0))
    rng = np.random.default_rng(12)
    effects = []
    for _ in range(DRAWS):
        drawn = noisy(release, rng)
        changed = release.association + factor * (drawn.association - release.association)
        drawn = dataclasses.replace(drawn, association=changed)
        effects.append(summary_statistics(drawn, variants()).outcome(0).effect)
    found = summary_statistics(release, variants()).outcome(0)
    noise = found.standard_error * np.sqrt(1 - found.effective_n / N)
    assert not (np.abs(np.std(effects, axis=0) / noise - 1) < NEAR).all()


def test_frequencies_are_released_means(rows):
    features, _ = rows
    release = exact(rows, plan_of(rows))
    statistics = summary_statistics(release, variants())
    np.testing.assert_allclose(statistics.frequency, features[:, :D].mean(axis=0) / 2, rtol=1e-9)
    rng = np.random.default_rng(5)
    draws = [summary_statistics(noisy(release, rng), variants()).frequency for _ in range(DRAWS)]
    ratio = np.std(draws, axis=0) / statistics.frequency_error
    assert (np.abs(ratio - 1) < NEAR).all()
    assert (
        summary_statistics(exact(rows, plan_of(rows, intercept=False)), variants()).frequency
        is None
    )
    public = summary_statistics(exact(rows, plan_of(rows, "outcomes")), variants())
    assert not public.frequency_error.any()


def test_a_real_release_has_these_effects(rows):
    """The same numbers by way of the quantiser, the mechanism and its noise."""
    features, outcomes = rows
    largest = float(np.abs(outcomes).max())
    with pytest.warns(primo.ReproducibleNoiseWarning):
        model = primo.PrimoRegressor(
            epsilon=50,
            delta=1e-6,
            feature_bounds=Bounds(lower=0.0, upper=np.r_[np.full(D, 2.0), 100.0, 1.0]),
            outcome_bounds=(-largest, largest),
            random_state=0,
        ).fit(features, outcomes)
    names = tuple(f"x{i}" for i in range(D))
    found = primo.summary_statistics(model.release_, variants(names)).outcome("y0")
    columns = np.column_stack([np.ones(N), features[:, D:], features[:, 0]])
    slope, error = least_squares(columns, outcomes[:, 0])
    assert found.effect[0] == pytest.approx(slope, abs=4 * found.standard_error[0])
    assert error < found.standard_error[0] < 3 * error


def test_variants_that_the_noise_hides_have_no_effect(rows):
    release = exact(rows, plan_of(rows))
    covariance = release.covariance.copy()
    mean = covariance[0, -1] ** 2 / covariance[-1, -1]
    covariance[0, 0] = mean + 4.9 * release.plan.covariance_sigma
    hidden = summary_statistics(
        dataclasses.replace(release, covariance=covariance), variants(), covariates="ignore"
    )
    assert hidden.determined.tolist() == [False] + [True] * (D - 1)
    found = hidden.outcome("y1")
    assert np.isnan(found.effect[0])
    assert np.isnan(found.standard_error[0])
    assert np.isfinite(found.effect[1:]).all()


def test_small_p_values_are_exact():
    found = MarginalEffects(
        outcome="y",
        effect=np.array([0.0, 1.959963984540054, 60.0, -60.0]),
        standard_error=np.ones(4),
        effective_n=np.ones(4),
    )
    np.testing.assert_allclose(found.neg_log10_p[:2], [0, -math.log10(0.05)], atol=1e-12)
    # −log₁₀ 2Φ(−60) by the asymptotic series of Mills' ratio.
    tail = -(math.log(2 / (60 * math.sqrt(2 * math.pi))) - 1800 + math.log1p(-1 / 3600)) / math.log(
        10
    )
    np.testing.assert_allclose(found.neg_log10_p[2:], tail, rtol=1e-7)
    assert p_text(found.neg_log10_p[2]).endswith(f"e-{math.ceil(tail)}")
    assert float(p_text(-math.log10(0.05))) == pytest.approx(0.05)
    assert float(p_text(0.0)) == 1.0


def test_what_has_no_summary_statistics_is_refused(rows):
    plan = plan_of(rows)
    release = exact(rows, plan)
    for changed, words in [
        ({"association": "projection"}, "no known law"),
        ({"covariance_origin": CovarianceOrigin.ROW_SPACE}, "holds no covariance"),
    ]:
        other = dataclasses.replace(release, plan=dataclasses.replace(plan, **changed))
        with pytest.raises(InputError, match=words):
            summary_statistics(other, variants())
    with pytest.raises(InputError, match="'rs99' is not a feature"):
        summary_statistics(release, variants(("rs0", "rs99")))
    with pytest.raises(InputError, match="has none among"):
        summary_statistics(release, variants(()))
    with pytest.raises(InputError, match="there are 2 outcomes"):
        summary_statistics(release, variants()).outcome(2)
    with pytest.raises(InputError, match="is not in this release"):
        summary_statistics(release, variants()).outcome("height")
    with pytest.raises(InputError, match=r"unknown.*adjust"):
        summary_statistics(release, variants(), covariates="yes")
    faint = exact(rows, plan_of(rows, epsilon=0.05))
    with pytest.raises(InputError, match=r'hides how its covariates vary.*covariates="ignore"'):
        summary_statistics(faint, variants())
    with pytest.raises(InputError, match="hides how much its variants vary"):
        summary_statistics(faint, variants(), covariates="ignore")


def test_notes_say_what_errors_leave_out(rows):
    plan = plan_of(rows)
    release = exact(rows, plan)
    assert summary_statistics(release, variants()).notes == ()
    for changed, words in [
        ({"sampled": 500}, "500 sampled rows"),
        ({"covariance_origin": CovarianceOrigin.REFERENCE}, "reference panel"),
    ]:
        other = dataclasses.replace(release, plan=dataclasses.replace(plan, **changed))
        assert words in summary_statistics(other, variants(), covariates="ignore").notes[0]
