"""A forecast of a large problem is that of a smaller one with the same ratios."""

from __future__ import annotations

import numpy as np
import pytest

from primo.forecast import forecast as module
from primo.forecast import reduced
from primo.forecast.assumptions import Signal
from primo.forecast.compare import public_plan
from primo.forecast.forecast import predict
from primo.forecast.law import law_of
from primo.forecast.reduced import LARGEST, REDUCED, reduced_law, reduction_of
from primo.privacy.bounds import Bounds


def made(n=20_000, d=2_000, l=100, protection="both", **bounds):
    return public_plan(
        n=n, d=d, l=l, epsilon=5, delta=None, protection=protection,
        feature_bounds=bounds.get("features"), outcome_bounds=bounds.get("outcomes"),
    )  # fmt: skip


def test_small_problems_are_simulated_as_they_are():
    plan = made(d=LARGEST, l=300)
    size = reduction_of([plan])
    law = law_of(plan, Signal())
    assert (size.n, size.d, size.l, size.times) == (plan.n, LARGEST, 300, 1.0)
    assert reduced_law(law, size) is law
    assert size.words == ""


@pytest.mark.parametrize("d", [LARGEST + 1, 500, 2_000, 100_000])
@pytest.mark.parametrize("l", [1, 60, 5_000])
def test_a_reduced_problem_is_small_and_keeps_the_ratios(d, l):
    plan = made(n=200_000, d=d, l=l)
    size = reduction_of([plan])
    assert size.d <= REDUCED
    assert size.l <= max(50, l * REDUCED / d + 1)
    assert size.n / size.d == pytest.approx(plan.n / plan.d, rel=0.02)
    assert f"{size.n:,} rows" in size.words


@pytest.mark.parametrize("bounds", [{}, {"features": (0, 2), "outcomes": (-5, 5)}])
def test_units_keep_eigenvalues_over_noise_and_the_noise_scales(bounds):
    plan = made(d=10 * REDUCED, l=480, **bounds)  # ten times the simulated size
    size = reduction_of([plan])
    law, small = law_of(plan, Signal()), reduced_law(law_of(plan, Signal()), size)
    simulated = size.plan(plan, d=size.d, l=size.l)
    assert simulated.covariance_sigma == plan.covariance_sigma
    assert simulated.association_sigma == plan.association_sigma
    assert (size.d, size.l, simulated.n) == (REDUCED, 50, plan.n // 10)
    # Eigenvalues of XᵀX and the noise of the whole matrix shrink alike, by √10.
    eigenvalues = plan.n * float(law.features.sd @ law.features.sd) / plan.d
    of_small = simulated.n * float(small.features.sd @ small.features.sd) / size.d
    assert of_small / np.sqrt(size.d) == pytest.approx(eigenvalues / np.sqrt(plan.d))
    # Rows are as long over their norm as before, and means as far off.
    for block in ("features", "outcomes"):
        before, after = getattr(law, block), getattr(small, block)
        norm = getattr(simulated, block).norm
        assert after.length / norm == pytest.approx(before.length / getattr(plan, block).norm)
        assert np.linalg.norm(after.mean) / norm == pytest.approx(
            np.linalg.norm(before.mean) / getattr(plan, block).norm
        )
    # The noise of a mean over the spread of an outcome is what it was.
    noise = plan.association_sigma / (plan.n * plan.constant) / law.outcomes.sd.mean()
    of_small = simulated.association_sigma / (simulated.n * simulated.constant)
    assert of_small / small.outcomes.sd.mean() == pytest.approx(noise)


def test_given_eigenvalues_keep_their_shares():
    values = np.append(np.ones(399), 600.0)
    plan = made(d=400)
    size = reduction_of([plan])
    small = reduced_law(law_of(plan, Signal(eigenvalues=tuple(values))), size)
    spectrum = small.signal.spectrum(size.d)
    assert spectrum.sum() == pytest.approx(1.0)
    assert spectrum[-1] == pytest.approx(600 / 999, rel=0.01)
    assert spectrum[0] == pytest.approx(400 / size.d / 999, rel=0.01)


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_a_reduced_forecast_is_that_of_the_whole(protection, monkeypatch):
    """A third of the size: within 0.01 and chance. Wrong units move R² by more than 0.05."""
    plan = made(n=8_000, d=150, l=120, protection=protection)
    full = predict(plan, signal=Signal(r2=0.4))
    monkeypatch.setattr(reduced, "LARGEST", 40)
    monkeypatch.setattr(reduced, "REDUCED", 50)
    part = predict(plan, signal=Signal(r2=0.4))
    assert 0.05 < full.r2 < 0.38
    assert part.r2 == pytest.approx(full.r2, abs=0.01 + 3 * part.standard_error)
    assert part.no_privacy_r2 == full.no_privacy_r2


def test_as_many_numbers_vouch_for_few_outcomes():
    """Fewer features of a single outcome would say less about whether there is any signal."""
    for d, l in ((4 * REDUCED, 1), (2 * REDUCED, 7)):
        size = reduction_of([made(d=d, l=l)])
        assert size.d * size.l == d * l
    assert reduction_of([made(d=100 * REDUCED, l=3)]).l == 50


def test_a_simulated_plan_knows_whether_scales_were_stated():
    """Its own scales are 1. What they were decides how much evidence the estimator asks for."""
    stated = Bounds(centre=5.0, scale=2.0, norm=3.0)
    for bounds, fits in ((stated, True), (None, False), ((-5, 5), False)):
        plan = made(d=3, l=4, outcomes=bounds)
        assert plan.outcome_scale_fits is fits
        assert reduction_of([plan]).plan(plan, d=3, l=4).outcome_scale_fits is fits


def test_a_simulated_plan_knows_whether_a_norm_was_stated_beside_other_bounds():
    beside = Bounds(lower=0.0, upper=12.0, norm=1.0)
    for bounds, may in ((beside, True), ((0, 12), False), (None, False), (1.0, False)):
        plan = made(d=3, l=4, features=bounds)
        assert plan.features_may_be_shortened is may
        assert reduction_of([plan]).plan(plan, d=3, l=4).features_may_be_shortened is may


def test_rows_that_are_all_shortened_are_forecast_as_they_are_fitted():
    """Slopes are kept to ln 2, on new rows that are twice as long: 2·ln 2 times too steep."""
    short = Bounds(centre=5.0, scale=2.0, norm=0.5 * 40**0.5)
    signal = Signal(r2=0.4, feature_mean=5.0, feature_sd=2.0, effective_rank=40)
    stated = made(n=50_000, d=40, l=5, features=short, outcomes=Bounds(norm=5.0, scale=1.0))
    left = 1 - (2 * np.log(2) - 1) ** 2
    assert predict(stated, signal=signal).r2 == pytest.approx(left * 0.4, abs=0.02)


def test_the_work_does_not_grow_with_the_sizes(monkeypatch):
    sizes = []
    draw = module.draw

    def counted(plan, law, m, **how):
        found = draw(plan, law, m, **how)
        sizes.append((*found.truth.slopes.shape, found.size.n))
        return found

    monkeypatch.setattr(module, "draw", counted)
    for n, d, l in ((10**6, 20_000, 100_000), (3_000, 50_000, 10)):
        for protection in ("both", "outcomes"):
            predict(made(n=n, d=d, l=l, protection=protection))
    assert max(d for d, _, _ in sizes) <= 2 * REDUCED
    assert max(l for _, l, _ in sizes) <= 100
    assert max(n for _, _, n in sizes) <= 13_000
