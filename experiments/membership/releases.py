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
from primo.bounds import Bounds
from primo.moments import Moments, fold
from primo.noise import RandomBits
from primo.pipeline import make_release
from primo.planner import make_plan
from primo.plans import Plan
from primo.release import Release
from primo.sources.arrays import ArraySource

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
    features, outcomes = study.bounds()
    return make_release_plan(study.members, epsilon, features, outcomes)


def make_release_plan(
    members: People, epsilon: float, feature_bounds: Bounds, outcome_bounds: Bounds
) -> Plan:
    """Plan a release of the members with bounds that came from elsewhere."""
    n, d = members.features.shape
    return make_plan(
        n=n,
        d=d,
        l=members.outcomes.shape[1],
        epsilon=epsilon,
        delta=1 / n**2,
        feature_bounds=feature_bounds,
        outcome_bounds=outcome_bounds,
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

    def less(self, other: Published) -> Published:
        """Take off moments that are known."""
        return Published(
            covariance=self.covariance - other.covariance,
            association=self.association - other.association,
            outcome=self.outcome - other.outcome,
        )


def publish(members: People, plan: Plan, seed: int) -> Release:
    """Make a release with primo itself; reproducible, so for experiments only."""
    return make_release(_source(members), plan, bits=RandomBits.seeded(seed), workers=1)


def exact_sums(people: People, plan: Plan) -> Published:
    """Return exact moments of people, as an attacker who knows their rows computes them."""
    moments: Moments = fold(_source(people), plan, workers=1)
    return Published(
        covariance=moments.covariance * plan.feature_step**2,
        association=moments.association * (plan.feature_step * plan.outcome_step),
        outcome=moments.outcome * plan.outcome_step**2,
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

    Without outcomes only the covariance is looked at: all that an attacker who knows no outcome can
    compare with.
    """

    plan: Plan
    x: Matrix  # (rows, width) in scaled units, the constant last
    y: Matrix | None  # (rows, l)

    @classmethod
    def of(cls, people: People, plan: Plan, *, outcomes: bool = True) -> Self:
        """Clip and round people as `plan` does."""
        x = np.empty((len(people), plan.width))
        plan.feature_quantiser()(people.features, x)
        x *= plan.feature_step
        if not outcomes:
            return cls(plan=plan, x=x, y=None)
        y = np.empty((len(people), plan.l))
        plan.outcome_quantiser()(people.outcomes, y)
        y *= plan.outcome_step
        return cls(plan=plan, x=x, y=y)

    def products(self, other: View) -> Matrix:
        """Return ⟨Φ(a), Φ(b)⟩ for everyone here and everyone in `other`."""
        plan = self.plan
        features = self.x @ other.x.T
        total: Matrix = (features / plan.covariance_sigma) ** 2
        if self.y is None or other.y is None:
            return total
        outcomes = self.y @ other.y.T
        total += features * outcomes / plan.association_sigma**2
        if plan.full_outcome_moments:
            total += (outcomes / plan.outcome_sigma) ** 2
        else:
            total += (self.y**2) @ (other.y**2).T / plan.outcome_sigma**2
        return total

    def squares(self) -> Matrix:
        """Return ⟨Φ(a), Φ(a)⟩ for everyone here."""
        plan = self.plan
        features = (self.x**2).sum(axis=1)
        total: Matrix = (features / plan.covariance_sigma) ** 2
        if self.y is None:
            return total
        outcomes = (self.y**2).sum(axis=1)
        total += features * outcomes / plan.association_sigma**2
        moments = outcomes**2 if plan.full_outcome_moments else (self.y**4).sum(axis=1)
        return np.asarray(total + moments / plan.outcome_sigma**2)

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


def knowing_everybody_else(left: Published, suspects: View, instead: View) -> Matrix:
    """Score "the row is the suspect's" against "it is that of the one named instead".

    `left` is the release less the exact moments of everybody else, of whom this attacker knows all.
    The ratio of the two Gaussian likelihoods is ⟨Φ(c) - Φ(c′), M⟩ - ½(‖Φ(c)‖² - ‖Φ(c′)‖²): by Neyman
    and Pearson no attack on this pair is better, with or without knowing more.
    """
    moved = suspects.against(left) - instead.against(left)
    return np.asarray(moved - 0.5 * (suspects.squares() - instead.squares()))


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
    size = candidates.squares() - 2 * own + grand
    size -= np.einsum("ij,ji->i", cross, cho_solve(factor, cross.T))
    return np.asarray(moved - 0.5 * size)
