"""The rounds of a release: read, release, take a step, read again.

Everything that decides what a round looks at is a function of what earlier rounds released: the
coefficients that residuals are taken of, and the clip. What a round spends was fixed by the plan.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, Protocol

import numpy as np

from primo.errors import InputError
from primo.planning.plan import Plan
from primo.planning.residuals import ResidualGrid, residual_grid
from primo.planning.rounds import clip_of_round, round_plan
from primo.privacy.grid import Grid
from primo.released.estimate.rounds import is_anew, may_be_gradual, next_step, sharing_covariance
from primo.released.rounds import ReleasedRound
from primo.rows.moments import Moments, fold
from primo.rows.walk import Folding
from primo.wall import mechanism
from primo.wall.noise import RandomBits
from primo.wall.sealing import round_digest

__all__ = ["RoundRecord", "RowWalk", "plan_of_step", "release_rounds", "step_of"]


class RowWalk(Protocol):
    """Reads every row once and returns what a folding sums."""

    def __call__(self, folding: Folding[Moments], plan: Plan, /, *, description: str) -> Moments:
        """Fold the rows of the source; `description` is what a progress bar says."""
        ...


class RoundRecord(Protocol):
    """Keeps what rounds took and released, so that a run that was killed goes on from there.

    What is kept is a function of released numbers, but not yet published: it is to be kept private.
    """

    def load(self, name: str) -> bytes | None:
        """Return what was kept under a name, or None."""
        ...

    def save(self, name: str, content: bytes) -> None:
        """Keep it; when this returns, it is on the disk."""
        ...


def release_rounds(
    walk: RowWalk,
    plan: Plan,
    *,
    bits: RandomBits,
    backend: str,
    threads: int,
    record: RoundRecord | None = None,
) -> tuple[ReleasedRound, ...]:
    """Release all rounds of a plan, one after the other.

    A run that is resumed takes finished rounds from `record`. It reads the first round again in any
    case: its noise is bound to its moments, so that other rows than before are refused.
    Residuals are taken of the recorded coefficients, never of new ones: another machine may compute
    them with another last digit, and a second draw for those would be a second release.

    Guarantee: √Σμ_t²-GDP for `plan.protection` under replace-one, at most `plan.mu`. What a round looks
    at depends on the plan and on earlier rounds' released numbers only.
    Cost: one pass over the rows for each round.
    """
    released: list[ReleasedRound] = []
    kept, rows = _Kept(record), _Rows(walk)
    for number in range(plan.round_count):
        found = kept.round(number) if number else None
        if found is None:
            step = kept.step(number) if number else None
            if number and step is None:
                step = step_of(plan, released)
                kept.save_step(number, step)
            found = _one_round(
                rows, plan, number, step, bits=bits, backend=backend, threads=threads
            )
            kept.save_round(number, found)
        released.append(found)
        if may_be_gradual(plan) and is_anew(plan, len(released)):
            # Many rounds of many features: one mean instead of a covariance for each.
            released = sharing_covariance(released)
    return tuple(released)


def step_of(plan: Plan, released: Sequence[ReleasedRound]) -> ResidualGrid:
    """Return what the next round takes residuals of; a function of the plan and of released numbers."""
    step = next_step(plan, released)
    own = round_plan(plan, len(released), clip_of_round(plan, step.clip))
    return residual_grid(own, step.coefficients)


def plan_of_step(plan: Plan, number: int, step: ResidualGrid | None) -> Plan:
    """Return the plan of a round that takes residuals of a step; None: the outcomes themselves."""
    if step is None:
        return round_plan(plan, number, plan.outcomes.norm, residuals=False)
    return round_plan(plan, number, step.clip, residuals=step.of_features)


def _one_round(
    rows: _Rows,
    plan: Plan,
    number: int,
    step: ResidualGrid | None,
    *,
    bits: RandomBits,
    backend: str,
    threads: int,
) -> ReleasedRound:
    own = plan_of_step(plan, number, step)
    moments = rows.moments(own, step, description=f"round {number + 1} of {plan.round_count}")
    if bits.unbound:
        last = number == plan.round_count - 1
        stage = RandomBits.RELEASE if last else f"round-{number + 1}"
        digest = round_digest(moments, plan, number=number, residuals=step)
        bits = bits.bound(digest, stage=stage)
    return mechanism.release_round(
        moments,
        own,
        number=number,
        residuals=step,
        bits=bits,
        backend=backend,
        threads=threads,
    )


class _Rows:
    """Sums over the rows for one round after the other; XᵀX of residuals is summed once for a grid.

    XᵀX has to be of the very integers that XᵀR is of. Those of features are the same in all rounds of
    residuals with one grid, whatever the residuals are of; in the first round, which takes the outcomes
    as they are, a row that is far too long has other ones (`rows.moments`).
    """

    def __init__(self, walk: RowWalk) -> None:
        self._walk = walk
        self._summed: Moments | None = None
        self._grid: Grid | None = None  # of the round that summed it

    def moments(self, plan: Plan, step: ResidualGrid | None, *, description: str) -> Moments:
        """Return the sums of a round; `plan` is that of the round, `step` as for `plan_of_step`."""
        if step is None:
            return self._walk(fold, plan, description=description)
        known = self._summed if self._grid == plan.grid else None
        folding: Folding[Moments] = partial(fold, residuals=step, covariance=known is None)
        found = self._walk(folding, plan, description=description)
        if known is not None:
            return replace(found, covariance=known.covariance)
        self._summed, self._grid = found, plan.grid
        return found


@dataclass(frozen=True)
class _Kept:
    """Steps and rounds as files of numbers in a record; nothing without one."""

    record: RoundRecord | None

    def step(self, number: int) -> ResidualGrid | None:
        stored = self._load(f"step-{number + 1}")
        if stored is None:
            return None
        return ResidualGrid(
            integers=stored["integers"], bits=int(stored["bits"]), clip=float(stored["clip"])
        )

    def save_step(self, number: int, step: ResidualGrid) -> None:
        self._save(
            f"step-{number + 1}", {"integers": step.integers, "bits": step.bits, "clip": step.clip}
        )

    def round(self, number: int) -> ReleasedRound | None:
        stored = self._load(f"round-{number + 1}")
        if stored is None:
            return None
        values: dict[str, Any] = {f.name: stored[f.name] for f in fields(ReleasedRound)}
        for name, value in values.items():
            values[name] = value if value.ndim else float(value)
        return ReleasedRound(**values)

    def save_round(self, number: int, released: ReleasedRound) -> None:
        values = {f.name: getattr(released, f.name) for f in fields(ReleasedRound)}
        self._save(f"round-{number + 1}", values)

    def _load(self, name: str) -> dict[str, Any] | None:
        content = None if self.record is None else self.record.load(name)
        if content is None:
            return None
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as stored:
                return {key: stored[key] for key in stored.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            raise InputError(f"what was kept of {name.replace('-', ' ')} is damaged") from None

    def _save(self, name: str, values: dict[str, Any]) -> None:
        if self.record is None:
            return
        file = io.BytesIO()
        np.savez(file, **values)
        self.record.save(name, file.getvalue())
