"""How many rounds pay, from public numbers alone: what rounds="auto" stands for."""

from __future__ import annotations

import math

from primo.errors import Message
from primo.planning.plan import Plan
from primo.planning.rounds import shares_of, why_one_round
from primo.released.estimate.rounds.schedule import (
    LOST,
    association_noise,
    far_enough,
    lost_in_noise,
)

__all__ = [
    "explain_rounds",
    "length_noise",
    "one_round_only",
    "recommend_rounds",
]

FEW, SOME, MORE = 3, 6, 9
#: Of small steps: the first of these in which a round can tell how long residuals are, and whose
#: associations, which a release keeps, are together not more than so many numbers.
MANY = 200, 100, 50
MOST_NUMBERS = 2**23

#: Relative noise of the mean squared length of residuals, as a round tells it, above which clips would
#: follow the noise.
TOLD = 0.1

#: Noise of the association of all rounds over the largest that is possible, above which steps would
#: follow the noise (with an intercept, whose means are noisy, too; and without one).
FOLLOWED, FOLLOWED_ALONE = 0.1, 0.15


def recommend_rounds(made: Plan) -> int:
    """Return how many rounds a release should have that could have several.

    Many where most of the covariance is lost in noise, otherwise some; few where one of so many rounds
    could not tell how long residuals are; one where one of few could not, or where the association is
    too noisy to take steps by.
    `made` is its plan with one round. Guarantee: a function of the plan, so of public numbers alone.
    """
    return explain_rounds(made)[0]


def explain_rounds(made: Plan) -> tuple[int, Message]:
    """Return what `recommend_rounds` does (one where there can be one only), and why."""
    reason = one_round_only(made)
    if reason is not None:
        return 1, reason
    noise, steps = length_noise(made, FEW), association_noise(made)
    most = FOLLOWED if made.intercept else FOLLOWED_ALONE
    if noise >= TOLD:
        return 1, Message.of(
            "in every round the noise of the residuals' squared length would be "
            f"{noise:.1%} of the largest that is possible; rounds need less than {TOLD:.0%}"
        )
    if steps >= most:
        return 1, Message.of(
            f"the noise of the association is {steps:.1%} of the largest association that is possible; "
            f"rounds need less than {most:.0%}"
        )
    lost = made.covariance_noisy and lost_in_noise(made) > LOST
    many = next((k for k in _small_steps(made) if length_noise(made, k) < TOLD), None)
    if lost and steps < far_enough(made) and many is not None:
        return many, Message.of(
            "most of the covariance is lost in noise, that of the association is small enough, and "
            "many small steps need no covariance"
        )
    # With an intercept a third of the budget goes to the first round, and fewer share the rest. Where
    # the covariance is lost, steps are short however many there are.
    wanted = SOME if made.intercept or lost else MORE
    count = next(k for k in (wanted, SOME, FEW) if k == FEW or length_noise(made, k) < TOLD)
    return count, Message.of(
        f"noise is small enough for rounds: {noise:.1%} of the largest that is possible in the "
        f"residuals' squared length (less than {TOLD:.0%} is needed), {steps:.1%} in the association "
        f"(less than {most:.0%} is needed)"
    )


def _small_steps(made: Plan) -> list[int]:
    """Return how many small steps there may be: as many as a release can keep, or the fewest."""
    kept = [k for k in MANY if k * made.width * made.l <= MOST_NUMBERS]
    return kept or [min(MANY)]


def one_round_only(made: Plan) -> Message | None:
    """Say why a release like this can have one round only; None where it can have several."""
    return why_one_round(
        origin=made.covariance_origin,
        calibration=made.calibration,
        association=made.association,
        sampled=made.sampled,
    )


def length_noise(made: Plan, rounds: int) -> float:
    """Return the noise of Σ‖r‖² in the last of so many rounds, over its largest value n·c².

    Noise is in proportion to c², so this holds for every clip.
    """
    shares = shares_of(rounds, means=made.intercept and made.protection.outcomes_private)
    noise = made.residual_sigma * math.sqrt(made.l / shares[-1])
    return noise / (made.n * made.outcomes.norm**2)
