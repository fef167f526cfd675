"""Functions that remember their last result."""

import gc
import itertools
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from primo._util.remembered import remembered


class Thing:
    pass


def counting():
    calls = []

    @remembered
    def function(*args):
        calls.append(args)
        return Thing()

    return function, calls


def test_the_very_same_arguments_give_the_very_same_result():
    function, calls = counting()
    a, b = np.zeros(3), Thing()
    first = function(a, [b, a], 2.0)
    assert function(a, (b, a), 2.0) is first
    assert len(calls) == 1


def test_equal_is_not_the_same_but_for_numbers():
    function, calls = counting()
    a, b = np.zeros(3), np.zeros(3)
    found = [function(a, 1.0), function(b, 1.0), function(b, 2.0), function(b), function([b])]
    found += [function([a], b), function(a, [b])]
    assert len(set(map(id, found))) == len(calls) == len(found)


def test_an_object_at_the_place_of_one_that_is_gone_is_another():
    function, calls = counting()
    for _ in range(20):
        function(np.zeros(3))
    assert len(calls) == 20


def test_nothing_is_kept_once_an_argument_is_gone():
    function, calls = counting()
    a = Thing()
    result = weakref.ref(function(a, 1.0))
    assert result() is not None
    del calls[:], a
    gc.collect()
    assert result() is None


def test_what_looks_alike_when_it_is_written_in_a_row_is_another():
    function, _ = counting()
    a, b = Thing(), Thing()
    looks = [([a, b],), (a, b, 2), ([a], 1), ([[a]],), (a, 1), (a, True), (a, 1.0)]
    looks += [(a, np.float64(1.0)), (a, 0.0), (a, -0.0), (a, "1"), (a, None), (a, "None")]
    for one, other in itertools.permutations(looks, 2):
        assert function(*one) is not function(*other)


def test_names_of_arguments_count():
    calls = []

    @remembered
    def difference(a, b):
        calls.append((a, b))
        return a - b

    one, two = np.ones(1), 2 * np.ones(1)
    found = [float(difference(a=a, b=b)[0]) for a, b in ((one, two), (two, one), (one, two))]
    assert found == [-1, 1, -1]
    assert difference(b=two, a=one) is difference(a=one, b=two)
    assert len(calls) == 3


def test_what_cannot_be_watched_is_not_remembered():
    function, calls = counting()
    for _ in range(3):
        function(np.int64(1), b"bytes")
    assert len(calls) == 3


def test_threads_get_the_results_of_their_own_arguments():
    @remembered
    def total(values, factor):
        return values, float(values.sum()) * factor

    things = [np.full(3, float(i)) for i in range(8)]

    def look(seed):
        rng = np.random.default_rng(seed)
        for i in rng.integers(0, len(things), 3000):
            values = things[i] if i % 2 else things[i].copy()  # some are gone at once
            found, number = total(values, 2.0)
            if found is not values or number != 6.0 * i:
                return False
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(look, range(4)))
