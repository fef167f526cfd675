"""`docs/reproduction.md`, written from result files.

Whatever depends on a number is computed from the scores; only explanations of the set-up are fixed text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from experiments.figures import results
from experiments.figures.grid import Cell, Study, read_studies
from experiments.figures.page.budgets import PAIRS, budgets_section
from experiments.figures.page.captions import caption
from experiments.figures.page.claims import Claim, claims_section, judge, totals
from experiments.figures.page.compare import Scores
from experiments.figures.page.coverage import Coverage, coverage_of, skipped_lines
from experiments.figures.page.extras import gan_section, times_section, tuning_section
from experiments.figures.page.provenance import describe, read_sources
from experiments.figures.page.summary import contests, counts, losses, summary_section
from experiments.figures.page.wording import DATA, count, data_name, listed, name, signed
from primo._util.atomic import whole_file

__all__ = ["read_scores", "write_page"]

GAN_CHECK = "gan-check.json"


def write_page(results_folder: Path, page: Path) -> Path:
    """Write the page from all result files of a folder; figures are linked where they are drawn."""
    studies = read_studies()
    scores = read_scores(results_folder, studies)
    text = _text(scores, studies, results_folder, page.parent / "figures")
    page.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(page) as file:
        file.write(text.encode())
    return page


def read_scores(folder: Path, studies: Iterable[Study]) -> Scores:
    """Read the scores of the studies that have a result file."""
    paths = [folder / f"{study.name}.parquet" for study in studies]
    return Scores(row for path in paths if path.exists() for row in results.read(path))


def _text(scores: Scores, studies: Sequence[Study], folder: Path, figures: Path) -> str:
    coverage = coverage_of(scores, studies)
    claims = judge(scores)
    sections = [
        "# The paper, reproduced",
        coverage.banner(),
        _INTRODUCTION,
        "## In short\n\n" + _in_short(scores, claims),
        "## How it was run\n\n" + _runs(scores, coverage, folder),
        "## What the paper claims, and what we find\n\n" + _CLAIMS,
        claims_section(claims),
        "## True budgets\n\n" + _BUDGETS + "\n\n" + budgets_section(scores),
        "## primo against everything\n\n" + _SUMMARY + "\n\n" + summary_section(scores),
        "## Figures\n\n" + _figures(scores, studies, figures),
        "## Time\n\n" + _TIMES + "\n\n" + times_section(scores),
        "## How DP-SGD was tuned\n\n" + _TUNING + "\n\n" + tuning_section(),
        "## Do the GAN's rows look like its model?\n\n" + gan_section(folder / GAN_CHECK),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def _in_short(scores: Scores, claims: Sequence[Claim]) -> str:
    found = contests(scores)
    clear = [loss for loss in losses(scores, found) if not loss.noise]
    lines = [f"- Claims about the paper's algorithms {line}." for line in totals(claims)]
    made: dict[str, set[str]] = {}
    for row in scores.rows:
        made.setdefault(row.study, set()).add(row.method)
    # One round is compared with wherever the default is run with several.
    old = sorted(s for s, m in made.items() if "primo" in m and "primo-one-round" not in m)
    if old:
        lines.append(
            f"- **primo has one round in parts of {listed(f'`{study}`' for study in old)}**: results of "
            "commits before several rounds became the default (column `commit` of the results). "
            "[Rounds](rounds.md) has the default, on most of the same data."
        )
    if said := counts(found):
        lines.append(said)
    if clear:
        worst = max(clear, key=lambda loss: loss.margin.mean)
        lines.append(
            f"- primo's largest deficit: {signed(worst.margin)} in R², {data_name(worst.cell)}, "
            f"d = {worst.cell.d}, l = {count(worst.cell.l)}, against {name(worst.rival)}."
        )
    over = [m for m in PAIRS if any(_over(scores, cell, m) for cell in scores.cells())]
    if over:
        lines.append(f"- Spend more than the ε they state: {listed(map(name, over))}.")
    return "\n".join(lines)


def _over(scores: Scores, cell: Cell, method: str) -> bool:
    return bool(scores.of(cell, method)) and not scores.keeps_budget(cell, method)


def _runs(scores: Scores, coverage: Coverage, folder: Path) -> str:
    command = "make figures-quick" if coverage.kind == "quick" else "make figures"
    versions = sorted({row.version for row in scores.rows})
    commits = sorted({row.commit or "unknown" for row in scores.rows})
    low, high = coverage.repeats
    lines = [
        f"- **Command**: `{command}` makes every figure and this page; "
        "`python -m experiments.figures --help` lists the options for your own files. An "
        "interrupted run goes on where it stopped.",
        "- **Seeds**: the data of a repeat are drawn from a seed that is a hash of the cell and of "
        "the number of the repeat, in column `seed` of the results; a method adds its name. All "
        "methods see the same data.",
    ]
    if scores.rows:
        lines += [
            f"- **Versions**: primo {listed(versions)}; commit {listed(f'`{c}`' for c in commits)}.",
            f"- **Repeats**: {low if low == high else f'{low} to {high}'} for each method and "
            f"cell. {coverage.fits} fits in all, one row each in `{folder.name}/*.parquet`.",
            "- **Data**:",
        ]
        sources = read_sources(folder)
        used = dict.fromkeys(cell.features for cell in scores.cells())
        lines += [f"    - {DATA.get(f, f)}: {describe(f, sources)}." for f in used]
        lines.append("    - †: simulated, unless a file of the user's is named here.")
    if skipped := skipped_lines(scores):
        lines += ["- **Skipped**:", *(f"    - {line}" for line in skipped)]
    return "\n".join([*lines, _CONVENTIONS])


def _figures(scores: Scores, studies: Iterable[Study], folder: Path) -> str:
    parts = [_FIGURES]
    for study in studies:
        if study.name not in scores.studies or not study.figures:
            continue
        parts.append(f"### {study.title}")
        for figure in study.figures:
            said = caption(scores, study, figure)
            picture = folder / f"figure-{figure.name}.svg"
            if picture.exists():
                parts.append(
                    f"![Figure {figure.name}: {figure.title}]({folder.name}/{picture.name})"
                )
            parts.append(f"*Figure {figure.name}. {figure.title}.* {said}")
    return "\n\n".join(parts)


_INTRODUCTION = """\
This page repeats the experiments of *Private Regression in Multiple Outcomes* (PRIMO), Section 6
and appendix: each figure, each claim, with the paper's algorithms as printed, the same algorithms
with noise that keeps the stated budget, other people's methods, and primo itself. A program writes
it from result files, verdicts included. Nobody edits it by hand."""

_CONVENTIONS = """\
- **Privacy**: δ = 1/n², where n is the number of rows. Two data sets are neighbours if one row is
  replaced by another. Protection is `both` (features and outcomes of a row are private; full DP),
  `outcomes` (features are public; label DP) or `features` (outcomes are public; feature DP). A row
  is a haplotype in the genomic data, and a person has two.
