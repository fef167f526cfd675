"""Blocks from a public panel, and a panel's correlations for a release that holds the diagonal."""

from pathlib import Path

import numpy as np
import pytest

from primo.cli.demo import _genotypes
from primo.ledger import open_ledger
from primo.released.bundle import read_bundle

N, PUBLIC, D, CHROMOSOMES = 4000, 600, 30, 3
FIT = "fit --bfile chr* --pheno traits.txt --bounds bounds.toml --epsilon 20 --delta 1e-8"


def write(prefix, genotypes, who, columns, *, counted="A", other="G", move=0):
    """Write a fileset of some of the thirty variants."""
    people = "".join(f"{who}{i}\t{who}{i}\t0\t0\t0\t-9\n" for i in range(len(genotypes)))
    Path(f"{prefix}.fam").write_text(people)
    lines = (
        f"{1 + j // 10}\trs{j}\t0\t{100 * (j + 1) + move}\t{counted}\t{other}\n" for j in columns
    )
    Path(f"{prefix}.bim").write_text("".join(lines))
    code = np.array([0b11, 0b10, 0b00], dtype=np.uint8)[genotypes[:, list(columns)].T]
    code = np.pad(code, ((0, 0), (0, -len(genotypes) % 4))).reshape(len(columns), -1, 4)
    packed = code[..., 0] | code[..., 1] << 2 | code[..., 2] << 4 | code[..., 3] << 6
    Path(f"{prefix}.bed").write_bytes(bytes([0x6C, 0x1B, 0x01]) + packed.tobytes())


