"""The paper's variants and the free public knowledge, end to end through the shell."""

import contextlib
import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest

import primo
from primo.planning.settings import Settings
from primo.privacy.calibration import epsilon_of
from primo.privacy.sensitivity import joint_distance
from tests.plans import planned

N, D, L = 4000, 6, 5


def cohort(n=N, d=D, l=L, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, d))
    w = rng.normal(size=(d, l)) / np.sqrt(d)
    return x, x @ w + rng.normal(size=(n, l)), w


def model(**changes):
    settings = {
        "epsilon": 5.0,
        "delta": 1e-6,
        "feature_bounds": 1.5 * math.sqrt(D),
        "outcome_bounds": 2.0 * math.sqrt(L),
    }
    return primo.PrimoRegressor(**{**settings, **changes})


def error(fitted, w):
    return np.linalg.norm(fitted.coef_.T - w) / np.linalg.norm(w)


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
        with pytest.raises(primo.InputError, match="gauss, projection, auto"):
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


class TestSubSampling:
    def test_covariance_of_some_rows_stands_for_all(self):
        x, y, w = cohort(n=20_000)
        fitted = model(covariance_rows=5000).fit(x, y)
        plan = fitted.release_.plan
        assert plan.sampled == 5000
        assert plan.epsilon <= 5.0
        diagonal = np.diagonal(fitted.release_.covariance)[:-1]
        np.testing.assert_allclose(diagonal, (x**2).sum(axis=0), rtol=0.1)
        assert fitted.release_.covariance[-1, -1] == pytest.approx(20_000 * plan.constant**2)
        assert error(fitted, w) < 0.15
        assert "5000 rows drawn in secret" in " ".join(repr(fitted.release_).split())

    def test_the_sample_has_the_right_size_and_is_fresh(self):
        bits = [primo.wall.noise.RandomBits.fresh() for _ in range(2)]
        masks = [b.subset(1000, 300, label="sample") for b in bits]
        assert [m.sum() for m in masks] == [300, 300]
        assert (masks[0] != masks[1]).any()

    def test_every_row_is_drawn_equally_often(self):
        draws = sum(
            primo.wall.noise.RandomBits.seeded(i).subset(20, 5, label="s").astype(int)
            for i in range(4000)
        )
        # 4000 draws at rate 1/4: standard error 27
        assert np.abs(draws - 1000).max() < 5 * 27.4

    def test_all_rows_means_no_sampling(self):
        x, y, _ = cohort(n=200)
        assert model(covariance_rows=200).fit(x, y).release_.plan.sampled is None

    @pytest.mark.parametrize("rows", [0, -3, 201])
    def test_impossible_samples_are_refused(self, rows):
        x, y, _ = cohort(n=200)
        with pytest.raises(primo.InputError, match=f"{rows}"):
            model(covariance_rows=rows).fit(x, y)


class TestPublicCovariance:
    def test_pays_for_the_association_alone(self):
        x, y, w = cohort()
        panel, _, _ = cohort(seed=99, n=2000)
        fitted = model(public_covariance=np.cov(panel.T), public_mean=panel.mean(axis=0)).fit(x, y)
        plan = fitted.release_.plan
        assert plan.covariance_sigma == 0
        assert plan.association_sigma == pytest.approx(
            2 * plan.feature_norm * plan.outcomes.norm / plan.mu, rel=1e-5
        )
        assert error(fitted, w) < 0.2
        assert "reference panel" in repr(fitted.release_)

    def test_scaled_units_are_taken_care_of(self):
        x, y, w = cohort()
        stretch = np.array([1, 10, 0.1, 5, 2, 1.0])
        bounds = primo.Bounds(norm=1.5 * math.sqrt(D), centre=3 * stretch, scale=stretch)
        fitted = model(
            feature_bounds=bounds, public_covariance=np.diag(stretch**2), public_mean=3 * stretch
        ).fit((x + 3) * stretch, y)
        assert error(fitted, w / stretch[:, None]) < 0.3

    def test_the_panel_mean_need_not_be_the_centre_of_the_range(self):
        """Rare alleles in the range 0 to 2: the middle of the range is far from the mean."""
        rng = np.random.default_rng(2)
        frequency = np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5])
        x, panel = (rng.binomial(2, frequency, size=(20_000, D)) for _ in range(2))
        w = np.array([[1, 0.8, 0.6, -0.5, 0.4, 0.3]]).T
        y = x @ w + rng.normal(size=(20_000, 1))
        fitted = model(
            epsilon=10,
            feature_bounds=(0, 2),
            outcome_bounds=(-4, 8),
            public_covariance=np.cov(panel.T),
            public_mean=panel.mean(axis=0),
        ).fit(x, y)
        assert error(fitted, w) < 0.15
        assert fitted.intercept_[0] == pytest.approx(0, abs=0.2)

    @pytest.mark.parametrize(
        ("matrix", "changes", "message"),
        [
            (np.eye(3), {}, "shape"),
            (-np.eye(D), {}, "negative eigenvalue"),
            (np.triu(np.ones((D, D))), {}, "symmetric"),
            (np.full((D, D), np.nan), {}, "finite"),
            ("x", {}, "finite numbers"),
            (np.eye(D), {"public_mean": None}, "public_mean"),
            (np.eye(D), {"public_mean": np.zeros(2)}, "public_mean"),
            (None, {}, "belongs to public_covariance"),
            (np.eye(D), {"protection": "outcomes"}, "features are public"),
            (4 * np.eye(D), {"feature_bounds": (-1, 1)}, r"correlation \(LD\)"),
        ],
    )
    def test_bad_panels_are_refused(self, matrix, changes, message):
        x, y, _ = cohort(n=50)
        settings = {"public_covariance": matrix, "public_mean": np.zeros(D), **changes}
        with pytest.raises(primo.InputError, match=message):
            model(**settings).fit(x, y)

    def test_a_correlation_matrix_is_pointed_out(self):
        x, y, _ = cohort(n=50)
        with pytest.warns(UserWarning, match="correlation"):
            model(public_covariance=np.eye(D), public_mean=np.zeros(D)).fit(x, y)


