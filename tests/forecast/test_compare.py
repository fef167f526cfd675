"""Comparisons of plans, and the inverse questions."""

import inspect
import json

import pytest

import primo
from factories import planned
from primo.errors import InputError
from primo.forecast import compare as planning
from primo.forecast import inverse
from primo.forecast.assumptions import Signal
from primo.forecast.compare import choose_plan, compare_plans, recommend_association
from primo.forecast.inverse import epsilon_for, outcomes_for, rows_for
from primo.forecast.table import R2_TOLERANCE
from primo.planning.make import make_plan
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.privacy.protection import Protection

PUBLIC = {"n": 5000, "d": 10, "l": 120, "epsilon": 3.0}


NUMBERS = {"n", "d", "l", "epsilon", "delta", "protection", "feature_bounds", "outcome_bounds"}
CHOICES = {"signal", "estimators", "fit_intercept", "association", "estimator", "target_r2", "made"}
CHOICES |= {"covariance", "blocks", "rounds"}  # borders of the blocks are public
OTHER = {"settings", "name", "value", "outcome_sd", "feature_sd"}  # of make_plan; of `as_count`


@pytest.mark.parametrize("module", [planning, inverse])
def test_no_data_can_be_given(module):
    for name in module.__all__:
        parameters = set(inspect.signature(getattr(module, name)).parameters)
        if "assumed" in parameters:  # keywords of one typed dictionary
            parameters = parameters - {"assumed"} | set(inverse.Assumed.__annotations__)
        assert parameters <= NUMBERS | CHOICES | OTHER, name
    assert not {"X", "y", "features", "outcomes"} & set(inspect.signature(make_plan).parameters)


def test_the_questions_are_asked_of_primo_itself():
    assert primo.compare_plans is compare_plans
    assert primo.Signal is Signal
    assert isinstance(compare_plans(**PUBLIC, protection="both"), primo.PlanComparison)
    assert (primo.epsilon_for, primo.outcomes_for, primo.rows_for) == (
        epsilon_for,
        outcomes_for,
        rows_for,
    )


def test_every_variant_is_listed():
    made = compare_plans(**PUBLIC)
    assert len(made.variants) == (1 + 2 + 3) * 3
    assert made.protections == (Protection.BOTH, Protection.FEATURES, Protection.OUTCOMES)
    assert made.delta == 1 / 5000**2
    assert made == compare_plans(**PUBLIC)


def test_noise_scales_are_those_of_the_release():
    bounds = {"feature_bounds": Bounds(norm=2.0), "outcome_bounds": Bounds(norm=3.0)}
    delta = 1 / 5000**2
    for v in compare_plans(**PUBLIC, **bounds).variants:
        way = {"protection": v.protection, "association": v.association}
        real = planned(**PUBLIC, **bounds, delta=delta, **way)
        assert v.covariance_sigma == real.covariance_sigma
        # The lattice margin, and with it mu, depends a little on what gets noise.
        assert v.association_sigma == pytest.approx(real.association_sigma, rel=1e-8)
        assert v.outcome_sigma == pytest.approx(real.outcome_sigma, rel=1e-8)


def test_norms_alone_change_units_and_nothing_else():
    plain, scaled = (
        compare_plans(**PUBLIC),
        compare_plans(**PUBLIC, feature_bounds=20.0, outcome_bounds=0.01),
    )
    for a, b in zip(plain.variants, scaled.variants, strict=True):
        assert a.predicted_r2 == pytest.approx(b.predicted_r2, abs=1e-6)
        assert (a.regime.row, a.regime.free) == (b.regime.row, b.regime.free)
        assert a.regime.cost == pytest.approx(b.regime.cost)


def test_the_strongest_protection_is_recommended():
    made = compare_plans(**PUBLIC)
    assert made.recommended.protection is Protection.BOTH
    assert (
        compare_plans(**PUBLIC, protection="outcomes").recommended.protection is Protection.OUTCOMES
    )
    for protection in made.protections:
        among = [v.predicted_r2 for v in made.variants if v.protection is protection]
        assert made.best(protection).predicted_r2 >= max(among) - R2_TOLERANCE
    with pytest.raises(InputError, match='"features" is not part of this comparison'):
        compare_plans(**PUBLIC, protection="both").best("features")


