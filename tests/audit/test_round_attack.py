"""The attack on several rounds: neighbours are mu apart over all rounds, and faults are seen."""

import dataclasses
import functools
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest

from primo.audit import Setting, audit_release
from primo.audit.norm_attack import attack_on
from primo.audit.round_attack import ROUND_ROWS, RoundAttack
from primo.errors import InputError
from primo.wall import mechanism
from primo.wall.noise import RandomBits


def setting(**changes):
    given = {"epsilon": 5.0, "rounds": 3, "canaries": 10, "n": ROUND_ROWS}
    return Setting(**given | changes)


@pytest.mark.parametrize("epsilon", [0.5, 10.0])
@pytest.mark.parametrize("protection", ["both", "outcomes", "features"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("rounds", [3, 6])  # equal shares, and a larger one of the first
def test_neighbours_are_mu_apart_over_all_rounds(epsilon, protection, intercept, rounds):
    found = setting(epsilon=epsilon, protection=protection, intercept=intercept, rounds=rounds)
    attack = attack_on(found)
    assert isinstance(attack, RoundAttack)
    plan = found.plans[0]
    mu, share = Fraction(plan.mu), 1.0
    if protection == "features":  # all of a row but the constant turns round
        share = (plan.features.norm / plan.feature_norm) ** 2
        assert share == pytest.approx(16 / 17 if intercept else 1)
    # Two-sided: all rounds count, and none counts too much.
    for squared in attack.distances:
        assert (1 - Fraction(1, 10**4)) * mu**2 * Fraction(share) < squared <= mu**2


def test_under_features_pairs_of_canaries_are_needed():
    """Features that turn round alone would move the covariance, too."""
    with pytest.raises(InputError, match="even number for several rounds with public outcomes"):
        setting(canaries=1, protection="features")


def test_every_game_is_as_hard_though_each_takes_other_steps():
    attack = attack_on(setting(canaries=2))
    games = [attack._run(False, RandomBits.seeded(seed)) for seed in range(4)]
    assert len({float(scores[0]) for scores, _ in games}) == 4
    for _, squares in games:
        assert squares == pytest.approx(list(attack.distances), rel=1e-4)


@functools.cache
def honest(protection="both"):
    """Seeded, so that a test fails for a reason only."""
    return audit_release(
        setting(canaries=100, protection=protection, intercept=protection == "both"),
        trials=150,
        seed=1,
    )


@pytest.mark.parametrize("protection", ["both", "features"])
def test_it_proves_most_of_epsilon_and_refutes_nothing(protection):
    found = honest(protection)
    assert not found.violated
    assert found.ratio > 0.85
    assert found.setting.startswith(protection)
    assert found.setting.endswith("3 rounds")


def test_too_little_noise_in_one_round_is_seen():
    """Only the second of three rounds has half of its scale."""
    original = mechanism.add_noise

    def add_noise(values, *, label, **options):
        noise = np.zeros_like(values)
        original(noise, label=label, **options)
        values += noise // 2 if label.startswith("round 2") else noise

    with mock.patch.object(mechanism, "add_noise", add_noise):
        found = audit_release(setting(canaries=100), trials=150, seed=1)
    assert found.lower_mu > honest().lower_mu * 1.05


def test_a_round_that_was_not_charged_is_seen():
    """A plan with a round more than it states: the neighbours are further apart than mu."""
    found = setting()
    (plan,) = found.plans
    grids = plan.rounds.grids
    rounds = dataclasses.replace(plan.rounds, grids=(*grids, grids[-1]))
    vars(found)["plans"] = (dataclasses.replace(plan, rounds=rounds),)
    attack = attack_on(found)
    assert attack.distance > 1.1 * plan.mu


@pytest.mark.parametrize("other", [{"norms_found": True}, {"reference": True}, {"extended": True}])
def test_rounds_are_attacked_on_their_own(other):
    with pytest.raises(InputError, match="are not audited together"):
        setting(**other)
