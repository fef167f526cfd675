"""Rounds from settings to a release: one charge, the same bits everywhere, resumed where it stopped."""

import dataclasses
import itertools
import math
import re

import numpy as np
import pytest

import primo
from factories import array_source, planned
from primo.planning.residuals import residual_grid
from primo.planning.rounds import round_plan
from primo.privacy.bounds import Bounds
from primo.released.estimate.rounds import pool
from primo.rows.moments import fold
from primo.rows.sources.arrays.npy import open_npy
from primo.rows.sources.paired import PairedSource
from primo.rows.sources.tabular.tables import table_source
from primo.wall import mechanism
from primo.wall.noise import RandomBits
from primo.workflow import rounds as module
from primo.workflow.pipeline import make_release
from primo.workflow.resume import Staging, partial_of

N, D, L = 400, 3, 2


def rows(n=N):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, size=(n, D))
    return x, x @ rng.uniform(-0.5, 0.5, size=(D, L)) + 0.05 * rng.normal(size=(n, L))


def plan_of(rounds=3, **changes):
    given = {
        "n": N,
        "d": D,
        "l": L,
        "epsilon": 8.0,
        "delta": 1e-5,
        "feature_bounds": Bounds(lower=-1, upper=1),
        "outcome_bounds": Bounds(lower=-2, upper=2),
        "rounds": rounds,
    }
    return planned(**given | changes)


def released(source=None, plan=None, **options):
    given = {"bits": RandomBits.seeded(2)} | options
    return make_release(source or array_source(*rows()), plan or plan_of(), **given)


def same(one, other):
    for a, b in zip(one.rounds, other.rounds, strict=True):
        for field in dataclasses.fields(a):
            np.testing.assert_array_equal(getattr(a, field.name), getattr(b, field.name))


# What is released.


def test_a_release_keeps_every_round_and_pools_them():
    release = released()
    first, *later = release.rounds
    assert len(release.rounds) == 3
    assert not first.coefficients.any()
    assert first.clip == release.plan.outcomes.norm
    assert all(0 < r.clip <= first.clip for r in later)
    assert later[-1].coefficients.any()
    assert later[-1].clip < first.clip / 2
    assert later[-1].association_sigma < first.association_sigma / 2
    pooled = pool(release.plan, release.rounds)
    np.testing.assert_array_equal(release.association, pooled.association)
    assert release.association_sigma == pooled.scales.association
    assert release.covariance_sigma < min(r.covariance_sigma for r in release.rounds)


@pytest.mark.parametrize("protection", ["both", "features"])
def test_a_round_releases_the_moments_of_its_residuals_plus_its_noise(protection):
    """Each round again, from its coefficients and clip, by hand: the noise is all that differs."""
    plan, source = plan_of(protection=protection), array_source(*rows())
    release = released(source, plan)
    for number, found in enumerate(release.rounds):
        stepped = bool(found.coefficients.any())
        own = round_plan(plan, number, found.clip, residuals=stepped)
        grid = residual_grid(own, found.coefficients) if number else None
        if grid is not None:  # what was released is on the grid already
            np.testing.assert_allclose(grid.coefficients(own), found.coefficients, rtol=1e-9)
        exact = fold(source, own, residuals=grid)
        scale = own.feature_step * own.outcome_step
        noise = found.association - exact.association * scale
        # Four by two numbers: 8σ is beyond any false alarm, and a missing noise is not within it.
        assert 0.05 * found.association_sigma < np.abs(noise).max() < 8 * found.association_sigma
        assert found.association_sigma == own.association_sigma
        squares = found.outcome_moments - exact.outcome * own.outcome_step**2
        if stepped or protection == "both":
            assert 0.05 * found.outcome_sigma < np.abs(squares).max() < 8 * found.outcome_sigma
            assert np.abs(noise[-1]).min() > 0
        else:  # of public outcomes: exact, and so are their sums
            assert found.outcome_sigma == 0
            assert not squares.any()
            assert not noise[-1].any()
    assert stepped


def test_public_outcomes_keep_their_exact_moments_after_rounds():
    """Rounds of residuals have noise on everything; what is known of the outcomes is not replaced."""
    release = released(plan=plan_of(protection="features"))
    first, last = release.rounds[0], release.rounds[-1]
    assert last.coefficients.any()
    assert last.outcome_sigma > 0
    np.testing.assert_array_equal(release.outcome_moments, first.outcome_moments)
    np.testing.assert_array_equal(release.association[-1], first.association[-1])
    assert release.outcome_sigma == release.mean_sigma == 0
    x, y = rows()
    mass = release.plan.n * release.plan.constant
    scaled = y.mean(axis=0) / 2  # outcomes lie between -2 and 2
    np.testing.assert_allclose(release.association[-1] / mass, scaled, atol=1e-5)
    fitted = release.coefficients()
    np.testing.assert_allclose(fitted.predict(x).mean(axis=0), y.mean(axis=0), atol=0.1)


