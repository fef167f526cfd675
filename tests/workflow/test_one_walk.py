"""Every row is read once in each round, and nothing of it after the last noise is drawn."""

import dataclasses

import numpy as np
import pytest

from primo.planning.settings import Settings
from primo.rows.sources.arrays.memory import ArraySource
from primo.rows.sources.base import Block
from primo.rows.sources.paired import PairedSource
from primo.rows.sources.table_columns import TableColumns
from primo.rows.sources.tabular.tables import table_source
from primo.wall import mechanism
from primo.wall.noise import RandomBits
from primo.workflow.fit import prepare, release_rows

N, L = 60, 3

#: Protection, association, number of features: those that need a public block, and two that do not.
WAYS = [
    ("features", "projection", 4),
    ("outcomes", "gauss", 2 * N),  # more public features than rows
    ("outcomes", "projection", 4),
    ("both", "gauss", 4),
]
NEEDS_BLOCK = WAYS[:2]


def arrays(d):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, size=(N, d)), rng.uniform(-1, 1, size=(N, L))


def names(d):
    return tuple(f"x{i}" for i in range(d)), tuple(f"y{j}" for j in range(L))


class Touched:
    """Notes every use of a source."""

    def __getattribute__(self, name):
        value = object.__getattribute__(self, name)
        if not name.startswith("_"):
            object.__getattribute__(self, "events").append(("touch", name))
        return value


@dataclasses.dataclass(frozen=True, kw_only=True)
class Arrays(Touched, ArraySource):
    events: list

    def blocks(self, rows):
        self.events.append(("read", *self.feature_names, *self.outcome_names))
        return super().blocks(rows)


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Paired(Touched, PairedSource):
    events: list


@dataclasses.dataclass(frozen=True)
class Store:
    """Columns that note when they are opened."""

    values: np.ndarray
    names: tuple
    events: list

    @property
    def n(self):
        return len(self.values)

    def ids(self):
        return None

    def blocks(self, order, rows):
        self.events.append(("read", *self.names))
        for start in range(0, len(order), rows):
            yield self.values[np.asarray(order)[start : start + rows]]


class Foreign(Touched):
    """A source that somebody else wrote: it gives both blocks or none."""

    def __init__(self, x, y, events):
        self.events = events
        self._x, self._y = x, y
        self.n, (self.feature_names, self.outcome_names) = len(x), names(x.shape[1])

    def ids(self):
        return None

    def blocks(self, rows):
        self.events.append(("read", *self.feature_names, *self.outcome_names))
        for start in range(0, self.n, rows):
            part = slice(start, start + rows)
            yield Block(features=self._x[part], outcomes=self._y[part])

    def part(self, start, stop):
        return Foreign(self._x[start:stop], self._y[start:stop], self.events)


def in_memory(d, events, **_):
    (x, y), (feature_names, outcome_names) = arrays(d), names(d)
    return Arrays(
        features=x,
        outcomes=y,
        feature_names=feature_names,
        outcome_names=outcome_names,
        events=events,
    )


def paired(d, events, **_):
    (x, y), (feature_names, outcome_names) = arrays(d), names(d)
    return Paired(
        features=Store(x, feature_names, events),
        outcomes=Store(y, outcome_names, events),
        feature_rows=range(N),
        outcome_rows=range(N),
        events=events,
    )


def split_table(d, events, *, folder, monkeypatch):
    (x, y), (feature_names, outcome_names) = arrays(d), names(d)
    header = ",".join((*feature_names, *outcome_names))
    path = folder / "table.csv"
    np.savetxt(path, np.hstack([x, y]), delimiter=",", header=header, comments="", fmt="%.17g")
    source = table_source(path, features=["x*"], outcomes=["y*"])
    kind = type(source.columns)
    assert issubclass(kind, TableColumns)
    original = kind.blocks

    def blocks(self, order, rows):
        events.append(("read", *self.names))
        return original(self, order, rows)

    monkeypatch.setattr(kind, "blocks", blocks)
    return source


def foreign(d, events, **_):
    return Foreign(*arrays(d), events)


SOURCES = [in_memory, paired, split_table, foreign]


@pytest.fixture
def release(tmp_path, monkeypatch):
    def run(make, protection, association, d, *, events=None, bounds=True, **changes):
        events = [] if events is None else events
        source = make(d, events, folder=tmp_path, monkeypatch=monkeypatch)
        drawn = mechanism.add_noise

        def add_noise(*args, **options):
            events.append(("noise",))
            drawn(*args, **options)

        monkeypatch.setattr(mechanism, "add_noise", add_noise)
        known = {"features": None if protection == "outcomes" and not bounds else (-1, 1)}
        known["outcomes"] = None if protection == "features" and not bounds else (-1, 1)
        settings = Settings(
            epsilon=5.0,
            delta=1e-6,
            protection=protection,
            association=association,
            feature_bounds=known["features"],
            outcome_bounds=known["outcomes"],
            **changes,
        )
        return release_rows(source, prepare(source, settings), bits=RandomBits.seeded(1))

    return run


