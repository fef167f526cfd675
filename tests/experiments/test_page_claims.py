"""Claims of the paper on the page of the reproduction: each verdict turns when the numbers do."""

import math

import pytest

from experiments.figures.page.claims import Verdict, claims_section, judge
from experiments.figures.page.compare import Scores, estimate
from page_scores import EXACT, L, around, curve, everything, one, rows


class TestClaims:
    """Each verdict turns when the numbers do."""

    @pytest.mark.parametrize("variant", ["as printed", "calibrated"])
    @pytest.mark.parametrize(
        ("better", "from_11", "below"),
        [
            (lambda l: l >= 11, Verdict.REPRODUCED, Verdict.REPRODUCED),
            (lambda l: l >= 201, Verdict.NOT, Verdict.REPRODUCED),
            (lambda l: True, Verdict.REPRODUCED, Verdict.NOT),
        ],
    )
    def test_where_the_projection_overtakes(self, better, from_11, below, variant):
        end = "-printed" if variant == "as printed" else ""
        gauss = curve("1kg", f"gauss{end}", lambda l: 0.3)
        projection = curve("1kg", f"proj-x{end}", lambda l: 0.35 if better(l) else 0.25)
        parts = gauss, projection
        assert one("a1", "1000 Genomes†, l ≥ 11", *parts, variant=variant) is from_11
        assert one("a2", "1000 Genomes†, l < 11", *parts, variant=variant) is below
        other = "calibrated" if end else "as printed"
        assert one("a1", "1000 Genomes†, l ≥ 11", *parts, variant=other) is Verdict.UNKNOWN

    def test_the_thresholds_of_dbgap_are_its_own(self):
        gauss = curve("dbgap", "gauss", lambda l: 0.3)
        projection = curve("dbgap", "proj-x", lambda l: 0.35 if l >= 101 else 0.25)
        assert one("a1", "dbGaP†, l ≥ 101", gauss, projection) is Verdict.REPRODUCED
        assert one("a2", "dbGaP†, l < 101", gauss, projection) is Verdict.REPRODUCED

    def test_one_wild_repeat_does_not_hide_an_order(self):
        """R² of the printed Gauss has no lower limit: its mean says nothing, its logarithm does."""
        values = [-2.0, -3.0, -2.5] * 3 + [-90_000.0]
        assert estimate(values).sign == 0
        gauss = [row for l in L for row in rows("1kg", l, "gauss-printed", values)]
        steady = around(0.3, repeats=10)
        projection = [row for l in L for row in rows("1kg", l, "proj-x-printed", steady)]
        found = one("a1", "1000 Genomes†, l ≥ 11", gauss, projection, variant="as printed")
        assert found is Verdict.REPRODUCED
        negative = one("b1", "1000 Genomes†, l > 101", gauss, variant="as printed")
        assert negative is Verdict.REPRODUCED

    @pytest.mark.parametrize(
        ("first", "beyond", "before"),
        [
            (201, Verdict.REPRODUCED, Verdict.REPRODUCED),
            (11, Verdict.REPRODUCED, Verdict.NOT),
            (601, Verdict.NOT, Verdict.REPRODUCED),
        ],
    )
    def test_where_gauss_becomes_negative(self, first, beyond, before):
        gauss = curve("1kg", "gauss-printed", lambda l: -0.5 if l >= first else 0.2)
        assert one("b1", "1000 Genomes†, l > 101", gauss, variant="as printed") is beyond
        assert one("b2", "1000 Genomes†, l ≤ 101", gauss, variant="as printed") is before

    def test_the_ridge_is_named_only_if_the_printed_version_is_negative_there(self):
        calibrated = curve("1kg", "gauss", lambda l: 0.1)
        for printed, expected in ((-3.0, True), (0.1, False)):
            scores = Scores(calibrated + curve("1kg", "gauss-printed", lambda l, p=printed: p))
            claim = next(c for c in judge(scores) if c.key == "b1")
            why = next(f.why for f in claim.findings if f.variant == "calibrated" and f.why)
            assert ("ridge" in why) is expected

    @pytest.mark.parametrize(
        ("lowest", "verdict"), [(0.1, Verdict.REPRODUCED), (-0.1, Verdict.NOT)]
    )
    def test_a_projection_that_is_never_trivial(self, lowest, verdict):
        projection = curve("1kg", "proj-x", lambda l: 0.4 if l < 1001 else lowest)
        assert one("c1", "1000 Genomes†, l ≤ 1001", projection) is verdict

    @pytest.mark.parametrize(
        ("last", "verdict"),
        [(0.39, Verdict.REPRODUCED), (0.2, Verdict.NOT), (0.3405, Verdict.UNKNOWN)],
    )
    def test_an_error_that_hardly_grows(self, last, verdict):
        """10 % more error than at R² = 0.4 is R² = 0.34: too close to it, nothing is said."""
        projection = curve("1kg", "proj-x", lambda l: 0.4 if l < 1001 else last)
        assert one("c2", "1000 Genomes†, l ≤ 1001", projection) is verdict

    @pytest.mark.parametrize(
        ("sign", "verdict"), [(1, Verdict.REPRODUCED), (-1, Verdict.NOT), (0, Verdict.OPEN)]
    )
    def test_gauss_at_large_n(self, sign, verdict):
        l = (1, 10, 25, 100, 500, 1000, 5000)
        parts = (
            curve("gan", "gauss", lambda l: 0.40 + 0.02 * sign, l=l),
            curve("gan", "proj-x", lambda l: 0.40, l=l),
        )
        if sign == 0:  # the same mean, with noise of its own
            parts = (
                parts[0],
                [row for k in l for row in rows("gan", k, "proj-x", around(0.4, -0.002))],
            )
        assert one("d1", "GAN, n = 500 000", *parts) is verdict

    def test_another_n_does_not_answer_for_half_a_million(self):
        l = (1, 10, 100, 5000)
        parts = (
            curve("gan", "gauss", lambda l: 0.42, l=l, n=20_000),
            curve("gan", "proj-x", lambda l: 0.40, l=l, n=20_000),
        )
        data = "GAN, n = 500 000 (this run has n = 20 000)"
        assert one("d1", data, *parts) is Verdict.UNKNOWN

    @pytest.mark.parametrize("straight", [True, False])
    def test_a_log_ratio_that_is_linear_in_log_l(self, straight):
        def at(l):
            ratio = 0.1 + 0.1 * math.log(l) if straight else math.log1p(1e-4 * l)
            return 1 - (1 - EXACT) * math.exp(ratio)

        gauss = [
            row
            for l in (1, 10, 25, 100, 500, 1000, 5000)
            for row in rows("gan", l, "gauss", [at(l)] * 3)
        ]
        found = one("d2", "GAN, n = 500 000, ReuseCovGauss", gauss)
        assert found is (Verdict.REPRODUCED if straight else Verdict.NOT)
        claim = next(c for c in judge(Scores(gauss)) if c.key == "d2")
        why = next(f.why for f in claim.findings if f.variant == "calibrated")
        assert ("power of l" in why) is not straight

    @pytest.mark.parametrize("power", [0.3, 1.0])
    def test_a_projection_that_catches_up(self, power):
        """Privacy adds c·√l to the error under Gauss, 2c·l^power under the projection."""

        def added(how_much):
            return 1 - (1 - EXACT) * (1 + how_much)

        parts = []
        for l in (1, 10, 100, 1000):
            wobble = [1.0, 1.01, 0.99]
            gauss = [added(1e-3 * w * l**0.5) for w in wobble]
            projection = [added(2e-3 * w**2 * l**power) for w in wobble]
            parts += rows("gan", l, "gauss", gauss) + rows("gan", l, "proj-x", projection)
        expected = Verdict.REPRODUCED if power < 0.5 else Verdict.NOT
        assert one("d3", "GAN, n = 500 000", parts) is expected

    @pytest.mark.parametrize("sign", [1, -1])
    def test_the_projection_beyond_what_the_paper_ran(self, sign):
        def part(method, value):
            return rows("gan", 100_000, method, around(value), n=1_000_000)

        parts = part("gauss", 0.2), part("proj-x", 0.2 + 0.05 * sign)
        expected = Verdict.REPRODUCED if sign == 1 else Verdict.NOT
        assert one("d4", "GAN, n = 1 000 000, l = 100 000", *parts) is expected

    @pytest.mark.parametrize(
        ("change", "verdict"),
        [(0.05, Verdict.REPRODUCED), (-0.05, Verdict.NOT), (0.0, Verdict.UNKNOWN)],
    )
    def test_the_order_for_outcomes_of_a_network(self, change, verdict):
        parts = []
        for outcomes, ahead in (("linear", 0.05), ("mlp", change)):
            for l in (1, 11, 101):
                parts += rows("gaussian", l, "gauss", around(0.3), outcomes=outcomes)
                noise = around(0.3 + ahead, -0.003)
                parts += rows("gaussian", l, "proj-x", noise, outcomes=outcomes)
        assert one("e", "ReuseCovGauss and ReuseCovProj_X", parts) is verdict

    @pytest.mark.parametrize(("ahead", "verdict"), [(0.1, "REPRODUCED"), (-0.1, "NOT")])
    def test_dpsgd_on_mnist(self, ahead, verdict):
        l = (1, 11, 101)
        parts = (
            curve("mnist", "gauss", lambda l: 0.2, l=l),
            curve("mnist", "dpsgd-each", lambda l: 0.2 + ahead, l=l),
        )
        assert one("f1", "MNIST, against ReuseCovGauss", *parts) is Verdict[verdict]
        assert one("f1", "MNIST, against ReuseCovProj_X", *parts) is Verdict.UNKNOWN

    @pytest.mark.parametrize(
        ("leads", "verdict"),
        [
            ({1: 0.3, 11: 0.2, 101: 0.1}, Verdict.REPRODUCED),
            ({1: 0.1, 11: 0.2, 101: 0.3}, Verdict.NOT),
            ({1: 0.2, 11: 0.2, 101: 0.2}, Verdict.NOT),
            ({1: -0.1, 11: -0.2, 101: -0.3}, Verdict.NOT),
        ],
    )
    def test_the_lead_of_dpsgd(self, leads, verdict):
        parts = (
            curve("mnist", "gauss", lambda l: 0.2, l=tuple(leads)),
            curve("mnist", "dpsgd-each", lambda l: 0.2 + leads[l], l=tuple(leads)),
        )
        parts = (
            parts[0],
            [
                row
                for l, lead in leads.items()
                for row in rows("mnist", l, "dpsgd-each", around(0.2 + lead, -0.002))
            ],
        )
        assert one("f2", "MNIST, against ReuseCovGauss", *parts) is verdict

    @pytest.mark.parametrize(
        ("first", "verdict"),
        [(11, Verdict.REPRODUCED), (401, Verdict.NOT), (10**9, Verdict.NOT)],
    )
    def test_the_crossing_against_theory(self, first, verdict):
        """n^(2/3) is 293 for 1000 Genomes."""
        gauss = curve("1kg", "gauss", lambda l: 0.3)
        projection = curve("1kg", "proj-x", lambda l: 0.35 if l >= first else 0.25)
        assert one("g", "1000 Genomes†, Proj_X", gauss, projection) is verdict

    @pytest.mark.parametrize("ahead", [0.1, -0.1])
    def test_naive_composition(self, ahead):
        parts = (
            curve("1kg", "gauss", lambda l: 0.2 + ahead),
            curve("1kg", "ssp-gdp", lambda l: 0.2),
        )
        expected = Verdict.NOT if ahead > 0 else Verdict.REPRODUCED
        assert one("h", "1000 Genomes†, l < n/√d = 1002", *parts) is expected

    def test_a_difference_below_two_standard_errors_is_none(self):
        noisy = [0.1, 0.5, 0.2, 0.4]
        gauss = [row for l in L for row in rows("1kg", l, "gauss", noisy)]
        close = [row for l in L for row in rows("1kg", l, "proj-x", [0.45, 0.2, 0.4, 0.2])]
        assert one("a1", "1000 Genomes†, l ≥ 11", gauss, close) is Verdict.OPEN
        text = claims_section(judge(Scores(gauss + close)))
        assert "No difference at l = 11 to 1001" in text
        # The same means from paired data are a difference.
        paired = [row for l in L for row in rows("1kg", l, "proj-x", [v + 0.0125 for v in noisy])]
        assert one("a1", "1000 Genomes†, l ≥ 11", gauss, paired) is Verdict.REPRODUCED

    def test_nothing_is_judged_on_one_repeat(self):
        parts = [
            row
            for l in L
            for method, value in (("gauss", 0.1), ("proj-x", 0.4))
            for row in rows("1kg", l, method, [value])
        ]
        assert one("a1", "1000 Genomes†, l ≥ 11", parts) is Verdict.UNKNOWN

    def test_without_scores_nothing_is_judged(self):
        found = [f for claim in judge(Scores([])) for f in claim.findings]
        assert found
        assert {f.verdict for f in found} == {Verdict.UNKNOWN}
        assert not any(f.why for f in found)

    def test_every_claim_that_fails_has_a_reason(self):
        scores = Scores(everything())
        failed = [f for c in judge(scores) for f in c.findings if f.verdict is Verdict.NOT]
        assert failed
        assert all(f.why for f in failed)
