"""The page of the reproduction: nothing is hard-coded or lost."""

import json
import math
import re

import numpy as np
import pytest

from experiments.figures import results
from experiments.figures.grid import Figure, Run, Study
from experiments.figures.page import write_page
from experiments.figures.page.captions import caption
from experiments.figures.page.compare import Scores, cell_of, estimate
from experiments.figures.page.coverage import coverage_of
from experiments.figures.page.extras import gan_section, times_section, tuning_section
from experiments.figures.page.provenance import describe, read_sources
from experiments.figures.page.wording import budget, count, r2, signed, times
from page_scores import around, everything, rows


class TestPage:
    def write(self, folder, scores):
        studies = {row.study for row in scores}
        for study in studies:
            some = [row for row in scores if row.study == study]
            results.write(some, folder / "results" / f"{study}.parquet")
        return write_page(folder / "results", folder / "reproduction.md").read_text()

    def test_it_is_written_from_what_there_is(self, tmp_path):
        (tmp_path / "figures").mkdir()
        (tmp_path / "figures" / "figure-2a.svg").write_text("<svg/>")
        text = self.write(tmp_path, everything())
        assert "](figures/figure-2a.svg)" in text
        assert "](figures/figure-2b.svg)" not in text, "not drawn"
        assert "Figure 2b" in text
        assert "`abc1234`" in text
        assert "an unfinished run" in text
        assert "Gaussian features (`gaussian`): nothing was run" in text
        assert "no environment" in text
        assert re.search(r"\bnan\b|\binf\b|None", text, re.IGNORECASE) is None

    def test_no_results_at_all(self, tmp_path):
        text = write_page(tmp_path / "results", tmp_path / "page.md").read_text()
        assert "No cell has been run yet." in text
        assert "cannot be judged here" in text
        assert "**not reproduced** |" not in text

    def test_headings_come_once(self, tmp_path):
        text = self.write(tmp_path, everything())
        headings = re.findall(r"^#+ .*$", text, re.MULTILINE)
        assert len(headings) == len(set(headings))

    def test_tables_are_whole(self, tmp_path):
        """Every row of a table has as many cells as its header."""
        width = 0
        for line in self.write(tmp_path, everything()).splitlines():
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert not (width and cells) or cells == width, line
            width = cells

    def test_a_diverged_fit_is_listed_and_not_averaged(self, tmp_path):
        bad = rows("1kg", 11, "adassp", [math.nan, -math.inf, -math.inf])
        bad += rows("1kg", 11, "primo", around(0.3))
        text = self.write(tmp_path, bad)
        assert "AdaSSP at l = 11: no finite R² came out" in text
        assert re.search(r"\bnan\b|\binf\b", text, re.IGNORECASE) is None


class TestCoverage:
    run = Run(
        features="1kg", outcomes="linear", n=5008, d=25, epsilon=5.0,
        l=(1, 11), repeats=4, methods=("ols", "primo"),
    )  # fmt: skip
    figure = Figure(
        name="2a", title="T", metric="r2", methods=("ols", "primo", "gauss"), l=(1, 11),
        outcomes="linear", n=5008,
    )  # fmt: skip
    study = Study(
        name="1kg", title="1000 Genomes", runs=(run,), figures=(figure,),
        quick={"l": [1], "repeats": 2, "leave_out": []},
    )  # fmt: skip

    def scores(self, l=(1, 11), repeats=4):
        values = around(0.3, repeats=repeats)
        return Scores(row for k in l for m in ("ols", "primo") for row in rows("1kg", k, m, values))

    def test_a_whole_run_has_no_banner(self):
        found = coverage_of(self.scores(), [self.study])
        assert found.kind == "full"
        assert found.banner() == ""
        assert found.repeats == (4, 4)

    def test_a_quick_run_says_so_and_lists_what_is_left_out(self):
        found = coverage_of(self.scores(l=(1,), repeats=2), [self.study])
        assert found.kind == "quick"
        assert "a quick run, with 2 repeats per cell" in found.banner()
        assert "l = 11" in found.banner()
        assert "2 of 4 repeats" in found.banner()

    def test_an_interrupted_run_is_unfinished(self):
        assert coverage_of(self.scores(repeats=3), [self.study]).kind == "unfinished"

    def test_a_caption_names_the_best_that_keeps_the_budget(self):
        cheat = rows("1kg", 11, "gauss", around(0.4), epsilon=7.0)
        said = caption(Scores([*self.scores().rows, *cheat]), self.study, self.figure)
        assert "the best of those that keep the budget is primo with R² = 0.300" in said
        assert "the best of all is Gauss (calibrated) with R² = 0.400, true ε = 7.00" in said

    def test_a_caption_does_not_mix_sizes(self):
        other = rows("1kg", 11, "primo", around(0.1), n=10**6)
        other += rows("1kg", 11, "gauss", around(0.05), n=10**6)
        scores = Scores([*self.scores().rows, *rows("1kg", 11, "gauss", around(0.2)), *other])
        assert "primo with R² = 0.300" in caption(scores, self.study, self.figure)


