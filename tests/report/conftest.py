from __future__ import annotations

import json
import re
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import primo
from primo.released.release import Release
from primo.report.page import report_html
from primo.variants import Variants

HOSTILE = (
    "<script>window.hurt = 1</script>",
    "\"'><img src=x onerror='window.hurt=1'>",
    "</script><script>window.hurt=1//",
    "<!--<script> & {{style}} {{data}}",
)


def fit(n: int = 4000, d: int = 6, l: int = 8, *, columns=None, outcomes=None, **settings) -> Any:
    rng = np.random.default_rng(d * 1000 + l)
    X = rng.standard_normal((n, d))
    W = 0.4 * rng.standard_normal((d, l)) * (rng.random(l) > 0.4)
    Y = X @ W + rng.standard_normal((n, l))
    settings = {
        "epsilon": 3,
        "delta": 1e-6,
        "feature_bounds": 1.2 * np.sqrt(d) + 1,
        "outcome_bounds": 1.5 * np.sqrt(l) + 1,
        "random_state": 7,
        "rounds": 1,  # what the report says of several is tested where there are several
        **settings,
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        model = primo.PrimoRegressor(**settings).fit(
            pd.DataFrame(X, columns=columns or [f"x{i}" for i in range(d)]),
            pd.DataFrame(Y, columns=outcomes or [f"y{j}" for j in range(l)]),
        )
    return model, X


def panel(d: int) -> Variants:
    rng = np.random.default_rng(3)
    chromosome = np.sort(rng.integers(1, 6, d - 2))
    position = np.sort(rng.integers(1_000_000, 90_000_000, d - 2))
    return Variants(
        names=tuple(f"x{i}" for i in range(d - 2)),  # the last two features are covariates
        chromosome=tuple(f"chr{c}" for c in chromosome),
        position=position,
        counted=("A",) * (d - 2),
        other=("<G>",) * (d - 2),
    )


def extension() -> Release:
    model, X = fit()
    rng = np.random.default_rng(1)
    later = X[:, :2] + rng.standard_normal((len(X), 2))
    return primo.extend(
        model.release_,
        pd.DataFrame(X, columns=model.release_.feature_names),
        pd.DataFrame(later, columns=["late0", "late1"]),
        protection="both",
        epsilon=1,
        delta=1e-6,
        outcome_bounds=primo.Bounds(norm=5.0),
        random_state=3,
    )


MAKERS: dict[str, Callable[[], Release]] = {
    "plain": lambda: fit()[0].release_,
    "fresh": lambda: fit(l=3, random_state=None)[0].release_,
    "one": lambda: fit(l=1)[0].release_,
    "genomic": lambda: fit(d=30, l=20)[0].release_,
    "many": lambda: fit(d=20, l=2500)[0].release_,
    "features": lambda: fit(protection="features")[0].release_,
    "outcomes": lambda: fit(protection="outcomes")[0].release_,
    "projected": lambda: fit(protection="outcomes", association="projection")[0].release_,
    "paper": lambda: fit(calibration="paper")[0].release_,
    "sampled": lambda: fit(covariance_rows=1000)[0].release_,
    "noisy": lambda: fit(n=400, d=12, l=4, epsilon=0.5)[0].release_,
    "blocks": lambda: fit(l=2, epsilon=20, covariance="blocks", blocks=[0, 2, 6])[0].release_,
    "diagonal": lambda: fit(l=2, epsilon=20, covariance="none")[0].release_,
    "perturbed": lambda: (
        fit(
            l=2,
            epsilon=20,
            protection="outcomes",
            association="perturbed",
            covariance="blocks",
            blocks=[0, 3, 6],
        )[0].release_
    ),
    "rounds": lambda: fit(rounds=3)[0].release_,
    "extension": extension,
    "hostile": lambda: (
        fit(d=len(HOSTILE), l=2, columns=list(HOSTILE), outcomes=list(HOSTILE[2:]))[0].release_
    ),
}


@cache
def made(kind: str) -> Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", primo.ReproducibleNoiseWarning)
        return MAKERS[kind]()


@cache
def written(kind: str) -> str:
    hostile = {"title": HOSTILE[2], "release_id": HOSTILE[1], "notes": (HOSTILE[0],)}
    return report_html(
        made(kind),
        variants=panel(30) if kind == "genomic" else None,
        **(hostile if kind == "hostile" else {}),
    )


@pytest.fixture(scope="session")
def releases() -> Callable[[str], Release]:
    """Make a release of a kind, once."""
    return made


@pytest.fixture(scope="session")
def pages() -> Callable[[str], str]:
    """Make the page of a release of a kind, once."""
    return written


@pytest.fixture(scope="session")
def kinds() -> tuple[str, ...]:
    return tuple(MAKERS)


@pytest.fixture(scope="session")
def variants() -> Callable[[int], Variants]:
    return panel


@pytest.fixture(scope="session")
def hostile() -> tuple[str, ...]:
    return HOSTILE


@pytest.fixture(scope="session")
def numbers_in() -> Callable[[str], dict[str, Any]]:
    """Read the numbers that a page carries for its scripts."""

    def read(page: str) -> dict[str, Any]:
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.S)
        assert found
        return json.loads(found[1])

    return read