@pytest.fixture
def genotypes(tmp_path, monkeypatch):
    """A cohort in three files of ten linked variants, a phenotype, and a panel in one file."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    frequency = rng.uniform(0.2, 0.5, D)
    cohort, public = (_genotypes(rng, frequency, count) for count in (N, PUBLIC))
    for k in range(CHROMOSOMES):
        write(f"chr{k + 1}", cohort, "person", range(10 * k, 10 * k + 10))
    write("panel", public, "public", range(D))
    height = cohort @ rng.normal(size=D) / 3 + rng.normal(size=N)
    height = (height - height.mean()) / height.std()
    rows = "".join(f"person{i} person{i} {y:.5f}\n" for i, y in enumerate(height))
    Path("traits.txt").write_text("FID IID height\n" + rows)
    Path("bounds.toml").write_text("[outcomes]\nlower = -3\nupper = 3\n")
    return cohort, public, height


def slopes(path):
    return np.genfromtxt(path, skip_header=1, usecols=2)


def test_blocks_of_a_panel_are_blocks_of_a_release(genotypes, primo, primo_json):
    found = primo_json("ld-blocks --panel panel.bed --least 2 --most 6 --out blocks.bed")
    assert found["people"] == PUBLIC
    assert found["variants"] == D
    assert 2 <= found["smallest"] <= found["largest"] <= 6
    lines = Path("blocks.bed").read_text().splitlines()
    assert len(lines) == found["blocks"]
    assert {line.split("\t")[0] for line in lines} == {"1", "2", "3"}
    frequencies = "--frequencies panel.bed"
    blocks = "--covariance blocks --ld-blocks blocks.bed"
    _, told = primo(f"{FIT} {frequencies} {blocks} --out release")
    assert f"Blocks of variants: {found['blocks']}" in told
    assert read_bundle(Path("release")).release.plan.blocks.count == found["blocks"]
    # One file per chromosome holds the same panel.
    for k in range(CHROMOSOMES):
        write(f"public{k + 1}", genotypes[1], "public", range(10 * k, 10 * k + 10))
    primo("ld-blocks --panel public*.bed --least 2 --most 6 --out same.bed")
    assert Path("same.bed").read_bytes() == Path("blocks.bed").read_bytes()
    Path("some.txt").write_text("\n".join(f"rs{j}" for j in range(12)))
    some = primo_json("ld-blocks --panel panel --extract some.txt --least 2 --out some.bed")
    assert some["variants"] == 12


def test_a_dry_run_says_what_is_released_of_the_covariance(genotypes, primo):
    Path("blocks.bed").write_text("1 0 9000\n2 0 9000\n3 0 9000\n")
    line = f"{FIT} --frequencies panel.bed --dry-run --covariance"
    alone = "Covariance: its diagonal alone; coefficients are made from each feature alone."
    assert alone in primo(f"{line} none")[0]
    assert alone in primo(f"{line} panel")[0]
    told = primo(f"{line} panel --ld-panel panel.bed")[0]
    assert "made with the panel's correlations, which the prediction does not count in" in told
    told = primo(f"{line} blocks --ld-blocks blocks.bed")[0]
    assert "Covariance: inside 3 blocks of features, nothing between them." in told
    assert "Covariance:" not in primo(f"{line} full")[0]


def test_a_panel_stands_in_for_the_covariance(genotypes, primo, primo_json):
    cohort, public, height = genotypes
    for end in ("--dry-run", "--out release"):
        _, told = primo(f"{FIT} --frequencies panel.bed --covariance panel {end}")
        assert told.count("without --ld-panel no linkage is used") == 1
    primo("score-file release --out plain.tsv")
    made = primo_json("score-file release --ld-panel panel.bed --out linked.tsv")
    assert f"public panel of {PUBLIC} people" in made["linkage"]

    def explained(path):
        return np.corrcoef(cohort @ slopes(path), height)[0, 1] ** 2

    assert explained("linked.tsv") > explained("plain.tsv") + 0.03
    # A panel that counts the other alleles says the same.
    write("other", 2 - public, "public", range(D), counted="G", other="A")
    made = primo_json("score-file release --ld-panel other.bed --out other.tsv")
    assert "30 variants were counted by the other allele" in made["linkage"]
    np.testing.assert_allclose(slopes("other.tsv"), slopes("linked.tsv"), rtol=1e-6)
    # Blocks of one chromosome each, stated.
    Path("blocks.bed").write_text("1 0 9000\n2 0 9000\n3 0 9000\n")
    line = "score-file release --ld-panel panel.bed --ld-blocks blocks.bed --pgs-catalog --out pgs"
    assert "(median of 3 blocks)" in primo(line)[1]
    assert len(list(Path("pgs").iterdir())) == 1


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"move": 7}, "Lift the panel to the build of the cohort"),
        ({"counted": "T", "other": "C"}, "same strand"),
        ({"counted": "A", "other": "C"}, "take a panel that has these alleles"),
        ({"counted": "G", "other": "A"}, "Check that the panel counts the same alleles"),
        ({"columns": range(20)}, "the panel lacks 10 of the 30 variants"),
    ],
    ids=["another build", "another strand", "other alleles", "swapped alleles", "fewer variants"],
)
def test_panels_that_do_not_fit_are_refused_with_the_remedy(genotypes, primo, bad, said):
    primo(f"{FIT} --frequencies panel.bed --covariance none --out release")
    public = genotypes[1]
    write("bad", public, "public", **({"columns": range(D)} | bad))
    _, told = primo("score-file release --ld-panel bad.bed --out scores.tsv", code=2)
    assert said in " ".join(told.split())
    assert not Path("scores.tsv").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("score-file whole --ld-panel panel.bed --out x", "release with --covariance panel"),
        ("score-file whole --ld-blocks panel.bed --out x", "--ld-blocks goes with --ld-panel"),
        ("ld-blocks --panel nothing.bed --out x", "--panel: there is no file 'nothing.bed'"),
        ("ld-blocks --panel panel.bed --least 9 --most 3 --out x", "--least 9 must be"),
        ("ld-blocks --panel panel.bed --out panel.bim", "exists already"),
        ("ld-blocks --panel panel.bed --force --out panel.bed", "which this command reads"),
    ],
)
def test_what_cannot_be_done_is_refused(genotypes, primo, line, said):
    if "whole" in line:
        primo(f"{FIT} --out whole")
    _, told = primo(line, code=2)
    assert said in " ".join(told.split())
    assert not Path("x").exists()


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"move": 7}, "in the cohort and at 107 in the panel: they are of different genome builds"),
        ({"counted": "T", "other": "C"}, "same strand"),
        ({"counted": "A", "other": "C"}, "take a panel that has these alleles"),
    ],
)
def test_blocks_are_found_for_the_variants_of_the_cohort(genotypes, primo, primo_json, bad, said):
    Path("chr3.bed").unlink()
    found = primo_json("ld-blocks --panel panel.bed --bfile chr* --least 2 --out blocks.bed")
    assert found["variants"] == 20
    write("bad", genotypes[1], "public", range(D), **bad)
    _, told = primo("ld-blocks --panel bad.bed --bfile chr* --out x", code=2)
    assert said in " ".join(told.split())
    assert not Path("x").exists()


def test_missing_calls_of_a_panel_are_refused(genotypes, primo):
    packed = bytearray(Path("panel.bed").read_bytes())
    packed[3] = 0b01010101
    Path("panel.bed").write_bytes(packed)
    _, told = primo("ld-blocks --panel panel.bed --out x", code=2)
    assert "--panel has missing values" in " ".join(told.split())


PANEL_FIT = f"{FIT} --frequencies panel.bed --covariance panel"


def test_scores_of_a_fit_are_made_with_its_panel(genotypes, primo, primo_json):
    """Published coefficients, score file, report, inspect and predictions carry the panel's linkage."""
    made = primo_json(f"{PANEL_FIT} --ld-panel panel.bed --out release")
    assert "no linkage is used" not in primo(f"{PANEL_FIT} --ld-panel panel.bed --dry-run")[1]
    assert f"public panel of {PUBLIC} people" in made["linkage"]
    bundle = read_bundle(Path("release"))
    assert bundle.linkage == made["linkage"] == bundle.manifest["linkage"]
    primo("score-file release --out own.tsv")
    primo("score-file release --ld-panel panel.bed --out again.tsv")
    np.testing.assert_allclose(slopes("own.tsv"), slopes("again.tsv"), rtol=1e-6)
    np.testing.assert_allclose(slopes("own.tsv"), bundle.coefficients().slopes[:, 0], rtol=1e-6)
    # What is released stays the diagonal, from which summary statistics are made.
    alone = bundle.release.coefficients().slopes[:, 0]
    assert np.abs(alone - slopes("own.tsv")).max() > 0.05 * np.abs(alone).max()
    assert bundle.release.plan.blocks.count == D
    primo("sumstats release --format ldsc --out sums")
    assert f"panel of {PUBLIC} people" in " ".join(primo("inspect release")[1].split())
    primo("report release --out report.html")
    page = Path("report.html").read_text(encoding="utf-8")
    assert f"public panel of {PUBLIC} people" in page
    primo("predict release --bfile panel --out predicted.tsv")
    predicted = np.genfromtxt("predicted.tsv", skip_header=1)[:, -1]
    expected = genotypes[1] @ slopes("own.tsv")
    assert np.corrcoef(predicted, expected)[0, 1] > 0.999999


