"""Outcomes of the models: bounds, scores, networks, and real data."""

import numpy as np
import pytest

from baselines.base import shortened
from experiments.data import SHARED
from experiments.figures import outcomes as module
from experiments.figures.features import Data, MissingData
from experiments.figures.grid import Cell
from experiments.figures.models import Network, Shape
from experiments.figures.outcomes import draw, draw_problem, real_problem
from experiments.figures.real import REAL, draw_real, real_shape
from primo.errors import InputError

needs_data = pytest.mark.skipif(not SHARED.exists(), reason="the shared data is not here")


def gaussian(n=2000, d=8, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d)) * np.linspace(0.3, 1.5, d)
    return rows - rows.mean(axis=0)


def drawn(model, *, l=40, in_memory=None, seed=0, n=2000, d=8, shorten=False):
    rng = np.random.default_rng(seed)
    x = gaussian(n, d)
    return draw_problem(features=x, model=model, l=l, rng=rng, in_memory=in_memory, shorten=shorten)


@pytest.mark.parametrize("l", [1, 40])
@pytest.mark.parametrize("model", ["linear", "unit", "mlp"])
def test_the_bounds_hold_and_are_not_loose(model, l):
    for seed in range(5):
        problem = drawn(model, l=l, seed=seed)
        x, y = problem.rows
        assert np.linalg.norm(x, axis=1).max() == pytest.approx(problem.feature_norm)
        assert problem.feature_norm == problem.feature_reach
        assert np.abs(x).max() == problem.feature_limit
        # One outcome may have a weak model; the bound allows for the strongest.
        least = 0.2 if l > 1 else 0.05
        longest = np.linalg.norm(y, axis=1).max() / problem.outcome_norm
        largest = np.abs(y).max() / problem.outcome_limit
        assert least < longest < 1
        assert least < largest < 1
        assert np.abs(y).max() == problem.outcome_largest
        assert problem.outcome_norm <= np.sqrt(l) * problem.outcome_limit * (1 + 1e-12)


@pytest.mark.parametrize("l", [1, 40])
@pytest.mark.parametrize("model", ["linear", "unit", "mlp"])
def test_tight_bounds_shorten_rows_but_not_to_nothing(model, l):
    tight = [drawn(model, l=l, seed=seed, shorten=True) for seed in range(20)]
    lengths = [np.linalg.norm(problem.rows[1], axis=1) / problem.outcome_norm for problem in tight]
    entries = [np.abs(problem.rows[1]) / problem.outcome_clip for problem in tight]
    assert 0 < np.mean(np.array(lengths) > 1) < (0.3 if l == 1 else 0.8)
    assert 0 < np.mean(np.concatenate(entries) > 1) < 0.3
    for problem in tight:
        x, y = problem.rows
        short_x, short_y = shortened(x, problem.feature_norm), shortened(y, problem.outcome_norm)
        np.testing.assert_allclose(problem.moments.association, short_x.T @ short_y, atol=1e-9)
        np.testing.assert_allclose(problem.moments.covariance, short_x.T @ short_x, atol=1e-9)
        np.testing.assert_allclose(problem.truth.association, x.T @ y, atol=1e-9)
        np.testing.assert_allclose(problem.whole_moments.covariance, x.T @ x, atol=1e-9)
        length = np.sqrt(np.mean(np.sum(x**2, axis=1)))
        assert problem.feature_norm == pytest.approx(module.SHORT * length)
        assert problem.feature_norm < problem.feature_reach
        assert problem.outcome_norm < problem.outcome_reach
        assert problem.outcome_clip < problem.outcome_limit


@pytest.mark.parametrize("model", ["linear", "unit", "mlp"])
def test_moments_and_truth_are_those_of_the_rows(model):
    problem = drawn(model)
    x, y = problem.rows
    np.testing.assert_allclose(problem.moments.covariance, x.T @ x)
    np.testing.assert_allclose(problem.moments.association, x.T @ y, atol=1e-9)
    np.testing.assert_allclose(problem.moments.outcome, y.T @ y, atol=1e-9)
    slopes = np.random.default_rng(1).normal(size=(8, 40))
    error = np.sum((y - x @ slopes) ** 2)
    assert problem.truth.squared_error(slopes) == pytest.approx(error)
    total = np.sum((y - y.mean(axis=0)) ** 2)
    assert problem.truth.r_squared(slopes) == pytest.approx(1 - error / total)


def test_the_linear_model_is_the_papers():
    problem = drawn("linear", l=2000, n=400)
    x, y = problem.rows
    least, left, _, _ = np.linalg.lstsq(x, y)
    assert np.mean(left) / (400 - 8) == pytest.approx(1, abs=0.01)
    # θ has variance 1/√d per coordinate, and least squares adds (XᵀX)⁻¹.
    expected = 1 / np.sqrt(8) + np.diag(np.linalg.inv(x.T @ x))
    np.testing.assert_allclose(np.mean(least**2, axis=1), expected, rtol=0.2)
    assert np.mean(least**2) == pytest.approx(expected.mean(), rel=0.05)


def test_the_signal_of_the_unit_model_is_noise_over_three_tenths():
    problem = drawn("unit", l=300, n=4000)
    x, y = problem.rows
    least, left, _, _ = np.linalg.lstsq(x, y)
    assert np.mean(left) / (4000 - 8) == pytest.approx(1, abs=0.01)
    np.testing.assert_allclose((x @ least).std(axis=0), 1 / 0.3, rtol=0.05)


