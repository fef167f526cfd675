"""Files that primo itself writes or asks for, damaged: releases, bundles, jobs, ledgers, TOML, lists."""

import hashlib
import io
import json
import os
import pickle
import sqlite3
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import primo
from primo.cli import main
from primo.ledger import create_ledger, open_ledger, verify_export
from primo.planning.bounds_file import block_bounds, read_bounds_file
from primo.privacy.accounting import Cost
from primo.privacy.bounds import Bounds
from primo.privacy.budget import Budget
from primo.released.bundle import read_bundle, write_bundle
from primo.rows.person_tokens import sketch
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.genotypes.frequencies import read_frequencies
from primo.rows.sources.genotypes.people import read_fam, read_list_of_people, read_psam
from primo.rows.sources.genotypes.variant_lists import read_variant_list
from primo.rows.sources.select import read_list
from primo.variants import Variants
from primo.workflow.resume import Staging, partial_of

PROFILE = settings(settings.get_profile("fuzz"))


def rows(n=30, d=3, l=2):
    rng = np.random.default_rng(2)
    return ArraySource(
        features=rng.uniform(-1, 1, size=(n, d)),
        outcomes=rng.uniform(-1, 1, size=(n, l)),
        feature_names=tuple(f"x{i}" for i in range(d)),
        outcome_names=tuple(f"y{i}" for i in range(l)),
    )


@pytest.fixture(scope="module")
def release():
    source = rows()
    model = primo.PrimoRegressor(
        epsilon=2.0,
        delta=1e-6,
        feature_bounds=Bounds(lower=-1.0, upper=1.0),
        outcome_bounds=Bounds(lower=-1.0, upper=1.0),
    )
    return model.fit(source).release_


@pytest.fixture(scope="module")
def archive(release, tmp_path_factory):
    path = tmp_path_factory.mktemp("release") / "release.npz"
    primo.save_release(release, path)
    return path.read_bytes()


@pytest.fixture(scope="module")
def bundle(release, tmp_path_factory):
    variants = Variants(
        names=("x0", "x1"),
        chromosome=("1", "X"),
        position=np.array([5, 7]),
        counted=("A", "C"),
        other=("G", "T"),
        haplotypes=False,
    )
    place = tmp_path_factory.mktemp("bundle") / "bundle"
    write_bundle(release, place, variants=variants, config="epsilon = 2.0\n")
    return {path.name: path.read_bytes() for path in place.iterdir()}


def use(found):
    """Do with a release or bundle what users do."""
    if isinstance(found, primo.Bundle):
        found.coefficients()
        found = found.release
    found.statement()
    repr(found)


@PROFILE
@given(data=st.data())
def test_a_damaged_release(fuzz, archive, data):
    content = fuzz.damaged(archive, data.draw(fuzz.edits))
    with fuzz.folder({"r.npz": content}) as folder, fuzz.guarded():
        use(primo.load_release(folder / "r.npz"))


JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**400), 10**400),
        st.integers(-3, 3),
        st.floats(),
        st.text(max_size=5),
        st.sampled_from(["both", "primo release 1", "../x", "a" * 10_000]),
    ),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=5,
)


def replaced(tree, path, value):
    """Put `value` at a place in nested dictionaries and lists, chosen by the numbers in `path`."""
    if not path or not isinstance(tree, dict | list) or not tree:
        return value
    keys = sorted(tree) if isinstance(tree, dict) else range(len(tree))
    key = keys[path[0] % len(keys)]
    copy = tree.copy()
    copy[key] = replaced(tree[key], path[1:], value)
    return copy


PATH = st.lists(st.integers(0, 50), min_size=1, max_size=3)


@PROFILE
@given(path=PATH, value=JSON)
def test_other_values_in_the_manifest_of_a_release(fuzz, archive, path, value):
    with np.load(io.BytesIO(archive)) as stored:
        arrays = dict(stored)
    manifest = replaced(json.loads(str(arrays["manifest"])), path, value)
    arrays["manifest"] = np.array(json.dumps(manifest))
    with fuzz.folder() as folder, fuzz.guarded():
        np.savez(folder / "r.npz", **arrays)
        use(primo.load_release(folder / "r.npz"))


