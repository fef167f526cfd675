"""Each claim of the paper's Section 6 and of its appendix, judged on our scores.

A claim about an order is judged on paired differences of log(error) over repeats; what is smaller than
two standard errors is no difference. Nothing is judged on a single repeat.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from experiments.figures.page import claims_other as other
from experiments.figures.page import claims_realistic as realistic
from experiments.figures.page.compare import Scores
from experiments.figures.page.verdicts import VARIANTS, Claim, Finding, Verdict
from experiments.figures.page.wording import DATA, table

__all__ = ["Claim", "Finding", "Verdict", "claims_section", "judge", "totals"]


@dataclass(frozen=True, kw_only=True)
class _Said:
    key: str
    source: str
    statement: str
    check: Callable[[Scores], Iterable[Finding]]
    reading: str = ""


_SAID = (
    _Said(
        key="a1",
        source="Section 6, realistic n; Figures 2, 3",
        statement="ReuseCovProj_X has a higher R² than ReuseCovGauss from a small l on",
        check=realistic.projection_overtakes,
    ),
    _Said(
        key="a2",
        source="Section 6, realistic n; Figures 2, 3",
        statement="below that l, ReuseCovGauss has the higher R²",
        check=realistic.gauss_wins_below,
    ),
    _Said(
        key="b1",
        source="Section 6, realistic n; Figures 2a, 2b",
        statement="R² of ReuseCovGauss is negative at large l",
        check=realistic.becomes_negative,
    ),
    _Said(
        key="b2",
        source="implied by b1",
        statement="R² of ReuseCovGauss is not negative before",
        check=realistic.not_negative_before,
        reading="The text names the l beyond which R² is negative. We take it to say that up to "
        "there it is not.",
    ),
    _Said(
        key="c1",
        source="Section 6, realistic n; Figures 2c to 2f",
        statement="R² of ReuseCovProj_X is above zero at every l",
        check=realistic.never_trivial,
    ),
    _Said(
        key="c2",
        source="Section 6, realistic n; Figures 2c to 2f",
        statement="the error of ReuseCovProj_X hardly grows with l",
        check=realistic.grows_little,
        reading=f"We take “hardly” to mean at most {100 * realistic.MINIMAL:.0f} % more from the "
        "smallest to the largest l; where two standard errors reach across that limit we do not judge.",
    ),
    _Said(
        key="d1",
        source="Section 6, large n; Figure 4",
        statement="at n = 500 000 ReuseCovGauss is better than ReuseCovProj_X",
        check=other.gauss_wins_at_large_n,
    ),
    _Said(
        key="d2",
        source="Section 6, large n; Figure 4a",
        statement="there the log ratio grows linearly in log l",
        check=other.linear_in_log_l,
        reading=f"A line must rise and explain {100 * other.STRAIGHT:.0f} % of the variance.",
    ),
    _Said(
        key="d3",
        source="Section 6, large n; Figure 4a",
        statement="ReuseCovProj_X does relatively better as l grows",
        check=other.projection_catches_up,
        reading="We compare the error that privacy adds: error minus that of least squares. Its "
        "ratio between the two algorithms must fall with l.",
    ),
    _Said(
        key="d4",
        source="Section 6, large n (an expectation; too costly for the paper to run)",
        statement="at still larger l ReuseCovProj_X is the better one again",
        check=other.projection_wins_beyond,
        reading="XᵀY was drawn from its exact law here, without rows of outcomes.",
    ),
    _Said(
        key="e",
        source="Section 6, ablations; Figure 5",
        statement="outcomes of a two-layer network do not change the order of the algorithms",
        check=other.same_order_for_networks,
        reading="Pairs that are too close to call on either kind of outcome do not count.",
    ),
    _Said(
        key="f1",
        source="Section 6, ablations, and appendix; Figure 6",
        statement="on MNIST, DP-SGD by outcome is better than ReuseCov at l = 1, 11, 101",
        check=other.dpsgd_wins,
    ),
    _Said(
        key="f2",
        source="appendix; Figure 6",
        statement="its lead shrinks as l grows",
        check=other.dpsgd_gap_shrinks,
        reading="The lead is the ratio of the two errors, from the smallest l to the largest.",
    ),
    _Said(
        key="g",
        source="Section 6, limitations",
        statement="the projection pays off at far smaller l than theory asks for",
        check=realistic.crosses_below_theory,
        reading="It pays off from the first l at which, and beyond which, it is clearly better "
        "than ReuseCovGauss; far smaller is at most a third. Theory as printed asks for l > n^(2/3) "
        "(outcomes private) or l > n/√d (features private); why the first "
        "should be (n/d)² is in `primo/forecast/theory.py`.",
    ),
    _Said(
        key="h",
        source="Section 6, ablations",
        statement="for l < n/√d, ReuseCov is no better than l private regressions that share the budget",
        check=realistic.naive_composition,
        reading="As printed: against advanced composition. Calibrated: against exact (GDP) "
        "composition. With one outcome the two are the same algorithm, so l = 1 is left out.",
    ),
)


def judge(scores: Scores) -> tuple[Claim, ...]:
    """Judge every claim."""
    return tuple(
        Claim(
            key=said.key,
            source=said.source,
            statement=said.statement,
            reading=said.reading,
            findings=tuple(f for f in said.check(scores) if _belongs(f)),
        )
        for said in _SAID
    )


def _belongs(finding: Finding) -> bool:
    """Whether a finding counts: on data that the paper does not have, only if it was run."""
    ours = finding.data.startswith(DATA["1kg-real"])
    return not (ours and finding.verdict is Verdict.UNKNOWN and finding.found.startswith("Not run"))


def claims_section(claims: Iterable[Claim]) -> str:
    """Return the overview and the details of all claims."""
    claims = tuple(claims)
    # Two tables, so that each fits on a page.
    realistic_n = [claim for claim in claims if claim.key[0] in "abc"]
    others = [claim for claim in claims if claim.key[0] not in "abc"]
    parts = ["Some thousands of people, up to 100 000 outcomes:", _overview(realistic_n)]
    parts += ["Everything else:", _overview(others)]
    return "\n\n".join([*parts, *map(_details, claims)])


def totals(claims: Iterable[Claim]) -> list[str]:
    """Return how many findings have which verdict, one line for each version."""
    lines = []
    for variant in VARIANTS:
        verdicts = [f.verdict for c in claims for f in c.findings if f.variant == variant]
        counts = ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in Verdict)
        lines.append(f"{variant}, over {len(verdicts)} pairs of claim and data: {counts}")
    return lines


def _overview(claims: Iterable[Claim]) -> str:
    rows = []
    for claim in claims:
        by_data: dict[str, dict[str, str]] = {}
        for finding in claim.findings:
            by_data.setdefault(finding.data, {})[finding.variant] = _marked(finding.verdict)
        for i, (data, found) in enumerate(by_data.items()):
            said = (claim.key, claim.statement) if i == 0 else ("", "")
            rows.append([*said, data, *(found.get(variant, "–") for variant in VARIANTS)])
    return table(["", "the paper says", "where", *VARIANTS], rows)


def _details(claim: Claim) -> str:
    title = f"### {claim.key}: {claim.statement}"
    intro = f"*{claim.source}.*" + (f" {claim.reading}" if claim.reading else "")
    rows = [[f.data, f.variant, _marked(f.verdict), f.found] for f in claim.findings]
    parts = [title, intro, table(["where", "version", "verdict", "what we found"], rows)]
    if reasons := _reasons(claim):
        parts.append(reasons)
    return "\n\n".join(parts)


def _reasons(claim: Claim) -> str:
    """Return why some findings are as they are; one reason that serves several is given once."""
    where: dict[str, list[Finding]] = {}
    for finding in claim.findings:
        if finding.why:
            where.setdefault(finding.why, []).append(finding)
    return "\n".join(
        f"- **Why not**{_where(findings, claim)}: {why}" for why, findings in where.items()
    )


def _where(findings: Sequence[Finding], claim: Claim) -> str:
    """Say what a reason is about, in the fewest words."""
    failed = [f for f in claim.findings if f.verdict is Verdict.NOT]
    if len(findings) == len(failed):
        return ""
    parts = []
    for variant in VARIANTS:
        here = [f.data for f in findings if f.variant == variant]
        if here:
            whole = len(here) == sum(f.variant == variant for f in failed)
            parts.append(variant if whole else f"{variant}: {'; '.join(here)}")
    return f" ({'; '.join(parts)})"


def _marked(verdict: Verdict) -> str:
    return f"**{verdict}**" if verdict is Verdict.NOT else str(verdict)
