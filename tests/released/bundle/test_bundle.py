"""The bundle: what is in it, that it survives the way to disk, and that it tells nothing else."""

import dataclasses
import datetime
import errno
import json
import math
import resource
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import primo
from primo._util.writers import escaped, open_table, unescaped
from primo.released import uncertainty
from primo.released.bundle import read_bundle, tables, write_bundle
from primo.released.bundle import write as write_module
from primo.released.estimation import Estimation
from primo.released.uncertainty import intervals

DAY = datetime.date(2026, 11, 15)
KINDS = ("bundle", "bundle.zip")
ROUNDING = {"rtol": 1e-7, "atol": 1e-10}  # numbers that are computed twice


def folder_bytes(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(make, variants, tmp_path, kind):
    release = make(seed=None)
    path = write_bundle(
        release, tmp_path / kind, config="epsilon = 5\n", variants=variants, release_id="run-1"
    )
    bundle = read_bundle(path)
    assert bundle.manifest["release_id"] == "run-1"
    assert bundle.manifest["publishable"]
    assert bundle.config == "epsilon = 5\n"
    assert bundle.release.statement() == release.statement()
    np.testing.assert_array_equal(bundle.release.association, release.association)
    fitted, stored = primo.coefficients(release), bundle.coefficients()
    np.testing.assert_allclose(stored.slopes, fitted.slopes, **ROUNDING)
    np.testing.assert_allclose(stored.intercept, fitted.intercept, **ROUNDING)
    assert stored.feature_names == release.feature_names
    assert bundle.variants.names == variants.names
    assert bundle.variants.position.tolist() == variants.position.tolist()
    assert bundle.variants.other == variants.other
    assert not bundle.variants.haplotypes
    assert "run-1" in repr(bundle)
    assert [p.name for p in tmp_path.iterdir()] == [kind]


def test_coefficients_as_parquet_and_text(make, variants, tmp_path):
    release = make()
    path = write_bundle(release, tmp_path / "b", variants=variants, level=0.9)
    frame = pd.read_parquet(path / "coefficients.parquet")
    tidy = uncertainty.tidy(release, level=0.9)
    same = {"slope": "shrunk", "slope_lower": "shrunk_lower", "slope_trusted": "shrunk_trusted"}
    for ours in ("outcome", "feature", "estimate", "upper", "z", "p", "q", "trusted", *same):
        theirs = tidy[same.get(ours, ours)]
        if theirs.dtype == float:
            np.testing.assert_allclose(frame[ours], theirs, rtol=1e-9, atol=1e-12)
        else:
            assert list(frame[ours]) == list(theirs)
    assert frame["chromosome"][:5].tolist()[1:] == ["1", "1", "2", "X"]
    assert pd.isna(frame["chromosome"][0])
    assert frame["position"][4] == 2**40
    for text in (
        pd.read_csv(path / "coefficients.tsv", sep="\t"),
        pl.read_csv(path / "coefficients.tsv", separator="\t").to_pandas(),
    ):
        assert list(text.columns) == list(frame.columns)
        np.testing.assert_allclose(text["slope"], frame["slope"], rtol=1e-9)
        np.testing.assert_allclose(text["lower"], frame["lower"], rtol=1e-9)


def test_outcomes(make, tmp_path):
    release = make()
    bundle = read_bundle(write_bundle(release, tmp_path / "b"))
    table, fit = bundle.table("outcomes"), uncertainty.goodness_of_fit(release)
    assert tuple(table["outcome"]) == release.outcome_names
    np.testing.assert_allclose(table["r_squared_upper"], fit.upper, **ROUNDING)
    assert table["signal_found"].tolist() == fit.found.tolist()
    published = uncertainty.published_r_squared(release)
    np.testing.assert_array_equal(table["published_r_squared"], published.r_squared)
    assert table["published_trusted"].tolist() == published.trusted.tolist()
    ridge = read_bundle(
        write_bundle(release, tmp_path / "r", estimation=Estimation(estimator="ridge"))
    )
    other = uncertainty.published_r_squared(release, estimator="ridge").r_squared
    np.testing.assert_array_equal(ridge.table("outcomes")["published_r_squared"], other)
    assert list(bundle.table("outcomes", ["p"])) == ["p"]
    with pytest.raises(primo.InputError, match="no table is called 'x'"):
        bundle.table("x")
    with pytest.raises(primo.InputError, match="no column 'x'"):
        bundle.table("outcomes", ["x"])


def test_huge_numbers_keep_their_width_and_infinite_ones_have_their_name(tmp_path):
    values = np.array([0.0, -0.0, 1.5, -math.inf, math.inf, 1e-300, -5e-324, 1.7e308])
    path = tmp_path / "t.tsv"
    with path.open("wb") as file, open_table(file, path.name, {"x": "number"}) as write:
        write({"x": values})
    lines = path.read_text().split()[1:]
    finite = [line for line in lines if "inf" not in line]
    assert {len(line) for line in finite} == {17}
    assert finite[2] == "+1.500000000e+000"
    assert [line for line in lines if "inf" in line] == ["-inf", "inf"]
    for read in (pd.read_csv(path)["x"].to_numpy(), pl.read_csv(path)["x"].to_numpy()):
        np.testing.assert_allclose(read, values, rtol=1e-9)


def test_names_with_tabs_and_lines_survive(make, tmp_path):
    name = 'bad\tname\nwith "all" \\ of it'
    release = dataclasses.replace(make(l=1), outcome_names=(name,))
    bundle = read_bundle(write_bundle(release, tmp_path / "b"))
    assert bundle.table("outcomes")["outcome"].tolist() == [name]
    assert len((tmp_path / "b" / "outcomes.tsv").read_text().splitlines()) == 2
    assert unescaped(escaped(name)) == name


class TestNeighbours:
    """Same noise, one row replaced: nothing but noised numbers may differ."""

    @pytest.mark.parametrize(
        "choices",
        [{}, {"outcome_moments": "diagonal", "fit_intercept": False}, {"covariance_rows": 100}],
    )
    def test_only_noised_numbers_differ(self, make, variants, tmp_path, choices):
        one, two = (
            write_bundle(
                make(neighbour=neighbour, **choices),
                tmp_path / str(neighbour),
                config="x = 1\n",
                variants=variants,
                release_id="a",
                created=DAY,
            )
            for neighbour in (False, True)
        )
        first, second = folder_bytes(one), folder_bytes(two)
        assert {k: len(v) for k, v in first.items()} == {k: len(v) for k, v in second.items()}
        for name in ("statement.txt", "plan.json", "variants.tsv", "config.toml"):
            assert first[name] == second[name]
        for name in ("moments.npz", "coefficients.tsv"):
            assert first[name] != second[name]  # the comparison is not vacuous
        self.compare_manifests(*(json.loads(x["manifest.json"]) for x in (first, second)))
        self.compare_moments(one, two)
        self.compare_text(*(x["coefficients.tsv"].decode() for x in (first, second)), names=6)
        self.compare_text(*(x["outcomes.tsv"].decode() for x in (first, second)), names=1)
        self.compare_parquet(one, two)

    @staticmethod
    def compare_manifests(one, two):
        for part in one["parts"]:
            del one["parts"][part]["sha256"], two["parts"][part]["sha256"]
        assert json.dumps(one) == json.dumps(two)

    @staticmethod
    def compare_moments(one, two):
        noised = {"covariance", "association", "outcome_moments"}
        with np.load(one / "moments.npz") as a, np.load(two / "moments.npz") as b:
            assert a.files == b.files
            for name in set(a.files) - noised:
                np.testing.assert_array_equal(a[name], b[name])
            for name in noised:
                assert a[name].shape == b[name].shape

    @staticmethod
    def compare_text(one, two, *, names):
        lines = list(zip(one.splitlines(), two.splitlines(), strict=True))
        assert lines[0][0] == lines[0][1]
        for a, b in lines[1:]:
            a, b = a.split("\t"), b.split("\t")
            assert a[:names] == b[:names]
            assert [len(x) for x in a] == [len(x) for x in b]

    @staticmethod
    def compare_parquet(one, two):
        for name in ("coefficients.parquet", "outcomes.parquet"):
            a, b = (pq.ParquetFile(path / name) for path in (one, two))
            assert a.schema_arrow.equals(b.schema_arrow, check_metadata=True)
            assert a.metadata.metadata == b.metadata.metadata
            for i in range(a.metadata.num_row_groups):
                for j in range(a.metadata.num_columns):
                    left, right = (f.metadata.row_group(i).column(j) for f in (a, b))
                    assert left.to_dict() == right.to_dict()
                    assert left.compression == "UNCOMPRESSED"
                    assert not left.is_stats_set

    @pytest.mark.parametrize("kind", KINDS)
    def test_sizes_over_many_draws(self, make, variants, tmp_path, kind):
        sizes = set()
        for seed in range(6):
            release = make(seed=seed, neighbour=bool(seed % 2))
            path = write_bundle(
                release, tmp_path / f"{seed}{kind}", variants=variants, release_id="a", created=DAY
            )
            files = path.iterdir() if path.is_dir() else [path]
            sizes.add(tuple(sorted((f.name.lstrip("012345"), f.stat().st_size) for f in files)))
        assert len(sizes) == 1

    def test_zip_has_the_same_bytes_for_the_same_release(self, make, tmp_path, monkeypatch):
        """The writing is under test, so the numbers are computed once: a second time may round."""
        release = make()
        how = {"variants": None, "level": 0.95, "slope_intervals": True}
        fitted = primo.coefficients(release)
        blocks = list(tables.coefficient_blocks(release, fitted, **how))
        columns = tables.outcome_columns(release, fitted, estimation=Estimation(), level=0.95)
        monkeypatch.setattr(tables, "coefficient_blocks", lambda *_, **__: iter(blocks))
        monkeypatch.setattr(tables, "outcome_columns", lambda *_, **__: columns)
        a, b = (
            write_bundle(release, tmp_path / name, release_id="a", created=DAY)
            for name in ("a.zip", "b.zip")
        )
        assert a.read_bytes() == b.read_bytes()

    def test_projection_too(self, make, tmp_path):
        sizes = set()
        for seed in range(3):
            release = make(seed=seed, protection="features", association="projection")
            path = write_bundle(release, tmp_path / str(seed), release_id="a", created=DAY)
            sizes.add(tuple(sorted((f.name, f.stat().st_size) for f in path.iterdir())))
        assert len(sizes) == 1


class TestReleasesWithoutIntervals:
    def test_more_public_features_than_rows(self, make, tmp_path):
        release = make(n=20, d=50, protection="outcomes")
        assert release.public_features is not None
        bundle = read_bundle(write_bundle(release, tmp_path / "b"))
        assert bundle.manifest["needs_features"]
        assert not bundle.manifest["intervals"]
        with pytest.raises(primo.InputError, match="with_public_features"):
            primo.coefficients(bundle.release)
        np.testing.assert_allclose(
            bundle.coefficients().slopes, primo.coefficients(release).slopes, **ROUNDING
        )
        table = bundle.table("coefficients")
        assert np.isnan(table["lower"]).all()
        assert not table["trusted"].any()
        assert not bundle.table("outcomes")["signal_found"].any()

    def test_projected(self, make, tmp_path):
        release = make(protection="features", association="projection")
        bundle = read_bundle(write_bundle(release, tmp_path / "b"))
        assert not bundle.manifest["intervals"]
        assert bundle.release.projected.noise_left == release.projected.noise_left
        assert np.isfinite(bundle.table("coefficients")["slope"]).all()

    def test_another_estimator_has_no_slope_intervals(self, make, tmp_path):
        release = make()
        options = {"estimator": "ridge", "ridge_lambda": 3.0}
        bundle = read_bundle(
            write_bundle(release, tmp_path / "b", estimation=Estimation(**options))
        )
        table = bundle.table("coefficients")
        assert np.isnan(table["slope_lower"]).all()
        assert np.isfinite(table["estimate"]).all()
        assert bundle.manifest["intervals"]
        assert not bundle.manifest["slope_intervals"]
        assert bundle.manifest["estimation"]["ridge_lambda"] == 3.0
        np.testing.assert_allclose(
            bundle.coefficients().slopes, primo.coefficients(release, **options).slopes, **ROUNDING
        )
        assert bundle.estimation == Estimation(**options)


def test_many_outcomes_in_blocks(make, tmp_path, monkeypatch):
    release = make(l=40)
    whole = read_bundle(write_bundle(release, tmp_path / "a")).table("coefficients")
    monkeypatch.setattr(intervals, "BLOCK_CELLS", 35)
    bundle = read_bundle(write_bundle(release, tmp_path / "b"))
    for name, column in bundle.table("coefficients").items():
        if column.dtype == float:
            np.testing.assert_allclose(column, whole[name], rtol=1e-6, atol=1e-12)
        else:
            assert column.tolist() == whole[name].tolist()


class TestWhereItCannotBeWritten:
    def test_existing_targets(self, make, tmp_path):
        release = make()
        (tmp_path / "folder").mkdir()
        (tmp_path / "file.zip").write_text("mine")
        (tmp_path / "link").symlink_to(tmp_path / "nowhere")
        for name in ("folder", "file.zip", "link"):
            with pytest.raises(primo.InputError, match="exists already"):
                write_bundle(release, tmp_path / name)
        assert (tmp_path / "file.zip").read_text() == "mine"
        assert len(list(tmp_path.iterdir())) == 3

    def test_folders_that_refuse(self, make, tmp_path):
        with pytest.raises(primo.InputError, match="does not exist"):
            write_bundle(make(), tmp_path / "nowhere" / "b")
        with pytest.raises(primo.InputError, match="cannot write '/proc/b'"):
            write_bundle(make(), "/proc/b")

    def test_numbers_of_numpy_in_a_plan(self, make, tmp_path):
        release = make()
        plan = dataclasses.replace(release.plan, n=np.int64(release.plan.n))
        bundle = read_bundle(write_bundle(dataclasses.replace(release, plan=plan), tmp_path / "b"))
        assert bundle.manifest["rows"] == release.plan.n
        with pytest.raises(primo.InputError, match="level=2"):
            write_bundle(release, tmp_path / "c", level=2)

    def test_bad_ids_are_refused_before_anything_is_written(self, make, tmp_path):
        for bad in ("../x", "a b", "x" * 200, "a\n", "-a"):
            with pytest.raises(primo.InputError, match="release_id"):
                write_bundle(make(), tmp_path / "b", release_id=bad)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        "step", ["write_tables", "write_release", "encode", "publish", "_zipped"]
    )
    def test_a_full_disk_leaves_nothing(self, make, tmp_path, monkeypatch, step):
        def full(*_, **__):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(write_module, step, full)
        with pytest.raises(primo.InputError, match=r"No space left on device.*Nothing was left"):
            write_bundle(make(), tmp_path / "b.zip")
        assert not list(tmp_path.iterdir())

    def test_a_real_limit_of_the_system(self, make, tmp_path):
        release = make(l=200)
        primo.save_release(release, tmp_path / "r.npz")
        code = (
            "import primo, sys; from primo.released.bundle import write_bundle\n"
            "import resource\n"
            "release = primo.load_release(sys.argv[1])\n"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
            "try: write_bundle(release, sys.argv[2])\n"
            "except primo.InputError as error: print(error)\n"
        )
        made = subprocess.run(
            [sys.executable, "-c", code, tmp_path / "r.npz", tmp_path / "b"],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "cannot write" in made.stdout
        assert [p.name for p in tmp_path.iterdir()] == ["r.npz"]
        assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 20000

    def test_strange_variants(self, make, variants, tmp_path):
        other = dataclasses.replace(variants, names=("rs1", "rs2", "rs3", "rs99"))
        with pytest.raises(primo.InputError, match="'rs99' is not a feature"):
            write_bundle(make(), tmp_path / "b", variants=other)
        assert not list(tmp_path.iterdir())
