"""`primo doctor` says what is there and fails where arithmetic is not exact."""

import json
import re
import tomllib
from pathlib import Path

from click.testing import CliRunner

from primo.cli import main
from primo.cli.doctor import OPTIONAL
from primo.rows import exactness

ROOT = Path(__file__).parents[2]


def run(*words):
    return CliRunner().invoke(main, ["doctor", *words])


def test_it_names_what_is_installed_and_what_would_be_enabled(monkeypatch):
    from primo.cli import doctor as module

    real = module._version
    monkeypatch.setattr(module, "_version", lambda name: None if name == "zarr" else real(name))
    said = run("--no-speed")
    assert said.exit_code == 0, said.output
    assert "pip install 'primo-dp[genomics]'" in said.output
    assert "all 11 products of integers are right" in said.output


def test_every_package_belongs_to_the_extra_that_is_named():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for package, (extra, _) in OPTIONAL.items():
        assert any(line.startswith(package) for line in extras[extra]), package
    public = {"genomics", "cluster", "postgres", "fast", "opendp", "plots"}
    assert {extra for extra, _ in OPTIONAL.values()} == public
    brought = {re.match(r"[\w-]+", line)[0] for extra in public for line in extras[extra]}
    assert brought - {"dask"} == OPTIONAL.keys()  # distributed stands for both


def test_machines_read_it():
    said = run("--no-speed", "--json")
    found = json.loads(said.stdout)
    assert found["exact"] is True
    assert found["speed"] is None
    assert found["installed"]["numpy"]


def test_speed_is_measured():
    found = json.loads(run("--json").stdout)["speed"]
    assert found["gflops"] > 0
    assert found["fit_seconds"] > 0


def test_it_fails_where_blas_is_not_exact(monkeypatch):
    bad = [exactness.Check(name="float64, 3 x 3", exact=False)]
    monkeypatch.setattr(exactness, "probe", lambda: bad)
    said = run("--no-speed")
    assert said.exit_code == 1
    assert "NOT EXACT" in said.output
