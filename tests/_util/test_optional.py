"""Libraries that need not be installed."""

import re
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

from primo._util.optional import optional
from primo.errors import InputError


def test_a_library_that_is_there_is_imported():
    assert optional("json.decoder", purpose="reading").JSONDecoder


def test_what_is_absent_is_named_with_how_to_install_it():
    with pytest.raises(InputError, match=r"^reading x needs no_such_lib: pip install no-such-lib$"):
        optional("no_such_lib.part", purpose="reading x")
    with pytest.raises(InputError, match=r"pip install 'primo-dp\[fast\]', or wait$"):
        optional("no_such_lib", purpose="reading x", extra="fast", instead="wait")


def test_every_extra_that_is_named_exists():
    root = Path(__file__).parents[2]
    known = tomllib.loads((root / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    sources = [*Path(str(files("primo"))).rglob("*.py"), *(root / "docs").glob("*.md")]
    text = "".join(path.read_text(encoding="utf-8") for path in sources)
    named = re.findall(r'extra="(\w+)"', text)
    named += [
        name for found in re.findall(r"primo-dp\[([\w,]+)\]", text) for name in found.split(",")
    ]
    assert len(named) >= 6
    assert set(named) <= set(known)
