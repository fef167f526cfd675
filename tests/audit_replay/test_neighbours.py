"""Every way to release, replayed on neighbours that a search finds: mu apart at the worst, no more."""

from fractions import Fraction

import numpy as np
import pytest

from primo.errors import BoundsError
from primo.privacy.calibration import lattice_margin
from primo.wall.noise import RandomBits
from primo.wall.sealing import plan_digest
from primo.workflow.fit import prepare


def test_a_search_finds_neighbours_mu_apart_and_none_further(replay, ways, way):
    neighbours = ways.Neighbours(way)
    worst = ways.worst(replay, way)
    reached = neighbours.distance(replay, worst)
    rng = np.random.default_rng(4)
    around = [worst * rng.uniform(0.2, 5) + rng.normal(size=worst.size) * s for s in (1e-3, 0.1, 1)]
    far = [worst * 1e9, worst * 1e-9, np.zeros_like(worst), rng.normal(size=worst.size) * 1e200]
    for pair in [worst, *around, *far]:
        assert neighbours.distance(replay, pair) <= Fraction(way.plan.mu) ** 2
    # Two-sided: a √2 too much would be half of mu², and too little was seen above.
    assert reached > way.within_reach * Fraction(way.plan.mu) ** 2


def test_the_calls_do_not_depend_on_private_rows(replay, ways, way):
    x, y = way.rows()
    usual = replay.schedule(replay.record(way.fit(x, y)))
    for fill in (0.0, 1e300, -1e-300):
        odd_x = x if way.protection == "outcomes" else np.full_like(x, fill)
        odd_y = y if way.protection == "features" else np.full_like(y, fill)
        assert replay.schedule(replay.record(way.fit(odd_x, odd_y))) == usual


def test_the_plan_does_not_depend_on_private_rows(ways, way):
    if "extension" in way.mechanism:
        pytest.skip("planned from a release, not from rows")
    one, other = (way.plan_of(*rows) for rows in (way.rows(), way.other_rows()))
    assert plan_digest(one) == plan_digest(other)


def test_nothing_private_goes_around_the_noise(replay, ways, way):
    """With the sums cut off below the noise, releases of different people are the same numbers."""
    with replay.severed():
        one = replay.published(way.fit(*way.rows())())
        other = replay.published(way.fit(*way.other_rows())())
    np.testing.assert_equal(one, other)
    with ways.near_guess():
        with replay.severed():
            cut = replay.published(way.fit(*way.other_rows())())
        whole = replay.published(way.fit(*way.other_rows())())
    assert not np.array_equal(whole["association"], cut["association"]), "the cut must cut"


def test_all_that_is_drawn_is_recorded_and_nothing_twice(replay, ways, way):
    bits = RandomBits.seeded(ways.SEED)
    calls = replay.record(way.fit(*way.rows(), bits=bits))
    labels = [call.label for call in calls]
    sample = {"sample"} if way.mechanism == "sampled" else set()
    assert bits._used == {*labels, *sample}
    assert len(set(labels)) == len(labels)
    drawn = [value for call in calls for value in call.noise.ravel().tolist()]
    assert len({abs(value) for value in drawn}) == len(drawn)  # of 2**58 and more


def test_the_margin_covers_every_number_released(replay, way):
    calls = replay.record(way.fit(*way.rows()))
    numbers = sum(call.values.size for call in calls)
    assert way.plan.margin >= lattice_margin(numbers, min(call.variance_bits for call in calls))
    assert way.plan.margin > 0


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_no_bound_is_read_off_private_rows(ways, protection):
    """A private block needs bounds; a public one has them read off, the same for all neighbours."""
    way = ways.Way(protection)
    x, y = way.rows()
    for block in ("feature", "outcome"):
        settings = vars(way.settings) | {f"{block}_bounds": None}
        if f"{block}s" == ways.PUBLIC[protection]:
            plan = prepare(ways.table(x, y), type(way.settings)(**settings)).plan
            xx, yy = (x, -9 * y) if block == "feature" else (-9 * x, y)
            again = prepare(ways.table(xx, yy), type(way.settings)(**settings)).plan
            assert plan_digest(plan) == plan_digest(again)
        else:
            with pytest.raises(BoundsError, match="private"):
                prepare(ways.table(x, y), type(way.settings)(**settings))
