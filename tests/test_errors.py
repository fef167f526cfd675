"""Errors carry what they are about, are spelled by each front end, and survive a change of process."""

import copy
import pickle

import numpy as np
import pytest

import primo
from factories import planned
from primo.errors import (
    ABSENT,
    Advice,
    Argument,
    BudgetError,
    InputError,
    LedgerError,
    Message,
    NotNumericError,
    PrimoError,
    PrimoWarning,
    in_python,
)
from primo.planning.settings import Settings, check_choices
from primo.privacy.bounds import Bounds
from primo.privacy.budget import Budget
from primo.privacy.protection import Protection


@pytest.mark.parametrize(
    ("argument", "text"),
    [
        (Argument("missing", "centre"), 'missing="centre"'),
        (Argument("table.missing", ...), "missing=..."),
        (Argument("split", 3.0), "split=3.0"),
        (Argument("by_values", True), "by_values=True"),
        (Argument("ridge_lambda", None), "ridge_lambda=None"),
        (Argument("key_file"), "key_file"),
        (Argument("dataset", 'the "first"'), "dataset='the \"first\"'"),
        (Argument("separator", "\t"), r"separator='\t'"),
        (Advice("index", "X.set_index('id')"), "X.set_index('id')"),
    ],
)
def test_python_spells_an_argument_as_in_a_call(argument, text):
    assert in_python(argument) == text


def test_the_remedy_follows_the_message():
    error = InputError("it is wrong", remedy="mend it")
    assert str(error) == "it is wrong; mend it"
    assert str(InputError("it is wrong", remedy="Mend it")) == "it is wrong. Mend it"
    gauss = Message.of("use ", Argument("association", "gauss"))
    assert str(InputError("it is wrong", remedy=gauss)) == 'it is wrong; use association="gauss"'


def test_plain_text_is_left_alone():
    error = InputError("{braces} and %s in a name")
    assert str(error) == "{braces} and %s in a name"
    assert (error.argument, error.value, error.remedy) == (None, ABSENT, None)


def settings(**changed):
    return Settings(epsilon=1, delta=1e-6, **changed)


@pytest.mark.parametrize(
    ("call", "argument", "value", "remedy"),
    [
        (lambda: Budget(epsilon=0, delta=1e-6), "epsilon", 0, None),
        (lambda: Budget(epsilon=1, delta="x"), "delta", "x", None),
        (lambda: Protection.parse("all"), "protection", "all", "choose one of"),
        (lambda: check_choices(settings(split=3.0)), "split", 3.0, None),
        (
            lambda: check_choices(settings(association="projection")),
            "association",
            "projection",
            'Use association="gauss"',
        ),
        (
            lambda: check_choices(settings(protection="features", covariance_rows=7)),
            "covariance_rows",
            7,
            "leave it out",
        ),
        (
            lambda: planned(n=9, d=2, l=1, epsilon=1, delta=1e-3),
            "feature_bounds",
            ABSENT,
            "Choose feature_bounds from public knowledge",
        ),
        (lambda: Bounds(norm=-1), "bounds.norm", -1, None),
        (lambda: primo.open_ledger("nowhere.ledger"), None, ABSENT, "make one with create_ledger"),
        (
            lambda: primo.PrimoRegressor(
                epsilon=1, delta=1e-3, feature_bounds=1.0, outcome_bounds=1.0
            ).fit(np.full((9, 2), np.nan), np.zeros(9)),
            "missing",
            "error",
            'Clean them, or pass missing="centre"',
        ),
        (
            lambda: primo.PrimoRegressor(epsilon=1, delta=1e-3, n_jobs="all").fit(
                np.zeros((9, 2)), np.zeros(9)
            ),
            "n_jobs",
            "all",
            None,
        ),
    ],
)
def test_an_error_says_what_it_is_about(call, argument, value, remedy):
    with pytest.raises(PrimoError) as caught:
        call()
    error = caught.value
    assert error.argument == argument
    assert error.value == value
    if remedy is None:
        assert error.remedy is None
    else:
        assert str(error.remedy).startswith(remedy)
        assert str(error).endswith(str(error.remedy))


def test_a_wrapped_error_is_about_the_same():
    with pytest.raises(
        primo.BoundsError, match=r"feature_bounds: lower=2\.0 is not below"
    ) as caught:
        primo.compare_plans(n=9, d=2, l=1, epsilon=1, feature_bounds=(2, 1))
    assert caught.value.argument == "feature_bounds"


@pytest.mark.parametrize(
    "kind", [InputError, NotNumericError, BudgetError, LedgerError, PrimoWarning]
)
def test_errors_cross_processes(kind):
    error = kind(
        Argument("missing", "error"),
        " does not do",
        remedy=Message.of("use ", Argument("missing", "centre"), Advice("index", "!")),
    )
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == str(error) == 'missing="error" does not do; use missing="centre"!'
        assert (again.message, again.remedy) == (error.message, error.remedy)
        assert (again.argument, again.value) == ("missing", "error")
        assert again.__traceback__ is None
    assert pickle.loads(pickle.dumps(kind("text"))).value is ABSENT


def test_kinds_stay_what_callers_catch():
    assert issubclass(InputError, ValueError)
    assert issubclass(NotNumericError, TypeError)
    assert issubclass(primo.WeakGuaranteeWarning, UserWarning)
    assert issubclass(primo.ReproducibleNoiseWarning, UserWarning)
