"""Whole fits replayed on neighbouring rows: the same calls for noise, mu apart at the worst, no more."""

import dataclasses
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import primo
from factories import array_source, planned
from primo.planning.make import extension_plan
from primo.privacy.bounds import Bounds
from primo.privacy.protection import Protection
from primo.wall.noise import RandomBits
from primo.workflow.pipeline import make_release

N, D, L = 40, 30, 3
SAMPLED = 12
SEED = 7
BUDGET = {"epsilon": 2.0, "delta": 1e-6}
X_NORM, Y_NORM = 4.0, 3.0
MANY = 513  # outcomes, from which on an extension releases the diagonal of YᵀY only


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """One way to release."""

    protection: str
    intercept: bool
    moments: str
    kind: str = "rows"  # where the covariance comes from
    split: float | None = None

    def __str__(self):
        words = [self.protection, self.moments, self.kind]
        words += ["intercept"] * self.intercept + [f"split{self.split}"] * bool(self.split)
        return "-".join(words)

    def plan(self):
        options = {
            "n": N,
            "d": 2 * N if self.kind == "row space" else D,
            "l": L,
            "protection": self.protection,
            "fit_intercept": self.intercept,
            "outcome_moments": self.moments,
            "split": self.split,
            "feature_bounds": Bounds(norm=X_NORM),
            "outcome_bounds": Bounds(norm=Y_NORM),
            **BUDGET,
        }
        if self.kind == "sampled":
            options["covariance_rows"] = SAMPLED
        if self.kind == "reference":
            options["public_covariance"] = True
        plan = planned(**options)
        if self.kind != "extension":
            return plan
        l = L if self.moments == "full" else MANY
        return extension_plan(plan, l=l, outcome_bounds=Bounds(norm=Y_NORM), **BUDGET)


def settings():
    for protection, intercept, moments in product(
        ("both", "features", "outcomes"), (True, False), ("full", "diagonal")
    ):
        common = {"protection": protection, "intercept": intercept, "moments": moments}
        yield Setting(**common)
        yield Setting(**common, kind="extension")
        if protection == "outcomes":
            yield Setting(**common, kind="row space")
        else:
            yield Setting(**common, split=0.4)
            yield Setting(**common, split=2.0)
            yield Setting(**common, kind="reference")
        if protection == "both":
            yield Setting(**common, kind="sampled")


every_setting = pytest.mark.parametrize("setting", list(settings()), ids=str)


def rows(plan, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(N, plan.d)), rng.normal(size=(N, plan.l))


def fit(plan, x, y):
    """Return a fit to be recorded: plan, rows, release."""
    elsewhere = plan.covariance_origin in ("reference", "earlier")
    source = array_source(x, y)
    return lambda: make_release(
        source,
        plan,
        bits=RandomBits.seeded(SEED),
        covariance=np.eye(plan.width) if elsewhere else None,
        threads=1,
    )


def replaced(table, at, row):
    table = table.copy()
    table[at] = row
    return table


def moved(replay, plan, one, other, at=0):
    """Squared distance of the fits with row (x, y) and with (x′, y′) in place `at`."""
    x, y = rows(plan)
    recordings = [
        replay.record(fit(plan, replaced(x, at, a), replaced(y, at, b))) for a, b in (one, other)
    ]
    return replay.squared_distance(*recordings)


def drawn_row(plan):
    """A row of the secret sample, known here because the seed is."""
    sample = RandomBits.seeded(SEED).subset(N, SAMPLED, label="sample")
    return int(np.flatnonzero(sample)[0]), int(np.flatnonzero(~sample)[0])


def worst_rows(plan, a, b, rng):
    """Two rows at the bound with cos(x, x′) = a, the constant included, and cos(y, y′) = b."""
    constant = plan.constant**2
    inner = (a * (X_NORM**2 + constant) - constant) / X_NORM**2
    u, v = np.linalg.qr(rng.normal(size=(plan.d, 2)))[0].T
    x = X_NORM * u
    xx = X_NORM * (inner * u + np.sqrt(max(0.0, 1 - inner**2)) * v)
    y, yy = np.zeros((2, plan.l))
    y[0] = Y_NORM
    yy[:2] = Y_NORM * b, Y_NORM * np.sqrt(1 - b**2)
    return (x, y), (xx, yy)


