"""The manifest of a bundle: what it states, and what is refused."""

import datetime
import json
import math
import zipfile

import jsonschema
import pytest

import primo
from primo.released.bundle import SCHEMA_FILE, read_bundle, write_bundle
from primo.released.bundle.manifest import parse

DAY = datetime.date(2026, 11, 15)
KINDS = ("bundle", "bundle.zip")
ROUNDING = {"rtol": 1e-7, "atol": 1e-10}  # numbers that are computed twice


def folder_bytes(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


class TestManifest:
    def test_fits_the_published_schema(self, make, variants, tmp_path):
        schema = json.loads(SCHEMA_FILE.read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        for i, release in enumerate(
            (make(), make(seed=None), make(protection="features", association="projection"))
        ):
            for options in ({}, {"variants": variants, "config": "x = 1"}):
                path = write_bundle(release, tmp_path / f"{i}{len(options)}", **options)
                jsonschema.validate(json.loads((path / "manifest.json").read_text()), schema)

    def test_what_breaks_the_schema_is_refused_and_no_value_is_quoted(self, make, tmp_path):
        schema = json.loads(SCHEMA_FILE.read_text())
        path = write_bundle(make(), tmp_path / "b")
        text = (path / "manifest.json").read_text()
        parse(text.encode())

        def places(node, at=()):
            for key, value in node.items():
                yield (*at, key)
                if isinstance(value, dict):
                    yield from places(value, (*at, key))

        edits = [None, -1, 0.5, "", "Zq9", True, {}, [], "0" * 64]
        seen = 0
        for *way, last in places(json.loads(text)):
            for edit in ("drop", "add", *edits):
                manifest = json.loads(text)
                node = manifest
                for key in way:
                    node = node[key]
                if edit == "drop":
                    del node[last]
                elif edit == "add":
                    node["x" * 100] = 1
                else:
                    node[last] = edit
                if jsonschema.Draft202012Validator(schema).is_valid(manifest):
                    parse(json.dumps(manifest).encode())
                elif last not in ("format", "version") or edit == "add":
                    seen += 1
                    with pytest.raises(primo.InputError, match="manifest") as caught:
                        parse(json.dumps(manifest).encode())
                    assert "Zq9" not in str(caught.value)
                    assert len(str(caught.value)) < 300
        assert seen > 300

    @pytest.mark.parametrize("key", ["rows", "created", "level", "privacy", "version", "x"])
    def test_a_deep_manifest_is_refused(self, key, make, tmp_path):
        path = write_bundle(make(), tmp_path / "b")
        manifest = json.loads((path / "manifest.json").read_text())
        for depth in (100, 900, 960, 980, 1000, 100_000):
            deep = json.dumps(manifest | {key: 0}).replace(
                f'"{key}": 0', f'"{key}": {"[" * depth}{"]" * depth}'
            )
            with pytest.raises(primo.InputError, match=r"manifest\.json"):
                parse(deep.encode())

    def test_seeded_noise_is_marked_everywhere(self, make, tmp_path):
        path = write_bundle(make(seed=1), tmp_path / "b")
        assert (path / "statement.txt").read_text().startswith("*** NOT FOR PUBLICATION")
        manifest = read_bundle(path).manifest
        assert not manifest["publishable"]
        assert "NOT FOR PUBLICATION" in manifest["warning"]

    @pytest.mark.parametrize("choices", [{}, {"covariance_rows": 100}])
    def test_the_guarantee_of_a_person_with_two_rows(self, make, tmp_path, choices):
        path = write_bundle(make(rows_per_person=2, **choices), tmp_path / "two")
        privacy = read_bundle(path).manifest["privacy"]
        guarantee = json.loads((path / "plan.json").read_text())["guarantee"]
        assert privacy["rows_per_person"] == 2
        assert privacy["person_mu"] == 2 * privacy["mu"]
        assert math.isfinite(privacy["person_epsilon"])
        assert privacy["person_epsilon"] > 2 * privacy["epsilon"]
        assert {key: privacy[key] for key in guarantee if key in privacy} == {
            key: value for key, value in guarantee.items() if key in privacy
        }
        path = write_bundle(make(**choices), tmp_path / "one")
        privacy = read_bundle(path).manifest["privacy"]
        assert privacy["rows_per_person"] == 1
        assert privacy["person_epsilon"] == privacy["epsilon"]
        assert privacy["person_mu"] == privacy["mu"]

    def test_dates_have_no_time(self, make, tmp_path):
        path = write_bundle(make(), tmp_path / "b", created=DAY)
        assert read_bundle(path).manifest["created"] == "2026-11-15"
        midnight = datetime.datetime(2026, 11, 15, tzinfo=datetime.UTC).timestamp()
        assert {p.stat().st_mtime for p in (*path.iterdir(), path)} == {midnight}
        zipped = write_bundle(make(), tmp_path / "b.zip", created=DAY)
        assert zipped.stat().st_mtime == midnight
        with zipfile.ZipFile(zipped) as archive:
            assert {m.date_time for m in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}

    def test_digest_names_this_very_release(self, make, tmp_path):
        release = make()
        same = {"created": DAY, "release_id": "a"}
        first = read_bundle(write_bundle(release, tmp_path / "1", **same))
        again = read_bundle(write_bundle(release, tmp_path / "2.zip", **same))
        other = read_bundle(write_bundle(make(seed=2), tmp_path / "3", **same))
        assert first.digest == again.digest != other.digest
