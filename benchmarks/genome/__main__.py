"""R² of polygenic scores: ``python -m benchmarks.genome --write`` writes docs/genome-scale.md."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
from rich.progress import track

from benchmarks.genome.linkage import Linkage, real_linkage, simulated_linkage
from benchmarks.genome.methods import Cell, Measured, forecast, measure
from primo.forecast.blocks import Trait

DOCS = Path(__file__).resolve().parents[2] / "docs"
TRAIT = Trait(heritability=0.5, causal=0.01)
PEOPLE = (5_000, 50_000, 500_000)
AVERAGED = 20_000  # variants that the draws of a line have in all
NEAR = 0.03  # predicted and measured R² should not differ by more
HEADER = (
    "people",
    "ε",
    "protection",
    "no noise",
    "**blocks**",
    "predicted",
    "panel",
    "none: r²",
    "none: R²",
    "clumped: r²",
)

INTRODUCTION = """\
# Genome scale: what a polygenic score will be worth

Written by `python -m benchmarks.genome --write`. Nobody edits it by hand.

Read this before you ask for access to a cohort: it says how much of a trait a score explains among
new people, by the number of people in the cohort, the budget and what is protected. The trait is
simulated: its variance is 1, variants explain half of it (h² = 0.5), and 1 % of them have an
effect. So 0.5 is the most that any score can reach.

**How.** No person is simulated. Given the correlations of the variants (linkage), the moments of n
people have a known law, and the noise of a release has the law that the plan states; both are
drawn, and the real estimators are run on them. Bounds are those that primo chooses without further
knowledge: rows of features no longer than 1.25·√d, blocks no longer than 1.5 times their part of
it, outcomes cut to three standard deviations; δ = 1/n². What the cuts do to the rows is not
simulated, and variants of different blocks are taken to be independent. Lines of 2 000 variants
are means of ten draws, the others are one draw each.

**Tuned on what judges it.** How a normal and a sparse prior are mixed was chosen on simulated linkage of
this kind with 8 000 variants, from 0.3 % to all of them with an effect, and then seen on five cells of
this page. The scale of scores from marginal associations was chosen while looking at a short run of it.

**Columns.** All are of the same simulated trait and cohort.

- *no noise*: R² of the block estimator without any privacy.
- ***blocks***: R² of primo with `covariance="blocks"`.
- *predicted*: R² by `primo.forecast.blocks`, from the panel's linkage and stated numbers alone,
  before any data.
- *panel*: R² with `covariance="panel"`: the diagonal of the cohort, correlations of the public
  panel. (Under `outcomes` the features are public, and their covariance is exact: no panel is
  needed.)
- *none*: from marginal associations alone (`covariance="none"`). Linked variants are counted
  several times, so nobody knows how large the score should be, and primo makes it small. Its
  squared correlation with the trait (r²) is what a factor found elsewhere would bring; R² is what
  it explains as it is.
- *clumped*: clumping (r² ≤ 0.1 by the panel) and thresholding on the noisy marginals; squared
  correlation, with the best of eight thresholds chosen afterwards, which nobody could do.