def test_the_recommendation_follows_the_problem():
    """Far more outcomes than rows: with public outcomes, projecting is what saves the signal."""
    many = compare_plans(n=1000, d=5, l=5000, epsilon=3.0, protection="features").recommended
    few = compare_plans(n=20_000, d=5, l=3, epsilon=3.0, protection="features").recommended
    assert (many.association, few.association) == ("projection", "gauss")


def test_it_prints_plain_text():
    text = str(compare_plans(**PUBLIC))
    for words in ("No data was read", "predicted R²", 'Recommended: protection="both"', "Table 1"):
        assert words in text
    assert max(len(line) for line in text.splitlines()) <= 100


def test_it_becomes_json():
    made = compare_plans(**PUBLIC, protection="features")
    back = json.loads(json.dumps(made.to_dict()))
    assert back["recommended"]["protection"] == "features"
    assert back["recommended"]["lost"] == pytest.approx(made.recommended.lost)
    assert back["signal"]["r2"] == 0.3


def test_auto_means_what_the_plan_says():
    bounds = {"feature_bounds": Bounds(norm=1.0), "outcome_bounds": Bounds(norm=1.0)}
    for shape, expected in (
        ({"n": 1000, "l": 5000, "protection": "features"}, "projection"),
        ({"n": 20_000, "l": 3, "protection": "features"}, "gauss"),
        ({"n": 5000, "l": 100, "protection": "both"}, "gauss"),
    ):
        made = planned(d=5, epsilon=3.0, delta=1e-8, **shape, **bounds)
        assert recommend_association(made) == expected


BOUNDS = {"feature_bounds": Bounds(norm=1.0), "outcome_bounds": Bounds(norm=1.0)}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "projection"),
        ({"protection": "both"}, "gauss"),
        ({"protection": "both", "covariance_rows": 500}, "gauss"),
        ({"public_covariance": True}, "gauss"),
        ({"calibration": "paper"}, "gauss"),
        ({"protection": "outcomes", "d": 2000}, "perturbed"),
    ],
)
def test_a_plan_chooses_its_association(settings, expected):
    shape = {"n": 2000, "d": 10, "l": 2000, "epsilon": 3.0, "delta": 1e-6}
    settings = {"protection": "features", **shape, **BOUNDS, **settings}
    chosen = planned(association="auto", make=choose_plan, **settings)
    assert chosen.association == expected
    assert chosen.grid == planned(association=expected, **settings).grid


def test_an_unknown_association_is_named():
    with pytest.raises(
        InputError, match='"laplace" is unknown; choose one of gauss, projection, per'
    ):
        choose_plan(
            Settings(association="laplace", epsilon=1.0, delta=0.1, **BOUNDS), n=10, d=1, l=1
        )


def test_epsilon_for_comes_back():
    shape = {"n": 5000, "d": 10, "l": 100}
    epsilon = epsilon_for(0.2, **shape)

    def r2(at):
        return compare_plans(
            **shape, epsilon=at, protection="both", estimators=("auto",)
        ).recommended

    assert r2(epsilon).predicted_r2 >= 0.2
    assert r2(epsilon / 1.05).predicted_r2 < 0.2
    assert epsilon_for(0.25, **shape) > epsilon


def test_outcomes_for_comes_back():
    shape = {"n": 5000, "d": 10, "epsilon": 2.0}
    l = outcomes_for(0.2, **shape)

    def r2(at):
        return compare_plans(**shape, l=at, protection="both", estimators=("auto",)).recommended

    assert r2(l).predicted_r2 >= 0.2
    assert r2(round(l * 1.1) + 1).predicted_r2 < 0.2
    assert outcomes_for(0.2, n=20_000, d=10, epsilon=2.0) > l


def test_rows_for_comes_back():
    shape = {"d": 10, "l": 100, "epsilon": 2.0}
    n = rows_for(0.2, **shape)

    def r2(at):
        return compare_plans(**shape, n=at, protection="both", estimators=("auto",)).recommended

    assert r2(n).predicted_r2 >= 0.2
    assert r2(round(n / 1.05)).predicted_r2 < 0.2
    assert rows_for(0.25, **shape) > n


