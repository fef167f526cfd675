"""GaussProj_X and GaussProj_Y against the paper's own formulation, with C built in full."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from primo.errors import InputError
from primo.released.projection import project_onto_features, project_onto_outcomes
from primo.released.row_space import column_blocks

SHAPES = [(5, 3, 2), (3, 4, 6), (4, 4, 4), (6, 2, 9), (1, 2, 3), (9, 1, 1)]  # n, d, l


def special(kind, rows, columns, rng):
    """A public block with something awkward about it."""
    block = rng.normal(size=(rows, columns))
    match kind:
        case "rank one":
            block = np.outer(block[:, 0], block[0])
        case "zero rows":
            block[::2] = 0
        case "zero column":
            block[:, 0] = 0
        case "repeated singular values":
            left, _, right = np.linalg.svd(block, full_matrices=False)
            block = 2.0 * left @ right
        case "nearly singular":
            left, values, right = np.linalg.svd(block, full_matrices=False)
            block = left * np.geomspace(1, 1e-3, len(values)) @ right
        case "nothing":
            block[:] = 0
    return block


KINDS = [
    "generic",
    "rank one",
    "zero rows",
    "zero column",
    "repeated singular values",
    "nearly singular",
    "nothing",
]


def smallest_distance(C, target, radius, steps=4000):
    """Minimise ‖Cz − target‖ over ‖z‖ ≤ radius by accelerated projected gradients; return Cz."""
    z = momentum = np.zeros(C.shape[1])
    rate, t = 1 / max(np.linalg.norm(C, 2) ** 2, 1e-300), 1.0
    for _ in range(steps):
        new = momentum - rate * (C.T @ (C @ momentum - target))
        new *= min(1.0, radius / max(np.linalg.norm(new), 1e-300))
        if (momentum - new) @ (new - z) > 0:  # restart
            t = 1.0
        t_new = (1 + np.sqrt(1 + 4 * t * t)) / 2
        momentum = new + (t - 1) / t_new * (new - z)
        z, t = new, t_new
    return C @ z


def assert_projection(C, target, radius, point, tol=1e-9):
    """Membership of K = C·ball, and the variational inequality that only the projection satisfies.

    ⟨target − point, k − point⟩ ≤ 0 for all k in K; the worst k gives radius·‖Cᵀ(target − point)‖.
    """
    scale = np.linalg.norm(target) + radius * np.linalg.norm(C, 2) + 1e-300
    origin = np.linalg.pinv(C, rcond=1e-7) @ point
    assert np.linalg.norm(origin) <= radius * (1 + tol)
    assert np.linalg.norm(C @ origin - point) <= tol * scale
    rest = target - point
    assert radius * np.linalg.norm(C.T @ rest) - rest @ point <= tol * scale**2


def onto_outcomes(noisy, Y, radius, block=2):
    return project_onto_outcomes(
        noisy, column_blocks(Y, block=block), n=len(Y), radius=radius
    ).association


def problem(side, kind, shape, seed):
    """The public block, a noisy association, the function under test, the paper's C, vec and mat."""
    n, d, l = shape
    rng = np.random.default_rng(seed)
    noisy = rng.normal(size=(d, l))
    if side == "outcomes":  # association = ZᵀY; vec stacks its rows
        Y = special(kind, n, l, rng)
        return noisy, lambda g, r: onto_outcomes(g, Y, r), np.kron(np.eye(d), Y.T), np.ravel
    X = special(kind, n, d, rng)  # association = XᵀZ; vec stacks its columns
    A = X.T @ X
    return (
        noisy,
        lambda g, r: project_onto_features(g, A, radius=r).association,
        np.kron(np.eye(l), X.T),
        lambda g: np.ravel(g, order="F"),
    )


def free_norm(C, target):
    return np.linalg.norm(np.linalg.pinv(C, rcond=1e-7) @ target)


@pytest.mark.parametrize("side", ["features", "outcomes"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("reach", [0.05, 0.6, 0.999, 1.5])
def test_it_is_the_projection(side, kind, shape, reach):
    """`reach` is the radius over the norm of the unconstrained minimiser: below 1 is active."""
    noisy, project, C, vec = problem(side, kind, shape, seed=3)
    radius = reach * (free_norm(C, vec(noisy)) or 1.0)
    assert_projection(C, vec(noisy), radius, vec(project(noisy, radius)))


@pytest.mark.parametrize("side", ["features", "outcomes"])
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "nearly singular"])
@pytest.mark.parametrize("shape", [(5, 3, 2), (3, 2, 4)])
@pytest.mark.parametrize("reach", [0.5, 2.0])
def test_it_is_what_a_numerical_minimiser_finds(side, kind, shape, reach):
    noisy, project, C, vec = problem(side, kind, shape, seed=1)
    n = shape[0]
    radius = reach * (free_norm(C, vec(noisy)) or 1.0)
    found = n * smallest_distance(C / n, vec(noisy) / n, radius)  # averages, as in the paper
    np.testing.assert_allclose(vec(project(noisy, radius)), found, atol=1e-7)


sides = st.sampled_from(["features", "outcomes"])
kinds = st.sampled_from([k for k in KINDS if k != "nothing"])
shapes = st.tuples(st.integers(1, 7), st.integers(1, 5), st.integers(1, 8))
radii = st.floats(-3, 3).map(lambda e: 10.0**e)
seeds = st.integers(0, 2**32 - 1)


