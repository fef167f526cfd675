"""Later outcomes for the same rows, end to end through the shell."""

import math

import numpy as np
import pandas as pd
import pytest

import primo
from small_fits import cohort, model


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
        with pytest.raises(primo.InputError, match="'a' is missing now; 'z' was not there"):
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
        with pytest.raises(primo.PrivacyError, match='"outcomes" was asked for'):
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
