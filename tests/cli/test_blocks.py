"""From genotypes to coefficients, scores and summary statistics with a covariance inside blocks."""

from pathlib import Path

import numpy as np
import pytest

from primo.released.bundle import read_bundle
from primo.report.page import report_html

N, D = 3000, 12
WHO = [f"person{i}" for i in range(N)]
CHROMOSOME = ["1"] * 7 + ["2"] * 5
POSITION = [100, 200, 300, 400, 900, 1000, 5000, 50, 60, 70, 80, 90]
BED = "chr start stop\n1 0 350\n1 350 2000\n2 0 1000\n"
FIT = "--bfile cohort --pheno traits.txt --bounds bounds.toml --epsilon 20 --delta 1e-8"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Twelve variants in three blocks and one outside, and a phenotype."""
    to_bed = pytest.importorskip("bed_reader").to_bed
    rng = np.random.default_rng(7)
    copies = rng.binomial(2, 0.4, size=(N, D)).astype(float)
    copies[:, 1] = np.where(rng.random(N) < 0.7, copies[:, 0], copies[:, 1])
    properties = {
        "fid": WHO,
        "iid": WHO,
        "sid": [f"rs{j}" for j in range(D)],
        "chromosome": CHROMOSOME,
        "bp_position": POSITION,
        "allele_1": ["A"] * D,
        "allele_2": ["G"] * D,
    }
    to_bed(tmp_path / "cohort.bed", copies, properties=properties)
    height = copies[:, 0] - copies[:, 8] + rng.normal(size=N) * 0.5
    rows = "".join(f"{who} {who} {y:.5f}\n" for who, y in zip(WHO, height, strict=True))
    (tmp_path / "traits.txt").write_text("FID IID height\n" + rows)
    (tmp_path / "bounds.toml").write_text("[outcomes]\nlower = -5\nupper = 5\n")
    (tmp_path / "blocks.bed").write_text(BED)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_blocks_give_everything_that_a_release_gives(folder, primo):
    _, told = primo(f"fit {FIT} --covariance blocks --ld-blocks blocks.bed --out release")
    assert "Blocks of variants: 3" in told
    assert "1 features lie in no block" in told
    bundle = read_bundle(Path("release"))
    blocks = bundle.release.blocks
    assert blocks.starts.tolist() == [0, 3, 6, 7, 12]
    assert bundle.release.covariance.shape == (0, 0)
    assert bundle.release.coefficients().slopes[[0, 8], 0] == pytest.approx([1, -1], abs=0.3)
    for line in (
        "inspect release",
        "report release",
        "sumstats release --format plink2 --out sums",
        "score-file release --genome-build GRCh38 --out score",
        "predict release --bfile cohort --out scores.tsv",
    ):
        primo(line)
    Path("later.txt").write_text(Path("traits.txt").read_text().replace("height", "later"))
    later = FIT.replace("traits.txt", "later.txt")
    _, told = primo(f"extend --release release --protect both {later} --out second", code=2)
    assert "is not extended" in " ".join(told.split())
    scores = np.genfromtxt("scores.tsv", skip_header=1, usecols=-1)
    truth = np.genfromtxt("traits.txt", skip_header=1, usecols=2)
    assert np.corrcoef(scores, truth)[0, 1] > 0.8


def test_no_covariance_and_its_dry_run(folder, primo, primo_json):
    planned = primo_json(f"fit {FIT} --covariance none --dry-run")
    assert planned["noise"]["covariance"] > 0
    assert 0 < planned["predicted_r2"] <= planned["no_privacy_r2"]
    assert "features are not correlated; where they are" in " ".join(planned["assumptions"])
    out, _ = primo(f"fit {FIT} --covariance blocks --ld-blocks blocks.bed --dry-run")
    assert "Predicted R² on new rows: 0." in out
    assert "neighbours inside a block are correlated by 0.8" in out
    primo(f"fit {FIT} --covariance none --norms auto --out release")
    release = read_bundle(Path("release")).release
    assert release.plan.blocks.count == D
    # The predicted loss is that of a whole covariance, so it is not stated here.
    assert "longer than the norm" in release.statement().replace("\n              ", " ")
    assert "predicted" not in release.statement()
    assert "predicted loss" not in report_html(release)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("1 0 350\n1 300 2000\n", "overlap or are not in order"),
        ("1 350 2000\n1 0 350\n", "overlap or are not in order"),
        ("1 0 350\n1 2000 350\n", "line 2 of"),
        ("chr1 0 350\n", "sed 's/^chr//'"),
        ("X 0 350\n", "no variant lies in a block"),
        ("", "holds no block"),
    ],
)
def test_bad_blocks_are_refused_with_the_remedy(folder, primo, text, said):
    Path("bad.bed").write_text(text)
    _, told = primo(f"fit {FIT} --covariance blocks --ld-blocks bad.bed --out release", code=2)
    assert said in " ".join(told.split())
    assert not Path("release").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--covariance blocks", "--ld-blocks"),
        ("--ld-blocks blocks.bed", "--covariance blocks"),
        ("--covariance none --calibration paper", "--calibration paper"),
        ("--covariance none --rounds 3", "one release"),
        ("--covariance none --covariance-rows 100", "--covariance-rows"),
        ("--covariance blocks --ld-blocks nothing.bed", "nothing.bed"),
    ],
)
def test_what_does_not_go_together_is_refused(folder, primo, options, said):
    _, told = primo(f"fit {FIT} {options} --out release", code=2)
    assert said in " ".join(told.split())
    assert not Path("release").exists()
