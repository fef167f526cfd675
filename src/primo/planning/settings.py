"""What is decided about a release before any row is read: one value from the front ends to the plan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from primo.errors import Argument, InputError, Message
from primo.planning.blocks import check_blocks
from primo.privacy.budget import is_number
from primo.privacy.norm_search import DEFAULT_SHARE
from primo.privacy.protection import Protection

__all__ = [
    "ASSOCIATIONS",
    "Settings",
    "associations_for",
    "check_association",
    "check_choices",
    "spelled_missing",
]

#: The mechanisms for XᵀY.
ASSOCIATIONS = ("gauss", "projection", "perturbed")


@dataclass(frozen=True, kw_only=True, eq=False)
class Settings:
    """The settings of one release, under the names that `PrimoRegressor` documents.

    Parameters
    ----------
    epsilon, delta
        The budget of the whole release, for all outcomes together.
    protection
        "both", "features" or "outcomes".
    feature_bounds, outcome_bounds
        Public bounds of either block: `Bounds`, a row norm or a range.
    association
        "gauss", or "projection" (GaussProj) where one block is public, or "perturbed" (noise on the
        outcomes themselves) where the features are; "auto" for `choose_plan`.
    calibration
        "exact", or "paper": the noise scales as the paper prints them, whatever they give
        (Algorithms 1, 2 and 4; "paper-alg3" has those of Algorithm 3, under `features`).
    covariance_rows
        Make the covariance from this many rows, drawn in secret (SubSampReuseCov).
    public_covariance, public_mean
        Covariance and means of a public panel; only the association is then paid for. A plan depends
        only on whether they are given.
    fit_intercept
        Whether a constant feature is part of the release.
    missing
        "error" or "centre": what to do with NaN and infinity.
    split
        k = q/p in (0, 2]; chosen from l if None. At 2 the covariance is free.
    outcome_moments
        "full" (all of YᵀY), "diagonal", or "auto" (full up to 512 outcomes).
    rows_per_person
        How many rows one person owns; the budget is that of one row.
    norm_share
        Share of mu² that finds norms, where bounds have norm="auto"; times at most 2.8 where rows are
        few, or centres and scales are found, too (planning/searches.py).
    rounds
        How many rounds look at what the ones before have left; "auto" chooses from public numbers.
    covariance
        "full" (all of XᵀX), "blocks" (inside public blocks of features), "none" (its diagonal),
        "panel" (its diagonal; the rest from a public panel), or "auto": from public numbers.
    blocks
        Borders of the blocks by feature position, from 0 to d; public.
    block_norms
        Norms of the blocks' rows in scaled units, one or one per block; from the bounds if None.
    """

    epsilon: float
    delta: float
    protection: Protection | str = Protection.BOTH
    feature_bounds: Any = None
    outcome_bounds: Any = None
    association: str = "gauss"
    calibration: str = "exact"
    covariance_rows: int | None = None
    public_covariance: Any = None
    public_mean: Any = None
    fit_intercept: bool = True
    missing: str = "error"
    split: float | None = None
    outcome_moments: str = "auto"
    rows_per_person: int = 1
    norm_share: float = DEFAULT_SHARE
    rounds: int | str = 1
    covariance: str = "full"
    blocks: Any = None
    block_norms: Any = None


def spelled_missing(value: Any) -> Any:
    """Return how missing values are treated in the spelling that plans use: "center" is "centre"."""
    return "centre" if isinstance(value, str) and value == "center" else value


def associations_for(protection: Protection, *, row_space: bool = False) -> tuple[str, ...]:
    """Return the mechanisms that serve a protection.

    Projecting needs a public block. With more public features than rows (`row_space`) it is not
    offered, because the row space already drops the noise outside. Noise on the outcomes themselves
    serves where they alone are private: what is computed from them needs public features.
    """
    projection = () if protection is Protection.BOTH or row_space else ("projection",)
    perturbed = ("perturbed",) if protection is Protection.OUTCOMES else ()
    return ("gauss", *projection, *perturbed)


def check_association(association: str, protection: Protection, *, auto: bool = False) -> None:
    """Refuse a mechanism that is unknown or does not serve a protection; `auto` allows "auto"."""
    choices = (*ASSOCIATIONS, "auto") if auto else ASSOCIATIONS
    if association not in choices:
        raise InputError(
            Argument("association", association),
            " is unknown",
            remedy=f"choose one of {', '.join(choices)}",
        )
    if association == "perturbed" and protection is not Protection.OUTCOMES:
        raise InputError(
            Argument("association", "perturbed"),
            " puts noise on the outcomes alone and uses the features as they are",
            remedy=Message.of(
                "Use ",
                Argument("association", "gauss"),
                ", or ",
                Argument("protection", "outcomes"),
                " if the features are public",
            ),
        )
    if association != "auto" and association not in associations_for(protection):
        raise InputError(
            Argument("association", "projection"),
            " needs a public block to project onto: under ",
            Argument("protection", "both"),
            " the set of possible associations is itself private",
            remedy=Message.of(
                "Use ",
                Argument("association", "gauss"),
                ", or protect one of the two only, features or outcomes",
            ),
        )


def check_choices(settings: Settings) -> None:
    """Refuse unknown words and combinations that make no sense; the error names a remedy."""
    protection = Protection.parse(settings.protection)
    rows, calibration = settings.covariance_rows, settings.calibration
    for name, value, choices in (
        ("missing", spelled_missing(settings.missing), ("error", "centre")),
        ("outcome_moments", settings.outcome_moments, ("auto", "full", "diagonal")),
        ("calibration", calibration, ("exact", "paper", "paper-alg3")),
    ):
        if value not in choices:
            raise InputError(
                Argument(name, value), " is unknown", remedy=f"choose one of {', '.join(choices)}"
            )
    split = settings.split
    if split is not None and not (is_number(split) and 0.001 <= split <= 2):
        raise InputError(
            Argument("split", split),
            " must lie between 0.001 and 2: at 2 the covariance already costs nothing, above it the "
            "association would only get noisier",
        )
    if not (is_number(settings.norm_share) and 0.001 <= settings.norm_share <= 0.5):
        raise InputError(
            Argument("norm_share", settings.norm_share),
            " must lie between 0.001 and 0.5: the share of the budget (of mu squared) that finds norms",
        )
    check_association(settings.association, protection)
    check_blocks(settings)
    if rows is not None and protection is not Protection.BOTH:
        raise InputError(
            Argument("covariance_rows", rows),
            " belongs to ",
            Argument("protection", "both"),
            remedy="leave it out",
        )
    public = settings.public_covariance is not None
    if public and not protection.features_private:
        raise InputError(
            "the features are public under ",
            Argument("protection", str(protection)),
            ", so their own covariance is used",
            argument="public_covariance",
            remedy=Message.of("leave ", Argument("public_covariance"), " out"),
        )
    if rows is not None and public:
        raise InputError("a covariance from a reference panel is not sampled from the rows")
    if public and calibration != "exact":
        raise InputError(
            "the paper has no public covariance",
            argument="calibration",
            value=calibration,
            remedy=Message.of("use ", Argument("calibration", "exact")),
        )
    if settings.association == "perturbed" and calibration != "exact":
        raise InputError(
            "the paper puts no noise on the outcomes themselves",
            argument="calibration",
            value=calibration,
            remedy=Message.of("use ", Argument("calibration", "exact")),
        )
    if calibration == "paper-alg3" and protection is not Protection.FEATURES:
        raise InputError(
            Argument("calibration", "paper-alg3"),
            " is printed for ",
            Argument("protection", "features"),
            " only",
        )
