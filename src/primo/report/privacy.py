"""The steward's half of the page: what is protected, how strongly, and how large the noise is."""

from __future__ import annotations

import math
from collections.abc import Sequence

from primo.planning.plan import CovarianceOrigin, Plan
from primo.privacy.bounds import Clip
from primo.privacy.protection import Protection
from primo.released.moments import ReleasedMoments
from primo.released.statement import statement
from primo.report.figures import blocks_chart, directions_chart, guess_chart
from primo.report.guessing import FALSE_ALARMS, for_person, found_at_most, right_at_most
from primo.report.prose import (
    at_most,
    bullets,
    count,
    definitions,
    number,
    paragraph,
    percent_up,
    table,
    text,
    thousands,
)
from primo.report.strength import Block, Directions

__all__ = ["banners", "noise_section", "privacy_section", "strictness"]


def banners(release: ReleasedMoments) -> str:
    """Say first what must not be overlooked."""
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
    return "".join(
        f'<div class="banner {kind}" role="note"><strong>{head}</strong> {words}</div>'
        for kind, head, words in shown
    )


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


def privacy_section(release: ReleasedMoments) -> str:
    """Say what is protected, what is not, and what the guarantee means for one person."""
    plan = release.plan
    person = for_person(plan)
    mu, epsilon = person.mu, person.epsilon
    right = percent_up(right_at_most(mu))
    several = plan.rows_per_person > 1
    sentence = ("If its noise were secret: whoever " if release.reproducible else "Whoever ") + (
        "sees this release, whatever else they know and however much they compute, can hardly "
        f"tell whether any one person’s {_secret(plan)} were these or others."
    )
    guess = (
        f"Picture someone who already knows all the data except one person’s {_rows(plan)}, and who "
        f"wonders which of two candidates {'they are' if several else 'it is'}{_alike(plan)}. Tossing "
        "a coin, they are right 50\u202f% of the time. With the release and the best possible method "
        f"they are right <strong>at most {right}</strong> of the time."
    )
    factor = number(math.exp(epsilon), 3) if epsilon < 30 else "more than a million million"
    formula = (
        f"In the usual terms: ({at_most(epsilon)}, {at_most(plan.budget.delta)})-differential privacy. "
        f"No conclusion becomes more than e<sup>ε</sup> ≈ {factor} times as probable because of one "
        f"person’s {_rows(plan)}, give or take a probability of δ. It follows from μ = {at_most(mu)} of "
        "Gaussian differential privacy: the best attack that raises false alarms at rate α finds at "
        "most Φ(Φ⁻¹(α) + μ)."
    )
    if plan.sampled is not None:
        formula += (
            " (μ holds even if it is known which rows were sampled; ε uses that nobody knows.)"
        )
    caught = table(
        "What an attack can find",
        ("false alarms", "found by chance", "found with the release, at most"),
        [
            (f"{100 * a:g}\u202f%", f"{100 * a:g}\u202f%", percent_up(found_at_most(mu, a)))
            for a in FALSE_ALARMS
        ],
    )
    figure = _figure(
        guess_chart(mu, plan.rows_per_person * plan.mu if plan.earlier_mu else None),
        "The best possible attack. The closer the curve to the dashed line, the better one person is "
        "protected." + (" Faint: this release alone." if plan.earlier_mu else ""),
    )
    return (
        paragraph(sentence, "lead")
        + f'<div class="pair"><div><h3>Protected</h3>{bullets(_protected(plan), "yes")}</div>'
        + f"<div><h3>Not protected</h3>{bullets(_public(release), 'no')}</div></div>"
        + "<h3>What that means for one person</h3>"
        + f'<div class="pair wide"><div>{paragraph(guess)}{caught}{paragraph(formula, "formula")}</div>'
        + f"<div>{figure}</div></div>"
        + "<h3>In numbers</h3>"
        + definitions(_numbers(release))
        + "<details><summary>The privacy statement, word for word</summary>"
        + f'<pre tabindex="0">{text(statement(release))}</pre></details>'
    )


def noise_section(blocks: Sequence[Block], directions: Directions | None) -> str:
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
        rows.append((f"{block.name}<small>{block.meaning}</small>", *sizes, said))
    left = _figure(
        blocks_chart(blocks) or "<p>No released block carries noise.</p>",
        '<span class="key signal"></span> signal, <span class="key noise"></span> noise of a typical '
        "entry; the noise is set to 1 in each block. The axis is logarithmic.",
    )
    right = ""
    if directions is not None:
        right = _figure(
            directions_chart(directions),
            "Strength of the directions in which the features vary (eigenvalues of the released "
            "covariance, logarithmic). "
            + (
                f"{count(directions.lost, 'direction lies', 'directions lie')} below five times the "
                "noise; coefficients that depend on them are uncertain."
                if directions.lost
                else "All of them lie above five times the noise."
            ),
        )
    return f'<div class="pair">{left}{right}</div>' + table(
        "Typical size (root mean square) of an entry, in scaled units",
        ("block", "signal", "noise", "in words"),
        rows,
    )


def _figure(picture: str, caption: str) -> str:
    return f"<figure>{picture}<figcaption>{caption}</figcaption></figure>"


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


def _public(release: ReleasedMoments) -> list[str]:
    plan = release.plan
    items = [
        f"how many rows there are ({thousands(plan.n)})",
        "the names of features and outcomes",
        "the bounds and every other setting below",
    ]
    if not plan.protection.features_private:
        items.insert(0, f"<strong>all {count(plan.d, 'feature')} of every person</strong>")
    if not plan.protection.outcomes_private:
        items.insert(0, f"<strong>all {count(plan.l, 'outcome')} of every person</strong>")
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
        CovarianceOrigin.EARLIER: f"{_sigma(plan.covariance_sigma)}, of the earlier release",
    }.get(plan.covariance_origin, _sigma(plan.covariance_sigma))
    projected = ", then projected" if plan.association == "projection" else ""
    whole = " (all of it)" if plan.full_outcome_moments else " (diagonal)"
    return [
        *items,
        ("Neighbours", "data sets that differ by replacing one row"),
        ("Rows", thousands(plan.n)),
        ("Features", thousands(plan.d) + (" and a constant" if plan.intercept else "")),
        ("Outcomes", thousands(plan.l)),
        ("Bounds of the features", _bound(plan.features)),
        ("Bounds of the outcomes", _bound(plan.outcomes)),
        ("Noise on the covariance XᵀX", covariance + sampled),
        ("Noise on the association XᵀY", _sigma(plan.association_sigma) + projected),
        (
            "Noise on the outcome moments YᵀY",
            _sigma(plan.outcome_sigma) + (whole if plan.outcome_sigma else ""),
        ),
        ("Split ratio", number(plan.split)),
        ("Noise drawn by", f"exact discrete Gaussian sampler ({text(release.backend)})"),
        (
            "Missing values",
            "counted as the public centre" if plan.missing == "centre" else "refused",
        ),
    ]


def _sigma(sigma: float) -> str:
    return f"σ = {number(sigma, 4)} in scaled units" if sigma else "none, because public"


def _bound(clip: Clip) -> str:
    """Say a bound in words; per-column numbers are in the release."""
    if clip.box and math.isclose(clip.norm, math.sqrt(clip.width)):
        return "a range per column"
    units = " in scaled units" if clip.box or not clip.is_plain else ""
    return (
        "a range per column, and " if clip.box else ""
    ) + f"row norm {number(clip.norm, 4)}{units}"
