"""The float64 arithmetic of a sub-sampled covariance against forty digits: it errs upwards only.

The parameters are extreme on purpose: samples of one row in a billion, and noise a hundred thousand
times the bound, where differences of nearly equal numbers would lose most digits.
"""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest

from primo.privacy import subsampling
from primo.privacy.subsampling import SampledScales, true_delta

EXACT = mpmath.MPContext()
EXACT.dps = 40


def exact_gauss(mu, epsilon):
    first = EXACT.ncdf(mu / 2 - epsilon / mu)
    return first - EXACT.exp(epsilon) * EXACT.ncdf(-mu / 2 - epsilon / mu)


def exact_profile(rate, mu, epsilon):
    size = abs(epsilon)
    delta = rate * exact_gauss(mu, EXACT.log1p(EXACT.expm1(size) / rate))
    return delta if epsilon >= 0 else EXACT.exp(-size) * delta - EXACT.expm1(-size)


def exact_composed(rate, mu, rest, epsilon):
    """Return the chords of `_composed_delta`, over its cells up to 12σ (beyond: probability 4e-33)."""
    rate, mu, rest, epsilon = map(EXACT.mpf, (rate, mu, rest, epsilon))
    reach = subsampling._REACH
    count = len(subsampling._cells(float(rest))[1])
    places = np.linspace(-reach, reach, count + 1)
    standard = [EXACT.mpf(float(t)) for t in places[np.abs(places) <= 12]]
    edges = [rest * t + rest**2 / 2 for t in standard]
    values = [exact_profile(rate, mu, epsilon - edge) for edge in edges]

    def masses(places):
        below = [(EXACT.ncdf(t), EXACT.ncdf(-t)) for t in places]
        return [
            right[0] - left[0] if t < 0 else left[1] - right[1]
            for t, left, right in zip(places, below, below[1:], strict=False)
        ]

    total = EXACT.mpf(0)
    others = masses([t + rest for t in standard])
    for i, (mass, other) in enumerate(zip(masses(standard), others, strict=True)):
        gain = EXACT.exp(edges[i + 1]) * other - mass
        share = gain / EXACT.expm1(edges[i + 1] - edges[i])
        total += share * values[i] + (mass - share) * values[i + 1]
    return total


@pytest.mark.parametrize("rate", [1e-9, 1e-6, 0.003, 0.4, 1 - 1e-9, 1.0])
@pytest.mark.parametrize("mu", [1e-5, 1e-3, 0.05, 0.49, 0.51, 3.0, 30.0, 300.0])
def test_the_amplified_profile_is_right_to_eleven_digits(rate, mu):
    """Probabilities that are subtracted from each other would be wrong by up to half a percent."""
    inner = mu * np.linspace(0.01, 35.0, 23) + 1e-4 * mu**2
    epsilon = np.where(
        inner < 600, np.log1p(rate * np.expm1(np.minimum(inner, 600))), inner + math.log(rate)
    )
    for signed in (epsilon, -epsilon):
        found = subsampling._profile(rate, mu, signed)
        for value, at in zip(found, signed, strict=True):
            exact = exact_profile(EXACT.mpf(rate), EXACT.mpf(mu), EXACT.mpf(float(at)))
            if exact > 1e-290:
                assert abs(value / exact - 1) < subsampling._ROUNDING


@pytest.mark.parametrize("rate", [1e-6, 0.2])
@pytest.mark.parametrize("mu", [0.01, 0.4, 2.0, 20.0, 200.0])
def test_the_attained_profile_is_right_for_either_sign(rate, mu):
    """P[N(mu) side wins] computed from the two normal laws themselves."""
    ends = [-50.0, -3.0, -0.1 * rate, 0.1 * rate, 0.5 * rate, 1.0]
    epsilon = np.array([e for e in ends if abs(math.expm1(e) / rate + 1) > 1e-3])
    for value, at in zip(subsampling._attained(rate, mu, epsilon), epsilon, strict=True):
        weight = 1 + EXACT.expm1(EXACT.mpf(float(at))) / EXACT.mpf(rate)
        exact = (
            -EXACT.expm1(EXACT.mpf(float(at)))
            if weight <= 0
            else rate * exact_gauss(EXACT.mpf(mu), EXACT.log(weight))
        )
        if exact > 1e-290:
            assert value == pytest.approx(float(exact), rel=subsampling._ROUNDING)


@pytest.mark.parametrize("rest", [1e-4, 0.3, 5.0, 40.0])
def test_masses_of_cells_are_right_to_eleven_digits(rest):
    edges, mass = subsampling._cells(rest)
    standard = np.linspace(-subsampling._REACH, subsampling._REACH, len(edges))
    for i in np.linspace(0, len(mass) - 1, 60, dtype=int):
        left, right = EXACT.mpf(float(standard[i])), EXACT.mpf(float(standard[i + 1]))
        exact = (
            EXACT.ncdf(right) - EXACT.ncdf(left)
            if left < 0
            else EXACT.ncdf(-left) - EXACT.ncdf(-right)
        )
        assert abs(mass[i] / exact - 1) < subsampling._ROUNDING


@pytest.mark.parametrize(
    ("rows", "mu", "rest", "epsilon"),
    [
        (540_000, 4e-4, 1.6e-5, 1.9e-5),
        (1_570_000, 2e-3, 5e-5, 3.9e-4),
        (30, 1.4e-5, 2.2e-5, 1.5e-4),
        (10**9, 3.0, 0.8, 6.0),
    ],
)
def test_a_delta_is_never_rounded_down(rows, mu, rest, epsilon):
    scales = SampledScales(rows=rows, sampled=1, covariance=math.sqrt(2) / mu, association=2 / rest)
    found = subsampling._composed_delta(scales, rest, epsilon)
    exact = exact_composed(scales.rate, math.sqrt(2) / scales.covariance, rest, epsilon)
    assert exact < found < exact * (1 + 1e-5)
    assert true_delta(scales, epsilon) <= found


@pytest.mark.parametrize(("mu", "epsilon"), [(1e-3, 9e-3), (1.0, 5.0), (8.0, 60.0)])
def test_the_joint_bound_is_never_rounded_down(mu, epsilon):
    for sampled in (7, 50):
        scales = SampledScales(rows=50, sampled=sampled, covariance=2 / mu, association=3 / mu)
        p, q = (EXACT.mpf(scale) ** -2 for scale in (scales.covariance, scales.association))
        rate = EXACT.mpf(sampled) / 50
        drawn = exact_gauss(EXACT.sqrt(2 * p + 2 * q + q * q / (2 * p)), EXACT.mpf(epsilon))
        spared = exact_gauss(EXACT.sqrt(4 * q), EXACT.mpf(epsilon))
        exact = (1 - rate) * spared + rate * drawn
        rest = float(EXACT.sqrt(4 * q))
        found = subsampling._joint_delta(scales, rest, epsilon)
        assert exact < found < exact * (1 + 1e-8)
