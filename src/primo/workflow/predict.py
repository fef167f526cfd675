"""Predictions for new rows, streamed from a store to a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from primo._util.atomic import whole_file
from primo._util.progress import row_progress
from primo._util.writers import ENDINGS, open_table
from primo.errors import Advice, Argument, InputError, Message
from primo.released.coefficients import Coefficients
from primo.rows.sources.base import Columns, Ids, Rows
from primo.rows.sources.paired import labels_of
from primo.rows.sources.row_owners import id_names_of

__all__ = ["predict_to_file"]

_BLOCK_NUMBERS = 2**21  # of features and predictions together


def predict_to_file(
    coefficients: Coefficients,
    columns: Columns,
    path: str | os.PathLike[str],
    *,
    missing_centre: ArrayLike | None = None,
    rows: Rows | None = None,
    replace: bool = True,
    show_progress: bool = False,
) -> Path:
    """Predict all outcomes of the rows of a store and write them to a .tsv, .tsv.gz or .parquet file.

    Parameters
    ----------
    coefficients
        Of `primo.coefficients` or a bundle.
    columns
        The features, matched by name, in any order; neither more nor fewer.
    path
        One line per row: its label, if the store has labels, and one column per outcome. The label is
        the id, under the name that it has there (`IID` for genotypes); `FID IID` for genotypes in
        which individual ids repeat.
    missing_centre
        What replaces a missing value: one number per feature in the order of the coefficients, for
        example `primo.released.public_means.public_means`. Without it a missing value is an error.
    rows
        Which stored rows, in which order; all by default.
    replace
        Whether a file that is there already may be replaced.

    Notes
    -----
    A prediction is computed from the row it is about, without noise: it is as private as that row.
    The guarantee covers the people whose rows were *fitted*, not those predicted for. So only the
    owner of the file may read it.
    It appears whole or not at all. Cost: O(rows·d·l), memory of one block.
    """
    places = _matched(coefficients.feature_names, columns.names)
    centre = _centre(missing_centre, len(places))
    order = range(columns.n) if rows is None else rows
    d, l = coefficients.slopes.shape
    block_rows = max(1, _BLOCK_NUMBERS // (d + l))
    labels = labels_of(columns)
    schema = {} if labels is None else {_label_name(coefficients, columns, labels): "text"}
    schema |= dict.fromkeys(coefficients.outcome_names, "number")
    target = Path(path)
    if not target.name.endswith(ENDINGS):
        raise InputError(f"{str(target)!r}: give a name that ends in {', '.join(ENDINGS)}")
    with (
        row_progress(len(order), show=show_progress) as progress,
        whole_file(target, private=True, replace=replace) as file,
        open_table(file, target.name, schema, private=True) as write,
    ):
        start = 0
        for block in columns.blocks(order, block_rows):
            predicted = coefficients.predict(_complete(block[:, places], centre))
            stop = start + len(predicted)
            lines: list[NDArray[Any]] = list(predicted.T)
            if labels is not None:
                lines.insert(0, labels[np.asarray(order[start:stop])].astype(object))
            write(dict(zip(schema, lines, strict=True)))
            start = stop
            if progress is not None:
                progress(len(predicted))
    return target


def _matched(wanted: tuple[str, ...], given: tuple[str, ...]) -> NDArray[np.intp]:
    """Return where in the store each feature is."""
    place = {name: i for i, name in enumerate(given)}
    missing = [name for name in wanted if name not in place]
    if missing:
        raise InputError(
            f"feature {missing[0]!r} is not among the columns"
            + (f" (nor are {len(missing) - 1} others)" if missing[1:] else "")
            + "; a prediction needs every feature that was fitted, under the same name"
        )
    known = set(wanted)
    extra = [name for name in given if name not in known]
    if extra:
        raise InputError(
            f"column {extra[0]!r} is not a feature of the release"
            + (f" (nor are {len(extra) - 1} others)" if extra[1:] else "")
            + "; choose the features among the columns"
        )
    return np.array([place[name] for name in wanted], dtype=np.intp)


def _centre(given: ArrayLike | None, d: int) -> NDArray[np.float64] | None:
    if given is None:
        return None
    centre = np.asarray(given, dtype=np.float64)
    if centre.shape != (d,) or not np.isfinite(centre).all():
        raise InputError(
            Argument("missing_centre"), f" has shape {centre.shape}; give ({d},) finite numbers"
        )
    return centre


def _complete(block: NDArray[Any], centre: NDArray[np.float64] | None) -> NDArray[np.float64]:
    features = block.astype(np.float64)
    there = np.isfinite(features)
    if there.all():
        return features
    if centre is None:
        raise InputError(
            "a feature is missing or infinite in some row",
            remedy=Message.of(
                "fill it, or give ",
                Advice(
                    "missing_centre", 'missing_centre, the centres of a plan with missing="centre"'
                ),
            ),
        )
    return np.where(there, features, centre)


def _label_name(coefficients: Coefficients, columns: Columns, labels: Ids) -> str:
    """Call the labels as the store does, else "id", or something longer if an outcome has that name."""
    named = id_names_of(columns)
    name = named[0] if named is not None and len(named) == 1 and named[0] else "id"
    ids = columns.ids()
    if name == "IID" and ids is not None and not np.array_equal(labels, ids):
        name = "FID IID"
    while name in coefficients.outcome_names:
        name = f"row_{name}"
    return name
