"""Norms follow from released counts alone; a run that is killed between the stages finds the same."""

from dataclasses import replace

import numpy as np
import pytest

import primo
from factories import array_source
from primo.errors import PrivacyError
from primo.planning.settings import Settings
from primo.privacy import values
from primo.privacy.lengths import BINS
from primo.released.found_norms import settled_plan
from primo.released.moments import ReleasedLengths
from primo.report.norms import norms_section
from primo.wall.noise import RandomBits
from primo.workflow.fit import prepare, release_rows
from primo.workflow.publish import begin, publish
from primo.workflow.resume import Staging
from replay import recording

AUTO = primo.Bounds(norm="auto")

#: Bounds with which columns are counted, rows summed, and rows cut to ranges summed.
LIMITS = {
    name: {"feature_bounds": limits, "outcome_bounds": limits}
    for name, limits in {
        "nothing stated": AUTO,
        "stated scales": primo.Bounds(centre=0, norm="auto"),
        "ranges": primo.Bounds(lower=-1e5, upper=1e5, norm="auto"),
    }.items()
}


def rows(scale=1.0, n=3000):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, 3))
    return scale * x, scale * (x @ rng.normal(size=(3, 2)) + rng.normal(size=(n, 2)))


def model(**changes):
    return primo.PrimoRegressor(
        **{"epsilon": 3, "delta": 1e-8, "feature_bounds": AUTO, "outcome_bounds": AUTO} | changes
    )


def test_norms_follow_from_released_counts_alone():
    """With the same numbers released, rows a thousand times as long have the same bounds."""
    for limits in LIMITS.values():
        found = []
        for scale in (1.0, 1000.0):
            with recording():
                plan = model(**limits).fit(*rows(scale)).release_.plan
            clips = (plan.features, plan.outcomes)
            found.append([(c.norm, c.centre, c.scale, c.middle) for c in clips])
        np.testing.assert_equal(found[0], found[1])
        if plan.centred:
            assert plan.features.centre.any()


STAGES = {
    "nothing stated": {"columns", "lengths"},
    "stated scales": {"first lengths", "sums", "lengths"},
    "ranges": {"first lengths", "sums", "lengths"},
}


@pytest.mark.parametrize("name", LIMITS)
def test_every_stage_has_noise_of_its_own(name):
    with recording() as calls:
        model(**LIMITS[name]).fit(*rows())
    wanted = {f"{stage} of {block}" for stage in STAGES[name] for block in ("features", "outcomes")}
    drawn = {call.label: call for call in calls if " of " in call.label}
    assert set(drawn) == wanted
    for call in drawn.values():
        assert call.noise.all()
        spread = np.sqrt(np.mean(call.noise.astype(float) ** 2)) / 2 ** (call.variance_bits / 2)
        # Fresh noise: beyond these with a probability far below 1e-9 for 640 and more numbers.
        assert call.noise.size < 100 or 0.7 < spread < 1.4


def test_norms_follow_the_rows_through_the_counts():
    short, long = (
        model(**LIMITS["stated scales"]).fit(*rows(scale)).release_.plan for scale in (1.0, 1000.0)
    )
    for block in ("features", "outcomes"):
        ratio = getattr(long, block).norm / getattr(short, block).norm
        assert 500 < ratio < 2000


def test_scales_follow_the_rows_through_the_counts():
    short, long = (model().fit(*rows(scale)).release_.plan for scale in (1.0, 1000.0))
    for block in ("features", "outcomes"):
        ratio = getattr(long, block).scale / getattr(short, block).scale
        assert ((ratio > 500) & (ratio < 2000)).all()


def staged(out, data, limits=LIMITS["nothing stated"]):
    """Begin, and release with the sealed bits of the staging folder."""
    source = array_source(*data)
    settings = Settings(epsilon=3, delta=1e-8, **limits)
    ready = prepare(source, settings)
    resumed = out.with_name(f".{out.name}.primo-partial").exists()
    begin = (
        Staging.resume(out)
        if resumed
        else Staging.begin(out, config="", plan=ready.plan, charge={})
    )
    with begin as staging:
        return release_rows(source, ready, bits=staging.bits())


class KilledError(Exception):
    pass


def test_killed_between_the_stages_the_same_noise_is_drawn(tmp_path, monkeypatch):
    def kill(*args, **options):
        raise KilledError

    with monkeypatch.context() as broken:
        broken.setattr("primo.workflow.stages.settled_plan", kill)
        with pytest.raises(KilledError):
            staged(tmp_path / "out", rows())
    assert (tmp_path / ".out.primo-partial" / "drawn-lengths").exists()
    assert not (tmp_path / ".out.primo-partial" / "drawn").exists()
    first, second = (staged(tmp_path / "out", rows()) for _ in range(2))
    np.testing.assert_array_equal(first.lengths.features, second.lengths.features)
    np.testing.assert_array_equal(first.association, second.association)


