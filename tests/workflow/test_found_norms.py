"""Norms follow from released counts alone; a run that is killed between the stages finds the same."""

import numpy as np
import pytest

import primo
from factories import array_source
from primo.errors import PrivacyError
from primo.planning.settings import Settings
from primo.workflow.fit import prepare, release_rows
from primo.workflow.resume import Staging
from replay import recording

AUTO = primo.Bounds(norm="auto")


def rows(scale=1.0, n=3000):
    rng = np.random.default_rng(2)
    x = rng.normal(size=(n, 3))
    return scale * x, scale * (x @ rng.normal(size=(3, 2)) + rng.normal(size=(n, 2)))


def model(**changes):
    return primo.PrimoRegressor(
        **{"epsilon": 3, "delta": 1e-8, "feature_bounds": AUTO, "outcome_bounds": AUTO} | changes
    )


def test_norms_follow_from_released_counts_alone():
    """With the same counts released, rows a thousand times as long have the same norms."""
    norms = []
    for scale in (1.0, 1000.0):
        with recording():
            plan = model().fit(*rows(scale)).release_.plan
        norms.append((plan.features.norm, plan.outcomes.norm))
    assert norms[0] == norms[1]


def test_norms_follow_the_rows_through_the_counts():
    short, long = (model().fit(*rows(scale)).release_.plan for scale in (1.0, 1000.0))
    for block in ("features", "outcomes"):
        ratio = getattr(long, block).norm / getattr(short, block).norm
        assert 500 < ratio < 2000


def staged(out, data):
    """Begin, and release with the sealed bits of the staging folder."""
    source = array_source(*data)
    settings = Settings(epsilon=3, delta=1e-8, feature_bounds=AUTO, outcome_bounds=AUTO)
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
        broken.setattr("primo.workflow.pipeline.settled_plan", kill)
        with pytest.raises(KilledError):
            staged(tmp_path / "out", rows())
    assert (tmp_path / ".out.primo-partial" / "drawn-lengths").exists()
    assert not (tmp_path / ".out.primo-partial" / "drawn").exists()
    first, second = (staged(tmp_path / "out", rows()) for _ in range(2))
    np.testing.assert_array_equal(first.lengths.features, second.lengths.features)
    np.testing.assert_array_equal(first.association, second.association)


def test_and_no_noise_for_other_rows(tmp_path, monkeypatch):
    def kill(*args, **options):
        raise KilledError

    with monkeypatch.context() as broken:
        broken.setattr("primo.workflow.pipeline.settled_plan", kill)
        with pytest.raises(KilledError):
            staged(tmp_path / "out", rows())
    with pytest.raises(PrivacyError, match="drawn before"):
        staged(tmp_path / "out", rows(2.0))
