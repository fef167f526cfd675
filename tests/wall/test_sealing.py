"""The digest of a release: equal for equal moments and plans, different for all others."""

import dataclasses

import numpy as np
import pytest

from factories import planned
from primo.planning.residuals import ResidualGrid
from primo.privacy.bounds import Bounds
from primo.rows.moments import Moments, fold
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall.sealing import moments_digest, plan_digest, round_digest

D, L = 3, 2


def plan_of(**changes):
    settings = {
        "n": 50,
        "d": D,
        "l": L,
        "epsilon": 2.0,
        "delta": 1e-6,
        "feature_bounds": Bounds(lower=0.0, upper=2.0),
        "outcome_bounds": Bounds(norm=3.0),
    }
    return planned(**settings | changes)


def source(seed=0, names="abc"):
    rng = np.random.default_rng(seed)
    return ArraySource(
        features=rng.integers(0, 3, size=(50, D)).astype(float),
        outcomes=rng.normal(size=(50, L)),
        feature_names=tuple(names),
        outcome_names=("p", "q"),
    )


@pytest.fixture
def moments():
    return fold(source(), plan_of())


def test_blocks_threads_and_names_do_not_matter(moments):
    again = fold(source(names="xyz"), plan_of(), threads=2, block_rows=7)
    assert moments_digest(again, plan_of()) == moments_digest(moments, plan_of())
    assert len(moments_digest(moments, plan_of())) == 32


@pytest.mark.parametrize("block", ["covariance", "association", "outcome"])
def test_every_integer_matters(moments, block):
    digests = {moments_digest(moments, plan_of())}
    values = getattr(moments, block)
    for i in range(values.size):
        changed = values.copy()
        changed.flat[i] += 1
        digests.add(moments_digest(dataclasses.replace(moments, **{block: changed}), plan_of()))
    assert len(digests) == values.size + 1


def test_every_field_of_the_plan_matters(moments):
    plan = plan_of()
    up = {
        "mu": np.nextafter(plan.mu, 9),
        "features": dataclasses.replace(plan.features, norm=np.nextafter(plan.features.norm, 9)),
        "outcomes": dataclasses.replace(plan.outcomes, centre=np.array([0.0, 5e-324])),
        "grid": dataclasses.replace(plan.grid, association_variance_bits=99),
        "budget": dataclasses.replace(plan.budget, delta=2e-6),
        "sampled": 10,
        "protection": type(plan.protection).FEATURES,
        "missing": "centre",
    }
    changed = [dataclasses.replace(plan, **{name: value}) for name, value in up.items()]
    assert len({plan_digest(p) for p in (plan, *changed)}) == len(up) + 1
    # How missing values are treated shows in the moments alone, and may change in a resume.
    assert len({moments_digest(moments, p) for p in (plan, *changed)}) == len(up)


def test_numbers_of_numpy_are_numbers():
    plan = plan_of()
    same = dataclasses.replace(plan, n=np.int64(plan.n), mu=np.float64(plan.mu))
    assert plan_digest(same) == plan_digest(plan)


def test_shapes_matter():
    def made(shape):
        zeros = np.zeros(shape, dtype=np.int64)
        return Moments(rows=1, covariance=zeros, association=zeros, outcome=zeros)

    plan = plan_of()
    assert moments_digest(made((2, 3)), plan) != moments_digest(made((3, 2)), plan)
    assert moments_digest(made((6,)), plan) != moments_digest(made((3, 2)), plan)


def test_the_digest_of_a_round_says_what_residuals_are_taken_of(moments):
    """With the same moments too: noise that is drawn for one choice is not drawn for another."""
    plan = plan_of(rounds=3)

    def digest(number=1, **changes):
        given = {"integers": np.ones((D + 1, L)), "bits": 3, "clip": 0.5} | changes
        return round_digest(moments, plan, number=number, residuals=ResidualGrid(**given))

    others = [
        digest(number=2),
        digest(bits=4),
        digest(clip=0.5000001),
        digest(integers=np.full((D + 1, L), 2.0)),
        round_digest(moments, plan, number=1, residuals=None),
        moments_digest(moments, plan),
    ]
    assert len({digest(), *others}) == len(others) + 1
    assert digest() == digest()