def private_columns(protection, d):
    features, outcomes = names(d)
    return {"both": (*features, *outcomes), "features": features, "outcomes": outcomes}[protection]


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize(("protection", "association", "d"), WAYS)
def test_private_columns_are_opened_once_and_nothing_after_the_noise(
    release, make, protection, association, d
):
    events = []
    release(make, protection, association, d, events=events)
    assert ("noise",) in events
    assert set(events[events.index(("noise",)) :]) == {("noise",)}
    opened = [name for event in events if event[0] == "read" for name in event[1:]]
    assert {opened.count(name) for name in private_columns(protection, d)} == {1}


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("d", [4, 2 * N])
def test_after_noise_on_the_outcomes_public_columns_alone_are_read(release, make, d):
    """Noise on the outcomes themselves: their products with the features are made afterwards."""
    events = []
    release(make, "outcomes", "perturbed", d, events=events)
    features, outcomes = names(d)
    opened = [name for event in events if event[0] == "read" for name in event[1:]]
    assert {opened.count(name) for name in outcomes} == {1}
    after = events[events.index(("noise",)) :]
    assert {name for kind, *read in after if kind == "read" for name in read} <= {*features}
    touched = {name for kind, *rest in after if kind == "touch" for name in rest}
    assert not touched & {"outcomes", "outcome_rows", "blocks", "ids", "columns"}
    if make in (in_memory, foreign):  # whose features are kept while the outcomes are read
        assert set(after) == {("noise",)}


def test_noise_on_the_outcomes_is_the_same_for_every_source(release):
    first, *others = (release(make, "outcomes", "perturbed", 4) for make in SOURCES)
    for other in others:
        assert np.array_equal(first.perturbed, other.perturbed)
        assert np.array_equal(first.association, other.association)
        assert np.array_equal(first.covariance, other.covariance)


@pytest.mark.parametrize("make", SOURCES)
@pytest.mark.parametrize("protection", ["both", "outcomes"])
def test_rows_are_opened_once_in_each_round_and_not_after_the_last(release, make, protection):
    events = []
    release(make, protection, "gauss", 4, events=events, rounds=3)
    opened = [name for event in events if event[0] == "read" for name in event[1:]]
    assert {opened.count(name) for name in private_columns(protection, 4)} == {3}
    # Read, noise, read, noise, read, noise: no round begins before the one before it was released.
    kinds = [event[0] for event in events if event[0] in ("read", "noise")]
    runs = [kind for i, kind in enumerate(kinds) if i == 0 or kinds[i - 1] != kind]
    assert runs == ["read", "noise"] * 3
    last = max(i for i, event in enumerate(events) if event[0] == "read")
    after = events[last:]
    assert set(after[after.index(("noise",)) :]) == {("noise",)}


@pytest.mark.parametrize("make", [paired, split_table])
@pytest.mark.parametrize(("protection", "association", "d"), NEEDS_BLOCK)
def test_bounds_are_read_off_the_public_columns_alone(release, make, protection, association, d):
    events = []
    release(make, protection, association, d, events=events, bounds=False)
    assert set(events[events.index(("noise",)) :]) == {("noise",)}
    opened = [name for event in events if event[0] == "read" for name in event[1:]]
    assert {opened.count(name) for name in private_columns(protection, d)} == {1}


@pytest.mark.parametrize(("protection", "association", "d"), NEEDS_BLOCK)
def test_every_source_gives_the_same_release(release, protection, association, d):
    first, *others = (release(make, protection, association, d) for make in SOURCES)
    for other in others:
        assert np.array_equal(first.association, other.association)
        if association == "projection":
            np.testing.assert_allclose(
                first.projected.association, other.projected.association, rtol=1e-9, atol=1e-9
            )
        np.testing.assert_allclose(
            first.coefficients().slopes, other.coefficients().slopes, rtol=1e-6, atol=1e-9
        )


def test_only_public_columns_are_kept():
    """A view would keep the private columns of its block alive."""
    from primo.rows.public_block import PublicRows

    whole = np.arange(20.0).reshape(4, 5)
    kept = PublicRows("outcomes")
    kept.add(Block(features=whole[:, :3], outcomes=whole[:, 3:]))
    assert np.array_equal(kept.rows(), whole[:, 3:])
    assert kept.rows().base is None
