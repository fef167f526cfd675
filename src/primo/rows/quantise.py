"""Clip a block of rows and put it on the integer grid, so that sums and bounds are exact.

Floating-point sums have a larger sensitivity than real ones (Casacuberta et al. 2022). Here a row
becomes a vector of integers whose squared norm is checked *as an integer*; everything after this
point is exact. However odd a row is, what is counted of it lies in the ball.

The integers of a row are a function of that row alone (docs/guarantee.md, section 3), and the
sensitivity needs that as much as the ball. Most steps work on one number at a time. What is computed
of a whole row is its largest value, which has no order, and its squared norm, which `_lengths` adds up
in an order that depends on the number of columns only, wherever the order matters.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.jit import load
from primo.errors import Argument, InputError, Message
from primo.planning.plan import Plan
from primo.privacy.bounds import Clip
from primo.rows.block_clip import Run, block_runs

__all__ = [
    "Kernel",
    "Quantiser",
    "feature_quantiser",
    "kernels_for",
    "missing_values",
    "outcome_quantiser",
    "shorten_rows",
    "squares_in_order",
]

Matrix = NDArray[np.float64]


#: What `primo.rows.kernels.fused` is.
Kernel = Callable[..., Matrix | None]


@dataclass(frozen=True, kw_only=True)
class Quantiser:
    """Rows in data units to integer rows of squared norm at most `radius_squared`.

    `step` is the grid step in scaled units. A `constant` (the intercept, in steps) is appended to each
    row and counted in its norm. `missing` is "error" or "centre". A `kernel` may do the usual rows; it
    changes no bit. With `runs`, blocks of a row are shortened to norms of their own before the row is.
    """

    clip: Clip
    step: float
    radius_squared: int
    constant: int | None
    missing: str
    block: str  # "features" or "outcomes", for messages
    kernel: Kernel | None = None
    runs: tuple[Run, ...] = ()

    @property
    def width(self) -> int:
        """Number of integer columns, with the constant."""
        return self.clip.width + (self.constant is not None)

    @property
    def box_end(self) -> int | None:
        """What both ends of each column's range become; None without ranges about the centres."""
        centred = self.clip.box and self.clip.middle is None
        return math.floor(self._edge) if centred else None

    def __call__(self, rows: NDArray[Any], out: Matrix, predicted: Matrix | None = None) -> Matrix:
        """Write the integer form of `rows` (m, width) into `out` (m, width with constant).

        Returns squared lengths (m,), the constant left out, that no row of `out` is longer than.

        With `predicted` (m, width), in steps and a function of the row alone, that of the residuals:
        it is taken off after values are cut to their box; where a value is missing, 0 is left.

        Guarantee: every row of `out` holds integers and has squared norm at most `radius_squared`,
        and every block of it at most that of its run, whatever the row holds; or InputError, which names
        no value, if it is not finite.
        Cost: one pass over the rows and, without a kernel, three over their integer form; three more
        where most rows are shortened.
        """
        z = out[:, : self.clip.width]
        limit = self.radius_squared - (self.constant or 0) ** 2
        # A warning would depend on private values, and every case it could mean is dealt with.
        with np.errstate(all="ignore"):
            if rows.dtype.itemsize > 8:  # float64 is what everything below computes in
                rows = rows.astype(np.float64)
            # Which rows are over depends on no order of summation, see `_lengths`. What is not *shown*
            # to be inside counts as outside, so NaN cannot slip through.
            lengths = self._truncate(rows, z, predicted, limit)
            if self.runs:
                self._repair(rows, z, np.flatnonzero(~(lengths <= _REACH**2)))
                self._shorten_blocks(z)
                lengths = _squares(z)
            over = np.flatnonzero(~(lengths <= limit))
            if len(over):
                far = over[~(lengths[over] <= _REACH**2)]
                if len(far):
                    self._repair(rows, z, far)
                    lengths[far] = _squares(z[far])
                self._shorten(z, over, limit, lengths)
        if self.constant is not None:
            out[:, -1] = self.constant
        return lengths

    def whole_steps(self, rows: Matrix) -> Matrix:
        """Return rows in whole grid steps, cut to their box, before anything of them is shortened."""
        steps = np.empty(rows.shape)
        with np.errstate(all="ignore"):
            self._truncate_by_passes(rows, steps)
        return steps

    def _truncate(
        self, rows: NDArray[Any], z: Matrix, predicted: Matrix | None, limit: int
    ) -> Matrix:
        """Write rows in whole grid steps, cut to their box, into `z`; return their squared lengths.

        A kernel shortens them to `limit` at once, as `_shorten` does, unless blocks are shortened first.
        """
        lengths = None
        if self.kernel is not None:
            lengths = self.kernel(
                rows,
                z,
                centre=None if self._plain else self.clip.centre,
                factor=self._factor,
                edge=self._edge,
                ends=self._ends,
                reach=_REACH,
                fill=self.missing == "centre",
                predicted=predicted,
                limit=math.inf if self.runs else limit,
            )
        if lengths is None:
            return self._truncate_by_passes(rows, z, predicted)
        left = np.flatnonzero(~np.isfinite(lengths))  # what the kernel does not vouch for
        if len(left):
            again = np.empty((len(left), self.clip.width))
            taken = None if predicted is None else predicted[left]
            lengths[left] = self._truncate_by_passes(rows[left], again, taken)
            z[left] = again
        return lengths

    def _truncate_by_passes(
        self, rows: NDArray[Any], z: Matrix, predicted: Matrix | None = None
    ) -> Matrix:
        if self._plain:
            np.multiply(rows, self._factor, out=z)
        else:
            np.subtract(rows, self.clip.centre, out=z)
            np.multiply(z, self._factor, out=z)
        if self.clip.box:
            # Cutting would hide infinity, so rows that are not finite are found before.
            self._repair(rows, z, np.flatnonzero(~(_squares(z) <= _REACH**2)))
            lower, upper = self._ends or (-self._edge, self._edge)
            np.clip(z, lower, upper, out=z)
        if predicted is not None:
            np.subtract(z, predicted, out=z)
            if self.clip.box and self.missing == "centre":  # without a box, `_repair` finds them
                z[~np.isfinite(rows)] = 0.0
        np.trunc(z, out=z)
        return _squares(z)

    @cached_property
    def _plain(self) -> bool:
        """Whether rows are multiplied by one number and that is all."""
        return self.clip.is_plain and not self.clip.box

    @cached_property
    def _factor(self) -> Matrix:
        """Grid steps per data unit: of each column, or one number for plain rows.

        An array in float64, because a plain float would leave float32 rows in their own precision.
        """
        return np.asarray(1.0 / (1.0 if self._plain else self.clip.scale) / self.step)

    @cached_property
    def _edge(self) -> float:
        """Largest value of a column, in steps, where ranges lie about the centres."""
        return 1.0 / self.step if self.clip.box else math.inf

    @cached_property
    def _ends(self) -> tuple[Matrix, Matrix] | None:
        """Ends of each column's range in steps, where they do not lie about the centres."""
        if self.clip.middle is None:
            return None
        lower, upper = self.clip.ends
        return lower / self.step, upper / self.step

    @staticmethod
    def _shorten(z: Matrix, over: NDArray[np.intp], limit: int, squares: Matrix) -> None:
        """Shorten rows to the norm, and check in integers that they are within it.

        `squares` (m,) is what `_squares` makes of `z`.
        """
        # Where most rows are over, all are gone through in place: a factor of 1 changes no row.
        most = 2 * len(over) > len(z)
        rows, squares = (z, squares) if most else (z[over], squares[over])
        if not np.isfinite(squares).all():  # repaired already; never trust it
            rows[...] = np.nan_to_num(rows, posinf=0.0, neginf=0.0)
            squares = _squares(rows)
        shrink = np.minimum(1.0, np.sqrt(limit / _lengths(rows, squares)))
        np.trunc(np.multiply(rows, shrink[:, None], out=rows), out=rows)
        # Floats may end a hair outside. One step toward zero in every coordinate always shrinks, so
        # this ends.
        while len(outside := np.flatnonzero(~(_lengths(rows) <= limit))):
            rows[outside] -= np.sign(rows[outside])
        if not most:
            z[over] = rows

    def _shorten_blocks(self, z: Matrix) -> None:
        """Shorten every block of every row to its norm. To shorten the row later shortens each block."""
        for run in self.runs:
            part = z[:, run.columns]
            if run.ends is not None:
                np.clip(part, -run.ends, run.ends, out=part)
            elif not self._inside(run):
                shorten_rows(part, run.limit)

    def _inside(self, run: Run) -> bool:
        """Whether a block whose values are cut to their ranges is never too long."""
        end = self.box_end
        return end is not None and end**2 * (run.stop - run.start) <= run.limit

    def _repair(self, rows: NDArray[Any], z: Matrix, suspect: NDArray[np.intp]) -> None:
        """Deal with rows among the suspect that hold missing values, or numbers near 1e308.

        Their largest value says which they are. Whether a sum of squares is finite may depend on its
        order, so a sum only makes a row suspect: one that is at most `_REACH`² holds no larger square.
        """
        suspect = suspect[_reach_too_far(z[suspect])]
        finite = np.isfinite(rows[suspect])
        if not finite.all():
            if self.missing != "centre":
                raise missing_values(self.block)
            z[suspect] = np.where(finite, z[suspect], 0.0)
        for i in suspect[_reach_too_far(z[suspect])]:
            # Halving before subtracting keeps the difference of two huge numbers finite; dividing
            # by the largest keeps the direction while the length is beyond float64.
            row = np.asarray(rows[i], dtype=np.float64)
            halves = np.where(np.isfinite(row), row / 2 - self.clip.centre / 2, 0.0)
            size = float(np.abs(halves).max()) or 1.0
            direction = halves / size / self.clip.scale
            length = min(2 * size, _FAR * self.clip.norm / float(np.abs(direction).max() or 1.0))
            # Cut or shortened it will be in any case: this far out, only the direction matters.
            z[i] = np.trunc(direction * (2 * size if self.clip.box else length) / self.step)


