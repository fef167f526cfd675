"""The noise that reaches the coefficients has exactly the scale that was meant, on each entry.

Scales are written out here from sensitivities and mu, not taken from the code under test. A covariance
a·I with a far above its noise turns the solution into a linear function of the noise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import chi2

from baselines import adassp, ssp
from baselines.adassp import AdaSSP
from baselines.base import ExactMoments
from baselines.gaussian import symmetric_noise
from baselines.paper import reuse_cov_gauss
from baselines.ssp import ComposedSSP
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of
from primo.privacy.paper import noise_multiplier

EPSILON, DELTA, B_X, B_Y = 3.0, 1e-6, 2.0, 5.0
MU = mu_of(Budget(epsilon=EPSILON, delta=DELTA))
BUDGET = {"epsilon": EPSILON, "delta": DELTA, "feature_bounds": B_X, "outcome_bounds": B_Y}
HUGE = 1e9


def accepts(samples: np.ndarray, sigma: float) -> bool:
    """Two-sided chi-square test of a standard deviation, mean zero."""
    total = float(np.sum(np.square(samples))) / sigma**2
    return bool(1e-5 < chi2.cdf(total, samples.size) < 1 - 1e-5)


def is_scale(samples: np.ndarray, sigma: float) -> bool:
    """Accept the right scale, and only that: 0.87 and 1.15 times it must be told apart."""
    assert not accepts(samples, 0.87 * sigma)
    assert not accepts(samples, 1.15 * sigma)
    return accepts(samples, sigma)


@pytest.fixture(autouse=True)
def _no_accounting(monkeypatch):
    # Fifty digits of an epsilon for each of hundreds of fits would take the most time here.
    for module in (ssp, adassp):
        monkeypatch.setattr(module, "guarantee_of", lambda *_: None)


def moments(covariance: np.ndarray, association: np.ndarray) -> ExactMoments:
    return ExactMoments(
        n=1, covariance=covariance, association=association, outcome=np.ones(association.shape[1])
    )


def ssp_multipliers(composition: str, l: int) -> float:
    """Noise over sensitivity of each release, by hand."""
    if composition == "gdp":
        return math.sqrt(2 * l) / MU
    if composition == "printed":
        return noise_multiplier(EPSILON / math.sqrt(l) / 2, DELTA / l / 2)
    # l is large enough here for the theorem to win over basic composition.
    share = min(
        (s for s in np.linspace(1e-3, 1, 4000) * EPSILON),
        key=lambda s: abs(
            s * math.sqrt(2 * l * math.log(2 / DELTA)) + l * s * (math.exp(s) - 1) - EPSILON
        ),
    )
    return noise_multiplier(share / 2, DELTA / (2 * l) / 2)


@pytest.mark.parametrize("composition", ssp.COMPOSITIONS)
def test_association_noise_of_composed_ssp(composition):
    d, l, limit = 6, 400, 1.5
    model = ComposedSSP(
        **BUDGET, composition=composition, outcome_limit=limit, ridge=HUGE, random_state=1
    )
    model.fit_moments(moments(np.zeros((d, d)), np.zeros((d, l))))
    assert is_scale(HUGE * model.coef_, ssp_multipliers(composition, l) * 2 * B_X * limit)


def test_an_outcome_is_limited_by_the_norm_of_its_row_by_default():
    d, l = 6, 400
    model = ComposedSSP(**BUDGET, ridge=HUGE, random_state=1)
    model.fit_moments(moments(np.zeros((d, d)), np.zeros((d, l))))
    assert is_scale(HUGE * model.coef_, ssp_multipliers("gdp", l) * 2 * B_X * B_Y)


@pytest.mark.parametrize("composition", ssp.COMPOSITIONS)
def test_covariance_noise_of_composed_ssp(composition):
    """(a·I + E)w = a·G·e₁ has w = G·(e₁ - Ee₁/a) up to (E/a)²; the association's noise is lost in G."""
    d, l, a, g = 4, 1500, 1e9, 1e9
    association = np.zeros((d, l))
    association[0] = a * g
    model = ComposedSSP(**BUDGET, composition=composition, ridge="none", random_state=2)
    model.fit_moments(moments(a * np.eye(d), association))
    noise = a * (np.eye(d)[0] - model.coef_ / g)
    sigma = ssp_multipliers(composition, l) * math.sqrt(2) * B_X**2
    off = math.sqrt(0.5) if composition == "gdp" else 1.0
    assert is_scale(noise[:, 0], sigma)
    assert is_scale(noise[:, 1:], off * sigma)


def test_each_outcome_has_a_covariance_of_its_own_in_composed_ssp():
    d, l, a, g = 4, 1500, 1e9, 1e9
    association = np.zeros((d, l))
    association[0] = a * g
    model = ComposedSSP(**BUDGET, ridge="none", random_state=2)
    model.fit_moments(moments(a * np.eye(d), association))
    between = np.corrcoef(model.coef_[:-1, 0], model.coef_[1:, 0])[0, 1]
    assert abs(between) < 5 / math.sqrt(l)


