"""Every person is counted: recognised by the index of a frame, and charged for all rows they own."""

import numpy as np
import pytest

import primo
from primo.errors import BudgetError, InputError
from primo.ledger import create_ledger
from primo.planning.settings import Settings
from primo.privacy.accounting import Cost
from primo.privacy.budget import Budget
from primo.released.bundle import read_bundle, write_bundle
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.paired import PairedSource
from primo.rows.sources.tabular.index import index_labels, index_names
from primo.wall.noise import RandomBits
from primo.workflow.fit import prepare, release_rows

pd = pytest.importorskip("pandas")

N = 60
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.uniform(-1, 1, size=(N, 12)), columns=[f"x{i}" for i in range(12)])
Y = RNG.uniform(-1, 1, size=(N, 2))


def model(**settings):
    return primo.PrimoRegressor(
        epsilon=1, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-1, 1), **settings
    )


def account(folder, epsilon=1.0, **how):
    ledger = create_ledger(folder / "ledger", limit=Budget(epsilon=epsilon, delta=1e-6), **how)
    return primo.Account(ledger=ledger, purpose="p")


INDEXES = {
    "text": pd.Index([f"p{i}" for i in range(N)], name="IID"),
    "whole numbers": pd.Index(np.arange(100, 100 + N), name="IID"),
    "floats": pd.Index(np.arange(100.0, 100 + N), name="IID"),
    "two levels": pd.MultiIndex.from_arrays([["f"] * N, range(N)], names=["FID", "IID"]),
    "nullable": pd.Index(range(5, 5 + N), dtype="Int64", name="IID"),
    "categories": pd.CategoricalIndex([f"p{i}" for i in range(N)], name="IID"),
}


@pytest.mark.parametrize("kind", INDEXES)
@pytest.mark.parametrize("of", ["features", "outcomes"])
def test_ten_fits_of_the_same_indexed_people_do_not_pass_a_limit_for_one(tmp_path, kind, of):
    """Each with another column, so that their values do not betray them."""
    paid = account(tmp_path)
    x = X.set_axis(INDEXES[kind]) if of == "features" else X
    y = Y if of == "features" else pd.DataFrame(Y, columns=["a", "b"], index=INDEXES[kind])
    model().fit(x[["x0"]], y, account=paid)
    for i in range(1, 10):
        with pytest.raises(BudgetError):
            model().fit(x[[f"x{i}"]], y, account=paid)
    (spent,) = paid.ledger.spent()
    assert spent.releases == 1


def test_whole_numbers_are_the_same_people_in_any_type():
    kinds = (pd.Index([1, 2]), pd.Index([1.0, 2.0]), pd.Index(["1", " 2"]), pd.Index([1.0, "2"]))
    assert {tuple(index_labels(index)) for index in kinds} == {("1", "2")}
    pairs = pd.MultiIndex.from_tuples([("a", 1.0), ("b", 2.0)], names=["FID", None])
    assert index_labels(pairs).tolist() == ["a\t1", "b\t2"]
    assert index_names(pairs) == ("FID", "")
    assert index_labels(pd.RangeIndex(3)) is None is index_names(pd.RangeIndex(3))
    assert index_labels(pd.Index([1.0, np.nan])).tolist() == ["1", ""]
    assert index_labels(pd.Index(["a", None, pd.NA, pd.NaT])).tolist() == ["a", "", "", ""]
    with pytest.raises(InputError, match="not whole") as caught:
        index_labels(pd.Index([0.125]))
    assert "125" not in str(caught.value)


POSITIONS = {
    "a filtered default index": pd.RangeIndex(2 * N)[np.arange(2 * N) % 2 == 1],
    "a filter that leaves gaps": pd.Index(np.delete(np.arange(N + 1), 3)),
    "a range that starts later": pd.RangeIndex(10**6, 10**6 + N),
    "a range with a name": pd.RangeIndex(5, 5 + N, name="IID"),
    "text without a name": pd.Index([f"p{i}" for i in range(N)]),
    "a level without a name": pd.MultiIndex.from_arrays([["f"] * N, range(N)], names=["FID", None]),
}


