"""The printed scales, by hand; and what they truly give."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize

from primo.errors import InputError
from primo.privacy.budget import Budget
from primo.privacy.calibration import delta_of, epsilon_of
from primo.privacy.paper import (
    PaperAlgorithm,
    noise_multiplier,
    paper_scales,
    true_epsilon,
    true_mu,
)
from primo.privacy.protection import Protection
from primo.privacy.sensitivity import joint_distance

BUDGET = Budget(epsilon=5, delta=1 / 5008**2)


def test_multiplier_by_hand():
    """Round numbers: c(2, e^-7)² = 2(1/2 + 7/4)."""
    assert noise_multiplier(2, math.exp(-7)) == pytest.approx(math.sqrt(4.5))


def test_scales_by_hand():
    """ε = 4, δ = 2e^-8: c(ε/2, δ/2)² = 2(1/2 + 8/4) = 5; c(ε, δ)² = 2(1/4 + (8 - log 2)/16)."""
    budget = Budget(epsilon=4, delta=2 * math.exp(-8))
    whole = math.sqrt(0.5 + (8 - math.log(2)) / 8)
    classical = math.sqrt(2 * (math.log(1.25) + 8))
    expected = {
        PaperAlgorithm.REUSE_COV_GAUSS: whole,
        PaperAlgorithm.REUSE_COV_PROJ_Y: whole,
        PaperAlgorithm.REUSE_COV_PROJ_X: 0.0,
        PaperAlgorithm.LAMBDA_REUSE_COV: classical / 2,
        # σ₁ on the average of 25 rows is (1/100)·2·classical/ε₁, ε₁ = (100/25)·4/2 = 8; times 25.
        PaperAlgorithm.SUB_SAMP_REUSE_COV: 25 / 100 * 2 * classical / 8,
    }
    assert set(expected) == set(PaperAlgorithm)
    for algorithm, covariance in expected.items():
        sampled = 25 if algorithm is PaperAlgorithm.SUB_SAMP_REUSE_COV else None
        scales = paper_scales(algorithm, budget, rows=100, sampled=sampled)
        assert scales.covariance == pytest.approx(covariance, rel=1e-12)
        assert scales.association == pytest.approx(math.sqrt(5), rel=1e-12)
        assert scales.sampled == (sampled or 100)


def test_scales_do_not_depend_on_rows_except_through_the_sample():
    for algorithm in set(PaperAlgorithm) - {PaperAlgorithm.SUB_SAMP_REUSE_COV}:
        one, two = (paper_scales(algorithm, BUDGET, rows=rows) for rows in (10, 10_000))
        assert (one.covariance, one.association) == (two.covariance, two.association)


def test_known_true_values():
    """2p + 2q + q²/2p with p = 1/c(5, δ)², q = 1/c(5/2, δ/2)²."""
    scales = paper_scales("ReuseCovGauss", BUDGET, rows=5008)
    p, q = scales.covariance**-2, scales.association**-2
    assert true_mu(scales, Protection.BOTH) ** 2 == pytest.approx(2 * p + 2 * q + q * q / (2 * p))
    assert true_epsilon(scales, Protection.BOTH, BUDGET.delta) == pytest.approx(6.847, abs=1e-3)
    assert true_mu(scales, Protection.FEATURES) == true_mu(scales, Protection.BOTH)
    label = paper_scales("ReuseCovProj_X", BUDGET, rows=5008)
    assert true_mu(label, Protection.OUTCOMES) == pytest.approx(2 / label.association)
    assert true_epsilon(label, Protection.OUTCOMES, BUDGET.delta) == pytest.approx(4.227, abs=1e-3)


def test_only_the_boxes_that_are_wrong_break_their_claim():
    broken = {
        algorithm
        for algorithm in set(PaperAlgorithm) - {PaperAlgorithm.SUB_SAMP_REUSE_COV}
        if true_epsilon(
            paper_scales(algorithm, BUDGET, rows=5008), algorithm.protection, BUDGET.delta
        )
        > BUDGET.epsilon
    }
    assert broken == {PaperAlgorithm.REUSE_COV_GAUSS, PaperAlgorithm.REUSE_COV_PROJ_Y}


def test_sub_sampling_breaks_its_claim_without_limit():
    def at(sampled):
        scales = paper_scales("SubSampReuseCov", BUDGET, rows=5008, sampled=sampled)
        return true_epsilon(scales, Protection.BOTH, BUDGET.delta)

    assert at(5008) < 5 < at(2504) < at(1000) < at(500)
    assert at(500) > 500
    assert at(5) == math.inf


def test_the_secret_sample_is_counted():
    scales = paper_scales("SubSampReuseCov", BUDGET, rows=5008, sampled=1500)
    open_draw = epsilon_of(true_mu(scales, Protection.BOTH), BUDGET.delta)
    assert true_epsilon(scales, Protection.BOTH, BUDGET.delta) < open_draw


def test_an_exact_private_covariance_protects_nobody():
    scales = paper_scales("ReuseCovProj_X", BUDGET, rows=5008)
    assert true_mu(scales, Protection.BOTH) == math.inf
    assert true_epsilon(scales, Protection.FEATURES, 1e-6) == math.inf


def test_the_classical_multiplier_is_not_private_at_ten():
    for delta in (1e-5, BUDGET.delta):
        sigma = math.sqrt(2 * math.log(1.25 / delta)) / 10
        assert delta_of(1 / sigma, 10) > delta


def triangle_distance(x, xx, y, yy, p, q):
    """Squared distance in units of the paper's noise: equal scales over the upper triangle."""
    covariance = np.triu(np.outer(x, x) - np.outer(xx, xx))
    association = np.outer(x, y) - np.outer(xx, yy)
    return p * (covariance**2).sum() + q * (association**2).sum()


