"""Public bounds in a TOML file: limits of a block, and of single columns by name or pattern.

```toml
[features]            # all features, unless a column says otherwise
lower = 0
upper = 2
norm = "auto"         # found privately; or a row norm in scaled units, (value - middle) / half-width

[features.columns.age]
lower = 18
upper = 90

[features.columns.region]
levels = ["north", "south", "west"]   # a column of categories: indicators of all levels but the first

[outcomes]
centre = 0            # instead of a range: centre (or center), scale and a norm
scale = 1
norm = 6
```
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from primo._util.closeness import did_you_mean
from primo._util.reading import unreadable
from primo.errors import BoundsError, InputError
from primo.levels import Levels
from primo.privacy.bounds import AUTO, Bounds
from primo.privacy.budget import is_number

__all__ = ["Limit", "block_bounds", "read_bounds_file", "stated_levels", "without_levels"]

_BLOCKS = ("features", "outcomes")
_KEYS = ("lower", "upper", "centre", "scale")


@dataclass(frozen=True, kw_only=True)
class Limit:
    """Public limits of one column: a range, or a centre and a scale."""

    centre: float
    scale: float
    box: bool  # whether values outside centre ± scale are moved to the end of that range

    @classmethod
    def of_range(cls, lower: float, upper: float) -> Limit:
        """Return the limit of a column that lies between two numbers."""
        return cls(centre=lower / 2 + upper / 2, scale=upper / 2 - lower / 2, box=True)


def read_bounds_file(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a bounds file and check its keys; column names are checked by `block_bounds`."""
    try:
        with open(path, "rb") as file:
            table = tomllib.load(file)
    except OSError as error:
        raise unreadable(path, error) from None
    except (
        ValueError,
        RecursionError,
    ) as error:  # not TOML, not UTF-8, or too long a number
        raise InputError(f"bounds file {str(path)!r} is not TOML: {error}") from None
    _only(table, _BLOCKS, str(path))
    for block, spec in table.items():
        if not isinstance(spec, dict):
            raise InputError(f"{path}: {block} must be a section, [{block}]")
        _respell(spec, f"{path}, [{block}]")
        _only(spec, (*_KEYS, "norm", "columns"), f"{path}, [{block}]")
        columns = spec.get("columns", {})
        if not isinstance(columns, dict):
            raise InputError(f"{path}: columns must be sections, [{block}.columns.NAME]")
        for name, column in columns.items():
            where = f"{path}, [{block}.columns.{name}]"
            if not isinstance(column, dict):
                raise InputError(f"{where} must be a section with lower and upper")
            _respell(column, where)
            _only(column, (*_KEYS, "levels"), where)
            if "levels" in column:
                if len(column) > 1:
                    raise InputError(
                        f"{where}: a column of categories has levels and no other bounds"
                    )
                Levels.of(column["levels"], where)
    return table


def stated_levels(table: Mapping[str, Any], block: str) -> dict[str, list[Any]]:
    """Return the levels that a bounds file states for a block, by name or pattern of a column."""
    columns = table.get(block, {}).get("columns", {})
    return {name: column["levels"] for name, column in columns.items() if "levels" in column}


