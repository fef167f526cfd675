"""Linkage of public panels: borders of blocks, alignment, shrinkage, and what it does."""

import dataclasses
from itertools import pairwise

import numpy as np
import pytest

from factories import planned
from genome import linked
from primo.errors import InputError
from primo.privacy.bounds import Bounds
from primo.released.blocks import ReleasedBlocks
from primo.released.ld.align import aligned
from primo.released.ld.find import _borders, _cut, _standardised, find_ld_blocks, write_ld_blocks
from primo.released.ld.panel import ld_panel, shrunk_correlations, with_ld_panel
from primo.released.release import Release
from primo.variants import Variants


def variants(d, **parts):
    described = {
        "names": tuple(f"rs{i}" for i in range(d)),
        "chromosome": ("1",) * d,
        "position": np.arange(1, d + 1) * 100,
        "counted": ("A",) * d,
        "other": ("G",) * d,
    }
    return Variants(**(described | parts))


def people(rng, count, widths, r=0.9, frequency=0.4):
    """Allele counts in blocks that are linked inside."""
    columns = []
    for width in widths:
        root = np.linalg.cholesky(linked(width, r))
        hidden = rng.standard_normal((2 * count, width)) @ root.T
        columns.append((hidden > np.quantile(hidden, 1 - frequency)).astype(float))
    haplotypes = np.hstack(columns)
    return haplotypes[:count] + haplotypes[count:]


def test_borders_lie_between_what_is_linked():
    rng = np.random.default_rng(0)
    widths = [12, 30, 18, 25, 15]
    panel = people(rng, 800, widths)
    starts = find_ld_blocks(panel, variants(100), least=5, most=40)
    assert starts.tolist() == [0, *np.cumsum(widths)]


def test_sizes_are_bounded_and_chromosomes_end_blocks():
    rng = np.random.default_rng(1)
    panel = people(rng, 300, [90])
    described = variants(90, chromosome=("1",) * 37 + ("2",) * 53)
    starts = find_ld_blocks(panel, described, least=4, most=10)
    assert starts[0] == 0
    assert starts[-1] == 90
    assert 37 in starts
    assert np.diff(starts).min() >= 4
    assert np.diff(starts).max() <= 10
    # No sizes from 6 to 7 add up to 37 of chromosome 1 and 53 of 2 at once; blocks stay small enough.
    assert np.diff(find_ld_blocks(panel, described, least=50, most=50)).max() <= 50


def test_what_is_cut_is_the_sum_of_squares():
    rng = np.random.default_rng(2)
    columns = _standardised(people(rng, 50, [20]))
    squared = (columns.T @ columns) ** 2 - 1 / 50
    cut = _cut(columns, most=6)
    for border in range(1, 20):
        pairs = [(i, j) for i in range(border) for j in range(border, 20) if j - i <= 6]
        assert cut[border] == pytest.approx(max(sum(squared[p] for p in pairs), 0), abs=1e-9)


def test_dynamic_programming_is_exhaustive_search():
    rng = np.random.default_rng(3)
    cut = np.append(0.0, rng.random(12))

    def best(end):
        """Least cut of borders up to `end`, by trying all."""
        if end == 0:
            return 0.0
        choices = [best(end - size) for size in (2, 3, 4) if end >= size]
        own = 0.0 if end == 12 else cut[end]
        return own + min(choices, default=np.inf)

    borders = _borders(cut, 2, 4)
    assert borders[-1] == 12
    assert all(2 <= b - a <= 4 for a, b in pairwise([0, *borders]))
    assert sum(cut[b] for b in borders[:-1]) == pytest.approx(best(12))


def test_blocks_are_written_as_bed(tmp_path):
    described = variants(5, chromosome=("1", "1", "1", "X", "X"))
    path = tmp_path / "blocks.bed"
    write_ld_blocks(path, described, np.array([0, 2, 3, 5]))
    assert path.read_text() == "1\t99\t299\n1\t299\t300\nX\t399\t500\n"
    with pytest.raises(InputError, match="exists already"):
        write_ld_blocks(path, described, np.array([0, 5]))


