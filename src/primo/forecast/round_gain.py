"""What several rounds are predicted to bring beside one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from primo.errors import Argument, InputError, Message
from primo.forecast.assumptions import Signal
from primo.forecast.forecast import Draws, Prediction, predict_ways
from primo.forecast.rounds import explain_rounds, one_round_only
from primo.forecast.table import RoundsForecast
from primo.planning.plan import Plan
from primo.planning.rounds import AUTO_ROUNDS
from primo.privacy.protection import Protection

__all__ = ["forecast_rounds", "repeats_of", "rounds_of"]

#: Of the simulation, few: the gain of rounds varies less than what it is added to. Fewer where a repeat
#: takes long, because a plan takes seconds.
REPEATS, FEWEST_REPEATS = 4, 2
LONG, WIDE = 5, 50  # rounds and features, above which a repeat takes long


def rounds_of(
    plans: Sequence[Plan], rounds: int | str
) -> list[tuple[Protection, int, Message | None]]:
    """Return for the plan of each protection how many rounds a release has, and why.

    A number that is asked for is refused where there can be one round only, as `fit` refuses it, unless
    other protections are compared with it.
    """
    found: list[tuple[Protection, int, Message | None]] = []
    for made in plans:
        if rounds == AUTO_ROUNDS:
            found.append((made.protection, *explain_rounds(made)))
            continue
        only = one_round_only(made)
        if only is not None and len(plans) == 1:
            raise InputError(
                Argument("rounds", rounds),
                " is not possible here: ",
                only,
                remedy=Message.of("use ", Argument("rounds", 1)),
            )
        found.append((made.protection, int(rounds) if only is None else 1, only))
    return found


def repeats_of(made: Plan) -> int:
    """Return how many releases of so many rounds are simulated at most."""
    return FEWEST_REPEATS if made.round_count > LONG or made.d > WIDE else REPEATS


def forecast_rounds(
    found: tuple[Protection, int, Message | None],
    made: Plan,
    *,
    one: Prediction | None,
    signal: Signal,
    draws: Draws,
) -> RoundsForecast:
    """Predict R² of a plan with so many rounds, on some of the rows of the other forecasts.

    What rounds gain is added to the forecast of one round, `one`, where that is known.
    Cost: up to `REPEATS` simulated releases of so many rounds; none for one round.
    """
    protection, count, why = found
    r2 = error = None
    if made.rounds is not None:
        ((only,),) = predict_ways(
            [(made, "gauss")],
            estimators=("auto",),
            signal=signal,
            most_repeats=repeats_of(made),
            draws=draws,
        )
        r2, error = only.r2, only.standard_error
        if one is not None and only.one_round_r2 is not None:
            r2 += one.r2 - only.one_round_r2
            error = math.hypot(one.standard_error, only.gain_error)
    return RoundsForecast(
        protection=protection, count=count, why=why, predicted_r2=r2, standard_error=error
    )
