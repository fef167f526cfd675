"""A release in one file: read back as it was, and refused when it was edited."""

import dataclasses
import json

import numpy as np
import pytest

import primo
from small_fits import D, cohort, model


class TestArchive:
    @pytest.mark.parametrize(
        "changes",
        [
            {},
            {"protection": "outcomes", "feature_bounds": None},
            {"covariance_rows": 1000},
            {"calibration": "paper"},
            {"outcome_moments": "diagonal", "fit_intercept": False},
            {"protection": "features", "association": "projection"},
        ],
    )
    def test_round_trip(self, tmp_path, changes):
        x, y, _ = cohort()
        release = model(**changes).fit(x, y).release_
        loaded = primo.load_release(primo.save_release(release, tmp_path / "r.npz"))
        assert loaded.statement() == release.statement()
        for field in dataclasses.fields(release.plan):
            old, new = getattr(release.plan, field.name), getattr(loaded.plan, field.name)
            if field.name not in ("features", "outcomes"):
                assert old == new, field.name
        np.testing.assert_array_equal(loaded.association, release.association)
        np.testing.assert_allclose(
            primo.coefficients(loaded).slopes,
            primo.coefficients(release).slopes,
            rtol=1e-7,
            atol=1e-10,
        )
        assert [p.name for p in tmp_path.iterdir()] == ["r.npz"]

    @pytest.mark.parametrize(
        "edit",
        [
            lambda manifest, _: manifest["plan"]["grid"].update(association_variance_bits=40),
            lambda manifest, _: manifest["plan"].update(mu=0.001),
            lambda manifest, _: manifest["plan"].update(missing="mean"),
            lambda manifest, _: manifest["plan"].update(protection="nobody"),
            lambda manifest, _: manifest["plan"].pop("mu"),
            lambda manifest, _: manifest.update(format="other"),
            lambda _, arrays: arrays.update(features_scale=np.zeros(D)),
            lambda _, arrays: arrays.update(association=np.zeros((2, 2))),
            lambda _, arrays: arrays.update(covariance=arrays["covariance"] * np.nan),
        ],
    )
    def test_edited_files_are_refused(self, tmp_path, edit):
        x, y, _ = cohort(n=100)
        path = primo.save_release(model().fit(x, y).release_, tmp_path / "r.npz")
        with np.load(path) as file:
            arrays = dict(file)
        manifest = json.loads(str(arrays["manifest"]))
        edit(manifest, arrays)
        arrays["manifest"] = np.array(json.dumps(manifest))
        np.savez(path, **arrays)
        with pytest.raises(primo.InputError, match="damaged"):
            primo.load_release(path)

    def test_damage_is_noticed(self, tmp_path):
        x, y, _ = cohort(n=100)
        path = primo.save_release(model().fit(x, y).release_, tmp_path / "r.npz")
        whole = path.read_bytes()
        np.save(tmp_path / "array.npy", np.ones(3))
        array = (tmp_path / "array.npy").read_bytes()
        for content in (b"", b"nonsense", whole[: len(whole) // 2], array):
            path.write_bytes(content)
            with pytest.raises(primo.InputError, match=r"r\.npz"):
                primo.load_release(path)
        with pytest.raises(primo.InputError, match="is a folder"):
            primo.save_release(model().fit(x, y).release_, tmp_path)
        fitted = model().fit(x, y)
        for call in (
            lambda: primo.save_release(fitted, path),
            lambda: primo.coefficients(fitted),
            lambda: primo.extend("r.npz", x, y, protection="both", epsilon=1, delta=1e-6),
        ):
            with pytest.raises(primo.InputError, match="release_"):
                call()
        with pytest.raises(primo.InputError, match="no release at"):
            primo.load_release(tmp_path / "missing.npz")
        with pytest.raises(primo.InputError, match="does not exist"):
            primo.save_release(model().fit(x, y).release_, tmp_path / "nowhere" / "r.npz")
