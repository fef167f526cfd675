"""What a bundle says in words and public numbers: the statement and the plan."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
from typing import Any

import numpy as np

from primo.planning.plan import Plan
from primo.privacy.bounds import Clip
from primo.privacy.rounds import round_spent
from primo.released.bundle.manifest import NOT_FOR_PUBLICATION
from primo.released.release import Release

__all__ = ["plan_text", "statement_text"]


def statement_text(release: Release) -> str:
    """Return the privacy statement; a release that may not be published says so first."""
    banner = "" if release.publishable else f"*** {NOT_FOR_PUBLICATION} ***\n\n"
    return f"{banner}{release.statement()}\n"


def plan_text(plan: Plan) -> str:
    """Return the plan as JSON for people: all of it follows from public choices."""
    described = {
        "rows": plan.n,
        "features": plan.d,
        "outcomes": plan.l,
        "protection": str(plan.protection),
        "budget": {"epsilon": plan.budget.epsilon, "delta": plan.budget.delta},
        "guarantee": {
            "epsilon": plan.epsilon,
            "delta": plan.budget.delta,
            "mu": plan.mu,
            "lattice_margin": plan.margin,
            "earlier_mu": plan.earlier_mu,
            "total_epsilon": plan.total_epsilon,
            "total_mu": plan.total_mu,
            "rows_per_person": plan.rows_per_person,
            "person_epsilon": plan.person_epsilon,
            "person_mu": plan.person_mu,
        },
        "bounds": {"features": _bounds(plan.features), "outcomes": _bounds(plan.outcomes)},
        "missing": plan.missing,
        "intercept": plan.intercept,
        "mechanism": {
            "calibration": plan.calibration,
            "association": plan.association,
            "covariance": str(plan.covariance_origin),
            "sampled_rows": plan.sampled,
            "outcome_moments": "full" if plan.full_outcome_moments else "diagonal",
            "split": plan.split,
        },
        "noise": {
            "unit": "standard deviation in scaled units: (value - centre) / scale",
            "covariance": plan.covariance_sigma,
            "association": plan.association_sigma,
            "outcome_moments": plan.outcome_sigma,
        },
        "grid": dataclasses.asdict(plan.grid),
    }
    if plan.auto_norms:  # a bundle is compared with these words to the letter, old ones too
        described["norms_found"] = _norms_found(plan)
    if plan.blocks is not None:
        described["blocks"] = _inside(plan)
    if plan.rounds is not None:
        described["rounds"] = _rounds(plan)
    if plan.perturbation is not None:
        described["perturbed_outcomes"] = {
            "noise": plan.row_sigma,
            "step": plan.row_step,
            **dataclasses.asdict(plan.perturbation),
        }
    return json.dumps(described, indent=2, allow_nan=False, default=operator.index) + "\n"


def _norms_found(plan: Plan) -> dict[str, Any]:
    """Describe the stages that find norms from row lengths, and centres and scales before that."""
    search = plan.norm_search
    described = {
        "asked_for": list(plan.auto_norms),
        "found": list(plan.counted),
        "too_few_rows": list(plan.declined),
        "mu": 0.0 if search is None else math.sqrt(search.spent),
        "noise_in_rows": 0.0 if search is None else search.sigma,
    }
    if plan.centre_search is not None:
        described["centres"] = {
            "found": _blocks(plan.centre_search),
            "mu": math.sqrt(plan.centre_search.spent),
            "noise_in_rows": plan.centre_search.counts.sigma,
            "noise_of_sums_in_norms": plan.centre_search.sigma,
        }
    if plan.column_search is not None:
        described["columns"] = {
            "found": _blocks(plan.column_search),
            "mu": math.sqrt(plan.column_search.spent),
            "noise_in_rows": plan.column_search.sigma,
        }
    return described


def _inside(plan: Plan) -> dict[str, Any]:
    """Describe the blocks of features that the covariance is released inside of."""
    assert plan.blocks is not None
    noise = plan.blocks.steps_sigma * plan.feature_step**2 * plan.protection.features_private
    norms = np.sqrt(plan.blocks.radius_squared) * plan.feature_step
    return {
        "borders": plan.blocks.starts.tolist(),
        "row_norm": _short(norms),
        "noise": _short(noise),
        "noise_of_feature_sums": plan.feature_sum_sigma,
        "noise_of_outcome_sums": plan.outcome_sum_sigma,
        "grid": {
            "radius_squared": _short(plan.blocks.radius_squared),
            "unit": _short(plan.blocks.unit),
            "variance_bits": _short(plan.blocks.variance_bits),
        },
    }


def _blocks(search: Any) -> list[str]:
    return [block for block in ("features", "outcomes") if getattr(search, block)]


def _rounds(plan: Plan) -> list[dict[str, Any]]:
    """Describe what each round spends; "noise" and "grid" above are those of the first."""
    assert plan.rounds is not None
    return [
        {
            "mu": math.sqrt(round_spent(grid, covariance_noisy=plan.covariance_noisy)),
            "grid": dataclasses.asdict(grid),
        }
        for grid in plan.rounds.grids
    ]


def _short(values: Any) -> Any:
    return values[0].item() if np.all(values == values[0]) else values.tolist()


def _bounds(clip: Clip) -> dict[str, Any]:
    """Describe the clipping of a block; one number stands for a column of equal ones."""
    described = {
        "centre": _short(clip.centre),
        "scale": _short(clip.scale),
        "cut_to_range": clip.box,
        "row_norm": clip.norm,
    }
    if clip.middle is not None:  # old bundles are compared with these words to the letter
        described["range_middle"] = _short(clip.middle)
    return described
