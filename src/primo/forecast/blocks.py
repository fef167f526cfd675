"""How well scores from a covariance inside blocks will predict: the estimator on simulated moments.

Given the correlations inside blocks (of a public panel), the moments of n people have a known law,

    A_B = n·R_B,      G_B ~ N(A_B·w_B, ς²·A_B + σ₂²·I),

so no person is simulated: a trait is drawn, its moments with all noise, and the real estimates are made
from them. Blocks are independent, so a part of them stands for all: with a share of the features goes
the same share of what the trait explains. How a normal and a sparse prior are mixed is not chosen from
a part, which tells less than all do: of the mixtures the one that explains most in the mean is taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, InputError
from primo.released.estimate.blocks import MIXTURES, BlockMoments, fit_priors

__all__ = [
    "BlockScales",
    "Trait",
    "draw_moments",
    "draw_trait",
    "forecast_blocks",
    "forecast_draws",
    "score",
]

Floats = NDArray[np.float64]

ENOUGH = 16_000  # features that stand for all
SEED = 20_261_117


@dataclass(frozen=True, kw_only=True)
class Trait:
    """What is assumed of a trait of variance 1; effects of standardised features are normal."""

    heritability: float  # share of its variance that the features explain
    causal: float  # share of features with an effect

    def __post_init__(self) -> None:
        """Refuse shares that are none."""
        for name in ("heritability", "causal"):
            value = getattr(self, name)
            if not 0 <= value <= 1:
                raise InputError(Argument(name, value), " must lie between 0 and 1")


@dataclass(frozen=True, kw_only=True, eq=False)
class BlockScales:
    """Noise of a release in units of standardised features and a trait of variance 1."""

    association: float  # σ₂
    blocks: Floats | float = 0.0  # (m,) σ_B, or one for all; 0 where features are public
    outcome: float = 0.0  # of noise on the trait itself


def draw_trait(
    rng: np.random.Generator, linkage: Sequence[Floats], trait: Trait, *, part: float = 1.0
) -> list[Floats]:
    """Draw effects, block by block, that explain `part` of the trait's heritability in all."""
    effects = [
        rng.standard_normal(len(matrix)) * (rng.random(len(matrix)) < trait.causal)
        for matrix in linkage
    ]
    size = math.fsum(float(w @ r @ w) for w, r in zip(effects, linkage, strict=True))
    factor = math.sqrt(trait.heritability * part / size) if size > 0 else 0.0
    return [factor * w for w in effects]


def draw_moments(
    rng: np.random.Generator,
    linkage: Sequence[Floats],
    effects: Sequence[Floats],
    *,
    n: int,
    scales: BlockScales,
) -> BlockMoments:
    """Draw the released moments of n people from their law."""
    seen = 1 + scales.outcome**2  # variance of the trait with noise on itself
    sigma = np.broadcast_to(np.asarray(scales.blocks, dtype=np.float64), (len(linkage),))
    covariance, association = [], []
    for matrix, w, noise in zip(linkage, effects, sigma, strict=True):
        width = len(matrix)
        mean = matrix @ w
        residual = max(seen - float(w @ mean), 0.0)  # other blocks are part of it
        chance = _root(matrix) @ rng.standard_normal(width)
        added = scales.association * rng.standard_normal(width)
        association.append(n * mean + math.sqrt(n * residual) * chance + added)
        square = rng.standard_normal((width, width)) if noise else np.zeros((width, width))
        covariance.append(n * matrix + noise / 2 * (square + square.T))
    return BlockMoments(
        n=n,
        starts=np.append(0, np.cumsum([len(matrix) for matrix in linkage])),
        covariance=tuple(covariance),
        sigma=np.array(sigma),
        association=np.concatenate(association)[:, None],
        noise_variance=np.array([scales.association**2]),
        variation=np.array([float(n)]),
        row_noise=scales.outcome**2,
    )


