"""Predictions streamed to a file are those of the coefficients, whatever the order of the columns."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

import primo
from primo.released.coefficients import Coefficients
from primo.rows.sources.genotypes.cohort import open_feature_columns
from primo.workflow import predict as prediction
from primo.workflow.predict import predict_to_file

N, D, L = 50, 4, 3


@dataclass(frozen=True, kw_only=True)
class Store:
    """Columns in memory, with labels if asked for."""

    table: np.ndarray
    names: tuple[str, ...]
    labelled: bool = False

    @property
    def n(self):
        return len(self.table)

    def ids(self):
        return np.array([f"p{i}" for i in range(self.n)]) if self.labelled else None

    def blocks(self, order, rows):
        for start in range(0, len(order), rows):
            yield self.table[np.asarray(order[start : start + rows])]


@pytest.fixture
def fitted():
    rng = np.random.default_rng(0)
    return Coefficients(
        slopes=rng.normal(size=(D, L)),
        intercept=rng.normal(size=L),
        feature_names=tuple("abcd"),
        outcome_names=("x", "y", "id"),
        estimator="auto",
    )


@pytest.fixture
def X():
    return np.random.default_rng(1).integers(0, 3, size=(N, D)).astype(np.int8)


def read(path):
    return pd.read_parquet(path) if path.suffix == ".parquet" else pd.read_csv(path, sep="\t")


@pytest.mark.parametrize("name", ["p.tsv", "p.tsv.gz", "p.parquet"])
def test_matches_predict_in_any_order_of_columns(fitted, X, tmp_path, name, monkeypatch):
    monkeypatch.setattr(prediction, "_BLOCK_NUMBERS", 70)
    store = Store(table=X[:, [2, 0, 3, 1]], names=tuple("cadb"), labelled=True)
    path = predict_to_file(fitted, store, tmp_path / name)
    table = read(path)
    assert list(table.columns) == ["row_id", "x", "y", "id"]
    assert list(table["row_id"]) == [f"p{i}" for i in range(N)]
    np.testing.assert_allclose(table[["x", "y", "id"]], fitted.predict(X), rtol=1e-8, atol=1e-9)
    assert path.stat().st_mode & 0o077 == 0
    assert [p.name for p in tmp_path.iterdir()] == [name]


def test_some_rows_without_labels(fitted, X, tmp_path):
    store = Store(table=X, names=tuple("abcd"))
    rows = np.array([7, 3, 3, 40])
    table = read(predict_to_file(fitted, store, tmp_path / "p.parquet", rows=rows))
    np.testing.assert_allclose(table.to_numpy(), fitted.predict(X[rows]))
    labelled = Store(table=X, names=tuple("abcd"), labelled=True)
    table = read(predict_to_file(fitted, labelled, tmp_path / "q.tsv", rows=rows))
    assert list(table["row_id"]) == ["p7", "p3", "p3", "p40"]


def test_missing_values(fitted, X, tmp_path):
    holes = X.astype(np.float32)
    holes[2, 1] = np.nan
    store = Store(table=holes, names=tuple("abcd"))
    with pytest.raises(primo.InputError, match="missing or infinite in some row"):
        predict_to_file(fitted, store, tmp_path / "p.tsv")
    assert not list(tmp_path.iterdir())
    centre = np.array([1.0, 0.5, 1.0, 1.0])
    filled = holes.astype(float)
    filled[2, 1] = 0.5
    table = read(predict_to_file(fitted, store, tmp_path / "p.parquet", missing_centre=centre))
    np.testing.assert_allclose(table.to_numpy(), fitted.predict(filled))
    with pytest.raises(primo.InputError, match=r"missing_centre has shape \(2,\)"):
        predict_to_file(fitted, store, tmp_path / "q.tsv", missing_centre=[1, 2])


def test_columns_that_do_not_fit(fitted, X, tmp_path):
    def refused(names, match):
        store = Store(table=np.zeros((3, len(names))), names=tuple(names))
        with pytest.raises(primo.InputError, match=match):
            predict_to_file(fitted, store, tmp_path / "p.tsv")

    refused("abc", "feature 'd' is not among the columns;")
    refused("ab", r"feature 'c' is not among the columns \(nor are 1 others\)")
    refused("abcdz", "column 'z' is not a feature")
    store = Store(table=X, names=tuple("abcd"))
    with pytest.raises(primo.InputError, match="ends in"):
        predict_to_file(fitted, store, tmp_path / "p.csv")
    with pytest.raises(primo.InputError, match="does not exist"):
        predict_to_file(fitted, store, tmp_path / "nowhere" / "p.tsv")
    assert not list(tmp_path.iterdir())


def test_people_who_share_an_individual_id_are_told_apart(fitted, tmp_path):
    """The ledger knows people by IID; whoever reads predictions needs the family too."""
    (tmp_path / "g.bim").write_text(
        "".join(f"1 {name} 0 {i} A C\n" for i, name in enumerate("abcd"))
    )
    (tmp_path / "g.bed").write_bytes(b"\x6c\x1b\x01" + bytes([0b11100011] * D))
    for fam, expected in (
        ("F1 1\nF2 1\nF1 2\n", ["F1 1", "F2 1", "F1 2"]),
        ("F1 1\nF2 3\nF1 2\n", ["1", "3", "2"]),
    ):
        (tmp_path / "g.fam").write_text(fam)
        columns = open_feature_columns(bfile=tmp_path / "g")
        path = predict_to_file(fitted, columns, tmp_path / "p.parquet", rows=[2, 0])
        table = read(path)
        assert table.columns[0] == ("FID IID" if " " in expected[0] else "IID")
        labels = table.iloc[:, 0].astype(str).tolist()
        assert labels == [expected[2], expected[0]]
