"""The one suite that every store of columns and every source passes.

A format joins by a file `tests/contract/cases_*.py` beside this one, with one or both of

- `COLUMNS`: a list of functions `case(folder) -> (columns, values, ids)`: the `Columns` under test,
  what an independent reader says it holds (float64, NaN where missing, in stored order; at least 30
  rows and 2 columns, so that orders and blocks mean something) and the ids as a list, or None;
- `SOURCES`: a list of functions `case(folder) -> (source, features, outcomes, ids)`, likewise.

A case that needs a library that is absent calls `pytest.importorskip` inside the function.
"""

import importlib.util
import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest

from factories import array_source
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.rows.moments import fold
from primo.rows.sources.paired import PairedSource, SplitSource, StackedColumns


def _registered(kind):
    """Gather the cases of all files beside this one."""
    found = []
    for path in sorted(Path(__file__).parent.glob("cases_*.py")):
        spec = importlib.util.spec_from_file_location(f"contract_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        prefix = path.stem.removeprefix("cases_")
        found += [
            pytest.param(case, id=f"{prefix}-{case.__name__}") for case in getattr(module, kind, [])
        ]
    return found


@pytest.fixture(params=_registered("COLUMNS"))
def store(request, tmp_path):
    """Give the columns under test, what they hold, and the ids of their rows."""
    columns, values, ids = request.param(tmp_path)
    values = np.asarray(values, dtype=np.float64)
    assert len(values) >= 30
    assert values.shape[1] >= 2
    return columns, values, ids


def read(columns, order, rows):
    """Walk `order`; check the sizes of the blocks, and that none is written to afterwards."""
    walked, seen = [], []
    for block in columns.blocks(order, rows):
        walked.append(block)
        seen.append(block.copy())
    assert [len(block) for block in walked] == [
        min(rows, len(order) - start) for start in range(0, len(order), rows)
    ]
    for block, copy in zip(walked, seen, strict=True):
        assert block.shape[1] == len(columns.names)
        assert block.dtype.kind in "biuf"
        np.testing.assert_array_equal(block, copy)
    if not walked:
        return np.empty((0, len(columns.names)))
    return np.concatenate(walked).astype(np.float64)


def orders(n):
    """Name the ways in which the rows of a store are asked for."""
    rng = np.random.default_rng(5)
    some = rng.random(n) < 0.4
    return {
        "all": range(n),
        "none": range(0),
        "one": range(n - 1, n),
        "middle": range(n // 4, n - n // 3),
        "every third": range(1, n, 3),
        "backwards": range(n - 1, -1, -1),
        "array": np.arange(n),
        "subset": np.flatnonzero(some),
        "permutation": rng.permutation(n),
        "shuffled subset": rng.permutation(np.flatnonzero(some)),
        "nearly sorted": np.r_[np.arange(1, n), 0],
    }


def test_schema(store):
    columns, values, _ = store
    assert isinstance(columns.n, int)
    assert columns.n == len(values)
    assert isinstance(columns.names, tuple)
    assert all(type(name) is str and name for name in columns.names)
    assert len(set(columns.names)) == len(columns.names) == values.shape[1]


def test_ids(store):
    columns, values, expected = store
    found = columns.ids()
    if expected is None:
        assert found is None
        return
    assert found.dtype.kind == "U"
    assert found.shape == (len(values),)
    assert found.tolist() == [str(name) for name in expected]


@pytest.mark.parametrize("name", orders(30))
def test_any_order_in_any_blocks(store, name):
    columns, values, _ = store
    order = orders(len(values))[name]
    expected = values[np.asarray(order, dtype=np.intp)]
    for rows in (1, 7, len(values), 10 * len(values)):
        np.testing.assert_array_equal(read(columns, order, rows), expected)


def test_two_walks_at_once_and_one_left_early(store):
    columns, values, _ = store
    n = len(values)
    left = columns.blocks(range(n), 5)
    np.testing.assert_array_equal(next(left).astype(np.float64), values[:5])
    walks = zip(columns.blocks(range(n), 5), columns.blocks(range(n - 1, -1, -1), 5), strict=True)
    start = 0
    for forwards, backwards in walks:
        np.testing.assert_array_equal(forwards.astype(np.float64), values[start : start + 5])
        np.testing.assert_array_equal(backwards.astype(np.float64), values[::-1][start : start + 5])
        start += 5
    del left  # closing a walk in the middle raises nothing and harms no other walk
    np.testing.assert_array_equal(read(columns, range(n), 11), values)


def test_a_pickled_copy_reads_the_same(store):
    columns, values, ids = store
    copy = pickle.loads(pickle.dumps(columns))
    assert copy.names == columns.names
    assert copy.n == columns.n
    np.testing.assert_array_equal(read(copy, range(copy.n), 13), values)
    if ids is not None:
        assert copy.ids().tolist() == columns.ids().tolist()


def test_repr_says_private_and_nothing_else(store):
    columns, values, ids = store
    text = repr(columns) + str(columns) + repr(split(columns))
    assert "(private)" in text
    cells = {str(cell) for cell in values[np.isfinite(values)]}
    assert not [cell for cell in cells if len(cell) > 3 and cell in text]
    assert not [name for name in ids or [] if len(str(name)) > 2 and str(name) in text]


def split(columns, rows=None):
    d = len(columns.names) // 2
    return SplitSource(columns=columns, d=d, rows=range(columns.n) if rows is None else rows)


def reference(features, outcomes):
    """Say what the moments of these values are, and under which plan."""
    source = array_source(features, outcomes)
    plan = make_plan(
        Settings(
            epsilon=1.0,
            delta=1e-6,
            feature_bounds=Bounds(norm=4.0),
            outcome_bounds=Bounds(lower=-2.0, upper=5.0),
            missing="centre",
        ),
        n=source.n,
        d=features.shape[1],
        l=outcomes.shape[1],
    )
    return fold(source, plan, threads=1), plan


def assert_same_moments(source, features, outcomes):
    """Check the moments bit for bit, whole and added over parts, for blocks and threads."""
    expected, plan = reference(features, outcomes)
    cuts = [0, 1, source.n // 3, source.n - 5, source.n]
    parts = [fold(source.part(a, b), plan) for a, b in itertools.pairwise(cuts)]
    whole = [fold(source, plan, block_rows=rows, threads=2) for rows in (3, 1000)]
    for found in [*whole, parts[0] + parts[1] + parts[2] + parts[3]]:
        assert found.rows == expected.rows
        for name in ("covariance", "association", "outcome"):
            assert np.array_equal(getattr(found, name), getattr(expected, name)), name


def test_moments_of_a_store_cut_in_two(store):
    columns, values, ids = store
    d = len(columns.names) // 2
    order = np.random.default_rng(2).permutation(columns.n)
    for rows in (range(columns.n), order):
        source = split(columns, rows)
        assert_same_moments(source, values[:, :d], values[:, d:])
        if ids is not None:
            assert source.ids().tolist() == [str(ids[i]) for i in rows]


def test_moments_of_stores_side_by_side(store):
    columns, values, _ = store
    order = np.random.default_rng(3).permutation(columns.n)[:-2]
    source = PairedSource(
        features=columns, outcomes=columns, feature_rows=order, outcome_rows=order[::-1]
    )
    assert_same_moments(source, values[order], values[order[::-1]])
    stacked = StackedColumns(parts=(columns,), rows=(order,))
    np.testing.assert_array_equal(
        read(stacked, range(stacked.n - 1, -1, -1), 9), values[order[::-1]]
    )


@pytest.mark.parametrize("case", _registered("SOURCES"))
def test_sources(case, tmp_path):
    source, features, outcomes, ids = case(tmp_path)
    features, outcomes = (np.asarray(part, dtype=np.float64) for part in (features, outcomes))
    assert "(private)" in repr(source)
    assert source.n == len(features) == len(outcomes) >= 30
    assert len(set(source.feature_names)) == features.shape[1]
    assert len(set(source.outcome_names)) == outcomes.shape[1]
    copy = pickle.loads(pickle.dumps(source))
    for start, block in zip(range(0, source.n, 7), copy.blocks(7), strict=True):
        np.testing.assert_array_equal(block.features.astype(np.float64), features[start:][:7])
        np.testing.assert_array_equal(block.outcomes.astype(np.float64), outcomes[start:][:7])
    found = source.ids()
    assert (found is None) == (ids is None)
    if ids is not None:
        assert found.tolist() == [str(name) for name in ids]
        assert source.part(3, 9).ids().tolist() == found[3:9].tolist()
    assert_same_moments(source, features, outcomes)
