"""Public functions and the command line with whatever users may hand over."""

import warnings

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

import primo
from primo.cli import main
from primo.privacy.bounds import Bounds

PROFILE = settings(settings.get_profile("fuzz"))
SENTINEL = "SENTINEL-PERSON-77"
#: What scikit-learn's own checks of shapes and names raise, without values.
SKLEARN = (ValueError, TypeError)

ODD = st.sampled_from(
    [
        None,
        True,
        0,
        -1,
        1.5,
        10**400,
        float("nan"),
        float("inf"),
        -1e308,
        5e-324,
        "both",
        "text",
        b"bytes",
        [],
        {},
        (1, 2, 3),
        object(),
        complex(1, 1),
        np.float64("nan"),
        Bounds(lower=-1.0, upper=1.0),
        np.random.default_rng(0),
        lambda: None,
    ]
)

TABLES = st.sampled_from(
    [
        np.zeros((30, 2)),
        np.full((30, 2), np.nan),
        np.full((30, 2), np.inf),
        np.full((30, 2), 1e308),
        np.zeros((30, 0)),
        np.zeros((0, 2)),
        np.zeros(30),
        np.zeros((30, 2, 2)),
        np.zeros((29, 2)),
        np.zeros((1, 2)),
        np.array([[SENTINEL, "1"]] * 30),
        np.array([[SENTINEL, 1.0]] * 30, dtype=object),
        np.array([["1", "2"]] * 30),
        np.array([[None, 1.0]] * 30, dtype=object),
        np.array([[[1], 1.0]] * 30, dtype=object),
        np.array([[10**400, 1.0]] * 30, dtype=object),
        np.zeros((30, 2), dtype=complex),
        np.zeros((30, 2), dtype="M8[s]"),
        np.zeros((30, 2), dtype=[("a", float)]),
        np.zeros((30, 2), dtype=bool),
        np.zeros((30, 2), dtype=np.float16),
        np.zeros((30, 2), dtype=np.longdouble),
        np.ma.masked_all((30, 2)),
        pd.DataFrame({"a": [SENTINEL] * 30, "b": 1.0}),
        pd.DataFrame({"a": [pd.NA, 1] * 15, "b": 1.0}),
        pd.DataFrame(np.zeros((30, 2)), columns=["a", "a"]),
        pd.DataFrame({"a": pd.Categorical([SENTINEL] * 30), "b": 1.0}),
        pd.DataFrame({1: [1.0] * 30, "b": 1.0}),
        [[1.0, 2.0]] * 30,
        [[1.0], [1.0, 2.0]] * 15,
        [[SENTINEL, 1.0]] * 30,
        {"a": [1.0] * 30},
        {SENTINEL},
        SENTINEL,
        7654.321,
        None,
        iter([1.0]),
    ]
)

GOOD = {
    "epsilon": 2.0,
    "delta": 1e-6,
    "feature_bounds": Bounds(lower=-1.0, upper=1.0),
    "outcome_bounds": Bounds(lower=-1.0, upper=1.0),
}
PARAMETERS = sorted(primo.PrimoRegressor(**GOOD).get_params())


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(5)
    return primo.PrimoRegressor(**GOOD).fit(
        rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (30, 2))
    )


def seen(values):
    """What a caller sees of a result is finite and has no names of people in it."""
    assert SENTINEL not in repr(values)


@PROFILE
@given(X=TABLES, Y=TABLES)
def test_fit_on_any_tables(fuzz, X, Y):
    with fuzz.guarded(forbidden=[SENTINEL], also=SKLEARN):
        model = primo.PrimoRegressor(**GOOD, missing="centre").fit(X, Y)
        assert np.isfinite(model.coef_).all()
        seen(model)
        seen(model.release_)


@PROFILE
@given(name=st.sampled_from(PARAMETERS), value=ODD)
def test_fit_with_any_parameter(fuzz, name, value):
    rng = np.random.default_rng(5)
    X, Y = rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (30, 2))
    with fuzz.guarded():
        model = primo.PrimoRegressor(**{**GOOD, name: value}).fit(X, Y)
        assert np.isfinite(model.coef_).all()
        assert model.release_.plan.epsilon <= model.epsilon


