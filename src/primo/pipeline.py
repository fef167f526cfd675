"""The one orchestrating function: plan in hand, read once, release, estimate."""

from __future__ import annotations

from primo.mechanisms import gauss
from primo.moments import fold
from primo.noise import RandomBits
from primo.plans import Plan
from primo.progress import row_progress
from primo.release import Release
from primo.sources.base import Source

__all__ = ["make_release"]


def make_release(
    source: Source,
    plan: Plan,
    *,
    bits: RandomBits,
    backend: str = "primo",
    workers: int | None = None,
    show_progress: bool = False,
) -> Release:
    """Read every row of `source` once and release its moments under `plan`.

    Guarantee: satisfies `plan.budget` for `plan.protection`, provided `bits` are fresh; nothing else
    that depends on the rows leaves this function.
    Cost: one pass, O(n·d² + n·d·l).
    """
    with row_progress(plan.n, show=show_progress) as progress:
        moments = fold(source, plan, workers=workers, progress=progress)
    return gauss.release(
        moments,
        plan,
        feature_names=source.feature_names,
        outcome_names=source.outcome_names,
        bits=bits,
        backend=backend,
        workers=workers or 2,
    )
