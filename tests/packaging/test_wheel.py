"""The built wheel works in an empty environment, with each extra alone (`make test-wheel`).

Packages come from wherever pip finds them; where it finds none the tests skip and say so.
"""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.wheel

ROOT = Path(__file__).parents[2]

#: What each extra is for, tried out. The first part runs everywhere.
BASE = """
import numpy as np, primo
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, size=(2000, 3))
Y = X[:, :2] + rng.normal(size=(2000, 2)) * 0.1
def fit(x=X, **settings):
    model = primo.PrimoRegressor(
        epsilon=5, delta=1e-6, feature_bounds=(-1, 1), outcome_bounds=(-2, 2), **settings
    )
    return model.fit(x, Y).release_
"""
TRIES = {
    "": """
release = fit()
primo.write_bundle(release, "release")
assert primo.read_bundle("release").coefficients().slopes.shape == (3, 2)
from primo.report import write_report
write_report(release, "report.html")
book = primo.create_ledger("a.ledger", limit=primo.Budget(epsilon=9, delta=1e-6), person="who")
import pathlib
assert "<html" in pathlib.Path("report.html").read_text()
try:
    primo.plots.noise_and_signal(release)
except primo.InputError as error:
    assert "pip install 'primo-dp[plots]'" in str(error)
else:
    raise AssertionError("matplotlib is here, so this environment was not empty")
""",
    "genomics": """
import bgen, cyvcf2, pgenlib, zarr
zarr.save("x.zarr", X)
fit(zarr.open("x.zarr", mode="r"))
""",
    "cluster": """
import dask.array, distributed
from primo.rows import cluster
fit(dask.array.from_array(X, chunks=(500, 3)))
""",
    "postgres": """
import psycopg
from primo.ledger import open_ledger
try:
    open_ledger("postgresql://nobody@127.0.0.1:1/none")
except primo.LedgerError:
    pass
""",
    "fast": """
from primo._util.jit import load
assert load("primo.rows.kernels") is not None
fit()
""",
    "opendp": """
assert fit(backend="opendp").backend == "opendp"
""",
    "plots": """
import matplotlib
matplotlib.use("Agg")
primo.plots.noise_and_signal(fit()).figure.savefig("figure.png")
""",
}


def run(*line, cwd):
    done = subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{line[:4]}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """Build sdist and wheel as a maintainer does, the wheel out of the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT), cwd=folder)
    return folder


@pytest.fixture(scope="session")
def wheels(built, tmp_path_factory):
    """Fetch what all extras need once, so that environments are made without a network."""
    folder = tmp_path_factory.mktemp("wheels")
    (wheel,) = built.glob("*.whl")
    extras = ",".join(filter(None, TRIES))
    line = [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(folder)]
    line += ["-c", str(ROOT / "constraints.txt"), f"{wheel}[{extras}]"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"pip could not fetch the packages: {done.stderr[-300:]}")
    return folder


def test_the_sdist_builds_and_holds_what_a_reader_needs(built):
    (path,) = built.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"README.md", "LICENSE", "CITATION.cff", "CHANGELOG.md", "mkdocs.yml", "Makefile"}
    assert needed <= names
    assert not [name for name in names if "cache" in name.lower()]


def test_the_wheel_holds_its_data_and_its_metadata(built):
    (path,) = built.glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        (metadata,) = (name for name in names if name.endswith("METADATA"))
        text = archive.read(metadata).decode()
    source = ROOT / "src"
    expected = {
        str(file.relative_to(source))
        for file in (source / "primo").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert expected <= names
    for line in ("Project-URL: Paper", "License-Expression: Apache-2.0", "Requires-Python: >=3.11"):
        assert line in text
    assert not [name for name in names if name.startswith("tests")]


@pytest.mark.parametrize("extra", TRIES, ids=lambda extra: extra or "no extra")
def test_it_works_alone(extra, built, wheels, tmp_path):
    run(sys.executable, "-m", "venv", "--without-pip", "env", cwd=tmp_path)
    python = tmp_path / "env" / "bin" / "python"
    (wheel,) = built.glob("*.whl")
    wanted = f"{wheel}[{extra}]" if extra else str(wheel)
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    run(*pip, "--no-index", "--no-compile", "--find-links", str(wheels), wanted, cwd=tmp_path)
    primo = python.with_name("primo")
    assert run(str(primo), "--version", cwd=tmp_path).startswith("primo")
    found = json.loads(run(str(primo), "doctor", "--no-speed", "--json", cwd=tmp_path))
    from primo.cli.doctor import OPTIONAL

    brought = {name for name, (brings, _) in OPTIONAL.items() if brings == extra}
    assert brought <= {name for name in OPTIONAL if found["installed"][name]}
    assert found["exact"]
    run(str(python), "-c", BASE + TRIES[extra], cwd=tmp_path)