def test_a_panel_may_state_its_blocks(genotypes, primo_json):
    Path("blocks.bed").write_text("1 0 9000\n2 0 9000\n3 0 9000\n")
    line = f"{PANEL_FIT} --ld-panel panel.bed --ld-blocks blocks.bed --out release"
    assert "(median of 3 blocks)" in primo_json(line)["linkage"]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ({"move": 7}, "in the cohort and at 107 in the panel: they are of different genome builds"),
        ({"counted": "T", "other": "C"}, "same strand"),
        ({"counted": "A", "other": "C"}, "take a panel that has these alleles"),
        ({"columns": range(20)}, "the panel lacks 10 of the 30 variants"),
        ({"who": "person"}, "correlations of private people would leak"),
    ],
    ids=["another build", "another strand", "other alleles", "fewer variants", "the cohort itself"],
)
def test_a_panel_that_does_not_fit_is_refused_before_the_charge(genotypes, primo, bad, said):
    primo("ledger init book --epsilon 25 --delta 1e-6 --person-column IID")
    write("bad", genotypes[1], **({"who": "public", "columns": range(D)} | bad))
    _, told = primo(f"{PANEL_FIT} --ld-panel bad.bed --ledger book --out release", code=2)
    assert said in " ".join(told.split())
    assert not Path("release").exists()
    assert not Path("release.partial").exists()
    assert len(open_ledger("book").history()) == 1  # that it was made, and no charge


