"""The paper's variants and the choice of an estimator, end to end through the shell."""

import contextlib
import math

import numpy as np
import pytest

import primo
from factories import planned
from primo.planning.settings import Settings
from primo.privacy.calibration import epsilon_of
from primo.privacy.sensitivity import joint_distance
from small_fits import D, cohort, error, model


class TestProjection:
    @pytest.mark.parametrize("protection", ["outcomes", "features"])
    @pytest.mark.parametrize("estimator", ["auto", "ridge"])
    def test_is_accurate_where_one_block_is_public(self, protection, estimator):
        x, y, w = cohort()
        fitted = model(protection=protection, association="projection", estimator=estimator)
        fitted.fit(x, y)
        assert error(fitted, w) < 0.25
        assert "then projected" in repr(fitted.release_)

    @pytest.mark.parametrize("protection", ["outcomes", "features"])
    def test_projected_association_is_feasible_under_heavy_noise(self, protection):
        x, y, _ = cohort(n=60)
        fitted = model(
            protection=protection, association="projection", epsilon=0.05, fit_intercept=False
        )
        fitted.fit(x, y)
        plan = fitted.release_.plan
        public, bound = (x, plan.outcomes) if protection == "outcomes" else (y, plan.features)
        clip = plan.features if protection == "outcomes" else plan.outcomes
        rows = public / np.maximum(1, np.linalg.norm(public, axis=1) / clip.norm)[:, None]
        ours = fitted.release_.projected.association
        ours = ours if protection == "outcomes" else ours.T
        z = np.linalg.lstsq(rows.T, ours, rcond=None)[0]
        np.testing.assert_allclose(rows.T @ z, ours, atol=1e-3 * np.abs(ours).max())
        assert np.linalg.norm(z) <= math.sqrt(60) * bound.norm * (1 + 1e-3)

    def test_is_refused_where_both_blocks_are_private(self):
        x, y, _ = cohort(n=50)
        with pytest.raises(primo.InputError, match="itself private"):
            model(association="projection").fit(x, y)

    def test_wide_public_outcomes_work(self):
        x, y, _ = cohort(n=80, l=3000)
        fitted = model(protection="features", association="projection", outcome_bounds=None)
        assert fitted.fit(x, y).coef_.shape == (3000, D)


class TestChosenAssociation:
    def test_projection_rescues_many_public_outcomes(self):
        x, y, _ = cohort(n=3000, d=8, l=1500, seed=7)
        settings = {
            "protection": "features",
            "feature_bounds": 1.5 * math.sqrt(8),
            "outcome_bounds": 1.6 * math.sqrt(1500),
        }
        scores = {
            association: model(**settings, association=association, score_public_rows=True)
            .fit(x[:1500], y[:1500])
            .score(x[1500:], y[1500:])
            for association in ("gauss", "projection")
        }
        assert scores["projection"] > scores["gauss"] + 0.1

    def test_auto_projects_where_it_helps(self):
        x, y, _ = cohort(n=2000, d=10, l=2000)
        settings = {"association": "auto", "feature_bounds": 5.0, "outcome_bounds": 70.0}
        for protection, expected in (("features", "projection"), ("both", "gauss")):
            fitted = model(**settings, protection=protection).fit(x, y)
            assert fitted.release_.plan.association == expected

    @pytest.mark.parametrize("protection", ["features", "outcomes"])
    def test_auto_does_not_look_at_private_rows(self, protection):
        x, y, _ = cohort(n=300, d=4, l=1000)  # where projecting is predicted to help
        noise = np.random.default_rng(1)
        first, second = (
            model(protection=protection, association="auto").fit(*blocks).release_.plan
            for blocks in (
                (x, y),
                (1e3 * noise.exponential(size=x.shape), y)
                if protection == "features"
                else (x, -50 + 1e3 * noise.exponential(size=y.shape)),
            )
        )
        assert first.association == second.association
        assert first.association == ("projection" if protection == "features" else "gauss")
        assert first.association_sigma == second.association_sigma

    def test_unknown_words_are_refused_with_all_choices(self):
        x, y, _ = cohort(n=50)
        with pytest.raises(primo.InputError, match="gauss, projection, perturbed, auto"):
            model(association="laplace").fit(x, y)


class TestPaperMode:
    def test_states_what_the_printed_scales_truly_give(self):
        x, y, _ = cohort()
        release = model(calibration="paper").fit(x, y).release_
        plan = release.plan
        c = math.sqrt(2 * (1 / 5 + math.log(1e6) / 25))
        half = math.sqrt(2 * (2 / 5 + math.log(2e6) * 4 / 25))
        bound_x, bound_y = plan.feature_norm, plan.outcomes.norm
        assert plan.covariance_sigma == pytest.approx(c * bound_x**2, rel=1e-5)
        assert plan.association_sigma == pytest.approx(half * bound_x * bound_y, rel=1e-5)
        mu = math.sqrt(joint_distance(c**-2, half**-2, 0.0))
        assert plan.mu == pytest.approx(mu, rel=1e-5)
        assert plan.epsilon == pytest.approx(epsilon_of(mu, 1e-6), rel=1e-4)
        assert plan.epsilon > plan.budget.epsilon  # the printed algorithm does not keep its promise
        assert "epsilon = 6.6769, delta = 1e-06" in " ".join(repr(release).split())  # rounded up
        assert "claims epsilon 5" in repr(release)

    def test_draws_an_iid_triangle(self):
        x, y, _ = cohort(n=400, d=40)
        plan = model(calibration="paper").fit(x, y).release_.plan
        assert plan.triangle_bits == 0
        exact = model(epsilon=100, delta=1e-3, feature_bounds=1.5 * math.sqrt(D)).fit(x, y)
        assert exact.release_.plan.triangle_bits == 1

    @pytest.mark.parametrize(
        ("changes", "epsilon"),
        [
            # The true epsilons of docs/paper-constants.md, for n = 5008.
            ({}, 6.85),
            ({"protection": "features"}, 6.85),
            ({"protection": "outcomes"}, 4.23),
            ({"protection": "features", "calibration": "paper-alg3"}, 4.63),
            ({"covariance_rows": 5008}, 4.23),
            ({"covariance_rows": 2504}, 7.33),
        ],
    )
    def test_every_algorithm_states_its_true_epsilon(self, changes, epsilon):
        x, y, _ = cohort(n=5008)
        settings = {"calibration": "paper", "delta": 1 / 5008**2, **changes}
        plan = model(**settings).fit(x, y).release_.plan
        assert plan.epsilon == pytest.approx(epsilon, abs=0.01)
        assert plan.triangle_bits == 0
        assert (plan.covariance_sigma == 0) == (changes.get("protection") == "outcomes")

    def test_algorithm_three_is_for_private_features(self):
        x, y, _ = cohort(n=50)
        with pytest.raises(primo.InputError, match="features"):
            model(calibration="paper-alg3").fit(x, y)