class TestExtension:
    def test_new_outcomes_reuse_the_covariance_and_compose(self):
        x, y, w = cohort()
        first = model().fit(x, y[:, :2]).release_
        second = primo.extend(
            first,
            x,
            y[:, 2:],
            protection="both",
            epsilon=5,
            delta=1e-6,
            outcome_bounds=2.0 * math.sqrt(3),
        )
        assert second.covariance is first.covariance
        assert second.outcome_names == ("y2", "y3", "y4")
        assert second.plan.total_mu == pytest.approx(math.hypot(first.plan.mu, second.plan.mu))
        assert second.plan.association_sigma == pytest.approx(
            2 * second.plan.feature_norm * second.plan.outcomes.norm / second.plan.mu, rel=1e-4
        )
        assert "Together" in repr(second)
        fitted = primo.coefficients(second)
        assert np.linalg.norm(fitted.slopes - w[:, 2:]) / np.linalg.norm(w[:, 2:]) < 0.2
        keep = {"protection": "both", "epsilon": 1, "delta": 1e-6}
        third = primo.extend(second, x, y[:, 0] * 2, outcome_bounds=8.0, **keep)
        assert third.plan.total_mu > second.plan.total_mu
        assert third.plan.total_epsilon > third.plan.epsilon

    @pytest.mark.parametrize("protection", ["outcomes", "features"])
    def test_other_protections_extend_too(self, protection):
        x, y, w = cohort()
        first = model(protection=protection).fit(x, y[:, :2]).release_
        keep = {"protection": protection, "epsilon": 5, "delta": 1e-6}
        second = primo.extend(first, x, y[:, 2:], outcome_bounds=4.0, **keep)
        assert np.linalg.norm(primo.coefficients(second).slopes - w[:, 2:]) < 0.3

    def test_a_loaded_release_extends_like_the_one_in_memory(self, tmp_path):
        x, y, _ = cohort()
        first = model().fit(pd.DataFrame(x, columns=list("abcdef")), y[:, :2]).release_
        loaded = primo.load_release(primo.save_release(first, tmp_path / "first.npz"))
        keep = {"protection": "both", "epsilon": 2, "delta": 1e-6}
        second = primo.extend(loaded, x, y[:, 2:], outcome_bounds=4.0, **keep)
        assert second.feature_names == tuple("abcdef")
        np.testing.assert_array_equal(second.covariance, first.covariance)

    def test_what_differs_is_refused(self):
        x, y, _ = cohort()
        frame = pd.DataFrame(x, columns=list("abcdef"))
        first = model().fit(frame, pd.DataFrame(y[:, :2], columns=["p", "q"])).release_
        later = pd.DataFrame(y[:, 2:], columns=["r", "s", "t"])
        keep = {"protection": "both", "epsilon": 1, "delta": 1e-6, "outcome_bounds": 4.0}
        with pytest.raises(primo.InputError, match="4000 rows and these are 3999"):
            primo.extend(first, frame[1:], later[1:], **keep)
        with pytest.raises(primo.InputError, match="feature 0 was 'a' and is 'z'"):
            primo.extend(first, frame.rename(columns={"a": "z"}), later, **keep)
        with pytest.raises(primo.InputError, match="6 then, 5 now"):
            primo.extend(first, frame.drop(columns="c"), later, **keep)
        with pytest.raises(primo.PrivacyError, match="'q' is in the earlier release"):
            primo.extend(first, frame, later.rename(columns={"r": "q"}), **keep)
        with pytest.raises(primo.BoundsError, match="outcomes are private"):
            primo.extend(first, frame, later, **keep | {"outcome_bounds": None})
        read = primo.Bounds.from_public(later.to_numpy())
        with pytest.raises(primo.BoundsError, match="read off data"):
            primo.extend(first, frame, later, **keep | {"outcome_bounds": read})
        with pytest.raises(primo.PrivacyError, match="'outcomes' was asked for"):
            primo.extend(first, frame, later, **keep | {"protection": "outcomes"})
        with pytest.raises(TypeError, match="protection"):
            primo.extend(first, frame, later, epsilon=1, delta=1e-6, outcome_bounds=4.0)
        paper = model(calibration="paper").fit(frame, y[:, :2]).release_
        with pytest.raises(primo.InputError, match="not extended"):
            primo.extend(paper, frame, later, **keep)

    def test_known_noise_stays_known(self):
        x, y, _ = cohort(n=200)
        with pytest.warns(primo.ReproducibleNoiseWarning):
            first = model(random_state=1).fit(x, y[:, :2]).release_
        keep = {"protection": "both", "epsilon": 1, "delta": 1e-6, "outcome_bounds": 4.0}
        assert not primo.extend(first, x, y[:, 2:], **keep).publishable
        fresh = model().fit(x, y[:, :2]).release_
        with (
            pytest.warns(primo.ReproducibleNoiseWarning),
            pytest.raises(primo.PrivacyError, match="random_state"),
        ):
            primo.extend(fresh, x, y[:, 2:], random_state=1, **keep)