def test_a_weaker_protection_may_carry_more_outcomes():
    shape = {"n": 2000, "d": 5, "epsilon": 3.0}
    few = outcomes_for(0.2, **shape, estimator="filter")
    assert outcomes_for(0.2, **shape, estimator="filter", protection="features") > few


def test_targets_out_of_reach_are_named():
    with pytest.raises(InputError, match=r"target_r2=0\.5 cannot be reached.*R² = 0\.3"):
        epsilon_for(0.5, n=5000, d=10, l=10)
    with pytest.raises(InputError, match=r"target_r2=0\.29 cannot be reached: even epsilon=100"):
        epsilon_for(0.29, n=300, d=10, l=10_000)
    with pytest.raises(InputError, match="even one outcome"):
        outcomes_for(0.25, n=50, d=10, epsilon=0.1)
    with pytest.raises(InputError, match="between 0 and 1"):
        rows_for(-1, d=10, l=10, epsilon=1.0)
    with pytest.raises(InputError, match=r"d=2\.5 must be a whole number"):
        rows_for(0.2, d=2.5, l=10, epsilon=1.0)
    with pytest.raises(InputError, match="cannot be reached: even 50,000,000 rows"):
        rows_for(0.29, d=2, l=100_000, epsilon=1e-4)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"n": 0}, "n=0"),
        ({"d": 2.5}, r"d=2\.5"),
        ({"l": True}, "l=True"),
        ({"epsilon": -1.0}, "epsilon=-1"),
        ({"delta": 2.0}, r"delta=2\.0"),
        ({"protection": "labels"}, '"labels"'),
        ({"signal": 0.3}, r"signal=0\.3"),
        ({"estimators": ("ols",)}, "'ols'"),
        ({"feature_bounds": "wide"}, 'feature_bounds="wide"'),
    ],
)
def test_bad_numbers_are_named(bad, message):
    with pytest.raises(ValueError, match=message):
        compare_plans(**{**PUBLIC, **bad})


def test_signals_can_be_stated():
    strong = compare_plans(**PUBLIC, protection="both", signal=Signal(r2=0.6)).recommended
    assert (
        strong.predicted_r2
        > compare_plans(**PUBLIC, protection="both").recommended.predicted_r2 + 0.1
    )


def test_loose_bounds_cost_what_the_fit_will_show():
    """Outcomes of standard deviation 1 in a range of ±6: the range is far too wide."""
    asked = {"n": 20_000, "d": 20, "l": 200, "epsilon": 1, "protection": "both"}
    loose = compare_plans(**asked, outcome_bounds=(-6, 6), outcome_sd=1)
    tight = compare_plans(**asked, outcome_bounds=Bounds(lower=-6, upper=6, norm=2.9), outcome_sd=1)
    assert loose.recommended.predicted_r2 < 0.12
    assert tight.recommended.predicted_r2 > 0.2
    assert loose.outcome_sd == pytest.approx(1)
    assert "a standard deviation of 1 (median)" in " ".join(str(loose).split())
    # The same rows with a norm that fits are one of the ways out that it shows.
    assert any("a norm of" in b.knowledge and b.predicted_r2 > 0.2 for b in loose.better)
    assert "instead of" in str(loose)
    assert json.loads(json.dumps(loose.to_dict()))["better_knowledge"][0]["predicted_r2"] > 0.2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"estimators": []}, "must be a list"),
        ({"estimators": "ridge"}, "must be a list"),
        ({"outcome_sd": -1}, "outcome_sd=-1"),
        ({"feature_sd": "wide"}, 'feature_sd="wide"'),
        ({"n": 1}, "n=1"),
    ],
)
def test_more_bad_requests(changes, message):
    with pytest.raises(InputError, match=message):
        compare_plans(**{**PUBLIC, **changes})


def test_projection_is_not_offered_where_fit_refuses_it():
    made = compare_plans(n=40, d=100, l=2, epsilon=5, protection="outcomes")
    assert {v.association for v in made.variants} == {"gauss", "perturbed"}
