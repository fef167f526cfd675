"""What better public knowledge would bring, each line a forecast of its own."""

from itertools import pairwise

import numpy as np
import pytest

from primo.forecast.assumptions import Signal
from primo.forecast.forecast import predict
from primo.forecast.knowledge import better_knowledge, bounds_of, replanned
from primo.forecast.law import law_of
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds

SIGNAL = Signal(r2=0.5)


def planned(x, y, **changes):
    shape = {"n": 6000, "d": 40, "l": 10} | changes
    n, d, l = (shape.pop(name) for name in "ndl")
    given = {"epsilon": 3.0, "delta": 1e-8, "feature_bounds": x, "outcome_bounds": y} | shape
    return make_plan(Settings(**given), n=n, d=d, l=l)


def better(plan, signal=SIGNAL):
    than = predict(plan, signal=signal).r2
    return than, better_knowledge(
        plan, association="gauss", estimator="auto", signal=signal, than=than
    )


def test_frequencies_beat_0_to_2():
    plan = planned(Bounds(lower=0, upper=2), Bounds(centre=0, scale=2, norm=4.6), n=2000)
    than, found = better(plan)
    (only,) = found
    assert only.knowledge == "public allele frequencies"
    assert only.predicted_r2 > than + 0.02
    # It is what a plan with these frequencies is forecast to reach.
    law = law_of(plan, SIGNAL).features
    known = Bounds.from_frequencies((law.mean + 1) / 2)
    again = predict(replanned(plan, features=known), signal=SIGNAL).r2
    assert only.predicted_r2 == pytest.approx(again, abs=0.01)
    numbers = f"{only.predicted_r2:.3f} instead of {than:.3f}"
    assert str(only) == f"{numbers} with {only.knowledge} (Bounds.from_frequencies)"


def test_covariates_keep_their_ranges():
    """Genotypes beside an age: frequencies are for the genotypes only."""
    lower, upper = np.zeros(40), np.full(40, 2.0)
    lower[-1], upper[-1] = 18, 90
    plan = planned(Bounds(lower=lower, upper=upper), Bounds(centre=0, scale=2, norm=4.6))
    _, found = better(plan)
    assert [b.knowledge.split(" (")[0] for b in found] == ["public allele frequencies"]


def test_a_loose_range_has_two_ways_out_and_both_together():
    plan = planned(Bounds(lower=-20, upper=20), Bounds(lower=-20, upper=20))
    than, found = better(plan, Signal(r2=0.5, feature_sd=2.0, outcome_sd=2.0))
    assert found[0].knowledge.count("centre and scale") == 2
    assert found[0].predicted_r2 > than + 0.2
    assert all(a.predicted_r2 >= b.predicted_r2 for a, b in pairwise(found))
    assert any("a norm of" in b.knowledge for b in found)


def test_nothing_is_said_where_nothing_would_help():
    assert better(planned(Bounds(norm=1), Bounds(norm=1)))[1] == ()
    fits = planned(Bounds(centre=1, scale=1, norm=8), Bounds(centre=1, scale=1, norm=4.6))
    assert better(fits)[1] == ()
    assert better(planned(Bounds(lower=0, upper=2), Bounds(norm=1), protection="outcomes"))[1] == ()


@pytest.mark.parametrize(
    "bounds", [Bounds(lower=-1, upper=3, norm=2), Bounds(centre=2, scale=3, norm=4), Bounds(norm=2)]
)
def test_a_plan_keeps_its_bounds(bounds):
    plan = planned(bounds, Bounds(lower=0, upper=4))
    again = replanned(plan)
    for block in ("features", "outcomes"):
        ours, theirs = getattr(again, block), getattr(plan, block)
        np.testing.assert_allclose(ours.centre, theirs.centre)
        np.testing.assert_allclose(ours.scale, theirs.scale)
        assert (ours.norm, ours.box) == (theirs.norm, theirs.box)
    assert again.association_sigma == plan.association_sigma
    assert replanned(plan, epsilon=1.0).association_sigma > 2 * plan.association_sigma
    assert bounds_of(plan.outcomes).clip(10, "outcomes").norm == plan.outcomes.norm