- **Public knowledge**: column means, typical and longest rows and the largest outcome are taken to
  be public, as in the paper. On private data they would have to come from elsewhere.
- **Bounds**: all methods but the printed ones shorten rows to the same norms: features to 0.85 root
  mean square lengths, outcomes to 0.85·√l + 0.6 standard deviations (1.45 where outcomes are taken
  one by one). `python -m experiments.tuning.bounds` finds that best for primo on the data that
  DP-SGD was tuned on, with n = 5000. DP-SGD clips gradients instead. From n = 100 000 on, where
  noise costs less than the bias of shortened rows, and where moments are drawn from their law, the
  norms are those that no row exceeds. ([Accuracy](accuracy.md) has looser bounds, hence lower R² in
  cells of the same name.)
- **As printed**: the paper's noise scales, the longest row of features and √l·max|y| for bounds, no
  ridge (λ = 0; 10⁻¹⁰ of the trace of XᵀX where features are collinear), solved by QR.
  **Calibrated**: one joint release with the exact Gaussian curve, the tighter norms, a ridge.
- **Score**: R² = 1 − MSE/(SS_tot/(n·l)), pooled over outcomes, on the rows of the fit, as in the
  paper. 0 is the constant predictor. The log ratio is log(MSE / MSE of least squares).
- **Errors**: ± is one standard error of the mean over repeats, and so are the bands in the figures.
- **Moments alone**: where n × l outcomes do not fit in memory they are drawn and summed in blocks;
  beyond 10⁹ of them, XᵀY is drawn from its exact law given X."""

_CLAIMS = """\
A claim is **reproduced** if every comparison in it comes out as stated, by more than two standard
errors over repeats (paired: both methods on the same data); **not reproduced** if one comparison
comes out otherwise; *undecided* if it shows no clear difference somewhere, and the opposite
nowhere; and *cannot be judged here* if it was not run, or only once. Orders are judged on
log(error), where one bad repeat cannot hide all the others. ReuseCovGauss protects features and
outcomes, ReuseCovProj_X outcomes alone: the paper compares them at the same ε, and so does this
section."""

_BUDGETS = """\
The algorithms as printed state an ε that they do not all keep;
[The paper's constants](paper-constants.md) says why. A more accurate method that spends more is not
a better one, so those are set here beside versions that keep the budget, and only these enter
the next section. diffprivlib under-counts several outcomes and over-counts much else: asked for
5, it truly spends what the table says; the version that enters the next section asks
for as much as makes that 5. DP-SGD by outcome and SSP with advanced composition spend less than
they may because their composition (zCDP, advanced) is not tight; that is how they are used."""

_SUMMARY = """\
Mean R² at equal true privacy: a method is in a row only if its true (ε, δ) is at most what was
requested. **Bold is the best of a row** among methods of the same protection, by differences to
primo over the repeats that both have; the means of a row are over the repeats that all its methods
have (slow ones have fewer). Least squares is not private and only shows what can be reached."""

_FIGURES = """\
Lines are means over repeats, bands one standard error. Dashed: the paper's algorithms as printed,
and of two versions of a baseline the older one; which of them keep the stated budget is in the
table of true budgets. Each picture is also there as PNG."""

_TIMES = """\
Median over repeats of the time of a fit, divided by the time of least squares on the same rows in
the same process. DP-SGD by outcome is run on a few outcomes drawn at random and its time is scaled
up to all of them. Ratios for small data mostly show fixed costs. A dash: not run, or drawn as
moments without rows, so that there is no time to compare."""

_TUNING = """\
On simulated data of the same kind and size that no result on this page comes from, by `python -m
experiments.tuning`. So tuning costs no privacy here, only time. Learning rate and clip are in units
of the public bounds. *each*: one run for each outcome, composed in zCDP; *joint*: one run for all
outcomes with one clip. Other sizes take the values of the nearest; nothing was tuned for n =
500 000, where DP-SGD may be at a disadvantage. To be open about it: the search was run twice.
Between the two, results on MNIST were looked at, and the effort of the search was changed, not its
grid; all choices were made on the simulated data."""
