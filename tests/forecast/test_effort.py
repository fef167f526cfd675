"""How many simulations an answer costs, and that saving some of them leaves the answer right."""

import math

import pytest

from primo.forecast import Signal, epsilon_for, forecast, inverse
from primo.forecast.forecast import predict
from primo.forecast.inverse import _least
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.report.outlook import outlook_of


@pytest.mark.parametrize("steep", [0.5, 1, 2, 3])
@pytest.mark.parametrize("root", [0.02, 0.3, 1.7, 20.0, 90.0])
def test_the_least_epsilon_takes_few_simulations(steep, root):
    asked = []

    def excess(epsilon):
        asked.append(epsilon)
        return 0.3 / (1 + (root / epsilon) ** steep) - 0.15

    found = _least(excess, (0.01, -0.15), (100.0, excess(100.0)))
    assert root * (1 - 1e-9) <= found <= 1.0101 * root
    assert len(asked) <= 9  # bisection to 1 % takes 11, and the ends


def plan_of(l):
    settings = Settings(
        epsilon=1.0,
        delta=1e-6,
        feature_bounds=Bounds(lower=0, upper=10),
        outcome_bounds=Bounds(lower=0, upper=10),
    )
    return make_plan(settings, n=3000, d=3, l=l)


@pytest.mark.parametrize("l", [1, 30])
def test_the_curve_of_a_report_goes_through_the_forecast_of_the_dry_run(l):
    made = plan_of(l)
    found = outlook_of(made)
    assert found.chosen == predict(made)
    assert dict(found.curve)[1.0] == found.chosen
    scores = [prediction.r2 for _, prediction in found.curve]
    assert all(math.isfinite(r2) for r2 in scores)
    assert scores[0] < scores[-1] <= found.chosen.no_privacy_r2 + 0.01


def test_rows_are_simulated_once_for_all_budgets(monkeypatch):
    """Drawing them is half of a forecast, and they are the same at every budget."""
    drawn, asked = [], []
    draw, r2 = forecast.draw, inverse._Target.r2

    def counted_draw(*args, **options):
        drawn.append(options["seed"])
        return draw(*args, **options)

    def counted_r2(self, **options):
        asked.append(options["epsilon"])
        return r2(self, **options)

    monkeypatch.setattr(forecast, "draw", counted_draw)
    monkeypatch.setattr(inverse._Target, "r2", counted_r2)
    size = {"n": 3000, "d": 40, "l": 60}
    found = epsilon_for(0.1, signal=Signal(r2=0.5), **size)
    assert len(drawn) == len(set(drawn))
    assert 3 <= len(asked) <= 12
    alone = inverse._Target(0.1, signal=Signal(r2=0.5))
    assert r2(alone, epsilon=found, **size) >= 0.1 > r2(alone, epsilon=0.98 * found, **size)


def test_a_target_that_the_least_budget_reaches():
    signal = Signal(r2=0.9)
    assert epsilon_for(0.001, n=10**6, d=2, l=2, signal=signal, estimator="filter") == 0.01
