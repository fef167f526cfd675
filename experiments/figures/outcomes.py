"""Problems for given features: outcomes of a model, or real ones; as rows or as moments alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from baselines.base import ExactMoments, shortened
from experiments.figures.features import Data, draw_features, rows_of
from experiments.figures.grid import Cell
from experiments.figures.law import draw_moments
from experiments.figures.models import MODELS, Linear, Shape, Signal
from experiments.figures.problem import Problem, Truth
from experiments.figures.real import draw_real, real_shape
from primo.errors import InputError
from primo.planning.make import FULL_OUTCOME_MOMENTS

__all__ = ["IN_MEMORY", "draw", "draw_problem", "real_problem"]

Matrix = NDArray[np.float64]

#: Outcomes, n·l in all, are held in memory up to the first number, and drawn in blocks of rows up to the
#: second; beyond it moments are drawn from their law.
IN_MEMORY = 20_000_000
IN_BLOCKS = 1_000_000_000

#: Rows of features are shortened to this many root mean square lengths, rows of outcomes to
#: (SLOPE·√l + OFFSET) standard deviations of one outcome: what serves primo best on the separate data of
#: `python -m experiments.tuning.bounds`.
SHORT, SLOPE, OFFSET = 0.85, 0.85, 0.6
#: From this many rows on none are shortened: those constants are for a few thousand rows, where noise
#: costs more than the bias of shortened rows.
MANY = 100_000

_RARE = 1e-9  # probability that the bounds shorten any row, where rows are not held
_BLOCK = 4_000_000  # outcomes that are drawn together where they are not held


def draw(cell: Cell, *, data: Data, rng: np.random.Generator) -> Problem:
    """Draw the problem of one cell of a grid; it has fewer rows where the user's file has fewer."""
    if cell.outcomes == "real":
        n, d, l = real_shape(cell.features)
        wanted = {"n": min(n, cell.n), "d": min(d, cell.d), "l": min(l, cell.l)}
        return real_problem(*draw_real(cell.features, **wanted, rng=rng))
    rows = rows_of(cell.features, data)
    n = cell.n if rows is None else min(rows, cell.n)
    features = draw_features(cell.features, n=n, d=cell.d, data=data, rng=rng)
    return draw_problem(features=features, model=cell.outcomes, l=cell.l, rng=rng)


def draw_problem(
    *,
    features: Matrix,
    model: str,
    l: int,
    rng: np.random.Generator,
    in_memory: bool | None = None,
    shorten: bool = True,
) -> Problem:
    """Draw l outcomes of a model, signal + N(0, 1), for centred features.

    Parameters
    ----------
    features
        (n, d), centred.
    model
        "linear": θ ~ N(0, I/√d). "unit": a direction at random, with a signal of 1/0.3 standard
        deviations of the noise. "mlp": a network with one hidden layer, as strong as "linear".
    l
        Number of outcomes.
    in_memory
        Whether the problem has rows; by default if there are at most `IN_MEMORY` outcomes in all.
        Otherwise it has moments alone, of the same law: summed over blocks of rows, or, from `IN_BLOCKS`
        outcomes on, drawn without any of them if the model is linear.
    shorten
        Whether norms are as tight as a user would choose them, so that many rows are shortened (none
        from `MANY` rows on, or where moments are drawn from their law).
    """
    if model not in MODELS:
        raise InputError(f"outcomes {model!r} are unknown; known are {', '.join(MODELS)}, real")
    shape = Shape.of(features)
    signal, largest, typical = MODELS[model](features, shape, l, rng)
    if in_memory is None:
        in_memory = shape.n * l <= IN_MEMORY
    has_rows = in_memory or shape.n * l <= IN_BLOCKS or not isinstance(signal, Linear)
    # The law is that of rows that are not shortened; and with many rows, bias outweighs noise.
    tight = has_rows and shorten and shape.n < MANY
    spread = np.sqrt(typical) if tight else np.inf
    reach = np.sqrt(largest * stats.chi2.isf(_RARE / shape.n, l))
    limit = np.sqrt(largest * stats.chi2.isf(_RARE / (shape.n * l), 1))
    bounds = _Bounds(
        feature_norm=SHORT * shape.length if tight else shape.longest,
        feature_reach=shape.longest,
        feature_limit=shape.limit,
        outcome_norm=float(min(reach, (SLOPE * np.sqrt(l) + OFFSET) * spread)),
        outcome_clip=float(min(limit, (SLOPE + OFFSET) * spread)),
        outcome_reach=float(reach),
        outcome_limit=float(limit),
        # Of rows that are not held: the median of the largest of n·l, if all vary alike.
        outcome_largest=float(np.sqrt(typical) * stats.norm.isf(0.25 / (shape.n * l))),
    )
    if in_memory:
        outcomes = signal.of(features)
        outcomes += rng.standard_normal(outcomes.shape)
        bounds = replace(bounds, outcome_largest=float(np.abs(outcomes).max()))
        return _summed([(features, outcomes)], l, shape, bounds, rows=(features, outcomes))
    if has_rows:
        return _summed(_in_blocks(features, signal, l, rng), l, shape, bounds)
    assert isinstance(signal, Linear)
    return _from_law(signal.theta, shape, bounds, rng)


