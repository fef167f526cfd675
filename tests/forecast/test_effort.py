"""How many simulations an answer costs, and that saving some of them leaves the answer right."""

import math

import pytest

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
