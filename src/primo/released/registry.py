"""The record of a release for public registries of deployments of differential privacy.

The keys are those of the Differential Privacy Deployments Registry (OpenDP, Oblivious and others, 2025;
Nanayakkara, Ghazi, Vadhan: arXiv 2509.13509). Everything follows from the manifest and the plan of the
release, which are public; what a release cannot know (who published it, what for) is given by the caller
or left empty.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from primo.planning.plan import CovarianceOrigin, Plan
from primo.released.bundle import Bundle
from primo.released.release import Release
from primo.released.rounds import ReleasedRound

__all__ = ["About", "registry_entry", "unanswered"]


@dataclass(frozen=True, kw_only=True)
class About:
    """What a registry asks for and a release cannot know; None where nobody has said it."""

    name: str | None = None
    curator: str | None = None
    intended_use: str | None = None
    description: str | None = None
    url: str | None = None


def registry_entry(bundle: Bundle, about: About | None = None) -> dict[str, Any]:
    """Describe a release in the form of a registry of deployments: unit, guarantee, trust, mechanism.

    Guarantee: computed from the published bundle alone, so it costs no privacy.
    """
    about = about or About()
    plan, manifest = bundle.release.plan, bundle.manifest
    return {
        "status": "Draft",
        "registry_authors": [],
        "deployment": {
            "basic": {
                "name": about.name,
                "data_curator": about.curator,
                "intended_use": about.intended_use,
                "description": about.description,
                "data_product_type": "Regression coefficients and noisy moments",
                "publication_date": manifest["created"],
                "additional_information_urls": [] if about.url is None else [about.url],
            },
            "dp_variant": {
                "name": "Approximate DP, from Gaussian DP (mu-GDP); against bounded computing power",
                "data_domain": f"tables of {plan.n} rows with {plan.d} feature{'s' * (plan.d > 1)} and "
                f"{plan.l} outcome{'s' * (plan.l > 1)}",
                "neighbours": "replace one row (bounded differential privacy)",
                "unprotected_quantities": _public(plan),
            },
            "privacy_loss": _loss(plan),
            "deployment_model": {
                "model_name": "Central",
                "model_name_description": "A trusted curator holds the rows, runs primo, and publishes "
                "the release.",
                "actors": [
                    "the people in the rows",
                    "the curator",
                    "everybody who sees the release",
                ],
                "release_type": "One-shot"
                if not plan.earlier_mu
                else "Extension of earlier releases",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "composition": _joint(plan)
                + (
                    f"With the releases that it extends: epsilon {plan.total_epsilon!r} at the same "
                    f"delta, mu {plan.total_mu!r}."
                    if plan.earlier_mu
                    else "The release extends no earlier one."
                ),
                "post_processing": "Coefficients, intervals, tests and R² come from the released "
                "numbers alone.",
            },
            "implementation": {
                "software": f"primo {manifest['primo']}",
                "pre_processing_eda_hyperparameter_tuning": _preparation(plan),
                "mechanisms": _mechanisms(bundle),
                "justification": "docs/guarantee.md of primo has the proof; the plan is part of the "
                "release.",
            },
            "additional_information": {
                "release_id": manifest["release_id"],
                "digest": f"sha256:{bundle.digest}",
                "publishable": manifest["publishable"],
                "statement": bundle.release.statement(),
            },
        },
    }


def unanswered(entry: dict[str, Any]) -> list[str]:
    """Name the fields that only people can fill in and that are empty."""
    basic = entry["deployment"]["basic"]
    return [name for name, value in basic.items() if value is None]


def _loss(plan: Plan) -> dict[str, Any]:
    person = plan.rows_per_person > 1
    unit = f"One person with up to {plan.rows_per_person} rows" if person else "One row"
    note = "A row is one person if every person owns one row." if not person else ""
    return {
        "privacy_unit": unit,
        "privacy_unit_description": f"{plan.protection.sentence}. {note}".strip(),
        "privacy_parameters": {
            "epsilon": plan.person_epsilon,
            "delta": plan.budget.delta,
            "mu": plan.person_mu,
        },
        "privacy_parameters_description": "With everything that this release extends. mu is the "
        "parameter of Gaussian DP.",
    }


def _public(plan: Plan) -> list[str]:
    found = ["the number of rows", "the names of the columns", "the bounds", "the settings"]
    if not plan.protection.features_private:
        found.append("all features")
    if not plan.protection.outcomes_private:
        found.append("all outcomes")
    if plan.covariance_origin is CovarianceOrigin.REFERENCE:
        found.append("the covariance of a public reference panel")
    found.append("whether the run failed (a missing value that was to be refused)")
    return found


def _joint(plan: Plan) -> str:
    rounds = "" if plan.rounds is None else f" in {plan.round_count} rounds"
    text = f"All outcomes share one joint Gaussian mechanism{rounds}. "
    if plan.rounds is not None or plan.searched:
        text += (
            "What each stage spends was fixed before a row was read; the parameters are of all. "
        )
    return text


def _preparation(plan: Plan) -> str:
    text = "Bounds were stated before any row was read"
    if plan.searched:
        text += ", or were found from noisy counts and sums whose cost is included"
    return f"{text}. Rows beyond a bound were shortened. No tuning on the rows."


def _mechanisms(bundle: Bundle) -> list[str]:
    plan = bundle.release.plan
    sampler = f"discrete Gaussian, exact sampler ({bundle.release.backend})"
    stages = [*_searches(plan), *_moments(bundle.release)]
    found = [f"{sampler} on the {name}: standard deviation {size}" for name, size in stages]
    if plan.sampled:
        found.append(f"covariance from a secret sample of {plan.sampled} rows")
    if plan.calibration != "exact":
        found.append(
            "noise scales as printed in the paper; the parameters are what they truly give"
        )
    return found


def _searches(plan: Plan) -> Iterator[tuple[str, str]]:
    """Yield what is counted and added up to find bounds, and with how much noise."""
    if plan.column_search is not None:
        yield "counts of each column's values", f"{plan.column_search.sigma:.6g} rows"
    if plan.centre_search is not None:
        counts = plan.centre_search.counts
        yield "counts of rows by length, before centring", f"{counts.sigma:.6g} rows"
        yield "sum of shortened rows", f"{plan.centre_search.sigma:.6g} norms"
    if plan.norm_search is not None:
        yield "counts of rows by length", f"{plan.norm_search.sigma:.6g} rows"


def _moments(release: Release) -> Iterator[tuple[str, str]]:
    """Yield the moments that are released, round by round, and with how much noise."""
    plan = release.plan
    if plan.perturbation is not None:
        yield "outcomes of every row", f"{plan.row_sigma:.6g} in scaled units"
        return
    earlier = plan.covariance_origin is CovarianceOrigin.EARLIER
    parts: tuple[Plan | ReleasedRound, ...] = release.rounds or (plan,)
    for number, part in enumerate(parts, 1):
        noise = {
            "covariance (of the earlier release)"
            if earlier
            else "covariance": part.covariance_sigma,
            "association": part.association_sigma,
            "outcome moments": part.outcome_sigma,
        }
        which = f" of round {number}" if release.rounds else ""
        for name, sigma in noise.items():
            if sigma > 0:
                yield f"{name}{which}", f"{sigma:.6g} in scaled units"