def real_problem(features: Matrix, outcomes: Matrix) -> Problem:
    """Make a problem of real features and outcomes, both centred.

    The longest rows, the largest entries and root mean squares are taken to be public.
    """
    shape, l = Shape.of(features), outcomes.shape[1]
    lengths = np.sqrt(np.einsum("ij,ij->i", outcomes, outcomes))
    entries = np.abs(outcomes)
    spread = np.sqrt(np.mean(outcomes**2))
    bounds = _Bounds(
        feature_norm=SHORT * shape.length,
        feature_reach=shape.longest,
        feature_limit=shape.limit,
        outcome_norm=float((SLOPE * np.sqrt(l) + OFFSET) * spread),
        outcome_clip=float((SLOPE + OFFSET) * spread),
        outcome_reach=float(lengths.max()),
        outcome_limit=float(entries.max()),
        outcome_largest=float(entries.max()),
    )
    rows = (features, outcomes)
    return _summed([rows], l, shape, bounds, rows=rows)


@dataclass(frozen=True, kw_only=True)
class _Bounds:
    feature_norm: float
    feature_reach: float
    feature_limit: float
    outcome_norm: float
    outcome_clip: float
    outcome_reach: float
    outcome_limit: float
    outcome_largest: float

    def problem(
        self, truth: Truth, moments: ExactMoments, rows: tuple[Matrix, Matrix] | None = None
    ) -> Problem:
        """Return the problem with these moments of the shortened rows."""
        d, l = truth.association.shape
        return Problem(
            n=truth.n,
            d=d,
            l=l,
            **asdict(self),
            truth=truth,
            moments=moments,
            rows=rows,
        )


def _in_blocks(
    features: Matrix, signal: Signal, l: int, rng: np.random.Generator
) -> Iterator[tuple[Matrix, Matrix]]:
    """Yield outcomes of a few rows at a time; they are not stored."""
    step = max(1, _BLOCK // l)
    for first in range(0, len(features), step):
        some = features[first : first + step]
        outcomes = signal.of(some)
        outcomes += rng.standard_normal(outcomes.shape)
        yield some, outcomes


def _summed(
    blocks: Iterable[tuple[Matrix, Matrix]],
    l: int,
    shape: Shape,
    bounds: _Bounds,
    rows: tuple[Matrix, Matrix] | None = None,
) -> Problem:
    """Sum over rows, as they are for the score and shortened for the mechanisms."""
    d = len(shape.covariance)
    association, covariance, seen = np.zeros((d, l)), np.zeros((d, d)), np.zeros((d, l))
    squares, sums = np.zeros(l), np.zeros(l)
    full = l <= FULL_OUTCOME_MOMENTS
    outcome = np.zeros((l, l) if full else l)
    for features, outcomes in blocks:
        association += features.T @ outcomes
        squares += np.einsum("ij,ij->j", outcomes, outcomes)
        sums += outcomes.sum(axis=0)
        short = shortened(features, bounds.feature_norm)
        kept = ExactMoments.of(short, shortened(outcomes, bounds.outcome_norm), full=full)
        covariance += kept.covariance
        seen += kept.association
        outcome += kept.outcome
    truth = Truth(
        n=shape.n,
        covariance=shape.covariance,
        association=association,
        squares=squares,
        spread=squares - sums**2 / shape.n,
    )
    moments = ExactMoments(n=shape.n, covariance=covariance, association=seen, outcome=outcome)
    return bounds.problem(truth, moments, rows=rows)


def _from_law(theta: Matrix, shape: Shape, bounds: _Bounds, rng: np.random.Generator) -> Problem:
    """Draw the moments of linear outcomes; that any row would be shortened is too rare to matter."""
    d, l = theta.shape
    # A column of ones beside the features gives the sums of the outcomes, which SS_tot needs.
    gram = np.block([[shape.covariance, shape.sums[:, None]], [shape.sums, shape.n]])
    slopes = np.vstack([theta, np.zeros(l)])
    drawn = draw_moments(gram, slopes, n=shape.n, full=l <= FULL_OUTCOME_MOMENTS, rng=rng)
    association, sums = drawn.association[:d], drawn.association[d]
    squares = drawn.outcome if drawn.outcome.ndim == 1 else np.diagonal(drawn.outcome)
    truth = Truth(
        n=shape.n,
        covariance=shape.covariance,
        association=association,
        squares=squares,
        spread=squares - sums**2 / shape.n,
    )
    moments = ExactMoments(
        n=shape.n, covariance=shape.covariance, association=association, outcome=drawn.outcome
    )
    return bounds.problem(truth, moments)