@settings(deadline=None)
@given(side=sides, kind=kinds, shape=shapes, radius=radii, seed=seeds)
def test_projecting_twice_changes_nothing(side, kind, shape, radius, seed):
    noisy, project, _, _ = problem(side, kind, shape, seed)
    once = project(noisy, radius)
    np.testing.assert_allclose(
        project(once, radius), once, rtol=0, atol=1e-7 * (1 + np.abs(once).max())
    )


@settings(deadline=None)
@given(side=sides, kind=kinds, shape=shapes, radius=radii, seed=seeds)
def test_it_moves_towards_every_feasible_point(side, kind, shape, radius, seed):
    noisy, project, C, vec = problem(side, kind, shape, seed)
    projected = vec(project(noisy, radius))
    rng = np.random.default_rng(seed + 1)
    for _ in range(5):
        z = rng.normal(size=C.shape[1])
        feasible = C @ (z * radius * rng.uniform() / np.linalg.norm(z))
        before, after = (np.linalg.norm(g - feasible) for g in (vec(noisy), projected))
        assert after <= before * (1 + 1e-9) + 1e-9


@settings(deadline=None)
@given(side=sides, kind=kinds, shape=shapes, radius=radii, seed=seeds, size=st.floats(-6, 6))
def test_units_do_not_matter(side, kind, shape, radius, seed, size):
    noisy, project, _, _ = problem(side, kind, shape, seed)
    unit = 10.0**size
    np.testing.assert_allclose(
        project(unit * noisy, unit * radius) / unit, project(noisy, radius), rtol=1e-6, atol=1e-9
    )


def test_a_feasible_association_stays():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 6)), rng.normal(size=(30, 40))
    G = X.T @ Y
    for projected in (
        project_onto_features(G, X.T @ X, radius=float(np.linalg.norm(Y))).association,
        onto_outcomes(G, Y, float(np.linalg.norm(X)), block=7),
    ):
        np.testing.assert_allclose(projected, G, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [20, 33, 60])
@pytest.mark.parametrize("block", [1, 10, 33])
def test_both_gram_matrices_and_every_block_give_the_same(n, block):
    rng = np.random.default_rng(n)
    Y, noisy = rng.normal(size=(n, 33)), 50 * rng.normal(size=(4, 33))
    expected = project_onto_features(noisy.T, Y.T @ Y, radius=3.0).association.T
    np.testing.assert_allclose(onto_outcomes(noisy, Y, 3.0, block=block), expected, rtol=1e-9)


def test_public_outcomes_may_be_integers():
    rng = np.random.default_rng(4)
    Y, noisy = rng.integers(-100, 100, size=(5, 12), dtype=np.int8), rng.normal(size=(2, 12))
    np.testing.assert_allclose(
        onto_outcomes(noisy, Y, 0.01), onto_outcomes(noisy, Y.astype(float), 0.01), rtol=1e-9
    )


def test_outcomes_are_projected_in_bounded_memory():
    """The stated bound: 3n², the association three times, a block (and its raw form); no l×l."""
    n, w, l, block = 200, 5, 20_000, 250
    association = np.random.default_rng(0).normal(size=(w, l))

    def columns():  # made as they are needed, so that Y itself never exists
        for start in range(0, l, block):
            rng = np.random.default_rng(start)
            yield slice(start, start + block), rng.normal(size=(n, block))

    tracemalloc.start()
    project_onto_outcomes(association, columns, n=n, radius=1.0)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 * (3 * n**2 + 3 * w * l + 3 * n * block)


@pytest.mark.parametrize("radius", [0.0, -1.0, np.nan, np.inf])
def test_the_radius_must_be_a_length(radius):
    with pytest.raises(InputError, match="radius"):
        project_onto_features(np.ones((2, 3)), np.eye(2), radius=radius)


def test_a_noisy_covariance_is_refused():
    with pytest.raises(InputError, match="not XᵀX of public features"):
        project_onto_features(np.ones((2, 3)), np.diag([1.0, -0.1]), radius=1.0)


def test_damage_is_noticed():
    with pytest.raises(InputError, match="shape"):
        project_onto_features(np.ones((2, 3)), np.eye(3), radius=1.0)
    with pytest.raises(InputError, match="NaN"):
        project_onto_features(np.array([[np.nan, 1.0]]), np.eye(1), radius=1.0)
    with pytest.raises(InputError, match="NaN"):
        onto_outcomes(np.array([[np.nan, 1.0]]), np.ones((1, 2)), 1.0)
    with pytest.raises(InputError, match=r"\(w, l\)"):
        onto_outcomes(np.ones(3), np.ones((1, 3)), 1.0)


@pytest.mark.parametrize("radius", [0.5, 5.0, 1e6])
def test_noise_left_is_what_noise_is_multiplied_by(radius):
    """Freeze the multiplier found for one draw and push pure noise through the same linear map."""
    rng = np.random.default_rng(11)
    X = rng.normal(size=(30, 6))
    X[:, 5] = 0.0  # a direction without data keeps no noise
    noisy = rng.normal(size=(6, 40)) * 10
    found = project_onto_features(noisy, X.T @ X, radius=radius)
    _, vectors = np.linalg.eigh(X.T @ X)
    rotated = vectors.T @ noisy
    moved = vectors.T @ found.association
    factors = (moved * rotated).sum(axis=1) / (rotated**2).sum(axis=1)
    assert found.noise_left == pytest.approx(np.sqrt(np.mean(factors**2)), rel=1e-6)
    turned = project_onto_outcomes(noisy.T, column_blocks(X), n=30, radius=radius)
    assert turned.noise_left == pytest.approx(found.noise_left, rel=1e-6)