def shorten_rows(rows: Matrix, limit: int, lengths: Matrix | None = None) -> None:
    """Shorten rows of whole numbers, in place, to a squared norm of at most `limit`, below 2**53.

    `lengths` (m,), if they are known, are squared lengths that no row is longer than.

    Guarantee: afterwards every row is within it, and each is a function of itself alone.
    """
    with np.errstate(all="ignore"):
        if lengths is not None and (lengths <= limit).all():
            return
        squares = _squares(rows)
        over = np.flatnonzero(~(squares <= limit))
        if len(over):
            Quantiser._shorten(rows, over, limit, squares)


def feature_quantiser(plan: Plan, *, kernel: Kernel | None = None, wider: float = 1.0) -> Quantiser:
    """Return the map from rows of features to integer rows that a plan fixes.

    Rows may be `wider` times as long as the plan's radius, for what is shortened to it later.
    """
    radius_squared = plan.grid.feature_radius_squared
    return Quantiser(
        clip=plan.features,
        step=plan.feature_step,
        radius_squared=radius_squared if wider == 1 else math.floor(radius_squared * wider**2),
        constant=plan.constant_steps if plan.blocks is None else None,
        missing=plan.missing,
        block="features",
        kernel=kernel,
        runs=() if plan.blocks is None else block_runs(plan.blocks),
    )


