"""A release of several rounds: their pooled moments, with every round kept beside them.

A file keeps the rounds, and not what was pooled of them: pooling is a function of the rounds. The
covariance alone is kept as the mean of all rounds: that is all that anything uses of it, and one of each
round would make a release of 50 rounds fifty times as large. Nor does a file state the noise of a round,
which follows from the plan and the clip of the round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from primo.planning.plan import Plan
from primo.planning.rounds import clip_of_round, round_plan
from primo.released.estimate.rounds import pool, sharing_covariance
from primo.released.moments import ReleasedLengths
from primo.released.release import Release
from primo.released.rounds import ReleasedRound

__all__ = ["pooled_release", "read_rounds", "round_arrays"]

_ARRAYS = ("coefficients", "association", "outcome_moments")


def pooled_release(
    plan: Plan,
    rounds: Sequence[ReleasedRound],
    *,
    feature_names: tuple[str, ...],
    outcome_names: tuple[str, ...],
    reproducible: bool,
    backend: str,
    lengths: ReleasedLengths | None = None,
) -> Release:
    """Return the release that all rounds make together; a function of released numbers."""
    rounds = sharing_covariance(rounds)
    pooled = pool(plan, rounds)
    return Release(
        plan=plan,
        feature_names=feature_names,
        outcome_names=outcome_names,
        covariance=pooled.covariance,
        association=pooled.association,
        outcome_moments=pooled.outcome_moments,
        reproducible=reproducible,
        backend=backend,
        lengths=lengths,
        rounds=tuple(rounds),
        scales=pooled.scales,
        started=pooled.offset,
    )


def round_arrays(rounds: Sequence[ReleasedRound]) -> dict[str, Any]:
    """Return what a file keeps of a release's rounds, under names such as "round2_association"."""
    arrays: dict[str, Any] = {"covariance": rounds[0].covariance}
    for number, released in enumerate(rounds, start=1):
        arrays |= {f"round{number}_{name}": getattr(released, name) for name in _ARRAYS}
        arrays[f"round{number}_clip"] = np.float64(released.clip)
    return arrays


def read_rounds(plan: Plan, arrays: dict[str, Any]) -> tuple[ReleasedRound, ...]:
    """Return the rounds of a file, with the noise that plan and clips give; refuse what does not fit.

    Guarantee: there are as many rounds as the plan paid for, and each has the shape, the clip and the
    noise of a round of this plan.
    """
    rounds = []
    outcome = (plan.l, plan.l) if plan.full_outcome_moments else (plan.l,)
    shapes = dict(
        zip(
            _ARRAYS,
            ((plan.width, plan.l), (plan.width, plan.l), outcome),
            strict=True,
        )
    )
    covariance = arrays["covariance"]
    _check_numbers("covariance", covariance, (plan.width, plan.width))
    for number in range(plan.round_count):
        clip = float(arrays[f"round{number + 1}_clip"])
        if not math.isfinite(clip) or clip != clip_of_round(plan, clip):
            raise ValueError("the clip of a round does not fit the plan")
        stored = {name: arrays[f"round{number + 1}_{name}"] for name in _ARRAYS}
        own = round_plan(plan, number, clip, residuals=bool(stored["coefficients"].any()))
        for name, shape in shapes.items():
            _check_numbers(name, stored[name], shape)
        if number == 0 and (clip != plan.outcomes.norm or stored["coefficients"].any()):
            raise ValueError("the first round is not one of the outcomes themselves")
        rounds.append(
            ReleasedRound(
                clip=clip,
                covariance=covariance,
                covariance_sigma=own.covariance_sigma,
                association_sigma=own.association_sigma,
                outcome_sigma=own.outcome_sigma,
                **stored,
            )
        )
    if any(name.startswith(f"round{plan.round_count + 1}_") for name in arrays):
        raise ValueError("there are more rounds than the plan paid for")
    return tuple(rounds)


def _check_numbers(name: str, found: Any, shape: tuple[int, ...]) -> None:
    if found.shape != shape or found.dtype != np.float64 or not np.isfinite(found).all():
        raise ValueError(f"the {name} of a round does not fit the plan")
