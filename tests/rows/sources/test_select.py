"""Columns by name, pattern and list."""

import pytest

from primo.errors import InputError
from primo.rows.sources.select import asked, choose, read_list, refuse_overlap
from primo.rows.sources.tabular.tables import table_source

AVAILABLE = ["id", "snp_2", "age", "snp_1", "snp_10", "height", "odd*name", "snp_2*"]


def pick(*wanted):
    return choose(AVAILABLE, wanted, what="features", where="t.csv")


def test_names_come_in_the_order_asked_for_and_patterns_in_that_of_the_file():
    assert pick("height", "age") == ("height", "age")
    assert pick("age", "snp_[12]", "snp_1*") == ("age", "snp_2", "snp_1", "snp_10")
    assert pick("age", "age") == ("age",)
    assert choose(AVAILABLE, "age", where="t.csv") == ("age",)


def test_a_name_counts_as_a_name_whatever_its_letters():
    assert pick("odd*name") == ("odd*name",)
    assert pick("snp_2*") == ("snp_2*",)


def test_patterns_look_at_case():
    with pytest.raises(
        InputError, match=r"'SNP_\*' for the features matches none of the 8 columns"
    ):
        pick("SNP_*")


def test_unknown_names_show_the_closest_and_the_count():
    with pytest.raises(InputError) as caught:
        pick("age", "hieght", "snp_3", "q", "w", "zzz")
    message = str(caught.value)
    assert "5 of the 6 features" in message
    assert "'hieght' (did you mean 'height'?)" in message
    assert "and 2 more" in message
    assert "t.csv" in message


def test_nothing_asked_for():
    with pytest.raises(InputError, match="no features were asked for"):
        pick()


def test_none_is_both():
    refuse_overlap(pick("snp_*"), pick("age"))
    with pytest.raises(InputError, match="1 column is asked for as features and as outcomes"):
        refuse_overlap(pick("age", "id"), pick("a*"))


def test_lists(tmp_path):
    path = tmp_path / "list.txt"
    path.write_text("# outcomes\nage   # years\n\n snp_* \r\nrs#1\n", encoding="utf-8-sig")
    assert read_list(path) == ("age", "snp_*", "rs#1")
    assert asked(["height"], [path]) == ("height", "age", "snp_*", "rs#1")
    path.write_text("# nothing\n")
    with pytest.raises(InputError, match="is empty"):
        read_list(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        read_list(path)
    with pytest.raises(InputError, match="there is no file"):
        read_list(tmp_path / "absent")


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        ("age,sex", ["age", "sex"]),
        (" age , snp_* ", ["age", "snp_1", "snp_2"]),
        (["sex", "snp_2,age"], ["sex", "snp_2", "age"]),
        ("income, net,age", ["income, net", "age"]),
        ("age,income, net", ["age", "income, net"]),
        ("income, net", ["income, net"]),
        ("[a,s]*", ["age", "sex", "snp_1", "snp_2"]),
        ("age,", ["age"]),
    ],
)
def test_names_with_commas_between_them(wanted, chosen):
    names = ["age", "sex", "snp_1", "snp_2", "income, net", "net"]
    assert list(choose(names, wanted, where="t.csv")) == chosen


def test_a_list_is_not_cut_where_names_must_be_exact():
    with pytest.raises(InputError, match="'FID,IID'"):
        choose(["FID", "IID"], "FID,IID", where="t.csv", lists=False)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [
        ("Age", "age"),
        ("AGE", "age"),
        ("birth year", "birth_year"),
        ("BirthYear", "birth_year"),
        ("heigth", "height"),
    ],
)
def test_columns_are_suggested_by_closeness(asked, meant):
    with pytest.raises(InputError, match=f"did you mean '{meant}'"):
        choose(["age", "birth_year", "height", "x1"], asked, where="t.csv")


def test_a_pattern_in_other_capitals():
    with pytest.raises(InputError, match="capitals count: did you mean 'snp_1'"):
        choose(["snp_1", "age"], "SNP_*", where="t.csv")


def test_everything_is_what_is_not_taken():
    chosen = choose(AVAILABLE, "*", what="features", where="t.csv", taken=["age"])
    assert chosen == tuple(name for name in AVAILABLE if name != "age")
    # A name, or a narrower pattern, that asks for a taken column means it: the overlap is refused later.
    assert "age" in choose(AVAILABLE, ["*", "age"], what="features", where="t.csv", taken=["age"])
    assert "age" in choose(AVAILABLE, "a*", what="features", where="t.csv", taken=["age"])
    with pytest.raises(InputError, match="are left for the features: all of them"):
        choose(["age"], "*", what="features", where="t.csv", taken=["age"])


def test_features_everything_of_one_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id,age,dose,pulse\na,40,1,70\nb,50,2,80\n")
    source = table_source(path, features="*", outcomes="pulse", id_column="id")
    assert source.feature_names == ("age", "dose")
    with pytest.raises(InputError, match=r"1 column is asked for .*features '\*' are all columns"):
        table_source(path, features="*e", outcomes="pulse", id_column="id")
