from __future__ import annotations

import numpy as np
import pytest

from primo.estimate.outcomes import OutcomeGroups, one_group
from primo.estimate.risk import Replicas
from primo.estimate.signal import SignalModel, prior_shape

TRUTH = np.geomspace(1, 300, 12)


def energy_of(rng, gamma, strength, count, sigma2):
    variance = strength * prior_shape(TRUTH, gamma) * TRUTH**2 + sigma2**2
    return variance * rng.chisquare(count, len(TRUTH))


def model(sigma2, strength, gamma):
    # Signal explains half of the total variation.
    variation = 2 * strength * float(TRUTH @ prior_shape(TRUTH, gamma))
    return SignalModel(
        Replicas(truth=TRUTH, bases=None), noise_variance=sigma2**2, variation=variation
    )


@pytest.mark.parametrize("gamma", [-1.0, 0.0, 1.0])
def test_strength_and_shape_are_recovered(gamma):
    rng = np.random.default_rng(0)
    energy = energy_of(rng, gamma, 0.3, 400, 2.0)
    found = model(2.0, 0.3, gamma).fit(energy[:, None], one_group(400))
    assert found.gamma[0] == gamma
    assert found.strength[0] == pytest.approx(0.3, rel=0.1)


def test_noise_alone_leaves_next_to_nothing():
    energy = energy_of(np.random.default_rng(1), 0.0, 0.0, 400, 2.0)
    found = model(2.0, 0.3, 0.0).fit(energy[:, None], one_group(400))
    assert found.strength[0] < 0.003


def test_groups_leave_the_common_fit_only_for_a_reason():
    rng = np.random.default_rng(2)
    groups = OutcomeGroups(
        rotation=None,
        group=np.repeat([0, 1], 200),
        weights=np.ones(2),
        counts=np.array([200.0, 200.0]),
    )
    alike = np.stack([energy_of(rng, 0.0, 0.3, 200, 2.0) for _ in range(2)], axis=1)
    fitted = model(2.0, 0.3, 0.0)
    kept = fitted.refine(alike, groups, fitted.fit(alike, groups))
    np.testing.assert_allclose(kept.strength, 0.3, rtol=0.15)
    np.testing.assert_array_equal(kept.gamma, 0.0)
    unlike = np.stack(
        [energy_of(rng, 0.0, 0.3, 200, 2.0), energy_of(rng, 1.0, 1.5, 200, 2.0)], axis=1
    )
    moved = fitted.refine(unlike, groups, fitted.fit(unlike, groups))
    np.testing.assert_array_equal(moved.gamma, [0.0, 1.0])
    np.testing.assert_allclose(moved.strength, [0.3, 1.5], rtol=0.2)


def test_a_single_direction_cannot_leave_far():
    groups = OutcomeGroups(
        rotation=None, group=np.zeros(1, np.intp), weights=np.ones(1), counts=np.ones(1)
    )
    fitted = model(2.0, 0.3, 0.0)
    rng = np.random.default_rng(3)
    around = fitted.fit(energy_of(rng, 0.0, 0.3, 400, 2.0)[:, None], one_group(400))
    weak = energy_of(rng, 0.0, 0.3, 1, 2.0)[:, None] / 30  # one outcome that looks much fainter
    moved = fitted.refine(weak, groups, around)
    explained = [s.strength[0] * (TRUTH @ prior_shape(TRUTH, s.gamma[0])) for s in (around, moved)]
    assert 0.3 < explained[1] / explained[0] < 0.9
