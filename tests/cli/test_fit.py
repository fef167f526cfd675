"""`primo fit`: from files to a published release, in every way the options allow."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from primo.ledger import open_ledger
from primo.released.bundle import read_bundle


def test_a_plink_file_becomes_a_release(folder, primo, fit_line):
    out, err = primo(f"{fit_line} --out release")
    assert "epsilon = 5, delta = 1e-08" in out
    assert "R² that the published coefficients are expected to have on new rows: " in err
    assert "Doubt: 30 of 31 features have the range 0 to 2. If they are genotypes" in err
    bundle = read_bundle(Path("release"))
    assert bundle.release.publishable
    assert bundle.release.plan.n == 5000
    assert bundle.release.feature_names[-1] == "age"
    assert len(bundle.variants) == 30
    assert not list(Path().glob(".*partial*"))


def test_a_zip_file(folder, primo, fit_line):
    primo(f"{fit_line} --out release.zip")
    assert read_bundle(Path("release.zip")).manifest["outcomes"] == 40


def test_a_dry_run_reads_no_row_and_charges_nothing(folder, primo, fit_line, monkeypatch):
    from primo.rows.sources import paired

    def forbidden(*_):
        raise AssertionError("a row was read")

    monkeypatch.setattr(paired.PairedSource, "blocks", forbidden)
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    out, err = primo(f"{fit_line} --ledger books.ledger --dry-run")
    assert "Predicted R²" in out
    assert "no private column was opened" in err
    assert len(open_ledger("books.ledger", readonly=True).history()) == 1


def test_a_dry_run_says_what_better_knowledge_would_bring(folder, primo, primo_json, fit_line):
    line = fit_line.replace("--epsilon 5", "--epsilon 1") + " --dry-run --rounds 1"
    out, _ = primo(f"{line} --outcome-sd 1")
    assert "are genotypes, of allele frequencies spread evenly over 0.05 to 0.5" in out
    assert "standard deviations of the outcomes are as stated" in out
    assert "the outcomes have a standard deviation of 1 (median" in out
    found = primo_json(f"{line} --outcome-sd 1")
    best = next(b for b in found["better_knowledge"] if "frequencies" in b["knowledge"])
    assert "--frequencies" in out
    assert best["predicted_r2"] > found["predicted_r2"] + 0.01
    assert f"{best['predicted_r2']:.3f} instead of {found['predicted_r2']:.3f} with public" in out
    wide = primo_json(f"{line} --outcome-sd 0.3")
    assert wide["predicted_r2"] < found["predicted_r2"] - 0.03
    assert primo_json(f"{line} --outcome-sd 1 --signal-r2 0.6")["predicted_r2"] > 0.1
    _, err = primo(f"{line} --outcome-sd 0", code=2)
    assert "--outcome-sd" in err


def test_the_configuration_is_kept_and_gives_the_same_plan(folder, primo, fit_line):
    primo(f"{fit_line} --out first")
    Path("again.toml").write_text(read_bundle(Path("first")).config)
    primo("fit --config again.toml --out second")
    first, second = (read_bundle(Path(name)) for name in ("first", "second"))
    assert first.config == second.config
    assert first.release.plan.grid == second.release.plan.grid
    assert not np.array_equal(first.release.association, second.release.association)


def test_the_command_line_wins_over_the_file(folder, primo_json):
    Path("run.toml").write_text(
        'bfile = "cohort"\npheno = ["traits.tsv"]\nbounds = "bounds.toml"\ncovar = ["ages.tsv"]\n'
        "[privacy]\nepsilon = 5\ndelta = 1e-8\nprotect = 'both'\n"
    )
    assert primo_json("fit --config run.toml --dry-run")["epsilon"] == 5
    assert primo_json("fit --config run.toml --epsilon 2 --dry-run")["epsilon"] == 2


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_table(folder, primo, kind):
    rng = np.random.default_rng(0)
    columns = {f"snp_{i}": rng.integers(0, 3, 500) for i in range(4)}
    columns |= {f"out_{i}": rng.normal(size=500) for i in range(3)}
    table = pa.table(columns)
    if kind == "parquet":
        pq.write_table(table, "data.parquet")
    else:
        pyarrow.csv.write_csv(table, "data.csv")
    Path("list.txt").write_text("out_0\nout_2\n")
    Path("limits.toml").write_text(
        "[features]\nlower = 0\nupper = 2\n[outcomes]\nlower = -4\nupper = 4\n"
    )
    primo(
        f"fit --table data.{kind} --features snp_* --outcomes-from list.txt --bounds limits.toml "
        "--epsilon 2 --delta 1e-6 --out release"
    )
    assert read_bundle(Path("release")).release.outcome_names == ("out_0", "out_2")


def test_arrays_and_public_features_without_bounds(folder, primo):
    rng = np.random.default_rng(0)
    np.save("x.npy", rng.normal(size=(300, 3)))
    np.save("y.npy", rng.normal(size=(300, 2)))
    Path("limits.toml").write_text("[outcomes]\nnorm = 3\n")
    primo(
        "fit --feature-array x.npy --outcome-array y.npy --protect outcomes --bounds limits.toml "
        "--epsilon 2 --delta 1e-6 --out release"
    )
    assert read_bundle(Path("release")).release.plan.covariance_sigma == 0


def test_the_ledger_pays_once_and_refuses_the_next(folder, primo, primo_json, fit_line):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    done = primo_json(f"{fit_line} --ledger books.ledger --out first --purpose trial --user ann")
    _, err = primo(f"{fit_line} --ledger books.ledger --out second", code=1)
    assert "Nothing was charged" in err
    assert not Path("second").exists()
    assert not list(Path().glob(".*partial*"))
    books = primo_json("ledger history books.ledger")["entries"]
    charge = next(entry for entry in books if entry["release_id"])
    assert (charge["user"], charge["purpose"]) == ("ann", "trial")
    assert charge["release_id"] == done["release_id"]
    assert any(entry["digest"] == done["digest"] for entry in books)
    assert primo_json("ledger show books.ledger")["datasets"][0]["releases"] == 1


def test_other_outcomes_of_the_same_people_share_the_budget(folder, primo, data_line):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    cost = "--epsilon 5 --delta 1e-8 --ledger books.ledger"
    primo(f"fit {data_line} --outcomes score0* {cost} --out first")
    primo(f"fit {data_line} --outcomes score1* {cost} --out second", code=1)


def test_extension(folder, primo, release):
    primo(
        f"extend --release {release} --bfile cohort --pheno later.tsv --covar ages.tsv --epsilon 1 "
        "--delta 1e-8 --protect both --bounds bounds.toml --out second"
    )
    second = read_bundle(Path("second")).release
    assert second.outcome_names == ("late0", "late1")
    assert second.plan.total_mu > second.plan.mu


def test_a_local_cluster_gives_a_release(folder, primo, fit_line):
    pytest.importorskip("distributed")
    primo(f"{fit_line} --workers 2 --out release")
    assert read_bundle(Path("release")).release.publishable


WAITING = """
import sys, time
from primo.cli import main
import primo.rows.sources.paired as paired
blocks = paired.PairedSource.blocks
def slow(self, rows):
    for block in blocks(self, rows):
        print("reading", flush=True)
        time.sleep({seconds})
        yield block