*outcomes, noise on y* is the same guarantee as *outcomes*, with noise on the outcomes themselves in
place of their associations. Its noise does not depend on the number of variants.
"""


def cells(epsilons: Sequence[float], people: Sequence[int] = PEOPLE) -> Iterator[Cell]:
    """Yield the lines of a table."""
    for n in people:
        for epsilon in epsilons:
            for protection in ("both", "outcomes", "outcomes, noise on y"):
                if protection in ("both", "outcomes") or epsilon > 1:
                    yield Cell(n=n, epsilon=epsilon, protection=protection, trait=TRAIT)


def line(cell: Cell, found: Measured, predicted: float) -> list[str]:
    """Return one line of a table."""
    panel = "—" if found.panel is None else f"{found.panel:.3f}"
    return [
        f"{cell.n:,}".replace(",", " "),
        f"{cell.epsilon:g}",
        cell.protection,
        f"{found.without_noise:.3f}",
        f"**{found.blocks:.3f}**",
        f"{predicted:.3f}",
        panel,
        f"{found.none_correlation:.3f}",
        f"{found.none:.2f}",
        f"{found.clumped_correlation:.3f}",
    ]


def table(linkage: Linkage, chosen: Sequence[Cell], seed: int) -> tuple[list[list[str]], float]:
    """Measure all lines of a table; return them and how far predictions are off at most."""
    rows, apart = [], 0.0
    repeats = max(1, AVERAGED // linkage.d)
    name = f"{linkage.name}, d = {linkage.d}"
    for cell in track(chosen, description=name, transient=True):
        draws = [measure(linkage, cell, seed + 10 * k) for k in range(repeats)]
        measured = mean_of(draws)
        predicted = forecast(linkage, cell)
        apart = max(apart, abs(predicted - measured.blocks))
        rows.append(line(cell, measured, predicted))
    return rows, apart


def mean_of(draws: Sequence[Measured]) -> Measured:
    """Average several draws of a line."""
    names = [field.name for field in fields(Measured)]
    columns = {name: [getattr(each, name) for each in draws] for name in names}
    means = {k: None if v[0] is None else float(np.mean(v)) for k, v in columns.items()}
    return Measured(**means)  # type: ignore[arg-type]  # None for the panel only


def markdown(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as Markdown."""
    lines = [HEADER, ["---"] * len(HEADER), *rows]
    return "\n".join("| " + " | ".join(row) + " |" for row in lines) + "\n"


def section(linkage: Linkage, about: str, chosen: Sequence[Cell], seed: int) -> tuple[str, float]:
    """Return a section of the page, and the largest difference of predicted and measured R²."""
    rows, apart = table(linkage, chosen, seed)
    widths = [len(matrix) for matrix in linkage.population]
    blocks = f"{len(widths)} blocks of {min(widths)} to {max(widths)} variants"
    title = f"## {linkage.name.capitalize()} linkage, {linkage.d} variants".replace(
        "1000 genomes", "1000 Genomes"
    )
    words = f"{title}\n\n{about} {blocks[0].upper()}{blocks[1:]}.\n\n{markdown(rows)}\n"
    words += f"Predicted and measured R² differ by at most {apart:.3f}.\n"
    return words, apart


def page(d: int, seed: int) -> tuple[str, float]:
    """Measure everything; return the page and the largest difference of a prediction."""
    chain = (
        "Neighbours in a block are correlated by random amounts between 0.5 and 0.98; the panel has "
        "1 000 people."
    )
    real_words = (
        "Common variants (5 %) of six regions of the 1000 Genomes, repeated until there are enough. One "
        "half of the 2 504 people has the linkage of the cohort; the other half is the public panel, "
        "which the blocks are found from."
    )
    parts = [
        section(simulated_linkage(d), chain, list(cells((1.0, 5.0))), seed),
        section(simulated_linkage(2_000), chain, list(cells((1.0,), PEOPLE[:2])), seed),
    ]
    real = real_linkage(min(d, 20_000))
    note = "## 1000 Genomes linkage\n\nNot measured: the data was not present.\n"
    if real is not None:
        parts.append(section(real, real_words, list(cells((5.0,))), seed))
        note = ""
    apart = max(each for _, each in parts)
    words = "\n".join([INTRODUCTION, *(each for each, _ in parts)])
    return words + (f"\n{note}" if note else ""), apart


def main() -> int:
    """Measure, print or write; return 1 if a prediction is off."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/genome-scale.md")
    parser.add_argument("--quick", action="store_true", help="8 000 variants in place of 79 000")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with np.errstate(under="ignore"):
        words, apart = page(8_000 if options.quick else 79_000, options.seed)
    if options.write:
        (DOCS / "genome-scale.md").write_text(words, encoding="utf-8")
    else:
        print(words)
    return 0 if apart <= NEAR else 1


if __name__ == "__main__":
    raise SystemExit(main())
