"""A release on disk: one file, public from end to end, that can be loaded and extended later."""

from __future__ import annotations

import dataclasses
import json
import os
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from primo.bounds import Clip
from primo.errors import InputError
from primo.grid import Grid
from primo.mechanisms.projection import Projected
from primo.plans import CovarianceOrigin, Plan
from primo.privacy.budget import Budget
from primo.privacy.protection import Protection
from primo.privacy.sensitivity import joint_distance
from primo.release import Release, expect_release

__all__ = ["load_release", "save_release"]

_FORMAT = "primo release 1"
_ARRAYS = ("covariance", "association", "outcome_moments")
_CLIPS = ("features", "outcomes")


def save_release(release: Release, path: str | os.PathLike[str]) -> Path:
    """Write a release to one `.npz` file, whole or not at all, and return its path.

    Guarantee: the file holds the released numbers, the plan and the names, nothing else. (Public
    features that outnumber the rows are not stored; attach them again after loading.)
    """
    expect_release(release)
    target = Path(path)
    if not target.parent.is_dir():
        raise InputError(f"the folder {str(target.parent)!r} does not exist; create it first")
    if target.is_dir():
        raise InputError(f"{str(target)!r} is a folder; give a file, for example release.npz")
    plan = dataclasses.asdict(release.plan)
    arrays: dict[str, Any] = {name: getattr(release, name) for name in _ARRAYS}
    for block in _CLIPS:
        clip = plan[block]
        for part in ("centre", "scale"):
            arrays[f"{block}_{part}"] = clip.pop(part)
    manifest = {
        "format": _FORMAT,
        "plan": plan,
        "feature_names": release.feature_names,
        "outcome_names": release.outcome_names,
        "earlier_outcomes": release.earlier_outcomes,
        "noise_left": None if release.projected is None else release.projected.noise_left,
        "reproducible": release.reproducible,
        "backend": release.backend,
    }
    if release.projected is not None:
        arrays["projected"] = release.projected.association
    arrays["manifest"] = np.array(json.dumps(manifest))
    # Renaming is atomic: a reader sees the old file or the new one, never half of one.
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez_compressed(file, **arrays)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return target


def load_release(path: str | os.PathLike[str]) -> Release:
    """Read a release that `save_release` wrote; refuse anything else with the reason."""
    try:
        with np.load(path, allow_pickle=False) as file:
            manifest = json.loads(str(file["manifest"]))
            arrays = {name: file[name] for name in file.files if name != "manifest"}
    except FileNotFoundError:
        raise InputError(f"there is no release at {str(path)!r}") from None
    except (OSError, EOFError, TypeError, ValueError, KeyError, zipfile.BadZipFile):
        raise InputError(
            f"{str(path)!r} is not a file that primo.save_release wrote, or is damaged"
        ) from None
    try:
        return _release(manifest, arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{str(path)!r} is damaged or of another version ({error})") from None


def _release(manifest: dict[str, Any], arrays: dict[str, Any]) -> Release:
    if manifest["format"] != _FORMAT:
        raise InputError(f"format {manifest['format']!r}, not {_FORMAT!r}")
    stored = dict(manifest["plan"])
    for block in _CLIPS:
        stored[block] = Clip(
            centre=arrays[f"{block}_centre"], scale=arrays[f"{block}_scale"], **stored[block]
        )
    stored["protection"] = Protection(stored["protection"])
    stored["budget"] = Budget(**stored["budget"])
    stored["grid"] = Grid(**stored["grid"])
    stored["covariance_origin"] = CovarianceOrigin(stored["covariance_origin"])
    plan = Plan(**stored)
    release = Release(
        plan=plan,
        feature_names=tuple(manifest["feature_names"]),
        outcome_names=tuple(manifest["outcome_names"]),
        earlier_outcomes=tuple(manifest["earlier_outcomes"]),
        reproducible=bool(manifest["reproducible"]),
        projected=_projected(manifest["noise_left"], arrays),
        backend=str(manifest["backend"]),
        **{name: arrays[name] for name in _ARRAYS},
    )
    _check(release)
    return release


def _projected(noise_left: float | None, arrays: dict[str, Any]) -> Projected | None:
    if noise_left is None:
        return None
    return Projected(association=arrays["projected"], noise_left=float(noise_left))


def _check(release: Release) -> None:
    plan = release.plan
    width = 0 if plan.covariance_origin is CovarianceOrigin.ROW_SPACE else plan.width
    outcome = (plan.l, plan.l) if plan.full_outcome_moments else (plan.l,)
    shapes = {
        "covariance": (width, width),
        "association": (plan.width, plan.l),
        "outcome_moments": outcome,
    }
    if plan.missing not in ("error", "centre") or not 1 <= (plan.sampled or 1) <= plan.n:
        raise ValueError("the plan is not one that primo makes")
    grid = plan.grid
    spent = joint_distance(grid.p if plan.covariance_noisy else 0 * grid.p, grid.q, grid.s)
    radii = (grid.feature_radius_squared, grid.outcome_radius_squared)
    if not 0 < min(radii) <= max(radii) <= 2**40 or spent > plan.mu**2 * (1 + 1e-9):
        raise ValueError("the noise does not fit the guarantee that the plan states")
    for name, shape in shapes.items():
        array = getattr(release, name)
        if array.shape != shape or array.dtype != np.float64 or not np.isfinite(array).all():
            raise ValueError(f"the {name} does not fit the plan")
    if release.projected is not None and (
        release.projected.association.shape != release.association.shape
        or not np.isfinite(release.projected.association).all()
        or not 0 <= release.projected.noise_left <= 1
    ):
        raise ValueError("the projected association does not fit the plan")
    for name, count in (("feature_names", plan.d), ("outcome_names", plan.l)):
        if len(getattr(release, name)) != count:
            raise ValueError(f"the {name} do not fit the plan")
