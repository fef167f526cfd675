"""Audits with enough trials for every ε, and the law of 10⁸ draws."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.noise_law import LEVEL, count_draws
from primo.audit import Setting, audit_release, enough_canaries

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize(
    ("epsilon", "trials"), [(0.5, 8000), (1.0, 2500), (2.0, 1000), (5.0, 1000), (10.0, 1000)]
)
def test_every_epsilon_holds_and_is_nearly_reached(epsilon, trials):
    setting = Setting(epsilon=epsilon)
    setting = replace(setting, canaries=enough_canaries(setting.plans[0].mu, trials))
    found = audit_release(setting, trials=trials, seed=5)
    assert 0.85 * epsilon <= found.lower <= epsilon
    assert found.lower_raw <= epsilon


def test_one_pair_thousands_of_releases():
    """The literal game: nothing but two neighbours and a coin."""
    found = audit_release(Setting(epsilon=5.0, canaries=1), trials=12_000, seed=6)
    assert found.guesses == found.releases == 12_000
    assert found.verdict == "holds"


@pytest.mark.parametrize("variance_bits", [8, 80])
def test_a_hundred_million_draws(variance_bits):
    counted = count_draws(10**8, variance_bits=variance_bits, seed=7)
    assert counted.draws == 10**8
    assert counted.right
    assert counted.p_value() > LEVEL
    for scale in (0.87, 0.997, 1.003, 1.15):
        assert counted.p_value(scale) < 1e-6
    for key in counted.beyond:
        assert counted.tail(*key)[2], key
