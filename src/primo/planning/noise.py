"""How much noise every part of a release gets, and what it costs: a function of public numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from primo.errors import InputError
from primo.planning.searches import NONE, Columns, Searches, plan_searches
from primo.privacy.blocks import BlockGrid
from primo.privacy.budget import Budget
from primo.privacy.calibration import epsilon_with_margin, lattice_margin, mu_of
from primo.privacy.grid import SMALLEST_VARIANCE_BITS, Grid, make_grid
from primo.privacy.lengths import BINS
from primo.privacy.paper import PaperAlgorithm, paper_scales
from primo.privacy.perturbation import Perturbation
from primo.privacy.protection import Protection
from primo.privacy.rounds import Rounds
from primo.privacy.sensitivity import joint_distance
from primo.privacy.subsampling import SampledScales, calibrate, true_delta, true_epsilon

__all__ = [
    "Noise",
    "margin_of",
    "paper_algorithm",
    "paper_noise",
    "remaining_mu",
    "sampled_noise",
    "sampled_scales",
    "search_within",
]


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise of a release, and what it costs; the fields are those of a `Plan`."""

    mu: float
    epsilon: float
    margin: float
    split: float
    grid: Grid
    searches: Searches = NONE
    rounds: Rounds | None = None
    blocks: BlockGrid | None = None
    perturbation: Perturbation | None = None


def remaining_mu(mu: float, searches: Searches) -> float:
    """Return what the stages that find bounds leave of mu, never more than that."""
    if searches == NONE:
        return mu
    return math.sqrt(mu**2 - float(searches.spent)) * (1 - 1e-12)


def search_within(
    blocks: dict[str, Columns],
    *,
    budget: Budget,
    share: float,
    n: int,
    margin: Callable[[Searches], float],
) -> tuple[float, float, Searches]:
    """Decide on the stages that find bounds; return mu, the lattice margin and the stages.

    The margin grows with the numbers that the stages release, and mu falls with the margin, by less
    than its last digits: what is decided with the one is made with the other.
    """
    decided = NONE
    for _ in range(3):
        mu = mu_of(budget, margin=margin(decided))
        found = plan_searches(blocks, mu=mu, share=share, n=n)
        if margin(found) == margin(decided):
            return mu, margin(found), found
        decided = found
    # A tie that every new margin decides otherwise: norms alone, whose margin is the least.
    mu = mu_of(budget, margin=margin(NONE))
    return mu, margin(NONE), Searches(norms=found.norms)


def paper_algorithm(
    protection: Protection, calibration: str, covariance_rows: int | None
) -> PaperAlgorithm:
    """Return the algorithm of the paper that a request stands for."""
    if calibration == "paper-alg3":
        return PaperAlgorithm.LAMBDA_REUSE_COV
    if covariance_rows is not None:
        return PaperAlgorithm.SUB_SAMP_REUSE_COV
    return {
        Protection.BOTH: PaperAlgorithm.REUSE_COV_GAUSS,
        Protection.FEATURES: PaperAlgorithm.REUSE_COV_PROJ_Y,
        Protection.OUTCOMES: PaperAlgorithm.REUSE_COV_PROJ_X,
    }[protection]


def paper_noise(
    budget: Budget,
    n: int,
    algorithm: PaperAlgorithm,
    protection: Protection,
    covariance_rows: int | None,
    margin: float,
) -> Noise:
    """Noise as the paper prints it, and the epsilon that it truly gives."""
    scales = paper_scales(algorithm, budget, rows=n, sampled=covariance_rows)
    q = scales.association**-2
    p = scales.covariance**-2 if protection.features_private else q / 2
    grid = make_grid(p=p, q=q, n=n)
    released = grid.p if protection.features_private else 0 * grid.p
    mu = math.sqrt(joint_distance(released, grid.q, grid.s)) * (1 + 1e-12)
    if covariance_rows is not None and covariance_rows < n:
        scales_drawn = sampled_scales(n, covariance_rows, grid)
        given = true_epsilon(scales_drawn, budget.delta * math.exp(-2 * margin)) + 2 * margin
    else:
        given = epsilon_with_margin(mu, budget.delta, margin)
    return Noise(mu=mu, epsilon=given, margin=margin, split=q / p, grid=grid)


def sampled_noise(
    budget: Budget, n: int, l: int, covariance_rows: int, split: float | None, margin: float
) -> Noise:
    """Noise for a covariance of sampled rows and an association of all rows."""
    scales = calibrate(budget, rows=n, sampled=covariance_rows, l=l, split=split, margin=margin)
    p, q, _ = scales.squares
    # Room for the float rounding of p and q; more is rarely needed, at the smallest budgets.
    for room in (1e-11, 1e-8, 1e-5):
        grid = make_grid(p=p * (1 - room), q=q * (1 - room), n=n)
        given = true_delta(sampled_scales(n, covariance_rows, grid), budget.epsilon - 2 * margin)
        if given <= budget.delta * math.exp(-2 * margin):
            return Noise(
                mu=scales.public_mu,
                epsilon=budget.epsilon,
                margin=margin,
                split=scales.split,
                grid=grid,
            )
    raise InputError(f"{budget} is too small for a sub-sampled covariance; raise epsilon or delta")


def sampled_scales(n: int, covariance_rows: int, grid: Grid) -> SampledScales:
    """Return the noise scales of a grid whose covariance is that of sampled rows."""
    return SampledScales(
        rows=n,
        sampled=covariance_rows,
        covariance=float(grid.p) ** -0.5,
        association=float(grid.q) ** -0.5,
        outcome=float(grid.s) ** -0.5,
    )


def margin_of(
    width: int,
    l: int,
    full: bool,
    *,
    histograms: int = 0,
    further: int = 0,
    rounds: int = 1,
    inside: int | None = None,
    perturbed_rows: int | None = None,
) -> float:
    """Return the lattice margin of a release of this many numbers, `further` ones included.

    `inside` is how many numbers the blocks of features hold, and their sums; None for a whole matrix.
    With noise on the outcomes themselves, of so many rows, nothing else has noise.
    """
    count = (
        (width * (width + 1) // 2 if inside is None else inside)
        + width * l
        + (l * (l + 1) // 2 if full else l)
    )
    count *= rounds
    if perturbed_rows is not None:
        count = perturbed_rows * l
    count += histograms * BINS + further
    return lattice_margin(count, SMALLEST_VARIANCE_BITS)
