"""Bad input: exit code 2, a sentence that names the value and the remedy, and nothing half-written."""

import hashlib
import json
import os
import stat
from pathlib import Path

import numpy as np
import pytest

SECRET = "person00042"


def remains(folder):
    return {path.name for path in Path(folder).iterdir()}


@pytest.mark.parametrize(
    ("line", "match"),
    [
        ("fit", "name the data"),
        ("fit --bfile cohort --vcf x.vcf", "2 of them were given"),
        ("fit --bfile nowhere --pheno traits.tsv --epsilon 1 --delta 1e-6 --out r", "nowhere"),
        ("fit --bfile cohort --epsilon 1 --delta 1e-6 --out r", "pheno"),
        ("fit --bfile cohort --pheno traits.tsv --out r", "--epsilon"),
        ("fit {data} --epsilon 0 --delta 1e-6 --out r", "epsilon"),
        ("fit {data} --epsilon -1 --delta 1e-6 --out r", "epsilon"),
        ("fit {data} --epsilon 1e9 --delta 1e-6 --out r", "epsilon"),
        ("fit {data} --epsilon nan --delta 1e-6 --out r", "epsilon"),
        ("fit {data} --epsilon 1 --delta 2 --out r", "delta"),
        ("fit {data} --epsilon 1 --delta 1e-6", "--out"),
        ("fit {data} --epsilon 1 --delta 1e-6 --out no/such/folder", "no/such"),
        ("fit {data} --epsilon 1 --delta 1e-6 --out bounds.toml", "bounds.toml"),
        ("fit {data} --outcomes scoer01 --epsilon 1 --delta 1e-6 --out r", "score01"),
        ("fit {data} --outcomes zzz* --epsilon 1 --delta 1e-6 --out r", "zzz"),
        ("fit {data} --maf 0.1 --epsilon 1 --delta 1e-6 --out r", "public"),
        ("fit {data} --bfile cohort --workers 0 --epsilon 1 --delta 1e-6 --out r", "--workers"),
        ("fit {data} --split 3 --epsilon 1 --delta 1e-6 --out r", "split"),
        ("fit {data} --association projection --epsilon 1 --delta 1e-6 --out r", "projection"),
        ("fit {data} --calibration paper --epsilon 1 --delta 1e-6 --out r", "paper"),
        ("fit --config none.toml", "none.toml"),
        ("fit --resume", "--out"),
        ("fit --resume --out nothing", "othing to resume"),
        ("fit --bfile cohort --pheno traits.tsv --epsilon 1 --delta 1e-6 --out r", "bounds"),
        ("inspect nothing", "nothing"),
        ("inspect bounds.toml", "bounds.toml"),
        ("report nothing", "nothing"),
        ("ledger show bounds.toml", "bounds.toml"),
        ("ledger show nothing.ledger", "nothing.ledger"),
        ("ledger init l.ledger --epsilon -3 --delta 1e-6", "epsilon"),
        ("plan --rows 10 --features 2 --outcomes 2", "--target-r2"),
        ("plan --rows ten --features 2 --outcomes 2 --epsilon 1", "ten"),
        ("nonsense", "nonsense"),
    ],
)
def test_bad_requests(folder, primo, data_line, line, match):
    before = remains(folder)
    out, err = primo(line.format(data=data_line), code=2)
    assert match in err
    assert "Traceback" not in out + err
    assert remains(folder) <= before


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("fit --bfile cohort --epsilon 1 --delta 1e-6", "--pheno: a file"),
        ("fit --bfile cohort --pheno traits.tsv --epsilon 1 --delta 1e-6", "[outcomes]\n  lower ="),
        ("fit {data} --epsilon 0 --delta 1e-6", "--epsilon 0.0 must"),
        ("fit {data} --maf 0.1 --epsilon 1 --delta 1e-6", "Give --frequencies from public"),
        ("fit {data} --split 3 --epsilon 1 --delta 1e-6", "--split 3.0 must"),
        ("fit {data} --association projection --epsilon 1 --delta 1e-6", "Use --association gauss"),
        ("fit {data} --association projection --epsilon 1 --delta 1e-6", "--protect both"),
        ("fit {data} --dosages --epsilon 1 --delta 1e-6", "(--pfile)"),
        (
            "fit --table traits.tsv --features score0* --outcomes-table ages.tsv --outcomes age",
            "--id-column, or state with --same-order",
        ),
        ("plan --rows 9 --features 2 --outcomes 2 --target-r2 0.4", "a stronger --signal-r2"),
        ("plan --rows 9 --features 2 --outcomes 2 --target-r2 0.4 --signal-r2 3", "--signal-r2 3"),
        ("ledger show nothing.ledger", "make one with primo ledger init"),
        ("fit {data} --threads 0", "--threads"),
        ("legder show", "did you mean 'ledger'"),
        ("predict release --bfile cohort --out x.xlsx", "release"),
    ],
)
def test_messages_speak_of_options(folder, primo, data_line, line, words):
    _, err = primo(line.format(data=data_line), code=2)
    assert words in err
    assert "_" not in err.replace("public_panel", "")


