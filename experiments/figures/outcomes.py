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
from primo.planner import FULL_OUTCOME_MOMENTS

__all__ = ["HELD", "draw", "draw_problem", "real_problem"]

Matrix = NDArray[np.float64]

#: Rows are held in memory up to this many outcomes in all, n·l; beyond it there are moments alone.
HELD = 20_000_000

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
    hold: bool | None = None,
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
    hold
        Whether the problem has rows; by default if there are at most `HELD` outcomes in all.
        Otherwise it has moments alone, of the same law: those of the linear models are drawn without
        any array of n×l, networks are walked in blocks of rows.
    shorten
        Whether bounds on rows that are held are as tight as a user would choose them, so that a few
        rows are shortened.
    """
    if model not in MODELS:
        raise InputError(f"outcomes {model!r} are unknown; known are {', '.join(MODELS)}, real")
    shape = Shape.of(features)
    signal, largest, typical = MODELS[model](features, shape, l, rng)
    if hold is None:
        hold = shape.n * l <= HELD
    reach = np.sqrt(largest * stats.chi2.isf(_RARE / shape.n, l))
    limit = np.sqrt(largest * stats.chi2.isf(_RARE / (shape.n * l), 1))
    # A tighter bound shortens a few rows and brings less noise; the law knows of no shortened rows.
    short = np.sqrt(typical) if hold and shorten else np.inf
    bounds = _Bounds(
        feature_norm=shape.longest,
        feature_limit=shape.limit,
        outcome_norm=float(min(reach, (1.15 * np.sqrt(l) + 1) * short)),
        outcome_clip=float(min(limit, (1.15 + 1) * short)),
        outcome_reach=float(reach),
        outcome_limit=float(limit),
        # Of rows that are not held: the median of the largest of n·l, if all vary alike.
        outcome_largest=float(np.sqrt(typical) * stats.norm.isf(0.25 / (shape.n * l))),
    )
    if hold:
        outcomes = signal.of(features)
        outcomes += rng.standard_normal(outcomes.shape)
        bounds = replace(bounds, outcome_largest=float(np.abs(outcomes).max()))
        return _summed([(features, outcomes)], l, shape, bounds, rows=(features, outcomes))
    if isinstance(signal, Linear):
        return _from_law(signal.theta, shape, bounds, rng)
    return _summed(_in_blocks(features, signal, l, rng), l, shape, bounds)


def real_problem(features: Matrix, outcomes: Matrix, *, within: float = 0.98) -> Problem:
    """Make a problem of real features and outcomes, both centred.

    The longest rows, the largest entries, and what the share `within` of the rows (and of the entries)
    of outcomes does not exceed are taken to be public.
    """
    shape = Shape.of(features)
    lengths = np.sqrt(np.einsum("ij,ij->i", outcomes, outcomes))
    entries = np.abs(outcomes)
    bounds = _Bounds(
        feature_norm=shape.longest,
        feature_limit=shape.limit,
        outcome_norm=float(np.quantile(lengths, within)),
        outcome_clip=float(np.quantile(entries, within)),
        outcome_reach=float(lengths.max()),
        outcome_limit=float(entries.max()),
        outcome_largest=float(entries.max()),
    )
    rows = (features, outcomes)
    return _summed([rows], outcomes.shape[1], shape, bounds, rows=rows)


@dataclass(frozen=True, kw_only=True)
class _Bounds:
    feature_norm: float
    feature_limit: float
    outcome_norm: float
    outcome_clip: float
    outcome_reach: float
    outcome_limit: float
    outcome_largest: float

    def problem(
        self,
        truth: Truth,
        *,
        association: Matrix,
        outcome: Matrix,
        rows: tuple[Matrix, Matrix] | None = None,
    ) -> Problem:
        """Return the problem with these moments of the shortened rows."""
        d, l = association.shape
        return Problem(
            n=truth.n,
            d=d,
            l=l,
            **asdict(self),
            truth=truth,
            moments=ExactMoments(
                n=truth.n, covariance=truth.covariance, association=association, outcome=outcome
            ),
            rows=rows,
        )


def _in_blocks(
    features: Matrix, signal: Signal, l: int, rng: np.random.Generator
) -> Iterator[tuple[Matrix, Matrix]]:
    """Draw outcomes of a few rows at a time, and forget them."""
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
    association, seen = np.zeros((d, l)), np.zeros((d, l))
    squares, sums = np.zeros(l), np.zeros(l)
    full = l <= FULL_OUTCOME_MOMENTS
    outcome = np.zeros((l, l) if full else l)
    for features, outcomes in blocks:
        association += features.T @ outcomes
        squares += np.einsum("ij,ij->j", outcomes, outcomes)
        sums += outcomes.sum(axis=0)
        kept = ExactMoments.of(features, shortened(outcomes, bounds.outcome_norm), full=full)
        seen += kept.association
        outcome += kept.outcome
    truth = Truth(
        n=shape.n,
        covariance=shape.covariance,
        association=association,
        squares=squares,
        spread=squares - sums**2 / shape.n,
    )
    return bounds.problem(truth, association=seen, outcome=outcome, rows=rows)


def _from_law(theta: Matrix, shape: Shape, bounds: _Bounds, rng: np.random.Generator) -> Problem:
    """Draw the moments of linear outcomes; that any row would be shortened is too rare to matter."""
    d, l = theta.shape
    # A column of ones beside the features gives the sums of the outcomes, which SS_tot needs.
    gram = np.empty((d + 1, d + 1))
    gram[:d, :d], gram[d, :d], gram[:d, d], gram[d, d] = (
        shape.covariance,
        shape.sums,
        shape.sums,
        shape.n,
    )
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
    return bounds.problem(truth, association=association, outcome=drawn.outcome)