def test_swapped_alleles_that_the_panel_does_not_tell_leave_it_unused(genotypes, primo_json, primo):
    """Released frequencies show it, after the charge: the release is published without the panel."""
    write("bad", genotypes[1], "public", range(D), counted="G", other="A")
    made = primo_json(f"{PANEL_FIT} --ld-panel bad.bed --out release")
    assert made["linkage"].startswith("the public panel was not used: the allele frequencies")
    assert "at no cost by `primo score-file RELEASE --ld-panel PANEL`" in made["linkage"]
    primo("score-file release --out own.tsv")
    bundle = read_bundle(Path("release"))
    alone = bundle.release.coefficients().slopes[:, 0]
    np.testing.assert_allclose(slopes("own.tsv"), alone, rtol=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--covariance none --ld-panel panel.bed", "--ld-panel goes with --covariance panel"),
        ("--ld-panel panel.bed", "--ld-panel goes with --covariance panel"),
        ("--covariance panel --ld-panel no.bed", "there is no file 'no.bed'"),
        (
            "--covariance panel --ld-panel panel.bed --covar covar.txt",
            "1 of the features are no variants",
        ),
    ],
)
def test_panels_that_nothing_uses_are_refused(genotypes, primo, options, said):
    rows = "".join(f"person{i} person{i} {i % 7}\n" for i in range(N))
    Path("covar.txt").write_text("FID IID age\n" + rows)
    _, told = primo(f"{FIT} --frequencies panel.bed {options} --out release", code=2)
    assert said in " ".join(told.split())
    assert not Path("release").exists()


def test_noise_on_the_outcomes_and_public_features_in_blocks(genotypes, primo, primo_json):
    """From files of chromosomes to scores, summary statistics and a report, with no whole matrix."""
    cohort, _, height = genotypes
    Path("blocks.bed").write_text("1 0 9000\n2 0 9000\n3 0 9000\n")
    line = f"{FIT} --protect outcomes --association perturbed --covariance blocks"
    line = line.replace("--epsilon 20", "--epsilon 40")  # an LDSC file needs the outcome's variance
    line += " --ld-blocks blocks.bed"
    planned = primo_json(f"{line} --dry-run")
    assert 0.1 < planned["predicted_r2"] < 0.5
    primo(f"{line} --out release")
    bundle = read_bundle(Path("release"))
    assert bundle.release.covariance.size == 0
    primo("score-file release --out scores.tsv")
    found = np.corrcoef(cohort @ slopes("scores.tsv"), height)[0, 1] ** 2
    assert found > 0.33  # least squares without noise: 0.446
    primo("sumstats release --format ldsc --out sums")
    primo("report release --out report.html")
    assert "Variants one by one" in Path("report.html").read_text(encoding="utf-8")
    primo("predict release --bfile panel --out predicted.tsv")
    line = f"{FIT} --protect outcomes --association perturbed --covariance none --out x"
    assert "effects of all features one by one" in " ".join(primo(line, code=2)[1].split())
    assert not Path("x").exists()


def test_a_pattern_that_fits_a_file_of_blocks_says_so(genotypes, primo):
    Path("chrblocks.bed").write_text("1 0 9000\n")
    for line in ("ld-blocks --panel panel.bed --bfile chr* --out x", f"{FIT} --dry-run"):
        _, told = primo(line, code=2)
        assert "the pattern 'chr*.bed' fits 'chrblocks.bed', which has no .bim beside it" in told
        assert "chr[0-9]*" in told