@pytest.mark.parametrize("kind", POSITIONS)
def test_row_positions_that_are_left_over_are_not_people(tmp_path, kind):
    """The same people further down another file would be charged as others."""
    paid = account(tmp_path)
    with pytest.raises(InputError, match=r"have a name.*Nothing was charged"):
        model().fit(X.set_axis(POSITIONS[kind]), Y, account=paid)
    assert not paid.ledger.spent()
    model().fit(X.set_axis(POSITIONS[kind]), Y)


def test_rows_with_other_positions_are_not_put_together():
    with pytest.raises(InputError, match="different labels"):
        model().fit(X.set_axis(pd.RangeIndex(1, N + 1)), pd.DataFrame(Y, index=range(2, N + 2)))


@pytest.mark.parametrize("first", [np.int64, float, str, object])
@pytest.mark.parametrize("second", [np.int64, float, str, object])
def test_arrays_with_ids_of_another_type_are_the_same_people(tmp_path, first, second):
    paid = account(tmp_path)
    model().fit(of_arrays(tmp_path, np.arange(N).astype(first)), account=paid)
    with pytest.raises(BudgetError):
        model().fit(of_arrays(tmp_path, np.arange(N).astype(second)), account=paid)


@pytest.mark.parametrize("missing", [None, np.nan, "", pd.NA])
def test_an_array_with_a_missing_id_is_refused(tmp_path, missing):
    ids = np.array([missing, *range(1, N)], dtype=object)
    for given in (ids, ids.tolist()):
        with pytest.raises(InputError, match="every row needs an id"):
            model().fit(of_arrays(tmp_path, given))


def frames_without_ids():
    yield "a default index", X
    yield "an array", X.to_numpy()
    polars = pytest.importorskip("polars")
    yield "polars", polars.from_pandas(X)


def test_people_without_ids_are_refused_unless_the_steward_allows_it(tmp_path):
    paid = account(tmp_path)
    for what, x in frames_without_ids():
        with pytest.raises(InputError, match=r"recognises people by their ids.*set_index"):
            model().fit(x, Y, account=paid)
        assert not paid.ledger.spent(), what
    (tmp_path / "values").mkdir()
    allowed = account(tmp_path / "values", by_values=True)
    model().fit(X, Y, account=allowed)
    with pytest.raises(BudgetError):
        model().fit(X.set_axis(INDEXES["text"]), Y, account=allowed)


def test_an_extension_uses_the_index_too(tmp_path):
    paid = account(tmp_path, epsilon=1.1, person="IID")
    named = X.set_axis(INDEXES["text"])
    place = write_bundle(model().fit(named, Y).release_, tmp_path / "first", release_id="first")
    release = read_bundle(place)
    paid.ledger.note(Cost(mu=0), purpose="known", release_id="first")
    paid.ledger.finish("first", release.digest)
    how = {
        "protection": "both",
        "epsilon": 1,
        "delta": 1e-6,
        "outcome_bounds": (-1, 1),
        "account": paid,
    }
    with pytest.raises(InputError, match="names people by 'IID'"):
        primo.extend(release, X.set_axis(INDEXES["text"].rename("eid")), Y, **how)
    primo.extend(release, named, Y, **how)
    with pytest.raises(BudgetError):
        primo.extend(release, named, Y, **how)


def test_labels_that_differ_are_not_put_together():
    y = pd.DataFrame(Y, index=INDEXES["whole numbers"])
    with pytest.raises(InputError, match="different labels"):
        model().fit(X.set_axis(INDEXES["text"]), y)
    model().fit(X.set_axis(INDEXES["floats"]), y)


# -- several rows of one person -------------------------------------------------------------------------


