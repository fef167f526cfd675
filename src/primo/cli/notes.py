"""What `primo fit` and `primo extend` say of a request, whether it is run or previewed."""

from __future__ import annotations

from primo.cli.output import counted, say
from primo.cli.request import Request
from primo.planning.plan import Plan

__all__ = ["note_few", "show_counts"]

_FEW = 30  # with fewer rows a note is printed


def show_counts(request: Request) -> None:
    """Print what is public of the files, and what a missing value or a further row means."""
    if request.options["json_"]:
        return
    for label, count in request.opened.counts:
        say(f"{label}: {count}")
    plan = request.prepared.plan
    say(_missing(request))
    if plan.rows_per_person > 1:
        say(
            f"Note: a person owns up to {plan.rows_per_person} rows. The budget is that of a row; the "
            "statement gives that of a person as well, and the ledger is charged for it."
        )


def note_few(plan: Plan) -> None:
    """Say that few rows drown in the noise, where they are few."""
    if plan.n < _FEW:
        rows = counted(plan.n, "row")
        say(f"Note: with only {rows}, noise that protects one person also hides the signal.")


def _missing(request: Request) -> str:
    """Say how missing values are treated, and how that is changed."""
    plan = request.prepared.plan
    centre = "centre" if plan.centred else "public centre"  # otherwise it is found
    if plan.missing == "error":
        text = "A missing value stops the run"
        other = f"--missing centre counts it as the {centre} of its column"
    else:
        text = f"Missing values count as the {centre} of their column"
        variants = request.opened.variants
        if variants is not None:
            by_panel = request.opened.norm is not None
            middle = f"the middle of 0 to {variants.copies}"
            text += f", genotypes as {'their public mean' if by_panel else middle}"
        other = "--missing error refuses them"
    # An extension treats them as the release did that it extends.
    return (
        f"{text} ({other})."
        if "missing" in request.options
        else f"{text}, as in the earlier release."
    )