def test_the_key_of_a_ledger_has_two_names(folder, primo, fit_line):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    Path("books.ledger.key").unlink()
    _, err = primo("ledger note books.ledger --mu 0.1 --purpose other", code=1)
    assert "Give --key," in err
    _, err = primo(f"{fit_line} --ledger books.ledger --out release", code=1)
    assert "Give --ledger-key," in err


def test_the_file_of_predictions_is_named(release, primo):
    _, err = primo("predict release --bfile cohort --covar ages.tsv --out x.xlsx", code=2)
    assert "'x.xlsx'" in err


def test_a_statement_that_was_rewritten_with_its_hash(release, primo):
    statement, manifest = release / "statement.txt", release / "manifest.json"
    old = statement.read_bytes()
    new = old.replace(b"epsilon = 5,", b"epsilon = 1,")
    statement.write_bytes(new)
    digests = [hashlib.sha256(text).hexdigest() for text in (old, new)]
    manifest.write_text(manifest.read_text().replace(*digests))
    _, err = primo("inspect release", code=2)
    assert "statement.txt contradicts" in err


def test_the_kept_configuration_is_fit_for_publication(folder, primo, fit_line):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    primo(
        f"{fit_line} --ledger books.ledger --purpose private --dataset clinic --threads 1 --out release"
    )
    kept = Path("release/config.toml").read_text()
    for word in ("private", "clinic", "threads", "ledger"):
        assert word not in kept


@pytest.mark.parametrize(
    ("name", "content", "match"),
    [
        ("cohort.bed", b"not a bed file", "cohort.bed"),
        ("cohort.bed", b"", "cohort.bed"),
        ("cohort.bim", b"1\trs1\t0\t1\tA\tG\n", "cohort.b"),
        ("cohort.fam", b"", "cohort.fam"),
        ("traits.tsv", b"", "traits.tsv"),
        ("traits.tsv", b"\xff\xfe\x00", "traits.tsv"),
        ("traits.tsv", b"FID\tIID\ty\nperson00042\tperson00042\tabc\n", "traits.tsv"),
        ("traits.tsv", b"FID\tIID\ty\nperson00042\tperson00042\n", "traits.tsv"),
        ("bounds.toml", b"[outcomes", "bounds.toml"),
        ("bounds.toml", b"[features.columns.age]\nlower = 90\nupper = 18\n", "not below"),
    ],
)
def test_bad_files(folder, primo, fit_line, name, content, match):
    Path(name).write_bytes(content)
    out, err = primo(f"{fit_line} --out release", code=2)
    assert match in err
    assert SECRET not in out + err
    assert "abc" not in out + err
    assert "Traceback" not in out + err
    assert not Path("release").exists()


def test_a_configuration_with_an_unknown_option(folder, primo):
    Path("run.toml").write_text("epsilom = 3\n")
    _, err = primo("fit --config run.toml", code=2)
    assert "did you mean 'epsilon'" in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("rounds = 2.5", 'rounds = 2.5 must be "auto" or a whole number from 1 to 256'),
        ('rounds = "many"', 'rounds = "many" must be "auto" or a whole number from 1 to 256'),
        ('rounds = "3"', 'rounds = "3" must be "auto" or'),
        ("rounds = true", 'rounds = true must be "auto" or'),
        ("rounds = [3]", 'rounds = [3] must be "auto" or'),
        ("rounds = 257", 'rounds = 257 must be "auto" or'),
        ("rows-per-person = 2.9", "rows-per-person = 2.9 must be a whole number, 1 or more"),
        ("rows_per_person = 2.0", "rows_per_person = 2.0 must be a whole number, 1 or more"),
        ('rows-per-person = "2"', 'rows-per-person = "2" must be a whole number, 1 or more'),
        ("rows-per-person = 0", "rows-per-person = 0 must be a whole number, 1 or more"),
        ("threads = 1.5", "threads = 1.5 must be a whole number from 1 to 1024"),
        ("workers = true", "workers = true must be a whole number from 1 to 1024"),
        ("covariance-rows = 10.5", "covariance-rows = 10.5 must be a whole number, 1 or more"),
        ("epsilon = true", "epsilon = true must be a number"),
        ("epsilon = false", "epsilon = false must be a number"),
        ('epsilon = "5"', 'epsilon = "5" must be a number'),
        ("intercept = 1", "intercept must be true or false"),
        ('ledger = ["postgresql://me:word@host"]', "ledger must be text in quotes"),
    ],
)
def test_a_configuration_with_a_value_of_another_kind(folder, primo, fit_line, line, said):
    """A fraction is refused: cut off, the rows of a person would be too few for the guarantee."""
    Path("run.toml").write_text(f"{line}\n")
    _, err = primo(f"{fit_line} --config run.toml --dry-run", code=2)
    assert f"primo: run.toml: {said}" in err
    assert "word" not in err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "fit {data} --rounds many",
            '--rounds many must be "auto" or a whole number from 1 to 256',
        ),
        ("fit {data} --rounds 2.5", '--rounds 2.5 must be "auto" or a whole number from 1 to 256'),
        ("fit {data} --rounds 257", '--rounds 257 must be "auto" or a whole number from 1 to 256'),
        ("fit {data} --rows-per-person 2.9", "--rows-per-person 2.9 must be a whole number, 1 or"),
        ("fit {data} --threads 0", "--threads 0 must be a whole number from 1 to 1024"),
        ("audit --rounds auto", "--rounds auto must be a whole number from 1 to 256"),
        ("audit --rounds 257", "--rounds 257 must be a whole number from 1 to 256"),
        ("ld-blocks --panel p.bed --out o --most x", "--most x must be a whole number, 1 or more"),
    ],
)
def test_a_number_that_is_not_whole_or_out_of_range(folder, primo, data_line, line, said):
    assert f"primo: {said}" in primo(line.format(data=data_line), code=2)[1]


