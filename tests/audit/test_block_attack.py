"""Attacks on blocks of features and on noise on the outcomes: tight, and faults are seen."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from benchmarks.audit import scaled_noise
from primo.audit import Setting, audit_release, canaries_for
from primo.audit.block_attack import BlockAttack
from primo.audit.game import new_bits_from
from primo.audit.norm_attack import attack_on
from primo.audit.perturbed_attack import PERTURBED_ROWS, PerturbedAttack
from primo.errors import InputError
from primo.workflow.pipeline import make_release

OUTCOME_ROWS = {"association": "perturbed", "protection": "outcomes", "n": PERTURBED_ROWS}


def setting(**changes):
    given = {"epsilon": 5.0, "covariance": "blocks", "canaries": 8, "n": 60}
    return Setting(**given | changes)


@pytest.mark.parametrize("covariance", ["blocks", "none"])
@pytest.mark.parametrize("protection", ["both", "features"])
@pytest.mark.parametrize("intercept", [True, False])
def test_opposite_rows_reach_mu_and_rows_that_trade_length_nearly_do(
    covariance, protection, intercept
):
    found = setting(covariance=covariance, protection=protection, intercept=intercept)
    attack = BlockAttack(found)
    total = Fraction(found.plans[0].mu) ** 2
    opposite, traded = attack.distances[:2], attack.distances[2:4]
    assert max(attack.distances) <= total
    assert min(opposite) > Fraction(9999, 10_000) * total
    # ΣC_B(u − u′)² + 2 + 2ρ = 1/6 + 2 + √3 of 4 (docs/guarantee.md, section 1).
    assert [float(d / total) for d in traded] == pytest.approx(
        [(1 / 6 + 2 + 3**0.5) / 4] * 2, rel=1e-3
    )


@pytest.mark.parametrize("covariance", ["blocks", "none"])
def test_opposite_outcomes_lose_what_the_constant_takes(covariance):
    """With s = c²/b_ŷ² the squared distance is 4 − 2s − 2s²; without a constant all of it."""
    for intercept in (True, False):
        found = setting(covariance=covariance, protection="outcomes", intercept=intercept)
        plan = found.plans[0]
        share = plan.constant**2 / (plan.outcomes.norm**2 + plan.constant**2)
        attack = BlockAttack(found)
        expected = (4 - 2 * share - 2 * share**2) / 4
        assert attack.distance**2 / plan.mu**2 == pytest.approx(expected, rel=1e-3)
        assert attack.distance <= plan.mu


@pytest.mark.parametrize("protection", ["both", "features", "outcomes"])
def test_canaries_do_not_see_each_other(protection):
    weights = BlockAttack(setting(protection=protection)).weights.toarray()
    products = weights @ (np.where(weights != 0, 1.0, 0.0)).T
    assert not products[~np.eye(len(products), dtype=bool)].any()  # not one entry in common


@pytest.mark.parametrize("covariance", ["blocks", "none"])
def test_folding_once_gives_the_numbers_of_whole_fits(covariance):
    attack = BlockAttack(setting(covariance=covariance))
    for coin in (False, True):
        quick = attack.release(coin, new_bits_from(3))
        whole = make_release(attack.sources[coin], attack.plan, bits=new_bits_from(3)(), threads=1)
        assert np.array_equal(whole.association, quick.association)
        assert np.array_equal(whole.outcome_moments, quick.outcome_moments)
        assert np.array_equal(whole.blocks.sums, quick.blocks.sums)
        for one, other in zip(whole.blocks.covariance, quick.blocks.covariance, strict=True):
            assert np.array_equal(one, other)


@pytest.mark.parametrize(
    "attacked", [setting(canaries=40), setting(**OUTCOME_ROWS, covariance="full", canaries=40)]
)
def test_scores_are_log_likelihood_ratios(attacked):
    """N(±D/2, D) for each canary's own squared distance D."""
    attack = attack_on(attacked)
    new_bits = new_bits_from(1)
    played = [attack.play(bool(i % 2), new_bits) for i in range(100)]
    scores, truth = (np.stack(column) for column in zip(*played, strict=True))
    squares = np.array([float(d) for d in attack.distances])
    unit = (scores - np.where(truth, 1, -1) * squares / 2) / np.sqrt(squares)
    assert abs(unit.mean()) < 4 / np.sqrt(unit.size)
    assert unit.var() == pytest.approx(1, rel=4 * np.sqrt(2 / unit.size))


def test_rows_of_outcomes_are_mu_apart():
    for epsilon in (0.5, 5.0):
        found = setting(**OUTCOME_ROWS, covariance="full", epsilon=epsilon)
        total = Fraction(found.plans[0].mu) ** 2
        distances = PerturbedAttack(found).distances
        assert max(distances) <= total
        assert min(distances) > Fraction(9999, 10_000) * total


@pytest.mark.parametrize(
    "attacked",
    [
        setting(canaries=40),
        setting(canaries=40, covariance="none"),
        setting(**OUTCOME_ROWS, covariance="full", canaries=100),
    ],
)
def test_most_of_epsilon_is_proved_and_too_little_noise_is_seen(attacked):
    """Seeded, so that it fails for a reason only."""
    found = audit_release(attacked, trials=400, seed=1)
    assert not found.violated
    assert found.ratio > 0.85
    with scaled_noise(0.8):
        assert audit_release(attacked, trials=400, seed=1).violated


def test_half_the_variance_of_a_block_is_seen_in_the_plan():
    """Rows that trade length are beyond mu then: (1/3 + 2 + √3)/4 of it, squared."""
    found = setting()
    (plan,) = found.plans
    halved = dataclasses.replace(plan.blocks, variance_bits=plan.blocks.variance_bits - 1)
    weaker = object.__new__(type(plan))  # no such plan can be made
    vars(weaker).update(vars(plan) | {"blocks": halved})
    vars(found)["plans"] = (weaker,)
    attack = attack_on(found)
    assert attack.distance**2 / plan.mu**2 == pytest.approx((1 / 3 + 2 + 3**0.5) / 4, rel=1e-3)
    assert attack.distance > 1.005 * plan.mu


def test_both_kinds_of_canaries_are_there():
    assert canaries_for(setting(epsilon=20.0), 100_000) == 4
    assert canaries_for(Setting(epsilon=20.0), 100_000) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"rounds": 3},
        {"norms_found": True},
        {"split": 1.0},
        {"association": "perturbed"},
        {"covariance": "panel"},
        {"association": "projection"},
    ],
)
def test_what_is_not_audited_is_refused(other):
    with pytest.raises(InputError, match="not audited"):
        setting(**other)