def twice(count=2):
    """Labels of which each person has `count`."""
    return pd.Index(np.repeat([f"secret{i}" for i in range(N // count)], count), name="IID")


def of_arrays(folder, labels):
    if not (folder / "x.npy").exists():
        np.save(folder / "x.npy", X.to_numpy())
        np.save(folder / "y.npy", Y)
    features = open_npy(folder / "x.npy", ids=labels, id_name="IID")
    outcomes = open_npy(folder / "y.npy")
    return PairedSource(
        features=features, outcomes=outcomes, feature_rows=range(N), outcome_rows=range(N)
    )


@pytest.mark.parametrize("ledger", [False, True])
@pytest.mark.parametrize("form", ["frame", "npy"])
def test_a_person_with_several_rows_is_refused_or_pays_for_all(tmp_path, form, ledger):
    paid = account(tmp_path, epsilon=50) if ledger else None
    rows = (X.set_axis(twice()), Y) if form == "frame" else (of_arrays(tmp_path, twice()),)
    said = []
    for settings in ({}, {"rows_per_person": 1}):
        with pytest.raises(InputError, match="rows_per_person=") as caught:
            model(**settings).fit(*rows, account=paid)
        said.append(str(caught.value))
    worse = (X.set_axis(twice(3)), Y) if form == "frame" else (of_arrays(tmp_path, twice(3)),)
    with pytest.raises(InputError, match="at most 2 rows"):
        model(rows_per_person=2).fit(*worse, account=paid)
    assert not any("secret" in text or any(map(str.isdigit, text)) for text in said)
    fitted = model(rows_per_person=2).fit(*rows, account=paid)
    plan = fitted.release_.plan
    assert plan.rows_per_person == 2
    assert "a person owns 2 rows" in fitted.release_.statement()
    if paid is not None:
        (spent,) = paid.ledger.spent()
        assert (spent.releases, spent.mu) == (1, 2 * plan.mu)


def test_a_row_without_an_id_says_no_more_than_a_repeated_one():
    empty = X.set_axis(pd.Index(["", *INDEXES["text"][1:]]))
    said = set()
    for x in (empty, X.set_axis(twice())):
        with pytest.raises(InputError) as caught:
            model().fit(x, Y)
        said.add(str(caught.value))
    assert len(said) == 1


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, None, 10**6 + 1, 10**400])
def test_rows_per_person_is_a_number(value):
    with pytest.raises(InputError, match="rows_per_person"):
        model(rows_per_person=value).fit(X, Y)


def test_one_individual_id_in_many_families(tmp_path):
    from primo.cli.demo import _write_cohort
    from primo.rows.sources.genotypes.cohort import open_cohort

    _write_cohort(tmp_path)
    for name in ("cohort.fam", "traits.tsv"):
        lines = (tmp_path / name).read_text().splitlines()
        renamed = []
        for line in lines:
            family, person, *rest = line.split("\t")
            person = "secret" if person in ("person00003", "person00004") else person
            renamed.append("\t".join([family, person, *rest]))
        (tmp_path / name).write_text("\n".join(renamed) + "\n")
    source = open_cohort(bfile=tmp_path / "cohort", pheno=tmp_path / "traits.tsv").source
    paid = account(tmp_path, epsilon=50)
    settings = {"epsilon": 1, "delta": 1e-8, "feature_bounds": (0, 2), "outcome_bounds": (-9, 9)}
    settings["missing"] = "centre"
    for most in (1, 2):
        prepared = prepare(source, Settings(**settings, rows_per_person=most))
        if most == 1:
            with pytest.raises(InputError, match="several families"):
                release_rows(source, prepared, bits=RandomBits.fresh(), account=paid)
            assert not paid.ledger.spent()
        else:
            release_rows(source, prepared, bits=RandomBits.fresh(), account=paid)
            assert paid.ledger.spent()[0].mu == 2 * prepared.plan.mu


def test_advice_about_labels_and_accounts(tmp_path):
    named = X.set_axis(INDEXES["text"].rename("IID"))
    outcomes = pd.Series(np.asarray(Y).reshape(len(X), -1)[:, 0], index=named.index[::-1])
    with pytest.raises(InputError, match="only if the rows are in the same order"):
        model().fit(named, outcomes)
    with pytest.raises(InputError, match="not the ledger itself"):
        model().fit(named, Y, account=account(tmp_path, epsilon=1.1, person="IID").ledger)
