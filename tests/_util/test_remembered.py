"""Functions that remember their last result."""

import gc
import weakref

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
