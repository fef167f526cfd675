"""Every public name has an example in its docstring, and every example runs."""

import doctest
import inspect
import warnings

import pytest

import primo

NAMES = [name for name in primo.__all__ if name != "__version__"]


def shown_at(name):
    """The public name whose docstring has the example: mostly the name itself.

    Errors share that of their root. A value that a public function returns may be shown there.
    """
    value = getattr(primo, name)
    if _examples(value):
        return name
    if inspect.isclass(value) and issubclass(value, primo.PrimoError):
        return "PrimoError"
    made_by = (
        other
        for other in NAMES
        if inspect.isfunction(function := getattr(primo, other))
        and function.__annotations__.get("return") == name
        and _examples(function)
    )
    return next(made_by, None)


def _examples(value):
    return doctest.DocTestParser().get_examples(value.__doc__ or "")


@pytest.mark.parametrize("name", NAMES)
def test_there_is_one(name):
    assert shown_at(name) is not None, f"primo.{name} has no example in its docstring"


@pytest.mark.parametrize("name", sorted({shown_at(name) for name in NAMES} - {None}))
def test_it_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    value = getattr(primo, name)
    test = doctest.DocTestParser().get_doctest(value.__doc__, {}, f"primo.{name}", None, 0)
    said = []
    with warnings.catch_warnings():
        result = doctest.DocTestRunner(verbose=False).run(test, out=said.append)
    assert result.attempted > 0
    assert result.failed == 0, "".join(said)