def test_stacks_do_not_share_noise(monkeypatch):
    monkeypatch.setattr(ssp, "_CHUNK", 7 * 16)
    d, l = 4, 60
    model = ComposedSSP(**BUDGET, ridge=HUGE, random_state=1)
    model.fit_moments(moments(np.zeros((d, d)), np.zeros((d, l))))
    assert len(np.unique(model.coef_)) == d * l


@pytest.mark.parametrize("joint", [False, True])
def test_moment_noise_of_adassp(joint):
    d, a, g = 40, 1e9, 1e9
    # 2p = 4q = mu²/3 cost mu²/3·(1 + ½ + 1/16) together instead of 2mu²/3.
    shrink = math.sqrt((1 + 1 + 1 / 2 + 1 / 16) / 3) if joint else 1.0
    third = shrink * math.sqrt(3) / MU
    diagonal, off, association = [], [], []
    for seed in range(25):
        model = AdaSSP(**BUDGET, joint=joint, random_state=seed)
        model.fit_moments(moments(a * np.eye(d), a * g * np.eye(d)))
        assert model.penalty_ == 0
        noise = a * (np.eye(d) - model.coef_ / g)
        diagonal.append(np.diagonal(noise))
        off.append(noise[np.triu_indices(d, 1)])
        model.fit_moments(moments(a * np.eye(d), np.zeros((d, d))))
        association.append(a * model.coef_)
    sigma = third * math.sqrt(2) * B_X**2
    assert is_scale(np.concatenate(diagonal), sigma)
    assert is_scale(np.concatenate(off), sigma * math.sqrt(0.5))
    assert is_scale(np.concatenate(association), third * 2 * B_X * B_Y)


def test_eigenvalue_noise_and_penalty_of_adassp():
    d, fits = 10, 1000
    sigma_0 = math.sqrt(3) / MU * B_X**2
    wanted = math.sqrt(d * math.log(2 * d**2 / 0.05)) * math.sqrt(2) * sigma_0
    shift = math.sqrt(math.log(6 / DELTA)) * sigma_0
    lowest = shift + wanted / 2  # the penalty is then far from both of its ends
    model = AdaSSP(**BUDGET, random_state=np.random.default_rng(3))
    penalties = [
        model.fit_moments(moments(lowest * np.eye(d), np.ones((d, 1)))).penalty_
        for _ in range(fits)
    ]
    noise = wanted - np.array(penalties) - (lowest - shift)
    assert is_scale(noise, sigma_0)
    assert abs(noise.mean()) < 5 * sigma_0 / math.sqrt(fits)


def test_the_papers_noise_is_unchanged_by_the_shared_helper():
    """The demo's numbers: an iid upper triangle first, then the association, from one generator."""
    d, l = 3, 2
    covariance, association = 50 * np.eye(d), np.ones((d, l))
    rng = np.random.default_rng(4)
    half = noise_multiplier(EPSILON / 2, DELTA / 2)
    upper = np.triu(rng.normal(scale=half * math.sqrt(2) * B_X**2, size=(d, d)))
    noisy = covariance + upper + np.triu(upper, 1).T
    blurred = association + rng.normal(scale=half * 2 * B_X * B_Y, size=(d, l))
    ours = reuse_cov_gauss(
        covariance,
        association,
        feature_norm=B_X,
        outcome_norm=B_Y,
        epsilon=EPSILON,
        delta=DELTA,
        rng=np.random.default_rng(4),
    )
    np.testing.assert_allclose(ours, np.linalg.solve(noisy, blurred), rtol=1e-7)


@pytest.mark.parametrize("svec", [False, True])
def test_symmetric_noise_is_symmetric(svec):
    noise = symmetric_noise(np.random.default_rng(1), 5, 2.0, count=600, svec=svec)
    np.testing.assert_array_equal(noise, noise.transpose(0, 2, 1))
    above = noise[(slice(None), *np.triu_indices(5, 1))]
    assert is_scale(above, 2.0 * (math.sqrt(0.5) if svec else 1.0))
    assert is_scale(np.diagonal(noise, axis1=1, axis2=2), 2.0)


def test_an_indefinite_covariance_does_not_explode():
    d, l = 25, 200
    rng = np.random.default_rng(1)
    features = rng.normal(size=(500, d)) / math.sqrt(d)
    outcomes = features @ rng.normal(size=(d, l))
    sizes = {
        ridge: np.abs(
            ComposedSSP(1.0, 1e-6, ridge=ridge, random_state=1).fit(features, outcomes).coef_
        )
        for ridge in ("none", "noise")
    }
    assert sizes["none"].max() > 100 * sizes["noise"].max()
    assert sizes["noise"].max() < 5
