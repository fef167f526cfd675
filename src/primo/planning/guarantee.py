"""Check that a plan states the guarantee that its noise gives; everything is computed again.

A plan that was made here does (`planning.make`). One that was read from a file may have been edited, and
nobody should be told an epsilon, or rely on a protection, that the noise does not give. Some facts do
not change the noise, so a file in which all parts were changed consistently cannot show that they are
wrong: whether a block that counts as private did get its noise (so also which protection was kept),
what earlier releases cost, how many rows a person owns, whether the noise can be recomputed from a
seed, how many rows there were, which bounds they were clipped to, and how missing values were treated.
For these the ledger keeps the digest of the bundle.
"""

from __future__ import annotations

import math
from fractions import Fraction

from primo.errors import InputError, PrivacyError
from primo.planning.noise import margin_of, paper_algorithm, sampled_scales
from primo.planning.plan import CovarianceOrigin, Plan
from primo.planning.rounds import why_one_round
from primo.planning.searches import Searches, searched_numbers
from primo.planning.settings import Settings, check_choices
from primo.privacy.calibration import epsilon_with_margin
from primo.privacy.centre_search import SUM_VARIANCE_BITS, CentreSearch
from primo.privacy.column_search import ColumnSearch
from primo.privacy.grid import Grid
from primo.privacy.norm_search import LARGEST_UNIT, VARIANCE_BITS
from primo.privacy.paper import PaperAlgorithm, paper_scales
from primo.privacy.perturbation import Perturbation
from primo.privacy.protection import Protection
from primo.privacy.rounds import MOST_ROUNDS, round_spent
from primo.privacy.sensitivity import joint_distance
from primo.privacy.subsampling import true_epsilon

__all__ = ["check_plan", "noisy_blocks"]

#: Last digits of a calibration may change with a version; radii and scales are rounded to a grid.
_TOO_SMALL, _TOO_LARGE = 1e-6, 1e-4


def check_plan(plan: Plan) -> None:
    """Refuse a plan that no planner makes, or whose guarantee is not that of its own noise.

    Guarantee: afterwards mu is that of the noise of every block that `plan.protection` makes private,
    epsilon is that of mu (or of the sampled covariance) at delta, and in paper mode the noise is what
    the paper prints for the claimed budget.
    Cost: some ten milliseconds; half a second for a sampled covariance.
    """
    _check_sizes(plan)
    _check_words(plan)
    _check_origin(plan)
    _check_noise(plan)
    _check_epsilon(plan)


def noisy_blocks(plan: Plan) -> list[str]:
    """Name the blocks that have noise, drawn now or in an earlier release; a file lists them, too."""
    if plan.perturbation is not None:
        return ["outcomes"]
    sigmas = {
        "covariance": plan.covariance_sigma,
        "association": plan.association_sigma,
        "outcome_moments": plan.outcome_sigma,
    }
    return [name for name, sigma in sigmas.items() if sigma > 0]


def _refuse(unless: bool, reason: str) -> None:
    if not unless:
        raise PrivacyError(reason)


def _fits(stated: float, true: float) -> bool:
    """Whether a stated loss is the true one: hardly below it, and not far above."""
    return true * (1 - _TOO_SMALL) <= stated <= true * (1 + _TOO_LARGE)


def _check_sizes(plan: Plan) -> None:
    sampled = 1 if plan.sampled is None else plan.sampled
    _refuse(
        min(plan.n, plan.d, plan.l, plan.rows_per_person) >= 1
        and 1 <= sampled < max(plan.n, 2)
        and plan.features.centre.shape == plan.features.scale.shape == (plan.d,)
        and plan.outcomes.centre.shape == plan.outcomes.scale.shape == (plan.l,),
        "the plan is not one that primo makes: its sizes contradict each other",
    )


def _check_words(plan: Plan) -> None:
    exact = plan.calibration == "exact"
    try:
        check_choices(
            Settings(
                epsilon=plan.budget.epsilon,
                delta=plan.budget.delta,
                protection=plan.protection,
                split=plan.split if exact else None,
                missing=plan.missing,
                association=plan.association,
                calibration=plan.calibration,
                covariance_rows=plan.sampled,
                # What the panel's covariance is does not matter here.
                public_covariance=True
                if plan.covariance_origin is CovarianceOrigin.REFERENCE
                else None,
                covariance="full"
                if plan.covariance_origin is not CovarianceOrigin.BLOCKS
                else "none",
            )
        )
    except InputError as error:
        raise PrivacyError(
            "the plan is not one that primo makes: ",
            error.message,
            argument=error.argument,
            value=error.value,
            remedy=error.remedy,
        ) from None


