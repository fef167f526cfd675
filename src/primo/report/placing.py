"""Where a feature lies on the axis of a Manhattan plot."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from primo.variants import Variants

__all__ = ["Axis", "Stretch", "place"]

GAP = 0.01  # of the whole axis, between chromosomes
_NAMED = {"X": 23, "Y": 24, "XY": 25, "M": 26, "MT": 26}


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """One chromosome on the axis, which runs from 0 to 1."""

    label: str
    start: float
    end: float
    first: int  # base pairs at `start`
    last: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Axis:
    """Places of all features; without variants their order."""

    genomic: bool
    places: NDArray[np.float64]  # (d,) from 0 to 1
    stretch: NDArray[np.intp]  # (d,) index into stretches
    stretches: tuple[Stretch, ...]


def place(feature_names: tuple[str, ...], variants: Variants | None) -> Axis:
    """Put variants at their position, chromosome after chromosome; other features after them."""
    d = len(feature_names)
    at = {} if variants is None else {name: i for i, name in enumerate(variants.names)}
    known = np.array([at.get(name, -1) for name in feature_names], dtype=np.intp)
    if variants is None or not (known >= 0).any():
        every = Stretch(label="", start=0.0, end=1.0, first=1, last=d)
        order = (np.arange(d) + 0.5) / d
        return Axis(genomic=False, places=order, stretch=np.zeros(d, np.intp), stretches=(every,))
    labels = [_chromosome(variants.chromosome[i]) if i >= 0 else "" for i in known]
    position = np.where(known >= 0, variants.position[known], 0).astype(np.float64)
    position[known < 0] = np.arange(int(np.sum(known < 0)))
    order_of = sorted(set(labels), key=_rank)
    spans = []
    for label in order_of:
        inside = position[[i for i, own in enumerate(labels) if own == label]]
        spans.append((float(inside.min()), float(inside.max())))
    # A lone variant still gets room; features that are not variants get a tenth of the axis.
    lengths = np.array([high - low + 1 for low, high in spans])
    lengths = np.maximum(lengths, 0.02 * lengths.max())
    if "" in order_of:
        lengths[order_of.index("")] = max(lengths[: order_of.index("")].sum() / 9, 1.0)
    room = 1 - GAP * (len(lengths) - 1)
    shares = lengths / lengths.sum() * room
    starts = np.concatenate([[0.0], np.cumsum(shares + GAP)[:-1]])
    stretch = np.array([order_of.index(label) for label in labels], dtype=np.intp)
    low = np.array([a for a, _ in spans])[stretch]
    wide = np.array([b - a for a, b in spans])[stretch]
    inner = np.divide(position - low, wide, out=np.full(d, 0.5), where=wide > 0)
    # Points keep a distance from the ends of their stretch, so that neighbours do not touch.
    places = starts[stretch] + shares[stretch] * (0.02 + 0.96 * inner)
    return Axis(
        genomic=True,
        places=places,
        stretch=stretch,
        stretches=tuple(
            Stretch(
                label=label or "other",
                start=float(start),
                end=float(start + share),
                first=int(span[0]),
                last=int(span[1]),
            )
            for label, start, share, span in zip(order_of, starts, shares, spans, strict=True)
        ),
    )


def _chromosome(name: str) -> str:
    return re.sub(r"^chr", "", name, flags=re.IGNORECASE) or "?"


def _rank(label: str) -> tuple[int, int, str]:
    """Numbers first, then X, Y and the mitochondrion, then the rest by name; other features last."""
    if not label:
        return (2, 0, "")
    number = int(label) if label.isdecimal() else _NAMED.get(label.upper())
    return (0, number, label) if number is not None else (1, 0, label)
