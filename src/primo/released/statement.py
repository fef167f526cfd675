"""The privacy statement: what is protected, how strongly, and on what assumptions, in plain words."""

from __future__ import annotations

import math
import textwrap
from decimal import ROUND_CEILING, Decimal

from primo.planning.plan import CovarianceOrigin
from primo.privacy.centre_search import CentreSearch
from primo.privacy.clip import Clip
from primo.privacy.column_search import ColumnSearch
from primo.privacy.rounds import round_spent
from primo.released.found_norms import found_norms
from primo.released.moments import ReleasedMoments
from primo.released.norms import NormOption

__all__ = ["entries", "item", "statement", "title"]


def statement(release: ReleasedMoments) -> str:
    """Say in plain words what is protected, how strongly, and on what assumptions."""
    return "\n".join([title(release), *(item(*entry) for entry in entries(release))])


def title(release: ReleasedMoments) -> str:
    """Return the first line of a statement."""
    plan = release.plan
    fitted = f"{_count(plan.l, 'regression')} on {_count(plan.d, 'feature')}"
    rounds = f" in {plan.round_count} rounds" if plan.rounds is not None else ""
    return f"Privacy statement: {fitted}, one release{rounds}"


def entries(release: ReleasedMoments) -> list[tuple[str, str]]:
    """Return the entries of a statement: their names and texts."""
    plan = release.plan
    items = [
        ("Protected", plan.protection.sentence),
        ("Guarantee", _guarantee(release)),
        ("Neighbours", "data sets that differ by replacing one row"),
        ("Public", _public(release)),
        ("Bounds", _bounds(release)),
        ("Noise", _noise(release) if plan.rounds is None else _noise_of_rounds(release)),
    ]
    if shortened := _shortened(release):
        items.insert(5, ("Shortened", shortened))
    if plan.perturbation is not None:
        items.append(("Released", _perturbed(release)))
    if plan.rounds is not None:
        items.append(("Rounds", _rounds(release)))
    if plan.rows_per_person > 1:
        items.append(
            (
                "Per person",
                f"a person owns {plan.rows_per_person} rows; against replacing all of them at once "
                f"the guarantee is {_pair(plan.person_epsilon, plan.budget.delta)}",
            )
        )
    if plan.calibration != "exact":
        items.append(
            (
                "Warning",
                "noise scales as printed in the paper, which claims "
                f"epsilon {plan.budget.epsilon:g}; the guarantee above is what they truly give",
            )
        )
    if plan.budget.delta > 1 / plan.n:
        items.append(
            (
                "Warning",
                f"delta is above 1/n = {1 / plan.n:.3g}: a mechanism that publishes one whole row "
                "in the clear now and then would satisfy it. Choose delta well below 1/n",
            )
        )
    if plan.earlier_mu:
        items.append(
            (
                "Together",
                f"with the earlier releases of the same rows that this one extends: "
                f"{_pair(plan.total_epsilon, plan.budget.delta)}-differential privacy, "
                f"mu = {_up(plan.total_mu, 4)}",
            )
        )
    status = "noise from a cryptographic generator; may be published"
    if release.reproducible:
        status = (
            "reproducible: not for publication. The noise can be recomputed from random_state, "
            "so there is no privacy at all against anyone who knows or guesses it"
        )
    items.append(("Status", status))
    return items


def _guarantee(release: ReleasedMoments) -> str:
    plan = release.plan
    mu = f"mu = {_up(plan.mu, 4)}" + (" even if the sample were known" if plan.sampled else "")
    return (
        f"{_pair(plan.epsilon, plan.budget.delta)}-differential privacy for all outcomes "
        f"together ({mu} of Gaussian DP). Whoever sees the release, whatever else they know, can "
        "hardly tell whether any one row was replaced by another"
    )


def _public(release: ReleasedMoments) -> str:
    plan = release.plan
    public = [f"the number of rows ({plan.n})", "the names of the columns", "the bounds"]
    if not plan.protection.features_private:
        public.append("all features")
    if not plan.protection.outcomes_private:
        public.append("all outcomes")
    if plan.covariance_origin is CovarianceOrigin.REFERENCE:
        public.append("the covariance, from a reference panel")
    return ", ".join(public)


def _bounds(release: ReleasedMoments) -> str:
    plan = release.plan
    text = f"features {_bound(plan.features)}; outcomes {_bound(plan.outcomes)}"
    text += _found(release)
    if plan.missing == "centre":
        public = "" if plan.centred else "public "
        text += f"; missing values count as the {public}centre of their column"
    return text