@PROFILE
@given(data=st.data())
def test_other_arrays_in_a_release(fuzz, archive, data):
    with np.load(io.BytesIO(archive)) as stored:
        arrays = dict(stored)
    name = data.draw(st.sampled_from(sorted(arrays)))
    arrays[name] = data.draw(
        st.sampled_from(
            [
                np.zeros(0),
                np.zeros((3, 3, 3)),
                np.full_like(arrays[name], np.nan) if arrays[name].dtype.kind == "f" else np.nan,
                np.zeros(arrays[name].shape, dtype=complex),
                np.array("text"),
                np.zeros(arrays[name].shape, dtype=np.int8),
                np.full(arrays[name].shape, -1.0),
                np.full(arrays[name].shape, 1e308),
            ]
        )
    )
    with fuzz.folder() as folder, fuzz.guarded():
        np.savez(folder / "r.npz", **arrays)
        use(primo.load_release(folder / "r.npz"))


class Bomb:
    """Unpickled, it would make a folder."""

    def __reduce__(self):
        return os.mkdir, (str(Bomb.trace),)


def test_nothing_is_unpickled(fuzz, archive, tmp_path):
    Bomb.trace = tmp_path / "unpickled"
    objects = np.array([[Bomb(), Bomb()]], dtype=object)
    np.save(tmp_path / "x.npy", objects, allow_pickle=True)
    (tmp_path / "p.npz").write_bytes(pickle.dumps(Bomb()))
    (tmp_path / "p.npy").write_bytes(pickle.dumps(Bomb()))
    with np.load(io.BytesIO(archive)) as stored:
        arrays = dict(stored)
    np.savez(tmp_path / "r.npz", **{**arrays, "covariance": objects})
    for action in (
        lambda: open_npy(tmp_path / "x.npy"),
        lambda: open_npy(tmp_path / "p.npy"),
        lambda: primo.load_release(tmp_path / "r.npz"),
        lambda: primo.load_release(tmp_path / "p.npz"),
        lambda: read_bundle(tmp_path / "p.npz"),
    ):
        with pytest.raises(primo.InputError):
            action()
    for name in ("x.npy", "p.npy"):
        line = f"fit --feature-array {tmp_path / name} --outcome-array {tmp_path / name}"
        assert CliRunner().invoke(main, line.split()).exit_code == 2
    assert not Bomb.trace.exists()


@PROFILE
@given(data=st.data(), forged=st.booleans(), packed=st.booleans())
def test_a_damaged_bundle(fuzz, bundle, data, forged, packed):
    name = data.draw(st.sampled_from(sorted(bundle)))
    parts = {**bundle, name: fuzz.damaged(bundle[name], data.draw(fuzz.edits))}
    if forged and name != "manifest.json":  # what a careful forger does
        manifest = json.loads(parts["manifest.json"])
        digest = hashlib.sha256(parts[name]).hexdigest()
        manifest["parts"][name].update(sha256=digest, bytes=len(parts[name]))
        parts["manifest.json"] = json.dumps(manifest).encode()
    with fuzz.folder({} if packed else {f"b/{key}": part for key, part in parts.items()}) as folder:
        if packed:
            with zipfile.ZipFile(folder / "b", "w") as file:
                for key, part in parts.items():
                    file.writestr(key, part)
        found = None
        with fuzz.guarded():
            found = read_bundle(folder / "b")
            use(found)
        assert found is None or forged or parts == bundle, "a change went unseen"


@PROFILE
@given(path=PATH, value=JSON)
def test_other_values_in_the_manifest_of_a_bundle(fuzz, bundle, path, value):
    manifest = replaced(json.loads(bundle["manifest.json"]), path, value)
    files = {f"b/{key}": part for key, part in bundle.items()}
    files["b/manifest.json"] = json.dumps(manifest).encode()
    with fuzz.folder(files) as folder, fuzz.guarded():
        use(read_bundle(folder / "b"))


@PROFILE
@given(data=st.data())
def test_a_damaged_zip(fuzz, bundle, data):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as file:
        for key, part in bundle.items():
            file.writestr(key, part)
    content = fuzz.damaged(packed.getvalue(), data.draw(fuzz.edits))
    with fuzz.folder({"b.zip": content}) as folder, fuzz.guarded():
        use(read_bundle(folder / "b.zip"))


@pytest.mark.parametrize("name", ["../escape", "/tmp/escape", "sub/x", "..\\x", "statement.txt/"])
def test_names_that_leave_the_zip(bundle, tmp_path, name):
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as file:
        for key, part in bundle.items():
            file.writestr(key, part)
        file.writestr(name, b"x")
    with pytest.raises(primo.InputError, match="no place"):
        read_bundle(tmp_path / "b.zip")
    assert [path.name for path in tmp_path.iterdir()] == ["b.zip"]


