"""Plans with a covariance inside blocks: what is chosen, refused, and may not be claimed by a file."""

import dataclasses
import io

import numpy as np
import pytest

import primo
from factories import array_source, planned
from primo.errors import InputError, PrivacyError
from primo.planning.blocks import MOST_WHOLE
from primo.planning.guarantee import check_plan
from primo.planning.plan import CovarianceOrigin
from primo.privacy.bounds import Bounds
from primo.released.release_file import read_release, write_release
from primo.wall.noise import RandomBits
from primo.workflow.pipeline import make_release

COMMON = {
    "epsilon": 3.0,
    "delta": 1e-7,
    "feature_bounds": (0, 2),
    "outcome_bounds": (-1, 1),
}


def plan_of(d=10, n=1000, l=2, **settings):
    return planned(n=n, d=d, l=l, **COMMON | settings)


def test_noise_of_a_block_does_not_grow_with_the_others():
    """σ_B = 4·b_B·b_x/μ, and the full matrix has √8·b_x²/μ."""
    d, w = 400, 4
    blocks = plan_of(d, covariance="blocks", blocks=range(0, d + 1, w), fit_intercept=False)
    full = plan_of(d, split=2.0, fit_intercept=False)
    ratio = full.covariance_sigma / blocks.covariance_sigma
    assert ratio == pytest.approx(np.sqrt(d / w) / np.sqrt(2), rel=1e-2)
    assert blocks.association_sigma == pytest.approx(full.association_sigma, rel=1e-2)


@pytest.mark.parametrize("covariance", ["none", "panel"])
def test_without_covariance_every_feature_is_a_block(covariance):
    plan = plan_of(covariance=covariance)
    assert plan.covariance_origin is CovarianceOrigin.BLOCKS
    assert plan.blocks.widths.tolist() == [1] * 10
    check_plan(plan)


def test_auto_follows_from_public_numbers():
    chosen = {
        "few": plan_of(covariance="auto"),
        "few, with blocks": plan_of(covariance="auto", blocks=[0, 5, 10]),
        "few public, with blocks": plan_of(
            covariance="auto", blocks=[0, 5, 10], protection="outcomes"
        ),
        "many": plan_of(MOST_WHOLE + 1, covariance="auto"),
        "many, with blocks": plan_of(
            MOST_WHOLE + 1, covariance="auto", blocks=[0, 5, MOST_WHOLE + 1]
        ),
        "many of few rows": plan_of(MOST_WHOLE + 1, covariance="auto", protection="outcomes"),
    }
    counts = {name: plan.blocks and plan.blocks.count for name, plan in chosen.items()}
    assert counts == {
        "few": None,
        "few, with blocks": 2,
        "few public, with blocks": None,
        "many": MOST_WHOLE + 1,
        "many, with blocks": 2,
        "many of few rows": None,
    }


def test_norms_of_blocks_follow_from_public_numbers():
    ranges = plan_of(covariance="blocks", blocks=[0, 4, 10]).blocks.radius_squared
    np.testing.assert_allclose(ranges / ranges.sum(), [0.4, 0.6], rtol=1e-6)
    short = plan_of(
        covariance="blocks", blocks=[0, 4, 10], feature_bounds=Bounds(lower=0, upper=2, norm=1.5)
    )
    assert (short.blocks.radius_squared == short.grid.feature_radius_squared).all()
    scaled = plan_of(
        100, covariance="none", feature_bounds=Bounds(norm=12.5, centre=0.4, scale=0.5)
    )
    np.testing.assert_allclose(
        np.sqrt(scaled.blocks.radius_squared) * scaled.feature_step, 3 * 1.25, rtol=1e-3
    )
    stated = plan_of(covariance="blocks", blocks=[0, 4, 10], block_norms=[0.5, 9.0])
    norms = np.sqrt(stated.blocks.radius_squared) * stated.feature_step
    np.testing.assert_allclose(norms, [0.5, np.sqrt(10)], rtol=1e-5)  # at most that of a row


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"covariance": "diagonal"}, "unknown"),
        ({"covariance": "blocks"}, "borders"),
        ({"blocks": [0, 10]}, "goes with"),
        ({"covariance": "none", "blocks": [0, 10]}, "goes with"),
        ({"covariance": "none", "block_norms": 1.0}, "needs blocks"),
        ({"covariance": "blocks", "blocks": [0, 4, 9]}, "end with 10"),
        ({"covariance": "blocks", "blocks": [1, 10]}, "begin with 0"),
        ({"covariance": "blocks", "blocks": [0, 7, 4, 10]}, "overlap"),
        ({"covariance": "blocks", "blocks": [0, 4.5, 10]}, "whole numbers"),
        ({"covariance": "blocks", "blocks": 3}, "whole numbers"),
        ({"covariance": "blocks", "blocks": [0, 10], "block_norms": [1, 2]}, "each of the 1"),
        ({"covariance": "blocks", "blocks": [0, 10], "block_norms": -1}, "positive"),
        ({"covariance": "none", "calibration": "paper"}, "does not go with"),
        ({"covariance": "none", "covariance_rows": 50}, "does not go with"),
        ({"covariance": "none", "public_covariance": np.eye(10)}, "does not go with"),
        ({"covariance": "none", "rounds": 3}, "one release"),
        (
            {"covariance": "none", "association": "projection", "protection": "outcomes"},
            "does not go with",
        ),
        (
            {"covariance": "none", "feature_bounds": Bounds(lower=0, upper=2, norm="auto")},
            "before that of the row",
        ),
    ],
)
def test_what_cannot_be_is_refused(settings, said):
    with pytest.raises(InputError, match=said):
        plan_of(**settings)


