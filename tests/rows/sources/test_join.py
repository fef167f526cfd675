"""The same people in several stores."""

import numpy as np
import pytest

from primo.errors import InputError
from primo.rows.sources.join import match


def ids(*names):
    return np.array(names, dtype=np.str_)


def rows(matched):
    return [list(part) for part in matched.rows]


def test_the_order_is_that_of_the_chosen_store():
    a, b = ids("p", "q", "r", "s"), ids("s", "x", "q", "p")
    assert rows(match([a, b], labels="ab")) == [[0, 1, 3], [3, 2, 0]]
    assert rows(match([a, b], labels="ab", order=1)) == [[3, 1, 0], [0, 2, 3]]


def test_three_stores_against_sets():
    rng = np.random.default_rng(0)
    stores = [rng.permutation([f"id{i}" for i in range(k, 300 + k)]) for k in (0, 40, 90)]
    found = match(stores, labels="abc", order=2)
    picked = [store[np.asarray(part)] for store, part in zip(stores, found.rows, strict=True)]
    common = set(stores[0]) & set(stores[1]) & set(stores[2])
    assert picked[2].tolist() == [name for name in stores[2] if name in common]
    assert picked[0].tolist() == picked[1].tolist() == picked[2].tolist()
    assert found.n == len(common)


def test_consecutive_rows_are_ranges():
    a = ids("p", "q", "r", "s")
    found = match([a, a[1:3]], labels="ab")
    assert found.rows == (range(1, 3), range(2))


def test_neither_rows_nor_how_many_they_are_is_shown():
    found = match([ids("p", "q", "r"), ids("r", "q")], labels=["x.csv", "y.csv"])
    assert str(found) == repr(found) == "<Matched (private)>"
    assert found.n == 2


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        (("secret", "q", "secret", "secret"), ("q",), "those of x.csv break one"),
        (("secret", "", " "), ("q",), "those of x.csv break one"),
        (("secret", "q"), ("r",), "too few people are in all of these"),
    ],
)
def test_errors_show_no_id_and_no_count(left, right, words):
    with pytest.raises(InputError, match=words) as caught:
        match([ids(*left), ids(*right)], labels=["x.csv", "y.csv"])
    assert "secret" not in str(caught.value)
    assert not any(sign.isdigit() for sign in str(caught.value))


def test_a_million_people_can_be_matched():
    """It takes seconds; a loop over pairs would take days, so no clock is needed to notice one."""
    a = np.arange(10**6, 2 * 10**6).astype(str)
    b = a[np.random.default_rng(0).permutation(10**6)]
    found = match([a, b], labels="ab")
    assert found.rows[0] == range(10**6)
    assert (b[found.rows[1]] == a).all()
