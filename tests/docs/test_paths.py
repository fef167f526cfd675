"""Files and modules that the documentation names exist."""

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    *sorted((ROOT / "docs").glob("*.md")),
    *(ROOT / name for name in ("README.md", "SECURITY.md", "CONTRIBUTING.md")),
]
#: What a path may be relative to. docs/mathematics.md has a test of its own for bare names.
HOMES = [ROOT, ROOT / "src", ROOT / "src" / "primo", ROOT / "experiments" / "figures"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files(page):
    named = re.findall(r"`((?:[A-Za-z_.]+/)+[A-Za-z_]+\.py)\b", page.read_text(encoding="utf-8"))
    lost = {name for name in named if not any((home / name).is_file() for home in HOMES)}
    assert not lost


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_modules(page):
    text = page.read_text(encoding="utf-8")
    named = set(re.findall(r"\bprimo(?:\.[A-Za-z_]+)+", text))
    for package in ("privacy", "planning", "forecast", "rows", "wall", "released", "workflow"):
        named |= {f"primo.{found}" for found in re.findall(rf"`({package}(?:\.[A-Za-z_]+)+)", text)}
    lost = {name for name in named if not _exists(name)}
    assert not lost


def _exists(name):
    """Whether a dotted name is a module, or something reached from one."""
    value, parts = importlib.import_module("primo"), name.split(".")[1:]
    for i, part in enumerate(parts):
        if hasattr(value, part):
            value = getattr(value, part)
            continue
        try:
            value = importlib.import_module(".".join(["primo", *parts[: i + 1]]))
        except ImportError:
            return False
    return True
