"""One line per coefficient: as a frame, as arrays, or streamed into a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from primo._util.atomic import whole_file
from primo._util.optional import optional
from primo._util.writers import open_table
from primo.released.moments import ReleasedMoments
from primo.released.uncertainty.intervals import (
    Intervals,
    check,
    coefficient_block,
    outcome_blocks,
)
from primo.released.uncertainty.multiple import benjamini_hochberg
from primo.released.uncertainty.system import system_of
from primo.released.uncertainty.testing import p_values, z_scores

__all__ = ["COLUMNS", "SCHEMA", "table_blocks", "tidy", "write_table"]

Columns = dict[str, NDArray[Any]]

#: Columns of the tidy table and what they hold; `shrunk` and its interval are those of
#: `primo.coefficients`.
SCHEMA = {
    "outcome": "text",
    "feature": "text",
    "estimate": "number",
    "standard_error": "number",
    "lower": "number",
    "upper": "number",
    "z": "number",
    "p": "number",
    "q": "number",
    "shrunk": "number",
    "shrunk_lower": "number",
    "shrunk_upper": "number",
    "trusted": "flag",
    "shrunk_trusted": "flag",
}
COLUMNS = tuple(SCHEMA)
MOST_KEPT = 1 << 21  # slopes whose intervals are held in memory at once


def tidy(release: ReleasedMoments, *, level: float = 0.95, target: str = "population") -> Any:
    """Return all slopes of all outcomes, one line each, as a pandas DataFrame.

    `estimate` with `lower` and `upper` is the unshrunk slope with its confidence interval, `shrunk`
    the slope to predict with and its posterior interval, `q` Benjamini-Hochberg over all slopes;
    `trusted` (and `shrunk_trusted`) as in `coefficient_intervals`.

    Guarantee: post-processing; costs no privacy. Cost: O(d²·l), memory for 14 columns of d·l.
    """
    pandas = optional("pandas", purpose="a table in memory", instead="write it with write_table")
    blocks = list(table_blocks(release, level=level, target=target))
    columns = {name: np.concatenate([block[name] for block in blocks]) for name in COLUMNS}
    return pandas.DataFrame(columns)


def write_table(
    release: ReleasedMoments, path: str | Path, *, level: float = 0.95, target: str = "population"
) -> Path:
    """Write the tidy table to a .tsv, .tsv.gz or .parquet file, a block of outcomes at a time.

    The file appears whole or not at all; flags are 1 and 0 in text.
    Memory: d·l numbers for the p-values, and one block.
    """
    target_file = Path(path)
    with whole_file(target_file) as file, open_table(file, target_file.name, SCHEMA) as write:
        for block in table_blocks(release, level=level, target=target):
            write(block)
    return target_file


def table_blocks(release: ReleasedMoments, *, level: float, target: str) -> Iterator[Columns]:
    """Yield the tidy table in blocks of outcomes, all features of an outcome together."""
    check(level=level, kind="confidence", target=target)
    system = system_of(release)
    d = system.d
    features = np.array(system.feature_names, dtype=object)
    kept: list[Intervals] = []  # every block is needed twice: for q of all, and to be written
    if d * system.l <= MOST_KEPT:
        kept = [
            coefficient_block(system, part, kind="confidence", level=level, target=target)
            for part in outcome_blocks(system.l, d)
        ]
        z = np.concatenate([np.asarray(block.z)[:d] for block in kept], axis=1)
    else:
        z = z_scores(system, target=target)[0]
    q = benjamini_hochberg(p_values(z))
    for i, part in enumerate(outcome_blocks(system.l, d)):
        plain = (
            kept[i]
            if kept
            else coefficient_block(system, part, kind="confidence", level=level, target=target)
        )
        shrunk = coefficient_block(system, part, kind="posterior", level=level, target=target)
        z = np.asarray(plain.z)[:d]
        wide = {
            "estimate": plain.estimate[:d],
            "standard_error": plain.standard_error[:d],
            "lower": plain.lower[:d],
            "upper": plain.upper[:d],
            "z": z,
            "p": p_values(z),
            "q": q[:, part],
            "shrunk": shrunk.estimate[:d],
            "shrunk_lower": shrunk.lower[:d],
            "shrunk_upper": shrunk.upper[:d],
        }
        outcomes = np.array(plain.outcome_names, dtype=object)
        yield {
            "outcome": np.repeat(outcomes, d),
            "feature": np.tile(features, len(outcomes)),
            **{name: values.T.ravel() for name, values in wide.items()},
            "trusted": plain.trusted[:d].T.ravel(),
            "shrunk_trusted": shrunk.trusted[:d].T.ravel(),
        }
