"""The manifest: what is in a bundle, under which guarantee, and the SHA-256 of each part."""

from __future__ import annotations

import dataclasses
import datetime
import json
import math
import operator
from collections.abc import Mapping
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from primo.errors import InputError
from primo.planning.plan import CovarianceOrigin, Plan
from primo.released.estimation import Estimation
from primo.released.release import Release
from primo.variants import Variants

__all__ = [
    "CONTENT",
    "FILE",
    "SCHEMA_FILE",
    "agree",
    "encode",
    "has_intervals",
    "has_slope_intervals",
    "make_manifest",
    "parse",
]

Manifest = dict[str, Any]

FILE = "manifest.json"
FORMAT = "primo bundle"
VERSION = 1
MOST_BYTES = 2**20  # a manifest has a few thousand
MOST_QUOTED = 60  # characters of an unknown key in a message

SCHEMA_FILE = files("primo.released.bundle") / "schema" / "manifest.schema.json"

#: Every part that a bundle can have, in the order in which they are listed and stored.
CONTENT = {
    "statement.txt": "the privacy statement in plain words",
    "plan.json": "bounds, noise, guarantee: fixed in advance, or found from released numbers",
    "coefficients.parquet": "one line per outcome and feature",
    "coefficients.tsv": "the same as text",
    "outcomes.parquet": "one line per outcome",
    "outcomes.tsv": "the same as text",
    "moments.npz": "the released numbers themselves; primo.load_release reads them",
    "variants.tsv": "where each genetic feature lies and which allele it counts",
    "config.toml": "the configuration that the release was made with",
}

NOT_FOR_PUBLICATION = (
    "NOT FOR PUBLICATION: the noise can be recomputed from a seed, so this release protects nobody"
)


def make_manifest(
    release: Release,
    *,
    parts: Mapping[str, tuple[str, int]],
    release_id: str,
    created: datetime.date,
    estimation: Estimation,
    level: float,
    variants: Variants | None,
    linkage: str | None = None,
) -> Manifest:
    """Describe a bundle; `parts` holds the SHA-256 and the size of each file.

    Guarantee: besides the hashes of released numbers, everything here follows from the plan, the names
    and public choices. The date has no time of day.
    """
    return {
        "format": FORMAT,
        "version": VERSION,
        "release_id": release_id,
        "created": created.isoformat(),
        "primo": version("primo-dp"),
        **_facts(release),
        "estimation": dataclasses.asdict(estimation),
        **({} if linkage is None else {"linkage": linkage}),
        "level": level,
        "intervals": has_intervals(release.plan),
        "slope_intervals": has_slope_intervals(release.plan, estimation),
        "haplotypes": None if variants is None else variants.haplotypes,
        "parts": {
            name: {"sha256": parts[name][0], "bytes": parts[name][1], "content": content}
            for name, content in CONTENT.items()
            if name in parts
        },
    }


def has_intervals(plan: Plan) -> bool:
    """Whether single coefficients have intervals and tests (`uncertainty.system` says why not)."""
    return plan.association != "projection" and plan.covariance_origin not in (
        CovarianceOrigin.ROW_SPACE,
        CovarianceOrigin.BLOCKS,
    )


def has_slope_intervals(plan: Plan, estimation: Estimation) -> bool:
    """Whether the published slopes have intervals: they are known for the default estimator only."""
    return has_intervals(plan) and estimation.estimator == "auto"


def _facts(release: Release) -> Manifest:
    """Return what a manifest repeats of the release, so that a reader need not open it."""
    plan = release.plan
    return {
        "publishable": release.publishable,
        "warning": None if release.publishable else NOT_FOR_PUBLICATION,
        "rows": plan.n,
        "features": plan.d,
        "outcomes": plan.l,
        "needs_features": plan.covariance_origin is CovarianceOrigin.ROW_SPACE,
        "privacy": {
            "protection": str(plan.protection),
            "epsilon": plan.epsilon,
            "delta": plan.budget.delta,
            "mu": plan.mu,
            "total_epsilon": plan.total_epsilon,
            "total_mu": plan.total_mu,
            "rows_per_person": plan.rows_per_person,
            "person_epsilon": plan.person_epsilon,
            "person_mu": plan.person_mu,
            "neighbours": "replace one row",
            "calibration": plan.calibration,
            "backend": release.backend,
        },
    }


def agree(manifest: Manifest, release: Release) -> bool:
    """Whether a manifest agrees with its release."""

    def same(stated: Any, true: Any) -> bool:
        if isinstance(true, dict):
            return all(same(stated[key], value) for key, value in true.items())
        if isinstance(true, float):  # the last digits of a calibration may change with a version
            return math.isclose(stated, true, rel_tol=1e-6)
        return bool(stated == true)

    return same(manifest, _facts(release))


def encode(manifest: Manifest) -> bytes:
    """Return the bytes of manifest.json; their SHA-256 is the digest of the release."""
    text = json.dumps(manifest, indent=2, allow_nan=False, default=operator.index)
    return f"{text}\n".encode()


def parse(content: bytes) -> Manifest:
    """Read manifest.json and check it against the published schema."""
    try:
        manifest = json.loads(content, object_pairs_hook=_unique_keys, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise InputError(f"{FILE} is not valid JSON; the bundle is damaged") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InputError(f"{FILE} is not the manifest of a primo bundle")
    found = manifest.get("version")
    if found != VERSION:
        stated = f"version {found}" if isinstance(found, int) else "no version number"
        raise InputError(
            f"{FILE} has {stated} and this primo reads version {VERSION}; "
            "install the primo that the release was made with, or a newer one"
        )
    problem = _misfit(manifest)
    if problem is not None:
        raise InputError(f"{FILE} does not fit its schema: {problem}")
    return manifest


def _misfit(manifest: Manifest) -> str | None:
    """Say where a manifest breaks the published schema; None if it fits.

    The words name places and rules of the schema, and an unknown key, which is public as the whole
    manifest is; a value is not quoted, because it may be of any size.
    """
    from jsonschema import Draft202012Validator  # here, because it takes a while to load

    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    try:
        error = next(Draft202012Validator(schema).iter_errors(manifest), None)
    except RecursionError:  # jsonschema writes the value into its message, however deep it is
        return "it is nested too deeply"
    if error is None:
        return None
    place = ".".join(["manifest", *map(str, error.absolute_path)])
    match error.validator:
        case "required":
            absent = (key for key in error.validator_value if key not in error.instance)
            return f"{place} has no {next(absent)!r}"
        case "additionalProperties":
            unknown = min(set(error.instance).difference(error.schema["properties"]))
            return f"{place} has an unknown {unknown[:MOST_QUOTED]!r}"
        case rule:
            return f"{place} breaks the rule {rule!r}: {json.dumps(error.validator_value)}"


def _unique_keys(pairs: list[tuple[str, Any]]) -> Manifest:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
