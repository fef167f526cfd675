"""A prior under which most features have no effect: spike and slab, by variational Bayes.

A coefficient is N(0, τ²) with probability π and 0 otherwise; π and τ² are the same in all blocks and
follow from all of them together. With ω the variance of the association along a block's directions
beside the signal, the block looks like a regression with the moments

    K = V diag(p²/ω) Vᵀ,      u = V diag(p/ω) Vᵀĝ,      residual variance 1,

and the posterior is approximated by independent features (Carbonetto and Stephens 2012). Its lower bound
of the evidence is comparable with the evidence of the normal prior, which makes a choice possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from primo.released.estimate.blocks.spectra import Directions

__all__ = ["SparseFit", "fit_sparse"]

Floats = NDArray[np.float64]

STARTS = (0.1, 0.01)  # shares of features with an effect to begin with
TRIAL, SWEEPS = 8, 40  # rounds for every start, and for the best one
ENOUGH = 0.1  # nats that a round must gain for another one to follow, beside
RELATIVE = 1e-4  # of the whole evidence
ROUND = 16  # blocks are filled up to a multiple of this, to be worked on together
LEAST, MOST = 1e-6, 0.5  # π


@dataclass(frozen=True, kw_only=True, eq=False)
class _Part:
    """Regressions of blocks of similar widths, filled up, and the state of their posterior."""

    features: NDArray[np.intp]  # (blocks, w) places of the features; −1 where filled up
    real: Floats  # (blocks, w) 1 for features, 0 where filled up
    inner: Floats  # (w, blocks, w) K, column by column
    right: Floats  # (blocks, w) u
    chance: Floats  # (blocks, w) α
    mean: Floats  # (blocks, w) μ
    fitted: Floats  # (blocks, w) K(αμ)

    @property
    def own(self) -> Floats:
        """The diagonal of K, (blocks, w)."""
        return np.asarray(np.diagonal(self.inner, axis1=0, axis2=2))


@dataclass(frozen=True, kw_only=True, eq=False)
class SparseFit:
    """Spike and slab fitted to one outcome."""

    coefficients: Floats  # (d,) posterior means
    evidence: float  # lower bound of the log-evidence, less that of no signal at all
    share_with_effect: float  # π
    slab: float  # τ² of those


def fit_sparse(
    directions: Directions, rotated: Floats, *, beside: Floats, strength: float, begin: Floats
) -> SparseFit:
    """Fit π, τ² and the posterior to the association of one outcome along all directions, (d,).

    Parameters
    ----------
    beside
        Variance of the association beside the signal, with that of unknown eigenvectors, (d,).
    strength
        Variance of coefficients under the normal prior, which the prior starts from.
    begin
        Coefficients to start from, (d,).

    Notes
    -----
    Cost: O(Σ w²) for each of at most `SWEEPS` rounds.
    """
    parts = _parts(directions, rotated, beside, begin)
    best: tuple[float, list[_Part], float, float] | None = None
    for share in STARTS:
        tried = _rounds(parts, share, max(strength, 1e-300) / share, TRIAL)
        if best is None or tried[0] > best[0]:
            best = tried
    assert best is not None
    evidence, found, share, slab = _rounds(best[1], best[2], best[3], SWEEPS)
    return SparseFit(
        coefficients=_means(found, len(rotated)),
        evidence=evidence,
        share_with_effect=share,
        slab=slab,
    )


def _means(parts: Sequence[_Part], features: int) -> Floats:
    """Posterior means of all features, (d,)."""
    found = np.empty(features)
    for part in parts:
        here = part.features >= 0
        found[part.features[here]] = (part.chance * part.mean)[here]
    return found


def _parts(directions: Directions, rotated: Floats, beside: Floats, begin: Floats) -> list[_Part]:
    """Set up the regressions, blocks of similar widths together."""
    weights = directions.values / beside
    stacked: dict[int, list[tuple[NDArray[np.intp], Floats, Floats]]] = {}
    for (group, u), (_, k) in zip(
        directions.split(weights * rotated),
        directions.split(weights * directions.values),
        strict=True,
    ):
        inner = (group.vectors * k[:, None, :]) @ np.swapaxes(group.vectors, 1, 2)
        right = group.restore(u[:, :, None])[:, :, 0]
        width = group.features.shape[1]
        full = width if width == 1 else -(-width // ROUND) * ROUND
        more = (0, full - width)
        stacked.setdefault(full, []).append(
            (
                np.pad(group.features, ((0, 0), more), constant_values=-1),
                np.pad(inner, ((0, 0), more, more)),
                np.pad(right, ((0, 0), more)),
            )
        )
    found = []
    for same in stacked.values():
        features, inner, right = (np.concatenate(part) for part in zip(*same, strict=True))
        real = (features >= 0).astype(np.float64)
        start = np.where(features >= 0, begin[features], 0.0)
        found.append(
            _Part(
                features=features,
                real=real,
                inner=np.ascontiguousarray(inner.transpose(1, 0, 2)),
                right=right,
                chance=real.copy(),
                mean=start,
                fitted=(inner @ start[:, :, None])[:, :, 0],
            )
        )
    return found


def _rounds(
    parts: list[_Part], share: float, slab: float, most: int
) -> tuple[float, list[_Part], float, float]:
    """Improve posterior and prior in turn; return the bound, the posterior, π and τ²."""
    before = -np.inf
    features = sum(float(part.real.sum()) for part in parts)
    for _ in range(most):
        parts = [_sweep(part, share, slab) for part in parts]
        bound = sum(_bound(part, share, slab) for part in parts)
        with_effect = sum(float(part.chance.sum()) for part in parts)
        size = sum(
            float((part.chance * (part.mean**2 + 1 / (part.own + 1 / slab))).sum())
            for part in parts
        )
        share = float(np.clip(with_effect / features, LEAST, MOST))
        slab = max(size / max(with_effect, 1e-300), 1e-300)
        if bound < before + ENOUGH + RELATIVE * abs(bound):
            break
        before = bound
    return bound, parts, share, slab


def _sweep(part: _Part, share: float, slab: float) -> _Part:
    """Update every feature once, those at the same place of all blocks together."""
    chance, mean, fitted = part.chance.copy(), part.mean.copy(), part.fitted.copy()
    odds = np.log(share / (1 - share))
    for j, column in enumerate(part.inner):
        own = column[:, j]
        variance = 1 / (own + 1 / slab)
        old = chance[:, j] * mean[:, j]
        mean[:, j] = variance * (part.right[:, j] - fitted[:, j] + own * old)
        logit = odds + 0.5 * (np.log(variance / slab) + mean[:, j] ** 2 / variance)
        chance[:, j] = part.real[:, j] / (1 + np.exp(-np.clip(logit, -700, 700)))
        fitted += column * (chance[:, j] * mean[:, j] - old)[:, None]
    return replace(part, chance=chance, mean=mean, fitted=fitted)


def _bound(part: _Part, share: float, slab: float) -> float:
    """Lower bound of the log-evidence of all blocks, less that of no signal."""
    own = part.own
    variance = 1 / (own + 1 / slab)
    first = part.chance * part.mean
    second = part.chance * (part.mean**2 + variance)
    fit = (part.right * first).sum() - 0.5 * (first * part.fitted).sum()
    fit -= 0.5 * (own * (second - first**2)).sum()
    prior = 0.5 * (part.chance * (1 + np.log(variance / slab)) - second / slab).sum()
    alpha = np.clip(part.chance, 1e-300, 1.0)
    rest = np.clip(1 - part.chance, 1e-300, 1.0)
    entropy = (part.chance * np.log(alpha / share)).sum()
    entropy += (part.real * (1 - part.chance) * np.log(rest / (1 - share))).sum()
    return float(fit + prior - entropy)
