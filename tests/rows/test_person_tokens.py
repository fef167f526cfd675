"""A data set is recognised by its people."""

import numpy as np
import pytest

import primo.rows.person_tokens
from factories import array_source
from primo.errors import InputError
from primo.ledger.key import Key
from primo.ledger.people import share_people
from primo.rows.person_tokens import sketch
from primo.rows.sources.base import Block

KEY = Key(bytes(range(32)))
RNG = np.random.default_rng(4)


class Labelled:
    """A source with ids, whose rows nobody may read."""

    outcome_names = feature_names = ("x",)

    def __init__(self, ids):
        self._ids, self.n = np.array(ids, dtype=np.str_), len(ids)

    def ids(self):
        return self._ids

    def blocks(self, rows):
        raise AssertionError("ids are enough")


def table(features, outcomes=None):
    outcomes = np.zeros((len(features), 1)) if outcomes is None else outcomes
    return array_source(features, outcomes)


def same_people(one, two, key=KEY):
    return share_people(
        sketch(one, key).tokens,
        sketch(two, key).tokens,
    )


IDS = [f"id{i}" for i in range(20_000)]


@pytest.mark.parametrize(
    ("ids", "known"),
    [
        (IDS, True),
        (RNG.permutation(IDS), True),
        (IDS[:200], True),
        (IDS[-1:], True),
        ([f"new{i}" for i in range(20_000)], False),
        ([*(f"new{i}" for i in range(20_000)), IDS[77]], True),
        (["ID1", "id 1", "id"], False),
        (["\tid1 "], True),
    ],
    ids=[
        "copy",
        "order",
        "subset",
        "one person",
        "strangers",
        "one in common",
        "other spellings",
        "blanks",
    ],
)
def test_people_by_their_ids(ids, known):
    assert same_people(Labelled(IDS), Labelled(ids)) is known
    assert same_people(Labelled(ids), Labelled(IDS)) is known


VALUES = RNG.normal(size=(3000, 4))


@pytest.mark.parametrize(
    ("values", "known"),
    [
        (VALUES.copy(order="F"), True),
        (VALUES[RNG.permutation(3000)], True),
        (VALUES[:30], True),
        (VALUES[5:6], True),
        (RNG.normal(size=(3000, 4)), False),
        (VALUES[:, [2, 0, 3, 1]], True),
        (VALUES[:, :3], False),
        (VALUES.astype(np.float32), False),
    ],
    ids=["copy", "order", "subset", "one row", "strangers", "columns", "fewer columns", "rounded"],
)
def test_people_by_their_values(values, known):
    outcomes = RNG.normal(size=(len(values), 2))
    assert same_people(table(VALUES), table(values, outcomes)) is known


def test_numbers_count_and_not_their_bytes():
    odd_nan = np.array([0x7FF8000000000123], dtype=np.uint64).view(np.float64)[0]
    one = sketch(table(np.array([[0.0, np.nan, 2.0]])), KEY)
    two = sketch(table(np.array([[-0.0, -odd_nan, 2.0]])), KEY)
    assert one.digest == two.digest
    small = RNG.integers(0, 3, size=(50, 30))
    kinds = [np.int8, np.int64, np.float32, np.float64, ">f8"]
    digests = {sketch(table(small.astype(kind)), KEY).digest for kind in kinds}
    assert len(digests) == 1


def test_the_data_are_left_alone():
    values = np.array([[-0.0, np.nan]])
    values.setflags(write=False)
    sketch(table(values), KEY)
    assert np.signbit(values[0, 0])


def test_tokens_of_ids_and_values_never_match():
    row = np.array([[1.0]])
    label = row.tobytes().decode("latin-1")
    assert not same_people(Labelled([label.rstrip("\0")]), table(row))
    assert sketch(Labelled(["a"]), KEY).by == "ids"
    assert sketch(table(row), KEY).by == "values"


def test_tokens_depend_on_the_key():
    one = sketch(Labelled(IDS), KEY)
    two = sketch(Labelled(IDS), Key(bytes(32)))
    assert not share_people(one.tokens, two.tokens)
    assert one.key_check != two.key_check


def test_blocks_do_not_matter(monkeypatch):
    whole = sketch(table(VALUES), KEY)
    monkeypatch.setattr(primo.rows.person_tokens, "_NUMBERS", 28)
    assert sketch(table(VALUES), KEY).digest == whole.digest
    assert whole.rows == 3000


def test_equal_rows_are_one_token():
    found = sketch(table(np.ones((10, 2))), KEY)
    assert len(found.tokens) == 1
    assert found.rows == 10


def test_the_representation_tells_nothing():
    assert repr(sketch(Labelled(["ada"]), KEY)) == "<Sketch n=1 by ids (private)>"


def test_a_source_without_rows_is_refused():
    class Empty(Labelled):
        def blocks(self, rows):
            yield Block(features=np.zeros((0, 1)), outcomes=np.zeros((0, 1)))

    with pytest.raises(InputError, match="nobody"):
        sketch(Empty([]), KEY)


def test_tokens_look_uniform():
    """Kept on purpose: the comparison of large sets first looks at the smallest tokens."""
    tokens = sketch(Labelled(IDS), KEY).tokens
    share = np.histogram(tokens.astype(float) / 2**64, bins=10, range=(0, 1))[0] / len(IDS)
    assert np.abs(share - 0.1).max() < 0.01


def test_a_hundred_thousand_ids_have_as_many_tokens():
    """It takes a fraction of a second; a loop over pairs would take hours."""
    found = sketch(Labelled([f"person{i}" for i in range(100_000)]), KEY)
    assert len(np.unique(found.tokens)) == 100_000