def score(
    found: Floats, effects: Sequence[Floats], linkage: Sequence[Floats]
) -> tuple[float, float]:
    """Return R² of a score on new people, and its squared correlation with the trait."""
    at, both, own = 0, 0.0, 0.0
    for w, matrix in zip(effects, linkage, strict=True):
        guess = found[at : at + len(w)]
        at += len(w)
        along = matrix @ guess
        both += float(along @ w)
        own += float(along @ guess)
    return 2 * both - own, both**2 / own if own > 0 else 0.0


def forecast_blocks(
    linkage: Sequence[Floats],
    *,
    n: int,
    scales: BlockScales,
    trait: Trait,
    draws: int | None = None,
    seed: int = SEED,
) -> float:
    """Predict R² of the polygenic score on new people, before any data is read.

    Parameters
    ----------
    linkage
        Correlations inside all blocks, from public people.
    n
        People in the cohort.
    scales
        Noise of the release.
    trait
        What is assumed of the trait.
    draws
        Traits to average over; by default enough for twice `ENOUGH` features.

    Notes
    -----
    Guarantee: sees public numbers only. Cost: a few seconds for any number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from primo.forecast.blocks import BlockScales, Trait, forecast_blocks
    >>> linkage = [np.eye(10)] * 50
    >>> trait = Trait(heritability=0.5, causal=0.1)
    >>> few = forecast_blocks(linkage, n=1_000, scales=BlockScales(association=0.0), trait=trait)
    >>> many = forecast_blocks(linkage, n=100_000, scales=BlockScales(association=0.0), trait=trait)
    >>> 0 <= few < many < 0.5
    True
    """
    found = forecast_draws(linkage, n=n, scales=scales, trait=trait, draws=draws, seed=seed)
    # A part of the blocks knows the prior less well than all do, and may seem to do harm.
    return max(float(found.mean()), 0.0)


def forecast_draws(
    linkage: Sequence[Floats],
    *,
    n: int,
    scales: BlockScales,
    trait: Trait,
    draws: int | None = None,
    seed: int = SEED,
) -> Floats:
    """Return R² of every draw that `forecast_blocks` averages."""
    rng = np.random.default_rng(seed)
    widths = np.array([len(matrix) for matrix in linkage])
    total = int(widths.sum())
    sigma = np.broadcast_to(np.asarray(scales.blocks, dtype=np.float64), widths.shape)
    found = []
    if draws is None:
        draws = max(2, -(-2 * ENOUGH // total))
    for _ in range(draws):
        order = rng.permutation(len(linkage))
        count = int(np.searchsorted(np.cumsum(widths[order]), min(ENOUGH, total))) + 1
        chosen = order[:count]
        some = [linkage[k] for k in chosen]
        part = float(widths[chosen].sum() / total)
        effects = draw_trait(rng, some, trait, part=part)
        noise = BlockScales(
            association=scales.association, blocks=sigma[chosen], outcome=scales.outcome
        )
        moments = draw_moments(rng, some, effects, n=n, scales=noise)
        found.append(_mixed(fit_priors(moments), effects, some) / part)
    table = np.array(found)
    return np.asarray(table[:, int(np.argmax(table.mean(axis=0)))])


def _mixed(
    priors: tuple[Floats, Floats], effects: Sequence[Floats], linkage: Sequence[Floats]
) -> Floats:
    """Return R² on new people of every mixture of two estimates, (mixtures,)."""
    one, other = priors
    alone, last = (score(each, effects, linkage)[0] for each in priors)
    middle = score((one + other) / 2, effects, linkage)[0]
    # R² is a parabola in the share of the second.
    bend = 2 * (alone + last) - 4 * middle
    return np.asarray(alone + MIXTURES * (last - alone - bend) + MIXTURES**2 * bend)


def _root(matrix: Floats) -> Floats:
    """Return a matrix M with MMᵀ = the given one, which may be singular."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))
