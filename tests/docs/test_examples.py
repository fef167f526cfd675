"""Every public name has an example in its docstring, and every example runs."""

import doctest
import inspect
import pydoc
import re
import warnings

import pytest

import primo
from doc_blocks import ROOT

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


def _described():
    """Yield every function and class of the Python reference."""
    page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    for path in re.findall(r"^::: (\S+)$", page, re.M):
        value = pydoc.locate(path)
        yield from (
            (f"{path}.{name}", member)
            for name, member in [("", value), *vars(value).items()]
            if not name.startswith("_") and (inspect.isfunction(member) or inspect.isclass(member))
        )


def test_names_that_share_an_entry_share_type_and_default():
    """The reference shows those of the first name for all of them."""
    seen = 0
    for path, value in _described():
        known = inspect.signature(value).parameters
        for line in re.findall(r"^ +(\w+(?:, \w+)+)(?: : .*)?$", value.__doc__ or "", re.M):
            shared = [known[name] for name in line.split(", ") if name in known]
            assert len({(str(p.annotation), str(p.default)) for p in shared}) < 2, (path, line)
            seen += bool(shared)
    assert seen > 5
