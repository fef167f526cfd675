"""What is said where a cost does not fit a limit."""

from __future__ import annotations

import math

from primo.privacy.accounting import Cost, epsilon_spent, left
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of

__all__ = ["refusal"]


def refusal(where: str, whom: str, limit: Budget, earlier: list[Cost], cost: Cost) -> str:
    """Say what is needed, what is left and what can be done, in mu and in epsilon."""
    rest, whole = left(earlier, limit), mu_of(limit)
    alone = _digits(epsilon_spent([cost], limit.delta), up=True)
    needs = f"epsilon={alone} at delta={limit.delta:.3g}"
    if cost.mu is not None:
        needs = f"mu={_digits(cost.mu, up=True)} ({needs})"
    so_far = f"{len(earlier)} release{'s' * (len(earlier) != 1)} so far"
    return (
        f"this release needs {needs}, but {where} has mu={_digits(rest.mu)} (epsilon="
        f"{_digits(rest.epsilon)}) of {_digits(whole)} (epsilon={limit.epsilon:g}) left for {whom} "
        f"({so_far}). Nothing was charged. Ask for a smaller epsilon, or have the steward raise "
        "the limit"
    )


def _digits(value: float, *, up: bool = False) -> str:
    """Write a number with four digits; what is left is rounded down, what is needed up."""
    if value <= 0 or math.isinf(value):
        return f"{max(value, 0.0):g}"
    unit = 10.0 ** (math.floor(math.log10(value)) - 3)
    steps = value / unit
    # A number that was given in few digits keeps them.
    near = round(steps)
    whole = near if abs(steps - near) < 1e-6 else math.ceil(steps) if up else math.floor(steps)
    return f"{whole * unit:.4g}"