class TestRidgeRules:
    @pytest.mark.parametrize("solver", ["qr", "cg", "fast"])
    def test_solvers_agree(self, solver):
        x, y, _ = cohort()
        release = model().fit(x, y).release_
        reference = primo.coefficients(release, estimator="ridge", ridge_lambda=50.0)
        ours = primo.coefficients(release, estimator="ridge", ridge_lambda=50.0, solver=solver)
        np.testing.assert_allclose(ours.slopes, reference.slopes, rtol=1e-9, atol=1e-10)

    @pytest.mark.parametrize("association", ["gauss", "projection"])
    def test_rules_for_lambda(self, association):
        x, y, w = cohort()
        fitted = model(
            protection="outcomes",
            association=association,
            estimator="ridge",
            ridge_lambda="theorem",
            coefficient_norm=1.0,
        ).fit(x, y)
        assert error(fitted, w) < 0.5
        assert error(model(estimator="ridge", ridge_lambda="adassp").fit(x, y), w) < 0.5

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"ridge_lambda": "best", "estimator": "ridge"}, '"best"'),
            ({"ridge_lambda": "theorem", "estimator": "ridge"}, "coefficient_norm"),
            ({"ridge_lambda": -1.0, "estimator": "ridge"}, "-1.0"),
            ({"ridge_lambda": 1.0}, 'belongs to estimator="ridge"'),
            ({"solver": "qr"}, 'belongs to estimator="ridge"'),
            ({"solver": "lu", "estimator": "ridge"}, '"lu"'),
            ({"calibration": "loose"}, '"loose"'),
            ({"n_jobs": 0}, "n_jobs=0"),
        ],
    )
    def test_bad_choices_are_refused_before_a_row_is_read(self, changes, message):
        x, y, _ = cohort(n=50)
        x[0, 0] = np.nan  # reading it would fail with another message
        with pytest.raises(primo.InputError, match=message):
            model(**changes).fit(x, y)


@pytest.mark.parametrize("split", [None, 0.01, 0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.1, 5.0, 50.0])
@pytest.mark.parametrize("sampled", [1, 999, 30_000, 59_999])
def test_sampled_plans_keep_their_budget_on_the_grid(split, epsilon, sampled):
    """`make_plan` checks the finished grid itself and would raise."""
    plan = primo.planning.make.make_plan(
        Settings(
            epsilon=epsilon,
            delta=1e-9,
            feature_bounds=primo.Bounds(norm=1.0),
            outcome_bounds=primo.Bounds(norm=1.0),
            covariance_rows=sampled,
            split=split,
        ),
        n=60_000,
        d=40,
        l=1,
    )
    assert plan.epsilon == epsilon


@pytest.mark.parametrize(
    ("epsilon", "delta", "shown"),
    [
        (3.00004, 1e-6, "(epsilon = 3.0001, delta = 1e-06)"),
        (3.0, 1.0049e-6, "(epsilon = 3, delta = 1.01e-06)"),
        (5, 1 / 5008**2, "(epsilon = 5, delta = 3.99e-08)"),
        (0.1, 1e-9, "(epsilon = 0.1, delta = 1e-09)"),
    ],
)
def test_statements_round_up(epsilon, delta, shown):
    x, y, _ = cohort(n=60)
    assert shown in repr(model(epsilon=epsilon, delta=delta).fit(x, y).release_)


@pytest.mark.parametrize(
    "changes",
    [
        {
            "n": 67_208,
            "epsilon": 23.1,
            "delta": 8.6e-7,
            "covariance_rows": 617,
            "calibration": "paper",
        },
        {"n": 597_400_912, "epsilon": 30.4, "delta": 7.4e-3},
        {"n": 6646, "epsilon": 1.29e-4, "delta": 1.7e-199, "covariance_rows": 2701, "split": 1.0},
        {"n": 100, "epsilon": np.float32(1), "delta": np.float32(1e-6)},
        {"n": 100, "epsilon": 1, "delta": 1e-6, "covariance_rows": 10.0},
    ],
)
def test_unusual_requests_are_planned_or_refused_but_never_crash(changes):
    settings = {
        "d": 3,
        "l": 2,
        "feature_bounds": primo.Bounds(norm=1.0),
        "outcome_bounds": primo.Bounds(norm=1.0),
    }
    with contextlib.suppress(primo.InputError):
        planned(**settings, **changes)
