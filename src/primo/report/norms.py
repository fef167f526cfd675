"""The part of the page about norms that were found from row lengths."""

from __future__ import annotations

from markupsafe import Markup

from primo.planning.plan import Plan
from primo.released.found_norms import found_norms
from primo.released.moments import ReleasedMoments
from primo.released.norms import NormOption
from primo.report.figures import lengths_chart, values_chart
from primo.report.prose import number
from primo.report.templating import render

__all__ = ["norms_section"]

#: Columns of a block whose found centre and scale the page shows; all are in the bundle.
SHOWN = 12


def norms_section(release: ReleasedMoments) -> Markup:
    """Show the released histograms, the norms chosen, and what others would have given."""
    plan, lengths = release.plan, release.lengths
    if lengths is None:
        return Markup("")
    chosen = found_norms(plan, lengths)
    charts = []
    for block, counts, choice, clip in (
        ("features", lengths.features, chosen.features, plan.features),
        ("outcomes", lengths.outcomes, chosen.outcomes, plan.outcomes),
    ):
        if counts is None:
            continue
        caption = f"Lengths of the rows of {block}, as released, and the norm {number(clip.norm)}. "
        caption += f"About {choice.shortened:.0%} of the rows are longer and were shortened."
        if not choice.found:
            caption = (
                f"The counts of the {block} did not tell a norm; {number(clip.norm)} was used."
            )
        sigma = 0.0
        if plan.norm_search is not None and plan.is_private(block):
            sigma = plan.norm_search.sigma
        chart = lengths_chart(counts, sigma=sigma, norm=clip.norm, block=block)
        charts.append((chart, caption))
    return render(
        "norms.html",
        words=_words(plan),
        bounds=_found_bounds(release),
        charts=charts,
        columns=_columns(release),
        # The prediction is that of a whole covariance: of blocks of features it would be far off.
        options=[_row(option, i == chosen.used) for i, option in enumerate(chosen.options)]
        if plan.blocks is None
        else [],
    )


def _words(plan: Plan) -> str:
    search = plan.norm_search
    if search is None:
        return "The block is public, so its row lengths were counted exactly, at no cost."
    share = float(plan.searched) / plan.mu**2
    words = f"{share:.1%} of the budget (of μ²) paid for "
    if (columns := plan.column_search) is not None:
        words += (
            "a count of rows by the value of each column, with noise of "
            f"{number(columns.sigma)} rows on each count, which gives centres and scales; then "
        )
    if (centres := plan.centre_search) is not None:
        words += (
            f"a sum of shortened rows, with noise of {number(centres.sigma)} of their norm on each "
            "entry, which gives centres; then "
        )
    about = " about these centres" if plan.centred else ""
    return (
        f"{words}a count of rows by length{about}, with noise of {number(search.sigma)} rows on each "
        "count. The bounds follow from these numbers alone."
    )


def _columns(release: ReleasedMoments) -> list[tuple[Markup, str]]:
    """Draw the released histograms of columns, of the first ones of many; all are in the bundle."""
    plan, lengths, charts = release.plan, release.lengths, []
    search = plan.column_search
    if lengths is None or lengths.columns is None or search is None:
        return []
    for names, clip, counted in (
        (release.feature_names, plan.features, lengths.columns.features),
        (release.outcome_names, plan.outcomes, lengths.columns.outcomes),
    ):
        if counted is None:
            continue
        for j, name in enumerate(names[:SHOWN]):
            centre, scale = float(clip.centre[j]), float(clip.scale[j])
            chart = values_chart(counted[j], sigma=search.sigma, centre=centre, name=name)
            charts.append((chart, f"{name}: centre {number(centre)}, scale {number(scale)}."))
    return charts


def _found_bounds(release: ReleasedMoments) -> list[tuple[str, str, str]]:
    """Return name, centre and scale of the columns whose centre was found; the first ones of many."""
    plan, rows = release.plan, []
    for names, clip, block in (
        (release.feature_names, plan.features, "features"),
        (release.outcome_names, plan.outcomes, "outcomes"),
    ):
        if block not in plan.centred:
            continue
        for name, centre, scale in list(zip(names, clip.centre, clip.scale, strict=True))[:SHOWN]:
            rows.append((name, number(float(centre)), number(float(scale))))
        if clip.width > SHOWN:
            rows.append((f"and {clip.width - SHOWN} more {block}", "", ""))
    return rows


def _row(option: NormOption, used: bool) -> tuple[str, str, str]:
    return (
        f"features {number(option.feature_norm)}, outcomes {number(option.outcome_norm)}"
        + (" (used)" if used else ""),
        f"features {option.feature_shortened:.0%}, outcomes {option.outcome_shortened:.0%}",
        f"{option.lost:.3f} of the outcomes’ variance",
    )