@PROFILE
@given(X=TABLES, Y=TABLES)
def test_predict_and_score(fuzz, fitted, X, Y):
    with fuzz.guarded(forbidden=[SENTINEL], also=SKLEARN):
        assert np.isfinite(fitted.predict(X)).all() or not np.isfinite(np.asarray(X, float)).all()
    with fuzz.guarded(forbidden=[SENTINEL], also=SKLEARN):
        public = primo.PrimoRegressor(**GOOD, score_public_rows=True)
        public.__dict__.update({k: v for k, v in vars(fitted).items() if k.endswith("_")})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            public.score(X, Y)


def test_predict_before_fit():
    with pytest.raises(NotFittedError):
        primo.PrimoRegressor(**GOOD).predict(np.zeros((3, 2)))


@PROFILE
@given(
    X=TABLES,
    Y=TABLES,
    name=st.sampled_from(["epsilon", "delta", "outcome_bounds", "protection", "backend", "n_jobs"]),
    value=ODD,
)
def test_extend(fuzz, fitted, X, Y, name, value):
    given = {"epsilon": 1.0, "delta": 1e-7, "outcome_bounds": Bounds(lower=-1.0, upper=1.0)}
    given["protection"] = "both"
    with fuzz.guarded(forbidden=[SENTINEL]):
        primo.extend(fitted.release_, X, Y, **given)
    rng = np.random.default_rng(6)
    with fuzz.guarded(forbidden=[SENTINEL]):
        x, y = rng.uniform(-1, 1, (30, 2)), rng.uniform(-1, 1, (30, 1))
        primo.extend(fitted.release_, x, y, **{**given, name: value})


@PROFILE
@given(
    name=st.sampled_from(
        ["n", "d", "l", "epsilon", "delta", "protection", "signal", "estimators", "outcome_sd"]
    ),
    value=ODD,
)
def test_plan(fuzz, name, value):
    with fuzz.guarded():
        str(primo.compare_plans(**{"n": 100, "d": 2, "l": 3, "epsilon": 1.0, name: value}))


@PROFILE
@given(action=st.sampled_from(["coefficients", "save", "load", "bundle", "ledger"]), value=ODD)
def test_other_functions(fuzz, action, value, fitted):
    with fuzz.folder() as folder, fuzz.guarded():
        if action == "coefficients":
            primo.coefficients(value)
        elif action == "save":
            primo.save_release(value, folder / "x.npz")
        elif action == "load" and isinstance(value, str):
            primo.load_release(value)
        elif action == "bundle" and isinstance(value, str):
            primo.read_bundle(value)
        elif action == "ledger" and isinstance(value, str):
            primo.open_ledger(folder / value)


def every_command():
    """Return (words, options) of every command and subcommand."""
    found = []
    for name in main.list_commands(None):
        command = main.get_command(None, name)
        if name in ("demo", "audit"):
            continue  # they work for a long while by design
        for sub, inner in getattr(command, "commands", {"": command}).items():
            options = [opt for p in inner.params for opt in p.opts if opt.startswith("--")]
            found.append(([name, sub] if sub else [name], options))
    return found


VALUES = st.sampled_from(
    [
        *("", "0", "-1", "1", "2.5", "1e400", "nan", "inf", "x", "*", "[", "a.csv", "b.toml", "."),
        *("/dev/null", "postgresql://nowhere/x", "ftp://x", "é\u2028", "both", "auto", "--", "%s"),
        *("{0}", "x" * 5000),
    ]
)


@PROFILE
@given(data=st.data())
def test_the_command_line(fuzz, data):
    words, options = data.draw(st.sampled_from(every_command()))
    line = list(words)
    for option in data.draw(st.lists(st.sampled_from(options), max_size=6)) if options else ():
        line.append(option)
        line += data.draw(st.lists(VALUES, max_size=1))
    line += data.draw(st.lists(VALUES, max_size=2))
    files = {"a.csv": f"x,y\n7654.321,{SENTINEL}\n".encode(), "b.toml": b"[outcomes]\nlower=0\n"}
    with fuzz.folder(files) as folder, fuzz.guarded():
        runner = CliRunner()
        with runner.isolated_filesystem(folder):
            for name, content in files.items():
                (folder / name).write_bytes(content)
            result = runner.invoke(main, [f"{folder}/{w}" if w in files else w for w in line])
    assert result.exit_code in (0, 1, 2)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    for word in ("bug in primo", "Traceback", SENTINEL, "7654.321"):
        assert word not in result.output, (line, result.output)
