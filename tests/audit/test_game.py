"""Statements hold and are nearly reached; faults are seen."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.audit import scaled_noise
from primo.audit import Setting, audit_in_one_run, audit_release, enough_canaries
from primo.errors import InputError

TRIALS = 250


def attacked(setting, trials=TRIALS, seed=1):
    canaries = enough_canaries(setting.plans[0].mu, trials)
    return audit_release(replace(setting, canaries=canaries), trials=trials, seed=seed)


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_the_statement_holds_and_is_nearly_reached(protection):
    found = attacked(Setting(epsilon=5.0, protection=protection))
    assert 0.85 * 5 <= found.lower <= 5
    assert 0.5 < found.lower_raw <= 5
    assert found.lower_mu <= found.stated_mu
    assert found.attainable == pytest.approx(5, rel=1e-3)
    assert found.verdict == "holds"


def test_rows_that_are_too_far_apart_are_enough():
    found = audit_release(Setting(epsilon=5.0), trials=1, seed=1)
    assert not found.violated
    assert replace(found, distance=2**0.5 * found.stated_mu).violated


def test_two_releases_together():
    found = attacked(Setting(epsilon=5.0, split=2.0, extended=True))
    assert found.stated == pytest.approx(7.46, abs=0.01)
    assert found.verdict == "holds"


def test_a_secret_sample():
    found = audit_release(Setting(epsilon=10.0, sampled=0.5), trials=1500, seed=1)
    assert 5 < found.lower <= found.attainable < found.stated


@pytest.mark.parametrize("factor", [0.87, 0.5**0.5])
def test_too_little_noise_is_seen(factor):
    with scaled_noise(factor):
        found = attacked(Setting(epsilon=5.0))
    assert found.violated
    assert found.verdict == "VIOLATED"


def test_too_much_noise_is_seen_as_well():
    with scaled_noise(2**0.5):
        found = attacked(Setting(epsilon=5.0))
    assert found.verdict == "holds, loosely"


def test_the_papers_constants_are_seen():
    """The paper claims ε = 5; its noise gives 6.85, which the release states."""
    paper = Setting(
        epsilon=5.0, calibration="paper", intercept=False, n=5008, delta=1 / 5008**2, claim=5.0
    )
    claimed = attacked(paper)
    assert claimed.verdict == "VIOLATED"
    honest = attacked(replace(paper, claim=None))
    assert honest.stated == pytest.approx(6.85, abs=0.01)
    assert honest.verdict == "holds"


def test_a_seed_repeats_and_fresh_noise_does_not():
    setting = Setting(epsilon=5.0, canaries=50)
    first, again = (audit_release(setting, trials=20, seed=3) for _ in range(2))
    assert first.right == again.right
    assert vars(again) | {"setting": 0} == pytest.approx(vars(first) | {"setting": 0}, rel=1e-6)
    fresh = [audit_release(setting, trials=20).right for _ in range(4)]
    assert len(set(fresh)) > 1


def test_one_run():
    found = audit_in_one_run(epsilon=10.0, n=2000, d=10, l=200, seed=2)
    assert found.canaries == 1000
    assert 0 < found.lower_any < found.lower <= 10
    assert not found.violated
    with scaled_noise(0.5):
        assert audit_in_one_run(epsilon=10.0, n=2000, d=10, l=200, seed=2).violated


def test_canaries_are_as_many_as_needed():
    assert enough_canaries(1.0, 20_000) == 1
    assert enough_canaries(1.0, 3000) == 4
    assert enough_canaries(1.0, 4500) == 4
    assert enough_canaries(0.1, 10) == 100


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"canaries": 3}, "canaries=3 must be 1 or an even number"),
        ({"canaries": 100, "n": 50}, "must not exceed the 50 rows"),
        ({"sampled": 1.5}, "sampled=1.5 must be a share"),
        ({"extended": True, "reference": True}, "leave one of the two out"),
    ],
)
def test_what_cannot_be_attacked_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        Setting(epsilon=5.0, **wrong)


def test_bad_numbers_are_refused():
    with pytest.raises(InputError, match="trials=0"):
        audit_release(Setting(epsilon=5.0), trials=0)
    with pytest.raises(InputError, match="do not fit 2·3 entries"):
        audit_in_one_run(epsilon=1.0, n=100, d=2, l=3)


def test_all_numbers_are_plain():
    found = audit_release(Setting(epsilon=5.0, canaries=2), trials=5, seed=1).to_dict()
    assert all(type(value) in (int, float, str) for value in found.values()), found
    assert not any(isinstance(value, np.generic) for value in found.values())
