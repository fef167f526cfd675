from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primo.errors import InputError
from primo.released.row_space import RowSpace, column_blocks, row_space


def space_of(X, block=7) -> RowSpace:
    n, width = X.shape
    return row_space(column_blocks(X, block=block), n=n, width=width)


def matrix(n, width, rank, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, width))


shapes = st.tuples(st.integers(1, 12), st.integers(1, 40)).flatmap(
    lambda s: st.tuples(st.just(s[0]), st.just(s[1]), st.integers(1, min(s)))
)


@settings(deadline=None)
@given(shape=shapes, block=st.integers(1, 50), seed=st.integers(0, 2**32 - 1))
def test_it_agrees_with_the_singular_value_decomposition(shape, block, seed):
    X = matrix(*shape, seed)
    space = space_of(X, block)
    singular, Vt = np.linalg.svd(X)[1:]
    rank = int(np.sum(singular > 1e-6 * singular[0]))
    if singular[rank - 1] < 1e-5 * singular[0]:
        return  # whether this direction counts is rounding's business
    assert space.rank == rank
    np.testing.assert_allclose(space.values[::-1], singular[:rank] ** 2, rtol=1e-4)
    G = np.random.default_rng(0).normal(size=(shape[1], 3))
    onto = Vt[:rank].T @ Vt[:rank]  # the projector does not depend on signs or ties
    np.testing.assert_allclose(space.expand(space.reduce(G)), onto @ G, atol=1e-4)


def test_directions_are_orthonormal_and_the_covariance_is_diagonal():
    X = matrix(20, 300, 15, seed=1)
    space = space_of(X, 64)
    V = space.expand(np.eye(space.rank))
    np.testing.assert_allclose(V.T @ V, np.eye(15), atol=1e-10)
    np.testing.assert_allclose((X @ V).T @ (X @ V), np.diag(space.values), atol=1e-8)
    np.testing.assert_allclose(space.reduce(np.eye(300)), V.T, atol=1e-10)
    np.testing.assert_allclose((X @ V) @ V.T, X, atol=1e-9)  # nothing of X is outside


def test_least_squares_in_the_row_space_has_least_norm():
    rng = np.random.default_rng(2)
    X, Y = rng.normal(size=(15, 80)), rng.normal(size=(15, 4))
    space = space_of(X)
    W = space.expand(space.reduce(X.T @ Y) / space.values[:, None])
    np.testing.assert_allclose(W, np.linalg.pinv(X) @ Y, atol=1e-10)


@pytest.mark.parametrize("ridge", [0.1, 10.0])
def test_ridge_in_the_row_space_is_ridge(ridge):
    rng = np.random.default_rng(3)
    X, G = rng.normal(size=(10, 30)), rng.normal(size=(30, 5))
    space = space_of(X)
    reduced = space.expand(space.reduce(G) / (space.values + ridge)[:, None])
    full = np.linalg.solve(X.T @ X + ridge * np.eye(30), space.expand(space.reduce(G)))
    np.testing.assert_allclose(reduced, full, atol=1e-10)


def test_noise_keeps_its_scale_and_loses_the_directions_outside():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 3, size=(40, 400)).astype(np.int8)
    noise = rng.normal(size=(400, 2000))
    reduced = space_of(X, 100).reduce(noise)
    assert reduced.shape == (40, 2000)
    second = reduced @ reduced.T / 2000  # the identity, up to its own sampling error
    assert np.abs(second - np.eye(40)).max() < 0.15
    np.testing.assert_allclose(np.trace(second) / 40, 1.0, atol=0.02)


def test_blocks_and_types_do_not_matter():
    X = np.random.default_rng(5).integers(-3, 4, size=(9, 50)).astype(np.int8)
    one, many = space_of(X, 50), space_of(np.asfortranarray(X.astype(float)), 3)
    np.testing.assert_allclose(one.values, many.values, rtol=1e-12)
    G = np.ones((50, 2))
    np.testing.assert_allclose(one.expand(one.reduce(G)), many.expand(many.reduce(G)), atol=1e-11)


def test_a_matrix_of_zeros_has_no_row_space():
    space = space_of(np.zeros((3, 5)))
    assert space.rank == 0
    np.testing.assert_array_equal(space.expand(space.reduce(np.ones((5, 2)))), np.zeros((5, 2)))


def test_memory_does_not_hold_a_square_of_columns():
    n, width, l, block = 150, 6000, 10, 200
    X = np.random.default_rng(6).integers(0, 3, size=(n, width)).astype(np.int8)
    G = np.ones((width, l))
    tracemalloc.start()
    space = space_of(X, block)
    space.expand(space.reduce(G))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * (3 * n**2 + width * l + 3 * n * block)


def test_refusals():
    X = np.ones((3, 5))
    space = space_of(X)
    with pytest.raises(InputError, match="5 columns"):
        space.reduce(np.ones((4, 2)))
    with pytest.raises(InputError, match="of rank 1"):
        space.expand(np.ones((2, 2)))
    with pytest.raises(InputError, match="expected 6 columns"):
        row_space(column_blocks(X), n=3, width=6)
    with pytest.raises(InputError, match="expected 4 rows"):
        row_space(column_blocks(X), n=4, width=5)
    with pytest.raises(InputError, match="columns from 0 on"):
        row_space(lambda: [(slice(1, 5), X[:, 1:])], n=3, width=5)
    with pytest.raises(InputError, match="NaN"):
        space_of(np.array([[1.0, np.nan]]))
