"""The mechanism: which numbers get noise, of which scale, and that nothing else differs."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import chi2

from factories import array_source, planned
from primo.errors import InputError, PrivacyError
from primo.privacy.bounds import Bounds
from primo.rows.moments import fold
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall import mechanism
from primo.wall.noise import RandomBits

D, L, N = 12, 9, 40
NAMES = {
    "feature_names": tuple(f"x{i}" for i in range(D)),
    "outcome_names": tuple(f"y{i}" for i in range(L)),
}


def setting(**changes):
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(N, D)), rng.normal(size=(N, L))
    settings = {
        "n": N,
        "d": D,
        "l": L,
        "epsilon": 1.0,
        "delta": 1e-6,
        "feature_bounds": Bounds(norm=4.0),
        "outcome_bounds": Bounds(norm=3.0),
        "outcome_moments": "full",
    }
    plan = planned(**{**settings, **changes})
    return fold(array_source(x, y), plan), plan


def residuals(count, **changes):
    """Noise of many releases, divided by the scales that the plan states."""
    moments, plan = setting(**changes)
    exact = (
        moments.covariance * plan.feature_step**2,
        moments.association * (plan.feature_step * plan.outcome_step),
        moments.outcome * plan.outcome_step**2,
    )
    found = []
    for seed in range(count):
        made = mechanism.release(moments, plan, bits=RandomBits.seeded(seed), **NAMES)
        found.append(
            [
                made.covariance - exact[0],
                made.association - exact[1],
                made.outcome_moments - exact[2],
            ]
        )
    return [np.array(block) for block in zip(*found, strict=True)], plan


def scale_is(values, sigma):
    """Two-sided chi-square test of a known scale; wrong with probability 1e-6."""
    values = np.ravel(values)
    total = np.sum(values**2) / sigma**2
    return 5e-7 < chi2.cdf(total, values.size) < 1 - 5e-7


@pytest.mark.parametrize("outcome_moments", ["full", "diagonal"])
def test_noise_scales_are_those_of_the_plan(outcome_moments):
    (covariance, association, outcome), plan = residuals(300, outcome_moments=outcome_moments)
    off = np.tril_indices(D, -1)
    diagonal = np.diagonal(covariance, axis1=1, axis2=2)[:, :D]  # without the exact constant
    checks = [
        (diagonal, plan.covariance_sigma),
        (covariance[:, off[0], off[1]], plan.covariance_sigma / np.sqrt(2)),
        (covariance[:, -1, :D], plan.covariance_sigma / np.sqrt(2)),
        (association, plan.association_sigma),
    ]
    if outcome_moments == "full":
        off = np.tril_indices(L, -1)
        checks += [
            (np.diagonal(outcome, axis1=1, axis2=2), plan.outcome_sigma),
            (outcome[:, off[0], off[1]], plan.outcome_sigma / np.sqrt(2)),
        ]
    else:
        checks.append((outcome, plan.outcome_sigma))
    for values, sigma in checks:
        assert scale_is(values, sigma)
        for wrong in (0.87, 1.15):
            assert not scale_is(values, wrong * sigma)


def test_symmetric_blocks_stay_symmetric_and_the_constant_is_exact():
    (covariance, _, outcome), _ = residuals(3)
    np.testing.assert_array_equal(covariance, covariance.transpose(0, 2, 1))
    np.testing.assert_array_equal(outcome, outcome.transpose(0, 2, 1))
    assert (covariance[:, -1, -1] == 0).all()


def test_noise_is_independent_within_and_across_blocks():
    (covariance, association, outcome), _ = residuals(400)
    flat = np.hstack(
        [
            covariance[:, *np.tril_indices(D + 1)][:, :-1],
            association.reshape(400, -1),
            outcome[:, *np.tril_indices(L)],
        ]
    )
    correlation = np.corrcoef(flat.T) - np.eye(flat.shape[1])
    # 400 releases: standard error 0.05, about 30 000 pairs, so 0.3 is six of them.
    assert np.abs(correlation).max() < 0.3


@pytest.mark.parametrize(
    ("protection", "exact"),
    [("outcomes", (True, False, False)), ("features", (False, False, True))],
)
def test_public_blocks_are_exact_and_private_ones_are_not(protection, exact):
    blocks, plan = residuals(2, protection=protection)
    assert [not np.any(block) for block in blocks] == list(exact)
    assert (plan.covariance_sigma == 0) == exact[0]
    assert (plan.outcome_sigma == 0) == exact[2]


def test_sums_of_public_outcomes_need_no_noise():
    (_, association, _), _ = residuals(2, protection="features")
    assert not association[:, -1].any()
    assert association[:, :-1].all()


def test_bits_cannot_serve_two_releases():
    moments, plan = setting()
    bits = RandomBits.fresh()
    mechanism.release(moments, plan, bits=bits, **NAMES)
    with pytest.raises(PrivacyError, match="already drawn"):
        mechanism.release(moments, plan, bits=bits, **NAMES)


def test_moments_of_another_plan_are_refused():
    moments, plan = setting()
    other = dataclasses.replace(plan, n=N + 1)
    with pytest.raises(InputError, match="do not belong"):
        mechanism.release(moments, other, bits=RandomBits.fresh(), **NAMES)


def test_the_private_moments_are_left_untouched():
    moments, plan = setting()
    before = [a.copy() for a in (moments.covariance, moments.association, moments.outcome)]
    mechanism.release(moments, plan, bits=RandomBits.fresh(), **NAMES)
    after = (moments.covariance, moments.association, moments.outcome)
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))


def test_neighbours_under_the_same_noise_differ_only_by_the_moments():
    """Sizes, names, scales and order of a release do not depend on the rows."""
    moments, plan = setting()
    changed = fold(
        ArraySource(features=np.full((N, D), 1e6), outcomes=np.full((N, L), -1e6), **NAMES),
        plan,
    )
    a, b = (
        mechanism.release(m, plan, bits=RandomBits.seeded(1), **NAMES) for m in (moments, changed)
    )
    assert a.statement() == b.statement()
    difference = (b.association - a.association) / (plan.feature_step * plan.outcome_step)
    np.testing.assert_allclose(difference, changed.association - moments.association, rtol=1e-6)


def test_opendp_backend_gives_the_same_scale():
    pytest.importorskip("opendp")
    moments, plan = setting()
    exact = moments.association * plan.feature_step * plan.outcome_step
    noise = [
        mechanism.release(
            moments, plan, bits=RandomBits.fresh(), backend="opendp", **NAMES
        ).association
        - exact
        for _ in range(8)
    ]
    assert scale_is(noise, plan.association_sigma)
    assert not scale_is(noise, 1.4 * plan.association_sigma)
