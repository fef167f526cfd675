"""Loads the helpers of these tests by path (tests are no package) and lays out what they run over."""

import importlib.util
import sys
from pathlib import Path

import pytest

import replay as recorder

HERE = Path(__file__).parent


def loaded(path):
    name = f"audit_replay_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture(scope="session")
def replay():
    """The recorder, tests/helpers/replay.py."""
    return recorder


@pytest.fixture(scope="session")
def ways():
    """Every way to release, ways.py."""
    return loaded(HERE / "ways.py")


@pytest.fixture(scope="session")
def people():
    """A small cohort and its files, people.py."""
    return loaded(HERE / "people.py")


def pytest_generate_tests(metafunc):
    if "way" in metafunc.fixturenames:
        metafunc.parametrize("way", list(loaded(HERE / "ways.py").every_way()), ids=str)
    if "form" in metafunc.fixturenames:
        metafunc.parametrize("form", loaded(HERE / "people.py").FORMS, ids=lambda f: f.__name__)
