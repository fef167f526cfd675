"""Where a score varies: shares by released numbers, and one path however many blocks there are."""

import re

import numpy as np
import pytest

from primo import Bounds, PrimoRegressor
from primo.report.block_view import LINES, LinkedBlocks, block_shares, block_view, linked_blocks
from primo.report.page import report_html
from primo.report.placing import place
from primo.variants import Variants


def genome(d, chromosomes=22):
    return Variants(
        names=tuple(f"rs{i}" for i in range(d)),
        chromosome=tuple(str(1 + i * chromosomes // d) for i in range(d)),
        position=np.arange(1, d + 1) * 1000,
        counted=("A",) * d,
        other=("G",) * d,
    )


def blocks_of(count, width=3):
    return LinkedBlocks(
        starts=np.arange(0, width * count + 1, width),
        covariance=tuple(np.full((count, width, width), 0.5) + 0.5 * np.eye(width)),
    )


def test_shares_are_parts_of_the_scores_variance():
    blocks = blocks_of(4)
    slopes = np.array([1.0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 2])
    # 1, 0, 1 + 1 + 2·½ = 3, 4
    np.testing.assert_allclose(block_shares(blocks, slopes), np.array([1, 0, 3, 4]) / 8)
    assert not block_shares(blocks, np.zeros(12)).any()
    noisy = LinkedBlocks(starts=blocks.starts, covariance=(-np.eye(3), *blocks.covariance[1:]))
    assert block_shares(noisy, slopes)[0] == 0  # noise makes no part negative


def test_the_view_does_not_grow_with_the_blocks():
    sizes = []
    for count in (200, 20_000):
        variants = genome(3 * count)
        slopes = np.random.default_rng(0).normal(size=3 * count)
        axis = place(variants.names, variants)
        view = block_view(blocks_of(count), slopes, variants, axis, outcome="<height>")
        chart = str(view.chart)
        sizes.append(len(re.findall(r"<\w", chart)))
        assert len(chart) < 20_000
        assert "&lt;height&gt;" in chart
        assert chart.count("<circle") == len(view.lines) == LINES
        assert f"of {count}." in view.words
    assert max(sizes) < 90


def test_bars_and_table_say_the_same():
    variants, slopes = genome(12, chromosomes=2), np.zeros(12)
    slopes[4], slopes[9:] = 3.0, [0, 0, -1]
    axis = place(variants.names, variants)
    view = block_view(blocks_of(4), slopes, variants, axis, outcome="y")
    assert view.lines == [
        ("1:4000–6000", "3", "90.0\u202f%", "rs4"),
        ("2:10000–12000", "3", "10.0\u202f%", "rs11"),
    ]
    assert "Half of it lies in 1 block of 4." in view.words
    bars = re.search(r'class="curve" d="([^"]*)"', str(view.chart)).group(1)
    assert bars.count("M") == 2
    assert block_view(blocks_of(4), np.zeros(12), variants, axis, outcome="y") is None


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(1)
    X = rng.binomial(2, 0.4, size=(3000, 8)).repeat(3, axis=1).astype(float)
    X += rng.binomial(1, 0.1, size=X.shape)
    y = X[:, 4] - X[:, 4].mean() + 0.3 * rng.normal(size=3000)
    bounds = {
        "feature_bounds": Bounds.from_frequencies(np.full(24, 0.4)),
        "outcome_bounds": (-2, 2),
    }

    def fit(**options):
        model = PrimoRegressor(epsilon=20, delta=1e-8, random_state=0, **bounds, **options)
        return model.fit(X, y).release_

    return fit


def test_a_report_shows_the_blocks_of_its_release(fitted):
    release = fitted(covariance="blocks", blocks=list(range(0, 25, 3)))
    variants = genome(24, chromosomes=2)
    variants = Variants(**{**vars(variants), "names": release.feature_names})
    page = report_html(release, variants=variants)
    assert "in the variance of the score of" in page
    assert "Blocks in which the score varies most" in page
    blocks = linked_blocks(release, variants)
    scaled = release.coefficients().slopes[:, 0] * release.plan.features.scale
    assert int(np.argmax(block_shares(blocks, scaled))) == 1


def test_no_view_without_blocks_of_variants(fitted):
    variants = genome(24, chromosomes=2)
    alone = fitted(covariance="none")
    variants = Variants(**{**vars(variants), "names": alone.feature_names})
    assert linked_blocks(alone, variants) is None
    assert "Blocks in which" not in report_html(alone, variants=variants)
    assert linked_blocks(fitted(), variants) is None
