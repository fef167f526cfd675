"""Make a plan from public numbers; no data is touched."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from primo.errors import Argument, BoundsError, InputError, Message, WeakGuaranteeWarning
from primo.planning.blocks import block_shares, block_starts, chosen_covariance
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.rounds import AUTO_ROUNDS, check_rounds, why_one_round
from primo.planning.searches import NONE, Columns, Searches, plan_searches, searched_numbers
from primo.planning.settings import Settings, associations_for, check_choices, spelled_missing
from primo.privacy.blocks import block_grid, numbers_inside
from primo.privacy.bounds import Bounds, as_bounds, missing_bounds
from primo.privacy.budget import Budget, is_whole
from primo.privacy.calibration import epsilon_with_margin, lattice_margin, mu_of, split_ratio
from primo.privacy.grid import SMALLEST_VARIANCE_BITS, Grid, joint_grid, make_grid
from primo.privacy.lengths import BINS
from primo.privacy.norm_search import DEFAULT_SHARE
from primo.privacy.paper import PaperAlgorithm, paper_scales
from primo.privacy.perturbation import Perturbation, perturbation
from primo.privacy.protection import Protection
from primo.privacy.rounds import make_rounds, round_shares
from primo.privacy.sensitivity import joint_distance
from primo.privacy.subsampling import SampledScales, calibrate, true_delta, true_epsilon

__all__ = [
    "FULL_OUTCOME_MOMENTS",
    "extension_plan",
    "make_plan",
    "margin_of",
    "paper_algorithm",
    "remaining_mu",
    "sampled_scales",
]

#: Up to this many outcomes all of YᵀY is released, beyond it only its diagonal.
FULL_OUTCOME_MOMENTS = 512


def make_plan(settings: Settings, *, n: int, d: int, l: int) -> Plan:
    """Fix the noise of a release from public numbers alone; no data is touched.

    Parameters
    ----------
    settings
        What is decided about the release; association="auto" is for `forecast.compare.choose_plan`,
        and so is rounds="auto", which counts as one round here.
    n, d, l
        Rows, features, outcomes.
    """
    protection = Protection.parse(settings.protection)
    budget = Budget(epsilon=settings.epsilon, delta=settings.delta)
    _check_counts(budget, n=n, d=d, l=l)
    check_choices(settings)
    covariance = chosen_covariance(settings, n=n, d=d)
    if covariance != settings.covariance:  # checked again, as if it had been asked for
        blocks = settings.blocks if covariance == "blocks" else None
        norms = None if blocks is None else settings.block_norms
        settings = replace(settings, covariance=covariance, blocks=blocks, block_norms=norms)
        check_choices(settings)
    rows = settings.covariance_rows
    if rows is not None and not (is_whole(rows) and 1 <= rows <= n):
        raise InputError(
            Argument("covariance_rows", rows),
            f" must be a whole number between 1 and the {n} rows",
        )
    features = _public(settings.feature_bounds, "features", private=protection.features_private)
    outcomes = _public(settings.outcome_bounds, "outcomes", private=protection.outcomes_private)
    origin = _origin(settings, protection, n=n, d=d)
    intercept = bool(settings.fit_intercept)
    full = _full(settings.outcome_moments, l)
    starts = None
    if origin is CovarianceOrigin.BLOCKS:
        starts = block_starts(settings.blocks, d, covariance)
    inside = None if starts is None else numbers_inside(starts) + d * intercept
    auto_norms = _auto_norms(settings, features=features, outcomes=outcomes)
    histograms, count = len(auto_norms), _round_count(settings, protection, origin)
    perturbed = n if settings.association == "perturbed" else None
    margin = margin_of(
        d + intercept,
        l,
        full,
        histograms=histograms,
        rounds=count,
        inside=inside,
        perturbed_rows=perturbed,
    )
    covariance_noisy = protection.features_private and origin is CovarianceOrigin.ROWS
    searches, rounds, blocked = NONE, None, None
    noise: Perturbation | None = None
    if settings.calibration != "exact":
        algorithm = paper_algorithm(protection, settings.calibration, rows)
        calibrated = _paper(budget, n, algorithm, protection, rows, margin)
    elif rows is not None and rows < n:
        calibrated = _sampled(budget, n, l, rows, settings.split, margin)
    else:
        # Where no covariance is paid for there is nothing to split; 2 minimises σ₂.
        ratio = (settings.split or split_ratio(l)) if covariance_noisy else 2.0
        blocks = {
            block: Columns.of(bounds, width, movable=movable)
            for block, bounds, width, private, movable in (
                (
                    "features",
                    features,
                    d,
                    protection.features_private,
                    intercept and origin is CovarianceOrigin.ROWS,
                ),
                ("outcomes", outcomes, l, protection.outcomes_private, intercept),
            )
            if block in auto_norms and private
        }
        mu, margin, searches = _searched(
            blocks,
            budget=budget,
            share=settings.norm_share,
            n=n,
            margin=lambda found: margin_of(
                d + intercept,
                l,
                full,
                histograms=histograms,
                rounds=count,
                further=searched_numbers(found, d=d, l=l),
                inside=inside,
                perturbed_rows=perturbed,
            ),
        )
        left = remaining_mu(mu, searches)
        if starts is not None:
            shares = block_shares(features.clip(d, "features"), starts, settings.block_norms)
            grid, blocked = block_grid(mu=left, n=n, starts=starts, shares=shares)
        elif count == 1:
            grid = joint_grid(mu=left, split=ratio, n=n)
        else:
            rounds = make_rounds(mu=left, split=ratio, n=n, shares=round_shares(count))
            grid = rounds.grids[0]
        if perturbed:
            noise = perturbation(mu=left, radius_squared=grid.outcome_radius_squared)
        calibrated = mu, budget.epsilon, ratio, grid
    mu, given, ratio, grid = calibrated
    plan = Plan(
        n=n,
        d=d,
        l=l,
        protection=protection,
        budget=budget,
        mu=mu,
        epsilon=given,
        margin=margin,
        split=ratio,
        features=features.clip(d, "features"),
        outcomes=outcomes.clip(l, "outcomes"),
        intercept=intercept,
        full_outcome_moments=full,
        missing=spelled_missing(settings.missing),
        grid=grid,
        association=settings.association,
        calibration=settings.calibration,
        sampled=rows if rows is None or rows < n else None,
        covariance_origin=origin,
        rows_per_person=settings.rows_per_person,
        auto_norms=auto_norms,
        norm_search=searches.norms,
        centre_search=searches.centres,
        column_search=searches.columns,
        rounds=rounds,
        blocks=blocked,
        perturbation=noise,
    )
    _check_fallback(plan, features=features, outcomes=outcomes)
    return plan


def _round_count(settings: Settings, protection: Protection, origin: CovarianceOrigin) -> int:
    """Return how many rounds there are; refuse several where one is all that there can be."""
    check_rounds(settings.rounds)
    if settings.rounds in (1, AUTO_ROUNDS):  # `forecast.compare.choose_plan` has chosen by now
        return 1
    reason = why_one_round(
        protection=protection,
        origin=origin,
        calibration=settings.calibration,
        association=settings.association,
        sampled=settings.covariance_rows,
    )
    if reason is not None:
        raise InputError(
            Argument("rounds", settings.rounds),
            " is not possible here: ",
            reason,
            remedy=Message.of("use ", Argument("rounds", 1)),
        )
    return int(settings.rounds)


def remaining_mu(mu: float, searches: Searches) -> float:
    """Return what the stages that find bounds leave of mu, never more than that."""
    if searches == NONE:
        return mu
    return math.sqrt(mu**2 - float(searches.spent)) * (1 - 1e-12)


def _searched(
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


def _auto_norms(settings: Settings, *, features: Bounds, outcomes: Bounds) -> tuple[str, ...]:
    """Return the blocks whose norm is to be found; refuse it where the cost is not that of one mu."""
    bounds = {"features": features, "outcomes": outcomes}
    found = tuple(block for block, limits in bounds.items() if limits.auto_norm)
    if found and (settings.calibration != "exact" or settings.covariance_rows is not None):
        raise BoundsError(
            f"the {found[0]} have ",
            Argument("bounds.norm", "auto"),
            ", which goes with ",
            Argument("calibration", "exact"),
            " and a covariance of all rows",
            remedy=Message.of(
                "state the norm, or leave ",
                *(
                    (Argument("covariance_rows"),)
                    if settings.calibration == "exact"
                    else (Argument("calibration"),)
                ),
                " out",
            ),
        )
    return found


def _check_fallback(plan: Plan, *, features: Bounds, outcomes: Bounds) -> None:
    """Refuse a norm that can neither be found, for want of rows, nor follows from ranges."""
    for block, bounds in (("features", features), ("outcomes", outcomes)):
        if block in plan.declined and not bounds.has_fallback:
            raise BoundsError(
                f"the {block} have ",
                Argument("bounds.norm", "auto"),
                f" and no range, but {plan.n} rows are too few to find a norm with ",
                Argument("epsilon", plan.budget.epsilon),
                remedy="State a norm or a range from public knowledge, or raise epsilon",
            )


def _check_counts(budget: Budget, *, n: int, d: int, l: int) -> None:
    for name, value in (("n", n), ("d", d), ("l", l)):
        if not is_whole(value) or value < 1:
            raise InputError(Argument(name, value), " must be a whole number, at least 1")
    if budget.delta > 1 / n and n > 1:
        warnings.warn(
            WeakGuaranteeWarning(
                Argument("delta", budget.delta),
                f" is above 1/n={1 / n:.3g}: a mechanism that publishes one person's row in the clear "
                "could satisfy it",
                remedy="Choose delta below 1/n, for example 1/n²",
            ),
            stacklevel=4,
        )


def _origin(settings: Settings, protection: Protection, *, n: int, d: int) -> CovarianceOrigin:
    """Return where the covariance comes from."""
    if settings.public_covariance is not None:
        return CovarianceOrigin.REFERENCE
    if settings.covariance != "full":
        return CovarianceOrigin.BLOCKS
    if protection.features_private or d + bool(settings.fit_intercept) <= n:
        return CovarianceOrigin.ROWS
    if n < 2:
        raise InputError("a single row of public features leaves nothing to fit")
    if settings.association not in associations_for(protection, row_space=True):
        raise InputError(
            Argument("association", "projection"),
            " is for no more features than rows; with "
            f"{d} features and {n} rows the row space already drops the noise outside",
            remedy=Message.of("use ", Argument("association", "gauss")),
        )
    return CovarianceOrigin.ROW_SPACE


def extension_plan(
    earlier: Plan, *, l: int, epsilon: float, delta: float, outcome_bounds: Bounds | None
) -> Plan:
    """Plan a release of new outcomes that uses the covariance of an earlier one again.

    Only the association (and the outcome moments, free) is paid for. Features, their bounds and
    their grid are those of `earlier`.
    """
    budget = Budget(epsilon=epsilon, delta=delta)
    if earlier.calibration != "exact":
        raise InputError(
            "a release with ",
            Argument("calibration", earlier.calibration),
            " is for reproducing figures and is not extended",
            remedy=Message.of("make it with ", Argument("calibration", "exact")),
        )
    if earlier.blocks is not None:
        raise InputError(
            "a release with a covariance inside blocks of features is not extended",
            remedy="release the new outcomes by a fit of their own: the covariance costs nothing there",
        )
    outcomes = _public(outcome_bounds, "outcomes", private=earlier.protection.outcomes_private)
    if l < 1:
        raise InputError(Argument("l", l), " must be at least 1")
    full = _full("auto", l)
    auto_norms = ("outcomes",) if outcomes.auto_norm else ()
    blocks = {}
    if auto_norms and earlier.protection.outcomes_private:
        blocks["outcomes"] = Columns.of(outcomes, l, movable=earlier.intercept)
    mu, margin, searches = _searched(
        blocks,
        budget=budget,
        share=DEFAULT_SHARE,
        n=earlier.n,
        margin=lambda found: margin_of(
            earlier.width,
            l,
            full,
            histograms=len(auto_norms),
            further=searched_numbers(found, d=earlier.d, l=l),
        ),
    )
    left = remaining_mu(mu, searches)
    q = left**2 / 4 * (1 - 1e-11)
    grid = make_grid(
        p=q / 2, q=q, n=earlier.n, feature_radius_squared=earlier.grid.feature_radius_squared
    )
    # The stored covariance keeps its own noise; nothing of it is drawn again.
    kept = earlier.grid.covariance_variance_bits
    if (
        earlier.rounds is not None
    ):  # that of all rounds together, as a power of two that is not less
        precision = float(sum(grid.p for grid in earlier.rounds.grids))
        kept = math.ceil(2 * math.log2(earlier.grid.feature_radius_squared) - math.log2(precision))
    if joint_distance(0 * grid.p, grid.q, grid.s) > left**2:
        raise AssertionError(f"{grid} exceeds mu={mu!r}")  # a bug, never the user's fault
    origin = earlier.covariance_origin
    plan = Plan(
        n=earlier.n,
        d=earlier.d,
        l=l,
        protection=earlier.protection,
        budget=budget,
        mu=mu,
        epsilon=budget.epsilon,
        margin=margin + earlier.margin,
        split=2.0,
        features=earlier.features,
        outcomes=outcomes.clip(l, "outcomes"),
        intercept=earlier.intercept,
        full_outcome_moments=full,
        missing=earlier.missing,
        grid=Grid(
            feature_radius_squared=grid.feature_radius_squared,
            outcome_radius_squared=grid.outcome_radius_squared,
            covariance_variance_bits=kept,
            association_variance_bits=grid.association_variance_bits,
            outcome_variance_bits=grid.outcome_variance_bits,
        ),
        sampled=earlier.sampled,
        covariance_origin=CovarianceOrigin.EARLIER if origin is CovarianceOrigin.ROWS else origin,
        earlier_mu=earlier.total_mu,
        rows_per_person=earlier.rows_per_person,
        auto_norms=auto_norms,
        norm_search=searches.norms,
        centre_search=searches.centres,
        column_search=searches.columns,
    )
    _check_fallback(plan, features=Bounds(norm=1.0), outcomes=outcomes)
    return plan


_Calibrated = tuple[float, float, float, Grid]  # mu, epsilon, split, grid


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


def _paper(
    budget: Budget,
    n: int,
    algorithm: PaperAlgorithm,
    protection: Protection,
    covariance_rows: int | None,
    margin: float,
) -> _Calibrated:
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
    return mu, given, q / p, grid


def _sampled(
    budget: Budget, n: int, l: int, covariance_rows: int, split: float | None, margin: float
) -> _Calibrated:
    """Noise for a covariance of sampled rows and an association of all rows."""
    scales = calibrate(budget, rows=n, sampled=covariance_rows, l=l, split=split, margin=margin)
    p, q, _ = scales.squares
    # Room for the float rounding of p and q; more is rarely needed, at the smallest budgets.
    for room in (1e-11, 1e-8, 1e-5):
        grid = make_grid(p=p * (1 - room), q=q * (1 - room), n=n)
        given = true_delta(sampled_scales(n, covariance_rows, grid), budget.epsilon - 2 * margin)
        if given <= budget.delta * math.exp(-2 * margin):
            return scales.public_mu, budget.epsilon, scales.split, grid
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


def _public(value: Any, block: str, *, private: bool) -> Bounds:
    """Return the bounds; refuse bounds of a private block that were read off its own data."""
    if value is None:
        raise missing_bounds(block)
    bounds = as_bounds(value, block.removesuffix("s"))
    if private and bounds.from_data:
        raise BoundsError(
            f"the {block} are private, but their bounds were read off data by Bounds.from_public: "
            "publishing them would leak. Write the numbers down from public knowledge instead, or "
            "use Bounds.from_reference(panel) with a public panel of other people"
        )
    return bounds


def _full(outcome_moments: str, l: int) -> bool:
    return outcome_moments == "full" or (outcome_moments == "auto" and l <= FULL_OUTCOME_MOMENTS)


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