@pytest.mark.parametrize("stage", ["plan_with_columns", "plan_for_sums", "centred_plan"])
def test_killed_after_an_earlier_stage_the_same_noise_is_drawn(tmp_path, monkeypatch, stage):
    limits = LIMITS["nothing stated" if stage == "plan_with_columns" else "ranges"]
    released = []

    def kill(plan, found):
        released.append(found)
        raise KilledError

    for _ in range(2):
        with monkeypatch.context() as broken:
            broken.setattr(f"primo.workflow.stages.{stage}", kill)
            with pytest.raises(KilledError):
                staged(tmp_path / "out", rows(), limits)
    for block in ("features", "outcomes"):
        np.testing.assert_array_equal(*(getattr(found, block) for found in released))
    with pytest.raises(PrivacyError, match="drawn before"):
        staged(tmp_path / "out", rows(2.0), limits)
    first, second = (staged(tmp_path / "out", rows(), limits) for _ in range(2))
    np.testing.assert_array_equal(first.association, second.association)


def test_and_no_noise_for_other_rows(tmp_path, monkeypatch):
    def kill(*args, **options):
        raise KilledError

    with monkeypatch.context() as broken:
        broken.setattr("primo.workflow.stages.settled_plan", kill)
        with pytest.raises(KilledError):
            staged(tmp_path / "out", rows())
    with pytest.raises(PrivacyError, match="drawn before"):
        staged(tmp_path / "out", rows(2.0))


def test_a_run_without_a_ledger_that_is_killed_between_the_stages_can_be_resumed(
    tmp_path, monkeypatch
):
    """Noise of the first stage was drawn: the folder with its secret must stay."""
    source = array_source(*rows())
    settings = Settings(epsilon=3, delta=1e-8, feature_bounds=AUTO, outcome_bounds=AUTO)
    ready = prepare(source, settings)
    out = tmp_path / "out"

    def kill(*args, **options):
        raise KilledError

    with monkeypatch.context() as broken:
        broken.setattr("primo.workflow.stages.settled_plan", kill)
        with pytest.raises(KilledError):
            publish(begin(out, ready, config="", account=None), source, ready)
    assert (tmp_path / ".out.primo-partial" / "secret").exists()
    assert publish(Staging.resume(out), source, ready).release.lengths is not None


def test_a_stage_is_bound_once():
    bits = RandomBits.sealed(bytes(range(32)))
    bits.bound(b"one", stage="lengths")
    with pytest.raises(PrivacyError, match="bound to a release already"):
        bits.bound(b"two", stage="lengths")
    bits.bound(b"three")
    with pytest.raises(PrivacyError, match="bound to a release already"):
        bits.bound(b"four", stage="another")


def test_a_reference_panel_follows_the_norm_that_is_found():
    """The constant of the panel's covariance is that of the plan, whatever norm was found."""
    rng = np.random.default_rng(5)
    x = rng.normal(50, 3, size=(6000, 3))
    y = 3 + (x - 50) @ np.array([1.0, -1.0, 0.5]) + rng.normal(size=6000)
    panel = rng.normal(50, 3, size=(2000, 3))
    limits = {"centre": 50, "scale": 3, "norm": "auto"}
    fitted = model(
        feature_bounds=primo.Bounds(**limits),
        outcome_bounds=primo.Bounds(centre=3, scale=5, norm="auto"),
        public_covariance=np.cov(panel.T),
        public_mean=panel.mean(axis=0),
    ).fit(x, y)
    release = fitted.release_
    constant = release.plan.n * release.plan.constant**2
    assert release.covariance[-1, -1] == pytest.approx(constant)
    left = y - fitted.predict(x)
    assert 1 - left.var() / y.var() > 0.9


def test_a_norm_that_nothing_tells_is_rough_and_said_to_be():
    """Few rows in every bin tell nothing: features are hardly shortened, outcomes to little."""
    release = model(epsilon=1.7, **LIMITS["stated scales"]).fit(*rows()).release_
    counts = np.zeros(BINS)
    counts[100:400] = 10.0
    lengths = ReleasedLengths(features=counts, outcomes=counts)
    planned = replace(release.plan, features=replace(release.plan.features, norm=1.0))
    settled = settled_plan(planned, lengths)
    assert settled.features.norm > 1e3 * settled.outcomes.norm
    said = replace(release, plan=settled, lengths=lengths).statement()
    assert "told no norm" in " ".join(said.split())


def test_histograms_of_columns_are_part_of_the_release(tmp_path):
    """They are written, read, shown in the report, and refused where they do not fit the plan."""
    release = model().fit(*rows()).release_
    counted = release.lengths.columns
    assert counted.features.shape == (3, values.BINS)
    assert counted.outcomes.shape == (2, values.BINS)
    path = tmp_path / "release.npz"
    primo.save_release(release, path)
    again = primo.load_release(path)
    np.testing.assert_array_equal(again.lengths.columns.features, counted.features)
    np.testing.assert_array_equal(again.lengths.columns.outcomes, counted.outcomes)
    page = str(norms_section(again))
    for name in (*release.feature_names, *release.outcome_names):
        assert f"Histogram of the values of {name}" in page
    with np.load(path) as stored:
        arrays = dict(stored)
    for damage in ({"features_values": counted.features[:2]}, {"features_values": None}):
        changed = {k: v for k, v in (arrays | damage).items() if v is not None}
        np.savez(path, **changed)
        with pytest.raises(primo.InputError):
            primo.load_release(path)


def test_a_release_without_columns_has_no_histograms_of_them():
    release = model(**LIMITS["ranges"]).fit(*rows()).release_
    assert release.lengths.columns is None
    assert "Histogram of the values" not in str(norms_section(release))