class TestArchive:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"protection": "outcomes", "feature_bounds": None},
            {"covariance_rows": 1000},
            {"calibration": "paper"},
            {"outcome_moments": "diagonal", "fit_intercept": False},
            {"protection": "features", "association": "projection"},
        ],
    )
    def test_round_trip(self, tmp_path, changes):
        x, y, _ = cohort()
        release = model(**changes).fit(x, y).release_
        loaded = primo.load_release(primo.save_release(release, tmp_path / "r.npz"))
        assert loaded.statement() == release.statement()
        for field in dataclasses.fields(release.plan):
            old, new = getattr(release.plan, field.name), getattr(loaded.plan, field.name)
            if field.name not in ("features", "outcomes"):
                assert old == new, field.name
        np.testing.assert_array_equal(loaded.association, release.association)
        np.testing.assert_allclose(
            primo.coefficients(loaded).slopes,
            primo.coefficients(release).slopes,
            rtol=1e-7,
            atol=1e-10,
        )
        assert [p.name for p in tmp_path.iterdir()] == ["r.npz"]

    @pytest.mark.parametrize(
        "edit",
        [
            lambda manifest, _: manifest["plan"]["grid"].update(association_variance_bits=40),
            lambda manifest, _: manifest["plan"].update(mu=0.001),
            lambda manifest, _: manifest["plan"].update(missing="mean"),
            lambda manifest, _: manifest["plan"].update(protection="nobody"),
            lambda manifest, _: manifest["plan"].pop("mu"),
            lambda manifest, _: manifest.update(format="other"),
            lambda _, arrays: arrays.update(features_scale=np.zeros(D)),
            lambda _, arrays: arrays.update(association=np.zeros((2, 2))),
            lambda _, arrays: arrays.update(covariance=arrays["covariance"] * np.nan),
        ],
    )
    def test_edited_files_are_refused(self, tmp_path, edit):
        x, y, _ = cohort(n=100)
        path = primo.save_release(model().fit(x, y).release_, tmp_path / "r.npz")
        with np.load(path) as file:
            arrays = dict(file)
        manifest = json.loads(str(arrays["manifest"]))
        edit(manifest, arrays)
        arrays["manifest"] = np.array(json.dumps(manifest))
        np.savez(path, **arrays)
        with pytest.raises(primo.InputError, match="damaged"):
            primo.load_release(path)

    def test_damage_is_noticed(self, tmp_path):
        x, y, _ = cohort(n=100)
        path = primo.save_release(model().fit(x, y).release_, tmp_path / "r.npz")
        whole = path.read_bytes()
        np.save(tmp_path / "array.npy", np.ones(3))
        array = (tmp_path / "array.npy").read_bytes()
        for content in (b"", b"nonsense", whole[: len(whole) // 2], array):
            path.write_bytes(content)
            with pytest.raises(primo.InputError, match=r"r\.npz"):
                primo.load_release(path)
        with pytest.raises(primo.InputError, match="is a folder"):
            primo.save_release(model().fit(x, y).release_, tmp_path)
        fitted = model().fit(x, y)
        for call in (
            lambda: primo.save_release(fitted, path),
            lambda: primo.coefficients(fitted),
            lambda: primo.extend("r.npz", x, y, protection="both", epsilon=1, delta=1e-6),
        ):
            with pytest.raises(primo.InputError, match="release_"):
                call()
        with pytest.raises(primo.InputError, match="no release at"):
            primo.load_release(tmp_path / "missing.npz")
        with pytest.raises(primo.InputError, match="does not exist"):
            primo.save_release(model().fit(x, y).release_, tmp_path / "nowhere" / "r.npz")


class TestMoreFeaturesThanRows:
    def test_row_space_agrees_with_the_full_covariance_when_noise_is_small(self):
        rng = np.random.default_rng(3)
        x = rng.normal(size=(60, 200))
        y = x @ rng.normal(size=(200, 3)) / 14
        fitted = model(
            epsilon=100,
            delta=0.01,
            protection="outcomes",
            feature_bounds=None,
            outcome_bounds=8.0,
            estimator="ridge",
            ridge_lambda=1e-3,
        ).fit(x, y)
        assert fitted.release_.covariance.shape == (0, 0)
        assert fitted.coef_.shape == (3, 200)
        z = (x - x.mean(axis=0)) / x.std(axis=0)
        # coefficients lie in the row space of the centred features
        scaled = fitted.coef_.T * x.std(axis=0)[:, None]
        inside = z.T @ np.linalg.lstsq(z.T, scaled, rcond=None)[0]
        np.testing.assert_allclose(inside, scaled, atol=1e-8 * np.abs(scaled).max())

    def test_auto_finds_signal_and_a_loaded_release_needs_its_features(self, tmp_path):
        rng = np.random.default_rng(4)
        factors = rng.normal(size=(400, 5))
        x = factors @ rng.normal(size=(5, 900)) + 0.3 * rng.normal(size=(400, 900))
        y = factors @ rng.normal(size=(5, 4))
        fitted = model(
            epsilon=20,
            protection="outcomes",
            feature_bounds=None,
            outcome_bounds=6.0,
            score_public_rows=True,
        ).fit(x[:300], y[:300])
        assert fitted.score(x[300:], y[300:]) > 0.3
        path = primo.save_release(fitted.release_, tmp_path / "wide.npz")
        loaded = primo.load_release(path)
        with pytest.raises(primo.InputError, match="with_public_features"):
            primo.coefficients(loaded)
        again = primo.coefficients(primo.with_public_features(loaded, x[:300]))
        np.testing.assert_allclose(again.slopes.T, fitted.coef_, rtol=1e-6, atol=1e-9)

    def test_a_single_row_is_refused(self):
        x, y, _ = cohort(n=1)
        with pytest.raises(primo.InputError, match="n=1"):
            model(protection="outcomes", feature_bounds=None).fit(x, y)

    def test_projection_is_refused_with_the_reason(self):
        rng = np.random.default_rng(5)
        x, y = rng.normal(size=(20, 50)), rng.normal(size=(20, 2))
        with pytest.raises(primo.InputError, match="row space already drops"):
            model(protection="outcomes", feature_bounds=None, association="projection").fit(x, y)


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
            ({"ridge_lambda": "best", "estimator": "ridge"}, "'best'"),
            ({"ridge_lambda": "theorem", "estimator": "ridge"}, "coefficient_norm"),
            ({"ridge_lambda": -1.0, "estimator": "ridge"}, "-1.0"),
            ({"ridge_lambda": 1.0}, 'belongs to estimator="ridge"'),
            ({"solver": "qr"}, 'belongs to estimator="ridge"'),
            ({"solver": "lu", "estimator": "ridge"}, "'lu'"),
            ({"calibration": "loose"}, "'loose'"),
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
