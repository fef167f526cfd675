"""Noise on the outcomes, and public features that are summed inside blocks: no matrix of all of them."""

import dataclasses
from unittest import mock

import numpy as np
import pandas as pd
import pytest
import yaml

import primo
from factories import array_source
from primo.errors import InputError, PrivacyError
from primo.planning.guarantee import check_plan
from primo.planning.plan import CovarianceOrigin
from primo.planning.settings import Settings
from primo.privacy.bounds import Bounds
from primo.released.bundle import read_bundle, write_bundle
from primo.released.export.sumstats import write_summary_statistics
from primo.released.marginal import summary_statistics
from primo.released.release_file import load_release, save_release
from primo.report.variants import top_hits
from primo.variants import Variants
from primo.wall.noise import RandomBits
from primo.workflow import pipeline
from primo.workflow.fit import Engine, prepare, release_rows


def rows(n, blocks, width, seed=0):
    """Linked features in blocks, and an outcome that a few of them explain."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, blocks, width))
    for j in range(1, width):
        x[:, :, j] = 0.8 * x[:, :, j - 1] + 0.6 * x[:, :, j]
    x = x.reshape(n, -1)
    score = x[:, ::37].sum(axis=1)
    y = 0.9 * score / score.std() + 0.4 * rng.normal(size=n)
    return x, y[:, None]


def released(x, y, width=None, *, seed=1, epsilon=20.0, engine=None, **changes):
    source = array_source(x, y)
    if width is not None:
        borders = list(range(0, x.shape[1] + 1, width))
        changes |= {"covariance": "blocks", "blocks": borders}
    settings = Settings(
        epsilon=epsilon,
        delta=1e-6,
        protection="outcomes",
        association="perturbed",
        outcome_bounds=Bounds(norm=3.0),
        **changes,
    )
    prepared = prepare(source, settings)
    return release_rows(source, prepared, bits=RandomBits.seeded(seed), engine=engine)


@pytest.mark.parametrize("intercept", [True, False])
def test_blocks_hold_what_the_whole_covariance_holds(intercept):
    x, y = rows(300, 5, 4)
    whole = released(x, y, fit_intercept=intercept)
    inside = released(x, y, 4, fit_intercept=intercept)
    assert inside.covariance.shape == (0, 0)
    assert inside.plan.covariance_origin is CovarianceOrigin.ROW_SPACE
    # The same noise on the same outcomes: only what is computed of public features differs.
    assert np.array_equal(whole.perturbed, inside.perturbed)
    assert np.array_equal(whole.association, inside.association)
    for k, part in enumerate(inside.public_blocks.covariance):
        at = slice(4 * k, 4 * k + 4)
        np.testing.assert_array_equal(part, whole.covariance[at, at])
    if intercept:
        sums = whole.covariance[:-1, -1] / whole.plan.constant
        np.testing.assert_allclose(inside.public_blocks.sums, sums, rtol=1e-12)


def test_predictions_on_new_rows_with_more_features_than_rows():
    x, y = rows(1600, 250, 8)
    fit, new = slice(0, 1300), slice(1300, None)
    found = {}
    for name, width in (("rows", None), ("blocks", 8)):
        predicted = released(x[fit], y[fit], width).coefficients().predict(x[new])
        left = ((y[new] - predicted) ** 2).sum() / ((y[new] - y[new].mean()) ** 2).sum()
        found[name] = 1 - left
    assert found["blocks"] > found["rows"] - 0.03
    assert found["blocks"] > 0.15


def test_neither_rows_nor_features_are_squared():
    """No n × n matrix is made where blocks are given, however few rows there are."""
    x, y = rows(120, 60, 5)
    with mock.patch.object(pipeline, "row_space", side_effect=AssertionError):
        release = released(x, y, 5)
    assert release.public_features is None
    assert release.coefficients().slopes.shape == (300, 1)


def test_order_and_threads_change_nothing():
    x, y = rows(200, 6, 5)
    order = np.random.default_rng(5).permutation(200)
    one, other = released(x, y, 5), released(x[order], y[order], 5)
    parts = (one.public_blocks.covariance, other.public_blocks.covariance)
    assert all(np.array_equal(a, b) for a, b in zip(*parts, strict=True))
    threads = released(x, y, 5, engine=Engine(threads=3))
    parts = (one.public_blocks.covariance, threads.public_blocks.covariance)
    assert all(np.array_equal(a, b) for a, b in zip(*parts, strict=True))


def test_a_bundle_holds_the_coefficients_and_marginal_effects_follow(tmp_path):
    x, y = rows(500, 10, 4)
    release = released(x, y, 4)
    path = write_bundle(release, tmp_path / "release")
    bundle = read_bundle(path)
    expected = release.coefficients()
    np.testing.assert_allclose(bundle.coefficients().slopes, expected.slopes, rtol=1e-9)
    np.testing.assert_allclose(bundle.coefficients().intercept, expected.intercept, rtol=1e-9)
    variants = Variants(
        names=release.feature_names,
        chromosome=("1",) * 40,
        position=np.arange(1, 41),
        counted=("A",) * 40,
        other=("G",) * 40,
    )
    effects = summary_statistics(bundle.release, variants).outcome(0)
    alone = summary_statistics(released(x, y), variants).outcome(0)
    np.testing.assert_allclose(effects.effect, alone.effect, rtol=1e-9)
    np.testing.assert_allclose(effects.z, alone.z, rtol=1e-6)
    again = load_release(save_release(release, tmp_path / "moments.npz"))
    with pytest.raises(InputError, match="features"):
        again.coefficients()  # the blocks of public features are not in the file


@pytest.mark.parametrize("epsilon", [100.0, 20.0, 1.0])
def test_effective_n_is_right_or_left_out(tmp_path, epsilon):
    """Noise on the outcomes may hide how much they vary; then nothing is said about people."""
    x, y = rows(3000, 5, 4)
    names = tuple(f"x{i}" for i in range(20))
    variants = Variants(
        names=names,
        chromosome=("1",) * 20,
        position=np.arange(1, 21),
        counted=("A",) * 20,
        other=("G",) * 20,
    )
    release = released(x, y, 4, epsilon=epsilon)
    release = dataclasses.replace(release, feature_names=names)
    statistics = summary_statistics(release, variants)
    found = statistics.outcome(0)
    assert np.isfinite(found.standard_error).all()
    if epsilon == 1.0:  # the noise is many times the outcome
        assert np.isnan(found.effective_n).all()
        assert {row[-1] for row in top_hits(statistics, found)} == {"not determined"}
        with pytest.raises(InputError, match="effective n") as caught:
            write_summary_statistics(statistics, tmp_path / "ldsc", format="ldsc")
        assert "Choose another format" in str(caught.value.remedy)
        assert not (tmp_path / "ldsc").exists()
        files = write_summary_statistics(statistics, tmp_path / "ssf")
        table = pd.read_csv(files.paths[0], sep="\t", dtype=str, keep_default_na=False)
        assert set(table["effective_n"]) == {"#NA"}
        facts = yaml.safe_load(files.guarantee.read_text())["differential_privacy"]
        assert "noise on each outcome of each row" in facts["mechanism"]
        assert facts["neighbours"] == "replace the outcomes of one row"
        return
    noise = (release.plan.row_sigma * release.plan.outcomes.scale[0]) ** 2
    private = noise / (noise + y.var())
    # The first block explains the outcome; the others leave its variance as it is.
    np.testing.assert_allclose(found.effective_n[4:], 3000 * (1 - private), rtol=0.25)
    if epsilon == 100.0:
        write_summary_statistics(statistics, tmp_path / "ldsc", format="ldsc")


def test_only_noise_on_the_outcomes_leaves_public_features_out():
    """A plan without a covariance of few public features is refused if its noise is on moments."""
    x, y = rows(300, 5, 4)
    plan = released(x, y, 4).plan
    check_plan(plan)
    forged = dataclasses.replace(plan, association="gauss", perturbation=None)
    with pytest.raises(PrivacyError, match="row space"):
        check_plan(forged)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"covariance": "none"}, "effects of all features one by one"),
        ({"covariance": "panel"}, "effects of all features one by one"),
        ({"covariance": "blocks", "blocks": [0, 10, 20], "block_norms": 2.0}, "block_norms"),
        ({"covariance": "blocks", "blocks": [0, 10, 19]}, "end with 20"),
        ({"covariance": "blocks", "blocks": [0, 12, 10, 20]}, "overlap"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, said):
    x, y = rows(100, 5, 4)
    with pytest.raises(InputError, match=said):
        released(x, y, **changes)


def test_the_regressor_takes_both():
    x, y = rows(400, 10, 4)
    model = primo.PrimoRegressor(
        epsilon=20,
        delta=1e-6,
        protection="outcomes",
        association="perturbed",
        covariance="blocks",
        blocks=list(range(0, 41, 4)),
        outcome_bounds=(-3, 3),
    )
    assert model.fit(x, y[:, 0]).coef_.shape == (40,)