class TestExtras:
    def test_times_are_medians(self):
        parts = [
            rows("1kg", 11, "primo", [0.3], ratio=ratio)[0].__class__(
                **{**vars(rows("1kg", 11, "primo", [0.3], ratio=ratio)[0]), "repeat": i}
            )
            for i, ratio in enumerate((2.0, 3.0, 250.0))
        ]
        assert "| primo | 3.0 |" in times_section(Scores(parts))

    def test_moments_have_no_times(self):
        parts = rows("1kg", 11, "primo", around(0.3), ratio=math.nan)
        assert times_section(Scores(parts)).startswith("No method was run on rows")

    def test_tuning_is_read_and_its_absence_told(self, tmp_path):
        assert "has not been tuned" in tuning_section(tmp_path)
        (tmp_path / "grid.toml").write_text("[values]\nclip_norm = [0.1, 0.2]\n")
        (tmp_path / "tuned.toml").write_text(
            '[[cells]]\nvariant = "joint"\nd = 25\nl = 1001\nclip_norm = 0.2\nr_squared = 0.31\n'
            "least_squares_r_squared = 0.4\ntuning_runs = 12\ntuning_time_in_runs = 9.5\n"
        )
        text = tuning_section(tmp_path)
        assert "| clip norm | 0.1, 0.2 |" in text
        assert "| joint | 25 | 1001 | 0.2\\* | 0.310 | 0.400 |" in text
        (tmp_path / "grid.toml").write_text("[values]\nclip_norm = [0.1, 0.2, 0.4]\n")
        assert "| joint | 25 | 1001 | 0.2 | 0.310 | 0.400 |" in tuning_section(tmp_path)
        assert "12 runs in all" in text

    def test_the_tuning_of_this_repository_is_found(self):
        text = tuning_section()
        assert "What was chosen:" in text
        assert "| joint | 784 | 101 |" in text

    @pytest.mark.parametrize("failures", [[], ["slope of r is 0.5, not in [0.8, 1.2]"]])
    def test_the_check_of_the_gan(self, tmp_path, failures):
        path = tmp_path / "gan-check.json"
        assert "not among these results" in gan_section(path)
        same = {"correlation": 0.98765, "mean_error": 0.01, "max_error": 0.05}
        near = {
            f"{k}{e}": 0.2
            for k in ("median", "closest", "patch", "between")
            for e in ("", "_floor")
        }
        ld = dict.fromkeys(
            ("correlation", "floor", "untrained", "slope", "slope_floor", "mean_r2", "real_r2"), 0.5
        )
        found = {
            "snps": 16_721, "rows": 4834, "held_out": 1208, "failures": failures, "nearest": near,
            "frequency": same, "frequency_floor": same, "frequency_untrained": same,
            "run_error": 0.2, "run_error_floor": 0.1, "run_error_untrained": 0.9,
            "set_error": 0.07, "set_error_floor": 0.06,
            "ld": [ld | {"least": 1, "most": 4, "pairs": 9}],
        }  # fmt: skip
        path.write_text(json.dumps(found))
        text = gan_section(path)
        assert "| allele frequencies: correlation | 0.988 | 0.988 | 0.988 |" in text
        assert "| covariance of 25 SNPs at random: relative error | 0.070 | 0.060 | – |" in text
        assert ("does not pass" in text) is bool(failures)

    def test_the_check_of_the_gan_is_what_the_gan_writes(self, tmp_path):
        check = pytest.importorskip("experiments.figures.gan.check")
        rng = np.random.default_rng(1)
        haplotypes = (rng.random((120, 700)) < rng.uniform(0.1, 0.9, 700)).astype(np.int8)
        match = check.compare(haplotypes, lambda n: haplotypes[:n], lambda n: haplotypes[::-1][:n])
        check.save(match, tmp_path / "gan.pt")
        assert "| 1 to 4 |" in gan_section(tmp_path / "gan.json")

    def test_sources_are_told_from_stand_ins(self, tmp_path):
        features = pytest.importorskip("experiments.figures.features")
        from experiments.figures.page.provenance import record_sources

        record_sources(tmp_path, features.Data(kg=tmp_path / "mine.vcf.gz"), ["1kg", "dbgap"])
        sources = read_sources(tmp_path)
        assert describe("1kg", sources) == "the user's file `mine.vcf.gz`"
        assert "simulated stand-in" in describe("dbgap", sources)
        assert "not record" in describe("1kg", {})


class TestWording:
    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (0.12345, "0.123"),
            (-0.00001, "0.000"),
            (-0.5, "−0.500"),
            (-1.26, "−1.3"),
            (-12.4, "−12"),
            (-1e6, "< −100"),
            (math.nan, "–"),
            (None, "–"),
        ],
    )
    def test_r2(self, value, text):
        assert r2(value) == text

    def test_differences_show_two_figures_of_their_error(self):
        assert signed(estimate([0.1, 0.2, 0.3])) == "+0.200 ± 0.058"
        assert signed(estimate([-0.25])) == "−0.25 (one repeat)"
        assert signed(estimate([-500.0, -700.0])) == "< −100"
        assert signed(None) == "–"

    def test_budgets_are_rounded_up(self):
        assert budget(6.841) == "6.85"
        assert budget(5.0 * (1 + 1e-12)) == "5.00"
        assert budget(1234.5) == "1235"
        assert budget(math.inf) == "∞"

    def test_counts_and_ratios(self):
        assert count(100_000) == "100 000"
        assert count(5008) == "5008"
        assert [times(x) for x in (0.0123, 0.5, 1.0, 2.34, 23.4, 2345.0)] == [
            "0.012", "0.50", "1.0", "2.3", "23", "2300",
        ]  # fmt: skip

    def test_cells_are_those_of_the_grid(self):
        row = rows("1kg", 11, "primo", [0.3])[0]
        assert cell_of(row).delta == row.delta_requested
