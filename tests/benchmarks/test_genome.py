"""The program behind docs/genome-scale.md, small."""

import math

import numpy as np
import pytest

from benchmarks.genome.__main__ import HEADER, INTRODUCTION, line, markdown, mean_of
from benchmarks.genome.linkage import real_linkage, simulated_linkage
from benchmarks.genome.methods import Cell, measure, scales_of
from primo.forecast.blocks import Trait
from primo.privacy.budget import Budget
from primo.privacy.calibration import mu_of

TRAIT = Trait(heritability=0.5, causal=0.01)


def cell(n, protection="both", trait=TRAIT):
    return Cell(n=n, epsilon=5.0, protection=protection, trait=trait)


def test_noise_is_that_of_the_theorem():
    """σ₂ = 2·b_x·b_ŷ/μ and σ_B = 4·b_B·b_x/μ."""
    widths = np.array([25.0, 75.0])
    mu = mu_of(Budget(epsilon=5.0, delta=1e-8))
    scales = scales_of(cell(10_000), widths)
    row, outcome = 1.25 * 10, 3 * math.sqrt(1.25)
    assert scales.association == pytest.approx(2 * row * outcome / mu)
    blocks = 1.5 * 1.25 * np.sqrt(widths)
    np.testing.assert_allclose(scales.blocks, 4 * blocks * row / mu)
    assert scales_of(cell(10_000, "outcomes"), widths).blocks == 0.0
    assert scales_of(cell(10_000, "outcomes, noise on y"), widths).outcome == pytest.approx(6 / mu)


def test_scores_are_ordered_as_expected():
    linkage = simulated_linkage(1_500)
    assert linkage.d == 1_500
    found = measure(linkage, cell(50_000), 3)
    assert 0.45 < found.without_noise <= 0.5
    assert 0.2 < found.blocks < found.without_noise
    assert 0 < found.panel < found.without_noise
    assert -0.05 < found.none < found.none_correlation
    public = measure(linkage, cell(50_000, "outcomes"), 3)
    assert public.panel is None
    words = line(cell(50_000), mean_of([found, found]), 0.3)
    assert words[4] == f"**{found.blocks:.3f}**"
    assert markdown([words]).count("|") == 3 * (len(HEADER) + 1)


def test_no_signal_makes_no_score():
    found = measure(simulated_linkage(1_500), cell(5_000, trait=Trait(heritability=0, causal=1)), 4)
    assert min(found.blocks, found.panel, found.none, found.without_noise) > -0.05


def test_real_linkage_where_present():
    real = real_linkage(2_000)
    if real is None:
        pytest.skip("needs ../shared/data/kg_haplotypes_5008")
    assert 1_500 < real.d < 2_600
    assert max(len(matrix) for matrix in real.population) <= 100
    assert [m.shape for m in real.population] == [m.shape for m in real.panel]


def test_page_says_which_program_wrote_it():
    assert "python -m benchmarks.genome --write" in INTRODUCTION
