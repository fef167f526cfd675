"""All cells of the suite."""

from __future__ import annotations

from benchmarks.stress.problem import Cell
from benchmarks.stress.real_cells import real_cells
from benchmarks.stress.simulated_cells import simulated_cells

__all__ = ["CELLS"]

CELLS: tuple[Cell, ...] = (*simulated_cells(), *real_cells())
