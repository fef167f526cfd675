"""Scoring files: plink2 itself has to arrive at our predictions."""

import dataclasses
import gzip
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

import primo
from primo.released.coefficients import Coefficients
from primo.released.export.scoring import write_pgs_catalog, write_plink_scores
from primo.variants import Variants

N, D, L = 60, 12, 5  # plink2 wants 50 people to take frequencies from


@pytest.fixture
def variants():
    return Variants(
        names=tuple(f"rs{i}" if i % 3 else f"1:{i}:A:G" for i in range(D)),
        chromosome=("1",) * 6 + ("2",) * 6,
        position=np.arange(1000, 1000 + D),
        counted=("A", "G", "ATT") * 4,
        other=("G", "C", "A") * 4,
    )


@pytest.fixture
def fitted(variants):
    rng = np.random.default_rng(0)
    return Coefficients(
        # plink2 prints six digits, so scores below 1 come out to 1e-6.
        slopes=rng.uniform(-0.04, 0.04, size=(D + 1, L)) * 10.0 ** np.arange(0, -L, -1),
        intercept=rng.normal(size=L),
        # The covariate stands first, the variants in another order than in the file.
        feature_names=("age", *variants.names[::-1]),
        outcome_names=("height", "body mass", "Height", "a/b\tc", "é"),
        estimator="auto",
    )


def genotypes(*, missing=False):
    rng = np.random.default_rng(1)
    G = rng.integers(0, 3, size=(N, D)).astype(float)
    if missing:
        G[rng.random(G.shape) < 0.1] = np.nan
    return G


def write_bed(path, G, variants, *, counted_first):
    """Make a .bed whose allele 1 is the counted one, or the other one."""
    bed_reader = pytest.importorskip("bed_reader")
    first, second = variants.counted, variants.other
    if not counted_first:
        first, second = second, first
    properties = {
        "fid": [f"f{i}" for i in range(N)],
        "iid": [f"p{i}" for i in range(N)],
        "chromosome": list(variants.chromosome),
        "sid": list(variants.names),
        "bp_position": variants.position,
        "allele_1": list(first),
        "allele_2": list(second),
    }
    values = G if counted_first else 2 - G
    bed_reader.to_bed(path, values, properties=properties, count_A1=True)


