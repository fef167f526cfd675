"""The mechanism with a covariance inside blocks: scales of the noise, what is exact, and resuming."""

import dataclasses

import numpy as np
import pytest

from factories import array_source, planned
from primo.errors import InputError
from primo.privacy.bounds import Bounds
from primo.rows.block_moments import fold_blocks
from primo.wall.blocks import release_blocks
from primo.wall.noise import RandomBits
from primo.wall.sealing import moments_digest
from primo.workflow.pipeline import make_release

N, L = 50, 60
BORDERS = [*range(1200), *range(1200, 2401, 20)]  # 1200 blocks of one feature, 60 of twenty
D = BORDERS[-1]


def plan_for(protection="both", **changes):
    settings = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "protection": protection,
        "feature_bounds": (-1, 1),
        "outcome_bounds": Bounds(norm=3.0),
        "covariance": "blocks",
        "blocks": BORDERS,
    }
    return planned(n=N, d=D, l=L, **settings | changes)


def released(plan, x=None, y=None, seed=3):
    """A release of rows that are all zero, so that only noise is seen, unless told otherwise."""
    x = np.zeros((N, D)) if x is None else x
    y = np.zeros((N, L)) if y is None else y
    return make_release(array_source(x, y), plan, bits=RandomBits.seeded(seed), threads=1)


def fits(values, sigma):
    """Whether values have this scale: within 6 standard errors, and 0.87× and 1.15× would not be."""
    values = np.asarray(values).ravel()
    error = 6 / np.sqrt(2 * len(values))
    ratio = float(np.sqrt(np.mean(values**2))) / sigma
    return abs(ratio - 1) < max(error, 1e-6) and error < 0.13


def test_noise_scales_are_those_of_the_plan():
    plan = plan_for()
    release = released(plan)
    blocks = release.blocks
    # By the theorem: σ_B = 4·b_B·b_x/μ, the association has 2·b_x·b_ŷ/μ, ŷŷᵀ has 4·b_ŷ²/μ.
    b_x, b_y = np.sqrt(D), plan.outcome_norm
    mu = plan.mu
    for width, count in ((1, 1200), (20, 60)):
        chosen = np.diff(blocks.starts) == width
        assert chosen.sum() == count
        np.testing.assert_allclose(blocks.sigma[chosen], 4 * np.sqrt(width) * b_x / mu, rtol=0.01)
        squares = [b for b, own in zip(blocks.covariance, chosen, strict=True) if own]
        sigma = blocks.sigma[chosen][0]
        assert fits([np.diagonal(square) for square in squares], sigma)
        if width > 1:
            off = np.concatenate([square[np.tril_indices(width, -1)] for square in squares])
            assert fits(off, sigma / np.sqrt(2))
            np.testing.assert_array_equal(squares[0], squares[0].T)
    assert plan.association_sigma == pytest.approx(2 * b_x * b_y / mu, rel=1e-6)
    assert fits(release.association[:D], plan.association_sigma)
    assert fits(blocks.sums, blocks.sums_sigma)
    assert blocks.sums_sigma == pytest.approx(plan.association_sigma / plan.constant, rel=1e-6)
    assert plan.outcome_sigma == pytest.approx(4 * b_y**2 / mu, rel=1e-6)
    off = release.outcome_moments[np.tril_indices(L, -1)]
    assert fits(off, plan.outcome_sigma / np.sqrt(2))
    assert plan.outcome_sum_sigma == pytest.approx(plan.outcome_sigma / np.sqrt(2))
    rows = [released(plan, seed=seed).association[-1] for seed in range(20)]
    assert fits(rows, plan.outcome_sum_sigma)


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_what_is_public_is_exact_and_the_rest_is_not(protection):
    plan = plan_for(protection)
    rng = np.random.default_rng(5)
    x = rng.integers(-1, 2, size=(N, D)).astype(float)
    y = rng.normal(size=(N, L)) * 0.2
    release = released(plan, x, y)
    exact = {
        "blocks": np.abs(release.blocks.covariance[-1] - x[:, -20:].T @ x[:, -20:]).max() < 0.05,
        "sums": np.abs(release.blocks.sums - x.sum(axis=0)).max() < 0.05,
        "outcome sums": np.abs(release.association[-1] - plan.constant * y.sum(axis=0)).max()
        < 0.05,
        "outcome": np.abs(release.outcome_moments - y.T @ y).max() < 0.05,
        "association": np.abs(release.association[:D] - x.T @ y).max() < 0.05,
    }
    of_features, of_outcomes = protection == "outcomes", protection == "features"
    assert exact == {
        "blocks": of_features,
        "sums": of_features,
        "outcome sums": of_outcomes,
        "outcome": of_outcomes,
        "association": False,
    }
    assert (release.blocks.sigma == 0).all() == of_features
    assert (plan.outcome_sum_sigma == 0) == of_outcomes


def test_the_sealed_key_depends_on_moments_and_blocks():
    plan, source = plan_for(), array_source(np.zeros((N, D)), np.zeros((N, L)))
    moments = fold_blocks(source, plan)
    other = dataclasses.replace(moments, blocks=moments.blocks + 1)
    finer = plan_for(blocks=[0, *BORDERS[-1:]])
    digests = {moments_digest(moments, plan), moments_digest(other, plan)}
    assert len({*digests, moments_digest(moments, finer)}) == 3

    def once():
        bits = RandomBits.sealed(b"k" * 32)
        return make_release(source, plan, bits=bits).association

    np.testing.assert_array_equal(once(), once())


def test_moments_of_other_rows_are_refused():
    plan = plan_for()
    moments = fold_blocks(array_source(np.zeros((N - 1, D)), np.zeros((N - 1, L))), plan)
    with pytest.raises(InputError, match="number of rows"):
        release_blocks(moments, plan, feature_names=(), outcome_names=(), bits=RandomBits.seeded(1))
