"""Covariances that are not that of all rows: sampled, of a public panel, of a row space."""

import math

import numpy as np
import pytest

import primo
from small_fits import D, cohort, error, model


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
        fitted = model(covariance_rows=200, rounds="auto").fit(x, y)
        assert fitted.release_.plan.sampled is None
        assert fitted.release_.plan.round_count == 1

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
        with pytest.raises(primo.InputError, match="a single row"):
            model(protection="outcomes", feature_bounds=None).fit(x, y)

    def test_projection_is_refused_with_the_reason(self):
        rng = np.random.default_rng(5)
        x, y = rng.normal(size=(20, 50)), rng.normal(size=(20, 2))
        with pytest.raises(primo.InputError, match="row space already drops"):
            model(protection="outcomes", feature_bounds=None, association="projection").fit(x, y)
