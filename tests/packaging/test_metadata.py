"""What the package says of itself is whole and agrees with itself."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = (ROOT / "CITATION.cff").read_text()


def cited(key):
    return re.search(rf'^{key}: "?([^"\n]+)', CITATION, re.M).group(1)


def test_the_citation_agrees():
    assert cited("version") == PROJECT["version"]
    assert cited("license") == PROJECT["license"]
    assert cited("cff-version") == "1.2.0"
    for needed in ("message", "title", "authors"):
        assert re.search(rf"^{needed}:", CITATION, re.M)
    assert PROJECT["urls"]["Paper"] in CITATION


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_supported_pythons_are_named(version):
    assert f"Programming Language :: Python :: {version}" in PROJECT["classifiers"]


def test_nothing_is_missing():
    needed = {"name", "version", "description", "readme", "license", "authors", "keywords", "urls"}
    assert needed <= PROJECT.keys()
    assert (ROOT / PROJECT["readme"]).is_file()


def test_extras_of_users_are_part_of_the_developers():
    extras = PROJECT["optional-dependencies"]
    named = re.search(r"primo-dp\[([a-z,]+)\]", extras["dev"][0]).group(1).split(",")
    assert {*named} == extras.keys() - {"dev", "docs", "experiments"}
