"""Play the game many times and say what the right guesses prove."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.audit.attack import Attack
from primo.audit.evidence import at_least, best_threshold, epsilon_at_least, mu_at_least
from primo.audit.norm_attack import attack_on
from primo.audit.numbers import Vector
from primo.audit.settings import Setting
from primo.errors import Argument, InputError
from primo.wall.noise import RandomBits

__all__ = [
    "CONFIDENCE",
    "REACHED",
    "Audit",
    "audit_release",
    "canaries_for",
    "enough_canaries",
    "new_bits_from",
]

#: Confidence of every lower bound.
CONFIDENCE = 0.999

#: An audit that proves less than this share of the stated ε could miss a factor √2.
REACHED = 0.85

#: A release with more canaries is large and slow.
MOST_CANARIES = 100


@dataclass(frozen=True, kw_only=True)
class Audit:
    """What an attack proves about one setting, at the stated confidence.

    `lower` and `lower_mu` come from how often the guesses are right, and `lower` rests on the law of
    the noise being Gaussian (`primo.audit.evidence`); `lower_raw` comes from the rates of alarm alone.
    """

    setting: str
    stated: float  # ε under test: the one that the release states, or `Setting.claim`
    delta: float
    stated_mu: float
    distance: float  # of the neighbours, in noise scales: at most stated_mu, or the plan is wrong
    releases: int
    guesses: int
    right: int
    confidence: float
    attainable: float  # ε at delta that endless trials would prove on these neighbours
    lower_mu: float
    lower: float  # ε at delta
    lower_raw: float  # ε at delta

    @property
    def ratio(self) -> float:
        """The share of the stated ε that the attack proves."""
        return self.lower / self.stated

    @property
    def violated(self) -> bool:
        """Whether the stated ε is refuted: by guesses, or by rows that are further apart than mu."""
        refuted = max(self.lower, self.lower_raw) > self.stated
        return refuted or self.distance > self.stated_mu * (1 + 1e-9)

    @property
    def verdict(self) -> str:
        """The verdict in the table."""
        if self.violated:
            return "VIOLATED"
        return "holds" if self.ratio >= REACHED else "holds, loosely"

    def to_dict(self) -> dict[str, Any]:
        """Return all numbers, the ratio and the verdict."""
        return {**asdict(self), "ratio": self.ratio, "verdict": self.verdict}


def audit_release(
    setting: Setting,
    *,
    trials: int = 4000,
    confidence: float = CONFIDENCE,
    seed: int | None = None,
) -> Audit:
    """Attack the real program on the worst neighbours of a setting; return a lower bound on its ε.

    Parameters
    ----------
    setting
        What is attacked. No data is read: the rows are made up.
    trials
        Number of releases. Each gives `setting.canaries` guesses (`enough_canaries`).
    confidence
        Confidence of each lower bound.
    seed
        For tests: coins and noise are drawn from it. If None, they are fresh.

    Notes
    -----
    Guarantee: if the statement is true, `violated` is False with probability 2·confidence - 1 at
    least. Nothing is chosen after the results are seen: a guess is "present" where the likelihood ratio
    of the claimed noise is above 1, and the threshold of `lower_raw` is fixed by the plan.
    Cost: one release per trial, about a millisecond.
    """
    if trials < 1 or not 0.5 < confidence < 1:
        raise InputError(
            Argument("trials", trials),
            " must be positive, ",
            Argument("confidence", confidence),
            " in (0.5, 1)",
        )
    attack = attack_on(setting)
    coins = np.random.default_rng(seed).integers(2, size=trials, dtype=np.int8)
    new_bits = new_bits_from(seed)
    played = [attack.play(bool(coin), new_bits) for coin in coins]
    scores, truth = (np.concatenate(column) for column in zip(*played, strict=True))
    return _judge(setting, attack, scores, truth, releases=trials, confidence=confidence)


def enough_canaries(mu: float, trials: int) -> int:
    """Return how many canaries a release needs for 85 % of ε to be proved, almost surely.

    For a small mu, n guesses bound it to within 2·3.09·√(π/2)/√n at 99.9 %, and 14 % of mu may be lost:
    3000/mu² guesses are enough on average; four times as many leave a margin of three standard errors.
    """
    needed = 12_000 / mu**2 / trials
    return 1 if needed <= 1 else min(2 * math.ceil(needed / 2), MOST_CANARIES)


def canaries_for(setting: Setting, trials: int) -> int:
    """Return how many canaries a release of this setting needs: of both kinds for blocks."""
    needed = enough_canaries(setting.plans[0].mu, trials)
    return needed if setting.covariance == "full" else 4 * math.ceil(needed / 4)


def new_bits_from(seed: int | None) -> Callable[[], RandomBits]:
    """Return a source of bits for one release after another: fresh, or from a seed."""
    if seed is None:
        return RandomBits.fresh
    seeds = count(seed << 40)
    return lambda: RandomBits.seeded(next(seeds))


def _judge(
    setting: Setting,
    attack: Attack,
    scores: Vector,
    truth: NDArray[np.bool_],
    *,
    releases: int,
    confidence: float,
) -> Audit:
    """Turn scores into bounds."""
    guesses, right = len(scores), int(((scores > 0) == truth).sum())
    threshold = best_threshold(
        attack.law.rates, trials=guesses, delta=setting.delta, confidence=confidence
    )
    alarm = scores > threshold
    return Audit(
        setting=setting.name,
        stated=setting.stated,
        delta=setting.delta,
        stated_mu=setting.plans[-1].total_mu,
        distance=attack.distance,
        releases=releases,
        guesses=guesses,
        right=right,
        confidence=confidence,
        attainable=_attainable(attack, setting.delta),
        lower_mu=mu_at_least(right, guesses, confidence),
        lower=attack.law.epsilon(at_least(right, guesses, confidence), setting.delta),
        lower_raw=epsilon_at_least(
            false_alarms=int(alarm[~truth].sum()),
            replaced=int((~truth).sum()),
            alarms=int(alarm[truth].sum()),
            present=int(truth.sum()),
            delta=setting.delta,
            confidence=confidence,
        ),
    )


def _attainable(attack: Attack, delta: float) -> float:
    false, hit = attack.law.rates(0.0)
    return attack.law.epsilon((1 - false + hit) / 2, delta)
