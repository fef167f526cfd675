"""Dask arrays: computed once, a chunk at a time; messages show no cells."""

import traceback

import numpy as np
import pytest

from primo.errors import InputError, NotNumericError
from primo.rows.sources.arrays.dask import DaskColumns, dask_source

da = pytest.importorskip("dask.array")


def test_names_are_given_or_numbered():
    x, y = da.zeros((5, 2)), da.zeros((5, 1))
    assert dask_source(x, y).feature_names == ("x0", "x1")
    assert dask_source(x, y).outcome_names == ("y0",)
    assert dask_source(x, y, ["a", "b"], ["p"]).feature_names == ("a", "b")


@pytest.mark.parametrize("order", [range(40), np.random.default_rng(0).permutation(40)])
def test_every_chunk_is_computed_once(order):
    computed = []

    def count(block):
        computed.append(len(block))
        return block

    values = np.arange(80.0).reshape(40, 2)
    array = da.from_array(values, chunks=(16, 2)).map_blocks(count, dtype=float, meta=values[:0])
    blocks = list(DaskColumns(array=array, names=("a", "b")).blocks(order, 7))
    np.testing.assert_array_equal(np.vstack(blocks), values[np.asarray(order)])
    assert sorted(computed) == [8, 16, 16]


def test_a_failing_chunk_says_nothing_of_its_cells():
    def fail(block):
        raise ValueError("could not convert 'secret'")

    array = da.zeros((10, 2)).map_blocks(fail, dtype=float, meta=np.zeros((0, 2)))
    with pytest.raises(InputError, match=r"could not compute the rows \(ValueError\)") as caught:
        list(DaskColumns(array=array, names=("a", "b")).blocks(range(10), 5))
    assert "secret" not in "".join(traceback.format_exception(caught.value))
    assert caught.value.__context__ is None


def test_what_is_refused():
    y = da.zeros((5, 1))
    with pytest.raises(InputError, match="Dask array, not ndarray"):
        dask_source(np.zeros((5, 2)), y)
    with pytest.raises(InputError, match="features has 1 axes"):
        dask_source(da.zeros(5), y)
    with pytest.raises(NotNumericError, match="complex"):
        dask_source(da.zeros((5, 2), dtype=complex), y)
    with pytest.raises(InputError, match="compute_chunk_sizes"):
        dask_source(da.zeros((5, 2))[da.ones(5, dtype=bool)], y)
    with pytest.raises(InputError, match="5 rows of features but 4"):
        dask_source(da.zeros((5, 2)), y[:4])
    with pytest.raises(InputError, match="2 columns but 1 names"):
        dask_source(da.zeros((5, 2)), y, ["a"])


def chunks_of(types):
    """Return an array of two rows a chunk that says it is float64, whatever its chunks are."""

    def make(block, block_info=None):
        return block.astype(types[block_info[None]["chunk-location"][0]])

    rows = np.arange(4.0 * len(types)).reshape(-1, 2) / 2
    array = da.from_array(rows, chunks=(2, 2))
    return rows, array.map_blocks(make, dtype=float, meta=rows[:0])


def test_the_type_of_one_chunk_does_not_round_the_rows_of_another():
    """Such as the whole numbers that pandas makes of partitions without gaps."""
    rows, array = chunks_of(["int64", "float64", "float32"])
    rows[:2] = np.trunc(rows[:2])
    for size in (1, 2, 3, 6):
        for order in (range(6), np.arange(6)[::-1]):
            blocks = dask_source(array, array).features.blocks(order, size)
            np.testing.assert_array_equal(np.vstack(list(blocks)), rows[np.asarray(order)])


@pytest.mark.parametrize("odd", ["U8", object, "complex128"])
def test_chunks_that_are_no_numbers_are_refused(odd):
    _, array = chunks_of(["float32", odd])
    with pytest.raises(InputError, match=r"says that it holds float64") as caught:
        list(dask_source(array, array).features.blocks(range(4), 3))
    assert "0.5" not in str(caught.value)
