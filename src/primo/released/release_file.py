"""A release on disk: one file, public from end to end, that can be loaded and extended later."""

from __future__ import annotations

import dataclasses
import json
import math
import operator
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from primo._util.atomic import whole_file
from primo._util.reading import unreadable
from primo.errors import InputError
from primo.planning.guarantee import check_plan, noisy_blocks
from primo.planning.plan import CovarianceOrigin, Plan
from primo.privacy.bounds import Clip
from primo.privacy.budget import Budget, is_number, is_whole
from primo.privacy.centre_search import CentreSearch
from primo.privacy.column_search import ColumnSearch
from primo.privacy.grid import Grid
from primo.privacy.lengths import BINS
from primo.privacy.norm_search import NormSearch
from primo.privacy.perturbation import Perturbation
from primo.privacy.protection import Protection
from primo.privacy.rounds import Rounds
from primo.privacy.values import BINS as VALUE_BINS
from primo.released.block_file import block_arrays, read_block_grid, read_blocks
from primo.released.moments import ReleasedColumns, ReleasedLengths, expect_release
from primo.released.projection import Projected
from primo.released.release import Release
from primo.released.round_release import pooled_release, read_rounds, round_arrays

__all__ = ["load_release", "read_release", "save_release", "write_release"]

_FORMAT = "primo release 1"
_ARRAYS = ("covariance", "association", "outcome_moments")
_WIDE = ("feature_squares", "feature_sums")  # public, of perturbed outcomes of a row space
_CLIPS = ("features", "outcomes")
_SEARCHES: dict[str, type] = {
    "norm_search": NormSearch,
    "centre_search": CentreSearch,
    "column_search": ColumnSearch,
}

#: What the declared types of a plan's fields mean for what was read.
_KINDS: dict[str, Callable[[Any], bool]] = {
    "int": is_whole,
    "int | None": lambda value: value is None or is_whole(value),
    "float": lambda value: is_number(value) and not math.isnan(value),
    "bool": lambda value: isinstance(value, bool),
    "str": lambda value: isinstance(value, str),
}


def save_release(release: Release, path: str | os.PathLike[str]) -> Path:
    """Write a release to one `.npz` file, whole or not at all, and return its path.

    Guarantee: the file holds the released numbers, the plan and the names, nothing else. (Public
    features that outnumber the rows are not stored; attach them again after loading.)

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> path = primo.save_release(model.fit(X, Y).release_, "first.npz")
    >>> path.name
    'first.npz'
    """
    expect_release(release)
    target = Path(path)
    with whole_file(target) as file:
        write_release(release, file)
    return target


def write_release(release: Release, file: BinaryIO) -> None:
    """Write what `save_release` writes; its size depends on the plan and the names only."""
    plan = dataclasses.asdict(release.plan)
    for part in ("rounds", "blocks", "perturbation"):  # files without them are as they were before
        if plan[part] is None:
            del plan[part]
    if release.rounds:  # pooled moments are made of them again
        arrays: dict[str, Any] = round_arrays(release.rounds)
    else:
        arrays = {name: getattr(release, name) for name in _ARRAYS}
    if "blocks" in plan:
        arrays.update(block_arrays(release, plan.pop("blocks")))
    for block in _CLIPS:
        clip = plan[block]
        for part in ("centre", "scale"):
            arrays[f"{block}_{part}"] = clip.pop(part)
        middle = clip.pop("middle")
        if middle is not None:
            arrays[f"{block}_middle"] = middle
    manifest = {
        "format": _FORMAT,
        "plan": plan,
        "noisy": noisy_blocks(release.plan),
        "feature_names": release.feature_names,
        "outcome_names": release.outcome_names,
        "earlier_outcomes": release.earlier_outcomes,
        "reproducible": release.reproducible,
        "backend": release.backend,
    }
    for block in _CLIPS:
        counts = None if release.lengths is None else getattr(release.lengths, block)
        if counts is not None:
            arrays[f"{block}_lengths"] = counts
        columns = None if release.lengths is None else release.lengths.columns
        values = None if columns is None else getattr(columns, block)
        if values is not None:
            arrays[f"{block}_values"] = values
    optional = {name: getattr(release, name) for name in ("perturbed", *_WIDE)}
    arrays.update({name: value for name, value in optional.items() if value is not None})
    if release.projected is not None:
        arrays["projected"] = release.projected.association
        arrays["noise_left"] = np.float64(release.projected.noise_left)
    arrays["manifest"] = np.array(json.dumps(manifest, default=operator.index))
    np.savez(file, **arrays)