@pytest.mark.parametrize(
    ("panel", "described", "words"),
    [
        (np.ones((10, 4)), variants(5), "a column for each of 5"),
        (np.ones((2, 5)), variants(5), "at least three people"),
        (np.full((10, 5), np.nan), variants(5), "missing values"),
        (-np.ones((10, 5)), variants(5), "missing values"),
        (np.ones((10, 5)), variants(5, position=np.array([1, 3, 2, 4, 5])), "sorted by position"),
        (np.ones((10, 5)), variants(5, chromosome=("1", "2", "1", "1", "1")), "follow one another"),
    ],
)
def test_panels_that_cannot_be_used(panel, described, words):
    with pytest.raises(InputError, match=words):
        find_ld_blocks(panel, described)


def test_swapped_alleles_are_turned_and_others_refused():
    cohort = variants(3)
    swapped = variants(3, counted=("A", "g", "A"), other=("G", "a", "G"), chromosome=("chr1",) * 3)
    np.testing.assert_array_equal(aligned(swapped, cohort), [1, -1, 1])
    for changes, words in (
        ({"counted": ("T", "A", "A"), "other": ("C", "G", "G")}, "opposite strands"),
        ({"counted": ("T", "A", "A")}, "T/G in the panel"),
        ({"position": np.array([100, 200, 999])}, "different genome builds"),
        ({"names": ("a", "b", "c"), "position": np.array([7, 8, 9])}, "is 'rs0' in the release"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            aligned(variants(3, **changes), cohort)
        assert caught.value.remedy
    with pytest.raises(InputError, match="has 3 variants and the release 2"):
        aligned(variants(3), variants(2))


def test_shrinkage_is_near_the_best():
    """Schäfer and Strimmer's share is within a little of the share with the least error."""
    rng = np.random.default_rng(4)
    true = linked(25, 0.8)
    root = np.linalg.cholesky(true)
    samples = [np.corrcoef((rng.standard_normal((60, 25)) @ root.T).T) for _ in range(40)]
    shrunk, shares = shrunk_correlations(tuple(samples), 60)
    tried = np.linspace(0, 1, 101)
    errors = [sum(((1 - t) * s + t * np.eye(25) - true) ** 2 for s in samples).sum() for t in tried]
    assert shares.mean() == pytest.approx(tried[int(np.argmin(errors))], abs=0.04)
    assert sum(((s - true) ** 2).sum() for s in shrunk) < 1.05 * min(errors)


WIDTHS, N = [15] * 8, 20_000


def cohort(rng, frequency=0.4, sigma=0.0):
    """Return a release of the diagonal and the sums of simulated people, and the people."""
    d = sum(WIDTHS)
    features = people(rng, N, WIDTHS, frequency=frequency)
    slopes = rng.normal(size=(d, 1)) / 10
    outcomes = features @ slopes
    outcomes = outcomes + outcomes.std() * rng.normal(size=(N, 1))
    plan = planned(
        n=N,
        d=d,
        l=1,
        epsilon=5.0,
        delta=1e-6,
        protection="outcomes",
        feature_bounds=Bounds.from_frequencies(np.full(d, 0.4)),
        outcome_bounds=Bounds(lower=outcomes.min(), upper=outcomes.max()),
    )
    scaled = (features - plan.features.centre) / plan.features.scale
    wide = np.hstack([scaled, np.full((N, 1), plan.constant)])
    targets = (outcomes - plan.outcomes.centre) / plan.outcomes.scale
    diagonal = (scaled**2).sum(axis=0) + sigma * rng.standard_normal(d)
    release = Release(
        plan=plan,
        feature_names=variants(d).names,
        outcome_names=("y0",),
        covariance=np.empty((0, 0)),
        association=wide.T @ targets,
        outcome_moments=targets.T @ targets,
        reproducible=True,
        backend="numpy",
        blocks=ReleasedBlocks(
            starts=np.arange(d + 1),
            covariance=tuple(diagonal[:, None, None]),
            sigma=np.full(d, float(sigma)),
            sums=scaled.sum(axis=0),
            sums_sigma=0.0,
        ),
    )
    return release, features, outcomes


def explained(release, features, outcomes):
    left = outcomes - release.coefficients().predict(features)
    return float(1 - left.var() / outcomes.var())


def test_a_panel_makes_up_for_the_covariance():
    rng = np.random.default_rng(5)
    release, features, outcomes = cohort(rng, sigma=500.0)
    d = features.shape[1]
    starts = np.append(0, np.cumsum(WIDTHS))
    known = ld_panel(people(rng, 500, WIDTHS), variants(d), starts)
    better, linkage = with_ld_panel(release, variants(d), known)
    assert explained(better, features, outcomes) > explained(release, features, outcomes) + 0.05
    assert explained(better, features, outcomes) > 0.35
    assert linkage.swapped == 0
    assert 100 < linkage.effective_people <= 500
    assert "public panel of 500 people" in linkage.sentence()


def test_swapped_alleles_of_a_panel_make_no_difference():
    rng = np.random.default_rng(6)
    release, features, _ = cohort(rng)
    d = features.shape[1]
    starts = np.append(0, np.cumsum(WIDTHS))
    panel = people(rng, 400, WIDTHS)
    flip = np.arange(d) % 3 == 0
    other = variants(
        d,
        counted=tuple("G" if f else "A" for f in flip),
        other=tuple("A" if f else "G" for f in flip),
    )
    one, _ = with_ld_panel(release, variants(d), ld_panel(panel, variants(d), starts))
    turned = ld_panel(np.where(flip, 2 - panel, panel), other, starts)
    two, linkage = with_ld_panel(release, variants(d), turned)
    assert linkage.swapped == flip.sum()
    np.testing.assert_allclose(one.coefficients().slopes, two.coefficients().slopes, rtol=1e-6)
    # Said to be the same alleles when they are not: the frequencies give it away.
    rare = ld_panel(2 - people(rng, 400, WIDTHS, frequency=0.1), variants(d), starts)
    with pytest.raises(InputError, match="frequencies of the panel") as caught:
        with_ld_panel(release, variants(d), rare)
    assert "same alleles" in str(caught.value.remedy)


def test_drift_makes_a_panel_count_for_less():
    rng = np.random.default_rng(7)
    d = sum(WIDTHS)
    starts = np.append(0, np.cumsum(WIDTHS))
    known = ld_panel(people(rng, 2000, WIDTHS), variants(d), starts)
    near, _, _ = cohort(rng)
    far, _, _ = cohort(rng, frequency=0.5)
    same = with_ld_panel(near, variants(d), known)[1]
    other = with_ld_panel(far, variants(d), known)[1]
    assert same.effective_people > 400
    # Frequencies 0.1 apart at f(1 − f) = 0.24: 2F = 0.083.
    assert other.drift == pytest.approx(2 * 0.01 / 0.24, rel=0.15)
    assert other.effective_people == pytest.approx(1 / (1 / 2000 + other.drift))
    assert (other.shrinkage > same.shrinkage).all()


def test_only_for_releases_of_variants():
    rng = np.random.default_rng(8)
    release, features, _ = cohort(rng)
    d = features.shape[1]
    starts = np.append(0, np.cumsum(WIDTHS))
    known = ld_panel(people(rng, 100, WIDTHS), variants(d), starts)
    whole = dataclasses.replace(release, blocks=None)
    with pytest.raises(InputError, match="holds the diagonal only"):
        with_ld_panel(whole, variants(d), known)
    with pytest.raises(InputError, match="each once"):
        ld_panel(people(rng, 100, WIDTHS), variants(d), starts[:-1])
