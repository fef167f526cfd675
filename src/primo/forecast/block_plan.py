"""The forecast of a plan whose covariance is that inside blocks: from its noise scales to R²."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from primo.errors import InputError
from primo.forecast.assumptions import Signal
from primo.forecast.blocks import ENOUGH, BlockScales, Trait, forecast_draws
from primo.forecast.expected_norms import with_expected_norms
from primo.forecast.forecast import Prediction
from primo.forecast.law import knows_outcome_units, law_of
from primo.planning.plan import Plan

__all__ = ["BlockForecast", "block_scales", "predict_blocks"]

Floats = NDArray[np.float64]

#: Correlation of neighbours in a block; it falls off geometrically with their distance.
LINKED = 0.8

#: Traits that are drawn, at most.
DRAWS = 40

#: Share of features with an effect, and how many there are at least.
CAUSAL, FEWEST_CAUSAL = 0.01, 10


@dataclass(frozen=True, kw_only=True)
class BlockForecast:
    """A prediction and what it assumes; no number in it depends on data."""

    prediction: Prediction
    outcome_sd: float | None  # median over outcomes, in their own units; None where they are found
    words: tuple[str, ...]


def block_scales(plan: Plan, signal: Signal) -> BlockScales:
    """Return the noise of a plan in units of standardised features and an outcome of variance 1.

    With columns of different spreads the median stands for all.
    """
    law = law_of(plan, signal)
    x, y = float(np.median(law.features.sd)), float(np.median(law.outcomes.sd))
    blocks: Floats | float = 0.0
    if plan.blocks is not None and plan.protection.features_private:
        blocks = plan.blocks.steps_sigma * plan.feature_step**2 / x**2
    if plan.perturbation is not None:
        return BlockScales(association=0.0, outcome=plan.row_sigma / y)
    return BlockScales(association=plan.association_sigma / (x * y), blocks=blocks)


def predict_blocks(
    plan: Plan, signal: Signal, starts: NDArray[np.int64] | None = None
) -> BlockForecast:
    """Predict R² on new people of a plan with blocks, or with the diagonal alone, before any data.

    `starts` are borders of blocks that a plan of noise on the outcomes does not hold.

    Blocks of one feature are taken to be unlinked. What bounds cut off rows is not simulated.

    Guarantee: sees public numbers only. Cost: some seconds for any number of features.
    """
    if starts is None:
        if plan.blocks is None:
            raise InputError("the plan has no blocks")
        starts = plan.blocks.starts
    settled, stated = with_expected_norms(plan, signal)
    law = law_of(settled, stated)
    widths = np.diff(starts)
    linkage = [_linked(int(width)) for width in widths]
    trait = Trait(heritability=signal.r2, causal=min(1.0, max(CAUSAL, FEWEST_CAUSAL / plan.d)))
    scales, no_noise = block_scales(settled, stated), BlockScales(association=0.0)
    draws = max(2, min(DRAWS, -(-2 * ENOUGH // plan.d)))
    found, ideal = (
        forecast_draws(linkage, n=plan.n, scales=each, trait=trait, draws=draws)
        for each in (scales, no_noise)
    )
    prediction = Prediction(
        r2=max(float(found.mean()), 0.0),
        no_privacy_r2=max(float(ideal.mean()), 0.0),
        standard_error=float(found.std(ddof=1)) / math.sqrt(len(found)),
    )
    linked = "features of different blocks are not correlated"
    if widths.max() > 1:
        linked = f"neighbours inside a block are correlated by {LINKED:g}, and {linked}"
    else:
        linked = "features are not correlated; where they are, the score is worth less"
    known = knows_outcome_units(plan, signal)
    return BlockForecast(
        prediction=prediction,
        outcome_sd=float(np.median(settled.outcomes.scale * law.outcomes.sd)) if known else None,
        words=(
            f"the features explain {signal.r2:.0%} of each outcome's variance; {trait.causal:.2g} of "
            "them have an effect",
            linked,
            law.features.words,
            law.outcomes.words,
            "what bounds cut off rows is not simulated",
        ),
    )


@cache
def _linked(width: int) -> Floats:
    at = np.arange(width)
    return np.asarray(LINKED ** np.abs(at[:, None] - at), dtype=np.float64)
