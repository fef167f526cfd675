"""No bit of what is published tells the order of the rows: files list cases before controls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import primo
from primo.wall import mechanism


def _people(n: int, d: int, l: int) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(n)
    X = rng.normal(size=(n, 3)) @ rng.normal(size=(3, d)) / 2 + rng.normal(size=(n, d)) / 20
    Y = np.clip(X[:, :1] / 3 + rng.normal(size=(n, l)) / 10, -1, 1)
    return X, Y, np.round(rng.normal(size=(n, l)) * 2.0**48).astype(np.int64)


@pytest.mark.parametrize("bounds", [None, primo.Bounds(norm=50.0)])
@pytest.mark.parametrize(
    ("protection", "association", "n", "d", "l"),
    [
        ("outcomes", "perturbed", 300, 5, 2),
        ("outcomes", "perturbed", 150, 200, 1),
        ("outcomes", "gauss", 300, 5, 2),
        ("outcomes", "gauss", 150, 200, 1),
        ("outcomes", "projection", 300, 5, 2),
        ("features", "projection", 300, 3, 4),
        ("features", "projection", 40, 3, 60),
    ],
)
def test_no_bit_depends_on_the_order_of_the_rows(
    monkeypatch: pytest.MonkeyPatch,
    bounds: primo.Bounds | None,
    protection: str,
    association: str,
    n: int,
    d: int,
    l: int,
) -> None:
    X, Y, noise = _people(n, d, l)
    public, private = ("feature", "outcome") if protection == "outcomes" else ("outcome", "feature")
    draw = mechanism.add_noise

    def released(order: Any) -> tuple[primo.Release, Any]:
        """Fit with the same noise for every person, whatever the order."""

        def add(values: Any, **options: Any) -> None:
            if options["label"] == "outcome rows":
                values += noise[order].reshape(-1)
            else:
                draw(values, **options)

        monkeypatch.setattr(mechanism, "add_noise", add)
        model = primo.PrimoRegressor(
            epsilon=40,
            delta=1e-6,
            protection=protection,
            association=association,
            random_state=1,
            **{f"{public}_bounds": bounds, f"{private}_bounds": primo.Bounds(norm=2.0)},
        ).fit(X[order], Y[order])
        return model.release_, model.coef_

    first, coefficients = released(np.arange(n))
    assert np.abs(coefficients).max() > 0
    for order in (np.argsort(Y[:, 0]), np.random.default_rng(1).permutation(n)):
        other, again = released(order)
        assert other.plan == first.plan
        for name in ("covariance", "association", "outcome_moments", "perturbed"):
            np.testing.assert_array_equal(getattr(other, name), getattr(first, name))
        if first.projected is not None and other.projected is not None:
            np.testing.assert_array_equal(other.projected.association, first.projected.association)
        np.testing.assert_array_equal(again, coefficients)
