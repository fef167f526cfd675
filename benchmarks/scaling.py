"""Cost of a release against n, l and d, as slopes in log-log: linear, linear, quadratic.

`python -m benchmarks.scaling` prints the slopes; `--plot` also draws docs/scaling.svg (matplotlib).
One pass over the rows and the noise are timed. Coefficients are computed from the release afterwards,
at a cost of d³ + d²·l that does not depend on the number of rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.results import DOCS
from benchmarks.streaming import GeneratedSource, plan_for, pool
from primo.wall.noise import RandomBits
from primo.workflow.pipeline import make_release


@dataclass(frozen=True, kw_only=True)
class Axis:
    """One of n, l and d; what it runs over, and what the other two are meanwhile."""

    name: str
    expected: float
    sizes: Sequence[int]
    others: dict[str, int]

    def shapes(self) -> list[dict[str, int]]:
        return [{**self.others, self.name: size} for size in self.sizes]


def axes(scale: int) -> list[Axis]:
    """Return sizes at which the measured term dominates; `scale` multiplies all work."""
    doubled = 2 ** np.arange(5)
    return [
        Axis(
            name="n",
            expected=1,
            sizes=(10_000 * scale * doubled).tolist(),
            others={"d": 64, "l": 64},
        ),
        Axis(
            name="l",
            expected=1,
            sizes=(256 * doubled).tolist(),
            others={"n": 5_000 * scale, "d": 64},
        ),
        Axis(
            name="d",
            expected=2,
            sizes=(128 * doubled).tolist(),
            others={"n": 5_000 * scale, "l": 8},
        ),
    ]


def cost(n: int, d: int, l: int, repeats: int) -> float:
    """Return the best of a few times: other work on the machine can only add time."""
    source = GeneratedSource(n=n, features=pool(d), outcomes=pool(l))
    plan = plan_for(source, outcome_moments="diagonal")
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        make_release(source, plan, bits=RandomBits.fresh(), threads=1)
        times.append(time.perf_counter() - start)
    return min(times)


def slope(sizes: Sequence[int], times: Sequence[float]) -> float:
    """Fit a power to the larger sizes: at small sizes fixed costs bend the curve."""
    upper = len(sizes) // 2
    return float(np.polyfit(np.log(sizes[upper:]), np.log(times[upper:]), 1)[0])


def plot(measured: list[tuple[Axis, list[float], float]]) -> None:
    import matplotlib

    matplotlib.use("svg")
    # The same bytes for the same numbers, and text as text.
    matplotlib.rcParams.update({"svg.hashsalt": "primo", "svg.fonttype": "none"})
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(measured), figsize=(10, 3.2), layout="constrained")
    for panel, (axis, times, found) in zip(panels, measured, strict=True):
        sizes = np.array(axis.sizes, dtype=float)
        panel.loglog(sizes, times, "o-", label=f"measured, slope {found:.2f}")
        guide = times[-1] * (sizes / sizes[-1]) ** axis.expected
        panel.loglog(sizes, guide, "--", color="grey", label=f"slope {axis.expected:g}")
        others = ", ".join(f"{name} = {size}" for name, size in axis.others.items())
        panel.set(xlabel=axis.name, title=others)
        panel.set_xticks(sizes, [f"{size:,}".replace(",", " ") for size in axis.sizes])
        panel.xaxis.minorticks_off()
        panel.legend(frameon=False, loc="upper left")
    panels[0].set_ylabel("seconds, one worker")
    figure.savefig(DOCS / "scaling.svg", metadata={"Date": None})
    print(f"drawn in {DOCS / 'scaling.svg'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=1, help="so many times as many rows")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--plot", action="store_true", help="draw docs/scaling.svg")
    options = parser.parse_args()
    cost(5000, 64, 64, 1)  # loads libraries and builds tables
    measured = []
    for axis in axes(options.scale):
        times = [cost(**shape, repeats=options.repeats) for shape in axis.shapes()]
        found = slope(axis.sizes, times)
        measured.append((axis, times, found))
        growth = ", ".join(f"{time / times[0]:.1f}" for time in times)
        print(
            f"scaling in {axis.name}: slope {found:.2f} (expected {axis.expected:g}); "
            f"times over the first: {growth}",
            flush=True,
        )
    if options.plot:
        plot(measured)


if __name__ == "__main__":
    main()
