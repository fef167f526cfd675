"""The public grids of lengths and of signed values."""

import math

import numpy as np
import pytest

from primo.privacy import lengths
from primo.privacy import values as signed_grid


def test_edges_are_powers_and_ascend() -> None:
    edges, squared = lengths.edges(), lengths.squared_edges()
    assert len(edges) == len(squared) == lengths.BINS - 1 == 641
    assert (np.diff(edges) > 0).all()
    assert (np.diff(squared) > 0).all()
    assert edges[0] == 2.0**-40
    assert edges[-1] == 2.0**40
    np.testing.assert_allclose(squared, edges**2, rtol=1e-15)
    assert set(np.exp2(np.arange(-80, 81, 2))) <= set(squared)  # whole octaves are exact


@pytest.mark.parametrize("length", [0.0, 1e-30, 2.0**-41])
def test_short_rows_are_in_the_first_bin(length: float) -> None:
    assert lengths.bin_of_squared(np.array([length**2]))[0] == 0


@pytest.mark.parametrize("squared", [2.0**80, 1e300, math.inf, math.nan])
def test_endless_rows_are_in_the_last_bin(squared: float) -> None:
    assert lengths.bin_of_squared(np.array([squared]))[0] == lengths.BINS - 1


def test_every_centre_lies_in_its_own_bin() -> None:
    found = lengths.bin_of_squared(lengths.centres() ** 2)
    np.testing.assert_array_equal(found, np.arange(lengths.BINS))


def test_an_edge_belongs_to_the_bin_above_it() -> None:
    squared = lengths.squared_edges()
    at = np.arange(1, lengths.BINS)
    np.testing.assert_array_equal(lengths.bin_of_squared(squared), at)
    np.testing.assert_array_equal(lengths.bin_of_squared(np.nextafter(squared, 0)), at - 1)


def test_signed_centres_lie_in_their_own_bins_and_mirror() -> None:
    centres = signed_grid.centres()
    assert len(centres) == len(signed_grid.widths()) == signed_grid.BINS
    np.testing.assert_array_equal(signed_grid.bin_of(centres), np.arange(signed_grid.BINS))
    np.testing.assert_array_equal(centres, -centres[::-1])


def test_signed_extremes_have_a_bin() -> None:
    found = signed_grid.bin_of(np.array([-np.inf, np.inf, np.nan, 0.0, -0.0, 1e-30, -1e-30]))
    zero = signed_grid.ZERO
    np.testing.assert_array_equal(found, [0, signed_grid.BINS - 1, zero, zero, zero, zero, zero])
