"""Forecasts for blocks: exact law of the moments, and predictions near what is measured."""

import math

import numpy as np
import pytest

from genome import linked
from primo.errors import InputError
from primo.forecast.blocks import (
    BlockScales,
    Trait,
    draw_moments,
    draw_trait,
    forecast_blocks,
    score,
)
from primo.released.estimate.blocks import fit_blocks

TRAIT = Trait(heritability=0.5, causal=0.1)


def test_moments_have_the_stated_law():
    """Mean and covariance of the association, with all three kinds of noise."""
    rng = np.random.default_rng(0)
    linkage = [linked(3, 0.7)]
    (w,) = effects = [np.array([0.3, 0.0, -0.4])]
    n, draws = 400, 5_000
    scales = BlockScales(association=15.0, blocks=30.0, outcome=1.5)
    drawn = [draw_moments(rng, linkage, effects, n=n, scales=scales) for _ in range(draws)]
    seen = np.array([each.association[:, 0] for each in drawn])
    mean = n * linkage[0] @ w
    residual = 1 + 1.5**2 - w @ linkage[0] @ w
    law = n * residual * linkage[0] + 15.0**2 * np.eye(3)
    np.testing.assert_allclose(seen.mean(axis=0), mean, atol=5 * math.sqrt(law.max() / draws))
    np.testing.assert_allclose(np.cov(seen.T), law, rtol=0.1, atol=0.06 * law.max())
    blocks = np.array([each.covariance[0] for each in drawn]) - n * linkage[0]
    assert blocks[:, 1, 1].std() == pytest.approx(30.0, rel=0.06)
    assert blocks[:, 0, 1].std() == pytest.approx(30.0 / math.sqrt(2), rel=0.06)


def test_traits_explain_what_is_assumed():
    rng = np.random.default_rng(1)
    linkage = [linked(10, 0.8)] * 30
    effects = draw_trait(rng, linkage, TRAIT, part=0.5)
    assert score(np.concatenate(effects), effects, linkage)[0] == pytest.approx(0.25)
    half, correlation = score(0.5 * np.concatenate(effects), effects, linkage)
    assert half == pytest.approx(0.25 * 0.75)
    assert correlation == pytest.approx(0.25)
    assert score(np.zeros(300), effects, linkage) == (0.0, 0.0)
    none = draw_trait(rng, linkage, Trait(heritability=0.5, causal=0.0))
    assert not np.concatenate(none).any()


@pytest.mark.parametrize("n", [3_000, 30_000])
def test_forecast_is_near_the_mean_of_draws(n):
    """A part of the blocks stands for all of them."""
    linkage = [linked(20, 0.85)] * 600
    noise = 3 * math.sqrt(n)
    scales = BlockScales(association=noise, blocks=3 * noise)
    predicted = forecast_blocks(linkage, n=n, scales=scales, trait=TRAIT)
    rng = np.random.default_rng(2)
    effects = draw_trait(rng, linkage, TRAIT)
    moments = draw_moments(rng, linkage, effects, n=n, scales=scales)
    measured, _ = score(fit_blocks(moments).coefficients[:, 0], effects, linkage)
    assert predicted == pytest.approx(measured, abs=0.03)


def test_assumptions_that_are_none():
    for wrong in ({"heritability": 1.5, "causal": 0.1}, {"heritability": 0.5, "causal": -0.1}):
        with pytest.raises(InputError, match="between 0 and 1"):
            Trait(**wrong)


@pytest.mark.parametrize(("causal", "better"), [(0.01, "sparse"), (1.0, "normal")])
def test_the_prior_that_predicts_better_is_found_where_outcomes_have_noise(causal, better):
    """Noise on the outcomes: weak evidence, spread over all directions; mean of three traits."""
    linkage = [linked(25, 0.8)] * 120
    trait, scales = (
        Trait(heritability=0.5, causal=causal),
        BlockScales(association=0.0, outcome=3.0),
    )
    found = dict.fromkeys(("normal", "sparse", "auto"), 0.0)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        effects = draw_trait(rng, linkage, trait)
        moments = draw_moments(rng, linkage, effects, n=8_000, scales=scales)
        for prior in found:
            coefficients = fit_blocks(moments, prior=prior).coefficients[:, 0]
            found[prior] += score(coefficients, effects, linkage)[0] / 3
    assert found[better] == max(found["normal"], found["sparse"])
    assert found["auto"] > found[better] - 0.02
