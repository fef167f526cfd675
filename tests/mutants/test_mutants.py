"""The mutants fit the source and name tests that exist; `make mutants` sees whether those notice."""

import ast
from pathlib import Path

import pytest

from benchmarks.mutants.catalogue import MUTANTS
from benchmarks.mutants.model import Mutant, OutOfDateError, Patch

ROOT = Path(__file__).parents[2]

every_mutant = pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)


@pytest.fixture
def package(tmp_path):
    """A folder that holds only the files a test asks for."""

    def copy(*files):
        for file in files:
            path = tmp_path / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text((ROOT / "src/primo" / file).read_text())
        return tmp_path

    return copy


@every_mutant
def test_it_fits_the_source(mutant, package):
    files = {patch.file for patch in mutant.patches}
    folder = package(*files)
    before = {file: (folder / file).read_text() for file in files}
    mutant.apply(folder)
    for file in files:
        changed = (folder / file).read_text()
        assert changed != before[file]
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(before[file])), (
            "only words changed"
        )


@every_mutant
def test_its_tests_exist(mutant):
    assert mutant.killers
    for killer in mutant.killers:
        path, *names = killer.partition("[")[0].split("::")
        tree = ast.parse((ROOT / path).read_text())
        for name in names:
            (tree,) = [node for node in tree.body if getattr(node, "name", None) == name]


def test_names_tell_mutants_apart():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("times", [0, 2])
def test_a_mutant_that_does_not_fit_is_an_error(tmp_path, times):
    (tmp_path / "a.py").write_text("x = 1\n" * times)
    mutant = Mutant("x", (Patch("a.py", "x = 1", "x = 2"),), ("tests",))
    with pytest.raises(OutOfDateError, match=f"out of date.*{times} times"):
        mutant.apply(tmp_path)


def test_a_file_that_is_gone_is_an_error(tmp_path):
    mutant = Mutant("x", (Patch("gone.py", "x", "y"),), ("tests",))
    with pytest.raises(OutOfDateError, match="0 times"):
        mutant.apply(tmp_path)