def test_the_norm_of_the_outcomes_may_be_found():
    plan = plan_of(covariance="none", outcome_bounds=Bounds(lower=-9, upper=9, norm="auto"), n=5000)
    assert plan.counted == ("outcomes",)
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 3, (5000, 10)), rng.normal(size=(5000, 2)) * 0.3
    release = make_release(array_source(x, y), plan, bits=RandomBits.seeded(2))
    assert release.plan.outcomes.norm < plan.outcomes.norm / 4
    check_plan(release.plan)


def a_release(**settings):
    rng = np.random.default_rng(1)
    x, y = rng.integers(0, 3, (1000, 10)), rng.random((1000, 2))
    plan = plan_of(covariance="blocks", blocks=[0, 3, 4, 10], **settings)
    return make_release(array_source(x, y), plan, bits=RandomBits.seeded(4))


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_a_file_gives_back_the_release(protection):
    release = a_release(protection=protection)
    file = io.BytesIO()
    write_release(release, file)
    again = read_release(file, "it")
    assert again.plan == release.plan
    for name, value in vars(release.blocks).items():
        np.testing.assert_equal(getattr(again.blocks, name), value)
    np.testing.assert_array_equal(again.association, release.association)


@pytest.mark.parametrize(
    ("name", "change"),
    [("variance_bits", -1), ("unit", 2000), ("radius_squared", 2**33), ("starts", 1)],
)
def test_a_file_cannot_claim_less_noise(name, change):
    """Anyone can edit a plan; one whose blocks have too little noise for its guarantee is refused."""
    release = a_release()
    changed = getattr(release.plan.blocks, name).copy()
    changed[-1] += change
    blocks = dataclasses.replace(release.plan.blocks, **{name: changed})
    own = dataclasses.replace(release.blocks, starts=blocks.starts)
    plan = dataclasses.replace(release.plan, blocks=blocks)
    forged = dataclasses.replace(release, plan=plan, blocks=own)
    file = io.BytesIO()
    write_release(forged, file)
    with pytest.raises((PrivacyError, InputError)):
        read_release(file, "it")


def test_blocks_that_a_panel_has_joined_are_not_saved():
    release = a_release()
    joined = dataclasses.replace(release.blocks, starts=np.array([0, 10]))
    with pytest.raises(InputError, match="a panel has supplied"):
        write_release(dataclasses.replace(release, blocks=joined), io.BytesIO())


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
@pytest.mark.parametrize("covariance", ["blocks", "none"])
def test_a_regressor_predicts_with_them(covariance, protection):
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, (20_000, 12))
    y = 0.3 * x[:, 0] - 0.2 * x[:, 7] + rng.normal(size=20_000) * 0.2
    model = primo.PrimoRegressor(
        epsilon=5,
        delta=1e-8,
        protection=protection,
        feature_bounds=(0, 2),
        outcome_bounds=(-2, 2),
        covariance=covariance,
        blocks=[0, 4, 12] if covariance == "blocks" else None,
    ).fit(x, y)
    assert model.coef_[[0, 7]] == pytest.approx([0.3, -0.2], abs=0.05)
    assert np.mean(model.predict(x) - y) == pytest.approx(0, abs=0.05)


def test_a_plan_cannot_hide_its_blocks():
    plan = plan_of(covariance="none")
    for changes in ({"blocks": None}, {"covariance_origin": CovarianceOrigin.ROWS}):
        with pytest.raises(PrivacyError):
            check_plan(dataclasses.replace(plan, **changes))


def test_a_release_of_blocks_is_not_extended():
    with pytest.raises(InputError, match="not extended"):
        primo.planning.make.extension_plan(
            plan_of(covariance="none"),
            l=1,
            epsilon=1.0,
            delta=1e-7,
            outcome_bounds=Bounds(norm=1.0),
        )


def test_what_needs_the_whole_covariance_says_so():
    release = a_release()
    for ask in (release.goodness_of_fit, release.summary):
        with pytest.raises(InputError, match="inside blocks"):
            ask()
    assert "inside 3 public blocks of 1 to 6 features" in " ".join(release.statement().split())
    assert "inside blocks" in " ".join(repr(release).split())
