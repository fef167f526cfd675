"""Moments drawn from their law, against moments of rows that were drawn."""

import functools

import numpy as np
import pytest

from experiments.figures import law
from experiments.figures import outcomes as module
from experiments.figures.outcomes import draw_problem

DRAWS = 2000


def features(n=14, d=3):
    """Few rows, far from spherical, not centred: everything that could be forgotten shows."""
    rng = np.random.default_rng(8)
    return rng.normal(size=(n, d)) @ np.array([[1, 0.8, 0], [0, 0.5, 0.2], [0, 0, 2.0]]) + 0.3


def statistics(problem):
    """What the experiments make of the moments, and products that only a joint law gets right."""
    truth, moments = problem.truth, problem.moments
    least = np.linalg.solve(truth.covariance, truth.association)
    association = truth.association.ravel()
    outcome = moments.outcome[np.triu_indices(problem.l)] if moments.outcome.ndim == 2 else []
    explained = np.sum(least * truth.association, axis=0)
    sums = truth.squares - truth.spread  # (1ᵀy)²/n
    return np.concatenate(
        [
            association,
            np.outer(association, association)[np.triu_indices(len(association))],
            outcome,
            np.square(outcome),
            truth.squares,
            truth.squares**2,
            truth.spread,
            truth.spread**2,
            explained * truth.squares,
            explained * sums,
            truth.association[0] ** 2 * sums,
            [truth.r_squared(least), truth.r_squared(least) ** 2],
        ]
    )


@pytest.fixture(autouse=True)
def few_outcomes_are_drawn_from_the_law_too(monkeypatch):
    monkeypatch.setattr(module, "IN_BLOCKS", 0)


@functools.cache
def of_rows(n, model, l, draws, full):
    return drawn(n, model, l, draws, in_memory=True)


def drawn(n, model, l, draws, *, in_memory):
    x = features(n)
    rngs = (np.random.default_rng([in_memory, i]) for i in range(draws))
    return np.array(
        [
            statistics(
                draw_problem(
                    features=x, model=model, l=l, rng=rng, in_memory=in_memory, shorten=False
                )
            )
            for rng in rngs
        ]
    )


def furthest(*, n=14, model="linear", l=3, draws=DRAWS):
    """Return the largest distance, in standard errors, to the moments of rows that were drawn."""
    rows = of_rows(n, model, l, draws, l <= module.FULL_OUTCOME_MOMENTS)
    ours = drawn(n, model, l, draws, in_memory=False)
    errors = np.sqrt((ours.var(axis=0) + rows.var(axis=0)) / draws)
    return np.max(np.abs(ours.mean(axis=0) - rows.mean(axis=0)) / errors)


@pytest.mark.parametrize("model", ["linear", "unit"])
def test_the_law_is_that_of_rows(model, monkeypatch):
    monkeypatch.setattr("experiments.figures.models._DIRECTIONS", 64)  # of the bounds alone
    assert furthest(model=model) < 5


def test_more_outcomes_than_degrees_of_freedom():
    assert furthest(n=6, l=4) < 5


def test_the_diagonal_alone(monkeypatch):
    monkeypatch.setattr(module, "FULL_OUTCOME_MOMENTS", 2)
    assert furthest() < 5


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("mistake", ["noise", "squares", "freedom"])
def test_a_wrong_scale_is_noticed(monkeypatch, full, mistake):
    """√2 in the noise of MᵀE or of EᵀE, or the rank forgotten in the degrees of freedom."""
    right = law._draw_noise

    def wrong(gram, l, *, n, full, rng):
        noise, squares = right(
            gram, l, n=n + (len(gram) if mistake == "freedom" else 0), full=full, rng=rng
        )
        return (
            noise * (np.sqrt(2) if mistake == "noise" else 1),
            squares * (np.sqrt(2) if mistake == "squares" else 1),
        )

    monkeypatch.setattr(law, "_draw_noise", wrong)
    if not full:
        monkeypatch.setattr(module, "FULL_OUTCOME_MOMENTS", 2)
    assert furthest() > 8


def test_columns_that_depend_on_each_other():
    """A repeated column takes no degree of freedom, and its association repeats too."""
    rng = np.random.default_rng(0)
    m = rng.normal(size=(12, 2))[:, [0, 1, 1]]
    slopes = np.zeros((3, 40_000))
    drawn = law.draw_moments(m.T @ m, slopes, n=12, full=False, rng=rng)
    np.testing.assert_allclose(drawn.association[1], drawn.association[2], atol=1e-6)
    explained = np.sum(np.linalg.lstsq(m.T @ m, drawn.association)[0] * drawn.association, axis=0)
    left = drawn.outcome - explained
    error = np.sqrt(2 * 10 / slopes.shape[1])
    assert abs(left.mean() - 10) < 5 * error
    assert abs(explained.mean() - 2) < 5 * np.sqrt(2 * 2 / slopes.shape[1])


def test_moments_could_be_those_of_rows():
    """All moments of [X, Y] together are non-negative, and leave noise of variance one."""
    x = np.random.default_rng(1).normal(size=(5000, 6))
    x -= x.mean(axis=0)
    problem = draw_problem(
        features=x,
        model="linear",
        l=200,
        rng=np.random.default_rng(2),
        in_memory=False,
        shorten=False,
    )
    m = problem.moments
    assert problem.rows is None
    left = m.outcome - m.association.T @ np.linalg.solve(m.covariance, m.association)
    values = np.linalg.eigvalsh(left) / (5000 - 6)
    # Marchenko and Pastur: between (1 - √(l/n))² and (1 + √(l/n))².
    assert 0.62 < values.min() < 0.67
    assert 1.41 < values.max() < 1.47
    np.testing.assert_allclose(m.squares, problem.truth.squares)


def test_wide_problems_take_no_array_of_rows_times_outcomes():
    """100 000 rows × 20 000 outcomes would be 16 GB."""
    x = np.random.default_rng(1).normal(size=(100_000, 5))
    problem = draw_problem(features=x, model="linear", l=20_000, rng=np.random.default_rng(2))
    assert problem.rows is None
    assert problem.moments.outcome.shape == (20_000,)
    # θ ~ N(0, I/√5): the signal has variance √5.
    expected = 100_000 * (1 + np.sqrt(5))
    assert abs(problem.truth.spread.mean() / expected - 1) < 0.02
