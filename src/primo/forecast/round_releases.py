"""A simulated release of several rounds: the library's own steps, on simulated moments.

A round after the first releases X̃ᵀR̃, where R = Y − XW are residuals and R̃ the same, shortened to the
round's clip. No rows are needed for that: sums over the rows before they are shortened
(`rows.Unshortened`) give X̃ᵀR and RᵀR for every W, and of residuals of length s in about m directions
it is known what shortening to c does. R̃ = κR + U with κ the mean slope of the clip (Stein's lemma, so
that U is uncorrelated with R) and E‖u‖² = E min(‖r‖², c²) − κ²s². So

    X̃ᵀR̃ = κ·X̃ᵀR + X̃ᵀU,    R̃ᵀR̃ = RᵀR·E min(‖r‖², c²)/s².

Clips, coefficients and the pooled moments are what `released.estimate.rounds` makes of the rounds
before, so a forecast follows every rule that a release follows.
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray
from scipy import special

from primo.forecast.simulate import Cohort, Drawn, symmetric_noise
from primo.planning.plan import Plan
from primo.planning.rounds import clip_of_round, round_plan
from primo.released.estimate.rounds import may_be_gradual, next_step
from primo.released.estimate.rounds.lengths import mean_slope
from primo.released.release import Release
from primo.released.round_release import pooled_release
from primo.released.rounds import ReleasedRound, Step

__all__ = ["release_rounds"]

Floats = NDArray[np.float64]


def release_rounds(drawn: Drawn, plan: Plan) -> Release:
    """Simulate all rounds of a plan of the whole size on a drawn cohort.

    Cost: one estimate for each round, and products of width² by the simulated outcomes.
    """
    whole = drawn.under(plan)
    few = whole.plan.l / whole.outcomes_in_all  # simulated outcomes that stand for all
    norm = whole.plan.outcomes.norm * math.sqrt(few)
    simulated = dataclasses.replace(
        whole.plan,
        outcomes=dataclasses.replace(whole.plan.outcomes, norm=norm),
        association="gauss",
    )
    if may_be_gradual(plan):
        # Small steps take the constant for one of the directions, which has to be as long among the
        # others as it is. Then its mean has more noise: little, beside hundreds of features.
        simulated = dataclasses.replace(simulated, length=plan.constant * drawn.size.unit)
    cohort = dataclasses.replace(whole, plan=simulated)
    residuals = _Residuals(drawn, cohort, plan)
    rounds = [_first(cohort)]
    for number in range(1, plan.round_count):
        rounds.append(residuals.round(number, next_step(cohort.plan, rounds)))
    return pooled_release(
        cohort.plan,
        rounds,
        feature_names=("",) * cohort.plan.d,
        outcome_names=("",) * cohort.plan.l,
        reproducible=True,
        backend="simulated",
    )


def _first(cohort: Cohort) -> ReleasedRound:
    """Return the round of the outcomes themselves."""
    plan, released = cohort.plan, cohort.release("gauss")
    return ReleasedRound(
        coefficients=np.zeros((plan.width, plan.l)),
        clip=plan.outcomes.norm,
        covariance=released.covariance,
        association=released.association,
        outcome_moments=released.outcome_moments,
        covariance_sigma=plan.covariance_sigma,
        association_sigma=plan.association_sigma,
        outcome_sigma=plan.outcome_sigma,
    )


class _Residuals:
    """What later rounds look at: sums of residuals, and their noise."""

    def __init__(self, drawn: Drawn, cohort: Cohort, whole: Plan) -> None:
        self._cohort, self._plan, self._whole = cohort, cohort.plan, whole
        sums, w = drawn.unshortened, cohort.plan.width
        units = np.append(np.ones(cohort.plan.d), cohort.plan.constant)[:w]
        self._between = sums.between[:w, :w] * np.outer(units, units)
        self._covariance = sums.covariance[:w, :w] * np.outer(units, units)
        self._association = sums.association[:w] * units[:, None]
        self._products = sums.products[:w] * units[:, None]
        self._moments = sums.outcome_moments
        values, vectors = np.linalg.eigh(cohort.exact_covariance())
        own = np.random.default_rng((*cohort.seed, 10)).standard_normal((cohort.plan.l, w)).T
        # The same rows are shortened in every round, so X̃ᵀU is about the same, too.
        self._mixed = vectors @ (np.sqrt(np.maximum(values, 0.0))[:, None] * own)

    def round(self, number: int, step: Step) -> ReleasedRound:
        """Release the residuals of a step."""
        plan, whole, w = self._plan, self._whole, step.coefficients
        unit = whole.outcomes.norm / plan.outcomes.norm
        own = round_plan(
            whole, number, clip_of_round(whole, step.clip * unit), residuals=bool(w.any())
        )
        clip = own.outcomes.norm / unit
        left = self._moments - w.T @ self._products - self._products.T @ w
        left += w.T @ self._covariance @ w
        total = max(float(np.trace(left)), 1e-300)
        directions = max(total**2 / float(np.einsum("ij,ij->", left, left)), 1.0)
        length = math.sqrt(total / plan.n)
        slope = mean_slope(length, clip, directions)
        kept = _squares_kept(clip / length, directions)
        spread = np.sqrt(np.maximum(np.diag(left), 0.0) / plan.n)
        association = slope * (self._association - self._between @ w)
        association += math.sqrt(max(kept - slope**2, 0.0)) * self._mixed * spread
        noise = [np.random.default_rng((*self._cohort.seed, 20 + 3 * number + k)) for k in range(3)]
        sigmas = (
            _of_part(plan.covariance_sigma, own.covariance_sigma, whole.covariance_sigma),
            _of_part(plan.association_sigma, own.association_sigma, whole.association_sigma),
            _of_part(plan.residual_sigma, own.outcome_sigma, whole.residual_sigma),
        )
        covariance = self._cohort.exact_covariance()
        covariance += symmetric_noise(noise[0], plan.width, sigmas[0])
        if plan.intercept:
            covariance[-1, -1] = plan.n * plan.constant**2
        moments = kept * left
        if plan.full_outcome_moments:
            moments = moments + symmetric_noise(noise[2], plan.l, sigmas[2])
        else:
            moments = np.diag(moments) + noise[2].standard_normal(plan.l) * sigmas[2]
        drawn = noise[1].standard_normal((plan.l, plan.width)).T * sigmas[1]
        return ReleasedRound(
            coefficients=w,
            clip=clip,
            covariance=covariance,
            association=association + drawn,
            outcome_moments=moments,
            covariance_sigma=sigmas[0],
            association_sigma=sigmas[1],
            outcome_sigma=sigmas[2],
        )


def _of_part(simulated: float, own: float, first: float) -> float:
    """Return the noise of a round of the simulated plan, whose first round has that of the whole one."""
    return simulated * (own / first) if first else 0.0


def _squares_kept(clip: float, m: float) -> float:
    """E min(‖r‖², c²)/s² for a clip in units of s, with ‖r‖² = s²χ²_m/m."""
    u = m * clip**2 / 2
    return float(special.gammainc(m / 2 + 1, u) + clip**2 * special.gammaincc(m / 2, u))
