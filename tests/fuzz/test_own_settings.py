"""Bounds files, configurations and lists, damaged."""

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import primo
from primo.cli import main
from primo.planning.bounds_file import block_bounds, read_bounds_file
from primo.rows.sources.genotypes.frequencies import read_frequencies
from primo.rows.sources.genotypes.people import read_fam, read_list_of_people, read_psam
from primo.rows.sources.genotypes.variant_lists import read_variant_list
from primo.rows.sources.select import read_list

PROFILE = settings(settings.get_profile("fuzz"))


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