def _found(release: ReleasedMoments) -> str:
    """Say which norms, centres and scales were found from the rows, and what that cost."""
    plan, text = release.plan, ""
    if (columns := plan.column_search) is not None:
        which = _blocks(columns)
        text += (
            f"; centres and scales of the {which} were found from a histogram of each column, with "
            f"noise of sigma {columns.sigma:.4g} rows"
        )
    if (centres := plan.centre_search) is not None:
        text += (
            f"; centres of the {_blocks(centres)} were found from a sum of shortened rows, with noise "
            f"of sigma {centres.sigma:.4g} norms on each entry, after a histogram of row lengths with "
            f"noise of sigma {centres.counts.sigma:.4g} rows"
        )
    if release.lengths is not None:
        chosen = found_norms(plan, release.lengths)
        told = [block for block in plan.counted if getattr(chosen, block).found]
        if told:
            which = " and ".join(told)
            text += f"; the norm of the {which} was found from a histogram of row lengths"
        untold = [block for block in plan.counted if block not in told]
        if untold:
            which = " and ".join(untold)
            text += (
                f"; a histogram of row lengths of the {which} told no norm, so it is a rough one"
            )
    if plan.norm_search is not None:
        share = float(plan.searched) / plan.mu**2
        text += f" with noise of sigma {plan.norm_search.sigma:.4g} rows ("
        text += "all together " * bool(plan.centred) + f"{share:.1%} of mu squared)"
    if plan.declined:
        which = " and ".join(plan.declined)
        text += (
            f'; the {which} had norm="auto", but there are too few rows to find a norm at this budget: '
            "the norm is that of the ranges"
        )
    return text


def _shortened(release: ReleasedMoments) -> str:
    """Say how many rows are longer than norms that were found, and what other norms would have given."""
    plan = release.plan
    if release.lengths is None:
        return ""
    chosen = found_norms(plan, release.lengths)
    told = [block for block in plan.counted if getattr(chosen, block).found]
    if not told:
        return ""
    rows = [f"{getattr(chosen, block).shortened:.0%} of the rows of {block}" for block in told]
    counted = f"by the released counts about {' and '.join(rows)}, which are longer than the norm"
    if plan.blocks is not None:  # the prediction is that of a whole covariance
        return counted
    at, options = chosen.used, chosen.options
    others = [
        f"{options[k].lost:.3f} with {words} norms ({_norms(options[k])})"
        for k, words in ((at - 1, "tighter"), (at + 1, "looser"))
        if 0 <= k < len(options)
    ]
    predicted = ", ".join([f"{options[at].lost:.3f} with these norms", *others])
    return (
        f"{counted}. Share of the outcomes' variance that was predicted to be lost to noise and "
        f"shortening: {predicted}"
    )


def _norms(option: NormOption) -> str:
    return f"features {option.feature_norm:.3g}, outcomes {option.outcome_norm:.3g}"


def _blocks(search: CentreSearch | ColumnSearch) -> str:
    return " and ".join(block for block in ("features", "outcomes") if getattr(search, block))


def _perturbed(release: ReleasedMoments) -> str:
    """Say what was released, where the noise is on the outcomes themselves."""
    plan = release.plan
    return (
        f"the outcomes of all {plan.n} rows, each with noise of its own, in an order that the public "
        "features alone decide. All other numbers are computed from them and from the features, and so "
        "may be any statistic of these or other public features of the same rows, at no further cost"
    )


def _noise(release: ReleasedMoments) -> str:
    plan = release.plan
    if plan.perturbation is not None:
        return (
            f"discrete Gaussian ({release.backend}), in scaled units: each outcome of each row "
            f"{_sigma(plan.row_sigma)}; covariance exact (public); association of a feature x: "
            "that times the length of x"
        )
    covariance = {
        CovarianceOrigin.ROWS: _sigma(release.covariance_sigma),
        CovarianceOrigin.REFERENCE: "of the reference panel (public)",
        CovarianceOrigin.EARLIER: f"{_sigma(release.covariance_sigma)}, of the earlier release",
        CovarianceOrigin.ROW_SPACE: "exact (public)",
        CovarianceOrigin.BLOCKS: _inside_blocks(release),
    }[plan.covariance_origin]
    if plan.sampled:
        covariance += f", from {plan.sampled} rows drawn in secret"
    projected = ", then projected" if plan.association == "projection" else ""
    return (
        f"discrete Gaussian ({release.backend}), in scaled units: covariance {covariance}; "
        f"association {_sigma(release.association_sigma)}{projected}; outcome moments "
        f"({'full' if plan.full_outcome_moments else 'diagonal'}) {_sigma(release.outcome_sigma)}"
        + (f"; split ratio {plan.split:.3g}" if plan.blocks is None else "")
    )


