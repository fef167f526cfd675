"""Summary statistics from blocks: as from the whole covariance, and the law of their error."""

import dataclasses
import math
from itertools import pairwise

import numpy as np
import pytest

import primo
from factories import planned
from primo.errors import InputError
from primo.privacy.bounds import Bounds
from primo.released.blocks import ReleasedBlocks
from primo.released.marginal import summary_statistics
from primo.released.release import Release
from primo.variants import Variants

N, D, L = 4000, 6, 2
STARTS = np.array([0, 2, 3, 6])
NAMES = tuple(f"rs{i}" for i in range(D))
DRAWS, NEAR = 1500, 0.1


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    copies = rng.binomial(2, rng.uniform(0.2, 0.5, size=D), size=(N, D)).astype(float)
    copies[:, 1] = np.where(rng.random(N) < 0.7, copies[:, 0], copies[:, 1])
    outcomes = 3 + copies @ rng.normal(size=(D, L)) + rng.normal(size=(N, L))
    return copies, outcomes


def variants(names=NAMES):
    return Variants(
        names=tuple(names),
        chromosome=("1",) * len(names),
        position=np.arange(1, len(names) + 1),
        counted=("A",) * len(names),
        other=("G",) * len(names),
    )


def exact(rows, *, intercept=True, protection="both"):
    """Return a release with the whole covariance and one with blocks, both without noise."""
    features, outcomes = rows
    plan = planned(
        n=N,
        d=D,
        l=L,
        epsilon=20.0,
        delta=1e-6,
        protection=protection,
        feature_bounds=Bounds(lower=np.zeros(D), upper=np.full(D, 2.0)),
        outcome_bounds=Bounds(lower=outcomes.min(axis=0), upper=outcomes.max(axis=0)),
        fit_intercept=intercept,
    )
    scaled = (features - plan.features.centre) / plan.features.scale
    constant = np.full((N, 1), plan.constant)
    wide = np.hstack([scaled, constant]) if intercept else scaled
    targets = (outcomes - plan.outcomes.centre) / plan.outcomes.scale
    whole = Release(
        plan=plan,
        feature_names=NAMES,
        outcome_names=("y0", "y1"),
        covariance=wide.T @ wide,
        association=wide.T @ targets,
        outcome_moments=targets.T @ targets,
        reproducible=True,
        backend="numpy",
    )
    inner = scaled.T @ scaled
    cuts = list(pairwise(STARTS))
    blocks = ReleasedBlocks(
        starts=STARTS,
        covariance=tuple(inner[a:b, a:b] for a, b in cuts),
        sigma=np.zeros(len(cuts)),
        sums=scaled.sum(axis=0) if intercept else np.zeros(D),
        sums_sigma=0.0,
    )
    return whole, dataclasses.replace(whole, covariance=np.empty((0, 0)), blocks=blocks)


@pytest.mark.parametrize("intercept", [True, False])
def test_same_as_from_the_whole_covariance(rows, intercept):
    """Without noise of the covariance both say the same: effects, errors, sizes, frequencies."""
    whole, parts = exact(rows, intercept=intercept)
    one, other = (summary_statistics(r, variants()) for r in (whole, parts))
    for j in range(L):
        expected, found = one.outcome(j), other.outcome(j)
        np.testing.assert_allclose(found.effect, expected.effect, rtol=1e-9)
        np.testing.assert_allclose(found.standard_error, expected.standard_error, rtol=0.2)
    if intercept:
        np.testing.assert_allclose(other.frequency, rows[0].mean(axis=0) / 2, rtol=1e-9)
        np.testing.assert_allclose(one.frequency, other.frequency, rtol=1e-9)
    else:
        assert other.frequency is None
    assert other.determined.all()
    assert other.n == N


@pytest.mark.parametrize("share", [0.0, 0.06])
def test_error_has_the_stated_law(rows, share):
    """The spread of noisy effects is the stated privacy part of the standard error."""
    _, parts = exact(rows)
    plan, blocks = parts.plan, parts.blocks
    rng = np.random.default_rng(5)
    sigma, sums = share * N, 0.01 * N
    effects, errors = [], []
    for _ in range(DRAWS):
        noisy = dataclasses.replace(
            blocks,
            covariance=tuple(
                part + np.diag(sigma * rng.standard_normal(len(part))) for part in blocks.covariance
            ),
            sigma=np.full(3, sigma),
            sums=blocks.sums + sums * rng.standard_normal(D),
            sums_sigma=sums,
        )
        added = plan.association_sigma * rng.standard_normal((D + 1, L))
        release = dataclasses.replace(parts, blocks=noisy, association=parts.association + added)
        found = summary_statistics(release, variants()).outcome(0)
        effects.append(found.effect)
        private = 1 - found.effective_n / N  # part of the variance that is privacy noise
        errors.append(found.standard_error**2 * private)
    known = np.isfinite(effects).all(axis=0)
    assert known.sum() >= 4
    spread = np.std(np.array(effects)[:, known], axis=0)
    stated = np.sqrt(np.mean(np.array(errors)[:, known], axis=0))
    ratio = spread / stated
    if share == 0:
        assert (np.abs(ratio - 1) < NEAR).all(), ratio
    else:  # the diagonal is shrunk toward what is expected, so errors hold on average only
        assert math.exp(np.log(ratio).mean()) == pytest.approx(1.0, abs=2 * NEAR)


def test_coefficients_of_a_release_with_blocks(rows):
    """Close to least squares where nothing is noisy: outside the blocks nothing is correlated."""
    features, outcomes = rows
    _, parts = exact(rows, protection="outcomes")
    found = parts.coefficients()
    assert found.estimator == "blocks"
    design = np.column_stack([features, np.ones(N)])
    expected = np.linalg.lstsq(design, outcomes)[0]
    left = outcomes - found.predict(features)
    explained = 1 - left.var(axis=0) / outcomes.var(axis=0)
    best = 1 - (outcomes - design @ expected).var(axis=0) / outcomes.var(axis=0)
    assert (explained > best - 0.02).all()
    np.testing.assert_allclose(left.mean(axis=0), 0.0, atol=0.05)


def test_other_estimators_need_the_whole_covariance(rows):
    _, parts = exact(rows)
    with pytest.raises(InputError, match="inside blocks of features only"):
        parts.coefficients(estimator="ridge")


def test_covariates_are_refused(rows):
    _, parts = exact(rows)
    with pytest.raises(InputError, match="cannot be adjusted") as caught:
        summary_statistics(parts, variants(NAMES[:4]))
    assert "ignore" in str(caught.value.remedy)
    found = primo.summary_statistics(parts, variants(NAMES[:4]), covariates="ignore")
    assert len(found.outcome("y1").effect) == 4
    with pytest.raises(InputError, match="not in this release"):
        found.outcome("height")
