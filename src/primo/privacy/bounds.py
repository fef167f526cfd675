"""Public bounds of a block of data: what a row is clipped to before it is counted.

A bound read off private data is a leak, so `Bounds` never looks at data, with one exception that has
to be asked for by name: `Bounds.from_public`, for a block that the protection leaves public.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primo.errors import Advice, Argument, BoundsError, InputError, Message
from primo.levels import Levels
from primo.privacy.clip import Clip
from primo.privacy.public_moments import Walk, longest_square, mean_and_deviation

__all__ = ["AUTO", "Bounds", "Clip", "as_bounds"]

Vector = NDArray[np.float64]

#: A norm that is found from the rows, privately.
AUTO = "auto"

#: Alleles rarer than this are scaled as if they were this frequent.
_RAREST = 0.01

#: Default norm of rows of genotypes, in mean lengths of a row.
_NORM_FACTOR = 1.25


@dataclass(frozen=True, kw_only=True, eq=False, init=False)
class Bounds:
    """Public limits for the rows of one block (features or outcomes).

    Parameters
    ----------
    norm
        Largest Euclidean norm of a row, *in scaled units* if a range, centre or scale is given, else
        in the data's own units. Longer rows are shortened, not dropped. "auto" has it found privately
        from a noisy histogram of row lengths, for a small part of the budget: recommended. Where public
        numbers say that it pays, centres are found, too, and scales where nothing else is given.
    lower, upper
        Range of each column (one number for all columns, or one per column). Values outside are
        moved to its end. The range also centres and scales: scaled units are
        (value - middle) / half-width, so columns in different units share the budget fairly.
    centre, scale
        Public centre and scale of each column instead of a range; they need a `norm`. `center` is
        another spelling.

    Notes
    -----
    Guarantee: privacy holds for whatever is chosen here, right or wrong, as long as it was chosen
    without looking at private rows. A bound that is too small biases, one that is too large adds
    noise in proportion.

    Examples
    --------
    A range for each of two columns, a norm for whole rows, and public means and standard deviations:

    >>> import primo
    >>> ages_and_doses = primo.Bounds(lower=[18, 0], upper=[90, 2])
    >>> lengths = primo.Bounds(norm=5.0)
    >>> standardised = primo.Bounds(centre=[170, 70], scale=[10, 15], norm=2.5)
    >>> primo.Bounds(lower=2, upper=0)
    Traceback (most recent call last):
        ...
    primo.errors.BoundsError: lower=2.0 is not below upper=0.0
    """

    norm: float | str | None = None
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    centre: ArrayLike | None = None
    scale: ArrayLike | None = None
    from_data: bool = field(default=False, repr=False)  # set by `from_public` only

    def __init__(
        self,
        *,
        norm: float | str | None = None,
        lower: ArrayLike | None = None,
        upper: ArrayLike | None = None,
        centre: ArrayLike | None = None,
        scale: ArrayLike | None = None,
        from_data: bool = False,
        center: ArrayLike | None = None,
    ) -> None:
        if centre is not None and center is not None:
            raise BoundsError("centre and center are the same; give one of them")
        given = {
            "norm": norm,
            "lower": lower,
            "upper": upper,
            "centre": center if centre is None else centre,
            "scale": scale,
            "from_data": from_data,
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)  # the value is frozen from here on
        self._check()

    @property
    def center(self) -> ArrayLike | None:
        """Another spelling of `centre`."""
        return self.centre

    def _check(self) -> None:
        """Refuse contradictory or meaningless bounds before any data is near."""
        if (self.lower is None) != (self.upper is None):
            raise BoundsError(
                "a range needs both ends: give ",
                Argument("bounds.lower"),
                " and ",
                Argument("bounds.upper"),
            )
        if self.lower is not None and not (self.centre is None and self.scale is None):
            raise BoundsError("give either a range (lower, upper) or centre and scale, not both")
        if self.norm is None and self.lower is None:
            raise BoundsError("bounds need a row norm, a range (lower, upper), or both")
        if isinstance(self.norm, str) and self.norm != AUTO:
            raise BoundsError(
                Argument("bounds.norm", self.norm), ' must be a positive number or "auto"'
            )
        if self.norm is not None and not self.auto_norm:
            norm = _numbers("norm", self.norm)
            if norm.ndim != 0 or not float(norm) > 0:
                raise BoundsError(
                    Argument("bounds.norm", self.norm), " must be one positive number"
                )
        if self.lower is not None and self.upper is not None:
            lower, upper = _numbers("lower", self.lower), _numbers("upper", self.upper)
            if lower.ndim and upper.ndim and lower.shape != upper.shape:
                raise BoundsError(
                    Argument("bounds.lower"),
                    f" has {len(lower)} values and ",
                    Argument("bounds.upper"),
                    f" {len(upper)}",
                    remedy="give one per column each",
                )
            bad = np.flatnonzero(np.ravel(upper <= lower))
            if len(bad):
                where = int(bad[0])
                pair = np.broadcast_arrays(np.atleast_1d(lower), np.atleast_1d(upper))
                raise BoundsError(
                    Argument("bounds.lower", float(pair[0][where])),
                    " is not below ",
                    Argument("bounds.upper", float(pair[1][where])),
                    f" (column {where})" if len(pair[0]) > 1 else "",
                )
        if self.centre is not None:
            _numbers("centre", self.centre)
        if self.scale is not None and (_numbers("scale", self.scale) <= 0).any():
            raise BoundsError("every scale must be positive")

    @property
    def auto_norm(self) -> bool:
        """Whether the norm is to be found from the rows, privately."""
        return isinstance(self.norm, str)

    @property
    def has_fallback(self) -> bool:
        """Whether there is a norm to use where none can be found: that of the ranges."""
        return self.lower is not None or not self.auto_norm

    @classmethod
    def from_public(cls, block: NDArray[Any]) -> Bounds:
        """Read bounds off a block that is *public* under the chosen protection.

        Centre and scale become the mean and the standard deviation of each column, the norm the
        longest row. A plan refuses such bounds for a private block.
        """
        return cls.from_public_blocks(
            lambda: (block[start : start + 1024] for start in range(0, len(block), 1024))
        )

    @classmethod
    def from_public_blocks(cls, walk: Walk) -> Bounds:
        """Do as `from_public`, with rows that `walk()`, called three times, yields some at a time.

        Guarantee: not a bit depends on the order of the rows (`privacy.public_moments`).
        """
        found = mean_and_deviation(walk)
        if found is None:
            raise InputError(
                "the public block contains NaN, infinite or enormous values",
                remedy=Message.of(
                    "clean it, or give its bounds and ", Argument("missing", "centre")
                ),
            )
        centre, scale = found
        # A constant column carries no information; scale 1 keeps it finite. The tolerance catches
        # the rounding dust that a large constant leaves behind.
        scale = np.where(scale > 1e-12 * np.maximum(1.0, np.abs(centre)), scale, 1.0)
        longest = longest_square(walk, centre, scale)
        norm = max(math.sqrt(longest) * (1 + 1e-12), 1e-9)
        return cls(norm=norm, centre=centre, scale=scale, from_data=True)

    @classmethod
    def from_reference(cls, panel: NDArray[Any]) -> Bounds:
        """Read bounds off a public reference panel: other people than those to be protected.

        As `from_public`, and allowed for a private block, because nothing of that block is in it.
        """
        return replace(cls.from_public(panel), from_data=False)

    @classmethod
    def from_frequencies(
        cls, frequencies: ArrayLike, *, copies: int = 2, norm: float | str | None = None
    ) -> Bounds:
        """Centre and scale allele counts by frequencies among *public* people.

        A feature counts up to `copies` copies (2 in genotypes, 1 in haplotypes) of an allele of
        frequency f. Its centre is copies·f and its scale √(copies·f·(1 - f)), its standard deviation in
        a population that mates at random; an allele rarer than 1 % is scaled as one of 1 %, so that
        its few carriers do not outweigh everything else.

        The default norm is 1.25 times the length that a row then has in the mean, a public number.
        Lengths gather around that mean, the more so the more variants there are and the less they are
        linked. The share of rows that it shortens, median and worst of 40 random choices of variants:
        of 957 HapMap 3 people, by frequencies of the 1000 Genomes, none at 1000 unlinked variants, 0.4 %
        and 28 % at 100, 3 % and 9 % at 25; of half of the 1000 Genomes' haplotypes, by frequencies of
        the other half, 11 % and 23 % at 100 neighbours, 14 % and 28 % at 25, and 3 % at all common
        ones (5 %) of six regions, 15 % at all above 1 %. The factor was chosen on these data. One
        variant whose panel frequency is far off can lengthen many rows. Rows are often shorter than this
        allows, or their usual length is a better bound: ``norm="auto"`` finds a norm privately and is
        recommended where there are rows enough (1000 and more, at an epsilon of 1).
        """
        f = _numbers("frequencies", frequencies)
        if f.ndim != 1 or not len(f) or not ((f >= 0) & (f <= 1)).all():
            raise BoundsError("frequencies must be numbers between 0 and 1, one per variant")
        if copies not in (1, 2):
            raise BoundsError(
                Argument("copies", copies), " must be 2 (genotypes) or 1 (haplotypes)"
            )
        kept = np.clip(f, _RAREST, 1 - _RAREST)
        spread = kept * (1 - kept)
        if norm is None:
            norm = _NORM_FACTOR * max(1.0, float((f * (1 - f) / spread).sum())) ** 0.5
        return cls(norm=norm, centre=copies * f, scale=np.sqrt(copies * spread))

    @classmethod
    def from_levels(cls, levels: Sequence[Any]) -> Bounds:
        """Return the bounds of the indicators of a column of categories, one less than `levels`.

        At most one indicator of a row is 1, so the largest distance of a row from the centre is known
        exactly. It is the unit, and the norm is 1.

        Examples
        --------
        >>> import primo
        >>> primo.Bounds.from_levels(["no", "yes"]).clip(1, "features").norm
        1.0
        """
        known = Levels.of(levels, "levels")
        ends = (known.centre - known.scale, known.centre + known.scale)
        width = len(known) - 1
        return cls(lower=[ends[0]] * width, upper=[ends[1]] * width, norm=1.0)

    @classmethod
    def beside(cls, parts: Sequence[tuple[Bounds, int]]) -> Bounds:
        """Join bounds of blocks that lie side by side; each comes with its number of columns.

        The squared norms add up. Where every part is a range, so is the result; otherwise ranges
        become centres and half-widths, and a value beyond its range is shortened with its row instead
        of being moved to the end of the range.
        """
        clips = [bounds.clip(width, "columns") for bounds, width in parts]
        centre = np.concatenate([clip.centre for clip in clips])
        scale = np.concatenate([clip.scale for clip in clips])
        norm: float | str = float(np.sqrt(sum(clip.norm**2 for clip in clips)))
        if any(bounds.auto_norm for bounds, _ in parts):
            norm = AUTO
        from_data = any(bounds.from_data for bounds, _ in parts)
        if all(clip.box for clip in clips):
            return cls(norm=norm, lower=centre - scale, upper=centre + scale, from_data=from_data)
        return cls(norm=norm, centre=centre, scale=scale, from_data=from_data)

    def clip(self, width: int, block: str) -> Clip:
        """Make the bounds concrete for `width` columns; `block` names them in messages."""
        if self.lower is not None and self.upper is not None:
            lower = _per_column(self.lower, width, block, "lower")
            upper = _per_column(self.upper, width, block, "upper")
            # Halving first keeps the largest ranges finite.
            centre, scale, box, longest = (
                lower / 2 + upper / 2,
                upper / 2 - lower / 2,
                True,
                width**0.5,
            )
        else:
            centre = _per_column(
                0.0 if self.centre is None else self.centre, width, block, "centre"
            )
            scale = _per_column(1.0 if self.scale is None else self.scale, width, block, "scale")
            box, longest = False, np.inf
        stated = 1.0 if self.auto_norm and not box else np.inf  # a placeholder, until it is found
        if self.norm is not None and not self.auto_norm:
            stated = float(self.norm)
        norm = min(stated, longest)
        try:
            return Clip(centre=centre, scale=scale, norm=norm, box=box)
        except BoundsError as error:
            raise BoundsError(
                f"bounds of the {block}: ", error.message, remedy=error.remedy
            ) from None


def as_bounds(value: Any, block: str) -> Bounds:
    """Accept the short forms: a number is a row norm, a pair is a range."""
    if isinstance(value, Bounds):
        return value
    try:
        if isinstance(value, tuple | list) and len(value) == 2:
            return Bounds(lower=value[0], upper=value[1])
        if isinstance(value, int | float | np.integer | np.floating) and not isinstance(
            value, bool
        ):
            return Bounds(norm=float(value))
    except BoundsError as error:
        raise BoundsError(
            Argument(f"{block}_bounds"), ": ", error.message, remedy=error.remedy
        ) from None
    except OverflowError as error:
        raise BoundsError(Argument(f"{block}_bounds"), f": {error}") from None
    raise BoundsError(
        Argument(f"{block}_bounds", value),
        " is not understood",
        remedy="give a number (row norm), a pair (lower, upper), "
        "per column a pair of lists ([0, 0, ...], [2, 2, ...]), or primo.Bounds(...)",
    )


def missing_bounds(block: str) -> BoundsError:
    """Return the error for a private block without bounds; it teaches how to choose them."""
    name = f"{block[:-1]}_bounds"
    advice = (
        f"Choose {name} from public knowledge:\n"
        f"  {name}=(lower, upper)   the range of each column: questionnaire scales, "
        "laboratory limits, 0..2 for genotypes, 0..1 for haplotypes\n"
        f"  {name}=3.5              a row norm, if the columns are already centred "
        "and in comparable units\n"
        f"  {name}=primo.Bounds(norm=..., centre=..., scale=...)   from a public "
        "reference panel or an earlier publication\n"
        f'  {name}=primo.Bounds(lower=..., upper=..., norm="auto")   the same, with the row norm '
        "found privately for a small part of the budget\n"
    )
    return BoundsError(
        f"the {block} are private and have no bounds, and primo will not read bounds off private "
        "data: that would leak",
        argument=name,
        remedy=Message.of(
            Advice("missing_bounds", advice, about=block),
            "Tight is better: noise grows in proportion to the bound, and the few rows beyond it are "
            "only shortened",
        ),
    )


def _numbers(name: str, value: ArrayLike) -> Vector:
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise BoundsError(
            Argument(f"bounds.{name}", value), " is not a number or a list of numbers"
        ) from None
    if numbers.ndim > 1 or not np.isfinite(numbers).all():
        raise BoundsError(
            Argument(f"bounds.{name}", value), " must be finite: one number, or one per column"
        )
    return numbers


def _per_column(value: ArrayLike, width: int, block: str, name: str) -> Vector:
    numbers = _numbers(name, value)
    if numbers.ndim == 1 and len(numbers) != width:
        raise BoundsError(
            Argument(f"bounds.{name}"),
            f" has {len(numbers)} values but there are {width} {block}",
            remedy="give one number for all or one per column",
        )
    return np.ascontiguousarray(np.broadcast_to(numbers, (width,)))