def _inside_blocks(release: ReleasedMoments) -> str:
    """Say what the covariance inside blocks of features has for noise."""
    grid, plan = release.plan.blocks, release.plan
    if grid is None:
        return ""
    widths = grid.widths
    least, most = int(widths.min()), int(widths.max())
    sizes = f"{most}" if least == most else f"{least} to {most}"
    inside = f"inside {_count(grid.count, 'public block')} of {sizes} features"
    if most == 1:
        inside = "of every feature with itself only"
    if not release.covariance_sigma:
        return f"{inside}, exact (public)"
    low, high = float(grid.steps_sigma.min()) * plan.feature_step**2, release.covariance_sigma
    spread = _sigma(high) if math.isclose(low, high) else f"sigma {low:.4g} to {high:.4g}"
    sums = f"; sums of the features {_sigma(plan.feature_sum_sigma)}" if plan.intercept else ""
    return f"{inside}, {spread}{sums}"


def _noise_of_rounds(release: ReleasedMoments) -> str:
    """Say what noise the rounds have; from the plan and the clips, not from what was pooled."""
    plan, first, last = release.plan, release.rounds[0], release.rounds[-1]
    sigmas = [released.covariance_sigma for released in release.rounds]
    together = 1 / math.sqrt(math.fsum(sigma**-2 for sigma in sigmas)) if all(sigmas) else 0.0
    return (
        f"discrete Gaussian ({release.backend}), in scaled units: covariance {_sigma(together)} over "
        f"all rounds; association {_sigma(first.association_sigma)} in the first round and "
        f"{_sigma(last.association_sigma)} in the last; outcome moments "
        f"({'full' if plan.full_outcome_moments else 'diagonal'}) {_sigma(first.outcome_sigma)} and "
        f"{_sigma(last.outcome_sigma)}; split ratio {plan.split:.3g}"
    )


def _rounds(release: ReleasedMoments) -> str:
    """Say what the rounds looked at, and that what they spend was fixed beforehand."""
    plan = release.plan
    assert plan.rounds is not None
    shares = [
        float(round_spent(grid, covariance_noisy=plan.covariance_noisy)) / plan.mu**2
        for grid in plan.rounds.grids
    ]
    first, other = f"{shares[0]:.1%}", f"{shares[-1]:.1%}"  # all others spend alike
    each = f"{first} of mu squared"
    if first != other:
        each += f" by the first round, {other} by each of the others"
    passes = "once in every round"
    if plan.search_passes:
        passes = f"{_count(plan.search_passes, 'time')} to find bounds, then {passes}"
    return (
        f"the rows were read {plan.search_passes + plan.round_count} times under the one guarantee "
        f"above: {passes}. {_looked_at(release)}. "
        f"What each spends was fixed before the first row was read: {each}"
    )


def _looked_at(release: ReleasedMoments) -> str:
    """Say how many rounds looked at residuals: those whose coefficients are not all 0."""
    plan, last = release.plan, release.rounds[-1]
    of_residuals = sum(bool(released.coefficients.any()) for released in release.rounds)
    shortened = (
        f"shortened to a norm that follows from released numbers ({last.clip:.4g} in the last)"
    )
    if not of_residuals:
        text = (
            "What was explained was too little for residuals, so all rounds looked at the outcomes "
            "themselves, and together they are one release"
        )
        if all(released.clip == plan.outcomes.norm for released in release.rounds):
            return text
        return f"{text}. After the first round the outcomes were {shortened}"
    residuals = "residuals of coefficients that the rounds before had released"
    if of_residuals == plan.round_count - 1:
        return f"Each round after the first looked at {residuals}, {shortened}"
    return (
        f"{of_residuals} of the {plan.round_count} rounds looked at {residuals}, and the others at the "
        f"outcomes themselves. What a round after the first looked at was {shortened}"
    )


def _up(value: float, digits: int) -> str:
    """Write a privacy loss with so many digits, rounded up: a statement never understates a loss."""
    exact = Decimal(value)
    places = exact.adjusted() - digits + 1
    rounded = exact.quantize(Decimal(1).scaleb(places), rounding=ROUND_CEILING)
    # A number that was given in few digits keeps them: 1e-06 stays 1e-06.
    shortest = Decimal(repr(value))
    if len(shortest.as_tuple().digits) <= digits:
        rounded = shortest
    return f"{float(rounded):.{digits}g}"


def _pair(epsilon: float, delta: float) -> str:
    return f"(epsilon = {_up(epsilon, 5)}, delta = {_up(delta, 3)})"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number > 1)}"


def item(name: str, text: str) -> str:
    """Return one entry of a statement: its name and its text, wrapped."""
    return textwrap.fill(
        text, width=98, initial_indent=f"  {name:<11} ", subsequent_indent=" " * 14
    )


def _bound(clip: Clip) -> str:
    if clip.box and math.isclose(clip.norm, clip.longest):
        return "a range per column"
    scaled = clip.box or not clip.is_plain
    return (
        ("a range per column and " if clip.box else "")
        + f"row norm {clip.norm:.4g}"
        + (" in scaled units" if scaled else "")
    )


def _sigma(sigma: float) -> str:
    return f"sigma {sigma:.4g}" if sigma else "exact (public)"
