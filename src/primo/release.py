"""What leaves the wall: noisy moments, the plan they were made under, and words for both."""

from __future__ import annotations

import math
import textwrap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.bounds import Clip
from primo.plans import Plan

__all__ = ["Release"]

Matrix = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Noisy sums over rows in scaled units; safe to publish, and all that estimation ever sees.

    Guarantee: `plan.mu`-GDP, hence `plan.budget`, for `plan.protection` under replace-one. Anything
    computed from it costs no further privacy.
    """

    plan: Plan
    feature_names: tuple[str, ...]
    outcome_names: tuple[str, ...]
    covariance: Matrix  # (width, width) XᵀX, the constant feature last
    association: Matrix  # (width, l) XᵀY
    outcome_moments: Matrix  # (l, l) YᵀY, or (l,) its diagonal
    reproducible: bool
    backend: str

    @property
    def publishable(self) -> bool:
        """Whether the noise is secret, which the guarantee needs."""
        return not self.reproducible

    def __repr__(self) -> str:
        """Show the privacy statement: it is what a reader of a release has to know."""
        return self.statement()

    def statement(self) -> str:
        """Say in plain words what is protected, how strongly, and on what assumptions."""
        plan = self.plan
        protection, budget = plan.protection, plan.budget
        public = [f"the number of rows ({plan.n})", "the names of the columns", "the bounds"]
        if not protection.features_private:
            public.append("all features")
        if not protection.outcomes_private:
            public.append("all outcomes")
        lines = [
            f"Privacy statement: {plan.l} regression{'s' * (plan.l > 1)} on {plan.d} "
            f"feature{'s' * (plan.d > 1)}, one release",
            _item("Protected", protection.sentence),
            _item(
                "Guarantee",
                f"({budget.epsilon:g}, {budget.delta:.3g})-differential privacy for all outcomes "
                f"together; {plan.mu:.4g}-GDP. Whoever sees the release, whatever else they know, "
                "can hardly tell whether any one row was replaced by another",
            ),
            _item("Neighbours", "data sets that differ by replacing one row"),
            _item("Public", ", ".join(public)),
            _item("Bounds", f"features {_bound(plan.features)}; outcomes {_bound(plan.outcomes)}"),
            _item(
                "Noise",
                f"discrete Gaussian ({self.backend}), in scaled units: covariance "
                f"{_sigma(plan.covariance_sigma)}, association {_sigma(plan.association_sigma)}, "
                f"outcome moments ({'full' if plan.full_outcome_moments else 'diagonal'}) "
                f"{_sigma(plan.outcome_sigma)}; split ratio {plan.split:.3g}",
            ),
            _item(
                "Status",
                "reproducible: not for publication. The noise can be recomputed from random_state, "
                "so there is no privacy at all against anyone who knows or guesses it"
                if self.reproducible
                else "noise from a cryptographic generator; may be published",
            ),
        ]
        return "\n".join(lines)


def _item(name: str, text: str) -> str:
    return textwrap.fill(
        text, width=98, initial_indent=f"  {name:<11} ", subsequent_indent=" " * 14
    )


def _bound(clip: Clip) -> str:
    if clip.box and math.isclose(clip.norm, math.sqrt(clip.width)):
        return "a range per column"
    scaled = clip.box or not clip.is_plain
    return (
        ("a range per column and " if clip.box else "")
        + f"row norm {clip.norm:.4g}"
        + (" in scaled units" if scaled else "")
    )


def _sigma(sigma: float) -> str:
    return f"sigma {sigma:.4g}" if sigma else "exact (public)"
