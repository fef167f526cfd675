"""The summary and the budgets on the page of the reproduction."""

import pytest

from experiments.figures.page.budgets import budgets_section
from experiments.figures.page.compare import Scores, estimate
from experiments.figures.page.summary import FIELD, contests, counts, losses, summary_section
from experiments.figures.page.wording import name
from experiments.figures.results import Score
from page_scores import around, rows


class TestSummary:
    def both(self, *parts):
        scores = Scores(row for part in parts for row in part)
        return scores, contests(scores)

    def test_methods_above_the_true_budget_are_left_out(self):
        parts = rows("1kg", 11, "primo", around(0.3)), rows("1kg", 11, "adassp", around(0.2))
        cheat = rows("1kg", 11, "dpsgd-joint", around(0.4), epsilon=5.1)
        scores, found = self.both(*parts, cheat)
        assert set(found[0].means) == {"primo", "adassp"}
        assert losses(scores, found) == []
        assert "over budget" not in summary_section(Scores([*parts[0], *parts[1]]))
        text = summary_section(scores)
        assert "0.400" not in text
        fair = rows("1kg", 11, "dpsgd-joint", around(0.4), epsilon=5.0 * (1 + 1e-10))
        scores, found = self.both(*parts, fair)
        assert [loss.rival for loss in losses(scores, found)] == ["dpsgd-joint"]

    def test_a_larger_delta_is_over_budget_too(self):
        cheat = [
            Score(**{**vars(row), "delta_true": 2 * row.delta_true})
            for row in rows("1kg", 11, "adassp", around(0.4))
        ]
        _, found = self.both(rows("1kg", 11, "primo", around(0.3)), cheat)
        assert found[0].over_budget == ("adassp",)

    def test_losers_are_listed_with_margin_and_error(self):
        ours = rows("mnist", 11, "primo", [0.30, 0.32, 0.28, 0.30])
        theirs = rows("mnist", 11, "dpsgd-joint", [0.36, 0.37, 0.35, 0.36])
        scores, found = self.both(ours, theirs)
        (loss,) = losses(scores, found)
        assert loss.margin.mean == pytest.approx(0.06)
        differences = [0.06, 0.05, 0.07, 0.06]
        assert loss.margin.error == pytest.approx(estimate(differences).error)
        text = summary_section(scores)
        assert "| MNIST | 5000 | 11 | both | DP-SGD (joint) | 0.300 | +0.0600 ± 0.0041 |" in text
        assert "on **0 of 1 cells**" in text

    def test_margins_pair_the_repeats_that_both_have(self):
        ours = rows("mnist", 11, "primo", [0.3, 0.4, 0.9, 0.9])
        theirs = rows("mnist", 11, "dpsgd-joint", [0.31, 0.41])
        scores, found = self.both(ours, theirs)
        (loss,) = losses(scores, found)
        assert loss.margin.mean == pytest.approx(0.01)
        assert loss.margin.repeats == 2
        assert found[0].best == {"dpsgd-joint"}

    @pytest.mark.parametrize(
        ("gain", "reason"), [(0.1, "covariance noise"), (0.03, "unexplained"), (None, "probably")]
    )
    def test_covariance_noise_is_tested_and_not_assumed(self, gain, reason):
        parts = [
            rows("mnist", 11, "primo", around(0.30)),
            rows("mnist", 11, "dpsgd-joint", around(0.36)),
        ]
        if gain is not None:
            parts.append(rows("mnist", 11, "primo-outcomes", around(0.30 + gain, 0.002)))
        scores, found = self.both(*parts)
        assert reason in losses(scores, found)[0].reason

    def test_a_few_features_do_not_explain_a_loss(self):
        parts = rows("1kg", 11, "primo", around(0.3)), rows("1kg", 11, "dpsgd-each", around(0.4))
        scores, found = self.both(*parts)
        assert losses(scores, found)[0].reason == "unexplained"

    def test_the_same_sums_with_better_coefficients(self):
        parts = rows("1kg", 11, "primo", around(0.3)), rows("1kg", 11, "adassp", around(0.4))
        scores, found = self.both(*parts)
        assert losses(scores, found)[0].reason.startswith("estimator")

    def test_margins_within_noise_are_listed_as_such(self):
        ours = rows("1kg", 11, "primo", [0.30, 0.40, 0.20, 0.30])
        theirs = rows("1kg", 11, "adassp", [0.41, 0.29, 0.32, 0.22])
        scores, found = self.both(ours, theirs)
        (loss,) = losses(scores, found)
        assert loss.noise
        assert loss.reason.startswith("within noise")
        assert "Clearly behind: none." in summary_section(scores)
        assert "behind within noise on 1" in counts(found)

    def test_a_tie_is_no_loss(self):
        parts = rows("1kg", 11, "primo", around(0.3)), rows("1kg", 11, "adassp", around(0.3))
        scores, found = self.both(*parts)
        assert losses(scores, found) == []
        assert found[0].best == {"primo", "adassp"}
        assert "on **1 of 1 cells**" in counts(found)

    def test_the_best_of_a_row_is_bold(self):
        parts = (
            rows("1kg", 11, "ols", around(0.45)),
            rows("1kg", 11, "primo", around(0.3)),
            rows("1kg", 11, "adassp", around(0.25)),
            rows("1kg", 11, "gauss", around(-12.0)),
            rows("1kg", 11, "ssp-gdp", around(-1000.0)),
        )
        text = summary_section(Scores(row for part in parts for row in part))
        assert "| 11 | 0.450 | **0.300** | −12 | < −100 | 0.250 |" in text
        assert "**0.450**" not in text

    def test_cells_without_dp_sgd_are_counted_apart(self):
        parts = (
            rows("1kg", 11, "primo", around(0.3)),
            rows("1kg", 11, "dpsgd-joint", around(0.4)),
            rows("1kg", 101, "primo", around(0.3)),
            rows("1kg", 101, "adassp", around(0.2)),
        )
        lines = counts(self.both(*parts)[1]).splitlines()
        assert "DP-SGD (joint) among them, on **0 of 1 cells**" in lines[0]
        assert "DP-SGD (joint) was not run, on **1 of 1 cells**" in lines[1]

    def test_a_row_has_means_over_the_same_draws(self):
        parts = (
            rows("1kg", 11, "primo", [0.3, 0.31, 0.1, 0.1]),
            rows("1kg", 11, "ols", [0.5, 0.5, 0.1, 0.1]),
            rows("1kg", 11, "dpsgd-joint", [0.2, 0.21]),
        )
        text = summary_section(Scores(row for part in parts for row in part))
        assert "| 11 | 0.500 | **0.305** | 0.205 |" in text

    def test_protections_do_not_mix(self):
        parts = (
            rows("1kg", 11, "primo-outcomes", around(0.3)),
            rows("1kg", 11, "proj-x", around(0.2)),
            rows("1kg", 11, "primo", around(0.1)),
            rows("1kg", 11, "adassp", around(0.05)),
        )
        scores, found = self.both(*parts)
        assert losses(scores, found) == []
        assert {c.protection: c.best for c in found} == {
            "both": {"primo"},
            "outcomes": {"primo-outcomes"},
        }

    def test_the_field_is_that_of_the_methods(self):
        methods = pytest.importorskip("experiments.figures.methods").METHODS
        for protection, (ours, rivals) in FIELD.items():
            assert {methods[m].protection for m in (ours, *rivals)} == {protection}
        rivals = {m for _, some in FIELD.values() for m in some}
        assert {m.name for m in methods.values() if m.baseline} <= rivals
        assert all(name(m) != m or m in ("primo", "ridge") for m in methods)


class TestBudgets:
    def test_true_budgets_and_the_version_that_keeps_them(self):
        scores = Scores(
            rows("1kg", 11, "gauss-printed", around(0.2), epsilon=6.8465)
            + rows("1kg", 11, "gauss", around(0.3, 0.004))
            + rows("1kg", 11, "proj-x-printed", around(0.3), epsilon=4.2263)
        )
        text = budgets_section(scores)
        assert "| Gauss (printed) | both | **6.85** |" in text
        assert "| Proj_X (printed) | outcomes | 4.23 |" in text
        assert "| 1000 Genomes† | 5008 | 11 | 6.85 | 0.200 | 0.300 | +0.1000 ± 0.0027 |" in text
        assert "**Proj_X (printed)** keeps the budget" in text

    def test_a_method_that_keeps_its_claim_is_not_accused(self):
        text = budgets_section(Scores(rows("1kg", 11, "gauss-printed", around(0.2), epsilon=5.0)))
        assert "spends more" not in text
