"""What a folder of summary statistics says about itself: the guarantee, and the metadata of GWAS-SSF."""

from __future__ import annotations

import datetime
import hashlib
import json
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from primo.planning.plan import Plan
from primo.released.export.scoring import text_file
from primo.released.marginal import SummaryStatistics
from primo.released.statement import statement

__all__ = ["privacy_facts", "ssf_metadata", "write_yaml"]


def privacy_facts(statistics: SummaryStatistics, digest: str | None = None) -> dict[str, Any]:
    """Return the guarantee and what the numbers are, for a metadata file."""
    release, plan = statistics.release, statistics.release.plan
    return {
        "differential_privacy": {
            "mechanism": _mechanism(plan),
            "protection": str(plan.protection),
            "epsilon": plan.epsilon,
            "delta": plan.budget.delta,
            "mu": plan.mu,
            "neighbours": f"replace {plan.protection.replaced}",
            "rows_per_person": plan.rows_per_person,
            "person_epsilon": plan.person_epsilon,
            "publishable": release.publishable,
            "release_sha256": digest,
        },
        "statistics": {
            "effect": "slope of the outcome on copies of the effect allele, beside "
            + _beside(statistics),
            "standard_error": "privacy noise and sampling together",
            "effective_n": "people whose study without noise would have the same standard error; absent "
            "where the noise hides how much the outcome varies",
            "people": statistics.n,
            "variants_hidden_by_noise": int((~statistics.determined).sum()),
            "effect_allele_frequency": _frequency_words(statistics),
            "notes": list(statistics.notes),
        },
        "statement": statement(release),
    }


def _mechanism(plan: Plan) -> str:
    if plan.perturbation is not None:
        return "discrete Gaussian noise on each outcome of each row shortened to public bounds"
    return "discrete Gaussian noise on the moments of rows shortened to public bounds"


def _beside(statistics: SummaryStatistics) -> str:
    constant = ["an intercept"] if statistics.release.plan.intercept else []
    return ", ".join([*constant, *statistics.covariates]) or "nothing else"


def _frequency_words(statistics: SummaryStatistics) -> str:
    error = statistics.frequency_error
    if error is None:
        return "public centre of the genotypes over the number of copies"
    if not error.any():
        return "of the rows, exact, because the features are public"
    return f"released mean; its privacy noise has standard deviation {error.max():.3g} at most"


def ssf_metadata(
    path: Path,
    outcome: str,
    statistics: SummaryStatistics,
    genome_build: str,
    facts: dict[str, Any],
) -> dict[str, Any]:
    """Return what the metadata file of GWAS-SSF says; what it has no field for is in our own fields."""
    with path.open("rb") as file:
        md5 = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    privacy = facts["differential_privacy"]
    warning = "" if privacy["publishable"] else "Not for publication: the noise is reproducible. "
    return {
        "author_notes": f"{warning}Differentially private: protection {privacy['protection']}, epsilon "
        f"{privacy['epsilon']!r}, delta {privacy['delta']!r} ({privacy['neighbours']}). Standard errors "
        "contain the privacy noise; the fields differential_privacy, statistics and statement say more.",
        "date_metadata_last_modified": datetime.datetime.now(datetime.UTC).date(),
        "trait_description": [outcome],
        "genome_assembly": genome_build,
        "coordinate_system": "1-based",
        "samples": [{"sample_size": statistics.n}],
        "data_file_name": path.name,
        "file_type": "GWAS-SSF v1.0",
        "data_file_md5sum": md5,
        "analysis_software": f"primo {version('primo-dp')}",
        "adjusted_covariates": list(statistics.covariates),
        "is_harmonised": False,
        "is_sorted": True,
        **facts,
    }


def write_yaml(path: Path, content: Mapping[str, Any]) -> None:
    """Write a new file of YAML."""
    with text_file(path) as file:
        file.writelines(f"{line}\n" for line in _yaml(content))


def _yaml(content: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Yield the lines of a YAML mapping: JSON's strings, numbers and lists are YAML's, too."""
    for key, value in content.items():
        if isinstance(value, Mapping):
            yield f"{indent}{key}:"
            yield from _yaml(value, indent + "  ")
        elif isinstance(value, datetime.date):
            yield f"{indent}{key}: {value.isoformat()}"
        elif isinstance(value, str) and "\n" in value:
            yield f"{indent}{key}: |"
            yield from (f"{indent}  {line}".rstrip() for line in value.splitlines())
        else:
            text = json.dumps(value)
            if isinstance(value, float) and "." not in text:
                text = text.replace("e", ".0e")  # many readers of YAML take 1e-06 for a word
            yield f"{indent}{key}: {text}"
