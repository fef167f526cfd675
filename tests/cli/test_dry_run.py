"""A dry run opens no private column, matches no ids, and says nothing of what is in them."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from primo.forecast import forecast
from primo.rows.sources import table_columns
from primo.rows.sources.tabular import parquet, text

COST = "--epsilon 2 --delta 1e-6"


@pytest.fixture(autouse=True)
def quick_forecast(monkeypatch, request):
    """Simulate a few releases where it is not the prediction that is looked at."""
    if "predicted" not in request.function.__name__:
        monkeypatch.setattr(forecast, "SMALL_REPEATS", forecast.FEWEST_REPEATS)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for block, other in (("features", "outcomes"), ("outcomes", "features")):
        Path(f"{block}.toml").write_text(f"[{block}]\nlower = -4\nupper = 4\n")
        Path("both.toml").write_text(f"[{block}]\nnorm = 9\n[{other}]\nnorm = 9\n")
    return tmp_path


def table(kind, **columns):
    rng = np.random.default_rng(0)
    made = {name: rng.normal(size=50) for name in ("x0", "x1", "y0", "y1")}
    frame = pd.DataFrame(made | columns)
    if kind == "csv":
        frame.to_csv("t.csv", index=False)
    else:
        getattr(frame, f"to_{kind}")(f"t.{kind}")
    return f"--table t.{kind} --features x* --outcomes y*"


@pytest.fixture
def decoded(monkeypatch):
    """Names of the columns that are decoded."""
    seen = set()

    def spy(kind, method):
        real = getattr(kind, method)

        def noting(self, names, *rest):
            seen.update(names)
            return real(self, names, *rest)

        monkeypatch.setattr(kind, method, noting)

    for kind in (text.TextFile, parquet.GroupedFile):
        spy(kind, "numbers")
        spy(kind, "labels")
    return seen


@pytest.mark.parametrize("kind", ["csv", "parquet", "feather"])
@pytest.mark.parametrize("private", ["features", "outcomes"])
def test_one_table_of_which_half_is_private(here, primo, decoded, kind, private):
    data = table(kind, hiv=["1", "", "0"] + ["0"] * 47)
    line = f"fit {data} --id-column hiv --protect {private} --bounds {private}.toml {COST}"
    primo(f"{line} --dry-run")
    assert decoded == ({"y0", "y1"} if private == "features" else {"x0", "x1"})


@pytest.mark.parametrize("private", ["features", "outcomes"])
def test_private_cells_of_text_are_not_parsed(here, primo, private):
    column = "x1" if private == "features" else "y1"
    data = table("csv", **{column: ["poison"] * 50})
    out, err = primo(f"fit {data} --protect {private} --bounds {private}.toml {COST} --dry-run")
    assert "poison" not in out + err


def test_nothing_at_all_is_decoded_under_both(here, primo, decoded):
    data = table("csv", x0=["poison"] * 50)
    primo(f"fit {data} --bounds both.toml {COST} --dry-run")
    assert not decoded


def test_nothing_is_said_of_the_cells_of_an_id_column(here, primo):
    """They were counted: how many are empty, how many differ."""
    said = set()
    for cells in ([f"p{i}" for i in range(50)], ["1"] * 50, [""] * 7 + ["0"] * 43):
        data = table("csv", hiv=cells)
        said.add(primo(f"fit {data} --id-column hiv --bounds both.toml {COST} --dry-run"))
    assert len(said) == 1
    for cells in (["1"] * 50, [""] * 7 + [f"p{i}" for i in range(43)]):
        data = table("csv", hiv=cells)
        line = f"fit {data} --id-column hiv --bounds both.toml {COST} --out r"
        said.add(
            primo(line, code=2)[1].partition("Nothing was published")[0].partition("primo:")[2]
        )
    assert len(said) == 2, "and a fit says the same of both"


def test_a_join_is_not_tried_out(here, primo, primo_json, decoded):
    """An answer would tell, for nothing, whether a person, or a value, is in the other file."""
    table("csv", id=[f"p{i}" for i in range(50)])
    said = []
    for guess in ("p17", "nobody"):
        pd.DataFrame({"id": [guess], "z": [0.5]}).to_csv("guess.csv", index=False)
        line = (
            "fit --table t.csv --features x* --outcomes-table guess.csv --outcomes z --id-column id "
            f"--bounds both.toml {COST} --dry-run"
        )
        said.append(primo(line))
        assert not primo_json(line)["rows_exact"]
    assert said[0] == said[1]
    assert "at most 1 row;" in said[0][0]
    assert not decoded


def test_lists_of_people_are_not_looked_up(folder, primo, fit_line):
    said = []
    for who in ("person00017", "nobody"):
        Path("list.txt").write_text(f"{who} {who}\n")
        said.append(primo(f"{fit_line} --delta 1e-9 --keep list.txt --dry-run"))
        said.append(primo(f"{fit_line} --remove list.txt --dry-run"))
    assert said[:2] == said[2:]


def test_who_is_in_all_files_is_not_counted_before_it_is_paid_for(folder, primo, fit_line):
    primo("ledger init books.ledger --epsilon 1 --delta 1e-6")
    Path("list.txt").write_text("".join(f"person{i:05d} person{i:05d}\n" for i in range(137)))
    out, err = primo(f"{fit_line} --keep list.txt --ledger books.ledger --out r", code=1)
    assert "this release needs" in err
    assert "137" not in out + err


def test_what_names_people_is_checked_before_anything_is_opened(here, primo, monkeypatch):
    data = table("csv", hiv=["1"] * 50, IID=[f"p{i}" for i in range(50)])
    primo("ledger init books.ledger --epsilon 6 --delta 1e-6 --person-column IID")
    cost = f"--bounds both.toml {COST} --ledger books.ledger"
    primo(f"fit {data} --id-column IID {cost} --out first")
    monkeypatch.setattr(
        table_columns.TableColumns, "ids", lambda self: pytest.fail("ids were read")
    )
    for dry in ("--dry-run", "--out second"):
        _, err = primo(f"fit {data} --id-column hiv {cost} {dry}", code=2)
        assert "names people by 'IID' (its steward pinned that)" in err
        assert "--id-column IID" in err
        assert "set_index" not in err
        _, err = primo(f"fit {data} {cost} {dry}", code=2)
        assert "--identity-by-values" in err
        assert "Nothing was charged" in err


def test_several_rows_of_a_person_are_declared(here, primo, primo_json):
    data = table("csv", IID=[f"p{i // 2}" for i in range(50)])
    primo("ledger init books.ledger --epsilon 60 --delta 1e-6")
    line = f"fit {data} --id-column IID --bounds both.toml {COST} --ledger books.ledger"
    _, err = primo(f"{line} --out r", code=2)
    assert "--rows-per-person" in err
    _, err = primo(f"{line} --rows-per-person 2 --out r")
    assert "a person owns up to 2 rows" in err
    (spent,) = primo_json("ledger show books.ledger")["datasets"]
    from primo.released.bundle import read_bundle

    plan = read_bundle(Path("r")).release.plan
    assert spent["spent"]["mu"] == 2 * plan.mu


def test_nothing_is_assumed_of_units_that_will_be_found(here, primo, primo_json):
    np.save("x.npy", np.zeros((5000, 3)))
    line = f"fit --feature-array x.npy --outcome-array x.npy {COST} --norms auto --dry-run"
    assert "own units" not in primo(line)[0]
    assert primo_json(line)["assumed_outcome_sd"] is None
    assert "a standard deviation of 7 (median" in primo(f"{line} --outcome-sd 7")[0]


def test_the_association_that_is_predicted_to_do_better_is_named(here, primo, primo_json):
    np.save("x.npy", np.random.default_rng(0).normal(size=(2000, 3)))
    line = "fit --feature-array x.npy --outcome-array x.npy --epsilon 0.5 --delta 1e-6 --dry-run"
    line += " --protect outcomes --bounds outcomes.toml --association"
    said = primo_json(f"{line} perturbed")
    better = said["better_association"]
    assert better["association"] == "gauss"
    assert better["predicted_r2"] > said["predicted_r2"] + 0.005
    assert "With --association gauss: 0." in primo(f"{line} perturbed")[0]
    assert primo_json(f"{line} gauss")["better_association"] is None


def test_a_dry_run_of_a_table_says_that_text_stops_the_run(here, primo):
    data = table("csv", x1=["poison"] * 50)
    said = primo(f"fit {data} --bounds both.toml {COST} --dry-run")[1]
    assert "text stops the run" in said
    assert "--id-column" in said