def test_json_names_the_option_that_is_not_whole(folder, primo, fit_line):
    out, _ = primo(f"{fit_line} --rows-per-person 2.9 --json", code=2)
    assert json.loads(out)["error"]["argument"] == "--rows-per-person"


def test_an_existing_release_is_not_overwritten(release, primo, fit_line):
    _, err = primo(f"{fit_line} --out release", code=2)
    assert "exists" in err


def test_a_tampered_release_is_refused(release, primo):
    path = release / "coefficients.tsv"
    text = path.read_text()
    path.write_text(text[:-2] + ("1" if text[-2] != "1" else "0") + text[-1])
    for command in ("inspect", "report", "predict --bfile cohort --covar ages.tsv --out p.tsv"):
        name, *rest = command.split(" ", 1)
        _, err = primo(f"{name} release {' '.join(rest)}", code=2)
        assert "coefficients.tsv" in err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_an_unwritable_folder(folder, primo, fit_line):
    locked = folder / "locked"
    locked.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    primo(f"{fit_line} --out locked/release", code=1)


def full(*_, **__):
    raise OSError(28, "No space left on device", "release")


def test_a_disk_that_is_full_from_the_start(folder, primo, fit_line, monkeypatch):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    monkeypatch.setattr(os, "fsync", full)
    _, err = primo(f"{fit_line} --ledger books.ledger --out release", code=2)
    assert "No space left" in err
    assert remains(folder) == {*remains(folder)} - {"release", ".release.primo-partial"}
    assert "nothing was charged" in primo("ledger show books.ledger")[1]


def test_a_disk_that_fills_up_loses_nothing(folder, primo, fit_line, monkeypatch):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    with monkeypatch.context() as patch:
        patch.setattr("primo.workflow.resume.write_bundle", full)
        _, err = primo(f"{fit_line} --ledger books.ledger --out release", code=1)
    assert "No space left" in err
    assert "--resume" in err
    assert not Path("release").exists()
    primo("fit --resume --ledger books.ledger --out release")
    assert Path("release/manifest.json").exists()


def test_a_foreign_exception_keeps_its_message_to_itself(folder, primo, fit_line, monkeypatch):
    from primo.rows.sources import paired

    def broken(*_):
        raise RuntimeError(f"row of {SECRET}")

    monkeypatch.setattr(paired.PairedSource, "blocks", broken)
    out, err = primo(f"{fit_line} --out release", code=1)
    assert SECRET not in out + err
    assert "RuntimeError" in err


def test_errors_for_machines(folder, primo_json):
    found = primo_json("fit --bfile nowhere --pheno traits.tsv --epsilon 1 --delta 1e-6", code=2)
    assert found["error"]["exit_code"] == 2
    assert "nowhere" in found["error"]["message"]


def test_a_locked_ledger(folder, primo, fit_line, monkeypatch):
    import sqlite3

    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    holder = sqlite3.connect("books.ledger", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr("primo.ledger.sqlite.LOCK_TIMEOUT", 0.2)
    _, err = primo(f"{fit_line} --ledger books.ledger --out release", code=1)
    holder.close()
    assert "books.ledger" in err


def test_a_corrupt_ledger(folder, primo, fit_line):
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6")
    data = bytearray(Path("books.ledger").read_bytes())
    data[2000:] = os.urandom(len(data) - 2000)
    Path("books.ledger").write_bytes(bytes(data))
    _, err = primo(f"{fit_line} --ledger books.ledger --out release", code=1)
    assert "books.ledger" in err
    assert not Path("release").exists()


def test_arrays_of_different_length(folder, primo):
    np.save("x.npy", np.zeros((10, 2)))
    np.save("y.npy", np.zeros((9, 2)))
    _, err = primo("fit --feature-array x.npy --outcome-array y.npy --epsilon 1 --delta .1", code=2)
    assert "10 rows of features but 9" in err


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("--covariance blocks --rounds 3", "--covariance and --rounds"),
        ("--norms auto --rounds 3", "--rounds and --norms"),
        ("--covariance none --norms auto", "--covariance and --norms"),
        ("--association perturbed --split 1", "--association and --split"),
    ],
)
def test_an_audit_names_the_two_options_that_exclude_each_other(primo, line, named):
    said = primo(f"audit {line}", code=2)[1]
    assert f"{named} are not audited together; leave one of the two out" in said