def worst_angles(plan):
    """Cosines (a, b) that reach the bound, or come as near to it as the constant lets them."""
    p, q = float(plan.grid.p), float(plan.grid.q)
    steepest = min(1.0, q / (2 * p)) if plan.covariance_noisy else 1.0
    if plan.protection is Protection.OUTCOMES:
        return [(1.0, -1.0), (1.0, 0.0)]
    if plan.protection is Protection.BOTH:
        return [(steepest, -1.0), (0.0, 0.0)]
    constant = plan.constant**2
    return [(max(-steepest, (constant - X_NORM**2) / (constant + X_NORM**2)), 1.0)]


@every_setting
def test_worst_neighbours_are_mu_apart_and_no_more(replay, setting):
    plan = setting.plan()
    at = drawn_row(plan)[0] if plan.draws_sample else 0
    p = float(plan.grid.p) * plan.covariance_noisy
    q = float(plan.grid.q)
    s = float(plan.grid.s) * plan.protection.outcomes_private
    reached = []
    for a, b in worst_angles(plan):
        found = moved(replay, plan, *worst_rows(plan, a, b, np.random.default_rng(1)), at=at)
        assert found <= Fraction(plan.mu) ** 2
        expected = 2 * p * (1 - a**2) + 2 * q * (1 - a * b) + 2 * s * (1 - b**2)
        assert float(found) == pytest.approx(expected, rel=1e-4)
        reached.append(float(found) / plan.mu**2)
    # Two-sided: noise larger than mu asks for would be waste, and a lost factor √2 is far off.
    # Under `features` the constant, the same in both rows, keeps x′ from being −x: of the bound b² + c²
    # only b² can turn round.
    blocked = setting.protection == "features" and setting.intercept
    limit = plan.features.norm**2 / plan.feature_norm**2 if blocked else 1.0
    assert max(reached) > 0.9999 * limit


@every_setting
def test_random_neighbours_are_never_further_apart(replay, setting):
    plan = setting.plan()
    rng = np.random.default_rng(2)
    places = drawn_row(plan) if plan.draws_sample else (0, N - 1)
    for at in places:
        for size in (0.3, 1.0, 1e9):  # inside the bounds, about there, clipped
            x, xx = rng.normal(size=(2, plan.d)) * size
            y, yy = rng.normal(size=(2, plan.l)) * size
            if plan.protection is Protection.FEATURES:
                yy = y
            if plan.protection is Protection.OUTCOMES:
                xx = x
            assert moved(replay, plan, (x, y), (xx, yy), at=at) <= Fraction(plan.mu) ** 2


@every_setting
def test_the_calls_do_not_depend_on_the_rows(replay, setting):
    plan = setting.plan()
    x, y = rows(plan)
    usual = replay.schedule(replay.record(fit(plan, x, y)))
    for other in (0.0, 1e300, -1e-300):
        # Public features have to vary, or there is nothing to regress on.
        odd = x if plan.protection is Protection.OUTCOMES else np.full_like(x, other)
        assert replay.schedule(replay.record(fit(plan, odd, np.full_like(y, other)))) == usual
    expected = ["covariance diagonal", "covariance"] * plan.covariance_noisy + ["association"]
    if plan.protection.outcomes_private:
        expected += ["outcome diagonal"] + ["outcome"] * plan.full_outcome_moments
    assert [label for label, _, _ in usual] == expected


@pytest.mark.parametrize("block", ["covariance", "association", "outcome"])
def test_half_the_variance_on_one_block_would_be_noticed(replay, block):
    plan = Setting(protection="both", intercept=False, moments="full", split=2.0).plan()
    name = f"{block}_variance_bits"
    thin = dataclasses.replace(plan.grid, **{name: getattr(plan.grid, name) - 1})
    weak = dataclasses.replace(plan, grid=thin)
    found = moved(replay, weak, *worst_rows(plan, 0.0, 0.0, np.random.default_rng(1)))
    assert found > 1.1 * Fraction(plan.mu) ** 2


def test_an_estimator_asks_for_no_other_noise(replay):
    """From the scikit-learn shell down: one joint release, whatever the rows."""
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(N, 4)), rng.normal(size=(N, L))

    def fitted(x, y):
        model = primo.PrimoRegressor(
            feature_bounds=Bounds(norm=X_NORM),
            outcome_bounds=Bounds(norm=Y_NORM),
            random_state=SEED,
            **BUDGET,
        )
        return model.fit(x, y)

    mu = fitted(x, y).release_.plan.mu
    one = replay.record(lambda: fitted(x, y))
    other = replay.record(lambda: fitted(replaced(x, 5, -x[5]), replaced(y, 5, 100.0)))
    assert 0 < replay.squared_distance(one, other) <= Fraction(mu) ** 2
    with pytest.raises(AssertionError, match="schedule"):
        replay.squared_distance(one, one[:-1])
