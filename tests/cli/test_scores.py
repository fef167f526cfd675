"""One rule for missing genotypes, swapped alleles and absent variants; the same as in plink2."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from primo.cli import demo
from primo.cli.demo import _write_bed
from primo.released.bundle import read_bundle
from primo.released.public_means import public_means
from primo.rows.sources.genotypes.plink import open_bed

MISSING = 0b01  # of a .bed


def genotypes(prefix="cohort"):
    columns = open_bed(prefix)
    return np.vstack(list(columns.blocks(range(columns.n), 1000))).astype(float)


def table(path):
    lines = [line.split("\t") for line in Path(path).read_text().splitlines()]
    return lines[0], lines[1:]


@pytest.fixture
def scored(folder, primo):
    """A release of genotypes alone, and a copy `new` of the cohort in which a tenth is missing."""
    Path("limits.toml").write_text("[outcomes]\nlower = -5\nupper = 5\nnorm = 2.2\n")
    primo(
        "fit --bfile cohort --pheno traits.tsv --bounds limits.toml --epsilon 5 --delta 1e-8 "
        "--out scored"
    )
    for ending in ("bim", "fam"):
        shutil.copy(f"cohort.{ending}", f"new.{ending}")
    code = np.frombuffer(Path("cohort.bed").read_bytes()[3:], dtype=np.uint8)
    rng = np.random.default_rng(3)
    for k in range(4):
        hit = rng.random(len(code)) < 0.1
        code = np.where(hit, code & (0xFF ^ 3 << 2 * k) | MISSING << 2 * k, code)
    Path("new.bed").write_bytes(bytes([0x6C, 0x1B, 0x01]) + code.astype(np.uint8).tobytes())
    assert 0.08 < np.isnan(genotypes("new")).mean() < 0.12
    return read_bundle(Path("scored"))


def predicted(primo, line):
    Path("p.tsv").unlink(missing_ok=True)
    _, said = primo(f"predict scored {line} --out p.tsv")
    header, rows = table("p.tsv")
    return header, np.array([row[1:] for row in rows], dtype=float), said


def expected(bundle, features):
    means = public_means(bundle.release)
    return bundle.coefficients().predict(np.where(np.isfinite(features), features, means))


def test_missing_genotypes_count_as_the_public_mean(scored, primo):
    header, found, _ = predicted(primo, "--bfile new")
    assert header[0] == "IID"
    np.testing.assert_allclose(found, expected(scored, genotypes("new")), atol=1e-6)


def test_the_public_mean_is_near_the_truth(scored):
    """It is released with noise, so it is neither the middle of 0 to 2 nor exact."""
    means, truth = public_means(scored.release), genotypes().mean(axis=0)
    middle = np.abs(1 - truth).mean()
    assert 0 < np.abs(means - truth).mean() < 0.2 * middle


@pytest.mark.skipif(shutil.which("plink2") is None, reason="plink2 is not installed")
@pytest.mark.parametrize("case", ["complete", "missing", "swapped", "absent"])
def test_plink2_gives_the_same(scored, primo, primo_json, case):
    if case == "swapped":
        swap_alleles()
    if case == "absent":
        keep_variants(20)
    name = "cohort" if case == "complete" else "new"
    made = primo_json("score-file scored --out scores.tsv")
    subprocess.run(
        [*made["plink2"].replace("NEW", name).split(), "--out", "scored"],
        check=True,
        capture_output=True,
    )
    header, rows = table("scored.sscore")
    sums = [i for i, name in enumerate(header) if name.endswith("_SUM") and "ALLELE" not in name]
    found = np.array([[float(row[i]) for i in sums] for row in rows])
    names, outcomes = table(made["outcomes_file"])
    place = names.index("intercept")
    found += np.array([float(row[place]) for row in outcomes])
    if case == "absent":  # plink2 leaves them out
        found += public_means(scored.release)[20:] @ scored.coefficients().slopes[20:]
    _, own, _ = predicted(primo, f"--bfile {name}")
    assert found.shape == own.shape
    np.testing.assert_allclose(found, own, atol=2e-5 * np.abs(own).max())


def swap_alleles():
    """Let the copy count the other allele of every second variant."""
    values = genotypes()
    values[:, ::2] = 2 - values[:, ::2]
    Path("new.bed").unlink()
    _write_bed(Path("new.bed"), values.astype(np.int8))
    lines = Path("cohort.bim").read_text().splitlines()
    for i in range(0, len(lines), 2):
        cells = lines[i].split("\t")
        cells[4:] = cells[:3:-1]
        lines[i] = "\t".join(cells)
    Path("new.bim").write_text("\n".join(lines) + "\n")


def keep_variants(count):
    """Drop all variants of the copy but the first ones."""
    size = -(-demo.PEOPLE // 4)
    whole = Path("new.bed").read_bytes()
    Path("new.bed").write_bytes(whole[: 3 + count * size])
    lines = Path("new.bim").read_text().splitlines(keepends=True)
    Path("new.bim").write_text("".join(lines[:count]))


def test_swapped_alleles_give_the_same_predictions(scored, primo):
    _, plain, _ = predicted(primo, "--bfile cohort")
    swap_alleles()
    _, found, said = predicted(primo, "--bfile new")
    np.testing.assert_allclose(found, plain, atol=1e-6)
    assert "count the other allele" in said


def test_absent_variants_count_as_the_public_mean(scored, primo):
    keep_variants(20)
    _, found, said = predicted(primo, "--bfile new")
    features = genotypes("new")
    padded = np.full((len(features), len(scored.variants)), np.nan)
    padded[:, :20] = features
    np.testing.assert_allclose(found, expected(scored, padded), atol=1e-6)
    assert f"{len(scored.variants) - 20} of the {len(scored.variants)} variants" in said
    for option in ("--strict", "--missing error"):
        _, said = primo(f"predict scored --bfile new --out q.tsv {option}", code=2)
        assert "not in the genotype file" in said


def test_other_alleles_are_another_variant(scored, primo):
    text = Path("new.bim").read_text().replace("\tA\tG\n", "\tA\tT\n", 1)
    Path("new.bim").write_text(text)
    _, _, said = predicted(primo, "--bfile new")
    assert "1 of them have other alleles" in said


def test_what_a_release_fixes_is_no_option_of_predict(scored, primo):
    for option in ("--features rs1000", "--outcomes x", "--frequencies f.afreq", "--pheno t.tsv"):
        _, said = primo(f"predict scored --bfile new --out q.tsv {option}", code=2)
        assert "No such option" in said
