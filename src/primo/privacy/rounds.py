"""Several rounds under one budget: what each may spend, fixed in advance as exact fractions.

A round is one joint release of covariance, association and outcome moments, in which residuals stand for
the outcomes (mathematics.md section 12). Gaussian releases compose adaptively: what a round looks at may
depend on everything released before it, what it spends may not. So every round has a grid of its own
before the first row is read, and the squared costs of all grids add up to at most mu².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from primo.privacy.grid import Grid, joint_grid
from primo.privacy.sensitivity import joint_distance

__all__ = [
    "FIRST_SHARE",
    "LARGEST_CLIP_RATIO",
    "MOST_ROUNDS",
    "SMALL_STEP_ROUNDS",
    "Rounds",
    "make_rounds",
    "round_shares",
    "round_spent",
]

#: More rounds are refused: each costs a pass over the rows, and its numbers are all kept.
MOST_ROUNDS = 256

#: From so many rounds on, rounds may take small steps (`released.estimate.rounds.schedule`).
SMALL_STEP_ROUNDS = 12

#: Of mu², that the first round gets where outcomes are private and have an intercept. It alone sees all
#: of how long outcomes are, and the spread about their means is a small part of that.
FIRST_SHARE = 1 / 3

#: The outcomes' norm over the clip of a round, at most: predictions that are exact in steps of a
#: smaller clip could not be as long as outcomes (`planning.residuals`).
LARGEST_CLIP_RATIO = 4096.0


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """The noise of every round, in the order in which they are drawn."""

    grids: tuple[Grid, ...]

    @property
    def count(self) -> int:
        """Number of rounds."""
        return len(self.grids)

    def spent(self, *, covariance_noisy: bool) -> Fraction:
        """Squared mu of all rounds together, exactly."""
        return sum(
            (round_spent(grid, covariance_noisy=covariance_noisy) for grid in self.grids),
            Fraction(0),
        )


def round_spent(grid: Grid, *, covariance_noisy: bool) -> Fraction:
    """Squared mu of one round, exactly."""
    return joint_distance(grid.p if covariance_noisy else 0 * grid.p, grid.q, grid.s)


def round_shares(count: int, *, first: float = 0.0) -> tuple[float, ...]:
    """Return the shares of mu² of the rounds; they add up to 1.

    The first round has the share `first`, and no less than any other; the others have equal shares.
    """
    if count == 1:
        return (1.0,)
    first = max(first, 1 / count)
    return (first, *[(1 - first) / (count - 1)] * (count - 1))


def make_rounds(*, mu: float, split: float, n: int, shares: Sequence[float]) -> Rounds:
    """Choose a grid for each round; together they spend at most mu.

    Guarantee: ``rounds.spent(covariance_noisy=True) <= mu**2`` as exact fractions; the cost where the
    features are public is no larger.
    """
    grids = tuple(
        joint_grid(mu=mu * math.sqrt(share) * (1 - 1e-12), split=split, n=n) for share in shares
    )
    rounds = Rounds(grids=grids)
    if rounds.spent(covariance_noisy=True) > Fraction(mu) ** 2:
        raise AssertionError(f"{rounds} exceeds mu={mu!r}")  # a bug, never the user's fault
    return rounds
