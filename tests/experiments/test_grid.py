"""Grids: every figure of the paper at its size, and no key that means nothing."""

import pytest

from experiments.figures.grid import GRIDS, Study, read_studies
from experiments.figures.methods import METHODS
from primo.errors import InputError

STUDIES = {study.name: study for study in read_studies()}
PANELS = ["2a", "2b", "2c", "2d", "2e", "2f", "3a", "3b", "3c", "3d", "4a", "4b", "5a", "5b", "6"]


def test_every_panel_of_the_paper_is_there():
    names = [figure.name for study in STUDIES.values() for figure in study.figures]
    assert sorted(names) == PANELS


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_methods_exist_and_figures_show_what_is_run(study):
    units = list(study.units())
    ran = {(unit.cell.outcomes, unit.cell.l, name) for unit in units for name in unit.methods}
    assert {name for _, _, name in ran} <= set(METHODS)
    for figure in study.figures:
        for name in figure.methods:
            shown = [l for l in figure.l if (figure.outcomes, l, name) in ran]
            assert shown, (figure.name, name)
        for l in figure.l:
            assert (figure.outcomes, l, "primo") in ran


def test_the_paper_s_sizes():
    cells = {name: {unit.cell for unit in study.units()} for name, study in STUDIES.items()}
    counts = {1, 11, 101, 201, 401, 601, 801, 1001}
    for name, n in (("1kg", 5008), ("dbgap", 6042)):
        assert {cell.n for cell in cells[name]} == {n}
        assert counts | {100_000} <= {cell.l for cell in cells[name]}
    assert {1, 10, 25, 100, 500, 1000, 5000} <= {
        cell.l for cell in cells["gan"] if cell.n == 500_000
    }
    assert {cell.n for cell in cells["gan"]} == {500_000, 1_000_000}
    assert {(cell.d, cell.l) for cell in cells["mnist"]} == {(784, 1), (784, 11), (784, 101)}
    for some in cells.values():
        assert {(cell.epsilon, cell.delta * cell.n**2) for cell in some} == {(5.0, 1.0)}


def test_units_of_two_runs_are_one():
    units = list(STUDIES["1kg"].units())
    keys = [(unit.cell, unit.repeat) for unit in units]
    assert len(keys) == len(set(keys))
    first = next(u for u in units if u.cell.l == 11 and u.repeat == 0)
    last = next(u for u in units if u.cell.l == 11 and u.repeat == 9)
    assert "dpsgd-joint" in first.methods
    assert "dpsgd-joint" not in last.methods


@pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)
def test_quick_is_a_part_of_the_whole(study):
    quick = study.quick_version()
    work = list(quick.units())
    assert 0 < len(work) <= 24
    assert {unit.cell.l for unit in work} <= {unit.cell.l for unit in study.units()}
    assert all("primo" in unit.methods for unit in work)
    assert all(figure.l for figure in quick.figures)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('title = "a"\nepsilom = 5.0\n', "epsilom"),
        ('title = "a"\n[[run]]\nl = [1]\n', "run"),
        ('title = "a"\n[[figure]]\nname = "1"\n', "figure"),
        ('title = "a"\n[quick]\nrepeat = 1\n', "repeat"),
    ],
)
def test_a_wrong_grid_is_an_error(tmp_path, text, message):
    path = tmp_path / "wrong.toml"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        Study.read(path)


def test_unknown_study():
    assert GRIDS.is_dir()
    with pytest.raises(InputError, match="there are: 1kg"):
        read_studies(("2kg",))