def load_release(path: str | os.PathLike[str]) -> Release:
    """Read a release that `save_release` wrote; refuse anything else with the reason.

    The guarantee is computed anew from the stored noise, and a file that states another is refused
    (`planning.guarantee`). Whether these are the numbers that were released, only whoever made the file
    can say: compare a bundle's digest with the ledger.

    Examples
    --------
    >>> import numpy as np
    >>> import primo
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(500, 2))
    >>> Y = X @ rng.uniform(-1, 1, size=(2, 3))
    >>> model = primo.PrimoRegressor(
    ...     epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2)
    ... )
    >>> path = primo.save_release(model.fit(X, Y).release_, "first.npz")
    >>> release = primo.load_release(path)
    >>> (release.association == model.release_.association).all()
    np.True_
    """
    try:
        with open(path, "rb") as file:
            return read_release(file, str(path))
    except FileNotFoundError:
        raise InputError(f"there is no release at {str(path)!r}") from None
    except OSError as error:
        raise unreadable(path, error) from None


def read_release(file: BinaryIO, name: str) -> Release:
    """Read what `write_release` wrote; `name` is for messages.

    Nothing in it is executed, and memory stays within a small multiple of the file's size.
    """
    try:
        _refuse_bombs(file)
        with np.load(file, allow_pickle=False) as stored:
            manifest = json.loads(str(stored["manifest"]))
            arrays = {key: stored[key] for key in stored.files if key != "manifest"}
    except (
        OSError,
        EOFError,
        TypeError,
        ValueError,
        KeyError,
        AttributeError,
        MemoryError,
        RecursionError,
        zipfile.BadZipFile,
    ):
        raise InputError(
            f"{name!r} is not a file that primo.save_release wrote, or is damaged"
        ) from None
    try:
        return _release(manifest, arrays)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"{name!r} is damaged or of another version ({error})") from None


def _refuse_bombs(file: BinaryIO) -> None:
    """Refuse compressed or overlapping members: what is read is never more than what is stored."""
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
    if any(member.compress_type != zipfile.ZIP_STORED for member in members):
        raise ValueError("compressed")
    if sum(member.file_size for member in members) > size:
        raise ValueError("members overlap")
    file.seek(0)


def _release(manifest: dict[str, Any], arrays: dict[str, Any]) -> Release:
    if manifest["format"] != _FORMAT:
        raise InputError(f"format {manifest['format']!r}, not {_FORMAT!r}")
    stored = dict(manifest["plan"])
    for block in _CLIPS:
        stored[block] = Clip(
            centre=arrays[f"{block}_centre"],
            scale=arrays[f"{block}_scale"],
            middle=arrays.get(f"{block}_middle"),
            **stored[block],
        )
    stored["protection"] = Protection(stored["protection"])
    stored["budget"] = Budget(**stored["budget"])
    stored["grid"] = Grid(**stored["grid"])
    stored["covariance_origin"] = CovarianceOrigin(stored["covariance_origin"])
    for name, kind in _SEARCHES.items():
        if stored.get(name) is not None:
            stored[name] = kind(**stored[name])
    stored["auto_norms"] = tuple(stored.get("auto_norms", ()))  # version 0.1 had none
    if stored.get("rounds") is not None:
        grids = tuple(Grid(**grid) for grid in stored["rounds"]["grids"])
        stored["rounds"] = Rounds(grids=grids)
    if "blocks_starts" in arrays:
        stored["blocks"] = read_block_grid(arrays)
    if stored.get("perturbation") is not None:
        stored["perturbation"] = Perturbation(**stored["perturbation"])
    plan = Plan(**stored)
    _check_kinds(plan)
    check_plan(plan)
    if manifest["noisy"] != noisy_blocks(plan):
        raise ValueError("the protection does not fit the blocks that have noise")
    common: dict[str, Any] = {
        "feature_names": tuple(manifest["feature_names"]),
        "outcome_names": tuple(manifest["outcome_names"]),
        "reproducible": manifest["reproducible"],
        "lengths": _lengths(plan, arrays),
        "backend": str(manifest["backend"]),
    }
    if plan.rounds is not None:
        release = pooled_release(plan, read_rounds(plan, arrays), **common)
    else:
        release = Release(
            plan=plan,
            earlier_outcomes=tuple(manifest["earlier_outcomes"]),
            projected=_projected(arrays),
            blocks=None if plan.blocks is None else read_blocks(plan, arrays),
            perturbed=arrays.get("perturbed"),
            feature_squares=arrays.get("feature_squares"),
            feature_sums=arrays.get("feature_sums"),
            **common,
            **{name: arrays[name] for name in _ARRAYS},
        )
    _check(release)
    return release


