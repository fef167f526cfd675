"""The prior used to estimate errors."""

from types import SimpleNamespace

import numpy as np
import pytest

import primo
from primo.released import uncertainty
from primo.released.estimate.outcomes import OutcomeGroups
from primo.released.estimate.risk import Replicas, simulate
from primo.released.estimate.signal import GAMMAS, Signal
from primo.released.uncertainty.prior import judged_variances, more_replicas
from primo.released.uncertainty.system import system_of

TRUTH = np.geomspace(1, 50, 6)


def judged(counts, energy, *, gamma=0.0, strength=0.3, weights=None, name="two-sided"):
    """Prior variances (d, groups) of a fit with this common prior; association of this energy."""
    groups = OutcomeGroups(
        rotation=None,
        group=np.arange(len(counts)),
        weights=np.ones(len(counts)) if weights is None else np.array(weights),
        counts=np.array(counts, dtype=float),
        noise_variance=np.ones(len(counts)),
    )
    at_gamma = strength * (gamma == GAMMAS)[:, None]
    fitted = SimpleNamespace(
        name=name if len(counts) > 1 else "one-sided",
        groups=groups,
        association=np.sqrt(energy),
        common=Signal(strength=at_gamma, mean=at_gamma, score=0.0),
        carried=None,
        row_variance=0.0,
    )
    return judged_variances(fitted, Replicas(truths=TRUTH[None], bases=None))[0]


@pytest.mark.parametrize("gamma", [-1.0, 0.0, 1.0])
def test_groups_add_up_to_what_all_outcomes_say(gamma):
    counts = np.array([3.0, 10.0, 80.0])
    energy = np.random.default_rng(0).exponential(size=(6, 3)) * 100
    table = judged((3, 10, 80), energy, gamma=gamma)
    alike = judged((93,), energy.sum(axis=1)[:, None], gamma=gamma)
    np.testing.assert_allclose(table @ counts, 93 * alike[:, 0])
    assert (table > 0).all()


def test_outcomes_of_unlike_variance_have_priors_of_their_own():
    energy = np.stack([0.3 * 93 * TRUTH**2 + 3, np.full(6, 90.0)], axis=1)
    unlike = judged((3, 90), energy, weights=(1.0, 0.2), name="one-sided")
    assert unlike[-1, 0] > 5 * unlike[-1, 1]
    alike = judged((3, 90), energy, name="one-sided")  # apart for their noise only
    np.testing.assert_allclose(alike[:, 0], alike[:, 1])


def test_directions_of_noise_get_little_where_the_features_vary_and_their_share_where_not():
    signal = 0.3 * 93 * TRUTH**2
    energy = np.stack([signal + 3, np.full(6, 90.0)], axis=1)  # 3 directions with all the signal
    table = judged((3, 90), energy)
    assert table[-1, 1] < 0.01 * 0.3
    assert table[-1, 0] > 5 * 0.3
    assert 0.1 * 0.3 < table[0, 1] < 1.1 * 0.3
    none = judged((3, 90), energy, strength=0.0)
    assert not none.any()


def test_more_eigenbases_where_few_would_do_harm():
    def fitted(values, sigma):
        return SimpleNamespace(values=values, replicas=simulate(values, sigma))

    few = fitted(np.array([3.0, 5.0, 8.0, 20.0]), 1.0)
    many = more_replicas(few, 1.0)
    assert len(many.bases) == 200 > len(few.replicas.bases)
    np.testing.assert_allclose(more_replicas(few, 1.0).bases, many.bases, atol=1e-9)
    exact = fitted(few.values, 0.0)
    assert more_replicas(exact, 0.0) is exact.replicas
    large = fitted(np.arange(1.0, 401.0), 1.0)
    assert len(more_replicas(large, 1.0).bases) == 4


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_shrunk_intervals_with_many_directions_of_noise(world, protection):
    """60 outcomes of which at most 6 directions hold signal: under `features` they covered 98 %."""
    draw = world(6, 60, n=12_000, epsilon=2.0, protection=protection, moments="full", nulls=0.6)
    rng = np.random.default_rng(1)
    hits, squares = [], []
    for _ in range(15):
        release, truth = draw(rng)
        made = uncertainty.coefficient_intervals(release, kind="posterior", target="rows")
        z = (made.estimate[:-1] - truth.rows) / made.standard_error[:-1]
        squares.append(z**2)
        hits.append((np.abs(z) < 1.96)[made.trusted[:-1]])
    found = np.concatenate(hits)
    slack = 2 * np.sqrt(0.05 * 0.95 / len(found))
    assert 0.93 - slack <= found.mean() <= 0.97 + slack
    assert 0.8 < np.mean(squares) < 1.25


@pytest.mark.filterwarnings("ignore::primo.errors.ReproducibleNoiseWarning")
def test_the_prior_is_as_strong_as_the_coefficients_after_rounds():
    """After rounds the noise of the covariance brings less of the coefficients into the association.

    Without that, squares of coefficients in directions that are lost in the noise come out half as
    large as they are, and R² too small by what they explain.
    """
    n, d, l = 10_000, 100, 5
    ratios = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(n, d)) * np.where(np.arange(d) < d // 10, 4.0, 1.0)
        w = 0.1 * rng.normal(size=(d, l))
        explained = x @ w
        y = explained + 1.2 * explained.std() * rng.normal(size=(n, l))
        model = primo.PrimoRegressor(
            epsilon=1,
            delta=1e-9,
            feature_bounds=primo.Bounds(norm=1.3 * np.sqrt((x**2).sum(axis=1).mean())),
            outcome_bounds=primo.Bounds(norm=1.5 * np.sqrt((y**2).sum(axis=1).mean())),
            rounds=6,
            random_state=seed,
        ).fit(x, y)
        posterior = system_of(model.release_).posterior
        lost = posterior.values < 5 * model.release_.covariance_sigma
        assert lost.sum() > d / 2
        found = (posterior.along**2 + posterior.errors @ posterior.shares.T)[lost].mean()
        ratios.append(found / ((posterior.vectors.T @ w) ** 2)[lost].mean())
    assert 0.7 < np.mean(ratios) < 1.3
