"""The scientist's half of the page: accuracy, the plan, and what to doubt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.doubts import bound_doubts
from primo.report.accuracy import accuracy_card, plus_minus
from primo.report.contents import Chosen, Findings
from primo.report.figures import outlook_chart
from primo.report.guessing import for_person, right_at_most
from primo.report.outlook import Outlook
from primo.report.privacy import strictness
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

__all__ = [
    "about_section",
    "brief_section",
    "coefficient_words",
    "doubts_of",
    "doubts_section",
    "plan_section",
]


def brief_section(release: ReleasedMoments, found: Findings | None, doubts: Sequence[str]) -> str:
    """Answer what anyone asks first."""
    plan = release.plan
    person = for_person(plan)
    epsilon, guess = person.epsilon, f"≤ {percent_up(right_at_most(person.mu))}"
    if release.reproducible:
        strength, guess, chance = "none", "no limit", "for whoever knows or guesses the seed"
    else:
        strength = f"ε = {at_most(epsilon)}"
        chance = "right at best, where tossing a coin is right 50\u202f% of the time"
    signal = "not tested"
    if found is not None:
        signal = f"in {thousands(int(found.fit.found.sum()))} of {count(plan.l, 'outcome')}"
    together = " with the earlier releases" if plan.earlier_mu else ""
    cards = [
        (
            "May it be published?",
            "No" if release.reproducible else "Yes",
            "its noise can be recomputed"
            if release.reproducible
            else "its noise is fresh and secret, and nothing else on this page is private",
        ),
        (
            "Strength of the protection",
            strength,
            f"ε = {at_most(epsilon)} needs secret noise"
            if release.reproducible
            else f"{strictness(epsilon)}; δ = {at_most(plan.budget.delta)}{together}",
        ),
        (
            "A guess about one person",
            guess,
            chance,
        ),
        accuracy_card(found),
        (
            "Signal found",
            signal,
            f"at a false discovery rate of {100 * found.fit.fdr:g}\u202f%"
            if found is not None
            else "no test is known for this kind of release",
        ),
        (
            "Doubts",
            str(len(doubts)) if doubts else "none",
            '<a href="#doubts">listed in words below</a>'
            if doubts
            else "the bounds fit, and every interval is of a kind whose coverage was measured",
        ),
    ]
    return (
        '<div class="cards">'
        + "".join(
            f'<div class="card"><h3>{name}</h3><p class="value">{value}</p><p>{said}</p></div>'
            for name, value, said in cards
        )
        + "</div>"
    )


def coefficient_words(
    release: ReleasedMoments, chosen: Chosen, found: Findings | str, *, known: bool = True
) -> str:
    """Say which coefficients are on the page and which are not; `known` says whether any are."""
    plan = release.plan
    words = ""
    if not known:
        return paragraph(
            "Coefficients follow from this release together with the public features, which are not "
            "stored in it. Attach them (<code>primo.with_public_features(release, X)</code>) and write "
            "this page again.",
            "remark",
        )
    if isinstance(found, Findings):
        words += paragraph(
            "The <strong>estimate</strong> is unshrunk and has a confidence interval that counts the "
            "noise and the sampling; the <strong>shrunk</strong> coefficient is the one to predict "
            "with. p tests whether the coefficient is 0; q is p corrected for all "
            f"{count(plan.d * plan.l, 'coefficient')} (Benjamini and Hochberg). A coefficient is in "
            "units of the outcome per unit of the feature."
        )
    else:
        words += paragraph(
            "These are the coefficients to predict with, in scaled units (divided by the scales of "
            "the bounds), in which all are comparable. They have no intervals here: "
            f"{text(found)}.",
            "remark",
        )
    shown = len(chosen.detailed) * len(chosen.features)
    if shown < plan.d * plan.l:
        part = count(len(chosen.detailed), "outcome")
        if len(chosen.features) < plan.d:
            part += f" and {count(len(chosen.features), 'feature')}"
        words += paragraph(
            f"To stay small, this page carries {thousands(shown)} of the "
            f"{count(plan.d * plan.l, 'coefficient')}: those of the {part} with the strongest evidence, "
            "chosen from released numbers. All are in <code>coefficients.parquet</code> and "
            "<code>coefficients.tsv</code> of the release bundle, or made by "
            "<code>primo.released.uncertainty.write_table(release, &quot;table.parquet&quot;)</code>.",
            "remark",
        )
    return words


def plan_section(release: ReleasedMoments, outlook: Outlook | str) -> str:
    """Show what other budgets would have brought."""
    if isinstance(outlook, str):
        return paragraph(
            f"There is no trade-off curve for this release: {text(outlook)}.", "remark"
        )
    made, epsilon = outlook.chosen, outlook.chosen_epsilon
    words = (
        f"At the chosen ε = {number(epsilon, 4)} the published coefficients were predicted to explain "
        f"{made.r2:.3f} of the outcomes’ variance on new rows, where the best ridge without privacy "
        f"would explain {made.no_privacy_r2:.3f}. No number here depends on the data."
    )
    rows = [
        (
            f"{e:g}" + (" (chosen)" if e == epsilon else ""),
            plus_minus(p),
            f"{p.no_privacy_r2 - p.r2:.3f}",
        )
        for e, p in outlook.curve
    ]
    chart = (
        f"<figure>{outlook_chart(outlook)}<figcaption>Predicted R², all outcomes together, against the "
        "privacy budget, everything else unchanged.</figcaption></figure>"
    )
    return (
        f'<div class="pair wide"><div>{paragraph(words)}<h3>What was assumed</h3>'
        + bullets(text(assumed) for assumed in outlook.assumptions)
        + paragraph(
            "Predictions move with these assumptions; <code>primo.compare_plans</code> shows how.",
            "remark",
        )
        + _better(outlook)
        + f"</div>{chart}</div><details><summary>The curve as a table</summary>"
        + table("Predicted R² by budget", ("ε", "predicted R²", "cost of privacy"), rows)
        + "</details>"
    )


def _better(outlook: Outlook) -> str:
    """Say what better public knowledge would have brought, if it would have."""
    if not outlook.better:
        return ""
    return "<h3>With better public knowledge</h3>" + bullets(
        f"{text(better.knowledge)}: {better.predicted_r2:.3f} instead of {better.instead_of:.3f}"
        for better in outlook.better
    )


def doubts_of(release: ReleasedMoments, found: Findings | str) -> list[str]:
    """Everything that is not to be relied on, in words (HTML)."""
    plan, said = release.plan, []
    if release.reproducible:
        said.append("The noise is reproducible: this release protects nobody.")
    if plan.calibration != "exact":
        said.append(
            f"The noise scales are the paper’s: ε is {at_most(plan.epsilon)}, not the "
            f"{number(plan.budget.epsilon)} that was asked for."
        )
    if plan.n > 1 and plan.budget.delta > 1 / plan.n:
        said.append(
            f"δ = {at_most(plan.budget.delta)} is above 1/{thousands(plan.n)}: a method that publishes "
            "one person’s row could satisfy it."
        )
    if for_person(plan).epsilon > 10:
        said.append("ε is above 10: little protection is left that the numbers could promise.")
    said += [text(doubt) for doubt in bound_doubts(release)]
    if isinstance(found, str):
        said.append(f"No intervals, tests or R²: {text(found)}.")
        return said
    if found.published.worse_than_mean:
        said.append(
            "The published coefficients are expected to predict new rows worse than the mean does. Do "
            "not predict with them; next time tighter bounds, more rows or a larger ε."
        )
    said += [f"{text(doubt[:1].upper() + doubt[1:])}." for doubt in found.doubts]
    cells = plan.d * plan.l
    for few, of, why in (
        (
            int(np.sum(~found.tests.trusted)),
            count(cells, "coefficient"),
            "have wide or unbounded intervals and conservative p-values (marked !)",
        ),
        (
            found.leaning,
            count(cells, "coefficient"),
            "have a shrunk interval that rests on the assumed spread of effects more than on the "
            "release",
        ),
        (
            int(np.sum(~found.fit.trusted)),
            count(plan.l, "outcome"),
            "have an R² that the noise leaves undetermined (not determined, 0 to 1)",
        ),
    ):
        if few:
            said.append(f"{thousands(few)} of {of} {why}.")
    return said


def doubts_section(release: ReleasedMoments, doubts: Sequence[str]) -> str:
    """List the doubts, and what no release can know."""
    rows = release.plan.rows_per_person
    listed = (
        bullets(doubts, "doubts")
        if doubts
        else paragraph(
            "None of the checks that the software makes on a release gave cause for doubt."
        )
    )
    return (
        listed
        + "<h3>What no such page can know</h3>"
        + bullets(
            (
                f"whether one person really owns {count(rows, 'row')} only: the guarantee relies on it",
                "whether the bounds and the columns were chosen without looking at the private data",
                "what else was published about the same people: other releases add up, see the ledger",
                "whether a linear model suits the question, and whether an association is a cause",
            )
        )
    )


def about_section(release: ReleasedMoments, notes: Sequence[str]) -> str:
    """Explain words and where numbers come from."""
    told = ""
    if notes:
        told = "<h3>Notes</h3>" + bullets(text(note) for note in notes)
    return told + definitions(
        kind="facts words",
        items=(
            (
                "ReleasedMoments",
                "the noisy sums this page is about. Everything else here follows from them.",
            ),
            ("Feature, outcome", "what predicts, and what is predicted."),
            (
                "Row",
                f"one line of data; a person owns {count(release.plan.rows_per_person, 'row')}.",
            ),
            (
                "ε, δ, μ",
                "measures of how much one row can change what is published; small is strict.",
            ),
            ("Bounds", "public limits; longer rows are shortened before they are counted."),
            (
                "Scaled units",
                "a value minus the public centre of its column, over its public scale.",
            ),
            (
                "p, q",
                "chance of evidence this strong without an effect; and the share of false findings "
                "among all at least as strong.",
            ),
            (
                "Shrunk",
                "pulled toward 0 by as much as the noise warrants, which predicts better.",
            ),
        ),
    )