def _check_kinds(plan: Plan) -> None:
    """Refuse values that are not of the kind that their field declares."""
    searches = [getattr(plan, name) for name in _SEARCHES if getattr(plan, name) is not None]
    grids = () if plan.rounds is None else plan.rounds.grids
    noise = () if plan.perturbation is None else (plan.perturbation,)
    for part in (plan, plan.grid, plan.features, plan.outcomes, *searches, *grids, *noise):
        for field in dataclasses.fields(part):
            fits = _KINDS.get(str(field.type))
            if fits is not None and not fits(getattr(part, field.name)):
                raise ValueError(f"{field.name} is of another kind")


def _projected(arrays: dict[str, Any]) -> Projected | None:
    if "projected" not in arrays:
        return None
    return Projected(association=arrays["projected"], noise_left=float(arrays["noise_left"]))


def _lengths(plan: Plan, arrays: dict[str, Any]) -> ReleasedLengths | None:
    """Return the stored histograms, which are those that the plan asks for."""
    stored = {block: arrays.get(f"{block}_lengths") for block in _CLIPS}
    for block, counts in stored.items():
        if (counts is not None) != (block in plan.counted):
            raise ValueError("the histograms of row lengths do not fit the plan")
        if counts is not None and (
            counts.shape != (BINS,) or counts.dtype != np.float64 or not np.isfinite(counts).all()
        ):
            raise ValueError("the histograms of row lengths are damaged")
    return ReleasedLengths(**stored, columns=_columns(plan, arrays)) if plan.counted else None


def _columns(plan: Plan, arrays: dict[str, Any]) -> ReleasedColumns | None:
    """Return the stored histograms of columns; releases of earlier builds have none."""
    stored = {block: arrays.get(f"{block}_values") for block in _CLIPS}
    if all(counts is None for counts in stored.values()):
        return None
    for block, width in (("features", plan.d), ("outcomes", plan.l)):
        counts, search = stored[block], plan.column_search
        if (counts is not None) != (search is not None and getattr(search, block)):
            raise ValueError("the histograms of columns do not fit the plan")
        if counts is not None and (
            counts.shape != (width, VALUE_BINS)
            or counts.dtype != np.float64
            or not np.isfinite(counts).all()
        ):
            raise ValueError("the histograms of columns are damaged")
    return ReleasedColumns(**stored)


def _check(release: Release) -> None:
    plan = release.plan
    without = (CovarianceOrigin.ROW_SPACE, CovarianceOrigin.BLOCKS)
    width = 0 if plan.covariance_origin in without else plan.width
    outcome = (plan.l, plan.l) if plan.full_outcome_moments else (plan.l,)
    shapes = {
        "covariance": (width, width),
        "association": (plan.width, plan.l),
        "outcome_moments": outcome,
    }
    if bool(release.earlier_outcomes) != bool(plan.earlier_mu):
        raise ValueError("it names earlier outcomes without their cost, or a cost without outcomes")
    if (release.projected is not None) != (plan.association == "projection"):
        raise ValueError("the projected association does not fit the plan")
    if (release.perturbed is not None) != (plan.perturbation is not None) or (
        release.perturbed is not None
        and (release.perturbed.shape != (plan.n, plan.l) or release.perturbed.dtype != np.int32)
    ):
        raise ValueError("the outcomes with noise do not fit the plan")
    for name in _WIDE:
        array = getattr(release, name)
        if (array is not None) != (release.perturbed is not None and width == 0) or (
            array is not None and (array.shape != (plan.width,) or not np.isfinite(array).all())
        ):
            raise ValueError(f"the {name} do not fit the plan")
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
    counts = {"feature_names": plan.d, "outcome_names": plan.l, "earlier_outcomes": None}
    for name, count in counts.items():
        names = getattr(release, name)
        if count not in (None, len(names)) or not all(isinstance(text, str) for text in names):
            raise ValueError(f"the {name} do not fit the plan")
    if not isinstance(release.reproducible, bool):
        raise ValueError("reproducible is of another kind")