def test_networks_are_not_linear_but_as_strong_and_as_noisy():
    problem = drawn("mlp", l=400, n=6000)
    x, y = problem.rows
    _, left, _, _ = np.linalg.lstsq(x, y)
    signal = np.trace(Shape.of(x).centred) / np.sqrt(8)
    assert np.mean(y.var(axis=0)) == pytest.approx(1 + signal, rel=0.1)
    curved = np.mean(left) / (6000 - 8) - 1  # what no linear model explains, beside the noise
    assert 0.1 * signal < curved < 0.4 * signal
    network = Network.draw(8, 50, np.random.default_rng(0))
    np.testing.assert_allclose(network.of(2 * x), 2 * network.of(x))
    assert np.mean(network.of(x) ** 2) == pytest.approx(np.mean(np.sum(x**2, axis=1)) / 2, rel=0.2)


class Remembering(np.random.Generator):
    """Remember the normal numbers that were drawn last."""

    def standard_normal(self, *args, **options):
        self.last = super().standard_normal(*args, **options)
        return self.last


def test_the_noise_of_networks_has_unit_variance():
    rng = Remembering(np.random.PCG64(3))
    problem = draw_problem(features=gaussian(), model="mlp", l=40, rng=rng)
    noise = rng.last
    signal = problem.rows[1] - noise
    assert noise.shape == (2000, 40)
    assert noise.std() == pytest.approx(1, abs=0.01)
    np.testing.assert_allclose(signal.mean(axis=0), 0, atol=1e-9)
    assert abs(np.corrcoef(signal.ravel(), noise.ravel())[0, 1]) < 5 / np.sqrt(signal.size)


def test_networks_in_blocks_have_the_same_law(monkeypatch):
    """Blocks differ from held rows in nothing but memory: the same draws in the same order."""
    monkeypatch.setattr(module, "_BLOCK", 40 * 300)
    held, walked = drawn("mlp"), drawn("mlp", in_memory=False)
    assert walked.rows is None
    assert walked.outcome_norm == held.outcome_norm
    assert walked.outcome_largest == pytest.approx(held.outcome_largest, rel=0.5)
    for name in ("covariance", "association", "outcome"):
        np.testing.assert_allclose(
            getattr(walked.moments, name), getattr(held.moments, name), atol=1e-8
        )
    np.testing.assert_allclose(walked.truth.spread, held.truth.spread)


def test_real_problems_shorten_the_longest_outcomes():
    x, y = gaussian(500), np.random.default_rng(1).standard_t(3, size=(500, 6))
    problem = real_problem(x, y)
    lengths = np.linalg.norm(y, axis=1)
    assert 0.01 < np.mean(lengths > problem.outcome_norm) < 0.5
    short_x, short_y = shortened(x, problem.feature_norm), shortened(y, problem.outcome_norm)
    np.testing.assert_allclose(problem.moments.association, short_x.T @ short_y, atol=1e-9)
    np.testing.assert_allclose(problem.truth.association, x.T @ y, atol=1e-9)
    assert problem.truth.squares.sum() > 1.01 * problem.moments.squares.sum()
    assert problem.outcome_limit == problem.outcome_largest == np.abs(y).max()
    assert problem.outcome_reach == lengths.max()


def test_what_is_unknown_is_named():
    with pytest.raises(InputError, match="'cubic' are unknown; known are linear"):
        drawn("cubic")
    with pytest.raises(InputError, match="'iris' are unknown; known are soynam"):
        real_shape("iris")


def test_cells():
    cell = Cell(features="gaussian", outcomes="linear", n=50, d=4, l=3, epsilon=1.0)
    problem = draw(cell, data=Data(), rng=np.random.default_rng(0))
    assert (problem.n, problem.d, problem.l) == (50, 4, 3)
    np.testing.assert_allclose(problem.rows[0].mean(axis=0), 0, atol=1e-12)


def test_real_data_that_are_absent(tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.figures.real.SHARED", tmp_path)
    from experiments.figures import real

    real._table.cache_clear()
    cell = Cell(features="crime", outcomes="real", n=50, d=4, l=3, epsilon=1.0)
    with pytest.raises(MissingData, match=r"'crime' are not at .*CommViol"):
        draw(cell, data=Data(), rng=np.random.default_rng(0))


@needs_data
@pytest.mark.parametrize(
    ("name", "shape", "explained"),
    [
        ("soynam", (5055, 4240, 69), (0.1, 0.3)),
        ("crime", (2215, 124, 18), (0.5, 0.8)),
        ("drugs", (1885, 22, 19), (0.15, 0.35)),
        ("personality", (4000, 135, 10), (0.1, 0.3)),
    ],
)
def test_real_data(name, shape, explained):
    assert name in REAL
    assert real_shape(name) == shape
    x, y = draw_real(name, n=None, d=min(shape[1], 124), l=None, rng=np.random.default_rng(0))
    assert np.isfinite(x).all()
    assert np.isfinite(y).all()
    np.testing.assert_allclose(x.mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(y.mean(axis=0), 0, atol=1e-9)
    truth = real_problem(x, y).truth
    least = np.linalg.lstsq(truth.covariance, truth.association)[0]
    assert explained[0] < truth.r_squared(least) < explained[1]
    some, others = draw_real(name, n=100, d=5, l=2, rng=np.random.default_rng(0))
    assert (some.shape, others.shape) == ((100, 5), (100, 2))
    with pytest.raises(InputError, match="only"):
        draw_real(name, n=10**6, d=None, l=None, rng=np.random.default_rng(0))


def test_among_many_rows_none_is_shortened(monkeypatch):
    monkeypatch.setattr(module, "MANY", 2000)
    problem = drawn("linear", shorten=True)
    assert problem.feature_norm == problem.feature_reach
    assert problem.outcome_norm == problem.outcome_reach
    assert problem.outcome_clip == problem.outcome_limit
