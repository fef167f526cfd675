"""Intervals of marginal effects cover what they say; seeded, so it cannot fail by luck."""

import math

import pytest

from benchmarks.marginal import CELLS, measure

#: Cells with much noise and no signal, covariates, shortened rows, public features, and blocks.
CHOSEN = [CELLS[2], CELLS[5], CELLS[6], CELLS[10], CELLS[12], CELLS[14]]


@pytest.mark.parametrize("cell", CHOSEN, ids=lambda cell: cell.name)
def test_intervals_cover(cell):
    found = measure(cell, draws=40, seed=1)
    assert found.intervals > 1000
    assert 0.93 <= found.covered <= 0.97
    if cell.heritability == 0 and not cell.covariates:
        slack = 4 * math.sqrt(0.05 * 0.95 / found.intervals)
        assert found.rejected <= 0.05 + slack
