"""The joint formula against a search for neighbours that beat it, and against known constants."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

from primo.privacy.sensitivity import joint_distance


def distance(v, dims, p, q, s, *, protection="both", diagonal=False):
    """Squared, noise-scaled distance of two rows packed in v; rows are pulled into the unit balls."""
    d, l = dims
    x, xx, y, yy = np.split(v, [d, 2 * d, 2 * d + l])
    x, xx, y, yy = (u / max(1.0, np.linalg.norm(u)) for u in (x, xx, y, yy))
    xx = x if protection == "outcomes" else xx
    yy = y if protection == "features" else yy
    covariance = np.outer(x, x) - np.outer(xx, xx)
    association = np.outer(x, y) - np.outer(xx, yy)
    outcome = y**2 - yy**2 if diagonal else np.outer(y, y) - np.outer(yy, yy)
    return p * (covariance**2).sum() + q * (association**2).sum() + s * (outcome**2).sum()


CASES = [
    (1, q, s)
    for q in (0.01, 0.3, 1, 1.9, 2, 3, 10)
    for s in (0, q * q / 8, q * q / 4, q * q / 2, 1.5)
]


@pytest.mark.parametrize(("p", "q", "s"), [*CASES, (0, 1, 0), (0, 1, 0.5), (1, 0, 0), (0, 1, 2)])
def test_search_reaches_but_never_beats_the_formula(p, q, s):
    rng = np.random.default_rng(7)
    bound = joint_distance(float(p), float(q), float(s))
    best = 0.0
    for dims in ((2, 2), (3, 4)):
        for _ in range(12):
            start = rng.normal(size=2 * sum(dims)) * rng.uniform(0.3, 3)
            found = minimize(lambda v, dims=dims: -distance(v, dims, p, q, s), start)
            best = max(best, -found.fun)
    assert best <= bound * (1 + 1e-9)
    assert best >= bound * (1 - 1e-4)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
@pytest.mark.parametrize("k", [0.3, 1.0, 2.0])
def test_outcome_moments_are_free_in_the_search_too(protection, diagonal, k):
    """With them, in full or their diagonal, no neighbours are further apart than without them."""
    rng = np.random.default_rng(9)
    q = 1.0
    p, s = q / k, k * q / 4
    without = joint_distance(0.0 if protection == "outcomes" else p, q, 0.0)
    best = 0.0
    for _ in range(8):
        start = rng.normal(size=10) * rng.uniform(0.3, 3)
        found = minimize(
            lambda v: -distance(v, (2, 3), p, q, s, protection=protection, diagonal=diagonal), start
        )
        best = max(best, -found.fun)
    assert best <= without * (1 + 1e-9)
    assert best >= without * (1 - 1e-4)


def test_rows_inside_the_balls_never_beat_the_formula():
    rng = np.random.default_rng(8)
    for _ in range(20_000):
        p, q, s = rng.exponential(size=3) * rng.integers(0, 2, size=3)
        v = rng.normal(size=10) * rng.uniform(0, 2)
        assert distance(v, (3, 2), p, q, s) <= joint_distance(p, q, s) * (1 + 1e-12)


def test_single_blocks_have_the_replace_one_constants():
    assert joint_distance(1.0, 0.0, 0.0) == pytest.approx(2)  # (√2·b_x²)², not the paper's b_x⁴
    assert joint_distance(0.0, 1.0, 0.0) == pytest.approx(4)  # (2·b_x·b_y)²


def test_covariance_and_outcome_moments_are_free_at_ratio_two():
    assert joint_distance(0.5, 1.0, 0.5) == joint_distance(0.0, 1.0, 0.0) == 4.0


def test_outcome_moments_are_free_at_every_ratio():
    for k in (0.05, 0.5, 1.0, 1.7, 2.0):
        p, q = Fraction(1), Fraction(k)
        assert joint_distance(p, q, q * q / (4 * p)) == joint_distance(p, q, Fraction(0))
        assert joint_distance(p, q, q * q / (4 * p) * Fraction(101, 100)) > joint_distance(
            p, q, Fraction(0)
        )


def test_fractions_stay_exact():
    assert joint_distance(Fraction(1), Fraction(1, 3), Fraction(0)) == Fraction(49, 18)