def without_levels(spec: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the section of a block without the columns that only have levels."""
    kept = dict(spec or {})
    columns = {n: c for n, c in kept.pop("columns", {}).items() if "levels" not in c}
    return {**kept, "columns": columns} if columns else kept


def block_bounds(
    spec: Mapping[str, Any] | None,
    names: Sequence[str],
    *,
    block: str,
    known: Mapping[str, Limit] | None = None,
    norm: float | str | None = None,
) -> Bounds | None:
    """Return the bounds of a block from its section of a bounds file, or None if it has none.

    `known` are limits that follow from what a column is (a genotype lies in 0 to 2); the file may
    override them. `norm` is the row norm if the file gives none; "auto" is not taken for a block of
    categories alone, whose norm is known exactly. With "auto", and levels alone stated of some columns,
    the others need no bounds: centres and scales of the whole block are found.
    """
    spec, known = dict(spec or {}), known or {}
    if not spec and not known and norm != AUTO:
        return None
    columns: dict[str, Any] = spec.pop("columns", {})
    asked, norm = "norm" in spec, spec.pop("norm", norm)
    if norm not in (None, AUTO) and not (is_number(norm) and float(norm) > 0):
        raise BoundsError(f'[{block}] norm = {norm!r} must be a positive number or "auto"')
    common = _limit(spec, f"[{block}]") if any(key in spec for key in _KEYS) else None
    if not columns and not known and common is None:
        return Bounds(norm=norm)
    coded = {p: Levels.of(c["levels"], p) for p, c in columns.items() if "levels" in c}
    categories = _categories(names, coded)
    used = {pattern for pattern, _ in categories.values()}
    for pattern in columns:
        if pattern not in used and not any(fnmatchcase(name, pattern) for name in names):
            raise InputError(
                f"[{block}.columns.{pattern}] matches no column of the {block}, which are called "
                f"{', '.join(names[:3])}{' ...' if len(names) > 3 else ''}",
                remedy=did_you_mean(pattern, names) or None,
            )
    overrides = {
        pattern: _limit(column, f"[{block}.columns.{pattern}]")
        for pattern, column in columns.items()
        if pattern not in coded
    }
    for name, (pattern, _) in categories.items():
        levels = coded[pattern]
        overrides[name] = Limit(centre=levels.centre, scale=levels.scale, box=True)
    levels_alone = len(coded) == len(columns) > 0 and not known and common is None
    if norm == AUTO and levels_alone and len(categories) < len(names):
        # Levels say nothing of the other columns. Their centres and scales are found, and those of the
        # indicators as well, which are columns of numbers like the others.
        return Bounds(norm=norm)
    limits = [_pick(name, overrides, common, known) for name in names]
    without = [name for name, limit in zip(names, limits, strict=True) if limit is None]
    if without:
        raise BoundsError(
            f"{len(without)} of the {block} have no bounds, the first is {without[0]!r}; say what is "
            f"publicly known of it in the bounds file:\n[{block}.columns.{_quoted(without[0])}]\n"
            'lower = ...\nupper = ...\n(or, of categories: levels = ["no", "yes"])\n'
            "(centres and scales are found from the rows only where nothing but levels is stated of any "
            "column of the block)"
        )
    if norm == AUTO and not asked and len(categories) == len(names):
        norm = None  # a search would pay for what the levels say
    if norm is None and len(set(categories.values())) < len(categories):
        # The indicators of a column are together no longer than one column in its range.
        norm = (len(names) - len(categories) + len(set(categories.values()))) ** 0.5
    return _bounds([limit for limit in limits if limit is not None], norm, block)


def _categories(names: Sequence[str], coded: Mapping[str, Levels]) -> dict[str, tuple[str, str]]:
    """Return the pattern and the column behind every name that is an indicator."""
    found: dict[str, tuple[str, str]] = {}
    for pattern, levels in coded.items():
        for name in names:
            for end in levels.indicators(""):
                column = name.removesuffix(end)
                if name.endswith(end) and fnmatchcase(column, pattern):
                    found.setdefault(name, (pattern, column))
    return found


def _bounds(limits: list[Limit], norm: float | str | None, block: str) -> Bounds:
    centre = np.array([limit.centre for limit in limits])
    scale = np.array([limit.scale for limit in limits])
    if all(limit.box for limit in limits):
        return Bounds(lower=centre - scale, upper=centre + scale, norm=norm)
    if norm is None:
        raise BoundsError(
            f'[{block}] has a centre and scale, so it needs a row norm: norm = "auto" finds it'
        )
    return Bounds(centre=centre, scale=scale, norm=norm)


def _pick(
    name: str,
    overrides: Mapping[str, Limit],
    common: Limit | None,
    known: Mapping[str, Limit],
) -> Limit | None:
    """Return the limit of a column: by its name, a pattern, the kind of column, or the whole block."""
    if name in overrides:
        return overrides[name]
    for pattern, limit in overrides.items():
        if fnmatchcase(name, pattern):
            return limit
    return known.get(name, common)


def _limit(spec: Mapping[str, Any], where: str) -> Limit:
    given = {key: spec[key] for key in _KEYS if key in spec}
    for key, value in given.items():
        if not is_number(value) or not np.isfinite(value):
            raise BoundsError(f"{where} {key} = {value!r} must be a finite number")
    if given.keys() == {"lower", "upper"}:
        if not given["lower"] < given["upper"]:
            raise BoundsError(
                f"{where} lower = {given['lower']:g} is not below upper = {given['upper']:g}"
            )
        return Limit.of_range(float(given["lower"]), float(given["upper"]))
    if given.keys() == {"centre", "scale"}:
        if not given["scale"] > 0:
            raise BoundsError(f"{where} scale = {given['scale']:g} must be positive")
        return Limit(centre=float(given["centre"]), scale=float(given["scale"]), box=False)
    raise BoundsError(
        f"{where} needs lower and upper, or centre and scale; it has {', '.join(given) or 'neither'}"
    )


def _respell(section: dict[str, Any], where: str) -> None:
    """Write `center` as `centre`."""
    if "center" in section:
        if "centre" in section:
            raise InputError(f"{where}: centre and center are the same; give one of them")
        section["centre"] = section.pop("center")


def _only(table: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise InputError(f"{where}: {key!r} is not known; choose from {', '.join(allowed)}")


def _quoted(name: str) -> str:
    return name if name.replace("_", "").replace("-", "").isalnum() else f'"{name}"'
