"""A study: a TOML file that says what is run and which figures are drawn from it.

```toml
title = "1000 Genomes"
features = "1kg"            # defaults of every [[run]] below
outcomes = "linear"
n = 5008
d = 25
epsilon = 5.0               # δ is 1/n² throughout, as in the paper

[[run]]
l = [1, 11, 101]
repeats = 10
methods = ["ols", "primo"]

[[figure]]
name = "2a"
title = "..."
metric = "r2"               # or "log_ratio"
l = [1, 11, 101]
methods = ["ols", "primo"]

[quick]                     # what `--quick` keeps of it
l = [1, 11]
repeats = 2
leave_out = ["dpsgd-each"]
```
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from primo.errors import InputError

__all__ = ["GRIDS", "Cell", "Figure", "Run", "Study", "Unit", "read_studies"]

GRIDS = Path(__file__).parent / "grids"


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One problem size on one kind of data."""

    features: str
    outcomes: str
    n: int
    d: int
    l: int
    epsilon: float

    @property
    def delta(self) -> float:
        """The paper's δ = 1/n²."""
        return 1 / self.n**2

    def __str__(self) -> str:
        return (
            f"{self.features} {self.outcomes} n={self.n} d={self.d} l={self.l} ε={self.epsilon:g}"
        )


@dataclass(frozen=True, kw_only=True)
class Unit:
    """One repeat of a cell: data are drawn once and every method is run on them."""

    cell: Cell
    repeat: int
    methods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Run:
    """Cells that differ in l alone."""

    features: str
    outcomes: str
    n: int
    d: int
    epsilon: float
    l: tuple[int, ...]
    repeats: int
    methods: tuple[str, ...]

    def units(self) -> Iterator[Unit]:
        """Yield every repeat of every cell."""
        common = {key: getattr(self, key) for key in ("features", "outcomes", "n", "d", "epsilon")}
        for l in self.l:
            for repeat in range(self.repeats):
                yield Unit(cell=Cell(l=l, **common), repeat=repeat, methods=self.methods)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One panel of the paper: a metric over l, a line for each method."""

    name: str
    title: str
    metric: str  # "r2" or "log_ratio"
    methods: tuple[str, ...]
    l: tuple[int, ...]
    outcomes: str
    n: int
    y_limits: tuple[float, float] | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """One TOML file."""

    name: str
    title: str
    runs: tuple[Run, ...]
    figures: tuple[Figure, ...]
    quick: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a grid; an unknown key is an error."""
        text = tomllib.loads(path.read_text())
        runs = tuple(_run(text, entry, path) for entry in text.pop("run", ()))
        figures = tuple(_figure(text, entry, path) for entry in text.pop("figure", ()))
        quick = text.pop("quick", {})
        strange = set(text) - {"title", *_DEFAULTS}
        strange |= set(quick) - {"features", "n", "l", "repeats", "leave_out"}
        if strange:
            raise InputError(f"{path.name}: unknown keys {sorted(strange)}")
        return cls(name=path.stem, title=text["title"], runs=runs, figures=figures, quick=quick)

    def units(self) -> Iterator[Unit]:
        """Yield all work; a unit that two runs share comes once, with the methods of both."""
        merged: dict[tuple[Cell, int], dict[str, None]] = {}
        for run in self.runs:
            for unit in run.units():
                names = merged.setdefault((unit.cell, unit.repeat), {})
                names.update(dict.fromkeys(unit.methods))
        for (cell, repeat), names in merged.items():
            yield Unit(cell=cell, repeat=repeat, methods=tuple(names))

    def quick_version(self) -> Study:
        """Return the version that takes a minute: fewer outcomes, repeats and methods."""
        quick = self.quick
        kept = set(quick.get("l", ()))
        left_out = set(quick.get("leave_out", ()))

        def thinner(run: Run) -> Run:
            return replace(
                run,
                features=quick.get("features", run.features),
                n=quick.get("n", run.n),
                l=tuple(l for l in run.l if l in kept),
                repeats=min(run.repeats, quick.get("repeats", 2)),
                methods=tuple(name for name in run.methods if name not in left_out),
            )

        figures = tuple(
            replace(figure, l=tuple(l for l in figure.l if l in kept), n=quick.get("n", figure.n))
            for figure in self.figures
        )
        return replace(self, runs=tuple(map(thinner, self.runs)), figures=figures)


def read_studies(only: tuple[str, ...] = ()) -> tuple[Study, ...]:
    """Read the grids, all or those named."""
    paths = {path.stem: path for path in sorted(GRIDS.glob("*.toml"))}
    for name in only:
        if name not in paths:
            raise InputError(f"no study {name!r}; there are: {', '.join(paths)}")
    return tuple(Study.read(paths[name]) for name in only or paths)


_DEFAULTS = ("features", "outcomes", "n", "d", "epsilon")


def _run(text: dict[str, Any], entry: dict[str, Any], path: Path) -> Run:
    given = {key: text[key] for key in _DEFAULTS if key in text} | entry
    try:
        return Run(**given | {"l": tuple(given["l"]), "methods": tuple(given["methods"])})
    except (KeyError, TypeError) as problem:
        raise InputError(f"{path.name}: a [[run]] is wrong: {problem}") from None


def _figure(text: dict[str, Any], entry: dict[str, Any], path: Path) -> Figure:
    given: dict[str, Any] = {key: text.get(key) for key in ("outcomes", "n")} | entry
    try:
        limits = given.pop("y_limits", None)
        return Figure(
            **given
            | {
                "l": tuple(given["l"]),
                "methods": tuple(given["methods"]),
                "y_limits": None if limits is None else (limits[0], limits[1]),
            }
        )
    except (KeyError, TypeError) as problem:
        raise InputError(f"{path.name}: a [[figure]] is wrong: {problem}") from None
