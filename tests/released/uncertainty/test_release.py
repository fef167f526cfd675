"""What a release shows of its fit: from released numbers alone, and without an error."""

import dataclasses

import numpy as np
import pytest

import primo
from primo.released import release as release_module
from primo.released import uncertainty


def fitted(n=3000, d=4, l=12, **options):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(n, d)).astype(float)
    Y = X @ rng.normal(size=(d, l)) + rng.normal(size=(n, l))
    settings = {
        "epsilon": 5.0,
        "delta": 1e-8,
        "feature_bounds": (0, 2),
        "outcome_bounds": primo.Bounds(norm=5.0 * l**0.5),
    }
    return primo.PrimoRegressor(**{**settings, **options}).fit(X, Y).release_


def shown(release):
    """The last item of what is printed, on one line."""
    return " ".join(repr(release).split("\n  Fit ")[1].split())


def test_methods_are_the_functions(world):
    release, _ = world(3, 7)(np.random.default_rng(1))
    fit = release.goodness_of_fit(level=0.9, target="population", fdr=0.1)
    same = uncertainty.goodness_of_fit(release, level=0.9, target="population", fdr=0.1)
    np.testing.assert_allclose(fit.r_squared, same.r_squared, rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(fit.upper, same.upper, rtol=1e-7, atol=1e-10)
    assert (fit.level, fit.target, fit.fdr) == (0.9, "population", 0.1)
    assert release.summary("trait2", level=0.9, target="rows") == uncertainty.summary(
        release, "trait2", level=0.9, target="rows"
    )


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_a_loaded_release_shows_the_fit_without_data(tmp_path, protection):
    path = primo.save_release(fitted(protection=protection), tmp_path / "r.npz")
    loaded = primo.load_release(path)
    path.unlink()
    text, fit = shown(loaded), loaded.goodness_of_fit()
    assert f"median {np.median(fit.r_squared[fit.trusted]):.2f}" in text
    assert f"signal clearly found for {fit.found.sum()} of 12 outcomes" in text
    assert fit.found.sum() > 6
    assert str(loaded) == repr(loaded)
    assert max(map(len, repr(loaded).splitlines())) <= 98


def test_one_outcome_has_its_interval(world):
    release, _ = world(3, 1)(np.random.default_rng(2))
    fit = release.goodness_of_fit()
    assert f"R² {fit.r_squared[0]:.2f} from the released numbers (95% interval" in shown(release)
    assert f"{fit.lower[0]:.2f} to {fit.upper[0]:.2f}); signal clearly found" in shown(release)
    nothing, _ = world(3, 1, nulls=1.0)(np.random.default_rng(3))
    assert "not distinguishable from noise" in shown(nothing)


def test_the_statement_is_about_privacy_only(world):
    release, _ = world(3, 7)(np.random.default_rng(4))
    assert "R²" not in release.statement()
    assert repr(release).startswith(release.statement())


def test_doubt_is_said(world):
    release, _ = world(4, 30, epsilon=0.05)(np.random.default_rng(5))
    fit = release.goodness_of_fit()
    assert not fit.trusted.any()
    assert "R² from the released numbers: determined for none of the 30 outcomes alone" in shown(
        release
    )
    for doubt in release.doubts():
        assert doubt in " ".join(repr(release).split())
    assert fit.words(0) == ("not determined", "0 to 1")
    summary = release.summary(0)
    assert "not determined" in summary
    assert "0 to 1" in summary


def test_bounds_that_do_not_fit_are_said():
    release = fitted(feature_bounds=(0, 0.001))
    assert release.doubts()
    for text in (repr(release), release.summary()):
        for doubt in release.doubts():
            assert doubt in " ".join(text.split())


def test_showing_never_raises(world, tmp_path, monkeypatch):
    projected = fitted(protection="features", association="projection")
    assert "no R² from the released numbers: the association" in shown(projected)
    wide = fitted(n=30, d=60, protection="outcomes", delta=1e-4)
    loaded = primo.load_release(primo.save_release(wide, tmp_path / "wide.npz"))
    assert "60 features and 30 rows" in shown(wide) == shown(loaded)
    release, _ = world(3, 7)(np.random.default_rng(6))
    for bad in (np.nan, np.inf, 0.0):
        odd = dataclasses.replace(release, covariance=np.full((4, 4), bad))
        assert shown(odd)
    monkeypatch.setattr(release_module, "_QUICK", 10)
    again = dataclasses.replace(release)
    assert shown(again).endswith("release.goodness_of_fit()")