def plink_scores(folder, scores, *options):
    plink = shutil.which("plink2")
    if plink is None:
        pytest.skip("needs plink2 (Debian package plink2)")
    last = 2 + len(scores.columns)
    done = subprocess.run(
        [
            *(plink, *_input(folder), "--out", folder / "scored"),
            *("--score", scores.path, "1", "2", "header-read", "cols=+scoresums", *options),
            *("--score-col-nums", f"3-{last}"),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    table = pd.read_csv(folder / "scored.sscore", sep="\t")
    return table[[f"{name}_SUM" for name in scores.columns]].to_numpy()


def _input(folder):
    if (folder / "g.pgen").exists():
        return "--pfile", folder / "g"
    return "--bfile", folder / "g"


@pytest.mark.parametrize("counted_first", [True, False])
@pytest.mark.parametrize("pgen", [False, True])
def test_plink2_gives_our_predictions(fitted, variants, tmp_path, counted_first, pgen):
    G = genotypes()
    write_bed(tmp_path / "g.bed", G, variants, counted_first=counted_first)
    if pgen and shutil.which("plink2"):
        base = tmp_path / "g"
        subprocess.run(
            ["plink2", "--bfile", base, "--make-pgen", "--out", base],
            check=True,
            capture_output=True,
        )
    scores = write_plink_scores(fitted, variants, tmp_path / "scores.tsv")
    sums = plink_scores(tmp_path, scores)
    side = pd.read_csv(scores.sidecar, sep="\t")
    age = np.random.default_rng(2).normal(size=(N, 1))
    expected = fitted.predict(np.column_stack([age, G[:, ::-1]]))
    ours = sums + side["intercept"].to_numpy() + age @ fitted.slopes[:1]
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-6)
    assert np.abs(sums).max(axis=0).min() > 1e-6  # the smallest column is not vacuous


def test_missing_genotypes_count_as_none_without_imputation(fitted, variants, tmp_path):
    G = genotypes(missing=True)
    write_bed(tmp_path / "g.bed", G, variants, counted_first=True)
    scores = write_plink_scores(fitted, variants, tmp_path / "scores.tsv")
    sums = plink_scores(tmp_path, scores, "no-mean-imputation")
    expected = np.nan_to_num(G)[:, ::-1] @ fitted.slopes[1:]
    np.testing.assert_allclose(sums, expected, rtol=1e-5, atol=1e-10)


def test_plink_file(fitted, variants, tmp_path):
    scores = write_plink_scores(fitted, variants, tmp_path / "scores.tsv")
    assert scores.columns == ("height", "body_mass", "Height_2", "a_b_c", "_")
    assert scores.left_out == ("age",)
    table = pd.read_csv(scores.path, sep="\t")
    assert tuple(table.columns) == ("ID", "A1", *scores.columns)
    assert tuple(table["ID"]) == variants.names
    assert tuple(table["A1"]) == variants.counted
    np.testing.assert_allclose(table[list(scores.columns)], fitted.slopes[:0:-1], rtol=1e-11)
    side = scores.sidecar.read_text().splitlines()
    assert side[0] == "column\toutcome\tintercept"
    assert side[4].startswith("a_b_c\ta/b\\tc\t")


def test_pgs_catalog(fitted, variants, tmp_path):
    paths = write_pgs_catalog(fitted, variants, tmp_path / "pgs", genome_build="GRCh38")
    assert [p.name for p in paths][:3] == ["height.txt.gz", "body_mass.txt.gz", "Height_2.txt.gz"]
    assert len({p.name.lower() for p in paths}) == L
    lines = gzip.decompress(paths[1].read_bytes()).decode().splitlines()
    header = [line for line in lines if line.startswith("#")]
    assert header[0].startswith("###PGS CATALOG SCORING FILE")
    facts = dict(line[1:].split("=") for line in header if "=" in line)
    assert facts["format_version"] == "2.0"
    assert facts["trait_reported"] == facts["pgs_name"] == "body mass"
    assert facts["genome_build"] == "GRCh38"
    assert facts["variants_number"] == str(D)
    assert float(facts["intercept"]) == pytest.approx(fitted.intercept[1], rel=1e-11)
    table = pd.read_csv(paths[1], sep="\t", comment="#", dtype={"chr_name": str})
    assert list(table.columns) == [
        "rsID",
        "chr_name",
        "chr_position",
        "effect_allele",
        "other_allele",
        "effect_weight",
    ]
    assert pd.isna(table["rsID"][0])
    assert table["rsID"][1] == "rs1"
    assert tuple(table["effect_allele"]) == variants.counted
    assert table["chr_position"].tolist() == variants.position.tolist()
    np.testing.assert_allclose(table["effect_weight"], fitted.slopes[:0:-1, 1], rtol=1e-11)
    plain = write_pgs_catalog(fitted, variants, tmp_path / "plain", compress=False)
    assert plain[1].read_text().splitlines()[4:] == [
        line.replace("GRCh38", "NR") for line in lines[4:]
    ]


def test_pgs_files_are_the_same_each_time(fitted, variants, tmp_path):
    one, two = (write_pgs_catalog(fitted, variants, tmp_path / x) for x in "ab")
    assert [p.read_bytes() for p in one] == [p.read_bytes() for p in two]


def test_refusals(fitted, variants, tmp_path):
    none = dataclasses.replace(
        variants,
        **dict.fromkeys(("names", "chromosome", "counted", "other"), ()),
        position=np.array([], dtype=np.int64),
    )
    for nothing in (none, None):
        with pytest.raises(primo.InputError, match="scores are for variants"):
            write_plink_scores(fitted, nothing, tmp_path / "s.tsv")
    other = dataclasses.replace(variants, names=("new", *variants.names[1:]))
    with pytest.raises(primo.InputError, match="'new' has no coefficients"):
        write_plink_scores(fitted, other, tmp_path / "s.tsv")
    blank = dataclasses.replace(variants, counted=("A B", *variants.counted[1:]))
    with pytest.raises(primo.InputError, match="without blanks"):
        write_plink_scores(fitted, blank, tmp_path / "s.tsv")
    with pytest.raises(primo.InputError, match="genome_build="):
        write_pgs_catalog(fitted, variants, tmp_path / "p", genome_build="GRCh 38")
    (tmp_path / "p").mkdir()
    with pytest.raises(primo.InputError, match="exists already"):
        write_pgs_catalog(fitted, variants, tmp_path / "p")
    assert [p.name for p in tmp_path.iterdir()] == ["p"]