def _check_origin(plan: Plan) -> None:
    """Check that an exact covariance is public, and that one of an earlier release was paid for."""
    origin, private = plan.covariance_origin, plan.protection.features_private
    blocks = origin is CovarianceOrigin.BLOCKS
    wide_and_public = not private and plan.width > plan.n and not blocks
    row_space = origin is CovarianceOrigin.ROW_SPACE
    # With noise on the outcomes themselves, public features of any number may be left out.
    left_out = row_space and not private and plan.perturbation is not None
    _refuse(
        (row_space == wide_and_public or left_out) and (plan.n > 1 or not row_space),
        f"the plan takes its covariance from: {origin}; that does not fit its protection and sizes",
    )
    _refuse(
        blocks == (plan.blocks is not None),
        "the plan takes its covariance from blocks and has none, or has blocks that it does not use",
    )
    earlier = origin is CovarianceOrigin.EARLIER
    fresh = (
        origin in (CovarianceOrigin.ROWS, CovarianceOrigin.BLOCKS) or plan.calibration != "exact"
    )
    _refuse(
        0 <= plan.earlier_mu < math.inf
        and not (earlier and plan.earlier_mu == 0)
        and not (fresh and plan.earlier_mu > 0),
        "the plan does not say what the releases that it extends cost",
    )
    _refuse(
        plan.grid.fits(plan.n), "the noise does not fit the guarantee: its grid is out of range"
    )
    paid = math.sqrt(joint_distance(plan.grid.p, 0 * plan.grid.q, 0 * plan.grid.s))
    _refuse(
        not (earlier and private) or paid * (1 - _TOO_SMALL) <= plan.earlier_mu,
        "the noise of the earlier covariance does not fit the guarantee of the earlier releases",
    )


def _check_noise(plan: Plan) -> None:
    """Compare mu and the split with the noise of the blocks that are private."""
    _refuse(
        plan.blocks is None
        or (plan.blocks.covers(plan.d) and plan.blocks.holds(plan.grid, plan.n)),
        "the noise inside the blocks of features does not fit the guarantee that the plan states",
    )
    grids = _round_grids(plan)
    spent = sum(
        (round_spent(grid, covariance_noisy=plan.covariance_noisy) for grid in grids), Fraction(0)
    )
    _refuse(
        (plan.perturbation is not None) == (plan.association == "perturbed"),
        "the plan is not one that primo makes: the noise on the outcomes does not fit its association",
    )
    if plan.perturbation is not None:
        spent = _perturbed(plan, plan.perturbation)
    _refuse(
        _fits(plan.mu, math.sqrt(spent + _searched(plan))),
        "the noise does not fit the guarantee that the plan states: mu differs",
    )
    if plan.covariance_noisy or plan.calibration != "exact":
        split_fits = all(
            math.isclose(plan.split, grid.q / grid.p, rel_tol=_TOO_LARGE) for grid in grids
        )
    else:
        split_fits = plan.split == 2.0  # nothing is to be split
    _refuse(split_fits, "the noise does not fit the split ratio that the plan states")


def _round_grids(plan: Plan) -> tuple[Grid, ...]:
    """Return the grid of every round; refuse rounds that no planner makes."""
    if plan.rounds is None:
        return (plan.grid,)
    reason = why_one_round(
        origin=plan.covariance_origin,
        calibration=plan.calibration,
        association=plan.association,
        sampled=plan.sampled,
    )
    grids = plan.rounds.grids
    _refuse(
        reason is None
        and 2 <= len(grids) <= MOST_ROUNDS
        and plan.grid == grids[0]
        and all(grid.fits(plan.n) for grid in grids),
        "the plan is not one that primo makes: its rounds do not fit the rest of it",
    )
    return grids


def _perturbed(plan: Plan, noise: Perturbation) -> Fraction:
    """Return the squared mu of outcomes with noise on each of them."""
    _refuse(
        noise.fits(plan.grid.outcome_radius_squared)
        and plan.protection is Protection.OUTCOMES
        and plan.covariance_origin in (CovarianceOrigin.ROWS, CovarianceOrigin.ROW_SPACE),
        "the noise on the outcomes does not fit the plan",
    )
    return noise.spent(plan.grid.outcome_radius_squared)


def _searched(plan: Plan) -> Fraction:
    """Return the squared mu of the histograms of row lengths; refuse any that no planner makes."""
    search = plan.norm_search
    blocks = ("features", "outcomes")
    _refuse(
        plan.auto_norms in ((), ("features",), ("outcomes",), blocks),
        "the plan is not one that primo makes: it finds norms of blocks that do not exist",
    )
    clips = {"features": plan.features, "outcomes": plan.outcomes}
    _refuse(
        all(
            clips[block].box and math.isclose(clips[block].norm, clips[block].longest)
            for block in plan.declined
        ),
        "the plan is not one that primo makes: a norm was not looked for and is not that of ranges",
    )
    if search is None:
        _refuse(
            plan.centre_search is None and plan.column_search is None,
            "the plan is not one that primo makes: it finds centres and no norms",
        )
        return Fraction(0)
    _refuse(
        search.variance_bits == VARIANCE_BITS
        and 1 <= search.unit <= LARGEST_UNIT
        and all(
            getattr(search, block) == (plan.is_private(block) and block in plan.auto_norms)
            for block in blocks
        ),
        "the noise of the histograms of row lengths does not fit the plan",
    )
    return search.spent + _centred(plan, plan.centre_search) + _columns(plan, plan.column_search)


