"""Summary statistics as other programs read them: gwas-ssf itself, and plink2 --glm on the same rows."""

import dataclasses
import gzip
import hashlib
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import primo
from primo.cli import main
from primo.errors import InputError
from primo.released.export.scoring import write_pgs_catalog
from primo.released.export.sumstats import chromosome_number, write_summary_statistics
from primo.variants import Variants

ROOT = Path(__file__).parents[3]
N, D = 3000, 50


def program(environment, name):
    """Find a program in its own environment (make genomics-tools), or on the path."""
    here = ROOT / environment / "bin" / name
    found = str(here) if here.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"needs {name}: make genomics-tools")
    return found


@pytest.fixture(scope="module")
def statistics():
    """Two outcomes, fifty variants on all chromosomes, and one p-value below the smallest float."""
    rng = np.random.default_rng(0)
    copies = rng.binomial(2, 0.4, size=(N, D))
    outcomes = np.column_stack([copies[:, 0] * 4.0, rng.normal(size=N)]) + rng.normal(size=(N, 1))
    names = tuple(f"rs{i}" if i % 2 else f"v:{i}" for i in range(D))
    chromosome = [str(1 + i % 22) for i in range(D - 3)] + ["X", "chrY", "MT"]
    variants = Variants(
        names=names,
        chromosome=tuple(chromosome),
        position=rng.integers(1, 10**8, size=D),
        counted=("A", "CT") * (D // 2),
        other=("G", "C") * (D // 2),
    )
    frame = pd.DataFrame(copies, columns=list(names))
    with pytest.warns(primo.ReproducibleNoiseWarning):
        model = primo.PrimoRegressor(
            epsilon=50, delta=1e-6, feature_bounds=(0, 2), outcome_bounds=(-5, 12), random_state=0
        ).fit(frame, pd.DataFrame(outcomes, columns=["height", "a/b"]))
    return primo.summary_statistics(model.release_, variants)


def table(path, separator="\t"):
    return pd.read_csv(path, sep=separator, dtype=str, keep_default_na=False)


def test_gwas_ssf(statistics, tmp_path):
    made = write_summary_statistics(statistics, tmp_path / "out", genome_build="GRCh38")
    assert [path.name for path in made.paths] == ["height.tsv.gz", "a_b.tsv.gz"]
    found, effects = table(made.paths[0]), statistics.outcome("height")
    assert made.written == len(found) == D
    order = [found["variant_id"].tolist().index(name) for name in _variant_ids(statistics.variants)]
    sorted_ = found.iloc[order]
    np.testing.assert_allclose(sorted_["beta"].astype(float), effects.effect, rtol=1e-6)
    np.testing.assert_allclose(
        sorted_["standard_error"].astype(float), effects.standard_error, rtol=1e-6
    )
    np.testing.assert_allclose(sorted_["effective_n"].astype(float), effects.effective_n, rtol=1e-6)
    assert sorted_["effect_allele"].tolist() == list(statistics.variants.counted)
    assert sorted_["p_value"].iloc[0].split("e")[1].startswith("-")
    assert int(sorted_["p_value"].iloc[0].split("e")[1]) < -320  # no float is as small
    place = list(
        zip(found["chromosome"].astype(int), found["base_pair_location"].astype(int), strict=True)
    )
    assert place == sorted(place)
    assert set(found["chromosome"].astype(int)) == set(range(1, 26))
    assert (found["rsid"] == "#NA").sum() == D // 2


def _variant_ids(variants):
    return [
        f"{chromosome_number(c)}_{p}_{o}_{a}"
        for c, p, o, a in zip(
            variants.chromosome, variants.position, variants.other, variants.counted, strict=True
        )
    ]


def test_the_metadata_state_the_guarantee(statistics, tmp_path):
    yaml = pytest.importorskip("yaml")
    made = write_summary_statistics(statistics, tmp_path / "out", digest="ab" * 32)
    plan = statistics.release.plan
    for path in (*(p.with_name(p.name + "-meta.yaml") for p in made.paths), made.guarantee):
        content = yaml.safe_load(path.read_text())
        privacy = content["differential_privacy"]
        assert privacy["epsilon"] == plan.epsilon
        assert privacy["delta"] == plan.budget.delta == 1e-6
        assert privacy["protection"] == "both"
        assert privacy["publishable"] is False
        assert privacy["release_sha256"] == "ab" * 32
        assert content["statement"].splitlines()[0].startswith("Privacy statement")
        assert content["statistics"]["people"] == N
    meta = yaml.safe_load(made.paths[0].with_name("height.tsv.gz-meta.yaml").read_text())
    assert meta["data_file_md5sum"] == hashlib.md5(made.paths[0].read_bytes()).hexdigest()
    assert meta["trait_description"] == ["height"]
    assert meta["author_notes"].startswith("Not for publication")


def test_gwas_ssf_validates_it(statistics, tmp_path):
    validator = program(".venv-gwas-ssf", "gwas-ssf")
    made = write_summary_statistics(statistics, tmp_path / "out")
    for path in made.paths:
        done = subprocess.run(
            [validator, "validate", str(path), "--min-rows", "10", "--infer-from-metadata"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        assert "Validation status: True" in done.stdout.replace("\n", " ")
    # The validator does object: columns in another order are not valid.
    text = gzip.decompress(made.paths[0].read_bytes()).decode().replace("beta\t", "slope\t", 1)
    (tmp_path / "bad.tsv").write_text(text)
    done = subprocess.run(
        [validator, "validate", str(tmp_path / "bad.tsv"), "--min-rows", "10"],
        capture_output=True,
        check=False,
    )
    assert done.returncode != 0


def test_the_metadata_fit_the_models_of_gwas_ssf(statistics, tmp_path):
    python = program(".venv-gwas-ssf", "python")
    if "gwas-ssf" not in python:
        pytest.skip("needs gwas-sumstats-tools in .venv-gwas-ssf: make genomics-tools")
    made = write_summary_statistics(statistics, tmp_path / "out", genome_build="GRCh37")
    code = (
        "import sys, yaml; from gwas_sumstats_tools.schema.metadata import SumStatsMetadata as M; "
        "m = M.parse_obj(yaml.safe_load(open(sys.argv[1]))); print(m.genome_assembly, m.file_type)"
    )
    meta = made.paths[0].with_name("height.tsv.gz-meta.yaml")
    done = subprocess.run([python, "-c", code, meta], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "GRCh37 GWAS-SSF v1.0"


@pytest.mark.parametrize(
    ("kind", "name", "separator", "columns"),
    [
        ("ldsc", "height.sumstats.gz", "\t", "SNP A1 A2 Z N"),
        (
            "regenie",
            "height.regenie",
            " ",
            "CHROM GENPOS ID ALLELE0 ALLELE1 A1FREQ N TEST BETA SE CHISQ LOG10P EXTRA",
        ),
        (
            "plink2",
            "height.glm.linear",
            "\t",
            "#CHROM POS ID REF ALT A1 OMITTED A1_FREQ TEST OBS_CT BETA SE T_STAT P ERRCODE",
        ),
    ],
)
def test_other_formats(statistics, tmp_path, kind, name, separator, columns):
    made = write_summary_statistics(statistics, tmp_path / "out", format=kind, outcomes=["height"])
    assert [path.name for path in made.paths] == [name]
    assert made.guarantee.exists()
    found = table(made.paths[0], separator)
    assert found.columns.tolist() == columns.split()
    effects = statistics.outcome("height")
    if kind == "ldsc":
        # LDSC's model needs the n that goes with z: z² grows with it.
        np.testing.assert_allclose(found["N"].astype(float), effects.effective_n, rtol=1e-6)
        np.testing.assert_allclose(found["Z"].astype(float), effects.z, rtol=1e-5)
    else:
        np.testing.assert_allclose(found["BETA"].astype(float), effects.effect, rtol=1e-6)
    if kind == "regenie":
        np.testing.assert_allclose(found["LOG10P"].astype(float), effects.neg_log10_p, rtol=1e-6)
        assert found["ALLELE1"].tolist() == list(statistics.variants.counted)


def test_what_gwas_ssf_cannot_express_is_left_out_and_said(statistics, tmp_path):
    odd = dataclasses.replace(
        statistics.variants,
        counted=("<DEL>", *statistics.variants.counted[1:]),
        chromosome=(*statistics.variants.chromosome[:-1], "scaffold_7"),
    )
    changed = primo.summary_statistics(statistics.release, odd)
    made = write_summary_statistics(changed, tmp_path / "out")
    assert made.unfit == (odd.names[0], odd.names[-1])
    assert made.written == D - 2
    assert write_summary_statistics(changed, tmp_path / "p", format="plink2").written == D
    none = dataclasses.replace(odd, counted=("*",) * D)
    with pytest.raises(InputError, match="none of the variants"):
        write_summary_statistics(
            primo.summary_statistics(statistics.release, none), tmp_path / "none"
        )
    assert not (tmp_path / "none").exists()


def test_bad_requests_leave_nothing_behind(statistics, tmp_path):
    for options, words in [
        ({"format": "vcf"}, "choose one of gwas-ssf, ldsc, regenie, plink2"),
        ({"genome_build": "hg 19"}, "GRCh38"),
        ({"outcomes": ["none"]}, "not in this release"),
    ]:
        with pytest.raises(InputError, match=words):
            write_summary_statistics(statistics, tmp_path / "out", **options)
    assert not list(tmp_path.iterdir())
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="exists already"):
        write_summary_statistics(statistics, tmp_path / "out")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A cohort as files, and its release with as little noise as can be asked for."""
    to_bed = pytest.importorskip("bed_reader").to_bed
    folder = tmp_path_factory.mktemp("glm")
    rng = np.random.default_rng(4)
    n, d = 20_000, 5
    copies = rng.binomial(2, rng.uniform(0.2, 0.6, size=d), size=(n, d)).astype(float)
    age = rng.uniform(30, 70, size=n) + copies[:, 0]
    height = copies @ [0.5, 0, -0.3, 0.05, 0] + 0.02 * age + rng.normal(size=n)
    people = [f"p{i}" for i in range(n)]
    to_bed(
        folder / "c.bed",
        copies,
        properties={
            "fid": people,
            "iid": people,
            "sid": [f"rs{i}" for i in range(d)],
            "chromosome": ["1", "1", "2", "2", "7"],
            "bp_position": [10, 20, 10, 30, 5],
            "allele_1": ["A", "C", "G", "T", "A"],
            "allele_2": ["G", "T", "A", "C", "C"],
        },
    )
    lines = [f"{p} {p} {h:.6f}\n" for p, h in zip(people, height, strict=True)]
    (folder / "c.pheno").write_text("FID IID height\n" + "".join(lines))
    lines = [f"{p} {p} {a:.6f}\n" for p, a in zip(people, age, strict=True)]
    (folder / "c.cov").write_text("FID IID age\n" + "".join(lines))
    (folder / "bounds.toml").write_text(
        '[features]\n[features.columns."age"]\nlower = 30\nupper = 75\n'
        "[outcomes]\nlower = -6\nupper = 9\n"
    )
    return folder


@pytest.mark.parametrize(
    ("covar", "rounds", "within"), [(False, 1, 0.3), (True, 1, 0.3), (True, "auto", 1.0)]
)
def test_plink2_finds_the_same(fitted, tmp_path, covar, rounds, within):
    """plink2 --glm on the same files; the noise is a few hundredths of a standard error.

    With one round an effect is off by 0.3 standard errors with a chance below 1e-9. Later rounds
    clip residuals, so their effects are those of Huber's estimator with a clip of 1.6 standard
    deviations: 97 % as efficient, hence 0.2 standard errors from least squares on the same rows.
    """
    plink = shutil.which("plink2")
    if plink is None:
        pytest.skip("needs plink2 (Debian package plink2)")
    glm = ["allow-no-covars"]
    command = ["fit", "--bfile", fitted / "c", "--pheno", fitted / "c.pheno", "--epsilon", 100]
    command += ["--delta", 1e-6, "--bounds", fitted / "bounds.toml", "--out", tmp_path / "release"]
    command += ["--rounds", rounds]
    if covar:
        command += ["--covar", fitted / "c.cov"]
        glm = []
    else:
        bounds = tmp_path / "bounds.toml"
        bounds.write_text("[outcomes]\nlower = -6\nupper = 9\n")
        command[command.index("--bounds") + 1] = bounds
    runner = CliRunner()
    done = runner.invoke(main, [str(word) for word in command])
    assert done.exit_code == 0, done.output
    options = ["--format", "plink2", "--out", str(tmp_path / "ours")]
    done = runner.invoke(main, ["sumstats", str(tmp_path / "release"), *options])
    assert done.exit_code == 0, done.output
    subprocess.run(
        [
            *(
                plink,
                "--bfile",
                fitted / "c",
                "--pheno",
                fitted / "c.pheno",
                "--out",
                tmp_path / "theirs",
            ),
            *("--glm", *glm, "hide-covar", "cols=+a1freq", "--threads", "1"),
            *(("--covar", fitted / "c.cov", "--covar-variance-standardize") if covar else ()),
        ],
        check=True,
        capture_output=True,
    )
    ours = pd.read_csv(tmp_path / "ours" / "height.glm.linear", sep="\t")
    theirs = pd.read_csv(tmp_path / "theirs.height.glm.linear", sep="\t")
    assert ours["ID"].tolist() == theirs["ID"].tolist()
    swapped = np.where(ours["A1"] == theirs["A1"], 1, -1)
    assert np.abs(ours["BETA"] - swapped * theirs["BETA"]).max() < within * theirs["SE"].min()
    np.testing.assert_allclose(ours["SE"], theirs["SE"], rtol=0.02)
    frequency = np.where(swapped > 0, theirs["A1_FREQ"], 1 - theirs["A1_FREQ"])
    np.testing.assert_allclose(ours["A1_FREQ"], frequency, atol=0.002)
    assert (ours["OBS_CT"] == theirs["OBS_CT"]).all()


def test_the_command(fitted, tmp_path):
    runner = CliRunner()
    bounds = tmp_path / "bounds.toml"
    bounds.write_text("[outcomes]\nlower = -6\nupper = 9\n")
    command = ["fit", "--bfile", fitted / "c", "--pheno", fitted / "c.pheno", "--epsilon", 5]
    command += ["--delta", 1e-6, "--bounds", bounds, "--out", tmp_path / "release"]
    assert runner.invoke(main, [str(word) for word in command]).exit_code == 0
    release = str(tmp_path / "release")
    done = runner.invoke(main, ["sumstats", release, "--out", str(tmp_path / "a"), "--json"])
    assert done.exit_code == 0
    assert '"variants": 5' in done.stdout
    assert (tmp_path / "a" / "height.tsv.gz-meta.yaml").exists()
    digest = primo.read_bundle(release).digest
    assert digest in (tmp_path / "a" / "guarantee.yaml").read_text()
    done = runner.invoke(
        main, ["sumstats", release, "--outcomes", "weight", "--out", str(tmp_path / "b")]
    )
    assert isinstance(done.exception, InputError | SystemExit)
    assert not (tmp_path / "b").exists()


def test_pgscatalog_utils_reads_the_scoring_files(tmp_path):
    """pgscatalog-format checks every line by the catalogue's own models."""
    formatter = program(".venv-pgscatalog", "pgscatalog-format")
    names = tuple(f"rs{i}" for i in range(1, 9))
    slopes = np.random.default_rng(1).normal(size=(8, 2))
    coefficients = primo.Coefficients(
        slopes=slopes,
        intercept=np.zeros(2),
        feature_names=names,
        outcome_names=("height", "weight"),
        estimator="auto",
    )
    variants = Variants(
        names=names,
        chromosome=("1", "2", "X", "22") * 2,
        position=np.arange(1000, 1008),
        counted=("A", "CT") * 4,
        other=("G", "C") * 4,
    )
    paths = write_pgs_catalog(coefficients, variants, tmp_path / "pgs", genome_build="GRCh38")
    out = tmp_path / "formatted"
    out.mkdir()
    subprocess.run(
        [formatter, "-s", *map(str, paths), "-t", "GRCh38", "-o", str(out), "-l", "log.json"],
        check=True,
        capture_output=True,
    )
    for j, name in enumerate(("height", "weight")):
        part = pd.read_csv(out / f"normalised_{name}.txt.gz", sep="\t", dtype=str)
        assert (part["accession"] == name).all()
        assert part["effect_allele"].tolist() == list(variants.counted)
        assert part["chr_position"].astype(int).tolist() == variants.position.tolist()
        np.testing.assert_allclose(part["effect_weight"].astype(float), slopes[:, j], rtol=1e-10)
