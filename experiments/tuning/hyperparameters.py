"""The hyperparameters of one DP-SGD descent, and those that tuning chose."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from primo.errors import InputError

__all__ = ["FOLDER", "TUNED", "VARIANTS", "Hyperparameters", "tuned"]

FOLDER = Path(__file__).parent
TUNED = FOLDER / "tuned.toml"
VARIANTS = ("each", "joint")


@dataclass(frozen=True, kw_only=True)
class Hyperparameters:
    """What `DPSGDEach` and `DPSGDJoint` let one choose, in their public units."""

    learning_rate: float
    clip_norm: float
    steps: int
    sampling_rate: float
    momentum: float
    averaging: float

    @classmethod
    def of(cls, table: Mapping[str, Any]) -> Self:
        """Read the fields from a table that may hold more."""
        return cls(**{name: table[name] for name in cls.__dataclass_fields__})

    def parameters(self) -> dict[str, float]:
        """Return them as arguments of the estimators."""
        return asdict(self)


def tuned(variant: str, d: int, l: int) -> Hyperparameters:
    """Return the hyperparameters tuned for the nearest (d, l), as |log(d/d′)|² + |log(l/l′)|².

    Parameters
    ----------
    variant
        "each" or "joint".
    d, l
        Of the problem.
    """
    if variant not in VARIANTS:
        raise InputError(f"variant={variant!r} is unknown; choose one of {', '.join(VARIANTS)}")
    cells = [cell for cell in _cells(TUNED) if cell["variant"] == variant]

    def distance(cell: Mapping[str, Any]) -> float:
        return float(math.log(cell["d"] / d) ** 2 + math.log(cell["l"] / l) ** 2)

    return Hyperparameters.of(min(cells, key=distance))


@lru_cache(maxsize=4)
def _cells(path: Path) -> tuple[Mapping[str, Any], ...]:
    try:
        return tuple(tomllib.loads(path.read_text())["cells"])
    except FileNotFoundError:
        raise InputError(
            f"{path} is not there; make it with: python -m experiments.tuning"
        ) from None
