"""The part for the scientist: accuracy, the plan, and what to doubt."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.doubts import bound_doubts
from primo.released.uncertainty.trust import FEWEST
from primo.report.accuracy import accuracy_card, plus_minus
from primo.report.contents import Chosen, Findings
from primo.report.figures import outlook_chart
from primo.report.guessing import for_person, right_at_most
from primo.report.outlook import Outlook
from primo.report.privacy import strictness
from primo.report.prose import at_most, count, number, percent_up, thousands
from primo.report.templating import render

__all__ = [
    "about_section",
    "brief_section",
    "coefficient_words",
    "doubts_of",
    "doubts_section",
    "plan_section",
]


def brief_section(
    release: ReleasedMoments, found: Findings | None, doubts: Sequence[str]
) -> Markup:
    """Answer the first questions in a row of cards."""
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
    ]
    return render("brief.html", cards=cards, doubts=len(doubts))


def coefficient_words(
    release: ReleasedMoments, chosen: Chosen, found: Findings | str, *, known: bool = True
) -> Markup:
    """Say which coefficients are on the page and which are not; `known` says whether any are."""
    plan = release.plan
    shown = len(chosen.detailed) * len(chosen.features)
    part = count(len(chosen.detailed), "outcome")
    if len(chosen.features) < plan.d:
        part += f" and {count(len(chosen.features), 'feature')}"
    return render(
        "coefficients.html",
        known=known,
        why_not=found if isinstance(found, str) else None,
        all=count(plan.d * plan.l, "coefficient"),
        shown=thousands(shown) if shown < plan.d * plan.l else None,
        part=part,
    )


def plan_section(outlook: Outlook | str) -> Markup:
    """Show what other budgets would have given."""
    if isinstance(outlook, str):
        return render("plan.html", why_not=outlook)
    made, epsilon = outlook.chosen, outlook.chosen_epsilon
    return render(
        "plan.html",
        why_not=None,
        one_round=made.one_round_r2 is not None,
        epsilon=number(epsilon, 4),
        r2=f"{made.r2:.3f}",
        no_privacy_r2=f"{made.no_privacy_r2:.3f}",
        assumptions=outlook.assumptions,
        better=[
            f"{better.knowledge}: {better.predicted_r2:.3f} instead of {better.instead_of:.3f}"
            for better in outlook.better
        ],
        chart=outlook_chart(outlook),
        curve=[
            (
                f"{e:g}" + (" (chosen)" if e == epsilon else ""),
                plus_minus(p),
                f"{p.no_privacy_r2 - p.r2:.3f}",
            )
            for e, p in outlook.curve
        ],
    )


def doubts_of(release: ReleasedMoments, found: Findings | str) -> list[str]:
    """Everything that cannot be relied on, in words."""
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
        said.append("ε is above 10: the guarantee promises little protection.")
    said += bound_doubts(release)
    if isinstance(found, str):
        said.append(f"No intervals, tests or R²: {found}.")
        return said
    if found.published.worse_than_mean:
        said.append(
            "The published coefficients are expected to predict new rows worse than the mean does. Do "
            "not predict with them; next time tighter bounds, more rows or a larger ε."
        )
    said += [f"{doubt[:1].upper() + doubt[1:]}." for doubt in found.doubts]
    cells = plan.d * plan.l
    if found.few_for_prior:
        said.append(
            "The spread of effects that shrunk intervals assume was fitted to "
            f"{count(cells, 'coefficient')} only (at least {FEWEST} are asked for): "
            "these intervals may be too short or too long."
        )
    for few, of, why in (
        (
            int(np.sum(~found.tests.trusted)),
            count(cells, "coefficient"),
            "wide or unbounded intervals and conservative p-values (marked !)",
        ),
        (
            found.mostly_prior,
            count(cells, "coefficient"),
            "a shrunk interval that depends on the assumed spread of effects more than on the "
            "release",
        ),
        (
            int(np.sum(~found.fit.trusted)),
            count(plan.l, "outcome"),
            "an R² that is not determined (0 to 1): noise, or rows that were cut or shortened, leave it "
            "open. A larger epsilon, tighter ranges or fewer features determine more",
        ),
    ):
        if few:
            verb = "has" if few == 1 else "have"
            said.append(f"{thousands(few)} of {of} {verb} {why}.")
    return said


def doubts_section(release: ReleasedMoments, doubts: Sequence[str]) -> Markup:
    """List the doubts, and what no release can know."""
    rows = count(release.plan.rows_per_person, "row")
    return render("doubts.html", doubts=doubts, rows=rows)


def about_section(release: ReleasedMoments, notes: Sequence[str]) -> Markup:
    """Explain words and where numbers come from."""
    rows = count(release.plan.rows_per_person, "row")
    return render("about.html", notes=notes, rows=rows)
