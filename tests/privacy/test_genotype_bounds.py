"""Bounds of genotypes from public frequencies."""

import numpy as np
import pytest

from experiments.data import SHARED
from primo.errors import BoundsError
from primo.privacy.bounds import Bounds

DATA = SHARED / "hapmap3_and_kg1_flashpca"


@pytest.mark.parametrize("copies", [1, 2])
def test_centre_and_scale_are_mean_and_deviation(copies):
    f = np.array([0.1, 0.5, 0.95])
    clip = Bounds.from_frequencies(f, copies=copies).clip(3, "features")
    draws = np.random.default_rng(0).binomial(copies, f, size=(200_000, 3))
    np.testing.assert_allclose(clip.centre, draws.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(clip.scale, draws.std(axis=0), atol=0.01)
    lengths = (((draws - clip.centre) / clip.scale) ** 2).sum(axis=1)
    assert clip.norm == pytest.approx(1.25 * np.sqrt(lengths.mean()), rel=0.01)


def test_rare_alleles_are_not_blown_up():
    clip = Bounds.from_frequencies([0.0, 1.0, 1e-6]).clip(3, "features")
    np.testing.assert_allclose(clip.scale, np.sqrt(2 * 0.01 * 0.99))
    np.testing.assert_allclose(clip.centre, [0, 2, 2e-6])
    assert clip.norm == 1.25


@pytest.mark.parametrize(
    ("frequencies", "options"),
    [([0.5, 1.5], {}), ([np.nan], {}), ([], {}), (0.5, {}), ([0.5], {"copies": 3})],
)
def test_refusals(frequencies, options):
    with pytest.raises(BoundsError):
        Bounds.from_frequencies(frequencies, **options)


def test_beside_ranges():
    both = Bounds.beside([(Bounds(lower=0, upper=2), 3), (Bounds(lower=[20, 0], upper=[80, 1]), 2)])
    clip = both.clip(5, "features")
    assert clip.box
    np.testing.assert_allclose(clip.centre, [1, 1, 1, 50, 0.5])
    np.testing.assert_allclose(clip.scale, [1, 1, 1, 30, 0.5])
    assert clip.norm == pytest.approx(np.sqrt(5))


def test_beside_frequencies():
    genotypes = Bounds.from_frequencies([0.2, 0.4])
    both = Bounds.beside([(genotypes, 2), (Bounds(lower=20, upper=80), 1)])
    clip = both.clip(3, "features")
    assert not clip.box
    np.testing.assert_allclose(clip.centre, [0.4, 0.8, 50])
    assert clip.norm == pytest.approx(np.sqrt(genotypes.norm**2 + 1))
    assert not both.from_data


@pytest.mark.skipif(not DATA.exists(), reason="the shared data is not here")
def test_few_people_are_shortened():
    ours, panel = (np.load(DATA / f"{name}.npz") for name in ("hapmap3_957", "kg_phase1_1092"))
    f = panel["G"].mean(axis=0) / 2
    f = np.where(ours["a1"] == panel["a1"], f, 1 - f)
    values = ours["G"].astype(np.float64)
    clip = Bounds.from_frequencies(f).clip(len(f), "features")
    z = np.where(values < 0, 0.0, (values - clip.centre) / clip.scale)
    assert (np.linalg.norm(z, axis=1) <= clip.norm).all()
    # A single choice may hold a variant that the panel misjudges, so the typical one is tested.
    rng, shares = np.random.default_rng(0), []
    for _ in range(21):
        few = rng.choice(len(f), 100, replace=False)
        norm = Bounds.from_frequencies(f[few]).clip(100, "features").norm
        shares.append((np.linalg.norm(z[:, few], axis=1) > norm).mean())
    assert np.median(shares) < 0.02