def _centred(plan: Plan, search: CentreSearch | None) -> Fraction:
    """Return the squared mu of the sums that centres are found from."""
    if search is None:
        return Fraction(0)
    _refuse(
        search.variance_bits == SUM_VARIANCE_BITS
        and 1 <= search.count_unit <= LARGEST_UNIT
        and search.unit >= 1
        and search.blocks > 0
        and plan.intercept
        and _searchable(plan, search)
        and not (search.features and plan.covariance_origin is not CovarianceOrigin.ROWS),
        "the noise of the sums that centres are found from does not fit the plan",
    )
    return search.spent


def _columns(plan: Plan, search: ColumnSearch | None) -> Fraction:
    """Return the squared mu of the histograms of columns."""
    if search is None:
        return Fraction(0)
    _refuse(
        search.variance_bits == VARIANCE_BITS
        and 1 <= search.unit <= LARGEST_UNIT
        and search.columns == search.features * plan.d + search.outcomes * plan.l
        and search.columns > 0
        and plan.intercept
        and _searchable(plan, search)
        and not (search.features and plan.covariance_origin is not CovarianceOrigin.ROWS)
        and not (search.features and plan.features.box)
        and not (search.outcomes and plan.outcomes.box),
        "the noise of the histograms of columns does not fit the plan",
    )
    other = plan.centre_search
    _refuse(
        other is None
        or not ((search.features and other.features) or (search.outcomes and other.outcomes)),
        "the plan is not one that primo makes: it finds a centre twice",
    )
    return search.spent


def _searchable(plan: Plan, search: CentreSearch | ColumnSearch) -> bool:
    """Whether only private blocks with norm="auto" are searched."""
    return all(
        plan.is_private(block) and block in plan.auto_norms
        for block in ("features", "outcomes")
        if getattr(search, block)
    )


def _check_epsilon(plan: Plan) -> None:
    """Compute epsilon at delta from the noise, and compare it with what is stated and was asked for."""
    histograms = len(plan.auto_norms)
    searches = Searches(centres=plan.centre_search, columns=plan.column_search)
    own = margin_of(
        plan.width,
        plan.l,
        plan.full_outcome_moments,
        histograms=histograms,
        rounds=plan.round_count,
        further=searched_numbers(searches, d=plan.d, l=plan.l),
        inside=plan.inside_numbers,
        perturbed_rows=None if plan.perturbation is None else plan.n,
    )
    earlier = plan.earlier_mu > 0  # the margins of the earlier releases are then included
    _refuse(
        math.isclose(plan.margin, own, rel_tol=1e-9) or (earlier and own < plan.margin < 1),
        "the lattice margin does not fit the number of released numbers",
    )
    delta = plan.budget.delta
    if plan.draws_sample and plan.sampled is not None:
        scales = sampled_scales(plan.n, plan.sampled, plan.grid)
        true = true_epsilon(scales, delta * math.exp(-2 * own)) + 2 * own
    else:
        true = epsilon_with_margin(plan.mu, delta, own)
    _refuse(
        _fits(plan.epsilon, true),
        "epsilon and delta do not fit the noise: its guarantee is another than the stated one",
    )
    if plan.calibration == "exact":
        _refuse(plan.epsilon == plan.budget.epsilon, "epsilon is not that of the budget")
    else:
        _refuse(_as_printed(plan), "the noise is not what the paper prints for the budget")


def _as_printed(plan: Plan) -> bool:
    """Whether the noise of a plan in paper mode is the printed one."""
    private = plan.protection.features_private
    choices = [(paper_algorithm(plan.protection, plan.calibration, plan.sampled), plan.sampled)]
    if plan.protection is Protection.BOTH and plan.sampled is None:
        choices.append((PaperAlgorithm.SUB_SAMP_REUSE_COV, plan.n))  # all rows were "sampled"
    for algorithm, sampled in choices:
        scales = paper_scales(algorithm, plan.budget, rows=plan.n, sampled=sampled)
        q = scales.association**-2
        p = scales.covariance**-2 if private else q / 2
        if math.isclose(plan.grid.q, q, rel_tol=_TOO_LARGE) and math.isclose(
            plan.grid.p, p, rel_tol=_TOO_LARGE
        ):
            return True
    return False