def outcome_quantiser(plan: Plan, *, kernel: Kernel | None = None) -> Quantiser:
    """Return the map from rows of outcomes to integer rows that a plan fixes."""
    return Quantiser(
        clip=plan.outcomes,
        step=plan.outcome_step,
        radius_squared=plan.grid.outcome_radius_squared,
        constant=None if plan.blocks is None else plan.constant_steps,
        missing=plan.missing,
        block="outcomes",
        kernel=kernel,
    )


_FAR = 1e30  # times the norm: far outside, and finite when squared and summed

#: In steps. Rows that hold nothing larger have a finite squared norm, in any order of summation.
_REACH = 2.0**480

_EXACT = 2.0**53  # below it, integers and their sums are not rounded


def _reach_too_far(rows: Matrix) -> NDArray[np.bool_]:
    """Return which rows hold a number beyond `_REACH`, or none at all (NaN)."""
    within: NDArray[np.bool_] = np.abs(rows).max(axis=1) <= _REACH
    return ~within


def _lengths(rows: Matrix, squares: Matrix | None = None) -> Matrix:
    """Return the squared norm of each row of integers, as a function of that row alone.

    `_squares` adds in an order that may depend on the other rows. Sums of squares never go down,
    rounded or not, and what is 2**53 or more is not rounded to less. So if the result is below 2**53,
    every square and every partial sum was, and as integers they were exact: it is the true sum. The
    other way round, if the true sum is below 2**53, every order finds it. Hence which rows are not
    below depends on no order either, and those are added up again in a fixed one. `squares` is what
    `_squares` makes of the rows, if that is known.
    """
    lengths = _squares(rows) if squares is None else squares.copy()
    beyond = np.flatnonzero(~(lengths < _EXACT))
    if len(beyond):
        lengths[beyond] = squares_in_order(rows[beyond])
    return lengths


def _squares(rows: Matrix) -> Matrix:
    """Return the squared norm of each row, added up as BLAS likes; other threads run meanwhile."""
    squares: Matrix = np.vecdot(rows, rows)
    return squares


def squares_in_order(rows: Matrix) -> Matrix:
    """Return the squared norm of each row, added up by a tree that the number of columns alone fixes.

    Every step adds one half of the columns to the other, value by value: NumPy has no order to choose.
    """
    sums = rows * rows
    width = sums.shape[1]
    while width > 1:
        half = -(-width // 2)
        sums[:, : width - half] += sums[:, half:width]
        width = half
    return sums[:, 0]


def missing_values(block: str) -> InputError:
    """Return the error for a value that is not finite; it names no row and no value."""
    return InputError(
        f"the {block} contain NaN or infinity",
        argument="missing",
        value="error",
        remedy=Message.of(
            "Clean them, or pass ",
            Argument("missing", "centre"),
            " to count such a value as the public centre of its column. "
            "(Which row it is stays private)",
        ),
    )


#: Numbers, from which compiled kernels save what it takes to load them (half a second).
_MANY = 2**27
_counted: Counter[str] = Counter()  # numbers that this process was asked to quantise


def kernels_for(numbers: int) -> ModuleType | None:
    """Return `primo.rows.kernels` if numba is there and the numbers so far, with these, are many."""
    _counted["numbers"] += numbers
    return _load_kernels() if _counted["numbers"] >= _MANY else None


@cache
def _load_kernels() -> ModuleType | None:
    return load("primo.rows.kernels")
