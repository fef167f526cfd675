"""Rows counted by length: every row by itself, in one bin, whatever its block holds."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from factories import array_source, planned
from primo.errors import InputError
from primo.privacy.bounds import Bounds
from primo.privacy.lengths import BINS, edges
from primo.rows.lengths import LengthAccumulator, fold_lengths, squared_lengths
from primo.rows.sources.base import Block

N, D, L = 500, 4, 3


def plan(n=N, **changes):
    given = {"feature_bounds": Bounds(norm="auto"), "outcome_bounds": Bounds(norm="auto")}
    return planned(n=n, d=D, l=L, epsilon=50, delta=1e-6, **given | changes)


def rows(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, D)) * 3, rng.normal(size=(n, L))


def test_every_row_is_counted_once_in_the_bin_of_its_length():
    x, y = rows()
    found = fold_lengths(array_source(x, y), plan())
    assert found.rows == N
    for counts, block in ((found.features, x), (found.outcomes, y)):
        expected = np.searchsorted(edges(), np.linalg.norm(block, axis=1), side="right")
        np.testing.assert_array_equal(counts, np.bincount(expected, minlength=BINS))


@pytest.mark.parametrize("threads", [1, 3])
def test_the_counts_do_not_depend_on_threads(threads):
    source = array_source(*rows(n=9000))
    one = fold_lengths(source, plan(n=9000), threads=1)
    other = fold_lengths(source, plan(n=9000), threads=threads)
    np.testing.assert_array_equal(one.features, other.features)
    np.testing.assert_array_equal(one.outcomes, other.outcomes)


def test_ranges_cut_before_lengths_are_counted():
    limits = Bounds(lower=-1, upper=3, norm="auto")
    clip = limits.clip(2, "features")
    found = squared_lengths(np.array([[99.0, 1.0]]), clip, missing="error", block="features")
    assert found == [1.0]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(allow_nan=True, allow_infinity=True, width=64), min_size=D, max_size=D),
    st.integers(0, 20),
)
@example([1.7e308] * D, 3)
@example([float("inf"), float("nan"), -1.7e308, 5e-324], 0)
def test_a_row_moves_two_counts_by_one_at_most(row, place):
    """Whatever it holds, and wherever it stands."""
    x, y = rows(n=21)
    accumulators = []
    for features in (x, np.vstack([x[:place], [row], x[place + 1 :]])):
        accumulator = LengthAccumulator(plan(missing="centre"))
        accumulator.add(Block(features=features, outcomes=y))
        accumulators.append(accumulator.total())
    moved = accumulators[0].features - accumulators[1].features
    assert sorted(moved[moved != 0].tolist()) in ([], [-1, 1])
    np.testing.assert_array_equal(accumulators[0].outcomes, accumulators[1].outcomes)


def test_a_length_depends_on_its_row_alone():
    rng = np.random.default_rng(3)
    block = rng.normal(size=(300, 37)) * 10.0 ** rng.integers(-307, 307, size=(300, 1))
    clip = Bounds(norm="auto").clip(37, "features")
    together = squared_lengths(block, clip, missing="error", block="features")
    alone = [
        squared_lengths(row[None], clip, missing="error", block="features")[0] for row in block
    ]
    np.testing.assert_array_equal(together, alone)


def test_missing_values_are_refused_or_count_as_the_centre():
    x, y = rows()
    x[3, 1] = np.nan
    with pytest.raises(InputError, match="NaN or infinity"):
        fold_lengths(array_source(x, y), plan())
    found = fold_lengths(array_source(x, y), plan(missing="centre"))
    assert found.features.sum() == N


def test_it_prints_no_number():
    assert repr(fold_lengths(array_source(*rows()), plan())) == "<Lengths (private)>"


def test_a_block_of_the_wrong_size_is_refused():
    with pytest.raises(InputError, match="wrong size"):
        LengthAccumulator(plan()).add(Block(features=np.zeros((2, 1)), outcomes=np.zeros((2, L))))
