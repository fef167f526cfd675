from __future__ import annotations

from dataclasses import replace

import numpy as np

from primo.released.estimate.outcomes import alike, group_outcomes


def test_rotation_is_undone_and_energy_is_kept(make_moments):
    moments, _, _ = make_moments(6, 9, sigmas=(10.0, 10.0, 10.0), rank=2)
    groups = group_outcomes(moments)
    rotated = groups.rotate(moments.association)
    assert len(groups.counts) > 1
    assert groups.counts.sum() == 9
    np.testing.assert_allclose(groups.rotate_back(rotated), moments.association)
    np.testing.assert_allclose(
        groups.energy(rotated).sum(axis=1), (moments.association**2).sum(axis=1)
    )
    np.testing.assert_allclose(groups.counts @ groups.weights, 9)
    np.testing.assert_array_equal(groups.spread(groups.energy(rotated)).shape, (6, 9))


def test_heavier_directions_get_heavier_weights(make_moments):
    moments, _, _ = make_moments(6, 9, rank=1)
    groups = group_outcomes(moments)
    assert groups.weights[groups.group[-1]] == groups.weights.max()  # eigh is ascending


def test_differences_within_noise_are_ignored(make_moments):
    moments, _, _ = make_moments(4, 50, sigmas=(1.0, 1.0, 1e5), diagonal=True)
    assert group_outcomes(moments) is None
    moments, _, _ = make_moments(4, 50, sigmas=(1.0, 1.0, 1.0), diagonal=True)
    groups = group_outcomes(moments)
    assert groups.rotation is None
    assert len(groups.counts) > 1


def test_outcomes_alike_are_a_plain_sum_unless_their_noise_differs(make_moments):
    moments, _, _ = make_moments(2, 3, sigmas=(1.0, 2.0, 1.0))
    groups = alike(moments)
    np.testing.assert_allclose(
        groups.energy(moments.association)[:, 0], (moments.association**2).sum(axis=1)
    )
    np.testing.assert_allclose(groups.noise_variance, [4.0])
    assert groups.rotate(moments.association) is moments.association
    groups = alike(replace(moments, mean_noise=np.array([0.0, 60.0, 0.1])))
    np.testing.assert_array_equal(groups.group, [0, 1, 0])
    np.testing.assert_allclose(groups.noise_variance, [4.05, 64.0])
    np.testing.assert_allclose(groups.weights, 1.0)


def test_moments_that_are_all_noise_are_ignored(make_moments):
    alone = 0
    for seed in range(20):
        moments, _, _ = make_moments(4, 20, sigmas=(1.0, 1.0, 1e6), seed=seed)
        alone += group_outcomes(moments) is None
    assert alone >= 19
