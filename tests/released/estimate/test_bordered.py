"""Eigenvectors of a matrix with one more row, by the roots of a scalar equation."""

import numpy as np
import pytest

from primo.released.estimate.bordered import arrowhead


def bordered(values, border, corner):
    matrix = np.diag(np.append(values, corner))
    matrix[-1, :-1] = matrix[:-1, -1] = border
    return matrix


@pytest.mark.parametrize("d", [1, 5, 63, 64, 65, 130, 300])
@pytest.mark.parametrize("corner", [0.0, 1e4, -60.0])
def test_it_is_the_decomposition(d, corner):
    rng = np.random.default_rng(d)
    values, border = np.sort(rng.standard_normal(d) * np.sqrt(d)), rng.standard_normal(d)
    found = arrowhead(values, border, corner)
    assert found is not None
    roots, rows = found
    matrix = bordered(values, border, corner)
    scale = np.abs(np.linalg.eigvalsh(matrix)).max()
    np.testing.assert_allclose(
        roots, np.linalg.eigvalsh(matrix), rtol=0, atol=1e-13 * d**0.5 * scale
    )
    np.testing.assert_allclose(rows @ rows.T, np.eye(d + 1), rtol=0, atol=1e-13)
    np.testing.assert_allclose(
        rows.T @ (roots[:, None] * rows), matrix, rtol=0, atol=1e-13 * d**0.5 * scale
    )


def test_close_values_and_a_faint_border_keep_vectors_orthogonal():
    rng = np.random.default_rng(1)
    values = np.sort(np.repeat(rng.standard_normal(100), 2))
    values[1::2] += 1e-11  # pairs next to each other
    border = rng.standard_normal(200) * 10.0 ** rng.uniform(-9, 0, 200)
    found = arrowhead(values, border, 3.0)
    assert found is not None
    roots, rows = found
    np.testing.assert_allclose(rows @ rows.T, np.eye(201), rtol=0, atol=1e-12)
    np.testing.assert_allclose(
        rows.T @ (roots[:, None] * rows), bordered(values, border, 3.0), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize(
    ("values", "border"), [([1.0, 1.0, 2.0], [1.0, 1.0, 1.0]), ([1.0, 2.0, 3.0], [1.0, 0.0, 1.0])]
)
def test_ties_and_zeros_are_left_to_a_whole_decomposition(values, border):
    assert arrowhead(np.array(values), np.array(border), 0.0) is None