@pytest.mark.parametrize("ratio", [0.0, 0.05, 0.3, 1.0, 1.9, 2.0, 5.0])
@pytest.mark.parametrize("outcomes_fixed", [False, True])
def test_an_iid_triangle_reaches_the_joint_distance(ratio, outcomes_fixed):
    """The pair of the module's docstring, with a diagonal difference, at the worst cosine a = q/2p."""
    p, q = 1.0, ratio
    theta = math.asin(min(1.0, ratio / 2)) / 2
    x = np.array([math.cos(theta), math.sin(theta), 0.0])
    xx, y = x[[1, 0, 2]], np.array([0.6, 0.8])
    difference = np.outer(x, x) - np.outer(xx, xx)
    assert np.abs(difference - np.diag(np.diag(difference))).max() < 1e-15
    pair = (x, -xx, y, y) if outcomes_fixed else (x, xx, y, -y)
    assert triangle_distance(*pair, p, q) == pytest.approx(joint_distance(p, q, 0.0), rel=1e-12)


@pytest.mark.parametrize("ratio", [0.05, 1.0, 3.0])
def test_no_pair_of_rows_beats_it_under_an_iid_triangle(ratio):
    rng = np.random.default_rng(11)
    bound, best = joint_distance(1.0, ratio, 0.0), 0.0

    def negative(v):
        parts = np.split(v, [3, 6, 8])
        return -triangle_distance(*(u / max(1.0, np.linalg.norm(u)) for u in parts), 1.0, ratio)

    for _ in range(30):
        best = max(best, -minimize(negative, rng.normal(size=10)).fun)
    assert bound * (1 - 1e-4) <= best <= bound * (1 + 1e-9)


@pytest.mark.parametrize(
    ("algorithm", "sampled", "message"),
    [
        ("ReuseCov", None, '"ReuseCov" is unknown.*SubSampReuseCov'),
        ("SubSampReuseCov", None, "sampled=None"),
        ("ReuseCovGauss", 5, "sampled=5"),
        ("SubSampReuseCov", 0, "sampled=0"),
        ("SubSampReuseCov", 11, "sampled=11"),
    ],
)
def test_absurd_requests_are_refused_by_value(algorithm, sampled, message):
    with pytest.raises(InputError, match=message):
        paper_scales(algorithm, BUDGET, rows=10, sampled=sampled)
