"""A release made from moments is the release that the rows would have given."""

import numpy as np
import pytest

import primo
from baselines.base import ExactMoments
from experiments.figures.from_moments import release_moments
from primo.errors import InputError
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall.noise import RandomBits
from primo.workflow.pipeline import make_release

N, D, L = 400, 3, 4


def rows():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(N, D))
    outcomes = features @ rng.normal(size=(D, L)) + rng.normal(size=(N, L))
    return features, outcomes


def planned(features, outcomes, **options):
    return make_plan(
        Settings(
            epsilon=2.0,
            delta=1e-6,
            feature_bounds=primo.Bounds(norm=float(np.linalg.norm(features, axis=1).max())),
            outcome_bounds=primo.Bounds(norm=float(np.linalg.norm(outcomes, axis=1).max())),
            **{"fit_intercept": False, **options},
        ),
        n=N,
        d=D,
        l=L,
    )


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"outcome_moments": "diagonal"},
        {"calibration": "paper"},
        {"protection": "outcomes", "association": "projection"},
        {"protection": "features"},
    ],
    ids=str,
)
def test_equals_the_pipeline_with_the_same_noise(options):
    """Noise of the same seed is the same integers, so any other scale or block would show at once."""
    features, outcomes = rows()
    plan = planned(features, outcomes, **options)
    source = ArraySource(
        features=features,
        outcomes=outcomes,
        feature_names=("x0", "x1", "x2"),
        outcome_names=("y0", "y1", "y2", "y3"),
    )
    wanted = make_release(source, plan, bits=RandomBits.seeded(5))
    moments = ExactMoments.of(features, outcomes, full=True)
    made = release_moments(moments, plan, bits=RandomBits.seeded(5))
    for name in ("covariance", "association", "outcome_moments"):
        np.testing.assert_allclose(getattr(made, name), getattr(wanted, name), rtol=1e-3, atol=0.05)
    np.testing.assert_allclose(
        primo.coefficients(made).slopes, primo.coefficients(wanted).slopes, atol=1e-3
    )


def test_the_noise_is_there():
    features, outcomes = rows()
    plan = planned(features, outcomes)
    moments = ExactMoments.of(features, outcomes, full=True)
    draws = [
        release_moments(moments, plan, bits=RandomBits.seeded(seed)).association
        - moments.association
        for seed in range(200)
    ]
    measured = np.std(draws)
    assert 0.95 < measured / plan.association_sigma < 1.05


def test_refuses_what_it_cannot_do():
    features, outcomes = rows()
    moments = ExactMoments.of(features, outcomes, full=True)
    with pytest.raises(InputError, match="without intercept"):
        release_moments(
            moments, planned(features, outcomes, fit_intercept=True), bits=RandomBits.seeded(1)
        )
    public = planned(features, outcomes, protection="features", association="projection")
    with pytest.raises(InputError, match="needs their rows"):
        release_moments(moments, public, bits=RandomBits.seeded(1))
