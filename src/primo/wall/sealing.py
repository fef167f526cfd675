"""Noise for a release that may be interrupted: the same for the same rows, another for all others.

A run that is killed after it was paid for is to be finished later without a second, independent
draw of noise: the average of two draws has half the variance, and only one was paid for. Keeping
the noise, or the rows, on disk would be a secret of their size. Instead 32 random bytes K are kept,
and the key of the noise is HMAC(K, digest) with the digest of the plan and of the exact integer
moments (`RandomBits.sealed`, `bound`).

**Claim.** Let HMAC-SHA256 be a pseudo-random function and SHA-256 collision resistant, let K be
uniform and unknown to whoever sees the release, and let rows and plans be chosen without looking at
K. Then

1. one release has the law that the guarantee is about;
2. all runs with the same moments and plan give the same release, so together they tell what one tells;
3. runs with other moments or another plan have independent noise.

*Proof.* Replace HMAC(K, ·) by a random function F; nobody can tell, by assumption. (1) If the plan
samples rows, the sample is drawn with the key F("sample"), uniform; given the sample, the digest
does not depend on F elsewhere, so the key F("noise", digest) is uniform and independent of rows and
sample: as for fresh bits. (2) The sample is the same in all runs. Equal digests give equal keys,
and equal integers plus equal draws are equal sums: a function of the first release, that is
post-processing. (3) Different moments or plans have different digests, else a collision was found:
the canonical bytes below determine all that is hashed. F is independent at different places. ∎

**Why the moments are in the digest.** With the secret alone, two runs on neighbouring rows would
add the same noise, and the difference of the two releases would be the exact moments of one row.
**Why the names are not:** the same numbers under other names must not get a second draw.

**What it does not give.** Runs on different rows or plans with one secret are independent releases
(that share a sample, if there is one): each would cost its own charge, so only one of them may be
published. And K is as sensitive as the rows: with it and a guess of the moments anyone can take the
noise off and see whether the guess is right. It is destroyed when the release is published
(`primo.workflow.resume`).
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from enum import Enum
from typing import Any

import numpy as np

from primo.planning.plan import Plan
from primo.planning.residuals import ResidualGrid
from primo.rows.block_moments import BlockMoments
from primo.rows.lengths import Lengths
from primo.rows.moments import Moments
from primo.rows.outcome_rows import OutcomeRows
from primo.rows.sums import RowSums
from primo.rows.values import ColumnCounts

__all__ = ["moments_digest", "plan_digest", "round_digest", "stage_digest"]


def moments_digest(moments: Moments | BlockMoments | OutcomeRows, plan: Plan) -> bytes:
    """Return 32 bytes that stand for exactly these moments under exactly this plan; private.

    How missing values are treated is left out of the plan: it changes the moments or nothing, and a
    run that stopped at a missing value may be resumed with another treatment.
    Cost: one pass over the moments.
    """
    return _digest(b"primo.moments/1", [moments, dataclasses.replace(plan, missing="error")])


def round_digest(
    moments: Moments, plan: Plan, *, number: int, residuals: ResidualGrid | None
) -> bytes:
    """Return 32 bytes that stand for exactly these moments of exactly this round of a plan; private.

    `plan` is that of the whole release. Coefficients and clip of the round are part of it, because they
    are not a function of the plan: noise that is drawn once for one choice is not drawn for another.
    """
    step = () if residuals is None else (residuals.integers, residuals.bits, residuals.clip)
    return _digest(
        b"primo.round/1", [moments, dataclasses.replace(plan, missing="error"), number, step]
    )


def stage_digest(sums: Lengths | RowSums | ColumnCounts, plan: Plan, stage: str) -> bytes:
    """Return 32 bytes that stand for exactly these sums under exactly this plan; private."""
    purpose = f"primo.{stage}/1".encode()
    return _digest(purpose, [sums, dataclasses.replace(plan, missing="error")])


def plan_digest(plan: Plan) -> bytes:
    """Return 32 bytes that stand for exactly this plan; public."""
    return _digest(b"primo.plan/1", [plan])


def _digest(purpose: bytes, values: list[Any]) -> bytes:
    hashed = hashlib.sha256(purpose)
    for value in values:
        for piece in _canonical(value):
            hashed.update(piece)
    return hashed.digest()


def _canonical(value: Any) -> Iterator[bytes | memoryview]:
    """Yield bytes from which a value can be told from every other: kind, length, content.

    Floats are written exactly (hex), so a plan that differs in the last bit is another plan.
    """
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        yield b"d%d:" % len(fields)
        for field in fields:
            yield from _canonical(field.name)
            yield from _canonical(getattr(value, field.name))
    elif isinstance(value, tuple):
        yield b"t%d:" % len(value)
        for item in value:
            yield from _canonical(item)
    elif isinstance(value, np.ndarray):
        kind = value.dtype.newbyteorder("<")
        yield from _canonical(kind.str + str(value.shape))
        yield np.ascontiguousarray(value, dtype=kind).reshape(-1).view(np.uint8).data
    else:
        text = _text(value).encode()
        yield b"%d:" % len(text)
        yield text


def _text(value: Any) -> str:
    if isinstance(value, Enum):
        return _text(value.value)
    if isinstance(value, bool | np.bool_):
        return f"bool {bool(value)}"
    if isinstance(value, int | np.integer):
        return f"int {int(value)}"
    if isinstance(value, float | np.floating):
        return f"float {float(value).hex()}"
    if isinstance(value, str):
        return f"str {value}"
    if value is None:
        return "none"
    raise TypeError(f"a plan does not hold {type(value).__name__}")