paired.PairedSource.blocks = slow
sys.argv = ["primo", *{line!r}.split()]
main()
"""


def test_killed_while_reading_and_resumed(folder, primo, fit_line):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    line = f"{fit_line} --ledger books.ledger --out release"
    script = WAITING.format(seconds=60, line=line)
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("reading")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert not Path("release").exists()
    spent = open_ledger("books.ledger", readonly=True).spent()
    assert spent[0].releases == 1
    _, err = primo(line, code=2)
    assert "--resume" in err
    primo("ledger init other.ledger --epsilon 6 --delta 1e-6")
    _, err = primo("fit --resume --ledger other.ledger --out release", code=2)
    assert "to be paid from the ledger books.ledger" in err
    primo("fit --resume --out release")
    assert read_bundle(Path("release")).release.plan.n == 5000
    assert open_ledger("books.ledger", readonly=True).spent() == spent
    _, err = primo("fit --resume --out release", code=2)
    assert "nothing to resume" in err.lower()


def test_a_missing_value_is_paid_for_once_and_the_run_goes_on(folder, primo, fit_line):
    traits = Path("traits.tsv").read_text().splitlines()
    cells = traits[7].split("\t")
    traits[7] = "\t".join([*cells[:5], "NA", *cells[6:]])
    Path("traits.tsv").write_text("\n".join(traits) + "\n")
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    line = f"{fit_line} --missing error --ledger books.ledger --out release"
    _, err = primo(line, code=2)
    assert "--missing centre" in err
    assert "--resume" in err
    _, err = primo("fit --resume --ledger books.ledger --out release --epsilon 6", code=2)
    assert "cannot be changed" in err
    primo("fit --resume --ledger books.ledger --out release --missing centre")
    assert open_ledger("books.ledger", readonly=True).spent()[0].releases == 1


def test_progress_is_quiet_where_nobody_looks(folder, primo, fit_line):
    out, err = primo(f"{fit_line} --out release")
    assert "\r" not in out + err
    assert "reading rows" not in err


def test_what_fails_before_it_is_charged_leaves_nothing(folder, primo, fit_line):
    """So that a corrected run can start at once."""
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    key = Path("books.ledger.key")
    kept = key.read_bytes()
    key.unlink()
    _, err = primo(f"{fit_line} --ledger books.ledger --out release", code=1)
    assert "nothing was charged" in err
    assert not list(Path().glob(".*partial*"))
    key.touch(mode=0o600)
    key.write_bytes(kept)
    primo(f"{fit_line} --ledger books.ledger --out release")


def test_a_copy_of_the_private_folder_publishes_nothing_else(folder, primo, fit_line):
    """A backup that is resumed with other columns would be a second release for one charge."""
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    script = WAITING.format(seconds=60, line=f"{fit_line} --ledger books.ledger --out spring")
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().startswith("reading")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    shutil.copytree(".spring.primo-partial", ".summer.primo-partial")
    primo("fit --resume --out spring")
    lines = [line.split("\t") for line in Path("traits.tsv").read_text().splitlines()]
    Path("traits.tsv").write_text(
        "".join("\t".join(line[:2] + line[2:][::-1]) + "\n" for line in lines)
    )
    _, err = primo("fit --resume --out summer", code=1)
    assert "published already" in err
    assert not Path("summer").exists()


def test_bounds_of_a_public_block_are_read_without_touching_the_private_one(folder, primo):
    rng = np.random.default_rng(0)
    secret = rng.normal(size=(300, 3))
    secret[5, 1] = np.nan
    np.save("x.npy", secret)
    np.save("y.npy", rng.normal(size=(300, 2)))
    Path("limits.toml").write_text("[features]\nnorm = 3\n")
    primo(
        "fit --feature-array x.npy --outcome-array y.npy --protect features --bounds limits.toml "
        "--epsilon 2 --delta 1e-6 --dry-run"
    )


def test_a_table_of_numbers_and_no_bounds(tmp_path, primo):
    """One command, nothing known of the columns: norms are found in the same charged release."""
    rng = np.random.default_rng(4)
    x = rng.normal(size=(6000, 4)) * 250
    y = x @ rng.normal(size=(4, 2)) / 250 + rng.normal(size=(6000, 2))
    np.savetxt(
        tmp_path / "table.csv",
        np.hstack([x, y]),
        delimiter=",",
        header="a,b,c,d,y0,y1",
        comments="",
    )
    primo(
        f"fit --table {tmp_path}/table.csv --features a --features b --features c --features d "
        f"--outcomes y* --norms auto --epsilon 2 --delta 1e-8 --out {tmp_path}/release"
    )
    release = read_bundle(tmp_path / "release").release
    scale = release.plan.features.scale
    assert ((scale > 80) & (scale < 800)).all()
    statement = " ".join(release.statement().split())
    assert "found from a histogram of row lengths" in statement
    assert "which are longer than the norm" in statement
    assert "with these norms" in statement
    assert "with looser norms" in statement


@pytest.mark.parametrize("rows", [5000, 150])
def test_a_dry_run_says_what_finding_norms_costs_and_gains(tmp_path, primo, primo_json, rows):
    for name in ("x", "y"):
        np.save(tmp_path / f"{name}.npy", np.zeros((rows, 3)))
    ranges = 'lower = -9\nupper = 9\nnorm = "auto"\n'
    (tmp_path / "b.toml").write_text(f"[features]\n{ranges}[outcomes]\n{ranges}")
    line = (
        f"fit --feature-array {tmp_path}/x.npy --outcome-array {tmp_path}/y.npy --epsilon 1 "
        f"--delta 1e-6 --bounds {tmp_path}/b.toml --norm-share 0.04 --dry-run --rounds 1"
    )
    said, instead = primo(line)[0], primo_json(line)["predicted_r2_without_search"]
    if rows == 150:
        assert "not looked for, because there are too few rows" in said
        assert instead is None
    else:  # 0.04 · (1.2 + 0.6), and 1/√(1 - 0.072)
        assert "all together for 7.2% of the budget" in said
        assert "all other noise 3.8% larger" in said
        assert f"With the norms of the ranges, at the whole budget: {instead:.3f}" in said
        assert 0.1 < instead < 0.3


def test_levels_of_one_column_leave_the_others_to_be_found(tmp_path, primo, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(3)
    kind, x = rng.integers(0, 3, 4000), rng.normal(size=4000)
    names = np.array(["near", "far", "sea"])[kind]
    frame = {"x": 900 + 40 * x, "kind": names, "y": 5e4 + 1e4 * (x + kind + rng.normal(size=4000))}
    pd.DataFrame(frame).to_csv("t.csv", index=False)
    line = "fit --table t.csv --features * --outcomes y --norms auto --epsilon 5 --delta 1e-6"
    said = primo(f"{line} --out r", code=2)[1]
    assert "--id-column kind" in said
    assert '[features.columns.kind] (or [outcomes...]) levels = ["no", "yes"]' in said
    Path("b.toml").write_text('[features.columns.kind]\nlevels = ["near", "far", "sea"]\n')
    primo(f"{line} --bounds b.toml --out s")
    bundle = read_bundle(tmp_path / "s")
    assert bundle.release.feature_names == ("x", "kind=far", "kind=sea")
    assert bundle.release.plan.features.scale[0] > 10 * bundle.release.plan.features.scale[1]
