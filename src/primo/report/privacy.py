"""The part for the data steward: what is protected, how strongly, and how large the noise is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from primo.planning.plan import CovarianceOrigin, Plan
from primo.privacy.bounds import Clip
from primo.privacy.protection import Protection
from primo.released.moments import ReleasedMoments
from primo.released.statement import statement
from primo.report.figures import blocks_chart, directions_chart, guess_chart
from primo.report.guessing import FALSE_ALARMS, for_person, found_at_most, right_at_most
from primo.report.prose import at_most, count, number, percent_up, thousands
from primo.report.strength import Block, Directions
from primo.report.templating import render

__all__ = ["banners", "noise_section", "privacy_section", "strictness"]


def banners(release: ReleasedMoments) -> Markup:
    """Warn of what must not be overlooked, at the top of the page."""
    plan, shown = release.plan, []
    if release.reproducible:
        shown.append(
            (
                "stop",
                "Not for publication.",
                "The noise was made from a known seed and can be recomputed, so this release protects "
                "nobody against anyone who knows or guesses it. All privacy figures below describe "
                "what fresh noise would give.",
            )
        )
    if plan.calibration != "exact":
        shown.append(
            (
                "stop",
                "Noise as printed in the paper.",
                f"The paper claims ε = {number(plan.budget.epsilon)} for these noise scales. They "
                f"truly give ε = {at_most(plan.epsilon)}; that is the figure used on this page.",
            )
        )
    if plan.earlier_mu:
        shown.append(
            (
                "know",
                "Together with earlier releases.",
                f"This release adds outcomes to earlier ones about the same rows. Alone it spends ε = "
                f"{at_most(plan.epsilon)}; what counts for a person is everything together: ε = "
                f"{at_most(for_person(plan).epsilon)} at δ = {at_most(plan.budget.delta)}.",
            )
        )
    return render("banners.html", banners=shown)


def strictness(epsilon: float) -> str:
    """Return one word for an epsilon, as the README uses them."""
    for limit, word in (
        (0.5, "very strict"),
        (2.0, "strict"),
        (5.0, "moderate"),
        (10.0, "lenient"),
    ):
        if epsilon <= limit:
            return word
    return "weak"


def privacy_section(release: ReleasedMoments) -> Markup:
    """Say what is protected, what is not, and what the guarantee means for one person."""
    plan = release.plan
    person = for_person(plan)
    mu, epsilon = person.mu, person.epsilon
    return render(
        "privacy.html",
        seeded=release.reproducible,
        secret=_secret(plan),
        protected=_protected(plan),
        public=_public(plan),
        known=_known(plan),
        rows=_rows(plan),
        several=plan.rows_per_person > 1,
        alike=_alike(plan),
        right=percent_up(right_at_most(mu)),
        caught=[
            (f"{100 * a:g}\u202f%", f"{100 * a:g}\u202f%", percent_up(found_at_most(mu, a)))
            for a in FALSE_ALARMS
        ],
        epsilon=at_most(epsilon),
        delta=at_most(plan.budget.delta),
        mu=at_most(mu),
        factor=number(math.exp(epsilon), 3) if epsilon < 30 else "more than a million million",
        sampled=plan.sampled is not None,
        earlier=bool(plan.earlier_mu),
        chart=guess_chart(mu, plan.rows_per_person * plan.mu if plan.earlier_mu else None),
        numbers=_numbers(release),
        statement=statement(release),
    )


def noise_section(blocks: Sequence[Block], directions: Directions | None) -> Markup:
    """Compare signal and noise of each released block."""
    rows = []
    for block in blocks:
        if not block.noise:
            said = "exact, because public"
        elif math.isnan(block.signal):
            said = "not known: the public features are not attached"
        elif block.ratio >= 1:
            said = f"signal {number(block.ratio)} times the noise"
        elif block.ratio > 0.05:
            said = f"noise {number(1 / block.ratio)} times the signal"
        else:
            said = "lost in the noise"
        sizes = (number(block.signal), number(block.noise) if block.noise else "none")
        rows.append(((block.name, block.meaning), *sizes, said))
    lost = 0 if directions is None else directions.lost
    return render(
        "noise.html",
        blocks=blocks_chart(blocks),
        directions=None if directions is None else directions_chart(directions),
        lost=count(lost, "direction lies", "directions lie") if lost else None,
        rows=rows,
        noisy=any(block.noise for block in blocks),
    )


def _secret(plan: Plan) -> str:
    return {
        Protection.BOTH: "features and outcomes",
        Protection.FEATURES: "features",
        Protection.OUTCOMES: "outcomes",
    }[plan.protection]


def _alike(plan: Plan) -> str:
    """Say what the two rows have in common, because it is public."""
    return {
        Protection.BOTH: "",
        Protection.FEATURES: " (they differ in their features only: the outcomes are public)",
        Protection.OUTCOMES: " (they differ in their outcomes only: the features are public)",
    }[plan.protection]


def _rows(plan: Plan) -> str:
    return "row" if plan.rows_per_person == 1 else f"{plan.rows_per_person} rows"


def _protected(plan: Plan) -> list[str]:
    items = []
    if plan.protection.features_private:
        items.append(f"the {count(plan.d, 'feature')} of every person")
    if plan.protection.outcomes_private:
        items.append(f"the {count(plan.l, 'outcome')} of every person")
    if plan.protection is Protection.BOTH:
        items.append("whether a given person’s row is among these rows or another in its place")
    if plan.draws_sample:
        items.append(f"which {thousands(plan.sampled or 0)} rows made the covariance")
    return items


def _public(plan: Plan) -> list[str]:
    """Say which columns the release does not protect."""
    items = []
    if not plan.protection.outcomes_private:
        items.append(f"all {count(plan.l, 'outcome')} of every person")
    if not plan.protection.features_private:
        items.append(f"all {count(plan.d, 'feature')} of every person")
    return items


def _known(plan: Plan) -> list[str]:
    """Say what is public of every release."""
    items = [
        f"how many rows there are ({thousands(plan.n)})",
        "the names of features and outcomes",
        "the bounds and every other setting below",
    ]
    if plan.covariance_origin is CovarianceOrigin.REFERENCE:
        items.append("the covariance, which comes from a public reference panel")
    return items


def _numbers(release: ReleasedMoments) -> list[tuple[str, str]]:
    plan = release.plan
    alone = ", this release" if plan.earlier_mu else ""
    items = [
        (f"ε{alone}", at_most(plan.epsilon)),
        ("δ", at_most(plan.budget.delta)),
        (f"μ{alone}", at_most(plan.mu)),
    ]
    if plan.earlier_mu:
        items += [
            ("ε, with earlier releases", at_most(plan.total_epsilon)),
            ("μ, with earlier releases", at_most(plan.total_mu)),
        ]
    if plan.rows_per_person > 1:
        person, whose = for_person(plan), f"for a person, who owns {_rows(plan)}"
        items += [
            (f"ε {whose}", at_most(person.epsilon)),
            (f"μ {whose}", at_most(person.mu)),
        ]
    if plan.calibration != "exact":
        items.append(("ε that the paper claims", number(plan.budget.epsilon)))
    sampled = f", of {thousands(plan.sampled)} sampled rows" if plan.sampled else ""
    covariance = {
        CovarianceOrigin.REFERENCE: "of a public reference panel",
        CovarianceOrigin.EARLIER: f"{_sigma(release.covariance_sigma)}, of the earlier release",
    }.get(plan.covariance_origin, _of_all(plan, release.covariance_sigma))
    projected = ", then projected" if plan.association == "projection" else ""
    if plan.perturbation is not None:
        projected = " at most, from the noise on the outcomes"
    whole = " (all of it)" if plan.full_outcome_moments else " (diagonal)"
    return [
        *items,
        ("Neighbours", f"data sets that differ by replacing {plan.protection.replaced}"),
        ("Rows", thousands(plan.n)),
        ("Features", thousands(plan.d) + (" and a constant" if plan.intercept else "")),
        ("Outcomes", thousands(plan.l)),
        ("Bounds of the features", _bound(plan.features)),
        ("Bounds of the outcomes", _bound(plan.outcomes)),
        ("Noise on the covariance XᵀX", covariance + sampled),
        ("Noise on the association XᵀY", _of_all(plan, release.association_sigma) + projected),
        (
            "Noise on the outcome moments YᵀY",
            _of_all(plan, release.outcome_sigma) + (whole if plan.outcome_sigma else ""),
        ),
        *(
            (("Noise on each outcome of each row", _sigma(plan.row_sigma)),)
            if plan.perturbation is not None
            else ()
        ),
        ("Split ratio", number(plan.split)),
        ("Noise drawn by", f"exact discrete Gaussian sampler ({release.backend})"),
        (
            "Missing values",
            f"counted as the {'' if plan.centred else 'public '}centre"
            if plan.missing == "centre"
            else "refused",
        ),
    ]


def _of_all(plan: Plan, sigma: float) -> str:
    """Say a noise scale; that of several rounds is the one that they have together."""
    return _sigma(sigma) + (", all rounds together" if plan.rounds is not None and sigma else "")


def _sigma(sigma: float) -> str:
    return f"σ = {number(sigma, 4)} in scaled units" if sigma else "none, because public"


def _bound(clip: Clip) -> str:
    """Say a bound in words; per-column numbers are in the release."""
    if clip.box and math.isclose(clip.norm, clip.longest):
        return "a range per column"
    units = " in scaled units" if clip.box or not clip.is_plain else ""
    return (
        "a range per column, and " if clip.box else ""
    ) + f"row norm {number(clip.norm, 4)}{units}"
