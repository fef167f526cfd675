"""The files of the benchmark are what it says, and its release runs from them."""

import numpy as np

from benchmarks.genome_scale import FREQUENCY, release, starts_of, write_genotypes, write_outcomes
from primo.rows.sources.genotypes.plink import open_bed


def test_files_are_genotypes_and_are_released(tmp_path):
    prefix = tmp_path / "cohort"
    write_genotypes(prefix, 1001, 130)
    write_outcomes(prefix, 1001, 2)
    columns = open_bed(prefix)
    (rows,) = columns.blocks(range(1001), 1001)
    assert rows.shape == (1001, 130)
    assert rows.dtype == np.int8  # nothing is missing
    # 64 drawn variants of 1001 people: a standard error of 0.0018.
    assert abs(rows.mean() / 2 - FREQUENCY) < 0.01
    assert starts_of(130) == [0, 50, 100, 130]
    release(prefix)
