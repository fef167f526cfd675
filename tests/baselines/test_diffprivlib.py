from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

from baselines import diffprivlib
from baselines.diffprivlib import DiffprivlibRegression, MissingEnvironment, environment_python
from baselines.diffprivlib_accounting import (
    Shape,
    counted_epsilon,
    nominal_epsilon,
    true_epsilon,
)

SHAPES = [
    Shape(d=d, l=l, feature_fill=r, outcome_fill=t)
    for d, l in ((1, 1), (1, 6), (2, 3), (3, 4), (5, 1), (5, 4))
    for r, t in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.4), (0.6, 0.5))
    if (d > 1 or r == 1) and (l > 1 or t == 1)  # one entry is its own norm
]


def relative_moves(x, y, u, v) -> np.ndarray:
    """Move of every released number over its sensitivity for bounds ±1, from scratch."""
    upper = np.triu_indices(len(x), 1)
    return np.abs(
        np.concatenate(
            [
                y**2 - v**2,
                (np.outer(x, y) - np.outer(u, v)).ravel() / 2,
                x**2 - u**2,
                (np.outer(x, x) - np.outer(u, u))[upper] / 2,
            ]
        )
    )


def worst(shape: Shape, power: int) -> float:
    """Search for the pair of rows with the largest sum of (squared) moves."""
    rng = np.random.default_rng(0)
    d, l = shape.d, shape.l

    def rows(flat):
        for part, norm in (
            (flat[:d], shape.feature_fill * d**0.5),
            (flat[2 * d : 2 * d + l], shape.outcome_fill * l**0.5),
            (flat[d : 2 * d], shape.feature_fill * d**0.5),
            (flat[2 * d + l :], shape.outcome_fill * l**0.5),
        ):
            z = np.clip(part, -1, 1)
            yield z * min(1.0, norm / max(np.linalg.norm(z), 1e-9))

    def total(flat):
        return float(np.sum(relative_moves(*rows(flat)) ** power))

    starts = [rng.normal(size=2 * d + 2 * l) * 2 for _ in range(300)]
    starts += [np.sign(s) for s in starts[:100]]
    starts += [np.sign(s) * (rng.random(len(s)) < 0.5) for s in starts[:100]]
    starts.sort(key=total, reverse=True)
    return max(
        -minimize(lambda flat: -total(flat), s, method="Powell", options={"maxiter": 8}).fun
        for s in starts[:3]
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_no_pair_of_rows_moves_the_numbers_further_than_stated(shape):
    for power, bound in ((1, shape.moves), (2, shape.squared_moves)):
        found = worst(shape, power)
        assert found <= bound * (1 + 1e-9)
        assert found >= 0.5 * bound  # a bound, but no loose one


def test_the_numbers_that_are_released():
    shape = Shape(d=25, l=101)
    assert shape.released == 101 + 25 * 101 + 325
    assert shape.divisor == 1 + 25 * 101 + 325
    assert counted_epsilon(5.0, shape) == pytest.approx(5 * 2951 / 2851)
    assert counted_epsilon(5.0, Shape(d=25, l=1)) == 5.0


@pytest.mark.parametrize(("d", "factor"), [(1, 25 / 16), (2, 9 / 8), (3, 49 / 48)])
def test_few_features_and_many_outcomes_cost_more_than_asked_for(d, factor):
    """Two rows that do it, and the stated epsilon, agree."""
    l = 100_000
    shape = Shape(d=d, l=l)
    x, y = np.ones(d), np.ones(l)
    spent = relative_moves(x, y, -x, d / 4 * y).sum() / shape.divisor
    assert spent == pytest.approx(factor, rel=1e-3)
    assert spent <= true_epsilon(1.0, shape) <= spent * 1.001


@pytest.mark.parametrize("d", [4, 25, 784])
@pytest.mark.parametrize("l", [1, 101, 10_000])
def test_from_four_features_on_it_keeps_its_promise(d, l):
    shape = Shape(d=d, l=l)
    assert true_epsilon(5.0, shape) < 5.0 <= counted_epsilon(5.0, shape)
    reached = max(
        d * l,  # y′ = -y
        l + d * l / 2 + d + d * (d - 1) / 4,  # a row of zeros
    )
    assert 5 * reached / shape.divisor <= true_epsilon(5.0, shape)
    assert true_epsilon(5.0, shape) <= 1.25 * 5 * reached / shape.divisor


@pytest.mark.parametrize("delta", [0.0, 1e-7])
@pytest.mark.parametrize(
    "shape", [Shape(d=1, l=500), Shape(d=25, l=101, feature_fill=0.4)], ids=str
)
def test_the_nominal_epsilon_is_the_inverse(shape, delta):
    asked = nominal_epsilon(5.0, shape, delta=delta)
    assert true_epsilon(asked, shape, delta=delta) <= 5.0
    assert true_epsilon(asked, shape, delta=delta) == pytest.approx(5.0, rel=1e-6)
    assert true_epsilon(2 * asked, shape, delta=delta) > 5.0


def test_with_a_delta_it_is_far_cheaper_and_never_below_dp_accounting():
    dp_accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant

    shape, delta = Shape(d=5, l=60), 1e-6
    nominal = 20.0
    # x′ = x, y′ = -y moves d·l numbers by their sensitivity and no other.
    laplace = dp_accounting.LaplaceDpEvent(shape.divisor / nominal)
    event = dp_accounting.SelfComposedDpEvent(laplace, shape.d * shape.l)
    oracle = PLDAccountant().compose(event).get_epsilon(delta)
    stated = true_epsilon(nominal, shape, delta=delta)
    assert oracle <= stated <= 1.2 * oracle
    assert stated < 0.6 * true_epsilon(nominal, shape)


def test_without_its_environment_it_says_how_to_get_it(monkeypatch, tmp_path, rows):
    monkeypatch.setattr(diffprivlib, "ENVIRONMENT", tmp_path / "none")
    with pytest.raises(MissingEnvironment, match="make diffprivlib"):
        DiffprivlibRegression(5.0).fit(*rows)


def in_environment(code: str) -> object:
    """Run code in diffprivlib's environment and return what it prints as JSON."""
    try:
        python = environment_python()
    except MissingEnvironment as missing:
        pytest.skip(str(missing))
    done = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


RECORD = f"""
import json, runpy
import numpy as np
from diffprivlib.mechanisms import Laplace
scales = []
plain = Laplace.randomise
def randomise(self, value):
    scales.append(self.sensitivity / self.epsilon)
    return plain(self, value)
Laplace.randomise = randomise
worker = runpy.run_path({str(Path(diffprivlib.__file__).with_name("diffprivlib_worker.py"))!r})
"""


def test_the_library_draws_the_noise_that_is_accounted_for():
    """Its own scales, intercepted: each is the sensitivity over the local epsilon, none is forgotten."""
    b, c, epsilon, cases = 0.5, 3.0, 2.0, [(1, 6), (4, 1), (3, 5)]
    recorded = in_environment(f"""{RECORD}
rng, answers = np.random.default_rng(0), []
for d, l in {cases}:
    rows = dict(features=rng.uniform(-{b}, {b}, (50, d)), outcomes=rng.uniform(-{c}, {c}, (50, l)))
    scales.clear()
    worker["fit"](rows | dict(feature_limit={b}, outcome_limit={c}, epsilon={epsilon}, seed=1))
    answers.append(list(scales))
print(json.dumps(answers))""")
    for (d, l), scales in zip(cases, recorded, strict=True):
        shape = Shape(d=d, l=l)
        assert len(scales) == shape.released
        # Lines 125, 134, 143: Σy², then XᵀY by outcome, then each diagonal entry and its row of XᵀX.
        sensitivities = [c**2] * l + [2 * b * c] * (d * l)
        for i in range(d):
            sensitivities += [b**2] + [2 * b**2] * (d - 1 - i)
        charges = np.array(sensitivities) / scales
        np.testing.assert_allclose(charges, epsilon / shape.divisor)
        assert charges.sum() == pytest.approx(counted_epsilon(epsilon, shape))


def test_two_faults_of_the_library_that_the_wrapper_avoids():
    """Line 144 leaves a diagonal without noise if features start at 0; rows are not clipped for us."""
    scales, square = in_environment(f"""{RECORD}
from diffprivlib.models import LinearRegression
rng = np.random.default_rng(0)
bounds = dict(bounds_y=(-1, 1), fit_intercept=False)
LinearRegression(epsilon=1.0, bounds_X=(0, 1), **bounds).fit(rng.random((50, 2)), rng.random(50))
model = LinearRegression(epsilon=1e9, bounds_X=(-1, 1), **bounds)
model.fit(100 * np.ones((10, 1)), 100 * np.ones(10))
print(json.dumps([scales[:6], float(model._obj_coefs[2][0, 0])]))""")
    assert [scale == 0 for scale in scales] == [False, False, False, True, False, True]
    assert square == pytest.approx(100_000)


def test_rows_are_clipped_to_the_limits():
    in_environment("print(0)")
    features, outcomes = np.array([[1.0], [-100.0]]), np.array([1.0, 0.0])
    model = DiffprivlibRegression(
        1e9, feature_bounds=200.0, feature_limit=1.0, outcome_bounds=1.0, random_state=1
    ).fit(features, outcomes)
    assert model.coef_[0] == pytest.approx(0.5, abs=1e-4)


def test_asked_for_and_true_epsilon(rows, monkeypatch):
    asked = []

    def run(**job):
        asked.append(job["epsilon"])
        return np.array([[np.nan, np.inf, 1.0, 2.0]] * 3)

    monkeypatch.setattr(diffprivlib, "_run", run)
    limits = {"feature_bounds": 2.0, "outcome_bounds": 2.0, "feature_limit": 1.25}
    shape = Shape(d=4, l=3, feature_fill=0.8, outcome_fill=3**-0.5)
    plain = DiffprivlibRegression(5.0, 1e-6, **limits).fit(*rows)
    assert asked == [5.0]
    assert plain.guarantee_.delta == 0.0
    assert plain.guarantee_.epsilon == pytest.approx(true_epsilon(5.0, shape))
    np.testing.assert_array_equal(plain.coef_[0], [0, 0, 1, 2])
    for accounting, delta in (("pure", 0.0), ("approximate", 1e-6)):
        fair = DiffprivlibRegression(
            5.0, 1e-6, **limits, at_true_budget=True, accounting=accounting
        ).fit(*rows)
        assert fair.guarantee_.epsilon == pytest.approx(5.0)
        assert fair.guarantee_.delta == delta
        assert asked[-1] == fair.nominal_epsilon_
        assert asked[-1] == pytest.approx(nominal_epsilon(5.0, shape, delta=delta))


def test_without_noise_to_speak_of_it_is_least_squares(rows):
    in_environment("print(0)")
    features, outcomes = rows
    model = DiffprivlibRegression(1e9, feature_bounds=5.0, outcome_bounds=9.0, random_state=0)
    model.fit(features, outcomes)
    expected = np.linalg.lstsq(features, outcomes, rcond=None)[0].T
    np.testing.assert_allclose(model.coef_, expected, atol=1e-4)
