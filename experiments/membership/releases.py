"""Attacks on primo's releases, with all that is published: noisy moments and their noise scales.

In units of its noise a release is M + N, with M the sum of Φ(x, y) = (xxᵀ/σ₁, xyᵀ/σ₂, yyᵀ/σ₃) over
members and N standard normal. Φ has d·l coordinates and more, but every attack needs inner products
only, and those of two people have a closed form (`View.products`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from experiments.membership.people import People, Split
from primo.planning.make import make_plan
from primo.planning.plan import Plan
from primo.planning.settings import Settings
from primo.released.release import Release
from primo.rows.moments import fold
from primo.rows.quantise import feature_quantiser, outcome_quantiser
from primo.rows.sources.arrays.memory import ArraySource
from primo.wall.noise import RandomBits
from primo.workflow.pipeline import make_release

__all__ = [
    "Published",
    "View",
    "exact_sums",
    "knowing_everybody_else",
    "knowing_panel",
    "plan_for",
    "publish",
]

Matrix = NDArray[np.float64]


def plan_for(study: Split, epsilon: float) -> Plan:
    """Plan a release of the members under full protection, δ = 1/n², bounds from the panel."""
    n, d = study.members.features.shape
    features, outcomes = study.bounds()
    return make_plan(
        Settings(epsilon=epsilon, delta=1 / n**2, feature_bounds=features, outcome_bounds=outcomes),
        n=n,
        d=d,
        l=study.members.outcomes.shape[1],
    )


@dataclass(frozen=True, kw_only=True)
class Published:
    """Moments in scaled units: released ones, or exact sums over rows that the attacker knows."""

    covariance: Matrix  # (width, width)
    association: Matrix  # (width, l)
    outcome: Matrix  # (l, l), or (l,) its diagonal

    @classmethod
    def of(cls, release: Release) -> Self:
        """Return what a release shows."""
        return cls(
            covariance=release.covariance,
            association=release.association,
            outcome=release.outcome_moments,
        )

    def minus(self, other: Published) -> Published:
        """Subtract moments that are known."""
        return Published(
            covariance=self.covariance - other.covariance,
            association=self.association - other.association,
            outcome=self.outcome - other.outcome,
        )


def publish(members: People, plan: Plan, seed: int) -> Release:
    """Make a release with primo itself; reproducible, so for experiments only."""
    return make_release(_source(members), plan, bits=RandomBits.seeded(seed), threads=1)


def exact_sums(people: People, plan: Plan) -> Published:
    """Return exact moments of people, as an attacker who knows their rows computes them."""
    moments = fold(_source(people), plan, threads=1)
    return Published(
        covariance=moments.covariance.astype(np.float64) * plan.feature_step**2,
        association=moments.association.astype(np.float64)
        * (plan.feature_step * plan.outcome_step),
        outcome=moments.outcome.astype(np.float64) * plan.outcome_step**2,
    )


def _source(people: People) -> ArraySource:
    return ArraySource(
        features=people.features,
        outcomes=people.outcomes,
        feature_names=tuple(f"x{i}" for i in range(people.features.shape[1])),
        outcome_names=tuple(f"y{i}" for i in range(people.outcomes.shape[1])),
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """People as the release counts them, clipped and rounded, with the inner products of Φ.

    Without outcomes only the covariance is looked at, the one block that genotypes alone add to.
    """

    plan: Plan
    x: Matrix  # (rows, width) in scaled units, the constant last
    y: Matrix | None  # (rows, l)

    @classmethod
    def of(cls, people: People, plan: Plan, *, outcomes: bool = True) -> Self:
        """Clip and round people as `plan` does."""
        x = np.empty((len(people), plan.width))
        feature_quantiser(plan)(people.features, x)
        x *= plan.feature_step
        if not outcomes:
            return cls(plan=plan, x=x, y=None)
        y = np.empty((len(people), plan.l))
        outcome_quantiser(plan)(people.outcomes, y)
        y *= plan.outcome_step
        return cls(plan=plan, x=x, y=y)

    def products(self, other: View) -> Matrix:
        """Return ⟨Φ(a), Φ(b)⟩ for everyone here and everyone in `other`."""
        return self._inner(other, "ij,kj->ik")

    def paired(self, other: View) -> Matrix:
        """Return ⟨Φ(a), Φ(b)⟩ for everyone here and the one in the same place in `other`."""
        return self._inner(other, "ij,ij->i")

    def _inner(self, other: View, sums: str) -> Matrix:
        plan = self.plan
        features: Matrix = np.einsum(sums, self.x, other.x, optimize=True)
        total = (features / plan.covariance_sigma) ** 2
        if self.y is None or other.y is None:
            return total
        outcomes: Matrix = np.einsum(sums, self.y, other.y, optimize=True)
        total += features * outcomes / plan.association_sigma**2
        if plan.full_outcome_moments:
            squares: Matrix = outcomes**2
        else:
            squares = np.einsum(sums, self.y**2, other.y**2, optimize=True)
        return total + squares / plan.outcome_sigma**2

    def against(self, seen: Published) -> Matrix:
        """Return ⟨Φ(a), M⟩ for everyone here."""
        plan = self.plan
        total: Matrix = np.einsum("ij,ij->i", self.x @ seen.covariance, self.x)
        total /= plan.covariance_sigma**2
        if self.y is None:
            return total
        total += (
            np.einsum("ij,ij->i", self.x @ seen.association, self.y) / plan.association_sigma**2
        )
        if plan.full_outcome_moments:
            squares = np.einsum("ij,ij->i", self.y @ seen.outcome, self.y)
        else:
            squares = self.y**2 @ seen.outcome
        return np.asarray(total + squares / plan.outcome_sigma**2)


def knowing_everybody_else(rest: Published, inside: View, outside: View) -> Matrix:
    """Return the log-likelihood ratio of "the one inside is" against "the one outside is", pairwise.

    The attacker knows every other member's row, and that the last row is one of two. The release less
    the moments of everybody else is Φ(inside) + N, and the ratio of the two Gaussian likelihoods is
    ⟨Φ(inside) - Φ(outside), N⟩ + ½‖Φ(inside) - Φ(outside)‖². By Neyman and Pearson no attack on the
    pair is better. `rest` is N, the release less the moments of all members, so that one serves many
    pairs. A suspect who is outside scores the opposite.
    """
    distance = inside.paired(inside) + outside.paired(outside) - 2 * inside.paired(outside)
    return inside.against(rest) - outside.against(rest) + 0.5 * distance


def knowing_panel(seen: Published, candidates: View, panel: View) -> Matrix:
    """Score people by the likelihood ratio of the release, others known only by a public panel.

    M + N has mean n·m and covariance V = I + n(1 + n/rows)·C for a non-member, m and C being mean and
    covariance of Φ over the panel and the second term its own error; a member adds Φ(c) - m. So the
    score is (Φ(c) - m)ᵀV⁻¹(M - n·m) - ½(Φ(c) - m)ᵀV⁻¹(Φ(c) - m).
    """
    n, rows = panel.plan.n, len(panel.x)
    among = panel.products(panel)
    means, grand = among.mean(axis=0), float(among.mean())
    gram = among - means - means[:, None] + grand
    cross = candidates.products(panel)
    own = cross.mean(axis=1)  # ⟨Φ(c), m⟩
    cross = cross - own[:, None] - means + grand
    shown = panel.against(seen)
    whole = float(shown.mean())  # ⟨m, M⟩
    panel_shift = shown - whole - n * (means - grand)
    own_shift = candidates.against(seen) - whole - n * (own - grand)
    # Woodbury: V⁻¹ = I - Fᵀ(γI + FFᵀ)⁻¹F with F the panel's centred Φ.
    gamma = rows / (n * (1 + n / rows))
    factor = cho_factor(gram + gamma * np.eye(rows))
    moved = own_shift - cross @ cho_solve(factor, panel_shift)
    size = candidates.paired(candidates) - 2 * own + grand
    size -= np.einsum("ij,ji->i", cross, cho_solve(factor, cross.T))
    return np.asarray(moved - 0.5 * size)