def test_zip_bombs(bundle, archive, tmp_path):
    with zipfile.ZipFile(tmp_path / "b.zip", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.json", bytes(2**24))
    with pytest.raises(primo.InputError, match="compressed"):
        read_bundle(tmp_path / "b.zip")
    with zipfile.ZipFile(tmp_path / "r.npz", "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("manifest.npy", bytes(2**24))
    with pytest.raises(primo.InputError):
        primo.load_release(tmp_path / "r.npz")


JOB = {
    "format": "primo job 1",
    "release_id": "run-1",
    "created": "2026-11-15",
    "primo": "0.1.0",
    "plan_digest": "00" * 32,
    "charge": {"ledger": True},
    "config": 'bfile = "x"\nepsilon = 1.0\n',
}


@PROFILE
@given(data=st.data(), path=PATH, value=JSON)
def test_a_damaged_job(fuzz, data, path, value):
    if data.draw(st.booleans()):
        content = json.dumps(replaced(JOB, path, value)).encode()
    else:
        content = fuzz.damaged(json.dumps(JOB).encode(), data.draw(fuzz.edits))
    with fuzz.folder() as folder:
        place = partial_of(folder / "out")
        place.mkdir(mode=0o700)
        for name, stored in (("job.json", content), ("secret", bytes(32))):
            (place / name).touch(mode=0o600)
            (place / name).write_bytes(stored)
        with fuzz.guarded(), Staging.resume(folder / "out") as staging:
            _ = staging.release_id, staging.created, staging.config, staging.charge
            _ = staging.published, repr(staging)
            staging.bits()
        result = CliRunner().invoke(main, ["fit", "--resume", "--out", str(folder / "out")])
        assert result.exit_code in (1, 2)
        assert "unexpected" not in result.stderr


@pytest.fixture(scope="module")
def books(tmp_path_factory):
    """A ledger with a few entries, its key and its export."""
    folder = tmp_path_factory.mktemp("books")
    ledger = create_ledger(folder / "a.ledger", limit=Budget(epsilon=5, delta=1e-6), by_values=True)
    people = sketch(rows(), ledger.key)
    ledger.charge(people, Cost(mu=0.1), release_id="r", purpose="p")
    ledger.note(Cost(epsilon=0.1, delta=1e-9), purpose="q")
    ledger.export(folder / "a.jsonl")
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def look_through(folder):
    ledger = open_ledger(folder / "a.ledger")
    ledger.spent()
    ledger.history()
    repr(ledger)
    ledger.charge(sketch(rows(20), ledger.key), Cost(mu=0.1), release_id="s", purpose="p")
    return ledger


@PROFILE
@given(data=st.data())
def test_a_damaged_ledger(fuzz, books, data):
    name = data.draw(st.sampled_from(["a.ledger", "a.ledger", "a.ledger.key"]))
    content = fuzz.damaged(books[name], data.draw(fuzz.edits))
    with fuzz.folder({**books, name: content}) as folder:
        found = None
        with fuzz.guarded():
            found = look_through(folder)
        assert found is None or found.find("r") is not None, "a charge was lost unseen"


@PROFILE
@given(
    number=st.integers(1, 5),
    column=st.sampled_from(["body", "hash", "seal", "number"]),
    value=st.one_of(
        st.text(max_size=9), st.binary(max_size=9), st.integers(-3, 9), st.floats(), JSON
    ),
)
def test_changed_rows_of_a_ledger(fuzz, books, number, column, value):
    with fuzz.folder(books) as folder:
        database = sqlite3.connect(folder / "a.ledger", isolation_level=None)
        database.execute("DROP TRIGGER entries_stay")
        value = json.dumps(value) if isinstance(value, dict | list | bool | None) else value
        try:
            command = f"UPDATE entries SET {column} = ? WHERE number = ?"
            changed = database.execute(command, (value, number)).rowcount
        except (sqlite3.Error, OverflowError, UnicodeError):
            changed = 0
        database.close()
        found = None
        with fuzz.guarded():
            found = look_through(folder)
        assert found is None or not changed or (column, value) == ("number", number)


@PROFILE
@given(data=st.data())
def test_a_damaged_export(fuzz, books, data):
    content = fuzz.damaged(books["a.jsonl"], data.draw(fuzz.edits))
    with fuzz.folder({"a.jsonl": content}) as folder, fuzz.guarded():
        verify_export(folder / "a.jsonl")


BOUNDS = b"""[features]
lower = 0
upper = 2
norm = 4.5
[features.columns.age]
lower = 18
upper = 90
[outcomes]
centre = 0
scale = 1.0
norm = 6
"""
WORDS = (
    b"[",
    b"]",
    b"=",
    b"norm = []",
    b"columns = 3",
    b"lower = nan",
    b"1e999",
    b"9" * 5000,
    b"'",
)


@PROFILE
@given(data=st.data())
def test_bounds_files(fuzz, data):
    content = fuzz.damaged(BOUNDS, data.draw(fuzz.edits))
    place = data.draw(st.integers(0, len(content)))
    content = content[:place] + data.draw(st.sampled_from([b"", *WORDS])) + content[place:]
    with fuzz.folder({"b.toml": content}) as folder, fuzz.guarded():
        table = read_bounds_file(folder / "b.toml")
        for block in ("features", "outcomes"):
            bounds = block_bounds(table.get(block), ("x", "age"), block=block)
            if bounds is not None:
                bounds.clip(2, block)


TOML = st.recursive(
    st.one_of(st.booleans(), st.integers(-5, 10**30), st.floats(), st.text(max_size=4)),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
    max_leaves=3,
)


@PROFILE
@given(key=st.sampled_from(["lower", "upper", "centre", "scale", "norm", "columns"]), value=TOML)
def test_other_values_in_bounds_files(fuzz, key, value):
    import tomli_w

    table = {"features": {"lower": 0, "upper": 2, "columns": {"age": {"lower": 1, "upper": 9}}}}
    for place in (table, table["features"], table["features"]["columns"]["age"]):
        place[key] = value
        try:
            content = tomli_w.dumps(table).encode()
        except (TypeError, ValueError):
            return
        place.pop(key)
        with fuzz.folder({"b.toml": content}) as folder, fuzz.guarded():
            found = block_bounds(
                read_bounds_file(folder / "b.toml").get("features"), ("x", "age"), block="features"
            )
            found.clip(2, "features")


@PROFILE
@given(
    key=st.sampled_from(["epsilon", "out", "pheno", "haplotypes", "ledger", "threads"]), value=TOML
)
def test_other_values_in_configurations(fuzz, key, value):
    import tomli_w

    try:
        content = tomli_w.dumps({key: value, "table": "x.csv"}).encode()
    except (TypeError, ValueError):
        return
    with fuzz.folder({"c.toml": content}) as folder:
        result = CliRunner().invoke(main, ["fit", "--config", str(folder / "c.toml")])
        assert result.exit_code == 2, result.stderr


def test_deeply_nested_text(tmp_path):
    deep = b"x = " + b"[" * 100_000
    (tmp_path / "b.toml").write_bytes(deep)
    with pytest.raises(primo.InputError):
        read_bounds_file(tmp_path / "b.toml")
    result = CliRunner().invoke(main, ["fit", "--config", str(tmp_path / "b.toml")])
    assert result.exit_code == 2
    np.savez(tmp_path / "r.npz", manifest=np.array("[" * 100_000))
    with pytest.raises(primo.InputError):
        primo.load_release(tmp_path / "r.npz")


PEOPLE = b"FID IID SEX\n0 SENTINEL-1 1\nf2 SENTINEL-2 2\nf3 SENTINEL-3 1\n"
FREQUENCIES = b"#CHROM ID REF ALT ALT_FREQS OBS_CT\n1 rs1 A C 0.25 100\n1 rs2 A C 0.5 100\n"


@PROFILE
@given(data=st.data())
def test_lists_and_frequencies(fuzz, data):
    import gzip

    edits = data.draw(fuzz.edits)
    files = {
        "people": fuzz.damaged(PEOPLE, edits),
        "f.afreq": fuzz.damaged(FREQUENCIES, edits),
        "f.gz": fuzz.damaged(gzip.compress(FREQUENCIES, mtime=0), edits),
        "names": fuzz.damaged(b"x1\nx2 # two\n\nx*\n", edits),
    }
    with fuzz.folder(files) as folder:
        for reader in (read_list_of_people, read_fam, read_psam):
            with fuzz.guarded(forbidden=["SENTINEL"]):
                reader(folder / "people").keys(families=False)
        for name in ("f.afreq", "f.gz"):
            with fuzz.guarded():
                found = read_frequencies(folder / name)
                assert ((found.frequency >= 0) & (found.frequency <= 1)).all()
        for reader in (read_list, read_variant_list):
            with fuzz.guarded():
                reader(folder / "names")
