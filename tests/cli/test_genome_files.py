"""From one file per chromosome to scores, summary statistics and a report; the same people in BGEN."""

import gzip
import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from primo.released.bundle import read_bundle

ROOT = Path(__file__).parents[2]
N, CHROMOSOMES = 3000, 22
WHO = [f"person{i}" for i in range(N)]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Two variants on each chromosome, people in another order in each file, and one phenotype."""
    to_bed = pytest.importorskip("bed_reader").to_bed
    folder = tmp_path_factory.mktemp("chromosomes")
    rng = np.random.default_rng(7)
    copies = rng.binomial(2, 0.4, size=(N, 2 * CHROMOSOMES)).astype(float)
    for k in range(CHROMOSOMES):
        order = rng.permutation(N)
        properties = {
            "fid": [WHO[i] for i in order],
            "iid": [WHO[i] for i in order],
            "sid": [f"rs{2 * k}", f"rs{2 * k + 1}"],
            "chromosome": [str(k + 1)] * 2,
            "bp_position": [100, 200],
            "allele_1": ["A", "C"],
            "allele_2": ["G", "T"],
        }
        to_bed(folder / f"chr{k + 1}.bed", copies[order, 2 * k : 2 * k + 2], properties=properties)
    height = copies[:, 0] - copies[:, 21] + rng.normal(size=N)
    rows = "".join(f"{who} {who} {y:.5f}\n" for who, y in zip(WHO, height, strict=True))
    (folder / "traits.txt").write_text("FID IID height\n" + rows)
    (folder / "bounds.toml").write_text("[outcomes]\nlower = -5\nupper = 5\n")
    return folder, copies


@pytest.fixture
def folder(files, tmp_path, monkeypatch):
    for path in files[0].iterdir():
        shutil.copy(path, tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


FIT = "--pheno traits.txt --bounds bounds.toml --epsilon 20 --delta 1e-8"


def test_from_chromosomes_to_everything(folder, files, primo, primo_json):
    primo(f"fit --bfile chr* {FIT} --out release")
    bundle = read_bundle(Path("release"))
    assert bundle.release.plan.n == N
    assert bundle.variants.names == tuple(f"rs{j}" for j in range(2 * CHROMOSOMES))
    assert 'bfile = ["chr*"]' in " ".join(bundle.config.split()).replace("[ ", "[").replace(
        ", ]", "]"
    )
    primo("score-file release --out scores.tsv")
    primo("report release --out report.html")
    made = primo_json("sumstats release --genome-build GRCh38 --out sumstats")
    assert made["variants"] == 2 * CHROMOSOMES
    found = pd.read_csv(made["files"][0], sep="\t")
    top = found.nlargest(2, "neg_log_10_p_value")
    assert set(top["rsid"]) == {"rs0", "rs21"}
    # Two true effects of 1 and −1; the chance that an interval of six errors misses is below 1e-8.
    for name, truth in (("rs0", 1.0), ("rs21", -1.0)):
        row = found[found["rsid"] == name].iloc[0]
        assert abs(row["beta"] - truth) < 6 * row["standard_error"] < 1
    validator = ROOT / ".venv-gwas-ssf" / "bin" / "gwas-ssf"
    if validator.exists():
        command = [validator, "validate", made["files"][0], "--min-rows", "10"]
        assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    primo("predict release --bfile chr* --out predicted.tsv")
    assert len(pd.read_csv("predicted.tsv", sep="\t")) == N


def test_other_ways_to_name_them(folder, primo, primo_json):
    lists = "bfile = ['chr1', 'chr2']\npheno = 'traits.txt'\nbounds = 'bounds.toml'\n"
    Path("run.toml").write_text(lists + "epsilon = 5\ndelta = 1e-8\n")
    by_file = primo_json("fit --config run.toml --dry-run")
    by_option = primo_json(f"fit --bfile chr1 --bfile chr2 {FIT} --epsilon 5 --dry-run")
    assert by_file == by_option
    primo(f"fit --bfile none* {FIT} --dry-run", code=2)


def test_other_people_are_refused_before_anything_is_charged(folder, primo):
    fam = Path("chr2.fam")
    fam.write_text(
        fam.read_text().replace(WHO[5] + "\t", "somebody\t").replace(WHO[5] + " ", "somebody ")
    )
    primo("ledger init people.ledger --epsilon 50 --delta 1e-6")
    _, said = primo(
        f"fit --bfile chr1 --bfile chr2 {FIT} --ledger people.ledger --out release", code=2
    )
    assert "do not hold the same people" in said
    assert WHO[5] not in said
    assert "somebody" not in said
    assert "3000" not in said
    assert not Path("release").exists()
    assert json.loads(primo("ledger show people.ledger --json")[0])["datasets"] == []


def test_the_ledger_knows_them_in_a_bgen(folder, files, primo):
    """The same people in another format are charged to the same account."""
    writer = pytest.importorskip("bgen").BgenWriter
    copies = files[1].astype(int)
    with writer("all.bgen", n_samples=N) as file:
        for j in range(4):
            file.add_variant(f"v{j}", f"rs{j}", "1", j + 1, ["G", "A"], np.eye(3)[copies[:, j]])
    rows = "".join(f"{who} {who} 0\n" for who in WHO)
    Path("people.sample").write_text("ID_1 ID_2 missing\n0 0 0\n" + rows)
    primo("ledger init people.ledger --epsilon 25 --delta 1e-6")
    primo(f"fit --bfile chr1 {FIT} --ledger people.ledger --dataset cohort --out first")
    _, said = primo(
        f"fit --bgen all.bgen --sample people.sample {FIT} --ledger people.ledger --out second",
        code=1,
    )
    assert "left" in said  # the budget of these people is used up
    primo(f"fit --bgen all.bgen --sample people.sample {FIT} --out second")
    assert read_bundle(Path("second")).variants.counted == ("A",) * 4


def test_dosages_of_a_vcf(folder, files, primo):
    pytest.importorskip("cyvcf2")
    head = ["#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *WHO]
    lines = ["##fileformat=VCFv4.2", '##FORMAT=<ID=DS,Number=A,Type=Float,Description="d">']
    lines.append("\t".join(head))
    for j in range(3):
        cells = [f"{value * 0.95:.3f}" for value in files[1][:, j]]
        lines.append("\t".join(["1", str(j + 1), f"rs{j}", "G", "A", ".", ".", ".", "DS", *cells]))
    Path("c.vcf.gz").write_bytes(gzip.compress("\n".join(lines).encode() + b"\n"))
    primo(f"fit --vcf c.vcf.gz --vcf-field DS {FIT} --out release")
    _, said = primo(f"fit --vcf c.vcf.gz {FIT} --out other", code=2)
    assert "does not declare the field GT" in said
