"""A bundle that was changed in any way is refused, and the message names the part."""

import dataclasses
import hashlib
import json
import shutil
import struct
import zipfile

import numpy as np
import pytest

import primo
from primo.released.bundle import read_bundle, write_bundle


@pytest.fixture
def whole(make, variants, tmp_path):
    return write_bundle(make(), tmp_path / "b", variants=variants, config="x = 1\n")


def refused(path, match):
    with pytest.raises(primo.InputError, match=match):
        read_bundle(path)


def zipped(folder, path, *, method=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", method) as archive:
        for file in folder.iterdir():
            archive.write(file, file.name)
    return path


def rehash(folder, name):
    """What a careful forger does: bring the manifest up to date."""
    manifest = json.loads((folder / "manifest.json").read_text())
    content = (folder / name).read_bytes()
    manifest["parts"][name].update(sha256=hashlib.sha256(content).hexdigest(), bytes=len(content))
    (folder / "manifest.json").write_text(json.dumps(manifest))


PARTS = (
    "statement.txt",
    "plan.json",
    "coefficients.parquet",
    "coefficients.tsv",
    "outcomes.parquet",
    "outcomes.tsv",
    "moments.npz",
    "variants.tsv",
    "config.toml",
)


@pytest.mark.parametrize("name", PARTS)
def test_every_part_is_held_to_its_hash(whole, name):
    path = whole / name
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    path.write_bytes(flipped)
    refused(whole, f"{name} was changed")
    again = zipped(whole, whole.with_name("z.zip"))
    refused(again, f"{name} was changed")
    path.write_bytes(content[:-1])
    refused(whole, f"{name} has {len(content) - 1} bytes, not {len(content)}")
    path.unlink()
    refused(whole, f"{name} is missing")


def test_extra_files_and_links(whole, tmp_path):
    (whole / "notes.txt").write_text("hello")
    refused(whole, "'notes.txt' is there but not in manifest.json")
    refused(zipped(whole, tmp_path / "z.zip"), "'notes.txt' is not a part of a bundle")
    (whole / "notes.txt").unlink()
    (whole / "sub").mkdir()
    refused(whole, "'sub' is not a plain file")
    (whole / "sub").rmdir()
    (whole / "plan.json").rename(tmp_path / "plan.json")
    (whole / "plan.json").symlink_to(tmp_path / "plan.json")
    refused(whole, r"'plan\.json' is not a plain file")


@pytest.mark.parametrize(
    ("edit", "match"),
    [
        (lambda m: m.update(version=2), "version 2 and this primo reads version 1"),
        (lambda m: m.update(format="zip"), "not the manifest of a primo bundle"),
        (lambda m: m["privacy"].update(epsilon=0.1), "contradicts moments.npz"),
        (lambda m: m.update(publishable=True, warning=None), "contradicts"),
        (lambda m: m.update(rows=3), "contradicts"),
        (lambda m: m.update(note="x"), "unknown 'note'"),
        (lambda m: m["parts"].pop("plan.json"), "no 'plan.json'"),
        (lambda m: m["parts"].update({"../x": m["parts"]["plan.json"]}), r"unknown '\.\./x'"),
    ],
)
def test_manifests_that_contradict_the_release(whole, edit, match):
    path = whole / "manifest.json"
    manifest = json.loads(path.read_text())
    edit(manifest)
    path.write_text(json.dumps(manifest))
    refused(whole, match)


def test_invalid_manifests(whole, tmp_path):
    path = whole / "manifest.json"
    for content in (
        b"",
        b"[1]",
        b"{",
        b'{"version": NaN}',
        b"\xff",
        b"[" * 100_000,
        b'{"a":1,"a":2}',
    ):
        path.write_bytes(content)
        refused(whole, r"manifest\.json")
    path.write_bytes(b" " * 2**21)
    refused(whole, "more than")
    path.unlink()
    refused(whole, "manifest.json is missing")
    refused(tmp_path / "nothing", "there is no bundle at")
    (tmp_path / "text").write_text("no zip")
    refused(tmp_path / "text", "neither a folder nor")


def test_a_forger_who_knows_hashes_cannot_weaken_the_noise(whole):
    path = whole / "moments.npz"
    with np.load(path) as file:
        arrays = dict(file)
    stored = json.loads(str(arrays["manifest"]))
    stored["plan"]["grid"]["association_variance_bits"] = 40
    arrays["manifest"] = np.array(json.dumps(stored))
    np.savez(path, **arrays)
    rehash(whole, "moments.npz")
    refused(whole, "the noise does not fit the guarantee")


@pytest.mark.parametrize(
    ("name", "content"), [("variants.tsv", b"a\tb\n1\t2\n"), ("config.toml", b"\xff\xfe")]
)
def test_parts_of_another_kind(whole, name, content):
    (whole / name).write_bytes(content)
    rehash(whole, name)
    refused(whole, name)


class TestZip:
    def test_traversal_and_duplicates(self, whole, tmp_path):
        path = zipped(whole, tmp_path / "z.zip")
        for evil in ("../evil.txt", "/etc/passwd", "sub/plan.json", "plan.json/"):
            other = tmp_path / "evil.zip"
            shutil.copy(path, other)
            with zipfile.ZipFile(other, "a") as archive:
                archive.writestr(evil, "x")
            refused(other, "not a part of a bundle")
        with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr("plan.json", "{}")
        refused(path, r"'plan\.json' is .* there twice")
        assert not (tmp_path.parent / "evil.txt").exists()

    def test_bombs(self, whole, tmp_path):
        path = zipped(whole, tmp_path / "z.zip", method=zipfile.ZIP_DEFLATED)
        refused(path, "compressed or encrypted")

    def test_members_that_overlap(self, whole, tmp_path):
        path = zipped(whole, tmp_path / "z.zip")
        content = bytearray(path.read_bytes())
        # In the central directory: plan.json claims to be a hundred million bytes.
        at = content.rindex(b"plan.json") - 46
        assert content[at : at + 4] == b"PK\x01\x02"
        content[at + 20 : at + 28] = struct.pack("<II", 10**8, 10**8)
        path.write_bytes(content)
        refused(path, "overlap")

    def test_cut_off(self, whole, tmp_path):
        path = zipped(whole, tmp_path / "z.zip")
        content = path.read_bytes()
        path.write_bytes(content[: len(content) // 2])
        refused(path, "neither a folder nor a .zip|not a part of a bundle")

    def test_a_bomb_inside_the_moments(self, whole):
        path = whole / "moments.npz"
        with np.load(path) as file:
            np.savez_compressed(path, **dict(file))
        rehash(whole, "moments.npz")
        refused(whole, "moments.npz")


def test_two_haplotypes_are_of_one_person(make, variants, tmp_path):
    """The attack: rows_per_person 2 rewritten as 1 in all parts halves the mu of a person."""
    haplotypes = dataclasses.replace(variants, haplotypes=True)
    path = write_bundle(make(), tmp_path / "h", variants=haplotypes, release_id="r")
    refused(path, "owns two haplotypes")