def test_residuals_of_public_outcomes_are_never_released_without_noise():
    """The wall refuses a round of residuals under a plan that counts outcomes as public."""
    plan, source = plan_of(protection="features"), array_source(*rows())
    own = round_plan(plan, 1, 1.0, residuals=False)
    grid = residual_grid(own, np.full((D + 1, L), 0.1))
    moments = fold(source, own, residuals=grid)
    with pytest.raises(primo.PrivacyError, match="no noise for residuals"):
        mechanism.release_round(moments, own, number=1, residuals=grid, bits=RandomBits.seeded(1))


@pytest.mark.parametrize("value", [0.0, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_public_outcomes_that_are_all_alike(value, intercept):
    """Nothing varies, exactly: rounds go on as one release does."""
    x, _ = rows()
    plan = plan_of(protection="features", fit_intercept=intercept)
    release = released(array_source(x, np.full((N, L), value)), plan)
    assert len(release.rounds) == 3
    fitted = release.coefficients()
    assert np.isfinite(fitted.slopes).all()
    if intercept:
        np.testing.assert_allclose(fitted.predict(x).mean(axis=0), value, atol=1e-3)


def test_more_rounds_explain_more():
    """R² on the fitted rows at a budget where one round is drowned; seeded, so never by luck."""
    x, y = rows(4000)
    scores = {}
    for count in (1, 4):
        model = primo.PrimoRegressor(
            epsilon=1.0,
            delta=1e-6,
            feature_bounds=(-1, 1),
            outcome_bounds=(-4, 4),
            rounds=count,
            random_state=3,
            score_public_rows=True,
        )
        with pytest.warns(primo.errors.ReproducibleNoiseWarning):
            scores[count] = model.fit(x, y).score(x, y)
    assert scores[4] > scores[1] + 0.05
    assert scores[4] > 0.8


def test_the_statement_says_rounds():
    release = released()
    text = " ".join(release.statement().split())
    assert "one release in 3 rounds" in text
    assert "the rows were read 3 times under the one guarantee above: once in every round." in text
    assert re.search(r"before the first row was read: 33\.\d% of mu squared(?! by)", text)
    five = " ".join(released(plan=plan_of(rounds=5)).statement().split())
    assert re.search(
        r"33\.\d% of mu squared by the first round, 16\.\d% by each of the others", five
    )
    assert "one release in" not in released(plan=plan_of(rounds=1)).statement()


@pytest.mark.parametrize(
    ("of_residuals", "said"),
    [
        (
            0,
            "What was explained was too little for residuals, so all rounds looked at the outcomes",
        ),
        (1, "1 of the 3 rounds looked at residuals of coefficients that the rounds before had"),
        (
            2,
            "Each round after the first looked at residuals of coefficients that the rounds before",
        ),
    ],
)
def test_the_statement_says_what_the_rounds_looked_at(tmp_path, of_residuals, said):
    release = released()
    started = release.rounds[-1].coefficients
    assert started.any()
    rounds = [
        dataclasses.replace(each, coefficients=started * (0 < number <= of_residuals))
        for number, each in enumerate(release.rounds)
    ]
    release = dataclasses.replace(release, rounds=tuple(rounds))
    text = " ".join(release.statement().split())
    assert said in text
    assert ("residuals of" in text) == bool(of_residuals)
    assert ("and together they are one release" in text) == (not of_residuals)
    assert ("outcomes themselves" in text) == (of_residuals < 2)
    assert "shortened to a norm that follows from released numbers (" in text
    primo.save_release(release, tmp_path / "release.npz")
    assert primo.load_release(tmp_path / "release.npz").statement() == release.statement()


def test_outcomes_of_noise_make_rounds_of_the_outcomes_themselves(tmp_path):
    x, y = rows()
    noise = np.random.default_rng(1).normal(size=y.shape)
    plan = plan_of(epsilon=1.0, outcome_bounds=Bounds(lower=-3, upper=3))
    release = released(array_source(x, noise), plan)
    assert not any(each.coefficients.any() for each in release.rounds)
    text = " ".join(release.statement().split())
    assert "all rounds looked at the outcomes themselves, and together they are one release" in text
    assert ("After the first round the outcomes were shortened" in text) == any(
        each.clip < plan.outcomes.norm for each in release.rounds
    )
    bundle = primo.read_bundle(primo.write_bundle(release, tmp_path / "out"))
    assert bundle.release.statement() == release.statement()


def test_one_round_is_what_it_always_was():
    """No bit differs from a release of a plan that knows of no rounds."""
    one = released(plan=plan_of(rounds=1))
    assert one.rounds == ()
    assert one.scales is None
    assert one.association_sigma == one.plan.association_sigma


# The same bits everywhere.


@pytest.mark.parametrize("protection", ["both", "features"])
def test_threads_files_and_stores_give_the_same_bits(tmp_path, protection):
    x, y = rows()
    plan = plan_of(protection=protection)
    usual = released(plan=plan, threads=1)
    same(usual, released(plan=plan, threads=3))
    header = ",".join([f"x{i}" for i in range(D)] + [f"y{j}" for j in range(L)])
    path = tmp_path / "table.csv"
    np.savetxt(path, np.hstack([x, y]), delimiter=",", header=header, comments="", fmt="%.17g")
    same(usual, released(table_source(path, features=["x*"], outcomes=["y*"]), plan))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "y.npy", y)
    stored = PairedSource(
        features=open_npy(tmp_path / "x.npy", [f"x{i}" for i in range(D)]),
        outcomes=open_npy(tmp_path / "y.npy", [f"y{j}" for j in range(L)]),
        feature_rows=range(N),
        outcome_rows=range(N),
    )
    same(usual, released(stored, plan))


@pytest.mark.parametrize("protection", ["both", "features"])
def test_a_cluster_gives_the_same_bits(protection):
    pytest.importorskip("distributed")
    from primo.rows.cluster import open_client

    with open_client(1) as client:
        plan = plan_of(protection=protection)
        same(released(plan=plan), released(plan=plan, client=client))


# Noise.


def test_no_two_rounds_have_the_same_noise(monkeypatch):
    """The labels differ, and so do the draws, however the bits were made."""
    drawn = []
    original = mechanism.add_noise

    def add_noise(values, *, label, **options):
        before = values.copy()
        original(values, label=label, **options)
        drawn.append((label, (values - before).ravel().tolist()))

    monkeypatch.setattr(mechanism, "add_noise", add_noise)
    for bits in (RandomBits.seeded(1), RandomBits.fresh(), RandomBits.sealed(bytes(range(32)))):
        drawn.clear()
        released(bits=bits)
        labels = [label for label, _ in drawn]
        assert len(set(labels)) == len(labels) == 15
        values = [abs(value) for _, noise in drawn for value in noise]
        assert len(set(values)) == len(values)  # of 2**58 and more


def test_a_plan_of_several_rounds_is_not_released_at_once():
    plan = plan_of()
    moments = fold(array_source(*rows()), plan)
    with pytest.raises(primo.PrivacyError, match="round by round"):
        mechanism.release(
            moments,
            plan,
            feature_names=("a",),
            outcome_names=("b",),
            bits=RandomBits.seeded(1),
        )


# One charge.


def test_all_rounds_are_one_charge(tmp_path):
    x, y = rows()
    ledger = primo.create_ledger(
        tmp_path / "l.ledger", limit=primo.Budget(epsilon=8, delta=1e-5), by_values=True
    )
    options = {
        "epsilon": 8,
        "delta": 1e-5,
        "feature_bounds": (-1, 1),
        "outcome_bounds": (-2, 2),
        "rounds": 4,
    }
    account = primo.Account(ledger=ledger, purpose="rounds")
    release = primo.PrimoRegressor(**options).fit(x, y, account=account).release_
    assert [(spent.rows, spent.releases) for spent in ledger.spent()] == [(N, 1)]
    charges = [entry for entry in ledger.history() if entry.kind == "charge"]
    assert len(charges) == 1
    spent = release.plan.rounds.spent(covariance_noisy=True)
    assert math.isclose(release.plan.cost.mu, math.sqrt(spent), rel_tol=1e-6)
    with pytest.raises(primo.BudgetError):
        primo.PrimoRegressor(**options).fit(x, y, account=account)


# Resumed.


class KilledError(Exception):
    pass


def interrupted(monkeypatch, place, number):
    """Kill a run in a round: before it is read, or after its noise and before it is kept."""
    original = module._one_round

    def one_round(walk, plan, at, step, **options):
        if at != number:
            return original(walk, plan, at, step, **options)
        if place == "before":
            raise KilledError
        found = original(walk, plan, at, step, **options)
        if place == "after":
            raise KilledError
        return found

    monkeypatch.setattr(module, "_one_round", one_round)


def begin(out, **changes):
    plan = plan_of(5, **changes)
    return Staging.begin(out, config="", plan=plan, charge={}, release_id="run-1")


def go(staging, source=None, **changes):
    with staging:
        return released(source, plan_of(5, **changes), bits=staging.bits(), record=staging)


@pytest.mark.parametrize(
    ("number", "place", "protection"),
    [
        *itertools.product((0, 2, 4), ("before", "after"), ("both",)),
        *itertools.product((0, 3), ("after",), ("features",)),
    ],
)
def test_killed_in_a_round_and_resumed(tmp_path, monkeypatch, number, place, protection):
    """The rounds that were drawn keep their noise, and are not read again; nothing is drawn twice."""
    secret = bytes(range(32))
    monkeypatch.setattr("primo.workflow.resume.secrets.token_bytes", lambda size: secret[:size])
    given = {"protection": protection}
    undisturbed = go(begin(tmp_path / "undisturbed", **given), **given)
    with monkeypatch.context() as patch:
        interrupted(patch, place, number)
        with pytest.raises(KilledError):
            go(begin(tmp_path / "out", **given), **given)
    names = {path.name for path in partial_of(tmp_path / "out").iterdir()}
    assert {name for name in names if name.startswith("kept-round")} == {
        f"kept-round-{i + 1}" for i in range(number)
    }
    read = []
    monkeypatch.setattr(
        module,
        "_one_round",
        lambda *a, original=module._one_round, **k: (read.append(a[2]), original(*a, **k))[1],
    )
    same(undisturbed, go(Staging.resume(tmp_path / "out"), **given))
    assert read == sorted({0, *range(number, 5)})


def test_a_resumed_run_does_not_take_another_step(tmp_path, monkeypatch):
    """Another machine may compute other last digits: what was recorded counts."""
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        interrupted(patch, "after", 2)
        with pytest.raises(KilledError):
            go(begin(out))
    step = module.next_step
    asked = []

    def other(plan, found):
        asked.append(len(found))
        taken = step(plan, found)
        return dataclasses.replace(taken, coefficients=taken.coefficients * (1 + 1e-9))

    monkeypatch.setattr(module, "next_step", other)
    go(Staging.resume(out))
    assert asked == [3, 4]


def test_a_lost_step_is_not_drawn_for_another(tmp_path, monkeypatch):
    """Without its record a round would be drawn a second time, of other residuals: refused."""
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        interrupted(patch, "after", 2)
        with pytest.raises(KilledError):
            go(begin(out))
    (partial_of(out) / "kept-step-3").unlink()
    step = module.next_step
    monkeypatch.setattr(
        module,
        "next_step",
        lambda plan, found: dataclasses.replace(step(plan, found), clip=0.123),
    )
    with pytest.raises(primo.PrivacyError, match="second release"):
        go(Staging.resume(out))


def test_other_rows_are_refused_though_their_rounds_would_be_new(tmp_path, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        interrupted(patch, "before", 2)
        with pytest.raises(KilledError):
            go(begin(out))
    x, y = rows()
    x[0] = 0.5
    with pytest.raises(primo.PrivacyError, match="from other rows"):
        go(Staging.resume(out), array_source(x, y))


def test_a_damaged_record_is_refused(tmp_path, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        interrupted(patch, "before", 2)
        with pytest.raises(KilledError):
            go(begin(out))
    kept = partial_of(out) / "kept-round-2"
    kept.write_bytes(kept.read_bytes()[:100])
    with pytest.raises(primo.InputError, match="damaged"):
        go(Staging.resume(out))
    kept.chmod(0o644)
    with pytest.raises(primo.PrivacyError, match="other users"):
        go(Staging.resume(out))


# Files.


@pytest.mark.parametrize("protection", ["both", "outcomes", "features"])
@pytest.mark.parametrize("moments", ["full", "diagonal"])
def test_saved_and_loaded(tmp_path, protection, moments):
    release = released(plan=plan_of(protection=protection, outcome_moments=moments))
    again = primo.load_release(primo.save_release(release, tmp_path / "r.npz"))
    same(release, again)
    assert again.statement() == release.statement()
    np.testing.assert_allclose(again.association, release.association, rtol=1e-12)
    np.testing.assert_allclose(
        again.coefficients().slopes, release.coefficients().slopes, rtol=1e-6, atol=1e-9
    )


FORGERIES = {
    "clip": lambda stored: stored | {"round2_clip": np.float64(100.0)},
    "no clip": lambda stored: stored | {"round2_clip": np.float64("nan")},
    "smaller first clip": lambda stored: stored | {"round1_clip": np.float64(0.5)},
    "shape": lambda stored: stored | {"round2_association": np.zeros((1, 1))},
    "not finite": lambda stored: stored | {"covariance": np.full((D + 1, D + 1), np.nan)},
    "first round of residuals": lambda stored: (
        stored | {"round1_coefficients": stored["round3_coefficients"]}
    ),
    "a round is missing": lambda stored: {
        name: value for name, value in stored.items() if not name.startswith("round3")
    },
    "a round too many": lambda stored: (
        stored
        | {
            name.replace("round3", "round4"): value
            for name, value in stored.items()
            if name.startswith("round3")
        }
    ),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=FORGERIES)
def test_rounds_that_do_not_fit_the_plan_are_refused(tmp_path, forge):
    path = primo.save_release(released(), tmp_path / "r.npz")
    with np.load(path) as file:
        stored = {name: file[name] for name in file.files}
    np.savez(path, **forge(stored))
    with pytest.raises(primo.InputError):
        primo.load_release(path)


@pytest.mark.parametrize("protection", ["both", "features"])
def test_a_bundle_keeps_every_round_and_says_what_each_spends(tmp_path, protection):
    import json

    release = released(plan=plan_of(protection=protection))
    path = primo.write_bundle(release, tmp_path / "out")
    bundle = primo.read_bundle(path)
    same(release, bundle.release)
    described = json.loads((path / "plan.json").read_text())
    assert len(described["rounds"]) == 3
    assert math.hypot(*(each["mu"] for each in described["rounds"])) <= release.plan.mu
    fitted = release.coefficients()
    table = bundle.table("outcomes")
    np.testing.assert_allclose(table["intercept"], fitted.intercept, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("protection", ["both", "features"])
def test_new_outcomes_extend_a_release_of_several_rounds(protection):
    """The covariance of all rounds is used again, with noise that is not understated."""
    x, y = rows()
    options = {"protection": protection, "epsilon": 4.0, "delta": 1e-5, "outcome_bounds": (-2, 2)}
    first = released(plan=plan_of(protection=protection))
    later = primo.extend(first, x, -y[:, :1], random_state=2, **options)
    np.testing.assert_array_equal(later.covariance, first.covariance)
    ratio = later.plan.covariance_sigma / first.covariance_sigma
    assert 1 - 1e-9 <= ratio < math.sqrt(2) * (1 + 1e-9)
    assert later.plan.total_mu == pytest.approx(math.hypot(first.plan.mu, later.plan.mu))


def test_all_sums_of_a_round_are_of_the_same_integers(monkeypatch):
    """The proof pairs XᵀX with XᵀR of one row x. XᵀX of the first round was taken for all once, but a
    row far beyond its norm is shortened in one step there, and in two where residuals are taken."""
    seen = []
    real = mechanism.release_round

    def recorded(moments, *args, **options):
        seen.append(moments)
        return real(moments, *args, **options)

    monkeypatch.setattr(module.mechanism, "release_round", recorded)
    d, rng = 40, np.random.default_rng(17)
    bounds = {"feature_bounds": Bounds(norm=1.0), "outcome_bounds": Bounds(norm=1.0)}
    for _ in range(10):
        x, y = np.zeros((8, d)), np.zeros((8, L))
        x[0], y[0] = 1000 * rng.normal(size=d), rng.normal(size=L)
        plan = plan_of(n=8, d=d, fit_intercept=False, **bounds)
        released(array_source(x, y), plan)
    assert len(seen) == 30
    first, second = seen[::3], seen[1::3]  # one of these rows does differ between them
    assert any((a.covariance != b.covariance).any() for a, b in zip(first, second, strict=True))
    for moments in seen:  # of one row: x xᵀ and x rᵀ
        squares, products = moments.covariance, moments.association
        for j in range(L):
            left = [[int(a) * int(p) for p in products[:, j]] for a in squares[0]]
            right = [[int(a) * int(products[0, j]) for a in row] for row in squares]
            assert left == right
