"""Forecasts of plans with blocks: the plan's own noise, and R² near that of a release."""

import numpy as np
import pytest

import primo
from primo.errors import InputError
from primo.forecast.assumptions import Signal
from primo.forecast.block_plan import block_scales, predict_blocks
from primo.forecast.compare import public_plan
from primo.privacy.bounds import Bounds

D, WIDTH = 60, 10
BORDERS = [*range(0, D, WIDTH), D]
FEATURES = Bounds(centre=np.zeros(D), scale=np.ones(D), norm=1.25 * D**0.5)
OUTCOMES = Bounds(lower=-3, upper=3)
STATED = Signal(r2=0.5, feature_sd=1.0, outcome_sd=1.0, feature_spread=None, outcome_spread=None)


def plan(n=20_000, epsilon=5.0, protection="both", **further):
    further = {"covariance": "blocks", "blocks": BORDERS} | further
    return public_plan(
        n=n,
        d=D,
        l=1,
        epsilon=epsilon,
        delta=1e-8,
        protection=protection,
        feature_bounds=FEATURES,
        outcome_bounds=OUTCOMES,
        **further,
    )


def test_scales_are_those_of_the_theorem():
    """σ₂ = 2·b_x·b_ŷ/μ and σ_B = 4·b_B·b_x/μ, for outcomes of which a range is three deviations."""
    made = plan()
    found = block_scales(made, STATED)
    row = 1.25 * D**0.5
    outcome = 3 * (1 + 0.25) ** 0.5
    assert found.association == pytest.approx(2 * row * outcome / made.mu, rel=1e-3)
    block = max(1.5, 1 + 2 / WIDTH**0.5) * 1.25 * WIDTH**0.5
    np.testing.assert_allclose(found.blocks, 4 * block * row / made.mu, rtol=1e-2)
    public = block_scales(plan(protection="outcomes"), STATED)
    assert public.blocks == 0.0


def test_more_people_and_more_budget_predict_more():
    signal = STATED
    found = [predict_blocks(plan(n=n), signal).prediction for n in (2_000, 20_000, 200_000)]
    assert found[0].r2 < found[1].r2 < found[2].r2 <= 0.5
    assert found[2].r2 == pytest.approx(0.5, abs=0.03)
    none = predict_blocks(plan(covariance="none", blocks=None), signal)
    assert "not correlated" in none.words[1]
    with pytest.raises(InputError, match="no blocks"):
        predict_blocks(plan(covariance="full", blocks=None), signal)


def test_the_forecast_is_near_a_release():
    """Rows drawn as is assumed, released and scored: predicted and measured R² within 0.03 and noise."""
    rng = np.random.default_rng(0)
    n, repeats = 10_000, 4
    at = np.arange(WIDTH)
    root = np.linalg.cholesky(0.8 ** np.abs(at[:, None] - at))
    predicted = predict_blocks(plan(n=n), STATED).prediction
    measured = []
    for _ in range(repeats):
        x, new = (rng.standard_normal((n, D // WIDTH, WIDTH)) @ root.T for _ in range(2))
        effects = rng.normal(size=(D // WIDTH, WIDTH)) * (rng.random((D // WIDTH, WIDTH)) < 1 / 6)
        signal, truth = (np.einsum("ikj,kj->i", each, effects) for each in (x, new))
        factor = 0.5**0.5 / signal.std()
        y = factor * signal + 0.5**0.5 * rng.standard_normal(n)
        model = primo.PrimoRegressor(
            epsilon=5,
            delta=1e-8,
            feature_bounds=FEATURES,
            outcome_bounds=OUTCOMES,
            covariance="blocks",
            blocks=BORDERS,
        ).fit(x.reshape(n, D), y)
        left = factor * truth - model.predict(new.reshape(n, D)).ravel()
        measured.append(0.5 - left.var())
    chance = np.std(measured, ddof=1) / repeats**0.5
    assert predicted.r2 == pytest.approx(np.mean(measured), abs=0.03 + 3 * chance)
