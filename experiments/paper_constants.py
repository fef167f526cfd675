"""The tables of docs/paper-constants.md: printed noise against needed noise, claimed ε against true ε.

`python -m experiments.paper_constants` prints them; a test holds the page to what is printed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of
from primo.privacy.paper import (
    PaperAlgorithm,
    PaperScales,
    noise_multiplier,
    paper_scales,
    true_epsilon,
    true_mu,
)
from primo.privacy.subsampling import SampledScales, least_epsilon

ROWS = 5008
BUDGET = Budget(epsilon=5, delta=1 / ROWS**2)
RATES = (1.0, 0.5, 0.1)
#: Claimed ε and n, with δ = 1/n², of the second table.
CLAIMS = ((5, 5008), (5, 6042), (5, 500_000), (1, 5008))


@dataclass(frozen=True, kw_only=True)
class Place:
    """One printed noise scale, and what two separate releases would need in its place."""

    where: str
    printed: tuple[str, float]  # formula and value
    needed: tuple[str, float]
    why: str


def places() -> list[Place]:
    """List every printed scale, in units of b_x² or b_x·b_y, for sums, at `BUDGET`."""
    whole = noise_multiplier(BUDGET.epsilon, BUDGET.delta)
    half = noise_multiplier(BUDGET.epsilon / 2, BUDGET.delta / 2)
    gauss = _printed(PaperAlgorithm.REUSE_COV_GAUSS)
    empirical = _printed(PaperAlgorithm.LAMBDA_REUSE_COV)
    sub = _printed(PaperAlgorithm.SUB_SAMP_REUSE_COV, 0.1)
    rate = sub.sampled / sub.rows
    inner = noise_multiplier(
        math.log1p(math.expm1(BUDGET.epsilon / 2) / rate), BUDGET.delta / 2 / rate
    )
    covariance = ("√2·c(ε/2, δ/2)", math.sqrt(2) * half)
    association = ("2·c(ε/2, δ/2)", 2 * half)
    return [
        Place(
            where="Algorithm 1 line 1, covariance",
            printed=("c(ε, δ)", gauss.covariance),
            needed=covariance,
            why="it is one of two releases, so it may spend only (ε/2, δ/2); and a replaced row moves "
            "XᵀX by √2·b_x² (x ⟂ x′), not b_x²",
        ),
        Place(
            where="Proof of Theorem 1, covariance",
            printed=("c(ε, δ)/ε", whole / BUDGET.epsilon),
            needed=covariance,
            why="as above, and c already contains the division by ε",
        ),
        Place(
            where="Algorithm 1 line 3 and Theorem 1, association, full DP",
            printed=("c(ε/2, δ/2)", gauss.association),
            needed=association,
            why="a replaced row may turn xyᵀ into its opposite: 2·b_x·b_y, as the proof itself finds",
        ),
        Place(
            where="Proof of Theorem 1, association",
            printed=("2·c(ε, δ)/ε", 2 * whole / BUDGET.epsilon),
            needed=association,
            why="sensitivity right; c taken at the whole budget and divided by ε twice",
        ),
        Place(
            where="Algorithm 2 line 1, association, feature DP",
            printed=("c(ε/2, δ/2)", _printed(PaperAlgorithm.REUSE_COV_PROJ_Y).association),
            needed=association,
            why="x′ = -x at the longest yⁱ moves XᵀY by 2·b_x·sup‖yⁱ‖",
        ),
        Place(
            where="Section 5.2 and Theorem 4, association, label DP",
            printed=("c(ε/2, δ/2)", _printed(PaperAlgorithm.REUSE_COV_PROJ_X).association),
            needed=("2·c(ε, δ)", 2 * whole),
            why="y′ = -y moves XᵀY by 2·sup‖xᵢ‖·b_y; but the covariance is exact and public here, so "
            "the whole budget is the association's: two slips that nearly cancel",
        ),
        Place(
            where="Algorithm 3 line 1, covariance",
            printed=("2√(2 log(2.5/δ))/ε", empirical.covariance),
            needed=covariance,
            why="b_x² for √2·b_x²; and the classical multiplier is proved for ε ≤ 1 only (at ε = 10 it "
            "is not private)",
        ),
        Place(
            where="Algorithm 3 line 4, association",
            printed=("c(ε/2, δ/2)", empirical.association),
            needed=association,
            why="as in Algorithm 1 line 3",
        ),
        Place(
            where="Algorithm 4 lines 2 and 3, covariance of s = n/10 rows",
            printed=("4(s/n)²√(2 log(2.5/δ))/ε", sub.covariance),
            needed=("√2·c(ε₀, δ₀)", math.sqrt(2) * inner),
            why="an average of s rows moves by 1/s, not 1/n; a sample of s rows may spend "
            "ε₀ = log(1 + (n/s)(e^(ε/2) - 1)), δ₀ = (n/s)·δ/2, far less than ε·n/s; √2 as above; and "
            "the half is taken twice, which errs on the safe side and is all that is left at s = n",
        ),
        Place(
            where="Algorithm 4 line 5, association",
            printed=("c(ε/2, δ/2)", sub.association),
            needed=association,
            why="as in Algorithm 1 line 3",
        ),
    ]


def constants_table() -> str:
    """Return the first table: each place where a printed constant differs, and why."""
    lines = [
        "| where | printed | needed under replace-one | printed value | needed value | why |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {p.where} | {p.printed[0]} | {p.needed[0]} | {p.printed[1]:.3f} | {p.needed[1]:.3f} "
        f"| {p.why} |"
        for p in places()
    ]
    return "\n".join(lines)


def epsilon_table() -> str:
    """Return the second table: what the algorithm boxes truly give for what they claim."""
    header = ["algorithm", "protection", "σ₁/b_x²", "σ₂/(b_x·b_y)", "μ"]
    header += [f"true ε for {epsilon}, n = {rows}" for epsilon, rows in CLAIMS]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for algorithm in PaperAlgorithm:
        sub_sampled = algorithm is PaperAlgorithm.SUB_SAMP_REUSE_COV
        for rate in RATES if sub_sampled else (None,):
            name = str(algorithm) if rate is None else f"{algorithm}, s/n = {rate:g}"
            scales = _printed(algorithm, rate)
            mu = true_mu(scales, algorithm.protection)
            cells = [
                name,
                str(algorithm.protection),
                f"{scales.covariance:.3f}" if scales.covariance else "exact",
                f"{scales.association:.3f}",
                f"{mu:.3f}" if scales.sampled == scales.rows else "",
            ]
            cells += [_true(algorithm, rate, epsilon, rows) for epsilon, rows in CLAIMS]
            lines.append("| " + " | ".join(cells) + " |")
    lines.append("| " + " | ".join(_primo_cells()) + " |")
    return "\n".join(lines)


def _printed(algorithm: PaperAlgorithm, rate: float | None = None) -> PaperScales:
    sampled = None if rate is None else math.floor(ROWS * rate)
    return paper_scales(algorithm, BUDGET, rows=ROWS, sampled=sampled)


def _true(algorithm: PaperAlgorithm, rate: float | None, epsilon: float, rows: int) -> str:
    """Return the true epsilon, rounded up; an interval where it is only bounded."""
    budget = Budget(epsilon=epsilon, delta=1 / rows**2)
    sampled = None if rate is None else math.floor(rows * rate)
    scales = paper_scales(algorithm, budget, rows=rows, sampled=sampled)
    upper = math.ceil(true_epsilon(scales, algorithm.protection, budget.delta) * 100) / 100
    if scales.sampled == scales.rows:
        return f"{upper:.2f}"
    known = SampledScales(
        rows=rows,
        sampled=scales.sampled,
        covariance=scales.covariance,
        association=scales.association,
    )
    lower = math.floor(least_epsilon(known, budget.delta) * 100) / 100
    return f"{lower:.2f} to {upper:.2f}"


def _primo_cells() -> list[str]:
    """Return the row of a joint, analytic release with a free covariance (split ratio 2)."""
    mu = mu_of(BUDGET)
    cells = ["primo, split 2, for comparison", "both", f"{2 * math.sqrt(2) / mu:.3f}"]
    cells += [f"{2 / mu:.3f}", f"{mu:.3f}"]
    return cells + [f"{epsilon:.2f}" for epsilon, _ in CLAIMS]


def generated() -> str:
    """Return everything that docs/paper-constants.md holds between its two markers."""
    return f"{constants_table()}\n\n{epsilon_table()}"


def main() -> None:
    """Print both tables as Markdown."""
    print(generated())


if __name__ == "__main__":
    main()
