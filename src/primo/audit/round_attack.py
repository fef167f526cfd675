"""The attack on a release of several rounds: every round is seen, and all are tested together.

What a round looks at depends on the noise of the rounds before it, so every game plays the real loop:
release, take the real step, fold the real residuals. Given the earlier rounds, a round is an attack like
any other, and the log-likelihood ratios of all rounds add up.

Every canary has an outcome of its own, far longer than any clip: whatever the coefficients are, its
residual is the clip long, and opposite to that of its replacement. The features are the same in both
rows, at the bound: at the split ratio 2, no pair is further apart (mathematics.md section 2). So
canaries can share their features. Under `features` a canary keeps its outcome and its features turn
round: at the split ratio 2 that pair is as far apart. The constant does not turn round, so that there
are many features with an intercept, beside which it is short. By how much the moments of a round
differ is read off the two data sets that the real program folded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from primo.audit.laws import OfGaussians
from primo.audit.numbers import Vector
from primo.audit.settings import Rows, Setting, as_source
from primo.planning.plan import Plan
from primo.planning.residuals import ResidualGrid
from primo.privacy.protection import Protection
from primo.released.rounds import ReleasedRound
from primo.rows.moments import Moments, fold
from primo.wall import mechanism
from primo.wall.noise import RandomBits
from primo.workflow.rounds import plan_of_step, step_of

__all__ = ["ROUND_ROWS", "RoundAttack"]

Flags = NDArray[np.bool_]
NewBits = Callable[[], RandomBits]

#: Length of a canary's outcome over the outcomes' norm: so long that no prediction turns its residual.
_FAR = 1e12

#: Rows of the data set: room for all canaries; every game folds them in every round.
ROUND_ROWS = 120


class RoundAttack(OfGaussians):
    """All canaries at once in a release of several rounds."""

    def __init__(self, setting: Setting) -> None:
        (self.plan,) = setting.plans
        self.there = np.arange(setting.canaries) % 2 == 0
        rng = np.random.default_rng(0)
        canaries = far_canaries(self.plan, setting.canaries)
        others = tuple(
            rng.normal(size=(self.plan.n - setting.canaries, width))
            for width in (self.plan.d, self.plan.l)
        )
        self._sources = tuple(
            as_source(
                *(
                    np.vstack([np.where(there[:, None], a, b), rest])
                    for a, b, rest in zip(*canaries, others, strict=True)
                )
            )
            for there in (self.there, ~self.there)
        )
        first = plan_of_step(self.plan, 0, None)
        self._first = tuple(fold(source, first, threads=1) for source in self._sources)
        squares = self._run(False, RandomBits.seeded(0))[1]
        self.distances = tuple(squares)

    def play(self, coin: bool, new_bits: NewBits) -> tuple[Vector, Flags]:
        """Release once; return the score of each canary (above 0: "there"), and the truth."""
        return self._run(coin, new_bits())[0], self.there ^ coin

    def _run(self, coin: bool, bits: RandomBits) -> tuple[Vector, list[Fraction]]:
        """Release all rounds; return scores, and squared distances of each canary's neighbours."""
        scores = np.zeros(len(self.there))
        squares = [Fraction(0)] * len(self.there)
        released: list[ReleasedRound] = []
        for number in range(self.plan.round_count):
            step = step_of(self.plan, released) if number else None
            own, folded = self._folded(number, step)
            found = mechanism.release_round(
                folded[coin], own, number=number, residuals=step, bits=bits
            )
            released.append(found)
            moved = _columns(own, folded)
            variance = 2**own.grid.association_variance_bits
            middle = (folded[0].association + folded[1].association) / 2
            noisy = found.association / (own.feature_step * own.outcome_step) - middle
            for j in range(len(self.there)):
                sign = 1 if self.there[j] else -1
                scores[j] += sign * float(moved[:, j] @ (noisy[:, j] / variance))
                length = sum(int(value) ** 2 for value in moved[:, j])
                squares[j] += Fraction(length, variance)
        return scores, squares

    def _folded(self, number: int, step: ResidualGrid | None) -> tuple[Plan, Sequence[Moments]]:
        """Fold both data sets of a round; the first round is the same in every game."""
        own = plan_of_step(self.plan, number, step)
        if step is None:
            return own, self._first
        folding = partial(fold, residuals=step)
        return own, tuple(folding(source, own, threads=1) for source in self._sources)


def far_canaries(plan: Plan, canaries: int) -> tuple[Rows, Rows]:
    """Return canaries at the features' bound with outcomes of their own, and their replacements.

    Half of the canaries are there, and half of the replacements: features that turn round have the same
    sum in both data sets.
    """
    x = np.zeros((canaries, plan.d))
    x[:, 0] = plan.features.norm
    y = np.zeros((canaries, plan.l))
    y[np.arange(canaries), np.arange(canaries)] = _FAR * plan.outcomes.norm
    return (x, y), ((-x, y) if plan.protection is Protection.FEATURES else (x, -y))


def _columns(plan: Plan, folded: Sequence[Moments]) -> NDArray[np.int64]:
    """Return by how much the association differs; what is not moved must not be.

    Opposite residuals have the same squares, and the same or opposite features the same covariance: then
    all that tells a canary is its own column.
    """
    one, other = folded
    if (one.covariance != other.covariance).any() or (one.outcome != other.outcome).any():
        raise AssertionError("canaries move more than their own outcomes")
    return one.association - other.association
