"""Files that primo wrote, damaged: releases and bundles."""

import hashlib
import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st

import primo
from fuzz_values import JSON, PATH, replaced, rows
from primo.cli import main
from primo.privacy.bounds import Bounds
from primo.released.bundle import read_bundle, write_bundle
from primo.rows.sources.arrays.npy import open_npy
from primo.variants import Variants

PROFILE = settings(settings.get_profile("fuzz"))


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
    with pytest.raises(primo.InputError, match="is not a part of a bundle"):
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
