"""Make a plan from public numbers; no data is touched."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo.errors import Argument, BoundsError, InputError, Message, WeakGuaranteeWarning
from primo.planning.blocks import block_shares, block_starts, chosen_covariance
from primo.planning.noise import (
    Noise,
    margin_of,
    paper_algorithm,
    paper_noise,
    remaining_mu,
    sampled_noise,
    search_within,
)
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.rounds import AUTO_ROUNDS, check_rounds, shares_of, why_one_round
from primo.planning.searches import Columns, Searches, searched_numbers
from primo.planning.settings import Settings, associations_for, check_choices, spelled_missing
from primo.privacy.blocks import block_grid, numbers_inside
from primo.privacy.bounds import Bounds, as_bounds, missing_bounds
from primo.privacy.budget import Budget, is_whole
from primo.privacy.calibration import split_ratio
from primo.privacy.clip import Clip
from primo.privacy.grid import Grid, joint_grid, make_grid
from primo.privacy.norm_search import DEFAULT_SHARE
from primo.privacy.perturbation import perturbation
from primo.privacy.protection import Protection
from primo.privacy.rounds import make_rounds
from primo.privacy.sensitivity import joint_distance

__all__ = ["FULL_OUTCOME_MOMENTS", "extension_plan", "make_plan"]

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
    auto_norms = _auto_norms(settings, features=features, outcomes=outcomes)
    count = _round_count(settings, origin)
    margin = partial(
        margin_of,
        d + intercept,
        l,
        full,
        histograms=len(auto_norms),
        rounds=count,
        inside=None if starts is None else numbers_inside(starts) + d * intercept,
        perturbed_rows=n if settings.association == "perturbed" else None,
    )
    if settings.calibration != "exact":
        algorithm = paper_algorithm(protection, settings.calibration, rows)
        noise = paper_noise(budget, n, algorithm, protection, rows, margin())
    elif rows is not None and rows < n:
        noise = sampled_noise(budget, n, l, rows, settings.split, margin())
    else:
        from_rows = origin is CovarianceOrigin.ROWS
        blocks = {
            block: Columns.of(bounds, width, movable=movable)
            for block, bounds, width, private, movable in (
                (
                    "features",
                    features,
                    d,
                    protection.features_private,
                    intercept and from_rows,
                ),
                ("outcomes", outcomes, l, protection.outcomes_private, intercept),
            )
            if block in auto_norms and private
        }
        mu, total, searches = search_within(
            blocks,
            budget=budget,
            share=settings.norm_share,
            n=n,
            margin=lambda found: margin(further=searched_numbers(found, d=d, l=l)),
        )
        # Where no covariance is paid for there is nothing to split; 2 minimises σ₂.
        paid = protection.features_private and from_rows
        noise = _exact_noise(
            settings,
            mu=mu,
            margin=total,
            searches=searches,
            split=(settings.split or split_ratio(l, rounds=count)) if paid else 2.0,
            n=n,
            shares=shares_of(count, means=intercept and protection.outcomes_private),
            starts=starts,
            features=features.clip(d, "features"),
        )
    plan = Plan(
        n=n,
        d=d,
        l=l,
        protection=protection,
        budget=budget,
        mu=noise.mu,
        epsilon=noise.epsilon,
        margin=noise.margin,
        split=noise.split,
        features=features.clip(d, "features"),
        outcomes=outcomes.clip(l, "outcomes"),
        intercept=intercept,
        full_outcome_moments=full,
        missing=spelled_missing(settings.missing),
        grid=noise.grid,
        association=settings.association,
        calibration=settings.calibration,
        sampled=rows if rows is None or rows < n else None,
        covariance_origin=origin,
        rows_per_person=settings.rows_per_person,
        auto_norms=auto_norms,
        norm_search=noise.searches.norms,
        centre_search=noise.searches.centres,
        column_search=noise.searches.columns,
        rounds=noise.rounds,
        blocks=noise.blocks,
        perturbation=noise.perturbation,
    )
    _check_fallback(plan, features=features, outcomes=outcomes)
    return plan


def _exact_noise(
    settings: Settings,
    *,
    mu: float,
    margin: float,
    searches: Searches,
    split: float,
    n: int,
    shares: Sequence[float],
    starts: NDArray[np.int64] | None,
    features: Clip,
) -> Noise:
    """Choose the noise of the moments, of all rounds, within what the searches leave of mu."""
    left = remaining_mu(mu, searches)
    rounds, blocks, perturbed = None, None, None
    if starts is not None:
        inside = block_shares(features, starts, settings.block_norms)
        grid, blocks = block_grid(mu=left, n=n, starts=starts, shares=inside)
    elif len(shares) == 1:
        grid = joint_grid(mu=left, split=split, n=n)
    else:
        rounds = make_rounds(mu=left, split=split, n=n, shares=shares)
        grid = rounds.grids[0]
    if settings.association == "perturbed":
        perturbed = perturbation(mu=left, radius_squared=grid.outcome_radius_squared)
    return Noise(
        mu=mu,
        epsilon=settings.epsilon,
        margin=margin,
        split=split,
        grid=grid,
        searches=searches,
        rounds=rounds,
        blocks=blocks,
        perturbation=perturbed,
    )


def _round_count(settings: Settings, origin: CovarianceOrigin) -> int:
    """Return how many rounds there are; refuse several where one is all that there can be."""
    check_rounds(settings.rounds)
    if settings.rounds in (1, AUTO_ROUNDS):  # `forecast.compare.choose_plan` has chosen by now
        return 1
    reason = why_one_round(
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
    if settings.covariance == "blocks" and settings.association == "perturbed":
        # Never formed as a whole: public features are summed inside blocks, after the noise.
        block_starts(settings.blocks, d, "blocks")
        if n < 2:
            raise InputError("a single row of public features leaves nothing to fit")
        return CovarianceOrigin.ROW_SPACE
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
    mu, margin, searches = search_within(
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
