from __future__ import annotations

import numpy as np
import pytest

from primo.released.estimate import signal
from primo.released.estimate.outcomes import OutcomeGroups
from primo.released.estimate.risk import Replicas
from primo.released.estimate.signal import GAMMAS, SignalModel

TRUTH = np.geomspace(1, 300, 12)


def shape(gamma):
    return (TRUTH / TRUTH.max()) ** gamma


def groups_of(*counts):
    return OutcomeGroups(
        rotation=None,
        group=np.repeat(np.arange(len(counts)), counts),
        weights=np.ones(len(counts)),
        counts=np.array(counts, dtype=float),
        noise_variance=np.full(len(counts), 4.0),
    )


def energy_of(rng, gamma, strength, count):
    variance = strength * shape(gamma) * TRUTH**2 + 4.0
    return variance * rng.chisquare(count, len(TRUTH))


def model(strength, gamma):
    # Signal explains half of the total variation.
    variation = 2 * strength * float(TRUTH @ shape(gamma))
    return SignalModel(Replicas(truths=TRUTH[None], bases=None), variation=variation)


@pytest.mark.parametrize("gamma", [-1.0, 0.0, 1.0])
def test_many_outcomes_tell_strength_and_shape(gamma):
    rng = np.random.default_rng(0)
    fitted = model(0.3, gamma)
    found = fitted.fit(energy_of(rng, gamma, 0.3, 400)[:, None], groups_of(400))
    assert GAMMAS[found.strength[:, 0].argmax()] == gamma
    np.testing.assert_allclose(fitted.variances(found)[0, :, 0], 0.3 * shape(gamma), rtol=0.1)


def test_one_outcome_leaves_the_shape_open():
    """The mixture keeps every shape that one outcome does not speak against."""
    rng = np.random.default_rng(4)
    fitted = model(0.3, 0.0)
    found = fitted.fit(energy_of(rng, 0.0, 0.3, 1)[:, None], groups_of(1))
    explained = found.strength[:, 0] * fitted.explained
    assert explained.max() < 0.8 * explained.sum()


def test_noise_alone_leaves_next_to_nothing():
    energy = energy_of(np.random.default_rng(1), 0.0, 0.0, 400)
    found = model(0.3, 0.0).fit(energy[:, None], groups_of(400))
    assert found.strength.sum() < 0.003


def test_groups_leave_the_common_fit_only_for_a_reason():
    rng = np.random.default_rng(2)
    groups, fitted = groups_of(200, 200), model(0.3, 0.0)
    alike = np.stack([energy_of(rng, 0.0, 0.3, 200) for _ in range(2)], axis=1)
    kept = fitted.refine(alike, groups, fitted.fit(alike, groups))
    np.testing.assert_allclose(fitted.variances(kept)[0], 0.3, rtol=0.2)
    unlike = np.stack([energy_of(rng, 0.0, 0.3, 200), energy_of(rng, 1.0, 1.5, 200)], axis=1)
    moved = fitted.variances(fitted.refine(unlike, groups, fitted.fit(unlike, groups)))[0]
    np.testing.assert_allclose(moved[:, 0], 0.3, rtol=0.25)
    np.testing.assert_allclose(moved[3:, 1], 1.5 * shape(1.0)[3:], rtol=0.25)


def test_a_group_with_more_noise_has_no_more_signal_for_it():
    rng = np.random.default_rng(5)
    groups = groups_of(200, 200)
    groups.noise_variance[1] = 4e4
    energy = np.stack([energy_of(rng, 0.0, 0.3, 200), energy_of(rng, 0.0, 0.3, 200)], axis=1)
    energy[:, 1] += 4e4 * rng.chisquare(200, len(TRUTH))
    fitted = model(0.3, 0.0)
    moved = fitted.variances(fitted.refine(energy, groups, fitted.fit(energy, groups)))[0]
    # Only directions that stand out of the noise say how strong the signal is.
    np.testing.assert_allclose(moved[-3:], 0.3, rtol=0.3)


def test_a_single_direction_cannot_leave_far():
    fitted = model(0.3, 0.0)
    rng = np.random.default_rng(3)
    around = fitted.fit(energy_of(rng, 0.0, 0.3, 400)[:, None], groups_of(400))
    weak = energy_of(rng, 0.0, 0.3, 1)[:, None] / 30  # one outcome that looks much fainter
    moved = fitted.refine(weak, groups_of(1), around)
    explained = [float(fitted.explained @ s.strength[:, 0]) for s in (around, moved)]
    assert 0.3 < explained[1] / explained[0] < 0.9


def test_replicas_count_for_as_much_as_the_association_is_likely():
    d, copies = 4, 8
    truths = np.repeat(np.geomspace(1, 128, copies)[:, None], d, axis=1)
    bases = np.repeat(np.eye(d)[None], copies, axis=0)
    fitted = SignalModel(Replicas(truths=truths, bases=bases), variation=10.0)
    large = fitted.weigh(np.full((d, 1), 300.0), groups_of(1))
    small = fitted.weigh(np.full((d, 1), 4.0), groups_of(1))
    assert large.shares.sum() == pytest.approx(1)
    # Σa·w² is at most 10, so entries of 300 = a²w² need an a of 100 or so.
    assert large.shares @ truths[:, 0] > small.shares @ truths[:, 0]
    assert 1 / (large.shares @ large.shares) >= copies / 2


def test_sampling_error_is_not_signal():
    rng = np.random.default_rng(3)
    variation, rows = 1e5, 50
    energy = (variation / rows * TRUTH + 4.0) * rng.chisquare(200, len(TRUTH))
    replicas = Replicas(truths=TRUTH[None], bases=None)
    fitted = SignalModel(replicas, variation=variation, rows=rows)
    of_rows = fitted.fit(energy[:, None], groups_of(200), of_rows=True).strength
    of_population = fitted.fit(energy[:, None], groups_of(200)).strength
    assert fitted.explained @ of_population < 0.1 * (fitted.explained @ of_rows)


def test_what_is_kept_is_not_carried_away_by_chance():
    """Few numbers leave the strength uncertain; the filter follows what is kept on average."""
    model = SignalModel(Replicas(truths=np.full((1, 3), 100.0), bases=None), variation=1.0)
    groups = groups_of(1)
    found = model.fit(np.full((3, 1), 12.0), groups)
    kept, mean = found.strength.sum(), found.mean.sum()
    assert 0 < kept < 0.8 * mean
    sure = model.fit(np.full((3, 1), 12.0 * 5000), groups_of(5000))
    np.testing.assert_allclose(sure.strength.sum(), sure.mean.sum(), rtol=0.01)


def test_noise_alone_may_be_noise_alone(monkeypatch):
    """Signal of none at all is a possibility: less is kept of what may be noise than without it."""
    model = SignalModel(Replicas(truths=np.full((1, 20), 100.0), bases=None), variation=1.0)
    with_it = model.fit(np.full((20, 1), 4.0), groups_of(1)).strength.sum()
    prior = signal.SHARE_PRIOR.copy()
    np.testing.assert_allclose(np.exp(prior[0]) / np.exp(prior).sum(), signal.NO_SIGNAL)
    prior[0] = -np.inf
    monkeypatch.setattr(signal, "SHARE_PRIOR", prior)
    assert with_it < 0.8 * model.fit(np.full((20, 1), 4.0), groups_of(1)).strength.sum()
