"""Plots of many variants: their size does not grow, and what they show is what was computed."""

import math
import re

import numpy as np
import pytest

from primo.released.marginal import summary_statistics
from primo.report.manhattan import (
    GENOME_WIDE,
    MOST_POINTS,
    MOST_QQ,
    inflation,
    manhattan_chart,
    qq_chart,
)
from primo.report.page import report_html
from primo.report.placing import place
from primo.report.variants import HITS, top_hits, variants_section
from primo.variants import Variants


def genome(d, chromosomes=22):
    return Variants(
        names=tuple(f"rs{i}" for i in range(d)),
        chromosome=tuple(str(1 + i * chromosomes // d) for i in range(d)),
        position=np.arange(1, d + 1) * 1000,
        counted=("A",) * d,
        other=("G",) * d,
    )


def strengths(d, seed=0, hits=0):
    rng = np.random.default_rng(seed)
    found = -np.log10(rng.random(d))
    found[:hits] = 20.0 + np.arange(hits)
    return found


def elements(svg):
    return len(re.findall(r"<\w", str(svg)))


def test_size_does_not_grow_with_the_variants():
    sizes, lengths = [], []
    for d in (5_000, 50_000):
        variants = genome(d)
        chart = manhattan_chart(
            strengths(d, hits=200), place(variants.names, variants), variants.names, outcome="y"
        )
        sizes.append(elements(chart))
        lengths.append(len(chart))
        assert elements(qq_chart(strengths(d), outcome="y")) < MOST_QQ + 40
    assert max(sizes) < 2 * MOST_POINTS + 60
    assert max(lengths) < 400_000


def test_strong_variants_have_points_with_words():
    variants = genome(500)
    strength = strengths(500)
    strength[37], strength[40] = 12.3, np.nan
    axis = place(variants.names, variants)
    chart = str(manhattan_chart(strength, axis, variants.names, outcome="<height>"))
    assert "rs37: −log₁₀ p 12.3" in chart
    assert chart.count("<circle") == 1
    assert "&lt;height&gt;" in chart
    assert "499 variants" in chart
    nothing = manhattan_chart(np.full(500, np.nan), axis, variants.names, outcome="y")
    assert "<circle" not in nothing
    assert elements(qq_chart(np.full(500, np.nan), outcome="y")) < 40


def test_a_bin_is_where_its_variants_are():
    variants = genome(1, chromosomes=1)
    axis = place(variants.names, variants)
    chart = str(manhattan_chart(np.array([4.0]), axis, variants.names, outcome="y"))
    (mark,) = re.findall(r'class="curve" d="M([\d.]+) ([\d.]+)h2"', chart)
    at, height = map(float, mark)
    assert at == pytest.approx(40 + 750 * axis.places[0], abs=750 / 360 + 0.1)
    inner = 260 - 22 - 36
    assert height == pytest.approx(260 - 36 - 4 / (GENOME_WIDE + 1) * inner, abs=inner / 90 + 0.1)


def test_inflation_of_nothing_is_one():
    z = np.random.default_rng(1).standard_normal(100_001)
    assert inflation(z) == pytest.approx(1.0, abs=0.02)
    assert inflation(math.sqrt(1.3) * np.append(z, np.nan)) == pytest.approx(1.3, abs=0.03)
    assert math.isnan(inflation(np.array([np.nan])))


def test_page_shows_variants_one_by_one(made):
    release, variants = made
    html = report_html(release, variants=variants)
    assert "Variants one by one" in html
    assert "Manhattan plot of" in html
    assert variants_section(release, None) == ""


def test_hits_are_the_strongest_with_their_intervals(made):
    release, variants = made
    statistics = summary_statistics(release, variants, covariates="ignore")
    effects = statistics.outcome(0)
    hits = top_hits(statistics, effects)
    assert len(hits) == min(HITS, len(variants))
    best = int(np.argmax(effects.neg_log10_p))
    assert hits[0][0] == variants.names[best]
    assert hits[0][3] == f"{effects.effect[best]:.3g}"
    low, high = effects.interval()
    assert hits[0][4] == f"{low[best]:.3g} to {high[best]:.3g}"
    shown = [float(hit[5]) for hit in hits]
    assert shown == sorted(shown, reverse=True)


@pytest.fixture(scope="module")
def made():
    import warnings

    import primo

    rng = np.random.default_rng(2)
    copies = rng.binomial(2, 0.4, size=(3000, 8)).astype(float)
    outcomes = copies[:, :1] * [[0.8, 0.0]] + rng.uniform(-1, 1, size=(3000, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        model = primo.PrimoRegressor(
            epsilon=5,
            delta=1e-6,
            feature_bounds=(0, 2),
            outcome_bounds=(-1, 2.6),
            random_state=3,
        ).fit(copies, outcomes)
    described = genome(8, chromosomes=2)
    return model.release_, Variants(
        names=model.release_.feature_names,
        chromosome=described.chromosome,
        position=described.position,
        counted=described.counted,
        other=described.other,
    )
