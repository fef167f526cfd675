"""Copies of alleles in blocks of features: the same integers by counting as by the quantiser."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factories import array_source, planned
from primo._util.jit import load
from primo.errors import InputError
from primo.privacy.bounds import Bounds
from primo.rows import block_moments, quantise
from primo.rows.block_moments import fold_blocks
from primo.rows.quantise import feature_quantiser

if load("primo.rows.copy_kernels") is None:
    reason = "needs compiled loops: numba (primo-dp[fast]), and NUMBA_DISABLE_JIT not set"
    pytest.skip(reason, allow_module_level=True)

from primo.rows import block_copies as module

D, L = 300, 2
# Wide and narrow blocks, several single columns side by side, and one wider than a group of columns.
BORDERS = [0, 20, 21, 22, 23, 30, 31, 300]


def plan_for(n, *, norm=1.25, norms=None, missing="centre", borders=BORDERS, d=D):
    frequencies = np.linspace(0.005, 0.6, d)
    return planned(
        n=n,
        d=d,
        l=L,
        epsilon=3.0,
        delta=1e-6,
        feature_bounds=Bounds.from_frequencies(frequencies, norm=norm * d**0.5),
        outcome_bounds=Bounds(norm=2.0),
        covariance="blocks",
        blocks=borders,
        block_norms=norms,
        missing=missing,
    )


def genotypes(n, d=D, *, missing=0.0, seed=0):
    """Rows of which some are linked so closely that blocks of them are long."""
    rng = np.random.default_rng(seed)
    frequencies = np.linspace(0.005, 0.6, d)
    x = rng.binomial(2, frequencies, size=(n, d)).astype(np.int8)
    x[::9, : d // 2] = 2
    x[4::31] = 2
    if missing:
        x = x.astype(np.float32)
        x[rng.random(x.shape) < missing] = np.nan
    return x, rng.standard_normal((n, L))


@pytest.fixture
def counted(monkeypatch):
    """Let kernels be used at once, and note what was left to the quantiser by each block of rows."""
    monkeypatch.setattr(quantise, "_MANY", 0)
    seen = []
    add = module.Copies.add

    def noted(self, rows, *others):
        left = add(self, rows, *others)
        seen.append((len(rows), None if left is None else len(left)))
        return left

    monkeypatch.setattr(module.Copies, "add", noted)
    return seen


def without_kernels(monkeypatch, source, plan):
    with monkeypatch.context() as patched:
        patched.setattr(block_moments, "kernels_for", lambda _: None)
        return fold_blocks(source, plan)


def assert_same(found, expected):
    for name, value in vars(expected).items():
        assert np.array_equal(getattr(found, name), value), name


@pytest.mark.parametrize("missing", [0.0, 0.01, 0.6])
@pytest.mark.parametrize("norms", [None, 6.0], ids=["from bounds", "short blocks"])
@pytest.mark.parametrize("norm", [0.9, 1.25, 3.0])
@pytest.mark.parametrize("n", [2, 64, 701])
def test_counting_changes_no_bit(monkeypatch, counted, n, norm, norms, missing):
    plan = plan_for(n, norm=norm, norms=norms)
    source = array_source(*genotypes(n, missing=missing))
    found = fold_blocks(source, plan)
    assert counted
    assert all(left is not None for _, left in counted)
    assert_same(found, without_kernels(monkeypatch, source, plan))


def test_rows_are_counted_left_and_shortened(monkeypatch, counted):
    """The cases that the comparisons above are about do occur."""
    dropped = []
    kernels = load("primo.rows.copy_kernels")
    drop = kernels.drop_rows
    monkeypatch.setattr(kernels, "drop_rows", lambda *a: dropped.append(len(a[1])) or drop(*a))
    plan = plan_for(701)
    fold_blocks(array_source(*genotypes(701)), plan, threads=1)
    assert all(0 < left < rows / 2 for rows, left in counted)
    assert dropped


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 130),
    st.lists(st.integers(1, 39), max_size=5, unique=True),
    st.sampled_from([0.0, 0.05, 1.0]),
    st.sampled_from([0.3, 1.0, 2.0]),
    st.integers(0, 2**32),
)
def test_sums_are_those_of_the_quantised_rows(rows, inner, missing, norm, seed):
    borders = [0, *sorted(inner), 40]
    plan = plan_for(rows, norm=norm, borders=borders, d=40)
    x, _ = genotypes(rows, 40, missing=missing, seed=seed)
    features = feature_quantiser(plan)
    z = np.empty(x.shape)
    features(x, z)
    y = np.random.default_rng(seed).integers(-(2**19), 2**19, (rows, L)).astype(float)
    copies = module.Copies(features, rows, L, load("primo.rows.copy_kernels"))
    inside = sum((b - a) ** 2 for a, b in pairwise(borders))
    blocks, association = np.zeros(inside, dtype=np.int64), np.zeros((40, L), dtype=np.int64)
    left = copies.add(np.ascontiguousarray(x), y, blocks, association)
    if not copies.usable:
        assert left is None
        return
    kept = np.setdiff1d(np.arange(rows), left)
    whole = z[kept].astype(np.int64).astype(object)
    expected = [(whole[:, a:b].T @ whole[:, a:b]).ravel() for a, b in pairwise(borders)]
    assert (blocks == np.concatenate(expected)).all()
    assert (association == whole.T @ y[kept].astype(np.int64).astype(object)).all()


def test_the_bits_do_not_depend_on_blocks_of_rows_or_threads(counted):
    plan = plan_for(701)
    source = array_source(*genotypes(701, missing=0.002))
    usual = fold_blocks(source, plan)
    halves = [fold_blocks(source.part(a, b), plan) for a, b in ((0, 100), (100, 701))]
    for other in (
        fold_blocks(source, plan, threads=3, block_rows=17),
        fold_blocks(source, plan, threads=1, block_rows=1),
        halves[1] + halves[0],
    ):
        assert_same(other, usual)


@pytest.mark.parametrize("odd", [3, -1, 0.5, np.inf], ids=str)
def test_a_block_with_another_value_is_quantised(monkeypatch, counted, odd):
    x, y = genotypes(701)
    x = x.astype(np.float32)
    x[650, 299] = odd
    plan, source = plan_for(701), array_source(x, y)
    found = fold_blocks(source, plan, block_rows=200, threads=1)
    assert [left is None for _, left in counted] == [False, False, False, True]
    assert_same(found, without_kernels(monkeypatch, source, plan))


@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.uint8])
def test_rows_of_another_type_are_quantised(monkeypatch, counted, dtype):
    x, y = genotypes(100)
    plan, source = plan_for(100), array_source(x.astype(dtype), y)
    assert_same(fold_blocks(source, plan), without_kernels(monkeypatch, source, plan))


def test_a_value_that_is_too_long_by_itself_is_not_counted():
    """Its products need not fit int64; the plan alone decides."""
    usable = [
        module.Copies(
            feature_quantiser(plan_for(100, norm=norm)), 10, L, load("primo.rows.copy_kernels")
        ).usable
        for norm in (0.01, 1.0)
    ]
    assert usable == [False, True]


def test_a_missing_value_is_refused_without_naming_it(counted):
    plan = plan_for(100, missing="error")
    with pytest.raises(InputError, match="NaN or infinity"):
        fold_blocks(array_source(*genotypes(100, missing=0.01)), plan)
    fold_blocks(array_source(*genotypes(100)), plan)


def test_rows_left_to_the_quantiser_wait_for_each_other(monkeypatch, counted):
    """They are quantised some at a time, and none is forgotten."""
    monkeypatch.setattr(block_moments, "_BLOCK_BYTES", 8 * 5 * (D + 1 + L))  # five rows
    plan = plan_for(701)
    source = array_source(*genotypes(701))
    found = fold_blocks(source, plan, threads=1, block_rows=50)
    assert_same(found, without_kernels(monkeypatch, source, plan))
